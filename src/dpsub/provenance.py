"""Provenance: which code made a result, on what, with which versions."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dpsub.streams import canonical

_PACKAGES = ("matplotlib", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy")


@cache
def closure(*modules: str) -> tuple[str, ...]:
    """Return all modules of the package that importing `modules` brings in, sorted, themselves included.

    Imports are read from the source, nothing is run; those inside functions count, those under ``TYPE_CHECKING`` don't.
    Importing a package whose members are found by discovery (it makes a ``Registry``) brings in all its modules;
    importing only one of its modules does not.

    Raises
    ------
    ModuleNotFoundError
        If one of `modules` does not exist.
    """
    for name in modules:
        if _source(name) is None:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    top = {name.partition(".")[0] for name in modules}
    done: set[tuple[str, bool]] = set()
    waiting = [(name, True) for name in modules]  # False: only run on the way to one of its modules, not asked for
    while waiting:
        name, asked = waiting.pop()
        path = _source(name)
        if path is None or {(name, asked), (name, True)} & done:
            continue
        done.add((name, asked))
        waiting += [(found, True) for found in imports(name, path) if found.partition(".")[0] in top]
        if "." in name:
            waiting.append((name.rpartition(".")[0], False))
        if asked:
            waiting += [(found, True) for package in _discovered(path) for found in _modules_of(package)]
    return tuple(sorted({name for name, _ in done}))


def digest(*modules: str, files: Iterable[Path] = ()) -> str:
    """Return the SHA-256 sum of the code of the import closure of `modules`, and of the scripts `files`.

    Comments, layout and docstrings do not count: they cannot change a result.
    """
    total = hashlib.sha256()
    named = [(name, _source(name)) for name in (closure(*modules) if modules else ())]
    for name, path in [*named, *((path.name, path) for path in sorted(files))]:
        total.update(f"{name}\0{_code(path) if path else ''}\0".encode())
    return total.hexdigest()


def settings_digest(mapping: Mapping[str, Any]) -> str:
    """Return the SHA-256 sum of the canonical form of `mapping`, in which 1, 1.0 and ``np.int64(1)`` are the same."""
    text = json.dumps(canonical(mapping), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 sum of the file at `path`."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def peak_memory() -> int:
    """Return the most memory in MiB that this program has held since it was started.

    Linux hands the maximum of ``getrusage`` down to a started program, the parent's own memory with it; its status
    file does not.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others KiB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 2**20
    (line,) = (line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def cost() -> str:
    """Return what this program has taken so far, as jobs say it at their end."""
    return f"{time.process_time():.2f} s of processor time, at most {peak_memory()} MiB of memory"


def commit(folder: Path) -> str:
    """Return the commit of the working tree at `folder`, and whether files differ from it; "unknown" without git."""
    try:
        found = [
            subprocess.run(["git", "-C", str(folder), *command], capture_output=True, text=True, check=True).stdout
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found[0].strip() + (" with changes" if found[1].strip() else "")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the packages that numbers pass through."""
    found = {"python": platform.python_version(), "dpsub": importlib.metadata.version("dpsub")}
    return found | {name: importlib.metadata.version(name) for name in _PACKAGES}


@cache
def _source(module: str) -> Path | None:
    """Return the source file of `module`, None if there is none; no package is imported to find it."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin)
    if rest:
        place = path.parent.joinpath(*rest)
        path = place / "__init__.py" if (place / "__init__.py").is_file() else place.with_suffix(".py")
    return path if path.suffix == ".py" and path.is_file() else None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def _code(path: Path) -> str:
    """Return the SHA-256 sum of what the source at `path` does, without its comments, layout and docstrings."""
    tree = _tree(path)
    for node in _statements(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
            match body[0]:
                case ast.Expr(value=ast.Constant(value=str())):
                    del body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and its statements, those within others included, but for those under ``TYPE_CHECKING``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        skipped = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for field in ("orelse",) if skipped else ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, field, ())


@cache
def imports(module: str, path: Path) -> tuple[str, ...]:
    """Return the dotted names that the module `module`, whose source is at `path`, imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[str] = []
    for node in _statements(_tree(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append(inner if base.partition(".")[0] == module.partition(".")[0] and _source(inner) else base)
    return tuple(found)


@cache
def _discovered(path: Path) -> tuple[str, ...]:
    """Return the packages for which the module at `path` makes a registry."""
    return tuple(
        node.value.args[0].value
        for node in _statements(_tree(path))
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "Registry"
        and node.value.args
        and isinstance(node.value.args[0], ast.Constant)
        and isinstance(node.value.args[0].value, str)
    )


@cache
def _modules_of(package: str) -> tuple[str, ...]:
    path = _source(package)
    if path is None:
        return ()
    found = []
    for file in sorted(path.parent.rglob("*.py")):
        parts = file.relative_to(path.parent).with_suffix("").parts
        found.append(".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))))
    return tuple(name for name in found if name != package)

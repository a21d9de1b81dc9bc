"""Provenance: which code made a result, on what, with which versions."""

from __future__ import annotations

import ast
import gc
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
from dataclasses import dataclass
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
            waiting += [(found, True) for package in _parsed(path).discovered for found in _modules_of(package)]
    return tuple(sorted({name for name, _ in done}))


def digest(*modules: str, files: Iterable[Path] = ()) -> str:
    """Return the SHA-256 sum of the code of the import closure of `modules`, and of the scripts `files`.

    Comments, layout and docstrings do not count: they cannot change a result.
    """
    total = hashlib.sha256()
    named = [(name, _source(name)) for name in (closure(*modules) if modules else ())]
    for name, path in [*named, *((path.name, path) for path in sorted(files))]:
        total.update(f"{name}\0{_parsed(path).code if path else ''}\0".encode())
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


@dataclass(frozen=True)
class _Parsed:
    """What a source does, as the sum `code`; what it imports (level, module, names); the packages it registers."""

    code: str
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    discovered: tuple[str, ...]


@cache
def _parsed(path: Path) -> _Parsed:
    """Return what there is to know of the source at `path`; its comments, layout and docstrings don't count."""
    collecting = gc.isenabled()
    gc.disable()  # a tree is many objects and no garbage: to look for some more than doubles the time
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        statements = list(_statements(tree))
        for node in statements:
            body = getattr(node, "body", None)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
                match body[0]:
                    case ast.Expr(value=ast.Constant(value=str())):
                        del body[0]
        words: list[str] = []
        _write_out(tree, words)
        found: list[tuple[int, str, tuple[str, ...]]] = []
        for node in statements:
            if isinstance(node, ast.Import):
                found += [(0, alias.name, ()) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        code = hashlib.sha256("\0".join(words).encode()).hexdigest()
        return _Parsed(code, tuple(found), tuple(_registered(statements)))
    finally:
        if collecting:
            gc.enable()


def _write_out(node: ast.AST, words: list[str]) -> None:
    """Append the syntax tree in words, as `ast.dump` writes it, which takes three times as long."""
    words.append(type(node).__name__)
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            _write_out(value, words)
        elif isinstance(value, list):
            words.append("[")
            for item in value:
                if isinstance(item, ast.AST):
                    _write_out(item, words)
                else:
                    words.append(repr(item))
            words.append("]")
        else:
            words.append(repr(value))
    words.append(")")


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and its statements, those within others included, but for those under ``TYPE_CHECKING``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        skipped = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for field in ("orelse",) if skipped else ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, field, ())


def _registered(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the packages for which the statements make a registry."""
    for node in statements:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            match node.value:
                case ast.Call(func=ast.Name(id="Registry"), args=[ast.Constant(value=str() as package), *_]):
                    yield package


def imports(module: str, path: Path) -> Iterator[str]:
    """Yield the dotted names that the module `module`, whose source is at `path`, imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for level, base, names in _parsed(path).imports:
        if not names:
            yield base
            continue
        start = importlib.util.resolve_name("." * level + base, package) if level else base
        ours = start.partition(".")[0] == module.partition(".")[0]
        for name in names:
            inner = f"{start}.{name}"
            yield inner if ours and _source(inner) else start


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

"""Provenance of results: the code that made them, the platform, and the versions of packages."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpsub
from dpsub.streams import canonical

if TYPE_CHECKING:
    from grimp import ImportGraph

_PACKAGES = ("matplotlib", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy")
_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def closure(*modules: str) -> tuple[str, ...]:
    """Return all modules of their package that importing `modules` brings in, sorted, themselves
    included.

    Imports are read from the source, nothing is run; those inside functions count, those under
    ``TYPE_CHECKING`` don't. Importing a package that makes a ``Registry`` of its own members brings
    in all its modules; importing only one of its modules does not. A registry of another package
    brings in nothing: a job names the module of its member.

    Raises
    ------
    ModuleNotFoundError
        If one of `modules` does not exist.
    """
    # From the source, as importing all modules to see what they import would run them.
    graph = _graph(modules[0].partition(".")[0])
    for name in modules:
        if name not in graph.modules:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    imported: set[str] = set()
    passed: set[str] = set()  # packages that are run only on the way to one of their modules
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name in imported:
            continue
        imported.add(name)
        waiting += graph.find_modules_directly_imported_by(name)
        # a registry imports its members by discovery, which the source does not show
        if _registers_itself(name):
            waiting += graph.find_descendants(name)
        # to import a module runs the __init__ of every package above it
        while (name := name.rpartition(".")[0]) and name not in passed:
            passed.add(name)
            waiting += graph.find_modules_directly_imported_by(name)
    return tuple(sorted(imported | passed))


def digest(*modules: str, files: Iterable[Path] = ()) -> str:
    """Return the SHA-256 sum of the code of the import closure of `modules`, and of the scripts
    `files`.

    Comments, layout and docstrings do not count: they cannot change a result.
    """
    total = hashlib.sha256()
    named = [(name, _source(name)) for name in (closure(*modules) if modules else ())]
    # Names count too: the same code under another name is another module.
    for name, path in [*named, *((path.name, path) for path in sorted(files))]:
        total.update(f"{name}\0{_code(path)}\0".encode())
    return total.hexdigest()


@cache
def _graph(package: str) -> ImportGraph:
    import grimp  # jobs do without: only who plans them asks for digests

    return grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)


@cache
def _source(module: str) -> Path:
    """Return the source file of `module`, without importing the packages it is in."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}", name=module)
    path = Path(spec.origin).parent.joinpath(*rest)
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


@cache
def _registers_itself(module: str) -> bool:
    """Return whether the package `module` makes a registry of its own members."""
    source = _source(module).read_text(encoding="utf-8")
    return re.search(rf"Registry\(\s*['\"]{re.escape(module)}['\"]", source) is not None


@cache
def _code(path: Path) -> str:
    """Return the SHA-256 sum of the syntax tree of a source, docstrings removed."""
    # The syntax tree has no comments and no layout: a comment does not make results old.
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node in _statements(tree):
        if isinstance(node, _HAS_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements within it, before those within them.

    A docstring is in no expression, and expressions are most of a tree.
    """
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _statements(child)


def settings_digest(mapping: Mapping[str, Any]) -> str:
    """Return the SHA-256 sum of the canonical form of `mapping`, in which 1, 1.0 and
    ``np.int64(1)`` are the same."""
    # YAML and JSON write 1 and 1.0 as they like: the digest must not.
    text = json.dumps(canonical(mapping), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def peak_memory() -> int:
    """Return the most memory in MiB that this program has held since it was started.

    Linux hands the maximum of ``getrusage`` down to a started program, the parent's own memory with
    it; its status file does not.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others KiB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 2**20
    lines = status.read_text(encoding="utf-8").splitlines()
    (high_water_mark,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(high_water_mark.split()[1]) // 1024


def commit(folder: Path) -> str:
    """Return the commit of the working tree at `folder`, and whether files differ from it;
    "unknown" without git."""
    try:
        revision = _git(folder, "rev-parse", "HEAD")
        # Results and other files that git does not know do not count.
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{revision} with changes" if changes else revision


def date(folder: Path) -> str:
    """Return the day of the commit of the working tree at `folder`, "2026-11-23"; "" without
    git."""
    # of the commit, not of today: the same code gives the same bytes on any day
    try:
        return _git(folder, "show", "--no-patch", "--format=%cs", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *command: str) -> str:
    words = ["git", "-C", str(folder), *command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the packages that numbers pass
    through."""
    own = {"python": platform.python_version(), "dpsub": dpsub.__version__}
    return own | {name: importlib.metadata.version(name) for name in _PACKAGES}


def of_now(folder: Path) -> dict[str, Any]:
    """Return what is known of a run from its start on: `versions` of packages, and `commit` and
    `date` of the working tree at `folder`."""
    return {"versions": versions(), "commit": commit(folder), "date": date(folder)}

"""Files that are read are never executed: no source file calls what could run what it reads, or a
shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path for top in ("src", "workflow", "benchmarks") for path in (ROOT / top).rglob("*.py")
)
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "builtins.eval",
    "builtins.exec",
    "os.system",
    "os.popen",
    "os.execl",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.load_all",
    "pandas.read_pickle",
    "pd.read_pickle",
    "np.fromfile",
    "torch.load",
}
SAFE_LOADERS = {"_Loader", "yaml.SafeLoader", "yaml.CSafeLoader"}
"""`dpsub.reproduce.yaml_files._Loader` is a SafeLoader, which another test holds against tags that
make objects."""


def faults(code: str) -> list[str]:
    """Return the calls in a source text that could execute the files it reads, by line."""
    return [
        f"line {node.lineno}: {why}"
        for node in ast.walk(ast.parse(code))
        for why in _faults_of(node)
    ]  # type: ignore[attr-defined]


def _faults_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names if name.name.partition(".")[0] in MODULES]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name.name}" for name in node.names]
        return [name for name in names if name.partition(".")[0] in MODULES or name in CALLS]
    if not isinstance(node, ast.Call):
        return []
    called = ast.unparse(node.func)
    given = {word.arg: ast.unparse(word.value) for word in node.keywords}
    found = [called] if called in CALLS or called.endswith(".to_pickle") else []
    if called in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
        found.append("np.load without allow_pickle=False")
    if called == "yaml.load":
        loader = given.get("Loader") or (ast.unparse(node.args[1]) if len(node.args) > 1 else "")
        found += [] if loader in SAFE_LOADERS else ["yaml.load without a safe loader"]
    if given.get("shell", "False") != "False":
        found.append("a shell")
    return found


@pytest.mark.parametrize("top", ["src", "workflow", "benchmarks"])
def test_no_file_that_is_read_is_executed(top: str) -> None:
    own = [path for path in FILES if path.is_relative_to(ROOT / top)]
    assert own
    found = {str(path.relative_to(ROOT)): faults(path.read_text(encoding="utf-8")) for path in own}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_workflow_runs_no_code_of_files() -> None:
    """Rules call scripts through a shell, with every name quoted, and nothing is taken for Python
    or a notebook."""
    rules = sorted((ROOT / "workflow").rglob("*.smk"))
    assert rules
    for path in [*rules, ROOT / "workflow/Snakefile", ROOT / "Snakefile"]:
        text = path.read_text(encoding="utf-8")
        for word in (
            "pickle",
            "eval(",
            "exec(",
            "os.system",
            "shell=True",
            "notebook:",
            "wrapper:",
            " run:\n",
        ):
            assert word not in text, f"{path.name}: {word}"


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import joblib",
        "from joblib import load",
        "import shelve",
        "import marshal",
        "from os import system",
        "import os\nos.system('ls')",
        "eval('1')",
        "exec('1')",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.UnsafeLoader)",
        "yaml.load(text, Loader=yaml.FullLoader)",
        "yaml.unsafe_load(text)",
        "subprocess.run('ls', shell=True)",
        "pd.read_pickle(path)",
        "frame.to_pickle(path)",
    ],
)
def test_the_check_finds_what_is_planted(code: str) -> None:
    assert faults(code)


def test_the_check_lets_safe_code_pass() -> None:
    safe = (
        "np.load(path, allow_pickle=False)\nyaml.load(text, "
        "_Loader)\nsubprocess.run(['ls'])\nre.compile('a')"
    )
    assert faults(safe) == []

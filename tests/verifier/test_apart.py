"""The verifier and what it verifies share nothing."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imported(path: Path) -> set[str]:
    """Return the top-level names of all modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def test_the_verifier_needs_flint_and_products_of_matrices_alone():
    modules = sorted((ROOT / "verifier").glob("*.py"))
    own = {path.stem for path in modules}
    assert len(own) > 3
    for path in modules:
        others = imported(path) - own - set(sys.stdlib_module_names)
        # numpy for the sums of a game, whose rounding is charged there
        assert others <= ({"flint", "numpy"} if path.stem == "game" else {"flint"}), path


def test_the_package_knows_nothing_of_the_verifier():
    for path in (ROOT / "src").rglob("*.py"):
        assert not {"flint", "verifier"} & imported(path), path

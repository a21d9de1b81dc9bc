"""The library alone: NumPy, SciPy and nothing else, a cheap import, and each command but `plan`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.few import few

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "account": "account poisson --rate 0.01 --noise-multiplier 1 --steps 100 --delta 1e-5",
    "check": "check poisson --rate 0.01 --noise-multiplier 1 --steps 100 --delta 1e-5 "
    "--claimed-epsilon 1",
    "curve": "curve poisson --rate 0.1 --noise-multiplier 2 --steps 2 --epsilon 1,2",
    "calibrate": "calibrate poisson --rate 0.1 --steps 2 --epsilon 1 --delta 1e-5",
    "recommend": "recommend --n 1000 --batch-size 250 --epochs 1 --epsilon 1 --delta 1e-5 "
    "--adjacency zero_out",
    "amplify": "amplify wor --n 100 --m 10 --ratio 1 --epsilon 1",
    "law": "law must_ow --n 100 --b 20 --m 10",
    "audit": "audit poisson --rate 0.3 --noise-multiplier 2 --steps 2 --epsilon 1 --draws 100",
    "translate": "translate --rate 0.1 --ratio 1 --epsilon 0.1",
    "brdp": "brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --scale 4",
    "advise": "advise frame.csv --epsilon 1 --rate 0.25",
}
MOST_IMPORT = 50_000  # microseconds
ALONE = """
import sys
ALLOWED = {"numpy", "scipy", "dpsub", *sys.stdlib_module_names}
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED and not name.startswith("_"):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
sys.meta_path.insert(0, Nothing())
from dpsub.cli import main
sys.exit(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{'ab'[i % 2]},{i % 4},{i + 1}" for i in range(40)]
    (tmp_path / "frame.csv").write_text(
        "\n".join(["stratum,cluster,size", *rows, ""]), encoding="utf-8"
    )
    return tmp_path


def called(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=folder, env=own, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("command", few(COMMANDS, most=3))
def test_a_command_imports_numpy_and_scipy_alone(command: str, folder: Path) -> None:
    done = called(folder, sys.executable, "-c", ALONE, *COMMANDS[command].split(), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    json.loads(done.stdout)


def test_a_command_that_needs_more_says_how_to_get_it(folder: Path) -> None:
    (folder / "sweep.yaml").write_text("seed: 1\n", encoding="utf-8")
    done = called(folder, sys.executable, "-c", ALONE, "plan", "sweep.yaml")
    assert done.returncode == 2
    assert "is not installed; pip install '.[papers]' in a clone" in done.stderr
    assert done.stderr.count("\n") == 1


def test_importing_the_package_costs_little() -> None:
    _check_import(Path.cwd(), sys.executable)


@pytest.mark.slow
def test_an_empty_environment_gets_numpy_and_scipy_and_nothing_else(folder: Path) -> None:
    """Needs the network, or an index that pip is configured for."""
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv/bin/python")
    before = _installed(folder, python)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    done = called(
        folder,
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        str(folder),
    )
    assert done.returncode == 0, done.stderr
    assert _installed(folder, python) - before == {"dpsub", "numpy", "scipy"}
    _check_import(folder, python)
    for command, words in COMMANDS.items():
        done = called(folder, str(folder / "venv/bin/dpsub"), *words.split(), "--json")
        assert (done.returncode, done.stderr) == (0, ""), command
        json.loads(done.stdout)


def _installed(folder: Path, python: str) -> set[str]:
    done = called(
        folder, python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"
    )
    return {package["name"].lower() for package in json.loads(done.stdout)}


def _check_import(folder: Path, python: str) -> None:
    """Import dpsub: cheap beyond the bare start of Python, and nothing that computes comes with
    it."""
    program = "import sys, dpsub; print(sorted({'numpy', 'scipy', 'pandas'} & set(sys.modules)))"
    times = []
    for _ in range(3):
        done = called(folder, python, "-X", "importtime", "-c", program)
        assert done.stdout == "[]\n"
        (line,) = (line for line in done.stderr.splitlines() if line.endswith("| dpsub"))
        times.append(int(line.split("|")[1]))
    assert min(times) < MOST_IMPORT  # the machine may be busy with other things

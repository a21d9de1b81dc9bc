"""Imports go down: the contracts of pyproject.toml hold, cover the whole package, and find planted
faults."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.few import few

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/dpsub"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
PAPERS = sorted(path.parent.name for path in SOURCE.glob("papers/*/__init__.py"))
LINT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from importlinter.cli import lint_imports_command
lint_imports_command()
"""


def lint(folder: Path) -> tuple[int, str]:
    """Check the package in a folder; one copied elsewhere stands before the installed one."""
    words = [str(folder), "--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    done = subprocess.run(
        [sys.executable, "-c", LINT, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_imports_go_down() -> None:
    status, said = lint(SOURCE.parent)
    assert status == 0, said


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("planted")
    shutil.copytree(SOURCE, place / "dpsub", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    few(
        [
            ("sampling.base", "dpsub.noise.gaussian", "layers"),
            ("checks", "dpsub.sampling.frame", "layers"),
            ("noise.gaussian", "dpsub.accounting.questions.search", "layers"),
            ("accounting.schemes.poisson", "dpsub.accounting.questions.account", "accounting"),
            ("accounting.engine.pairs", "dpsub.accounting.schemes.case", "accounting"),
            ("reproduce.records", "dpsub.reproduce.report", "workflow"),
            ("accounting.questions.account", "dpsub.reproduce.experiments", "line"),
            ("sampling.laws", "pandas", "line"),
            ("cli.law", "dpsub.reproduce.records", "line"),
            ("reproduce.records", "snakemake.utils", "snakemake"),
            (f"papers.{PAPERS[0]}.tables", "dpsub.learning", "records"),
            ("reproduce.figures.style", "dpsub.reproduce.experiment", "figures"),
            ("data.fetch", "dpsub.noise", "data"),
            ("reproduce.records", f"dpsub.papers.{PAPERS[0]}", "papers"),
            (f"papers.{PAPERS[0]}.numbers", f"dpsub.papers.{PAPERS[1]}.numbers", "apart"),
        ],
        most=6,
    ),
)
def test_a_planted_violation_is_found(
    copied: Path, module: str, imported: str, contract: str
) -> None:
    path = copied / "dpsub" / f"{module.replace('.', '/')}.py"
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{text}\nimport {imported}\n", encoding="utf-8")
        status, said = lint(copied)
    finally:
        path.write_text(text, encoding="utf-8")
    assert status == 1, said
    assert f"{CONTRACTS[contract]['name']} BROKEN" in " ".join(said.split())


def test_every_part_of_the_package_stands_above_or_below_the_line() -> None:
    parts = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    line = CONTRACTS["line"]
    sides = {
        name.removeprefix("dpsub.")
        for name in (*line["source_modules"], *line["forbidden_modules"])
    }
    assert parts - {"__init__", "__main__"} <= sides
    layered = {
        name.strip()
        for key in ("layers", "workflow")
        for layer in CONTRACTS[key]["layers"]
        for name in layer.replace("dpsub.", "").split(":")
    }
    assert parts - {"__init__", "__main__"} <= {name.partition(".")[0] for name in layered} | {
        "papers"
    }


def test_files_stay_small_and_are_named_after_ideas() -> None:
    for path in SOURCE.rglob("*.py"):
        # the formatter gives most arguments of a figure or a claim a line of its own
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 900, (
            f"{path} has more than 900 lines"
        )
        assert path.stem not in {"utils", "helpers", "common", "core", "misc"}, (
            f"{path} is named after a place"
        )


def test_a_name_of_a_class_has_one_meaning() -> None:
    """A class's name is given once, except that each of several papers, which never meet, may give
    it."""
    found: dict[str, list[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(SOURCE))
    for name, paths in found.items():
        folders = [path.parts[:2] if path.parts[0] == "papers" else () for path in paths]
        assert len(paths) == 1 or (() not in folders and len(set(folders)) == len(paths)), (
            name,
            *paths,
        )

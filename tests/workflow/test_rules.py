"""The rules show the study: a file for each stage, a rule for each experiment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dpsub.reproduce.experiment import STAGES
from tests.workflow.runs import ROOT

RULES = ROOT / "workflow/rules"
BEHIND = "common.smk"
"""File of rules that need not be read."""


def text_of(name: str) -> str:
    return (RULES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(RULES.glob("*.smk")), ids=lambda path: path.name)
def test_a_file_of_rules_opens_with_what_it_reads_and_makes(path: Path) -> None:
    if path.name != BEHIND:
        first, second, *_ = text_of(path.name).splitlines()
        assert first.startswith('"""Reads ') and second.startswith("Makes ")
        assert "\ndef " not in text_of(path.name)


def test_there_is_a_file_for_each_stage_and_all_run_experiments_alike() -> None:
    bodies = set()
    for stage in STAGES:
        _, _, body = text_of(f"{stage}.smk").split('"""', 2)
        assert f'of_stage("{stage}")' in body
        bodies.add(re.sub(rf"\b{stage}(?=_|\")", "<stage>", body))
    assert len(bodies) == 1


def listed(page: str) -> str:
    """Return the files in a folder of results, as a page lists them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = re.findall(r"^```text\n(results/\n.*?)^```", text, re.M | re.S)
    return found


def test_the_folder_of_results_says_what_stands_in_it_and_is_cleaned_but_for_that(
    tmp_path: Path,
) -> None:
    assert listed("results/README.md") == listed("docs/how-to/reproduce.md")
    for name in ("README.md", "comparison.csv", "tables/demo/table1.csv"):
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / name).touch()
    command = ["make", "-f", str(ROOT / "Makefile"), "clean"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert [path.name for path in tmp_path.rglob("*")] == ["results", "README.md"]

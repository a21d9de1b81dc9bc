"""The rules of the paper, in a dry run and in the picture of the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow import runs
from tests.workflow.runs import ROOT


@pytest.mark.slow
def test_the_picture_shows_the_rules_of_the_paper(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/reproduce.md").read_text(encoding="utf-8")
    assert "snakemake --rulegraph dot --config papers=[must] | " in page
    command = runs.command("--rulegraph", "dot", "--config", "papers=[must]", configs=())
    graph = subprocess.run(
        command,
        cwd=tmp_path,
        env=runs.environment(),
        check=True,
        capture_output=True,
        timeout=runs.PATIENCE,
    )
    picture, script = tmp_path / "rules.svg", ROOT / "workflow/scripts/draw_rules.py"
    drawn = [sys.executable, str(script), str(picture)]
    subprocess.run(drawn, input=graph.stdout, check=True, timeout=60)
    assert rules_in(picture) == rules_in(ROOT / "docs/pictures/rules_of_must.svg")
    assert {"prepare_adult", "train_adult_logistic", "build_table"} <= set(rules_in(picture))


def rules_in(picture: Path) -> list[str]:
    """Return the names in a picture, in the order in which they are drawn."""
    return re.findall(r"<text [^>]*>(\w+)</text>", picture.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_a_table_names_what_it_is_made_of(tmp_path: Path) -> None:
    status, output = runs.run(tmp_path, "-n", "must/table8", configs=())
    assert status == 0, output
    counts = dict(re.findall(r"^(\S+) +(\d+)$", output, flags=re.MULTILINE))
    assert counts == {
        "prepare_adult": "1",
        "train_adult_logistic": "2",
        "account_composition": "1",
        "account_noise_calibration": "1",
        "account_proved_composition": "4",
        "build_table": "1",
        "must/table8": "1",
        "total": "11",
    }

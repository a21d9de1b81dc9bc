"""Snakemake's own report holds every table and figure of a run, with category and caption."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsub.reproduce import artefacts
from tests.workflow import runs
from tests.workflow.runs import RESULTS, ROOT


def variable(page: str, name: str) -> dict:
    """Return an object that the page of the report assigns to a variable."""
    start = page.index(f'var {name} = {{"') + len(f"var {name} = ")
    return json.JSONDecoder().raw_decode(page[start:])[0]


MADE = {
    "tables/example/means.csv": "Means of noisy samples, and how many",
    "tables/example/walks.csv": "Where random walks end, on average",
    "figures/example/figure1.png": "One random walk, step by step, as every",
}
"""Captions of the artefacts of a tiny run."""


@pytest.mark.slow
def test_every_artefact_stands_in_it_with_category_and_caption(
    finished: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            "--snakefile",
            str(runs.project() / "Snakefile"),
            "--configfile",
            str(runs.TINY),
            "--workflow-profile",
            str(ROOT / "workflow/profiles/default"),
            "--report",
            str(tmp_path / "report.html"),
        ],
        cwd=finished,
        env=runs.environment(),
        capture_output=True,
        text=True,
        timeout=runs.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    found, categories = variable(page, "results"), variable(page, "categories")
    assert set(categories) == {"Tables", "Figures", "Report"}
    for path, words in MADE.items():
        assert words in re.sub(r"<[^>]+>", "", found[f"{RESULTS}/{path}"]["caption"])
    assert found[f"{RESULTS}/report/index.html"]["caption"]


def test_every_rule_for_artefacts_registers_what_it_makes() -> None:
    files = (ROOT / "workflow/rules/tables.smk", ROOT / "workflow/rules/figures.smk")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    shown = re.findall(r"(csv|png)=(listed\()?pattern\(\"(\w+)\", (\w+)", text)
    kinds = {(kind, timed) for form, registered, kind, timed in shown if registered}
    made = (kind() for kind in artefacts.REGISTRY.members().values())
    assert {
        ("figure" if one.kind == "figure" else "table", str(one.timed)) for one in made
    } == kinds

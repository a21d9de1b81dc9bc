"""What must not grow with a sweep: the number of jobs to the number of cells, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpsub.cli import main
from tests.sweep_grids import DRAWS, written

CELLS = 100_000
PLAN = """
import json, sys
from pathlib import Path
from dpsub.reproduce import provenance
from dpsub.reproduce.sweeps.planning import SweepPlan, load
totals = SweepPlan(load([Path(sys.argv[1])])).totals(2)
print(json.dumps([totals, provenance.peak_memory()]))
"""


def large() -> dict[str, Any]:
    """A grid of 10^5 cells."""
    return DRAWS | {
        "samplers": ["poisson", "wor", "wr", "must_ow", "must_ww"],
        "sizes": [{"n": 1000, "m": m, "b": 200} for m in range(50, 70)],
        "steps": list(range(100, 1100)),
        "seeds": 10,
    }


def test_a_hundred_thousand_cells_are_planned_in_2_gib_and_few_jobs(tmp_path: Path) -> None:
    path = written(tmp_path / "sweep.yaml", large(), results_dir=str(tmp_path / "results"))
    done = subprocess.run([sys.executable, "-c", PLAN, str(path)], capture_output=True, text=True, check=True)
    totals, memory = json.loads(done.stdout)
    assert (totals["cells"], totals["records"]) == (CELLS, 10 * CELLS)
    assert memory < 2048
    assert totals["core_hours"] * 6 <= totals["jobs"] <= totals["core_hours"] * 6.5 + 1


def test_the_plan_is_printed_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "sweep.yaml", results_dir=str(tmp_path / "results"))
    assert main(["plan", str(path), "--cores", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("cells", "cells_finished", "records", "records_to_compute", "jobs")} == {
        "cells": 8, "cells_finished": 0, "records": 16, "records_to_compute": 16, "jobs": 1,
    }  # fmt: skip
    assert found["core_hours"] > 0 and found["memory_mib"] == found["memory_mib_per_job"] > 600
    assert main(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "cells",
        "records",
        "jobs",
        "core-hours",
        "memory",
        "results",
    ]
    assert [item.name for item in tmp_path.iterdir()] == ["sweep.yaml"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cores", "0"], "dpsub plan: --cores must be at least 1, got 0\n"),
        (
            ["nowhere.yaml"],
            "the configuration nowhere.yaml cannot be read (No such file or directory); name another file\n",
        ),
    ],
)
def test_the_plan_is_refused_in_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(written(tmp_path / "sweep.yaml")), *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.endswith(sentence) and err.count("\n") == 1

"""The benchmarks can be run: each is imported, as `make bench` does, and each line of it is
made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpsub import sampling
from tests.gone import needs_all_papers

pytestmark = needs_all_papers  # benchmarks measure the experiments of these papers

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_the_benches_can_be_imported() -> None:
    names = ", ".join(
        sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "__init__")
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import {names}"], cwd=BENCHMARKS, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.thorough
def test_the_guarantees_list_what_stays_open() -> None:
    """The table of questions whose bounds stay apart is what its command prints."""
    run = subprocess.run(
        [sys.executable, "benchmarks/theory_gaps.py"],
        cwd=BENCHMARKS.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout in (BENCHMARKS.parent / "docs/guarantees.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_line_of_the_benchmark_can_be_made() -> None:
    """`make bench` at small sizes, each line once: what it measures is not judged."""
    run = subprocess.run(
        [sys.executable, "benchmarks/run.py", "--short"],
        cwd=BENCHMARKS.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[-1] == "each line was made once, and no bound was judged"
    assert sum(line.endswith("not judged") for line in lines) > 130
    drawn = [line.split(" at n = ")[0] for line in lines if " at n = 10^8 " in line]
    assert drawn == list(sampling.REGISTRY.names())

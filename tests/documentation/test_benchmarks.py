"""The benchmarks can be run: each is imported, as `make bench` does, and each line of it is
made."""

from __future__ import annotations

import re
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


def test_the_page_about_scaling_has_the_tables_of_its_benchmark() -> None:
    program = (
        "from extrapolation import MEASURED, PAGE, Piece, renewed\n"
        "from extrapolation import extrapolated_rows, measured_rows\n"
        "pieces = {name: Piece((1, 1, 1), (2, 2, 2)) for name in MEASURED}\n"
        "tables = [rows(pieces, 0.01) for rows in (measured_rows, extrapolated_rows)]\n"
        "print(renewed(PAGE.read_text(encoding='utf-8'), tables))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=BENCHMARKS, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr

    def words(page: str) -> list[str]:
        return [re.sub(r"[\d.,e+]+|\|[ |\d.hGiB]*$", "#", line) for line in page.split("\n")]

    page = (BENCHMARKS.parent / "docs/cluster.md").read_text(encoding="utf-8")
    first = [[line.partition(" | ")[0] for line in words(text)] for text in (page, run.stdout)]
    assert first[0] == first[1][:-1]


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

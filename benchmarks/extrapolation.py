"""Extrapolate from measured pieces to 10^7 cells on 1000 cores: the cost of each piece, and which
one gives way first.

python benchmarks/extrapolation.py --write     (some minutes; the tables of docs/cluster.md)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scale

from dpsub.files import replace_file

PAGE, SECTION = scale.ROOT / "docs/cluster.md", "## How far it scales\n"
CELLS, SEEDS, CORES = 10**7, 10, 1000
SECONDS_PER_CELL = 30.0  # all seeds of a cell with its calibration, as in papers/fair/sweep.yaml
SUBMITTED = 20.0  # jobs a second, by the profile's max-jobs-per-timespan
HOUR, GIB = 3600.0, 1024.0

INDEX = scale.MEASURED.format(
    imports="from dataclasses import replace\nfrom dpsub.reproduce import records, sweep",
    # the same files again and again: few would tell nothing of the memory of one
    work="paths = sweep.part_files(Path(sys.argv[1])) * int(sys.argv[2])\n"
    "assert [replace(records.read_origin(path, sweep.SweepOrigin), finished=()) for path in paths]",
)
DAG = """
import json, resource, subprocess, sys
command = [sys.executable, "-m", "snakemake", *sys.argv[1:]]
subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@dataclass(frozen=True)
class Piece:
    """Time and memory as straight lines through two measurements.

    Attributes
    ----------
    small, large : tuple of (count, seconds, MiB)
    """

    small: tuple[float, float, float]
    large: tuple[float, float, float]

    def at(self, count: float) -> tuple[float, float]:
        """Return (seconds, MiB) at `count`."""
        low, high = np.array(self.small), np.array(self.large)
        slope = np.maximum((high[1:] - low[1:]) / (high[0] - low[0]), 0)
        seconds, memory = high[1:] + slope * (count - high[0])
        return float(seconds), float(memory)


def dag(folder: Path, cells: int) -> tuple[float, float, float]:
    """Return (jobs, seconds, MiB) of Snakemake's view of a plan of one job for every two cells or
    so."""
    steps = [900000 + number for number in range(cells // 100)]
    path = scale.sweep(folder / f"dag-{cells}", 0.1, scale.block(steps=steps, sizes=20, seeds=3))
    scale.measured(scale.PLANNING, path, "write")
    manifest = path.parent / "results/run/plan.json"
    jobs = len(json.loads(manifest.read_text(encoding="utf-8"))["jobs"])
    words = [
        "--snakefile",
        scale.ROOT / "workflow/sweep.smk",
        "--configfile",
        manifest,
        "--cores",
        "1",
        "--dry-run",
        "--directory",
        path.parent,
        "--quiet",
        "all",
    ]
    return (jobs, *scale.measured(DAG, *words))


def files(folder: Path, count: int = 200) -> float:
    """Return the seconds of one file that is written, brought to the disk and renamed."""
    started = time.perf_counter()
    for number in range(count):
        replace_file(folder / "files" / f"{number}.json", b"x" * 2000)
    return (time.perf_counter() - started) / count


def pieces(folder: Path) -> tuple[dict[str, Piece], float]:
    """Measure all pieces."""
    planned = [(cells, *scale.planning(folder, cells)) for cells in (20_000, 100_000)]
    stores = {
        cells: scale.made_up(folder / f"store-{cells}", cells, 25, cells // 50)
        for cells in (8_000, 32_000)
    }
    indexed = [
        (files * times, *scale.measured(INDEX, stores[50 * files], times))
        for files, times in ((160, 50), (640, 100))
    ]
    summed = [
        (cells * 25, *scale.measured(scale.SUMMARISING, results))
        for cells, results in stores.items()
    ]
    known = [dag(folder, cells) for cells in (300, 1200)]
    found = {"planning": planned, "index": indexed, "summary": summed, "DAG": known}
    return {name: Piece(small, large) for name, (small, large) in found.items()}, files(folder)


MEASURED = {
    "planning": "planning, {:,.0f} cells",
    "index": "index of finished cells, {:,.0f} record files",
    "DAG": "Snakemake's DAG (dry run), {:,.0f} jobs",
    "summary": "summary by cell, {:,.0f} records",
}
"""Pieces, in the order of the page."""


def measured_rows(measured: dict[str, Piece], seconds_per_file: float) -> list[str]:
    """Return the table of what was measured, in Markdown."""
    rows = ["| part | seconds | MiB |", "|---|---|---|"]
    for name, text in MEASURED.items():
        for count, seconds, memory in (measured[name].small, measured[name].large):
            rows.append(f"| {text.format(count)} | {seconds:.2g} | {memory:.0f} |")
    return [
        *rows,
        f"| one file written, synced and renamed | {seconds_per_file:.2g} (wall clock) | |",
    ]


def extrapolated_rows(measured: dict[str, Piece], seconds_per_file: float) -> list[str]:
    """Return the table of 10^7 cells, in Markdown: a column for each length of a job."""
    lengths = (1 / 6, 8.0)
    jobs = [CELLS * SECONDS_PER_CELL / HOUR / hours for hours in lengths]
    heads = [
        f"jobs of {hours * 60:.0f} min ({n:,.0f})" for hours, n in zip(lengths, jobs, strict=True)
    ]
    computed = f"{CELLS * SECONDS_PER_CELL / CORES / HOUR:.0f} h"

    def cost(name: str, count: float) -> str:
        seconds, memory = measured[name].at(count)
        return f"{seconds / HOUR:.2g} h, {memory / GIB:.2g} GiB"

    rows = [
        ("computing on 1000 cores", *[computed] * 2),
        ("planning", *[cost("planning", CELLS)] * 2),
        ("index, on resuming near the end", *[cost("index", n) for n in jobs]),
        ("Snakemake's DAG", *[cost("DAG", n) for n in jobs]),
        (
            f"submitting at {SUBMITTED:g} jobs per second",
            *[f"{n / SUBMITTED / HOUR:.2g} h" for n in jobs],
        ),
        (
            "files: job, log, records",
            *[f"{3 * n:,.0f}; {3 * n * seconds_per_file / HOUR:.2g} h in total" for n in jobs],
        ),
        (f"summary of {CELLS * SEEDS:,} records", *[cost("summary", CELLS * SEEDS)] * 2),
    ]
    lines = ["| part | " + " | ".join(heads) + " |", "|---|---|---|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def renewed(page: str, tables: Sequence[Sequence[str]]) -> str:
    """Return the page with these tables in the place of those of its section on scaling."""
    before, heading, section = page.partition(SECTION)
    parts = re.split(r"((?:^\|.*\n)+)", section, flags=re.MULTILINE)
    for at, rows in enumerate(tables):
        parts[2 * at + 1] = "\n".join([*rows, ""])
    return "".join([before, heading, *parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/cluster.md"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured, seconds_per_file = pieces(Path(name))
    tables = [rows(measured, seconds_per_file) for rows in (measured_rows, extrapolated_rows)]
    print(*("\n".join(rows) for rows in tables), f"load {os.getloadavg()[0]:.1f}", sep="\n\n")
    if chosen.write:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()

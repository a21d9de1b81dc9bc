"""Extrapolate from measured pieces to 10^7 cells on 1000 cores: the cost of each piece, and which
one gives way first.

python benchmarks/extrapolation.py            (some minutes; prints the tables of docs/scaling.md)
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scale

from dpsub.files import replace_file

CELLS, SEEDS, CORES = 10**7, 10, 1000
SECONDS_PER_CELL = 30.0  # all seeds of a cell with its calibration, as in papers/fair/sweep.yaml
SUBMITTED = 20.0  # jobs a second, by the profile's max-jobs-per-timespan
HOUR, GIB = 3600.0, 1024.0

INDEX = scale.MEASURED.format(
    imports="from dpsub.reproduce import records, sweep",
    work="assert [records.read_origin(path, sweep.SweepOrigin) for path in "
    "sweep.part_files(Path(sys.argv[1]))]",
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
    indexed = [(cells // 50, *scale.measured(INDEX, results)) for cells, results in stores.items()]
    summed = [
        (cells * 25, *scale.measured(scale.SUMMARISING, results))
        for cells, results in stores.items()
    ]
    known = [dag(folder, cells) for cells in (300, 1200)]
    found = {"planning": planned, "index": indexed, "summary": summed, "DAG": known}
    return {name: Piece(small, large) for name, (small, large) in found.items()}, files(folder)


def table(
    measured: dict[str, Piece], seconds_per_file: float, job_hours: float
) -> list[tuple[str, float, float, str]]:
    """Return rows (what, hours, GiB, how it comes about) for jobs of so many hours."""
    jobs = CELLS * SECONDS_PER_CELL / HOUR / job_hours
    rows = [
        (
            "computing",
            CELLS * SECONDS_PER_CELL / CORES / HOUR,
            0.0,
            f"{jobs:,.0f} jobs on {CORES} cores",
        )
    ]
    for name, count, unit in (
        ("planning", CELLS, "cells"),
        ("index", jobs, "record files"),
        ("DAG", jobs, "jobs"),
        ("summary", CELLS * SEEDS, "records"),
    ):
        seconds, memory = measured[name].at(count)
        rows.append((name, seconds / HOUR, memory / GIB, f"{count:,.0f} {unit}"))
    rows.append(
        (
            "files",
            3 * jobs * seconds_per_file / HOUR,
            0.0,
            f"{3 * jobs:,.0f} files, two of them by the jobs",
        )
    )
    rows.append(("submitting", jobs / SUBMITTED / HOUR, 0.0, f"{SUBMITTED:g} jobs a second"))
    return rows


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured, seconds_per_file = pieces(Path(name))
    print("measured: count, processor seconds, MiB")
    for what, piece in measured.items():
        for count, seconds, memory in (piece.small, piece.large):
            print(f"  {what:<10} {count:>9,.0f}  {seconds:8.2f} s  {memory:7.0f} MiB")
    print(
        f"  a file written, synced, renamed: {1000 * seconds_per_file:.2f} ms; load "
        f"{os.getloadavg()[0]:.1f}"
    )
    for hours in (1 / 6, 8.0):
        sizes = f"10^7 cells of {SECONDS_PER_CELL:g} s with {SEEDS} seeds"
        print(f"\n{sizes} on {CORES} cores, jobs of {hours * 60:.0f} min")
        for what, taken, memory, how in table(measured, seconds_per_file, hours):
            print(f"  {what:<10} {taken:9.2f} h  {memory:7.1f} GiB  {how}")


if __name__ == "__main__":
    main()

"""Measure how sweeps scale: cells per second on one and two cores, the workflow's overhead,
planning, and memory.

Alone, with more sizes and the figures from which docs/cluster.md extrapolates:
    python benchmarks/scale.py
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from board import Board

from dpsub.reproduce.packing import BASE_SECONDS, SweepCell, Work

ROOT = Path(__file__).resolve().parents[1]
RUNNER = ROOT / "workflow/scripts/run_sweep.py"
EXPERIMENT = "distinct_draws"
"""Experiment that is swept: cheap, and as large as its sizes say."""
SAMPLERS = ["poisson", "wor", "wr", "must_ow", "must_ww"]
LONG = 60.0  # seconds, the length of a job at which the overhead is judged

MEASURED = """
import json, sys, time
from pathlib import Path
from dpsub.reproduce import provenance
{imports}
started = time.process_time()
{work}
print(json.dumps([time.process_time() - started, provenance.peak_memory()]))
"""
PLANNING = MEASURED.format(
    imports="from dpsub.reproduce.sweep import SweepPlan, load",
    work="plan = SweepPlan(load([Path(sys.argv[1])]))\nif len(sys.argv) > 2: plan.write()",
)
SUMMARISING = MEASURED.format(
    imports="from dpsub.reproduce import summary\nfrom dpsub.reproduce.experiments import REGISTRY",
    work="top = Path(sys.argv[1])\n"
    f"keys = list(REGISTRY.get({EXPERIMENT!r}).keys)\n"
    "measured = ['gradients', 'distinct_mean', 'distinct_sd']\n"
    "written = top / 'summary.parquet', top / 'differences.parquet'\n"
    "paths = sorted(top.glob('records/*/*/*.parquet'))\n"
    # portions so small that the smaller of two stores has several, too
    "summary.write(paths, keys, measured, *written, rows_at_once=50_000)",
)


def block(
    *, steps: list[int], sizes: int, seeds: int, samplers: Sequence[str] = SAMPLERS
) -> dict[str, Any]:
    """Return a block of len(`samplers`) x `sizes` x len(`steps`) cells."""
    vary = {"m": [50 + number for number in range(sizes)], "steps": steps}
    fixed = {"experiment": EXPERIMENT, "n": 1000, "b": 200}
    return {**fixed, "samplers": list(samplers), "replicates": seeds, "vary": vary}


def sweep(folder: Path, job_minutes: float, found: dict[str, Any]) -> Path:
    """Write a sweep with results in `folder`, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sweep.yaml"
    described = {
        "seed": 1,
        "results_dir": str(folder / "results"),
        "job_minutes": job_minutes,
        "sweep": [found],
    }
    path.write_text(yaml.safe_dump(described), encoding="utf-8")
    return path


def measured(script: str, *words: object) -> tuple[float, float]:
    """Return (processor seconds, MiB) of a script in a process of its own, without its imports."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(memory)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def run(path: Path, cores: int, *options: str) -> float:
    """Run a sweep through the workflow and return the seconds it took."""
    started = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            str(RUNNER),
            str(path),
            "--",
            "--cores",
            str(cores),
            "--quiet",
            "all",
            *options,
        ],
        cwd=path.parent,
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def in_jobs(folder: Path) -> list[float]:
    """Return the seconds that each job of a finished sweep computed, by its log."""
    logs = sorted((folder / "results/logs/run_cells").rglob("*.log"))
    return [
        float(
            re.findall(
                r"computed in "
                r"([0-9.]+) s",
                path.read_text(encoding="utf-8"),
            )[0]
        )
        for path in logs
    ]


def efficiency(board: Board, folder: Path, *, seconds: float) -> None:
    """Measure one sweep of ten jobs, a cell each, that compute for about `seconds`, on one core and
    on two.

    Their number is even: an odd job leaves one of two cores idle at the end, which says nothing of
    the workflow. Start and end of a run take some 6 s, whatever its length, in which nothing is
    computed: jobs must not be too short.
    """
    sizes = board.sized(5, 1)
    found = block(steps=[int(180_000 * seconds)], sizes=sizes, seeds=4, samplers=("wor", "wr"))
    taken, cells = {}, 2 * sizes
    for cores in (1, 2):
        job_minutes = max((BASE_SECONDS + 1.05 * seconds) / 60, 0.1)
        path = sweep(folder / f"on-{cores}", job_minutes, found)
        taken[cores] = run(path, cores)
        jobs = in_jobs(path.parent)
        print(
            f"  {cells} cells in {len(jobs)} jobs on {cores} core(s): {cells / taken[cores]:.2f} "
            f"cells a second, {sum(jobs):.1f} s computed in {taken[cores]:.1f} s",
            flush=True,
        )
    board.line(
        "sweep on 2 cores, twice its time",
        2 * taken[2],
        "itself on 1 core",
        taken[1],
        at_most=1 / 0.85,
    )
    jobs = in_jobs(folder / "on-1")
    each = (taken[1] - sum(jobs)) / len(jobs)
    print(
        f"  beside its computation a job takes {each:.2f} s on one core, start and end of the "
        "run included"
    )
    board.line(
        f"workflow at jobs of {LONG:g} s, from that",
        LONG + each,
        "plain computation",
        LONG,
        at_most=1.15,
    )


def made_up(folder: Path, cells: int, replicates: int, files: int) -> Path:
    """Write a store of `cells` made-up cells in `files` record files, and return its results
    folder."""
    from dpsub.reproduce import records, sweep
    from dpsub.reproduce.experiments import REGISTRY

    experiment, results = REGISTRY.get(EXPERIMENT)(), folder / "results"
    published = experiment.settings({"n": 10**7, "samplers": ["wor"], "b": None, "steps": 10})
    numbers = np.random.default_rng(0)
    for number in range(files):
        found = []
        for place in range(cells * number // files, cells * (number + 1) // files):
            chosen = published.model_copy(update={"m": place + 1})
            cell = SweepCell.of(EXPERIMENT, "consistent", chosen, {})
            values = {
                "sampler": "wor",
                "n": 10**7,
                "m": place + 1,
                "b": 0,
                "steps": 10,
                "gradients": 7,
            }
            frame = pd.DataFrame({"replicate": range(replicates), **values})
            frame = frame.assign(distinct_mean=numbers.random(replicates), distinct_sd=1.0)
            found.append((Work(cell, 0, replicates), frame))
        rows = pa.Table.from_pandas(sweep.table(found, ""), preserve_index=False)
        origin = sweep.SweepOrigin(
            experiment=EXPERIMENT,
            variant="consistent",
            seed=1,
            code="",
            declared_seconds=1.0,
            inputs={},
            versions={},
            finished=[(work.cell.digest, work.first, work.stop) for work, _ in found],
        )
        path = results / f"records/{EXPERIMENT}/consistent" / f"{number:032x}.parquet"
        records.write_table(path, rows.replace_schema_metadata(), origin)
    return results


def planning(folder: Path, cells: int) -> tuple[float, float]:
    """Return (seconds, MiB) of planning so many cells."""
    steps = list(range(100, 100 + cells // 100))
    return measured(
        PLANNING, sweep(folder / f"plan-{cells}", 10, block(steps=steps, sizes=20, seeds=10))
    )


def scale(board: Board, *, seconds: float = 12.0) -> None:
    """Print the lines of `make bench`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        efficiency(board, folder, seconds=seconds)
        cells, few = board.sized((10**5, 8_000), (10**3, 500))
        taken, memory = planning(folder, cells)
        print(f"  planning {cells:,} cells: {taken:.1f} s, {memory:.0f} MiB")
        board.line(f"planning {cells:,} cells", taken, "what it may take", 20.0, at_most=1)
        small, large = (
            measured(SUMMARISING, made_up(folder / f"store-{cells}", cells, 25, cells // 500))
            for cells in (few, 4 * few)
        )
        for cells, found in ((few, small), (4 * few, large)):
            print(f"  summary of {25 * cells:,} records: {found[0]:.1f} s, {found[1]:.0f} MiB")
        # a line shows times: here MiB stand in for seconds
        what = f"memory of a summary of {100 * few:,} records"
        board.line(what, large[1], f"of {25 * few:,} records", small[1], at_most=1.25)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=12.0, help="expected computation of a job (%(default)s)"
    )
    scale(Board(), seconds=parser.parse_args().seconds)

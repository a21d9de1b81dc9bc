"""A sweep from its file to its summary: run, added to, killed, refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dpsub.reproduce.sweeps import store

from dpsub.reproduce import lock
from tests.sweep_grids import DRAWS, FAIR, written
from tests.workflow import runs
from tests.workflow.test_interruptions import wait_for_the_lock

RUNNER = runs.ROOT / "workflow/scripts/run_sweep.py"
RESULTS = runs.RESULTS
SEVERAL = DRAWS | {"steps": [90000, 90001], "seeds": 12}
"""Some jobs of some seconds."""


def start(
    folder: Path, *grids: dict, cores: int = 2, options: tuple[str, ...] = (), **keys: object
) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    path = written(folder / "sweep.yaml", *grids, **{"results_dir": RESULTS, **keys})
    return subprocess.Popen(
        [sys.executable, str(RUNNER), str(path), "--cores", str(cores), *options],
        cwd=folder, env=runs.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def run(folder: Path, *grids: dict, **keys: object) -> tuple[int, str]:
    return runs.finish(start(folder, *grids, **keys))


def made(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return inode and content of every file of the store: a file that is written again gets another inode."""
    top = folder / RESULTS / "records"
    return {str(path.relative_to(top)): (path.stat().st_ino, path.read_bytes()) for path in top.rglob("*.*")}


def summaries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / RESULTS / "summary").glob("*.parquet")}


def finished(folder: Path) -> list[tuple[str, int]]:
    """Return the (cell, replicate) of all rows in the store."""
    rows = [batch.to_pylist() for batch in store.batches(folder / RESULTS, "*", columns=["cell", "replicate"])]
    return [(row["cell"], row["replicate"]) for batch in rows for row in batch]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a sweep that went through undisturbed on one core."""
    folder = tmp_path_factory.mktemp("whole")
    status, output = run(folder, SEVERAL, cores=1, job_minutes=0.3)
    assert status == 0, output
    return folder


def test_only_what_is_new_is_computed(tmp_path: Path) -> None:
    status, output = run(tmp_path, DRAWS, FAIR)
    assert status == 0, output
    assert "20 records of 10 cells to compute in 2 jobs" in output
    before = made(tmp_path)
    status, output = run(tmp_path, DRAWS, FAIR)
    assert (status, output.splitlines()[0]) == (0, "nothing to do: every cell is finished")
    assert made(tmp_path) == before
    status, output = run(tmp_path, DRAWS | {"samplers": ["wr", *DRAWS["samplers"]], "seeds": 3}, FAIR)
    assert status == 0, output
    assert "14 records of 10 cells to compute in 1 jobs" in output and "2 cells are finished" in output
    after = made(tmp_path)
    assert {name: after[name] for name in before} == before and len(after) == len(before) + 1
    units = finished(tmp_path)
    assert len(units) == len(set(units)) == 10 * 3 + 2 * 2


def test_a_killed_sweep_goes_on_and_computes_nothing_twice(whole: Path, tmp_path: Path) -> None:
    process = start(tmp_path, SEVERAL, cores=1, job_minutes=0.1)
    for _ in range(runs.PATIENCE * 10):
        if store.part_files(tmp_path / RESULTS) or process.poll() is not None:
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    runs.finish(process)
    wait_for_the_lock(tmp_path)
    before = made(tmp_path)
    assert before and not summaries(tmp_path)
    status, output = run(tmp_path, SEVERAL, job_minutes=0.1)
    assert status == 0, output
    after = made(tmp_path)
    assert {name: after[name] for name in before} == before and len(after) > len(before)
    units = finished(tmp_path)
    assert len(units) == len(set(units))
    assert summaries(tmp_path) == summaries(whole)


def test_another_run_is_refused_while_one_works(tmp_path: Path) -> None:
    with lock.hold(tmp_path / RESULTS):
        status, output = run(tmp_path, DRAWS)
    assert status == 1 and output.startswith("error: one run at a time may use the results folder")


def test_a_contradiction_is_told_before_the_first_job(tmp_path: Path) -> None:
    status, output = run(tmp_path, DRAWS | {"sizes": [{"n": 100, "m": 10, "b": 101}]})
    assert status == 1 and output.count("\n") == 1
    assert output.startswith(
        "error: grids[0]: b must be at most n = 100, got b = 101 (cell: distinct_draws with sampler"
    )
    assert not list((tmp_path / RESULTS).rglob("*.parquet")) and not (tmp_path / RESULTS / "logs").exists()


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    status, output = run(tmp_path, DRAWS, options=("--profile", "slrum"))
    assert (status, output) == (1, "error: unknown profile 'slrum'; did you mean 'slurm'?\n")

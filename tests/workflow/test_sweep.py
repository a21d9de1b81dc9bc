"""A sweep from its file to its summary: run, added to, killed, refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dpsub.reproduce import sweep
from tests.workflow import runs
from tests.workflow.sweeps import LONG, MEANS, WALKS, written

RESULTS = runs.RESULTS
SEVERAL = LONG | {"replicates": 12}
"""Settings of some jobs of some seconds."""


def start(folder: Path, *blocks: dict, cores: int = 2, **keys: object) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    path = written(folder / "sweep.yaml", *blocks, **{"results_dir": RESULTS, **keys})
    runner = runs.project() / "workflow/scripts/run_sweep.py"
    options = [*runs.OPTIONS, "--cores", str(cores)]
    return subprocess.Popen(
        [sys.executable, str(runner), str(path), "--", *options],
        cwd=folder,
        env=runs.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *blocks: dict, **keys: object) -> tuple[int, str]:
    return runs.finish(start(folder, *blocks, **keys))


def made(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return inode and content of every record file, by its name."""
    found = runs.recorded(folder).items()
    return {Path(name).stem: record for name, record in found if name.startswith("records/")}


def summaries(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in (folder / RESULTS / "summary").glob("*.parquet")
    }


def finished(folder: Path) -> list[tuple[str, int]]:
    """Return the (cell, replicate) of all rows."""
    frames = [
        pd.read_parquet(path, columns=["cell", "replicate"])
        for path in sweep.part_files(folder / RESULTS)
    ]
    return list(pd.concat(frames).itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep that went through undisturbed on one core."""
    folder = tmp_path_factory.mktemp("whole")
    status, output = run(folder, SEVERAL, cores=1, job_minutes=0.3)
    assert status == 0, output
    return folder


@pytest.mark.slow
def test_only_what_is_new_is_computed(tmp_path: Path) -> None:
    status, output = run(tmp_path, MEANS, WALKS)
    assert status == 0, output
    assert "11 cells, 0 of them finished; 22 records to compute in 2 jobs" in output
    before = made(tmp_path)
    status, output = run(tmp_path, MEANS, WALKS)
    assert status == 0 and "11 cells, 11 of them finished; 0 records to compute in 0 jobs" in output
    assert made(tmp_path) == before
    status, output = run(
        tmp_path, MEANS | {"samplers": ["wr", *MEANS["samplers"]], "replicates": 3}, WALKS
    )
    assert status == 0, output
    assert "13 cells, 3 of them finished; 14 records to compute in 1 jobs" in output
    after = made(tmp_path)
    assert {name: after[name] for name in before} == before and len(after) == len(before) + 1
    units = finished(tmp_path)
    assert len(units) == len(set(units)) == 10 * 3 + 3 * 2


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_computes_nothing_twice(whole: Path, tmp_path: Path) -> None:
    process = start(tmp_path, SEVERAL, cores=1, job_minutes=0.1)
    for _ in range(runs.PATIENCE * 10):
        if sweep.part_files(tmp_path / RESULTS) or process.poll() is not None:
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    runs.finish(process)
    before = made(tmp_path)
    assert before and not summaries(tmp_path)
    status, output = run(tmp_path, SEVERAL, job_minutes=0.1)
    assert status == 0, output
    after = made(tmp_path)
    assert {name: after[name] for name in before} == before and len(after) > len(before)
    units = finished(tmp_path)
    assert len(units) == len(set(units))
    assert summaries(tmp_path) == summaries(whole)


def test_a_contradiction_is_told_before_the_first_job(tmp_path: Path) -> None:
    status, output = run(tmp_path, MEANS | {"vary": {"b": [101]}})
    assert (status, output) == (1, "error: sweep[0]: b must be at most n = 100, got b = 101\n")
    assert (
        not list((tmp_path / RESULTS).rglob("*.parquet"))
        and not (tmp_path / RESULTS / "logs").exists()
    )


def test_results_of_a_run_are_no_folder_of_a_sweep(tmp_path: Path) -> None:
    kept = tmp_path / RESULTS / "run/config.yaml"
    kept.parent.mkdir(parents=True)
    kept.touch()
    status, output = run(tmp_path, MEANS)
    assert status == 1 and output.startswith("error: results_dir must be a folder of this sweep")


def test_all_damaged_records_are_named_at_once(tmp_path: Path) -> None:
    folder = tmp_path / RESULTS / "records/example_means/plain"
    folder.mkdir(parents=True)
    for name in ("a.parquet", "b.parquet"):
        (folder / name).write_bytes(b"cut")
    status, output = run(tmp_path, MEANS)
    assert status == 1 and "got 2 that are not; delete them and run again: " in output
    assert "a.parquet" in output and "b.parquet" in output


@pytest.mark.parametrize(
    ("option", "is_elsewhere"),
    [
        ("--cores=1", False),
        ("--workflow-profile=workflow/profiles/slurm", True),
        ("--executor=slurm", True),
    ],
)
def test_the_memory_of_this_machine_limits_no_other(
    option: str, is_elsewhere: bool, tmp_path: Path
) -> None:
    path = written(tmp_path / "sweep.yaml", MEANS, results_dir=RESULTS)
    runner = runs.project() / "workflow/scripts/run_sweep.py"
    shown = (
        "import os, runpy, sys; os.execv = lambda program, words: print(*words); "
        f"sys.argv = ['run_sweep.py', {str(path)!r}, '--', {option!r}]; "
        f"runpy.run_path({str(runner)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", shown],
        cwd=tmp_path,
        env=runs.environment(),
        capture_output=True,
        text=True,
        timeout=runs.PATIENCE,
        check=True,
    )
    assert ("mem_mb=" in done.stdout) is not is_elsewhere

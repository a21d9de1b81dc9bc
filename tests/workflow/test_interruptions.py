"""A run that is killed at any moment leaves nothing half-written, and goes on to the same bytes."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from dpsub import records
from tests.workflow import runs
from tests.workflow.runs import RESULTS

KILLS = 10
LONGEST = 9.0  # seconds until a kill; an undisturbed tiny run takes about as long


def wait_for_the_lock(folder: Path) -> None:
    """Wait until no process of a killed run is left, as the kernel takes them down after their parent."""
    path = folder / RESULTS / ".lock"
    if not path.exists():
        return
    with path.open("rb") as stream:
        for _ in range(100):
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.1)
            else:
                return
    pytest.fail("10 seconds after the kill a process of the run still holds the lock")


def check_that_nothing_is_half_written(folder: Path) -> None:
    for path in (folder / RESULTS).glob("records/**/*.parquet"):
        records.read(path)
    for path in runs.compared(folder):
        assert not path.endswith((".csv", ".md")) or (folder / RESULTS / path).read_bytes().endswith(b"\n")


def kill(process: subprocess.Popen[str], whom: str) -> None:
    """Kill the runner, or the snakemake process that it has started."""
    children = psutil.Process(process.pid).children() if whom == "snakemake" else []
    os.kill(children[0].pid if children else process.pid, signal.SIGKILL)


def test_ten_kills_at_random_moments(finished: Path, tmp_path: Path) -> None:
    moments = random.Random(20231220)
    for number in range(KILLS):
        process = runs.start(tmp_path)
        try:
            process.wait(timeout=moments.uniform(0.5, LONGEST))
        except subprocess.TimeoutExpired:
            kill(process, "snakemake" if number % 3 == 2 else "runner")
        runs.finish(process)
        wait_for_the_lock(tmp_path)
        check_that_nothing_is_half_written(tmp_path)
    status, output = runs.run(tmp_path)
    assert status == 0, output
    assert runs.compared(tmp_path) == runs.compared(finished)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_run_in_time(number: int, finished: Path, tmp_path: Path) -> None:
    process = runs.start(tmp_path)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(number)
    sent = time.monotonic()
    status, output = runs.finish(process)
    assert time.monotonic() - sent < 30
    assert status == 128 + number, first + output
    assert "run again to go on from here" in output and "Traceback" not in output
    wait_for_the_lock(tmp_path)
    check_that_nothing_is_half_written(tmp_path)
    status, output = runs.run(tmp_path)
    assert status == 0, output
    assert runs.compared(tmp_path) == runs.compared(finished)

"""A run that is stopped at any moment leaves nothing half-written and no process, and goes on to the same bytes."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import yaml

from dpsub.reproduce import records
from tests.workflow import runs
from tests.workflow.conftest import Measured
from tests.workflow.runs import RESULTS

SERIES = 2  # at a time, each in a folder and on a core of its own
EARLIEST = 0.3  # seconds that Python itself takes to start
SECONDS_TO_GO = 10  # within which the kernel takes down what is left of a killed run
Blow = tuple[signal.Signals, str, float]
"""A signal, who gets it ("runner" or "snakemake"), and when: as a share of what the run still has to do."""


def wait_for_the_lock(folder: Path) -> None:
    """Wait until no process of a killed run is left, as the kernel takes them down after their parent."""
    path = folder / RESULTS / ".lock"
    if not path.exists():
        return
    with path.open("rb") as stream:
        for _ in range(SECONDS_TO_GO * 10):
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.1)
            else:
                return
    pytest.fail(f"{SECONDS_TO_GO} seconds after the kill a process of the run still holds the lock")


def working_in(folder: Path) -> dict[int, str]:
    """Return the processes that work in `folder`, as all of a run do, by their numbers."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(folder):
                found[process.pid] = " ".join(process.cmdline())
        except psutil.Error:
            continue  # gone, or another user's
    return found


def check_that_no_process_is_left(folder: Path) -> None:
    for _ in range(SECONDS_TO_GO * 10):
        if not (left := working_in(folder)):
            return
        time.sleep(0.1)
    pytest.fail(f"{SECONDS_TO_GO} seconds after the kill there are still {left}")


def check_that_nothing_is_half_written(folder: Path, whole: dict[str, bytes]) -> None:
    """Check that what has its final name is complete: the very bytes of the undisturbed run, where these are fixed."""
    top = folder / RESULTS
    assert [name for name, content in runs.compared(folder).items() if content != whole[name]] == []
    for path in top.glob("records/**/*.parquet"):
        records.read(path)
    for path in top.glob("run/*.json"):
        json.loads(path.read_bytes())
    if (top / "run/config.yaml").exists():
        assert yaml.safe_load((top / "run/config.yaml").read_bytes())["results_dir"] == RESULTS
    if (top / "run/verdicts.txt").exists():
        assert (top / "run/verdicts.txt").read_bytes().endswith(b"\n")
    if (top / "report/index.html").exists():
        assert (top / "report/index.html").read_bytes().rstrip().endswith(b"</html>")


def strike(process: subprocess.Popen[str], number: signal.Signals, whom: str) -> None:
    """Send the signal to the runner, or to the snakemake process that it has started."""
    children = psutil.Process(process.pid).children() if whom == "snakemake" else []
    found = [child.pid for child in children if "snakemake" in child.cmdline()]
    os.kill(found[0] if found else process.pid, number)


def stopped(folder: Path, blow: Blow, length: Measured, whole: dict[str, bytes]) -> str | None:
    """Start a run, stop it, check what it leaves, and return what was done; None if it was through before."""
    number, whom, share = blow
    left = 1 - len(runs.compared(folder)) / len(whole)
    moment = EARLIEST + share * (length.first + left * (length.whole - length.first) - EARLIEST)
    process = runs.start(folder, cores=1)
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        strike(process, number, whom)
        sent = time.monotonic()
        status, output = runs.finish(process)
        done = f"{number.name} to the {whom} after {moment:.2f} s, {left:.0%} left to do: {status}"
        expected = {-number, 128 + number, 1} if whom == "snakemake" else {-number, 128 + number}
        assert status in expected or (status == 0 and "read " in output), f"{done}\n{output}"
        assert status != 1 or "error: Snakemake was killed by signal 9" in output, f"{done}\n{output}"
        assert time.monotonic() - sent < 30 and "Traceback" not in output, f"{done}\n{output}"
        check_that_no_process_is_left(folder)
        wait_for_the_lock(folder)
        check_that_nothing_is_half_written(folder, whole)
        return done
    status, output = runs.finish(process)
    assert status == 0, output
    return None


def blows(count: int) -> list[Blow]:
    """Return signals of all kinds in turn, at random moments."""
    chance = random.Random(20231220)
    kinds = [(signal.SIGKILL, "runner"), (signal.SIGTERM, "runner"), (signal.SIGKILL, "snakemake")]
    kinds += [(signal.SIGINT, "runner"), (signal.SIGKILL, "runner")]
    return [(*kinds[i % len(kinds)], chance.random()) for i in range(count)]


def go_on_to_the_end(folder: Path, dealt: list[Blow], length: Measured, whole: dict[str, bytes]) -> list[str]:
    """Stop and resume a run at all moments, anew when it is through, and let it end; return what was done."""
    done: list[str] = []
    for blow in dealt:
        while (told := stopped(folder, blow, length, whole)) is None:
            assert runs.compared(folder) == whole, "\n".join(done)
            shutil.rmtree(folder / RESULTS)
        print(folder.name, told)
        done.append(told)
    status, output = runs.run(folder, cores=1)
    assert status == 0, "\n".join([*done, output])
    assert runs.compared(folder) == whole, "\n".join(done)
    return done


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_stopped_at_random_moments(count: int, measured: Measured, tmp_path: Path) -> None:
    whole, dealt = runs.compared(measured.folder), blows(count)
    with ThreadPoolExecutor(SERIES) as pool:
        waiting = [
            pool.submit(go_on_to_the_end, tmp_path / f"series-{i}", dealt[i::SERIES], measured, whole)
            for i in range(SERIES)
        ]
        done = [told for series in waiting for told in series.result()]
    assert len(done) == count


DISTURBED = """
import os, pathlib, runpy, signal, sys
sys.argv = sys.argv[1:]
sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.{name}))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_fork_is_not_lost(number: signal.Signals, tmp_path: Path) -> None:
    interpreter, *arguments = runs.command()
    program = [interpreter, "-c", DISTURBED.format(name=number.name), *arguments]
    done = subprocess.run(program, cwd=tmp_path, env=runs.environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 128 + number, done.stdout + done.stderr
    assert done.stderr == "" and "stopped after" in done.stdout and "[ 1/" not in done.stdout
    check_that_no_process_is_left(tmp_path)

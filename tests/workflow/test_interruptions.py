"""A run that is stopped at any moment leaves nothing half-written, and the same command goes on to
the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import random
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

SERIES = 2  # at most at a time, each in a folder and on a core of its own
Blow = tuple[signal.Signals, bool, float]
"""A signal, whether all processes of the run get it, and its time, as a share of the whole
run's."""


def check_that_nothing_is_half_written(folder: Path, whole: dict[str, bytes]) -> None:
    """Check that each file under its final name is complete: the very bytes of the undisturbed run,
    where these are fixed."""
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


def strike(process: subprocess.Popen[str], number: signal.Signals, everybody: bool) -> None:
    """Send the signal to snakemake alone, or as a terminal or the kernel does, to all processes of
    the run."""
    if everybody:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)


def stopped(folder: Path, blow: Blow, seconds: float, whole: dict[str, bytes]) -> str | None:
    """Start a run, stop it, check the files it leaves, and return a line about it; None if it was
    through before."""
    number, everybody, share = blow
    finished = runs.recorded(folder)
    process = runs.start(folder, cores=1)
    try:
        # Snakemake needs a moment before there is anything to stop
        process.wait(timeout=0.3 + share * seconds)
    except subprocess.TimeoutExpired:
        strike(process, number, everybody)
        sent = time.monotonic()
        status, output = runs.finish(process)
        done = f"{number.name} to {'all' if everybody else 'snakemake'} after {share:.0%}: {status}"
        # or it was through: it says where to read, or that the blow before came when all was made
        through = status == 0 and ("read " in output or "Nothing to be done" in output)
        assert through or status in (-number, 1, 128 + number), f"{done}\n{output}"
        assert time.monotonic() - sent < 60, f"{done}\n{output}"
        check_that_nothing_is_half_written(folder, whole)
        after = runs.recorded(folder)
        lost = [name for name, found in finished.items() if after.get(name) != found]
        # but what the last blow had cut off
        assert len(lost) <= 1, f"{done}: {lost} were finished and made again"
        return done
    status, output = runs.finish(process)
    assert status == 0, output
    return None


def blows(count: int) -> list[Blow]:
    """Return signals of all kinds in turn, at random moments."""
    chance = random.Random(20231220)
    kinds = [
        (signal.SIGKILL, False),
        (signal.SIGTERM, False),
        (signal.SIGKILL, True),
        (signal.SIGINT, True),
    ]
    return [(*kinds[i % len(kinds)], chance.random()) for i in range(count)]


def go_on_to_the_end(
    folder: Path, dealt: list[Blow], seconds: float, whole: dict[str, bytes]
) -> list[str]:
    """Stop and resume a run at all moments, start again when it is through, and let it end; return
    the lines about the stops."""
    done: list[str] = []
    for turn, blow in enumerate(dealt):
        if (told := stopped(folder, blow, seconds, whole)) is None:
            assert runs.compared(folder) == whole, "\n".join(done)
            (folder / RESULTS).rename(folder / f"finished-{turn}")
        else:
            done.append(told)
    status, output = runs.run(folder, cores=1)
    assert status == 0, "\n".join([*done, output])
    assert runs.compared(folder) == whole, "\n".join(done)
    return done


@pytest.mark.parametrize(
    "count",
    [
        # one of each kind
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(60, marks=pytest.mark.slow),
    ],
)
def test_stopped_at_random_moments(count: int, measured: Measured, tmp_path: Path) -> None:
    whole, dealt, series = runs.compared(measured.folder), blows(count), min(SERIES, count)
    with ThreadPoolExecutor(series) as pool:
        waiting = [
            pool.submit(
                go_on_to_the_end,
                tmp_path / f"series-{i}",
                dealt[i::series],
                measured.seconds,
                whole,
            )
            for i in range(series)
        ]
        done = [told for ended in waiting for told in ended.result()]
    assert len(done) >= (count + 1) // 2


@pytest.mark.slow
def test_a_job_that_outlives_a_killed_run_does_no_harm(measured: Measured, tmp_path: Path) -> None:
    """It is stopped while it computes, the run is killed and started again, and then the old job
    goes on to its end."""
    process = runs.start(tmp_path, cores=1)
    old: psutil.Process | None = None
    for _ in range(runs.PATIENCE * 20):
        with contextlib.suppress(psutil.NoSuchProcess):  # between two looks
            for child in psutil.Process(process.pid).children(recursive=True):
                if child.name().startswith("python") and "run_experiment" in " ".join(
                    child.cmdline()
                ):
                    child.suspend()
                    old = child
        if old is not None:
            break
        time.sleep(0.05)
    assert old is not None
    os.kill(process.pid, signal.SIGKILL)
    try:
        status, output = runs.run(tmp_path, cores=1)
        assert status == 0, output
    finally:
        old.resume()
        old.wait(timeout=runs.PATIENCE)
        process.communicate(timeout=runs.PATIENCE)
    whole = runs.compared(measured.folder)
    check_that_nothing_is_half_written(tmp_path, whole)
    assert {name: content for name, (_, content) in runs.recorded(tmp_path).items()} == {
        name: content for name, (_, content) in runs.recorded(measured.folder).items()
    }
    assert runs.compared(tmp_path) == whole

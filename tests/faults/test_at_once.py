"""Runs that are started at the same moment in one folder: one works, the others say so in a sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.workflow import runs

CONTENDERS, ROUNDS = 4, 200
CONTENDER = """
import os, sys, time
from pathlib import Path
from dpsub.reproduce import lock
from dpsub.errors import PlanError
folder, mark, rounds = Path(sys.argv[1]), Path(sys.argv[1]) / "mark", int(sys.argv[2])
held = refused = 0
print("ready", flush=True)
sys.stdin.read(1)
while held < rounds:
    try:
        with lock.hold(folder):
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if another holds the lock, too
            time.sleep(0.0005)
            mark.unlink()
            held += 1
    except PlanError:
        refused += 1
        time.sleep(0.0002)
print(held, refused)
"""
REFUSED = re.compile(
    rf"error: one run at a time may use the results folder {runs.RESULTS}, and process (\d+|unknown) is running in it; "
    "wait for it, or set another results_dir\n"
)


def test_the_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(tmp_path / "results"), str(ROUNDS)],
            env=runs.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(CONTENDERS)
    ]  # fmt: skip
    for one in racing:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in racing:
        assert one.stdin is not None
        one.stdin.write("!")
        one.stdin.flush()
    ended = [one.communicate(timeout=60) for one in racing]
    assert [(one.returncode, complaint) for one, (_, complaint) in zip(racing, ended, strict=True)] == [(0, "")] * 4
    counts = [tuple(map(int, output.split())) for output, _ in ended]
    assert all(held == ROUNDS for held, _ in counts) and sum(refused for _, refused in counts) > ROUNDS


def test_of_runs_started_at_once_one_works(tmp_path: Path) -> None:
    only = runs.config(tmp_path / "only.yaml", artefacts=["table5"])
    racing = [runs.start(tmp_path / "run", "table5", configs=(runs.TINY, only)) for _ in range(2)]
    ended = sorted((runs.finish(one) for one in racing), reverse=True)
    assert [status for status, _ in ended] == [1, 0], ended
    assert REFUSED.fullmatch(ended[0][1]), ended
    assert "finished" in ended[1][1]

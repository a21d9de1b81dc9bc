"""The lock of a results folder: one holder at a time, free as soon as the holder is gone, however it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import lock

HOLDER = """
import sys, time
from pathlib import Path
from dpsub.reproduce import lock
with lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_with_folder_and_process(tmp_path: Path) -> None:
    with (
        lock.hold(tmp_path / "results"),
        pytest.raises(PlanError, match=rf"the results folder {tmp_path}/results, and process {os.getpid()} is running"),
        lock.hold(tmp_path / "results"),
    ):
        pytest.fail("two held the lock")
    with lock.hold(tmp_path / "results"):
        assert (tmp_path / "results/.lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_two_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    with lock.hold(tmp_path / "a"), lock.hold(tmp_path / "b"):
        assert (tmp_path / "a/.lock").exists() and (tmp_path / "b/.lock").exists()


def test_a_killed_holder_leaves_the_lock_free(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(PlanError, match=f"process {holder.pid} is running in it"), lock.hold(tmp_path):
            pytest.fail("two held the lock")
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
    with lock.hold(tmp_path):
        assert (tmp_path / ".lock").exists()


def test_a_process_that_inherits_the_lock_keeps_it(tmp_path: Path) -> None:
    with lock.hold(tmp_path) as descriptor:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    try:
        with pytest.raises(PlanError, match="one run at a time"), lock.hold(tmp_path):
            pytest.fail("two held the lock")
    finally:
        child.communicate(b"\n", timeout=30)
    with lock.hold(tmp_path):
        assert child.returncode == 0

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import jobs, slurm_on_loopback


def control(action: str) -> None:
    line = [sys.executable, slurm_on_loopback.__file__, action]
    done = subprocess.run(line, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def slurm() -> Iterator[None]:
    """A Slurm of two nodes, which ends with the tests; a machine has room for one."""
    if reason := slurm_on_loopback.why_not():
        pytest.skip(reason)
    with Path(f"{slurm_on_loopback.STATE}.lock").open("w") as lock:

        def alone() -> bool:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        jobs.wait(alone, "other tests that use the Slurm of this machine")
        try:
            control("start")
            yield
        finally:
            control("stop")


@pytest.fixture
def accounts(slurm: None) -> None:
    """The same Slurm where it keeps accounts."""
    if reason := slurm_on_loopback.why_no_accounts():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def greedy(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jobs.Run]:
    """Start a run whose jobs need more than they first ask for; it takes minutes, mostly of
    waiting."""
    with jobs.start_small(tmp_path_factory.mktemp("greedy")) as process:
        yield process


@pytest.fixture(scope="session", autouse=True)
def started_early(request: pytest.FixtureRequest) -> None:
    """Start what takes longest first, so that it waits while the other tests run."""
    if not slurm_on_loopback.why_not() and any(
        "greedy" in getattr(item, "fixturenames", ()) for item in request.session.items
    ):
        request.getfixturevalue("greedy")


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the run that `jobs.config` describes, on this machine without a cluster."""
    folder = tmp_path_factory.mktemp("local")
    status, output = jobs.run(
        folder,
        configuration=jobs.config(folder / "own.yaml"),
        machine=("--cores", "2", "--scheduler", "greedy"),
    )
    assert status == 0, output
    return folder

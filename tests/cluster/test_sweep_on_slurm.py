"""A sweep on a real Slurm: the bytes of a local one, killed or not, and no finished cell computed again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster import jobs
from tests.workflow import runs
from tests.workflow import test_sweep as sweeps
from tests.workflow.test_interruptions import wait_for_the_lock

pytestmark = pytest.mark.usefixtures("slurm")
SHORT = 0.1  # minutes a job, at the expected speed
MANY = sweeps.SEVERAL | {"replicates": 20}
ON_SLURM = ("--profile", "slurm", "--", *jobs.OFTEN)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: content for name, (_, content) in sweeps.made(folder).items()}


def states(folder: Path) -> list[str]:
    return [job["JobState"] for job in jobs.all_jobs(folder) if "run_cells" in job["Comment"]]


def test_a_sweep_gives_the_bytes_of_a_local_one_and_a_kill_costs_no_finished_cell(tmp_path: Path) -> None:
    local, whole, killed = tmp_path / "local", tmp_path / "whole", tmp_path / "killed"
    undisturbed = sweeps.start(whole, MANY, job_minutes=SHORT, options=ON_SLURM)
    # One job at a time: there is something left to do when the first one has ended.
    process = sweeps.start(killed, MANY, cores=1, job_minutes=SHORT, options=ON_SLURM)
    status, output = sweeps.run(local, MANY, job_minutes=SHORT)
    assert status == 0, output
    expected = contents(local)
    assert len(expected) >= 3
    jobs.wait(lambda: {"COMPLETED", "RUNNING"} <= set(states(killed)), "a job that has ended and one that runs")
    os.kill(process.pid, signal.SIGKILL)
    runs.finish(process)
    wait_for_the_lock(killed)
    before = sweeps.made(killed)
    assert 0 < len(before) < len(expected) and not sweeps.summaries(killed)

    status, output = sweeps.run(killed, MANY, job_minutes=SHORT, options=ON_SLURM)
    assert status == 0, output + jobs.log(killed)
    after = sweeps.made(killed)
    assert {name: after[name] for name in before} == before
    units = sweeps.finished(killed)
    assert len(units) == len(set(units)) and set(units) == set(sweeps.finished(local))
    status, output = runs.finish(undisturbed)
    assert status == 0, output + jobs.log(whole)
    assert states(whole) == ["COMPLETED"] * len(expected)
    assert contents(whole) == expected
    for folder in (whole, killed):  # what is left after a kill is packed into jobs anew
        assert sweeps.summaries(folder) == sweeps.summaries(local)

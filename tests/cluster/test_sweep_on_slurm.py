"""A sweep on a real Slurm: the bytes of a local one, killed or not, and no finished cell computed
again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cluster import jobs
from tests.workflow.sweeps import LONG, written

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("slurm")]
MANY = LONG | {"replicates": 20}
SHORT = 0.1  # minutes a job, at the expected speed


def start(folder: Path, *machine: str) -> jobs.Run:
    folder.mkdir(exist_ok=True)
    path = written(folder / "sweep.yaml", MANY, results_dir=jobs.RESULTS, job_minutes=SHORT)
    return jobs.Run(
        folder, str(jobs.project() / "workflow/scripts/run_sweep.py"), str(path), "--", *machine
    )


def computed(folder: Path) -> list[tuple[str, int]]:
    """Return the (cell, replicate) of all rows."""
    files = (folder / jobs.RESULTS).glob("records/**/*.parquet")
    frames = [pd.read_parquet(path, columns=["cell", "replicate"]) for path in files]
    return sorted(pd.concat(frames).itertuples(index=False, name=None))


def summaries(folder: Path) -> dict[str, bytes]:
    return {
        name: content
        for name, content in jobs.contents(folder).items()
        if name.startswith("summary")
    }


def test_a_sweep_gives_the_bytes_of_a_local_one_and_a_kill_costs_no_finished_cell(
    tmp_path: Path,
) -> None:
    local, whole, killed = tmp_path / "local", tmp_path / "whole", tmp_path / "killed"
    # One job at a time: there is something left to do when the first one has ended.
    with (
        start(whole, *jobs.HASTE) as undisturbed,
        start(killed, *jobs.HASTE, "--jobs", "1") as process,
    ):
        with start(local, "--cores", "2", "--scheduler", "greedy") as here:
            status, output = here.finish()
        assert status == 0, output
        jobs.wait(
            lambda: {"COMPLETED", "RUNNING"} <= set(jobs.states(killed)),
            "a job that has ended and one that runs",
        )
        process.kill()
        left = jobs.running(killed, "run_cells")
        # a plan is made from what is there: what still comes would be there twice
        jobs.slurm("scancel", *left)
        jobs.wait(
            lambda: set(jobs.states(killed)) <= {"COMPLETED", "CANCELLED"},
            "the end of what was left",
        )
        before = jobs.records(killed)
        assert 0 < len(before) < len(jobs.records(local)) and not summaries(killed)
        with start(killed, *jobs.HASTE, "--nolock") as again:
            status, output = again.finish()
        assert status == 0, output
        after = jobs.records(killed)
        assert {name: after[name] for name in before} == before
        assert computed(killed) == computed(local)
        assert len(set(computed(local))) == len(computed(local))
        status, output = undisturbed.finish()
    assert status == 0, output
    assert jobs.states(whole, "run_cells") == ["COMPLETED"] * len(jobs.records(local))
    assert len(jobs.records(local)) >= 3
    assert jobs.contents(whole) == jobs.contents(local)
    # what is left after a kill is packed into jobs anew
    assert summaries(killed) == summaries(local)

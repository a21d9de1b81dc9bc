"""On a real Slurm: the same bytes as locally, whatever happens to jobs, to Snakemake and to the shared files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from dpsub.reproduce import records
from tests.cluster import jobs, slurm_on_loopback
from tests.workflow import runs
from tests.workflow.runs import RESULTS

pytestmark = pytest.mark.usefixtures("slurm")
DELAY = 6.0  # seconds between the news that a job has ended and the sight of what it has written


def test_a_cancelled_job_is_submitted_again_and_the_bytes_are_those_of_a_local_run(local: Path, tmp_path: Path) -> None:
    process = jobs.start(tmp_path, config=jobs.config(tmp_path / "all.yaml"))
    jobs.wait(lambda: jobs.running(tmp_path, "run_experiment"), "a job that runs")
    victim = jobs.running(tmp_path, "run_experiment")[0]
    jobs.slurm("scancel", victim)
    status, output = runs.finish(process)
    assert status == 0, output + jobs.log(tmp_path)
    states = [(job["JobId"], job["JobState"]) for job in jobs.all_jobs(tmp_path)]
    assert (victim, "CANCELLED") in states
    assert [state for number, state in states if number != victim] == ["COMPLETED"] * (len(states) - 1)
    assert len(states) == 3 + 1 + 1, states  # three records, one of them twice, and the bundle of tables and figures
    assert runs.compared(tmp_path) == runs.compared(local)
    for path in (local / RESULTS).glob("records/**/*.parquet"):
        assert (tmp_path / RESULTS / path.relative_to(local / RESULTS)).read_bytes() == path.read_bytes()


def test_a_killed_run_goes_on_and_computes_nothing_twice(local: Path, tmp_path: Path) -> None:
    parts = {"linear_regression": {"parts": 3}}
    config = runs.config(tmp_path / "only.yaml", artefacts=["table7"], experiments=parts)
    wanted = [jobs.record("linear_regression", f"{number}-of-3") for number in (1, 2, 3)]
    folder = tmp_path / RESULTS / "records/linear_regression/stated"

    def finished() -> dict[str, tuple[int, bytes]]:
        """Inode and content of each record file: one that is written again gets another inode."""
        return {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.glob("*.parquet")}

    process = jobs.start(tmp_path, *wanted, "--cores", "2", config=config)
    jobs.wait(lambda: len(list(folder.glob("*.parquet"))) >= 1, "a finished record")
    os.kill(process.pid, signal.SIGKILL)
    runs.finish(process)
    time.sleep(1)
    before = finished()
    assert before
    status, output = jobs.run(tmp_path, *wanted, config=config)
    assert status == 0, output + jobs.log(tmp_path)
    after = finished()
    assert len(after) == 3
    assert {name: after[name] for name in before} == before
    found, expected = (
        records.gather((top / RESULTS / "records/linear_regression").rglob("*.parquet")) for top in (tmp_path, local)
    )
    pd.testing.assert_frame_equal(found["linear_regression"], expected["linear_regression"], check_exact=True)
    # Snakemake's books hold the records that were finished unseen like all others: another seed concerns each of them.
    other = runs.config(tmp_path / "other.yaml", artefacts=["table7"], experiments=parts, seed=1)
    status, output = jobs.run(tmp_path, *wanted, config=other, extra=("--dry-run",))
    assert status == 0, output
    counts = [line.split() for line in jobs.log(tmp_path).splitlines() if line.startswith("run_experiment ")]
    assert counts[0] == ["run_experiment", "3"]


@contextmanager
def late_records(run: Path) -> Iterator[list[str]]:
    """Let Snakemake see the records of the run in the folder `run` some seconds after it has heard that the job ended.

    The node's processes see another folder in the place of `records`; a thread copies the files from there in the end:
    the plugin removes a job's log file when it hears of its success. Yields the names of the files that came late.
    """
    shown, written = run / RESULTS / "records", run / "written"
    shown.mkdir(parents=True)
    written.mkdir()
    node = f"--target={slurm_on_loopback.process('slurmd')}"
    jobs.slurm("nsenter", node, "--mount", "mount", "--bind", str(written), str(shown))
    stop, late = threading.Event(), []

    def running() -> bool:
        return any((run / ".snakemake/slurm_logs/rule_run_experiment").rglob("*.log"))

    def show() -> None:
        while not running():
            if stop.wait(0.1):
                return
        while running():
            if stop.wait(0.1):
                return
        if not stop.wait(DELAY):
            late.extend(sorted(path.name for path in written.rglob("*.*")))
            shutil.copytree(written, shown, dirs_exist_ok=True)

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield late
    finally:
        stop.set()
        thread.join()
        jobs.slurm("nsenter", node, "--mount", "umount", "--lazy", str(shown))


def test_a_file_system_that_shows_files_late_loses_no_result(local: Path, tmp_path: Path) -> None:
    config = runs.config(tmp_path / "only.yaml", artefacts=["figure6"])
    wanted = jobs.record("linear_regression_trace", "1-of-1")
    patient, hasty = tmp_path / "patient", tmp_path / "hasty"
    with late_records(patient) as late, late_records(hasty):
        started = jobs.start(patient, wanted, config=config)
        twin = jobs.start(hasty, wanted, config=config, extra=("--latency-wait", "1", "--retries", "0"))
        status, output = runs.finish(started)
        status_of_twin, _ = runs.finish(twin)
    assert status == 0, output + jobs.log(patient)
    assert sorted(late) == ["1-of-1.parquet"]
    assert [job["JobState"] for job in jobs.all_jobs(patient)] == ["COMPLETED"]  # nothing was submitted twice
    assert (patient / wanted).read_bytes() == (local / wanted).read_bytes()
    # They are late enough to matter: a run that does not wait for them fails.
    assert status_of_twin == 1
    assert "MissingOutputException" in jobs.log(hasty)


def test_a_stopped_run_leaves_no_job_in_the_queue(tmp_path: Path) -> None:
    process = jobs.start(tmp_path, config=jobs.config(tmp_path / "all.yaml"))
    jobs.wait(lambda: jobs.running(tmp_path, "run_experiment"), "a job that runs")
    process.send_signal(signal.SIGTERM)
    status, output = runs.finish(process)
    assert status == 128 + signal.SIGTERM, output
    assert "run again to go on from here" in output
    assert {job["JobState"] for job in jobs.all_jobs(tmp_path)} <= {"CANCELLED", "COMPLETED"}


def test_more_memory_and_time_are_asked_for_when_they_did_not_suffice(
    greedy: tuple[Path, subprocess.Popen[str]],
) -> None:
    folder, process = greedy
    status, output = runs.finish(process)
    assert status == 0, output
    found = {
        rule: [
            (job["JobState"], job["MinMemoryNode"], job["TimeLimit"])
            for job in jobs.all_jobs(folder)
            if rule in job["Comment"]
        ]
        for rule in ("take_memory", "take_time")
    }
    assert found["take_memory"][1:] == [("COMPLETED", "2000M", "00:20:00")]
    assert found["take_memory"][0][0] in ("FAILED", "OUT_OF_MEMORY")  # the first where no cgroups are used
    assert found["take_memory"][0][1:] == ("1000M", "00:10:00")
    assert found["take_time"] == [("TIMEOUT", "1000M", "00:01:00"), ("COMPLETED", "2000M", "00:02:00")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--partition", "shrot"], "unknown partition 'shrot'; did you mean 'short'?"),
        (
            ["--partition", "short"],
            "one job must fit into the partition short, which gives it at most 300 MiB of memory",
        ),
        (["--account", "mine"], "the account must be left out on a cluster that keeps no accounts, got 'mine'"),
    ],
)
def test_what_the_cluster_cannot_do_is_said_before_the_first_job(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    status, output = jobs.run(tmp_path, *arguments, config=jobs.config(tmp_path / "all.yaml"))
    assert status == 1
    assert output.startswith(f"error: {sentence}") and len(output.splitlines()) == 1
    assert not (tmp_path / RESULTS).exists()

"""On a real Slurm: the same bytes as locally, whatever happens to jobs, to Snakemake and to the
shared files."""

from __future__ import annotations

import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import jobs, slurm_on_loopback
from tests.cluster.jobs import RESULTS

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("slurm")]
DELAY = 6.0  # seconds between the news that a job has ended and the sight of what it has written


def test_jobs_on_both_nodes_one_of_them_cancelled_give_the_bytes_of_a_local_run(
    local: Path, tmp_path: Path
) -> None:
    with jobs.start(tmp_path, configuration=jobs.config(tmp_path / "own.yaml")) as process:
        jobs.wait(
            lambda: len(jobs.running(tmp_path, "simulate_example_walks")) >= 3,
            "three jobs that run",
        )
        cancelled = jobs.running(tmp_path, "simulate_example_walks")[0]
        jobs.slurm("scancel", cancelled)
        status, output = process.finish()
    assert status == 0, output
    jobs_of_run = jobs.all_jobs(tmp_path)
    assert {job["NodeList"] for job in jobs_of_run} == set(slurm_on_loopback.NODES)
    states = {job["JobId"]: job["JobState"] for job in jobs_of_run}
    assert states.pop(cancelled) == "CANCELLED"
    assert set(states.values()) == {"COMPLETED"}
    # records, the cancelled one once more, then the table and the figure
    assert len(states) == 4 + 2
    assert jobs.contents(tmp_path) == jobs.contents(local)


@pytest.mark.slow
def test_at_smoke_size_jobs_of_a_paper_are_submitted_together(local: Path, tmp_path: Path) -> None:
    config = jobs.config(tmp_path / "own.yaml")
    config.write_text(f"{config.read_text(encoding='utf-8')}size: smoke\n", encoding="utf-8")
    status, output = jobs.run(tmp_path, configuration=config)
    assert status == 0, output
    # a table and a figure, each with the experiments that it reads: here no experiment joins them
    submitted = jobs.all_jobs(tmp_path)
    assert len(submitted) == 2 and set(jobs.states(tmp_path)) == {"COMPLETED"}
    assert all(job["Comment"].startswith("rule_example_") for job in submitted)
    assert jobs.contents(tmp_path) == jobs.contents(local)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_keeps_what_was_finished(local: Path, tmp_path: Path) -> None:
    """The job that outlives its Snakemake goes on, too; it and its second edition write the same
    file."""
    config = jobs.config(tmp_path / "own.yaml")
    wanted = [jobs.record("example_walks", f"{number}-of-3") for number in (1, 2, 3)]
    with jobs.start(
        tmp_path, *wanted, configuration=config, machine=(*jobs.HASTE, "--jobs", "1")
    ) as process:
        jobs.wait(lambda: "Finished jobid" in process.output, "a record")
        before = jobs.records(tmp_path)
        jobs.wait(lambda: jobs.running(tmp_path, "simulate_example_walks"), "a job that runs")
        process.kill()
    assert len(before) == 1
    status, output = jobs.run(tmp_path, *wanted, configuration=config)
    assert status == 1
    # or, where another lock shows that no other run works here, as in the Makefile:
    assert "--unlock" in output
    status, output = jobs.run(
        tmp_path, *wanted, configuration=config, machine=(*jobs.HASTE, "--nolock")
    )
    assert status == 0, output
    after = jobs.records(tmp_path)
    assert len(after) == 3
    assert {name: after[name] for name in before} == before
    expected = jobs.contents(local)
    jobs.wait(
        lambda: "RUNNING" not in jobs.states(tmp_path), "the end of the job that was left over"
    )
    assert jobs.contents(tmp_path) == {name: expected[name] for name in after}


@contextmanager
def late_records(run: Path) -> Iterator[list[str]]:
    """Let Snakemake see the records of the run in the folder `run` some seconds after it has heard
    that the job ended.

    The nodes' processes see another folder in the place of `records`; a thread copies the files
    from there in the end: the plugin removes a job's log file when it hears of its success. Yields
    the names of the files that came late.
    """
    shown, written = run / RESULTS / "records", run / "written"
    shown.mkdir(parents=True)
    written.mkdir()
    nodes = [f"--target={slurm_on_loopback.process(name)}" for name in slurm_on_loopback.NODES]
    for node in nodes:
        jobs.slurm("nsenter", node, "--mount", "mount", "--bind", str(written), str(shown))
    stop, late = threading.Event(), []

    def running() -> bool:
        return any((run / ".snakemake/slurm_logs/rule_simulate_example_trace").rglob("*.log"))

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
        for node in nodes:
            jobs.slurm("nsenter", node, "--mount", "umount", "--lazy", str(shown))


@pytest.mark.slow
def test_a_file_system_that_shows_files_late_loses_no_result(local: Path, tmp_path: Path) -> None:
    config = jobs.config(tmp_path / "own.yaml")
    wanted = jobs.record("example_trace", "1-of-1")
    patient, hasty = tmp_path / "patient", tmp_path / "hasty"
    no_wait = (*jobs.HASTE, "--latency-wait", "1", "--retries", "0")
    with (
        late_records(patient) as late,
        late_records(hasty),
        jobs.start(patient, wanted, configuration=config) as started,
        jobs.start(hasty, wanted, configuration=config, machine=no_wait) as twin,
    ):
        status, output = started.finish()
        status_of_twin, output_of_twin = twin.finish()
    assert status == 0, output
    assert late == ["1-of-1.parquet"]
    assert jobs.states(patient) == ["COMPLETED"]  # nothing was submitted twice
    assert (patient / wanted).read_bytes() == (local / wanted).read_bytes()
    # They are late enough to matter: a run that does not wait for them fails.
    assert status_of_twin == 1
    assert "MissingOutputException" in output_of_twin


def test_an_interrupted_run_leaves_no_job_in_the_queue(tmp_path: Path) -> None:
    with jobs.start(tmp_path, configuration=jobs.config(tmp_path / "own.yaml")) as process:
        jobs.wait(
            lambda: process.output.count("submitted with SLURM") >= 4, "the submission of all jobs"
        )
        jobs.wait(lambda: jobs.running(tmp_path, "simulate_example_walks"), "a job that runs")
        process.process.send_signal(signal.SIGINT)
        status, output = process.finish()
    assert status == 1, output
    jobs.wait(
        lambda: set(jobs.states(tmp_path)) <= {"CANCELLED", "COMPLETED"}, "the end of all jobs"
    )


def test_more_memory_and_time_are_asked_for_when_they_did_not_suffice(greedy: jobs.Run) -> None:
    status, output = greedy.finish()
    assert status == 0, output
    memory, time = (
        [
            (job["JobState"], job["MinMemoryNode"], job["TimeLimit"])
            for job in jobs.all_jobs(greedy.folder, rule)
        ]
        for rule in ("take_memory", "take_time")
    )
    assert memory[1:] == [("COMPLETED", "2000M", "00:20:00")]
    assert memory[0][0] in ("FAILED", "OUT_OF_MEMORY")  # the first where no cgroups are used
    assert memory[0][1:] == ("1000M", "00:10:00")
    assert time == [("TIMEOUT", "1000M", "00:01:00"), ("COMPLETED", "2000M", "00:02:00")]


def test_what_slurm_puts_back_into_the_queue_is_waited_for(greedy: jobs.Run) -> None:
    status, output = greedy.finish()
    assert status == 0, output
    jobs_of_run = jobs.all_jobs(greedy.folder, "put_back")
    assert [(job["JobState"], job["Restarts"]) for job in jobs_of_run] == [("COMPLETED", "1")]


def test_an_unknown_partition_is_named_in_the_error(tmp_path: Path) -> None:
    with jobs.start_small(
        tmp_path, "--default-resources", "slurm_partition=shrot", "--", "quick.txt"
    ) as process:
        status, output = process.finish()
    assert status == 1
    assert "sbatch: error: invalid partition specified: shrot" in output


@pytest.mark.usefixtures("accounts")
def test_an_unknown_account_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    with jobs.start_small(
        tmp_path, "--default-resources", "slurm_account=mine", "--", "quick.txt"
    ) as process:
        status, output = process.finish()
    assert status == 1
    assert "The given account mine appears to be invalid. Available accounts:\n" in output
    assert slurm_on_loopback.ACCOUNT in output


@pytest.mark.usefixtures("accounts")
def test_partition_and_account_are_those_that_were_asked_for_and_the_end_is_heard_from_the_accounts(
    tmp_path: Path,
) -> None:
    chosen = (
        "--default-resources",
        "slurm_partition=main",
        f"slurm_account={slurm_on_loopback.ACCOUNT}",
    )
    with jobs.start_small(
        tmp_path, "--slurm-status-command", "sacct", *chosen, "--", "quick.txt"
    ) as process:
        status, output = process.finish()
    assert status == 0, output
    (job,) = jobs.all_jobs(tmp_path)
    found = (job["Partition"], job["Account"], job["JobState"])
    assert found == ("main", slurm_on_loopback.ACCOUNT, "COMPLETED")
    page = (jobs.ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^sacct -X .*$", page, re.MULTILINE)
    listed = dict(line.split("|", 1) for line in jobs.slurm("sh", "-c", command).splitlines())
    assert listed[job["JobId"]].endswith("|rule_quick")

"""Runs of the workflow on the Slurm of this machine, and what Slurm says about their jobs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.workflow import runs

# Snakemake asks for a job 2 s after submission instead of 20 s: the jobs are short.
OFTEN = ("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "1")
PATIENCE = 120.0  # seconds


def config(path: Path, **keys: object) -> Path:
    """Write the configuration of the smallest run that has records in parts and a bundle, with `keys`."""
    return runs.config(path, **{"artefacts": ["table7", "figure6"], **keys})


def record(experiment: str, part: str) -> str:
    """Return a record file within a run's folder: as a target it makes a run without a second round of jobs."""
    return f"{runs.RESULTS}/records/{experiment}/stated/{part}.parquet"


def command(*arguments: str, config: Path, extra: tuple[str, ...] = ()) -> list[str]:
    line = runs.command(*arguments, "--profile", "slurm", configs=(runs.TINY, config))
    at = line.index("--cores")
    return [*line[:at], *line[at + 2 :], "--", *OFTEN, *extra]


def start(folder: Path, *arguments: str, config: Path, extra: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        command(*arguments, config=config, extra=extra),
        cwd=folder,
        env=runs.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *arguments: str, config: Path, extra: tuple[str, ...] = ()) -> tuple[int, str]:
    return runs.finish(start(folder, *arguments, config=config, extra=extra))


def log(folder: Path) -> str:
    """Return what Snakemake has said in the run in `folder`."""
    return (folder / runs.RESULTS / "logs/snakemake.log").read_text(encoding="utf-8")


def wait(ready: Callable[[], object], what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < limit, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.2)


def slurm(*line: str) -> str:
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout


def running(folder: Path, rule: str) -> list[str]:
    """Return the numbers of the running Slurm jobs of one rule that work in `folder`."""
    return [job["JobId"] for job in all_jobs(folder) if job["JobState"] == "RUNNING" and rule in job["Comment"]]


def all_jobs(folder: Path) -> list[dict[str, str]]:
    """Return what Slurm knows of the jobs that work or have worked in `folder`, oldest first."""
    lines = slurm("scontrol", "--oneliner", "show", "job").splitlines()
    found = [dict(item.split("=", 1) for item in line.split() if "=" in item) for line in lines]
    here = [job for job in found if job.get("WorkDir") == str(folder)]
    return sorted(here, key=lambda job: int(job["JobId"]))

"""Calls of stock Snakemake with the profile for Slurm, and what Slurm says about their jobs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.workflow import runs
from tests.workflow.runs import RESULTS, ROOT, TINY, project

HERE = Path(__file__).parent
PROFILE = ("--workflow-profile", str(ROOT / "workflow/profiles/slurm"))
# Snakemake asks for a job 2 s after submission and not 65 s: the jobs are short.
OFTEN = (
    *("--slurm-init-seconds-before-status-checks", "2"),
    *("--seconds-between-status-checks", "1"),
    *("--max-status-checks-per-second", "1"),
)
HASTE = (*PROFILE, *OFTEN)
# seconds after which a run counts as hung: it shares the machine with the other tests
PATIENCE = 600


def config(path: Path) -> Path:
    """Write the configuration of a run of four record files, a table and a figure."""
    # jobs of some seconds, so that several are seen to run at once
    walks = {"parts": 3, "replicates": 30, "steps": 10_000_000}
    return runs.config(
        path, artefacts=["example/walks", "example/figure1"], experiments={"example_walks": walks}
    )


def record(experiment: str, part: str) -> str:
    """Return a record file within a run's folder: as a target it makes a run without a second round
    of jobs."""
    return f"{RESULTS}/records/{experiment}/{part}.parquet"


class Run:
    """A program of this Python that works in `folder` and prints into a file there; it is ended
    after `PATIENCE`."""

    def __init__(self, folder: Path, *line: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.printed = folder / f"output-{len(list(folder.glob('output-*')))}.txt"
        with self.printed.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, *line],
                cwd=folder,
                env=runs.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self.printed.read_text(encoding="utf-8", errors="replace")

    def finish(self) -> tuple[int, str]:
        """Return the exit status and what was printed."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"no end after {PATIENCE} s; the output so far: {self.output}"
            ) from None
        return self.process.returncode, self.output

    def kill(self) -> None:
        """End the program as nothing can be ended more harshly; its Slurm jobs go on."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def start(
    folder: Path, *arguments: str, configuration: Path, machine: tuple[str, ...] = HASTE
) -> Run:
    """Start Snakemake on the project's workflow, for everything or for the record files
    `arguments`."""
    given = ["--configfile", str(TINY), str(configuration)]
    return Run(
        folder,
        "-m",
        "snakemake",
        "--snakefile",
        str(project() / "Snakefile"),
        *machine,
        *given,
        "--",
        *arguments,
    )


def run(
    folder: Path, *arguments: str, configuration: Path, machine: tuple[str, ...] = HASTE
) -> tuple[int, str]:
    with start(folder, *arguments, configuration=configuration, machine=machine) as process:
        return process.finish()


def start_small(folder: Path, *arguments: str) -> Run:
    """Start Snakemake on the small workflow that is here."""
    return Run(
        folder, "-m", "snakemake", "--snakefile", str(HERE / "small/Snakefile"), *HASTE, *arguments
    )


def wait(ready: Callable[[], object], what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < limit, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.2)


def slurm(*line: str) -> str:
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout


def all_jobs(folder: Path, rule: str = "") -> list[dict[str, str]]:
    """Return what Slurm knows of the jobs of a rule that work or have worked in `folder`, oldest
    first."""
    lines = slurm("scontrol", "--oneliner", "show", "job").splitlines()
    found = [dict(item.split("=", 1) for item in line.split() if "=" in item) for line in lines]
    here = [job for job in found if job.get("WorkDir") == str(folder) and rule in job["Comment"]]
    return sorted(here, key=lambda job: int(job["JobId"]))


def states(folder: Path, rule: str = "") -> list[str]:
    return [job["JobState"] for job in all_jobs(folder, rule)]


def running(folder: Path, rule: str) -> list[str]:
    """Return the numbers of the running Slurm jobs of one rule that work in `folder`."""
    return [job["JobId"] for job in all_jobs(folder, rule) if job["JobState"] == "RUNNING"]


def records(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return inode and content of every record file: a file that is written again gets another
    inode."""
    top = folder / RESULTS
    found = top.glob("records/**/*.parquet")
    return {str(path.relative_to(top)): (path.stat().st_ino, path.read_bytes()) for path in found}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file that must not differ between runs of one configuration."""
    top = folder / RESULTS
    places = (
        "records/**/*.parquet",
        "tables/**/*",
        "figures/**/*",
        "comparison/**/*",
        "comparison.csv",
        "summary/*",
    )
    files = sorted(path for place in places for path in top.glob(place) if path.is_file())
    return {str(path.relative_to(top)): path.read_bytes() for path in files}

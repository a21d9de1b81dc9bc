"""How far a run is and how long it will still take, read from Snakemake's own lines."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Seconds on one core at full published size, all parts and variants together; what is not named counts as DEFAULT.
# Only the proportions matter: the speed is measured while the run goes on.
EXPECTED = {
    "adult_logistic": 72.0,
    "adult_logistic_trace": 13.0,
    "balle_enumeration": 16.0,
    "brdp_acceptance": 38.0,
    "brdp_adult": 9.0,
    "brdp_checks": 4.0,
    "brdp_composition": 7.0,
    "brdp_gowalla": 9.0,
    "brdp_map": 74.0,
    "brdp_sampling": 28.0,
    "brdp_table1": 4.0,
    "brdp_times": 8.0,
    "bun_bounds": 8.0,
    "composition": 40.0,
    "design_surface": 8.0,
    "fair_comparison": 29.0,
    "fair_noise": 105.0,
    "importance_clustering": 497.0,
    "importance_gain": 14.0,
    "importance_noise": 15.0,
    "importance_times": 11.0,
    "linear_regression": 16.0,
    "peer_bounds": 17.0,
    "peer_times": 16.0,
    "proved_composition": 34.0,
    "proved_noise": 36.0,
    "proved_steps": 24.0,
    "subset_statistics": 6.0,
}
DEFAULT = 1.0
OVERHEAD = 0.7  # seconds that every job takes to start, and most to do their work
_HEAD = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):$")
_FIELD = re.compile(r"^    (jobid|wildcards|output|log): (.*)$")
_FINISHED = re.compile(r"^Finished jobid: (\d+)")
_COUNT = re.compile(r"^(\w+) +(\d+)$")
_STEPS = re.compile(r"^(\d+) of (\d+) steps")
_FAILED = re.compile(r"^Error in rule (\w+)")


@dataclass
class Job:
    """One job that Snakemake has announced."""

    rule: str
    wildcards: dict[str, str] = field(default_factory=dict)
    started: float = 0.0
    makes_files: bool = False

    def __str__(self) -> str:
        return " ".join([self.rule, *self.wildcards.values()])


@dataclass
class Progress:
    """State of a run.

    Parameters
    ----------
    shares : mapping
        Number of jobs among which each experiment's expected time is divided.
    cores : int
        Jobs at a time.
    pending : mapping of (rule, experiment) to count, optional
        Jobs of which the results were missing before the run; refines the expectation of what is to be done.
    """

    shares: Mapping[str, int]
    cores: int
    started: float = field(default_factory=time.monotonic)
    total: int = 0
    done: int = 0
    made: int = 0
    expected: float = 0.0
    earned: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    running: dict[str, Job] = field(default_factory=dict)
    failed_logs: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    _head: Job | None = None
    _in_counts: bool = False
    _in_failure: bool = False

    def cost(self, job: Job) -> float:
        """Return the expected seconds of a job on one core."""
        name = job.wildcards.get("experiment", job.rule)
        return OVERHEAD + EXPECTED.get(name, DEFAULT) / self.shares.get(name, 1)

    def feed(self, line: str) -> str | None:
        """Take one line of Snakemake's output; return a line for the user if a job has ended."""
        line = line.rstrip("\n")
        if self._in_counts:
            if match := _COUNT.match(line):
                self.counts[match[1]] = int(match[2])
            elif not line.strip():
                self._in_counts = False
                self._begin()
            return None
        if line.startswith("Job stats:"):
            self._in_counts, self.counts = True, {}
        elif match := _HEAD.match(line):
            self._head, self._in_failure = Job(match[1], started=time.monotonic()), False
        elif match := _FAILED.match(line):
            self._head, self._in_failure = None, True
        elif match := _FIELD.match(line):
            self._take(match[1], match[2])
        elif match := _FINISHED.match(line):
            return self._finish(match[1])
        elif match := _STEPS.match(line):
            self.done = int(match[1])
        return None

    def _take(self, name: str, value: str) -> None:
        if self._in_failure:
            if name == "log":
                self.failed_logs += [path.strip() for path in value.split(" (check")[0].split(",")]
        elif self._head and name == "wildcards":
            self._head.wildcards = dict(pair.split("=", 1) for pair in value.split(", ") if "=" in pair)
        elif self._head and name == "output":
            self._head.makes_files = True
        elif self._head and name == "jobid":
            self.running[value] = self._head

    def _begin(self) -> None:
        """Expect for each rule its usual cost; experiments share theirs evenly."""
        self.total = self.counts.pop("total", 0)
        experiments = sum(OVERHEAD * count + EXPECTED.get(name, DEFAULT) for name, count in self.shares.items())
        jobs = max(1, sum(self.shares.values()))
        for rule, count in self.counts.items():
            each = experiments / jobs if rule == "run_experiment" else self.cost(Job(rule))
            self.expected += count * each

    def _finish(self, number: str) -> str | None:
        job = self.running.pop(number, None)
        self.done += 1
        if job is None:
            return None
        self.earned += self.cost(job)
        if not job.makes_files:  # a rule that only gathers others, such as all
            return None
        self.made += 1
        width = len(str(self.total))
        seconds = time.monotonic() - job.started
        return f"[{self.done:>{width}}/{self.total}] {job} ({seconds:.1f} s){self.remaining()}"

    def remaining(self) -> str:
        """Return the estimate of the time left, for the end of a line; empty when nothing can be said."""
        rest = self.expected - self.earned
        if rest <= 0 or self.done >= self.total:
            return ""
        elapsed = time.monotonic() - self.started
        prior = 20.0  # expected seconds that count as done at the expected speed, so that the first estimates are calm
        speed = (self.earned + prior) / (elapsed + prior / self.cores)
        return f", about {duration(rest / speed)} left"


def duration(seconds: float) -> str:
    """Return a length of time in words: "8 s", "3 min 20 s", "2 h 5 min"."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def sentence_in(log: Path) -> str:
    """Return the last line that a failed job wrote, which says what was wrong."""
    try:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return "it left no message"
    return lines[-1].removeprefix("error: ") if lines else "it left no message"

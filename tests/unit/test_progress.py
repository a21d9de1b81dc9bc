"""Progress and the time left, from lines as Snakemake prints them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow/scripts"))

from progress import Progress, duration, sentence_in

HEAD = """Building DAG of jobs...
Job stats:
job               count
--------------  -------
run_experiment        2
build_table           1
default               1
total                 4

Select jobs to execute...
[Sat Nov 21 09:00:15 2026]
rule run_experiment:
    output: results/records/composition/stated/1-of-1.parquet, results/records/composition/stated/1-of-1.json
    log: results/logs/run_experiment/composition/stated/1-of-1.log
    jobid: 3
    reason: Missing output files: results/records/composition/stated/1-of-1.parquet
    wildcards: experiment=composition, variant=stated, part=1-of-1
"""


def fed(*texts: str) -> tuple[Progress, list[str]]:
    progress = Progress({"composition": 1, "distinct_counts": 1}, cores=2)
    shown = [line for text in texts for raw in text.splitlines() if (line := progress.feed(raw))]
    return progress, shown


def test_a_finished_job_is_shown_with_count_and_time_left() -> None:
    progress, shown = fed(HEAD, "Finished jobid: 3 (Rule: run_experiment)\n1 of 4 steps (25%) done\n")
    assert progress.total == 4 and progress.done == 1 and progress.made == 1
    [line] = shown
    assert line.startswith("[1/4] run_experiment composition stated 1-of-1 (")
    assert "about" in line and line.endswith("left")


def test_the_time_left_shrinks_as_costly_work_is_done() -> None:
    progress, _ = fed(HEAD)
    before = progress.expected - progress.earned
    progress.feed("Finished jobid: 3 (Rule: run_experiment)")
    assert progress.expected - progress.earned < 0.5 * before


def test_rules_that_only_gather_are_not_shown() -> None:
    target = "rule default:\n    input: a, b\n    jobid: 0\n"
    progress, shown = fed(HEAD, target, "Finished jobid: 0 (Rule: default)\n4 of 4 steps (100%) done\n")
    assert shown == [] and progress.made == 0 and progress.done == 4


def test_the_log_of_a_failed_job_is_found(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("warming up\nerror: b must be at most n = 300, got b = 500\n\n", encoding="utf-8")
    progress, _ = fed(HEAD, f"Error in rule build_table:\n    jobid: 1\n    log: {log} (check log file(s) for more)\n")
    assert progress.failed_logs == [str(log)]
    assert sentence_in(log) == "b must be at most n = 300, got b = 500"
    assert sentence_in(tmp_path / "none.log") == "it left no message"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text

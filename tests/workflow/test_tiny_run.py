"""The whole chain at its smallest: the same bytes however it is cut, nothing twice, one run a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from dpsub.reproduce import lock, records
from tests.workflow import runs
from tests.workflow.runs import RESULTS, ROOT


def test_everything_asked_for_is_made(finished: Path) -> None:
    made = set(runs.compared(finished))
    for name in ("table5", "table7"):
        assert {f"tables/must/{name}.{form}" for form in ("csv", "md", "tex")} <= made
    assert {f"figures/must/figure6.{form}" for form in ("csv", "pdf", "png")} <= made
    assert "comparison.csv" in made
    for name in ("report/index.html", "run/config.yaml", "run/environment.json", "run/verdicts.txt"):
        assert (finished / RESULTS / name).stat().st_size > 0
    assert not [path for path in (finished / RESULTS).rglob("*") if path.suffix in (".tmp", ".unfinished")]


def test_one_core_and_other_parts_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    parts = {name: {"parts": count} for name, count in {"subset_statistics": 3, "linear_regression": 1}.items()}
    other = runs.config(tmp_path / "parts.yaml", experiments=parts)
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, other), cores=1)
    assert status == 0, output
    assert runs.compared(tmp_path / "run") == runs.compared(finished)


def test_another_seed_gives_other_bytes(finished: Path, tmp_path: Path) -> None:
    other = runs.config(tmp_path / "seed.yaml", seed=1, artefacts=["table5"])
    status, output = runs.run(tmp_path / "run", "table5", configs=(runs.TINY, other))
    assert status == 0, output
    name = "tables/must/table5.csv"
    assert runs.compared(tmp_path / "run")[name] != runs.compared(finished)[name]


def test_the_report_says_what_jobs_took(finished: Path) -> None:
    page = (finished / RESULTS / "report/index.html").read_text(encoding="utf-8")
    found = re.search(r"Times: (\d+) s in (\d+) jobs", page)
    assert found is not None
    assert int(found[1]) > 0 and int(found[2]) >= 8  # all but the last ones
    assert "run_experiment/linear_regression" in page[found.end() :]


def test_a_second_run_does_nothing(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / RESULTS).rglob("*") if "logs" not in path.parts}
    status, output = runs.run(finished)
    assert status == 0, output
    assert "nothing to do" in output and RESULTS in output
    after = {path: path.stat().st_mtime_ns for path in (finished / RESULTS).rglob("*") if "logs" not in path.parts}
    assert {path for path in after if before.get(path) != after[path]} <= {finished / RESULTS / ".lock"}


def test_the_terminal_shows_progress_and_a_summary(tmp_path: Path) -> None:
    only = runs.config(tmp_path / "only.yaml", artefacts=["table5"])
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, only))
    assert status == 0, output
    lines = output.splitlines()
    assert any("run_experiment subset_statistics stated 1-of-1" in line and " left" in line for line in lines)
    assert any(line.startswith("finished") and " jobs in " in line for line in lines)
    assert any(line.startswith("verdicts of must (64 printed numbers):") for line in lines)
    assert f"read {RESULTS}/report/index.html" in output


def test_another_run_is_refused_while_one_works(tmp_path: Path) -> None:
    with lock.hold(tmp_path / RESULTS):
        status, output = runs.run(tmp_path)
    assert status == 1
    assert output.splitlines() == [
        f"error: one run at a time may use the results folder {RESULTS}, and process {os.getpid()} is running in it; "
        "wait for it, or set another results_dir"
    ]


def test_two_results_folders_may_be_made_at_once(finished: Path, tmp_path: Path) -> None:
    other = runs.config(tmp_path / "other.yaml", results_dir="results with spaces", artefacts=["table5"])
    both = [runs.start(tmp_path, "table5"), runs.start(tmp_path, "table5", configs=(runs.TINY, other))]
    for process in both:
        status, output = runs.finish(process)
        assert status == 0, output
    name = "tables/must/table5.csv"
    for results in (RESULTS, "results with spaces"):
        assert runs.compared(tmp_path, results)[name] == runs.compared(finished)[name]


def test_an_unknown_target_is_refused_with_the_nearest(tmp_path: Path) -> None:
    status, output = runs.run(tmp_path, "tabel5")
    assert (status, output) == (1, "error: unknown target 'tabel5'; did you mean 'table5'?\n")
    assert not (tmp_path / RESULTS).exists()


def test_a_failed_job_is_explained_in_a_sentence(tmp_path: Path) -> None:
    only = {
        "results_dir": RESULTS,
        "artefacts": ["figureS4"],
        "data": {"folder": None, "download": False, "fallback": "error"},
        "experiments": {"adult_logistic_trace": {"variants": ["stated"], "iterations": 5}},
    }
    status, output = runs.run(tmp_path / "run", configs=(runs.config(tmp_path / "only.yaml", **only),))
    assert status == 1
    assert "error: the files of adult must be there when the fallback is 'error'" in output
    assert "Traceback" not in output


def test_targets_have_names_in_plain_snakemake(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "snakemake", "-n", "--quiet", "-s", str(ROOT / "Snakefile"), "-c1"]
    done = subprocess.run(
        [*line, "--configfile", str(runs.TINY), "--", "table5", "figure6", "all"],
        cwd=tmp_path, env=runs.environment(), capture_output=True, text=True, timeout=runs.PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / RESULTS).exists()


def test_records_say_what_made_them(finished: Path) -> None:
    frame, origin = records.read(finished / RESULTS / "records/linear_regression/stated/2-of-2.parquet")
    assert sorted(set(frame["replicate"])) == [2, 3]
    assert (origin.experiment, origin.variant, origin.first, origin.stop) == ("linear_regression", "stated", 2, 4)
    assert len(origin.code_digest) == len(origin.config_digest) == 64
    assert origin.versions["numpy"]

"""The whole chain at its smallest, called as users of Snakemake call it: the same bytes in however
many pieces it is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsub.reproduce import configuration, crate, records
from dpsub.reproduce.plan import Plan
from tests.workflow import runs
from tests.workflow.conftest import Measured
from tests.workflow.runs import RESULTS, ROOT


def test_everything_asked_for_is_made(finished: Path) -> None:
    made = set(runs.compared(finished))
    for name in ("means", "walks"):
        assert {f"tables/example/{name}.{form}" for form in ("csv", "md", "tex")} <= made
    assert {f"figures/example/figure1.{form}" for form in ("csv", "pdf", "png")} <= made
    assert "comparison.csv" in made
    for name in (
        "report/index.html",
        "run/config.yaml",
        "run/environment.json",
        "run/verdicts.txt",
    ):
        assert (finished / RESULTS / name).stat().st_size > 0
    assert not list((finished / RESULTS).rglob("*.tmp"))


def test_the_crate_lists_what_is_there(finished: Path) -> None:
    described = json.loads((finished / RESULTS / "ro-crate-metadata.json").read_text("utf-8"))
    files = {entity["name"] for entity in described["@graph"] if entity["@type"] == "File"}
    assert {"comparison.csv", "tables/example/means.csv", "report/numbers.html"} <= files
    assert {"records/example_means/1-of-1.parquet", "run/verdicts.txt"} <= files
    assert list(crate.differences(finished / RESULTS)) == []


@pytest.mark.thorough
def test_a_table_edited_by_hand_is_noticed_and_made_again(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    table = tmp_path / "run" / RESULTS / "tables/example/means.csv"
    table.write_bytes(table.read_bytes().replace(b"1", b"2"))
    status, output = runs.run(tmp_path / "run")
    assert status == 1 and output.splitlines()[-1] == (
        f"error: {RESULTS}/tables/example/means.csv must be as it was made, got other bytes; "
        "delete it, and it is made again"
    )
    table.unlink()
    assert runs.run(tmp_path / "run")[0] == 0
    assert runs.compared(tmp_path / "run") == runs.compared(finished)


def test_it_ends_with_what_was_made_and_where_to_look(measured: Measured) -> None:
    lines = measured.output.splitlines()
    (first,) = (
        number
        for number, line in enumerate(lines)
        if line.startswith("3 of 3 tables, figures and lists")
    )
    assert (
        "not made at published settings (example_means, example_trace, example_walks)"
    ) in lines[first]
    assert "their verdicts are shown, not enforced" in lines[first]
    assert lines[first + 1] == f"made 2 tables, 1 figure in {RESULTS}, from 3 experiments"
    assert any(line.startswith("example, 8 printed numbers: ") for line in lines)
    assert (
        f"read {RESULTS}/report/index.html; every printed number is in {RESULTS}/comparison.csv"
    ) in lines
    assert len(lines) - first < 15 and "Traceback" not in measured.output


@pytest.mark.thorough
def test_one_core_and_other_parts_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    parts = {
        name: {"parts": count} for name, count in {"example_means": 3, "example_walks": 1}.items()
    }
    other = runs.config(tmp_path / "parts.yaml", experiments=parts)
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, other), cores=1)
    assert status == 0, output
    assert runs.compared(tmp_path / "run") == runs.compared(finished)


@pytest.mark.slow
def test_another_seed_gives_other_bytes(finished: Path, tmp_path: Path) -> None:
    other = runs.config(tmp_path / "seed.yaml", seed=1, artefacts=["means"])
    status, output = runs.run(tmp_path / "run", "means", configs=(runs.TINY, other))
    assert status == 0, output
    name = "tables/example/means.csv"
    assert f"made {RESULTS}/tables/example/means.md" in output
    assert runs.compared(tmp_path / "run")[name] != runs.compared(finished)[name]


def test_the_report_says_what_jobs_took(finished: Path) -> None:
    page = (finished / RESULTS / "report/index.html").read_text(encoding="utf-8")
    match = re.search(r"Times: (\d+) s in 4 jobs", page)
    assert match is not None and int(match[1]) > 0
    assert "example_walks" in page[match.end() :]


def test_a_second_run_does_nothing(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / RESULTS).rglob("*")}
    status, output = runs.run(finished)
    assert status == 0 and "Nothing to be done" in output
    assert {path: path.stat().st_mtime_ns for path in (finished / RESULTS).rglob("*")} == before


@pytest.mark.slow
def test_two_results_folders_may_be_made_at_once(finished: Path, tmp_path: Path) -> None:
    other = runs.config(
        tmp_path / "other.yaml", results_dir="results with spaces", artefacts=["means"]
    )
    both = [
        runs.start(tmp_path, "means"),
        runs.start(tmp_path, "means", configs=(runs.TINY, other)),
    ]
    for process in both:
        status, output = runs.finish(process)
        assert status == 0, output
    name = "tables/example/means.csv"
    for results in (RESULTS, "results with spaces"):
        assert runs.compared(tmp_path, results)[name] == runs.compared(finished)[name]


@pytest.mark.slow
def test_one_job_for_all_tables_of_a_paper_gives_the_same_bytes(
    finished: Path, tmp_path: Path
) -> None:
    small = runs.config(tmp_path / "small.yaml", size="smoke")
    status, output = runs.run(tmp_path, configs=(runs.TINY, small))
    assert status == 0, output
    assert (tmp_path / RESULTS / "logs/build_tables/example.log").exists()
    assert runs.compared(tmp_path) == runs.compared(finished)


@pytest.mark.thorough
def test_targets_have_names_long_and_where_unique_short(tmp_path: Path) -> None:
    status, output = runs.run(tmp_path, "-n", "example/means", "means", "example/figure1")
    assert (
        status == 0
        and re.search(r"^build_table +1$", output, re.M)
        and re.search(r"^build_figure +1$", output, re.M)
    )
    status, output = runs.run(tmp_path, "-n", "figure1")
    assert status == 1
    assert re.search(
        "'figure1' is the name of several artefacts; say which: .*example/figure1", output
    )
    assert "Traceback" not in output
    assert runs.run(tmp_path, "-n", "meanz")[0] == 1
    assert not (tmp_path / RESULTS).exists()


@pytest.mark.thorough
def test_a_dry_run_of_everything_names_each_experiment_and_is_short(tmp_path: Path) -> None:
    status, output = runs.run(tmp_path, "-n", configs=(), snakefile=ROOT / "Snakefile")
    assert status == 0, output
    listed = set(re.findall(r"^(?:simulate|train|account)_(\w+) +\d+$", output, re.M))
    config = configuration.load([ROOT / "config.yaml"])
    assert listed == set(Plan(config).experiments)
    # Snakemake shows the list twice, and each rule once or twice as a reason
    assert len(output.splitlines()) < 2 * len(listed) + 80 and len(output) < 14_000


@pytest.mark.thorough
def test_snakemake_has_nothing_to_complain_of() -> None:
    status, output = runs.run(ROOT, "--lint", configs=(), snakefile=ROOT / "Snakefile")
    assert status == 0 and "Congratulations" in output, output


MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "a key": ({"seeed": 3}, "unknown configuration key 'seeed'; did you mean 'seed'?"),
    "a folder": (
        {"artefacts": ["ages"], "data": {"folder": "nowhere"}},
        "the data folder must be an existing folder, got 'nowhere'; correct or remove it",
    ),
    "a name": (
        {"artefacts": ["meanz"]},
        "artefacts: unknown artefact 'meanz'; did you mean 'means'?",
    ),
}
"""Mistakes in a configuration and what is said of each."""


@pytest.mark.parametrize(
    "mistake",
    ["a folder", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("a key", "a name"))],
)
def test_a_mistake_ends_a_dry_run_in_one_sentence(mistake: str, tmp_path: Path) -> None:
    keys, sentence = MISTAKES[mistake]
    status, output = runs.run(tmp_path, "-n", configs=(runs.config(tmp_path / "own.yaml", **keys),))
    lines = [
        line for line in output.splitlines() if not line.startswith(("Using ", "Config file "))
    ]
    assert (status, lines) == (1, [f"error: {sentence}"])


@pytest.mark.slow
def test_a_plan_is_made_again_only_for_other_sources_settings_or_packages(tmp_path: Path) -> None:
    def plan_after(**changed: object) -> dict[str, object]:
        """Return the plan that a dry run leaves where it has found another one."""
        for path in folder.glob("*.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | changed), encoding="utf-8")
        status, output = runs.run(tmp_path, "-n", "means")
        assert status == 0, output
        (path,) = folder.glob("*.json")
        return dict(json.loads(path.read_text()))

    folder = tmp_path / ".snakemake/dpsub"
    made = plan_after()
    marked = plan_after(remark="this one", commit="an old one")
    assert marked == made | {"remark": "this one"}
    assert plan_after(remark="this one", versions={}) == made


@pytest.mark.thorough
def test_a_failed_job_is_explained_in_a_sentence(tmp_path: Path) -> None:
    only = {
        "results_dir": RESULTS,
        "artefacts": ["ages"],
        "data": {"folder": None, "download": False, "fallback": "error"},
    }
    status, output = runs.run(
        tmp_path / "run", configs=(runs.config(tmp_path / "only.yaml", **only),)
    )
    assert status == 1
    assert "error: the files of adult must be there when the fallback is 'error'" in output
    assert "Traceback" not in output


def test_records_say_what_made_them(finished: Path) -> None:
    frame, origin = records.read(finished / RESULTS / "records/example_walks/2-of-2.parquet")
    assert sorted(set(frame["replicate"])) == [2, 3]
    assert (origin.experiment, origin.first, origin.stop) == ("example_walks", 2, 4)
    assert len(origin.code_digest) == len(origin.config_digest) == 64
    assert origin.versions["numpy"]


MODULE = """
module audit:
    snakefile: {snakefile!r}
    config: {config}
    prefix: "audited"

use rule * from audit as audit_*

rule mine:
    default_target: True
    input: rules.audit_all.input
"""


@pytest.mark.slow
def test_it_is_a_module_of_another_workflow(finished: Path, tmp_path: Path) -> None:
    """The module has a prefix, and a configuration of its own, in a folder with nothing else."""
    own = {
        "artefacts": ["example/means"],
        "results_dir": "tiny",
        "experiments": {"example_means": {"replicates": 6}},
    }
    text = MODULE.format(snakefile=str(runs.project() / "workflow/Snakefile"), config=own)
    (tmp_path / "Snakefile").write_text(text, encoding="utf-8")
    status, output = runs.run(tmp_path, configs=(), snakefile=tmp_path / "Snakefile")
    assert status == 0, output
    made, whole = runs.compared(tmp_path, "audited/tiny"), runs.compared(finished)
    assert {name for name in made if "means" in name} == {name for name in whole if "means" in name}
    assert all(content == whole[name] for name, content in made.items() if "means" in name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".snakemake",
        "Snakefile",
        "audited",
    ]


LACKING = """
import sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "grimp":
            raise ModuleNotFoundError("No module named 'grimp'", name="grimp")
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.thorough
def test_without_what_dpsub_needs_it_says_what_to_do(tmp_path: Path) -> None:
    """A start file of Python's plants the fault in the process of Snakemake."""
    (tmp_path / "sitecustomize.py").write_text(LACKING, encoding="utf-8")
    done = dry_run(tmp_path)
    assert done.returncode == 1 and "ModuleNotFoundError" not in done.stdout
    assert (
        "the packages that dpsub needs must be installed where snakemake is, got no grimp; add "
        "`--sdm conda`"
    ) in done.stdout
    assert f"-m pip install -e '{runs.project()}[papers]'" in done.stdout
    assert 'File "' not in done.stdout


@pytest.mark.slow
def test_the_package_is_of_the_revision_of_the_rules(tmp_path: Path) -> None:
    (tmp_path / "dpsub").mkdir()
    (tmp_path / "dpsub/__init__.py").write_text("raise SystemExit('another one')\n")
    done = dry_run(tmp_path)
    assert done.returncode == 0, done.stdout


def dry_run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Ask Snakemake for its plan; modules in the folder stand before all others."""
    return subprocess.run(
        runs.command("-n"),
        cwd=folder,
        env=runs.environment() | {"PYTHONPATH": str(folder)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=runs.PATIENCE,
        check=False,
    )


def made_by(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Call make as from a clone, in an environment that is there."""
    binaries = folder / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    call = runs.command(configs=())
    script = (
        # the Makefile calls `python -m snakemake`, without these options
        f"#!/bin/sh\nshift 2\nexec {' '.join(call[:3])} --snakefile {runs.project()}/Snakefile "
        f'{" ".join(runs.OPTIONS[1:])} "$@"\n'
    )
    (binaries / "python").write_text(script, encoding="utf-8")
    (binaries / "python").chmod(0o755)
    words = (
        "make",
        "-f",
        str(runs.project() / "Makefile"),
        "-o",
        ".venv/.complete",
        f"BIN={binaries}",
        *words,
    )
    return subprocess.Popen(
        words,
        cwd=folder,
        env=runs.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.skipif(
    shutil.which("flock") is None, reason="make keeps runs apart by flock of util-linux"
)
@pytest.mark.slow
def test_of_two_runs_of_one_target_one_works(tmp_path: Path) -> None:
    (tmp_path / "workflow").mkdir()
    shutil.copy(runs.TINY, tmp_path / "workflow/smoke.yaml")
    both = sorted(
        (runs.finish(one) for one in [made_by(tmp_path, "CORES=1", "smoke") for _ in range(2)]),
        reverse=True,
    )
    (refused, sentence), (status, output) = both
    assert (refused, status) == (2, 0), both
    said = (
        "error: only one `make smoke` may run in a folder, and another one is running; wait "
        "for it\n"
    )
    assert said in sentence
    assert f"read {RESULTS}/report/index.html" in output
    assert os.access(tmp_path / ".snakemake/smoke.lock", os.F_OK)

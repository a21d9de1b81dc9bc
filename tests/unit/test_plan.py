"""The plan: the work follows from the configuration and the registries alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import artefacts, configuration, experiments, settings
from dpsub.reproduce.papers import papers
from dpsub.reproduce.plan import Plan
from tests.gone import needs_all_papers

ROOT = Path(__file__).resolve().parents[2]
WHOLE = configuration.load([ROOT / "config.yaml"])
SPLIT = min(
    name
    for name, settings in WHOLE["experiments"].items()
    if {"parts", "replicates"} <= {*settings} and len(settings["variants"]) > 1
)
"""An experiment of several jobs and variants."""


@pytest.fixture
def plan() -> Plan:
    return Plan(WHOLE)


@needs_all_papers
def test_every_artefact_is_planned_once_in_the_order_of_the_paper(plan: Plan) -> None:
    names = [product.artefact.identifier for product in plan.products]
    together = [
        kind for kind in artefacts.REGISTRY.members().values() if not papers()[kind.paper].apart
    ]
    assert len(names) == len(set(names)) == len(together) < len(artefacts.REGISTRY.names())
    papers_in_order = [name.partition("/")[0] for name in names]
    assert papers_in_order == sorted(papers_in_order, key=[*papers()].index)


def test_a_short_name_is_a_target_where_it_is_unique(plan: Plan) -> None:
    names = [product.artefact.identifier for product in plan.products]
    short = {name: [one for one in names if one.endswith(f"/{name}")] for name in plan.ambiguous}
    unique = min(name for name in plan.targets if "/" not in name)
    (long,) = (name for name in names if name.endswith(f"/{unique}"))
    assert plan.targets[unique] is plan.targets[long]
    assert plan.ambiguous and plan.ambiguous.isdisjoint(plan.targets)
    for name, said in (
        *(
            (name, f"is the name of several artefacts; say which: {short[name][0]}, ")
            for name in short
        ),
        (f"{unique}x", f"unknown artefact '{unique}x'; did you mean '{unique}'?"),
    ):
        with pytest.raises(PlanError, match=f"^artefacts: .*{re.escape(said)}"):
            Plan({**WHOLE, "artefacts": [name]})


def test_verdicts_are_expected_of_what_is_made_at_published_settings(plan: Plan) -> None:
    assert (
        plan.published == [product.artefact.identifier for product in plan.products]
        and plan.remark == ""
    )
    parts = {SPLIT: {"parts": 3}}  # says where, not what
    assert not Plan(configuration.validate({"experiments": parts})).changed
    smaller = Plan(configuration.validate({"experiments": {SPLIT: {"replicates": 10}}}))
    assert smaller.changed == (SPLIT,)
    assert {*plan.published} - {*smaller.published} == {
        product.artefact.identifier
        for product in plan.products
        if SPLIT in product.artefact.experiments
    }
    assert smaller.remark.startswith(
        f"{len(plan.published) - len(smaller.published)} of {len(plan.published)} tables"
    )
    variants = WHOLE["experiments"][SPLIT]["variants"]
    fewer = Plan(configuration.validate({"experiments": {SPLIT: {"variants": variants[:1]}}}))
    assert fewer.published == smaller.published
    other = Plan({**WHOLE, "seed": 1})
    assert other.published == [] and "got 1: verdicts are shown, not enforced" in other.remark


def test_verdicts_are_not_expected_of_what_reads_other_records(plan: Plan) -> None:
    """The settings of another experiment count where its records are read."""
    read = {
        one: experiments.REGISTRY.get(one).needs_records
        for product in plan.products
        for one in product.artefact.experiments
    }
    first = min(one for needed in read.values() for one in needed)
    changed = {first: {"variants": WHOLE["experiments"][first]["variants"][:1]}}
    smaller = Plan(configuration.validate({"experiments": changed}))
    through = {
        product.artefact.identifier
        for product in plan.products
        if any(first in read[one] for one in product.artefact.experiments)
    }
    assert through and through.isdisjoint(smaller.published)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 200])
def test_parts_cover_the_replicates_without_overlap(parts: int) -> None:
    config = settings.merge(WHOLE, {"experiments": {SPLIT: {"parts": parts, "replicates": 200}}})
    found = Plan(config).parts(SPLIT)
    assert [number for part in found for number in range(part.first, part.stop)] == list(range(200))
    assert all(part.stop > part.first for part in found)
    assert [part.part for part in found] == [
        f"{number}-of-{parts}" for number in range(1, parts + 1)
    ]


def test_no_two_files_have_one_name(plan: Plan) -> None:
    files = [
        *plan.records(*plan.experiments),
        *(path for product in plan.products for path in product.files.values()),
    ]
    assert len(files) == len(set(files))
    assert all(path.is_relative_to("results") for path in files)


def test_clock_times_are_kept_apart(plan: Plan) -> None:
    timed = {name for name in plan.experiments if experiments.REGISTRY.get(name).timed}
    assert timed < {*plan.experiments}
    assert all("time" in name for name in timed)
    for path in plan.records(*timed):
        assert path.is_relative_to("results/run/timings/records")
    for product in plan.products:
        shown = [path for role, path in product.files.items() if role != "comparison"]
        assert {path.is_relative_to("results/run/timings") for path in shown} == {
            product.artefact.timed
        }


def test_artefacts_asked_for_by_name_bring_only_their_experiments() -> None:
    chosen = [
        product.artefact
        for product in Plan(WHOLE).products
        if product.artefact.experiments
        and not any(
            experiments.REGISTRY.get(name).needs_records for name in product.artefact.experiments
        )
    ]
    first, last = chosen[0], chosen[-1]
    plan = Plan({**WHOLE, "artefacts": [last.identifier, first.identifier]})
    made = [product.artefact.identifier for product in plan.products]
    assert made == [first.identifier, last.identifier]
    assert {*plan.experiments} == {*first.experiments, *last.experiments}


def test_results_folders_do_not_share_prepared_data() -> None:
    folders = ["results", "results-smoke", "/elsewhere/results", "a/b"]
    files = {Plan({**WHOLE, "results_dir": folder}).data_file("adult") for folder in folders}
    assert len(files) == len(folders)
    assert all(path.parts[:2] == ("data", "interim") and ".." not in path.parts for path in files)


@pytest.mark.parametrize("folder", [".", "..", "/", "results/.."])
def test_results_do_not_mix_with_the_project(folder: str) -> None:
    with pytest.raises(
        PlanError,
        match=r"^results_dir must be a folder of its own, got .*; name a "
        r"new folder",
    ):
        Plan({**WHOLE, "results_dir": folder})


def test_a_plan_and_its_jobs_load_no_library_that_few_computations_use() -> None:
    """Each job starts a Python of its own; these take longer to import than most jobs compute."""
    program = (
        "import sys; from dpsub.reproduce import experiments, planned;"
        "experiments.REGISTRY.names();"
        "print(*{'scipy.stats', 'sklearn', 'matplotlib', 'sphinx'}.intersection(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr

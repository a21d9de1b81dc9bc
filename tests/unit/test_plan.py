"""The plan: what is made follows from the configuration and the registries alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import artefacts, configuration, experiments, settings
from dpsub.reproduce.papers import papers
from dpsub.reproduce.plan import Plan
from tests.gone import needs_all_papers

# whose tables and experiments are the material of all tests here
pytestmark = pytest.mark.needs("must", "balle", "brdp", "importance")

ROOT = Path(__file__).resolve().parents[2]
WHOLE = configuration.load([ROOT / "config.yaml"])


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
    assert names[:9] == [f"must/table{number}" for number in range(2, 11)]
    assert names[9:15] == [f"must/figure{number}" for number in range(1, 7)]
    assert names[15:19] == [f"must/figureS{number}" for number in range(1, 5)]


@needs_all_papers
def test_a_short_name_is_a_target_where_it_is_unique(plan: Plan) -> None:
    assert plan.targets["table8"] is plan.targets["must/table8"]
    assert "table1" not in plan.targets and "balle/table1" in plan.targets
    assert "table1" in plan.ambiguous and plan.ambiguous.isdisjoint(plan.targets)
    for name, said in (
        (
            "table1",
            "is the name of several artefacts; say which: balle/table1, brdp/table1, importance",
        ),
        ("table88", "unknown artefact 'table88'; did you mean 'table8'?"),
    ):
        with pytest.raises(PlanError, match=f"^artefacts: .*{re.escape(said)}"):
            Plan({**WHOLE, "artefacts": [name]})


def test_verdicts_are_expected_of_what_is_made_at_published_settings(plan: Plan) -> None:
    assert (
        plan.published == [product.artefact.identifier for product in plan.products]
        and plan.remark == ""
    )
    parts = {"adult_logistic": {"parts": 3}}  # says where, not what
    assert not Plan(configuration.validate({"experiments": parts})).changed
    smaller = Plan(configuration.validate({"experiments": {"adult_logistic": {"replicates": 10}}}))
    assert smaller.changed == ("adult_logistic",)
    assert {*plan.published} - {*smaller.published} == {
        product.artefact.identifier
        for product in plan.products
        if "adult_logistic" in product.artefact.experiments
    }
    assert smaller.remark.startswith(
        f"{len(plan.published) - len(smaller.published)} of {len(plan.published)} tables"
    )
    fewer = Plan(
        configuration.validate({"experiments": {"adult_logistic": {"variants": ["stated"]}}})
    )
    assert fewer.published == smaller.published
    other = Plan({**WHOLE, "seed": 1})
    assert other.published == [] and "got 1: verdicts are shown, not enforced" in other.remark
    noise = Plan(
        configuration.validate({"experiments": {"importance_noise": {"variants": ["stated"]}}})
    )
    assert "importance/figure3" not in noise.published  # the clustering reads its records


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 200])
def test_parts_cover_the_replicates_without_overlap(parts: int) -> None:
    config = settings.merge(
        WHOLE, {"experiments": {"subset_statistics": {"parts": parts, "variants": ["stated"]}}}
    )
    found = Plan(config).parts("subset_statistics")
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
    assert {"peer_times", "sampling_time"} <= timed < {*plan.experiments}
    assert all("time" in name for name in timed)
    for path in plan.records(*timed):
        assert path.is_relative_to("results/run/timings/records")
    for product in plan.products:
        shown = [path for role, path in product.files.items() if role != "comparison"]
        assert {path.is_relative_to("results/run/timings") for path in shown} == {
            product.artefact.timed
        }


def test_artefacts_asked_for_by_name_bring_only_their_experiments() -> None:
    plan = Plan({**WHOLE, "artefacts": ["table9", "must/table5"]})
    assert [product.artefact.identifier for product in plan.products] == [
        "must/table5",
        "must/table9",
    ]
    assert plan.experiments == ("distinct_counts", "subset_statistics")


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

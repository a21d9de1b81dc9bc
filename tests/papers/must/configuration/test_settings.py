"""Configurations: merging, canonical form, digests, and a schema that is closed and described at
every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpsub import streams
from dpsub.reproduce import configuration, experiments, provenance, settings, yaml_files
from dpsub.reproduce.papers import papers
from dpsub.reproduce.plan import Plan

ROOT = Path(__file__).resolve().parents[4]


def test_the_schema_is_closed() -> None:
    found = configuration.schema()
    parts = [found, *(part for part in found["$defs"].values() if part["type"] == "object")]
    assert len(parts) > 50
    assert all(part["additionalProperties"] is False for part in parts)


def test_a_shared_group_changes_every_experiment_that_has_it() -> None:
    shared = {"must": {"experiment3": {"clip": 1}}}
    config = configuration.validate(
        {
            "seed": 1,
            "results_dir": "results",
            "papers": ["must"],
            "shared": shared,
            "experiments": {"adult_logistic_trace": {"clip": 2}},
        }
    )["experiments"]
    assert config["adult_logistic"]["clip"] == config["composition"]["table8"]["clip"] == 1
    assert config["noise_calibration"]["tables"]["table8"]["clip"] == 1
    assert config["adult_logistic_trace"]["clip"] == 2  # its own word is the last


FULL = [
    paper.folder / "full.yaml"
    for paper in papers().values()
    if (paper.folder / "full.yaml").exists()
]


@pytest.mark.parametrize("path", [ROOT / "workflow/smoke.yaml", *FULL], ids=str)
def test_the_configurations_of_the_project_are_valid(path: Path) -> None:
    plan = Plan(configuration.load([ROOT / "config.yaml", path]))
    assert plan.products and plan.records(*plan.experiments)


@pytest.mark.parametrize("path", FULL, ids=str)
def test_one_paper_at_full_size_leaves_out_the_others(path: Path) -> None:
    plan = Plan(configuration.load([ROOT / "config.yaml", path]))
    assert {product.artefact.paper for product in plan.products} == {path.parent.name}
    assert {experiments.REGISTRY.get(name).paper for name in plan.experiments} == {path.parent.name}
    assert len({one.paper for one in experiments.REGISTRY.members().values()}) > 1


def test_at_smoke_size_the_papers_say_what_is_small_and_a_configuration_has_the_last_word() -> None:
    small = yaml_files.read(papers()["must"].folder / "smoke.yaml")["experiments"][
        "linear_regression"
    ]["iterations"]
    whole = {"seed": 1, "results_dir": "results"}
    assert configuration.validate(whole)["experiments"]["linear_regression"]["iterations"] > small
    smoke = {**whole, "size": "smoke"}
    assert configuration.validate(smoke)["experiments"]["linear_regression"]["iterations"] == small
    over = {"linear_regression": {"iterations": small + 1}, "composition": None}
    mine = configuration.validate({**smoke, "experiments": over})
    assert mine["experiments"]["linear_regression"]["iterations"] == small + 1
    assert "composition" not in mine["experiments"]
    alone = configuration.validate({**smoke, "papers": ["must"]})["experiments"]
    assert {experiments.REGISTRY.get(name).paper for name in alone} == {"must"}


def test_the_full_configuration_runs_every_experiment_of_papers_that_are_not_made_apart() -> None:
    """A paper made apart is included where a configuration names it, and at smoke size."""
    of_paper = {name: kind.paper for name, kind in experiments.REGISTRY.members().items()}
    config = configuration.load([ROOT / "config.yaml"])
    apart = {key for key, paper in papers().items() if paper.apart}
    assert set(config["experiments"]) == {
        name for name, paper in of_paper.items() if paper not in apart
    }
    assert not {one.artefact.paper for one in Plan(config).products} & apart
    small = configuration.load([ROOT / "config.yaml", ROOT / "workflow/smoke.yaml"])
    assert set(small["experiments"]) == set(of_paper)
    for key in apart:
        alone = configuration.validate({**config, "experiments": {}, "papers": [key]})
        assert set(alone["experiments"]) == {
            name for name, paper in of_paper.items() if paper == key
        }


def test_merging_goes_level_by_level_and_replaces_lists() -> None:
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 1}
    assert settings.merge(base, {"a": {"y": [3]}, "c": None}) == {
        "a": {"x": 1, "y": [3]},
        "b": 1,
        "c": None,
    }
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": 1}


def test_equal_numbers_have_equal_digests() -> None:
    assert streams.canonical({"m": 30.0, "n": np.int64(300)}) == {"m": 30, "n": 300}
    digest = provenance.settings_digest
    assert digest({"m": 30, "n": 300}) == digest({"n": np.float64(300), "m": 30.0})
    assert digest({"m": 30}) != digest({"m": 31})


def test_the_split_into_parts_is_not_part_of_the_configuration_of_records() -> None:
    first = configuration.load([ROOT / "config.yaml"])
    second = settings.merge(first, {"experiments": {"subset_statistics": {"parts": 7}}})
    changes = ({"m": 31}, {"variants": ["stated"]})
    others = [
        settings.merge(first, {"experiments": {"subset_statistics": over}}) for over in changes
    ]
    digests = [
        Plan(config).config_digest("subset_statistics") for config in (first, second, *others)
    ]
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_an_experiment_set_to_null_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "less.yaml").write_text("experiments: {adult_logistic: null}\n", encoding="utf-8")
    plan = Plan(configuration.load([ROOT / "config.yaml", tmp_path / "less.yaml"]))
    assert "adult_logistic" not in plan.experiments
    assert "table8" not in plan.targets and "table9" in plan.targets


def test_a_group_that_is_said_for_all_reaches_those_that_have_it_under_its_name() -> None:
    """Two experiments of the main paper have a part called table8; one of them knows no epsilon."""
    found = configuration.validate({"shared": {"must": {"table8": {"epsilon": 3}}}})["experiments"]
    assert found["composition"]["table8"]["epsilon"] == 3
    assert "epsilon" not in found["noise_calibration"]["tables"]["table8"]


def test_artefacts_are_planned_in_the_order_of_the_paper() -> None:
    plan = Plan(configuration.load([ROOT / "config.yaml"]))
    names = [product.artefact.identifier for product in plan.products]
    names = [name for name in names if name.startswith("must/")]
    assert names[:9] == [f"must/table{number}" for number in range(2, 11)]
    assert names[9:15] == [f"must/figure{number}" for number in range(1, 7)]
    assert names[15:19] == [f"must/figureS{number}" for number in range(1, 5)]

"""Cells of the fair comparison: which are refused, in which words, and which cells a grid stands
for."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.questions import search
from dpsub.errors import ArgumentError, PlanError
from dpsub.papers.fair.experiments.cells import (
    calibrate,
    cell_of,
    expanded,
    fields_of,
    other_relations,
)
from dpsub.papers.fair.experiments.comparison import FairComparison
from dpsub.papers.fair.figures import style_of
from dpsub.papers.fair.settings import FairEntry
from dpsub.reproduce.study.cells import plan_of
from dpsub.reproduce.study.noise import check_reach
from tests.few import few

GOOD: dict[str, Any] = {
    "dataset": "breast_cancer",
    "samplers": "must_ow",
    "m": 40,
    "b": 80,
    "steps": 10,
    "target_epsilon": 1,
}
REFUSED = [
    ({"b": 500}, "b must be at most n = 426, got b = 500"),
    ({"b": []}, "must_ow needs b, the size of the first stage, got none"),
    ({"samplers": "wor", "m": 427}, "m must be at most n = 426, got m = 427"),
    ({"samplers": "must_oo", "b": 30}, "m must be at most b = 30, got m = 40"),
    (
        {"dataset": "breast_cancers"},
        "unknown data set 'breast_cancers'; did you mean 'breast_cancer'?",
    ),
    ({"samplers": "must_ov"}, "unknown sampler 'must_ov'; did you mean 'must_wo'?"),
    (
        {"samplers": "wor:50,wr:30"},
        "m must be the 30 slots that the chain 'wor:50,wr:30' leaves, got m = 40",
    ),
    ({"samplers": "wor:50,wx:40"}, "unknown kind of stage 'wx'; "),
    ({"samplers": "wor:fifty"}, "the size of a stage must be a number, got 'wor:fifty'"),
    ({"samplers": "poisson:0.5,wr:40"}, "can only be the last stage"),
    ({"samplers": ["wor", "wor"]}, "grid[0].samplers must not repeat a value"),
    ({"target_delta": 1}, "grid[0].target_delta[0] must be below 1, got 1"),
    (
        {"target_epsilon": []},
        "samplers other than nonprivate need a target_epsilon, got none; add it",
    ),
    ({"steps": 0}, "grid[0].steps[0] must be at least 1, got 0"),
    (
        {"step": 1},
        "unknown configuration key 'experiments.fair_comparison.grid[0].step'; did you "
        "mean 'steps'?",
    ),
    ({"samplers": "deterministic"}, "steps of deterministic must make whole epochs of 11, got 10"),
    (
        {"samplers": "cyclic_poisson"},
        "cyclic_poisson needs a whole number, the cycle, got 'cyclic_poisson'",
    ),
    ({"samplers": "cyclic_poisson:20"}, "m must be at most n / cycle = 21, got m = 40"),
    (
        {"samplers": "deterministic", "dataset": "bootstrap_mean", "steps": 8},
        "interval is that of chains of stages",
    ),
    (
        {"samplers": "wor", "m": 400, "steps": 10**7, "target_epsilon": 0.01},
        "of at most 10000, got wor with m = 400",
    ),
]


def grid(*entries: dict[str, Any]) -> tuple[FairEntry, ...]:
    found: tuple[FairEntry, ...] = FairComparison.settings({"grid": list(entries)}).grid
    return found


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_a_cell_that_cannot_be_is_refused_in_a_sentence(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=re.escape(message)):
        grid(GOOD | change)


def test_noise_without_replacement_is_that_of_the_tight_bound() -> None:
    (cell,) = expanded(grid({**GOOD, "samplers": "wor", "b": [], "steps": 100}), "rigorous")
    found, quick = (
        calibrate(cell),
        search.calibrate(
            cell.plan,
            426,
            epsilon=1.0,
            delta=1e-5,
            steps=100,
            accuracy=5e-3,
            adjacency="substitute",
        ),
    )
    assert found.necessary < found.noise_multiplier <= 1.03 * found.necessary
    assert found.noise_multiplier < 0.99 * quick.noise_multiplier
    assert found.epsilon_lower <= found.epsilon_upper <= 1.0


def test_weaker_relations_need_less_noise() -> None:
    poisson, wor, must_oo, must_ow = (
        next(
            expanded(
                grid({**GOOD, "samplers": name, "b": [80] * name.startswith("must_")}), "rigorous"
            )
        )
        for name in ("poisson", "wor", "must_oo", "must_ow")
    )
    plain, fixed = (other_relations(cell, several=False) for cell in (poisson, wor))
    assert (
        plain.noise_add_remove
        == plain.noise_zero_out
        < fixed.noise_zero_out
        < fixed.noise_add_remove
    )
    assert fixed.noise_add_remove < 1.01 * calibrate(wor).noise_multiplier
    assert other_relations(must_oo, several=False) == fixed  # one law
    assert math.isnan(other_relations(must_ow, several=False).noise_add_remove)
    several = other_relations(must_ow, several=True)
    assert fixed.noise_add_remove < several.necessary_add_remove < several.noise_add_remove
    assert math.isnan(several.noise_zero_out)


def test_a_chain_is_the_sampler_that_its_stages_describe() -> None:
    (cell,) = expanded(grid(GOOD), "rigorous")
    law = plan_of("wor:80,wr:40", n=426, m=40, b=None).multiplicity_law(426)
    assert law.pmf == pytest.approx(cell.plan.multiplicity_law(426).pmf, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "schedule"),
    few(
        [
            ("cyclic_poisson:10", dpsub.CyclicPoisson(400 / 426, 10)),
            ("deterministic", dpsub.Deterministic(40)),
            ("shuffle", dpsub.Shuffle(40)),
            ("random_allocation", dpsub.RandomAllocation(11)),
        ],
        most=3,
        more=0,
    ),
)
def test_a_schedule_is_trained_on_and_accounted_for_as_that_schedule(
    name: str, schedule: Any
) -> None:
    assert plan_of(name, n=426, m=40, b=None) == schedule
    steps = 2 * schedule.steps_per_epoch(426)
    entry = {
        "dataset": "breast_cancer",
        "samplers": [name, "wor"],
        "m": 40,
        "steps": steps,
        "target_epsilon": 3,
    }
    records = FairComparison().compute(
        {"grid": [entry]}, variant="rigorous", replicates=range(2), seed=1
    )
    mine, others = (records[records["sampler"] == one] for one in (name, "wor"))
    noise = float(mine["noise_multiplier"].iloc[0])
    found = dpsub.account(
        schedule, 426, noise_multiplier=noise, epochs=2, delta=1e-5, adjacency="substitute"
    )
    assert (
        found.upper == pytest.approx(float(mine["epsilon_upper"].iloc[0]), rel=1e-2)
        and found.upper <= 3
    )
    # a planted fault would be the noise of fresh batches
    assert abs(np.log(noise / float(others["noise_multiplier"].iloc[0]))) > 0.3
    assert (mine["accuracy"] > 0.5).all()
    assert mine["gradients"].mean() == pytest.approx(
        float(mine["gradients_expected"].iloc[0]), rel=0.1
    )
    assert style_of(name)["color"] == schedule.colour != style_of("wor:60,wr:40")["color"]
    with pytest.raises(ArgumentError, match="take rigorous only"):
        list(expanded(grid(entry), "consistent"))


def test_a_grid_is_all_combinations_once() -> None:
    entry = {
        "dataset": ["linear", "adult"],
        "samplers": ["nonprivate", "poisson", "must_ow"],
        "m": [50, 100],
        "b": [200, 400],
        "steps": 10,
        "target_epsilon": [1, 2],
    }
    cells = list(expanded(grid(entry), "consistent"))
    assert len({tuple(fields_of(cell).values()) for cell in cells if cell.private}) == 2 * 2 * 2 * (
        1 + 2
    )
    assert [cell.sampler for cell in cells].count("nonprivate") == 2 * 2 == len(cells) - 24
    assert {cell.b for cell in cells if cell.sampler != "must_ow"} == {None}
    for one, read in ((entry, ("adult",)), (GOOD, ())):
        assert FairComparison().data_of(FairComparison.settings({"grid": [one]})) == read
    with pytest.raises(
        PlanError, match="a grid must hold each cell once, got poisson on linear twice"
    ):
        grid(entry, {**entry, "samplers": ["poisson"]})


def test_cells_cost_what_the_whole_costs() -> None:
    experiment = FairComparison()
    entry = {
        "dataset": "linear",
        "samplers": ["nonprivate", "wor"],
        "m": 20,
        "steps": 5,
        "target_epsilon": [2, 4],
    }
    whole = experiment.settings({"grid": [entry], "replicates": 3})
    cells = [one.model_dump() for one in experiment.cells(whole)]
    costs = [experiment.cost(experiment.settings(one)) for one in cells]
    assert experiment.cost(whole).setup == pytest.approx(sum(cost.setup for cost in costs))
    assert costs[0].setup < 1 < costs[1].setup, "without privacy nothing is calibrated"
    more = experiment.cost(
        experiment.settings(cells[1] | {"replicates": 40, "grid": [GOOD | {"steps": 1000}]})
    )
    assert more.replicate > costs[1].replicate and more.memory > costs[1].memory


def test_a_hundred_thousand_cells_are_made_in_seconds() -> None:
    start = time.process_time()
    for b in range(200, 1200):
        sizes = {"m": 100, "b": b, "steps": 100, "target_epsilon": 1.0, "target_delta": 1e-5}
        check_reach(cell_of("must_ww", "linear", **sizes))
    assert (time.process_time() - start) * 100 < 20

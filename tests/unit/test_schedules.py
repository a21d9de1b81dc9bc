"""Accounts of schedules: exact ones against closed forms and Poisson sampling, ledgers, refusals,
extreme sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dpsub
from dpsub.errors import ArgumentError, DpsubError, UnsupportedError
from dpsub.noise import GaussianProfile
from tests.few import few

ASKED = {"noise_multiplier": 2.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("adjacency", "distance"), [("add_remove", 1), ("zero_out", 1), ("substitute", 2)]
)
def test_an_epoch_in_order_is_one_gaussian_step(adjacency: str, distance: int) -> None:
    found = dpsub.account(
        dpsub.Deterministic(7),
        100,
        noise_multiplier=5.0,
        epochs=9,
        epsilon=1.0,
        adjacency=adjacency,
    )
    delta = float(GaussianProfile(distance * 3 / 5).delta(1.0))
    assert found.kind == "exact"
    assert found.lower <= delta <= found.upper <= 1.01 * found.lower


def test_a_record_more_must_not_make_an_epoch_longer() -> None:
    """With 1001 records in steps of 100 an epoch has 11 steps: the number of outputs tells the data
    sets apart."""
    asked: dict[str, Any] = {**ASKED, "epochs": 2}
    with pytest.raises(UnsupportedError, match="it does where m divides n; use zero_out"):
        dpsub.account(dpsub.Deterministic(100), 1000, adjacency="add_remove", **asked)
    ledger = dpsub.Ledger().add(dpsub.Deterministic(100), 1000, noise_multiplier=2.0, epochs=2)
    with pytest.raises(UnsupportedError, match="must not gain a step when a record is added"):
        ledger.account(delta=1e-6, adjacency="add_remove")
    kept = dpsub.account(dpsub.Deterministic(100), 1000, adjacency="zero_out", **asked)
    uneven = dpsub.account(dpsub.Deterministic(100), 1001, adjacency="add_remove", **asked)
    whole = dpsub.account(dpsub.Deterministic(), 1000, adjacency="add_remove", **asked)
    assert kept.kind == "exact" and kept.upper == uneven.upper == whole.upper
    said = "both data sets have the same steps per epoch, with the same other records in each"
    assert [any(said in line for line in found.conditions) for found in (kept, uneven, whole)] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("sampler", "n"),
    [
        (dpsub.Deterministic(7), 100),
        (dpsub.CyclicPoisson(0.2, 5), 100),
        (dpsub.RandomAllocation(5), 100),
        (dpsub.TruncatedPoisson(0.2, 30), 100),
        (dpsub.Poisson(0.2), 100),
        (dpsub.Wor(20), 100),
        (dpsub.MustWW(20, 9), 99),
    ],
)
def test_the_number_of_records_is_public_only_where_data_sets_agree_in_it(
    sampler: Any, n: int
) -> None:
    public = "the number of records and all sizes or rates are public"
    more = "the neighbouring data sets have n and n + 1 records"
    replaced = dpsub.account(sampler, n, adjacency="substitute", **ASKED).conditions
    added = dpsub.account(sampler, n, adjacency="add_remove", **ASKED).conditions
    assert public in replaced and public not in added
    assert sum("the same with and without the record" in line for line in added) == 1
    by_n = isinstance(sampler, dpsub.TruncatedPoisson | dpsub.Wor | dpsub.MustWW)
    assert (more in added) == by_n and more not in replaced


def test_a_plan_of_places_asks_who_else_is_there() -> None:
    """When records are dealt in turn and one is removed, all behind it change their groups."""
    said = "an added record comes last, and a removed one leaves its place empty"
    for adjacency in ("add_remove", "zero_out"):
        found = dpsub.account(dpsub.CyclicPoisson(0.2, 5), 99, adjacency=adjacency, **ASKED)
        assert any(said in line for line in found.conditions) == (adjacency == "add_remove")


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "substitute"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_cycle_is_one_step_of_poisson_sampling(adjacency: str, mechanism: str) -> None:
    asked: dict[str, Any] = {**ASKED, "adjacency": adjacency, "mechanism": mechanism}
    cyclic = dpsub.account(dpsub.CyclicPoisson(0.2, 50), epochs=30, **asked)
    poisson = dpsub.account(dpsub.Poisson(0.2), steps=30, **asked)
    assert (cyclic.lower, cyclic.upper, cyclic.kind) == (poisson.lower, poisson.upper, "exact")
    assert any("the group of a record" in line for line in cyclic.conditions)
    assert not any("all stages drawn anew" in line for line in cyclic.conditions)
    # a planted fault: one epoch left out
    assert dpsub.account(dpsub.CyclicPoisson(0.2, 50), epochs=29, **asked).upper < cyclic.lower


def test_steps_are_counted_in_whole_epochs() -> None:
    schedule = dpsub.CyclicPoisson(0.2, 50)
    assert dpsub.account(schedule, steps=100, **ASKED) == dpsub.account(schedule, epochs=2, **ASKED)
    assert dpsub.account(schedule, **ASKED) == dpsub.account(schedule, epochs=1, **ASKED)
    for wrong in ({"steps": 51}, {"epochs": 0}, {"epochs": 1.5}, {"steps": 50, "epochs": 1}):
        with pytest.raises(ArgumentError, match="epochs"):
            dpsub.account(schedule, **ASKED, **wrong)  # type: ignore[arg-type]


def test_default_adjacencies() -> None:
    assert dpsub.account(dpsub.CyclicPoisson(0.2, 50), **ASKED).adjacency == "add_remove"
    assert dpsub.account(dpsub.Deterministic(), **ASKED).adjacency == "add_remove"


def test_schedules_mix_with_samplers_in_a_ledger(tmp_path: Any) -> None:
    ledger = dpsub.Ledger().add(dpsub.CyclicPoisson(0.1, 20), noise_multiplier=2.0, epochs=10)
    ledger.record(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=10)
    one = dpsub.account(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=20, delta=1e-6)
    both = ledger.account(delta=1e-6)
    assert both.kind == "exact" and both.upper == pytest.approx(one.upper, rel=2e-3)
    ledger.save(tmp_path / "ledger.json")
    assert dpsub.Ledger.load(tmp_path / "ledger.json").account(delta=1e-6) == both
    budget: dict[str, Any] = {"noise_multiplier": 2.0, "epsilon": 2.0, "delta": 1e-6}
    left = ledger.steps_left(dpsub.CyclicPoisson(0.1, 20), **budget)
    assert left % 20 == 0 and left // 20 == ledger.steps_left(dpsub.Poisson(0.1), **budget) > 0


def test_noise_is_calibrated_for_epochs() -> None:
    target: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "accuracy": 0.01}
    found = dpsub.calibrate(dpsub.CyclicPoisson(0.05, 10), epochs=20, **target)
    assert (
        found.account.upper <= 1
        and found.refuted is not None
        and found.refuted < found.noise_multiplier
    )
    assert (
        found.noise_multiplier
        == dpsub.calibrate(dpsub.Poisson(0.05), steps=20, **target).noise_multiplier
    )


@pytest.mark.parametrize(
    ("schedule", "n"),
    [
        (dpsub.Deterministic(), None),
        (dpsub.Deterministic(10**9), 10**9),
        (dpsub.Deterministic(1), 10**9),
        (dpsub.CyclicPoisson(1e-9, 10**9), None),
        (dpsub.CyclicPoisson(1.0, 1), 1),
    ],
)
@pytest.mark.parametrize("noise", [0.05, 1.0, 1000.0])
def test_extreme_sizes_are_answered(schedule: Any, n: int | None, noise: float) -> None:
    found = dpsub.account(schedule, n, noise_multiplier=noise, delta=1e-6)
    assert found.kind == "exact" and 0 <= found.lower <= found.upper


def test_less_noise_than_is_accounted_for_is_said() -> None:
    with pytest.raises(ArgumentError, match="noise_multiplier must be at least"):
        dpsub.account(
            dpsub.Deterministic(), noise_multiplier=0.01, delta=1e-6, adjacency="substitute"
        )


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"mechanism": "laplace"}, "laplace noise on"),
        ({"denominator": "realised"}, "realised size"),
    ],
)
@pytest.mark.parametrize(
    ("schedule", "n"), [(dpsub.RandomAllocation(4), None), (dpsub.TruncatedPoisson(0.1, 20), 100)]
)
def test_what_no_theorem_covers_is_named(
    schedule: Any, n: int | None, asked: dict[str, str], reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        dpsub.account(schedule, n, **ASKED, **asked)  # type: ignore[arg-type]


def test_a_realised_size_that_is_public_is_a_fixed_one() -> None:
    schedule, asked = dpsub.Deterministic(3), {**ASKED, "denominator": "realised"}
    assert dpsub.account(schedule, 9, **asked).upper == dpsub.account(schedule, 9, **ASKED).upper  # type: ignore[arg-type]
    with pytest.raises(DpsubError, match="under add_remove"):
        dpsub.account(schedule, 9, adjacency="add_remove", **asked)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_the_tutorial_says_what_shuffled_batches_cost() -> None:
    page = (Path(__file__).parents[2] / "docs/tutorial.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.M)
    assert len(rows) == 5
    for row in rows:
        noise, poisson, attained, proved = (float(number) for number in row)
        asked: dict[str, Any] = {"noise_multiplier": noise, "delta": 1e-5, "adjacency": "zero_out"}
        fresh = dpsub.account(dpsub.Poisson(0.01), steps=1000, **asked)
        shuffled = dpsub.account(dpsub.Shuffle(600), 60_000, epochs=10, **asked)
        assert fresh.upper <= poisson < 1.01 * fresh.upper
        assert (
            attained <= shuffled.lower < 1.01 * attained
            and shuffled.upper <= proved < 1.01 * shuffled.upper
        )


@pytest.mark.parametrize(
    ("schedule", "n"),
    [
        (dpsub.Shuffle(10**5), 10**9),
        (dpsub.Shuffle(10**9), 10**9),
        (dpsub.RandomAllocation(1), None),
        (dpsub.RandomAllocation(10**9), None),
        (dpsub.TruncatedPoisson(1e-3, 1_001_000), 10**9),
        (dpsub.TruncatedPoisson(1.0, 1), 100),
        (dpsub.TruncatedPoisson(0.1, 100), 100),
    ],
)
@pytest.mark.parametrize("noise", few([1.0, 1000.0]))
def test_extreme_plans_are_answered(schedule: Any, n: int | None, noise: float) -> None:
    found = dpsub.account(schedule, n, noise_multiplier=noise, delta=1e-6)
    assert 0 <= found.lower <= found.upper < 40


def test_one_step_an_epoch_and_no_cut_are_known_cases() -> None:
    """Each plan equals a simpler plan in one case, exactly."""
    for adjacency in ("zero_out", "substitute"):
        asked: dict[str, Any] = {**ASKED, "adjacency": adjacency}
        order = dpsub.account(dpsub.Deterministic(), epochs=3, **asked)
        for plan, n in ((dpsub.Shuffle(9), 9), (dpsub.RandomAllocation(1), 9)):
            found = dpsub.account(plan, n, epochs=3, **asked)
            assert found.kind == "exact" and found.upper == pytest.approx(order.upper, rel=2e-3)
        whole = dpsub.account(dpsub.TruncatedPoisson(0.1, 9), 9, steps=3, **asked)
        assert whole.upper == pytest.approx(
            dpsub.account(dpsub.Poisson(0.1), 9, steps=3, **asked).upper, rel=2e-3
        )


def test_noise_is_refuted_by_the_best_of_several_attacks() -> None:
    asked: dict[str, Any] = {"epochs": 2, "delta": 1e-5, "adjacency": "zero_out"}
    found = dpsub.calibrate(dpsub.Shuffle(10), 1000, epsilon=6.0, accuracy=0.02, **asked)
    assert found.refuted is not None
    ends = [
        dpsub.account(
            dpsub.Shuffle(10), 1000, noise_multiplier=noise * found.refuted, **asked
        ).lower
        for noise in (1.0, 1.1)
    ]
    assert ends[0] > 6 > ends[1]

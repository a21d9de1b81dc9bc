"""Theorems 83 to 85 (docs/proofs) by integrals over all outputs: plans that are drawn once and kept
for two epochs.

Each of two steps, or of two groups, has one output an epoch. Its likelihood ratios come from their
definition on a grid of both outputs; the two steps are independent without the record, so that the
mean of the positive part of a sum follows from one sorted table. Nothing here uses the library but
the question that is put to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpsub

EPSILONS = np.array([0.0, 0.3, 1.0, 2.0])
_NODES = 260
_OFF = 2e-3  # of the integrals


def grid(s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the outputs of two epochs and their probabilities without the record, each flat."""
    y = np.linspace(-7.5 * s - 2, 7.5 * s + 2, _NODES)
    weight = np.exp(-0.5 * (y / s) ** 2)
    weight /= weight.sum()
    first, second = np.meshgrid(y, y)
    return first.ravel(), second.ravel(), np.outer(weight, weight).ravel()


def product(vectors: tuple[float, float], rate: float, s: float) -> np.ndarray:
    """Return the ratio of the densities of two outputs with the record and without it."""
    first, second, _ = grid(s)
    ratios = [
        1 - rate + rate * np.exp((v * y - v * v / 2) / s**2)
        for v, y in zip(vectors, (first, second), strict=True)
    ]
    return ratios[0] * ratios[1]


def mean_above_zero(values: np.ndarray, mass: np.ndarray, constant: float) -> float:
    """Return the mean of the positive part of a constant and two independent values of this law."""
    order = np.argsort(values)
    values, mass = values[order], mass[order]
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    tail_sum = np.append(np.cumsum((mass * values)[::-1])[::-1], 0.0)
    first = np.searchsorted(values, -constant - values)
    return float(np.sum(mass * ((values + constant) * tail[first] + tail_sum[first])))


def between(found: dpsub.Account, true: list[float]) -> bool:
    value = np.array(true)
    below = np.all(np.asarray(found.lower) <= value * (1 + _OFF) + 1e-9)
    return bool(below and np.all(value * (1 - _OFF) <= np.asarray(found.upper) + 1e-9))


def asked(plan: Any, n: int | None, s: float, adjacency: str) -> dpsub.Account:
    question = {"noise_multiplier": s, "epochs": 2, "adjacency": adjacency}
    return dpsub.account(plan, n, epsilon=EPSILONS, **question)


CASES = [(0.3, 1.0), (0.8, 0.7), (1.0, 1.5)]


@pytest.mark.parametrize(("rate", "s"), CASES)
@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out"])
def test_secret_groups_are_exact(rate: float, s: float, adjacency: str) -> None:
    _, _, mass = grid(s)
    ratio = product((1.0, 1.0), rate, s) / 2
    with_record = [mean_above_zero(ratio, mass, -a) for a in np.exp(EPSILONS)]
    without = [mean_above_zero(-a * ratio, mass, 1.0) for a in np.exp(EPSILONS)]
    found = asked(dpsub.SecretCyclicPoisson(rate, 2), None, s, adjacency)
    assert found.kind == "exact"
    assert between(found, np.maximum(with_record, without).tolist())


def replaced(v: tuple[float, float], other: tuple[float, float], rate: float, s: float) -> list:
    """Return delta of a record in one of two groups that is replaced, in one order."""
    _, _, mass = grid(s)
    one, two = product(v, rate, s) / 2, product(other, rate, s) / 2
    return [mean_above_zero(one - a * two, mass, 0.0) for a in np.exp(EPSILONS)]


@pytest.mark.parametrize(("rate", "s"), CASES)
def test_secret_groups_lie_between_both_ends_where_a_record_is_replaced(
    rate: float, s: float
) -> None:
    found = asked(dpsub.SecretCyclicPoisson(rate, 2), None, s, "substitute")
    true = replaced((1.0, 1.0), (-1.0, -1.0), rate, s)
    assert between(found, true)
    # cells tell nearly all of the outputs
    assert np.all(np.asarray(found.lower) >= 0.95 * np.array(true) - 1e-4)


@pytest.mark.parametrize(("rate", "s"), CASES)
def test_opposite_vectors_are_the_worst(rate: float, s: float) -> None:
    worst = np.array(replaced((1.0, 1.0), (-1.0, -1.0), rate, s))
    rng = np.random.default_rng(1)
    for _ in range(12):
        v, other = rng.choice([-1.0, -0.5, 0.0, 0.6, 1.0], size=(2, 2)).tolist()
        assert np.all(replaced(tuple(v), tuple(other), rate, s) <= worst * (1 + _OFF) + 1e-9)


@pytest.mark.parametrize("s", [1.0, 2.0, 4.0])
def test_one_order_where_a_record_is_added(s: float) -> None:
    """Five records, of which two steps of two use four; the fifth is the one that may be there."""
    _, _, mass = grid(s)
    used, ratio = 4 / 5, product((2.0, 2.0), 1.0, s) / 2
    with_record = [mean_above_zero(used * ratio, mass, 1 - used - a) for a in np.exp(EPSILONS)]
    without = [
        mean_above_zero(-a * used * ratio, mass, 1 - a * (1 - used)) for a in np.exp(EPSILONS)
    ]
    found = asked(dpsub.PersistentShuffle(2, drop_last=True), 4, s, "add_remove")
    assert found.kind == "exact"
    assert between(found, np.maximum(with_record, without).tolist())


@pytest.mark.parametrize("s", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("drop_last", [False, True])
def test_one_order_where_a_record_is_replaced(s: float, drop_last: bool) -> None:
    """Two data sets of five records, or of four, and no order that tells more than the proof."""
    _, _, mass = grid(s)
    n, used = (5, 4 / 5) if drop_last else (4, 1.0)
    one, two = product((2.0, 2.0), 1.0, s) / 2, product((1.0, 1.0), 1.0, s) / 2
    found = asked(dpsub.PersistentShuffle(2, drop_last), n, s, "substitute")
    attained = [mean_above_zero(used * one, mass, 1 - used - a) for a in np.exp(EPSILONS)]
    assert np.all(np.asarray(found.lower) <= np.array(attained) * (1 + _OFF) + 1e-9)
    assert np.all(np.array(attained) * (1 - _OFF) <= np.asarray(found.upper))
    zeroed = asked(dpsub.PersistentShuffle(2, drop_last), n, s, "zero_out")
    attained = [
        mean_above_zero(used * (one - a * two), mass, (1 - used) * (1 - a))
        for a in np.exp(EPSILONS)
    ]
    assert np.all(np.array(attained) * (1 - _OFF) <= np.asarray(zeroed.upper))


def test_one_epoch_is_a_shuffled_one() -> None:
    question = {"noise_multiplier": 3.0, "epochs": 1, "delta": 1e-5}
    for n, drop_last, adjacency in ((40, False, "zero_out"), (43, True, "substitute")):
        kept = dpsub.account(
            dpsub.PersistentShuffle(4, drop_last), n, adjacency=adjacency, **question
        )
        fresh = dpsub.account(dpsub.Shuffle(4, drop_last), n, adjacency=adjacency, **question)
        assert (kept.lower, kept.upper, kept.theorem) == (fresh.lower, fresh.upper, fresh.theorem)


def test_epochs_in_one_order_are_one_with_less_noise() -> None:
    question = {"delta": 1e-5, "adjacency": "substitute"}
    plan, epochs = dpsub.PersistentShuffle(10, drop_last=True), 9
    kept = dpsub.account(plan, 205, noise_multiplier=6.0, epochs=epochs, **question)
    one = dpsub.account(dpsub.Shuffle(10, drop_last=True), 205, noise_multiplier=2.0, **question)
    assert kept.upper == pytest.approx(one.upper, rel=1e-9)
    assert kept.lower == pytest.approx(one.lower, rel=1e-9)
    # a hundred orders, each of one epoch, tell less than a hundred epochs of one order
    again = dpsub.account(
        dpsub.Shuffle(10, drop_last=True), 205, noise_multiplier=6.0, epochs=epochs, **question
    )
    assert again.upper < kept.lower


def test_noise_is_found_where_one_epoch_has_the_least_that_is_covered() -> None:
    plan, epochs = dpsub.PersistentShuffle(10), 100
    asked: dict[str, Any] = {"epsilon": 2000.0, "delta": 1e-5, "adjacency": "zero_out"}
    found = dpsub.calibrate(plan, 100, epochs=epochs, **asked)
    assert found.account.upper <= asked["epsilon"]
    # sqrt(100) times the least one
    assert 0.5 <= found.noise_multiplier < 0.5 * (1 + 1e-9)


@pytest.mark.parametrize(("noise", "share"), [(1.0, 1.0), (5.0, 0.93)])
def test_all_records_in_one_order_are_bounded_by_public_steps(noise: float, share: float) -> None:
    """Where there is noise enough some of them hide the record, and less is proved."""
    question = {"noise_multiplier": noise, "epochs": 7, "delta": 1e-5, "adjacency": "zero_out"}
    kept = dpsub.account(dpsub.PersistentShuffle(10), 200, **question)
    public = dpsub.account(dpsub.Deterministic(10), 200, **question)
    assert kept.upper <= share * public.upper * (1 + 2e-3)
    assert kept.upper >= share * public.upper * 0.95
    assert kept.lower <= public.upper


def test_a_secret_partition_tells_less_than_a_public_one() -> None:
    question = {"noise_multiplier": 1.0, "epochs": 5, "delta": 1e-5, "effort": 1.0, "quick": False}
    for adjacency in ("add_remove", "zero_out", "substitute"):
        secret = dpsub.account(dpsub.SecretCyclicPoisson(0.2, 5), adjacency=adjacency, **question)
        public = dpsub.account(dpsub.CyclicPoisson(0.2, 5), adjacency=adjacency, **question)
        assert secret.upper < public.lower
    # one group is no secret
    one = dpsub.account(dpsub.SecretCyclicPoisson(0.2, 1), adjacency="add_remove", **question)
    poisson = dpsub.account(dpsub.Poisson(0.2), noise_multiplier=1.0, steps=5, delta=1e-5)
    assert one.lower <= poisson.upper and poisson.lower <= one.upper


@pytest.mark.parametrize("adjacency", ["add_remove", "substitute"])
def test_groups_in_every_turn_are_an_allocation_with_less_noise(adjacency: str) -> None:
    question = {"delta": 1e-5, "adjacency": adjacency, "effort": 1.0, "quick": False}
    turns = dpsub.account(
        dpsub.SecretCyclicPoisson(1.0, 8), noise_multiplier=2.0, epochs=4, **question
    )
    one = dpsub.account(dpsub.RandomAllocation(8), noise_multiplier=1.0, **question)
    assert turns.lower <= one.upper and one.lower <= turns.upper
    assert turns.upper < 1.02 * turns.lower


@pytest.mark.parametrize(
    ("plan", "n", "adjacency"),
    [
        (dpsub.PersistentShuffle(5), 20, "substitute"),
        (dpsub.PersistentShuffle(5, drop_last=True), 23, "add_remove"),
        (dpsub.SecretCyclicPoisson(0.4, 3), 20, "zero_out"),
        (dpsub.SecretCyclicPoisson(0.4, 3), 20, "substitute"),
    ],
)
def test_an_audit_plays_runs_with_a_plan_each(plan: Any, n: int, adjacency: str) -> None:
    question = {"noise_multiplier": 2.0, "epochs": 4, "epsilon": 0.3, "adjacency": adjacency}
    played = dpsub.audit(plan, n, **question, draws=1500, quick=True, confidence=0.9999)
    assert played.consistent
    assert played.shown.upper > 0


def test_a_run_that_stops_within_an_epoch_counts_whole_ones() -> None:
    loop = {"noise_multiplier": 2.0, "shuffle": True, "same_order": True}
    run = dpsub.from_loader(43, 5, steps=20, **loop)
    assert run.one_sided and run.steps == 27
    whole = dpsub.from_loader(43, 5, epochs=3, **loop)
    found, at_most = whole.account(delta=1e-5), run.account(delta=1e-5)
    assert at_most.upper == pytest.approx(found.upper, rel=5e-3)
    assert at_most.lower == 0 < found.lower
    with pytest.raises(dpsub.ArgumentError, match="make whole epochs of 9"):
        dpsub.account(dpsub.PersistentShuffle(5), 43, noise_multiplier=2.0, steps=20, delta=1e-5)


def test_two_runs_have_a_plan_each() -> None:
    plan = dpsub.SecretCyclicPoisson(0.3, 4)
    ledger = dpsub.Ledger().add(plan, noise_multiplier=1.0, epochs=3)
    both = ledger.add(plan, noise_multiplier=1.0, epochs=3)
    once = dpsub.account(plan, noise_multiplier=1.0, epochs=6, delta=1e-5)
    # the second run does not tell what group a record had in the first one
    assert both.account(delta=1e-5).upper < once.lower
    budget = {"noise_multiplier": 1.0, "epsilon": 5.0, "delta": 1e-5}
    left = ledger.steps_left(plan, **budget)
    assert left > 0 and left % plan.cycle == 0
    assert ledger.epsilon_with(plan, steps=left, **budget) <= 5


@pytest.mark.parametrize(
    ("plan", "n", "question", "words"),
    [
        (
            dpsub.PersistentShuffle(5),
            20,
            {"adjacency": "add_remove"},
            "extra record changes the size",
        ),
        (
            dpsub.PersistentShuffle(5),
            20,
            {"noise_multiplier": 0.1},
            "take fewer epochs or more noise",
        ),
        (dpsub.PersistentShuffle(5), 20, {"mechanism": "laplace"}, "use gaussian"),
        (dpsub.SecretCyclicPoisson(0.1, 5), None, {"mechanism": "laplace"}, "use gaussian"),
        (dpsub.SecretCyclicPoisson(0.1, 5), 20, {"denominator": "realised"}, "fixed number"),
    ],
)
def test_what_is_not_covered_is_refused(
    plan: Any, n: int | None, question: dict[str, Any], words: str
) -> None:
    with pytest.raises(dpsub.DpsubError, match=words):
        dpsub.account(plan, n, **{"noise_multiplier": 1.0, "epochs": 9, "delta": 1e-5, **question})


def test_with_little_noise_over_many_turns_the_group_is_revealed() -> None:
    found = dpsub.account(
        dpsub.SecretCyclicPoisson(0.5, 3), noise_multiplier=0.1, epochs=50, delta=1e-5
    )
    public = dpsub.account(dpsub.CyclicPoisson(0.5, 3), noise_multiplier=0.1, epochs=50, delta=1e-5)
    assert found.upper == pytest.approx(public.upper, rel=5e-3)
    assert math.isfinite(found.upper) and 0 < found.lower < found.upper

"""Poisson samples with a minimum separation: both bounds against enumerated paths and quadrature in
all steps, for fixed vectors and for vectors chosen from the first output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.schemes import case_of
from dpsub.accounting.schemes.separation.events import counts_of
from dpsub.accounting.schemes.separation.renewal import _Recursion
from dpsub.relations import Relation
from dpsub.sampling import MinSeparation

Path = dict[tuple[int, ...], float]
EPSILONS = (0.0, 0.4, 1.2, 2.5)
SMALL = [
    (MinSeparation(0.4, 2, 2), 0.8),
    (MinSeparation(0.3, 2, 3), 0.7),
    (MinSeparation(0.8, 3, 3), 1.5),
    (MinSeparation(0.5, 2, 3, warm_start=True), 1.0),
    (MinSeparation(0.2, 5, 3, warm_start=True), 0.6),
]


def paths(schedule: MinSeparation) -> Path:
    """Return the steps of one record, by the definition: step by step, a coin where it may be
    drawn."""
    p, b = schedule.rate, schedule.separation
    states: dict[tuple[tuple[int, ...], int], float] = {((), 0): 1.0}
    if schedule.warm_start:
        scale = 1 + (b - 1) * p
        states = {((), wait): (1.0 if wait == 0 else p) / scale for wait in range(b)}
    for step in range(schedule.t):
        after: dict[tuple[tuple[int, ...], int], float] = {}
        for (steps, wait), chance in states.items():
            moves = [(steps, wait - 1, 1.0)]
            if wait == 0:
                moves = [((*steps, step), b - 1, p), (steps, 0, 1 - p)]
            for taken, left, share in moves:
                after[taken, left] = after.get((taken, left), 0.0) + chance * share
        states = after
    law: Path = {}
    for (steps, _), chance in states.items():
        law[steps] = law.get(steps, 0.0) + chance
    return law


def masses(law: Path, t: int, s: float, value: float, cells: int) -> np.ndarray:
    """Return the masses of cells of all outputs, shape (cells,) * t."""
    edges = np.concatenate([[-np.inf], np.linspace(-1 - 6 * s, 1 + 6 * s, cells - 1), [np.inf]])
    base, moved = (np.diff(norm.cdf(edges, mean, s)) for mean in (0.0, value))
    total = np.zeros((cells,) * t)
    for steps, chance in law.items():
        each = [moved if step in steps else base for step in range(t)]
        total += chance * np.einsum(*itertools.chain(*((m, [i]) for i, m in enumerate(each))))
    return total


def truth(schedule: MinSeparation, s: float, x: float, y: float) -> np.ndarray:
    """Return H_a of the outputs for a record x against y, both ways, from below, a fine grid being
    close to it."""
    law, t = paths(schedule), schedule.t
    cells = {1: 2000, 2: 900, 3: 140}[t]
    p, q = (masses(law, t, s, value, cells) for value in (x, y))
    return np.array(
        [
            max(np.maximum(u - math.exp(e) * v, 0.0).sum() for u, v in ((p, q), (q, p)))
            for e in EPSILONS
        ]
    )


def bounds(schedule: MinSeparation, s: float, relation: str, **asked: Any) -> np.ndarray:
    found = [
        dpsub.account(
            schedule, noise_multiplier=s, epochs=1, epsilon=e, adjacency=relation, **asked
        )
        for e in EPSILONS
    ]
    return np.array([(each.lower, each.upper) for each in found]).T


@pytest.mark.parametrize(("schedule", "s"), SMALL, ids=str)
def test_both_bounds_hold_for_a_record_set_to_0(schedule: MinSeparation, s: float) -> None:
    lower, upper = bounds(schedule, s, "zero_out")
    exact = truth(schedule, s, 1.0, 0.0)
    assert np.all(exact <= upper * (1 + 1e-6)) and np.all(lower <= exact * (1 + 5e-3) + 1e-6)
    # where a record is in nearly every step that it may be in, the order of the steps tells much
    assert upper[0] < 1.4 * exact[0] and lower[0] > 0.6 * exact[0]
    for smaller in (0.5, -1.0):
        assert np.all(truth(schedule, s, smaller, 0.0) <= upper * (1 + 1e-6))
    np.testing.assert_array_equal(bounds(schedule, s, "add_remove"), [lower, upper])


@pytest.mark.parametrize(("schedule", "s"), SMALL, ids=str)
def test_both_bounds_hold_for_a_record_replaced(schedule: MinSeparation, s: float) -> None:
    lower, upper = bounds(schedule, s, "substitute")
    worst = np.max(
        [truth(schedule, s, x, y) for x in (1.0, 0.5) for y in (-1.0, -0.3, 0.0, 1.0)], axis=0
    )
    assert np.all(worst <= upper * (1 + 1e-6))
    opposite = truth(schedule, s, 1.0, -1.0)
    assert np.all(lower <= opposite * (1 + 5e-3) + 1e-6) and lower[0] > 0.6 * opposite[0]


@pytest.mark.parametrize("relation", ["zero_out", "substitute"])
def test_vectors_that_are_chosen_from_the_first_output(relation: str) -> None:
    """For each first output the second vectors are those that are worst at this order."""
    schedule, s, cells = MinSeparation(0.5, 2, 2), 0.9, 500
    law = paths(schedule)
    edges = np.concatenate([[-np.inf], np.linspace(-1 - 6 * s, 1 + 6 * s, cells - 1), [np.inf]])

    def joint(first: float, second: float) -> np.ndarray:
        found = np.zeros((cells, cells))
        for steps, chance in law.items():
            means = first * (0 in steps), second * (1 in steps)
            one, two = (np.diff(norm.cdf(edges, mean, s)) for mean in means)
            found += chance * np.multiply.outer(one, two)
        return found

    others = (0.0,) if relation == "zero_out" else (-1.0, 0.5, 0.0)
    _, upper = bounds(schedule, s, relation)
    most = np.zeros(len(EPSILONS))
    for x, y in itertools.product((1.0, 0.6), others):
        second = [
            (joint(x, v), joint(y, 0.0 if relation == "zero_out" else w))
            for v in (1.0, -1.0, 0.4)
            for w in (1.0, -1.0, 0.0)
        ]
        for place, epsilon in enumerate(EPSILONS):
            a = math.exp(epsilon)
            for one, other in (0, 1), (1, 0):
                rows = [np.maximum(pair[one] - a * pair[other], 0).sum(axis=1) for pair in second]
                most[place] = max(most[place], np.max(rows, axis=0).sum())
    assert np.all(most <= upper * (1 + 1e-6))


def by_recursion(schedule: MinSeparation, s: float) -> np.ndarray:
    """Return H_a of the pair of Theorem 87, of both directions the larger one, by its recursion
    over functions of the order, with quadrature over outputs."""
    p, b = schedule.rate, schedule.separation
    y = np.linspace(-9 * s, 1 + 9 * s, 4001)
    width = y[1] - y[0]
    ratio = 1 - p + p * np.exp((2 * y - 1) / (2 * s**2))
    at = np.linspace(-12, 12, 3001)
    missed, drawn = (1 - p) * norm.pdf(y, 0, s) * width, p * norm.pdf(y, 1, s) * width

    def of(missed: np.ndarray, drawn: np.ndarray, loss: np.ndarray) -> np.ndarray:
        values: list[Callable[[np.ndarray], np.ndarray]] = [lambda x: np.maximum(-np.expm1(x), 0.0)]
        for n in range(1, schedule.t + 1):
            after, waited = values[n - 1], values[max(n - b, 0)]
            moved = at[:, None] - loss
            table = after(moved) @ missed + waited(moved) @ drawn
            values.append(lambda x, table=table: np.interp(x, at, table))
        return np.asarray(values[-1](np.array(EPSILONS)))

    # under Q a step is declared one with the record by the chance that it is under P
    without = missed / ratio, drawn / ratio
    return np.maximum(of(missed, drawn, np.log(ratio)), of(*without, -np.log(ratio)))


@pytest.mark.parametrize(("schedule", "s"), SMALL[:3], ids=str)
def test_the_bound_is_that_of_its_recursion(schedule: MinSeparation, s: float) -> None:
    _, upper = bounds(schedule, s, "zero_out", width=1e-4)
    found = by_recursion(schedule, s)
    assert np.all(found <= upper * (1 + 1e-3) + 1e-6)
    np.testing.assert_allclose(upper, found, rtol=3e-3, atol=1e-6)


def test_without_separation_it_is_poisson_sampling() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-5}
    for relation in ("zero_out", "substitute"):
        poisson = dpsub.account(dpsub.Poisson(0.05), steps=40, adjacency=relation, **asked)
        found = dpsub.account(MinSeparation(0.05, 1, 40), epochs=1, adjacency=relation, **asked)
        assert found.lower <= poisson.upper and poisson.lower <= found.upper
        assert found.upper == pytest.approx(poisson.upper, rel=2e-3)


def test_more_separation_tells_less() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-5, "epochs": 1}
    found = [dpsub.account(MinSeparation(0.1, b, 60), **asked) for b in (1, 3, 12, 60)]
    uppers = [each.upper for each in found]
    assert uppers == sorted(uppers, reverse=True) and uppers[-1] < 0.8 * uppers[0]
    assert all(0 < each.lower < each.upper for each in found)
    assert all(each.lower > 0.5 * each.upper for each in found[:3])


def test_a_separation_that_is_too_large_would_claim_too_much() -> None:
    """The brute force tells separations apart."""
    _, upper = bounds(MinSeparation(0.8, 3, 3), 0.7, "zero_out")
    assert np.any(truth(MinSeparation(0.8, 2, 3), 0.7, 1.0, 0.0) > 1.01 * upper)


def test_epochs_are_composed() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-5, "adjacency": "zero_out"}
    schedule = MinSeparation(0.1, 4, 20)
    one, two = (dpsub.account(schedule, epochs=epochs, **asked) for epochs in (1, 2))
    assert one.upper < two.upper and one.lower < two.lower < two.upper
    # epochs that go on have longer waits
    assert two.upper <= 1.001 * dpsub.account(dpsub.Poisson(0.1), steps=40, **asked).upper


@pytest.mark.parametrize(
    "schedule",
    [MinSeparation(0.3, 2, 7), MinSeparation(0.4, 3, 8, warm_start=True), MinSeparation(0.9, 9, 4)],
    ids=str,
)
def test_the_law_of_the_number_of_steps(schedule: MinSeparation) -> None:
    law = paths(schedule)
    wanted = np.zeros(schedule.most_occurrences + 1)
    for steps, chance in law.items():
        wanted[len(steps)] += chance
    np.testing.assert_allclose(counts_of(schedule), wanted[: counts_of(schedule).size], rtol=1e-12)
    mean = np.arange(wanted.size) @ wanted
    assert schedule.occurrences == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("b", [1, 2, 5, 32, 33, 40, 100])
def test_masses_of_all_steps(b: int) -> None:
    recursion = _Recursion(b, -0.1, -2.5, -0.01)
    values = [1.0]
    for n in range(1, 151):
        lag = min(b, n)
        drawn = math.exp(-2.5 - 0.01 * (lag - 1)) * values[n - lag]
        values.append(math.exp(-0.1) * values[-1] + drawn)
    for steps in (1, 3, 40, 41, 150):
        found = recursion.values(steps) * np.exp(recursion.growth * np.arange(steps + 1))
        np.testing.assert_allclose(found, values[: steps + 1], rtol=1e-12)


def test_a_record_that_is_always_drawn() -> None:
    found = dpsub.account(MinSeparation(1.0, 3, 8), noise_multiplier=2.0, epochs=1, delta=1e-5)
    known = dpsub.account(dpsub.Poisson(1.0), noise_multiplier=2.0, steps=3, delta=1e-5)
    assert found.kind == "exact" and found.upper == pytest.approx(known.upper, rel=1e-3)


def test_a_batch_size_is_that_of_every_step() -> None:
    schedule = MinSeparation.of_sizes(1000, m=50, separation=5, t=40)
    assert schedule.warm_start and schedule.expected_distinct(1000) == pytest.approx(50)
    with pytest.raises(dpsub.ArgumentError, match="m must be at most n / separation"):
        MinSeparation.of_sizes(1000, m=300, separation=5, t=40)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: MinSeparation(0.1, 0, 5), "separation must be at least 1"),
        (lambda: MinSeparation(1.5, 2, 5), "rate must be"),
        (lambda: asked(MinSeparation(1.0, 2, 5, warm_start=True)), "rate 1 and a warm start"),
        (lambda: asked(MinSeparation(0.1, 2, 5), mechanism="laplace"), "whose steps are not"),
        (lambda: asked(MinSeparation(0.1, 2, 5), denominator="realised"), "realised"),
    ],
)
def test_refusals(ask: Any, words: str) -> None:
    with pytest.raises((dpsub.ArgumentError, dpsub.UnsupportedError), match=words):
        ask()


def asked(schedule: MinSeparation, **more: Any) -> dpsub.Account:
    return dpsub.account(
        schedule, noise_multiplier=2.0, epochs=1, delta=1e-5, adjacency="zero_out", **more
    )


@pytest.mark.parametrize("schedule", [each for each, _ in SMALL], ids=str)
@pytest.mark.parametrize("other", [None, -1.0])
def test_an_audit_plays_the_likelihood_ratio_of_an_epoch(
    schedule: MinSeparation, other: float | None
) -> None:
    release = dpsub.Release(schedule, 3, noise_multiplier=0.8)
    relation = Relation.ADD_REMOVE if other is None else Relation.SUBSTITUTE
    attack = case_of(release, relation).static()  # type: ignore[misc]
    outputs = np.random.default_rng(2).normal(size=(50, schedule.t))
    law = paths(schedule)

    def density(value: float) -> np.ndarray:
        total = np.zeros(50)
        for steps, chance in law.items():
            means = [value * (step in steps) for step in range(schedule.t)]
            total += chance * norm.pdf(outputs, means, 0.8).prod(axis=1)
        return total

    wanted = np.log(density(1.0)) - np.log(density(other or 0.0))
    np.testing.assert_allclose(attack.losses(outputs), wanted, rtol=1e-9, atol=1e-12)
    chances = [sum(c for steps, c in law.items() if i in steps) for i in range(schedule.t)]
    np.testing.assert_allclose(schedule.chances, chances, rtol=1e-12)


def test_an_audit_finds_no_more_than_is_proved() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 0.8, "epochs": 1, "adjacency": "zero_out"}
    schedule = MinSeparation(0.3, 4, 10)
    found = dpsub.audit(schedule, 5, epsilon=0.5, draws=20_000, **asked)
    assert found.consistent and 0 < found.shown.lower <= found.account.upper

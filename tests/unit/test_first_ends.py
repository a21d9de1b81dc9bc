"""Closed-form bounds, which cost milliseconds: the full answers, quadrature and sums over all
counts lie between them, and at extremes they are finite."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions import first_lower, first_upper
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import (
    CyclicPoisson,
    Deterministic,
    MustOW,
    MustWW,
    Poisson,
    RandomAllocation,
    Shuffle,
    TruncatedPoisson,
    Wor,
    Wr,
)
from dpsub.sampling.schedules import Schedule
from tests.few import few

ADDED, REPLACED, ZEROED = Relation.ADD_REMOVE, Relation.SUBSTITUTE, Relation.ZERO_OUT
TARGETS = (
    Target(delta=1e-5),
    Target(delta=0.3),
    Target(delta=1e-10),
    Target(epsilon=0.0),
    Target(epsilon=1.0),
    Target(epsilon=9.0),
)
EXTREME = (Target(delta=1e-300), Target(delta=0.99), Target(epsilon=0.0), Target(epsilon=1e6))


def ends(releases: Sequence[Release], relation: Relation, target: Target) -> tuple[float, float]:
    cases = [case_of(release, relation) for release in releases]
    lower = first_lower.first_lower(cases, releases, target)
    upper = first_upper.first_upper(cases, releases, relation, target)
    return lower.value, upper.value


def released(sampler: Any, n: int | None, s: float, times: int, **more: Any) -> Release:
    steps, epochs = (None, times) if isinstance(sampler, Schedule) else (times, None)
    return Release.of(sampler, n, noise_multiplier=s, steps=steps, epochs=epochs, **more)


def covered(release: Release, relation: Relation) -> bool:
    try:
        case_of(release, relation)
    except (ArgumentError, UnsupportedError):
        return False
    return True


def assert_around(lower: float, upper: float, full: Any) -> None:
    """The closed-form bounds cross neither each other nor a full answer."""
    assert 0 <= lower <= upper < math.inf
    assert lower <= float(full.upper) * (1 + 1e-9) + 1e-12
    assert upper >= float(full.lower) * (1 - 1e-9) - 1e-12


SCHEMES = [
    (Poisson(0.02), 1000),
    (Poisson(1.0), 1000),
    (Wor(20), 1000),
    (Wor(999), 1000),
    (Wr(20), 1000),
    (Wr(7), 5),
    (MustOW(50, 20), 1000),
    (MustWW(50, 20), 1000),
    (TruncatedPoisson(0.02, 20), 1000),
    (TruncatedPoisson(0.02, 100), 1000),
    (CyclicPoisson(0.2, 10), 1000),
    (Deterministic(30), 1000),
    (Shuffle(30), 1000),
    (RandomAllocation(10), 1000),
    (RandomAllocation(10, 3), 1000),
]


PROVABLE = [(*scheme, relation) for relation in Relation for scheme in SCHEMES]


# of each scheme under one relation or another in `make test`
@pytest.mark.parametrize(
    "sampler, n, relation",
    few(PROVABLE[::4] + PROVABLE[1::4] + PROVABLE[2::4] + PROVABLE[3::4], most=6, more=18),
    ids=str,
)
def test_full_answers_lie_between_first_ends(sampler: Any, n: int, relation: Relation) -> None:
    for place, (s, times, group, mechanism) in enumerate(
        [
            (0.2, 3, 1, "gaussian"),
            (1.5, 40, 1, "gaussian"),
            (8.0, 1, 1, "gaussian"),
            (2.0, 5, 2, "gaussian"),
            (1.0, 6, 1, "laplace"),
        ]
    ):
        release = released(sampler, n, s, times, group=group, mechanism=mechanism)
        if not covered(release, relation):
            continue
        for target in TARGETS[place::5]:
            asked: dict[str, Any] = {"epsilon": target.epsilon, "delta": target.delta}
            asked |= {"adjacency": str(relation), "quick": True, "effort": 2.0}
            full = dpsub.Ledger([release]).account(**asked)
            assert_around(*ends([release], relation, target), full)


def test_records_added_and_others_removed() -> None:
    release = released(Poisson(0.1), None, 1.0, 10, group=(3, 2))
    for target in TARGETS:
        asked = {"epsilon": target.epsilon, "delta": target.delta}
        full = dpsub.Ledger([release]).account(adjacency="add_remove", quick=True, **asked)
        lower, upper = ends([release], ADDED, target)
        assert_around(lower, upper, full)
        assert lower > 0 or full.lower == 0 or target.epsilon == 9.0


def test_several_kinds_together() -> None:
    kinds = [released(Poisson(0.02), None, s, 30) for s in (0.8, 1.0, 1.5, 3.0)]
    kinds.append(released(Deterministic(), 1000, 20.0, 1))
    kinds.append(released(Poisson(0.05), None, 4.0, 3, mechanism="laplace"))
    for relation, target in itertools.product(Relation, TARGETS[:5]):
        asked = {"epsilon": target.epsilon, "delta": target.delta}
        full = dpsub.Ledger(kinds).account(adjacency=str(relation), quick=True, **asked)
        lower, upper = ends(kinds, relation, target)
        assert_around(lower, upper, full)
        if target.epsilon is None and target.delta == 1e-5:
            assert lower > 0
    # the sum of all outputs tells more than any one kind
    many = [released(Poisson(0.02), None, 1 + i / 100, 10) for i in range(100)]
    [lower, _] = ends(many, ADDED, TARGETS[0])
    assert lower > 1.5 * max(ends([each], ADDED, TARGETS[0])[0] for each in many)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpsub.pair([0.75, 0.25], [0.25, 0.75]),
        dpsub.pair([0.7, 0.2, 0.1], [0.2, 0.8, 0.0]),
        dpsub.pair(lambda x: dpsub.noise.GaussianProfile(0.3).delta(x)),
        dpsub.pair(norm(0.5), norm(0.0), edges=np.linspace(-9, 9, 400)),
    ],
)
def test_mechanisms_of_ones_own(mechanism: Any) -> None:
    for sampler, times in ((Deterministic(), 1), (Poisson(0.1), 1), (Poisson(0.05), 8)):
        release = Release.of(sampler, steps=times, mechanism=mechanism)
        for target in (Target(delta=0.01), Target(epsilon=0.0), Target(epsilon=1.0)):
            asked = {"epsilon": target.epsilon, "delta": target.delta}
            full = dpsub.Ledger([release]).account(quick=True, adjacency="add_remove", **asked)
            lower, upper = ends([release], ADDED, target)
            assert lower <= float(full.upper) * (1 + 1e-9) + 1e-12
            assert upper >= float(full.lower) * (1 - 1e-9) - 1e-12
            assert upper < math.inf or full.upper == math.inf


EXTREME_SCHEMES = [
    (Poisson(1e-9), None),
    (Wor(1), 10**9),
    (Wor(10**9), 10**9),
    (Wor(10**9 - 1), 10**9),
    (Wr(10**5), 10**5),
    (Wr(100), 1),
    (MustWW(1000, 1000), 1000),
    (Shuffle(1), 10**9),
    (RandomAllocation(10**9, 5), None),
    (TruncatedPoisson(1.0, 1), 10**9),
    (TruncatedPoisson(0.01, 10**7), 10**9),
    (CyclicPoisson(1e-6, 10**9), 10**9),
    (Deterministic(), 10**9),
]


@pytest.mark.parametrize("sampler, n", few(EXTREME_SCHEMES, most=6), ids=str)
def test_both_ends_exist_at_extremes(sampler: Any, n: int | None) -> None:
    choices = itertools.product(Relation, (0.05, 1e9), (1, 10**9), ("gaussian", "laplace"), (1, 3))
    seen = 0
    for relation, s, times, mechanism, group in choices:
        release = released(sampler, n, s, times, mechanism=mechanism, group=group)
        if not covered(release, relation):
            continue
        for target in EXTREME:
            lower, upper = ends([release], relation, target)
            assert 0 <= lower <= upper < math.inf
            seen += 1
    assert seen >= 8


def test_one_gaussian_step_and_one_step_without_replacement_are_met_from_both_sides() -> None:
    for sampler, n, relation in (
        (Deterministic(), 10, REPLACED),
        (Wor(20), 1000, REPLACED),
        (Poisson(0.02), None, ADDED),
    ):
        for target in (TARGETS[0], TARGETS[3], TARGETS[4]):
            lower, upper = ends([released(sampler, n, 0.7, 1)], relation, target)
            assert upper * 0.999 < lower <= upper


def test_a_tiny_delta_has_the_closed_form() -> None:
    [_, upper] = ends([released(Shuffle(1000), 10**6, 4.0, 1)], REPLACED, Target(delta=1e-300))
    exact = float(dpsub.noise.GaussianProfile(0.5).epsilon(1e-300))
    assert exact <= upper < exact * (1 + 1e-6)


@pytest.mark.parametrize("rate, s, order", [(0.1, 1.0, 2), (0.1, 1.0, 7), (0.5, 2.0, 16)])
def test_moments_are_those_of_quadrature(rate: float, s: float, order: int) -> None:
    def moment(p: Any, q: Any) -> float:
        integral, _ = quad(lambda t: q(t) * (p(t) / q(t)) ** order, -15 * s, 12 * s + 16, limit=400)
        return float(integral)

    def mixture(shift: float, t: float) -> float:
        return (1 - rate) * norm.pdf(t, 0, s) + rate * norm.pdf(t, shift, s)

    place = int(np.searchsorted(first_upper.ORDERS, order))
    assert first_upper.ORDERS[place] == order
    for relation, shift in ((ADDED, 1.0), (REPLACED, 2.0)):
        sampler, n = (Poisson(rate), None) if relation is ADDED else (Wor(int(1000 * rate)), 1000)
        release = released(sampler, n, s, 1)
        steps = first_upper._steps_of(case_of(release, relation), release, relation, TARGETS[0])
        assert isinstance(steps, first_upper._Steps)
        log_excess = first_upper._hidden_excess(steps)[place]
        laws = lambda t: norm.pdf(t, 0, s), partial(mixture, shift)
        both = [moment(*laws[::-1]), moment(*laws)]
        bound = 1 + math.exp(log_excess)
        assert max(both) <= bound * (1 + 1e-7)
        if relation is ADDED:
            assert bound == pytest.approx(both[0], rel=1e-6)


@pytest.mark.parametrize("rate, steps, s", [(0.02, 50, 0.7), (0.3, 20, 3.0), (0.9, 400, 10.0)])
def test_sums_are_worth_no_more_than_all_counts_give(rate: float, steps: int, s: float) -> None:
    counts = np.arange(steps + 1)
    law = binom.pmf(counts, steps, rate)
    edges = np.linspace(-10, 1, 4001)[:, None] * -s * math.sqrt(steps)
    p = (law * norm.sf(edges, counts, s * math.sqrt(steps))).sum(axis=1)
    q = norm.sf(edges, 0, s * math.sqrt(steps))[:, 0]
    for epsilon in (0.0, 0.5, 2.0):
        best = float((p - math.exp(epsilon) * q).max())
        sums = first_lower._Sums(steps, np.ones(1), np.array([rate]), s**2, mirrored=False)
        target = Target(epsilon=epsilon)
        found = max(tests.best(target) for tests in first_lower._sum_tests([sums], target))
        assert best * 0.9 - 1e-12 < found <= best * (1 + 1e-5) + 1e-12


def test_a_distance_or_a_chance_that_is_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted faults are 5 % less distance, and half of the chance to be drawn."""
    release = released(Wor(20), 1000, 0.7, 1)
    [lower, _] = ends([release], REPLACED, TARGETS[0])
    steps_of = first_upper._steps_of
    for fault in (
        lambda steps: {"distances": steps.distances * 0.95, "farthest": steps.farthest * 0.95},
        lambda steps: {"weights": steps.weights / 2},
    ):

        def wrong(*args: Any, fault: Any = fault) -> Any:
            steps = steps_of(*args)
            return dataclasses.replace(steps, **fault(steps))

        monkeypatch.setattr(first_upper, "_steps_of", wrong)
        assert ends([release], REPLACED, TARGETS[0])[1] < lower


def test_a_chance_is_not_lost_where_the_losses_of_laplace_noise_are_tiny() -> None:
    release = released(Poisson(1e-9), None, 1e9, 1, mechanism="laplace")
    lower, upper = ends([release], ADDED, Target(epsilon=0.0))
    assert 0.4e-18 < lower <= upper < 1e-17
    assert case_of(release, ADDED).event.largest_loss == pytest.approx(1e-18)

"""The bound of shuffled epochs by null clones, against sums over all orders by quadrature, and the
use of each of its parts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.engine.chords import falling
from dpsub.accounting.schemes.allocation.one_step import mean_law
from dpsub.accounting.schemes.allocation.opposite import upper_mean, upper_means
from dpsub.accounting.schemes.shuffling import null_clones
from dpsub.accounting.schemes.shuffling.among_nulls import AmongNulls, ValueGrid
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep
from dpsub.accounting.schemes.shuffling.null_clones import NullClones, affordable
from tests.few import few
from tests.unit.test_hidden_step import (
    ORDERS,
    QUADRATURE,
    check_three_steps,
)


def clones(steps: int, s: float, distance: float) -> NullClones:
    apart = distance / s
    return NullClones(steps, s, distance, apart * (apart / 2 + 8))


def with_weights(steps: int, s: float, distance: float, weights: list[float]) -> NullClones:
    """Return the bound with these weights alone."""
    hiding = clones(steps, s, distance)
    hiding.weights = np.array(weights)
    return hiding


def value(hiding: NullClones, a: float) -> float:
    return float(falling(np.array([math.log(a)]), *hiding.bounds)[0])


# --- The charge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.8, 1.0, 2.0, 7.0])
def test_the_charge_is_the_total_variation_to_a_mixture(s: float) -> None:
    hiding = clones(2, s, 1.0)
    y = np.linspace(-12 * s, 1 + 12 * s, 400_001)
    null, other = norm.pdf(y, 0, s), norm.pdf(y, 1, s)
    for p, charge in zip(hiding.weights[::12], hiding.charges[::12], strict=True):
        gap = float(np.maximum(p * null - other, 0.0).sum() * (y[1] - y[0]))
        assert charge == pytest.approx(gap, rel=1e-6, abs=1e-13)
        rest = np.maximum(other - p * null, 0.0) / (1 - p + gap)
        apart = np.abs(p * null + (1 - p) * rest - other).sum() * (y[1] - y[0]) / 2
        assert charge == pytest.approx(apart, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("s", [1.0, 3.0])
def test_it_bounds_that_of_shorter_vectors(s: float) -> None:
    hiding = clones(2, s, 1.0)
    y = np.linspace(-10 * s, 1 + 10 * s, 20_001)
    for length in (0.1, 0.5, 0.9, 1.0):
        gap = hiding.weights[:, None] * norm.pdf(y, 0, s) - norm.pdf(y, length, s)
        apart = np.maximum(gap, 0.0).sum(axis=1) * (y[1] - y[0])
        assert np.all(apart <= hiding.charges * (1 + 1e-6) + 1e-13)


# --- The whole bound ------------------------------------------------------------------------------


@pytest.mark.parametrize("s", few([0.7, 1.5, 4.0]))
@pytest.mark.parametrize("other", [-1.0, 0.0])
def test_three_steps_of_one_record_each(s: float, other: float) -> None:
    """No fillers, fixed or chosen from the past, exceed the bound, whatever weight is taken."""
    hiding = [with_weights(3, s, 1 - other, [p]) for p in (0.9, 0.6, 0.2, 0.02)]
    bounds = [[value(each, a) for a in ORDERS] for each in hiding]
    check_three_steps(bounds, s, other)


@pytest.mark.parametrize(("adjacency", "distance"), [("zero_out", 1.0), ("substitute", 2.0)])
def test_clones_that_are_not_charged_are_caught(adjacency: str, distance: float) -> None:
    """The planted fault takes all others for clones at no charge: an attack attains more."""
    free = with_weights(100, 2.0, distance, [1.0])
    free.charges = np.zeros(1)
    asked: dict[str, Any] = {"noise_multiplier": 2.0, "epochs": 1, "delta": 1e-5}
    attained = dpsub.account(dpsub.Shuffle(1), 100, adjacency=adjacency, **asked).lower
    assert value(free, math.exp(float(attained))) < 1e-5
    assert value(clones(100, 2.0, distance), math.exp(float(attained))) > 1e-5


def mixed_orders(first: float, p: float, s: float, t: np.ndarray) -> np.ndarray:
    """Return the density of three sums in a uniform order of a record and two fillers at -1, each
    replaced by a clone with the probability p."""
    null, filler = norm.pdf(t, 0, s), norm.pdf(t, -1, s)
    rest = np.maximum(filler - p * null, 0.0)
    mixture = p * null + (1 - p) * rest / (rest.sum() * (t[1] - t[0]))
    total = np.zeros((t.size,) * 3)
    for place in range(3):
        held = [mixture] * 3
        held[place] = norm.pdf(t, first, s)
        total += np.einsum("i,j,k->ijk", *held) / 3
    return total * (t[1] - t[0]) ** 3


def allocated(k: int, other: float, s: float, a: float, t: np.ndarray) -> float:
    """Return the larger H_a of the record at 1 and at `other` in 1 of k steps, by quadrature."""
    null = norm.pdf(t, 0, s)
    laws = []
    for v in (1.0, other):
        density = np.zeros((t.size,) * k)
        for place in range(k):
            held = [norm.pdf(t, v, s) if step == place else null for step in range(k)]
            density += np.einsum(",".join("ijk"[:k]), *held) / k
        laws.append(density * (t[1] - t[0]) ** k)
    return max(
        float(np.maximum(one - a * two, 0).sum()) for one, two in itertools.permutations(laws)
    )


@pytest.mark.parametrize("p", [0.8, 0.3])
@pytest.mark.parametrize("other", [-1.0, 0.0])
def test_mixtures_hide_the_record_among_their_clones(p: float, other: float) -> None:
    """Before any charge: an epoch of mixtures is an allocation to 1 of as many steps as are left,
    or tells less."""
    s, t = 1.5, np.linspace(-10.0, 10.0, 90)
    d, d_other = (mixed_orders(v, p, s, t) for v in (1.0, other))
    for a in ORDERS:
        found = max(
            float(np.maximum(one - a * two, 0).sum())
            for one, two in itertools.permutations((d, d_other))
        )
        bound = sum(binom.pmf(k - 1, 2, p) * allocated(k, other, s, a, t) for k in (1, 2, 3))
        assert found <= bound * (1 + QUADRATURE) + 1e-6


# --- Its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("s", "weights"), [(1.4, (0.03, 0.005)), (3.0, (0.3, 0.1))])
def test_rounding_the_number_of_clones_down_costs_little(
    s: float, weights: tuple[float, ...]
) -> None:
    """The mean over all numbers of clones, each with its own law, is the bound or less."""
    steps, a = 13, 1.8
    for p in weights:
        hiding = with_weights(steps, s, 1.0, [p])
        charged = (1 + a) * hiding.charges[0]
        exact = 0.0
        for k in range(1, steps + 1):
            law = mean_law(k, s, 0.02, 1e-20, True)
            above = float(np.sum(law.mass * np.maximum(law.ratio - a, 0.0))) + law.lost
            exact += float(binom.pmf(k - 1, steps - 1, p)) * above
        assert exact + charged <= value(hiding, a) * (1 + 1e-6)
        assert value(hiding, a) - charged <= exact * 1.3


def test_laws_are_those_of_random_allocation() -> None:
    """The bound of certain clones is H_a of an allocation, in both directions."""
    s = 1.2
    for a in (1.0, 1.3, 2.0):
        found = dpsub.account(
            dpsub.RandomAllocation(4),
            noise_multiplier=s,
            epochs=1,
            epsilon=math.log(a),
            adjacency="zero_out",
        )
        hiding = with_weights(4, s, 1.0, [1.0])
        hiding.charges = np.zeros(1)
        assert float(found.lower) <= value(hiding, a) <= 1.02 * float(found.upper)


@pytest.mark.parametrize("s", [0.9, 1.5, 4.0])
def test_means_of_several_numbers_of_steps(s: float) -> None:
    counts = [1, 2, 3, 4, 5, 6, 8, 10, 12, 40]
    for a in (1.0, 1.2, 1.5):
        found = upper_means(a, 1 / s, counts, 0.05, 1e-18)
        assert found == sorted(found, reverse=True)
        finer = [upper_mean(a, 1 / s, k, 0.02, 1e-18) for k in counts[1:]]
        assert np.all(np.array(finer) <= np.array(found[1:]) * (1 + 1e-9))
        assert np.all(np.array(found[1:]) <= np.array(finer) * 1.1)


def test_the_positive_part_of_a_sum_keeps_its_digits() -> None:
    """Two numbers that nearly cancel, against the sum over all pairs."""
    from dpsub.accounting.schemes.allocation.opposite import UpperLaw, _sum_above_zero

    rng = np.random.default_rng(3)
    one, two = (np.sort(rng.normal(size=400) * 1e3 - 500) for _ in range(2))
    masses = [rng.dirichlet(np.ones(400)) for _ in range(2)]
    found = _sum_above_zero(UpperLaw(1, one, masses[0], 0.25), UpperLaw(1, two, masses[1], 0.0))
    pairs = np.maximum(np.add.outer(one, two), 0.0)
    exact = float(np.einsum("ij,i,j", pairs, *masses)) + 0.25
    assert exact <= found <= exact * (1 + 1e-9)


def test_binomial_numbers_are_counted_from_above() -> None:
    mpmath.mp.dps = 30
    for steps, s in ((3, 2.0), (100, 1.4), (1000, 2.0), (100_000, 1.2), (10**10, 2.0)):
        hiding = clones(steps, s, 1.0)
        for place in range(0, hiding.weights.size, 19):
            p = mpmath.mpf(float(hiding.weights[place]))
            for number, k in enumerate(hiding.counts[1:6].tolist()):
                clones_left = range(min(k - 1, steps))
                exact = mpmath.fsum(
                    mpmath.binomial(steps - 1, i) * p**i * (1 - p) ** (steps - 1 - i)
                    for i in clones_left
                )
                found = hiding._fewer[place, number]
                assert exact <= found <= exact * (1 + 3e-6) + 1e-39
        assert np.all(hiding._fewer[:, -1] == 1)


# --- Its use --------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1.0, 2.0])
@pytest.mark.parametrize("steps", few([100, 1000]))
def test_it_never_raises_the_bound(distance: float, steps: int) -> None:
    for s in (1.0, 2.0, 4.0):
        hidden, before = (HiddenStep(steps, s, distance) for _ in range(2))
        before.has_clones = False
        x = np.linspace(0.0, 3 * distance / s, 60)
        with_clones, without = hidden.profile(x), before.profile(x)
        assert np.all(with_clones <= without)
        if s <= 2:
            assert np.any(with_clones < 0.7 * without)


@pytest.mark.parametrize(
    ("s", "adjacency", "most"),
    few([(2.0, "zero_out", 0.25), (1.4, "zero_out", 0.85), (1.4, "substitute", 1.5)], most=2),
)
def test_a_thousand_steps_hide_a_record(s: float, adjacency: str, most: float) -> None:
    asked: dict[str, Any] = {"noise_multiplier": s, "epochs": 1, "delta": 1e-5}
    found = dpsub.account(dpsub.Shuffle(1), 1000, adjacency=adjacency, **asked)
    assert found.theorem == "Theorems 76 and 89, docs/proofs/shuffling.md"
    assert 0 < found.lower < found.upper < most


@pytest.mark.parametrize(("adjacency", "most"), [("zero_out", 0.3), ("substitute", 0.6)])
def test_an_order_that_is_kept_hides_it_too(adjacency: str, most: float) -> None:
    """Ten epochs at s = 10 are one at s = 3.16; with the order known they cost 1.20 and 2.60."""
    asked: dict[str, Any] = {"noise_multiplier": 10.0, "epochs": 10, "delta": 1e-5}
    found = dpsub.account(dpsub.PersistentShuffle(10), 1000, adjacency=adjacency, **asked)
    assert 0 < found.lower < found.upper < most


@pytest.mark.parametrize(
    ("steps", "s", "distance"), [(1, 2.0, 1.0), (100, 0.3, 2.0), (20, 0.6, 2.0)]
)
def test_where_nothing_is_gained_nothing_is_computed(steps: int, s: float, distance: float) -> None:
    with work.metered():
        assert not clones(steps, s, distance).gains
        assert work.spent() == 0


def test_what_is_begun_is_finished_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with work.metered(1e-3), pytest.raises(work.OutOfWorkError):
        _ = clones(1000, 1.4, 2.0).bounds
    # fewer counts are valid, and tell less
    most = value(clones(1000, 1.4, 1.0), 1.5)
    monkeypatch.setattr(null_clones, "_FACTORS", (1,))
    assert value(clones(1000, 1.4, 1.0), 1.5) > most


# --- What a certificate holds ---------------------------------------------------------------------


@pytest.mark.parametrize(("ahead", "behind"), [(0.7, -0.7), (0.7, 0.0), (0.0, -0.7)])
def test_a_grid_raises_the_means_of_what_exceeds_a_value(ahead: float, behind: float) -> None:
    t = np.linspace(-12, 13, 50_001)
    density = norm.pdf(t) * (t[1] - t[0])
    z = np.exp(ahead * t - ahead**2 / 2) - 1.4 * np.exp(behind * t - behind**2 / 2)
    difference = AmongNulls(1.4, ahead, behind)
    for grid in (ValueGrid(0.02, -900, 900), ValueGrid(0.3, -8, 2), difference.grid(0.1, 1e-9)):
        law = difference.law(grid)
        assert law.masses.sum() == pytest.approx(1, rel=1e-9)
        for b in (-1.0, -0.2, 0.0, 0.5, 2.0):
            exact = float(density @ np.maximum(z - b, 0))
            found = float(law.masses @ np.maximum(grid.unit * law.places - b, 0)) + law.beyond
            assert exact * (1 - 1e-6) - 1e-12 <= found
            if grid.unit < 0.3:
                assert found <= exact * 1.01 + 1e-9


def test_numbers_of_steps_that_hardly_matter_are_left_out() -> None:
    divergences = np.array([[0.3], [0.2], [0.199], [0.05], [0.01]])
    fewer = np.array([0.1, 0.4, 0.7, 0.9, 1.0])

    def mean(kept: list[int]) -> float:
        chances = np.array([*(fewer[i - 1] for i in kept[1:]), 1.0])
        return float(NullClones._by_weight(chances[None], divergences[kept])[0, 0])

    every = list(range(5))
    assert null_clones._needed(fewer, divergences, 0.0) == every
    assert null_clones._needed(fewer, divergences, 0.002) == [0, 1, 3, 4]
    for allowed in (0.01, 0.05, 1.0):
        kept = null_clones._needed(fewer, divergences, allowed)
        assert mean(every) <= mean(kept) <= mean(every) + allowed
    assert null_clones._needed(fewer, divergences, 1.0) == [0]


def test_a_certificate_has_fewer_orders_where_all_would_take_long() -> None:
    (bound,) = [clones(50, 2.0, 1.0).certified_at(0.1, 0.04)]
    assert bound is not None and bound.weight in clones(50, 2.0, 1.0).weights
    many = [bound._replace(log_order=float(i), work=1_500_000) for i in range(9)]
    assert [each.log_order for each in affordable(many)] == [0, 8]
    assert affordable(many[:2]) == many[:2]

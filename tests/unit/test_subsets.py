"""Random allocation to k of t steps by moments given a sum (docs/proofs/allocation.md, Theorem 72),
next to quadrature in the outputs of all steps and to sums over pairs of subsets."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import simpson

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.schemes.allocation import moments, several_steps
from dpsub.accounting.schemes.allocation.moments import (
    MomentsGivenSum,
    PolynomialBounds,
    moments_given_sum,
)
from dpsub.accounting.schemes.allocation.one_step import SumEvent
from dpsub.accounting.schemes.allocation.several_steps import (
    GivenSumEvent,
    LargerBlocks,
    SubsetEvent,
)
from dpsub.errors import NumericalError
from dpsub.streams import stream

Case = tuple[int, int, float]
_CASES: list[Case] = [(3, 2, 0.7), (3, 2, 2.0), (4, 2, 1.0), (4, 3, 0.8)]
_ORDERS = np.linspace(0.0, 4.0, 17)


def ratios(t: int, k: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outputs of t steps in deviations, shape (t, n), their weights under Q, and the
    likelihood ratio there, as the mean over all subsets."""
    z = np.linspace(-7, 7 + 2 / noise, {3: 121, 4: 35}[t])
    axes = np.stack(np.meshgrid(*[z] * t, indexing="ij")).reshape(t, -1)
    weights = np.exp(-np.sum(axes**2, axis=0) / 2) * ((z[1] - z[0]) / math.sqrt(2 * math.pi)) ** t
    x = np.exp(axes / noise - noise**-2 / 2)
    means = [x[list(subset)].prod(axis=0) for subset in combinations(range(t), k)]
    return axes, weights, np.mean(means, axis=0)


def truths(t: int, k: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return H_a(P || Q) and H_a(Q || P) at the orders."""
    _, weights, ratio = ratios(t, k, noise)
    a = np.exp(_ORDERS)
    return (
        np.array([weights @ np.maximum(ratio - order, 0) for order in a]),
        np.array([weights @ np.maximum(1 - order * ratio, 0) for order in a]),
    )


def proved(t: int, k: int, noise: float, times: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    # anew, as a fault may have been planted
    made = moments_given_sum.__wrapped__(t, k, noise, times * (k - 1) / (t - k + 1))
    bounds = PolynomialBounds(made)
    return (
        np.array([bounds.above(x) for x in _ORDERS]),
        np.array([bounds.below(x) for x in _ORDERS]),
    )


@pytest.mark.parametrize(("t", "k", "noise"), _CASES)
def test_no_order_is_below_what_quadrature_gives(t: int, k: int, noise: float) -> None:
    for bounds, exact in zip(proved(t, k, noise), truths(t, k, noise), strict=True):
        assert np.all(bounds >= exact * (1 - 1e-4) - 1e-9)
    # where most of the loss lies they are close, and closer than revealed blocks
    above, exact = proved(t, k, noise)[0][2], truths(t, k, noise)[0][2]
    blocks = Composition([(SubsetEvent(t, k, noise).blocks, 1)]).bound(Target(float(_ORDERS[2])))
    assert above < min(1.03 * exact, blocks.value)


@pytest.mark.parametrize(("t", "k", "noise"), _CASES[:2])
def test_moments_given_the_sum_are_those_of_all_cells(t: int, k: int, noise: float) -> None:
    """The sum takes every cell of every step, and every tuple of subsets, one by one; masses by
    quadrature."""
    total = moments._Sum(t, k, noise, (k - 1) / (t - k + 1), 0.5)
    first, end = total.window()
    ends = np.concatenate([[-12.0], total.edges, [12 + 4 / noise]])
    powers = np.zeros((5, ends.size - 1))
    for cell, (left, right) in enumerate(pairwise(ends)):
        z = np.linspace(left, right, 2001)
        x, density = np.exp(z / noise - noise**-2 / 2), np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        for i in range(5):
            powers[i, cell] = simpson(x**i * density, x=z)
    integers = total.integers
    places = sum(np.meshgrid(*[integers] * t, indexing="ij")).ravel() - first
    inside = places < end - first
    for n in range(5):
        low, high = total.tilted(n, 1.0 - n, first, end - first)
        every = list(product(combinations(range(t), k), repeat=n))
        masses = np.zeros(places.shape)
        for chosen in every:
            times = [sum(step in subset for subset in chosen) for step in range(t)]
            masses += reduce(np.multiply.outer, powers[times]).ravel() / len(every)
        exact = np.bincount(places[inside], masses[inside], minlength=end - first)
        assert np.all(low <= exact * (1 + 1e-7) + 1e-15 * exact.max())
        assert np.all(exact * (1 - 1e-7) <= high + 1e-15 * exact.max())
        # where the tilted law is large they are no wider than rounding
        peak = np.argmax(exact * np.exp((1.0 - n) * 0.5 * np.arange(exact.size)))
        assert high[peak] - low[peak] <= 1e-6 * exact[peak]


@pytest.mark.parametrize(("t", "k", "noise"), [(391, 5, 0.8), (12, 2, 0.5), (40, 6, 1.0)])
def test_second_moments_are_those_of_pairs_of_subsets(t: int, k: int, noise: float) -> None:
    given = moments_given_sum(t, k, noise, (k - 1) / (t - k + 1))
    both = [
        math.comb(k, h) * math.comb(t - k, k - h) / math.comb(t, k) * math.exp(h / noise**2)
        for h in range(k + 1)
    ]
    for n, exact in ((0, 1.0), (1, 1.0), (2, sum(both))):
        low, high = given.at_least[n].sum(), given.at_most[n].sum()
        assert low <= exact * (1 + 1e-12) and exact * (1 - 1e-12) <= high
        assert high - low < 1e-5 * exact


def test_subsets_of_which_only_two_overlap_count_as_pairs() -> None:
    counts, log_weights = moments.overlaps(5, 2, 3)
    found = {
        tuple(row): math.exp(log) for row, log in zip(counts.tolist(), log_weights, strict=True)
    }
    every = list(combinations(range(5), 2))
    exact: dict[tuple[int, ...], float] = {}
    for chosen in ((a, b, c) for a in every for b in every for c in every):
        times = [sum(step in subset for subset in chosen) for step in range(5)]
        key = tuple(times.count(i) for i in range(4))
        exact[key] = exact.get(key, 0.0) + 1e-3
    assert found.keys() == exact.keys()
    assert all(found[key] == pytest.approx(exact[key], rel=1e-12) for key in exact)


def test_overlaps_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = moments.overlaps

    def apart(t: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Count as the planted fault does: a step in two subsets counts as two steps in one."""
        counts, log_weights = right(t, k, n)
        if n < 2:
            return counts, log_weights
        single = np.minimum(counts @ np.arange(n + 1), t)
        alone = np.zeros_like(counts)
        alone[:, 0], alone[:, 1] = t - single, single
        return alone, log_weights

    monkeypatch.setattr(moments, "overlaps", apart)
    above, exact = proved(4, 2, 1.0)[0], truths(4, 2, 1.0)[0]
    assert np.any(above < 0.99 * exact)


def test_a_ratio_that_is_taken_as_its_mean_is_noticed() -> None:
    given = moments_given_sum(3, 2, 0.7, 1.0)
    mean = given.at_most[1] / np.maximum(given.at_most[0], 1e-300)
    # the fault: given the sum, the ratio is a number
    powers = given.at_most[0] * mean ** np.arange(5)[:, None]
    certain = PolynomialBounds(MomentsGivenSum(powers, powers, given.outside))
    exact = truths(3, 2, 0.7)[0]
    assert any(certain.above(float(x)) < 0.999 * exact[i] for i, x in enumerate(_ORDERS))


def test_polynomials_lie_above_what_they_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The polynomials are tried at one value of the sum, at which the ratio has any law on a few
    points."""
    rng = stream(72, experiment="subsets", cell={}, role="noise", replicate=0)

    def beaten() -> bool:
        low = False
        for _ in range(200):
            points = np.exp(rng.normal(0.0, rng.choice([0.05, 0.5, 2.0]), 3))
            chances = rng.dirichlet([0.3] * 3)
            moments = np.array([[chances @ points**n] for n in range(5)])
            given = PolynomialBounds(MomentsGivenSum(moments, moments, 0.0))
            for x in (0.0, 0.1, 1.0, 3.0):
                above = chances @ np.maximum(points - math.exp(x), 0.0)
                below = chances @ np.maximum(1 - math.exp(x) * points, 0.0)
                low |= given.above(x) < above * (1 - 1e-9) - 1e-12
                low |= given.below(x) < below * (1 - 1e-9) - 1e-12
        return low

    assert not beaten()
    # the fault: a fourth power that crosses the line
    monkeypatch.setattr(moments, "_QUARTIC", 0.7 * 27 / 256)
    assert beaten()


def test_what_lies_outside_the_window_is_charged() -> None:
    given = moments_given_sum(12, 2, 1.0, 1 / 11)
    inside = given.at_least[:, 40:-40]
    assert PolynomialBounds(given).above(0.0) > 0
    missing = 1 - inside[1].sum()
    cut = MomentsGivenSum(given.at_least[:, :1], given.at_most[:, :1], 0.5)
    assert missing >= 0 and PolynomialBounds(cut).above(5.0) >= 0.5


def test_larger_blocks_hold_all_steps() -> None:
    for t, k in ((391, 5), (10_000, 205), (1000, 7), (1000, 31), (64, 12)):
        parts = LargerBlocks(t, k, 1.0).parts
        assert sum(size * times for size, _, times in parts) == t
        assert sum(of_each * times for _, of_each, times in parts) == k
    assert LargerBlocks(391, 5, 1.0).applies and not LargerBlocks(6, 2, 1.0).applies


def test_little_noise_is_refused() -> None:
    with pytest.raises(NumericalError, match="need more noise"):
        moments_given_sum(100, 2, 0.1, 0.01)


def test_a_chord_lies_above_its_profile() -> None:
    by_chords = several_steps._by_chords(lambda x: math.exp(-3 * x), np.linspace(0.0, 4.0, 400))
    x = np.linspace(0.0, 6.0, 1001)
    assert np.all(by_chords(x) >= np.exp(-3 * np.minimum(x, 4.0)) * (1 - 1e-9))


@pytest.mark.thorough
@pytest.mark.parametrize(("noise", "width"), [(0.52, 0.005), (0.8, 0.003)])
def test_both_ends_are_close_where_noise_is_small(noise: float, width: float) -> None:
    asked: dict[str, Any] = {"noise_multiplier": noise, "delta": 1.25e-5, "effort": None}
    found = dpsub.account(dpsub.RandomAllocation(391, 5), **asked)
    blocks = Composition([(SubsetEvent(391, 5, noise).blocks, 1)]).bound(Target(delta=1.25e-5))
    assert found.lower < found.upper < min(found.lower * (1 + width), 0.98 * blocks.value)


@pytest.mark.thorough
def test_outputs_that_are_drawn_lie_between_the_ends() -> None:
    t, k, noise, epsilon, n = 60, 3, 0.8, 1.0, 100_000
    rng = stream(73, experiment="subsets", cell={}, role="noise", replicate=0)
    z = noise * rng.standard_normal((t, n))
    z[:k] += 1
    # products of all subsets, degree by degree; the order of the steps does not matter
    sums = [np.ones(n), *(np.zeros(n) for _ in range(k))]
    for x in np.exp(z / noise**2 - noise**-2 / 2):
        for degree in range(k, 0, -1):
            sums[degree] += sums[degree - 1] * x
    gains = np.maximum(1 - math.exp(epsilon) * math.comb(t, k) / sums[k], 0.0)
    deviation = gains.std() / math.sqrt(n)
    found = dpsub.account(
        dpsub.RandomAllocation(t, k), noise_multiplier=noise, epsilon=epsilon, effort=None
    )
    assert found.upper < 1.02 * found.lower
    assert found.lower - 4 * deviation < gains.mean() < found.upper + 4 * deviation
    assert deviation < 0.02 * gains.mean()


def test_laws_from_the_moments_are_of_one_block_alone() -> None:
    """The overlaps of 100 steps in each of four draws take hours to count; for 20 equal blocks,
    which are of one kind, the attack looks at the sum."""
    assert len(LargerBlocks(1000, 100, 2.0).parts) == 1
    _, *sums = SubsetEvent(1000, 100, 2.0).attack_choices
    assert sums and all(isinstance(event, SumEvent) for event in sums)
    _, *laws = SubsetEvent(1000, 5, 2.0).attack_choices
    assert laws and all(isinstance(event, GivenSumEvent) for event in laws)

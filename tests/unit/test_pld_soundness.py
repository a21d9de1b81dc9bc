"""Upper bounds that must hold where losses are infinite, sides differ or laws lack mass."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy.signal import fftconvolve

import dpsub
from dpsub.accounting import compose
from dpsub.accounting.account import (
    CONDITIONS,
    LAPLACE_CONDITIONS,
    WIDTH_MISSED,
    Release,
)
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.discretise import LAW_ERROR, DirectedPair, _inversion, loss_indices, upper_pld
from dpsub.accounting.laplace import included_once, removed_once
from dpsub.accounting.pairs import LOSS_TOLERANCE, PoissonPair
from dpsub.accounting.pld import order_indices, symmetric_pld, two_sided_pld
from dpsub.accounting.proofs import SlotChain, SlotStage
from dpsub.accounting.search import safe_root
from dpsub.errors import UnsupportedError
from dpsub.sampling import Multistage, Poisson, Wor, base, laws

_FINE = 2e-4


def test_an_infinite_loss_leaves_the_finite_mass_alone() -> None:
    # randomised response with a sure giveaway: P = (1 - w, w), Q = P with the giveaway elsewhere; H_a = w for a >= 1
    w = 0.3
    law = symmetric_pld(lambda x: np.full(x.shape, w), 1e-2, np.arange(100))
    for k in (1, 2, 5):
        assert ComposedLoss([law], [k]).delta(0.5) == pytest.approx(1 - (1 - w) ** k, rel=1e-9)
    assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-12)


def _laplace_truth(rate: float, ratio: float, swapped: bool, k: int, epsilon: float) -> float:
    """delta of k releases from below: cells of outputs, losses rounded down."""
    t = np.linspace(-40, 40 + ratio, 400_001)

    def below(mean: float) -> np.ndarray:
        near = 0.5 * np.exp(-np.abs(t - mean))
        return np.where(t < mean, near, 1 - near)

    p, q = np.diff((1 - rate) * below(0) + rate * below(ratio)), np.diff(below(0))
    p, q = (q, p) if swapped else (p, q)
    there = (p > 0) & (q > 0)
    places = np.floor((np.log(p[there] / q[there]) - 1e-12) / _FINE).astype(int)
    one = np.bincount(places - places.min(), p[there])
    total = one
    for _ in range(k - 1):
        total = fftconvolve(total, one)
    losses = (np.arange(total.size) + k * places.min()) * _FINE
    return float(np.maximum(-np.expm1(epsilon - losses), 0) @ np.maximum(total, 0)) - 1e-9


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("rate", "ratio"), [(0.1, 4.0), (0.6, 1.0)])
def test_laplace_with_poisson_in_both_directions(rate: float, ratio: float, swapped: bool) -> None:
    profiles = [included_once(rate, ratio), removed_once(rate, ratio)]
    if swapped:
        profiles.reverse()
    law = two_sided_pld(profiles[0], profiles[1], 1e-3, order_indices(1e-3, 3.0, 20.0))
    for k in (1, 2, 5):
        for epsilon in (0.0, 0.02, 0.1, 0.5):
            truth = _laplace_truth(rate, ratio, swapped, k, epsilon)
            assert truth <= ComposedLoss([law], [k]).delta(epsilon) <= truth + 2e-3


def test_the_value_at_order_one_is_on_the_hull() -> None:
    # no mass may be missing at loss 0, however different the directions and however coarse the orders are
    def forward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0.7, 0.9, 0.05 * np.exp(-x))

    def backward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 2.2, 0.8, 0.4 * np.exp(-x))

    sides: list[tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]]
    sides = [(forward, backward), (backward, forward)]
    for first, second in sides:
        law = two_sided_pld(first, second, 0.5, np.arange(60))
        assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-9)
        x = np.arange(60) * 0.5
        delta = np.array([ComposedLoss([law], [1]).delta(at) for at in x])
        assert np.all(delta <= np.minimum(first(x), 1) + 1e-9)
        assert np.all(delta >= 0)


def test_an_answer_says_that_the_width_was_met() -> None:
    # one inclusion is a loss of about 797, beyond the last order of the upper bound and the last point of the attack
    loud = dpsub.account(Wor(2), 4, noise_multiplier=0.0501, steps=1, epsilon=2.0)
    assert 0.4999 < loud.lower <= 0.5 <= loud.upper < 0.5001
    assert loud.width_met
    met = dpsub.account(Wor(2), 4, noise_multiplier=1.0, steps=1, epsilon=1.0)
    assert met.width_met
    assert met.upper - met.lower <= 1e-3 * met.upper
    assert WIDTH_MISSED not in met.conditions


def test_a_transform_that_would_be_too_large_leaves_the_width_unmet(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"noise_multiplier": 1.0, "steps": 1000, "delta": 1e-5}
    monkeypatch.setattr(compose, "MAX_GRID", 300)
    for answer in (dpsub.account(Poisson(0.01), **asked), dpsub.account(Poisson(0.01), **asked, variant="paper")):
        assert not answer.width_met
        assert answer.upper - answer.lower > 1e-3
        assert answer.lower <= 1.82824
    monkeypatch.setattr(compose, "MAX_GRID", 4000)
    bounds = dpsub.account(Wor(10), 1000, **asked, width=1e-5)
    assert not bounds.width_met
    assert bounds.conditions[-1] == WIDTH_MISSED
    monkeypatch.undo()
    assert dpsub.account(Poisson(0.01), **asked).width_met
    assert dpsub.account(Wor(10), 1000, **asked).width_met


def test_laplace_noise_is_calibrated_and_described_as_what_it_is() -> None:
    found = dpsub.calibrate(
        Wor(10), 100, steps=10, epsilon=1.0, delta=1e-5, mechanism="laplace", accuracy=0.01
    )
    assert 0 < found.refuted < found.noise_multiplier
    assert found.account.upper <= 1.0
    text = " ".join(found.account.conditions)
    assert "scalar" in text
    assert "Laplace" in text
    assert "N(0" not in text
    assert found.account.conditions[: len(LAPLACE_CONDITIONS)] == LAPLACE_CONDITIONS
    mixed = [Release(Wor(10), 100, 2.0, 3), Release(Wor(10), 100, 8.0, 2, "laplace")]
    assert set(CONDITIONS) | set(LAPLACE_CONDITIONS) <= set(dpsub.Ledger(mixed).account(epsilon=1.0).conditions)


def test_a_search_reports_only_what_it_evaluated() -> None:
    seen: list[float] = []

    def bound(x: float) -> float:
        seen.append(x)
        return 1 / x

    limits = {"least": 0.05, "most": 1e4, "accuracy": 1e-3}
    found = safe_root(bound, 100.0, "x", start=1.0, **limits)
    assert (found.safe, found.unsafe) == (0.05, None)
    found = safe_root(bound, 3.0, "x", start=1.0, **limits)
    assert found.safe in seen
    assert found.unsafe in seen
    assert 1 / found.safe <= 3.0 < 1 / found.unsafe


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("rate", "scale"), [(1e-13, 1.0), (1e-11, 0.5), (1e-9, 0.5), (0.1, 1.0), (0.5, 0.06)])
def test_the_move_for_inversion_is_charged_where_it_does_not_suffice(rate: float, scale: float, swapped: bool) -> None:
    pair = PoissonPair(rate, scale)
    step = 1e-3 if scale > 0.1 else 0.1
    law = upper_pld(pair, step, tail=1e-18, swapped=swapped)
    direction = DirectedPair(pair, swapped)
    points = step * loss_indices(direction, step, 1e-18)
    tolerance = LOSS_TOLERANCE * max(1.0, float(np.abs(points[[0, -1]]).max()))
    masses = direction.masses(direction.place(points))
    moved, charge = _inversion(direction, points, masses, tolerance)
    assert law.infinity >= charge
    assert law.offset >= moved
    # the condition itself, at all inner points: Q(|L - x| <= tolerance) <= 2 Q(L > x + 2 tolerance), or charged
    edges = np.append((points[1:-1, None] + tolerance * np.array([-1.0, 1.0, 2.0])).ravel(), points[-1])
    t = direction.place(edges)
    q = direction.masses(np.minimum.accumulate(t) if swapped else np.maximum.accumulate(t)).q
    near, after = q[0::3], np.cumsum(q[::-1])[::-1][2::3]
    lacking = np.exp(points[1:-1]) * np.expm1(tolerance) * near
    assert np.all((near <= 2 * after) | (lacking <= charge))
    if rate >= 0.1:
        assert charge <= 1e-20  # nothing is lost where the loss is spread
    else:
        assert charge < 1e-8


def test_laws_of_counts_are_as_accurate_as_the_allowances_assume() -> None:
    with mpmath.workdps(40):
        for size, rate in ((10**6, 1e-6), (10**6, 0.3), (300, 1 / 300)):
            middle, width = size * rate, 20 * math.sqrt(size * rate * (1 - rate))
            counts = np.unique(np.linspace(max(0, middle - width), min(size, middle + width), 60).astype(int))
            got = laws.log_binomial(counts, size, rate)
            for count, value in zip(counts.tolist(), got.tolist(), strict=True):
                true = mpmath.log(mpmath.binomial(size, count)) + count * mpmath.log(mpmath.mpf(rate))
                true += (size - count) * mpmath.log1p(-mpmath.mpf(rate))
                assert abs(float(mpmath.mpf(value) - true)) < 6e-13 < LAW_ERROR / 6
    exact = SlotStage("without", 10**8).count_law(3 * 10**8, 1)
    np.testing.assert_allclose(exact, [2 / 3, 1 / 3], rtol=1e-15)
    with pytest.raises(UnsupportedError, match="1000000 slots"):
        SlotChain(10**8, [SlotStage("with", 10**6 + 1)])
    SlotChain(10**9, [SlotStage("without", 10**7), SlotStage("with", 1000)])


def test_a_chain_that_would_take_minutes_is_refused_at_once() -> None:
    asked = {"noise_multiplier": 3.0, "steps": 100, "epsilon": 1.0}
    for depth in (3, 4):
        with pytest.raises(UnsupportedError, match="fewer stages"):
            dpsub.account(Multistage([base.WithReplacement(300)] * depth), 300, **asked)
    light = Multistage([base.WithoutReplacement(50), base.WithReplacement(20), base.WithReplacement(10)])
    assert dpsub.account(light, 1000, **asked, width=0.05).upper < 1

"""Recyclers chosen by exact accounting keep their budget, no grid finds a better one, none passes
the ceiling."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpsub.accounting.engine import work
from dpsub.errors import NumericalError
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, RecycledProfile
from dpsub.recycling.advice import advise
from dpsub.recycling.ceiling import (
    _dual_values,
    _programme,
    _weak_duality_bound,
    ceiling,
    staircase,
)
from dpsub.recycling.choice import best_recycler, largest_rate, plain_noise
from dpsub.recycling.composition import account
from dpsub.recycling.kernels import Family
from tests.unit.recycled_laws import laplace_optimum

DELTA = 1e-5


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "bound", "acceptance"),
    [
        (1.0, 1.0, 1.0, 0.396),
        (3.0, 1.0, 1.0, 0.9129),
        (4.0, 5.0, 1.0, 0.838),
        (0.5, 22.0, 5.0, 0.0412),
        (0.1, 1.0, 3.0, 0.0849),
    ],
)
def test_the_best_gaussian_recycler(
    epsilon: float, sensitivity: float, bound: float, acceptance: float
) -> None:
    choice = best_recycler(GaussianKernel, epsilon, DELTA, bound, sensitivity)
    assert choice.acceptance == pytest.approx(acceptance, rel=2e-3)
    assert DELTA * (1 - 1e-6) <= choice.true_delta <= DELTA
    assert (
        choice.acceptance
        > plain_noise(GaussianKernel, epsilon, DELTA, bound, sensitivity).acceptance
    )


def test_no_grid_over_both_parameters_has_a_better_one() -> None:
    choice = best_recycler(GaussianKernel, 1.0, DELTA, 1.0, 1.0)
    best = 0.0
    for factor in np.linspace(0.8, 1.5, 15):
        for rate in np.linspace(0.3, 0.8, 26):
            law = Recycled.within(GaussianKernel(choice.law.kernel.scale * factor), rate, 1.0, 1.0)
            if float(RecycledProfile(law).delta(1.0)) <= DELTA:
                best = max(best, law.acceptance)
    assert 0.97 * choice.acceptance < best <= choice.acceptance * (1 + 1e-9)


def test_delta_falls_and_rises_with_the_rate() -> None:
    kernel = GaussianKernel.calibrated(1.0, 1e-5, 1.0)
    tight = GaussianKernel(kernel.scale * 0.955)
    deltas = [
        float(RecycledProfile(Recycled.within(tight, q, 1.0, 1.0)).delta(1.0))
        for q in (0.0, 0.55, 0.7)
    ]
    assert deltas[1] < deltas[0] < deltas[2]
    # a target between the two is met only beyond a stretch of rates that miss it
    target = (deltas[0] + deltas[1]) / 2
    rate = largest_rate(tight, 1.0, target, -1.0, 1.0, 1.0)
    assert rate.law.rate > 0.55
    beyond = replace(rate.law, rate=rate.law.rate + 1e-6)
    assert rate.true_delta <= target < float(RecycledProfile(beyond).delta(1.0))


def test_a_rate_of_one_is_found_where_it_is_private() -> None:
    rate = largest_rate(GaussianKernel(4.0), 2.0, 1e-3, -30.0, 30.0, 1.0)
    assert rate.law.rate == 1.0
    assert rate.true_delta <= 1e-3


def test_asymmetric_bounds_count_both_directions() -> None:
    rate = largest_rate(GaussianKernel(5.0), 1.0, DELTA, -0.5, 2.0, 1.0)
    upward, downward = (
        float(np.exp(each.hockey_stick(1.0).log)) for each in (rate.law, rate.law.mirrored)
    )
    assert max(upward, downward) == pytest.approx(DELTA, rel=1e-6)
    assert min(upward, downward) < 0.5 * DELTA


@pytest.mark.parametrize(
    ("epsilon", "bound"), [(0.8, 0.5), (4.0, 1.0), (4.0, 1.5), (5.0, 0.2), (3.0, 0.7)]
)
def test_the_closed_form_for_laplace_noise(epsilon: float, bound: float) -> None:
    best = laplace_optimum(epsilon, bound, 1.0)
    splits = np.linspace(0.02, 1.0, 200) * epsilon
    laws = [
        Recycled.within(LaplaceKernel(1 / s), -math.expm1(s - epsilon), bound, 1.0) for s in splits
    ]
    assert best.acceptance >= max(law.acceptance for law in laws) - 1e-12
    assert float(RecycledProfile(best).delta(epsilon)) <= 1e-15
    assert (best.rate > 1e-12) == (bound < 1 and epsilon > -math.log1p(-bound) / bound)
    # numbers without a closed form differ by the order of delta
    searched = best_recycler(LaplaceKernel, epsilon, 1e-7, bound, 1.0)
    assert best.acceptance - 1e-9 <= searched.acceptance <= best.acceptance + 1e-5


@pytest.mark.parametrize("family", [GaussianKernel, LaplaceKernel])
def test_a_budget_of_many_releases(family: Family) -> None:
    alone = plain_noise(family, 3.0, DELTA, 1.0, 1.0, 10)
    found = best_recycler(family, 3.0, DELTA, 1.0, 1.0, 10)
    assert found.acceptance >= alone.acceptance
    assert (found.acceptance > 1.05 * alone.acceptance) == (family is GaussianKernel)
    for choice in (alone, found):
        ends = account(choice.law, 10, epsilon=3.0, width=1e-3)
        assert 0.95 * DELTA < ends.lower <= ends.upper <= DELTA * (1 + 2e-3)
    if family is GaussianKernel:
        worse = [
            largest_rate(
                GaussianKernel(alone.law.kernel.scale * f), 3.0, DELTA, -1.0, 1.0, 1.0, 10
            ).acceptance
            for f in (1.02, 1.3)
        ]
        assert max(worse) < found.acceptance


def test_advice_says_when_plain_noise_is_as_good() -> None:
    wide = advise(LaplaceKernel, 2.0, DELTA, 1.0, 1.0)
    assert wide.as_good
    assert "bound >= sensitivity" in wide.verdict
    small = advise(LaplaceKernel, 0.9, DELTA, 0.5, 1.0)
    assert "epsilon <= 1" in small.verdict
    useful = advise(LaplaceKernel, 4.0, DELTA, 1.0, 5.0)
    assert not useful.as_good
    assert useful.optimum.acceptance == pytest.approx(0.817, abs=1e-3)
    assert useful.paper_delta == pytest.approx(4.09 * DELTA, rel=0.01)
    assert useful.ceiling is not None
    assert useful.optimum.acceptance <= useful.ceiling.upper


def test_hard_bounds_take_the_smallest_scale_that_is_private() -> None:
    choice = best_recycler(LaplaceKernel, 1.0, 0.3, 2.0, 1.0)
    assert (choice.law.rate, choice.acceptance) == (1.0, pytest.approx(1.0))
    assert choice.true_delta <= 0.3
    # any scale from there to .66 accepts everything, too
    less, more = (
        Recycled.within(LaplaceKernel(choice.law.kernel.scale * f), 1.0, 2.0, 1.0)
        for f in (1 - 1e-9, 1.02)
    )
    assert float(RecycledProfile(more).delta(1.0)) < 0.3 < float(RecycledProfile(less).delta(1.0))
    assert more.sd > choice.law.sd


def test_numbers_far_apart_are_answered() -> None:
    assert advise(GaussianKernel, 1.0000001e9, DELTA, 1.0, 1.0).as_good
    # every proved delta is the smallest that is told apart, which is the target
    assert largest_rate(GaussianKernel(1e9), 0.3, 1e-300, -1e-12, 1e-12, 1e-5, 10).acceptance >= 0
    assert LaplaceKernel(1.0).tail_moments(1e300) == (0.0, 0.0)


def test_a_rate_next_to_one_is_found_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, bounds = [0], RecycledProfile.bounds

    def counted(self: RecycledProfile, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
        calls[0] += 1
        return bounds(self, epsilon)

    monkeypatch.setattr(RecycledProfile, "bounds", counted)
    rate = largest_rate(GaussianKernel(8.0), 1.0, DELTA, -1e-12, 1e-12, 1.0)
    assert 0.5 * DELTA < rate.true_delta <= DELTA
    assert calls[0] < 100


def test_a_search_without_a_budget_gives_what_is_proved() -> None:
    with work.metered(1e-9):
        choice = best_recycler(GaussianKernel, 1.0, DELTA, 1.0, 1.0, 999_999)
    assert choice.law.rate == 0
    assert account(choice.law, 999_999, epsilon=1.0).upper <= DELTA
    with work.metered(1e-9):
        advice = advise(GaussianKernel, 1.0, DELTA, 1.0, 1.0, 999_999)
    assert not advice.complete and advice.paper is None
    assert "within the budget of work" in advice.verdict
    assert "budget of work" in advice.no_paper
    with pytest.raises(NumericalError, match="budget of work"), work.metered(1e-9):
        plain_noise(LaplaceKernel, 1.0, DELTA, 1.0, 1.0, 1000)
    with pytest.raises(NumericalError, match="budget of work"), work.metered(1e-9):
        largest_rate(LaplaceKernel(2000.0), 1.0, DELTA, -1.0, 1.0, 1.0, 1000)
    with work.metered(1e-9):
        late = account(Recycled.within(LaplaceKernel(20.0), 0.1, 1.0, 1.0), 1000, epsilon=20.0)
    assert (late.lower, late.upper, late.width_met) == (0.0, 1.0, False)


@pytest.mark.parametrize(
    ("epsilon", "bound", "sensitivity", "value"),
    [
        (1.0, 1.0, 1.0, 0.632),
        (4.0, 1.0, 5.0, 0.9147),
        (0.5, 5.0, 22.0, 0.1285),
        (2.0, 2.5, 1.0, 0.9956),
        (0.1, 3.0, 1.0, 0.2592),
        (1.5, 0.7, 1.0, None),
    ],
)
def test_the_programme_meets_the_staircase(
    epsilon: float, bound: float, sensitivity: float, value: float | None
) -> None:
    limit = ceiling(epsilon, 1e-7, bound, sensitivity)
    closed = staircase(epsilon, bound, sensitivity)
    assert closed <= limit.upper <= closed + 20 * 1e-7
    assert limit.lower == closed
    if value is not None:
        assert closed == pytest.approx(value, abs=6e-5 if value > 0.64 else 2e-4)


def test_the_staircase_is_private() -> None:
    epsilon, ratio = 1.3, 0.4
    levels = np.exp(-epsilon * np.arange(60))
    widths = np.append(2 * ratio, np.full(59, 2.0))
    assert levels[0] * widths[0] / (levels @ widths) == pytest.approx(
        staircase(epsilon, ratio, 1.0)
    )


def test_no_noise_at_hand_passes_the_ceiling() -> None:
    most = ceiling(3.0, 1e-2, 0.5, 1.0).upper
    for family in (GaussianKernel, LaplaceKernel):
        found = best_recycler(family, 3.0, 1e-2, 0.5, 1.0).acceptance
        assert 0.8 * most < found <= most


def test_the_certificate_does_not_trust_the_solver() -> None:
    programme = _programme(1.0, 1e-3, 4, 3, 80)
    prices, mass = _dual_values(programme)
    best = _weak_duality_bound(programme, prices, mass)
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-3, 1e-1):
        wrong = prices + size * rng.standard_normal(prices.size)
        assert _weak_duality_bound(programme, wrong, mass) >= best - 1e-12
    assert _weak_duality_bound(programme, 0 * prices, 0.0) >= best


def test_odd_ratios_are_rounded_to_the_safe_side() -> None:
    limit = ceiling(3.0, 1e-5, 1.0, math.pi)
    assert limit.lower <= staircase(3.0, 1.0, math.pi) * (1 + 1e-4)
    assert limit.upper >= staircase(3.0, 1.0, math.pi)


@pytest.mark.parametrize(
    ("epsilon", "bound", "sensitivity"), [(1e4, 1.0, 1.0), (1.0, 1e7, 1.0), (1.0, 1.0, 1e-200)]
)
def test_the_ceiling_is_one_where_the_programme_would_be_too_large(
    epsilon: float, bound: float, sensitivity: float
) -> None:
    limit = ceiling(epsilon, 1e-5, bound, sensitivity)
    assert limit.lower <= limit.upper == 1.0

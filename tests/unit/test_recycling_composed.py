"""Composition of recycled releases: ends on both sides of sums over all outputs, and of the spec's numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import signal

from dpsub.accounting.bracket import order_grid
from dpsub.accounting.compose import ComposedLoss
from dpsub.errors import ArgumentError
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, RecycledProfile, composed
from dpsub.recycling.composed import RecycledEvent, lower_law
from dpsub.recycling.discrete import DiscreteGaussian, DiscreteLaplace, DiscreteRecycled

PAPER = Recycled.within(GaussianKernel(4.08642), 0.208565, 1.0, 1.0)


def test_the_numbers_of_one_ten_and_a_hundred_releases() -> None:
    found = [composed.account(PAPER, times, delta=1e-5) for times in (1, 10, 100)]
    for account, value in zip(found, (0.9018, 3.4512, 14.4976), strict=True):
        assert account.lower - 1e-4 <= value <= account.upper + 1e-4
        assert account.upper - account.lower <= 1e-3
        assert (account.kind, account.adjacency, account.width_met) == ("exact", "substitute", True)
        assert account.conditions == composed.CONDITIONS


DISCRETE = [
    DiscreteRecycled(DiscreteGaussian(Fraction(9)), Fraction(1, 3), -3, 3, 1),
    DiscreteRecycled(DiscreteLaplace(Fraction(3, 2)), Fraction(2, 5), -2, 2, 1),
    DiscreteRecycled(DiscreteLaplace(Fraction(1)), Fraction(0), -2, 2, 2),
    DiscreteRecycled(DiscreteGaussian(Fraction(16)), Fraction(1), -9, 9, 2),
]


@pytest.mark.parametrize("law", DISCRETE, ids=str)
@pytest.mark.parametrize(("times", "epsilon"), [(2, 0.4), (3, 1.1)])
def test_sums_over_all_outputs_lie_between_the_ends(law: DiscreteRecycled, times: int, epsilon: float) -> None:
    truth = over_outputs(law, times, epsilon)
    account = composed.account(law, times, epsilon=epsilon, width=2e-3)
    assert account.lower <= truth * (1 + 1e-12)
    assert truth <= account.upper * (1 + 1e-12)
    assert account.upper - account.lower <= 2e-3 * account.upper


def over_outputs(law: DiscreteRecycled, times: int, epsilon: float) -> float:
    """delta of the product distributions, term by term."""
    keep = np.abs(law.support) <= 40
    first = law.pmf[keep]
    second = np.concatenate([np.zeros(law.sensitivity), first[: -law.sensitivity]])
    p, q = first, second
    for _ in range(times - 1):
        p, q = np.multiply.outer(p, first).ravel(), np.multiply.outer(q, second).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize(
    "law",
    [PAPER, Recycled.within(GaussianKernel(1.5), 0.8, 0.4, 1.0), Recycled.within(LaplaceKernel(1.2), 0.5, 0.7, 1.0),
     Recycled.within(LaplaceKernel(2.0), 0.0, 0.7, 1.0)],
    ids=str,
)  # fmt: skip
def test_two_releases_by_quadrature_of_their_losses(law: Recycled) -> None:
    # masses of fine cells of outputs under both laws; of two releases by convolving histograms of the loss
    edges = np.sort(np.concatenate([np.linspace(-30, 30, 120_001) * law.kernel.scale, [law.lower, law.upper]]))
    p, q = np.diff(law.cdf(edges)), np.diff(law.cdf(edges - law.sensitivity))
    filled = (p > 1e-15) & (q > 1e-15)
    loss = np.log(p[filled] / q[filled])
    step = 5e-5
    place = np.round(loss / step).astype(int)
    mass = np.bincount(place - place.min(), p[filled])
    both = signal.fftconvolve(mass, mass)
    x = (2 * place.min() + np.arange(both.size)) * step
    for epsilon in (0.3, 0.8):
        middle = float(both @ -np.expm1(np.minimum(epsilon - x, 0.0)))
        account = composed.account(law, 2, epsilon=epsilon, width=2e-3)
        assert account.lower - 2 * step <= middle <= account.upper + 2 * step
        assert account.upper - account.lower <= 2e-3 * account.upper


@pytest.mark.parametrize(
    "law",
    [PAPER, Recycled.within(LaplaceKernel(1.2), 0.5, 0.7, 1.0), Recycled.within(GaussianKernel(2.0), 1.0, 6.0, 1.0),
     Recycled(GaussianKernel(1.5), 0.6, -0.5, 2.0, 1.0), DISCRETE[1]],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("step", [0.3, 0.02])
def test_loss_laws_enclose_the_profile_at_every_order(law: Recycled, step: float) -> None:
    event = RecycledEvent(law)
    orders = np.linspace(-3, 6, 301)
    for swapped in (False, True):
        each = law.mirrored if swapped else law
        exact = each.stick(orders)
        low = ComposedLoss([event.lower(step, 1e-18, swapped)], [1]).curve(orders, 0.5)
        assert (low <= exact.end(1) + 1e-15).all()
        high = ComposedLoss([event.upper(step, 1e-18, swapped)], [1]).curve(orders, 0.5)
        assert (high >= exact.end(-1) - 1e-15).all()
        if step < 0.1 and law.symmetric:
            middle = (orders >= 0.3) & (orders <= 1.5)
            assert np.max((high - low)[middle]) < 5e-3


def test_planted_fault_values_that_are_not_lowered_overshoot() -> None:
    law, step = Recycled.within(GaussianKernel(1.5), 0.8, 0.4, 1.0), 0.3
    indices = order_grid(lambda x: RecycledProfile(law).bounds(x)[1], step, 1e-18)
    flat = lower_law(lambda x: law.stick(x)._replace(slope=np.zeros(x.shape)), law.stick, step, indices, 0.0)
    orders = np.linspace(0.05, 3, 200)
    exact = law.stick(orders).end(1)
    assert (ComposedLoss([flat], [1]).curve(orders, 0.5) > exact + 1e-6).any()
    honest = lower_law(law.stick, law.stick, step, indices, 0.0)
    assert (ComposedLoss([honest], [1]).curve(orders, 0.5) <= exact + 1e-15).all()


def test_a_thousand_releases_within_a_per_cent() -> None:
    for law in (PAPER, Recycled.within(LaplaceKernel(20.0), 0.1, 3.0, 1.0)):
        account = composed.account(law, 1000, epsilon=20.0, width=1e-2)
        assert 0 < account.upper - account.lower <= 1e-2 * account.upper
        assert account.width_met


def test_recycling_composes_worse_than_its_own_budget_says() -> None:
    # one release is (1, 1e-5)-private by the paper's parameters; a Gaussian mechanism of that budget composes better
    from dpsub.noise import GaussianProfile

    scale = GaussianKernel.for_budget(1.0, 1e-5, 1.0).scale
    for times, below in ((10, True), (50, True), (100, False)):
        alone = float(GaussianProfile(math.sqrt(times) / scale).epsilon(1e-5))
        account = composed.account(PAPER, times, delta=1e-5)
        assert (account.upper < alone) == below
        assert (account.lower > alone) == (not below)


def test_asymmetric_bounds_have_proof_and_attack() -> None:
    law = Recycled(GaussianKernel(2.0), 0.5, -1.0, 2.0, 1.0)
    account = composed.account(law, 20, epsilon=5.0)
    assert account.kind == "bounds"
    assert 0.8 * account.upper < account.lower < account.upper
    once = composed.account(law, 1, epsilon=1.0)
    assert once.kind == "exact"
    assert once.lower <= float(RecycledProfile(law).delta(1.0)) <= once.upper


def test_hard_bounds_have_no_epsilon_below_their_infinite_loss() -> None:
    law = Recycled.within(GaussianKernel(1.5), 1.0, 3.0, 1.0)
    account = composed.account(law, 5, delta=1e-3)
    assert account.lower == account.upper == math.inf
    finite = composed.account(law, 5, delta=0.9)
    assert 0 <= finite.lower <= finite.upper < math.inf
    delta = composed.account(law, 5, epsilon=50.0)
    assert delta.lower == pytest.approx(1 - (1 - law.infinite_mass) ** 5, rel=1e-6)


def test_a_target_as_rare_as_the_largest_sum_is_found() -> None:
    law = Recycled.within(GaussianKernel(8.1), 0.8, 0.32, 1.0)
    account = composed.account(law, 7, delta=1e-6)
    assert 0 < account.upper - account.lower <= 1e-3
    middle = composed.account(law, 7, epsilon=account.upper, width=1e-3)
    assert middle.lower <= 1e-6 <= composed.account(law, 7, epsilon=account.lower, width=1e-3).upper


def test_different_recyclers_compose() -> None:
    other = Recycled.within(LaplaceKernel(8.0), 0.3, 1.0, 1.0)
    both = composed.composition([(PAPER, 5), (other, 5)], epsilon=2.5)
    ends = [composed.account(law, 10, epsilon=2.5) for law in (PAPER, other)]
    assert min(end.lower for end in ends) < both.lower <= both.upper < max(end.upper for end in ends)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="either epsilon or delta"):
        composed.account(PAPER, 3)
    with pytest.raises(ArgumentError, match="steps must be at least 1"):
        composed.account(PAPER, 0, epsilon=1.0)
    with pytest.raises(ArgumentError, match="unknown adjacency"):
        composed.account(PAPER, 2, epsilon=1.0, adjacency="other")


@pytest.mark.parametrize("sensitivity", [1e-8, 1e-13])
def test_infinite_losses_of_a_small_sensitivity_are_rounded_down(sensitivity: float) -> None:
    law = Recycled.within(GaussianKernel(1.0), 1.0, 1.0, sensitivity)
    with mpmath.workdps(40):
        d = mpmath.mpf(sensitivity)
        once = (mpmath.ncdf(d - 1) - mpmath.ncdf(-1)) / (mpmath.ncdf(1) - mpmath.ncdf(-1))
        account = composed.account(law, 5, epsilon=30.0)
        assert account.lower <= 1 - (1 - once) ** 5 <= account.upper


def test_a_very_large_epsilon_is_found_and_not_called_infinite() -> None:
    account = composed.account(Recycled.within(GaussianKernel(1e-4), 0.5, 1.0, 1.0), delta=1e-5)
    # mu^2 / 2 + 4.26 mu at mu = 1e4
    assert 5.004e7 < account.lower <= account.upper < 5.005e7

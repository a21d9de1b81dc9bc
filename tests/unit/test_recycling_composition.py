"""Composed recycled releases between sums over all outputs; the paper's formulas, and whether they
are above or below."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import signal

from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.privacy_events import order_grid
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, RecycledProfile, paper
from dpsub.recycling.choice import largest_rate
from dpsub.recycling.composition import CONDITIONS, RecycledEvent, account, lower_law

PAPER = Recycled.within(GaussianKernel(4.08642), 0.208565, 1.0, 1.0)


def test_the_numbers_of_one_ten_and_a_hundred_releases() -> None:
    found = [account(PAPER, times, delta=1e-5) for times in (1, 10, 100)]
    for ends, value in zip(found, (0.9018, 3.4512, 14.4976), strict=True):
        assert ends.lower - 1e-4 <= value <= ends.upper + 1e-4
        assert ends.upper - ends.lower <= 1e-3
        assert (ends.kind, ends.adjacency, ends.width_met) == ("exact", "substitute", True)
        assert ends.conditions == CONDITIONS


@pytest.mark.parametrize(
    "law",
    [
        PAPER,
        Recycled.within(GaussianKernel(1.5), 0.8, 0.4, 1.0),
        Recycled.within(LaplaceKernel(1.2), 0.5, 0.7, 1.0),
        Recycled.within(LaplaceKernel(2.0), 0.0, 0.7, 1.0),
    ],
    ids=str,
)
def test_two_releases_by_quadrature_of_their_losses(law: Recycled) -> None:
    # masses of fine cells of outputs under both laws; of two releases by convolving histograms of
    # the loss
    edges = np.sort(
        np.concatenate([np.linspace(-30, 30, 120_001) * law.kernel.scale, [law.lower, law.upper]])
    )
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
        ends = account(law, 2, epsilon=epsilon, width=2e-3)
        assert ends.lower - 2 * step <= middle <= ends.upper + 2 * step
        assert ends.upper - ends.lower <= 2e-3 * ends.upper


@pytest.mark.parametrize(
    "law",
    [
        PAPER,
        Recycled.within(LaplaceKernel(1.2), 0.5, 0.7, 1.0),
        Recycled.within(GaussianKernel(2.0), 1.0, 6.0, 1.0),
        Recycled(GaussianKernel(1.5), 0.6, -0.5, 2.0, 1.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("step", [0.3, 0.02])
def test_loss_laws_enclose_the_profile_at_every_order(law: Recycled, step: float) -> None:
    event = RecycledEvent(law)
    orders = np.linspace(-3, 6, 301)
    for swapped in (False, True):
        each = law.mirrored if swapped else law
        exact = each.hockey_stick(orders)
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
    exactly = law.hockey_stick
    flat = lower_law(
        lambda x: exactly(x)._replace(slope=np.zeros(x.shape)), exactly, step, indices, 0.0
    )
    orders = np.linspace(0.05, 3, 200)
    exact = law.hockey_stick(orders).end(1)
    assert (ComposedLoss([flat], [1]).curve(orders, 0.5) > exact + 1e-6).any()
    honest = lower_law(exactly, exactly, step, indices, 0.0)
    assert (ComposedLoss([honest], [1]).curve(orders, 0.5) <= exact + 1e-15).all()


def test_a_thousand_releases_within_a_per_cent() -> None:
    for law in (PAPER, Recycled.within(LaplaceKernel(20.0), 0.1, 3.0, 1.0)):
        ends = account(law, 1000, epsilon=20.0, width=1e-2)
        assert 0 < ends.upper - ends.lower <= 1e-2 * ends.upper
        assert ends.width_met


def test_asymmetric_bounds_have_proof_and_attack() -> None:
    law = Recycled(GaussianKernel(2.0), 0.5, -1.0, 2.0, 1.0)
    ends = account(law, 20, epsilon=5.0)
    assert ends.kind == "bounds"
    assert 0.8 * ends.upper < ends.lower < ends.upper
    once = account(law, 1, epsilon=1.0)
    assert once.kind == "exact"
    assert once.lower <= float(RecycledProfile(law).delta(1.0)) <= once.upper


def test_hard_bounds_have_no_epsilon_below_their_infinite_loss() -> None:
    law = Recycled.within(GaussianKernel(1.5), 1.0, 3.0, 1.0)
    ends = account(law, 5, delta=1e-3)
    assert ends.lower == ends.upper == math.inf
    finite = account(law, 5, delta=0.9)
    assert 0 <= finite.lower <= finite.upper < math.inf
    delta = account(law, 5, epsilon=50.0)
    infinite = law.normaliser * law.kernel.mass(-3.0, -2.0)
    assert delta.lower == pytest.approx(1 - (1 - infinite) ** 5, rel=1e-6)


def test_a_target_as_rare_as_the_largest_sum_is_found() -> None:
    law = Recycled.within(GaussianKernel(8.1), 0.8, 0.32, 1.0)
    ends = account(law, 7, delta=1e-6)
    assert 0 < ends.upper - ends.lower <= 1e-3
    middle = account(law, 7, epsilon=ends.upper, width=1e-3)
    assert middle.lower <= 1e-6 <= account(law, 7, epsilon=ends.lower, width=1e-3).upper


@pytest.mark.parametrize("sensitivity", [1e-8, 1e-13])
def test_infinite_losses_of_a_small_sensitivity_are_rounded_down(sensitivity: float) -> None:
    law = Recycled.within(GaussianKernel(1.0), 1.0, 1.0, sensitivity)
    with mpmath.workdps(40):
        d = mpmath.mpf(sensitivity)
        once = (mpmath.ncdf(d - 1) - mpmath.ncdf(-1)) / (mpmath.ncdf(1) - mpmath.ncdf(-1))
        ends = account(law, 5, epsilon=30.0)
        assert ends.lower <= 1 - (1 - once) ** 5 <= ends.upper


def test_a_very_large_epsilon_is_bracketed_and_not_called_infinite() -> None:
    ends = account(Recycled.within(GaussianKernel(1e-4), 0.5, 1.0, 1.0), delta=1e-5)
    # mu^2 / 2 + 4.26 mu at mu = 1e4
    assert 5.004e7 < ends.lower <= ends.upper < 5.005e7


def test_the_kernels_of_the_paper() -> None:
    for epsilon, sigma in ((0.1, "30.7496"), (1.0, "3.7306"), (3.0, "1.391")):
        places = len(sigma.partition(".")[2])
        assert f"{GaussianKernel.calibrated(epsilon, 1e-5, 1.0).scale:.{places}f}" == sigma
    kernel = LaplaceKernel.calibrated(0.5, 0.01, 2.0)
    assert float(kernel.delta(0.5, 2.0)) == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize("kernel", [GaussianKernel(1.7), LaplaceKernel(0.6)], ids=str)
def test_the_kernels_profile_by_half_lines(kernel: GaussianKernel) -> None:
    orders = np.array([-3.0, -0.5, 0.0, 0.4, 2.0])
    np.testing.assert_allclose(
        kernel.delta(orders, 1.0), kernel.profile(1.0).delta(orders), atol=1e-14
    )
    assert kernel.delta(-math.inf, 1.0) == 1
    assert kernel.delta(math.inf, 1.0) == 0


@pytest.mark.parametrize(
    ("split", "rates"), [(1.0, (0.8647, 0.8846, 0.9447)), (2.0, (0.6321, 0.7012, 0.9276))]
)
def test_the_rates_of_figure_3(split: float, rates: tuple[float, float, float]) -> None:
    kernel = GaussianKernel.calibrated(split, 1e-5, 1.0)
    found = (
        paper.baseline_rate(3.0, split),
        paper.algorithm1(kernel, 3.0, 1e-5, -1.0, 1.0, 1.0),
        largest_rate(kernel, 3.0, 1e-5, -1.0, 1.0, 1.0).law.rate,
    )
    assert found == pytest.approx(rates, abs=6e-5)
    assert (
        paper.algorithm1(GaussianKernel.calibrated(3.0, 1e-5, 1.0), 3.0, 1e-5, -1.0, 1.0, 1.0)
        < 1e-6
    )


def test_algorithm_1_is_the_root_of_equation_8() -> None:
    kernel = GaussianKernel.calibrated(1.3, 1e-5, 1.0)
    rate = paper.algorithm1(kernel, 2.0, 1e-5, -1.0, 1.0, 1.0)
    low, high = (
        float(paper.theorem1_delta(Recycled.within(kernel, rate + d, 1.0, 1.0), 2.0))
        for d in (0.0, 2e-9)
    )
    assert low <= 1e-5 < high


def test_laplace_ratio_of_the_sets_that_cross() -> None:
    # with D <= bound exact / printed tends to twice the normaliser as the loss beyond epsilon
    # vanishes
    law = Recycled.within(LaplaceKernel(1.0), 0.5, 2.0, 1.0)
    epsilon = 1.0 + math.log(2) - 1e-4
    weight = paper.crossing_mass(law.kernel, -2.0, 2.0, 1.0)
    exact = law.normaliser * weight * -math.expm1(-1e-4)
    assert float(RecycledProfile(law).delta(epsilon)) == pytest.approx(exact, rel=1e-6)
    assert exact / float(paper.theorem1_delta(law, epsilon)) == pytest.approx(
        2 * law.normaliser, rel=1e-3
    )


def test_algorithm_2_finds_the_peak_of_a_grid() -> None:
    def acceptance(split: float) -> float:
        kernel = GaussianKernel.calibrated(split, 1e-5, 1.0)
        return Recycled.within(
            kernel, paper.algorithm1(kernel, 2.0, 1e-5, -1.0, 1.0, 1.0), 1.0, 1.0
        ).acceptance

    grid = [acceptance(split) for split in np.linspace(0.02, 2.0, 30)]
    found = paper.algorithm2(GaussianKernel, 2.0, 1e-5, 1.0, 1.0)
    assert found.acceptance >= max(grid)
    assert np.count_nonzero(np.diff(np.sign(np.diff(grid)))) == 1


def test_theorem_2_holds_for_gaussian_kernels() -> None:
    for split, more, bound in itertools.product(
        (0.05, 0.5, 2.0), (0.2, 2.0, 8.0), (0.05, 0.4, 1.0, 5.0)
    ):
        kernel = GaussianKernel.calibrated(split, 1e-3, 1.0)
        law = Recycled.within(kernel, paper.baseline_rate(split + more, split), bound, 1.0)
        assert float(RecycledProfile(law).delta(split + more)) <= 1e-3


def test_theorem_3_over_the_number_of_releases() -> None:
    law = paper.algorithm2(GaussianKernel, 1.0, 1e-5, 1.0, 1.0).law
    assert (law.kernel.scale, law.rate) == pytest.approx((4.0864, 0.2086), abs=5e-4)
    found = [paper.theorem3_epsilon(law, times, 1e-5) for times in (1, 5, 10, 20, 50, 100)]
    assert found == pytest.approx([1.000, 2.442, 3.649, 5.527, 9.826, 15.556], abs=6e-4)
    once = paper.theorem3_delta(law, 1)(1.0)
    assert once == pytest.approx(float(paper.theorem1_delta(law, 1.0)), rel=1e-9)

"""The exact profile of recycled noise: against quadrature, 50 digits, its invariants, and planted
faults."""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, RecycledProfile
from dpsub.recycling.divergence import intervals
from dpsub.recycling.kernels import Kernel
from tests.unit.recycled_laws import BOUNDS, KERNELS, density, divergence, nodes

RATES = (0.0, 0.35, 1.0)
ORDERS = np.array([0.0, 0.4, 1.6])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("rate", RATES)
def test_both_directions_are_the_integral_of_the_positive_part(kernel: Kernel, rate: float) -> None:
    for lower, upper in BOUNDS:
        law = Recycled(kernel, rate, lower, upper, 1.0)
        for each in (law, law.mirrored):
            found = each.hockey_stick(ORDERS)
            truth = [divergence(each, float(order), 1.0) for order in ORDERS]
            np.testing.assert_allclose(np.exp(found.log), truth, atol=1e-9, rtol=1e-7)
        low, high = RecycledProfile(law).bounds(ORDERS)
        delta = RecycledProfile(law).delta(ORDERS)
        assert (low <= delta).all()
        assert (delta <= high).all()
        assert (high - low <= 1e-10).all()


NEAR = [
    (Recycled(kernel, rate, -0.7, 0.7, 1.0), epsilon)
    for rate in (0.0, 0.7, 1.0)
    for kernel, epsilons in (
        (GaussianKernel(1.3), (0.0, 0.3, 1.0, 3.0, 9.0, 20.0)),
        (LaplaceKernel(0.9), (0.0, 0.3, 1.0, 1.9)),
    )
    for epsilon in epsilons
]
FAR = [
    # the mass within bounds far narrower than the kernel, whose reciprocal is c
    (Recycled.within(GaussianKernel(1e16), 1.0, 1e4, 1.0), 0.5),
    (Recycled.within(LaplaceKernel(1e19), 1 - 1e-14, 0.1, 1.0), 1.0),
    # lower + D is lower in doubles
    (Recycled.within(GaussianKernel(1e17), 0.67, 3e17, 1.0), 1.0),
    (Recycled.within(LaplaceKernel(6e18), 1.0, 3e19, 1.0), 0.2),
    # epsilon is D / b up to its rounding
    *[
        (Recycled.within(LaplaceKernel(b), 0.0, 1.0, 1.0), 1 / b)
        for b in (0.7, 0.73, 1.3, 2.9, 4.9, 5.3)
    ],
]


@pytest.mark.parametrize(("law", "epsilon"), [*NEAR, *FAR], ids=str)
def test_certified_ends_hold_the_value_to_fifty_digits(law: Recycled, epsilon: float) -> None:
    truth, (low, high) = by_masses(law, epsilon), RecycledProfile(law).bounds(epsilon)
    assert mpmath.mpf(float(low)) <= truth <= mpmath.mpf(float(high))
    assert (law, epsilon) in FAR or float(high - low) <= 1e-9 * float(truth)


def test_far_in_the_tail_the_logarithm_keeps_its_digits() -> None:
    law = Recycled.within(GaussianKernel(4.0), 0.3, 1.0, 1.0)
    log = float(RecycledProfile(law).log_delta(60.0))
    assert log == pytest.approx(float(mpmath.log(by_masses(law, 60.0))), rel=1e-12)
    assert RecycledProfile(law).bounds(60.0)[1] > 0


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_loss_is_one(kernel: Kernel) -> None:
    law = Recycled(kernel, 0.6, -0.8, 0.8, 1.0)
    points, weights = nodes(law, 1.0)
    inside = (np.abs(points) <= 0.8).astype(float) - (np.abs(points - 1) <= 0.8)
    loss = (
        kernel.log_density(points)
        - kernel.log_density(points - 1)
        - math.log(1 - law.rate) * inside
    )
    log_first = law.log_density(points)
    assert float(weights @ np.exp(log_first)) == pytest.approx(1, abs=1e-10)
    assert float(weights @ np.exp(log_first - loss)) == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(np.exp(log_first), density(law, points), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize(
    "kernel", [GaussianKernel(1.0), LaplaceKernel(1.0)], ids=lambda kernel: kernel.name
)
@pytest.mark.parametrize(("lower", "upper"), [(-0.4, 0.4), (-2.0, 2.0), (-0.3, 1.1)])
def test_the_full_sensitivity_is_the_worst_shift(
    kernel: Kernel, lower: float, upper: float
) -> None:
    for epsilon in (-1.0, 0.0, 0.5, 1.5):
        values = [
            max(float(np.exp(each.hockey_stick(epsilon).log)) for each in (law, law.mirrored))
            for law in (Recycled(kernel, 0.6, lower, upper, d) for d in np.linspace(0.05, 1.0, 12))
        ]
        assert (np.diff(values) >= -1e-12).all()


def test_distance_two_is_twice_the_sensitivity() -> None:
    law, double = (Recycled.within(GaussianKernel(3.0), 0.5, 1.0, d) for d in (1.0, 2.0))
    assert RecycledProfile(law).group_log_delta(0.7, 2) == RecycledProfile(double).log_delta(0.7)
    np.testing.assert_array_equal(
        RecycledProfile(law).group_log_delta(np.array([0.7, 0.7]), np.array([1, 2])),
        [RecycledProfile(law).log_delta(0.7), RecycledProfile(double).log_delta(0.7)],
    )


def test_epsilon_inverts_delta() -> None:
    profile = RecycledProfile(Recycled.within(GaussianKernel(4.0864), 0.2086, 1.0, 1.0))
    epsilon = float(profile.epsilon(1e-5))
    assert epsilon == pytest.approx(0.9018, abs=1e-4)
    assert float(profile.delta(epsilon)) <= 1e-5 < float(profile.delta(epsilon * (1 - 1e-12)))


@pytest.mark.parametrize("epsilon", [-2.0, -0.4])
def test_below_zero_it_is_the_mirrored_direction(epsilon: float) -> None:
    law = Recycled(GaussianKernel(1.0), 0.5, -0.5, 2.0, 1.0)
    truth = max(divergence(each, epsilon, 1.0) for each in (law, law.mirrored))
    assert float(RecycledProfile(law).delta(epsilon)) == pytest.approx(truth, abs=1e-9)


def faulty(
    law: Recycled, epsilon: float, *, normalised: bool = True, both_shifts: bool = True
) -> float:
    """Return the sum over intervals with a factor or an interval left out."""
    total = 0.0
    keep = 1 - law.rate
    for piece in intervals(law.lower, law.upper, law.sensitivity):
        if piece.shifted_inside and not piece.inside and not both_shifts:
            continue
        first, second = (1.0 if inside else keep for inside in (piece.inside, piece.shifted_inside))
        order = np.asarray(epsilon - math.log(first / second))
        end = float(min(piece.high, law.kernel.threshold(order, law.sensitivity)))
        if end > piece.low:
            mass = law.kernel.mass(piece.low, end)
            moved = law.kernel.mass(piece.low - law.sensitivity, end - law.sensitivity)
            total += first * mass - math.exp(epsilon) * second * moved
    return total * (law.normaliser if normalised else 1.0)


def test_planted_faults_are_seen() -> None:
    law, epsilon = Recycled.within(GaussianKernel(0.8), 0.5, 0.6, 1.0), 0.3
    truth = divergence(law, epsilon, 1.0)
    assert faulty(law, epsilon) == pytest.approx(truth, abs=1e-9)
    assert abs(faulty(law, epsilon, normalised=False) - truth) > 0.05
    wide = Recycled.within(GaussianKernel(0.8), 0.2, 0.6, 1.0)
    assert abs(faulty(wide, -1.5, both_shifts=False) - divergence(wide, -1.5, 1.0)) > 1e-3


def by_masses(law: Recycled, epsilon: float) -> mpmath.mpf:
    """Return the profile of a symmetric law in 80 digits, with the closed form of where the
    kernel's loss ends."""
    with mpmath.workdps(80):
        s, q, t, d, e = (
            mpmath.mpf(x) for x in (law.kernel.scale, law.rate, law.upper, law.sensitivity, epsilon)
        )
        gaussian = law.kernel.name == "gaussian"

        def cdf(x: mpmath.mpf) -> mpmath.mpf:
            if gaussian:
                return mpmath.erfc(-x / s / mpmath.sqrt(2)) / 2
            return mpmath.exp(x / s) / 2 if x < 0 else 1 - mpmath.exp(-x / s) / 2

        def end(order: mpmath.mpf) -> mpmath.mpf:
            if gaussian:
                return d / 2 - order * s * s / d
            return -far if order >= d / s else far if order < -d / s else (d - s * order) / 2

        far = mpmath.inf
        total = mpmath.mpf(0)
        for a, b in pairwise(sorted([-far, -t, t, d - t, d + t, far])):
            middle = (a + b) / 2
            first, second = (1 if abs(x) <= t else 1 - q for x in (middle, middle - d))
            if first > 0:
                h = (
                    b
                    if second == 0
                    else min(b, max(a, end(e - mpmath.log(first / mpmath.mpf(second)))))
                )
                total += first * (cdf(h) - cdf(a)) - mpmath.exp(e) * second * (
                    cdf(h - d) - cdf(a - d)
                )
        return total / (1 - q * (1 - cdf(t) + cdf(-t)))


def test_far_bounds_cost_no_accuracy() -> None:
    low, high = RecycledProfile(Recycled.within(GaussianKernel(3.7), 0.0, 1e6, 1.0)).bounds(1.0)
    assert high - low <= 1e-11 * high

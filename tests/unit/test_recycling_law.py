"""The law of recycled noise and draws from it, with and without a loop; refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsub.errors import ArgumentError
from dpsub.recycling.advice import advise
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import best_recycler, largest_rate, plain_noise
from dpsub.recycling.composition import account
from dpsub.recycling.kernels import GaussianKernel, Kernel, LaplaceKernel
from dpsub.recycling.law import Recycled
from dpsub.streams import stream
from tests.unit.recycled_laws import KERNELS, density, nodes

ROOT = 7
ALPHA = 1e-6
DRAWS = 40_000
DRAWN = [GaussianKernel(2.0), LaplaceKernel(1.5)]


def rng(test: str, cell: int = 0) -> np.random.Generator:
    return stream(ROOT, experiment=test, cell={"cell": cell}, role="noise", replicate=0)


def test_the_numbers_of_figure_2b() -> None:
    law = Recycled.within(GaussianKernel.calibrated(1.248, 1e-5, 1.0), 0.604, 1.0, 1.0)
    assert law.kernel.scale == pytest.approx(3.050, abs=5e-4)
    assert law.acceptance == pytest.approx(0.4663, abs=2e-4)
    assert law.sd == pytest.approx(2.603, abs=5e-4)
    assert law.normaliser == pytest.approx(1.814, abs=5e-4)
    plain = Recycled.within(GaussianKernel.calibrated(2.0, 1e-5, 1.0), 0.0, 1.0, 1.0)
    assert (plain.acceptance, plain.sd) == pytest.approx((0.3840, 1.994), abs=5e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 1.0), (-0.5, 2.5)])
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_moments_and_probabilities_by_quadrature(
    kernel: Kernel, lower: float, upper: float, rate: float
) -> None:
    law = Recycled(kernel, rate, lower, upper, 1.0)
    points, weights = nodes(law, 0.7, 400)
    f = density(law, points)
    mean = float(weights @ (f * points))
    inside = (points >= lower) & (points <= upper)
    outside = weights[~inside] * np.exp(kernel.log_density(points[~inside]))
    assert law.mean == pytest.approx(mean, abs=1e-9)
    assert law.variance == pytest.approx(float(weights @ (f * (points - mean) ** 2)), rel=1e-9)
    assert law.acceptance == pytest.approx(float(weights[inside] @ f[inside]), rel=1e-9)
    size = float(outside @ np.abs(points[~inside])) / float(outside.sum())
    assert law.mean_size_outside == pytest.approx(size, rel=1e-9)
    cut = points <= 0.7
    assert float(law.cdf(0.7)) == pytest.approx(float(weights[cut] @ f[cut]), rel=1e-9)


@pytest.mark.parametrize("kernel", DRAWN, ids=str)
@pytest.mark.parametrize("rate", [0.6, 1.0])
def test_loop_and_single_draw_have_the_law(kernel: Kernel, rate: float) -> None:
    law = Recycled(kernel, rate, -1.0, 1.5, 1.0)
    looped = law.release_by_loop(np.zeros(DRAWS), rng("test_loop", int(rate)))
    once = law.release(np.zeros(DRAWS), rng("test_once", int(rate)))
    assert stats.kstest(looped.released, law.cdf).pvalue > ALPHA
    assert stats.kstest(once, law.cdf).pvalue > ALPHA
    accepted = int(((once >= law.lower) & (once <= law.upper)).sum())
    assert stats.binomtest(accepted, DRAWS, min(1.0, law.acceptance)).pvalue > ALPHA
    # the number of draws is geometric, and does not tell what was released
    assert stats.binomtest(int((looped.draws == 1).sum()), DRAWS, 1 / law.normaliser).pvalue > ALPHA
    first = looped.draws == 1
    assert stats.ks_2samp(looped.released[first], looped.released[~first]).pvalue > ALPHA


def test_planted_fault_another_rate_is_rejected() -> None:
    law, other = (Recycled.within(GaussianKernel(2.0), rate, 1.0, 1.0) for rate in (0.6, 0.55))
    drawn = other.release_by_loop(np.zeros(DRAWS), rng("test_planted")).released
    assert stats.kstest(drawn, law.cdf).pvalue < ALPHA


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_capped_loop_recycles_at_a_smaller_rate(most: int) -> None:
    law = Recycled.within(LaplaceKernel(1.5), 0.8, 0.6, 1.0)
    capped = law.capped(most)
    drawn = law.release_by_loop(np.zeros(DRAWS), rng("test_capped", most), most).released
    assert stats.kstest(drawn, capped.cdf).pvalue > ALPHA
    assert capped.rate < law.rate
    assert (most > 1) == (capped.rate > 0)


def test_the_cap_in_the_formula_of_the_two_factors() -> None:
    law = Recycled.within(GaussianKernel(2.0), 0.7, 1.0, 1.0)
    again = law.rate * law.outside
    last = again**3
    earlier = (1 - last) / (1 - again)
    assert 1 - law.capped(4).rate == pytest.approx(
        ((1 - law.rate) * earlier + last) / (earlier + last), rel=1e-12
    )


def test_values_keep_their_shape() -> None:
    law = Recycled.within(GaussianKernel(1.0), 0.5, 1.0, 1.0)
    assert law.release(np.zeros((2, 3)), rng("shape")).shape == (2, 3)
    assert np.ndim(law.release_by_loop(1.0, rng("shape")).released) == 0


LAWS = [
    Recycled.within(GaussianKernel(6.0), 0.7, 3.0, 1.0),
    Recycled.within(LaplaceKernel(0.4), 0.9, 3.0, 1.0),
    Recycled.within(GaussianKernel(40.0), 0.99, 3.0, 1.0),
    Recycled.within(GaussianKernel(1.0), 1.0, 0.5, 1.0),
]


KERNEL = GaussianKernel(1.0)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Recycled(KERNEL, 1.2, -1.0, 1.0, 1.0), "rate must be at most 1"),
    (lambda: Recycled(KERNEL, -0.1, -1.0, 1.0, 1.0), "rate must be at least 0"),
    (lambda: Recycled(KERNEL, 0.5, 0.0, 1.0, 1.0), "lower must be below 0"),
    (lambda: Recycled(KERNEL, 0.5, -1.0, -1.0, 1.0), "upper must be above 0"),
    (lambda: Recycled(KERNEL, 0.5, -1.0, 1.0, 0.0), "sensitivity must be above 0"),
    (lambda: Recycled.within(KERNEL, 0.5, 0.0, 1.0), "bound must be above 0"),
    (
        lambda: Recycled.within(GaussianKernel(1e9), 1.0, 1e-300, 1.0),
        "lower must lie within 150 orders",
    ),
    (lambda: LAWS[0].release([math.nan], rng("shape")), "finite"),
    (lambda: LAWS[0].release_by_loop(0.0, rng("shape"), 0), "at least 1"),
    (lambda: account(LAWS[0], 3), "either epsilon or delta"),
    (lambda: account(LAWS[0], 0, epsilon=1.0), "steps must be at least 1"),
    (lambda: account(LAWS[0], 2, epsilon=1.0, adjacency="other"), "unknown adjacency"),
    (lambda: ceiling(1.0, 1e-5, 0.0, 1.0), "bound must be above 0"),
    (
        lambda: largest_rate(KERNEL, 1.0, 1e-5, -1.0, 1.0, 1.0),
        "the budget must allow for the kernel",
    ),
    (lambda: largest_rate(KERNEL, 1.0, 1e-5, -1.0, 1.0, 1.0, 4), "4 releases"),
    (lambda: best_recycler(GaussianKernel, 1.0, 1.0, 1.0, 1.0), "delta must be below 1"),
    (lambda: best_recycler(GaussianKernel, 1.0, 0.1, 0.0, 1.0), "bound must be above 0"),
    (lambda: advise(GaussianKernel, 1e300, 1e-50, 1e-12, 1e-300, 2), "epsilon must be at most"),
    (lambda: plain_noise(LaplaceKernel, 1e99, 1e-5, 1.0, -1.0, 2), "sensitivity must be"),
    (lambda: plain_noise(LaplaceKernel, 1e99, 1e-5, 1.0, 1e-300, 2), "sensitivity must be"),
    (lambda: plain_noise(GaussianKernel, 1.0, 1e-5, 1.0, 1.0, 10**400), "steps must be at most"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_what_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        call()

"""The law of recycled noise, and draws from it: by the loop, without a loop, and with a cap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpsub.errors import ArgumentError
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled
from dpsub.recycling.kernels import Kernel
from dpsub.streams import stream
from tests.unit.recycled_laws import KERNELS, density, nodes

ROOT = 7
ALPHA = 1e-6
DRAWS = 40_000
KINDS = [GaussianKernel(2.0), LaplaceKernel(1.5)]


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
def test_moments_and_probabilities_by_quadrature(kernel: Kernel, lower: float, upper: float, rate: float) -> None:
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


@pytest.mark.parametrize("kernel", KINDS, ids=str)
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
    assert 1 - law.capped(4).rate == pytest.approx(((1 - law.rate) * earlier + last) / (earlier + last), rel=1e-12)


def test_acceptance_is_one_over_the_mean_trials() -> None:
    law = Recycled.within(GaussianKernel(2.0), 0.9, 0.5, 1.0)
    assert 1 / law.acceptance == pytest.approx(law.rate + (1 - law.rate) / law.inside)


def test_values_keep_their_shape_and_are_checked() -> None:
    law = Recycled.within(GaussianKernel(1.0), 0.5, 1.0, 1.0)
    assert law.release(np.zeros((2, 3)), rng("shape")).shape == (2, 3)
    assert np.ndim(law.release_by_loop(1.0, rng("shape")).released) == 0
    with pytest.raises(ArgumentError, match="finite"):
        law.release([math.nan], rng("shape"))
    with pytest.raises(ArgumentError, match="at least 1"):
        law.release_by_loop(0.0, rng("shape"), 0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rate": 1.2}, "rate must be at most 1"),
        ({"rate": -0.1}, "rate must be at least 0"),
        ({"lower": 0.0}, "lower must be below 0"),
        ({"upper": -1.0}, "upper must be above 0"),
        ({"sensitivity": 0.0}, "sensitivity must be above 0"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, float], sentence: str) -> None:
    good = {"rate": 0.5, "lower": -1.0, "upper": 1.0, "sensitivity": 1.0}
    with pytest.raises(ArgumentError, match=sentence):
        Recycled(GaussianKernel(1.0), **(good | change))
    with pytest.raises(ArgumentError, match="bound must be above 0"):
        Recycled.within(GaussianKernel(1.0), 0.5, 0.0, 1.0)

"""Recycled noise on samples: amplification and its inverse, the acceptance of E + N, and the search for a rate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpsub.errors import ArgumentError
from dpsub.recycling import sampled
from dpsub.recycling.kernels import GaussianKernel, LaplaceKernel
from dpsub.recycling.law import Recycled

LAWS = [
    Recycled.within(GaussianKernel(6.0), 0.7, 3.0, 1.0), Recycled.within(LaplaceKernel(0.4), 0.9, 3.0, 1.0),
    Recycled.within(GaussianKernel(40.0), 0.99, 3.0, 1.0), Recycled.within(GaussianKernel(1.0), 1.0, 0.5, 1.0),
]  # fmt: skip


def test_amplify_then_invert_is_the_identity() -> None:
    for rate in (0.05, 0.5, 1.0):
        inner = sampled.inner_budget(0.3, 1e-6, rate)
        assert sampled.amplified(*inner, rate) == pytest.approx((0.3, 1e-6), rel=1e-13)
        assert inner[0] >= 0.3 and inner[1] >= 1e-6
    with pytest.raises(ArgumentError, match="delta must be below"):
        sampled.inner_budget(0.3, 0.2, 0.1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sd", [0.05, 1.0, 4.0, 60.0])
def test_total_acceptance_is_the_integral_over_the_noise(law: Recycled, sd: float) -> None:
    """The other way round: the density of N against the distribution function of E."""

    def integrand(n: float) -> float:
        chance = stats.norm.cdf((law.upper - n) / sd) - stats.norm.cdf((-law.upper - n) / sd)
        return float(np.exp(law.log_density(n)) * chance)

    far = 45 * law.kernel.scale + 10 * sd
    theta, scale = law.upper, law.kernel.scale
    marks = sorted({0.0, theta, theta - 8 * sd, theta + 8 * sd, scale, 4 * scale, far})
    edges = [mark for mark in marks if 0 <= mark <= far]
    # a little inside each interval, since the density jumps at its ends
    parts = [integrate.quad(integrand, a * (1 + 1e-14), b * (1 - 1e-14), limit=200, epsabs=1e-11)[0]
             for a, b in itertools.pairwise(edges)]  # fmt: skip
    assert sampled.total_acceptance(law, sd, theta) == pytest.approx(2 * math.fsum(parts), abs=2e-9)


def test_without_sampling_error_it_is_the_acceptance() -> None:
    law = LAWS[0]
    assert sampled.total_acceptance(law, 0.0, 3.0) == pytest.approx(law.acceptance, rel=1e-13)
    assert sampled.total_acceptance(law, 1e-4, 3.0) == pytest.approx(law.acceptance, rel=1e-4)


def test_printed_acceptance_is_not_the_acceptance() -> None:
    """A count of 1000 records at p = 0.2, bound 3."""
    sd = math.sqrt(1000 * 0.1 * 0.9 * 0.8 / 0.2)
    law = LAWS[0]
    true = sampled.total_acceptance(law, sd, 3.0)
    mended = float(sampled.printed_acceptance(6.0, 0.7, sd, 3.0, swapped=True))
    printed = float(sampled.printed_acceptance(6.0, 0.7, sd, 3.0, swapped=False))
    assert mended > true * 1.02 and abs(printed - true) > 0.02
    # without sampling error the mended form is right
    assert float(sampled.printed_acceptance(6.0, 0.7, 0.0, 3.0, swapped=True)) == pytest.approx(law.acceptance)

"""One test an erratum of Birrell et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import math

import pytest

from dpsub.papers.birrell.evidence import SMALL_RATE, attained_over_poisson, leading_over_poisson


def chi_square_of_fixed_size(noise: float, q: float) -> float:
    """Return D_2 of (C, -C, ..., -C) against (-C, ..., -C) in closed form."""
    return math.log1p(q**2 * math.expm1(4 / noise**2))


@pytest.mark.parametrize("noise", [1, 2, 6, 20])
def test_bi1_fixed_size_and_poisson_have_different_leading_terms(noise: float) -> None:
    ratio = attained_over_poisson(noise)
    assert 1 < ratio < leading_over_poisson(noise)
    # the leading term of Poisson samples is exact, so that the ratio is known without quadrature
    leading = SMALL_RATE**2 * 4 * math.sinh(noise**-2) / 2
    closed = chi_square_of_fixed_size(noise, SMALL_RATE) / (2 * leading)
    assert ratio == pytest.approx(closed, rel=0.01)


def test_bi1_the_terms_agree_where_the_noise_is_large() -> None:
    assert attained_over_poisson(60) == pytest.approx(1, abs=1e-3)
    assert leading_over_poisson(60) == pytest.approx(1, abs=1e-3)

"""Discrete laws against exact fractions, 50-digit arithmetic and SciPy."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import stats

from dpsub.sampling import laws


def exact_log(value: Fraction) -> float:
    with mpmath.workdps(50):
        return float(mpmath.log(mpmath.mpf(value.numerator) / value.denominator))


def relative(log_value: np.ndarray, log_exact: np.ndarray) -> float:
    """Largest relative error of the probabilities, beyond the two roundings that a logarithm of this size has."""
    error = np.abs(np.expm1(log_value - log_exact)) - 2 * np.spacing(np.abs(log_exact))
    return float(np.max(error))


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 40])
@pytest.mark.parametrize("p", [Fraction(1, 1024), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1023, 1024)])
def test_binomial_equals_fractions(n: int, p: Fraction) -> None:
    exact = [exact_log(comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1)]
    assert relative(laws.log_binomial(np.arange(n + 1), n, float(p)), np.array(exact)) < 2e-14


@pytest.mark.parametrize(
    ("n", "p", "error"),
    [(400, 1 / 1000, 2e-13), (500, 0.5, 2e-13), (30969, 300 / 30969, 2e-13), (10**6, 1e-3, 2e-13), (10**9, 0.3, 2e-11)],
)
def test_binomial_for_large_n(n: int, p: float, error: float) -> None:
    centre, spread = n * p, np.sqrt(n * p * (1 - p))
    offsets = np.array([-8, -3, -1, 0, 0.5, 2, 6, 20])
    k = np.unique(np.clip(np.round(centre + offsets * spread), 0, n)).astype(int)
    with mpmath.workdps(50):
        q = mpmath.mpf(p)
        exact = [
            float(mpmath.loggamma(n + 1) - mpmath.loggamma(i + 1) - mpmath.loggamma(n - i + 1)
                  + i * mpmath.log(q) + (n - i) * mpmath.log(1 - q))
            for i in k.tolist()
        ]  # fmt: skip
    assert relative(laws.log_binomial(k, n, p), np.array(exact)) < error


def test_binomial_where_probabilities_underflow() -> None:
    log_p = laws.log_binomial(np.array([400, 399, 300]), 400, 1e-3)
    exact = [400 * np.log(1e-3), np.log(400) + 399 * np.log(1e-3) + np.log1p(-1e-3)]
    assert log_p[:2] == pytest.approx(exact, rel=1e-14)
    assert np.exp(log_p[0]) == 0 and np.isfinite(log_p).all()


def test_binomial_edges() -> None:
    k = np.array([-1, 0, 1, 2, 3, 4])
    assert np.exp(laws.log_binomial(k, 3, 0.0)).tolist() == [0, 1, 0, 0, 0, 0]
    assert np.exp(laws.log_binomial(k, 3, 1.0)).tolist() == [0, 0, 0, 0, 1, 0]
    assert np.exp(laws.log_binomial(k, 0, 0.4)).tolist() == [0, 1, 0, 0, 0, 0]
    assert not np.isnan(laws.log_binomial(k, 3, 0.3)).any()


def test_binomial_broadcasts() -> None:
    k, n, p = np.arange(4), np.array([3, 5])[:, None], np.array([0.1, 0.7])[:, None]
    assert laws.log_binomial(k, n, p).shape == (2, 4)
    assert np.exp(laws.log_binomial(k, n, p)) == pytest.approx(stats.binom.pmf(k, n, p), rel=1e-13)


def test_binomial_agrees_with_scipy() -> None:
    k = np.arange(0, 501)
    ours = laws.log_binomial(k, 500, 0.4)
    assert ours == pytest.approx(stats.binom.logpmf(k, 500, 0.4), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("total", "marked", "drawn"), [(10, 4, 3), (10, 4, 8), (7, 7, 3), (9, 0, 4), (12, 5, 12), (60, 25, 20)]
)
def test_hypergeometric_equals_fractions(total: int, marked: int, drawn: int) -> None:
    k = np.arange(-1, drawn + 2)
    log_p = laws.log_hypergeometric(k, total, marked, drawn)
    for i, value in zip(k.tolist(), log_p.tolist(), strict=True):
        inside = 0 <= i <= marked and 0 <= drawn - i <= total - marked
        ways = comb(marked, i) * comb(total - marked, drawn - i) if inside else 0
        exact = Fraction(ways, comb(total, drawn))
        assert np.exp(value) == pytest.approx(float(exact), rel=3e-14, abs=0)


def test_hypergeometric_for_large_populations() -> None:
    total, marked, drawn = 10**6, np.array([10, 3000, 500_000]), 2000
    k = np.array([1, 7, 1000])
    log_p = laws.log_hypergeometric(k, total, marked, drawn)
    with mpmath.workdps(60):
        exact = [
            float(mpmath.log(comb(a, i) * comb(total - a, drawn - i)) - mpmath.log(comb(total, drawn)))
            for a, i in zip(marked.tolist(), k.tolist(), strict=True)
        ]
    assert relative(log_p, np.array(exact)) < 1e-12


def occupancy_fractions(balls: int, cells: int) -> list[Fraction]:
    row = [Fraction(1)]
    for _ in range(balls):
        row = [
            (row[k] * Fraction(k, cells) if k < len(row) else Fraction(0))
            + (row[k - 1] * (1 - Fraction(k - 1, cells)) if k else Fraction(0))
            for k in range(len(row) + 1)
        ]
    return row[: min(balls, cells) + 1]


def one_point(balls: int) -> np.ndarray:
    log_p = np.full(balls + 1, -np.inf)
    log_p[-1] = 0.0
    return log_p


@pytest.mark.parametrize(("balls", "cells"), [(0, 3), (1, 1), (5, 1), (4, 7), (7, 4), (30, 50), (25, 300)])
def test_occupancy_equals_fractions(balls: int, cells: int) -> None:
    law = np.exp(laws.occupancy_mixture(one_point(balls), cells))
    exact = np.array([float(p) for p in occupancy_fractions(balls, cells)])
    assert len(law) == len(exact)
    assert law == pytest.approx(exact, rel=1e-12, abs=0)


def test_occupancy_by_surjections() -> None:
    """P(k occupied) = C(N, k) k! S(d, k) / N^d with Stirling numbers by inclusion and exclusion: another road."""
    balls, cells = 12, 9
    law = np.exp(laws.occupancy_mixture(one_point(balls), cells))
    for k in range(cells + 1):
        onto = sum((-1) ** (k - i) * comb(k, i) * i**balls for i in range(k + 1))
        assert law[k] == pytest.approx(comb(cells, k) * onto / cells**balls, rel=1e-12, abs=0)


def test_occupancy_with_a_random_number_of_balls() -> None:
    weights, cells = [Fraction(1, 2), Fraction(0), Fraction(1, 8), Fraction(3, 8)], 2
    with np.errstate(divide="ignore"):
        law = np.exp(laws.occupancy_mixture(np.log([float(w) for w in weights]), cells))
    exact = [Fraction(0)] * 3
    for balls, weight in enumerate(weights):
        for k, p in enumerate(occupancy_fractions(balls, cells)):
            exact[k] += weight * p
    assert law == pytest.approx([float(p) for p in exact], rel=1e-13)


def test_occupancy_mean_at_the_papers_sizes() -> None:
    law = np.exp(laws.occupancy_mixture(one_point(300), 30969))
    mean = np.arange(len(law)) @ law
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert mean == pytest.approx(-30969 * np.expm1(300 * np.log1p(-1 / 30969)), rel=1e-12)


def test_mixed_rows() -> None:
    weights, rows = np.array([0.25, 0.75]), np.array([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    with np.errstate(divide="ignore"):
        mixed = laws.mix_rows(np.log(weights), np.log(rows))
    assert np.exp(mixed) == pytest.approx(weights @ rows, rel=1e-15)
    with np.errstate(divide="ignore"):
        assert laws.mix_rows(np.log([1.0]), np.log([[0.0, 1.0]])).tolist() == [-np.inf, 0.0]

"""Recycled noise on whole numbers: exact draws against their laws, finite sums against brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsub.errors import ArgumentError
from dpsub.recycling import GaussianKernel, budget, discrete
from dpsub.recycling.discrete import DiscreteGaussian, DiscreteKernel, DiscreteLaplace, DiscreteRecycled
from dpsub.streams import stream

ROOT = 7
ALPHA = 1e-6
DRAWS = 1500
KERNELS = [DiscreteGaussian(Fraction(9, 2)), DiscreteLaplace(Fraction(5, 3))]


def rng(test: str) -> np.random.Generator:
    return stream(ROOT, experiment=test, cell={}, role="noise", replicate=0)


def fits(drawn: np.ndarray, support: np.ndarray, pmf: np.ndarray) -> bool:
    """Chi-square over the values that are expected often enough, the others together."""
    often = pmf * drawn.size >= 20
    counts = np.array([np.count_nonzero(drawn == n) for n in support[often]])
    observed = np.append(counts, drawn.size - counts.sum())
    expected = drawn.size * np.append(pmf[often], 1 - pmf[often].sum())
    return bool(stats.chisquare(observed, expected).pvalue > ALPHA)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(3, 5), Fraction(1)], ids=str)
def test_draws_have_the_law(kernel: DiscreteKernel, rate: Fraction) -> None:
    law = DiscreteRecycled(kernel, rate, -2, 1, 1)
    drawn = law.release(np.full(DRAWS, 100), rng(f"discrete {kernel} {rate}")) - 100
    assert fits(drawn, law.support, law.pmf)
    other = DiscreteRecycled(kernel, Fraction(int(rate == 0)), -2, 1, 1)
    assert not fits(drawn, other.support, other.pmf)


def test_bernoulli_and_its_exponential() -> None:
    generator = rng("bernoulli")
    for probability, one in (
        (3 / 7, lambda: discrete.bernoulli(Fraction(3, 7), generator)),
        (math.exp(-2.5), lambda: discrete.bernoulli_exp(Fraction(5, 2), generator)),
    ):
        hits = sum(one() for _ in range(DRAWS))
        assert stats.binomtest(hits, DRAWS, probability).pvalue > ALPHA
    assert not discrete.bernoulli(Fraction(0), generator)
    assert discrete.bernoulli(Fraction(1), generator)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 3), Fraction(1)], ids=str)
@pytest.mark.parametrize(("lower", "upper", "sensitivity"), [(-3, 3, 1), (-2, 5, 2), (-1, 1, 4)])
def test_both_ends_hold_the_sum_of_positive_parts(
    kernel: DiscreteKernel, rate: Fraction, lower: int, upper: int, sensitivity: int
) -> None:
    law = DiscreteRecycled(kernel, rate, lower, upper, sensitivity)
    n = range(-150, 151)
    weights = {k: weight(law, k) for k in n}
    total = math.fsum(weights.values())
    p = {k: value / total for k, value in weights.items()}
    for epsilon in (0.0, 0.3, 1.7):
        truth = max(
            math.fsum(max(p[k] - math.exp(epsilon) * p.get(k - shift, 0.0), 0.0) for k in n)
            for shift in (sensitivity, -sensitivity)
        )
        low, high = law.bounds(epsilon)
        assert low <= truth * (1 + 1e-13) + 1e-15
        assert truth <= high * (1 + 1e-13) + 1e-15
        assert high - low <= 1e-11
    assert law.acceptance == pytest.approx(sum(p[k] for k in range(lower, upper + 1)))
    mean = sum(k * p[k] for k in n)
    assert law.variance == pytest.approx(sum((k - mean) ** 2 * p[k] for k in n))
    assert law.infinite_mass == pytest.approx(sum(p[k] for k in n if p[k] > 0 and p.get(k - sensitivity, 0.0) == 0))


def weight(law: DiscreteRecycled, n: int) -> float:
    """Unnormalised probability, from the definition."""
    parameter = float(law.kernel.parameter)
    size = n * n / (2 * parameter) if isinstance(law.kernel, DiscreteGaussian) else abs(n) / parameter
    return math.exp(-size) * (1.0 if law.lower <= n <= law.upper else 1 - float(law.rate))


def test_what_is_cut_off_is_charged() -> None:
    law = DiscreteRecycled(DiscreteLaplace(Fraction(2)), Fraction(1, 2), -1, 1, 1)
    # beyond its largest loss the profile of this law is 0, and the upper end is not
    assert law.bounds(3.0)[0] == 0
    assert 0 < law.bounds(3.0)[1] < 1e-25


def test_the_largest_rate_keeps_the_budget_and_the_next_one_does_not() -> None:
    kernel = DiscreteGaussian(Fraction(20))
    law = discrete.largest_rate(kernel, 1.0, 1e-4, -2, 2, 1)
    beyond = DiscreteRecycled(kernel, law.rate + Fraction(1, 2**16), -2, 2, 1)
    assert law.bounds(1.0)[1] <= 1e-4 < beyond.bounds(1.0)[0]
    # the continuous kernel of the same variance has nearly the same rate
    near = budget.largest_rate(GaussianKernel(20**0.5), 1.0, 1e-4, -2.5, 2.5, 1.0).law.rate
    assert float(law.rate) == pytest.approx(near, abs=0.06)
    with pytest.raises(ArgumentError, match="the budget must allow for the kernel"):
        discrete.largest_rate(DiscreteGaussian(Fraction(1)), 1.0, 1e-4, -2, 2, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"rate": Fraction(3, 2)}, "rate must be at most 1"), ({"lower": 0}, "lower must be at most -1"),
     ({"upper": 0}, "upper must be at least 1"), ({"sensitivity": 0}, "sensitivity must be at least 1")],
)  # fmt: skip
def test_bad_arguments_are_refused(change: dict[str, int], sentence: str) -> None:
    good = {"rate": Fraction(1, 2), "lower": -1, "upper": 1, "sensitivity": 1}
    with pytest.raises(ArgumentError, match=sentence):
        DiscreteRecycled(KERNELS[0], **(good | change))
    with pytest.raises(ArgumentError, match="parameter must be above 0"):
        DiscreteGaussian(Fraction(0))
    with pytest.raises(ArgumentError, match="must be a fraction"):
        DiscreteGaussian(math.nan)
    with pytest.raises(ArgumentError, match="whole numbers"):
        DiscreteRecycled(KERNELS[0], Fraction(1, 2), -1, 1, 1).release(np.array([0.5]), rng("refused"))

"""The paper's bounds, computed in two ways, and a planted fault."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpsub.papers.birrell import bounds
from dpsub.papers.birrell.claims import BirrellClaims
from dpsub.papers.birrell.experiments import RenyiOfAStep
from dpsub.reproduce.claims import of_variant

Q, SIGMA = 0.0024, 6.0


def by_binomial(alpha: int, sigma: float, q: float) -> float:
    """Return D_alpha of a record that is included with probability q, for whole orders."""
    terms = (
        math.comb(alpha, k) * (1 - q) ** (alpha - k) * q**k * math.exp(2 * k * (k - 1) / sigma**2)
        for k in range(alpha + 1)
    )
    return math.log(math.fsum(terms)) / (alpha - 1)


@pytest.mark.parametrize("alpha", [2, 3, 10, 30])
def test_the_divergence_is_that_of_the_binomial_sum(alpha: int) -> None:
    found = bounds.attack_without_replacement(alpha, 2.0, 0.1)
    assert found == pytest.approx(by_binomial(alpha, 2.0, 0.1), rel=1e-10)


def test_small_divergences_keep_their_digits() -> None:
    found = bounds.attack_without_replacement(2.0, SIGMA, 1e-4)
    assert found == pytest.approx(math.log1p(1e-8 * math.expm1(4 / 36)), rel=1e-6)


@pytest.mark.parametrize("alpha", [2, 3])
def test_draws_with_replacement_are_those_of_the_sum_over_copies(alpha: int) -> None:
    size, q = 6, 0.3
    weights = stats.binom.pmf(range(size + 1), size, q / size)
    total = 0.0
    for copies in itertools.product(range(size + 1), repeat=alpha):
        # E_Q of a product of likelihood ratios of N(2 l, sigma^2)
        shared = sum(a * b for a, b in itertools.combinations(copies, 2))
        total += math.prod(weights[list(copies)]) * math.exp(4 * shared / SIGMA**2)
    found = bounds.attack_with_replacement(alpha, SIGMA, q, size)
    assert found == pytest.approx(math.log(total) / (alpha - 1), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_moments_are_those_of_the_integral(k: int) -> None:
    def integrand(z: float) -> float:
        ratio = math.exp(2 * z / 3.0 - 2 / 9.0)
        return (ratio - 1) ** k * float(stats.norm.pdf(z))

    expected = integrate.quad(integrand, -12, 16, epsabs=1e-14)[0]
    assert math.exp(bounds.log_moment(k, 3.0)) == pytest.approx(expected, rel=1e-8)


def test_expansions_are_exact_at_whole_orders_below_their_degree() -> None:
    found = bounds.without_replacement_added(3, SIGMA, Q, 5)
    assert found == pytest.approx(by_binomial(3, SIGMA, Q), rel=1e-9)


@pytest.mark.parametrize("degree", [3, 4, 5])
@pytest.mark.parametrize("alpha", [1.3, 2.0, 4.5, 12.0])
def test_bounds_are_above_what_attacks_attain(alpha: float, degree: int) -> None:
    fixed = bounds.attack_without_replacement(alpha, SIGMA, Q) * (1 - 1e-6)
    assert bounds.without_replacement_added(alpha, SIGMA, Q, degree) >= fixed
    assert bounds.without_replacement_replaced(alpha, SIGMA, Q, degree) >= fixed
    poisson = bounds.attack_poisson(alpha, SIGMA, Q) * (1 - 1e-6)
    assert bounds.poisson_replaced(alpha, SIGMA, Q, degree) >= poisson
    drawn = bounds.attack_with_replacement(alpha, SIGMA, 20 * Q / 120, 20) * (1 - 1e-6)
    assert bounds.with_replacement_added(alpha, SIGMA, 20 * Q / 120, degree, 20) >= drawn


def test_a_bound_that_is_too_small_is_noticed() -> None:
    settings = {"orders": [2.0, 5.0], "degrees": [3], "batch": 20, "n": 8000}
    frame = RenyiOfAStep().compute(settings, variant="stated").assign(variant="stated", data="")
    ask = next(claim.ask for claim in BirrellClaims.claims if claim.claim == "above_lower")
    for factor, holds in ((1.0, True), (0.9, False)):
        planted = frame.assign(bound=frame["bound"] * factor)
        frames = {
            "birrell_renyi": of_variant({"birrell_renyi": planted}, "birrell_renyi", "stated")
        }
        assert ask(frames).holds is holds


def test_epsilon_is_the_least_over_orders() -> None:
    # the Gaussian mechanism: D_alpha = alpha / 2 for one step of sensitivity over noise 1
    found = bounds.epsilons_of(lambda alpha: alpha / 2, 1, [1e-5])[0]
    orders = np.linspace(1.1, 30, 20_000)
    by_grid = orders / 2 + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)
    assert found == pytest.approx(by_grid.min(), rel=2e-3)

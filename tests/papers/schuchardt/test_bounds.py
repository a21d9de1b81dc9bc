"""The paper's bounds, computed in two ways, and planted faults."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import dpsub
from dpsub.papers.schuchardt import bounds
from dpsub.papers.schuchardt.claims import SchuchardtClaims
from dpsub.papers.schuchardt.experiments import OneStep, change, posthoc, specific

LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}


def by_quadrature(
    epsilon: float, law: str, noise: float, first: np.ndarray, second: np.ndarray
) -> float:
    """Return the hockey stick divergence, integrated between the means."""

    def density(x: float, parts: np.ndarray) -> float:
        return sum(math.exp(weight) * LAWS[law].pdf(x, mean, noise) for mean, weight in parts)

    def integrand(x: float) -> float:
        return max(density(x, first) - math.exp(epsilon) * density(x, second), 0.0)

    means = sorted({*first[:, 0], *second[:, 0]})
    places = [means[0] - 40 * noise, *means, means[-1] + 40 * noise]
    return sum(
        integrate.quad(integrand, left, right, epsabs=1e-13, limit=200)[0]
        for left, right in itertools.pairwise(places)
    )


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("removed", [0, 1, 3])
def test_delta_is_that_of_the_integral(law: str, removed: int) -> None:
    pair = bounds.poisson(removed, 0.3), bounds.poisson(3 - removed, 0.3, -1)
    for epsilon in (0.1, 0.7):
        found = bounds.delta(epsilon, law, 1.5, *pair)
        # adaptive quadrature of a kink
        assert found == pytest.approx(by_quadrature(epsilon, law, 1.5, *pair), rel=1e-8)


@pytest.mark.parametrize(("plus", "minus"), [(2, 0), (2, 2), (1, 3)])
def test_mixed_groups_lie_between_our_bounds(plus: int, minus: int) -> None:
    answer = dpsub.account(
        dpsub.Poisson(0.1), noise_multiplier=1.5, epsilon=0.5, group=(plus, minus)
    )
    found = max(
        bounds.delta(0.5, "gaussian", 1.5, bounds.poisson(a, 0.1), bounds.poisson(b, 0.1, -1))
        for a, b in ((plus, minus), (minus, plus))
    )
    assert answer.lower <= found <= answer.upper
    assert answer.upper < 1.01 * answer.lower


def test_a_bound_that_is_too_small_is_noticed() -> None:
    settings = {"noises": [2.0], "rates": [0.2], "groups": [1, 2], "epsilons": [1.0]}
    frame = OneStep().compute(settings, variant="stated").assign(variant="stated", data="")
    asks = {claim.claim: claim.ask for claim in SchuchardtClaims.claims if hasattr(claim, "ask")}
    for factor, holds in ((1.0, 1.0), (0.9, 0.0), (1.1, 0.0)):
        planted = frame.assign(same_kind=frame["same_kind"] * factor)
        assert asks["tight_3.8"]({"schuchardt_step": planted}).holds == holds
    assert asks["agnostic_gaussian"]({"schuchardt_step": frame}).holds
    worse = frame.assign(agnostic=frame["specific"] * 0.999)
    assert not asks["agnostic_gaussian"]({"schuchardt_step": worse}).holds


def test_the_agnostic_bound_is_that_of_dpsub() -> None:
    # Balle et al., Theorem 8: epsilon' and delta' of a Poisson sample
    base = 1.0
    inner = math.log1p(0.2 * math.expm1(base))
    found = bounds.agnostic(inner, "gaussian", 2.0, bounds.poisson(1, 0.2)[:, 1])
    profile = stats.norm.cdf(0.25 - 2 * base) - math.e**base * stats.norm.cdf(-0.25 - 2 * base)
    assert found == pytest.approx(0.2 * profile, rel=1e-9)


def test_the_property_multiplies_the_delta_of_one_record() -> None:
    # two records: delta (1 + e^(epsilon / 2)) at half of epsilon
    account = dpsub.account(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=20, epsilon=0.5)
    lower, upper = posthoc(1, 2.0, 0.1, 2, 20, 1.0)
    factor = 1 + math.exp(0.5)
    assert lower <= factor * account.upper and factor * account.lower <= upper
    assert specific(2.0, 0.1, 2, 20, 1.0)[1] < lower


def test_the_search_ends_where_the_statement_changes() -> None:
    for last in (1, 65, 18_000):
        for start in (1, 100, 20_000):
            yes, no = change(lambda steps, last=last: steps <= last, start)
            assert yes <= last < no and no <= max(yes + 1, 1.03 * yes)


def test_renyi_divergences_are_those_of_the_binomial_sum() -> None:
    pair = bounds.poisson(1, 0.1), bounds.NOTHING
    for alpha in (2, 5, 16):
        found = bounds.renyi(alpha, 2.0, *pair)
        assert found == pytest.approx(bounds.renyi_of_one(alpha, 2.0, 0.1), rel=1e-9)


def test_renyi_bounds_of_groups_are_above_the_divergence() -> None:
    for group in (2, 4):
        for alpha in (2, 6):
            tight = bounds.renyi(alpha, 3.0, bounds.poisson(group, 0.1), bounds.NOTHING)
            assert bounds.renyi_agnostic(alpha, 3.0, 0.1, group) > tight
            several = bounds.renyi_posthoc(
                alpha, group, lambda order: bounds.renyi_of_one(order, 3.0, 0.1)
            )
            assert several > tight


def test_randomised_response_is_the_worst_case_of_the_agnostic_bound() -> None:
    # by enumeration of the answers: 0 or 1
    included = 1 - 0.8**3
    turned = 0.75 * (1 - included) + 0.25 * included
    worst = max(1 - turned - math.exp(0.3) * 0.25, turned - math.exp(0.3) * 0.75, 0)
    assert bounds.response_delta(0.3, 0.75, included) == pytest.approx(worst, rel=1e-12)
    assert bounds.response_agnostic(0.3, 0.75, included) == pytest.approx(worst, rel=1e-9)

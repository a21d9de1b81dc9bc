"""Queries on samples of fixed size, and the acceptance of sampling error and noise together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpsub.errors import ArgumentError
from dpsub.papers.brdp import queries
from dpsub.papers.brdp.queries import KINDS, Query
from dpsub.recycling.kernels import GaussianKernel, LaplaceKernel
from dpsub.recycling.law import Recycled

VALUES = np.array([0.0, 0.4, 1.0, 2.5, 3.0, 7.0])
Case = tuple[Query, np.ndarray]
SIZES = pytest.mark.parametrize("size", [2, 3, 6])


@pytest.fixture(params=sorted(KINDS))
def case(request: pytest.FixtureRequest) -> Case:
    """A query of six records and their values."""
    counted = request.param == "cnt"
    values = (VALUES > 1).astype(float) if counted else VALUES
    return KINDS[request.param].of_values(values, 1.0 if counted else 3.0), values


def statistics(query: Query, values: np.ndarray, size: int) -> np.ndarray:
    """Return the statistic on every sample of `size` records."""
    clipped = np.clip(values, 0, query.clip)
    sums = np.array(
        [clipped[list(chosen)].sum() for chosen in itertools.combinations(range(len(values)), size)]
    )
    return sums / size if query.name == "avg" else sums * len(values) / size


@SIZES
def test_sampling_sd_is_that_of_all_samples(case: Case, size: int) -> None:
    query, values = case
    every = statistics(query, values, size)
    assert query.sampling_sd(size / 6) == pytest.approx(every.std(), rel=1e-12, abs=1e-14)
    assert every.mean() == pytest.approx(query.answer(values))
    # the paper's formula lacks the finite-population factor
    assert query.stated_sampling_sd(size / 6) == pytest.approx(
        every.std() * math.sqrt(5 / 6), abs=1e-14
    )


@SIZES
def test_sensitivity_is_the_largest_change_of_the_statistic(case: Case, size: int) -> None:
    query, values = case
    low, high = np.append(0.0, values[1:]), np.append(100.0, values[1:])
    # the same sample of either data set: the largest difference is that of a sample that holds the
    # record
    changes = np.abs(statistics(query, high, size) - statistics(query, low, size))
    assert query.sensitivity(size / 6) == pytest.approx(changes.max())
    # calibrated to p = 1, as the paper does, it would be too small by the rate
    assert query.sensitivity(1.0) * 6 / size == pytest.approx(changes.max())


def test_estimates_have_that_law(case: Case) -> None:
    query, values = case
    drawn, every = (
        query.estimates(values, 3, 4000, np.random.default_rng(5)),
        statistics(query, values, 3),
    )
    assert drawn.mean() == pytest.approx(every.mean(), abs=5 * every.std() / math.sqrt(4000))
    assert drawn.std() == pytest.approx(every.std(), rel=0.06)
    assert (query.estimates(values, 6, 3, np.random.default_rng(5)) == query.answer(values)).all()


LAWS = [
    Recycled.within(GaussianKernel(6.0), 0.7, 3.0, 1.0),
    Recycled.within(LaplaceKernel(0.4), 0.9, 3.0, 1.0),
    Recycled.within(GaussianKernel(40.0), 0.99, 3.0, 1.0),
    Recycled.within(GaussianKernel(1.0), 1.0, 0.5, 1.0),
]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sd", [0.05, 1.0, 4.0, 60.0])
def test_total_acceptance_is_the_integral_over_the_noise(law: Recycled, sd: float) -> None:
    """The acceptance is computed the other way round: the density of N against the distribution
    function of E."""

    def integrand(n: float) -> float:
        chance = stats.norm.cdf((law.upper - n) / sd) - stats.norm.cdf((-law.upper - n) / sd)
        return float(np.exp(law.log_density(n)) * chance)

    far = 45 * law.kernel.scale + 10 * sd
    theta, scale = law.upper, law.kernel.scale
    marks = sorted({0.0, theta, theta - 8 * sd, theta + 8 * sd, scale, 4 * scale, far})
    edges = [mark for mark in marks if 0 <= mark <= far]
    # a little inside each interval, since the density jumps at its ends
    parts = [
        integrate.quad(integrand, a * (1 + 1e-14), b * (1 - 1e-14), limit=200, epsabs=1e-11)[0]
        for a, b in itertools.pairwise(edges)
    ]
    assert queries.total_acceptance(law, sd, theta) == pytest.approx(2 * math.fsum(parts), abs=2e-9)


def test_without_sampling_error_it_is_the_acceptance() -> None:
    law = LAWS[0]
    assert queries.total_acceptance(law, 0.0, 3.0) == pytest.approx(law.acceptance, rel=1e-13)
    assert queries.total_acceptance(law, 1e-4, 3.0) == pytest.approx(law.acceptance, rel=1e-4)


RNG = np.random.default_rng(0)
QUERIES = [kind(6, 1.0, 0.5) for kind in KINDS.values()]
REFUSED: list[tuple[Callable[[], Any], str]] = [
    *((lambda query=query: query.sensitivity(0.0), "rate must be") for query in QUERIES),
    *((lambda query=query: query.sensitivity(1.5), "rate must be") for query in QUERIES),
    *(
        (
            lambda query=query: query.estimates(VALUES, 7, 1, np.random.default_rng(0)),
            "at most n = 6",
        )
        for query in QUERIES
    ),
    (lambda: queries.inner_budget(0.3, 0.2, 0.1), "delta must be below"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()

"""Sums, averages and counts on all records and on samples: sensitivity and sampling error, by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.recycling.sampled import KINDS, Query, Total

VALUES = np.array([0.0, 0.4, 1.0, 2.5, 3.0, 7.0])


def made(kind: str, values: np.ndarray = VALUES) -> Query:
    return KINDS[kind].of_values((values > 1).astype(float) if kind == "cnt" else values, 1.0 if kind == "cnt" else 3.0)


def data(query: Query, values: np.ndarray = VALUES) -> np.ndarray:
    return (values > 1).astype(float) if query.name == "cnt" else values


def statistics(query: Query, values: np.ndarray, size: int) -> np.ndarray:
    """The statistic on every sample of `size` records."""
    clipped = np.clip(values, 0, query.clip)
    sums = np.array([clipped[list(chosen)].sum() for chosen in itertools.combinations(range(len(values)), size)])
    return {"sum": sums * len(values) / size, "avg": sums / size, "cnt": sums * len(values) / size}[query.name]


@pytest.mark.parametrize("kind", sorted(KINDS))
class TestQueries:
    @pytest.mark.parametrize("size", [2, 3, 6])
    def test_sampling_sd_is_that_of_all_samples(self, kind: str, size: int) -> None:
        query = made(kind)
        every = statistics(query, data(query), size)
        assert query.sampling_sd(size / 6) == pytest.approx(every.std(), rel=1e-12, abs=1e-14)
        assert every.mean() == pytest.approx(query.answer(data(query)))
        # the paper's formula lacks the finite-population factor
        assert query.stated_sampling_sd(size / 6) == pytest.approx(every.std() * math.sqrt(5 / 6), abs=1e-14)

    @pytest.mark.parametrize("size", [2, 3, 6])
    def test_sensitivity_is_the_largest_change_of_the_statistic(self, kind: str, size: int) -> None:
        query = made(kind)
        low, high = data(query).copy(), data(query).copy()
        low[0], high[0] = 0.0, 100.0
        # the same sample of either data set: the largest difference is that of a sample that holds the record
        changes = np.abs(statistics(query, high, size) - statistics(query, low, size))
        assert query.sensitivity(size / 6) == pytest.approx(changes.max())
        # calibrated to p = 1, as the paper does, it would be too small by the rate
        assert query.sensitivity(1.0) * 6 / size == pytest.approx(changes.max())

    def test_estimates_have_that_law(self, kind: str) -> None:
        query = made(kind)
        drawn = query.estimates(data(query), 3, 4000, np.random.default_rng(5))
        every = statistics(query, data(query), 3)
        assert drawn.mean() == pytest.approx(every.mean(), abs=5 * every.std() / math.sqrt(4000))
        assert drawn.std() == pytest.approx(every.std(), rel=0.06)
        assert (query.estimates(data(query), 6, 3, np.random.default_rng(5)) == query.answer(data(query))).all()

    def test_refusals(self, kind: str) -> None:
        query = made(kind)
        for rate in (0.0, 1.5):
            with pytest.raises(ArgumentError, match="rate must be"):
                query.sensitivity(rate)
        with pytest.raises(ArgumentError, match="size must be at most n = 6"):
            query.estimates(data(query), 7, 1, np.random.default_rng(0))


def test_a_poisson_sample_has_a_larger_error_of_the_sum() -> None:
    rng = np.random.default_rng(11)
    values = 50 + rng.normal(0, np.sqrt(683 * 0.3 / 0.7 / 2000), 2000)
    kept = rng.random((400, 2000)) < 0.3
    drawn = (kept * values).sum(axis=1) / 0.3
    claimed = Total(2000, 100.0, float(values.std())).stated_sampling_sd(0.3)
    assert math.sqrt((values**2).sum() * 0.7 / 0.3) == pytest.approx(drawn.std(), rel=0.15)
    assert drawn.std() > 50 * claimed

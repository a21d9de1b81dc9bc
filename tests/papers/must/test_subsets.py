"""Statistics of subsets against plain loops over the same draws, and their sensitivities."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import plain_loops
from dpsub import sampling
from dpsub.papers.must.subsets import release, subset_statistics
from dpsub.sampling.frame import Frame, Samples


@pytest.mark.parametrize("sampler", ("poisson", "wor", "wr", "must_ow", "must_ww"))
def test_subset_statistics_equal_the_written_out_records(sampler: str) -> None:
    x = np.random.default_rng(2).normal(3, 2, 300)
    samples = sampling.of_sizes(sampler, n=300, m=30, b=40).draw_block(
        Frame(300), 50, np.random.default_rng(3)
    )
    for ours, plain in zip(
        subset_statistics(x, samples), plain_loops.subset_statistics(x, samples), strict=True
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-11)


def test_subsets_too_small_for_a_statistic_are_left_out() -> None:
    samples = Samples(np.array([0, 1, 2]), np.array([1, 1, 1]), np.array([0, 0, 1, 3]))
    mean, variance = subset_statistics(np.array([1.0, 2.0, 6.0]), samples)
    np.testing.assert_allclose(mean, [np.nan, 1.0, 4.0])
    np.testing.assert_allclose(variance, [np.nan, np.nan, 8.0])
    assert release(mean, 0.0, np.random.default_rng(0)) == 2.5


def test_fixed_divisors_have_the_stated_sensitivity() -> None:
    # adding one record in [-4, 4] moves the fixed-size mean by at most 4/m and the variance by at
    # most 64/(m - 1)
    m, worst = 30, np.array([-4.0] * 11 + [4.0])
    random = np.random.default_rng(8).uniform(-4, 4, (200, 12))
    indices, largest = np.arange(12), np.zeros(2)
    for x in (worst, *random):
        with_all = subset_statistics(
            x, Samples(indices, np.ones(12, dtype=int), np.array([0, 12])), m
        )
        without = subset_statistics(
            x, Samples(indices[:-1], np.ones(11, dtype=int), np.array([0, 11])), m
        )
        moved = [
            abs(float(one[0] - other[0])) for one, other in zip(with_all, without, strict=True)
        ]
        largest = np.maximum(largest, moved)
    np.testing.assert_allclose(largest, [4 / m, 11 / 12 * 64 / (m - 1)])

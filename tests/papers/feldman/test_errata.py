"""One test an erratum of Feldman and Shenfeld: what errata.md says, shown by a computation."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

import dpsub
from dpsub.papers.feldman.settings import LOWER, PLD_ACCOUNTING
from dpsub.reproduce import published

T, K, NOISE, DELTA = 100, 5, 0.6, 1e-5


def bounds(sampler: dpsub.RandomAllocation) -> dpsub.Account:
    return dpsub.account(
        sampler,
        noise_multiplier=NOISE,
        steps=T,
        delta=DELTA,
        adjacency="zero_out",
        quick=True,
        effort=None,
    )


def test_fs1_the_lower_bound_is_above_what_is_proved_of_k_of_t_steps() -> None:
    answers = published.load("feldman", "answers").set_index(["package", "method", "t", "k"])
    claimed = float(answers.loc[(PLD_ACCOUNTING, LOWER, str(T), str(K)), "printed"])
    assert claimed > 1.08 * bounds(dpsub.RandomAllocation(T, K)).upper
    # it is one of k epochs
    assert claimed < bounds(dpsub.RandomAllocation(T // K)).lower


def second_moment(sets: list[tuple[int, ...]]) -> float:
    """Return the mean square of the likelihood ratio, from all pairs of sets of steps."""
    shared = Counter(len({*one} & {*other}) for one, other in product(sets, repeat=2))
    return sum(n * math.exp(s / NOISE**2) for s, n in shared.items()) / len(sets) ** 2


@pytest.mark.parametrize(("t", "k"), [(4, 2), (6, 2), (6, 3)])
def test_fs1_all_sets_of_steps_have_smaller_moments_than_one_of_each_epoch(t: int, k: int) -> None:
    every = list(combinations(range(t), k))
    epochs = list(product(*np.arange(t).reshape(k, -1).tolist()))
    assert second_moment(every) < second_moment(epochs)


def test_fs1_so_they_have_at_the_settings_of_the_package() -> None:
    shared = np.arange(K + 1)
    every = stats.hypergeom.pmf(shared, T, K, K) @ np.exp(shared / NOISE**2)
    epoch = (T / K - 1 + math.exp(1 / NOISE**2)) / (T / K)
    assert every < 0.9 * epoch**K

"""Thinned samples (docs/proofs/poisson.md): the account of the sampler covers them, written out
slot by slot."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.sampling import Poisson, Sampler, Wor, Wr
from dpsub.sampling.frame import Samples
from tests.few import few

S, STEP = 0.8, 1e-3
GRID = np.arange(-14, 14, STEP)
RATE, N, M = 0.4, 3, 2


def _draws(sampler: Sampler, n: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return chances and slots of all samples."""
    if isinstance(sampler, Poisson):
        sets = [set_ for size in range(n + 1) for set_ in itertools.combinations(range(n), size)]
        return [(RATE ** len(set_) * (1 - RATE) ** (n - len(set_)), set_) for set_ in sets]
    rows = (
        itertools.combinations(range(n), M)
        if isinstance(sampler, Wor)
        else itertools.product(range(n), repeat=M)
    )
    found = list(rows)
    return [(1 / len(found), row) for row in found]


def _density(sampler: Sampler, vectors: list[float], chances: list[float]) -> np.ndarray:
    total = np.zeros(len(GRID))
    for chance, slots in _draws(sampler, len(vectors)):
        distinct = sorted(set(slots))
        for coins in itertools.product((0, 1), repeat=len(distinct)):
            weight = np.prod(
                [chances[i] if c else 1 - chances[i] for i, c in zip(distinct, coins, strict=True)]
            )
            kept = {i for i, c in zip(distinct, coins, strict=True) if c}
            total += (
                chance * weight * norm.pdf(GRID, sum(vectors[i] for i in slots if i in kept), S)
            )
    return total


def _delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return max(
        float(np.maximum(one - np.exp(epsilon) * other, 0).sum()) * STEP
        for one, other in ((p, q), (q, p))
    )


@pytest.mark.parametrize("epsilon", few((1.0, 0.1)))
@pytest.mark.parametrize("sampler", [Poisson(RATE), Wor(M), Wr(M)], ids=["poisson", "wor", "wr"])
def test_the_account_covers_thinned_sums(sampler: Sampler, epsilon: float) -> None:
    known = dpsub.account(
        sampler, n=N, noise_multiplier=S, steps=1, epsilon=epsilon, adjacency="substitute"
    )
    rng, found = np.random.default_rng(4), []
    for _ in range(40):
        others, chances = (
            rng.choice([-1.0, 1.0, 0.3], N - 1).tolist(),
            rng.uniform(0.2, 1, N + 1).tolist(),
        )
        one = _density(sampler, [*others, 1.0], chances[:N])
        other = _density(sampler, [*others, -1.0], [*chances[: N - 1], chances[N]])
        found.append(_delta(one, other, epsilon))
    assert max(found) <= known.upper
    assert max(found) > 0.3 * known.upper, "and the bound is not idle"


def test_vectors_of_length_one_over_the_chance_are_not_covered() -> None:
    # planted fault: clipped to 1 first, divided by the chance afterwards
    sampler, chance = Poisson(RATE), 0.3
    known = dpsub.account(sampler, noise_multiplier=S, steps=1, epsilon=1.0, adjacency="add_remove")
    vectors = [0.0, 1 / chance]
    wrong = _delta(
        _density(sampler, vectors, [1, chance]), _density(sampler, vectors[:1], [1]), 1.0
    )
    right = _delta(
        _density(sampler, [0.0, 1.0], [1, chance]), _density(sampler, vectors[:1], [1]), 1.0
    )
    assert right <= known.upper < wrong


def test_empty_subsets_stay_empty() -> None:
    samples = Samples(np.array([0, 1, 1]), np.array([1, 2, 1]), np.array([0, 0, 2, 3, 3]))
    rng = np.random.default_rng(0)
    kept = samples.thinned(np.array([0.0, 1.0]), rng)
    assert (
        kept.indices.tolist() == [1, 1]
        and kept.counts.tolist() == [2, 1]
        and kept.offsets.tolist() == [0, 0, 1, 2, 2]
    )

"""Independent draws with public weights: no bound is below enumerated truth, whichever record is
replaced, added or set to 0, and the heaviest one attains what is said to be attained."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpsub
from dpsub.accounting.release import as_plain, of_plain
from dpsub.sampling import WeightedWr
from dpsub.sampling.frame import Frame
from tests.tiny_mechanisms import RECORDS, cell_masses, divergences, two_steps

WEIGHTS = ((0.5, 0.3, 0.2), (0.6, 0.2, 0.1, 0.1), (0.25, 0.25, 0.25, 0.25), (0.45, 0.45, 0.1))
EPSILONS = (0.0, 0.3, 1.0, 2.5)


def draws(weights: tuple[float, ...], m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each record is drawn, shape (k, n), and with which probability: all
    sequences of m draws, one by one."""
    law: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(range(len(weights)), repeat=m):
        counts = tuple(drawn.count(i) for i in range(len(weights)))
        law[counts] = law.get(counts, 0.0) + math.prod(weights[i] for i in drawn)
    return np.array(list(law)), np.array(list(law.values()))


def deltas(sampler: WeightedWr, s: float, relation: str, steps: int = 1) -> np.ndarray:
    """Return both bounds of delta, shape (2, epsilons)."""
    found = [
        dpsub.account(
            sampler,
            noise_multiplier=s,
            steps=steps,
            epsilon=epsilon,
            adjacency=relation,
            quick=steps == 1,
        )
        for epsilon in EPSILONS
    ]
    return np.array([(answer.lower, answer.upper) for answer in found]).T


def data_sets(n: int, place: int, other: float | None, rng: np.random.Generator) -> Any:
    """Return data sets, and the same with another record at one place; the worst ones among
    them."""
    data = RECORDS[rng.integers(RECORDS.size, size=(40, n))]
    data[-4:] = [[-1.0]] * 2 + [[0.0], [1.0]]
    data[-4:, place] = 1.0
    changed = data.copy()
    changed[:, place] = RECORDS[rng.integers(RECORDS.size, size=40)] if other is None else other
    changed[-4:, place] = -1.0 if other is None else other
    return data, changed


@pytest.mark.parametrize(("relation", "other"), [("substitute", None), ("zero_out", 0.0)])
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize(("m", "s"), [(1, 0.7), (2, 0.5), (3, 1.5)])
def test_no_record_of_any_weight_exceeds_the_bound(
    weights: tuple[float, ...], m: int, s: float, relation: str, other: float | None
) -> None:
    rng = np.random.default_rng(m)
    counts, chances = draws(weights, m)
    _, upper = deltas(WeightedWr(m, max(weights)), s, relation)
    largest = []
    for place in range(len(weights)):
        data, changed = data_sets(len(weights), place, other, rng)
        pairs = (data, changed), (changed, data)
        found = [divergences(counts, chances, *pair, s, np.exp(EPSILONS)) for pair in pairs]
        largest.append(np.max(found, axis=(0, 1)))
        assert np.all(largest[-1] <= upper * (1 + 1e-9))
    heaviest = largest[int(np.argmax(weights))]
    # what is told of a record grows with its weight
    for place, weight in enumerate(weights):
        if weight < max(weights):
            assert np.all(largest[place] <= heaviest + 1e-12)


@pytest.mark.parametrize("weights", WEIGHTS[:2], ids=str)
@pytest.mark.parametrize(("m", "s"), [(2, 0.5), (3, 1.5)])
def test_a_record_more_is_exact_at_the_largest_weight(
    weights: tuple[float, ...], m: int, s: float
) -> None:
    rng = np.random.default_rng(m)
    lower, upper = deltas(WeightedWr(m, max(weights)), s, "add_remove")
    for place, weight in enumerate(weights):
        data, _ = data_sets(len(weights), place, 0.0, rng)
        with_it = draws(weights, m)
        # without the record the others keep the ratios of their weights
        others = [w / (1 - weight) for i, w in enumerate(weights) if i != place]
        without = draws(tuple(others), m)
        p, _ = cell_masses(*with_it, data, data, s, 0.01)
        rest = np.delete(data, place, axis=1)
        q, _ = cell_masses(*without, rest, rest, s, 0.01)
        for epsilon, least, most in zip(EPSILONS, lower, upper, strict=True):
            a = math.exp(epsilon)
            found = [np.maximum(x - a * y, 0).sum(axis=1).max() for x, y in ((p, q), (q, p))]
            assert max(found) <= most * (1 + 1e-9)
            if weight == max(weights):
                assert max(found) == pytest.approx(least, rel=2e-3, abs=1e-7)


@pytest.mark.parametrize("weights", [WEIGHTS[0], WEIGHTS[3]], ids=str)
def test_two_adaptive_steps(weights: tuple[float, ...]) -> None:
    m, s, rng = 2, 1.0, np.random.default_rng(5)
    counts, chances = draws(weights, m)
    _, upper = deltas(WeightedWr(m, max(weights)), s, "substitute", steps=2)
    for place in range(len(weights)):
        data, changed = data_sets(len(weights), place, None, rng)
        p, q = cell_masses(counts, chances, data, changed, s, 0.05)
        assert np.all(two_steps(p, q, EPSILONS) <= upper * (1 + 1e-9))


def test_a_smaller_weight_would_claim_too_much() -> None:
    """The brute force above tells weights apart."""
    weights, m, s = WEIGHTS[0], 2, 0.5
    data = np.array([[1.0, -1.0, -1.0]])
    changed = np.array([[-1.0, -1.0, -1.0]])
    truth = divergences(*draws(weights, m), data, changed, s, np.exp(EPSILONS))[0]
    _, upper = deltas(WeightedWr(m, 0.45), s, "substitute")
    assert np.any(truth > upper * 1.01)


def test_equal_weights_are_draws_from_all_records() -> None:
    asked = {"noise_multiplier": 2.0, "steps": 20, "delta": 1e-5}
    for relation, n in (("substitute", 50), ("zero_out", 50), ("add_remove", 49)):
        weighted = dpsub.account(WeightedWr(7, 1 / 50), n, adjacency=relation, **asked)
        alike = dpsub.account(dpsub.Wr(7), n, adjacency=relation, **asked)
        assert weighted.kind == alike.kind
        assert (weighted.lower, weighted.upper) == pytest.approx((alike.lower, alike.upper))


def test_draws_are_those_of_the_weights() -> None:
    sampler, n, subsets = WeightedWr(3, 0.4), 4, 30_000
    samples = sampler.draw_block(Frame(n), subsets, np.random.default_rng(11))
    table = np.zeros((subsets, n), dtype=int)
    table[np.repeat(np.arange(subsets), samples.distinct), samples.indices] = samples.counts
    counts, chances = draws((0.4, 0.2, 0.2, 0.2), 3)
    seen = [int((table == row).all(axis=1).sum()) for row in counts]
    assert sum(seen) == subsets
    assert chisquare(seen, subsets * chances).pvalue > 1e-4
    # a weight that is 5 % off is seen
    _, wrong = draws((0.42, 0.58 / 3, 0.58 / 3, 0.58 / 3), 3)
    assert chisquare(seen, subsets * wrong).pvalue < 1e-4
    distinct = np.bincount((counts > 0).sum(axis=1), chances, minlength=4)
    np.testing.assert_allclose(sampler.distinct_law(n), distinct, rtol=1e-12)
    assert sampler.expected_distinct(n) == pytest.approx(np.arange(4) @ distinct, rel=1e-12)
    law = np.bincount(counts[:, 0], chances)
    np.testing.assert_allclose(sampler.multiplicity_law(n).pmf, law, rtol=1e-12)


def test_a_record_that_has_all_the_weight() -> None:
    alone = WeightedWr(3, 1.0)
    assert alone.distinct_law(1).tolist() == [0.0, 1.0]
    found = dpsub.account(alone, 1, noise_multiplier=9, epsilon=0.5, adjacency="zero_out")
    # three times the record in every sample
    gaussian = dpsub.account(dpsub.Poisson(1.0), noise_multiplier=3, epsilon=0.5)
    assert found.lower <= gaussian.upper and gaussian.lower <= found.upper


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: WeightedWr(0, 0.1), "m must be at least 1"),
        (lambda: WeightedWr(3, 0.0), "largest_weight must be above 0"),
        (lambda: WeightedWr.of_weights(3, [1, -1]), "weights must not be negative"),
        (lambda: WeightedWr.of_weights(3, [0.0, 0.0]), "a sum above 0"),
        (lambda: WeightedWr.of_sizes(5, m=3), "weighted draws need the largest weight"),
        (lambda: WeightedWr.family(5), "is not solved for"),
        (
            lambda: asked(WeightedWr(3, 0.1), 9, adjacency="zero_out"),
            "the largest of n = 9 weights must be at least",
        ),
        (lambda: asked(WeightedWr(3, 1.0), adjacency="add_remove"), "others? records? must have"),
        (lambda: asked(WeightedWr(3, 0.1), mechanism="laplace"), "Laplace noise is proved only"),
        (
            lambda: asked(WeightedWr(3, 0.1), group=2, adjacency="add_remove"),
            "groups on weighted draws under add_remove",
        ),
        (
            lambda: asked(WeightedWr(3, 0.4), group=3, adjacency="zero_out"),
            "at most 1 in all",
        ),
        (
            lambda: dpsub.amplify(WeightedWr(3, 0.4), 9, epsilon=1.0, noise_multiplier=2),
            "no amplification theorem is proved for weighted draws",
        ),
    ],
)
def test_refusals(ask: Any, words: str) -> None:
    with pytest.raises((dpsub.ArgumentError, dpsub.UnsupportedError), match=words):
        ask()


def asked(sampler: WeightedWr, n: int | None = None, **more: Any) -> dpsub.Account:
    return dpsub.account(sampler, n, noise_multiplier=2.0, delta=1e-5, **more)


def test_groups_of_heavy_records() -> None:
    """Two records of the largest weight each, set to 0, among others at -1 or 0."""
    m, s, weights = 2, 1.0, (0.4, 0.4, 0.2)
    counts, chances = draws(weights, m)
    for epsilon in (0.3, 1.0):
        found = dpsub.account(
            WeightedWr(m, 0.4),
            noise_multiplier=s,
            epsilon=epsilon,
            group=2,
            adjacency="zero_out",
        )
        data = np.array([[1.0, 1.0, filler] for filler in (-1.0, 0.0, 1.0)])
        changed = data * [0.0, 0.0, 1.0]
        pairs = (data, changed), (changed, data)
        truth = [divergences(counts, chances, *each, s, np.exp([epsilon])).max() for each in pairs]
        assert found.lower <= max(truth) * (1 + 1e-3) <= found.upper * (1 + 1e-3)


def test_a_plain_release_says_its_weight() -> None:
    release = dpsub.Release(WeightedWr(3, 0.1), noise_multiplier=2.0, steps=5)
    assert of_plain(json.loads(json.dumps(as_plain(release)))) == release

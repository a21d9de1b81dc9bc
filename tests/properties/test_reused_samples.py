"""Several releases of one sample, and users that are drawn, against every sample of tiny data sets,
by a program that shares nothing with the accountant.

Vectors of the second release depend on the first one: they are constant on blocks of its outputs,
so that masses of cells are products of two exact ones. Grouping outputs is post-processing: the
divergences of cells never exceed the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.sampling import Sampler
from dpsub.sampling.frame import Frame
from tests.tiny_mechanisms import two_steps

VALUES = (-1.0, -0.5, 0.0, 0.5, 1.0)
EPSILONS = (0.0, 0.5, 1.0, 2.0)
SCALE = 1.0
BLOCKS = np.array([-1.0, 0.0, 1.0])  # of first outputs, on which vectors of the second are constant
EDGES = np.concatenate([[-np.inf], np.arange(-6.0, 6.01, 0.1), [np.inf]])
Vectors = np.ndarray  # of the first release, and of the second in each block, shape (n, 1 + blocks)
Sample = tuple[tuple[int, ...], float]


def poisson(n: int, rate: float) -> Iterator[Sample]:
    for size in range(n + 1):
        for kept in itertools.combinations(range(n), size):
            yield kept, rate**size * (1 - rate) ** (n - size)


def without_replacement(n: int, m: int) -> Iterator[Sample]:
    for kept in itertools.combinations(range(n), m):
        yield kept, 1 / math.comb(n, m)


def with_replacement(n: int, m: int) -> Iterator[Sample]:
    for kept in itertools.product(range(n), repeat=m):
        yield kept, n**-m


def masses(samples: list[Sample], vectors: Vectors) -> np.ndarray:
    """Return the masses of the cells of two outputs of one sample, flattened."""
    total = np.zeros((EDGES.size - 1, EDGES.size - 1))
    block = np.searchsorted(BLOCKS, EDGES[:-1], side="right")
    for kept, chance in samples:
        sums = vectors[list(kept)].sum(axis=0) if kept else np.zeros(vectors.shape[1])
        first = np.diff(ndtr((EDGES - sums[0]) / SCALE))
        second = np.diff(ndtr((EDGES[None, :] - sums[1:, None]) / SCALE), axis=1)
        total += chance * first[:, None] * second[block]
    return total.ravel()


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(x) * q, 0.0).sum() for x in EPSILONS])


def pairs(relation: str, n: int, rng: np.random.Generator) -> Iterator[tuple[Vectors, Vectors]]:
    """Yield vectors of neighbours drawn at random, those of equal vectors first; under add_remove
    the second data set lacks the first record."""
    shape = (n + (relation == "add_remove"), 2 + BLOCKS.size)
    fillers = [0.0, -1.0, 1.0]
    for filler in fillers:
        yield from _both_orders(relation, np.full(shape, filler), np.ones(shape[1]))
    for _ in range(60):
        yield from _both_orders(
            relation, rng.choice(VALUES, shape), rng.choice([-1.0, 1.0], shape[1])
        )


def _both_orders(
    relation: str, others: Vectors, record: np.ndarray
) -> Iterator[tuple[Vectors, Vectors]]:
    one, other = others.copy(), others.copy()
    one[0], other[0] = record, 0.0 if relation == "zero_out" else -record
    if relation == "add_remove":
        other = other[1:]
    yield one, other
    yield other, one


CASES = [
    ("poisson", "add_remove"),
    ("poisson", "zero_out"),
    ("poisson", "substitute"),
    ("wor", "add_remove"),
    ("wor", "zero_out"),
    ("wor", "substitute"),
    ("wr", "add_remove"),
    ("wr", "zero_out"),
    ("wr", "substitute"),
    ("must_ow", "add_remove"),
    ("must_ow", "zero_out"),
    ("must_ow", "substitute"),
    ("must_ww", "add_remove"),
    ("must_ww", "substitute"),
    ("truncated_poisson", "add_remove"),
    ("truncated_poisson", "zero_out"),
    ("truncated_poisson", "substitute"),
]


def drawn(sampler: str, n: int) -> list[Sample]:
    if sampler == "poisson":
        return list(poisson(n, 0.4))
    if sampler == "truncated_poisson":
        return [
            (cut, chance / math.comb(len(kept), min(2, len(kept))))
            for kept, chance in poisson(n, 0.6)
            for cut in itertools.combinations(kept, min(2, len(kept)))
        ]
    if sampler in ("must_ow", "must_ww"):
        first = without_replacement if sampler == "must_ow" else with_replacement
        return [
            (tuple(kept[place] for place in places), chance * later)
            for kept, chance in first(n, 2)
            for places, later in with_replacement(2, 2)
        ]
    kind = without_replacement if sampler == "wor" else with_replacement
    return list(kind(n, 2))


def sampler_of(name: str) -> Sampler:
    return {
        "poisson": dpsub.Poisson(0.4),
        "wor": dpsub.Wor(2),
        "wr": dpsub.Wr(2),
        "must_ow": dpsub.MustOW(2, 2),
        "must_ww": dpsub.MustWW(2, 2),
        "truncated_poisson": dpsub.TruncatedPoisson(0.6, 2),
    }[name]


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_two_releases_of_a_sample(name: str, relation: str) -> None:
    n = 2 if (relation == "add_remove" or name == "poisson") else 3
    found = []
    for one, other in pairs(relation, n, np.random.default_rng(80)):
        p, q = (masses(drawn(name, len(each)), each) for each in (one, other))
        found.append(divergences(p, q))
    worst = np.max(found, axis=0)
    answer = dpsub.account(
        sampler_of(name),
        n,
        noise_multiplier=SCALE,
        steps=2,
        releases_per_sample=2,
        adjacency=relation,
        epsilon=EPSILONS,
    )
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    if name == "truncated_poisson":
        return  # its best attack is in the plane
    # equal vectors are the attack; cells take away little
    attacked = np.max(found[:6], axis=0)
    assert (attacked >= answer.lower * 0.99 - 1e-4).all(), (attacked, answer.lower)
    if answer.kind == "exact":
        assert (attacked <= answer.upper).all()


@pytest.mark.parametrize(("name", "n"), [("poisson", 3), ("wor", 3)])
@pytest.mark.parametrize("relation", ["zero_out", "substitute"])
def test_two_records_of_a_unit(name: str, n: int, relation: str) -> None:
    rng, found = np.random.default_rng(85), []
    for trial in range(60):
        one = rng.choice(VALUES, (n, 2 + BLOCKS.size))
        if trial == 0:
            one[:] = 0.0 if name == "poisson" else -1.0
        one[:2] = 1.0 if trial == 0 else rng.choice([-1.0, 1.0], (2, one.shape[1]))
        other = one.copy()
        other[:2] = 0.0 if relation == "zero_out" else -one[:2]
        p, q = (masses(drawn(name, n), each) for each in (one, other))
        found += [divergences(p, q), divergences(q, p)]
    worst = np.max(found, axis=0)
    answer = dpsub.account(
        sampler_of(name),
        n,
        noise_multiplier=SCALE,
        steps=2,
        releases_per_sample=2,
        group=2,
        adjacency=relation,
        epsilon=EPSILONS,
    )
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    if name == "poisson":
        assert (np.max(found[:2], axis=0) >= answer.lower * 0.99 - 1e-4).all()


@pytest.mark.parametrize("relation", ["add_remove", "substitute"])
def test_the_next_sample_depends_on_the_last_one(relation: str) -> None:
    n, rows = 2, []
    for one, other in itertools.islice(pairs(relation, n, np.random.default_rng(81)), 12):
        coarse = []
        for each in (one, other):
            cells = masses(drawn("poisson", len(each)), each).reshape(2 * [EDGES.size - 1])
            # coarser cells, which two steps can be enumerated on
            edges = np.arange(0, EDGES.size - 1, 4)
            coarse.append(np.add.reduceat(np.add.reduceat(cells, edges, 0), edges, 1).ravel())
        rows.append(coarse)
    orders = [0, 2, 4] if relation == "add_remove" else range(len(rows))
    p, q = (np.array([rows[place][side] for place in orders]) for side in (0, 1))
    worst = two_steps(p, q, EPSILONS)
    answer = dpsub.account(
        dpsub.Poisson(0.4),
        noise_multiplier=SCALE,
        steps=4,
        releases_per_sample=2,
        adjacency=relation,
        epsilon=EPSILONS,
    )
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    assert (worst >= answer.lower * 0.95 - 1e-3).all(), (worst, answer.lower)


def epoch_masses(step: int | None, vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the masses of four outputs, two of each step; the record is in one of the steps, or in
    none. Vectors depend on the sign of the output before: shape (4, 2), the first row constant."""
    edges = np.concatenate([[-np.inf], np.arange(-5.0, 5.01, 0.4), [np.inf]])
    sign = (edges[:-1] >= 0).astype(int)
    total = np.ones(1)
    for release in range(4):
        means = others[release] + (vectors[release] if step == release // 2 else 0.0)
        cells = np.diff(ndtr((edges[None, :] - means[:, None]) / SCALE), axis=1)
        of_past = cells[:1] if release == 0 else cells[sign]
        total = total[..., None] * of_past
    return total.ravel()


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "substitute"])
def test_two_releases_of_each_step_of_an_allocation(relation: str) -> None:
    rng, found = np.random.default_rng(86), []
    for trial in range(25):
        vectors = np.ones((4, 2)) if trial == 0 else rng.choice([-1.0, 0.5, 1.0], (4, 2))
        others = np.zeros((4, 2)) if trial == 0 else rng.choice([-1.0, 0.0, 1.0], (4, 2))
        p = sum(epoch_masses(step, vectors, others) for step in (0, 1)) / 2
        q = epoch_masses(None, vectors, others)
        if relation == "substitute":
            opposite = -vectors if trial == 0 else rng.choice([-1.0, 0.0, 1.0], (4, 2))
            q = sum(epoch_masses(step, opposite, others) for step in (0, 1)) / 2
        found += [divergences(p, q), divergences(q, p)]
    worst = np.max(found, axis=0)
    answer = dpsub.account(
        dpsub.RandomAllocation(2),
        noise_multiplier=SCALE,
        releases_per_sample=2,
        adjacency=relation,
        epsilon=EPSILONS,
    )
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    assert (np.max(found[:2], axis=0) >= answer.lower * 0.95 - 2e-3).all()


def users(sampler: list[Sample], sums: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the masses of one release from a sample of users, each with a law of the sum over the
    records that enter: rows (value, chance)."""
    total = np.zeros(edges.size - 1)
    for kept, chance in sampler:
        choices = [sums[user] for user in kept]
        for combination in itertools.product(*choices):
            value = sum(entry[0] for entry in combination)
            weight = chance * math.prod(entry[1] for entry in combination)
            total += weight * np.diff(ndtr((edges - value) / SCALE))
    return total


@pytest.mark.parametrize("name", ["poisson", "wor"])
@pytest.mark.parametrize("relation", ["zero_out", "substitute"])
def test_users_who_choose_among_their_records(name: str, relation: str) -> None:
    most, n = 2, 3
    edges = np.concatenate([[-np.inf], np.arange(-14.0, 14.01, 0.05), [np.inf]])
    rng = np.random.default_rng(82)
    answer = dpsub.account(
        sampler_of(name),
        n,
        noise_multiplier=SCALE,
        records_per_user=most,
        adjacency=relation,
        epsilon=EPSILONS,
    )
    found = []
    for trial in range(60):
        # a user has three records of which two enter, chosen by a coin
        records = rng.choice(VALUES, (n + 1, 3))
        if trial < 2:
            records[:n], records[n] = (0.0, -1.0)[trial], -1.0
            records[0] = 1.0
        laws = np.array(
            [
                [(row[i] + row[j], 1 / 3) for i, j in itertools.combinations(range(3), 2)]
                for row in records
            ]
        )
        other = laws[:n].copy()
        other[0] = laws[n] if relation == "substitute" else np.array([(0.0, 1 / 3)] * 3)
        samples = drawn(name, n)
        p, q = (users(samples, each, edges) for each in (laws[:n], other))
        found += [divergences(p, q), divergences(q, p)]
    worst = np.max(found, axis=0)
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    assert (np.max(found[:4], axis=0) >= answer.lower * 0.99 - 1e-5).all()


def test_draws_of_samples_that_are_used_again() -> None:
    """The likelihood ratio of all releases of a sample, with real draws, other records at 0."""
    rate, each, epsilon, trials = 0.3, 3, 0.5, 400_000
    rng = np.random.default_rng(83)
    answer = dpsub.account(
        dpsub.Poisson(rate),
        noise_multiplier=2.0,
        steps=each,
        releases_per_sample=each,
        epsilon=epsilon,
    )
    samples = dpsub.Poisson(rate).draw_block(Frame(2), trials, rng)
    drawn_records = samples.totals(samples.indices == 0)
    outputs = drawn_records[:, None] + 2.0 * rng.standard_normal((trials, each))
    # the losses of all releases together, from their own densities
    exponent = ((outputs - 0.5) / 2.0**2).sum(axis=1)
    losses = np.log(1 - rate + rate * np.exp(exponent))
    accepted = -np.expm1(np.minimum(epsilon - losses, 0.0))
    assert abs(accepted.mean() - answer.upper) < 5 * accepted.std() / math.sqrt(trials)
    assert answer.kind == "exact"

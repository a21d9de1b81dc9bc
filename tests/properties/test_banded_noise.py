"""Noise that is correlated over steps, against exact cells of two rows, by a program that shares
nothing with the accountant.

Two groups take turns, and two bands spread the first step over both rows. What the record of the
second group contributes depends on the first row, and is constant on blocks of it, so that masses
of cells are products of exact ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.sampling.frame import Frame
from tests.tiny_mechanisms import two_steps

EPSILONS = (0.0, 0.5, 1.0, 2.0)
SCALE, RATE = 1.0, 0.4
FIRST, BELOW, SECOND = 0.8, 0.9, 1.1  # C = ((FIRST, 0), (BELOW, SECOND))
BLOCKS = np.array([-1.0, 0.0, 1.0])
EDGES = np.concatenate([[-np.inf], np.arange(-6.0, 6.01, 0.1), [np.inf]])
BLOCK = np.searchsorted(BLOCKS, EDGES[:-1], side="right")
Rows = list[tuple[float, float, np.ndarray]]  # chance, first row, second row in each block


def rows_of(record: float | None, group: int, other: np.ndarray) -> Rows:
    """Return the sums of both rows: of a record in one group, and of one in the other group, whose
    vector is `other`, a number for each block (the first one if its step comes first)."""
    found: Rows = []
    for mine, theirs in itertools.product((0, 1), repeat=2):
        chance = math.prod(RATE if one else 1 - RATE for one in (mine, theirs))
        ours = 0.0 if record is None else mine * record
        if group == 0:
            first, second = FIRST * ours, BELOW * ours + SECOND * theirs * other
        else:
            first = FIRST * theirs * other[0]
            second = np.full(other.size, BELOW * theirs * other[0] + SECOND * ours)
        found.append((chance, first, second))
    return found


def masses(rows: Rows) -> np.ndarray:
    total = np.zeros((EDGES.size - 1, EDGES.size - 1))
    for chance, first, second in rows:
        one = np.diff(ndtr((EDGES - first) / SCALE))
        two = np.diff(ndtr((EDGES[None, :] - second[:, None]) / SCALE), axis=1)
        total += chance * one[:, None] * two[BLOCK]
    return total.ravel()


def neighbours(relation: str, group: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the masses on both data sets, in both orders, those of the attack first."""
    rng = np.random.default_rng(82)
    gone = {"add_remove": None, "zero_out": 0.0, "substitute": -1.0}[relation]
    for trial in range(30):
        other = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], 1 + BLOCKS.size) * (trial > 0)
        p, q = (masses(rows_of(record, group, other)) for record in (1.0, gone))
        yield p, q
        yield q, p


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(x) * q, 0.0).sum() for x in EPSILONS])


def answer_of(relation: str, rows: int) -> dpsub.Account:
    matrix = np.zeros((rows, rows))
    for first in range(0, rows, 2):
        matrix[first : first + 2, first : first + 2] = [[FIRST, 0.0], [BELOW, SECOND]]
    return dpsub.account(
        dpsub.CyclicPoisson(RATE, 2),
        noise_multiplier=SCALE,
        strategy=matrix,
        adjacency=relation,
        epsilon=EPSILONS,
    )


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "substitute"])
def test_two_rows(relation: str) -> None:
    answer = answer_of(relation, 2)
    attained = []
    for group in (0, 1):
        found = [divergences(p, q) for p, q in neighbours(relation, group)]
        assert (np.max(found, axis=0) <= answer.upper * (1 + 1e-9)).all()
        attained.append(np.max(found[:2], axis=0))
    # the first group has the longer column
    assert FIRST**2 + BELOW**2 > SECOND**2
    assert (np.max(attained, axis=0) >= answer.lower * 0.99 - 1e-4).all()
    assert answer.kind == "exact"


def test_the_second_turn_depends_on_the_first_one() -> None:
    rows = []
    for p, q in itertools.islice(neighbours("substitute", 0), 8):
        edges = np.arange(0, EDGES.size - 1, 4)
        coarse = []
        for each in (p, q):
            cells = each.reshape(2 * [EDGES.size - 1])
            coarse.append(np.add.reduceat(np.add.reduceat(cells, edges, 0), edges, 1).ravel())
        rows.append(coarse)
    p, q = (np.array([row[side] for row in rows]) for side in (0, 1))
    worst = two_steps(p, q, EPSILONS)
    answer = answer_of("substitute", 4)
    assert (worst <= answer.upper * (1 + 1e-9)).all(), (worst, answer.upper)
    assert (worst >= answer.lower * 0.95 - 1e-3).all(), (worst, answer.lower)


def test_draws_of_rows() -> None:
    """The likelihood ratio of all rows of a run with real draws, other records at 0."""
    bands, groups, rate, s, epsilon, trials = 3, 4, 0.5, 2.0, 0.5, 200_000
    steps = 12
    below = np.subtract.outer(np.arange(steps), np.arange(steps))
    matrix = np.where((below >= 0) & (below < bands), 0.7 ** np.clip(below, 0, None), 0.0)
    answer = dpsub.account(
        dpsub.CyclicPoisson(rate, groups), noise_multiplier=s, strategy=matrix, epsilon=epsilon
    )
    rng = np.random.default_rng(83)
    turns = np.arange(0, steps, groups)
    # record 0 is in the first group, whose turns are every so many steps
    samples = dpsub.CyclicPoisson(rate, groups).draw_block(Frame(groups), trials * steps, rng)
    drawn = samples.totals(samples.indices == 0).reshape(trials, steps)[:, turns]
    outputs = drawn @ matrix[:, turns].T + s * rng.standard_normal((trials, steps))
    losses = np.zeros(trials)
    for turn in turns:
        column = matrix[:, turn]
        exponent = (outputs @ column - column @ column / 2) / s**2
        losses += np.log(1 - rate + rate * np.exp(exponent))
    accepted = -np.expm1(np.minimum(epsilon - losses, 0.0))
    assert answer.kind == "exact"
    assert abs(accepted.mean() - answer.upper) < 5 * accepted.std() / math.sqrt(trials)

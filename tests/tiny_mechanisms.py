"""Every subsample of tiny data sets, enumerated: the truth that bounds are compared with.

A lower estimate of H_a is the sum over cells of (p - a q)_+: grouping outputs is post-processing,
so it never exceeds the truth, and on fine cells it is the truth to many digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine.pld import Profile
from dpsub.accounting.games.game import Copies
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.chains.scheme import copies_of
from dpsub.sampling import Multistage
from dpsub.sampling.base import Chain, Stage
from tests.statistical import forward

RECORDS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


def sample_counts(n: int, stages: Sequence[Stage]) -> tuple[np.ndarray, np.ndarray]:
    """Return all count vectors of the n records, shape (k, n), and their probabilities, by walking
    through the stages."""
    law = forward.law(stages, n)
    return np.array(list(law)), np.array([float(probability) for probability in law.values()])


def stages(text: str) -> tuple[Stage, ...]:
    """Return stages from text such as `wor:3,wr:2,poisson:0.5`."""
    return Multistage.of_text(text).stages


def slot_chain(n: int, stages: Sequence[Stage]) -> Chain:
    """Return the chain in the form of the accountant's proofs."""
    return Release(Multistage(stages), n, 1.0).chain()


def copies(n: int, text: str) -> Copies:
    """Return the law of how often a sample holds a record, for stages from text."""
    made = copies_of(slot_chain(n, stages(text)))
    assert made is not None
    return made()


def divergences(
    counts: np.ndarray,
    weights: np.ndarray,
    data: np.ndarray,
    other: np.ndarray,
    scale: float,
    orders: np.ndarray,
    noise: str = "gaussian",
) -> np.ndarray:
    """Return lower estimates of H_a(M(data_i) || M(other_i)), shape (pairs, orders).

    Parameters
    ----------
    counts, weights
        As `sample_counts` gives them.
    data, other : ndarray, shape (pairs, n)
        Records in multiples of 1/2, within [-1, 1].
    """
    p, q = cell_masses(counts, weights, data, other, scale, 0.01, noise)
    return np.stack([np.maximum(p - a * q, 0.0).sum(axis=1) for a in orders], axis=1)


def cell_masses(
    counts: np.ndarray,
    weights: np.ndarray,
    data: np.ndarray,
    other: np.ndarray,
    scale: float,
    width: float,
    noise: str = "gaussian",
) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses of the outputs on both data sets in cells of `width` noise scales, shape
    (pairs, cells) each."""
    largest = int(counts.sum(axis=1).max())
    values = np.arange(-2 * largest, 2 * largest + 1) / 2
    reach = largest + (8 if noise == "gaussian" else 16) * scale
    edges = np.concatenate([[-np.inf], np.arange(-reach, reach, width * scale), [np.inf]])
    z = (edges[None, :] - values[:, None]) / scale
    tail = ndtr(-np.abs(z)) if noise == "gaussian" else 0.5 * np.exp(-np.abs(z))
    cells = np.where(z[:, 1:] <= 0, tail[:, 1:] - tail[:, :-1], 0.0)
    cells = np.where(z[:, :-1] >= 0, tail[:, :-1] - tail[:, 1:], cells)
    straddling = (z[:, :-1] < 0) & (z[:, 1:] > 0)
    cells = np.where(straddling, 1 - tail[:, :-1] - tail[:, 1:], cells)
    p, q = (_lattice(counts, weights, rows, largest) @ cells for rows in (data, other))
    return p, q


def _lattice(counts: np.ndarray, weights: np.ndarray, rows: np.ndarray, largest: int) -> np.ndarray:
    """Return the probabilities of the sums -largest, ..., largest in steps of 1/2, shape (pairs,
    values)."""
    places = np.rint(2 * (rows @ counts.T)).astype(int) + 2 * largest
    law = np.zeros((rows.shape[0], 4 * largest + 1))
    for index, row in enumerate(places):
        law[index] = np.bincount(row, weights, minlength=4 * largest + 1)
    return law


def both_sides(forward: Profile, backward: Profile, x: np.ndarray) -> np.ndarray:
    """Return the bound at log orders of either sign, by the mirror H_a(P || Q) = 1 - a + a
    H_(1/a)(Q || P)."""
    sizes, place = np.unique(np.abs(x), return_inverse=True)
    a = np.exp(x)
    return np.where(x >= 0, forward(sizes)[place], 1 - a + a * backward(sizes)[place])


class Step:
    """H_a(P || Q) of one step at any orders, from its cells sorted by likelihood ratio."""

    def __init__(self, p: np.ndarray, q: np.ndarray) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(q > 0, p / q, np.inf)
        order = np.argsort(-ratios)
        self.ratios = ratios[order]
        self.p = np.concatenate([[0.0], np.cumsum(p[order])])
        self.q = np.concatenate([[0.0], np.cumsum(q[order])])

    def __call__(self, orders: np.ndarray) -> np.ndarray:
        # any number of leading cells is an event; the cells above the order are the best one
        count = np.searchsorted(-self.ratios, -orders, side="left")
        return np.asarray(self.p[count] - np.where(self.q[count] > 0, orders * self.q[count], 0.0))


def two_steps(p: np.ndarray, q: np.ndarray, epsilons: tuple[float, ...]) -> np.ndarray:
    """Return the largest H over first steps, with the best second step at every order, shape of
    `epsilons`."""
    steps = [Step(one, other) for one, other in zip(p, q, strict=True)]
    result = np.zeros(len(epsilons))
    # the best second step depends on the order only: its envelope is tabled, and read at the next
    # larger order
    table = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 20_001)])
    envelope = np.max([step(table) for step in steps], axis=0)
    for one, other in zip(p, q, strict=True):
        there = one > 0
        for place, epsilon in enumerate(epsilons):
            with np.errstate(over="ignore"):
                orders = math.exp(epsilon) * other[there] / one[there]
            at = np.searchsorted(table, orders, side="left")
            after = np.where(at < table.size, envelope[np.minimum(at, table.size - 1)], 0.0)
            result[place] = max(result[place], float(one[there] @ after))
    return result

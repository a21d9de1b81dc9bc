"""The attack on cut samples that tells their sizes: all other records are one unit vector g, nearly
at a right angle to the differing record v.

Along g the sum tells how many records are in the sample, up to noise, and across it whether v is
among them (docs/proofs/cut_samples.md, "Attacks").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import MassBounds, mixture_masses
from dpsub.accounting.engine.statistic import OutputCells
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.schemes.truncated.cut_samples import PROBABILITY_ERROR, CutSample, below
from dpsub.relations import Relation
from dpsub.sampling.laws import log_binomial

_CELLS = 16  # to the noise's standard deviation, along g and across it
_MOST_CELLS = 2**17
_WIDEST = 512  # sizes below B that are told apart
_SHARES = (0.0, 0.1, 0.2, 0.4, 0.6)
# where angles are compared: at a loss that many steps make a large one
_LOG_ORDER, _SELDOM = 0.5, 1e-9


@dataclass(frozen=True)
class ToldSizes(OutputCells):
    """Rectangles of the plane of g and v, where v g = -`against`: v in D, and in D' -v, 0, or no
    record in its place. The sum of B others is the origin."""

    sample: CutSample
    relation: Relation
    noise_multiplier: float
    against: float

    @classmethod
    def of(cls, sample: CutSample, relation: Relation, noise_multiplier: float) -> ToldSizes:
        """Return the attack with the angle that attains most, roughly, in one step; that with a
        right angle where the budget does not suffice to compare them."""
        choices = [cls(sample, relation, noise_multiplier, share) for share in _SHARES]
        try:
            return max(choices, key=lambda each: each._excess())
        except OutOfWorkError:
            return choices[0]

    def _excess(self) -> float:
        """H_a of the cells, roughly."""
        first, second = self._cells(math.inf, _SELDOM, swapped=False)
        return float(np.maximum(first - math.exp(_LOG_ORDER) * second, 0.0).sum())

    @property
    def across(self) -> float:
        """The length of v across g."""
        return math.sqrt(1 - self.against**2)

    @cached_property
    def missing(self) -> int:
        """How many records fewer than B are told apart."""
        return min(self.sample.most, math.ceil(min(10 * self.noise_multiplier, _WIDEST)) + 10)

    def _cells(self, step: float, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        under_p, under_q = self.masses(*self.edges(tail))
        (least, _), (_, most) = (under_q, under_p) if swapped else (under_p, under_q)
        return least, most

    def edges(self, tail: float) -> tuple[np.ndarray, np.ndarray]:
        """Edges of the cells along g and across it; any of them are valid."""
        s = self.noise_multiplier
        reach = math.sqrt(-2 * math.log(tail)) * s
        # where smaller samples are not told apart the place along g says nothing
        last = (
            reach - self.missing if self.missing < self.sample.most else -reach - self.missing - 1
        )
        sides = (min(last, -1.0), 1 + reach), (-self.across - reach, self.across + reach)
        cells = [(high - low) / s * _CELLS for low, high in sides]
        coarser = max(1.0, math.sqrt(math.prod(cells) / _MOST_CELLS))
        along, across = (
            np.concatenate([[-np.inf], np.linspace(*side, math.ceil(n / coarser) + 1), [np.inf]])
            for side, n in zip(sides, cells, strict=True)
        )
        return along, across

    def masses(self, along: np.ndarray, across: np.ndarray) -> tuple[MassBounds, MassBounds]:
        """Bounds of the masses of the cells under P and under Q, those of one interval along g
        after the other."""
        value = {Relation.SUBSTITUTE: -1, Relation.ZERO_OUT: 0, Relation.ADD_REMOVE: None}
        return self._law(1, along, across), self._law(value[self.relation], along, across)

    def _law(self, value: int | None, along: np.ndarray, across: np.ndarray) -> MassBounds:
        """Bounds of the masses where the differing record is `value` times v; None if it is
        missing."""
        parts: list[tuple[_Sizes, int]] = [(self._others, 0)]
        if value is not None:
            parts = [(self._alone, 0), (self._joined, value)]
        s, cells = self.noise_multiplier, (along.size - 1, across.size - 1)
        least, most = np.zeros(cells), np.zeros(cells)
        for sizes, times in parts:
            places = -np.arange(sizes.least.size) - times * self.against
            low, _ = _intervals(along, places, sizes.least, s)
            _, high = _intervals(along, places, sizes.most, s)
            # smaller samples are to the left of -missing, and with v of them, too
            low[0] += sizes.fewer[0] * ndtr((along[1] + self.missing) / s)
            high += sizes.fewer[1] * ndtr(-(along[:-1] + self.missing) / s)
            left, right = _intervals(across, np.array([times * self.across]), np.ones(1), s)
            work.spend(work.NUMBER * 4 * least.size)
            least += np.multiply.outer(low, left)
            most += np.multiply.outer(high, right)
        return least.ravel(), most.ravel()

    @cached_property
    def _others(self) -> _Sizes:
        """Where the record is missing."""
        sample = self.sample
        fewer = np.arange(self.missing + 1)
        with np.errstate(divide="ignore"):
            drawn = np.exp(log_binomial(sample.most - fewer, sample.n - 1, sample.rate))
        drawn[0] = sample.full
        rest = sample.most - self.missing
        return _Sizes.of(drawn, below(rest, sample.n - 1, sample.rate) if rest else 0.0)

    @cached_property
    def _joined(self) -> _Sizes:
        """The record with B - i others; in a full sample it takes the place of another one."""
        joined = self._others.times(self.sample.rate)
        for weights, sign in ((joined.least, -1), (joined.most, 1)):
            weights[0] = 0.0
            weights[1] += self.sample.displacing * (1 + sign * PROBABILITY_ERROR)
        return joined

    @cached_property
    def _alone(self) -> _Sizes:
        """B - i others without the record."""
        sample = self.sample
        alone = self._others.times(1 - sample.rate)
        for weights, sign in ((alone.least, -1), (alone.most, 1)):
            # a difference of two tails, whose errors are relative to the larger one
            slack = sign * 2 * PROBABILITY_ERROR * sample.full
            weights[0] = max(0.0, sample.full - sample.displacing + slack)
        return alone


class _Sizes(NamedTuple):
    """Bounds of the probabilities of B - i others, i = 0, 1, ..., in a sample, and of fewer ones
    than these."""

    least: np.ndarray
    most: np.ndarray
    fewer: tuple[float, float]

    @classmethod
    def of(cls, drawn: np.ndarray, fewer: float) -> _Sizes:
        down, up = 1 - PROBABILITY_ERROR, 1 + PROBABILITY_ERROR
        return cls(drawn * down, drawn * up, (fewer * down, fewer * up))

    def times(self, share: float) -> _Sizes:
        return _Sizes(
            share * self.least, share * self.most, (share * self.fewer[0], share * self.fewer[1])
        )


def _intervals(
    edges: np.ndarray, places: np.ndarray, weights: np.ndarray, deviation: float
) -> MassBounds:
    """Bounds of the masses between the edges of normal laws about the places."""
    masses, errors = mixture_masses(edges, places, weights, deviation)
    return np.maximum(masses - errors, 0.0), masses + errors

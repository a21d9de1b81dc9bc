"""Composition of pairs: a two-sided bracket of delta(epsilon), or epsilon(delta), for the pairs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsub.accountants import law_trimming
from dpsub.accountants.composition import Composition
from dpsub.accountants.directed_pair import DirectedPair
from dpsub.accountants.filler_pair import FillerPair
from dpsub.accountants.gaussian_pair import GaussianPair
from dpsub.accountants.mixture_pair import MixturePair
from dpsub.accountants.pair_losses import lower_law, upper_law
from dpsub.accountants.refinement import DEFAULT_TAIL, Question, bracket, sharpened


@dataclass(frozen=True)
class PairAccount:
    """k_t compositions of each of several pairs.

    Attributes
    ----------
    events : sequence of (GaussianPair, int)
        Pairs and their numbers of compositions; they may differ in kind and scale.
    directions : tuple of bool
        Which directions count: False for X against X', True for X' against X.  Directions are composed separately and the
        larger answer is taken.
    """

    events: Sequence[tuple[GaussianPair, int]]
    directions: tuple[bool, ...] = (False, True)

    def lower(self, step: float, tail: float) -> list[Composition]:
        laws = [
            [lower_law(_capped(pair, tail), step, tail=tail, swapped=swapped) for pair, _ in self.events]
            for swapped in self._different
        ]
        return [Composition(row, self._counts) for row in laws]

    def upper(self, step: float, tail: float) -> list[Composition]:
        rows = []
        for swapped in self._different:
            row = []
            for pair, _ in self.events:
                kept, lost = _dropped(pair, tail)
                row.append(upper_law(kept, step, tail=tail, swapped=swapped, lost=lost))
            rows.append(Composition(row, self._counts))
        return rows

    @property
    def _counts(self) -> list[int]:
        return [k for _, k in self.events]

    @property
    def _different(self) -> tuple[bool, ...]:
        # a pair and its mirror image have one loss in both directions
        return self.directions[:1] if all(pair.mirrored for pair, _ in self.events) else self.directions

    def bracket(self, question: Question) -> tuple[float, float]:
        """Lower and upper answer for the composed pairs."""
        return bracket(question, self.lower, self.upper, self.first_step(), self._tail(question))

    def attack(self, question: Question) -> float:
        """The lower answer alone."""
        return sharpened(question, self.lower, self.first_step(), "lower", self._tail(question))

    def _tail(self, question: Question) -> float:
        return DEFAULT_TAIL if question.delta is None else min(DEFAULT_TAIL, question.delta * 1e-12)

    def first_step(self) -> float:
        """A coarse step: a twelfth of the spread of the narrowest loss."""
        spreads = []
        for pair, _ in self.events:
            law = _capped(pair, 1e-12)
            below, above = DirectedPair(law).range(1e-3)
            rough = upper_law(law, max(above - below, 1e-9) / 400, tail=1e-9)
            spreads.append(np.sqrt(rough.moments(0.0)[1]))
        return float(min(spreads)) / 12


def _dropped(pair: GaussianPair, tail: float) -> tuple[GaussianPair, float]:
    if isinstance(pair, FillerPair | MixturePair):
        law, lost = law_trimming.dropped(pair.law, tail)
        return replace(pair, law=law), lost
    return pair, 0.0


def _capped(pair: GaussianPair, tail: float) -> GaussianPair:
    return replace(pair, law=law_trimming.capped(pair.law, tail)) if isinstance(pair, FillerPair | MixturePair) else pair

"""Random allocation to k of t steps, from both sides: docs/proofs/allocation.md.

From above in two ways, and the smaller answer counts: k blocks with one step of the record
each, revealed (Theorem 27); and fewer, larger blocks with several of its steps each, whose laws are
bounded by their moments given a sum (Theorem 72). From below by sums of functions of the steps,
with several weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.lower_law import exchange_law
from dpsub.accounting.engine.outputs import EpochOutputs
from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution, Profile, two_sided_pld
from dpsub.accounting.engine.privacy_events import AttackEvent, Event, ProvedEvent, order_grid
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.schemes.allocation.moments import (
    MomentsGivenSum,
    PolynomialBounds,
    moments_given_sum,
)
from dpsub.accounting.schemes.allocation.one_step import (
    AllocationEvent,
    SelectionEvent,
    SumEvent,
    loss_deviation,
)
from dpsub.errors import NumericalError

# steps of the record in one block: more have too many overlaps
_IN_A_BLOCK = (6, 5, 4)
# steps of a block for each that is the record's: with fewer a transform has no small entries
_LEAST_STEPS = 5
# weights of the sums, as multiples e^(-i / k) of (k - 1) / (t - k + 1): larger losses are told by
# smaller ones
_WEIGHTS = (0, 1, 2)
_NODES = 400
_NEGLIGIBLE = 1e-18  # a profile at the last of its nodes
_ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class SubsetEvent(Event):
    """One epoch of k of t, 1 < k < t, for a record added, removed or zeroed out."""

    t: int
    k: int
    deviation: float

    @cached_property
    def blocks(self) -> SelectionEvent:
        """The event whose bound is Theorem 27's alone."""
        return SelectionEvent(self.t, self.k, self.deviation)

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return self.blocks.uppers(step, tail, swapped)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.blocks.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.blocks.lower(step, tail, swapped)

    @property
    def outputs(self) -> EpochOutputs:
        return EpochOutputs(self.t, self.k, 1.0, 0.0, self.deviation)

    @property
    def symmetric(self) -> bool:
        return False

    @cached_property
    def in_larger_blocks(self) -> LargerBlocks:
        """The event whose bound is Theorem 72's alone."""
        return LargerBlocks(self.t, self.k, self.deviation)

    @cached_property
    def upper_choices(self) -> tuple[Event, ...]:
        larger = self.in_larger_blocks
        return (self.blocks, larger) if larger.applies else (self.blocks,)

    @cached_property
    def attack_choices(self) -> tuple[Event, ...]:
        larger = self.in_larger_blocks
        question = self.t, self.k, self.deviation
        # of one block the laws of the sums are known from the proof
        if larger.applies and larger.is_one_block:
            weights = _weights(self.t, self.k, _WEIGHTS)
            return self.blocks, *(GivenSumEvent(*question, c) for c in weights)
        # the first weight is that of the blocks' own attack
        weights = _weights(self.t, self.k, _WEIGHTS[1:])
        return self.blocks, *(SumEvent(*question, c, 1.0, 0.0) for c in weights)

    @property
    def close_choices(self) -> bool:
        return True

    def spread(self) -> float:
        return self.blocks.spread()


@dataclass(frozen=True)
class GivenSumEvent(AttackEvent):
    """Lower bound of one epoch of k of t by the sum of functions of the steps with the weight c:
    the moments of order 1 and 0 given the sum are its laws under P and Q."""

    t: int
    k: int
    deviation: float
    c: float

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        first, second = (0, 1) if swapped else (1, 0)
        laws = self._laws
        # the law that comes first from below, the other one from above
        lower = exchange_law(laws.at_least[first], laws.at_most[second], step, 0.0)
        return lower if lower.masses.any() else None

    @property
    def _laws(self) -> MomentsGivenSum:
        try:
            return moments_given_sum(self.t, self.k, self.deviation, self.c)
        except NumericalError as error:
            if isinstance(error, OutOfWorkError):
                raise
            # a sum without known moments
            return MomentsGivenSum(np.zeros((5, 1)), np.ones((5, 1)), 1.0)

    def edges(self, swapped: bool) -> np.ndarray:
        """Places where the number that a step adds changes, in deviations of its output; the same
        in both directions."""
        return self._laws.edges

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        laws = self._laws
        return loss_deviation(laws.at_least[1], laws.at_least[0])


def _weights(t: int, k: int, places: tuple[int, ...]) -> list[float]:
    # of (k - 1) / (t - k + 1) the product of 1 + c X_j has its largest terms at degree k; where the
    # loss is large they are at a smaller weight
    return [(k - 1) / (t - k + 1) * math.exp(-i / k) for i in places]


@dataclass(frozen=True)
class LargerBlocks(ProvedEvent):
    """Upper bound of one epoch of k of t: the steps are cut at random into blocks with a few of the
    record's steps each, which are revealed. It has no lower bound."""

    t: int
    k: int
    deviation: float

    @cached_property
    def parts(self) -> list[tuple[int, int, int]]:
        """Steps of a block, how many of them are the record's, and the number of such blocks."""
        if self.is_one_block:
            return [(self.t, self.k, 1)]
        # of two kinds at most where that is possible: each is a profile of its own
        of_each = next((g for g in _IN_A_BLOCK if self.k % g == 0), max(_IN_A_BLOCK))
        blocks, rest = divmod(self.k, of_each)
        aside = round(self.t * rest / self.k)
        size, more = divmod(self.t - aside, blocks)
        parts = [
            (size, of_each, blocks - more),
            (size + 1, of_each, more),
            (aside, rest, 1 if rest else 0),
        ]
        return [part for part in parts if part[2]]

    @property
    def is_one_block(self) -> bool:
        return self.k <= max(_IN_A_BLOCK)

    @property
    def applies(self) -> bool:
        """Whether the moments of all blocks can be computed."""
        return all(size >= _LEAST_STEPS * of_each for size, of_each, _ in self.parts)

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return [
            (self._of_block(size, of_each, step, tail, swapped), times)
            for size, of_each, times in self.parts
        ]

    def _of_block(
        self, size: int, of_each: int, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution:
        if of_each == 1:
            return AllocationEvent(size, self.deviation).upper(step, tail, swapped)
        forward, backward = self.block(size, of_each).profiles
        indices = order_grid(forward, step, tail)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_pld(first, second, step, indices)

    def block(self, size: int, of_each: int) -> Block:
        """Return the bounds of one of its parts with several steps of the record."""
        # more weights where one law decides
        weights = _WEIGHTS if len(self.parts) == 1 else _WEIGHTS[:2]
        return _block(size, of_each, self.deviation, weights)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        (law, times), *others = self.uppers(step, tail, swapped)
        if others or times > 1:
            raise NumericalError("an epoch in several blocks has several upper laws; use uppers")
        return law

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        return min(_blocks_spread(*part[:2], self.deviation) for part in self.parts)


def _blocks_spread(t: int, k: int, deviation: float) -> float:
    """Return the standard deviation of the loss of one larger block, roughly."""
    return SelectionEvent(t, k, deviation).spread() * math.sqrt(k)


class Block:
    """Upper bounds of k of t steps, a >= 1: the smallest of those of Theorem 72 with several
    weights, and of Theorem 27."""

    def __init__(self, t: int, k: int, deviation: float, weights: tuple[int, ...]) -> None:
        self.t, self.k = t, k
        self.moments: list[MomentsGivenSum] = []
        for c in _weights(t, k, weights):
            with suppress(NumericalError):
                self.moments.append(moments_given_sum(t, k, deviation, c))
            work.spend(0)
        self._given = [PolynomialBounds(moments) for moments in self.moments]
        self.revealed = SelectionEvent(t, k, deviation)
        self.orders: dict[bool, np.ndarray] = {}
        """Log orders, in either direction, at which Theorem 72 is used."""
        self.profiles = self._profile(False), self._profile(True)
        """Bounds of H_a(P || Q) and of H_a(Q || P)."""

    @property
    def revealed_grid(self) -> tuple[float, float]:
        """Step and tail of the laws of Theorem 27."""
        return self.revealed.spread() / 24, 1e-20

    def _profile(self, swapped: bool) -> Profile:
        laws = self.revealed.uppers(*self.revealed_grid, swapped)
        composed = ComposedLoss([pld for pld, _ in laws], [times for _, times in laws])

        def at(log_order: float) -> float:
            bounds = (
                each.below(log_order) if swapped else each.above(log_order) for each in self._given
            )
            return min(bounds, default=1.0)

        last = self.revealed.spread()
        while last < MAX_LOSS / 2 and composed.delta(last) > _NEGLIGIBLE:
            last *= 1.5
        self.orders[swapped] = last * np.linspace(0.0, 1.0, _NODES) ** 1.5
        by_moments = _by_chords(at, self.orders[swapped])

        def smallest(log_order: np.ndarray) -> np.ndarray:
            x = np.asarray(log_order, dtype=float)
            # profiles fall: smaller orders are safe
            revealed = composed.deltas(x - 1e-15 * (1 + x), 1e-2)
            return np.minimum(np.minimum(revealed * _ROUNDING, by_moments(x)), 1.0)

        return smallest


@work.remembered(64)
def _block(t: int, k: int, deviation: float, weights: tuple[int, ...]) -> Block:
    return Block(t, k, deviation, weights)


def _by_chords(bound: Callable[[float], float], nodes: np.ndarray) -> Profile:
    """Return a profile from a bound at some orders, and chords between them: a profile is convex,
    so that they lie above it."""
    values = np.minimum.accumulate([bound(x) for x in nodes.tolist()])

    def chords(log_order: np.ndarray) -> np.ndarray:
        left = np.clip(np.searchsorted(nodes, log_order, side="right") - 1, 0, nodes.size - 2)
        share = np.expm1(log_order - nodes[left]) / np.expm1(nodes[left + 1] - nodes[left])
        share = np.clip(share, 0.0, 1.0)
        chord = (values[left] * (1 - share) + values[left + 1] * share) * _ROUNDING
        return np.asarray(chord)

    return chords

"""Privacy events: what bounds the privacy loss of one step from above and below."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpsub.accounting import pairs
from dpsub.accounting.discretise import (
    DirectedPair,
    Statistic,
    lower_pld,
    lower_pld_of_many,
    upper_pld,
)
from dpsub.accounting.pairs import FillerPair, GaussianPair, MixturePair
from dpsub.accounting.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    Profile,
    order_indices,
    symmetric_pld,
    two_sided_pld,
)

ProfileMaker = Callable[[float], tuple[Profile, Profile | None]]
"""tail -> (H_a(P || Q), H_a(Q || P)) for a >= 1; None for the second where it equals the first."""

_RARE = 1e-6
_SEARCH = np.concatenate([[0.0], np.geomspace(1e-5, MAX_LOSS, 90)])


class Event(ABC):
    """A step of a composition."""

    @abstractmethod
    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        """A PLD that dominates the step, in one direction."""

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        """PLDs, each with how often it is composed, that dominate the step together, in one
        direction."""
        return [(self.upper(step, tail, swapped), 1)]

    @abstractmethod
    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        """A PLD that an explicit pair of data sets attains, in one direction; None if none is
        known."""

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        """As `lower`, for a step that happens very often: what rounding takes from each loss then
        adds up."""
        return self.lower(step, tail, swapped)

    def fitting(self, step: float) -> float:
        """A step, at most the one given, that suits the lower PLD: any is valid."""
        return step

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether both directions have the same PLDs."""

    @property
    def upper_symmetric(self) -> bool:
        """Whether both directions have the same upper PLD."""
        return self.symmetric

    @property
    def exact(self) -> bool:
        """Whether both bound the same loss."""
        return False

    @property
    def attacked(self) -> bool:
        """Whether an attack is known, so that `lower` gives PLDs."""
        return True

    @property
    def tight_for_one_step(self) -> bool:
        """Whether both bound the same loss if the step happens once, and alone."""
        return self.exact

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        """What several choices of data sets attain, of which the best counts; of one, the event
        itself."""
        return (self,)

    @property
    def largest_loss(self) -> float:
        """Which no loss exceeds, in either direction; infinite where losses are not bounded."""
        return math.inf

    @abstractmethod
    def spread(self) -> float:
        """Standard deviation of the loss, roughly: the unit of grid steps."""


@dataclass(frozen=True)
class PairEvent(Event):
    """A step whose worst data sets are known; `one_direction`: X against X' only, as in the
    papers."""

    pair: GaussianPair
    one_direction: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        kept, lost = _dropped(self.pair, tail)
        return upper_pld(kept, step, tail=tail, swapped=swapped, lost=lost)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return lower_pld(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    def lower_of_many(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return lower_pld_of_many(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    @property
    def symmetric(self) -> bool:
        # a pair and its mirror image have one loss in both directions
        return self.pair.mirrored or self.one_direction

    @property
    def exact(self) -> bool:
        return True

    def spread(self) -> float:
        pair = _capped(self.pair, 1e-12)
        below, above = DirectedPair(pair).range(1e-3)
        lowest, highest = np.clip(DirectedPair(pair).range(1e-9), -MAX_LOSS, MAX_LOSS)
        # where an inclusion is rarer than 1e-3, nearly all losses lie close together, and a few far
        # away
        step = max(max(above - below, 1e-9) / 400, (highest - lowest) / 1e6)
        return float(np.sqrt(upper_pld(pair, step, tail=1e-9).moments(0.0)[1]))


@dataclass(frozen=True)
class DominatedEvent(Event):
    """A step with a proved profile, and an attack that may fall short of it; `attained`: it attains
    it in one step."""

    profile: ProfileMaker
    attack: GaussianPair | None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        forward, backward = self.profile(tail)
        indices = order_grid(forward, step, tail)
        if backward is None:
            return symmetric_pld(forward, step, indices)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_pld(first, second, step, indices)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return None if self.attack is None else PairEvent(self.attack).lower(step, tail, swapped)

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        return (
            None
            if self.attack is None
            else PairEvent(self.attack).lower_of_many(step, tail, swapped)
        )

    @property
    def symmetric(self) -> bool:
        return self.upper_symmetric and (self.attack is None or self.attack.mirrored)

    @property
    def upper_symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None

    @property
    def attacked(self) -> bool:
        return self.attack is not None

    @property
    def tight_for_one_step(self) -> bool:
        return self.attained

    def spread(self) -> float:
        forward, backward = self.profile(1e-9)
        values = forward(_SEARCH)
        if values[0] <= _RARE:
            # most steps have no loss: what counts is the loss of the others
            values = self.profile(values[0] * 1e-9)[0](_SEARCH)
            return float(_SEARCH[int(np.argmax(values <= values[0] * 1e-2))]) or MAX_LOSS
        rough = float(_SEARCH[int(np.argmax(values <= max(_RARE, values[0] * 1e-4)))]) or MAX_LOSS
        indices = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 2e4, 150)).astype(int))])
        pld = two_sided_pld(forward, backward or forward, min(10 * rough, MAX_LOSS) / 2e4, indices)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(pld.moments(0.0)[1])) or rough


@dataclass(frozen=True)
class StatisticEvent(Event):
    """What an attack attains by one number of the output; nothing is bounded from above."""

    statistic: Statistic

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return PrivacyLossDistribution(step, np.zeros(1), np.zeros(1), "upper", infinity=1.0)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.statistic.lower_pld(step, tail=tail, swapped=swapped)

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        # what its cells are rounded by adds up, and they cost little
        return self.statistic.spread() / 8


@dataclass(frozen=True)
class EnclosedEvent(Event):
    """A step that one event bounds, and others attain, each by data sets of its own."""

    proved: Event
    attacks: tuple[Event, ...]

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.proved.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self.attacks[0].lower(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return self.proved.symmetric and all(attack.symmetric for attack in self.attacks)

    @property
    def upper_symmetric(self) -> bool:
        return self.proved.upper_symmetric

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        return self.attacks

    def spread(self) -> float:
        return self.proved.spread()


def order_grid(profile: Profile, step: float, tail: float, floor: float = 0.0) -> np.ndarray:
    """Indices of the orders that suit a profile which falls to `floor`, up to where less than
    `tail` is left."""
    values = profile(_SEARCH) - floor
    below, bulk = values <= tail, values <= values[0] * 1e-3
    last = float(_SEARCH[int(np.argmax(below))]) if below.any() else MAX_LOSS
    fine = float(_SEARCH[int(np.argmax(bulk))]) if bulk.any() else last
    return order_indices(step, min(fine, last), last)


@lru_cache(maxsize=32)
def _dropped(pair: GaussianPair, tail: float) -> tuple[GaussianPair, float]:
    if isinstance(pair, FillerPair | MixturePair):
        law, lost = pairs.dropped(pair.law, tail)
        return replace(pair, law=law), lost
    return pair, 0.0


@lru_cache(maxsize=32)
def _capped(pair: GaussianPair, tail: float) -> GaussianPair:
    return (
        replace(pair, law=pairs.capped(pair.law, tail))
        if isinstance(pair, FillerPair | MixturePair)
        else pair
    )

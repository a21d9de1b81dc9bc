"""What is proved, and what is attained, for Laplace noise on scalar sums in which a record occurs at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dpsub.accountants.events import DominatedEvent, Event
from dpsub.accountants.laplace_pair import LaplacePair
from dpsub.accountants.laplace_profiles import included_once, removed_once, replaced_once
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.profile_losses import Profile
from dpsub.accountants.slot_chain import SlotChain
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """A step whose profile is that of a pair in one direction, or in both.

    Attributes
    ----------
    pair : LaplacePair
        Outputs on two data sets.
    forward, backward : callable
        Bounds of H_a(P || Q) and H_a(Q || P), a >= 1.
    attained : bool
        Whether `pair` has these profiles in both directions, so that it is the worst one after any number of steps;
        else in the first direction only, and for one step.
    """

    pair: LaplacePair
    forward: Profile
    backward: Profile
    attained: bool

    @property
    def _bound(self) -> DominatedEvent:
        both = None if self.backward is self.forward else self.backward
        return DominatedEvent(lambda _: (self.forward, both), None)

    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        return self._bound.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw | None:
        return self.pair.lower_law(step, swapped)

    def fitting(self, step: float) -> float:
        return self.pair.fitting(step)

    @property
    def symmetric(self) -> bool:
        return self.upper_symmetric and self.pair.mirrored

    @property
    def upper_symmetric(self) -> bool:
        return self.backward is self.forward

    @property
    def exact(self) -> bool:
        return self.attained

    @property
    def attained_once(self) -> bool:
        return True

    def spread(self) -> float:
        return self._bound.spread()


class LaplaceCase(NamedTuple):
    """An event, words for what bounds and what attains it, and the pair that fillers of either sign give, if any."""

    event: LaplaceEvent
    pair: str
    attack: str
    sensitivity: str
    flipped: LaplacePair | None


def laplace_case(chain: SlotChain, relation: Relation, scale: float) -> LaplaceCase:
    """The case of one kind of release, scale of the noise over C.

    Raises
    ------
    UnsupportedError
        If a record can occur more than once, or the sampler is a chain that ends in a Poisson stage.
    """
    if chain.kinds == ("without",):
        q = chain.stages[0].size / chain.n
        pair, forward = LaplacePair(q, 2 / scale), included_once(q, 2 / scale)
        return LaplaceCase(
            LaplaceEvent(pair, forward, forward, attained=False),
            "profile q h(1 + (a - 1) / q) of Laplace noise at distance 2 C, scalar query",
            "data sets (C, -C, ..., -C) against (-C, ..., -C), both directions",
            "one record replaced moves the sum by up to 2 C",
            pair,
        )
    if chain.kinds == ("poisson",):
        q, ratio = chain.stages[0].rate, 1 / scale
        if relation is Relation.ADD_REMOVE:
            words = "(1 - q) Lap(0, s) + q Lap(1, s) against Lap(0, s), both directions, scalar query"
            event = LaplaceEvent(LaplacePair(q, ratio), included_once(q, ratio), removed_once(q, ratio), attained=True)
            return LaplaceCase(event, words, words, "one record more or less moves the sum by up to C", None)
        words = "(1 - q) Lap(0, s) + q Lap(1, s) against (1 - q) Lap(0, s) + q Lap(-1, s), scalar query"
        replaced = replaced_once(q, ratio)
        event = LaplaceEvent(LaplacePair(q, ratio, mirrored=True), replaced, replaced, attained=True)
        return LaplaceCase(event, words, words, "one occurrence replaced moves the sum by up to 2 C", None)
    raise UnsupportedError(
        "with Laplace noise only sampling without replacement and Poisson sampling are proved, where a record enters "
        "at most once; use mechanism gaussian"
    )

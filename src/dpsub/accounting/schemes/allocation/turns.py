"""Secret groups that take turns: a record is in one of `groups`, in each of whose `turns` it is
drawn by a coin (docs/proofs/allocation.md, Theorem 85).

The likelihood ratio of all epochs is the mean over the groups of independent products W over their
turns of 1 - q + q X, X the log-normal ratio of one step. As in `one_step` the law of X is replaced
by one on few points, products and then means are formed pair by pair, doubling their number, and
brought back to few points: their masses are moved to the ends of cells for the upper bound, and
to their means for the lower one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pairs import WorPair
from dpsub.accounting.engine.pld import PrivacyLossDistribution, Profile, RememberedProfile
from dpsub.accounting.engine.privacy_events import (
    AttackEvent,
    DominatedEvent,
    PairSeveralTimes,
)
from dpsub.accounting.schemes.allocation.one_step import (
    COARSEST,
    FINE,
    MOST_PAIRS,
    JoinedLaw,
    MeanLaw,
    RatioEvent,
    ReplacedEvent,
    by_reference,
    joined,
    mixed_with_one,
    reference_grid,
    replaced,
    single_law,
    spread_of,
)
from dpsub.accounting.schemes.allocation.opposite_event import (
    attained_pld,
    fine_enough,
    fineness_of,
    opposite,
)

_LARGEST = 600.0  # log of a likelihood ratio, far beyond which exponentials overflow
_REACH = 20.0  # deviations of the loss that are looked at, at most, about


@dataclass(frozen=True)
class TurnsEvent(RatioEvent):
    """All epochs: the mean over the groups of the product of its `turns` mixtures (1 - q) N(0, s^2)
    + q N(1, s^2), against N(0, s^2) throughout, both directions; s = `deviation`, q = `rate`."""

    groups: int
    rate: float
    turns: int
    deviation: float

    @property
    def applies(self) -> bool:
        """Whether likelihood ratios are doubles, also of a record that is drawn in all turns."""
        mu = math.sqrt(self.turns) / self.deviation
        return mu**2 / 2 + _REACH * mu <= _LARGEST

    def laws(self, step: float, tail: float, upper: bool) -> tuple[JoinedLaw, ...]:
        wanted = min(COARSEST, FINE * step / self.spread())
        return ratio_laws(self, max(_finest(self), wanted), tail, upper)

    def spread(self) -> float:
        return _spread(self)


@dataclass(frozen=True)
class OppositeTurns(AttackEvent):
    """All epochs, as attacks see them where the record at C is replaced by -C among zero records,
    by cells of the outputs."""

    together: TurnsEvent

    @property
    def applies(self) -> bool:
        """Whether there are several groups, and cells tell enough of their steps."""
        return self.together.groups > 1 and bool(fine_enough(self.together.deviation))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        of = self.together
        fineness = fineness_of(step, self.spread(), of.deviation)
        records = opposite(of.groups, of.deviation, fineness, of.rate, of.turns)
        return attained_pld(records, step, tail)

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self) -> float:
        return self.together.spread()


def replaced_turns(event: TurnsEvent) -> DominatedEvent:
    """Return the event of a replaced record from above: by way of no record, or with its group
    revealed, whichever is smaller at an order."""

    # where it is asked for: a budget that does not suffice for it leaves first ends
    @cache
    def parts() -> tuple[Profile, ComposedLoss]:
        revealed = PairSeveralTimes(WorPair(event.rate, event.deviation), event.turns)
        laws, times = zip(*revealed.uppers(*reference_grid(event), False), strict=True)
        return by_reference(event, event), ComposedLoss(list(laws), list(times))

    def profile(log_order: np.ndarray) -> np.ndarray:
        by_no_record, revealed = parts()
        x = np.asarray(log_order, dtype=float)
        of_turns = revealed.curve(np.ravel(x), 0.0).reshape(x.shape)
        return np.minimum(np.minimum(by_no_record(x), of_turns), 1.0)

    remembered = RememberedProfile(profile)
    return DominatedEvent(lambda tail: (remembered, None), None)


def ratio_law(event: TurnsEvent, fineness: float, tail: float, upper: bool) -> MeanLaw:
    """Return the law of the likelihood ratio under Q from above or below: cells are about
    `fineness` deviations wide, and about `tail` is cut off at each end."""
    return ratio_laws(event, fineness, tail, upper)[-1].law


def by_no_record(event: TurnsEvent) -> ReplacedEvent:
    """Return the event of a replaced record as the verifier knows it: by way of no record, or with
    all its steps revealed."""
    distance = 2 * math.sqrt(event.turns) / event.deviation
    return ReplacedEvent(event, (), replaced(event, distance))


@work.remembered(16)
def ratio_laws(
    event: TurnsEvent, fineness: float, tail: float, upper: bool
) -> tuple[JoinedLaw, ...]:
    """Return the laws on the way to that of the likelihood ratio: of one turn, of products over the
    turns, and of means over the groups."""
    single = single_law(event.deviation, fineness, tail, upper)
    laws = [JoinedLaw(mixed_with_one(single, event.rate), None)]

    def multiplied(a: MeanLaw, b: MeanLaw, turns: int) -> MeanLaw:
        return joined(a, b, _deviation(event, turns), fineness, tail, product=True)

    def averaged(a: MeanLaw, b: MeanLaw, _: int) -> MeanLaw:
        return joined(a, b, _deviation(event, event.turns), fineness, tail)

    _double(laws, event.turns, multiplied, is_product=True)
    _double(laws, event.groups, averaged, is_product=False)
    return tuple(laws)


def _double(
    laws: list[JoinedLaw],
    times: int,
    join: Callable[[MeanLaw, MeanLaw, int], MeanLaw],
    *,
    is_product: bool,
) -> None:
    """Add the laws on the way to that of so many independent terms of the last one, as `times` is
    read from its binary digits."""
    first = len(laws) - 1
    law = laws[first].law
    joins = times.bit_length() + times.bit_count() - 2
    # nothing is begun that is not finished: laws on the way have about as many points
    work.ensure(work.TERM * joins * law.mass.size**2, "so many turns of so many groups")

    def add(one: int, other: int, terms: int) -> None:
        joint = join(laws[one].law, laws[other].law, terms)
        laws.append(JoinedLaw(joint, (one, other), is_product))

    terms = 1
    for bit in f"{times:b}"[1:]:
        terms *= 2
        add(len(laws) - 1, len(laws) - 1, terms)
        if bit == "1":
            terms += 1
            add(len(laws) - 1, first, terms)


def _deviation(event: TurnsEvent, turns: int) -> float:
    """Return the deviation of the log-normal ratio that has the variance of the product of so many
    turns."""
    exponent = min(event.deviation**-2, _LARGEST)
    return 1 / math.sqrt(turns * math.log1p(event.rate**2 * math.expm1(exponent)))


@work.remembered(64)
def _finest(event: TurnsEvent) -> float:
    """Cells so fine that products and means take a second or so."""
    joins = sum(number.bit_length() + number.bit_count() for number in (event.turns, event.groups))
    points = ratio_law(event, COARSEST, 1e-18, False).mass.size
    return COARSEST * points * math.sqrt(joins / MOST_PAIRS)


@work.remembered(64)
def _spread(event: TurnsEvent) -> float:
    """Standard deviation of the loss under P."""
    return spread_of(ratio_law(event, COARSEST, 1e-12, False))

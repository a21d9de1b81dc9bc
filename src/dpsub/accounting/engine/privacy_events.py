"""Privacy events: bounds of the privacy loss of one step, or of one epoch, from both sides.

An event gives privacy loss distributions (PLDs) on a grid: one that dominates the step (`upper`),
and one that explicit data sets attain (`lower`). Both hold on any grid and for any tail that is cut
off. A direction is that of X against X', or `swapped`. The theorem that gives an event is named by
the scheme; this module knows the kinds:

- `PairEvent`: the worst data sets are known, so both bounds are about one loss;
- `DominatedEvent`: a proved profile, and an attack that may fall short of it;
- `StatisticEvent`: an attack that looks at one number of the output, and no proof;
- `EnclosedEvent`: one of these as the proof, others as attacks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpsub.accounting.engine import pairs, work
from dpsub.accounting.engine.discretise import (
    DirectedPair,
    lower_pld,
    upper_pld,
)
from dpsub.accounting.engine.outputs import Outputs
from dpsub.accounting.engine.pairs import FillerPair, GaussianPair, MixturePair
from dpsub.accounting.engine.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    Profile,
    order_indices,
    symmetric_pld,
    two_sided_pld,
)
from dpsub.accounting.engine.statistic import OutputCells
from dpsub.errors import NumericalError

ProfileMaker = Callable[[float], tuple[Profile, Profile | None]]
"""Function tail -> (H_a(P || Q), H_a(Q || P)) for a >= 1; None for the second where it equals the
first."""

# log orders at which a profile is looked at to see how far it reaches
_PROBES = np.concatenate([[0.0], np.geomspace(1e-5, MAX_LOSS, 90)])
# value of a profile below which its losses are too rare to set the unit of grid steps
_RARE = 1e-6


class Event(ABC):
    """A step of a composition."""

    many: ClassVar[int] = 20_000
    """Number of times from which on what rounding takes from each loss decides how fine a grid must
    be ("Pairs, lower")."""

    @abstractmethod
    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        """PLD that dominates the step, in one direction."""

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        """PLDs, each with how often it is composed, that dominate the step together."""
        return [(self.upper(step, tail, swapped), 1)]

    @abstractmethod
    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        """PLD that an explicit pair of data sets attains; None if none is known."""

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        """As `lower`, for a step that happens so often that rounding of each loss adds up."""
        return self.lower(step, tail, swapped)

    def fitting(self, step: float) -> float:
        """Step, at most the one given, that suits the lower PLD; any is valid."""
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
        """Whether both bounds are about the same loss."""
        return False

    @property
    def attacked(self) -> bool:
        """Whether an attack is known, so that `lower` gives PLDs."""
        return True

    @property
    def tight_for_one_step(self) -> bool:
        """Whether both bounds are about the same loss if the step happens once, and alone."""
        return self.exact

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        """Return the event of each choice of data sets; of one choice, the event itself."""
        return (self,)

    @property
    def outputs(self) -> Outputs | None:
        """Return the outputs of its attack's data sets, where it is no `GaussianPair` and they
        have a closed form."""
        return None

    @property
    def close_choices(self) -> bool:
        """Whether the choices attain so nearly the same that a search has to tell them apart."""
        return False

    @property
    def upper_choices(self) -> tuple[Event, ...]:
        """The bounds of several proofs, whose smallest answer counts; of one proof, the
        event itself."""
        return (self,)

    @property
    def largest_loss(self) -> float:
        """Largest loss in either direction; infinite where losses are not bounded."""
        return math.inf

    @abstractmethod
    def spread(self) -> float:
        """Standard deviation of the loss, roughly: the unit of grid steps."""

    def spread_of_many(self) -> float:
        """The unit of grid steps of `lower_of_many`."""
        return self.spread()


@dataclass(frozen=True)
class PairEvent(Event):
    """A step whose worst data sets are known.

    Parameters
    ----------
    pair : GaussianPair
        The outputs on these data sets.
    one_direction : bool
        X against X' only, as in the papers.
    """

    pair: GaussianPair
    one_direction: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # counts of total probability at most the tail are dropped, and charged as infinite loss:
        # P(A) - a Q(A) grows by no more ("Trimming")
        kept, dropped = _dropped(self.pair, tail)
        return upper_pld(kept, step, tail=tail, swapped=swapped, lost=dropped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # rare counts are capped: the pair dominates the capped one (docs/proofs/attacks.md,
        # "Capping")
        return lower_pld(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    def lower_of_many(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # bins exchange shares with their neighbours, so that means of losses are kept ("Pairs,
        # lower"); it costs more, and pays where many roundings add up
        pair = _capped(self.pair, tail)
        return lower_pld(pair, step, tail=tail, swapped=swapped, exchange=True)

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
        # away: a grid for the bulk, unless the few then need a million points
        step = max(max(above - below, 1e-9) / 400, (highest - lowest) / 1e6)
        _, variance = upper_pld(pair, step, tail=1e-9).moments(0.0)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(variance)) or 1.0


@dataclass(frozen=True)
class DominatedEvent(Event):
    """A step with a proved profile, and an attack that may fall short of it.

    Parameters
    ----------
    profile : callable
        See `ProfileMaker`.
    attack : GaussianPair or None
        Outputs on the data sets of the attack.
    attained : bool
        Whether the attack attains the profile in one step.
    """

    profile: ProfileMaker
    attack: GaussianPair | None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # the profile at the orders of a grid, connected by chords, is that of a PLD, and above it:
        # a profile is convex (docs/proofs/composition.md)
        forward, backward = self.profile(tail)
        indices = order_grid(forward, step, tail)
        if backward is None:
            return symmetric_pld(forward, step, indices)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_pld(first, second, step, indices)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        if self.attack is None:
            return None
        return PairEvent(self.attack).lower(step, tail, swapped)

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        if self.attack is None:
            return None
        return PairEvent(self.attack).lower_of_many(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return self.upper_symmetric and (self.attack is None or self.attack.mirrored)

    @property
    def upper_symmetric(self) -> bool:
        _, backward = self.profile(1e-9)
        return backward is None

    @property
    def attacked(self) -> bool:
        return self.attack is not None

    @property
    def tight_for_one_step(self) -> bool:
        return self.attained

    def spread(self) -> float:
        forward, backward = self.profile(1e-9)
        values = forward(_PROBES)
        if values[0] <= _RARE:
            # most steps have no loss: what counts is the loss of the others
            rare, _ = self.profile(values[0] * 1e-9)
            values = rare(_PROBES)
            return _first_below(values, values[0] * 1e-2) or MAX_LOSS
        reach = _first_below(values, max(_RARE, values[0] * 1e-4)) or MAX_LOSS
        # any orders give a dominating PLD: a few tell its deviation well enough
        step = min(10 * reach, MAX_LOSS) / 2e4
        indices = np.unique(np.round(np.geomspace(1, 2e4, 150)).astype(int))
        indices = np.concatenate([[0], indices])
        pld = two_sided_pld(forward, backward or forward, step, indices)
        _, variance = pld.moments(0.0)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(variance)) or reach


class ProvedEvent(Event):
    """A step with a proof and no known attack."""

    def lower(self, step: float, tail: float, swapped: bool) -> None:
        return None

    @property
    def attacked(self) -> bool:
        return False


@dataclass(frozen=True)
class PairSeveralTimes(ProvedEvent):
    """Steps whose losses are together at most those of a pair, independent and so many times."""

    pair: GaussianPair
    times: int

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        raise NumericalError("a pair that is composed several times has no one law; use uppers")

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return [(PairEvent(self.pair).upper(step, tail, swapped), self.times)]

    @property
    def symmetric(self) -> bool:
        return self.pair.mirrored

    def spread(self) -> float:
        # of one of them: each has its own grid
        return PairEvent(self.pair).spread()


class AttackEvent(Event):
    """A step with a known attack and no proof."""

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # all losses may be infinite
        return PrivacyLossDistribution(step, np.zeros(1), np.zeros(1), "upper", infinity=1.0)


@dataclass(frozen=True)
class StatisticEvent(AttackEvent):
    """An event that is attacked by cells of the output, of one number of it, say."""

    many: ClassVar[int] = 200

    statistic: OutputCells

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.statistic.lower_pld(step, tail=tail, swapped=swapped)

    def lower_of_many(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.statistic.exchanging_pld(step, tail=tail, swapped=swapped)

    @property
    def outputs(self) -> Outputs | None:
        return self.statistic.outputs

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        # what its cells are rounded by adds up, and they cost little: a finer unit
        return self.statistic.spread() / 8

    def spread_of_many(self) -> float:
        # exchanges of shares keep means of losses: a coarse grid does, whose groups have much to
        # exchange
        return 4 * self.statistic.spread()


@dataclass(frozen=True)
class EnclosedEvent(Event):
    """A step that one event bounds, perhaps with a second one at less cost, and that others attain,
    each by data sets of its own; without these, the bound is all that is known. `attained`: whether
    the first attack is about the same loss as the bound."""

    proved: Event
    attacks: tuple[Event, ...]
    also_proved: Event | None = None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.proved.upper(step, tail, swapped)

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return self.proved.uppers(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self.attacks[0].lower(step, tail, swapped) if self.attacks else None

    @property
    def symmetric(self) -> bool:
        return self.proved.symmetric and all(attack.symmetric for attack in self.attacks)

    @property
    def upper_symmetric(self) -> bool:
        return self.proved.upper_symmetric

    @property
    def exact(self) -> bool:
        return self.attained

    @property
    def attacked(self) -> bool:
        return bool(self.attacks)

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        return self.attacks or (self,)

    @property
    def upper_choices(self) -> tuple[Event, ...]:
        # the one that costs little comes first
        if self.also_proved is not None:
            return self.also_proved, self.proved
        several = self.proved.upper_choices
        return several if len(several) > 1 else (self,)

    @property
    def largest_loss(self) -> float:
        return self.proved.largest_loss

    def spread(self) -> float:
        return self.proved.spread()


def order_grid(profile: Profile, step: float, tail: float, floor: float = 0.0) -> np.ndarray:
    """Indices of the orders that suit a profile, up to where less than `tail` is left of it.

    Every order of the grid is taken up to where a thousandth of the profile is left, ever sparser
    ones from there on; `floor` is the value that it falls to.
    """
    values = profile(_PROBES) - floor
    # what is left beyond the last order is charged as infinite loss ("Profiles")
    last = _first_below(values, tail) if (values <= tail).any() else MAX_LOSS
    bulk = values[0] * 1e-3
    fine = _first_below(values, bulk) if (values <= bulk).any() else last
    return order_indices(step, min(fine, last), last)


def _first_below(values: np.ndarray, level: float) -> float:
    """First log order at which a profile is at most this level; 0 if it is so nowhere."""
    return float(_PROBES[int(np.argmax(values <= level))])


@work.remembered(32)
def _dropped(pair: GaussianPair, tail: float) -> tuple[GaussianPair, float]:
    """The pair without counts of total probability at most `tail`, and that probability."""
    if isinstance(pair, FillerPair | MixturePair):
        law, lost = pairs.dropped(pair.law, tail)
        return replace(pair, law=law), lost
    return pair, 0.0


@work.remembered(32)
def _capped(pair: GaussianPair, tail: float) -> GaussianPair:
    """A pair with capped counts, which the pair dominates (docs/proofs/attacks.md)."""
    if isinstance(pair, FillerPair | MixturePair):
        return replace(pair, law=pairs.capped(pair.law, tail))
    return pair

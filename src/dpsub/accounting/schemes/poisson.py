"""Poisson samples: every record is drawn by itself, so that one occurrence moves the sum by C, and
one replaced by up to 2 C."""

from __future__ import annotations

from dpsub.accounting.engine.pairs import PoissonPair, WorPair
from dpsub.accounting.engine.privacy_events import Event, PairEvent
from dpsub.accounting.games.static import ANY_N, Neighbours, StepAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    OTHER,
    Amplification,
    AttackChoice,
    Case,
    Theorem,
    covers,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.relations import Relation

_MOVED = {
    Relation.ADD_REMOVE: "adding or removing one record",
    Relation.ZERO_OUT: "setting one record to 0",
}


@covers("poisson", relation=Relation.ADD_REMOVE, reused=Relation)
def poisson(release: Release, relation: Relation) -> Case:
    """Return the case of independent Poisson samples."""
    return poisson_case(release, relation, release.chain().stages[0].rate)


def poisson_case(release: Release, relation: Relation, rate: float) -> Case:
    """Return the case of a record that is in one step with probability `rate`, independently of all
    others: Theorem 1, also for Laplace noise (docs/proofs/laplace.md) and under zero_out
    (docs/proofs/zero_out.md)."""
    is_laplace = release.mechanism == "laplace"
    if is_laplace:
        event, proved, sensitivity = _laplace(release, relation, rate)
        section = "3.7"
    else:
        event, proved, sensitivity = _gaussian(release, relation, rate)
        section = "3.9" if relation is Relation.ZERO_OUT else "3.2"
    neighbours = Neighbours(1.0, OTHER[relation], 0.0)
    noise_multiplier = release.noise_multiplier
    return Case(
        event=event,
        theorem=Theorem("1", section),
        proved=proved,
        attained=_attained(relation),
        sensitivity=sensitivity,
        conditions=conditions_of(release, relation),
        choices=(AttackChoice(neighbours),),
        shift=2.0 if relation is Relation.SUBSTITUTE else 1.0,
        static=lambda: _played(release, relation, rate),
        papers_pair=lambda: PoissonPair(rate, noise_multiplier),
        amplification=Amplification(attained=True),
    )


def _attained(relation: Relation) -> str:
    """Describe the data sets of the attack: fillers at 0 keep the random number of records from
    blurring the output."""
    if relation is Relation.SUBSTITUTE:
        return "a record +C against -C among zero records"
    if relation is Relation.ZERO_OUT:
        return "a record +C against 0 among zero records, both directions"
    return "a record +C added to zero records, both directions"


def _pair(relation: Relation, rate: float, s: float) -> PoissonPair | WorPair:
    """Return the pair (1 - q) N(0) + q N(1) against N(0), or against its mirror image."""
    return WorPair(rate, s) if relation is Relation.SUBSTITUTE else PoissonPair(rate, s)


def _gaussian(release: Release, relation: Relation, rate: float) -> tuple[Event, str, str]:
    """Return the event, words for its bound, and the sensitivity."""
    # Theorem 1 is attained by these data sets, at every step alike: exact for any number of steps
    event = PairEvent(_pair(relation, rate, release.noise_multiplier))
    if relation is Relation.SUBSTITUTE:
        proved = "(1 - q) N(0, s^2) + q N(1, s^2) against (1 - q) N(0, s^2) + q N(-1, s^2)"
        return event, proved, "replacing one occurrence moves the sum by up to 2 C"
    proved = "(1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), both directions"
    return event, proved, f"{_MOVED[relation]} moves the sum by C"


def _laplace(release: Release, relation: Relation, rate: float) -> tuple[Event, str, str]:
    """Return the same for scalar Laplace noise, for which Theorem 1 holds, too
    (docs/proofs/laplace.md)."""
    # the noise that few ask for: those who do not need not load it
    from dpsub.accounting.engine.laplace_pairs import (
        LaplaceEvent,
        LaplacePair,
        included_once,
        removed_once,
        replaced_once,
    )

    ratio = 1 / release.noise_multiplier
    if relation is Relation.SUBSTITUTE:
        # the mirror image of the pair is the other direction
        profile = replaced_once(rate, ratio)
        pair = LaplacePair(rate, ratio, mirrored=True)
        event = LaplaceEvent(pair, profile, profile, attained=True)
        proved = (
            "(1 - q) Lap(0, s) + q Lap(1, s) against (1 - q) Lap(0, s) + q Lap(-1, s), scalar query"
        )
        return event, proved, "replacing one occurrence moves the sum by up to 2 C"
    forward, backward = included_once(rate, ratio), removed_once(rate, ratio)
    event = LaplaceEvent(LaplacePair(rate, ratio), forward, backward, attained=True)
    proved = "(1 - q) Lap(0, s) + q Lap(1, s) against Lap(0, s), both directions, scalar query"
    return event, proved, f"{_MOVED[relation]} moves the sum by up to C"


def _played(release: Release, relation: Relation, rate: float) -> StepAttack:
    n = ANY_N if release.n is None else release.n
    # where no record is left, one of value 0 in its place adds as little
    others = max(1, n - 1) if relation is Relation.ADD_REMOVE else n
    neighbours = Neighbours(1.0, OTHER[relation], 0.0)
    pair = _pair(relation, rate, release.noise_multiplier)
    return StepAttack(neighbours, (n, others), pair, release.noise_multiplier)

"""Poisson samples with a minimum separation: a record that was drawn waits (docs/proofs/
schedules.md, "Separated steps")."""

from __future__ import annotations

import math
from dataclasses import replace

from dpsub.accounting.engine.pairs import MIN_SCALE, PoissonPair, WorPair
from dpsub.accounting.engine.privacy_events import (
    EnclosedEvent,
    Event,
    PairEvent,
    PairSeveralTimes,
)
from dpsub.accounting.games.static import ANY_N, Neighbours, SeparatedAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    OTHER,
    AttackChoice,
    Case,
    Certified,
    Theorem,
    covers,
    needs_fixed_denominator,
    needs_gaussian_noise,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.accounting.schemes.separation.events import (
    SeparatedEvent,
    SeparatedReplaced,
    SeparatedSum,
)
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.separated import MinSeparation

_PLAN = (
    "each record is drawn by itself: at a step at which it is available with one probability, "
    "after which it waits; the states are secret and, in every epoch, begin as stated"
)
_THEOREM, _AVAILABLE = Theorem("87", "4.2"), Theorem("87 (i)", "4.2")
_MOST_FOLLOWED = 3000  # steps of an epoch in a certificate
_TILTS = (1.0, 1 / 4)
"""Of the sums that are tried: large losses are told by smaller ones."""


@covers(MinSeparation)
def min_separation(release: Release, relation: Relation) -> Case:
    """Return the case of one epoch of separated steps."""
    needs_fixed_denominator(release, relation)
    needs_gaussian_noise(release)
    schedule, s = release.sampler, release.noise_multiplier
    assert isinstance(schedule, MinSeparation)
    is_replaced = relation is Relation.SUBSTITUTE
    most = schedule.most_occurrences
    other = OTHER[relation]
    neighbours = Neighbours(1.0, other, 0.0)
    case = Case(
        event=_event(schedule, s, relation),
        theorem=_THEOREM,
        proved=(
            "the pair of Poisson sampling once for each step at which the record is available, "
            "which is revealed, both directions"
        ),
        attained=(
            f"a record +C {'against -C ' if is_replaced else ''}among zero records, using a sum of "
            "functions of the steps"
        ),
        sensitivity=(
            "replacing one record moves the sum of each of its steps by up to 2 C"
            if is_replaced
            else "the record moves the sum of each of its steps by up to C"
        ),
        conditions=conditions_of(release, relation, (_PLAN,)),
        choices=(AttackChoice(neighbours, "step functions"),),
        shift=math.sqrt(most) * (2.0 if is_replaced else 1.0),
        static=lambda: _played(schedule, release, neighbours),
        certified=(_certified(schedule, s, is_replaced),),
        attack_section="4.2",
    )
    if schedule.rate == 1:
        pair = "N(sqrt(k), s^2) against "
        pair += f"{'N(-sqrt(k), s^2)' if is_replaced else 'N(0, s^2)'}, k = {most}"
        sums = (AttackChoice(neighbours),)
        return replace(case, proved=pair, attained=pair, choices=sums, certified=())
    if is_replaced:
        proved = (
            "Poisson sampling at the same rate in all steps; or the record removed, then the other "
            "added; or its steps revealed"
        )
        return replace(case, proved=proved)
    return case


def _played(schedule: MinSeparation, release: Release, neighbours: Neighbours) -> SeparatedAttack:
    n, other = release.n or ANY_N, neighbours.other
    return SeparatedAttack(
        neighbours,
        (n + (other is None), n),
        (neighbours.record, other or 0.0),
        schedule.chances,
        release.noise_multiplier,
        rate=schedule.rate,
        separation=schedule.separation,
        waiting=schedule.waiting,
    )


def _event(schedule: MinSeparation, s: float, relation: Relation) -> Event:
    is_replaced = relation is Relation.SUBSTITUTE
    if schedule.rate == 1:
        return _in_known_steps(schedule, s, is_replaced)
    other = -1.0 if is_replaced else 0.0
    sums = tuple(SeparatedSum(schedule, s, tilt, 1.0, other) for tilt in _TILTS)
    if not is_replaced:
        return EnclosedEvent(SeparatedEvent(schedule, s), sums)
    steps = _in_all_steps(schedule, s, is_replaced)
    return EnclosedEvent(SeparatedReplaced(schedule, s), sums, also_proved=steps)


def _certified(schedule: MinSeparation, s: float, is_replaced: bool) -> Certified:
    """Return the proof of a certificate: where the record is available, or, of replaced records and
    of many steps, which would take the verifier long, Poisson sampling in all steps."""
    if is_replaced or schedule.t > _MOST_FOLLOWED:
        return Certified(_in_all_steps(schedule, s, is_replaced), _THEOREM)
    return Certified(SeparatedEvent(schedule, s), _AVAILABLE)


def _in_all_steps(schedule: MinSeparation, s: float, is_replaced: bool) -> Event:
    """Return the event of Poisson sampling at the rate of available records in all steps."""
    pair = WorPair if is_replaced else PoissonPair
    return PairSeveralTimes(pair(schedule.rate, s), schedule.t)


def _in_known_steps(schedule: MinSeparation, s: float, is_replaced: bool) -> PairEvent:
    """Return the event of a record that is drawn whenever it is available: a Gaussian mechanism."""
    if schedule.warm_start and schedule.separation > 1:
        raise UnsupportedError(
            "no bound is proved for min_separation with rate 1 and a warm start, where each record "
            "is in every separation-th step from a random one on; use a rate below 1, or "
            f"secret_cyclic_poisson with rate 1 and cycle {schedule.separation}, which is the same "
            "in whole turns"
        )
    apart = s / math.sqrt(schedule.most_occurrences)
    if apart < MIN_SCALE:
        raise UnsupportedError(
            f"for a record in {schedule.most_occurrences} steps, noise multiplier {s:g} amounts to "
            f"one step with {apart:.3g}, below {MIN_SCALE:g}; take fewer steps or more noise"
        )
    return PairEvent(WorPair(1.0, apart) if is_replaced else PoissonPair(1.0, apart))

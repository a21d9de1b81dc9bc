"""Random allocation: every record is in k of the t steps of an epoch, all choices alike
(docs/proofs/allocation.md)."""

from __future__ import annotations

import math

import numpy as np

from dpsub.accounting.engine.pairs import MIN_SCALE, PoissonPair, WorPair
from dpsub.accounting.engine.pld import Profile
from dpsub.accounting.engine.privacy_events import EnclosedEvent, Event, PairEvent
from dpsub.accounting.games.static import ANY_N, EpochAttack, Neighbours
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.accounting.schemes.allocation.one_step import AllocationEvent, replaced_event
from dpsub.accounting.schemes.allocation.opposite_event import OppositeBlocks, OppositeEvent
from dpsub.accounting.schemes.allocation.several_steps import SubsetEvent
from dpsub.accounting.schemes.case import (
    OTHER,
    AttackChoice,
    Case,
    Certified,
    GroupAttack,
    Theorem,
    covers,
    needs_fixed_denominator,
    needs_gaussian_noise,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.schedules import RandomAllocation

_PLAN = (
    "each record's k steps are drawn uniformly, independently of the other records, "
    "again in every epoch, and kept secret"
)

_REVEALED_BLOCKS, _LARGER_BLOCKS = Theorem("27", "4.6"), Theorem("72", "4.6")
_BY_NO_RECORD, _OPPOSITE = Theorem("substitution", "4.6"), Theorem("79", "4.6")
_OPPOSITE_IN_BLOCKS = Theorem("90", "4.6")


@covers(RandomAllocation, reused=Relation)
def random_allocation(release: Release, relation: Relation) -> Case:
    """Return the case of one epoch of random allocation."""
    needs_fixed_denominator(release, relation)
    needs_gaussian_noise(release)
    schedule, s = release.sampler, release.noise_multiplier
    assert isinstance(schedule, RandomAllocation)
    t, k = schedule.t, schedule.k
    if k == t and s / math.sqrt(t) < MIN_SCALE:
        raise UnsupportedError(
            f"for a record in all {t} steps, noise multiplier {s:g} amounts to one step "
            f"with {s / math.sqrt(t):.3g}, below {MIN_SCALE:g}; take fewer steps or "
            "more noise"
        )
    is_replaced = relation is Relation.SUBSTITUTE
    event, proved, attained = (_replaced if is_replaced else _added)(t, k, s)
    return Case(
        event=event,
        theorem=_theorem(event, k, relation),
        proved=proved,
        attained=attained,
        sensitivity=_sensitivity(k, relation),
        conditions=conditions_of(release, relation, (_PLAN,)),
        certified=_certified(event),
        choices=_choices(event, k, relation),
        # the distance of Gaussians in k steps at the record's distance each
        shift=math.sqrt(k) * (2.0 if is_replaced else 1.0),
        static=lambda: _played(schedule, release, relation),
        group_attack=lambda group: _attack_of_group(t, k, s, relation, group),
        revealed=lambda group: _revealed(t, k, s, relation, group),
        attack_section="4.6",
    )


def _theorem(event: Event, k: int, relation: Relation) -> Theorem:
    if relation is Relation.SUBSTITUTE:
        if not isinstance(event, EnclosedEvent):
            return _BY_NO_RECORD
        return _OPPOSITE if k == 1 else _OPPOSITE_IN_BLOCKS
    if isinstance(event, SubsetEvent) and event.in_larger_blocks.applies:
        return _LARGER_BLOCKS
    return Theorem("25", "4.6") if k == 1 else _REVEALED_BLOCKS


def _certified(event: Event) -> tuple[Certified, ...]:
    """Return the proofs for k of t steps, each with its own theorem; the second one where it
    applies. Of a replaced record the verifier knows the proof by no record."""
    if isinstance(event, EnclosedEvent):
        return (Certified(event.upper_choices[0], _BY_NO_RECORD),)
    if not isinstance(event, SubsetEvent):
        return ()
    theorems = _REVEALED_BLOCKS, _LARGER_BLOCKS
    return tuple(map(Certified, event.upper_choices, theorems))


def _sensitivity(k: int, relation: Relation) -> str:
    if relation is Relation.SUBSTITUTE:
        return "replacing one record moves the sum of each of its steps by up to 2 C"
    steps = "one step of t" if k == 1 else "k steps of t"
    moved = (
        "setting one record to 0"
        if relation is Relation.ZERO_OUT
        else "adding or removing one record"
    )
    return f"{moved} moves the sums of {steps} by up to C each"


def _added(t: int, k: int, s: float) -> tuple[Event, str, str]:
    """Return the event of an added or zeroed-out record, and words for its bound and its attack."""
    if k == t:
        # a record in all steps: one Gaussian step at sqrt(t) times its distance
        pair = "N(sqrt(t), s^2) against N(0, s^2)"
        return PairEvent(PoissonPair(1.0, s / math.sqrt(t))), pair, pair
    if k == 1:
        # Theorem 25: the likelihood ratio of an epoch is a mean over its steps
        pair = "mean of N(e_j, s^2 I) over the t steps against N(0, s^2 I), both directions"
        return AllocationEvent(t, s), pair, pair
    # Theorem 27: the blocks revealed, k allocations to one of t / k steps; or Theorem 72
    proved = (
        "one step in each of k random blocks of t / k steps, with the blocks revealed, "
        "or several steps in larger ones, by the moments of the likelihood ratio given a sum "
        "(Theorem 72), whichever is smaller, both directions"
    )
    attained = (
        "a record +C in k of t steps among zero records, both directions, using a sum "
        "of functions of the steps"
    )
    return SubsetEvent(t, k, s), proved, attained


def _replaced(t: int, k: int, s: float) -> tuple[Event, str, str]:
    """Return the event of a replaced record, and words for its bound and its attack."""
    if k == t:
        pair = "N(sqrt(t), s^2) against N(-sqrt(t), s^2)"
        return PairEvent(WorPair(1.0, s / math.sqrt(t))), pair, pair
    proved = "the record removed, then the other added; or all its steps revealed"
    attained = (
        "a record +C among zero records replaced by 0, both directions, or by -C, "
        "using a sum of functions of the steps"
    )
    event, opposite, blocks = replaced_event(t, k, s), OppositeEvent(t, s), OppositeBlocks(t, k, s)
    if not blocks.applies:
        return event, proved, attained
    # the worst case (Theorems 79 and 84), next to a proof that costs less
    worst, attacks = "a record +C among zero records replaced by -C", event.attack_choices
    if k == 1:
        attained = f"{attained}, or all steps"
        # what is quickly told comes first
        attacks = (opposite, *attacks) if opposite.is_on_grid else (*attacks, opposite)
        return EnclosedEvent(opposite, attacks, event), f"{worst}; or {proved}", attained
    # Theorem 90
    proved = f"{worst}, one step in each of k revealed blocks; or {proved}"
    return EnclosedEvent(blocks, attacks, event), proved, attained


def _choices(event: Event, k: int, relation: Relation) -> tuple[AttackChoice, ...]:
    """Return the data sets of the attacks. Fillers are at 0: the other records of a step reveal
    nothing about the record."""
    neighbours = Neighbours(1.0, OTHER[relation], 0.0)
    if isinstance(event, PairEvent):
        return (AttackChoice(neighbours),)
    statistic = "all steps" if k == 1 else "step functions"
    if relation is not Relation.SUBSTITUTE:
        return (AttackChoice(neighbours, statistic),)
    by_functions = AttackChoice(neighbours, "step functions")
    whole = isinstance(event, EnclosedEvent) and k == 1
    choices = [by_functions] * (len(event.attack_choices) - whole)
    # the fast bounds of a zeroed-out record come before others
    choices[0] = AttackChoice(Neighbours(1.0, 0.0, 0.0), statistic)
    if whole:
        is_first = isinstance(event.attack_choices[0], OppositeEvent)
        choices.insert(0 if is_first else len(choices), AttackChoice(neighbours, "all steps"))
    return tuple(choices)


def _attack_of_group(t: int, k: int, s: float, relation: Relation, group: int) -> GroupAttack:
    """Return attacks with as many records C among zero records. Where choices of k steps meet in
    too many ways, the sum of all steps alone is known for all of them, and functions of the steps
    for fewer: the others are then the same in both data sets."""
    from dpsub.accounting.schemes.groups.steps import attacks_on_steps, sum_of_steps

    other = OTHER[relation]
    x, y = 1.0, float(other or 0.0)
    events: tuple[Event, ...] = (sum_of_steps(t, group * k, s, y),)
    statistics: tuple[str, ...] = ("sum of all steps",)
    played = Occupancy.most_allocated(t, k, group)
    if k < t:
        more, named = attacks_on_steps(Occupancy.allocated(t, k, played), s, x, y)
        events, statistics = (*more, *events), (*named, *statistics)
    neighbours = Neighbours(1.0, other, 0.0)
    return GroupAttack(
        events,
        tuple(AttackChoice(neighbours, statistic) for statistic in statistics),
        f"{group} records C {'against -C ' if y else ''}among zero records, using a sum of "
        "functions of the steps, or the largest one",
    )


def _revealed(t: int, k: int, s: float, relation: Relation, group: int) -> tuple[Profile, Profile]:
    from dpsub.accounting.schemes.groups.steps import revealed_profiles

    distance = (2.0 if relation is Relation.SUBSTITUTE else 1.0) / s
    if Occupancy.most_allocated(t, k, group) == group:
        return revealed_profiles(Occupancy.allocated(t, k, group), distance)
    # all of them in the same k steps are farthest
    return revealed_profiles(Occupancy(((t - k, *[0] * (group - 1), k),)), distance)


def _played(schedule: RandomAllocation, release: Release, relation: Relation) -> EpochAttack:
    n, other = release.n or ANY_N, OTHER[relation]
    return EpochAttack(
        Neighbours(1.0, other, 0.0),
        (n + (relation is Relation.ADD_REMOVE), n),
        (1.0, other or 0.0),
        np.full(schedule.t, 1 / schedule.t),
        release.noise_multiplier,
        schedule.k,
    )

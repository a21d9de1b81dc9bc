"""Shuffled epochs: every record is in one step of an epoch, in an order that is drawn again for
each (docs/proofs/shuffling.md).

The upper bound reveals the step of the record, or, with much noise and many steps, keeps it hidden
(`hidden_step`). The lower bound is the attack in which all other records are equal fillers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsub.accounting.engine.pairs import PoissonPair, WorPair
from dpsub.accounting.engine.pld import Profile
from dpsub.accounting.engine.privacy_events import (
    EnclosedEvent,
    Event,
    PairEvent,
    StatisticEvent,
)
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.static import EpochAttack, Neighbours
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.accounting.schemes.allocation.one_step import AllocationEvent, DroppedEvent, SumEvent
from dpsub.accounting.schemes.case import (
    OTHER,
    AttackChoice,
    Case,
    Certified,
    GroupAttack,
    Theorem,
    covers,
    needed_records,
    needs_fixed_denominator,
    needs_gaussian_noise,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.accounting.schemes.shuffling.hidden_step import (
    HiddenStep,
    HiddenStepEvent,
    hidden_step,
)
from dpsub.accounting.schemes.shuffling.largest_step import LargestStep
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.chains import Wor
from dpsub.sampling.schedules import Shuffle

_REVEALED, _HIDDEN, _UNSEEN = (Theorem(number, "4.3") for number in ("19", "76", "78"))
_CLONES = Theorem("theorems 76 and 89", "4.3")
"""At each order the smaller one counts."""
_IN_CERTIFICATES, _CLONES_ALONE = Theorem("61", "4.3"), Theorem("89", "4.3")
"""Names in certificates of all theorems about a hidden step, and of clones alone."""
PLAN = "the order of the records is drawn uniformly, again in every epoch, and kept secret"
"""The condition on how the order is drawn."""
_LEAST_OF_ALL_STEPS = 0.5
"""Noise multiplier below which the largest step of an epoch tells as much of a record as all
steps."""
_LEAST_OF_DOUBLES = 0.1
"""Noise multiplier below which likelihood ratios of all steps, whose records are 2 apart, may be
too large for doubles."""
_ALL_STEPS_TELL_MORE = 2.0
"""Noise multiplier from which on the largest step is not tried under `substitute`: the likelihood
ratio of the same data sets tells more, and its sums are exact enough."""
_WEIGHT = 1 / 8  # of a step whose likelihood ratio is 1, times the number of steps: any is valid


@covers(Shuffle, reused=(Relation.ADD_REMOVE,))
def shuffling(release: Release, relation: Relation) -> Case:
    """Return the case of one epoch of ceil(n / m) batches of m records, where the last one may be
    smaller; or of floor(n / m), where it is dropped."""
    return epoch_case(release, relation)


def epoch_case(release: Release, relation: Relation, *, drawn_again: bool = True) -> Case:
    """Return the case of one epoch; where its order is not drawn again, of several that stand for
    one."""
    if relation is Relation.ADD_REMOVE:
        # sizes of batches are public where data sets agree in n
        needs_fixed_denominator(release, relation)
    n, schedule, s = needed_records(release), release.sampler, release.noise_multiplier
    assert isinstance(schedule, Shuffle)
    if relation is Relation.ADD_REMOVE and not schedule.drop_last:
        raise UnsupportedError(
            "no bound is proved for shuffled batches under add_remove, where an extra "
            "record changes the size of a batch or the number of steps; use substitute or "
            "zero_out, or drop the last, incomplete batch"
        )
    steps = schedule.steps_per_epoch(n)
    in_steps = steps * schedule.m / n if schedule.drop_last else 1.0
    if steps == 1 and schedule.drop_last and (in_steps < 1 or relation is Relation.ADD_REMOVE):
        # the kept records are a sample without replacement, which other epochs need not load
        from dpsub.accounting.schemes.without_replacement import without_replacement

        return without_replacement(replace(release, sampler=Wor(schedule.m)), relation)
    needs_gaussian_noise(release)
    if relation is Relation.ADD_REMOVE:
        return _one_record_more(release, schedule, n)
    is_replaced = relation is Relation.SUBSTITUTE
    # Theorem 19: the order revealed, the record is in one Gaussian step, 2 or 1 apart
    revealed = PairEvent(WorPair(1.0, s) if is_replaced else PoissonPair(1.0, s))
    distance = 2 if is_replaced else 1
    moved = "2 C" if is_replaced else "C"
    bound: Event = revealed
    also_bound: Event | None = None
    certified: tuple[Certified, ...] = ()
    theorem = _REVEALED
    if steps == 1:
        events: tuple[Event, ...] = (revealed,)
        choices: tuple[AttackChoice, ...] = (AttackChoice(Neighbours(1.0, OTHER[relation], 0.0)),)
        gaussians = f"N(1, s^2) against N({-1 if is_replaced else 0}, s^2)"
        proved, attained = f"{gaussians}, all records in one step", gaussians
    else:
        events, choices = _attacks(steps, relation, s, in_steps)
        proved = f"the record's step of an epoch revealed: N({distance}, s^2) against N(0, s^2)"
        # in an epoch whose last step is smaller a record may have one step fewer to be in
        hidden = _hidden_step(n // schedule.m, s, float(distance), is_kept=not drawn_again)
        if hidden is not None:
            theorem = _CLONES if hidden.has_clones else _HIDDEN
            # the grid of a profile is coarser than that of a pair
            bound, also_bound = HiddenStepEvent.of(hidden), revealed
            proof = HiddenStepEvent.certified(hidden, hidden.references)
            name = _IN_CERTIFICATES if hidden.has_weights else _CLONES_ALONE
            certified = (Certified(revealed, _REVEALED), Certified(proof, name))
            proved += ", or the step hidden among those of the other records, whichever is smaller"
        unseen = _hidden_step(steps, s, float(distance), in_steps) if in_steps < 1 else None
        if unseen is not None:
            theorem, bound, also_bound = _UNSEEN, HiddenStepEvent.of(unseen), revealed
            certified = certified or (Certified(revealed, _REVEALED),)
            proved += "; the record whose place is taken is dropped"
        data_sets = "(0, -C, ..., -C), or (C, 0, ..., 0) against (0, ..., 0)"
        if is_replaced:
            data_sets = "(-C, ..., -C)"
        attained = (
            f"data sets (C, -C, ..., -C) against {data_sets}, using the largest step of "
            "an epoch or all steps"
        )
    return Case(
        event=bound if steps == 1 else EnclosedEvent(bound, events, also_bound),
        theorem=theorem,
        proved=proved,
        attained=attained,
        sensitivity=f"the record is in one step of each epoch and moves its sum by up to {moved}",
        conditions=conditions_of(release, relation, (PLAN,)),
        choices=choices,
        shift=float(distance),
        static=lambda: _played(schedule, n, relation, s),
        certified=certified,
        group_attack=lambda group: _attack_of_group(schedule, n, relation, s, group),
        revealed=lambda group: _revealed(schedule, n, distance / s, group),
        attack_section="4.3",
        attack_certified=in_steps == 1,
    )


def _hidden_step(
    steps: int, s: float, distance: float, in_steps: float = 1.0, is_kept: bool = False
) -> HiddenStep | None:
    """Return the bound that hides the step; None where that gives nothing, or where the budget does
    not suffice to tell."""
    try:
        return hidden_step(steps, s, distance, in_steps, is_kept)
    except OutOfWorkError:
        return None


def _one_record_more(release: Release, schedule: Shuffle, n: int) -> Case:
    """Return the case of one record more where as many steps as without it are fixed in advance,
    and the rest is dropped: it takes the place of another record of a uniform step (Theorem 78)."""
    steps, s = n // schedule.m, release.noise_multiplier
    in_steps = steps * schedule.m / (n + 1)
    neighbours = Neighbours(1.0, None, -1.0)
    pair = "mean of N(2 e_j, s^2 I) over the steps, and of N(0, s^2 I) for no step"
    sizes = np.full(steps, schedule.m) / (n + 1)
    # a loader of n + 1 records would have one more step where they make one
    has_one_more = (n + 1) % schedule.m == 0
    event: Event = DroppedEvent(AllocationEvent(steps, s / 2), in_steps)
    statistic = "all steps"
    if s < _LEAST_OF_DOUBLES:
        largest = StatisticEvent(LargestStep(steps, 2.0, 0.0, s, in_steps))
        event, statistic = EnclosedEvent(event, (largest,)), "largest step"
    return Case(
        event=event,
        theorem=_UNSEEN,
        proved=f"{pair}, against N(0, s^2 I), both directions",
        attained="a record +C among records -C",
        sensitivity="the record takes the place of another in one step of each epoch and moves its "
        "sum by up to 2 C",
        conditions=(
            *conditions_of(release, Relation.ADD_REMOVE, (PLAN,), depends_on_n=True),
            f"the number of steps of an epoch is fixed in advance, {steps}",
        ),
        choices=(AttackChoice(neighbours, statistic),),
        shift=2.0,
        static=None
        if has_one_more
        else lambda: EpochAttack(neighbours, (n + 1, n), (2.0, 0.0), sizes, s),
        attack_section="4.3",
        attack_certified=False,
    )


def _attacks(
    steps: int, relation: Relation, s: float, in_steps: float
) -> tuple[tuple[Event, ...], tuple[AttackChoice, ...]]:
    """Return lower bounds (docs/proofs/shuffling.md): events that data sets attain, and these data
    sets; the record is in a step with the chance `in_steps`."""
    at_fillers = Neighbours(1.0, OTHER[relation], -1.0)
    among_zeros = Neighbours(1.0, OTHER[relation], 0.0)
    is_replaced = relation is Relation.SUBSTITUTE
    # fillers at -1 move the record's step by 2 on the one data set, by 0 or 1 on the other
    largest = StatisticEvent(LargestStep(steps, 2.0, 0.0 if is_replaced else 1.0, s, in_steps))
    largest_choice = AttackChoice(at_fillers, "largest step")
    if s < _LEAST_OF_ALL_STEPS:
        return (largest,), (largest_choice,)
    allocated = AllocationEvent(steps, s / 2 if is_replaced else s)
    events: list[Event] = [allocated if in_steps == 1 else DroppedEvent(allocated, in_steps)]
    choices = [AttackChoice(at_fillers if is_replaced else among_zeros, "all steps")]
    if not is_replaced or s < _ALL_STEPS_TELL_MORE:
        events.append(largest)
        choices.append(largest_choice)
    if not is_replaced and in_steps == 1:
        events.append(SumEvent(steps, 1, s, _WEIGHT / steps, 2.0, 1.0))
        choices.append(AttackChoice(at_fillers, "step functions"))
    return tuple(events), tuple(choices)


def _attack_of_group(
    schedule: Shuffle, n: int, relation: Relation, s: float, group: int
) -> GroupAttack:
    """Return attacks with as many records C among records at -C, whose places they take; under
    zero-out also among zero records."""
    from dpsub.accounting.schemes.groups.steps import attacks_on_steps

    held, other = _held(schedule, n, group), OTHER[relation]
    assert other is not None
    events: list[Event] = []
    choices: list[AttackChoice] = []
    for filler in (-1.0,) if other else (-1.0, 0.0):
        attacks, statistics = attacks_on_steps(held, s, 1.0 - filler, other - filler)
        events += attacks
        choices += [AttackChoice(Neighbours(1.0, other, filler), each) for each in statistics]
    among = "-C among records -C" if other else "0 among records -C or 0"
    attained = f"{group} records C against {among}"
    attained += ", using the largest step of an epoch or a sum of functions of the steps"
    return GroupAttack(tuple(events), tuple(choices), attained)


def _revealed(schedule: Shuffle, n: int, distance: float, group: int) -> tuple[Profile, Profile]:
    from dpsub.accounting.schemes.groups.steps import revealed_profiles

    return revealed_profiles(_held(schedule, n, group), distance)


def _held(schedule: Shuffle, n: int, group: int) -> Occupancy:
    steps = schedule.steps_per_epoch(n)
    return Occupancy.shuffled(steps, schedule.m, _last_size(schedule, n), n, group)


def _last_size(schedule: Shuffle, n: int) -> int:
    return min(schedule.m, n - schedule.m * (schedule.steps_per_epoch(n) - 1))


def _played(schedule: Shuffle, n: int, relation: Relation, s: float) -> EpochAttack:
    """Return the attack that an audit plays, with fillers at -C, as the size of a step is fixed."""
    other = OTHER[relation]
    assert other is not None
    neighbours = Neighbours(1.0, other, -1.0)
    sizes = np.full(schedule.steps_per_epoch(n), float(schedule.m))
    # where the last records are dropped, sizes add up to less than n
    sizes[-1] = _last_size(schedule, n)
    return EpochAttack(neighbours, (n, n), (2.0, 1.0 + other), sizes / n, s)

"""Poisson samples that are cut to a largest size (docs/proofs/cut_samples.md)."""

from __future__ import annotations

from functools import cache

from dpsub.accounting.engine.pairs import FillerPair, MixturePair, PoissonPair, WorPair
from dpsub.accounting.engine.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
    StatisticEvent,
)
from dpsub.accounting.games.static import ANY_N, Neighbours, StepAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    OTHER,
    AttackChoice,
    Case,
    GroupAttack,
    Theorem,
    covers,
    needed_records,
    needs_fixed_denominator,
    needs_gaussian_noise,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.accounting.schemes.truncated.cut_samples import (
    CutSample,
    FilledSample,
    drawn_of_group,
    merged_profiles,
)
from dpsub.accounting.schemes.truncated.told_sizes import ToldSizes
from dpsub.relations import Relation
from dpsub.sampling.laws import MOST_SLOTS
from dpsub.sampling.schedules import TruncatedPoisson

_PLAN = (
    "every step draws a new sample, independent of the others and secret; one above "
    "max_batch is cut to a uniformly random subset of that size"
)
# where samples are cut less often, fillers that blur the sum attain less; where they have room less
# often, to tell their sizes does
_SELDOM = 0.01


@covers(TruncatedPoisson, reused=Relation)
def truncated_poisson(release: Release, relation: Relation) -> Case:
    """Return the case of independent Poisson samples; those above max_batch are truncated: Theorem
    18."""
    needs_fixed_denominator(release, relation)
    needs_gaussian_noise(release)
    n, sampler, s = needed_records(release), release.sampler, release.noise_multiplier
    assert isinstance(sampler, TruncatedPoisson)
    is_replaced = relation is Relation.SUBSTITUTE
    # under add_remove the sample is that of the data set with the record
    records = n + 1 if relation is Relation.ADD_REMOVE else n
    sensitivity = f"a record moves the sum by up to {'2 C' if is_replaced else 'C'}"
    among_zeros = AttackChoice(Neighbours(1.0, OTHER[relation], 0.0))
    choices: tuple[AttackChoice, ...] = (among_zeros,)
    event: Event
    theorem = Theorem("18", "3.10")
    if sampler.max_batch >= records:
        # no sample is ever cut: Poisson sampling
        event = PairEvent(_pair(sampler.rate, relation, s))
        pair = f"(1 - q) N(0, s^2) + q N(1, s^2) against {_opposite(relation)}"
        proved, attained = f"{pair}, no sample is cut", pair
    else:
        sample = CutSample(records, sampler.rate, sampler.max_batch)
        event = _cut_event(sample, relation, s)
        among_opposite = AttackChoice(Neighbours(1.0, OTHER[relation], -1.0))
        across = AttackChoice(None, "sum in the plane")
        choices = (among_zeros, among_opposite, across)[: len(event.attacks)]
        proved = (
            "with it revealed how many others are drawn, up to B - 2: the pair of an added "
            "record, and from B - 1 on one of both sizes together"
        )
        theorem = Theorem("71", "3.10")
        attained = f"a record C against {_other_record(relation)} among zero records, among "
        attained += "records -C, or among equal ones nearly at a right angle to it"
        if not is_replaced:
            sensitivity += ", and by up to 2 C where it takes another's place"
    return Case(
        event=event,
        theorem=theorem,
        proved=proved,
        attained=attained,
        sensitivity=sensitivity,
        conditions=conditions_of(release, relation, (_PLAN,), depends_on_n=True),
        choices=choices,
        # in a full sample a record takes another's place
        shift=2.0,
        static=lambda: _played(release, sampler, relation),
        group_attack=lambda group: _attack_of_group(release, sampler, relation, group),
        attack_section="3.10",
    )


def _cut_event(sample: CutSample, relation: Relation, s: float) -> EnclosedEvent:
    """Return the event whose upper bound depends on whether the others fill the sample; attacks
    among records at 0, and, where samples are cut often enough, among records at -C, and among
    records across the differing one."""
    profiles = cache(lambda tail: merged_profiles(sample, relation, s))
    attacks = [
        PairEvent(_pair(sample.included_at_least, relation, s)),
        *_among_opposite(sample, relation, s, 1),
    ]
    if len(attacks) > 1 and sample.room > _SELDOM:
        attacks.append(StatisticEvent(ToldSizes.of(sample, relation, s)))
    return EnclosedEvent(DominatedEvent(profiles, None), tuple(attacks))


def _among_opposite(
    sample: CutSample, relation: Relation, s: float, group: int
) -> tuple[Event, ...]:
    """Return the attack among records at -C, where samples are cut often enough."""
    if sample.n > MOST_SLOTS or sample.full <= _SELDOM:
        return ()
    other = OTHER[relation]
    return (StatisticEvent(FilledSample(sample, None if other is None else int(other), s, group)),)


def _attack_of_group(
    release: Release, sampler: TruncatedPoisson, relation: Relation, group: int
) -> GroupAttack:
    """Return attacks with as many records C, among records at 0 and at -C."""
    n, s, is_added = needed_records(release), release.noise_multiplier, OTHER[relation] is None
    sample = CutSample(n + group * is_added, sampler.rate, sampler.max_batch)
    law = drawn_of_group(sample, group)
    pair = MixturePair(law, s) if relation is Relation.SUBSTITUTE else FillerPair(law, s)
    events = (PairEvent(pair), *_among_opposite(sample, relation, s, group))
    choices = tuple(AttackChoice(Neighbours(1.0, OTHER[relation], at)) for at in (0.0, -1.0))
    attained = f"{group} records C against {_other_record(relation)} among zero records, or among "
    return GroupAttack(events, choices[: len(events)], f"{attained}records -C")


def _pair(rate: float, relation: Relation, s: float) -> PoissonPair | WorPair:
    return WorPair(rate, s) if relation is Relation.SUBSTITUTE else PoissonPair(rate, s)


def _opposite(relation: Relation) -> str:
    return "its mirror image" if relation is Relation.SUBSTITUTE else "N(0, s^2)"


def _other_record(relation: Relation) -> str:
    return {Relation.SUBSTITUTE: "-C", Relation.ZERO_OUT: "0", Relation.ADD_REMOVE: "none"}[
        relation
    ]


def _played(release: Release, sampler: TruncatedPoisson, relation: Relation) -> StepAttack:
    """Return the attack that an audit plays, with fillers at 0: the size of the sample is not seen,
    only whether the record is in it."""
    n, s = release.n or ANY_N, release.noise_multiplier
    n_records = (n + 1, n) if relation is Relation.ADD_REMOVE else (n, n)
    rate = sampler.multiplicity_law(n_records[0]).eta
    neighbours = Neighbours(1.0, OTHER[relation], 0.0)
    return StepAttack(neighbours, n_records, _pair(rate, relation, s), s)

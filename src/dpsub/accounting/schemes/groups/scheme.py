"""Groups: several records of one unit of privacy that are added, removed, replaced or zeroed
out at once (docs/proofs/groups.md).

A sample tells of a group only how many of its records were drawn, so that the law of that number
takes the place of the law of one record's copies.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from dpsub.accounting.engine.pairs import (
    MIN_SCALE,
    FillerPair,
    GaussianPair,
    MixedPair,
    MixturePair,
    PoissonPair,
    WorPair,
)
from dpsub.accounting.engine.pld import Profile, RememberedProfile
from dpsub.accounting.engine.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
    ProfileMaker,
)
from dpsub.accounting.engine.profiles import ChainProfile, law_of
from dpsub.accounting.games.game import replaced_profile
from dpsub.accounting.games.static import ANY_N, Neighbours, StepAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    OTHER,
    AttackChoice,
    Case,
    Certified,
    GroupAttack,
    Scheme,
    Theorem,
    covers_groups,
    needed_records,
)
from dpsub.accounting.schemes.chains.scheme import (
    chains,
    fillers_of,
    most_copies,
    played_at_fillers,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.accounting.schemes.deterministic import cyclic_poisson, deterministic
from dpsub.accounting.schemes.groups.curves import FINE, GroupCurve, GroupEvent
from dpsub.accounting.schemes.poisson import poisson
from dpsub.accounting.schemes.without_replacement import without_replacement
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import Chain, StagedSampler
from dpsub.sampling.laws import MultiplicityLaw, log_binomial
from dpsub.sampling.schedules import (
    CyclicPoisson,
    Deterministic,
    Schedule,
    Shuffle,
    TruncatedPoisson,
)

MOST_COMPOSED = 32
"""Largest group whose bound is made of the curve of one record: the work grows with it."""
_LAW_ERROR = 1e-11  # relative, allowed for probabilities of counts
_LOG_SMALLEST = -700.0  # of probabilities of counts that are kept
_UNIT = (
    "a unit holds at most {g} records; if any holds more, only {g} of them are used, chosen "
    "without regard to the others' records"
)
"""The condition of a bound for a group where units hold different numbers of records."""


def _moved(relation: Relation, group: int | tuple[int, int]) -> str:
    if not isinstance(group, int):
        return f"adding {group[0]} and removing {group[1]} records"
    verb = {
        Relation.ADD_REMOVE: "adding or removing",
        Relation.SUBSTITUTE: "replacing",
        Relation.ZERO_OUT: "setting to 0",
    }[relation]
    return f"{verb} {group} records"


def _conditions(
    release: Release, relation: Relation, *, depends_on_n: bool = False
) -> tuple[str, ...]:
    conditions = conditions_of(release, relation, depends_on_n=depends_on_n)
    return (*conditions, _unit_condition(release))


def _unit_condition(release: Release) -> str:
    if isinstance(release.group, int):
        return _UNIT.format(g=release.group)
    return "{} records of a unit are added and {} removed, or fewer".format(*release.group)


@covers_groups("poisson")
def poisson_groups(release: Release, relation: Relation) -> Case:
    """Return the case of independent Poisson samples: Theorem 35."""
    rate = release.chain().stages[0].rate
    if release.mechanism == "laplace":
        return _drawn_with_laplace_noise(release, relation, rate)
    return _drawn_by_coins(release, relation, rate)


def _drawn_with_laplace_noise(release: Release, relation: Relation, rate: float) -> Case:
    """Return the case of the same samples with scalar Laplace noise."""
    from dpsub.accounting.schemes.groups.laplace import exact_event

    group, theta = _one_group(release), 1 / release.noise_multiplier
    is_replaced = relation is Relation.SUBSTITUTE
    single, moved = poisson(replace(release, group=1), relation), _moved(relation, group)
    against = "its mirror image" if is_replaced else "Lap(0, s), both directions"
    return replace(
        single,
        event=exact_event(_binomial(group, rate), theta, -theta if is_replaced else 0.0),
        theorem=Theorem("35", "4.8"),
        proved=f"sum_l p_l Lap(l, s), p = Binomial({group}, q), against {against}, scalar query",
        attained=f"records +C of one unit, {moved}, among zero records",
        sensitivity=f"{moved} moves the sum by up to {_times(_reach(relation, group))}",
        conditions=_conditions(release, relation),
        shift=_reach(relation, group),
        static=None,
        papers_pair=None,
        amplification=None,
    )


def _drawn_by_coins(release: Release, relation: Relation, rate: float) -> Case:
    """Return the case of a group each of whose records is drawn with probability `rate`,
    independently."""
    s, group = release.noise_multiplier, release.group
    pair = _coin_pair(release, relation, rate)
    against = "N(0, s^2), both directions"
    if isinstance(pair, MixturePair):
        against = "its mirror image"
    elif isinstance(pair, MixedPair):
        against = "the mirror image of that of the records removed, both directions"
    both = (group, group) if isinstance(group, int) else group
    other = -1.0 if isinstance(pair, MixedPair) else OTHER[relation]
    neighbours = Neighbours(1.0, other, 0.0)
    n = max(ANY_N if release.n is None else release.n, *both)
    n_records = (n, n)
    if relation is Relation.ADD_REMOVE:
        n_records = (n + both[0], n + (both[1] if isinstance(pair, MixedPair) else 0))
    moved = _moved(relation, group)
    return Case(
        event=PairEvent(pair),
        theorem=Theorem("35", "4.8"),
        proved=f"sum_l p_l N(l, s^2), p = Binomial({max(both)}, q), against {against}",
        attained=f"records +C of one unit, {moved}, among zero records",
        sensitivity=f"{moved} moves the sum by up to {_times(_reach(relation, group))}",
        conditions=_conditions(release, relation),
        choices=(AttackChoice(neighbours),),
        shift=_reach(relation, group),
        static=lambda: StepAttack(neighbours, n_records, pair, s, group=both),
    )


def _reach(relation: Relation, group: int | tuple[int, int]) -> float:
    """Return the largest distance by which the group moves a sum, each record being drawn at most
    once."""
    if not isinstance(group, int):
        return float(sum(group))
    return float(2 * group if relation is Relation.SUBSTITUTE else group)


def _times(reach: float) -> str:
    return f"{reach:g} C"


def _coin_pair(release: Release, relation: Relation, rate: float) -> GaussianPair:
    s, group = release.noise_multiplier, release.group
    if not isinstance(group, int):
        added, removed = (_binomial(size, rate) for size in group)
        return MixedPair(added, removed, s)
    law = _binomial(group, rate)
    return (MixturePair if relation is Relation.SUBSTITUTE else FillerPair)(law, s)


def _binomial(group: int, rate: float) -> MultiplicityLaw:
    """Return the law of the number of records drawn, without large counts whose probability
    underflows."""
    log_pmf = log_binomial(np.arange(group + 1), group, rate)
    return MultiplicityLaw(log_pmf[: np.flatnonzero(log_pmf > _LOG_SMALLEST)[-1] + 1])


def _one_group(release: Release) -> int:
    """Return the size of a group that is not mixed; UnsupportedError if it is."""
    if isinstance(release.group, int):
        return release.group
    raise UnsupportedError(
        f"no bound is proved for {release.sampler.name} where records are added and others removed "
        "together; use Poisson sampling, or substitute for as many added as removed"
    )


@covers_groups(CyclicPoisson)
def cyclic_groups(release: Release, relation: Relation) -> Case:
    """Return the case of public groups in turn: as Poisson samples, whatever steps the unit's
    records are in."""
    if release.mechanism == "laplace":
        return by_composition(release, relation, cyclic_poisson)
    group, schedule = _one_group(release), release.sampler
    assert isinstance(schedule, CyclicPoisson)
    single = cyclic_poisson(replace(release, group=1), relation)
    worst = _drawn_by_coins(release, relation, schedule.rate)
    event, attained = worst.event, f"{worst.attained}, all in one step"
    if release.n is not None and release.n // schedule.cycle < group:
        # no step can hold all of them
        held = replace(release, group=max(1, release.n // schedule.cycle))
        most = PairEvent(_coin_pair(held, relation, schedule.rate))
        event = EnclosedEvent(event, (most,))
        attained = f"records +C of one unit, {_moved(relation, held.group)}, in one step"
    return replace(
        worst,
        event=event,
        proved=f"once an epoch {worst.proved}",
        attained=attained,
        conditions=(*single.conditions, _unit_condition(release)),
        static=None,
    )


@covers_groups(TruncatedPoisson)
def truncated_groups(release: Release, relation: Relation) -> Case:
    """Return the case of Poisson samples that are cut; where none ever is, of Poisson samples."""
    # they have more numerics than other samples
    from dpsub.accounting.schemes.truncated.scheme import truncated_poisson

    group, sampler = _one_group(release), release.sampler
    assert isinstance(sampler, TruncatedPoisson)
    most = needed_records(release) + group * (relation is Relation.ADD_REMOVE)
    if sampler.max_batch < most:
        return by_composition(release, relation, truncated_poisson)
    single = truncated_poisson(replace(release, group=1), relation)
    conditions = (*single.conditions, _unit_condition(release))
    return replace(_drawn_by_coins(release, relation, sampler.rate), conditions=conditions)


@covers_groups(Deterministic)
def deterministic_groups(release: Release, relation: Relation) -> Case:
    """Return the case of batches in the records' own order: a Gaussian mechanism once an epoch."""
    if release.mechanism == "laplace":
        return by_composition(release, relation, deterministic)
    group, schedule = _one_group(release), release.sampler
    assert isinstance(schedule, Deterministic)
    single = deterministic(replace(release, group=1), relation)
    _needs_the_same_steps(release, relation, group)
    # the worst places fill whole steps: their lengths in the space of all steps are largest
    most = group if schedule.m is None else schedule.m
    apart = math.sqrt((group // most) * most**2 + (group % most) ** 2)
    s = release.noise_multiplier / apart
    if s < MIN_SCALE:
        raise UnsupportedError(
            f"for {group} records of one unit noise multiplier {release.noise_multiplier:g} "
            f"amounts to {s:.3g} for one, below {MIN_SCALE:g}; take a smaller group or more noise"
        )
    is_replaced = relation is Relation.SUBSTITUTE
    moved, reach = _moved(relation, group), _reach(relation, 1) * apart
    other = "-1" if is_replaced else "0"
    return replace(
        single,
        event=PairEvent(WorPair(1.0, s) if is_replaced else PoissonPair(1.0, s)),
        theorem=Theorem("35", "4.8"),
        proved=f"once an epoch N(1, s^2) against N({other}, s^2), s = noise multiplier / {apart:g}",
        attained=f"records +C of one unit, {moved}, in as few steps as hold them",
        sensitivity=f"{moved} moves the sums of their steps by up to {_times(reach)}",
        conditions=(*single.conditions, _unit_condition(release)),
        shift=reach,
        static=None,
    )


def _needs_the_same_steps(release: Release, relation: Relation, group: int) -> None:
    schedule, n = release.sampler, release.n
    assert isinstance(schedule, Deterministic)
    if relation is not Relation.ADD_REMOVE or n is None:
        return
    if schedule.steps_per_epoch(n) != schedule.steps_per_epoch(n + group):
        raise UnsupportedError(
            f"under add_remove an epoch of {schedule.name} must not gain a step when {group} "
            "records are added; use zero_out, which keeps their places, or another m"
        )


@covers_groups("wor")
def without_replacement_groups(release: Release, relation: Relation) -> Case:
    """Return the case of independent samples without replacement: Theorems 36 to 38."""
    group = _one_group(release)
    chain = release.chain()
    if relation is Relation.ADD_REMOVE:
        return _one_stage_added(release, chain, group)
    if release.mechanism == "laplace":
        return by_composition(release, relation, without_replacement)
    if relation is Relation.ZERO_OUT:
        return _zeroed(release, chain, group)
    return _replaced(release, chain, group)


@covers_groups(StagedSampler)
def chain_groups(release: Release, relation: Relation) -> Case:
    """Return the case of independent samples by a chain of stages: Theorems 36 and 37."""
    group = _one_group(release)
    if release.mechanism == "laplace" or relation is Relation.ZERO_OUT:
        return by_composition(release, relation, chains)
    chain = release.chain()
    if relation is Relation.SUBSTITUTE:
        return _replaced(release, chain, group)
    if len(chain.stages) == 1:
        return _one_stage_added(release, chain, group)
    return _added(release, chain, group)


def _replaced(release: Release, chain: Chain, group: int) -> Case:
    """Return the case by revealing (docs/proofs/chains.md), for as many marked slots as the unit
    has records."""
    s, law = release.noise_multiplier, law_of(chain, group)
    curve = _curve_of_one(release, Relation.SUBSTITUTE, group)

    @cache
    def direct(tail: float) -> tuple[Profile, None]:
        return RememberedProfile(ChainProfile(chain, s, tail, group)), None

    @cache
    def profiles(tail: float) -> tuple[Profile, None]:
        return _least(direct(tail)[0], *(each(tail)[0] for each in curve)), None

    ends_poisson = chain.kinds[-1] == "poisson"
    # fillers at -C are 2 C from a record: in their units the noise multiplier is s / 2
    filler = None if ends_poisson else FillerPair(law, s / 2)
    attack = filler or MixturePair(law, s)
    event: Event = DominatedEvent(profiles, attack)
    theorem = Theorem("36", "4.8")
    certified: tuple[Certified, ...] = (Certified(DominatedEvent(direct, None), theorem),)
    if np.isfinite(law.log_pmf).sum() == 1:
        # every record is in every sample: a Gaussian mechanism
        event, certified = PairEvent(attack), ()
    moved = _moved(Relation.SUBSTITUTE, group)
    among = "zero records" if ends_poisson else "records -C"
    return Case(
        event=event,
        theorem=theorem,
        proved=f"group lemma at the law of the number of {group} records that are drawn",
        attained=f"{group} records +C against as many -C, among {among}, both directions",
        sensitivity=f"{moved}, l of them drawn, moves the sum by up to 2 l C",
        conditions=_conditions(release, Relation.SUBSTITUTE, depends_on_n=True),
        choices=(AttackChoice(fillers_of(chain, Relation.SUBSTITUTE)),),
        shift=2.0 * group * most_copies(chain),
        static=lambda: played_at_fillers(chain, Relation.SUBSTITUTE, s, group),
        filler_flip=None if isinstance(event, PairEvent) else filler,
        certified=certified,
    )


def _one_stage_added(release: Release, chain: Chain, group: int) -> Case:
    """Return the case of records that take the places of others, the sample being drawn from the
    larger data set."""
    s, larger = release.noise_multiplier, replace(chain, n=chain.n + group)
    law = f"hypergeometric(n + {group}, {group}, m)"
    if release.mechanism == "laplace":
        from dpsub.accounting.schemes.groups.laplace import exact_event

        proved = f"sum_l p_l Lap(2 l, s) against Lap(0, s), p = {law}, both directions"
        event = exact_event(law_of(larger, group), 2 / s, 0.0)
        return replace(_added_case(release, chain, group, event, proved), static=None)
    if chain.kinds != ("wor",):
        law = f"Binomial(m, {group} / (n + {group}))"
    return _added_case(
        release,
        chain,
        group,
        PairEvent(FillerPair(law_of(larger, group), s / 2)),
        f"sum_l p_l N(2 l, s^2) against N(0, s^2), p = {law}, both directions",
    )


def _added(release: Release, chain: Chain, group: int) -> Case:
    s, larger = release.noise_multiplier, replace(chain, n=chain.n + group)

    curve = _curve_of_one(release, Relation.ADD_REMOVE, group)

    @cache
    def direct(tail: float) -> tuple[Profile, Profile]:
        chained = ChainProfile(larger, s, tail, group)
        return RememberedProfile(chained), RememberedProfile(chained.removed)

    @cache
    def profiles(tail: float) -> tuple[Profile, Profile]:
        forward, backward = zip(direct(tail), *(each(tail) for each in curve), strict=True)
        return _least(*forward), _least(*backward)

    ends_poisson = chain.kinds[-1] == "poisson"
    filler = FillerPair(law_of(larger, group), s if ends_poisson else s / 2)
    case = _added_case(
        release,
        chain,
        group,
        DominatedEvent(profiles, filler),
        "group lemma at the last stage, with the earlier stages revealed; for data sets with and "
        f"without {group} records",
    )
    return replace(case, certified=(Certified(DominatedEvent(direct, None), case.theorem),))


def _added_case(release: Release, chain: Chain, group: int, event: Event, proved: str) -> Case:
    s, relation = release.noise_multiplier, Relation.ADD_REMOVE
    sizes = f"the neighbouring data sets have n and n + {group} records"
    among = "zero records" if chain.kinds[-1] == "poisson" else "records -C"
    return Case(
        event=event,
        theorem=Theorem("37", "4.8"),
        proved=proved,
        attained=f"{group} records +C added to {among}, both directions",
        sensitivity=f"{group} records, l of them drawn, move the sum by up to 2 l C",
        conditions=(*_conditions(release, relation), sizes),
        choices=(AttackChoice(fillers_of(chain, relation)),),
        shift=2.0 * group * most_copies(chain),
        static=lambda: played_at_fillers(chain, relation, s, group),
    )


def _zeroed(release: Release, chain: Chain, group: int) -> Case:
    """Return the case of Theorem 38: of l that are drawn, each takes the place of a member g of the
    base; they move the sum by up to 2 l C as they are, and by up to l C as zeros."""
    s, law = release.noise_multiplier, law_of(chain, group)
    attack = FillerPair(law, s)
    curve = _curve_of_one(release, Relation.ZERO_OUT, group)
    zeroed = _zeroed_profiles(law, s)

    @cache
    def direct(tail: float) -> tuple[Profile, Profile]:
        # 0 is one of the vectors that a record may be replaced by
        replaced = RememberedProfile(ChainProfile(chain, s, tail, group))
        return _least(zeroed[0], replaced), _least(zeroed[1], replaced)

    @cache
    def profiles(tail: float) -> tuple[Profile, Profile]:
        forward, backward = zip(direct(tail), *(each(tail) for each in curve), strict=True)
        return _least(*forward), _least(*backward)

    event: Event = DominatedEvent(profiles, attack)
    theorem = Theorem("38", "4.8")
    certified: tuple[Certified, ...] = (Certified(DominatedEvent(direct, None), theorem),)
    if np.isfinite(law.log_pmf).sum() == 1:
        event, certified = PairEvent(attack), ()
    neighbours = Neighbours(1.0, 0.0, 0.0)
    moved = _moved(Relation.ZERO_OUT, group)
    return Case(
        event=event,
        theorem=theorem,
        proved=(
            "for each number l of records that are drawn the larger of two pairs: shifts 2 l C "
            "against l C, with the records; l C against 0, without them"
        ),
        attained=f"{group} records +C against 0 among zero records, both directions",
        sensitivity=f"{moved}, l of them drawn, moves the sum by up to l C",
        conditions=_conditions(release, Relation.ZERO_OUT, depends_on_n=True),
        choices=(AttackChoice(neighbours),),
        shift=2.0 * group,
        static=lambda: StepAttack(neighbours, (chain.n, chain.n), attack, s, group=(group, group)),
        certified=certified,
    )


def _zeroed_profiles(law: MultiplicityLaw, s: float) -> tuple[Profile, Profile]:
    counts = np.flatnonzero(np.isfinite(law.log_pmf))
    counts = counts[counts > 0]
    drawn, missed = law.eta, float(law.pmf[0])
    # without a chance that none is drawn there is no base
    rate, rest = (drawn, missed) if missed else (1.0, 0.0)

    def profile(farthest: float) -> Profile:
        parts = [
            (float(law.pmf[k]) / drawn, replaced_profile(rate, farthest * k / s, k / s, rest))
            for k in counts.tolist()
        ]

        def bound(log_order: np.ndarray) -> np.ndarray:
            total = sum(share * part(log_order) for share, part in parts)
            return np.asarray(np.minimum(total * (1 + _LAW_ERROR), 1.0))

        return RememberedProfile(bound)

    return profile(2.0), profile(1.0)


def _least(*profiles: Profile) -> Profile:
    """Return the least of several bounds at each order."""

    def least(log_order: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum.reduce([profile(log_order) for profile in profiles]))

    return least


def _curve_of_one(release: Release, relation: Relation, group: int) -> list[ProfileMaker]:
    """Return the bound by the curve of one record, if there is one."""
    if group > MOST_COMPOSED:
        return []
    single = without_replacement if release.chain().kinds == ("wor",) else chains
    return [_group_curve(release, relation, group, single)[0].profiles]


def by_composition(release: Release, relation: Relation, single: Scheme) -> Case:
    """Return the case of any sampler: the data sets are connected by others that differ in one
    record each, and the curve of one record is composed with itself, epoch by epoch (Theorem
    39)."""
    group = _one_group(release)
    if group > MOST_COMPOSED:
        raise UnsupportedError(
            f"groups on {release.sampler.name} are bounded by the curve of one record, composed up "
            f"to {MOST_COMPOSED} times, got group = {group}; take a smaller group"
        )
    added = relation is Relation.ADD_REMOVE and release.n is not None
    if added and isinstance(release.sampler, Shuffle):
        raise UnsupportedError(
            "no bound is proved for several records that are added to shuffled batches; use "
            "substitute or zero_out"
        )
    curve, first = _group_curve(release, relation, group, single)
    proved = f"the curve of one record, composed with itself {group} times: {first.proved}"
    revealed = [] if first.revealed is None else [first.revealed(group)]
    if revealed:
        proved += "; or the steps of all revealed, whichever is smaller"

    def profiles(tail: float, fine: int = FINE) -> tuple[Profile, Profile]:
        forward, backward = zip(curve.profiles(tail, fine), *revealed, strict=True)
        return _least(*forward), _least(*backward)

    event: Event = GroupEvent.of(profiles) if curve.takes_work else DominatedEvent(profiles, None)
    attack = GroupAttack((), (), "")
    if first.group_attack is not None:
        attack = first.group_attack(group)
    # of one record alone the others are 0, or the same in both data sets
    alone = () if added else tuple(each for each in first.event.attack_choices if each.attacked)
    if attack.events or alone:
        event = EnclosedEvent(event, attack.events + alone)
    return replace(
        first,
        event=event,
        theorem=Theorem("39", "4.8"),
        proved=proved,
        attained=attack.attained or (first.attained if alone else ""),
        choices=attack.choices + (first.choices if alone else ()),
        attack_section="4.8" if attack.events else first.attack_section,
        sensitivity=f"for each of {group} records {first.sensitivity}",
        conditions=(*first.conditions, _unit_condition(release)),
        shift=first.shift * group,
        static=None,
        game=None,
        filler_flip=None,
        papers_pair=None,
        amplification=None,
        group_attack=None,
        revealed=None,
    )


def _group_curve(
    release: Release, relation: Relation, group: int, single: Scheme
) -> tuple[GroupCurve, Case]:
    """Return the curve of one record after the other, and the case of the first one."""
    if relation is Relation.ADD_REMOVE and release.n is not None:
        cases = [single(_of_one(release, more), relation) for more in range(group)]
    else:
        cases = [single(_of_one(release, 0), relation)] * group
    return GroupCurve(tuple(case.event for case in cases)), cases[0]


def _of_one(release: Release, more: int) -> Release:
    """Return one event of the release for one record, on as many more records."""
    n = None if release.n is None else release.n + more
    steps = None
    if not isinstance(release.sampler, Schedule) or release.sampler.one_plan:
        steps = release.steps
    return Release.of(
        release.sampler,
        n,
        noise_multiplier=release.noise_multiplier,
        steps=steps,
        mechanism=release.mechanism,
        denominator=release.denominator,
    )

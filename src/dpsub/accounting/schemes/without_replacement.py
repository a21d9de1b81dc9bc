"""Samples of a fixed number of different records: each drawn record displaces another one, so that
adding or removing it still moves the sum by up to 2 C."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from dpsub.accounting.engine.laplace_pairs import (
    LaplaceEvent,
    LaplacePair,
    ShiftedOutput,
    included_once,
    removed_once,
    zeroed_once,
)
from dpsub.accounting.engine.pairs import FillerPair, PoissonPair, WorPair, ZeroedPair
from dpsub.accounting.engine.pld import RememberedProfile
from dpsub.accounting.engine.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
    StatisticEvent,
)
from dpsub.accounting.engine.profiles import ChainProfile, law_of
from dpsub.accounting.games.game import replaced_profile
from dpsub.accounting.games.laplace import LaplaceCells
from dpsub.accounting.games.static import Neighbours, StepAttack
from dpsub.accounting.games.zeroed import ZeroedCells
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    Amplification,
    AttackChoice,
    Case,
    GroupAttack,
    Theorem,
    TightGame,
    covers,
)
from dpsub.accounting.schemes.chains.scheme import (
    FILLERS,
    game_of,
    one_stage_added,
    played_at_fillers,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.relations import Relation
from dpsub.sampling.base import Chain

_PUT_TO_0 = Neighbours(1.0, 0.0, -1.0)


@covers("wor", relation=Relation.SUBSTITUTE, reused=Relation)
def without_replacement(release: Release, relation: Relation) -> Case:
    """Return the case of independent samples without replacement."""
    chain = release.chain()
    if release.mechanism == "laplace":
        return _laplace(release, relation, chain)
    if relation is Relation.ADD_REMOVE:
        return one_stage_added(release, chain)
    if relation is Relation.ZERO_OUT:
        return _zeroed(release, chain)
    return _replaced(release, chain)


def _replaced(release: Release, chain: Chain) -> Case:
    """Return the case of Theorem 2: the profile q G(lift(a, q), 2 / s), which fillers at -C attain
    in one step. At more steps no data sets have it in both directions, and the game brings the ends
    together (docs/proofs/without_replacement.md)."""
    s, law = release.noise_multiplier, law_of(chain)
    # fillers at -C are 2 C from the record: in their units the noise multiplier is s / 2
    filler = FillerPair(law, s / 2)
    profile = cache(lambda tail: (RememberedProfile(ChainProfile(chain, s, tail)), None))
    missed, rate = chain.stages[0].count_law(chain.n, 1).tolist()
    return Case(
        event=DominatedEvent(profile, filler, attained=True),
        theorem=Theorem("2", "3.3"),
        proved="profile q G(1 + (a - 1) / q, 2 / s), q = m / n",
        attained="data sets (C, -C, ..., -C) against (-C, ..., -C), both directions",
        sensitivity=(
            "replacing one occurrence moves the sum by up to 2 C, replacing l by up to 2 l C"
        ),
        conditions=conditions_of(release, Relation.SUBSTITUTE, depends_on_n=True),
        choices=(AttackChoice(FILLERS[Relation.SUBSTITUTE]),),
        shift=2.0,
        static=lambda: played_at_fillers(chain, Relation.SUBSTITUTE, s),
        filler_flip=filler,
        game=game_of(chain, s, Theorem("15", "4.1")),
        papers_pair=lambda: WorPair(rate, s, missed),
        amplification=Amplification(attained=True),
    )


def _zeroed(release: Release, chain: Chain) -> Case:
    """Return the case of Theorem 16: a zeroed-out record takes another one's place in both data
    sets.

    With v the record's vector and g that of the member that it replaces the outputs are, up to a
    translation, (1 - q) N(0) + q N(v - g) and (1 - q) N(0) + q N(-g).
    """
    s = release.noise_multiplier
    missed, rate = chain.stages[0].count_law(chain.n, 1).tolist()
    # without a chance to be missed there is no base: the Gaussian mechanism
    pair = ZeroedPair(rate, s, missed) if missed else None
    case = Case(
        event=_zeroed_event(pair, s) if pair else PairEvent(PoissonPair(1.0, s)),
        theorem=Theorem("16", "3.9"),
        proved=(
            "the larger of two pairs at each order: shifts 2 C against C, with the record; C "
            "against 0, without it"
        ),
        attained="data sets (C, -C, ..., -C) against (0, -C, ..., -C), both directions",
        sensitivity=(
            "setting the record to 0 moves the sum by C; the record takes another's "
            "place, which moves the sum by up to 2 C"
        ),
        conditions=conditions_of(release, Relation.ZERO_OUT, depends_on_n=True),
        choices=(AttackChoice(_PUT_TO_0),),
        shift=2.0,
        static=lambda: _zeroed_played(chain, s),
        filler_flip=pair,
        game=TightGame(lambda: ZeroedCells(rate, s, missed), Theorem("70", "4.1"))
        if pair
        else None,
    )
    if pair:
        return case
    # every record is in every sample: nobody's place is taken
    gaussians = "N(1, s^2) against N(0, s^2)"
    sensitivity = "setting the record to 0 moves the sum by C"
    return replace(case, proved=gaussians, attained=gaussians, sensitivity=sensitivity)


def _zeroed_event(pair: ZeroedPair, s: float) -> DominatedEvent:
    """Return the event of one step: |v - g| <= 2 and |v| <= 1 bound the first direction by the
    numbers 2 and 1 in the places of v - g and -g, |g| <= 1 and |v| <= 1 the second by 1 and 0. Each
    is attained in a single step."""
    with_record, without = (
        RememberedProfile(replaced_profile(pair.rate, farthest / s, 1 / s, pair.missed))
        for farthest in (2.0, 1.0)
    )
    return DominatedEvent(lambda tail: (with_record, without), pair, attained=True)


def _zeroed_played(chain: Chain, s: float) -> StepAttack:
    n, m = chain.n, chain.stages[0].size
    if m == n:
        return StepAttack(Neighbours(1.0, 0.0, 0.0), (n, n), PoissonPair(1.0, s), s)
    pair = ZeroedPair(m / n, s, (n - m) / n)
    return StepAttack(_PUT_TO_0, (n, n), pair, s, origin=-float(m))


def _laplace(release: Release, relation: Relation, chain: Chain) -> Case:
    """Return the case of scalar Laplace noise: Theorems 2 and 9 hold with its profile
    (docs/proofs/laplace.md), Theorem 16 with that of Theorem 73."""
    if relation is Relation.ZERO_OUT:
        return _laplace_zeroed(release, chain)
    if relation is Relation.ADD_REMOVE:
        return _laplace_added(release, chain)
    return _laplace_replaced(release, chain)


def _laplace_replaced(release: Release, chain: Chain) -> Case:
    """Return the case of a record replaced. No data sets have the profile in both directions, so
    that more steps are bounds, which the game brings together with the cells of Theorem 30
    (docs/proofs/without_replacement.md)."""
    s = release.noise_multiplier
    missed, rate = chain.stages[0].count_law(chain.n, 1).tolist()
    pair = LaplacePair(rate, 2 / s, missed=missed)
    profile = included_once(rate, 2 / s, missed)
    return Case(
        event=LaplaceEvent(pair, profile, profile, attained=False),
        theorem=Theorem("2", "3.7"),
        proved="profile q h(1 + (a - 1) / q) of Laplace noise at distance 2 C, scalar query",
        attained="data sets (C, -C, ..., -C) against (-C, ..., -C), both directions",
        sensitivity="replacing one record moves the sum by up to 2 C",
        conditions=conditions_of(release, Relation.SUBSTITUTE, depends_on_n=True),
        choices=(AttackChoice(FILLERS[Relation.SUBSTITUTE]),),
        shift=2.0,
        group_attack=lambda group: _laplace_group(chain, Relation.SUBSTITUTE, s, group),
        filler_flip=pair,
        game=TightGame(lambda: LaplaceCells(rate, s, missed), Theorem("30", "4.1")),
    )


def _laplace_zeroed(release: Release, chain: Chain) -> Case:
    """Return the case of Theorem 16 with the closed forms of Laplace noise: each direction has its
    own profile, and one step attains both."""
    s = release.noise_multiplier
    missed, rate = chain.stages[0].count_law(chain.n, 1).tolist()
    theta = 1 / s
    case = Case(
        event=_laplace_zeroed_event(rate, theta, missed),
        theorem=Theorem("73", "3.9"),
        proved=(
            "the larger of two pairs of Laplace noise at each order: shifts 2 C against C, with "
            "the record; C against 0, without it; scalar query"
        ),
        attained=(
            "data sets (C, -C, ..., -C) against (0, -C, ..., -C), or (C, C, ..., C) against "
            "(0, C, ..., C), both directions"
        ),
        sensitivity=(
            "setting the record to 0 moves the sum by C; the record takes another's "
            "place, which moves the sum by up to 2 C"
        ),
        conditions=conditions_of(release, Relation.ZERO_OUT, depends_on_n=True),
        choices=(AttackChoice(_PUT_TO_0), AttackChoice(Neighbours(1.0, 0.0, 1.0))),
        shift=2.0,
        group_attack=lambda group: _laplace_group(chain, Relation.ZERO_OUT, s, group),
    )
    if missed:
        return case
    # every record is in every sample: nobody's place is taken
    return replace(
        case,
        proved="Lap(1, s) against Lap(0, s), scalar query",
        attained="a record C against 0",
        sensitivity="setting the record to 0 moves the sum by C",
        choices=(AttackChoice(_PUT_TO_0),),
    )


def _laplace_group(chain: Chain, relation: Relation, s: float, group: int) -> GroupAttack:
    from dpsub.accounting.schemes.groups.laplace import attack_among_fillers

    return attack_among_fillers(law_of(chain, group), relation, 1 / s)


def _laplace_zeroed_event(rate: float, theta: float, missed: float) -> Event:
    if not missed:
        forward, backward = included_once(1.0, theta), removed_once(1.0, theta)
        return LaplaceEvent(LaplacePair(1.0, theta), forward, backward, attained=True)
    with_record = zeroed_once(rate, theta, missed)
    without = included_once(rate, theta, missed)
    return EnclosedEvent(
        DominatedEvent(lambda tail: (with_record, without), None),
        (
            StatisticEvent(ShiftedOutput(rate, 2 * theta, theta, missed)),
            StatisticEvent(ShiftedOutput(rate, 0.0, -theta, missed)),
        ),
    )


def _laplace_added(release: Release, chain: Chain) -> Case:
    """Return the case of a record more: each direction has its own profile, and the same data sets
    attain both, so that it is exact."""
    s, larger = release.noise_multiplier, replace(chain, n=chain.n + 1)
    missed, rate = larger.stages[0].count_law(larger.n, 1).tolist()
    pair = LaplacePair(rate, 2 / s, missed=missed)
    forward = included_once(rate, 2 / s, missed)
    backward = removed_once(rate, 2 / s, missed)
    return Case(
        event=LaplaceEvent(pair, forward, backward, attained=True),
        theorem=Theorem("9", "3.8"),
        proved=(
            "(1 - q) Lap(0, s) + q Lap(2, s) against Lap(0, s), q = m / (n + 1), both directions, "
            "scalar query"
        ),
        attained=(
            "data sets (C, -C, ..., -C) against (-C, ..., -C) of one record less, both directions"
        ),
        sensitivity="the record takes another's place and moves the sum by up to 2 C",
        conditions=conditions_of(release, Relation.ADD_REMOVE, depends_on_n=True),
        choices=(AttackChoice(FILLERS[Relation.ADD_REMOVE]),),
        shift=2.0,
    )

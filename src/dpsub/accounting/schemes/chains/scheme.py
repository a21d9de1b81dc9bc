"""Samples with replacement, and chains of several stages: a record may occur several times.

The upper bound is the group lemma at the last stage, with the stages before it revealed
(docs/proofs/chains.md); for add_remove, see docs/proofs/added_records.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from dpsub.accounting.engine import pairs
from dpsub.accounting.engine.pairs import FillerPair, MixturePair
from dpsub.accounting.engine.pld import RememberedProfile
from dpsub.accounting.engine.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
    StatisticEvent,
)
from dpsub.accounting.engine.profiles import ChainProfile, law_of
from dpsub.accounting.games.game import Copies, GaussianCells
from dpsub.accounting.games.static import Neighbours, StepAttack
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
from dpsub.accounting.schemes.chains.zeroed import ZeroedCopies, ZeroedProfile
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import Chain, StagedSampler, WithReplacement

_COPIES_REPLACED = "replacing one occurrence moves the sum by up to 2 C, replacing l by up to 2 l C"
_COPIES_ADDED = (
    "one occurrence takes another record's place and moves the sum by up to 2 C, l "
    "occurrences by up to 2 l C"
)
FILLERS = {
    Relation.SUBSTITUTE: Neighbours(1.0, -1.0, -1.0),
    Relation.ADD_REMOVE: Neighbours(1.0, None, -1.0),
}
"""Data sets of the attacks on samples of fixed size: each occurrence of the record takes the place
of a filler, 2 C away."""
_AMONG_ZEROS = {
    Relation.SUBSTITUTE: Neighbours(1.0, -1.0, 0.0),
    Relation.ADD_REMOVE: Neighbours(1.0, None, 0.0),
}
"""Data sets of the attacks where the size of the sample is random: it would blur the sum of fillers
at -C."""
_PUT_TO_0, _PUT_TO_0_AMONG_ZEROS = Neighbours(1.0, 0.0, -1.0), Neighbours(1.0, 0.0, 0.0)
_TRIMMED = 1e-15  # counts that are left out of the densities of an attack


@covers(StagedSampler, relation=Relation.SUBSTITUTE, reused=Relation)
def chains(release: Release, relation: Relation) -> Case:
    """Return the case of independent samples by a chain of stages in which a record can occur
    several times."""
    if release.mechanism == "laplace":
        raise UnsupportedError(
            "Laplace noise is proved only for Poisson sampling and sampling without "
            "replacement, where a record enters at most once; use mechanism gaussian"
        )
    chain = release.chain()
    if relation is Relation.ZERO_OUT:
        return _zeroed(release, chain)
    if relation is Relation.SUBSTITUTE:
        return _replaced(release, chain)
    if len(chain.stages) == 1:
        return one_stage_added(release, chain)
    return _added(release, chain)


def _replaced(release: Release, chain: Chain) -> Case:
    """Return the case of a record replaced: Theorem 4 for one stage, Theorem 6 for several."""
    s, law = release.noise_multiplier, law_of(chain)
    # one profile serves both directions: a pair of neighbours swapped is one
    # (docs/proofs/composition.md, remark 3)
    profile = cache(lambda tail: (RememberedProfile(ChainProfile(chain, s, tail)), None))
    if chain.kinds == ("wr",):
        theorem, proved = Theorem("4", "3.4"), "group lemma at Binomial(m, 1/n)"
    else:
        theorem = Theorem("6", "3.5")
        proved = "group lemma at the last stage, with the earlier stages revealed"
    ends_poisson = chain.kinds[-1] == "poisson"
    # fillers at -C are 2 C from the record: in their units the noise multiplier is s / 2
    filler = None if ends_poisson else FillerPair(law, s / 2)
    attained = "data sets (C, -C, ..., -C) against (-C, ..., -C), both directions"
    if ends_poisson:
        attained = "records +C against -C among zero records"
    return Case(
        event=DominatedEvent(profile, filler or MixturePair(law, s)),
        theorem=theorem,
        proved=proved,
        attained=attained,
        sensitivity=_COPIES_REPLACED,
        conditions=conditions_of(release, Relation.SUBSTITUTE, depends_on_n=True),
        choices=(AttackChoice(fillers_of(chain, Relation.SUBSTITUTE)),),
        shift=2.0 * most_copies(chain),
        static=lambda: played_at_fillers(chain, Relation.SUBSTITUTE, s),
        filler_flip=filler,
        game=game_of(chain, s, Theorem("65" if chain.kinds == ("wr", "wr") else "22", "4.4")),
        papers_pair=lambda: MixturePair(law, s),
        amplification=_amplification(chain),
    )


def one_stage_added(release: Release, chain: Chain) -> Case:
    """Return the case of a record more in a sample of fixed size by one stage, which takes the
    places of others: Theorem 9, exact for any number of steps."""
    # what is drawn is drawn from the data set with the record
    s, larger = release.noise_multiplier, replace(chain, n=chain.n + 1)
    law = "Bernoulli(m / (n + 1))" if chain.kinds == ("wor",) else "Binomial(m, 1 / (n + 1))"
    return Case(
        event=PairEvent(FillerPair(law_of(larger), s / 2)),
        theorem=Theorem("9", "3.8"),
        proved=f"sum_l p_l N(2 l, s^2) against N(0, s^2), p = {law}, both directions",
        attained=(
            "data sets (C, -C, ..., -C) against (-C, ..., -C) of one record less, both directions"
        ),
        sensitivity=_COPIES_ADDED,
        conditions=conditions_of(release, Relation.ADD_REMOVE, depends_on_n=True),
        choices=(AttackChoice(FILLERS[Relation.ADD_REMOVE]),),
        shift=2.0 * most_copies(chain),
        static=lambda: played_at_fillers(chain, Relation.ADD_REMOVE, s),
    )


def _added(release: Release, chain: Chain) -> Case:
    """Return the case of a record more in a chain of several stages: Theorem 10, each direction by
    its own profile."""
    s, larger = release.noise_multiplier, replace(chain, n=chain.n + 1)

    @cache
    def profiles(tail: float) -> tuple[RememberedProfile, RememberedProfile]:
        profile = ChainProfile(larger, s, tail)
        return RememberedProfile(profile), RememberedProfile(profile.removed)

    # a last Poisson stage adds the record to the sum, others put it in a filler's place, 2 C away
    ends_poisson = chain.kinds[-1] == "poisson"
    filler = FillerPair(law_of(larger), s if ends_poisson else s / 2)
    attained = (
        "data sets (C, -C, ..., -C) against (-C, ..., -C) of one record less, both directions"
    )
    if ends_poisson:
        attained = "a record +C added to zero records, both directions"
    return Case(
        event=DominatedEvent(profiles, filler),
        theorem=Theorem("10", "3.8"),
        proved=(
            "group lemma at the last stage, with the earlier stages revealed; for data "
            "sets with and without the record"
        ),
        attained=attained,
        sensitivity=_COPIES_ADDED,
        conditions=conditions_of(release, Relation.ADD_REMOVE, depends_on_n=True),
        choices=(AttackChoice(fillers_of(chain, Relation.ADD_REMOVE)),),
        shift=2.0 * most_copies(chain),
        static=lambda: played_at_fillers(chain, Relation.ADD_REMOVE, s),
    )


def _zeroed(release: Release, chain: Chain) -> Case:
    """Return the case of a record zeroed out: Theorem 47, each direction by its own profile."""
    if chain.kinds[-1] == "poisson":
        raise UnsupportedError(
            "no bound is proved for chains that end in a Poisson stage under zero_out; use "
            "substitute"
        )
    s = release.noise_multiplier
    played = _put_to_0(chain, s)

    @cache
    def profiles(tail: float) -> tuple[RememberedProfile, RememberedProfile]:
        return (
            RememberedProfile(ZeroedProfile(chain, s, tail)),
            RememberedProfile(ZeroedProfile(chain, s, tail, removed=True)),
        )

    def of_group(group: int) -> GroupAttack:
        records = _put_to_0(chain, s, group)
        attained = f"{group} records C against 0 among records -C or 0, both directions"
        return GroupAttack(_attacks_at_0(records), choices, attained)

    choices = AttackChoice(_PUT_TO_0), AttackChoice(_PUT_TO_0_AMONG_ZEROS)
    origin, n_records = -float(chain.stages[-1].size), (chain.n, chain.n)
    return Case(
        event=EnclosedEvent(DominatedEvent(profiles, None), _attacks_at_0(played)),
        theorem=Theorem("47", "3.9"),
        proved=(
            "distances 2 C and C for each occurrence at the last stage, with the earlier stages "
            "revealed"
        ),
        attained=(
            "data sets (C, -C, ..., -C) against (0, -C, ..., -C), or (C, 0, ..., 0) against (0, "
            "..., 0), both directions"
        ),
        sensitivity=(
            "setting one occurrence to 0 moves the sum by C; an occurrence takes another record's "
            "place, which moves the sum by up to 2 C"
        ),
        conditions=conditions_of(release, Relation.ZERO_OUT, depends_on_n=True),
        choices=choices,
        shift=2.0 * most_copies(chain),
        static=lambda: StepAttack(_PUT_TO_0, n_records, played, s, origin),
        group_attack=of_group,
        attack_section="3.9",
    )


def _put_to_0(chain: Chain, s: float, group: int = 1) -> ZeroedCopies:
    return ZeroedCopies(pairs.capped(law_of(chain, group), _TRIMMED), s)


def _attacks_at_0(played: ZeroedCopies) -> tuple[Event, ...]:
    """Return the attacks among records at -C, and among others at 0; others at C have the pair of
    the latter, too, in the other order."""
    return StatisticEvent(played), PairEvent(FillerPair(played.law, played.noise_multiplier))


def fillers_of(chain: Chain, relation: Relation) -> Neighbours:
    return (_AMONG_ZEROS if chain.kinds[-1] == "poisson" else FILLERS)[relation]


def most_copies(chain: Chain) -> int:
    """Return how often one record can be in a sample."""
    most = 1
    for stage in chain.stages:
        # other stages take each slot once at most
        most = stage.size if isinstance(stage, WithReplacement) else most
    return most


def played_at_fillers(chain: Chain, relation: Relation, s: float, group: int = 1) -> StepAttack:
    """Return the static attack on samples by a chain (docs/proofs/attacks.md): fillers at -C where
    their number m is fixed, so that the output is N(-m + 2 l, s^2) with probability P(L = l)
    against N(-m, s^2); where it is random, fillers at 0."""
    n, n_records = chain.n, (chain.n, chain.n)
    if relation is Relation.ADD_REMOVE:
        n, n_records = chain.n + group, (chain.n + group, chain.n)
    law = pairs.capped(law_of(replace(chain, n=n), group), _TRIMMED)
    neighbours, differ = fillers_of(chain, relation), (group, group)
    if chain.kinds[-1] != "poisson":
        origin = -float(chain.stages[-1].size)
        return StepAttack(
            neighbours, n_records, FillerPair(law, s / 2), s, origin, unit=2.0, group=differ
        )
    if relation is Relation.ADD_REMOVE:
        return StepAttack(neighbours, n_records, FillerPair(law, s), s, group=differ)
    return StepAttack(neighbours, n_records, MixturePair(law, s), s, group=differ)


def copies_of(chain: Chain) -> Callable[[], Copies] | None:
    """Return a function that makes the copies of a record for the game of a chain; None for chains
    other than one stage, or one with replacement after another stage (docs/proofs/chains.md)."""
    *before, last = chain.stages
    kinds = [stage.kind for stage in before]
    if kinds == ["wr"] and last.kind == "wr":
        return _draws_of_draws(chain)
    slots = before[0].size if before else chain.n
    counts = tuple(last.count_law(slots, 1).tolist())
    # a record that is always drawn leaves no base
    if kinds not in ([], ["wor"]) or last.kind == "poisson" or counts[0] <= 0:
        return None
    if not before:
        return lambda: Copies(counts)
    missed, passed = before[0].count_law(chain.n, 1).tolist()
    return lambda: Copies.of_draws(counts, passed, slots, last.size, missed)


def _draws_of_draws(chain: Chain) -> Callable[[], Copies] | None:
    first, last = chain.stages
    held = first.count_law(chain.n, 1)
    if chain.n < 2 or held[0] <= 0:
        return None
    return lambda: Copies.of_draws_of_draws(
        held, lambda j: last.count_law(first.size, j), first.size, last.size
    )


def game_of(chain: Chain, s: float, theorem: Theorem) -> TightGame | None:
    """Return the game of a chain under substitution, with Gaussian noise; None if it has none."""
    copies = copies_of(chain)
    return copies and TightGame(lambda: GaussianCells(copies(), s), theorem)


def _amplification(chain: Chain) -> Amplification:
    """Return the amplification by Theorem 5 of `must`, with the conditions of Theorem 7 on two
    stages with replacement."""
    kinds = chain.kinds
    if kinds == ("wr", "wr") and chain.stages[0].size > chain.n:
        return Amplification(
            missing=f"the theorem is proved for a first stage of at most n = {chain.n} draws "
            f"with replacement, got b = {chain.stages[0].size}; use dpsub account, "
            "which has another bound"
        )
    if kinds in (("wr",), ("wor", "wr"), ("wr", "wr")):
        return Amplification()
    what = "has more than two stages that matter"
    if kinds[-1] == "poisson":
        what = "ends with a Poisson stage"
    return Amplification(
        missing=f"no amplification theorem is proved for a chain that {what}; use dpsub "
        "account, which has another bound"
    )

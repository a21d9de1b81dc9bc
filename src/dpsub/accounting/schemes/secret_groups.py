"""Cyclic Poisson sampling whose groups are random and secret: each record is in one of them, all
alike, for all epochs (docs/proofs/allocation.md, Theorem 85)."""

from __future__ import annotations

import math

import numpy as np

from dpsub.accounting.engine.pairs import (
    FillerPair,
    MixturePair,
    PoissonPair,
    WorPair,
)
from dpsub.accounting.engine.privacy_events import (
    EnclosedEvent,
    Event,
    PairEvent,
    PairSeveralTimes,
)
from dpsub.accounting.games.static import ANY_N, Neighbours, TurnsAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.allocation.opposite_event import OppositeEvent
from dpsub.accounting.schemes.allocation.turns import (
    OppositeTurns,
    TurnsEvent,
    by_no_record,
    replaced_turns,
)
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
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw, log_binomial
from dpsub.sampling.secret_cyclic_poisson import SecretCyclicPoisson

_PLAN = (
    "each record's group is drawn uniformly, independently of the other records, once for all "
    "epochs, and kept secret; every step draws a new sample from its group, independent of the "
    "others and secret"
)

_THEOREM, _REPLACED = Theorem("85", "4.6"), Theorem("substitution", "4.6")
_REVEALED = Theorem("17", "4.2")
_MOST_DRAWS = 10**5  # whose law is formed


@covers(SecretCyclicPoisson, reused=Relation)
def secret_groups(release: Release, relation: Relation) -> Case:
    """Return the case of all epochs together."""
    needs_fixed_denominator(release, relation)
    needs_gaussian_noise(release)
    schedule, turns, s = release.sampler, release.epochs, release.noise_multiplier
    assert isinstance(schedule, SecretCyclicPoisson)
    groups, rate = schedule.cycle, schedule.rate
    is_replaced = relation is Relation.SUBSTITUTE
    together = TurnsEvent(groups, rate, turns, s)
    attacks: tuple[Event, ...] = (_sum_of_all(schedule, turns, s, is_replaced, 1),)
    revealed = PairSeveralTimes((WorPair if is_replaced else PoissonPair)(rate, s), turns)
    event = EnclosedEvent(revealed, attacks)
    certified: tuple[Certified, ...] = (Certified(revealed, _REVEALED),)
    proved = f"the record's group revealed: {turns} Poisson steps, q = {rate:g}"
    if together.applies:
        attacks = (together, *attacks)
        proved = (
            "mean over the groups of the products over their turns of (1 - q) N(0, s^2) + "
            "q N(1, s^2), against N(0, s^2), both directions"
        )
        event = EnclosedEvent(together, attacks, attained=True)
        certified = (Certified(together, _THEOREM),)
        if is_replaced:
            certified = Certified(revealed, _REVEALED), Certified(by_no_record(together), _REPLACED)
            proved = "the record removed, then the other added; or its group revealed"
            cells = OppositeTurns(together)
            attacks = (*attacks, cells) if cells.applies else attacks
            event = EnclosedEvent(replaced_turns(together), attacks, revealed)
            # in every turn of its group, a record is in one of as many steps with less noise
            always = OppositeEvent(groups, s / math.sqrt(turns))
            if rate == 1 and always.applies:
                proved = f"a record +C among zero records replaced by -C; or {proved}"
                event = EnclosedEvent(always, attacks, event.proved)
    replaced = " replaced by 0 or by -C" if is_replaced else ""
    moved = "2 C" if is_replaced else "C"
    return Case(
        event=event,
        theorem=_THEOREM,
        proved=proved,
        attained=f"a record +C among zero records{replaced}, using all steps",
        sensitivity=f"the record is in the turns of one group and moves each sum by up to {moved}",
        conditions=conditions_of(release, relation, (_PLAN,)),
        choices=_choices(together.applies, relation)[: len(attacks)],
        shift=math.sqrt(turns) * (2.0 if is_replaced else 1.0),
        static=lambda: _played(schedule, release, relation),
        group_attack=lambda group: GroupAttack(
            (_sum_of_all(schedule, turns, s, is_replaced, group),),
            (AttackChoice(Neighbours(1.0, OTHER[relation], 0.0), "sum of all steps"),),
            f"{group} records +C among zero records{replaced and ' replaced by -C'}, using the sum "
            "of all steps",
        ),
        certified=certified,
        attack_section="4.6",
    )


def _sum_of_all(
    schedule: SecretCyclicPoisson, turns: int, s: float, is_replaced: bool, records: int
) -> Event:
    """Return the attack that looks at the sum of all outputs (of the first ones, where they are
    very many), whose law is that of the number of draws of so many records, whatever their groups
    are."""
    turns = min(turns, max(1, _MOST_DRAWS // records))
    most = records * turns
    drawn = MultiplicityLaw(log_binomial(np.arange(most + 1), most, schedule.rate))
    deviation = s * math.sqrt(turns * schedule.cycle)
    return PairEvent((MixturePair if is_replaced else FillerPair)(drawn, deviation))


def _choices(applies: bool, relation: Relation) -> tuple[AttackChoice, ...]:
    """Return the data sets of the attacks; under substitute those of a record that is set to
    0 come first."""
    other = OTHER[relation]
    by_sum = AttackChoice(Neighbours(1.0, other, 0.0), "sum of all steps")
    if not applies:
        return (by_sum,)
    all_steps = [Neighbours(1.0, each, 0.0) for each in ([0.0, other] if other else [other])]
    first, *opposite = [AttackChoice(each, "all steps") for each in all_steps]
    return (first, by_sum, *opposite)


def _played(schedule: SecretCyclicPoisson, release: Release, relation: Relation) -> TurnsAttack:
    n, other = release.n or ANY_N, OTHER[relation]
    return TurnsAttack(
        Neighbours(1.0, other, 0.0),
        (n + (relation is Relation.ADD_REMOVE), n),
        (1.0, other or 0.0),
        np.full(schedule.cycle, schedule.rate / schedule.cycle),
        release.noise_multiplier,
        epochs=release.epochs,
        rate=schedule.rate,
    )

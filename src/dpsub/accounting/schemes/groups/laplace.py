"""Groups of records with scalar Laplace noise: where l of them are drawn, each once at most, the
sum moves by up to l times as much as by one (docs/proofs/groups.md)."""

from __future__ import annotations

from dpsub.accounting.engine.laplace_pairs import LaplaceCounts, counts_profiles
from dpsub.accounting.engine.privacy_events import DominatedEvent, EnclosedEvent, StatisticEvent
from dpsub.accounting.games.static import Neighbours
from dpsub.accounting.schemes.case import OTHER, AttackChoice, GroupAttack
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw


def exact_event(law: MultiplicityLaw, x: float, y: float) -> EnclosedEvent:
    """Return the event of sum p_l Lap(l x) against sum p_l Lap(l y), y <= 0 < x, which the worst
    data sets attain at every step."""
    weights = _weights(law)
    profiles = counts_profiles(weights, x, y)
    attack = StatisticEvent(LaplaceCounts(weights, x, y))
    return EnclosedEvent(DominatedEvent(lambda tail: profiles, None), (attack,), attained=True)


def attack_among_zeros(law: MultiplicityLaw, relation: Relation, theta: float) -> GroupAttack:
    """Return the attack with l records at C, l of the law given, among zero records."""
    other, most = OTHER[relation], law.log_pmf.size - 1
    attack = StatisticEvent(LaplaceCounts(_weights(law), theta, theta * float(other or 0.0)))
    opposite = {None: "none", 0.0: "0", -1.0: "-C"}[other]
    return GroupAttack(
        (attack,),
        (AttackChoice(Neighbours(1.0, other, 0.0)),),
        f"{most} records C against {opposite} among zero records, all in one step",
    )


def attack_among_fillers(law: MultiplicityLaw, relation: Relation, theta: float) -> GroupAttack:
    """Return the attacks with l records at C, l of the law given, whose places other records, all
    at -C, 0 or C, would have in a sample of fixed size."""
    weights, other = _weights(law), OTHER[relation]
    at = float(other or 0.0)
    fillers = (-1.0, 0.0) if at else (-1.0, 0.0, 1.0)
    places = [(1.0 - filler, at - filler, filler) for filler in fillers]
    laws = [LaplaceCounts(weights, theta * x, theta * y) for x, y, _ in places]
    return GroupAttack(
        tuple(StatisticEvent(law) for law in laws),
        tuple(AttackChoice(Neighbours(1.0, other, filler)) for *_, filler in places),
        f"{law.log_pmf.size - 1} records C against {'-C' if at else '0'} among others that are "
        f"all -C{'' if at else ', C'} or 0",
    )


def _weights(law: MultiplicityLaw) -> tuple[float, ...]:
    return tuple(law.pmf.tolist())

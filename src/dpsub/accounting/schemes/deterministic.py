"""Schedules whose steps are public: of an epoch only one step can hold a record, and all others are
independent of it given the past (docs/proofs/schedules.md, Theorem 17)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsub.accounting.games.static import ANY_N, EpochAttack, Neighbours
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    OTHER,
    Case,
    GroupAttack,
    Theorem,
    covers,
    needs_fixed_denominator,
)
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.accounting.schemes.poisson import poisson_case
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw, log_binomial
from dpsub.sampling.schedules import CyclicPoisson, Deterministic

_PLACES = (
    "both data sets have the same steps per epoch, with the same other records in "
    "each: an added record comes last, and a removed one leaves its place empty"
)
"""Condition on data sets that differ in their number of records, where a record's step follows from
its place."""


@covers(Deterministic, reused=Relation)
def deterministic(release: Release, relation: Relation) -> Case:
    """Return the case of batches in the records' own order: a record is in one public step of every
    epoch."""
    schedule, n = release.sampler, release.n
    assert isinstance(schedule, Deterministic)
    if relation is Relation.ADD_REMOVE:
        # a size that is public is that of both data sets
        needs_fixed_denominator(release, relation)
        if n is not None and schedule.steps_per_epoch(n) != schedule.steps_per_epoch(n + 1):
            raise UnsupportedError(
                f"under add_remove an epoch of {schedule.name} must not gain a step "
                "when a record is added, but it does where m divides n; use zero_out, "
                "which keeps the record's place, or another m"
            )
    plan = (
        "the step of a record within an epoch does not depend on the other records; it may be known"
    )
    # a step of all records has no places
    has_places = schedule.m is not None
    most = schedule.m if has_places else None
    return _once_an_epoch(release, relation, 1.0, plan, n or ANY_N, has_places, most)


@covers(CyclicPoisson, reused=Relation)
def cyclic_poisson(release: Release, relation: Relation) -> Case:
    """Return the case of public groups in turn: a record is in its group's step of every epoch with
    one chance."""
    schedule = release.sampler
    assert isinstance(schedule, CyclicPoisson)
    needs_fixed_denominator(release, relation)
    plan = (
        "the group of a record does not depend on the other records and may be known; "
        "every step draws a new sample from its group, independent of the others and "
        "secret"
    )
    n = max(release.n or ANY_N, schedule.cycle)
    most = None if release.n is None else max(1, release.n // schedule.cycle)
    return _once_an_epoch(release, relation, schedule.rate, plan, n, True, most)


def _once_an_epoch(
    release: Release,
    relation: Relation,
    rate: float,
    plan: str,
    n: int,
    has_places: bool,
    most: int | None,
) -> Case:
    """Return the case of one step per epoch: to a record epochs are as many steps of Poisson
    sampling, for Laplace noise as for Gaussian. A step has room for `most` records, or for all."""
    step = poisson_case(release, relation, rate)
    is_added = relation is Relation.ADD_REMOVE
    plans = (plan, _PLACES) if has_places and is_added else (plan,)
    neighbours = Neighbours(1.0, OTHER[relation], 0.0)
    shifts = (1.0, OTHER[relation] or 0.0)
    return replace(
        step,
        theorem=Theorem("17", "4.2"),
        proved=f"once an epoch {step.proved}, q = {rate:g}",
        conditions=conditions_of(release, relation, plans),
        # an audit's record is the first one, in the first step or in none
        static=lambda: EpochAttack(
            neighbours, (n + is_added, n), shifts, np.array([rate]), release.noise_multiplier
        ),
        papers_pair=None,
        amplification=None,
        group_attack=lambda group: _laplace_in_one_step(
            relation, rate, release.noise_multiplier, group if most is None else min(group, most)
        ),
    )


def _laplace_in_one_step(relation: Relation, rate: float, s: float, group: int) -> GroupAttack:
    """Return the attack with as many records in one step; with Gaussian noise theorems about groups
    have attacks of their own."""
    from dpsub.accounting.schemes.groups.laplace import attack_among_zeros

    law = MultiplicityLaw(log_binomial(np.arange(group + 1), group, rate))
    return attack_among_zeros(law, relation, 1 / s)

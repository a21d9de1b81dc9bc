"""What an epoch of a schedule, or a sample that is no chain of stages, is to the record in which
data sets differ."""

from __future__ import annotations

from typing import NamedTuple

from dpsub.accounting.allocation import allocation_case
from dpsub.accounting.privacy_events import Event
from dpsub.accounting.release import Release
from dpsub.accounting.shuffling import shuffle_case
from dpsub.accounting.truncated import truncated_case
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import Sampler
from dpsub.sampling.schedules import (
    CyclicPoisson,
    Deterministic,
    RandomAllocation,
    Schedule,
    Shuffle,
    TruncatedPoisson,
)

_PLANS: dict[type, str] = {
    RandomAllocation: "each record's k steps of an epoch are drawn afresh, uniformly, "
    "independently of the other "
    "records, and secret",
    Shuffle: "the order of an epoch is drawn afresh, uniformly, and secret",
    Deterministic: "the step of an epoch that a record is in does not depend on the other records; "
    "it may be known",
    CyclicPoisson: "the group of a record does not depend on the other records, and may be known; "
    "samples from a "
    "group are fresh, independent and secret at every step",
    TruncatedPoisson: "samples are fresh, independent and secret at every step; of one above "
    "max_batch all subsets "
    "of that size are alike",
}


_PLACES = (
    "the number of steps of an epoch, and who else is in each, is the same in both data sets: the "
    "record more is the last one, or its place stays empty where it is missing"
)
"""Added where a record's step follows from its place and data sets differ in their number of
records."""


class PlannedCase(NamedTuple):
    """The event of one epoch, or of one sample, and words for it."""

    event: Event
    pair: str
    attack: str
    sensitivity: str


def once_an_epoch(sampler: Sampler | Schedule) -> float | None:
    """The chance of a record to be in the one step of an epoch that can hold it, where that step is
    public and all others are independent of it given the past (docs/accounting.md, Theorem 17);
    None for all other plans."""
    if isinstance(sampler, Deterministic):
        return 1.0
    return sampler.rate if isinstance(sampler, CyclicPoisson) else None


def schedule_case(release: Release, relation: Relation) -> PlannedCase:
    """The case of all others; UnsupportedError, naming the theorem that is missing, if there is
    none."""
    if release.mechanism != "gaussian":
        raise UnsupportedError(
            f"no bound is proved for {release.mechanism} noise on {release.sampler.name}, whose "
            "steps are not independent for a record; use gaussian"
        )
    sampler, s = release.sampler, release.noise_multiplier
    if isinstance(sampler, RandomAllocation):
        return PlannedCase(*allocation_case(sampler.t, sampler.k, relation, s))
    if isinstance(sampler, Shuffle):
        return PlannedCase(*shuffle_case(_records(release), sampler.m, relation, s))
    if isinstance(sampler, TruncatedPoisson):
        return PlannedCase(
            *truncated_case(_records(release), sampler.rate, sampler.max_batch, relation, s)
        )
    raise UnsupportedError(
        f"only chains of stages and schedules can be accounted for, got {type(sampler).__name__}; "
        "describe it as Multistage"
    )


def _records(release: Release) -> int:
    if release.n is None:
        raise ArgumentError(
            f"the number of records n is needed for {release.sampler.name}, got none; give n"
        )
    return release.n


def plan_of(sampler: Sampler | Schedule, relation: Relation) -> tuple[str, ...]:
    """The conditions on how steps are drawn, in place of that on independent samples; none where
    that one holds."""
    plan = _PLANS.get(type(sampler))
    if plan is None:
        return ()
    whole = isinstance(sampler, Deterministic) and sampler.m is None
    placed = once_an_epoch(sampler) is not None and not whole
    return (plan, _PLACES) if placed and relation is Relation.ADD_REMOVE else (plan,)


def check_places(release: Release, relation: Relation) -> None:
    """Refuse epochs whose number of steps tells how many records there are (docs/accounting.md,
    Theorem 17)."""
    sampler, n = release.sampler, release.n
    if not isinstance(sampler, Deterministic) or n is None or relation is not Relation.ADD_REMOVE:
        return
    if sampler.steps_per_epoch(n) != sampler.steps_per_epoch(n + 1):
        raise UnsupportedError(
            f"under add_remove an epoch of {sampler.name} must have as many steps with a record "
            "more, but where m divides n it has one more; use zero_out, under which the record's "
            "place stays, or another m"
        )


def check_denominator(release: Release, relation: Relation) -> None:
    """Refuse a sum that is divided by a size which tells of the record, and noise with it."""
    public = (
        isinstance(release.sampler, Deterministic | Shuffle) and relation is not Relation.ADD_REMOVE
    )
    if release.denominator == "realised" and not public:
        raise UnsupportedError(
            f"no bound covers a step of {release.sampler.name} divided by its realised size under "
            f"{relation}, whose noise then tells how many records were drawn; divide by a fixed "
            "number"
        )

"""Independent draws with public weights: to a record they are draws with replacement at its own
weight, and the heaviest one is told the most of (docs/proofs/chains.md, Theorem 86)."""

from __future__ import annotations

import math
from dataclasses import replace

from dpsub.accounting.games.static import ANY_N
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import (
    Amplification,
    Case,
    Certified,
    Theorem,
    covers,
    covers_groups,
)
from dpsub.accounting.schemes.chains.scheme import chains
from dpsub.accounting.schemes.conditions import conditions_of
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.weighted import WeightedWr

_WEIGHTS = "weights are public, and the same for both data sets"
_OWN_WEIGHTS = (
    "weights are public, and those of the other records keep their ratios where the record is "
    "added: the weight of a record does not depend on the others, as a balance of classes does"
)
_LARGEST = (
    "no record has more than largest_weight of the sum of all weights, in the data set with the "
    "record"
)
_BY_COUNT = {
    Relation.SUBSTITUTE: (Theorem("4", "3.4"), "group lemma at Binomial(m, w)"),
    Relation.ADD_REMOVE: (
        Theorem("9", "3.8"),
        "sum_l p_l N(2 l, s^2) against N(0, s^2), p = Binomial(m, w), both directions",
    ),
    Relation.ZERO_OUT: (
        Theorem("47", "3.9"),
        "distances 2 C and C for each occurrence, p = Binomial(m, w)",
    ),
}
"""The theorem about draws with replacement from which each bound follows, and the bound."""


@covers(WeightedWr, relation=Relation.SUBSTITUTE)
def weighted_draws(release: Release, relation: Relation) -> Case:
    """Return the case of independent draws: each takes the record with its own weight."""
    sampler = release.sampler
    assert isinstance(sampler, WeightedWr)
    is_added = relation is Relation.ADD_REMOVE
    if release.n is not None:
        sampler.check_records(release.n + is_added)
    if is_added and sampler.largest_weight == 1:
        raise ArgumentError(
            "under add_remove the other records must have a weight, too, got largest_weight = 1; "
            "use zero_out"
        )
    # data sets that an audit can draw from
    n = release.n or max(ANY_N, math.ceil(1 / sampler.largest_weight))
    case = chains(replace(release, n=n), relation)
    theorem, proved = _BY_COUNT[relation]
    weights = _OWN_WEIGHTS if is_added else _WEIGHTS
    return replace(
        case,
        theorem=Theorem("86", "4.4"),
        proved=f"{proved}, w the largest weight",
        attained=f"{case.attained}, the record being the heaviest one",
        conditions=(*conditions_of(release, relation), weights, _LARGEST),
        certified=tuple(Certified(event, theorem) for event in case.event.upper_choices),
        papers_pair=None,
        amplification=Amplification(
            missing="no amplification theorem is proved for weighted draws; use dpsub account, "
            "which has another bound"
        ),
    )


@covers_groups(WeightedWr)
def weighted_groups(release: Release, relation: Relation) -> Case:
    """Return the case of several records; each of them may be the heaviest one."""
    from dpsub.accounting.schemes.groups.scheme import by_composition

    sampler = release.sampler
    assert isinstance(sampler, WeightedWr)
    if relation is Relation.ADD_REMOVE:
        raise UnsupportedError(
            "no bound is proved for groups on weighted draws under add_remove, where the largest "
            "weight grows as other records of the unit are removed; use substitute or zero_out"
        )
    if release.records_moved * sampler.largest_weight > 1:
        raise ArgumentError(
            f"a group of {release.records_moved} records may have {sampler.largest_weight:g} of "
            "the weights each only if that is at most 1 in all, got more; give fewer records"
        )
    return by_composition(release, relation, weighted_draws)

"""The conditions of guarantees, in sentences that answers print (docs/proofs/setting.md)."""

from __future__ import annotations

from collections.abc import Sequence

from dpsub.accounting.release import Release
from dpsub.relations import Relation

FRESH = "every step draws a new sample through all stages, independent of the others and secret"
"""The condition on how samples are drawn, where steps are independent."""
_PUBLIC = "the number of records and all sizes or rates are public"
_SAME_SIZES = "all sizes or rates are public, and the same with and without the record"
_SIZES = "the neighbouring data sets have n and n + 1 records"
_GENERAL = (
    "the noise does not depend on the sample or its size",
    FRESH,
    _PUBLIC,
    "real arithmetic and exact sampling are assumed",
)
CONDITIONS = (
    "each record contributes a vector of norm at most C that depends only on that "
    "record and on past releases",
    "the release is the sum over the sample plus N(0, (s C)^2 I), possibly divided by "
    "a number fixed in advance",
    *_GENERAL,
)
"""The conditions of every guarantee for Gaussian noise."""
LAPLACE_CONDITIONS = (
    "the query is scalar: each record contributes a number in [-C, C] that depends "
    "only on that record and on past releases",
    "the release is the sum over the sample plus Laplace noise of scale s C, possibly "
    "divided by a number fixed in advance",
    *_GENERAL,
)
"""The conditions of every guarantee for Laplace noise."""


def conditions_of(
    release: Release,
    relation: Relation,
    plan: Sequence[str] = (FRESH,),
    *,
    depends_on_n: bool = False,
) -> tuple[str, ...]:
    """Return the conditions of a guarantee about one kind of release.

    Parameters
    ----------
    release, relation
    plan : sequence of str
        How the samples are drawn.
    depends_on_n : bool
        Whether the bound for an added record depends on the number of other records.
    """
    conditions: list[str] = []
    for condition in LAPLACE_CONDITIONS if release.mechanism == "laplace" else CONDITIONS:
        if condition == FRESH:
            conditions.extend(plan)
        elif condition == _PUBLIC and relation is Relation.ADD_REMOVE:
            # the number of records is what these data sets differ in
            conditions.append(_SAME_SIZES)
        else:
            conditions.append(condition)
    if depends_on_n and relation is Relation.ADD_REMOVE:
        conditions.append(_SIZES)
    return tuple(conditions)

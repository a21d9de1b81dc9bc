"""Neighbouring relations between data sets."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dpsub import checks


class Relation(StrEnum):
    """Neighbouring relation of data sets.

    One record is added or removed (R in the papers), substituted (S), or replaced by one that
    contributes 0. Under the last two the number of records is public.
    """

    ADD_REMOVE = "add_remove"
    SUBSTITUTE = "substitute"
    ZERO_OUT = "zero_out"


OTHER_NAMES = {
    **dict.fromkeys(
        ("add_or_remove", "add_or_remove_one", "addremove", "unbounded"), Relation.ADD_REMOVE
    ),
    **dict.fromkeys(
        ("replace", "replace_one", "replacement", "substitution", "swap", "bounded"),
        Relation.SUBSTITUTE,
    ),
    **dict.fromkeys(("replace_special", "zeroed_out", "zeroing"), Relation.ZERO_OUT),
}
"""Names of these relations in the literature and in other libraries."""


def relation_named(name: Any) -> Relation:
    """Return the relation of this name, in capitals or with hyphens too, or by another name in use.

    Raises
    ------
    ArgumentError
        If no relation is called so; the message suggests the nearest name.

    Examples
    --------
    >>> relation_named("REPLACE_ONE"), relation_named("zero-out")
    (<Relation.SUBSTITUTE: 'substitute'>, <Relation.ZERO_OUT: 'zero_out'>)
    """
    return Relation(checks.named("adjacency", name, list(Relation), OTHER_NAMES))

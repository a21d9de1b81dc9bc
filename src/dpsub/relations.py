"""Neighbouring relations between data sets."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """Neighbouring relation of data sets.

    One record is added or removed (R in the papers), substituted (S), or replaced by one that
    contributes 0. Under the last two the number of records is public.
    """

    ADD_REMOVE = "add_remove"
    SUBSTITUTE = "substitute"
    ZERO_OUT = "zero_out"

"""Neighbouring relations between data sets."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """When data sets are neighbours: one record is added or removed, or replaced (the papers write
    R and S for these), or replaced by one that contributes 0, with the number of records public."""

    ADD_REMOVE = "add_remove"
    SUBSTITUTE = "substitute"
    ZERO_OUT = "zero_out"

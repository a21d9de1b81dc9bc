"""Neighbouring relations between data sets."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """When data sets are neighbours: one record is added or removed, or replaced (the papers write R and S for
    these)."""
    ADD_REMOVE = "add_remove"
    SUBSTITUTE = "substitute"

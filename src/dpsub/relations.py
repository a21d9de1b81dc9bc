"""Neighbouring relations between data sets."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """When two data sets count as neighbours.  ADD_REMOVE: one record is added or removed; SUBSTITUTE: one record is
    replaced, the size stays. The papers write R and S for them."""
    ADD_REMOVE = "add_remove"
    SUBSTITUTE = "substitute"

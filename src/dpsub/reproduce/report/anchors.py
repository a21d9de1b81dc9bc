"""Addresses within the report: #must, #must/table8, #must/table8/sampler=wor/accuracy, #E3."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from dpsub.reproduce.published import parse_row_key

_PLAIN = "=.,:()+*'"


def of_cell(paper: str, artefact: str, fields: Mapping[str, str], column: str) -> str:
    """Return the address of one cell, without the sign #; safe as an attribute and as a link whatever the names are.

    Parameters
    ----------
    paper, artefact : str
        "must", "table8".
    fields : mapping
        Fields of the row key; empty ones don't count.
    column : str
        The quantity.
    """
    parts = [value if name == "claim" else f"{name}={value}" for name, value in fields.items() if value]
    return "/".join(quote(part, safe=_PLAIN) for part in (paper, artefact, *parts, column))


def of_row(paper: str, artefact: str, row: str, column: str) -> str:
    """Return the address of a cell from its row key as text."""
    return of_cell(paper, artefact, parse_row_key(row), column)


def filtered(**chosen: str) -> str:
    """Return the address of the list of printed numbers, reduced to those that have these properties."""
    return f"numbers?{urlencode(chosen)}"

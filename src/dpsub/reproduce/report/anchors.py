"""Addresses within the report: #must, #must/table8, #must/table8/sampler=wor/accuracy, #E3."""

from __future__ import annotations

from urllib.parse import quote, urlencode

_PLAIN = "=.,:()+*'"


def of_row(paper: str, artefact: str, row: str, column: str) -> str:
    """Return the address of one cell, without the sign #; safe as an attribute and as a link whatever the names are.

    Parameters
    ----------
    paper, artefact : str
        "must", "table8".
    row : str
        The row as `dpsub.reproduce.published.row_text` writes it.
    column : str
        The quantity.
    """
    return "/".join(quote(part, safe=_PLAIN) for part in (paper, artefact, *row.split("; "), column))


def filtered(**chosen: str) -> str:
    """Return the address of the list of printed numbers, reduced to those that have these properties."""
    return f"numbers?{urlencode(chosen)}"

"""Citation of a number of a run: this software at the commit of the run, as BibTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_INDENT = "  "


def bibtex(citation: Mapping[str, Any], version: str, commit: str, date: str) -> str:
    """Return the entry of the software that made a run.

    Parameters
    ----------
    citation : mapping
        What CITATION.cff holds.
    version, commit, date : str
        Of the code that made the run; the date is that of the commit ("2026-11-23").
    """
    fields = {
        "author": _authors(citation["authors"]),
        "title": f"{{{citation['title']}}}",
        "version": version,
        "year": date[:4],
        "note": f"commit {commit}",
        "license": citation.get("license", ""),
        "url": citation.get("repository-code", ""),
    }
    lines = [f"{_INDENT}{name} = {{{text}}}," for name, text in fields.items() if text]
    return "\n".join(["@software{dpsub,", *lines, "}"])


def _authors(authors: Sequence[Mapping[str, str]]) -> str:
    # a name of a group stands in braces: it is no first and last name
    names = [
        f"{{{author['name']}}}"
        if "name" in author
        else f"{author['family-names']}, {author['given-names']}"
        for author in authors
    ]
    return " and ".join(names)

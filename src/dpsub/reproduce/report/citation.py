"""Citation of a number of a run: under which conditions it holds, and this software at the commit
of the run, as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_INDENT = "  "
_CONDITIONS = {
    "epsilon": "ε",
    "delta": "δ",
    "n_compositions": "k",
    "n": "n",
    "m": "m",
    "b": "first stage b",
    "noise_multiplier": "noise multiplier",
}
"""Settings that are conditions of a number about privacy, and their symbols."""
_RELATION = re.compile(r"\b(substitute|add_remove|zero_out)\b")


def conditions(artefact: str, settings: Sequence[Mapping[str, Any]]) -> str:
    """Return what all numbers of an artefact have in common: "ε = 2; k = 1000; n = 30969; m = 300".

    Parameters
    ----------
    artefact : str
        Its name within the paper.
    settings : sequence of mapping
        Those of the experiments behind it; a part that has the name of the artefact is its own. A
        setting that lists values, or differs between experiments, is none of all numbers.
    """
    own = [part[artefact] if isinstance(part.get(artefact), dict) else part for part in settings]
    found = []
    for name, symbol in _CONDITIONS.items():
        given = [part[name] for part in own if name in part]
        if given and not isinstance(given[0], (list, dict)) and all(g == given[0] for g in given):
            found.append(
                f"{symbol} = {given[0]:g}"
                if isinstance(given[0], float)
                else f"{symbol} = {given[0]}"
            )
    return "; ".join(found)


def relation(note: str) -> str:
    """Return the adjacency relation that the note of a cell names; "" if none or several."""
    named = {*_RELATION.findall(note)}
    return named.pop() if len(named) == 1 else ""


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

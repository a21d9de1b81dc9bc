"""Every printed number as one line: ours next to it in every variant, the verdict, what it can be filtered by, and its
address in the page: #must/table8/sampler=wor/accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd

from dpsub.reproduce.artefact import Artefact, printed_rows
from dpsub.reproduce.digits import with_error
from dpsub.reproduce.names import display
from dpsub.reproduce.published import row_texts
from dpsub.reproduce.verdicts import CELL, VARIANTS, overall

MEANINGS = {
    "reproduced": "our number rounds to the printed one",
    "within_error": "as close as Monte Carlo error and rounding allow",
    "holds": "the statement is true of our numbers",
    "reproduced_as_done": "only what was done, not what is stated, gives the printed number",
    "within_error_as_done": "as close as error allows, but only as done",
    "differs": "our number is another one",
    "fails": "the statement is not true of our numbers",
    "reported": "clock times, shown and not judged",
    "used": "a setting of the paper, used here",
    "not_compared": "no comparable number in this run",
    "structure_only": "a figure's property",
    "shown": "values of other variants stand next to it and are not judged",
}
CHECKS = {
    "exact": ("computed number", "does our value round into the printed one's half-unit interval?"),
    "monte_carlo": ("computed number with Monte Carlo error", "do the two agree within both errors and the rounding?"),
    "extreme": ("computed extreme of draws", "does the printed one lie in the interval that the exact law gives?"),
    "real_data": ("computed number on data", "do the two agree within the error over our seeds, on the real data?"),
    "claim": ("statement", "is a predicate, which stands in code, true of our numbers?"),
    "setting": ("setting", "what the paper fixed, compared with the configuration of this run"),
    "timing": ("clock time", "shown side by side, never judged"),
    "structure": ("structure only", "a figure without printed numbers: are the named properties there?"),
}
"""What is done with a printed number of each kind: its name, and the question that is asked."""
GOOD = ("reproduced", "within_error", "holds")
BAD = ("differs", "fails")


def address(paper: str, artefact: str, row: str, column: str) -> str:
    """Return the address of one cell, without the sign #; safe as an attribute and as a link whatever the names are.

    Parameters
    ----------
    paper, artefact : str
        "must", "table8".
    row : str
        As `dpsub.reproduce.published.row_texts` writes it.
    column : str
        The quantity.
    """
    return "/".join(quote(part, safe="=.,:()+*'") for part in (paper, artefact, *row.split("; "), column))


def filtered(**chosen: str) -> str:
    """Return the address of the list of printed numbers, reduced to those that have these properties."""
    return f"numbers?{urlencode(chosen)}"


@dataclass(frozen=True)
class Value:
    """One of our numbers as text, as a number to sort by, and what it is if it is a privacy number."""

    text: str = ""
    order: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Line:
    """One printed number.

    Attributes
    ----------
    cell : str
        The fields of its row key, as they are shown.
    values : mapping
        Ours by variant.
    check : str
        What kind of check it is, the first words of an entry of `CHECKS`.
    verdicts : tuple of str
        The verdict of the cell, and "shown" if values stand next to it that are not judged.
    anchor : str
        Its address in the report.
    """

    paper: str
    artefact: str
    cell: str
    quantity: str
    printed: Value
    values: Mapping[str, Value]
    kind: str
    check: str
    verdict: str
    verdicts: tuple[str, ...]
    errata: tuple[str, ...]
    note: str
    anchor: str
    data: str

    @property
    def place(self) -> str:
        return f"{self.paper}/{self.artefact}"


def cell_verdicts(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return one row a printed number: its key, overall verdict and erratum."""
    rows = [
        {**{name: cell[0][name] for name in (*CELL, "erratum")}, "verdict": _overall(cell)}
        for cell in _cells(comparison)
    ]
    return pd.DataFrame(rows, columns=[*CELL, "verdict", "erratum"])


def lines(
    comparison: pd.DataFrame, artefacts: Iterable[Artefact], data_labels: Mapping[str, str]
) -> list[Line]:
    """Return the printed numbers of a comparison in its order.

    Parameters
    ----------
    comparison : DataFrame
        As in ``results/comparison.csv``.
    artefacts : iterable of Artefact
        They know which numbers are privacy numbers, and of what kind.
    data_labels : mapping
        Label of the data behind an artefact by its identifier; "simulated" where it is not given.
    """
    known = {artefact.identifier: artefact for artefact in artefacts}
    shown = {(name, row): text for name, artefact in known.items() for row, text in _shown(artefact)}
    return [_line(cell, known, shown, data_labels) for cell in _cells(comparison)]


def counts(found: Iterable[Line]) -> dict[str, int]:
    """Return how many lines have each verdict, in the order of `MEANINGS`, without those that none has."""
    every = [line.verdict for line in found]
    return {name: every.count(name) for name in dict.fromkeys([*MEANINGS, *sorted(every)]) if name in every}


def _cells(judged: pd.DataFrame) -> list[list[dict[str, Any]]]:
    """Return the rows of each printed number, one a variant, in the order of the table."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in judged.to_dict("records"):
        found.setdefault(tuple(row[name] for name in CELL), []).append({str(key): row[key] for key in row})
    return list(found.values())


def _shown(artefact: Artefact) -> Iterator[tuple[str, str]]:
    """Yield the rows that the paper prints, each with the words in which its key fields are shown."""
    printed = printed_rows(artefact)
    keys = printed[list(artefact.keys)].drop_duplicates()
    for row, fields in zip(row_texts(keys, artefact.keys), keys.to_dict("records"), strict=True):
        yield row, ", ".join(display(str(name), text, plain=True) for name, text in fields.items() if text)


def _overall(judgements: list[dict[str, Any]]) -> str:
    return overall({row["variant"]: row["verdict"] for row in judgements})


def _line(
    judgements: list[dict[str, Any]], known: Mapping[str, Artefact], shown_rows: Mapping[tuple[str, str], str],
    data_labels: Mapping[str, str],
) -> Line:  # fmt: skip
    key = judgements[0]
    place = f"{key['paper']}/{key['artefact']}"
    artefact = known.get(place)
    verdict = _overall(judgements)
    setting = key["kind"] == "setting"  # chosen by the paper, so it is no number about privacy

    def kind(variant: str) -> str:
        return artefact.number_kind(key["column"], variant) if artefact and not setting else ""

    values = {row["variant"]: _value(row, key["printed"], kind(row["variant"])) for row in judgements}
    notes = [part for row in judgements for part in str(row["note"]).split("; ") if part]
    return Line(
        paper=key["paper"], artefact=key["artefact"], quantity=display("column", key["column"], plain=True),
        cell=shown_rows.get((place, key["row"]), key["row"]),
        printed=Value(key["printed"], _number(key["printed"]), kind("printed")),
        values={name: values[name] for name in VARIANTS if name in values and values[name].text},
        kind=key["kind"], check=CHECKS[key["kind"]][0], verdict=verdict,
        verdicts=(verdict, "shown") if any(row["verdict"] == "shown" for row in judgements) else (verdict,),
        errata=tuple(key["erratum"].split()), note="; ".join(dict.fromkeys(notes)),
        anchor=address(*(key[name] for name in CELL)),
        data=data_labels.get(place, "simulated"),
    )  # fmt: skip


def _value(row: Mapping[str, Any], printed: str, kind: str) -> Value:
    order = "" if math.isnan(row["value"]) else repr(row["value"])
    if row["kind"] == "claim":
        return Value({1.0: "yes", 0.0: "no"}.get(row["value"], ""), order)
    text = with_error(row["value"], math.nan, row["lower"], row["upper"], printed)
    return Value(text, order, kind if text else "")


def _number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return ""

"""Tables for the page: the paper's layout, the printed number above ours, each cell with an address of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
from latex2mathml.converter import convert
from markupsafe import Markup

from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.cells import variants_of
from dpsub.reproduce.digits import usual, with_error
from dpsub.reproduce.layout import Layout, place
from dpsub.reproduce.names import display, variant_name
from dpsub.reproduce.published import key_names, row_texts
from dpsub.reproduce.report.numbers import BAD, YES_OR_NO, address
from dpsub.reproduce.verdicts import AS_DONE

PRINTED = "printed"


class Entry(NamedTuple):
    """What stands at one place of a table.

    Attributes
    ----------
    text : str
        The number, or a formula as MathML.
    kind : str
        What it is if it is a privacy number, a key of `dpsub.reproduce.privacy.KINDS`.
    mark : str
        "differs" or "as_done" where a judged value is not simply the printed one.
    errata : tuple of str
        Behind the mark.
    anchor : str
        Address of the cell, given once a cell.
    """

    text: str = ""
    kind: str = ""
    mark: str = ""
    errata: tuple[str, ...] = ()
    anchor: str = ""


class Row(NamedTuple):
    """One source (printed, as stated, ...) of a line of the paper's table."""

    label: str
    variant: str
    entries: list[Entry]


class Group(NamedTuple):
    """A line of the paper's table: its labels, and a row for each source that has a number."""

    labels: list[str]
    rows: list[Row]


class Block(NamedTuple):
    """One panel of a table."""

    title: str
    stub: list[str]
    heads: list[str]
    groups: list[Group]


def blocks(artefact: Artefact, table: pd.DataFrame) -> list[Block]:
    """Return the panels of a table; claims, which have no layout in the paper, come one a line.

    Parameters
    ----------
    artefact, table : Artefact, DataFrame
        Not a figure, and its cells, as `dpsub.reproduce.report.takeaways.read_cells` returns them.
    """
    layout = Layout(stub=("claim", "column"), heads=()) if artefact.kind == "claims" else artefact.layout
    cells = [{str(name): value for name, value in cell.items()} for cell in table.to_dict("records")]
    usual_form = {str(name): usual(part[PRINTED]) for name, part in table.groupby("column")}
    sources = {PRINTED: PRINTED, **{variant: variant_name(variant) for variant in variants_of(table)}}
    texts = row_texts(table, key_names(table))

    def entry(position: int | None, variant: str, anchored: set[int]) -> Entry:
        cell = {} if position is None else cells[position]
        text = _text(artefact, cell, variant, usual_form) if cell else ""
        if position is None or not text:
            return Entry()
        column, verdict = str(cell["column"]), str(cell["verdict"])
        anchor = "" if position in anchored else address(artefact.paper, artefact.name, texts[position], column)
        anchored.add(position)
        kind = "" if verdict == "used" else artefact.number_kind(column, variant)
        mark = _mark(variant, verdict)
        return Entry(text, kind, mark, tuple(str(cell["erratum"]).split()) if mark else (), anchor)

    def rows(positions: Sequence[int | None]) -> list[Row]:
        anchored: set[int] = set()
        found = [Row(name, variant, [entry(position, variant, anchored) for position in positions])
                 for variant, name in sources.items()]  # fmt: skip
        return [row for row in found if any(entry.text for entry in row.entries)]

    return [
        Block(
            title=", ".join(filter(None, _shown(layout.panels, panel.labels))),
            stub=["quantity" if name == "column" else name.replace("_", " ") for name in layout.stub],
            heads=[" ".join(filter(None, _shown(layout.heads, head))) or "value" for head in panel.heads],
            groups=[Group(_shown(layout.stub, labels), made) for labels, at in panel.lines if (made := rows(at))],
        )
        for panel in place(layout, [{k: v for k, v in cell.items() if isinstance(v, str)} for cell in cells])
    ]


def formula(text: str) -> Markup:
    """Return a formula in LaTeX as MathML, which browsers draw without help."""
    return Markup(convert(text))


def _shown(names: Iterable[str], values: Iterable[str]) -> list[str]:
    return [display(name, value, plain=True) for name, value in zip(names, values, strict=True)]


def _text(artefact: Artefact, cell: dict[str, Any], variant: str, usual_form: dict[str, str]) -> str:
    printed, column = str(cell[PRINTED]), str(cell["column"])
    if variant == PRINTED:
        return formula(printed) if column.endswith("_formula") and printed else printed
    names = (variant, *(f"{variant}_{extra}" for extra in ("standard_error", "lower", "upper")))
    value, error, lower, upper = (float(cell.get(name, math.nan)) for name in names)
    if artefact.kind == "claims" and column == "holds":
        return YES_OR_NO.get(value, "")
    return with_error(value, error, lower, upper, printed or usual_form.get(column, ""))


def _mark(variant: str, verdict: str) -> str:
    if variant == "stated" and (verdict in BAD or verdict.endswith(AS_DONE)):
        return "differs"
    return "as_done" if variant == "as_done" and verdict.endswith(AS_DONE) else ""

"""Tables for the page: the paper's layout, the printed number above ours, each cell with an address of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from latex2mathml.converter import convert
from markupsafe import Markup

from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.cells import variants_of
from dpsub.reproduce.digits import usual, with_error
from dpsub.reproduce.layout import Layout, Panel, place
from dpsub.reproduce.names import display, variant_name
from dpsub.reproduce.published import key_names, row_texts
from dpsub.reproduce.report import anchors
from dpsub.reproduce.report.numbers import BAD
from dpsub.reproduce.verdicts import AS_DONE

PRINTED = "printed"


@dataclass(frozen=True)
class Entry:
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


@dataclass(frozen=True)
class Row:
    """One source (printed, as stated, ...) of a line of the paper's table."""

    label: str
    variant: str
    entries: list[Entry]


@dataclass(frozen=True)
class Group:
    """A line of the paper's table: its labels, and a row for each source that has a number."""

    labels: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class Block:
    """One panel of a table."""

    title: str
    stub: list[str]
    heads: list[str]
    groups: list[Group]


def blocks(artefact: Artefact, cells: pd.DataFrame) -> list[Block]:
    """Return the panels of a table; claims, which have no layout in the paper, come one a line.

    Parameters
    ----------
    artefact : Artefact
        Not a figure.
    cells : DataFrame
        As `dpsub.reproduce.report.takeaways.read_cells` returns them.
    """
    layout = Layout(stub=("claim", "column"), heads=()) if artefact.kind == "claims" else artefact.layout
    writer = _Writer(artefact, cells)
    fields = [{name: value for name, value in cell.items() if isinstance(value, str)} for cell in writer.cells]
    return [_block(layout, panel, writer) for panel in place(layout, fields)]


def _block(layout: Layout, panel: Panel, writer: _Writer) -> Block:
    groups = []
    for labels, positions in panel.lines:
        anchored: set[int] = set()
        rows = []
        for variant in (PRINTED, *writer.variants):
            entries = [writer.entry(position, variant, anchored) for position in positions]
            if any(entry.text for entry in entries):
                rows.append(Row(PRINTED if variant == PRINTED else variant_name(variant), variant, entries))
        if rows:
            groups.append(Group(_shown(layout.stub, labels), rows))
    return Block(
        title=", ".join(filter(None, _shown(layout.panels, panel.labels))),
        stub=["quantity" if name == "column" else name.replace("_", " ") for name in layout.stub],
        heads=[" ".join(filter(None, _shown(layout.heads, head))) or "value" for head in panel.heads],
        groups=groups,
    )


def _shown(names: Iterable[str], values: Iterable[str]) -> list[str]:
    return [display(name, value, plain=True) for name, value in zip(names, values, strict=True)]


class _Writer:
    """The cells of a table as entries."""

    def __init__(self, artefact: Artefact, cells: pd.DataFrame) -> None:
        self.artefact = artefact
        self.variants = variants_of(cells)
        self.cells: list[dict[str, Any]] = [
            {str(name): value for name, value in cell.items()} for cell in cells.to_dict("records")
        ]
        self._rows = row_texts(cells, key_names(cells))
        self._templates = {str(name): usual(part["printed"]) for name, part in cells.groupby("column")}

    def entry(self, position: int | None, variant: str, anchored: set[int]) -> Entry:
        """Return what a cell holds in one variant; its address goes to the first entry that has a text."""
        if position is None:
            return Entry()
        cell = self.cells[position]
        text = self._text(cell, variant)
        if not text:
            return Entry()
        anchor = ""
        if position not in anchored:
            anchored.add(position)
            anchor = anchors.of_row(self.artefact.paper, self.artefact.name, self._rows[position], cell["column"])
        mark = _mark(variant, str(cell["verdict"]))
        errata = tuple(str(cell["erratum"]).split()) if mark else ()
        kind = "" if cell["verdict"] == "used" else self.artefact.number_kind(cell["column"], variant)
        return Entry(text, kind, mark, errata, anchor)

    def _text(self, cell: dict[str, Any], variant: str) -> str:
        printed, column = str(cell["printed"]), str(cell["column"])
        if variant == PRINTED:
            return formula(printed) if column.endswith("_formula") and printed else printed
        names = (variant, *(f"{variant}_{extra}" for extra in ("standard_error", "lower", "upper")))
        value, error, lower, upper = (float(cell.get(name, math.nan)) for name in names)
        if self.artefact.kind == "claims" and column == "holds":
            return {1.0: "yes", 0.0: "no"}.get(value, "")
        return with_error(value, error, lower, upper, printed or self._templates.get(column, ""))


def formula(text: str) -> Markup:
    """Return a formula in LaTeX as MathML, which browsers draw without help."""
    return Markup(convert(text))


def _mark(variant: str, verdict: str) -> str:
    if variant == "stated" and (verdict in BAD or verdict.endswith(AS_DONE)):
        return "differs"
    return "as_done" if variant == "as_done" and verdict.endswith(AS_DONE) else ""

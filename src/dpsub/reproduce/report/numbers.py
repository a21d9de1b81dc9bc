"""Every printed number as one line: ours next to it in every variant, the verdict, the properties
to filter by, and its address in the page: #demo/table1/sampler=wor/accuracy."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pandas as pd
from latex2mathml.converter import convert
from markupsafe import Markup, escape

from dpsub.reproduce import artefacts, published
from dpsub.reproduce.artefact import Artefact, annotated, printed_rows
from dpsub.reproduce.digits import written
from dpsub.reproduce.labels import display, in_symbols, in_words, words
from dpsub.reproduce.layout import (
    PRINTED,
    YES_OR_NO,
    Cell,
    TableBlock,
    blocks,
    cells_of,
    mark,
    number,
    shown,
    stand_ins,
)
from dpsub.reproduce.published import STATEMENTS, row_texts
from dpsub.reproduce.report.citation import relation
from dpsub.reproduce.verdicts import (
    CELL,
    NOT_COMPARED,
    VARIANTS,
    overall,
    overall_by_cell,
    stand_in,
)

MEANINGS = {
    "reproduced": "our number rounds to the printed one",
    "within_error": "as close as Monte Carlo error and rounding allow",
    "holds": "the statement is true of our numbers",
    "proved": "a statement about privacy that certified upper bounds give, in every case that it "
    "is put to",
    "reproduced_as_done": "only what was done, not what is stated, gives the printed number",
    "within_error_as_done": "as close as error allows, but only as done",
    "differs": "our number is another one",
    "fails": "the statement is not true of our numbers",
    "refuted": "a statement about privacy that an attack contradicts, whatever the paper's formula "
    "gives",
    "open": "a statement about privacy that the paper's formula gives, and that is neither proved "
    "nor refuted",
    "reported": "clock times, shown and not judged",
    "used": "a setting of the paper, used here",
    "not_compared": "no comparable number in this run",
    "structure_only": "a figure's property",
    "shown": "values of other variants stand next to it and are not judged",
}
CHECKS = {
    "exact": ("computed number", "does our value round into the printed one's half-unit interval?"),
    "monte_carlo": (
        "computed number with Monte Carlo error",
        "do the two agree within both errors and the rounding?",
    ),
    "extreme": (
        "computed extreme of draws",
        "does the printed one lie in the interval that the exact law gives?",
    ),
    "real_data": (
        "computed number on data",
        "do the two agree within the error over our seeds, on the real data?",
    ),
    "claim": ("statement", "is a predicate, which stands in code, true of our numbers?"),
    "privacy": (
        "statement about privacy",
        "is it proved, or does an attack refute it, whatever the formula gives?",
    ),
    "setting": ("setting", "what the paper fixed, compared with the configuration of this run"),
    "timing": ("clock time", "shown side by side, never judged"),
    "structure": (
        "structure only",
        "a figure without printed numbers: are the named properties there?",
    ),
}
"""Check of each kind of printed number: its name, and its question."""


_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]\d+)?(?= |$)")


def address(paper: str, artefact: str, row: str, column: str) -> str:
    """Return the address of one cell, without the sign #; safe as an attribute and as a link
    whatever the names are.

    `row` is as `dpsub.reproduce.published.row_texts` writes it.
    """
    return "/".join(
        quote(part, safe="=.,:()+*'") for part in (paper, artefact, *row.split("; "), column)
    )


def filtered(**chosen: str) -> str:
    """Return the address of the list of printed numbers, reduced to those that have these
    properties."""
    return f"numbers.html#{urlencode(chosen)}"


class Value(NamedTuple):
    """One of our numbers as text, as a number to sort by, and its kind if it is a privacy
    number."""

    text: str
    order: str
    kind: str

    @property
    def shows_order(self) -> bool:
        """Whether the text begins with the number to sort by, as a browser reads it."""
        begins = _NUMBER.match(self.text)
        return begins is not None and math.isclose(
            float(begins[0]), float(self.order), rel_tol=0.05
        )


@dataclass(frozen=True)
class Line:
    """One printed number, ours by variant, and the properties to filter by."""

    place: str
    """The artefact: "demo/table1"."""
    cell: str
    """The fields of its row key as they are shown."""
    quantity: str
    printed: Value
    values: Mapping[str, Value]
    kind: str
    verdicts: tuple[str, ...]
    """The verdict of the cell, and "shown" if values stand next to it that are not judged."""
    errata: tuple[str, ...]
    note: str
    anchor: str
    """Its address in the report."""
    data: str
    """Label of the data behind it."""

    @property
    def paper(self) -> str:
        return self.place.partition("/")[0]

    @property
    def is_sentence(self) -> bool:
        """Whether it is a statement in words, and not a number that is judged as a number."""
        return (self.kind in STATEMENTS or self.quantity == "holds") and not self.printed.order

    @property
    def name(self) -> str:
        """The printed number, in words that stand alone."""
        if self.is_sentence:
            return self.printed.text
        return f"{self.cell}, {self.quantity}: {self.printed.text}"

    @property
    def check(self) -> str:
        """Kind of its check, the first words of an entry of `CHECKS`."""
        return CHECKS[self.kind][0]

    @property
    def verdict(self) -> str:
        return self.verdicts[0]


def cell_verdicts(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each printed number: its key, overall verdict and erratum."""
    cells = comparison.drop_duplicates(list(CELL))[[*CELL, "erratum"]].reset_index(drop=True)
    # verdicts come in the order of the table, as the cells do
    cells.insert(
        len(CELL), "verdict", pd.Series(list(overall_by_cell(comparison).values()), dtype=object)
    )
    return cells


def of_printed(papers: Iterable[str], judged: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Return the verdict of each number and statement that papers print, in the order of their
    files.

    A number without a verdict in `judged`, a comparison or expected verdicts, is not compared: its
    data cannot be obtained.
    """
    by_cell = overall_by_cell(judged)
    known = set(artefacts.REGISTRY.names())
    verdicts: dict[tuple[str, ...], str] = {}
    for paper in papers:
        for name in published.artefacts(paper):
            # a table without an artefact is quoted next to the numbers of another one
            if f"{paper}/{name}" not in known:
                continue
            cells = published.load(paper, name)
            rows = row_texts(cells, published.key_names(cells))
            for row, column in zip(rows, cells["column"], strict=True):
                cell = (paper, name, row, column)
                verdicts[cell] = by_cell.get(cell, NOT_COMPARED)
    return verdicts


def lines(
    comparison: pd.DataFrame,
    artefacts: Iterable[Artefact],
    data_labels: Mapping[str, str],
    tables: Mapping[str, pd.DataFrame],
) -> list[Line]:
    """Return the printed numbers of a comparison in its order.

    The artefacts know what kind of privacy number each is; `data_labels` are the labels of the data
    behind them by identifier, "simulated" where not given. `tables` are the cells of those that
    have any: a number is written here as it is there. A number from data that stand in for the
    paper's is left out.
    """
    known = {artefact.identifier: artefact for artefact in artefacts}
    words = {(name, row): text for name, artefact in known.items() for row, text in _rows(artefact)}
    texts = {name: _texts(known[name], table) for name, table in tables.items()}
    by_cell: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in comparison.to_dict("records"):
        judged_row = {str(field): value for field, value in row.items()}
        by_cell.setdefault(tuple(judged_row[field] for field in CELL), []).append(judged_row)
    printed_lines = []
    for judged in by_cell.values():
        first = judged[0]
        identifier = f"{first['paper']}/{first['artefact']}"
        # a setting is chosen by the paper, so it is no number about privacy
        artefact = known.get(identifier) if first["kind"] != "setting" else None
        printed_lines.append(
            _line(
                judged,
                artefact,
                cell_words=words.get((identifier, first["row"]), first["row"]),
                data_label=data_labels.get(identifier, "simulated"),
                texts=texts.get(identifier, {}),
            )
        )
    return printed_lines


def _line(
    judged: Sequence[Mapping[str, Any]],
    artefact: Artefact | None,
    cell_words: str,
    data_label: str,
    texts: Mapping[tuple[str, ...], str],
) -> Line:
    """Return one printed number, which a comparison judges in each of its variants."""
    first = judged[0]
    paper, name, row, column = (str(first[field]) for field in CELL)
    # A printed number is what the paper's formula gives: `PRINTED` is no variant that promises
    # anything.
    kind = artefact.number_kind(column, PRINTED) if artefact else ""
    values = {
        str(variant_row["variant"]): _value(variant_row, artefact, texts) for variant_row in judged
    }
    verdict = overall({variant_row["variant"]: variant_row["verdict"] for variant_row in judged})
    is_shown = any(variant_row["verdict"] == "shown" for variant_row in judged)
    parts = [
        part for variant_row in judged for part in str(variant_row["note"]).split("; ") if part
    ]
    notes = dict.fromkeys(parts)  # each once, in their order
    labels = [stand_in(variant_row["note"]) for variant_row in judged]
    other_data = next(filter(None, labels), "")
    return Line(
        place=f"{paper}/{name}",
        cell=cell_words,
        quantity=display("column", column, plain=True),
        printed=Value(in_words(shown(first["printed"])), _order_of(first["printed"]), kind),
        values={
            variant: values[variant]
            for variant in VARIANTS
            if variant in values and values[variant].text
        },
        kind=first["kind"],
        errata=tuple(first["erratum"].split()),
        note=in_symbols(in_words("; ".join(notes))),
        verdicts=(verdict, "shown") if is_shown else (verdict,),
        anchor=address(paper, name, row, column),
        # a stand-in that a note names goes before the label of the whole table
        data=other_data
        or ("real" if first["kind"] == "real_data" else _real_or_simulated(data_label)),
    )


def _order_of(printed: str) -> str:
    """Return a printed number as one to sort by, "" for a text."""
    number = pd.to_numeric(printed, errors="coerce")
    return "" if math.isnan(number) else f"{number:.9g}"


def _real_or_simulated(label: str) -> str:
    return label if label == "real" else "simulated"


def counts(found: Iterable[Line]) -> dict[str, int]:
    """Return the number of lines with each verdict, in the order of `MEANINGS`, without verdicts
    that no line has."""
    by_verdict = Counter(line.verdict for line in found)
    names = dict.fromkeys([*MEANINGS, *sorted(by_verdict)])
    return {name: by_verdict[name] for name in names if name in by_verdict}


def _rows(artefact: Artefact) -> Iterator[tuple[str, str]]:
    """Yield the rows that the paper prints, each with the words in which its key fields are
    shown."""
    printed = printed_rows(artefact).drop_duplicates(list(artefact.keys))
    keys = printed[list(artefact.keys)]
    rows = row_texts(keys, artefact.keys)
    for row, note, fields in zip(rows, printed["note"], keys.to_dict("records"), strict=True):
        if artefact.kind == "claims" and fields["claim"] not in words():
            # The name of a claim is for programs; a reader knows it by its place in the paper.
            yield row, str(note).partition(":")[0]
            continue
        keys_shown = [display(str(name), text, plain=True) for name, text in fields.items() if text]
        yield row, ", ".join(keys_shown)


def _texts(artefact: Artefact, table: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Return the text of each of our numbers in a table, by row, quantity and variant."""
    return {
        (cell["row"], cell["column"], variant): number(cell, variant)
        for cell in cells_of(annotated(artefact, table, printed_rows(artefact)))
        for variant in VARIANTS
    }


def _value(
    row: Mapping[str, Any], artefact: Artefact | None, texts: Mapping[tuple[str, ...], str]
) -> Value:
    """Return our number of one variant; it is empty where other data stand in for the paper's."""
    if stand_in(row["note"]):
        return Value("", "", "")
    # Sorted by the full number; what is shown is rounded.
    order = "" if math.isnan(row["value"]) else f"{row['value']:.9g}"
    if row["kind"] in STATEMENTS:
        return Value(YES_OR_NO.get(row["value"], ""), order, "")
    kind = artefact.number_kind(row["column"], row["variant"]) if artefact else ""
    text = texts.get((row["row"], row["column"], row["variant"]), "")
    # a number outside of tables, such as one of a figure, has the digits of the printed one
    if not text:
        # a printed 0 shows nothing of how many digits ours should have
        form = row["printed"] if row["printed"].strip("+-0") else ""
        text = written(row["value"], form, lower=row["lower"], upper=row["upper"], side=kind)
    return Value(text, order, kind if text else "")


class Entry(NamedTuple):
    """Entry at one place of a table: number or formula, the kind of a privacy number, a key of
    `SIGNS` with errata, and the address of its cell, given once for each printed number."""

    text: str
    kind: str
    mark: str
    errata: list[str]
    anchor: str
    relation: str
    """The adjacency relation of a privacy number, where the note of its cell names it."""


def blocks_of(artefact: Artefact, table: pd.DataFrame) -> list[TableBlock]:
    """Return the panels of a table of cells."""
    anchored = set()

    def write(cell: Cell, source: str) -> Entry | None:
        column = cell["column"]
        if source != PRINTED:
            text = number(cell, source)
        elif column.endswith("_formula") and cell[PRINTED]:
            text = formula(cell[PRINTED])
        else:
            text = "" if stand_ins(cell) else shown(cell[PRINTED])
        if not text:
            return None
        sign = mark(cell, source)
        # an anchor must be unique on the page, and a cell has a line for each variant
        anchor = address(artefact.paper, artefact.name, cell["row"], column)
        is_first = cell[PRINTED] and anchor not in anchored
        anchored.add(anchor)
        kind = "" if cell["verdict"] == "used" else artefact.number_kind(column, source)
        return Entry(
            text=text,
            kind=kind,
            mark=sign,
            errata=cell["erratum"].split() if sign in ("refuted", "differs", "as_done") else [],
            anchor=anchor if is_first else "",
            relation=relation(cell["note"]) if kind else "",
        )

    cells = annotated(artefact, table, printed_rows(artefact))
    return blocks(artefact.layout, cells, partial(display, plain=True), write)


def formula(text: str) -> Markup:
    """Return a formula in LaTeX as MathML, which browsers draw without help."""
    return Markup(convert(text))


def unbroken(text: str) -> Markup:
    """Return a number or a formula whose lines end before an error or an interval, and nowhere
    else."""
    # A space inside a tag is no text: a no-break space there would break the tag.
    parts = re.split(r"(<[^>]*>)", escape(text))
    words = (
        part if at % 2 else re.sub(r" (?![±\[])", "\u00a0", part) for at, part in enumerate(parts)
    )
    return Markup("".join(words))

"""Tables for readers: the placement of cells as in the paper, in Markdown and LaTeX, printed
numbers above ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from dpsub.reproduce.digits import as_printed, form_of, written
from dpsub.reproduce.labels import (
    VARIANT_LABELS,
    display,
    escape_latex,
    escape_markdown,
    in_symbols,
)
from dpsub.reproduce.published import STATEMENTS, key_names, row_text
from dpsub.reproduce.verdicts import AS_DONE, FAILING, VARIANTS, overall_by_cell, spoken

EXTRAS = ("standard_error", "lower", "upper")
PRINTED = "printed"
SOURCES = {PRINTED: PRINTED, **VARIANT_LABELS}
"""Lines of a table, one above the other, with their names."""
YES_OR_NO = {1.0: "yes", 0.0: "no"}
SIGNS = {"refuted": "✗", "differs": "≠", "as_done": "≈", "stand_in": "†"}
LEGENDS = {
    "refuted": "an attack attains more than this printed bound",
    "differs": "differs from the printed number",
    "as_done": "agrees only as done",
    "stand_in": "from other data than the paper's ({}), so that no printed number stands next to "
    "it",
}
# shrink wide tables to the text width
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def table_cells(
    keys: Sequence[str],
    printed: pd.DataFrame,
    values: pd.DataFrame,
    comparison: pd.DataFrame,
    formulas: pd.DataFrame | None = None,
    quoted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the cells of a table, one per row.

    `formulas`, in LaTeX, and numbers `quoted` from elsewhere stand where a printed number would:
    keys, `column`, `printed`.

    Returns
    -------
    DataFrame
        Columns: those of `keys` that occur, `column`, `printed`, then for each variant that has
        values `<variant>`, and `<variant>_standard_error`, `<variant>_lower`, `<variant>_upper`
        where any is given, then `verdict`, `erratum`, `note`. Cells stand in the order of
        `formulas`, `values`, then those that only the paper has.
    """
    cell_columns = [*keys, "column"]
    # Of two texts for one cell the first counts: what is printed in this very table.
    theirs = [frame for frame in (printed, quoted, formulas) if frame is not None and len(frame)]
    texts = pd.concat([pd.DataFrame(columns=[*cell_columns, PRINTED, "erratum"]), *theirs])
    texts = texts[[*cell_columns, PRINTED, "erratum"]].fillna("").drop_duplicates(cell_columns)
    first = [] if formulas is None else [formulas]
    # Our order decides, as it is the order of the printed table; what only the paper has comes
    # last.
    cells = (
        pd.concat([*first, values, texts])
        .reindex(columns=cell_columns)
        .fillna("")
        .drop_duplicates()
    )
    cells = cells.merge(texts, "left", cell_columns).fillna("")
    for name in (name for name in VARIANTS if (values["variant"] == name).any()):
        numbers = values.loc[values["variant"] == name, [*cell_columns, "value", *EXTRAS]]
        # A variant without errors or intervals has no empty columns for them.
        given = [extra for extra in EXTRAS if numbers[extra].notna().any()]
        names = {"value": name, **{extra: f"{name}_{extra}" for extra in given}}
        cells = cells.merge(
            numbers[[*cell_columns, *names]].rename(columns=names), "left", cell_columns
        )
    judged = overall_by_cell(comparison, cell_columns)
    cell_keys = list(cells[cell_columns].itertuples(index=False, name=None))
    cells["verdict"] = [judged.get(cell, "") for cell in cell_keys]
    cells["erratum"] = cells.pop("erratum")  # behind the verdict
    notes: dict[tuple[str, ...], list[str]] = {}
    for frame in (values, comparison):
        for *cell, note in frame[[*cell_columns, "note"]].itertuples(index=False, name=None):
            if pd.notna(note):
                notes.setdefault(tuple(cell), []).extend(str(note).split("; "))
    # the notes of values are among those of the comparison: each is said once
    cells["note"] = [
        "; ".join(dict.fromkeys(filter(None, notes.get(cell, [])))) for cell in cell_keys
    ]
    return cells.drop(columns=[key for key in keys if (cells[key] == "").all()])


@dataclass(frozen=True)
class Layout:
    """Placement of the cells of a table by fields of the row key, or "column" for the name of the
    quantity."""

    panels: tuple[str, ...] = ()
    """Each combination of these fields is a block of its own."""
    stub: tuple[str, ...] = ("sampler",)
    """These label the lines of a block."""
    heads: tuple[str, ...] = ("column",)
    """These label its columns."""
    first: tuple[str, ...] = ()
    """Quantities whose columns stand first; the others follow as they come."""
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Title -> quantities that stand in a block of their own, in this order; the last block has all
    other quantities."""


Cell = Mapping[str, Any]
Labels = tuple[str, ...]
Write = Callable[[Cell, str], Any]
"""Returns the entry for a cell and a source (`SOURCES`); a false value stands for none."""


class Row(NamedTuple):
    """One source (printed, as stated, ...) of a line of the paper's table, with an entry, or None,
    a column."""

    source: str
    entries: list[Any]


class LineGroup(NamedTuple):
    """A line of the paper's table: its labels, and a row for each source that has an entry."""

    labels: list[str]
    rows: list[Row]


class TableBlock(NamedTuple):
    """One panel of a table: its title, the fields that label its lines, the labels of its columns,
    and its lines."""

    title: str
    stub: tuple[str, ...]
    heads: list[str]
    groups: list[LineGroup]


def cells_of(table: pd.DataFrame) -> list[Cell]:
    """Return cells as records; `row` is the text of the key, `form` a number in whose form ours are
    shown."""
    keys = key_names(table)
    forms = dict[str, str]()
    for name, part in table.groupby("column"):
        numbers = part[[variant for variant in VARIANTS if variant in part]]
        forms[str(name)] = form_of(part[PRINTED], numbers.to_numpy().ravel())
    cells = list[Cell]()
    for record in table.to_dict("records"):
        cell = {str(name): value for name, value in record.items()}
        cell["row"] = row_text({key: cell[key] for key in keys})
        # a printed 0 does not say how many digits ours should have: the column's others do
        printed = cell[PRINTED]
        cell["form"] = printed if printed.strip("+-0") else forms[cell["column"]]
        cells.append(cell)
    return cells


def sources_of(table: pd.DataFrame) -> list[str]:
    """Return the sources that have a column in a table of cells."""
    return [name for name in SOURCES if name in table.columns]


def blocks(
    layout: Layout, table: pd.DataFrame, show: Callable[[str, str], str], write: Write
) -> list[TableBlock]:
    """Return the panels of a table in the order in which their labels first appear.

    `show` gives the words for a field and its value, `write` an entry.
    """

    def shown(names: Iterable[str], values: Iterable[str]) -> list[str]:
        return [show(name, value) for name, value in zip(names, values, strict=True)]

    # panel -> its heads, a dictionary as an ordered set, and line -> head -> cell
    panels: dict[Labels, tuple[dict[Labels, None], dict[Labels, dict[Labels, Cell]]]] = {}
    for cell in cells_of(table):
        panel, line, head = (
            tuple(cell.get(name, "") for name in names)
            for names in (layout.panels, layout.stub, layout.heads)
        )
        heads_of_panel, lines_of_panel = panels.setdefault(panel, ({}, {}))
        heads_of_panel.setdefault(head)
        lines_of_panel.setdefault(line, {})[head] = cell
    made = []
    for panel, (heads_of_panel, lines_of_panel) in panels.items():
        for part, heads in _parts(layout, heads_of_panel):
            groups = []
            for line, cells in lines_of_panel.items():
                rows = []
                for source in sources_of(table):
                    entries = [
                        write(cells[head], source) if head in cells else None for head in heads
                    ]
                    # A source without an entry in this line is no row: most tables have one or
                    # two of five.
                    if any(entries):
                        rows.append(Row(source, entries))
                if rows:
                    groups.append(LineGroup(shown(layout.stub, line), rows))
            title = ", ".join(filter(None, [*shown(layout.panels, panel), part]))
            titles = [" ".join(filter(None, shown(layout.heads, head))) for head in heads]
            made.append(TableBlock(title, layout.stub, titles, groups))
    return made


def _parts(layout: Layout, heads: Iterable[Labels]) -> list[tuple[str, list[Labels]]]:
    """Return the blocks into which a panel is split, with their heads: one if nothing stands
    apart."""
    # A stable sort: within both groups heads keep the order in which they appear.
    rest = sorted(heads, key=lambda head: not set(head) & set(layout.first))
    parts = []
    for title, quantities in layout.apart.items():
        own = [head for name in quantities for head in rest if name in head]
        rest = [head for head in rest if head not in own]
        parts.append((title, own))
    return [(title, own) for title, own in [*parts, ("", rest)] if own]


def number(cell: Cell, variant: str) -> str:
    """Return our number with its error as far as it is known, "yes" or "no" where it answers a
    claim."""
    value, error, lower, upper = (
        float(cell.get(name, "nan"))
        for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))
    )
    # Statements have no digits; NaN is an open one.
    if cell.get("printed_kind") in STATEMENTS:
        return YES_OR_NO.get(value, "")
    side = cell.get(f"{variant}_side", "")
    return written(value, cell["form"], error=error, lower=lower, upper=upper, side=side)


def stand_ins(cell: Cell) -> list[str]:
    """Return the labels of data that stand in for the paper's behind our numbers."""
    return [cell[name] for variant in VARIANTS if cell.get(name := f"{variant}_data")]


def mark(cell: Cell, variant: str) -> str:
    """Return a key of `SIGNS` where a value of ours is not simply the printed one, or where that
    one is refuted."""
    verdict = str(cell["verdict"])
    if variant == PRINTED:
        return "refuted" if cell.get("refuted") and not stand_ins(cell) else ""
    if cell.get(f"{variant}_data"):
        return "stand_in"
    # A number that agrees only as done differs as stated: each variant has its own sign.
    if variant == "stated" and (verdict in FAILING or verdict.endswith(AS_DONE)):
        return "differs"
    return "as_done" if variant == "as_done" and verdict.endswith(AS_DONE) else ""


def legend(table: pd.DataFrame) -> str:
    """Return the meaning of the signs in a table, "" if none stands there."""
    cells = cells_of(table)
    marks = {mark(cell, variant) for cell in cells for variant in VARIANTS if number(cell, variant)}
    marks |= {mark(cell, PRINTED) for cell in cells}
    labels = ", ".join(sorted({label for cell in cells for label in stand_ins(cell)}))
    meanings = []
    for name, words in LEGENDS.items():
        if name in marks:
            meanings.append(f"{SIGNS[name]} {words.format(labels)}")
    return "; ".join(meanings)


def markdown(caption: str, layout: Layout | None, cells: pd.DataFrame) -> str:
    """Return a table in Markdown, in the given layout or one line for each cell."""
    lines = [escape_markdown(caption), ""]
    if layout is None:
        heads, listed = _listed(cells, latex=False)
        notes = [escape_markdown(in_symbols(str(note))) for note in cells["note"]]
        lines += [_row([*heads, "note"]), _row(["---"] * (len(heads) + 1))]
        lines += [_row([*line, note]) for line, note in zip(listed, notes, strict=True)]
        return "\n".join([*lines, ""])
    for block in blocks(layout, cells, display, _writer(latex=False)):
        if block.title:
            lines += [f"**{block.title}**", ""]
        heads = [*_stub(block, latex=False), *block.heads]
        lines += [_row(heads), _row(["---"] * len(heads))]
        lines += [_row(line) for group in block.groups for line in _lines(group)]
        lines.append("")
    signs = legend(cells)
    return "\n".join([*lines, f"{signs}.", ""] if signs else lines)


def latex(caption: str, layout: Layout | None, cells: pd.DataFrame) -> str:
    """Return a table in LaTeX, in the given layout or as a long list; packages booktabs, graphicx,
    longtable."""
    if layout is None:
        return _long_latex(rf"\caption{{{escape_latex(caption)}}}", cells)
    signs = legend(cells)
    words = escape_latex(f"{caption} {signs}." if signs else caption)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{words}}}"]
    for block in blocks(layout, cells, partial(display, latex=True), _writer(latex=True)):
        if block.title:
            lines += [rf"\par\medskip\textit{{{block.title}}}\par\smallskip"]
        stub = _stub(block, latex=True)
        lines += [FIT, rf"\begin{{tabular}}{{{'l' * len(stub) + 'r' * len(block.heads)}}}"]
        lines += [r"\toprule", _line([*stub, *block.heads]), r"\midrule"]
        for position, group in enumerate(block.groups):
            lines += [r"\addlinespace"] if position else []
            lines += [_line(line) for line in _lines(group)]
        lines += [r"\bottomrule", r"\end{tabular}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _long_latex(caption: str, cells: pd.DataFrame) -> str:
    heads, listed = _listed(cells, latex=True)
    # A tenth of the line is left for the gaps between columns.
    width = round(0.9 / len(heads), 3)
    columns = rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}" * len(heads)
    lines = [r"{\footnotesize", rf"\begin{{longtable}}{{{columns}}}", rf"{caption}\\", r"\toprule"]
    lines += [_line(heads), r"\midrule", r"\endhead", *(_line(line) for line in listed)]
    return "\n".join([*lines, r"\bottomrule", r"\end{longtable}}", ""])


def _listed(cells: pd.DataFrame, *, latex: bool) -> tuple[list[str], list[list[str]]]:
    """Return the heads and lines of a list: one line for each cell, printed and ours side by side,
    then the verdict.

    A number of ours from a stand-in for the paper's data is left out: the list is one of printed
    numbers.
    """
    fields, sources, write = key_names(cells), sources_of(cells), _writer(latex=latex, listed=True)
    escape = escape_latex if latex else escape_markdown
    lines = []
    for cell in cells_of(cells):
        verdict = " ".join(filter(None, (spoken(cell["verdict"]), cell["erratum"])))
        labels = [display(name, cell[name], latex=latex) for name in (*fields, "column")]
        numbers = [write(cell, source) for source in sources]
        lines.append([*labels, *numbers, escape(verdict)])
    names = [field.replace("_", " ") for field in fields]
    return [*names, "quantity", *(SOURCES[source] for source in sources), "verdict"], lines


def _stub(block: TableBlock, *, latex: bool) -> list[str]:
    escape = escape_latex if latex else escape_markdown
    names = ["" if name == "column" else escape(name.replace("_", " ")) for name in block.stub]
    return [*names, ""]  # the last one stands over the sources


def _lines(group: LineGroup) -> Iterable[list[str]]:
    for position, row in enumerate(group.rows):
        labels = group.labels if position == 0 else [""] * len(group.labels)
        yield [*labels, SOURCES[row.source], *(entry or "" for entry in row.entries)]


def shown(printed: str) -> str:
    """Return a printed number or statement in the symbols of the field."""
    return in_symbols(as_printed(printed))


def _writer(*, latex: bool, listed: bool = False) -> Write:
    escape = escape_latex if latex else escape_markdown

    def write(cell: Cell, source: str) -> str:
        # Formulas come as LaTeX, which is not to be escaped.
        if source == PRINTED and cell["column"].endswith("_formula"):
            return f"${cell[PRINTED]}$"
        # In a list the verdict stands in a column of its own, so that signs would say it twice.
        sign = mark(cell, source)
        if source == PRINTED:
            text = "" if stand_ins(cell) and not listed else shown(cell[PRINTED])
            if sign and not listed:
                text = " ".join(filter(None, (text, SIGNS[sign], cell["erratum"])))
            return escape(text)
        text = number(cell, source)
        if listed:
            return "" if sign == "stand_in" else escape(text)
        if text and sign:
            # an erratum explains why a number differs from the printed one, not other data
            erratum = "" if sign == "stand_in" else cell["erratum"]
            text = " ".join(filter(None, (text, SIGNS[sign], erratum)))
        return escape(text) if latex else text

    return write


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"

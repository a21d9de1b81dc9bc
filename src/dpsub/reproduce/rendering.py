"""Tables as Markdown and LaTeX: the paper's layout, the printed number above ours in every cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from dpsub.reproduce.cells import variants_of
from dpsub.reproduce.digits import usual, with_error
from dpsub.reproduce.layout import Layout, Panel, place
from dpsub.reproduce.names import display, escape_latex, escape_markdown, variant_name
from dpsub.reproduce.published import key_names
from dpsub.reproduce.verdicts import AS_DONE

LEGEND = "≠ differs from the printed number; ≈ agrees only as done."
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # shrink wide tables to the text width
Writer = Callable[[int | None, str], str]
_BAD = ("differs", "fails")


@dataclass(frozen=True)
class Block:
    """A panel as text: its title, column heads, and groups of lines, one group a line of the printed table."""

    title: str
    heads: list[str]
    groups: list[list[list[str]]]


def markdown(caption: str, layout: Layout | None, cells: pd.DataFrame, data_label: str = "") -> str:
    """Return a table in Markdown, in the given layout or as a list; `data_label` stands above it if not empty."""
    lines = [f"**{escape_markdown(data_label)} data**", ""] if data_label else []
    lines += [escape_markdown(caption), ""]
    if layout is None:
        return "\n".join([*lines, listing(cells, notes=True)])
    for block in _blocks(layout, cells, latex=False):
        if block.title:
            lines += [f"**{block.title}**", ""]
        lines.append(_row(block.heads))
        lines.append(_row(["---"] * len(block.heads)))
        lines += [_row(line) for group in block.groups for line in group]
        lines.append("")
    return "\n".join([*lines, LEGEND, ""])


def latex(caption: str, layout: Layout | None, cells: pd.DataFrame, data_label: str = "") -> str:
    """Return a table in LaTeX, in the given layout or as a long list; packages booktabs, graphicx, longtable."""
    note = f" \\textbf{{{escape_latex(data_label)} data.}}" if data_label else ""
    if layout is None:
        return _long_latex(rf"\caption{{{escape_latex(caption)}{note}}}", cells)
    legend = r"$\neq$ differs from the printed number; $\approx$ agrees only as done."
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(caption)} {legend}{note}}}"]
    for block in _blocks(layout, cells, latex=True):
        if block.title:
            lines += [rf"\par\medskip\textit{{{block.title}}}\par\smallskip"]
        columns = "l" * (len(layout.stub) + 1) + "r" * (len(block.heads) - len(layout.stub) - 1)
        lines += [FIT, rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\toprule", _line(block.heads), r"\midrule"]
        for position, group in enumerate(block.groups):
            lines += [r"\addlinespace"] if position else []
            lines += [_line(line) for line in group]
        lines += [r"\bottomrule", r"\end{tabular}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def listing(cells: pd.DataFrame, *, notes: bool = False) -> str:
    """Return cells as a compact table in Markdown: one line a cell, printed and ours side by side, then the verdict."""
    heads = [*_list_heads(cells), *(["note"] if notes else [])]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for line, note in zip(_listed(cells, latex=False), cells["note"], strict=True):
        lines.append(_row([*line, *([escape_markdown(str(note))] if notes else [])]))
    return "\n".join([*lines, ""])


def _long_latex(caption: str, cells: pd.DataFrame) -> str:
    heads = _list_heads(cells)
    width = round(0.9 / len(heads), 3)
    columns = rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}" * len(heads)
    lines = [r"{\footnotesize", rf"\begin{{longtable}}{{{columns}}}", rf"{caption}\\", r"\toprule"]
    lines += [_line(heads), r"\midrule", r"\endhead", *(_line(line) for line in _listed(cells, latex=True))]
    return "\n".join([*lines, r"\bottomrule", r"\end{longtable}}", ""])


def _list_heads(cells: pd.DataFrame) -> list[str]:
    fields = [field.replace("_", " ") for field in key_names(cells)]
    return [*fields, "quantity", "printed", *map(variant_name, variants_of(cells)), "verdict"]


def _listed(cells: pd.DataFrame, *, latex: bool) -> list[list[str]]:
    records, write = _writer(cells, latex=latex, marks=False)
    escape = escape_latex if latex else escape_markdown
    fields, variants = key_names(cells), variants_of(cells)
    lines = []
    for position, cell in enumerate(records):
        shown = [display(name, str(cell[name]), latex=latex) for name in (*fields, "column")]
        numbers = [write(position, name) for name in ("printed", *variants)]
        verdict = escape(" ".join(filter(None, (str(cell["verdict"]).replace("_", " "), str(cell["erratum"])))))
        lines.append([*shown, *numbers, verdict])
    return lines


def _blocks(layout: Layout, cells: pd.DataFrame, *, latex: bool) -> list[Block]:
    records, write = _writer(cells, latex=latex, marks=True)
    fields = [{name: value for name, value in cell.items() if isinstance(value, str)} for cell in records]
    return [_block(layout, panel, write, variants_of(cells), latex=latex) for panel in place(layout, fields)]


def _block(
    layout: Layout, panel: Panel, write: Writer, variants: list[str], *, latex: bool
) -> Block:
    def named(names: tuple[str, ...], values: tuple[str, ...]) -> list[str]:
        return [display(name, value, latex=latex) for name, value in zip(names, values, strict=True)]

    title = ", ".join(text for text in named(layout.panels, panel.labels) if text)
    escape = escape_latex if latex else escape_markdown
    stub = ["" if name == "column" else escape(name.replace("_", " ")) for name in layout.stub]
    heads = [*stub, "", *(" ".join(filter(None, named(layout.heads, head))) for head in panel.heads)]
    groups = []
    for labels, positions in panel.lines:
        lines = [["printed", *(write(position, "printed") for position in positions)]]
        lines += [[variant_name(name), *(write(position, name) for position in positions)] for name in variants]
        kept = [line for line in lines if any(line[1:])]
        names = named(layout.stub, labels)
        groups.append([[*(names if first == 0 else [""] * len(names)), *line] for first, line in enumerate(kept)])
    return Block(title, heads, [group for group in groups if group])


def _writer(cells: pd.DataFrame, *, latex: bool, marks: bool) -> tuple[list[dict[str, object]], Writer]:
    """Return the cells as plain records, and what turns (position, source) into the text of a cell."""
    records = [{str(name): value for name, value in cell.items()} for cell in cells.to_dict("records")]
    templates = {str(name): usual(part["printed"]) for name, part in cells.groupby("column")}

    def write(position: int | None, source: str) -> str:
        if position is None:
            return ""
        cell = records[position]
        printed, column = str(cell["printed"]), str(cell["column"])
        if source == "printed":
            if column.endswith("_formula"):
                return f"${printed}$"
            return escape_latex(printed) if latex else escape_markdown(printed)
        value, error, lower, upper = (
            float(str(cell.get(f"{source}{extra}", "nan")))
            for extra in ("", "_standard_error", "_lower", "_upper")
        )
        text = with_error(value, error, lower, upper, printed or templates.get(column, ""))
        if marks and text and cell.get("verdict"):
            text += _mark(source, str(cell["verdict"]), str(cell["erratum"]))
        return text.replace("±", r"$\pm$").replace("≠", r"$\neq$").replace("≈", r"$\approx$") if latex else text

    return records, write


def _mark(variant: str, verdict: str, erratum: str) -> str:
    """Return the sign behind a judged value, with the numbers of its errata."""
    reason = f" {erratum}" if erratum else ""
    if variant == "stated" and (verdict in _BAD or verdict.endswith(AS_DONE)):
        return f" ≠{reason}"
    if variant == "as_done" and verdict.endswith(AS_DONE):
        return f" ≈{reason}"
    return ""


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"

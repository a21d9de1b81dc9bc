"""Where the values of a table stand: which fields of the row key go down, which go across, which start a new block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Placement of the cells of a table.

    Parameters
    ----------
    panels, stub, heads : tuple of str
        Fields of the row key, or "column" for the name of the quantity: each combination of the `panels` fields is a
        block of its own, the `stub` fields label its lines, the `heads` fields its columns.
    first : tuple of str
        Quantities whose columns stand first; the others follow as they come.
    """

    panels: tuple[str, ...] = ()
    stub: tuple[str, ...] = ("sampler",)
    heads: tuple[str, ...] = ("column",)
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One block of a table: labels of its lines and columns, and the cell at each crossing (None: no cell there)."""

    labels: tuple[str, ...]
    heads: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[tuple[str, ...], tuple[int | None, ...]], ...]


def place(layout: Layout, cells: Iterable[dict[str, str]]) -> tuple[Panel, ...]:
    """Return the blocks of a table in the order in which their labels first appear.

    Parameters
    ----------
    layout : Layout
        What goes where.
    cells : iterable of dict
        Fields of each cell, with its quantity under "column".

    Returns
    -------
    tuple of Panel
        Cells are given by their position in `cells`.
    """
    panels: dict[tuple[str, ...], dict[str, dict]] = {}
    for position, fields in enumerate(cells):
        panel_key, line_key, head_key = (
            tuple(fields.get(name, "") for name in names) for names in (layout.panels, layout.stub, layout.heads)
        )
        panel = panels.setdefault(panel_key, {"heads": {}, "lines": {}})
        panel["heads"].setdefault(head_key)
        panel["lines"].setdefault(line_key, {})[head_key] = position
    placed = []
    for labels, panel in panels.items():
        heads = tuple(sorted(panel["heads"], key=lambda head: not set(head) & set(layout.first)))
        lines = tuple((line, tuple(found.get(head) for head in heads)) for line, found in panel["lines"].items())
        placed.append(Panel(labels, heads, lines))
    return tuple(placed)

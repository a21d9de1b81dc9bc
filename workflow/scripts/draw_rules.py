"""Draw the graph of rules of a run, as Snakemake writes it: a column for each stage of the study.

snakemake --rulegraph dot | python workflow/scripts/draw_rules.py rules.svg
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Line

STAGES = {
    "prepare": (0, "#DDDDDD", "#888888"),
    "simulate": (1, "#CCDDAA", "#7A9440"),
    "train": (1, "#FFCCCC", "#CC6666"),
    "account": (1, "#BBCCEE", "#6680BB"),
    "build": (2, "#EEEEBB", "#A8A850"),
    "": (1, "#CCEEFF", "#66AACC"),
}
"""Stage of a rule, by the first word of its name: its first column, the colour of its boxes, that
of its lines."""
TARGETS = {"all", "default"}
"""Rules that only gather files: they and their lines are left out, so that the others are seen."""
GAP, HEIGHT, LETTER = 1.2, 0.5, 0.093
"""Distance between columns, height of a box with the space around it, and width of a letter, in
inches."""

Edge = tuple[str, str]


def read(dot: str) -> tuple[list[str], list[Edge]]:
    """Return the rules of a graph in the language of Graphviz, and pairs of a rule and one that
    reads its files; pairs that follow from others are left out."""
    names = dict(re.findall(r'^\s*(\d+)\[label = "([^"]+)"', dot, re.MULTILINE))
    edges = [(names[a], names[b]) for a, b in re.findall(r"^\s*(\d+) -> (\d+)", dot, re.MULTILINE)]
    shown = sorted(set(names.values()) - TARGETS)
    readers = {name: {b for a, b in edges if a == name and b not in TARGETS} for name in shown}

    def all_readers(name: str) -> set[str]:
        return readers[name].union(*map(all_readers, readers[name]))

    direct = {name: found.difference(*map(all_readers, found)) for name, found in readers.items()}
    return shown, [(name, reader) for name in shown for reader in sorted(direct[name])]


def stage_of(name: str) -> str:
    first = name.partition("_")[0]
    return first if first in STAGES else ""


def columns(names: Iterable[str], edges: Iterable[Edge]) -> list[list[str]]:
    """Return the rules by column: that of its stage, or the one behind all that a rule reads."""
    made_of: dict[str, list[str]] = {name: [] for name in names}
    for source, reader in edges:
        made_of[reader].append(source)

    def column(name: str) -> int:
        first, *_ = STAGES[stage_of(name)]
        return max([first, *(1 + column(source) for source in made_of[name])])

    found = {name: column(name) for name in made_of}
    order = list(STAGES)
    names = sorted(found, key=lambda name: (order.index(stage_of(name)), name))
    return [
        [name for name in names if found[name] == number]
        for number in range(max(found.values()) + 1)
    ]


def boxes(by_column: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """Return the middle of the left side of each box, and its width."""
    found: dict[str, tuple[float, float, float]] = {}
    tallest, left = max(map(len, by_column)), 0.0
    for names in by_column:
        if not names:
            continue
        # few boxes stand apart, so that their lines do, too
        step = HEIGHT * min(tallest / len(names), 4.0)
        down, heights = 0.0, list[float]()
        for before, name in zip(["", *names], names, strict=False):
            apart = before and stage_of(before) != stage_of(name)
            down += max(step, HEIGHT * 1.7) if apart else step
            heights.append(down)
        middle, width = (heights[0] + heights[-1]) / 2, LETTER * max(map(len, names)) + 0.3
        found |= {
            name: (left, middle - height, width)
            for name, height in zip(names, heights, strict=True)
        }
        left += width + GAP
    return found


def draw(names: list[str], edges: list[Edge], axes: Axes) -> None:
    at = boxes(columns(names, edges))
    for source, reader in edges:
        (x, y, width), (to_x, to_y, _) = at[source], at[reader]
        x += width
        # level at both ends, so that a line leaves and meets its boxes at right angles
        bend = min(to_x - x, 2 * GAP) / 2
        curve = Line(
            [(x, y), (x + bend, y), (to_x - bend, to_y), (to_x, to_y)],
            [Line.MOVETO, Line.CURVE4, Line.CURVE4, Line.CURVE4],
        )
        *_, colour = STAGES[stage_of(source)]
        axes.add_patch(
            FancyArrowPatch(
                path=curve, arrowstyle="-|>", mutation_scale=8, color=colour, linewidth=0.9
            )
        )
    for name, (x, y, width) in at.items():
        _, colour, edge = STAGES[stage_of(name)]
        axes.add_patch(
            FancyBboxPatch(
                (x + 0.08, y - HEIGHT / 2 + 0.14),
                width - 0.16,
                HEIGHT - 0.28,
                boxstyle="round,pad=0.08",
                facecolor=colour,
                edgecolor=edge,
            )
        )
        axes.text(x + width / 2, y, name, ha="center", va="center", fontsize=10)
    axes.set_xlim(-0.1, max(x + width for x, _, width in at.values()) + 0.1)
    heights = [y for _, y, _ in at.values()]
    axes.set_ylim(min(heights) - HEIGHT, max(heights) + HEIGHT)


def main(path: Path) -> None:
    names, edges = read(sys.stdin.read())
    if not names:
        sys.exit("error: the graph of rules must come by standard input, got none; see --rulegraph")
    # letters as text, and nothing of this moment: the same file for the same rules
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "rules"}
    figure, axes = pyplot.subplots()
    draw(names, edges, axes)
    axes.set_axis_off()
    axes.set_position((0, 0, 1, 1))
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    figure.set_size_inches(right - left, high - low)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Draw who is in which batch under each sampling scheme, as docs/pictures/schemes.svg shows it.

Rows are records, columns are steps, and a dot is a record that is drawn.

    .venv/bin/python workflow/scripts/draw_schemes.py docs/pictures/schemes.svg
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import numpy as np

from dpsub import sampling, streams
from dpsub.files import replace_file
from dpsub.sampling.schemes import Plan

RECORDS, STEPS, EPOCH = 12, 8, 4
"""Records, steps, and steps of an epoch: batches have 3 records, or 3 on average."""
SCHEMES: tuple[tuple[str, str, Plan], ...] = (
    ("Poisson", "each record by itself; sizes vary", sampling.Poisson(0.25)),
    ("truncated Poisson", "Poisson, at most 4 at a time", sampling.TruncatedPoisson(0.25, 4)),
    ("WOR", "3 distinct records, new at each step", sampling.Wor(3)),
    ("WR", "3 draws, with copies", sampling.Wr(3)),
    ("MUST.OW", "first 4 records, then 3 draws of these", sampling.MustOW(4, 3)),
    ("shuffle", "each once an epoch, 3 in each step", sampling.Shuffle(3)),
    ("random allocation", "each once an epoch; sizes vary", sampling.RandomAllocation(4)),
    ("fixed order", "no randomness", sampling.Deterministic(3)),
)
ACROSS, CELL, MARGIN, HEAD, FOOT = 4, 16, 34, 46, 26
"""Panels in a row; sides of a cell and a margin, heights of a heading and a footing, in pixels."""
WIDTH, HEIGHT = MARGIN + STEPS * CELL + 72, HEAD + RECORDS * CELL + FOOT
STYLE = (
    "text{font:11px sans-serif;fill:#333}.name{font-size:13px;font-weight:bold}"
    ".dot{fill:#0a5aa8}.copies{fill:#fff;font-size:9px;text-anchor:middle}"
    ".grid{stroke:#ddd}.epoch{stroke:#888;stroke-dasharray:3 2}"
)


def drawn(number: int, plan: Plan) -> np.ndarray:
    """Return how often each record is in each batch, shape (RECORDS, STEPS)."""
    rng = streams.stream(
        1, experiment="schemes", cell={"panel": number}, role="sample", replicate=0
    )
    samples = plan.draw_block(sampling.Frame(RECORDS), STEPS, rng)
    counts = np.zeros((RECORDS, STEPS), dtype=int)
    for step in range(STEPS):
        part = slice(samples.offsets[step], samples.offsets[step + 1])
        np.add.at(counts[:, step], samples.indices[part], samples.counts[part])
    return counts


def panel(number: int) -> list[str]:
    """Return the elements of one scheme."""
    name, words, plan = SCHEMES[number]
    row, column = divmod(number, ACROSS)
    x, y = column * WIDTH + MARGIN, row * HEIGHT + HEAD
    right, bottom = x + STEPS * CELL, y + RECORDS * CELL
    parts = [
        f'<text class="name" x="{x}" y="{y - 26}">{escape(name)}</text>',
        f'<text x="{x}" y="{y - 10}">{escape(words)}</text>',
        f'<text x="{x}" y="{bottom + 15}">steps</text>',
        f'<text transform="translate({x - 8} {bottom}) rotate(-90)">records</text>',
    ]
    for line in range(RECORDS + 1):
        at = y + line * CELL
        parts.append(f'<line class="grid" x1="{x}" x2="{right}" y1="{at}" y2="{at}"/>')
    for line in range(STEPS + 1):
        at, kind = x + line * CELL, "epoch" if line % EPOCH == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{y}" y2="{bottom}"/>')
    for (record, step), copies in np.ndenumerate(drawn(number, plan)):
        if copies:
            cx, cy = x + step * CELL + CELL // 2, y + record * CELL + CELL // 2
            parts.append(f'<circle class="dot" cx="{cx}" cy="{cy}" r="6"/>')
            if copies > 1:
                parts.append(f'<text class="copies" x="{cx}" y="{cy + 3}">{copies}</text>')
    return parts


def picture() -> str:
    """Return the whole picture in SVG."""
    width, height = ACROSS * WIDTH, -(-len(SCHEMES) // ACROSS) * HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Who is in which batch under each sampling scheme</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *(element for number in range(len(SCHEMES)) for element in panel(number)),
        "</svg>",
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    replace_file(Path(sys.argv[1]), picture().encode())

"""Drawing of figures: one builder, one style sheet, one colour and marker a sampler, files with the
same bytes each time.

Matplotlib is loaded where something is drawn and not before: it takes long, and plans and tables do
without it.
"""

from __future__ import annotations

from dpsub.reproduce.figures.panels import (
    Panel,
    curves,
    draw_panels,
    level,
    line,
    mark_keys,
    name_at,
    name_ends,
    name_rows,
    remark,
    where,
)
from dpsub.reproduce.figures.style import (
    NEUTRAL,
    axis,
    figure_bytes,
    finish,
    new,
    panel_letter,
    sampler_style,
    styled,
)

__all__ = [
    "NEUTRAL",
    "Panel",
    "axis",
    "curves",
    "draw_panels",
    "figure_bytes",
    "finish",
    "level",
    "line",
    "mark_keys",
    "name_at",
    "name_ends",
    "name_rows",
    "new",
    "panel_letter",
    "remark",
    "sampler_style",
    "styled",
    "where",
]

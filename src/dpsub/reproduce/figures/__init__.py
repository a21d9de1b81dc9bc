"""How figures look: one style sheet, one colour and marker a sampler, files with the same bytes each time.

Matplotlib is loaded where something is drawn and not before: it takes long, and plans and tables do without it.
"""

from __future__ import annotations

from dpsub.reproduce.figures.style import axis, finish, new, panel_letter, sampler_style, styled
from dpsub.reproduce.figures.writing import figure_bytes

__all__ = ["axis", "figure_bytes", "finish", "new", "panel_letter", "sampler_style", "styled"]

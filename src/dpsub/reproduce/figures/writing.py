"""Figures as bytes that do not depend on the moment or the process that wrote them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from dpsub.reproduce.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
}


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Return the file content of `figure` as "pdf" or "png", without dates or versions."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=form, metadata=_METADATA[form])
    return buffer.getvalue()

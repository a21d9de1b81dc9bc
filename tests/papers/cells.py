"""Tables of cells as the report reads them."""

from __future__ import annotations

import pandas as pd


def cells(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    """Return a table of cells as it is read: texts, and numbers under the names of variants."""
    frame = pd.DataFrame(rows, columns=columns.split())
    for name, default in (("printed", ""), ("verdict", ""), ("erratum", ""), ("note", "")):
        if name not in frame:
            frame[name] = default
    return frame

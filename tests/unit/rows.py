"""Values with the text of their row, by which tests look them up."""

from __future__ import annotations

import pandas as pd

from dpsub.reproduce.published import key_names, row_texts


def with_rows(values: pd.DataFrame) -> pd.DataFrame:
    """Return values, or printed numbers, with the column `row`: "sampler=wr; b=10"."""
    return values.assign(row=row_texts(values, key_names(values)))

"""Numbers for sentences are looked up in the tables of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce.report.takeaways import Tables, read_cells


def test_look_up_needs_exactly_one_cell() -> None:
    tables = Tables({"table9": _law_means()})
    assert tables.number("table9", "law_mean", "stated", experiment="3", sampler="wor") == 300
    assert np.isnan(tables.number("table9", "law_mean", "stated", experiment="3"))
    assert np.isnan(tables.number("table9", "law_mean", "rigorous", experiment="3", sampler="wor"))
    assert np.isnan(tables.number("table9", "law_mean", "stated", experiment="3", sampler="wor", b="1"))
    assert len(tables.rows("table9", "law_mean", experiment="3", sampler="*")) == 2
    assert tables.rows("table1", "law_mean").empty


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table8.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="must be a table of cells, got the columns a, b; build it again"):
        read_cells(path)


def _law_means() -> pd.DataFrame:
    return pd.DataFrame({
        "experiment": "3", "sampler": ["wor", "must_ww"], "column": "law_mean", "printed": "", "stated": [300.0, 225.0],
        "verdict": "", "erratum": "", "note": "",
    })  # fmt: skip

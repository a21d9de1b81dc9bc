"""Paired differences of a sweep against Poisson sampling: the streamed ones are those of all rows at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsub.reproduce.sweeps import differences
from tests.sweep_grids import DRAWS, planned
from tests.unit.test_sweep_store import EXPERIMENT, finish


@pytest.mark.parametrize("rows_at_once", [1, 1000])
def test_paired_differences_are_those_of_all_rows_at_once(rows_at_once: int, tmp_path: Path) -> None:
    plan = planned(tmp_path, DRAWS | {"seeds": 3, "samplers": ["poisson", "wor", "must_ow"]})
    finish(plan)
    found = pd.read_parquet(differences.write(plan.results, EXPERIMENT, rows_at_once=rows_at_once)).set_index("cell")
    rows = pd.read_parquet(plan.results / "records")
    assert set(found.index) == set(rows.loc[rows["sampler"] != "poisson", "cell"])
    for cell, row in found.iterrows():
        ours = rows[rows["cell"] == cell].set_index("replicate")
        same = (rows["sampler"] == "poisson") & (rows["steps"] == row["steps"]) & (rows["m"] == row["m"])
        theirs = rows[same].set_index("replicate")
        gained = (ours["distinct_mean"] - theirs["distinct_mean"]).to_numpy()
        low, high = stats.ttest_1samp(gained, 0).confidence_interval()
        assert row["replicates"] == 3
        np.testing.assert_allclose(row["distinct_mean_difference"], gained.mean(), rtol=1e-12)
        np.testing.assert_allclose([row["distinct_mean_low"], row["distinct_mean_high"]], [low, high], rtol=1e-9)
    assert not list(plan.results.glob(".by_cell*"))


def test_without_poisson_cells_nothing_is_paired(tmp_path: Path) -> None:
    plan = planned(tmp_path, DRAWS | {"samplers": ["wor"]})
    finish(plan)
    assert pd.read_parquet(differences.write(plan.results, EXPERIMENT)).empty

"""The contract of the deterministic experiments, at small sizes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import CONFIG, run, settings_of

SMALL: dict[str, dict[str, Any]] = {
    "amplification_grid": {"epsilon_step": 0.5, "epsilon_max": 1},
    "amplification_crossings": {"epsilon_step": 0.25},
    "design_surface": {"step": 50},
    "noise_calibration": {"tables": {"table6": CONFIG["experiments"]["noise_calibration"]["tables"]["table6"]}},
    "composition": {
        "table8": CONFIG["experiments"]["composition"]["table8"] | {"grid_size": 2000, "grid_size_wr": 2000},
        "figure_s2": CONFIG["experiments"]["composition"]["figure_s2"] | {"grid_size": 2000},
    },
    "distinct_counts": {"draws": 20, "settings": [{"n": 30, "b": 9, "m": 5}]},
    "sampling_time": {"draws": 20, "settings": [{"n": 30, "b": 9, "m": 5}]},
}


@pytest.mark.parametrize("name", SMALL)
class TestContract:
    def test_records_have_the_declared_columns(self, name: str) -> None:
        experiment = REGISTRY.get(name)
        for variant in experiment.variants:
            found = run(name, variant, **SMALL[name])
            assert list(found.columns) == list(experiment.columns)
            for column, dtype in experiment.columns.items():
                assert str(found[column].dtype) == dtype
            assert len(found) and (found["replicate"] == 0).all()
            assert not found.isna().to_numpy().any()

    def test_configured_variants_exist(self, name: str) -> None:
        assert set(settings_of(name)["variants"]) <= set(REGISTRY.get(name).variants)
        assert REGISTRY.get(name)().replicates(settings_of(name)) == 1

    def test_same_records_twice(self, name: str) -> None:
        if REGISTRY.get(name).timed:
            one, two = (run(name, **SMALL[name]).drop(columns="seconds") for _ in range(2))
        else:
            one, two = (run(name, **SMALL[name]) for _ in range(2))
        pd.testing.assert_frame_equal(one, two, check_exact=True)

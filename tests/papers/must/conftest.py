"""Records of all experiments of this paper at small sizes, made once."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dpsub.data import adult
from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import CONFIG

SIZES = {"n": 100, "b": 10, "m": 5}
CASES = [
    {
        **dict.fromkeys(("n", "m"), 10),
        "n": 100,
        "sampler": sampler,
        "noise_multiplier": 2,
        "n_compositions": 5,
        "adjacency": adjacency,
        "width": 1e-3,
        "prv_error": 0.1,
    }
    for sampler, adjacency in (("poisson", "add_remove"), ("wor", "substitute"))
]
SMALL: dict[str, dict[str, Any]] = {
    "amplification_grid": {"n": 60, "b": 30, "m": 24, "epsilon_step": 0.05, "epsilon_max": 4.5},
    "amplification_crossings": {"epsilon_step": 0.25},
    "design_surface": {"n": 100, "m_min": 10, "m_max": 15, "b_min": 16, "b_max": 23},
    "noise_calibration": {"tables": {"table4": {"b": [10, 20]}}},
    "composition": {
        "table8": {"grid_size": 2000, "grid_size_wr": 2000},
        "figure_s2": {"grid_size": 2000},
    },
    "proved_composition": {
        "table8": {**SIZES, "n_compositions": 5, "epsilon_amplified": 0.02, "epsilon": 0.5},
        "figure_s2": {**SIZES, "n_compositions": [20, 40], "scale": 1},
    },
    "proved_steps": {**SIZES, "n_compositions": [1, 20]},
    "proved_first_stages": {**SIZES, "n_compositions": 20, "first_stages": [40, 100]},
    "proved_noise": {**SIZES, "n_compositions": 20, "target_epsilons": [4], "accuracy": 0.2},
    "peer_bounds": {"cases": CASES},
    "peer_times": {"cases": CASES},
    "subset_statistics": {"replicates": 3, "n": 60, "m": 10, "b": [10, 20], "subsets": 5},
    "linear_regression": {"replicates": 3, "n": 100, "b": 20, "m": 10, "iterations": 16},
    "linear_regression_trace": {"n": 100, "b": 20, "m": 10, "iterations": 16},
    "adult_logistic": {"replicates": 3, "iterations": 3},
    "adult_logistic_trace": {"iterations": 3},
    "distinct_counts": {"draws": 50},
    "sampling_time": {"draws": 50},
}
"""Settings over the published ones."""


def records_of(name: str, data: dict[str, Any], **over: Any) -> pd.DataFrame:
    """Return the records of an experiment in all its variants, as artefacts get them."""
    experiment, changed = REGISTRY.get(name)(), {**SMALL[name], **over}
    every = range(experiment.replicates(experiment.settings(changed)))
    frames = [
        experiment.compute(changed, variant=variant, replicates=every, data=data).assign(
            variant=variant, data="synthetic" if experiment.needs_data else ""
        )
        for variant in experiment.variants
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    adult.write(adult.scaled(adult.stand_in()), path, label="synthetic", sources={})
    return {"adult": path}


@pytest.fixture(scope="session")
def exact() -> dict[str, pd.DataFrame]:
    """Return records without Monte Carlo error, and of the drawn subsets, at the published sizes.

    The surface and the consistent compositions are coarse: nothing printed rests on them.
    """
    over = {
        ("design_surface", "stated"): {"step": 25},
        ("composition", "consistent"): {
            "table8": {"grid_size": 1000, "grid_size_wr": 1000, "n_compositions": 1},
            "figure_s2": {"grid_size": 100_000},
        },
    }
    found = {}
    for name in (
        "amplification_grid",
        "amplification_crossings",
        "design_surface",
        "noise_calibration",
        "composition",
        "distinct_counts",
    ):
        experiment = REGISTRY.get(name)()
        frames = [
            experiment.compute(
                over.get((name, variant)), variant=variant, seed=CONFIG["seed"]
            ).assign(variant=variant, data="")
            for variant in experiment.variants
        ]
        found[name] = pd.concat(frames, ignore_index=True)
    return found


@pytest.fixture(scope="session")
def records(prepared: dict[str, Any]) -> dict[str, pd.DataFrame]:
    return {name: records_of(name, prepared) for name in SMALL}

"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

from typing import Any

SMALLER: dict[str, dict[str, Any]] = {
    "amplification_grid": {"epsilon_step": 0.5, "epsilon_max": 1},
    "amplification_crossings": {"epsilon_step": 0.25},
    "composition": {
        "table8": {"grid_size": 2000, "grid_size_wr": 2000},
        "figure_s2": {"grid_size": 2000},
    },
    "noise_calibration": {"tables": {"table4": {"b": [10]}, "table8": None}},
    "peer_bounds": {
        "cases": [{"sampler": "wr", "n": 100, "m": 5, "noise_multiplier": 4, "n_compositions": 5}]
    },
    "peer_times": {
        "cases": [{"sampler": "wr", "n": 100, "m": 5, "noise_multiplier": 4, "n_compositions": 5}]
    },
    "proved_composition": {"table8": {"samplers": ["poisson", "wor"]}},
    "proved_noise": {"samplers": ["poisson", "wor"]},
    "subset_statistics": {"replicates": 3, "b": [10], "subsets": 5},
    "linear_regression": {"replicates": 3, "iterations": 16},
    "linear_regression_trace": {"iterations": 16},
    "adult_logistic": {"replicates": 3, "iterations": 3},
    "adult_logistic_trace": {"iterations": 3},
}
"""Settings over those of workflow/smoke.yaml."""
LONG = (
    "adult_logistic",
    "proved_composition",
    "proved_first_stages",
    "proved_noise",
    "proved_steps",
)
"""Experiments whose records take seconds."""

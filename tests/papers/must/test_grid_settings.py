"""Settings of the paper that contradict themselves are refused before any work, in one sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dpsub.errors import DpsubError
from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import settings_of


def nested(name: str, *path: str, value: Any) -> dict[str, Any]:
    """Return settings of an experiment with one value changed."""
    settings = settings_of(name)
    inner: Any = settings
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return settings


SIZES = {"n": 300, "b": 50, "m": 30}
GRID, CROSS, SURFACE, NOISE, COMPOSE, COUNTS, TIME = (
    "amplification_grid",
    "amplification_crossings",
    "design_surface",
    "noise_calibration",
    "composition",
    "distinct_counts",
    "sampling_time",
)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            GRID,
            nested(GRID, "samplers", value=["must_wo2"]),
            "unknown sampler 'must_wo2'; did you mean 'must_wo'?",
        ),
        (
            GRID,
            nested(GRID, "mechanisms", value=["gauss"]),
            "unknown mechanism 'gauss'; did you mean 'gaussian'?",
        ),
        (GRID, nested(GRID, "b", value=1001), "b must be at most n = 1000, got b = 1001"),
        (GRID, nested(GRID, "b", value=399), "m must be at most b = 399, got m = 400"),
        (GRID, nested(GRID, "m", value=0), "m must be at least 1, got m = 0"),
        (GRID, nested(GRID, "ratios", value=[0]), "ratios[0] must be above 0, got ratio = 0"),
        (
            GRID,
            nested(GRID, "epsilon_step", value=0),
            "epsilon_step must be above 0, got epsilon_step = 0",
        ),
        (
            GRID,
            nested(GRID, "epsilon_max", value=0.001),
            "epsilon_max must be at least 0.01, got epsilon_max = 0.001",
        ),
        (CROSS, nested(CROSS, "samplers", value=["w"]), "unknown sampler 'w'; did you mean 'wr'?"),
        (CROSS, nested(CROSS, "ratio", value=-1), "ratio must be above 0, got ratio = -1"),
        (SURFACE, nested(SURFACE, "epsilon", value=0), "epsilon must be above 0, got epsilon = 0"),
        (SURFACE, nested(SURFACE, "m_min", value=0), "m_min must be at least 1, got m_min = 0"),
        (SURFACE, nested(SURFACE, "m_max", value=99), "m_max must be at least 100, got m_max = 99"),
        (SURFACE, nested(SURFACE, "b_max", value=1001), "b must be at most n = 1000, got b = 1001"),
        (SURFACE, nested(SURFACE, "step", value=0), "step must be at least 1, got step = 0"),
        (
            NOISE,
            nested(NOISE, "tables", "table4", "b", value=[301]),
            "b must be at most n = 300, got b = 301",
        ),
        (
            NOISE,
            nested(NOISE, "tables", "table6", "clip", value=0),
            "clip must be above 0, got clip = 0",
        ),
        (
            NOISE,
            nested(NOISE, "tables", "table4", "upper", value=-4),
            "upper must be above -4, got upper = -4",
        ),
        (NOISE, nested(NOISE, "tables", "table4", "m", value=1), "m must be at least 2, got m = 1"),
        (
            NOISE,
            nested(NOISE, "tables", "table8", "epsilon_amplified", value=0),
            "epsilon_amplified must be above 0, got epsilon_amplified = 0",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "epsilon", value=6),
            "epsilon must be below 6, got epsilon = 6",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "epsilon", value=0),
            "epsilon must be above 0, got epsilon = 0",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "n_compositions", value=0),
            "n_compositions must be at least 1, got n_compositions = 0",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "grid_size", value=3001),
            "grid_size must be even, got grid_size = 3001; take 3002",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "figure_s2", "grid_size", value=26_000),
            "the bracket needs a grid_size without prime factors above 11, got grid_size = 26000; "
            "take 26244",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "b", value=31000),
            "b must be at most n = 30969, got b = 31000",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "table8", "epsilon_amplified", value=0),
            "epsilon_amplified must be above 0, got epsilon_amplified = 0",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "figure_s2", "samplers", value=["mustow"]),
            "unknown sampler 'mustow'; did you mean 'must_ow'?",
        ),
        (
            COMPOSE,
            nested(COMPOSE, "figure_s2", "scale", value=0),
            "scale must be at least 0.05, got scale = 0",
        ),
        (
            COUNTS,
            nested(COUNTS, "settings", value=[SIZES | {"m": 0}]),
            "m must be at least 1, got m = 0",
        ),
        (
            COUNTS,
            nested(COUNTS, "settings", value=[SIZES | {"b": 20}]),
            "m must be at most b = 20, got m = 30",
        ),
        (COUNTS, nested(COUNTS, "draws", value=1), "draws must be at least 2, got draws = 1"),
        (
            TIME,
            nested(TIME, "settings", value=[SIZES | {"b": 301}]),
            "b must be at most n = 300, got b = 301",
        ),
        (TIME, nested(TIME, "draws", value=0), "draws must be at least 2, got draws = 0"),
    ],
)
def test_bad_settings_are_refused_before_any_work(
    name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpsubError) as refused:
        REGISTRY.get(name).settings(settings)
    # a bound is told with the path of its key
    sentence = re.sub(r" in experiments[\w.\[\]]*", "", str(refused.value))
    tail = re.sub(r", got \w+ = ", ", got ", message)
    assert sentence.startswith("experiments.") or sentence.startswith("unknown "), sentence
    assert sentence.endswith((message, tail)), sentence

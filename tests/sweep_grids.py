"""Small sweeps for tests, and ways to spoil them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from dpsub.reproduce.sweeps import planning
from dpsub.reproduce.sweeps.planning import SweepPlan

DRAWS: dict[str, Any] = {
    "experiment": "distinct_draws",
    "samplers": ["poisson", "wor", "must_ow"],
    "sizes": [{"n": 100, "m": 10, "b": 20}, {"n": 100, "m": 10, "b": 30}],
    "steps": [5, 10],
    "seeds": 2,
}
FAIR: dict[str, Any] = {
    "experiment": "fair_comparison",
    "samplers": ["poisson", "must_ow"],
    "sizes": [{"m": 20, "b": 40}],
    "steps": [10],
    "targets": [{"epsilon": 2, "delta": 1e-5}],
    "datasets": ["linear"],
    "conventions": ["rigorous"],
    "seeds": 2,
}


def sweep(*grids: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a sweep of these grids as its file holds it."""
    return {"seed": 1, "results_dir": "results-sweep", **keys, "grids": copy.deepcopy(list(grids or [DRAWS]))}


def written(path: Path, *grids: dict[str, Any], **keys: Any) -> Path:
    path.write_text(yaml.safe_dump(sweep(*grids, **keys)), encoding="utf-8")
    return path


def planned(folder: Path, *grids: dict[str, Any], **keys: Any) -> SweepPlan:
    """Return the plan of a sweep with results in `folder`."""
    config = {"results_dir": str(folder / "results"), **keys}
    return SweepPlan(planning.load([written(folder / "sweep.yaml", *grids, **config)]))

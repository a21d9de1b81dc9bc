"""Runs of experiments at the configured settings, for comparison with the numbers that papers
print."""

from __future__ import annotations

import copy
from typing import Any

import pandas as pd

from dpsub.reproduce import published
from dpsub.reproduce.experiments import REGISTRY

CONFIG: dict[str, Any] = {
    "seed": 20231220,
    "experiments": {name: kind.defaults() for name, kind in REGISTRY.members().items()},
}
"""The published settings of all experiments."""


def settings_of(name: str, **changes: Any) -> dict[str, Any]:
    """Return the published settings of an experiment, with changes of the first level."""
    return {**copy.deepcopy(CONFIG["experiments"][name]), **changes}


def typed(name: str, **changes: Any) -> Any:
    """Return them as an instance of the experiment's `Settings`."""
    return REGISTRY.get(name).settings(settings_of(name, **changes))


def run(name: str, variant: str = "stated", **changes: Any) -> pd.DataFrame:
    """Return the records of replicate 0."""
    return REGISTRY.get(name)().compute(
        settings_of(name, **changes), variant=variant, seed=CONFIG["seed"]
    )


def only(frame: pd.DataFrame, **fields: Any) -> dict[str, Any]:
    """Return the one record with these values."""
    for name, value in fields.items():
        frame = frame[frame[name] == value]
    (record,) = frame.to_dict("records")
    return {str(name): value for name, value in record.items()}


def rounds_to(value: float, printed: str) -> bool:
    """Whether a value rounds to a printed number."""
    number = published.parse_printed(printed)
    return abs(value - float(number.value)) <= float(number.half_unit) * (1 + 1e-9)

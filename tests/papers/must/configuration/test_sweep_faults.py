"""A sweep with one value changed, at every key: refused with the key's name, or a plan."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import settings
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.sweep import Sweep, SweepPlan
from tests.faults.test_config_mutations import at, mutations, names_the_key, places, replaced

DRAWS = {
    "experiment": "distinct_counts",
    "samplers": ["wor"],
    "draws": 20,
    "vary": {"settings": [[{"n": 100, "b": 20, "m": 10}]]},
}
BLOCKS = [
    DRAWS,
    {
        "experiment": "linear_regression",
        "variants": ["stated"],
        "replicates": 2,
        "vary": {"m": [50, 100]},
    },
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block["experiment"]))
def test_a_changed_sweep_is_refused_by_name_or_gives_a_plan(
    block: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    defaults = REGISTRY.get(str(block["experiment"])).defaults()
    whole = {
        "seed": 1,
        "results_dir": str(tmp_path / "none"),
        "job_minutes": 1,
        "sweep": [{**defaults, **block}],
    }
    del whole["sweep"][0]["parts"]
    cases = [(path, value) for path in places(whole) for value in mutations(at(whole, path))]
    assert len(cases) > 100
    accepted = 0
    for path, value in cases:
        try:
            SweepPlan(settings.conform(Sweep, replaced(whole, path, value)))
            accepted += 1
        except PlanError as refusal:
            assert names_the_key(path, str(refusal)) and "\n" not in str(refusal), (path, value)
    assert 0 < accepted < len(cases) / 2
    assert list(tmp_path.iterdir()) == []

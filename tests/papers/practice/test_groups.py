"""Bounds for users with several records: the direct one is the lowest, and group privacy of the
composed epsilon the highest."""

from __future__ import annotations

import pytest

import dpsub
from dpsub.papers.practice.experiments import PracticeGroups
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows

SETTINGS = {"grid": [{"noise_multiplier": 1, "steps": 200}], "groups": [1, 2, 4]}


def test_the_direct_bound_is_the_lowest(tmp_path_factory: pytest.TempPathFactory) -> None:
    records = PracticeGroups().compute(SETTINGS, variant="rigorous")
    bounds = records.pivot_table(index="group", columns="bound", values="epsilon_upper")
    one, *several = [bounds.loc[group] for group in (1, 2, 4)]
    assert one.max() < one.min() * 1.01
    for found in several:
        assert found["direct"] < found["composed"] < found["converted"]
    answer = dpsub.account(
        dpsub.Poisson(0.01), noise_multiplier=1.0, steps=200, delta=1e-5, group=4
    )
    assert answer.upper == pytest.approx(bounds.loc[4, "direct"], rel=1e-3)
    figure = artefacts.REGISTRY.get("practice/figure_groups")()
    dirs = OutputDirs.under(tmp_path_factory.mktemp("results"))
    frame = records.assign(variant="rigorous", data="")
    build(figure, {"practice_groups": frame}, printed_rows(figure), dirs)

"""A sampler that is new to all experiments, tables, figures and sweeps works by its own facts
alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from dpsub import sampling
from dpsub.errors import PlanError
from dpsub.reproduce import artefacts, sweep
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.figures import sampler_style
from dpsub.reproduce.settings import conform
from dpsub.sampling import MustWW
from dpsub.sampling.base import Sampler, Stage, StagedSampler, WithoutReplacement, WithReplacement
from tests.experiment_runs import run, settings_of
from tests.packaging.scratch import ran
from tests.packaging.test_a_sampler_is_one_file import answer, with_the_page


class Drawn(MustWW):
    """MUST.WW under a name of its own."""

    name: ClassVar[str] = "drawn"
    label: ClassVar[str] = "DRAWN"
    colour: ClassVar[str] = "#332288"
    marker: ClassVar[str] = "*"
    line_style: ClassVar[Any] = "--"


@dataclass(frozen=True)
class Thrice(StagedSampler):
    """Sampler of three stages; no experiment has the size of its first one."""

    a: int
    b: int
    m: int

    name: ClassVar[str] = "thrice"
    kinds: ClassVar[Mapping[str, type[Stage]]] = {
        "a": WithoutReplacement,
        "b": WithReplacement,
        "m": WithReplacement,
    }

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(5, 4, 3), 7)]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    sampling.REGISTRY.names()  # all members are known from here on
    for member in (Drawn, Thrice):
        monkeypatch.setitem(sampling.REGISTRY._members, member.name, member)
        monkeypatch.setitem(sampling.REGISTRY._found, member.name, member)
    yield


SIZES = {"n": 100, "b": 20, "m": 10}


def recorded(name: str, **changes: Any) -> pd.DataFrame:
    return run(name, **changes).assign(variant="stated", data="")


def test_tables_and_figures_have_it() -> None:
    chosen = ["poisson", "wor", "must_ow", "drawn"]
    records = {
        "amplification_grid": recorded(
            "amplification_grid", **SIZES, samplers=chosen, epsilon_step=1
        ),
        "distinct_counts": recorded("distinct_counts", draws=10, settings=[SIZES], samplers=chosen),
    }
    for name, column in (
        ("must/table2", "eta"),
        ("must/table9", "law_mean"),
        ("must/figure4", "largest_difference"),
    ):
        values = artefacts.REGISTRY.get(name)().values(records)
        found = values[(values["sampler"] == "drawn") & (values["column"] == column)]
        assert len(found) and found["value"].notna().all(), name
    figure, plotted = artefacts.REGISTRY.get("must/figure4")().draw(records)  # type: ignore[union-attr]
    assert list(plotted["sampler"].unique()) == ["wor", "must_ow", "drawn"], (
        "Poisson has the curve of WOR"
    )
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels[-1] == "DRAWN"
    assert sampler_style("drawn") == {
        "label": "DRAWN",
        "color": "#332288",
        "marker": "*",
        "linestyle": "--",
    }


def test_the_expected_variance_follows_from_its_stages() -> None:
    frame = recorded(
        "subset_statistics", n=100, m=10, b=[20], subsets=5, samplers=["wr", "must_ww", "drawn"]
    )
    expected = dict(zip(frame["sampler"], frame["expected_variance"], strict=True))
    assert expected == {
        "nonprivate": 1,
        "wr": 1 - 1 / 100,
        "must_ww": (1 - 1 / 20) * (1 - 1 / 100),
        "drawn": (1 - 1 / 20) * (1 - 1 / 100),
    }


LINEAR = {"experiment": "linear_regression", "variants": ["stated"], "iterations": 16}


def test_cells_of_a_sweep_take_it() -> None:
    cells = list(
        sweep.expand([conform(sweep.SweepBlock, {**LINEAR, "samplers": ["drawn", "wor"]})]).values()
    )
    found = {cell.settings.samplers for cell, _ in cells}
    assert ("drawn",) in found and ("wor",) in found


def test_a_size_that_nobody_gives_is_named() -> None:
    lacking = "thrice needs a, the size of the first stage"
    with pytest.raises(PlanError, match=f"{lacking}, got none"):
        sweep.expand([conform(sweep.SweepBlock, {**LINEAR, "samplers": ["thrice"]})])
    for name in (
        "amplification_grid",
        "distinct_counts",
        "linear_regression",
        "subset_statistics",
        "proved_steps",
    ):
        with pytest.raises(PlanError, match=f"{lacking}, got none$"):
            REGISTRY.get(name).settings(settings_of(name, samplers=["thrice"]))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with the samplers of docs/adding.md."""
    return with_the_page(tmp_path_factory.mktemp("clone"))


TABLE = """
from dpsub import sampling
from dpsub.reproduce import experiments
from dpsub.reproduce.figures import style

experiment = experiments.REGISTRY.get("distinct_counts")()
settings = {"draws": 20, "samplers": ["poisson", "blb"], "settings": [{"n": 400, "m": 20, "b": 40}]}
records = experiment.compute(settings, variant="stated", replicates=range(2), seed=1)
expected = sampling.of_sizes("blb", n=400, b=40).expected_distinct(400)
assert set(records.loc[records["sampler"] == "blb", "law_mean"]) == {expected}
for name in ("blb", "wow"):
    assert style.sampler_style(name)["color"] == sampling.REGISTRY.get(name).colour
"""
SWEEP = """
seed: 1
results_dir: results
job_minutes: 1
memory_mib: 1000
sweep:
  - {experiment: linear_regression, variants: [stated], samplers: [wor, blb],
     replicates: 2, iterations: 16}
"""


@pytest.mark.slow
def test_an_experiment_and_a_sweep_take_it(scratch: Path) -> None:
    ran(scratch, "-c", TABLE)
    (scratch / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    plan = answer(scratch, "plan sweep.yaml --cores 1")
    assert plan["cells"] == 4  # two samplers, two targets

"""The contract of every experiment, at sizes that take seconds."""

from __future__ import annotations

import importlib
from collections import ChainMap
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.data.dataset import Obtained
from dpsub.errors import PlanError
from dpsub.reproduce import configuration, settings
from dpsub.reproduce.experiment import STAGES, Experiment
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.papers import papers
from dpsub.reproduce.settings import plain
from tests.few import few

ROOT = Path(__file__).resolve().parents[2]
SEED = 1

NAMES = REGISTRY.names()


def of_papers(what: str) -> list[Any]:
    """Return the attribute of that name in `tests/papers/<paper>/sizes.py` of each paper that has
    it."""
    there = [key for key in papers() if (ROOT / "tests/papers" / key / "sizes.py").is_file()]
    sizes = [importlib.import_module(f"tests.papers.{key}.sizes") for key in there]
    return [getattr(module, what) for module in sizes if hasattr(module, what)]


SMALLER: dict[str, dict[str, Any]] = dict(ChainMap(*of_papers("SMALLER")))
"""Settings over those of workflow/smoke.yaml."""
LONGEST = {*chain(*of_papers("LONGEST"))}
"""Experiments whose records take minutes."""
LONG = LONGEST | {*chain(*of_papers("LONG"))}
"""Experiments whose records take seconds, or more."""


def long_ones_apart(names: Iterable[str]) -> list[Any]:
    """Return the names for `pytest.mark.parametrize`, those of long experiments marked
    `thorough`, and of those of minutes `slow`."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.slow
            if name in LONGEST
            else pytest.mark.thorough
            if name in LONG
            else (),
        )
        for name in names
    ]


MAKES_RECORDS = long_ones_apart(NAMES)


def few_short_ones(names: Iterable[str]) -> list[Any]:
    """Return the names for `pytest.mark.parametrize`: three short ones, a third of
    the others marked `thorough`, and the rest."""
    short = [name for name in names if name not in LONG]
    return few(sorted(names, key=LONG.__contains__), most=3, more=len(short) // 3)


@pytest.fixture(scope="session")
def smoke() -> dict[str, Any]:
    """Return the settings of all experiments in workflow/smoke.yaml."""
    config = configuration.load([ROOT / "config.yaml", ROOT / "workflow/smoke.yaml"])
    return {
        name: settings.merge(config["experiments"][name], SMALLER.get(name, {})) for name in NAMES
    }


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return stand-ins of all data sets."""
    folder, found = tmp_path_factory.mktemp("stand-ins"), {}
    for name, data_set in DATA_SETS.members().items():
        found[name] = folder / f"{name}{data_set.suffix}"
        data_set().make(Obtained({}, "synthetic"), found[name])
    return found


class Runs:
    """Runs of experiments; records that another experiment reads are made once."""

    def __init__(self, smoke: dict[str, Any], prepared: dict[str, Path]) -> None:
        self.smoke, self.prepared, self.made = (
            smoke,
            prepared,
            dict[tuple[str, str], pd.DataFrame](),
        )

    def __call__(self, name: str, variant: str, replicates: range | None = None) -> pd.DataFrame:
        if replicates is None and (name, variant) in self.made:
            return self.made[name, variant]
        experiment, over = REGISTRY.get(name)(), self.smoke[name]
        chosen = experiment.settings(over)
        read = {
            other: pd.concat(
                [self(other, each).assign(variant=each) for each in REGISTRY.get(other).variants]
            )
            for other in experiment.needs_records
        }
        data = {each: self.prepared[each] for each in experiment.data_of(chosen)}
        every = range(experiment.replicates(chosen))
        records = experiment.compute(
            over,
            variant=variant,
            replicates=replicates or every,
            seed=SEED,
            data=data,
            records=read,
        )
        if replicates is None:
            self.made[name, variant] = records
        return records


@pytest.fixture(scope="session")
def run(smoke: dict[str, Any], prepared: dict[str, Path]) -> Runs:
    return Runs(smoke, prepared)


def compared(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return records without clock times."""
    times = [column for column in frame.columns if "seconds" in column or column.startswith("t_")]
    return frame.drop(columns=times if REGISTRY.get(name).timed else []).reset_index(drop=True)


@pytest.mark.parametrize("name", MAKES_RECORDS)
def test_records_have_the_declared_columns(name: str, run: Runs) -> None:
    experiment = REGISTRY.get(name)
    assert next(iter(experiment.columns)) == "replicate"
    for variant in experiment.variants:
        frame = run(name, variant)
        assert len(frame)
        kinds = {column: str(kind) for column, kind in frame.dtypes.items()}
        assert kinds == experiment.columns


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_its_stage(name: str) -> None:
    assert REGISTRY.get(name).stage in STAGES


def test_an_experiment_without_a_stage_is_refused() -> None:
    with pytest.raises(
        PlanError,
        match=r"^the experiment stageless must declare its stage, one of simulate, train, account, "
        r"got None; add it to the class$",
    ):
        type("Stageless", (Experiment,), {"name": "stageless"})


@pytest.mark.parametrize("name", NAMES)
class TestSettings:
    def test_an_unknown_key_is_refused_by_name(self, name: str) -> None:
        with pytest.raises(
            PlanError,
            match=r"^unknown configuration key "
            rf"'experiments\.{name}\.partz'; did you mean",
        ):
            REGISTRY.get(name).settings({"partz": 1})

    def test_a_value_out_of_range_is_refused_by_name(self, name: str) -> None:
        with pytest.raises(
            PlanError,
            match=rf"^experiments\.{name}\.parts must be at least 1, got "
            r"0$",
        ):
            REGISTRY.get(name).settings({"parts": 0})

    def test_every_setting_is_described(self, name: str) -> None:
        assert undescribed(REGISTRY.get(name).Settings.model_json_schema()) == []


@pytest.mark.parametrize("name", few_short_ones(NAMES))
def test_the_split_of_replicates_does_not_matter_and_one_seed_gives_the_same_records(
    name: str, run: Runs
) -> None:
    experiment = REGISTRY.get(name)()
    count = experiment.replicates(experiment.settings(run.smoke[name]))
    variant = experiment.variants[-1]
    parts = [range(count // 2), range(count // 2, count)] if count > 1 else [range(1)]
    split = pd.concat([run(name, variant, part) for part in parts], ignore_index=True)
    whole = run(name, variant)
    if count > 1:  # parts are put together in the order of replicates, then cells
        split, whole = (frame.sort_values("replicate", kind="stable") for frame in (split, whole))
    pd.testing.assert_frame_equal(compared(name, split), compared(name, whole), check_exact=True)


SPLIT = [
    name
    for name, kind in REGISTRY.members().items()
    if (kind.axes or "cells" in vars(kind)) and not kind.timed
]


@pytest.mark.parametrize("name", few_short_ones(SPLIT))
def test_cells_together_have_the_records_of_the_whole(name: str, run: Runs) -> None:
    experiment, variant = REGISTRY.get(name)(), REGISTRY.get(name).variants[0]
    chosen = experiment.settings(run.smoke[name])
    order = ["replicate", *experiment.keys]
    found = []
    for cell in experiment.cells(chosen):
        data = {each: run.prepared[each] for each in experiment.data_of(cell)}
        every = range(experiment.replicates(cell))
        found.append(
            experiment.compute(plain(cell), variant=variant, replicates=every, seed=SEED, data=data)
        )
    together = pd.concat(found).drop_duplicates()  # rows without privacy may stand in several cells
    whole = run(name, variant).drop_duplicates()
    if any(
        experiment.replicates(cell) != experiment.replicates(chosen)
        for cell in experiment.cells(chosen)
    ):
        # replicates that are parts of a grid have their numbers in the grid that was asked for
        order.remove("replicate")
        together, whole = together.drop(columns="replicate"), whole.drop(columns="replicate")
    assert not whole.duplicated(order).any()
    pd.testing.assert_frame_equal(
        *(
            frame.sort_values(order, kind="stable", ignore_index=True)
            for frame in (together, whole)
        ),
        check_exact=True,
    )


def undescribed(schema: dict[str, Any]) -> list[str]:
    """Return the keys of a JSON schema that neither they nor their items describe."""
    parts = {"": schema, **schema.get("$defs", {})}
    return [
        f"{part}.{key}"
        for part, inside in parts.items()
        for key, item in inside.get("properties", {}).items()
        if "description" not in f"{item}" and "$ref" not in f"{item}"
    ]

"""Trainings of the tournament: pairing, the view of tuning, and independence of any split into
jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import PlanError
from dpsub.papers.tournament import tasks
from dpsub.papers.tournament.experiments import training
from dpsub.papers.tournament.experiments.training import (
    SharedBatches,
    TournamentTargets,
    TournamentTraining,
    batches_of,
    candidates,
    chosen,
    expanded,
    on_edge,
)
from dpsub.papers.tournament.settings import SCHEMES, Tuning
from dpsub.reproduce import sweep
from dpsub.reproduce.study.cells import Cell
from dpsub.reproduce.study.tasks import LearningRecords, Split
from dpsub.reproduce.study.training import Fit, train
from dpsub.sampling.frame import Samples
from dpsub.streams import Streams

STREAMS = Streams(5, "tournament_training")
FEW = Tuning(clips=(0.3, 1.0, 3.0), moves=(0.1, 1.0, 10.0))
OVER: dict[str, Any] = {
    "tuning": FEW.model_dump(),
    "trainings": [
        {
            "datasets": ["breast_cancer"],
            "adjacency": ["substitute", "zero_out"],
            "samplers": ["nonprivate", "poisson", "wor"],
            "m": 20,
            "epochs": [1],
            "target_epsilon": [1, 8],
            "target_delta": 1e-5,
        },
        {
            "datasets": ["linear"],
            "samplers": ["nonprivate", "shuffle"],
            "m": 400,
            "epochs": [1],
            "target_epsilon": 2,
        },
    ],
}
RUN: dict[str, Any] = {"variant": "rigorous", "seed": 5}
TARGETS, TRAININGS = TournamentTargets(), TournamentTraining()


@pytest.fixture(scope="module")
def records() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return records of both experiments, the second with the first, for three seeds."""
    targets = TARGETS.compute(
        OVER, replicates=range(TARGETS.replicates(TARGETS.settings(OVER))), **RUN
    )
    return targets, TRAININGS.compute(OVER, replicates=range(3), records=read(targets), **RUN)


def read(targets: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return records as an experiment that needs them gets them."""
    return {"tournament_targets": targets.assign(variant="rigorous")}


def group(
    sampler: str = "poisson", *cells: Cell, dataset: str = "breast_cancer", m: int = 20
) -> SharedBatches:
    return SharedBatches(dataset, sampler, m, 1, cells)


def trained(
    one: SharedBatches, data: LearningRecords, fits: list[Fit], seeds: range
) -> Iterator[tuple[np.ndarray, Split, Samples]]:
    """Train these fits as a group of the experiment does."""

    def split_of(seed: int) -> Split:
        return tasks.split(one.task, len(data.y), seed, STREAMS)

    return train(one.task, batches_of(one, data), data, split_of, fits, seeds, STREAMS)


def test_records_are_of_every_cell_once(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    targets, trainings = records
    assert len(targets) == 2 * 4 + 1
    assert not targets.duplicated(list(TARGETS.keys)).any()
    assert len(trainings) == 3 * (len(targets) + 2)  # those without privacy
    assert not trainings.duplicated(["replicate", *TRAININGS.keys]).any()
    nonprivate = trainings[trainings["sampler"] == "nonprivate"]
    assert (nonprivate[["noise_multiplier", "necessary"]] == 0).all(axis=None)
    assert nonprivate[["target_epsilon", "target_delta"]].isna().all(axis=None)
    assert (trainings["necessary"] <= trainings["noise_multiplier"]).all()
    assert trainings["accuracy"].isna().equals(trainings["dataset"] == "linear")
    shuffled = trainings[trainings["sampler"] == "shuffle"]
    assert (shuffled["gradients"] == shuffled["gradients_expected"]).all()
    assert (abs(trainings["gradients"] / trainings["gradients_expected"] - 1) < 0.3).all()


def test_no_split_into_jobs_moves_a_number(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    targets, trainings = records
    parts = [
        TARGETS.compute(OVER, replicates=range(*span), **RUN)
        for span in ((0, 4), (4, len(targets)))
    ]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), targets, check_exact=True)
    alone = pd.concat(
        [
            TRAININGS.compute(OVER, replicates=range(seed, seed + 1), records=read(targets), **RUN)
            for seed in range(3)
        ]
    )
    keys = ["dataset", "sampler", "adjacency", "target_epsilon", "replicate"]
    both = [frame.sort_values(keys).reset_index(drop=True) for frame in (alone, trainings)]
    pd.testing.assert_frame_equal(*both, check_exact=True)


def test_noise_is_that_of_the_records(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    targets = records[0].assign(noise_multiplier=123.0)
    found = TRAININGS.compute(OVER, replicates=range(1), records=read(targets), **RUN)
    assert (
        found["noise_multiplier"] == np.where(found["sampler"] == "nonprivate", 0.0, 123.0)
    ).all()


def test_a_cell_of_a_sweep_has_the_same_numbers(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    block = sweep.SweepBlock.model_validate(
        {"experiment": "tournament_training", "variants": ["rigorous"], "replicates": 3, **OVER}
    )
    found = sweep.expand([block])
    assert len(found) == 3 + 2
    planned = sum(
        TRAININGS.records_a_replicate(cell.settings) * count for cell, count in found.values()
    )
    assert planned == len(records[1])
    alone = [
        TRAININGS.records(cell.settings, training.Run("rigorous", range(3), STREAMS))
        for cell, _ in found.values()
    ]
    pd.testing.assert_frame_equal(pd.concat(alone, ignore_index=True), records[1], check_exact=True)


def test_schemes_share_split_initial_values_and_normal_numbers() -> None:
    """At a gradient of 0, which a clip of almost nothing makes, noise alone moves the
    parameters."""
    data = tasks.load(tasks.TASKS["breast_cancer"], {}, STREAMS)
    ends = {}
    for sampler in SCHEMES:
        if sampler not in ("three_stage", "must_ow", "must_ww"):
            found = list(
                trained(group(sampler), data, [Fit(1e9, 1e-9, 1.0), Fit(2e9, 1e-9, 1.0)], range(2))
            )
            ends[sampler] = np.stack([parameters for parameters, _, _ in found])
            for (_, parts, _), (_, first, _) in zip(
                found, trained(group(), data, [Fit(0, 1, 1)], range(2)), strict=True
            ):
                assert np.array_equal(parts.training, first.training)
                assert np.array_equal(parts.validation, first.validation)
    for found in ends.values():
        assert found == pytest.approx(ends["poisson"], rel=1e-6)
    assert ends["poisson"][:, 1] == pytest.approx(2 * ends["poisson"][:, 0], rel=1e-6)
    assert not np.allclose(*ends["poisson"][:, 0])


def test_noise_is_the_multiplier_times_the_clip_over_m() -> None:
    one, data = group(), tasks.load(tasks.TASKS["breast_cancer"], {}, STREAMS)
    spread = [
        next(trained(one, data, [Fit(1e9 * clip, 1e-9 / clip, 1.0)], range(1)))[0]
        for clip in (1, 10)
    ]
    normal = STREAMS.noise({"dataset": one.dataset, "steps": one.steps}, 0).standard_normal(
        (one.steps, 31)
    )
    for found in spread:
        assert found[0] == pytest.approx(-normal.sum(axis=0) / one.m, rel=1e-6)


def test_the_choice_does_not_read_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    task, load = tasks.TASKS["breast_cancer"], tasks.load
    over = {**OVER, "trainings": [{**OVER["trainings"][0], "samplers": ["poisson"]}]}

    def found(swapped: str) -> pd.DataFrame:
        def changed(*arguments: Any) -> LearningRecords:
            data = load(*arguments)
            parts, y = tasks.split(task, len(data.y), 0, STREAMS), data.y.copy()
            where = getattr(parts, swapped) if swapped else []
            y[where] = 1 - y[where]
            return replace(data, y=y)

        training._loaded.cache_clear()
        monkeypatch.setattr(tasks, "load", changed)
        return TRAININGS.compute(over, replicates=range(1), **RUN)

    as_they_are, tested, validated = map(found, ("", "test", "validation"))
    training._loaded.cache_clear()
    choice = ["clip", "learning_rate", "validation_loss"]
    assert tested[choice].equals(as_they_are[choice])
    assert (tested["test_loss"] != as_they_are["test_loss"]).all()
    assert (validated["validation_loss"] != as_they_are["validation_loss"]).all()
    assert (validated["learning_rate"] != as_they_are["learning_rate"]).any()


def test_the_choice_is_the_least_loss_and_ties_go_to_small_steps() -> None:
    tried, losses = candidates(FEW), np.full(9, 1.0)
    assert [one[1] for one in tried] == sorted(one[1] for one in tried)
    assert chosen(losses, FEW)[1].learning_rate == tried[0][1]
    losses[2], losses[4] = np.nan, 0.5
    place, found = chosen(losses, FEW)
    assert (place, found.clip, found.learning_rate, found.validation_loss) == (4, *tried[4], 0.5)
    assert chosen(np.full(9, np.nan), FEW)[1].on_edge == 1


def test_the_edge_of_the_grid() -> None:
    assert [on_edge(clip * rate, FEW) for clip, rate in candidates(FEW) if clip == 0.3] == [
        True,
        False,
        True,
    ]


def test_without_noise_the_loss_is_smaller(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    loss = (
        records[1]
        .groupby(["dataset", "sampler", "target_epsilon"], dropna=False)["test_loss"]
        .mean()
    )
    assert loss["breast_cancer", "nonprivate"].iloc[0] < loss["breast_cancer", "wor", 1.0]


def test_cost_grows_linearly_in_steps_and_batch() -> None:
    def cost(m: int, epochs: int) -> Any:
        entry = {
            "datasets": ["cover"],
            "samplers": "poisson",
            "m": m,
            "epochs": epochs,
            "target_epsilon": 2,
        }
        return TRAININGS.cost(TRAININGS.settings({"trainings": [entry]}))

    base = cost(20, 1)
    for m, epochs in ((20, 10), (200, 10), (2000, 10), (20, 100)):
        assert cost(m, epochs).replicate <= base.replicate * epochs  # epochs x n = steps x m
    assert cost(20, 100).replicate > 50 * base.replicate / 2


def test_published_trainings_are_plenty() -> None:
    settings = TRAININGS.settings({})
    groups = expanded(settings)
    runs = len(candidates(settings.tuning)) * sum(len(one.cells) for one in groups)
    assert settings.replicates * runs > 100_000
    assert {one.sampler for one in groups} == {"nonprivate", "importance", *SCHEMES}
    assert {one.dataset for one in groups} == set(tasks.TASKS)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ([{**OVER["trainings"][0], "datasets": "digit"}], "digits"),
        (
            [
                OVER["trainings"][0],
                {**OVER["trainings"][0], "samplers": "wor", "target_epsilon": 8},
            ],
            "cell once, got wor",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        TRAININGS.settings({"trainings": wrong})


def test_importance_sampling_takes_fewer_gradients_with_the_noise_of_poisson() -> None:
    entry = {
        "datasets": ["mixture", "breast_cancer"],
        "samplers": ["poisson", "importance"],
        "m": 80,
        "epochs": 1,
    }
    over = {"tuning": OVER["tuning"], "trainings": [{**entry, "target_epsilon": 2}]}
    found = (
        TRAININGS.compute(over, replicates=range(4), **RUN)
        .set_index(["dataset", "sampler", "replicate"])
        .sort_index()
    )
    assert ("breast_cancer", "importance", 0) not in found.index, "nothing to thin"
    thinned, whole = found.loc["mixture", "importance"], found.loc["mixture", "poisson"]
    assert (thinned["noise_multiplier"] == whole["noise_multiplier"]).all()
    assert (thinned["gradients"] < 0.8 * whole["gradients"]).all()
    assert thinned["gradients"].mean() == pytest.approx(
        thinned["gradients_expected"].iloc[0], rel=0.05
    )

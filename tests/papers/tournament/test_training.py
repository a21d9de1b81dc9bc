"""Trainings of the tournament: what is paired, what tuning sees, and what no split into jobs may move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import PlanError
from dpsub.papers.tournament import tasks
from dpsub.papers.tournament.experiments import training
from dpsub.papers.tournament.experiments.training import (
    TUNING,
    Fit,
    Group,
    TournamentTraining,
    TournamentTuning,
    candidates,
    expanded,
    on_edge,
    trained,
    tuned,
)
from dpsub.papers.tournament.settings import SCHEMES, Cell, Tuning
from dpsub.reproduce import sweep
from dpsub.streams import Streams

STREAMS = Streams(5, "tournament_training")
FEW = Tuning(seeds=2, clips=(0.3, 1.0, 3.0), moves=(0.1, 1.0, 10.0))
OVER: dict[str, Any] = {
    "tuning": FEW.model_dump(),
    "trainings": [
        {"datasets": ["breast_cancer"], "adjacency": ["substitute", "zero_out"],
         "samplers": ["nonprivate", "poisson", "wor"], "m": 20, "epochs": [1], "target_epsilon": [1, 8],
         "target_delta": 1e-5},
        {"datasets": ["linear"], "samplers": ["nonprivate", "shuffle"], "m": 400, "epochs": [1], "target_epsilon": 2},
    ],
}  # fmt: skip
RUN: dict[str, Any] = {"variant": "rigorous", "seed": 5}
TUNINGS, TRAININGS = TournamentTuning(), TournamentTraining()


@pytest.fixture(scope="module")
def records() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of both experiments, the second with the first, for three seeds."""
    cells = TUNINGS.replicates(TUNINGS.settings(OVER))
    tunings = TUNINGS.compute(OVER, replicates=range(cells), **RUN)
    return tunings, TRAININGS.compute(
        OVER, replicates=range(3), records={"tournament_tuning": tunings.assign(variant="rigorous")}, **RUN
    )


def group(sampler: str = "poisson", *cells: Cell, dataset: str = "breast_cancer", m: int = 20) -> Group:
    return Group(dataset, sampler, m, 1, cells)


def test_records_are_of_every_cell_once(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    tunings, trainings = records
    assert len(tunings) == 1 + 2 * 4 + 1 + 1
    assert not tunings.duplicated(list(TUNINGS.keys)).any()
    assert len(trainings) == 3 * len(tunings)
    nonprivate = trainings[trainings["sampler"] == "nonprivate"]
    assert (nonprivate[["noise_multiplier", "necessary"]] == 0).all(axis=None)
    assert nonprivate[["target_epsilon", "target_delta"]].isna().all(axis=None)
    assert (trainings["necessary"] <= trainings["noise_multiplier"]).all()
    assert trainings["accuracy"].isna().equals(trainings["dataset"] == "linear")
    shuffled = trainings[trainings["sampler"] == "shuffle"]
    assert (shuffled["gradients"] == shuffled["gradients_expected"]).all()
    assert (abs(trainings["gradients"] / trainings["gradients_expected"] - 1) < 0.3).all()


def test_no_split_into_jobs_moves_a_number(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    tunings, trainings = records
    parts = [TUNINGS.compute(OVER, replicates=range(*span), **RUN) for span in ((0, 4), (4, len(tunings)))]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), tunings, check_exact=True)
    read = {"tournament_tuning": tunings.assign(variant="rigorous")}
    alone = pd.concat(
        [TRAININGS.compute(OVER, replicates=range(seed, seed + 1), records=read, **RUN) for seed in range(3)]
    )
    keys = ["dataset", "sampler", "adjacency", "target_epsilon", "replicate"]
    both = [frame.sort_values(keys).reset_index(drop=True) for frame in (alone, trainings)]
    pd.testing.assert_frame_equal(*both, check_exact=True)


def test_a_cell_of_a_sweep_tunes_itself_and_has_the_same_numbers(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    block = sweep.Block.model_validate(
        {"experiment": "tournament_training", "variants": ["rigorous"], "replicates": 3, **OVER}
    )
    found = sweep.expand([block])
    assert len(found) == 3 + 2
    alone = [
        TRAININGS.records(cell.settings, training.Run("rigorous", range(3), STREAMS)) for cell, _ in found.values()
    ]
    pd.testing.assert_frame_equal(pd.concat(alone, ignore_index=True), records[1], check_exact=True)


def test_schemes_share_split_initial_values_and_normal_numbers() -> None:
    """At a gradient of 0, which a clip of almost nothing makes, noise alone moves the parameters."""
    data = tasks.load(tasks.TASKS["breast_cancer"], {}, STREAMS)
    ends = {}
    for sampler in SCHEMES:
        if sampler not in ("three_stage", "must_ow", "must_ww"):
            found = list(trained(group(sampler), data, [Fit(1e9, 1e-9, 1.0), Fit(2e9, 1e-9, 1.0)], range(2), STREAMS))
            ends[sampler] = np.stack([parameters for parameters, _, _ in found])
            for (_, parts, _), (_, first, _) in zip(found, trained(group(), data, [Fit(0, 1, 1)], range(2), STREAMS),
                                                    strict=True):  # fmt: skip
                assert np.array_equal(parts.training, first.training)
                assert np.array_equal(parts.validation, first.validation)
    for found in ends.values():
        assert found == pytest.approx(ends["poisson"], rel=1e-6)
    assert ends["poisson"][:, 1] == pytest.approx(2 * ends["poisson"][:, 0], rel=1e-6)
    assert not np.allclose(*ends["poisson"][:, 0])


def test_noise_is_the_multiplier_times_the_clip_over_m() -> None:
    one, data = group(), tasks.load(tasks.TASKS["breast_cancer"], {}, STREAMS)
    spread = [next(trained(one, data, [Fit(1e9 * clip, 1e-9 / clip, 1.0)], range(1), STREAMS))[0] for clip in (1, 10)]
    normal = STREAMS.noise({"dataset": one.dataset, "steps": one.steps}, 0).standard_normal((one.steps, 31))
    for found in spread:
        assert found[0] == pytest.approx(-normal.sum(axis=0) / one.m, rel=1e-6)


def test_tuning_does_not_read_the_test_part() -> None:
    task = tasks.TASKS["breast_cancer"]
    data = tasks.load(task, {}, STREAMS)
    test = tasks.split(task, len(data.y), TUNING, STREAMS).test
    cell = Cell("zero_out", "poisson", task.n, 20, 1, 2.0, 1e-5)
    chosen = tuned(group("poisson", cell), cell, data, FEW, STREAMS)
    y = data.y.copy()
    y[test] = 1 - y[test]
    assert tuned(group("poisson", cell), cell, replace(data, y=y), FEW, STREAMS) == chosen
    assert tuned(group("poisson", cell), cell, replace(data, y=1 - y), FEW, STREAMS) != chosen


def test_the_choice_is_the_least_mean_loss_and_ties_go_to_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = np.full((2, 9), 1.0)
    losses[:, 4], losses[1, 2] = 0.5, 0.0
    losses[0, 2] = np.nan
    task = tasks.TASKS["breast_cancer"]
    data = tasks.load(task, {}, STREAMS)
    monkeypatch.setattr(
        training, "trained", lambda *_: ((row, tasks.split(task, 569, 0, STREAMS), 0) for row in losses)
    )
    monkeypatch.setattr(type(task.model), "loss", lambda self, parameters, x, y: parameters)
    tried, cell = candidates(FEW), Cell("zero_out", "poisson", task.n, 20, 1, 2.0, 1e-5)
    assert [one[1] for one in tried] == sorted(one[1] for one in tried)
    found = tuned(group("poisson", cell), cell, data, FEW, STREAMS)
    assert (found.clip, found.learning_rate, found.validation_loss) == (*tried[4], 0.5)
    losses[:] = 1.0
    assert tuned(group("poisson", cell), cell, data, FEW, STREAMS).learning_rate == tried[0][1]
    losses[:] = np.inf
    assert tuned(group("poisson", cell), cell, data, FEW, STREAMS).on_edge == 1


def test_the_edge_of_the_grid() -> None:
    assert [on_edge(clip * rate, FEW) for clip, rate in candidates(FEW) if clip == 0.3] == [True, False, True]


def test_without_noise_the_loss_is_smaller(records: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    loss = records[1].groupby(["dataset", "sampler", "target_epsilon"], dropna=False)["test_loss"].mean()
    assert loss["breast_cancer", "nonprivate"].iloc[0] < loss["breast_cancer", "wor", 1.0]


def test_cost_grows_linearly_in_steps_and_batch() -> None:
    def cost(m: int, epochs: int) -> Any:
        entry = {"datasets": ["cover"], "samplers": "poisson", "m": m, "epochs": epochs, "target_epsilon": 2}
        return TRAININGS.cost(TRAININGS.settings({"trainings": [entry]}))

    base = cost(20, 1)
    for m, epochs in ((20, 10), (200, 10), (2000, 10), (20, 100)):
        assert cost(m, epochs).replicate <= base.replicate * epochs  # epochs x n = steps x m
        assert cost(m, epochs).setup <= base.setup * epochs
    assert cost(20, 100).replicate > 50 * base.replicate / 2


def test_published_trainings_are_plenty() -> None:
    settings = TRAININGS.settings({})
    groups = expanded(settings)
    assert settings.replicates * sum(len(one.cells) for one in groups) > 10_000
    assert {one.sampler for one in groups} == {"nonprivate", "importance", *SCHEMES}
    assert {one.dataset for one in groups} == set(tasks.TASKS)


@pytest.mark.parametrize("wrong, message", [
    ([{**OVER["trainings"][0], "datasets": "digit"}], "digits"),
    ([OVER["trainings"][0], {**OVER["trainings"][0], "samplers": "wor", "target_epsilon": 8}], "cell once, got wor"),
])  # fmt: skip
def test_what_cannot_be_trained_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        TRAININGS.settings({"trainings": wrong})


def test_importance_sampling_takes_fewer_gradients_with_the_noise_of_poisson() -> None:
    entry = {"datasets": ["mixture", "breast_cancer"], "samplers": ["poisson", "importance"], "m": 80, "epochs": 1}
    over = {"tuning": OVER["tuning"], "trainings": [{**entry, "target_epsilon": 2}]}
    found = (
        TRAININGS.compute(over, replicates=range(4), **RUN).set_index(["dataset", "sampler", "replicate"]).sort_index()
    )
    assert ("breast_cancer", "importance", 0) not in found.index, "nothing to thin"
    thinned, whole = found.loc["mixture", "importance"], found.loc["mixture", "poisson"]
    assert (thinned["noise_multiplier"] == whole["noise_multiplier"]).all()
    assert (thinned["gradients"] < 0.8 * whole["gradients"]).all()
    assert thinned["gradients"].mean() == pytest.approx(thinned["gradients_expected"].iloc[0], rel=0.05)

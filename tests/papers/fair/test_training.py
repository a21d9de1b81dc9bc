"""Models are trained as the accountant assumes: units of the noise, denominator, pairing, the
bootstrap's interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.data import bundled, ijcnn1
from dpsub.errors import ArgumentError, DataError
from dpsub.learning.metrics import area_under_curve
from dpsub.papers.fair.experiments import training
from dpsub.papers.fair.experiments.cells import cell_of, entry_of, fields_of
from dpsub.papers.fair.experiments.comparison import FairComparison
from dpsub.papers.fair.experiments.training import SeedData, batches_of, load
from dpsub.papers.fair.settings import TASKS
from dpsub.papers.fair.subsets import mean_interval, noise_of_average
from dpsub.reproduce.study.cells import Cell
from dpsub.sampling import Wor
from dpsub.streams import Streams, stream

ROOT = 11
STREAMS = Streams(ROOT, "fair_comparison")
SEEDS = range(3)
SIZES: dict[str, Any] = {"m": 40, "b": 80, "steps": 12}
TARGET: dict[str, Any] = {"target_epsilon": 1.0, "target_delta": 1e-5}
TASK = TASKS["breast_cancer"]


def cell_with(sampler: str = "must_ow", **changes: Any) -> Cell:
    return cell_of(sampler, TASK.name, **{**SIZES, **TARGET, **changes})


def standard_normals(cell: Cell, replicate: int) -> np.ndarray:
    rng = stream(
        ROOT,
        experiment="fair_comparison",
        cell={"dataset": cell.dataset, "steps": cell.steps},
        role="noise",
        replicate=replicate,
    )
    return rng.standard_normal((cell.steps, TASK.model.n_parameters))


def descended_by_loop(cell: Cell, data: SeedData, seed: int, multiplier: float) -> np.ndarray:
    """Train by the accountant's release, step by step: clip each record to C, sum over slots, add
    N(0, (s C)^2), divide by m."""
    block, rows = batches_of(cell).drawn(seed, STREAMS), data.splits[seed].training
    beta = np.zeros(TASK.model.n_parameters)
    for t in range(cell.steps):
        batch, total = block[t], np.zeros(len(beta))
        for index, count in zip(batch.indices, batch.counts, strict=True):
            x, y = data.records.x[rows[index]], data.records.y[rows[index]]
            gradient = (1 / (1 + np.exp(-x @ beta)) - y) * x
            total += count * gradient * min(1.0, TASK.clip / np.linalg.norm(gradient))
        noisy = total + multiplier * TASK.clip * standard_normals(cell, seed)[t]
        beta = beta - TASK.learning_rate * noisy / cell.m
    return beta


def measured_by_loop(cell: Cell, data: SeedData, seed: int, multiplier: float) -> dict[str, float]:
    beta = descended_by_loop(cell, data, seed, multiplier)
    return training.model_measures(TASK, data.records, data.splits[seed], beta)


@pytest.mark.parametrize("sampler", ["poisson", "wr", "must_ow", "wor:80,wr:60,wor:40"])
def test_training_is_the_release_that_the_accountant_assumes(sampler: str) -> None:
    cell, data = cell_with(sampler), load(TASK, SEEDS, STREAMS, {})
    answers = training.measured(cell, data, 5.0, SEEDS, STREAMS)
    for seed in SEEDS:
        expected = measured_by_loop(cell, data, seed, 5.0)
        assert {name: answers[seed][name] for name in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "wrong", [2 * 5.0, 5.0 / 40, 5.0 * 40 / 37], ids=["twice the clip", "mean", "realised size"]
)
def test_a_wrong_unit_of_the_noise_is_seen(wrong: float) -> None:
    cell, data = cell_with("poisson"), load(TASK, SEEDS, STREAMS, {})
    loss = measured_by_loop(cell, data, 0, wrong)["log_loss"]
    answers = training.measured(cell, data, 5.0, SEEDS, STREAMS)
    assert answers[0]["log_loss"] != pytest.approx(loss, rel=1e-4)


def test_each_seed_trains_on_its_own_simulated_data() -> None:
    """Least squares on the data set of a seed alone come near its coefficients."""
    task = TASKS["linear"]
    data = load(task, SEEDS, STREAMS, {})
    rows = [data.splits[seed].training for seed in SEEDS]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(len(SEEDS) * task.n))
    cell = cell_of("wor", "linear", m=500, b=None, steps=100, **TARGET)
    together = training.measured(cell, data, 1e-9, SEEDS, STREAMS)
    for seed, own in zip(SEEDS, rows, strict=True):
        alone = training.measured(cell, load(task, [seed], STREAMS, {}), 1e-9, [seed], STREAMS)
        error = "coefficient_error"
        assert together[seed][error] == pytest.approx(alone[0][error], rel=1e-12)
        fitted, *_ = np.linalg.lstsq(data.records.x[own], data.records.y[own], rcond=None)
        least = np.linalg.norm(fitted - np.array(training.BETA))
        assert together[seed][error] == pytest.approx(least, abs=0.1)


def test_noise_is_the_multiplier_times_the_clip_over_the_divisor() -> None:
    noise = noise_of_average(2.5, 3.0, 50.0, 4, 2, [np.random.default_rng(0)])
    assert noise[0] == pytest.approx(
        2.5 * 3.0 / 50.0 * np.random.default_rng(0).standard_normal((4, 2)), rel=1e-14
    )
    with pytest.raises(ArgumentError, match="noise_multiplier must be above 0"):
        noise_of_average(0.0, 3.0, 50.0, 4, 2, [np.random.default_rng(0)])


def test_samplers_and_targets_are_paired_by_seed() -> None:
    cells = [
        cell_with(),
        cell_with("wor"),
        cell_with(target_epsilon=2.0),
        cell_with(variant="consistent"),
    ]
    batches = [batches_of(cell) for cell in cells]
    assert all(one.paired == batches[0].paired for one in batches), "one key of the noise"
    draws = [one.drawn(0, STREAMS).indices for one in batches]
    assert np.array_equal(draws[0], draws[2]) and np.array_equal(draws[0], draws[3])
    assert not np.array_equal(draws[0][:20], draws[1][:20]), "each sampler has its own batches"
    first, again = (load(TASK, SEEDS, STREAMS, {}).splits for _ in range(2))
    for seed in SEEDS:
        assert np.array_equal(first[seed].training, again[seed].training)
        assert set(first[seed].training).isdisjoint(first[seed].test)
        assert len(first[seed].training) + len(first[seed].test) == 569
    assert not np.array_equal(first[0].training, first[1].training)


def test_the_noise_comes_from_the_records_of_its_experiment() -> None:
    """The noise is that of the records, and without privacy there is none, on the batches of
    Poisson sampling."""
    row = {
        "variant": "rigorous",
        **fields_of(cell_with("poisson")),
        "noise_multiplier": 5.0,
        "necessary": 4.5,
        "epsilon_lower": 0.9,
        "epsilon_upper": 1.0,
        "epsilon_add_remove": np.nan,
    }
    entry = entry_of(cell_with()).model_dump() | {"samplers": ["nonprivate", "poisson"], "b": []}
    found = FairComparison().compute(
        {"grid": [entry]},
        variant="rigorous",
        replicates=SEEDS,
        seed=ROOT,
        records={"fair_noise": pd.DataFrame([row])},
    )
    without, noisy = found[found["sampler"] == "nonprivate"], found[found["sampler"] == "poisson"]
    assert (
        list(noisy["noise_multiplier"]) == [5.0] * 3
        and list(without["noise_multiplier"]) == [0.0] * 3
    )
    assert list(without["gradients"]) == list(noisy["gradients"])
    assert without["log_loss"].mean() < noisy["log_loss"].mean()


@pytest.mark.parametrize(("factor", "kept"), [(1.0, True), (0.5, False)])
def test_the_interval_of_the_mean_keeps_its_level(factor: float, kept: bool) -> None:
    """The data are made up, with much noise; half the width must be caught. Chance of a false
    alarm: below 1e-6."""
    n, m, steps, tau = 200, 20, 30, 0.4
    law, inside, seeds, halves = Wor(m).multiplicity_law(n), 0, 2000, []
    rng = np.random.default_rng(3)
    for _ in range(seeds):
        x = rng.standard_normal(n)
        chosen = np.argsort(rng.random((steps, n)), axis=1)[:, :m]
        releases = x[chosen].mean(axis=1) + tau * rng.standard_normal(steps)
        centre, lower, upper = mean_interval(releases, law, n, m, tau, 0.95)
        half = factor * (upper - lower) / 2
        inside += centre - half <= 0 <= centre + half
        halves.append(half)
    assert (inside / seeds >= 0.94) == kept
    known = 1.96 * (1 / n + ((1 / m - 1 / n) + tau**2) / steps) ** 0.5
    assert np.median(halves) < 1.6 * known, "and is not kept by width alone"


def test_area_under_the_curve_counts_pairs() -> None:
    z, y = np.array([0.1, 0.4, 0.4, 0.8, 0.2]), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    pairs = [(a > b) + 0.5 * (a == b) for a in z[y == 1] for b in z[y == 0]]
    assert area_under_curve(z, y) == pytest.approx(np.mean(pairs))
    assert np.isnan(area_under_curve(z, np.ones(5)))


def test_rows_are_clipped_each_by_itself() -> None:
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    assert bundled.clipped_rows(rows, 1.0) == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))
    for name, shape in (("breast_cancer", (569, 30)), ("digits", (1797, 64))):
        features, labels = bundled.load(name)
        assert features.shape == shape and np.abs(features).max() <= 1 and set(labels) == {0.0, 1.0}
    with pytest.raises(
        ArgumentError, match="unknown bundled data set 'digit'; did you mean 'digits'"
    ):
        bundled.load("digit")


def test_ijcnn1_stand_in_and_damage(tmp_path: Path) -> None:
    table = ijcnn1.stand_in()
    assert (
        table.shape == (ijcnn1.N_RECORDS, 23) and int(table["positive"].sum()) == ijcnn1.N_POSITIVE
    )
    ijcnn1.write(table, tmp_path / "ijcnn1.parquet", label="synthetic", sources={})
    features, labels, label = ijcnn1.load(tmp_path / "ijcnn1.parquet")
    assert (
        label == "synthetic"
        and features.shape == (ijcnn1.N_RECORDS, 22)
        and labels.sum() == ijcnn1.N_POSITIVE
    )
    (tmp_path / "broken.bz2").write_bytes(b"no bz2")
    with pytest.raises(DataError, match=r"must hold 49990 lines of 'label index:value ...'"):
        ijcnn1.prepare(tmp_path / "broken.bz2")

"""Tasks of the tournament: their records, ranges, parts, and what seeds and experiments have in
common."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsub.data import dataset
from dpsub.data.dataset import Obtained
from dpsub.papers.tournament import tasks
from dpsub.papers.tournament.tasks import TASKS, TournamentTask, load, split
from dpsub.streams import Streams

STREAMS = Streams(5, "tournament_training")
SMALL = [task for task in TASKS.values() if task.name != "million"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return labelled stand-ins of the prepared data."""
    folder, found = tmp_path_factory.mktemp("data"), {}
    for name in {task.source for task in TASKS.values()} - {""}:
        kind = dataset.REGISTRY.get(name)
        found[name] = folder / f"{name}{kind.suffix}"
        kind().make(Obtained({}, "synthetic"), found[name])
    return found


@pytest.mark.parametrize("task", SMALL, ids=lambda task: task.name)
def test_records_fit_the_task(task: TournamentTask, data: dict[str, Path]) -> None:
    found = load(task, data, STREAMS)
    assert found.x.shape == (len(found.y), task.model.d)
    assert len(found.x) >= task.n + task.n_validation + task.n_test
    assert found.label == (
        "synthetic"
        if task.source
        else "real"
        if "digits" in task.name or "cancer" in task.name
        else "simulated"
    )
    ones = int((found.x[:, 0] == 1).all())
    assert ones == (task.name != "mixture"), "an intercept"
    assert (np.linalg.norm(found.x[:, ones:], axis=1) <= 1 + 1e-12).all()
    if task.classified:
        classes = getattr(task.model, "classes", 2)
        assert set(found.y) == set(range(classes))
    accuracy = task.model.accuracy(
        np.zeros((1, task.model.n_parameters)), found.x[:50], found.y[:50]
    )
    assert np.isnan(accuracy[0]) != task.classified
    for m in (task.n // 10, task.n // 20):
        assert task.n % m == 0 and task.n // m % 10 == 0, (
            "whole epochs, and groups of cyclic Poisson sampling"
        )


@pytest.mark.parametrize("task", SMALL, ids=lambda task: task.name)
def test_parts_are_disjoint_and_no_seed_or_experiment_moves_the_test(task: TournamentTask) -> None:
    total = 1797 if "digits" in task.name else tasks._total(task)
    first, second = (split(task, total, seed, STREAMS) for seed in (0, 1))
    everything = np.concatenate([first.training, first.validation, first.test])
    assert len(np.unique(everything)) == len(everything) == task.n + task.n_validation + task.n_test
    assert everything.max() < total
    assert np.array_equal(first.test, second.test) and not np.array_equal(
        first.training, second.training
    )
    tuned = split(task, total, 0, Streams(5, "tournament_tuning"))
    for part in ("training", "validation", "test"):
        assert np.array_equal(getattr(tuned, part), getattr(first, part))
    assert not np.array_equal(
        split(task, total, 0, Streams(6, "tournament_tuning")).test, first.test
    )


def test_tasks_on_the_same_records_share_the_parts() -> None:
    for one, other in (("digits", "digits_perceptron"), ("cover", "cover_perceptron")):
        left, right = (
            split(TASKS[name], tasks._total(TASKS[one]), 3, STREAMS) for name in (one, other)
        )
        assert np.array_equal(left.validation, right.validation)


@pytest.mark.parametrize("name", ["cover", "mixture", "linear"])
def test_simulated_records_are_those_of_the_configuration(name: str) -> None:
    one, same, other = (
        load(TASKS[name], {}, Streams(root, which)).x
        for root, which in ((5, "a"), (5, "b"), (6, "a"))
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)


TRAINED = """
import json
from dataclasses import replace
import numpy as np
from dpsub.learning.descent import train
from dpsub.papers.tournament.tasks import TASKS, load, split
from dpsub.reproduce import provenance
from dpsub.sampling import Wor
from dpsub.sampling.frame import Frame
from dpsub.streams import Streams
task, streams, rng = TASKS["million"], Streams(1, "tournament_training"), np.random.default_rng(0)
before = provenance.peak_memory()
records = load(task, {}, streams)
parts = split(task, len(records.x), 0, streams)
block = Wor(1000).draw_block(Frame(task.n), 1000, rng)
block = replace(block, indices=parts.training[block.indices])
found = train(
    task.model, records.x, records.y, [block], initial=np.zeros((1, 100)), learning_rate=4.0,
    clip=1.0, divisor=1000, noise_multiplier=1.0, rngs=[rng],
)
loss = task.model.loss(found, records.x[parts.test], records.y[parts.test])[0]
print(json.dumps([before, records.x.nbytes / 2**20, provenance.peak_memory(), loss]))
"""


@pytest.mark.slow
def test_a_million_records_train_in_bounded_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRAINED], capture_output=True, text=True, check=True
    )
    before, data, peak, loss = json.loads(done.stdout)
    print(f"{before:.0f} MiB before, {data:.0f} MiB of data, {peak:.0f} MiB at the peak")
    assert peak <= before + data + 150
    assert loss < 0.5, "and it learns: 0.69 at the start"

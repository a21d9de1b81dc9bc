"""Trainings of the tournament: clip and step size tuned by one rule for every scheme, then a model a seed."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.learning import models
from dpsub.papers.tournament import tasks
from dpsub.papers.tournament.experiments import noise
from dpsub.papers.tournament.settings import (
    IMPORTANCE,
    NONPRIVATE,
    Cell,
    Needed,
    TournamentTrainings,
    TrainingEntry,
    Tuning,
    needed,
    why_not,
)
from dpsub.reproduce.experiment import Cost, Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Parts, Replicates
from dpsub.sampling.frame import Frame
from dpsub.sampling.schemes import Plan, scheme
from dpsub.streams import Streams

DRAWS_AT_ONCE = 5 * 10**6
"""Bounds the memory of the batches of the seeds that are trained at once; has no influence on results."""
TUNING = 10**9
"""The first seed of tuning, beyond all of the comparison."""
CELL: dict[str, str] = {
    "adjacency": "str", "sampler": "str", "n": "int64", "m": "int64", "epochs": "int64", "steps": "int64",
    "target_epsilon": "float64", "target_delta": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Cells of a task that share their batches: one scheme of one size, at several targets under several relations.

    They are trained together, as they would be alone but for the last digit: so what is together is fixed by the entry
    of the grid, and not by what else a job computes.
    """

    dataset: str
    sampler: str
    m: int
    epochs: int
    cells: tuple[Cell, ...]

    @property
    def task(self) -> tasks.Task:
        return tasks.TASKS[self.dataset]

    @property
    def batches(self) -> str:
        """Scheme of the batches: those of importance sampling are Poisson's, thinned."""
        return "poisson" if self.sampler in (NONPRIVATE, IMPORTANCE) else self.sampler

    @cached_property
    def plan(self) -> Plan:
        """The sampler or schedule on the training part of the task's records."""
        return scheme(self.batches, self.task.n, self.m, self.epochs)[0]

    @property
    def steps(self) -> int:
        return self.epochs * -(-self.task.n // self.m)

    def fields(self, cell: Cell) -> dict[str, Any]:
        """What names a cell in records."""
        return {"dataset": self.dataset, **{name: getattr(cell, name) for name in CELL if name != "steps"},
                "steps": self.steps}  # fmt: skip


def accounted(cell: Cell) -> Cell:
    """Return the cell whose noise a cell needs: that of whole batches where they are thinned (accounting.md, 3.2)."""
    return replace(cell, sampler="poisson") if cell.sampler == IMPORTANCE else cell


def groups_of(entry: TrainingEntry) -> Iterator[tuple[TrainingEntry, Group]]:
    """Yield the groups of an entry, each with the entry that stands for it alone; what has no proof is left out."""
    for dataset, m, epochs, sampler in itertools.product(entry.datasets, entry.m, entry.epochs, entry.samplers):
        alone: dict[str, Any] = {"datasets": (dataset,), "samplers": (sampler,), "m": (m,), "epochs": (epochs,)}
        n = tasks.TASKS[dataset].n
        if sampler == NONPRIVATE:
            cells = [Cell("none", NONPRIVATE, n, m, epochs, math.nan, math.nan)]
        else:
            targets = itertools.product(entry.adjacency, entry.target_epsilon, entry.target_delta)
            tried = (Cell(adjacency, sampler, n, m, epochs, float(epsilon), float(delta))
                     for adjacency, epsilon, delta in targets)  # fmt: skip
            cells = [cell for cell in tried if not why_not(accounted(cell))]
            if sampler == IMPORTANCE and tasks.TASKS[dataset].least_chance == 1:
                cells = []  # nothing to thin
            alone |= {name: getattr(entry, name) for name in ("adjacency", "target_epsilon", "target_delta")}
        if cells:
            yield TrainingEntry(**alone), Group(dataset, sampler, m, epochs, tuple(cells))


def expanded(settings: TournamentTrainings) -> list[Group]:
    """Return the groups of all entries, each once: trainings without privacy are the same for several targets."""
    return list(dict.fromkeys(group for entry in settings.trainings for _, group in groups_of(entry)))


class Fit(NamedTuple):
    """How one run is trained."""

    noise_multiplier: float
    clip: float
    learning_rate: float


def trained(
    group: Group, data: tasks.Records, fits: Sequence[Fit], seeds: Sequence[int], streams: Streams
) -> Iterator[tuple[np.ndarray, tasks.Parts, int]]:
    """Train every fit on every seed, and yield for each seed the parameters, shape (fits, p), the parts of its split,
    and the number of gradients that were evaluated.

    A seed fixes the split into training and validation part, the initial values and the standard normal numbers of the
    noise, the same for all schemes; batches are each scheme's own, the same for all targets and relations.
    """
    task, plan, steps = group.task, group.plan, group.steps
    paired: dict[str, Any] = {"dataset": group.dataset, "steps": steps}
    drawn = {**paired, "sampler": group.batches, "m": group.m, "epochs": group.epochs}
    multiplier, clip, learning_rate = map(np.array, zip(*fits, strict=True))
    chances = task.chances(data.x) if group.sampler == IMPORTANCE else None
    at_once = max(1, DRAWS_AT_ONCE // (steps * group.m))
    for start in range(0, len(seeds), at_once):
        some = seeds[start : start + at_once]
        splits = [tasks.split(task, len(data.y), seed, streams) for seed in some]
        blocks = [plan.draw_block(Frame(task.n), steps, streams.sample(drawn, seed)) for seed in some]
        blocks = [replace(block, indices=parts.training[block.indices])
                  for block, parts in zip(blocks, splits, strict=True)]  # fmt: skip
        if chances is not None:
            rngs_of_thinning = (streams.sample({**drawn, "thinned": 1}, seed) for seed in some)
            blocks = [block.thinned(chances, rng) for block, rng in zip(blocks, rngs_of_thinning, strict=True)]
        initial = np.stack([task.model.initial(streams.initial({"dataset": task.name}, seed)) for seed in some])
        rngs = [streams.noise(paired, seed) for seed in some] if multiplier.any() else None
        with np.errstate(over="ignore", invalid="ignore"):  # a run with too long steps may leave all bounds
            found = models.train(
                task.model, data.x, data.y, blocks, initial=np.repeat(initial, len(fits), axis=0),
                learning_rate=np.tile(learning_rate, len(some)), clip=np.tile(clip, len(some)), divisor=float(group.m),
                noise_multiplier=np.tile(multiplier, len(some)), rngs=rngs, chances=chances,
            ).reshape(len(some), len(fits), -1)  # fmt: skip
        for parameters, block, parts in zip(found, blocks, splits, strict=True):
            yield parameters, parts, len(block.indices)


class Tuned(NamedTuple):
    """The noise of a cell, and what was chosen for it."""

    noise_multiplier: float
    necessary: float
    clip: float
    learning_rate: float
    validation_loss: float
    on_edge: int


def candidates(tuning: Tuning) -> list[tuple[float, float]]:
    """Return the candidates (clip, step size), the smallest step sizes first."""
    tried = itertools.product(tuning.clips, tuning.moves)
    return sorted(((clip, move / clip) for clip, move in tried), key=lambda one: (one[1], one[0]))


def on_edge(move: float, tuning: Tuning) -> bool:
    """Return whether a move is the smallest or largest of the grid: whether a wider one might have had a better one."""
    return not min(tuning.moves) * (1 + 1e-9) < move < max(tuning.moves) * (1 - 1e-9)


def tuned(group: Group, cell: Cell, data: tasks.Records, tuning: Tuning, streams: Streams) -> Tuned:
    """Return the noise that a cell is proved to need, and the candidate of least mean loss on the validation parts.

    A run that ends beyond all numbers has infinite loss; of equal losses the one of the smaller step size counts.
    """
    proved = needed(accounted(cell)) if group.sampler != NONPRIVATE else Needed(0.0, 0.0, math.nan, math.nan)
    tried = candidates(tuning)
    fits = [Fit(proved.noise_multiplier, clip, rate) for clip, rate in tried]
    losses = []
    seeds = range(TUNING, TUNING + tuning.seeds)
    for parameters, parts, _ in trained(group, data, fits, seeds, streams):
        with np.errstate(over="ignore", invalid="ignore"):
            losses.append(group.task.model.loss(parameters, data.x[parts.validation], data.y[parts.validation]))
    mean = np.mean(losses, axis=0)
    mean[np.isnan(mean)] = np.inf
    best = int(mean.argmin())
    clip, learning_rate = tried[best]
    edge = int(on_edge(clip * learning_rate, tuning))
    return Tuned(proved.noise_multiplier, proved.necessary, clip, learning_rate, float(mean[best]), edge)


class TournamentExperiment(Experiment):
    """An experiment on the trainings of the grid."""

    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    needs_data: ClassVar[tuple[str, ...]] = tuple(sorted({task.source for task in tasks.TASKS.values()} - {""}))
    streams_of: ClassVar[str] = "tournament_training"

    class Settings(ExperimentSettings, TournamentTrainings):
        def check(self) -> None:
            for dataset in {name for entry in self.trainings for name in entry.datasets}:
                checks.one_of("task", dataset, tasks.TASKS)
            cells = Counter((group.dataset, cell) for group in expanded(self) for cell in group.cells)
            if cells and (most := cells.most_common(1)[0])[1] > 1:
                dataset, cell = most[0]
                raise ArgumentError(f"trainings must hold each cell once, got {cell.sampler} with m = {cell.m} on "
                                    f"{dataset} {most[1]} times; drop all but one")  # fmt: skip

    def data_of(self, settings: Any) -> tuple[str, ...]:
        return tuple(sorted({group.task.source for group in expanded(settings)} - {""}))


@lru_cache(maxsize=2)  # the schemes of a task meet the same records
def _loaded(dataset: str, path: Path | None, streams: Streams) -> tasks.Records:
    task = tasks.TASKS[dataset]
    return tasks.load(task, {task.source: path} if path else {}, streams)


def load(dataset: str, run: Run) -> tasks.Records:
    """Return the records of a task, read or drawn once for the cells that follow each other."""
    return _loaded(dataset, run.data.get(tasks.TASKS[dataset].source), run.streams)


class TournamentTuning(TournamentExperiment):
    """The norm bound and the step size of every cell, all by one rule; a record is a cell, numbered by `replicate`.

    Every candidate of one grid is trained with the noise that is proved to meet the target, on a few seeds that are
    not those of the comparison; the least mean loss on the validation part counts. The test part is not read. That
    a choice among trainings costs privacy too is not counted, the same for all schemes.
    """

    name: ClassVar[str] = "tournament_tuning"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", **CELL, "noise_multiplier": "float64", "necessary": "float64",
        "clip": "float64", "learning_rate": "float64", "validation_loss": "float64", "on_edge": "int64",
    }  # fmt: skip
    keys: ClassVar[tuple[str, ...]] = ("dataset", *CELL)

    class Settings(TournamentExperiment.Settings):
        parts: Parts = 8

    def replicates(self, settings: Any) -> int:
        """Return the number of cells."""
        return sum(len(group.cells) for group in expanded(settings))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        cells = [(group, cell) for group in expanded(settings) for cell in group.cells]
        return self.frame([
            {"replicate": number, **group.fields(cell),
             **tuned(group, cell, load(group.dataset, run), settings.tuning, run.streams)._asdict()}
            for number in run.replicates for group, cell in [cells[number]]
        ])  # fmt: skip


class TournamentTraining(TournamentExperiment):
    """Models of all schemes at one proved privacy; a record is a seed of a cell.

    Schemes are paired: a seed means the same split, initial values and standard normal numbers. Rows of the scheme
    "nonprivate" are clipped and tuned like the others, and get no noise.
    """

    name: ClassVar[str] = "tournament_training"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", **CELL, "noise_multiplier": "float64",
        "necessary": "float64", "clip": "float64", "learning_rate": "float64", "test_loss": "float64",
        "accuracy": "float64", "gradients": "float64", "gradients_expected": "float64",
    }  # fmt: skip
    keys: ClassVar[tuple[str, ...]] = ("dataset", "data_label", *CELL)
    needs_records: ClassVar[tuple[str, ...]] = ("tournament_tuning",)  # in a sweep each job tunes its own cells

    class Settings(TournamentExperiment.Settings):
        parts: Parts = 4
        replicates: Replicates = 20

    def records_a_replicate(self, settings: Any) -> int:
        """Return the number of cells, each of which a seed trains."""
        return sum(len(group.cells) for group in expanded(settings))

    def cells(self, settings: Any) -> Iterator[Any]:
        for entry in settings.trainings:
            for alone, _ in groups_of(entry):
                yield settings.model_copy(update={"trainings": (alone,)})

    def cost(self, settings: Any) -> Cost:
        setups, replicates, memory = zip(*(_cost(group, settings.tuning) for group in expanded(settings)), strict=True)
        return Cost(sum(setups), sum(replicates), max(memory))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        recorded, rows = _recorded(run), list[dict[str, Any]]()
        for group in expanded(settings):
            data = load(group.dataset, run)
            known = [recorded.get(_key(group.fields(cell))) or tuned(group, cell, data, settings.tuning, run.streams)
                     for cell in group.cells]  # fmt: skip
            fits = [Fit(one.noise_multiplier, one.clip, one.learning_rate) for one in known]
            expected = group.steps * group.plan.expected_distinct(group.task.n)
            if group.sampler == IMPORTANCE:
                expected *= group.task.chances(data.x).mean()
            found = trained(group, data, fits, run.replicates, run.streams)
            for seed, (parameters, parts, gradients) in zip(run.replicates, found, strict=True):
                with np.errstate(over="ignore", invalid="ignore"):
                    loss, accuracy = (measure(parameters, data.x[parts.test], data.y[parts.test])
                                      for measure in (group.task.model.loss, group.task.model.accuracy))  # fmt: skip
                rows += [
                    {"replicate": seed, **group.fields(cell), "data_label": data.label, "necessary": one.necessary,
                     **fit._asdict(), "test_loss": loss[i], "accuracy": accuracy[i], "gradients": gradients,
                     "gradients_expected": expected}
                    for i, (cell, fit, one) in enumerate(zip(group.cells, fits, known, strict=True))
                ]  # fmt: skip
        return self.frame(rows)


def _key(fields: Any) -> tuple[Any, ...]:
    """What names a cell, with None for NaN, which is not equal to itself."""
    return tuple(None if fields[name] != fields[name] else fields[name] for name in TournamentTuning.keys)


def _recorded(run: Run) -> dict[tuple[Any, ...], Tuned]:
    """Return what the records of `tournament_tuning` say of each cell, nothing if the run has none."""
    rows = run.records["tournament_tuning"].to_dict("records") if "tournament_tuning" in run.records else []
    return {_key(row): Tuned(*(row[name] for name in Tuned._fields)) for row in rows}


def _cost(group: Group, tuning: Tuning) -> tuple[float, float, float]:
    """Return seconds once, seconds a replicate, and MiB, as measured on one core; linear in steps x m."""
    task, steps = group.task, group.steps
    d, p, fits = task.model.d, task.n_parameters, len(group.cells)
    total = task.n + task.n_validation + task.n_test

    def seconds(runs: int, tested: int) -> float:
        """Of one seed, whose runs share batches, and of their loss on so many records."""
        each = 4e-8 + 4e-10 * p  # of a gradient
        step = 2e-5 + 5e-9 * runs * p + group.m * (3e-8 + 3e-9 * d + runs * each)
        return steps * step + 5e-8 * total + tested * runs * each

    tried = len(tuning.clips) * len(tuning.moves)
    calibrations = sum(noise.seconds(accounted(cell)) for cell in group.cells if group.sampler != NONPRIVATE)
    setup = 3e-6 * total + calibrations + fits * tuning.seeds * seconds(tried, task.n_validation)
    drawn = min(20 * steps * group.m, DRAWS_AT_ONCE)
    return setup, seconds(fits, task.n_test), 200 + (6 * d * total + 24 * drawn) / 2**20

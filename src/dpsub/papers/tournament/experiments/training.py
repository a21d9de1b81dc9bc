"""Trainings of the tournament: a model for each seed, its clip and step size tuned by one rule for
every scheme."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.papers.tournament import tasks
from dpsub.papers.tournament.experiments import noise
from dpsub.papers.tournament.settings import (
    IMPORTANCE,
    TournamentTrainings,
    TrainingEntry,
    Tuning,
    cell_of,
    law_of,
    needed,
    why_not,
)
from dpsub.papers.tournament.tasks import TournamentTask
from dpsub.reproduce.experiment import Cost, Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Parts, Replicates
from dpsub.reproduce.study.cells import NONPRIVATE, Cell
from dpsub.reproduce.study.noise import Needed
from dpsub.reproduce.study.tasks import LearningRecords, Split
from dpsub.reproduce.study.training import DRAWS_AT_ONCE, Batches, Fit, train
from dpsub.sampling.schemes import Plan, scheme, steps_of
from dpsub.streams import Streams

CELL: dict[str, str] = {
    "adjacency": "str",
    "sampler": "str",
    "n": "int64",
    "m": "int64",
    "epochs": "int64",
    "steps": "int64",
    "target_epsilon": "float64",
    "target_delta": "float64",
}


@dataclass(frozen=True)
class SharedBatches:
    """Cells of a task that share their batches: one scheme of one size, at several targets under
    several relations.

    They are trained together, as they would be alone but for the last digit: so what is together is
    fixed by the entry of the grid, and not by what else a job computes.
    """

    dataset: str
    sampler: str
    m: int
    epochs: int
    cells: tuple[Cell, ...]

    @property
    def task(self) -> TournamentTask:
        return tasks.TASKS[self.dataset]

    @cached_property
    def plan(self) -> Plan:
        """The sampler or schedule on the training part of the task's records."""
        return scheme(self.scheme, self.task.n, self.m, self.epochs)[0]

    @property
    def scheme(self) -> str:
        """Scheme of the batches: those of importance sampling are Poisson's, thinned."""
        return "poisson" if self.sampler in (NONPRIVATE, IMPORTANCE) else self.sampler

    @property
    def steps(self) -> int:
        return steps_of(self.task.n, self.m, self.epochs)

    def fields(self, cell: Cell) -> dict[str, Any]:
        """Fields that name a cell in records."""
        return {
            "dataset": self.dataset,
            **{name: getattr(cell, name) for name in CELL if name != "steps"},
            "steps": self.steps,
        }


def accounted(cell: Cell) -> Cell:
    """Return the cell whose noise a cell needs: that of whole batches where they are thinned
    (docs/proofs/poisson.md)."""
    return replace(cell, sampler="poisson") if cell.sampler == IMPORTANCE else cell


def groups_of(entry: TrainingEntry) -> Iterator[tuple[TrainingEntry, SharedBatches]]:
    """Yield the groups of an entry, each with the entry that stands for it alone, without cells
    that have no proof."""
    places = itertools.product(entry.datasets, entry.m, entry.epochs, entry.samplers)
    for dataset, m, epochs, sampler in places:
        alone: dict[str, Any] = {
            "datasets": (dataset,),
            "samplers": (sampler,),
            "m": (m,),
            "epochs": (epochs,),
        }
        if sampler != NONPRIVATE:
            targets = ("adjacency", "target_epsilon", "target_delta")
            alone |= {name: getattr(entry, name) for name in targets}
        if cells := _cells_of(entry, dataset, m, epochs, sampler):
            yield TrainingEntry(**alone), SharedBatches(dataset, sampler, m, epochs, cells)


def _cells_of(
    entry: TrainingEntry, dataset: str, m: int, epochs: int, sampler: str
) -> tuple[Cell, ...]:
    """Return the cells of one group that have a proof."""
    task = tasks.TASKS[dataset]
    if sampler == NONPRIVATE:
        return (cell_of("none", NONPRIVATE, task.n, m, epochs, math.nan, math.nan),)
    if sampler == IMPORTANCE and task.least_chance == 1:
        return ()  # nothing to thin
    cells = [
        cell_of(adjacency, sampler, task.n, m, epochs, *target)
        for adjacency, target in itertools.product(entry.adjacency, entry.targets)
    ]
    # A cell without a proof has no noise, and is not trained.
    return tuple(cell for cell in cells if not why_not(accounted(cell)))


def expanded(settings: TournamentTrainings) -> list[SharedBatches]:
    """Return the groups of all entries, each once: trainings without privacy are the same for
    several targets."""
    groups = [group for entry in settings.trainings for _, group in groups_of(entry)]
    return list(dict.fromkeys(groups))


def batches_of(group: SharedBatches, data: LearningRecords) -> Batches:
    """Return the batches of a group, the same for all targets and relations."""
    # Importance sampling thins Poisson batches by a function of the row alone.
    chances = group.task.chances(data.x) if group.sampler == IMPORTANCE else None
    key = {"sampler": group.scheme, "m": group.m, "epochs": group.epochs}
    return Batches(
        group.dataset, group.plan, group.task.n, group.m, group.steps, key, chances=chances
    )


class Chosen(NamedTuple):
    """The candidate that was chosen for a seed of a cell."""

    clip: float
    learning_rate: float
    validation_loss: float
    on_edge: int


def candidates(tuning: Tuning) -> list[tuple[float, float]]:
    """Return the candidates (clip, step size), the smallest step sizes first."""
    pairs = itertools.product(tuning.clips, tuning.moves)
    tried = [(clip, move / clip) for clip, move in pairs]
    # the first of equal losses is chosen: then the one of the smaller steps
    return sorted(tried, key=lambda candidate: candidate[::-1])


def on_edge(move: float, tuning: Tuning) -> bool:
    """Return whether a move is the smallest or largest of the grid: whether a wider one might have
    had a better one."""
    return not min(tuning.moves) * (1 + 1e-9) < move < max(tuning.moves) * (1 - 1e-9)


def chosen(losses: np.ndarray, tuning: Tuning) -> tuple[int, Chosen]:
    """Return the index of the candidate with the least loss on the validation part, and the
    candidate.

    A run that ends beyond all numbers has infinite loss; of equal losses the one of the smaller
    step size counts.
    """
    # Candidates are sorted by step size: of equal losses `argmin` takes the smallest step.
    best = int(np.where(np.isnan(losses), np.inf, losses).argmin())
    clip, learning_rate = candidates(tuning)[best]
    edge = on_edge(clip * learning_rate, tuning)
    return best, Chosen(clip, learning_rate, float(losses[best]), int(edge))


class TournamentExperiment(Experiment):
    """An experiment on the trainings of the grid."""

    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    needs_data: ClassVar[tuple[str, ...]] = tuple(
        sorted({task.source for task in tasks.TASKS.values()} - {""})
    )
    streams_of: ClassVar[str] = "tournament_training"

    class Settings(ExperimentSettings, TournamentTrainings):
        def check(self) -> None:
            for dataset in {name for entry in self.trainings for name in entry.datasets}:
                checks.one_of("task", dataset, tasks.TASKS)
            cells = Counter(
                (group.dataset, cell) for group in expanded(self) for cell in group.cells
            )
            # Two entries with a cell in common would count its seeds twice.
            if cells and (most := cells.most_common(1)[0])[1] > 1:
                dataset, cell = most[0]
                raise ArgumentError(
                    f"trainings must hold each cell once, got {cell.sampler} with m = {cell.m} on "
                    f"{dataset} {most[1]} times; drop all but one"
                )

    def data_of(self, settings: Any) -> tuple[str, ...]:
        return tuple(sorted({group.task.source for group in expanded(settings)} - {""}))


@lru_cache(maxsize=2)  # the schemes of a task meet the same records
def _loaded(dataset: str, path: Path | None, streams: Streams) -> LearningRecords:
    task = tasks.TASKS[dataset]
    return tasks.load(task, {task.source: path} if path else {}, streams)


def load(dataset: str, run: Run) -> LearningRecords:
    """Return the records of a task, read or drawn once for the cells that follow each other."""
    return _loaded(dataset, run.data.get(tasks.TASKS[dataset].source), run.streams)


class TournamentTargets(TournamentExperiment):
    """The noise of every cell that is trained; a record is a cell, numbered by `replicate`,
    whatever its task."""

    name: ClassVar[str] = "tournament_targets"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        **CELL,
        **dict.fromkeys(Needed._fields, "float64"),
    }
    keys: ClassVar[tuple[str, ...]] = tuple(CELL)

    class Settings(TournamentExperiment.Settings):
        parts: Parts = 4

    def data_of(self, settings: Any) -> tuple[str, ...]:
        return ()

    def replicates(self, settings: Any) -> int:
        """Return the number of cells."""
        return len(_targets(settings))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        cells = _targets(settings)
        rows = []
        for number in run.replicates:
            cell = cells[number]
            fields = {name: getattr(cell, name) for name in CELL}
            rows.append({"replicate": number, **fields, **needed(cell)._asdict()})
        return self.frame(rows)


def _targets(settings: TournamentTrainings) -> list[Cell]:
    """Return the cells whose noise is needed, each once, those of one law together."""
    private = [cell for group in expanded(settings) for cell in group.cells if cell.private]
    # One job computes a law once for all its targets: cells of a law stay together.
    return sorted(dict.fromkeys(map(accounted, private)), key=lambda cell: str(law_of(cell)))


class TournamentTraining(TournamentExperiment):
    """Models of all schemes at one proved privacy; a record is a seed of a cell.

    For each seed every candidate of one grid of norm bounds and step sizes is trained, with the
    noise that is proved to meet the target, and the one of least loss on the seed's validation part
    counts: differences between seeds are also those of the choice. The test part is read for that
    one alone. The privacy cost of the choice among trainings is not counted, the same for all
    schemes. Schemes are paired: a seed means the same split, initial values and standard normal
    numbers. Rows of the scheme "nonprivate" are clipped and tuned like the others, and get no
    noise.
    """

    name: ClassVar[str] = "tournament_training"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        **CELL,
        "noise_multiplier": "float64",
        "necessary": "float64",
        "clip": "float64",
        "learning_rate": "float64",
        "validation_loss": "float64",
        "on_edge": "int64",
        "test_loss": "float64",
        "accuracy": "float64",
        "gradients": "float64",
        "gradients_expected": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("dataset", "data_label", *CELL)
    # in a sweep each job calibrates its own cells
    needs_records: ClassVar[tuple[str, ...]] = ("tournament_targets",)

    class Settings(TournamentExperiment.Settings):
        parts: Parts = 6
        replicates: Replicates = 12

    def records_a_replicate(self, settings: Any) -> int:
        """Return the number of cells; a seed trains each of them."""
        return sum(len(group.cells) for group in expanded(settings))

    def cells(self, settings: Any) -> Iterator[Any]:
        for entry in settings.trainings:
            for alone, _ in groups_of(entry):
                yield settings.model_copy(update={"trainings": (alone,)})

    def cost(self, settings: Any) -> Cost:
        costs = [_cost(group, settings.tuning) for group in expanded(settings)]
        setup = sum(cost.setup for cost in costs)
        replicate = sum(cost.replicate for cost in costs)
        return Cost(setup, replicate, max(cost.memory for cost in costs))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        recorded, tuning = _recorded(run), settings.tuning
        rows: list[dict[str, Any]] = []
        for group in expanded(settings):
            task, data = group.task, load(group.dataset, run)
            proved = [_proved(group, cell, recorded) for cell in group.cells]
            tried = candidates(tuning)
            fits = [
                Fit(known.noise_multiplier, clip, rate) for known in proved for clip, rate in tried
            ]
            expected = group.steps * group.plan.expected_distinct(task.n)
            if group.sampler == IMPORTANCE:
                # Thinning keeps a share of the batch, on average that of the rows.
                expected *= task.chances(data.x).mean()
            # a seed fixes the split into training and validation part
            split_of = partial(tasks.split, task, len(data.y), streams=run.streams)
            batches = batches_of(group, data)
            runs = train(task, batches, data, split_of, fits, run.replicates, run.streams)
            for seed, (parameters, split, samples) in zip(run.replicates, runs, strict=True):
                tuned = tune(task, data, split, parameters, len(proved), tuning)
                for cell, known, answer in zip(group.cells, proved, tuned, strict=True):
                    choice, loss, accuracy = answer
                    row = {
                        "replicate": seed,
                        **group.fields(cell),
                        "data_label": data.label,
                        **choice._asdict(),
                        "noise_multiplier": known.noise_multiplier,
                        "necessary": known.necessary,
                        "test_loss": loss,
                        "accuracy": accuracy,
                        "gradients": len(samples.indices),
                        "gradients_expected": expected,
                    }
                    rows.append(row)
        return self.frame(rows)


def tune(
    task: TournamentTask,
    data: LearningRecords,
    split: Split,
    parameters: np.ndarray,
    n_cells: int,
    tuning: Tuning,
) -> Iterator[tuple[Chosen, float, float]]:
    """Yield for each cell the candidate of least loss on the validation part, and its loss and
    accuracy on the test part, which is read for that one alone.

    Parameters
    ----------
    parameters : ndarray
        Shape (`n_cells` * candidates, p), the candidates of a cell together.
    """
    x, y, model = data.x, data.y, task.model
    n_candidates = len(parameters) // n_cells
    # a run with too long steps may have left all bounds
    with np.errstate(over="ignore", invalid="ignore"):
        losses = model.loss(parameters, x[split.validation], y[split.validation])
        best = [chosen(own, tuning) for own in losses.reshape(n_cells, n_candidates)]
        tuned = parameters[[i * n_candidates + position for i, (position, _) in enumerate(best)]]
        loss = model.loss(tuned, x[split.test], y[split.test])
        accuracy = model.accuracy(tuned, x[split.test], y[split.test])
    for i, (_, choice) in enumerate(best):
        yield choice, loss[i], accuracy[i]


def _proved(group: SharedBatches, cell: Cell, recorded: Mapping[Cell, Needed]) -> Needed:
    if group.sampler == NONPRIVATE:
        return Needed(0.0, 0.0, math.nan, math.nan)
    cell = accounted(cell)
    return recorded.get(cell) or needed(cell)


def _recorded(run: Run) -> dict[Cell, Needed]:
    """Return the fields of each cell in the records of `tournament_targets`, nothing if the run has
    none."""
    known: dict[Cell, Needed] = {}
    if "tournament_targets" not in run.records:
        return known
    for row in run.records["tournament_targets"].to_dict("records"):
        cell = cell_of(**{name: row[name] for name in CELL if name != "steps"})
        known[cell] = Needed(*(row[name] for name in Needed._fields))
    return known


def _cost(group: SharedBatches, tuning: Tuning) -> Cost:
    """Return the cost of a group, as measured on one core; linear in steps x m."""
    task, steps = group.task, group.steps
    d, p, n_cells = task.model.d, task.model.n_parameters, len(group.cells)
    runs = n_cells * len(tuning.clips) * len(tuning.moves)
    total = task.n + task.n_validation + task.n_test
    # All figures below were measured on one core; only the plan reads them.
    gradient = 4e-8 + 4e-10 * p  # batches are shared
    step = 2e-5 + 5e-9 * runs * p + group.m * (3e-8 + 3e-9 * d + runs * gradient)
    measuring = (task.n_validation * runs + task.n_test * n_cells) * gradient
    replicate = steps * step + 5e-8 * total + measuring
    private = [accounted(cell) for cell in group.cells if cell.private]
    calibrations = sum(map(noise.seconds, private))
    drawn = min(20 * steps * group.m, DRAWS_AT_ONCE)
    memory = 200 + (6 * d * total + 24 * drawn) / 2**20
    return Cost(3e-6 * total + calibrations, replicate, memory)

"""Trainings of the tournament: a model a seed, its clip and step size tuned by one rule for every
scheme."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.learning import descent
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
"""Bounds the memory of the batches of the seeds that are trained at once; has no influence on
results."""
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
class Group:
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
        return {
            "dataset": self.dataset,
            **{name: getattr(cell, name) for name in CELL if name != "steps"},
            "steps": self.steps,
        }


def accounted(cell: Cell) -> Cell:
    """Return the cell whose noise a cell needs: that of whole batches where they are thinned
    (accounting.md, 3.2)."""
    return replace(cell, sampler="poisson") if cell.sampler == IMPORTANCE else cell


def groups_of(entry: TrainingEntry) -> Iterator[tuple[TrainingEntry, Group]]:
    """Yield the groups of an entry, each with the entry that stands for it alone; what has no proof
    is left out."""
    for dataset, m, epochs, sampler in itertools.product(
        entry.datasets, entry.m, entry.epochs, entry.samplers
    ):
        alone: dict[str, Any] = {
            "datasets": (dataset,),
            "samplers": (sampler,),
            "m": (m,),
            "epochs": (epochs,),
        }
        n = tasks.TASKS[dataset].n
        if sampler == NONPRIVATE:
            cells = [Cell("none", NONPRIVATE, n, m, epochs, math.nan, math.nan)]
        else:
            targets = itertools.product(entry.adjacency, entry.target_epsilon, entry.target_delta)
            tried = (
                Cell(adjacency, sampler, n, m, epochs, float(epsilon), float(delta))
                for adjacency, epsilon, delta in targets
            )
            cells = [cell for cell in tried if not why_not(accounted(cell))]
            if sampler == IMPORTANCE and tasks.TASKS[dataset].least_chance == 1:
                cells = []  # nothing to thin
            alone |= {
                name: getattr(entry, name)
                for name in ("adjacency", "target_epsilon", "target_delta")
            }
        if cells:
            yield TrainingEntry(**alone), Group(dataset, sampler, m, epochs, tuple(cells))


def expanded(settings: TournamentTrainings) -> list[Group]:
    """Return the groups of all entries, each once: trainings without privacy are the same for
    several targets."""
    return list(
        dict.fromkeys(group for entry in settings.trainings for _, group in groups_of(entry))
    )


class Fit(NamedTuple):
    """How one run is trained."""

    noise_multiplier: float
    clip: float
    learning_rate: float


def trained(
    group: Group, data: tasks.Records, fits: Sequence[Fit], seeds: Sequence[int], streams: Streams
) -> Iterator[tuple[np.ndarray, tasks.Parts, int]]:
    """Train every fit on every seed, and yield for each seed the parameters, shape (fits, p), the
    parts of its split, and the number of gradients that were evaluated.

    A seed fixes the split into training and validation part, the initial values and the standard
    normal numbers of the noise, the same for all schemes; batches are each scheme's own, the same
    for all targets and relations.
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
        blocks = [
            plan.draw_block(Frame(task.n), steps, streams.sample(drawn, seed)) for seed in some
        ]
        blocks = [
            replace(block, indices=parts.training[block.indices])
            for block, parts in zip(blocks, splits, strict=True)
        ]
        if chances is not None:
            rngs_of_thinning = (streams.sample({**drawn, "thinned": 1}, seed) for seed in some)
            blocks = [
                block.thinned(chances, rng)
                for block, rng in zip(blocks, rngs_of_thinning, strict=True)
            ]
        initial = np.stack(
            [task.model.initial(streams.initial({"dataset": task.name}, seed)) for seed in some]
        )
        rngs = [streams.noise(paired, seed) for seed in some] if multiplier.any() else None
        # a run with too long steps may leave all bounds
        with np.errstate(over="ignore", invalid="ignore"):
            found = descent.train(
                task.model,
                data.x,
                data.y,
                blocks,
                initial=np.repeat(initial, len(fits), axis=0),
                learning_rate=np.tile(learning_rate, len(some)),
                clip=np.tile(clip, len(some)),
                divisor=float(group.m),
                noise_multiplier=np.tile(multiplier, len(some)),
                rngs=rngs,
                chances=chances,
            ).reshape(len(some), len(fits), -1)
        for parameters, block, parts in zip(found, blocks, splits, strict=True):
            yield parameters, parts, len(block.indices)


class Chosen(NamedTuple):
    """The candidate that was chosen for a seed of a cell."""

    clip: float
    learning_rate: float
    validation_loss: float
    on_edge: int


def candidates(tuning: Tuning) -> list[tuple[float, float]]:
    """Return the candidates (clip, step size), the smallest step sizes first."""
    tried = itertools.product(tuning.clips, tuning.moves)
    return sorted(((clip, move / clip) for clip, move in tried), key=lambda one: (one[1], one[0]))


def on_edge(move: float, tuning: Tuning) -> bool:
    """Return whether a move is the smallest or largest of the grid: whether a wider one might have
    had a better one."""
    return not min(tuning.moves) * (1 + 1e-9) < move < max(tuning.moves) * (1 - 1e-9)


def chosen(losses: np.ndarray, tuning: Tuning) -> tuple[int, Chosen]:
    """Return which candidate has the least loss on the validation part, and what it is.

    A run that ends beyond all numbers has infinite loss; of equal losses the one of the smaller
    step size counts.
    """
    best = int(np.where(np.isnan(losses), np.inf, losses).argmin())
    clip, learning_rate = candidates(tuning)[best]
    return best, Chosen(
        clip, learning_rate, float(losses[best]), int(on_edge(clip * learning_rate, tuning))
    )


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
            if cells and (most := cells.most_common(1)[0])[1] > 1:
                dataset, cell = most[0]
                raise ArgumentError(
                    f"trainings must hold each cell once, got {cell.sampler} with m = {cell.m} on "
                    f"{dataset} {most[1]} times; drop all but one"
                )

    def data_of(self, settings: Any) -> tuple[str, ...]:
        return tuple(sorted({group.task.source for group in expanded(settings)} - {""}))


@lru_cache(maxsize=2)  # the schemes of a task meet the same records
def _loaded(dataset: str, path: Path | None, streams: Streams) -> tasks.Records:
    task = tasks.TASKS[dataset]
    return tasks.load(task, {task.source: path} if path else {}, streams)


def load(dataset: str, run: Run) -> tasks.Records:
    """Return the records of a task, read or drawn once for the cells that follow each other."""
    return _loaded(dataset, run.data.get(tasks.TASKS[dataset].source), run.streams)


class TournamentTargets(TournamentExperiment):
    """The noise of every cell that is trained; a record is a cell, numbered by `replicate`,
    whatever its task."""

    name: ClassVar[str] = "tournament_targets"
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
        return self.frame(
            [
                {
                    "replicate": number,
                    **{name: getattr(cell, name) for name in CELL},
                    **needed(cell)._asdict(),
                }
                for number in run.replicates
                for cell in [cells[number]]
            ]
        )


def _targets(settings: TournamentTrainings) -> list[Cell]:
    """Return the cells whose noise is needed, each once, those of one law together."""
    private = (
        cell for group in expanded(settings) for cell in group.cells if group.sampler != NONPRIVATE
    )
    return sorted(dict.fromkeys(map(accounted, private)), key=lambda cell: str(cell.law))


class TournamentTraining(TournamentExperiment):
    """Models of all schemes at one proved privacy; a record is a seed of a cell.

    For each seed every candidate of one grid of norm bounds and step sizes is trained, with the
    noise that is proved to meet the target, and the one of least loss on the seed's validation part
    counts: differences between seeds are also those of the choice. The test part is read for that
    one alone. That a choice among trainings costs privacy too is not counted, the same for all
    schemes. Schemes are paired: a seed means the same split, initial values and standard normal
    numbers. Rows of the scheme "nonprivate" are clipped and tuned like the others, and get no
    noise.
    """

    name: ClassVar[str] = "tournament_training"
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
        """Return the number of cells, each of which a seed trains."""
        return sum(len(group.cells) for group in expanded(settings))

    def cells(self, settings: Any) -> Iterator[Any]:
        for entry in settings.trainings:
            for alone, _ in groups_of(entry):
                yield settings.model_copy(update={"trainings": (alone,)})

    def cost(self, settings: Any) -> Cost:
        setups, replicates, memory = zip(
            *(_cost(group, settings.tuning) for group in expanded(settings)), strict=True
        )
        return Cost(sum(setups), sum(replicates), max(memory))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        recorded, tried, rows = _recorded(run), candidates(settings.tuning), list[dict[str, Any]]()
        for group in expanded(settings):
            data, model = load(group.dataset, run), group.task.model
            proved = [_proved(group, cell, recorded) for cell in group.cells]
            fits = [Fit(one.noise_multiplier, clip, rate) for one in proved for clip, rate in tried]
            expected = group.steps * group.plan.expected_distinct(group.task.n)
            if group.sampler == IMPORTANCE:
                expected *= group.task.chances(data.x).mean()
            found = trained(group, data, fits, run.replicates, run.streams)
            for seed, (parameters, parts, gradients) in zip(run.replicates, found, strict=True):
                with np.errstate(over="ignore", invalid="ignore"):
                    losses = model.loss(
                        parameters, data.x[parts.validation], data.y[parts.validation]
                    )
                    best = [chosen(own, settings.tuning) for own in losses.reshape(len(proved), -1)]
                    kept = parameters[[i * len(tried) + one for i, (one, _) in enumerate(best)]]
                    loss, accuracy = (
                        measure(kept, data.x[parts.test], data.y[parts.test])
                        for measure in (model.loss, model.accuracy)
                    )
                rows += [
                    {
                        "replicate": seed,
                        **group.fields(cell),
                        "data_label": data.label,
                        **choice._asdict(),
                        "noise_multiplier": one.noise_multiplier,
                        "necessary": one.necessary,
                        "test_loss": loss[i],
                        "accuracy": accuracy[i],
                        "gradients": gradients,
                        "gradients_expected": expected,
                    }
                    for i, (cell, one, (_, choice)) in enumerate(
                        zip(group.cells, proved, best, strict=True)
                    )
                ]
        return self.frame(rows)


def _proved(group: Group, cell: Cell, recorded: Mapping[Cell, Needed]) -> Needed:
    if group.sampler == NONPRIVATE:
        return Needed(0.0, 0.0, math.nan, math.nan)
    cell = accounted(cell)
    return recorded.get(cell) or needed(cell)


def _recorded(run: Run) -> dict[Cell, Needed]:
    """Return what the records of `tournament_targets` say of each cell, nothing if the run has
    none."""
    rows = (
        run.records["tournament_targets"].to_dict("records")
        if "tournament_targets" in run.records
        else []
    )
    return {
        Cell(**{name: row[name] for name in CELL if name != "steps"}): Needed(
            *(row[name] for name in Needed._fields)
        )
        for row in rows
    }


def _cost(group: Group, tuning: Tuning) -> tuple[float, float, float]:
    """Return seconds once, seconds a replicate, and MiB, as measured on one core; linear in steps x
    m."""
    task, steps = group.task, group.steps
    d, p, cells = task.model.d, task.n_parameters, len(group.cells)
    runs, total = (
        cells * len(tuning.clips) * len(tuning.moves),
        task.n + task.n_validation + task.n_test,
    )
    each = 4e-8 + 4e-10 * p  # of a gradient; batches are shared
    step = 2e-5 + 5e-9 * runs * p + group.m * (3e-8 + 3e-9 * d + runs * each)
    replicate = (
        steps * step + 5e-8 * total + (task.n_validation * runs + task.n_test * cells) * each
    )
    calibrations = sum(
        noise.seconds(accounted(cell)) for cell in group.cells if group.sampler != NONPRIVATE
    )
    drawn = min(20 * steps * group.m, DRAWS_AT_ONCE)
    return 3e-6 * total + calibrations, replicate, 200 + (6 * d * total + 24 * drawn) / 2**20

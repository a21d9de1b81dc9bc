"""Sweeps: experiments with many cells, each computed once, in jobs of about equal length.

A cell is an experiment's own settings, narrowed to one point of what they list. What is finished is
read from the record files, never from a plan, so that nothing is computed twice, whatever has been
planned, killed or added since.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa
from pydantic import ConfigDict, Field

from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.errors import ArgumentError, PlanError
from dpsub.files import replace_file
from dpsub.reproduce import configuration, provenance, records, settings
from dpsub.reproduce.experiment import Cost, Experiment, Run
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.settings import Closed, DataSettings, FolderName, Listed, Name, Several
from dpsub.streams import Streams, canonical

BASE_SECONDS = 3.0
"""What a job spends on starting, on imports and on writing its records."""
BASE_MIB = 600.0
"""Memory of a job that computes nothing, with the two processes of the workflow around it on a
cluster's node."""
SLACK = 3.0
"""How many times its expected length a job may take on a cluster at its first attempt, and 5
minutes."""
SCHEMA = "dpsub-sweep-2"
APART = ("sampler", "samplers", "b")
"""Settings and keys in which a cell and the Poisson cell that it is compared with may differ."""


class Block(Closed):
    """Cells of one experiment: any of its settings, put over the published ones, and which of them
    are varied."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    experiment: Name = Field(description="What is computed in each cell, such as fair_comparison.")
    vary: dict[str, Listed[Any]] = Field(
        {}, description="Setting: the values that it takes in turn."
    )


class Sweep(Closed):
    """A sweep: the union of its blocks; a cell that is in two of them is computed once."""

    seed: int = Field(ge=0, le=2**63 - 1, description="The one root seed of all random streams.")
    results_dir: FolderName = Field(
        description="Folder of this sweep alone; relative to the working directory."
    )
    job_minutes: float = Field(
        10, ge=0.1, le=10_000, description="Expected length of a job, up to which cells are packed."
    )
    memory_mib: float | None = Field(
        None,
        gt=0,
        description="Memory that one job may have, in MiB; null: all of the machine "
        "that plans the sweep.",
    )
    data: DataSettings = DataSettings()
    sweep: Several[Block]


def load(paths: Iterable[Path]) -> Sweep:
    """Return the sweep in the YAML files `paths`, later ones over earlier ones."""
    merged: dict[str, Any] = {}
    for path in paths:
        merged = settings.merge(merged, settings.read(path))
    found: Sweep = settings.conform(Sweep, merged)
    configuration.check_results_dir(found.results_dir)
    return found


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a sweep."""

    experiment: str
    variant: str
    settings: Any
    """Those of the experiment, narrowed to this point."""
    varied: Mapping[str, Any]
    """The settings that the sweep varies besides the experiment's own lists: columns of the
    records."""
    digest: str
    """Stands for all that fixes a replicate but the seed: the cell's name in the record files."""

    @classmethod
    def of(cls, experiment: str, variant: str, chosen: Any, varied: Mapping[str, Any]) -> Cell:
        return cls(
            experiment, variant, chosen, varied, digest_of([experiment, variant, _fixing(chosen)])
        )

    @property
    def pair(self) -> str:
        """Digest that a cell shares with the Poisson cell that it is compared with."""
        return digest_of([self.experiment, self.variant, _without(_fixing(self.settings), APART)])

    def __str__(self) -> str:
        return (
            f"{self.experiment} {self.variant} with "
            f"{json.dumps(_fixing(self.settings), ensure_ascii=False)[1:-1]}"
        )


def _fixing(chosen: Any) -> dict[str, Any]:
    """Return the settings that fix a replicate."""
    return dict(canonical(chosen.model_dump(exclude={*settings.WHERE_ONLY, "replicates"})))


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Work:
    """Replicates `first`, ..., `stop` - 1 of a cell."""

    cell: Cell
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Job:
    """What one job computes: work of one experiment and variant, on the same data; expected seconds
    and MiB."""

    work: Sequence[Work]
    data_sets: tuple[str, ...]
    seconds: float
    memory: float

    @property
    def experiment(self) -> str:
        return self.work[0].cell.experiment

    @property
    def variant(self) -> str:
        return self.work[0].cell.variant

    def part(self, seed: int) -> str:
        """Return the name of its records, which follows from what is in them and from nothing
        else."""
        return digest_of([seed, [[item.cell.digest, item.first, item.stop] for item in self.work]])


def digest_of(what: Any) -> str:
    """Return 128 bits of the SHA-256 sum of the canonical JSON of `what`, in hexadecimal digits."""
    return hashlib.sha256(
        json.dumps(what, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()[:32]


def expand(blocks: Sequence[Block]) -> dict[str, tuple[Cell, int]]:
    """Return the cells of a sweep with the number of replicates that is wanted of each, by
    digest."""
    found: dict[str, tuple[Cell, int]] = {}
    for position, block in enumerate(blocks):
        for cell, count in _cells(block, f"sweep[{position}]"):
            _, most = found.get(cell.digest, (cell, 0))
            found[cell.digest] = cell, max(most, count)
    return found


def _cells(block: Block, place: str) -> Iterator[tuple[Cell, int]]:
    try:
        experiment = REGISTRY.get(block.experiment)()
    except ArgumentError as problem:
        raise PlanError(f"{place}: {problem}") from None
    published = settings.merge(experiment.defaults(), block.model_extra or {})
    for point in itertools.product(*block.vary.values()):
        varied = dict(zip(block.vary, point, strict=True))
        whole = settings.conform(experiment.Settings, {**published, **varied}, path=place)
        for name in (name for name in whole.variants if name not in experiment.variants):
            raise PlanError(
                f"{place}.variants must be among {', '.join(experiment.variants)}, got {name!r}"
            )
        for narrowed, variant in itertools.product(experiment.cells(whole), whole.variants):
            yield (
                Cell.of(experiment.name, variant, narrowed, varied),
                experiment.replicates(narrowed),
            )


def pack(items: Iterable[tuple[Work, Cost, tuple[str, ...]]], *, seconds: float) -> list[Job]:
    """Pack work into the fewest jobs, in order, that are expected to last at most `seconds`, then
    even them out.

    A job holds one experiment and variant, one set of data files and memories within a factor of 2,
    so that no small cell waits for the memory of a large one. A cell that alone lasts longer is cut
    between its replicates; a single replicate is never cut, and then makes a longer job.
    """
    groups: dict[tuple[Any, ...], list[tuple[Work, Cost]]] = {}
    for work, cost, data_sets in items:
        size = math.ceil(math.log2(BASE_MIB + cost.memory))
        groups.setdefault((work.cell.experiment, work.cell.variant, data_sets, size), []).append(
            (work, cost)
        )
    return [
        job
        for (_, _, data, _), group in groups.items()
        for job in _packed(group, data, seconds - BASE_SECONDS)
    ]


def _packed(
    group: Sequence[tuple[Work, Cost]], data_sets: tuple[str, ...], room: float
) -> Iterator[Job]:
    pieces = [(piece, cost) for work, cost in group for piece in _cut(work, cost, room)]
    spent = [cost.seconds(work.stop - work.first) for work, cost in pieces]
    ends = [0.0, *itertools.accumulate(spent)]
    bounds = _filled(ends, room)
    low, high = min(ends[-1] / len(bounds), room), room
    for _ in range(30):  # the shortest length that needs no more jobs
        middle = (low + high) / 2
        tried = _filled(ends, middle)
        if len(tried) > len(bounds):
            low = middle
        else:
            bounds, high = tried, middle
    for first, stop in itertools.pairwise([0, *bounds]):
        memory = max(cost.memory for _, cost in pieces[first:stop])
        length = BASE_SECONDS + math.fsum(spent[first:stop])
        yield Job(
            tuple(work for work, _ in pieces[first:stop]), data_sets, length, BASE_MIB + memory
        )


def _filled(ends: Sequence[float], room: float) -> list[int]:
    """Return where jobs filled in turn end, `ends` being the running sums; what is too long stands
    alone."""
    bounds = [0]
    while bounds[-1] < len(ends) - 1:
        reach = bisect.bisect_right(ends, ends[bounds[-1]] + room * (1 + 1e-12))
        bounds.append(max(reach - 1, bounds[-1] + 1))
    return bounds[1:]


def _cut(work: Work, cost: Cost, room: float) -> list[Work]:
    """Cut what is too long for one job into pieces as even as can be."""
    count = work.stop - work.first
    if cost.seconds(count) <= room or cost.replicate <= 0:
        return [work]
    most = max(1, math.floor((room - cost.setup) / cost.replicate))
    pieces = math.ceil(count / most)
    bounds = [work.first + count * piece // pieces for piece in range(pieces + 1)]
    return [Work(work.cell, low, high) for low, high in itertools.pairwise(bounds)]


def gaps(done: Iterable[range], replicates: int) -> list[range]:
    """Return the ranges of 0, ..., `replicates` - 1 that no range of `done` covers."""
    found, start = [], 0
    for span in sorted(done, key=lambda item: item.start):
        found.append(range(start, min(span.start, replicates)))
        start = max(start, span.stop)
    found.append(range(start, replicates))
    return [gap for gap in found if gap]


def compute(
    job: Path, output: Path, *, data: Mapping[str, Path], label: str = "", code: str = ""
) -> None:
    """Compute the cells of one job, which a plan has written to `job`, and write their records to
    `output`.

    `data` are prepared files of its data sets, `label` what these are ("real", ...; "" for
    simulated data), `code` the digest of the code that computes.
    """
    asked = json.loads(job.read_text(encoding="utf-8"))
    experiment, variant, seed = REGISTRY.get(asked["experiment"])(), asked["variant"], asked["seed"]
    streams, found, declared = Streams(seed, experiment.streams_of or experiment.name), [], 0.0
    for fixing, varied, first, stop in asked["work"]:
        chosen = settings.conform(experiment.Settings, {**fixing, "variants": [variant]})
        work = Work(Cell.of(experiment.name, variant, chosen, varied), first, stop)
        found.append(
            (work, experiment.records(chosen, Run(variant, range(first, stop), streams, data)))
        )
        declared += experiment.cost(chosen).seconds(stop - first)
    facts = {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "variant": variant,
        "seed": seed,
        "code": code,
        "declared_seconds": declared,
        "inputs": {name: provenance.file_digest(path) for name, path in data.items()},
        "versions": provenance.versions(),
        "finished": [[work.cell.digest, work.first, work.stop] for work, _ in found],
    }
    rows = table(experiment, found, label)
    records.write_table(
        output, pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(), facts
    )


def table(
    experiment: Experiment, found: Sequence[tuple[Work, pd.DataFrame]], label: str
) -> pd.DataFrame:
    """Return the rows of a job: records, label of the data, varied settings, names of cell and
    pair, variant."""
    for work, frame in found:
        if set(frame["replicate"]) != set(range(work.first, work.stop)):
            raise PlanError(
                f"records of {experiment.name} must hold the replicates {work.first} to "
                f"{work.stop - 1}, got others"
            )
    rows = pd.concat([frame for _, frame in found], ignore_index=True)
    cells = [work.cell for work, _ in found]
    varied = dict.fromkeys(name for cell in cells for name in cell.varied if name not in rows)
    names = pd.DataFrame(
        {
            **{name: [cell.varied.get(name) for cell in cells] for name in varied},
            "cell": [cell.digest for cell in cells],
            "pair": [cell.pair for cell in cells],
            "variant": [cell.variant for cell in cells],
        }
    )
    repeated = names.loc[names.index.repeat([len(frame) for _, frame in found])].reset_index(
        drop=True
    )
    return pd.concat([rows.assign(data=label), repeated], axis=1)


def prepared_file(results: Path, data_set: str) -> Path:
    """Return the file of a data set that the jobs of a sweep read."""
    return results / "data" / f"{data_set}{DATA_SETS.get(data_set).suffix}"


def part_files(results: Path, experiment: str = "*", variant: str = "*") -> list[Path]:
    """Return the record files that are there, sorted."""
    return sorted((results / "records").glob(f"{experiment}/{variant}/*.parquet"))


class SweepPlan:
    """What one sweep asks for, and what of it has to be computed."""

    def __init__(self, config: Sweep) -> None:
        self.config, self.seed, self.results = config, config.seed, Path(config.results_dir)
        self.wanted = expand(config.sweep)
        self.experiments = tuple(dict.fromkeys(cell.experiment for cell, _ in self.wanted.values()))
        self.known = {name: REGISTRY.get(name)() for name in self.experiments}
        self.finished: dict[str, list[range]] = {}
        self.parts: dict[Path, dict[str, Any]] = {}
        for path in part_files(self.results):
            facts = records.read_facts(path, schema=SCHEMA)
            if facts["seed"] != self.seed:
                raise PlanError(
                    f"a results folder must be of one seed, got seed = {self.seed} and {path} "
                    f"made with {facts['seed']}; name another results_dir"
                )
            for cell, first, stop in facts.pop("finished"):
                self.finished.setdefault(cell, []).append(range(first, stop))
            self.parts[path] = facts
        pace = self._pace()
        rest = []
        for name, (cell, count) in self.wanted.items():
            cost = self._cost(cell).scaled(pace.get(cell.experiment, 1.0))
            data_sets = self.known[cell.experiment].data_of(cell.settings)
            rest += [
                (Work(cell, gap.start, gap.stop), cost, data_sets)
                for gap in gaps(self.finished.get(name, ()), count)
            ]
        self.jobs = {
            job.part(self.seed): job for job in pack(rest, seconds=60 * config.job_minutes)
        }

    def _cost(self, cell: Cell) -> Cost:
        cost = self.known[cell.experiment].cost(cell.settings)
        if BASE_MIB + cost.memory > self.memory_limit:
            raise PlanError(
                f"a cell must fit into the memory of a job, memory_mib = {self.memory_limit:.0f}, "
                f"got one that needs {BASE_MIB + cost.memory:.0f}; make it smaller, or raise "
                f"memory_mib if there is more (cell: {cell})"
            )
        return cost

    def _pace(self) -> dict[str, float]:
        """Return how many times their declared length the finished jobs of each experiment took,
        within 1/10 and 10."""
        took: dict[str, list[float]] = {}
        for path, facts in self.parts.items():
            timing = (
                self.results / "run/timings" / path.relative_to(self.results).with_suffix(".tsv")
            )
            if timing.is_file():
                seconds = float(pd.read_csv(timing, sep="\t")["s"].iloc[0])
                both = took.setdefault(facts["experiment"], [0.0, 0.0])
                both[0] += max(0.0, seconds - BASE_SECONDS)
                both[1] += facts["declared_seconds"]
        return {
            name: min(10.0, max(0.1, spent / said))
            for name, (spent, said) in took.items()
            if spent and said
        }

    @cached_property
    def memory_limit(self) -> float:
        """MiB that a job may use: what the sweep says, or all that this machine has."""
        return self.config.memory_mib or psutil.virtual_memory().total / 2**20

    def data_sets(self, *_: str) -> tuple[str, ...]:
        """Return the prepared data files that the jobs of this plan read."""
        return tuple(sorted({name for job in self.jobs.values() for name in job.data_sets}))

    @property
    def manifest_file(self) -> Path:
        """The list of jobs that the workflow reads."""
        return self.results / "run/plan.json"

    def job_file(self, part: str) -> Path:
        """Return the file that says what one job computes."""
        return self.results / "run/jobs" / f"{part}.json"

    def part_file(self, part: str) -> Path:
        """Return the record file of one job."""
        return (
            self.results
            / "records"
            / self.jobs[part].experiment
            / self.jobs[part].variant
            / f"{part}.parquet"
        )

    def write(self) -> None:
        """Write the jobs and their list, and remove the jobs of earlier plans."""
        for path in self.job_file("*").parent.glob("*.json"):
            if path.stem not in self.jobs:
                path.unlink()
        listed = {}
        for part, job in self.jobs.items():
            listed[part] = {
                "experiment": job.experiment,
                "variant": job.variant,
                "data_sets": job.data_sets,
                "minutes": math.ceil(5 + SLACK * job.seconds / 60),
                "memory": math.ceil(job.memory),
                "seconds": round(job.seconds, 1),
            }
            if not self.job_file(part).exists():  # else Snakemake sees no change
                work = [
                    [_fixing(item.cell.settings), item.cell.varied, item.first, item.stop]
                    for item in job.work
                ]
                described = {
                    "experiment": job.experiment,
                    "variant": job.variant,
                    "seed": self.seed,
                    "work": work,
                }
                replace_file(self.job_file(part), f"{json.dumps(described)}\n".encode())
        varied: dict[str, list[str]] = {name: [] for name in self.experiments}
        for block in self.config.sweep:
            varied[block.experiment] += [
                name for name in block.vary if name not in varied[block.experiment]
            ]
        manifest = {
            "results": str(self.results),
            "seed": self.seed,
            "data": self.config.data.model_dump(),
            "jobs": listed,
            "finished": {
                name: [str(path) for path in part_files(self.results, name)]
                for name in self.experiments
            },
            "varied": varied,
            "code": {name: self.code(name) for name in self.experiments},
        }
        replace_file(self.manifest_file, f"{json.dumps(manifest, indent=0)}\n".encode())

    def code(self, experiment: str) -> str:
        """Return the digest of the code that computes the cells of an experiment."""
        return provenance.digest(type(self.known[experiment]).__module__, "dpsub.reproduce.records")

    def totals(self, cores: int) -> dict[str, Any]:
        """Return what the plan comes to: counts, expected core-hours, hours on `cores`, and memory
        in MiB."""
        jobs = self.jobs.values()
        seconds = sorted((job.seconds for job in jobs), reverse=True)
        memory = sorted((job.memory for job in jobs), reverse=True)
        left = [work for job in jobs for work in job.work]
        records = {
            name: self.known[cell.experiment].records_a_replicate(cell.settings)
            for name, (cell, _) in self.wanted.items()
        }
        code = {name: self.code(name) for name in self.experiments}
        wall = max(sum(seconds) / cores, seconds[0]) if seconds else 0.0
        return {
            "cells": len(self.wanted),
            "cells_finished": len(self.wanted) - len({work.cell.digest for work in left}),
            "records": sum(records[name] * count for name, (_, count) in self.wanted.items()),
            "records_to_compute": sum(
                records[work.cell.digest] * (work.stop - work.first) for work in left
            ),
            "jobs": len(jobs),
            "core_hours": sum(seconds) / 3600,
            "cores": cores,
            "hours": wall / 3600,
            "longest_job_minutes": seconds[0] / 60 if seconds else 0.0,
            "memory_mib_per_job": memory[0] if memory else 0.0,
            "memory_mib": sum(memory[:cores]),
            "files_by_other_code": sum(
                facts["code"] != code.get(facts["experiment"]) for facts in self.parts.values()
            ),
            "results_dir": str(self.results),
        }

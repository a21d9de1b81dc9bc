"""Sweeps: experiments with many cells, each computed once, in jobs of about equal length.

A cell is an experiment's own settings, narrowed to one point of what they list. Finished cells are
read from the record files, never from a plan, so that nothing is computed twice, whatever has been
planned, killed or added since.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import psutil
import pyarrow as pa
from pydantic import ConfigDict, Field

from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.errors import ArgumentError, DataError, PlanError
from dpsub.files import checksum, replace_file
from dpsub.reproduce import configuration, provenance, records, settings
from dpsub.reproduce.experiment import Cost
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.packing import (
    BASE_MIB,
    BASE_SECONDS,
    SweepCell,
    Work,
    fixing,
    gaps,
    pack,
)
from dpsub.reproduce.settings import Closed, DataSettings, FolderName, Listed, Name, Several
from dpsub.reproduce.yaml_files import read

SLACK = 3.0
"""Factor by which a job may exceed its expected length on a cluster at its first attempt, and 5
minutes."""


class SweepBlock(Closed):
    """Cells of one experiment: any of its settings, put over the published ones, and which of them
    are varied."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    experiment: Name = Field(description="Experiment to run in each cell.")
    vary: dict[str, Listed[Any]] = Field(
        {}, description="Setting: its values, one after the other."
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
    sweep: Several[SweepBlock]


def load(paths: Iterable[Path]) -> Sweep:
    """Return the sweep in the YAML files `paths`, later ones over earlier ones."""
    merged: dict[str, Any] = {}
    for path in paths:
        merged = settings.merge(merged, read(path))
    sweep: Sweep = settings.conform(Sweep, merged)
    configuration.check_results_dir(sweep.results_dir)
    return sweep


@dataclass(frozen=True)
class SweepOrigin(records.Origin):
    """Origin of the records of one job of a sweep.

    `declared_seconds` is what the experiment expected the job to take, from which later plans learn
    its pace; `finished` lists (digest of a cell, first, stop): the replicates first, ..., stop - 1
    of each.
    """

    schema: ClassVar[str] = "dpsub-sweep-2"
    experiment: str
    variant: str
    seed: int
    code: str
    declared_seconds: float
    inputs: Mapping[str, str]
    versions: Mapping[str, str]
    finished: Sequence[tuple[str, int, int]]


def expand(blocks: Sequence[SweepBlock]) -> dict[str, tuple[SweepCell, int]]:
    """Return the cells of a sweep with the wanted number of replicates of each, by digest."""
    wanted: dict[str, tuple[SweepCell, int]] = {}
    for position, block in enumerate(blocks):
        for cell, replicates in _cells(block, f"sweep[{position}]"):
            _, wanted_before = wanted.get(cell.digest, (cell, 0))
            wanted[cell.digest] = cell, max(wanted_before, replicates)
    return wanted


def _cells(block: SweepBlock, place: str) -> Iterator[tuple[SweepCell, int]]:
    try:
        experiment = REGISTRY.get(block.experiment)()
    except ArgumentError as problem:
        raise PlanError(f"{place}: {problem}") from None
    # The block's own settings hold in all of its cells; what is varied stands over them.
    published = settings.merge(experiment.defaults(), block.model_extra or {})
    for point in itertools.product(*block.vary.values()):
        varied = dict(zip(block.vary, point, strict=True))
        typed = settings.conform(experiment.Settings, {**published, **varied}, path=place)
        for name in (name for name in typed.variants if name not in experiment.variants):
            raise PlanError(
                f"{place}.variants must be among {', '.join(experiment.variants)}, got {name!r}"
            )
        for narrowed, variant in itertools.product(experiment.cells(typed), typed.variants):
            yield (
                SweepCell.of(experiment.name, variant, narrowed, varied),
                experiment.replicates(narrowed),
            )


def compute(
    job: Path, output: Path, *, data: Mapping[str, Path], label: str = "", code: str = ""
) -> None:
    """Compute the cells of one job, which a plan has written to `job`, and write their records to
    `output`.

    `data` are prepared files of its data sets, `label` what these are ("real", ...; "" for
    simulated data), `code` the digest of the code that computes.
    """
    described = json.loads(job.read_text(encoding="utf-8"))
    variant, seed = described["variant"], described["seed"]
    experiment = REGISTRY.get(described["experiment"])()
    computed, declared = list[tuple[Work, pd.DataFrame]](), 0.0
    for settings_of_cell, varied, first, stop in described["work"]:
        settings_and_variant = {**settings_of_cell, "variants": [variant]}
        chosen = settings.conform(experiment.Settings, settings_and_variant)
        work = Work(SweepCell.of(experiment.name, variant, chosen, varied), first, stop)
        rows = experiment.computed(
            chosen, variant=variant, replicates=work.replicates, seed=seed, data=data
        )
        computed.append((work, rows))
        # The expected seconds, next to those that Snakemake measures: later plans learn the pace
        # from both.
        declared += experiment.cost(chosen).seconds(stop - first)
    origin = SweepOrigin(
        experiment=experiment.name,
        variant=variant,
        seed=seed,
        code=code,
        declared_seconds=declared,
        inputs={name: checksum(path) for name, path in data.items()},
        versions=provenance.versions(),
        finished=[(work.cell.digest, work.first, work.stop) for work, _ in computed],
    )
    rows = table(computed, label)
    # Without the metadata of pandas, whose version is in it: the same rows give the same bytes.
    stored = pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata()
    records.write_table(output, stored, origin)


def table(computed: Sequence[tuple[Work, pd.DataFrame]], label: str) -> pd.DataFrame:
    """Return the rows of a job: records, label of the data, varied settings, names of cell and
    pair, variant."""
    rows = pd.concat([frame for _, frame in computed], ignore_index=True)
    cells = [work.cell for work, _ in computed]
    # settings that the experiment records anyway are not repeated
    varied = dict.fromkeys(name for cell in cells for name in cell.varied if name not in rows)
    names = pd.DataFrame(
        {
            **{name: [cell.varied.get(name) for cell in cells] for name in varied},
            "cell": [cell.digest for cell in cells],
            "pair": [cell.pair for cell in cells],
            "variant": [cell.variant for cell in cells],
        }
    )
    lengths = [len(frame) for _, frame in computed]
    repeated = names.loc[names.index.repeat(lengths)].reset_index(drop=True)
    return pd.concat([rows.assign(data=label), repeated], axis=1)


def prepared_file(results: Path, data_set: str) -> Path:
    """Return the file of a data set that the jobs of a sweep read."""
    return results / "data" / f"{data_set}{DATA_SETS.get(data_set).suffix}"


def part_files(results: Path, experiment: str = "*", variant: str = "*") -> list[Path]:
    """Return the record files that are there, sorted."""
    return sorted((results / "records").glob(f"{experiment}/{variant}/*.parquet"))


class SweepPlan:
    """Plan of one sweep: its cells, and the jobs that are still to be computed."""

    def __init__(self, config: Sweep) -> None:
        self.config, self.seed, self.results = config, config.seed, Path(config.results_dir)
        self._check_folder()
        self.wanted = expand(config.sweep)
        self.experiments = tuple(dict.fromkeys(cell.experiment for cell, _ in self.wanted.values()))
        self.known = {name: REGISTRY.get(name)() for name in self.experiments}
        self.finished: dict[str, list[range]] = {}
        self.parts = dict(self._finished_parts())
        # Only what no record file has: a plan made again after a kill asks for the rest.
        jobs = pack(self._unfinished(), seconds=60 * config.job_minutes)
        self.jobs = {job.part(self.seed): job for job in jobs}

    def _check_folder(self) -> None:
        """Refuse the results of a run of the workflow, which a sweep would mix with."""
        if (self.results / "run/config.yaml").exists():
            raise PlanError(
                f"results_dir must be a folder of this sweep alone, got {str(self.results)!r}, "
                "which holds a run of the workflow; name another folder, such as results-mine"
            )

    def _finished_parts(self) -> Iterator[tuple[Path, SweepOrigin]]:
        """Yield the record files that are there with their origins, and note which replicates they
        hold. Damaged ones are refused together: after a disk was full there are many."""
        damaged: dict[Path, DataError] = {}
        for path in part_files(self.results):
            try:
                origin = records.read_origin(path, SweepOrigin)
            except DataError as fault:
                damaged[path] = fault
                continue
            if origin.seed != self.seed:
                raise PlanError(
                    f"a results folder must be of one seed, got seed = {self.seed} and {path} "
                    f"made with {origin.seed}; name another results_dir"
                )
            for cell, first, stop in origin.finished:
                self.finished.setdefault(cell, []).append(range(first, stop))
            # millions of cells would stand in memory twice
            yield path, replace(origin, finished=())
        if len(damaged) > 1:
            raise PlanError(
                f"record files must be complete and as they were written, got {len(damaged)} that "
                f"are not; delete them and run again: {', '.join(map(str, damaged))}"
            )
        if damaged:
            raise next(iter(damaged.values()))

    def _unfinished(self) -> Iterator[tuple[Work, Cost, tuple[str, ...]]]:
        """Yield the unfinished part of each cell, with its cost and the data sets that it reads."""
        pace = self._pace()
        for name, (cell, replicates) in self.wanted.items():
            cost = self._cost(cell).scaled(pace.get(cell.experiment, 1.0))
            data_sets = self.known[cell.experiment].data_of(cell.settings)
            for gap in gaps(self.finished.get(name, ()), replicates):
                yield Work(cell, gap.start, gap.stop), cost, data_sets

    def _cost(self, cell: SweepCell) -> Cost:
        cost = self.known[cell.experiment].cost(cell.settings)
        # Refused when it is planned; a cluster would kill the job after hours.
        if BASE_MIB + cost.memory > self.memory_limit:
            raise PlanError(
                f"a cell must fit into the memory of a job, memory_mib = {self.memory_limit:.0f}, "
                f"got one that needs {BASE_MIB + cost.memory:.0f}; make it smaller, or raise "
                f"memory_mib if there is more (cell: {cell})"
            )
        return cost

    def _pace(self) -> dict[str, float]:
        """Return the ratio of the actual to the declared length of the finished jobs of each
        experiment, within 1/10 and 10."""
        spent, declared = defaultdict[str, float](float), defaultdict[str, float](float)
        timings = self.results / "run/timings"
        for path, origin in self.parts.items():
            timing = timings / path.relative_to(self.results).with_suffix(".tsv")
            if timing.is_file():
                # Starting and writing cost every job the same, and say nothing of the pace.
                seconds = float(pd.read_csv(timing, sep="\t")["s"].iloc[0])
                spent[origin.experiment] += max(0.0, seconds - BASE_SECONDS)
                declared[origin.experiment] += origin.declared_seconds
        paces = dict[str, float]()
        for name in spent:
            if spent[name] and declared[name]:
                # One odd job must not make all later ones a hundred times as long.
                paces[name] = min(10.0, max(0.1, spent[name] / declared[name]))
        return paces

    @cached_property
    def memory_limit(self) -> float:
        """MiB that a job may use: by the sweep's settings, or all that this machine has."""
        return self.config.memory_mib or psutil.virtual_memory().total / 2**20

    def data_sets(self, *_: str) -> tuple[str, ...]:
        """Return the prepared data files that the jobs of this plan read."""
        return tuple(sorted({name for job in self.jobs.values() for name in job.data_sets}))

    @property
    def manifest_file(self) -> Path:
        """The list of jobs that the workflow reads."""
        return self.results / "run/plan.json"

    def job_file(self, part: str) -> Path:
        """Return the file that describes one job."""
        return self.results / "run/jobs" / f"{part}.json"

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
                # A limit, not an estimate: a node may be slower than the machine that was measured.
                "minutes": math.ceil(5 + SLACK * job.seconds / 60),
                "memory": math.ceil(job.memory),
                "seconds": round(job.seconds, 1),
            }
            # written again, an unchanged job would look new to Snakemake and be computed again
            if not self.job_file(part).exists():
                work = [
                    [fixing(item.cell.settings), item.cell.varied, item.first, item.stop]
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
        """Return the totals of the plan: counts, expected core-hours, hours on `cores`, and memory
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
        # No schedule ends before its longest job.
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
                origin.code != code.get(origin.experiment) for origin in self.parts.values()
            ),
            "results_dir": str(self.results),
        }

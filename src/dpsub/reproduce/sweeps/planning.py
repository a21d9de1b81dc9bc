"""The plan of a sweep: what is wanted, what is there, and the jobs that make the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from pydantic import Field

from dpsub.errors import PlanError
from dpsub.reproduce import provenance, settings
from dpsub.reproduce.records import replace_file
from dpsub.reproduce.settings import (
    Closed,
    Count,
    DataSettings,
    Delta,
    FolderName,
    Listed,
    Name,
    Positive,
    Seed,
    Several,
)  # fmt: skip
from dpsub.reproduce.sweeps import REGISTRY, store
from dpsub.reproduce.sweeps.bundles import BASE_MIB, Bundle, Priced, Work, pack
from dpsub.reproduce.sweeps.cells import Cell, CellExperiment, Cost
from dpsub.reproduce.sweeps.grid import expand

WORKFLOW = Path(__file__).resolve().parents[4] / "workflow/sweep.smk"
SLACK = 3.0
"""How many times its expected length a job may take on a cluster at its first attempt, and 5 minutes."""


class Sizes(Closed):
    """Sizes of samples."""

    n: Count | None = Field(None, description="Number of records where no data set says it.")
    m: Count = Field(description="Size of the sample; the expected one for poisson.")
    b: Count | None = Field(None, description="Size of the first of two stages; other samplers pass over it.")


class PrivacyTarget(Closed):
    """Privacy that all steps together must meet."""

    epsilon: Positive = Field(description="In nats.")
    delta: Delta


class Product(Closed):
    """All combinations of its lists."""

    experiment: Name = Field(description="What is computed in each cell, such as fair_comparison.")
    samplers: Listed[Name] = Field(
        description='Names such as poisson or must_ow, or chains of stages such as "wor:500,wr:400".'
    )
    sizes: Listed[Sizes] = Field(description="Sizes of samples.")
    steps: Listed[Count] | None = Field(None, description="Numbers of steps, each with a fresh sample.")
    targets: Listed[PrivacyTarget] | None = Field(None, description="Privacy that all steps together must meet.")
    datasets: Listed[Name] | None = Field(None, description="Names of data sets that the experiment knows.")
    conventions: Listed[Literal["rigorous", "paper"]] | None = Field(
        None, description="How the noise is calibrated: to what is proved, or to what the papers' pair says."
    )
    seeds: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        description="Number of replicates of each cell, with the seeds 0, 1, ...; more can be added later."
    )


class Sweep(Closed):
    """A sweep: grids of cells, each computed once."""

    seed: Seed
    results_dir: FolderName = Field(description="Folder of this sweep alone; relative to the working directory.")
    job_minutes: Annotated[float, Field(ge=0.1, le=10_000)] = Field(
        10, description="Expected length of a job; cells are bundled up to it."
    )
    memory_mib: Positive | None = Field(
        None, description="Memory that one job may have, in MiB; null is all of the machine that plans the sweep."
    )
    data: DataSettings = Field(DataSettings(), description="Where data sets come from.")
    grids: Several[Product] = Field(description="The sweep is their union; no cell may be in two of them.")


def load(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the sweep in the YAML files `paths`, later ones over earlier ones, with defaults, in canonical form.

    Raises
    ------
    PlanError
        If a file cannot be read or breaks a rule; if `results_dir` holds the working folder; or if the package was
        installed without the project, whose workflow a sweep needs.
    """
    if not WORKFLOW.is_file():
        raise PlanError("a sweep must be planned in a clone of the project, got the package alone; run it there")
    merged: dict[str, Any] = {}
    for path in paths:
        merged = settings.merge(merged, settings.read(path))
    config = validate(merged)
    settings.check_results_dir(config["results_dir"])
    return config


def validate(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sweep in canonical form, with defaults.

    Raises
    ------
    PlanError
        If it breaks a rule.
    """
    found = settings.plain(settings.conform(Sweep, config))
    found["grids"] = [
        {**{key: value for key, value in grid.items() if value is not None},
         "sizes": [{key: value for key, value in sizes.items() if value is not None} for sizes in grid["sizes"]]}
        for grid in found["grids"]
    ]  # fmt: skip
    return found


def digest_of(experiment: CellExperiment) -> str:
    """Return the digest of the code that computes the cells of `experiment`."""
    return provenance.digest(type(experiment).__module__, "dpsub.reproduce.sweeps.store")


class SweepPlan:
    """What one sweep asks for, and what of it has to be computed.

    Parameters
    ----------
    config : mapping
        As `load` returns it.

    Raises
    ------
    PlanError
        If a grid contradicts itself, a cell cannot be computed or does not fit into memory, or the store was made with
        another seed.
    DataError
        If the store is damaged.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.seed = int(config["seed"])
        self.results = Path(config["results_dir"])
        self.job_seconds = 60.0 * config["job_minutes"]
        self.known = {name: kind() for name, kind in REGISTRY.members().items()}
        self.wanted = expand(config["grids"], self.known)
        self.costs = {item.cell.digest: self._cost(item.cell) for item in self.wanted}
        self.index = store.read_index(self.results)
        for path, facts in self.index.parts.items():
            if facts["seed"] != self.seed:
                raise PlanError(
                    f"a results folder must be of one seed, got seed = {self.seed} and {path} made with "
                    f"{facts['seed']}; name another results_dir"
                )
        kept = self._kept()
        self.bundles = (*kept, *self._packed(kept))

    def _cost(self, cell: Cell) -> Cost:
        cost = self.known[cell.experiment].cost(cell.fields)
        if BASE_MIB + cost.memory > self.memory_limit:
            raise PlanError(
                f"a cell must fit into the memory of a job, memory_mib = {self.memory_limit:.0f}, got one that needs "
                f"{BASE_MIB + cost.memory:.0f}; make it smaller, or raise memory_mib if there is more (cell: {cell})"
            )
        return cost

    @cached_property
    def memory_limit(self) -> float:
        """MiB that a job may use: what the sweep says, or all that this machine has."""
        given = self.config["memory_mib"]
        return float(given) if given is not None else psutil.virtual_memory().total / 2**20

    def _kept(self) -> list[Bundle]:
        """Return the jobs of the last plan that are still wanted as they are, and of which nothing is there.

        So a job that outlives the run that started it, as on a cluster, writes the very file that this run waits for.
        """
        wanted = {item.cell.digest: item for item in self.wanted}
        found = []
        for path in sorted(self.jobs_folder.glob("*.json")):
            job = json.loads(path.read_text(encoding="utf-8"))
            if job["job_seconds"] != self.job_seconds or job["seed"] != self.seed:
                continue
            work = []
            for fields, first, stop in job["work"]:
                cell = Cell.of(job["experiment"], fields)
                item = wanted.get(cell.digest)
                if item is None or not any(
                    gap.start <= first and stop <= gap.stop
                    for gap in store.gaps(self.index.finished.get(cell.digest, ()), item.replicates)
                ):
                    break
                work.append(Work(item.cell, first, stop))
            else:
                found += pack((self._priced(item) for item in work), seconds=math.inf)
        return found

    def _packed(self, kept: Sequence[Bundle]) -> list[Bundle]:
        planned: dict[str, list[range]] = {}
        for bundle in kept:
            for work in bundle.work:
                planned.setdefault(work.cell.digest, []).append(range(work.first, work.stop))
        rest = []
        for item in self.wanted:
            name = item.cell.digest
            done = [*self.index.finished.get(name, ()), *planned.get(name, ())]
            rest += [self._priced(Work(item.cell, gap.start, gap.stop)) for gap in store.gaps(done, item.replicates)]
        return pack(rest, seconds=self.job_seconds)

    def _priced(self, work: Work) -> Priced:
        cell = work.cell
        return Priced(work, self.costs[cell.digest], self.known[cell.experiment].data_sets(cell.fields))

    @property
    def jobs_folder(self) -> Path:
        """Folder of the jobs that are planned, one file each."""
        return self.results / "run/jobs"

    @property
    def manifest_file(self) -> Path:
        """The list of jobs that the workflow reads."""
        return self.results / "run/plan.json"

    @cached_property
    def experiments(self) -> tuple[str, ...]:
        """Experiments of this sweep."""
        return tuple(dict.fromkeys(item.cell.experiment for item in self.wanted))

    def data_sets(self, *_: str) -> tuple[str, ...]:
        """Return the prepared data files that the jobs of this plan read."""
        return tuple(sorted({name for bundle in self.bundles for name in bundle.data_sets}))

    def write(self) -> None:
        """Write the jobs and their list, and remove the jobs of earlier plans; to be called with the lock held."""
        jobs = {}
        for bundle in self.bundles:
            part = bundle.part(self.seed)
            path = self.jobs_folder / f"{part}.json"
            jobs[part] = {
                "experiment": bundle.experiment,
                "data_sets": bundle.data_sets,
                "minutes": math.ceil(5 + SLACK * bundle.seconds / 60),
                "memory": math.ceil(bundle.memory),
            }
            if not path.exists():  # else it is kept, and Snakemake sees no change
                work = [[item.cell.fields, item.first, item.stop] for item in bundle.work]
                described = {
                    "experiment": bundle.experiment, "seed": self.seed, "job_seconds": self.job_seconds,
                    "seconds": bundle.seconds, "work": work,
                }  # fmt: skip
                replace_file(path, f"{json.dumps(described)}\n".encode())
        for path in self.jobs_folder.glob("*.json"):
            if path.stem not in jobs:
                path.unlink()
        parts = sorted({*jobs, *(path.stem[5:] for path in self.index.parts)})
        manifest = {
            "results": str(self.results),
            "seed": self.seed,
            "data": self.config["data"],
            "code": {name: digest_of(self.known[name]) for name in self.experiments},
            "parts": provenance.settings_digest({"parts": parts}),
            "jobs": jobs,
        }
        replace_file(self.manifest_file, f"{json.dumps(manifest, indent=0)}\n".encode())

    def totals(self, cores: int) -> dict[str, Any]:
        """Return what the plan comes to: counts, expected core-hours, hours on `cores`, and memory in MiB."""
        seconds = sorted((bundle.seconds for bundle in self.bundles), reverse=True)
        memory = sorted((bundle.memory for bundle in self.bundles), reverse=True)
        unfinished = {work.cell.digest for bundle in self.bundles for work in bundle.work}
        replicates = sum(work.stop - work.first for bundle in self.bundles for work in bundle.work)
        code = {name: digest_of(self.known[name]) for name in self.experiments}
        other = [facts for facts in self.index.parts.values() if facts["code"] != code.get(facts["experiment"])]
        wall = max(sum(seconds) / cores, seconds[0]) if seconds else 0.0
        return {
            "cells": len(self.wanted),
            "cells_finished": len(self.wanted) - len(unfinished),
            "records": sum(item.replicates for item in self.wanted),
            "records_to_compute": replicates,
            "jobs": len(self.bundles),
            "core_hours": sum(seconds) / 3600,
            "cores": cores,
            "hours": wall / 3600,
            "longest_job_minutes": seconds[0] / 60 if seconds else 0.0,
            "memory_mib_per_job": memory[0] if memory else 0.0,
            "memory_mib": sum(memory[:cores]),
            "files_by_other_code": len(other),
            "results_dir": str(self.results),
        }

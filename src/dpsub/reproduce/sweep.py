"""Sweeps: experiments with many cells, each computed once, in jobs of about equal length.

A cell is an experiment's own settings, narrowed to one point of what they list. What is finished is read from the
record files, never from a plan, so that nothing is computed twice, whatever has been planned, killed or added since.
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

from dpsub.errors import ArgumentError, PlanError, UnsupportedError
from dpsub.reproduce import records, settings
from dpsub.reproduce.experiment import Cost, Experiment
from dpsub.reproduce.experiments import REGISTRY

BASE_SECONDS = 3.0
"""What a job spends on starting, on imports and on writing its records."""
BASE_MIB = 600.0
"""Memory of a job that computes nothing, with the two processes of the workflow around it on a cluster's node."""
SLACK = 3.0
"""How many times its expected length a job may take on a cluster at its first attempt, and 5 minutes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a sweep.

    Attributes
    ----------
    experiment, variant : str
    settings : Settings
        Those of the experiment, narrowed to this point.
    varied : mapping
        The settings that the sweep varies besides the experiment's own lists: columns of the records.
    digest : str
        128 bits of the SHA-256 sum of all that fixes a replicate but the seed: the cell's name in the record files.
    """

    experiment: str
    variant: str
    settings: Any
    varied: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, experiment: str, variant: str, chosen: Any, varied: Mapping[str, Any]) -> Cell:
        """Return the cell with these settings."""
        left = {*settings.WHERE_ONLY, "replicates"}
        return cls(experiment, variant, chosen, varied, digest_of([experiment, variant, settings.plain(chosen, left)]))

    def __str__(self) -> str:
        found = settings.plain(self.settings, {*settings.WHERE_ONLY, "replicates"})
        return f"{self.experiment} {self.variant} with {json.dumps(found, ensure_ascii=False)[1:-1]}"


@dataclass(frozen=True, slots=True)
class Work:
    """Replicates `first`, ..., `stop` - 1 of a cell."""

    cell: Cell
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Job:
    """What one job computes: work of one experiment and variant, on the same data; expected seconds and MiB."""

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
        """Return the name of its records, which follows from what is in them and from nothing else."""
        return digest_of([seed, [[item.cell.digest, item.first, item.stop] for item in self.work]])


def digest_of(what: Any) -> str:
    """Return 128 bits of the SHA-256 sum of the canonical JSON of `what`, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:32]


def expand(blocks: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Cell, int]]:
    """Return the cells of a sweep with the number of replicates that is wanted of each, by digest.

    Parameters
    ----------
    blocks : sequence of mapping
        Each with `experiment`, any of its settings, and `vary`: a setting -> the values that it takes in turn.

    Raises
    ------
    PlanError
        If a block contradicts itself or an experiment, or two blocks share a cell. The sentence names block and cell.
    """
    found: dict[str, tuple[Cell, int]] = {}
    for position, block in enumerate(blocks):
        place = f"sweep[{position}]"
        new = {cell.digest: (cell, count) for cell, count in _cells(block, place)}
        for twice in new.keys() & found.keys():
            raise PlanError(f"{place}: a cell must be in one block only, got it again; drop it here: {new[twice][0]}")
        found |= new
    return found


def _cells(block: Mapping[str, Any], place: str) -> Iterator[tuple[Cell, int]]:
    chosen = {key: value for key, value in block.items() if key not in ("experiment", "vary")}
    experiment = REGISTRY.get(block["experiment"])()
    vary = block.get("vary", {})
    for point in itertools.product(*vary.values()):
        varied = dict(zip(vary, point, strict=True))
        whole = settings.conform(
            experiment.Settings, settings.merge(experiment.defaults(), {**chosen, **varied}), path=place
        )
        for narrowed in experiment.cells(whole):
            for variant in whole.variants:
                yield Cell.of(experiment.name, variant, narrowed, varied), experiment.replicates(narrowed)


def pack(items: Iterable[tuple[Work, Cost, tuple[str, ...]]], *, seconds: float) -> list[Job]:
    """Pack work into the fewest jobs, in order, that are expected to last at most `seconds`, then even them out.

    A job holds one experiment and variant, one set of data files and memories within a factor of 2, so that no small
    cell waits for the memory of a large one. A cell that alone lasts longer is cut between its replicates; a single
    replicate is never cut, and then makes a longer job.
    """
    groups: dict[tuple[Any, ...], list[tuple[Work, Cost]]] = {}
    for work, cost, data_sets in items:
        size = math.ceil(math.log2(BASE_MIB + cost.memory))
        groups.setdefault((work.cell.experiment, work.cell.variant, data_sets, size), []).append((work, cost))
    return [job for (_, _, data, _), group in groups.items() for job in _packed(group, data, seconds - BASE_SECONDS)]


def _packed(group: Sequence[tuple[Work, Cost]], data_sets: tuple[str, ...], room: float) -> Iterator[Job]:
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
        yield Job(tuple(work for work, _ in pieces[first:stop]), data_sets, length, BASE_MIB + memory)


def _filled(ends: Sequence[float], room: float) -> list[int]:
    """Return where jobs filled in turn end, `ends` being the running sums; what is too long stands alone."""
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

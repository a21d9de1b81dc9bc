"""Bundles: cells packed into jobs of about the same expected length."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpsub.reproduce.sweeps.cells import Cell, Cost

BASE_SECONDS = 3.0
"""What a job spends on starting, on imports and on writing its records."""

BASE_MIB = 600.0
"""Memory of a job that computes nothing, with the two processes of the workflow around it on a cluster's node."""


@dataclass(frozen=True, slots=True)
class Work:
    """Replicates `first`, ..., `stop` - 1 of a cell."""

    cell: Cell
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one job computes, all of one experiment.

    Attributes
    ----------
    work : sequence of Work
    data_sets : tuple of str
        Prepared data files that it reads.
    seconds, memory : float
        Expected on one core, in seconds and MiB, with what every job needs.
    """

    work: Sequence[Work]
    data_sets: tuple[str, ...]
    seconds: float
    memory: float

    @property
    def experiment(self) -> str:
        return self.work[0].cell.experiment

    def part(self, seed: int) -> str:
        """Return the name of its records, which follows from what is in them and from nothing else."""
        names = [[item.cell.digest, item.first, item.stop] for item in self.work]
        return hashlib.sha256(json.dumps([seed, names]).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Priced:
    """Work that is to be packed, with its cell's cost and data."""

    work: Work
    cost: Cost
    data_sets: tuple[str, ...]


def pack(items: Iterable[Priced], *, seconds: float) -> list[Bundle]:
    """Pack work into the fewest bundles, in order, that are expected to last at most `seconds`, then even them out.

    A bundle holds one experiment, one set of data files and memories within a factor of 2, so that no small cell waits
    for the memory of a large one. A cell that alone lasts longer is cut between its replicates; a single replicate is
    never cut, and then makes a longer job.
    """
    groups: dict[tuple[str, tuple[str, ...], int], list[Priced]] = {}
    for item in items:
        size = math.ceil(math.log2(BASE_MIB + item.cost.memory))
        groups.setdefault((item.work.cell.experiment, item.data_sets, size), []).append(item)
    return [bundle for group in groups.values() for bundle in _packed(group, seconds - BASE_SECONDS)]


def _packed(group: Sequence[Priced], room: float) -> Iterator[Bundle]:
    pieces = [(work, item.cost) for item in group for work in _cut(item, room)]
    spent = [cost.seconds(work.stop - work.first) for work, cost in pieces]
    ends = [0.0, *itertools.accumulate(spent)]
    bounds = _filled(ends, room)
    low, high = min(ends[-1] / len(bounds), room), room
    for _ in range(30):  # the shortest length that needs no more bundles
        middle = (low + high) / 2
        tried = _filled(ends, middle)
        if len(tried) > len(bounds):
            low = middle
        else:
            bounds, high = tried, middle
    for first, stop in itertools.pairwise([0, *bounds]):
        memory = max(cost.memory for _, cost in pieces[first:stop])
        seconds = BASE_SECONDS + math.fsum(spent[first:stop])
        yield Bundle(tuple(work for work, _ in pieces[first:stop]), group[0].data_sets, seconds, BASE_MIB + memory)


def _filled(ends: Sequence[float], room: float) -> list[int]:
    """Return where bundles filled in turn end, `ends` being the running sums; what is too long stands alone."""
    bounds = [0]
    while bounds[-1] < len(ends) - 1:
        reach = bisect.bisect_right(ends, ends[bounds[-1]] + room * (1 + 1e-12))
        bounds.append(max(reach - 1, bounds[-1] + 1))
    return bounds[1:]


def _cut(item: Priced, room: float) -> list[Work]:
    """Cut what is too long for one job into pieces as even as can be."""
    work, cost = item.work, item.cost
    count = work.stop - work.first
    if cost.seconds(count) <= room or cost.replicate <= 0:
        return [work]
    most = max(1, math.floor((room - cost.setup) / cost.replicate))
    pieces = math.ceil(count / most)
    bounds = [work.first + count * piece // pieces for piece in range(pieces + 1)]
    return [Work(work.cell, low, high) for low, high in itertools.pairwise(bounds)]

"""Cells of a sweep, and their packing into jobs of about equal length.

A cell is named by the digest of all that fixes its numbers, and a job by the digest of what it
computes: names follow from content, so that the same work has the same name in every plan.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsub.reproduce import settings
from dpsub.reproduce.experiment import Cost
from dpsub.streams import canonical

BASE_SECONDS = 3.0
"""Seconds that a job takes to start, to import and to write its records."""
BASE_MIB = 600.0
"""Memory of a job that computes nothing, with the two processes of the workflow around it on a
cluster's node."""
APART = ("sampler", "samplers", "b")
"""Settings and keys in which a cell and the Poisson cell that it is compared with may differ."""


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One point of a sweep."""

    experiment: str
    variant: str
    settings: Any
    """Settings of the experiment, narrowed to this point."""
    varied: Mapping[str, Any]
    """The settings that the sweep varies besides the experiment's own lists: columns of the
    records."""
    digest: str
    """Stands for all that fixes a replicate but the seed: the cell's name in the record files."""

    @classmethod
    def of(cls, experiment: str, variant: str, chosen: Any, varied: Mapping[str, Any]) -> SweepCell:
        digest = digest_of([experiment, variant, fixing(chosen)])
        return cls(experiment, variant, chosen, varied, digest)

    @property
    def pair(self) -> str:
        """Digest that a cell shares with the Poisson cell that it is compared with."""
        # The sampler and its first stage are what a pair compares; all else must agree.
        shared = _without(fixing(self.settings), APART)
        return digest_of([self.experiment, self.variant, shared])

    def __str__(self) -> str:
        text = json.dumps(fixing(self.settings), ensure_ascii=False)
        return f"{self.experiment} {self.variant} with {text[1:-1]}"


def fixing(chosen: Any) -> dict[str, Any]:
    """Return the settings that fix a replicate."""
    # Neither the number of replicates nor how they are split changes one of them: more can be added
    # later.
    return dict(canonical(chosen.model_dump(exclude={*settings.WHERE_ONLY, "replicates"})))


def _without(value: Any, names: tuple[str, ...]) -> Any:
    """Return nested settings without the keys `names`, at any depth."""
    if isinstance(value, Mapping):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [_without(item, names) for item in value]
    return value


def digest_of(what: Any) -> str:
    """Return 128 bits of the SHA-256 sum of the canonical JSON of a value, in hexadecimal
    digits."""
    # One text for equal content: keys sorted, no spaces.
    text = json.dumps(what, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Work:
    """Replicates `first`, ..., `stop` - 1 of a cell."""

    cell: SweepCell
    first: int
    stop: int

    @property
    def replicates(self) -> range:
        return range(self.first, self.stop)


@dataclass(frozen=True, slots=True)
class Job:
    """One job: work of one experiment and variant, on the same data; expected seconds and MiB."""

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
        """Return the name of its records, which follows from their content alone."""
        return digest_of([seed, [[item.cell.digest, item.first, item.stop] for item in self.work]])


def gaps(done: Iterable[range], replicates: int) -> list[range]:
    """Return the ranges of 0, ..., `replicates` - 1 that no range of `done` covers."""
    between, start = [], 0
    # Finished ranges may overlap, as when a job was computed twice.
    for span in sorted(done, key=lambda item: item.start):
        between.append(range(start, min(span.start, replicates)))
        start = max(start, span.stop)
    between.append(range(start, replicates))
    return [gap for gap in between if gap]


def pack(items: Iterable[tuple[Work, Cost, tuple[str, ...]]], *, seconds: float) -> list[Job]:
    """Pack work into the fewest jobs, in order, that are expected to last at most `seconds`, then
    even them out.

    A job holds one experiment and variant, one set of data files and memories within a factor of 2,
    so that no small cell waits for the memory of a large one. A cell that alone lasts longer is cut
    between its replicates; a single replicate is never cut, and then makes a longer job.
    """
    groups: dict[tuple[Any, ...], list[tuple[Work, Cost]]] = {}
    for work, cost, data_sets in items:
        # Memories within a factor of 2 share a class.
        size = math.ceil(math.log2(BASE_MIB + cost.memory))
        kind = (work.cell.experiment, work.cell.variant, data_sets, size)
        groups.setdefault(kind, []).append((work, cost))
    jobs = list[Job]()
    for (_, _, data_sets, _), group in groups.items():
        jobs += _packed(group, data_sets, seconds - BASE_SECONDS)
    return jobs


def _packed(
    group: Sequence[tuple[Work, Cost]], data_sets: tuple[str, ...], room: float
) -> Iterator[Job]:
    pieces = [(piece, cost) for work, cost in group for piece in _cut(work, cost, room)]
    spent = [cost.seconds(work.stop - work.first) for work, cost in pieces]
    ends = [0.0, *itertools.accumulate(spent)]
    bounds = _filled(ends, room)
    # Filled in turn, the last job may be nearly empty: bisect for the shortest length that needs no
    # more jobs, so that all of them end at about the same time.
    low, high = min(ends[-1] / len(bounds), room), room
    for _ in range(30):
        middle = (low + high) / 2
        tried = _filled(ends, middle)
        if len(tried) > len(bounds):
            low = middle
        else:
            bounds, high = tried, middle
    for first, stop in itertools.pairwise([0, *bounds]):
        work = tuple(piece for piece, _ in pieces[first:stop])
        memory = max(cost.memory for _, cost in pieces[first:stop])
        length = BASE_SECONDS + math.fsum(spent[first:stop])
        yield Job(work, data_sets, length, BASE_MIB + memory)


def _filled(ends: Sequence[float], room: float) -> list[int]:
    """Return the ends of jobs that are filled in turn, from the running sums `ends`; a job that is
    too long stands alone."""
    bounds = [0]
    while bounds[-1] < len(ends) - 1:
        # sums are rounded: a job that is full to the last digit is full, not too long
        reach = bisect.bisect_right(ends, ends[bounds[-1]] + room * (1 + 1e-12))
        bounds.append(max(reach - 1, bounds[-1] + 1))
    return bounds[1:]


def _cut(work: Work, cost: Cost, room: float) -> list[Work]:
    """Cut work that is too long for one job into pieces as even as possible."""
    count = work.stop - work.first
    # A cell whose replicates cost nothing gains nothing by being cut: each piece pays the setup.
    if cost.seconds(count) <= room or cost.replicate <= 0:
        return [work]
    # Every piece pays the setup of its cell again.
    replicates_a_job = max(1, math.floor((room - cost.setup) / cost.replicate))
    pieces = math.ceil(count / replicates_a_job)
    # Integer arithmetic: pieces differ by one replicate at most.
    bounds = [work.first + count * piece // pieces for piece in range(pieces + 1)]
    return [Work(work.cell, low, high) for low, high in itertools.pairwise(bounds)]

"""From the grids of a sweep to its cells; a grid that contradicts itself is refused, with the first such cell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsub import checks, sampling
from dpsub.errors import ArgumentError, PlanError, UnsupportedError
from dpsub.reproduce.experiment import takes_first_stage
from dpsub.reproduce.sweeps.cells import AXES, KEYS, Cell, CellExperiment
from dpsub.sampling.base import STAGES


@dataclass(frozen=True, slots=True)
class Wanted:
    """A cell of which the replicates 0, ..., `replicates` - 1 are wanted."""

    cell: Cell
    replicates: int


def expand(grids: Sequence[Mapping[str, Any]], known: Mapping[str, CellExperiment]) -> list[Wanted]:
    """Return the cells of `grids`, in their order: data sets, then samplers, sizes, steps, targets and conventions.

    A sampler with one stage has no b: sizes that differ in b only give one cell of it.

    Parameters
    ----------
    grids : sequence of mapping
        As `planning.Sweep` describes them, in canonical form.
    known : mapping
        The experiments that may be swept, by name.

    Raises
    ------
    PlanError
        If an axis is missing, superfluous or repeats itself, a name is unknown, a cell contradicts itself or cannot be
        computed, or two grids share a cell. The sentence ends with the cell.
    """
    found: dict[str, Wanted] = {}
    for position, grid in enumerate(grids):
        place = f"grids[{position}]"
        try:
            experiment = known[checks.one_of("experiment", grid["experiment"], known)]
            _check_axes(grid, experiment)
            new = {
                cell.digest: Wanted(cell, grid["seeds"])
                for cell in _checked(_cells(grid, experiment), experiment)
            }  # fmt: skip
        except (ArgumentError, UnsupportedError, PlanError) as problem:
            raise PlanError(f"{place}: {problem}") from None
        twice = next((digest for digest in new if digest in found), None)
        if twice is not None:
            raise PlanError(f"{place}: a cell must be in one grid only, got it again; drop it here: {new[twice].cell}")
        found.update(new)
    return list(found.values())


def _check_axes(grid: Mapping[str, Any], experiment: CellExperiment) -> None:
    for axis in AXES:
        if axis in grid and axis not in experiment.axes:
            raise PlanError(f"{axis} does not apply to {experiment.name}; drop it")
        if axis in experiment.axes and axis not in grid:
            raise PlanError(f"{axis} is missing, which {experiment.name} needs; add it")
    texts = [_canonical(text) for text in grid["samplers"]]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise PlanError(f"samplers must not repeat a value, got {twice!r} twice; drop one")


def _canonical(sampler: str) -> str:
    """Return a chain's text without blanks; refuse a name that nobody knows."""
    if ":" not in sampler:
        checks.one_of("sampler", sampler, sampling.names_of_sizes())
        unknown = {name: what for name, what in sampling.REGISTRY.get(sampler).sizes.items() if name not in KEYS}
        for name, what in unknown.items():
            raise PlanError(f"{sampler} needs {name}, the {what}, and the sizes of a sweep are n, m and b; "
                            "write its stages as a chain, such as wor:500,wr:400")
        return sampler
    parts = [part.partition(":") for part in sampler.split(",")]
    for kind, _, _ in parts:
        checks.one_of("kind of stage", kind.strip(), STAGES)
    return ",".join(f"{kind.strip()}:{size.strip()}" for kind, _, size in parts)


def _cells(grid: Mapping[str, Any], experiment: CellExperiment) -> Iterator[Cell]:
    axes = [grid.get(axis, [None]) for axis in ("steps", "targets", "conventions")]
    keys = experiment.key_fields()
    seen = set()
    for dataset in grid.get("datasets", [None]):
        for text, size in itertools.product(grid["samplers"], grid["sizes"]):
            sampler = _canonical(text)
            fields = {
                "sampler": sampler,
                "n": _records(experiment, dataset, size),
                "m": size["m"],
                "b": size.get("b") if takes_first_stage(sampler) else None,
                "dataset": dataset,
            }
            for steps, target, convention in itertools.product(*axes):
                fields.update(steps=steps, convention=convention)
                if target is not None:
                    fields.update(target_epsilon=target["epsilon"], target_delta=target["delta"])
                cell = Cell.of(experiment.name, {key: fields[key] for key in keys})
                if cell.digest not in seen:
                    seen.add(cell.digest)
                    yield cell


def _records(experiment: CellExperiment, dataset: str | None, size: Mapping[str, Any]) -> int:
    known = None if dataset is None else experiment.size_of(dataset)
    if known is None:
        if "n" not in size:
            what = "the frame" if dataset is None else f"the data set {dataset}"
            raise PlanError(f"the number of records n of {what} is missing; add n to every one of the sizes")
        return int(size["n"])
    if size.get("n", known) != known:
        raise PlanError(f"n must be the {known} records of {dataset}, got n = {size['n']}; drop it from the sizes")
    return known


def _checked(cells: Iterator[Cell], experiment: CellExperiment) -> Iterator[Cell]:
    """Yield the cells that can be computed; the first one that cannot ends the sentence."""
    for cell in cells:
        try:
            experiment.check(cell.fields)
        except (ArgumentError, UnsupportedError) as problem:
            raise PlanError(f"{problem} (cell: {cell})") from None
        yield cell

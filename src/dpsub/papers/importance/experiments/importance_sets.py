"""Which data sets an experiment of the importance-sampling paper runs on: prepared ones, or synthetic twins."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from pathlib import Path

from dpsub.data import described, point_sets
from dpsub.data.point_sets import PointSet
from dpsub.papers.importance.settings import OnSets
from dpsub.reproduce.experiment import Experiment

TWIN_NUMBERS = 2_500_000
"""Most numbers (rows times columns) of a twin: with 518 columns they are 4826 rows."""


class OnPointSets(Experiment, ABC):
    """An experiment whose settings name its data sets, as `OnSets` does."""

    def data_of(self, settings: OnSets) -> tuple[str, ...]:
        return tuple(sorted(settings.sets.data))


def names_of(settings: OnSets) -> list[str]:
    """Return the names of all data sets of a run, in the paper's order."""
    wanted = {*settings.sets.data, *settings.sets.twins}
    return [name for name in described.EIGHT if name in wanted]


def load(name: str, settings: OnSets, data: Mapping[str, Path]) -> PointSet:
    """Return a data set: prepared, where the settings say so, else its twin."""
    rows = min(settings.sets.twin_rows, TWIN_NUMBERS // described.of(name).d)
    if name not in settings.sets.data:
        return point_sets.stand_in(name, rows)
    return point_sets.from_ijcnn1(data[name], rows) if name == "ijcnn1" else point_sets.load(data[name])


def each(settings: OnSets, data: Mapping[str, Path]) -> Iterator[PointSet]:
    """Yield the data sets of a run, one at a time."""
    for name in names_of(settings):
        yield load(name, settings, data)


def scaled_size(m: float, points: PointSet) -> float:
    """Return the expected sample size for data of another size than the paper's: the same share of the records.

    Noise scales depend on rates and on norms only, so they are those of the paper's cell.
    """
    return m if points.label == "real" else m * len(points.points) / described.of(points.name).n

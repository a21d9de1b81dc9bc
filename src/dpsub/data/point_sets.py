"""Data sets to be clustered on disk: an array that is mapped into memory, and a description of what was checked."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.data import described, ijcnn1, prepared, raw_points, twins
from dpsub.data.centred import Centred, centred, squared_norms
from dpsub.data.point_sources import ORIGINS, FoundFile
from dpsub.data.sources import LABELS, checksum
from dpsub.errors import DataError

NAMES = tuple(ORIGINS)
SUFFIX = ".npy"


@dataclass(frozen=True, eq=False)
class PointSet:
    """Centred rows of one data set.

    Attributes
    ----------
    name, label : str
        Which, and what it must be called: "real", "synthetic", "subsample" or "partial".
    points : ndarray of float32, shape (n, d)
    n_original : int
        Rows before the removal of outliers.
    radius, mean_square : float
        Of the rows before they were rounded to single precision: what Table 1 of the paper states.
    groups : ndarray of str, shape (n,), or None
        A named class of each row, if there is one.
    """

    name: str
    label: str
    points: np.ndarray
    n_original: int
    radius: float
    mean_square: float
    groups: np.ndarray | None = None

    @cached_property
    def norms(self) -> np.ndarray:
        """l2 norms of the rows as they are stored; at most `bound`."""
        return np.sqrt(squared_norms(self.points))

    @property
    def bound(self) -> float:
        """Largest l2 norm of the rows as they are stored."""
        return float(self.norms.max())

    @property
    def title(self) -> str:
        return described.of(self.name).title


def prepare(name: str, found: FoundFile, *, twin_rows: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the centred rows of a data set and their description.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    found : Found
        Its files; without any, a stand-in of at most `twin_rows` rows is made.
    twin_rows : int

    Raises
    ------
    DataError
        If complete files do not give the paper's Table 1, or a part of them has another number of columns.
    """
    paper = described.of(name)
    if not found.paths:
        points, _ = twins.twin(paper, twin_rows)
        squares = squared_norms(points)
        numbers = {"radius": float(np.sqrt(squares.max())), "mean_square": float(squares.mean())}
        facts = {**_facts(name, "synthetic", points), "n_original": len(points), **numbers}
        return points, {**facts, "checked": "", "reason": found.reason}
    result = centred(raw_points.read(name, found.paths))
    _accept(name, found.label, result)
    unknown = [file for file, path in found.paths.items() if path.is_file() and file not in found.sha256]
    sums = {**found.sha256, **{file: checksum(found.paths[file]) for file in unknown}}
    return result.points, {
        **_facts(name, found.label, result.points),
        "n_original": result.n_original,
        "radius": result.radius,
        "mean_square": result.mean_square,
        "checked": "Table 1" if found.label == "real" else "checksum",
        "sources": dict(sorted(sums.items())),
    }


def _facts(name: str, label: str, points: np.ndarray) -> dict[str, Any]:
    return {"dataset": name, "label": label, "rows": len(points), "columns": points.shape[1]}


def _accept(name: str, label: str, result: Centred) -> None:
    paper = described.of(name)
    n, d = result.points.shape
    if label == "real":
        faults = paper.faults(n_original=result.n_original, n=n, d=d, radius=result.radius,
                              mean_square=result.mean_square)  # fmt: skip
    else:
        faults = [f"columns must be {paper.d}, got {d}"] if d != paper.d else []
    if faults:
        raise DataError(f"{name} must be the data of Table 1: {'; '.join(faults)}; restore the original files")


def write(points: np.ndarray, path: Path, facts: Mapping[str, Any]) -> None:
    """Write rows (NumPy format, single precision) and their description with the checksum next to them.

    Both files get their names only when they are complete.
    """
    checks.one_of("label", facts["label"], LABELS)
    rows, head = np.ascontiguousarray(points, dtype=np.float32), io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(rows))
    # not np.save, which forgets why a disk did not take the rows
    prepared.write_pair(Path(path), [head.getvalue(), rows.data.cast("B")], facts)


def load(path: Path) -> PointSet:
    """Return a prepared data set; its rows are mapped into memory, read when they are used.

    Raises
    ------
    DataError
        If the files are missing or do not belong together.
    """
    path = Path(path)
    facts = prepared.description(path, dataset=str, label=str, n_original=int, radius=float, mean_square=float)
    try:
        points = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        rule = f"{path} must hold rows in NumPy's format"
        raise DataError(f"{rule}, got something else; prepare the data again") from None
    return PointSet(facts.pop("dataset"), facts.pop("label"), points, **facts)


def stand_in(name: str, rows: int) -> PointSet:
    """Return a synthetic twin of at most `rows` rows; its groups are the rows of large and of small clusters."""
    points, large = twins.twin(described.of(name), rows)
    squares = squared_norms(points)
    groups = np.where(large, "large clusters", "small clusters")
    radius, mean_square = float(np.sqrt(squares.max())), float(squares.mean())
    return PointSet(name, "synthetic", points, len(points), radius, mean_square, groups)


def from_ijcnn1(path: Path, rows: int) -> PointSet:
    """Return ijcnn1, with its two classes as groups; where the file is a stand-in, the twin scaled to Table 1.

    Raises
    ------
    DataError
        If the real file does not give the paper's Table 1.
    """
    features, positive, label = ijcnn1.load(path)
    if label != "real":
        return stand_in("ijcnn1", rows)
    result = centred(features)
    _accept("ijcnn1", label, result)
    groups = np.where(positive[result.kept] > 0, "positive class", "negative class")
    return PointSet("ijcnn1", label, result.points, result.n_original, result.radius, result.mean_square, groups)

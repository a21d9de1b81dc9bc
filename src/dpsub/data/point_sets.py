"""Points to be clustered: rows around their mean without the outermost ones, and stand-ins with the
paper's norms."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks, streams
from dpsub.data import dataset, described, ijcnn1
from dpsub.data.dataset import DataSet, Obtained
from dpsub.data.described import Described
from dpsub.errors import DataError

PERCENTILE = 97.5
SENTINEL = -999.0
TWIN_ROWS = 20_000  # at most, of a stand-in that is prepared
CLUSTERS = 40
LARGE = 5  # the first clusters, about half of the rows, are the group "large"
_TAIL = 1.2  # sizes fall like j^-1.2
_SPREAD = 0.35  # standard deviation within a cluster over that between centres
_ROUNDS = 30
_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, eq=False)
class Centred:
    """Rows around their mean; statistics in double precision, taken before the rounding of the
    rows."""

    points: np.ndarray  # float32, shape (n, d)
    radius: float  # largest l2 norm after the second centring
    mean_square: float  # mean squared l2 norm after it
    kept: np.ndarray  # which of the original rows stay, shape (n_original,)


@dataclass(frozen=True, eq=False)
class PointSet:
    """Centred rows of one data set; radius and mean square are those of Table 1 of the paper."""

    name: str
    label: str  # what it must be called: "real", "synthetic", "subsample" or "partial"
    points: np.ndarray  # float32, shape (n, d)
    n_original: int  # rows before the removal of outliers
    radius: float  # of the rows before they were rounded to single precision
    mean_square: float
    groups: np.ndarray | None = None  # a named class of each row, shape (n,), if there is one

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


def squared_norms(points: np.ndarray) -> np.ndarray:
    """Return squared l2 norms of the rows, accumulated in double precision; shape (n,)."""
    squares = np.empty(len(points))
    for start in range(0, len(points), _ROWS_AT_ONCE):
        block = points[start : start + _ROWS_AT_ONCE].astype(float, copy=False)
        squares[start : start + len(block)] = np.einsum("ij,ij->i", block, block)
    return squares


def centred(matrix: np.ndarray) -> Centred:
    """Remove the outermost rows of a matrix of shape (n, d) and centre the others (importance,
    Section 5 and Table 1).

    Rows stay if their distance to the mean is strictly below the `PERCENTILE` of all distances
    (linear interpolation); then their own mean is subtracted. Warns if equal distances at the limit
    change how many rows stay, or rows of -999 (a mark for "unknown") do.
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise DataError(
            f"points must be a table of numbers, got {matrix.ndim} axes of type {matrix.dtype}"
        )
    if 0 in matrix.shape:
        raise DataError(
            f"points must have at least a row and a column, got the shape {matrix.shape}"
        )
    values = matrix.astype(float)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        got = f"{values[row, column]} in row {row + 1}, column {column + 1}"
        raise DataError(f"points must be finite, got {got}; remove or correct the row")
    marked = int((values == SENTINEL).all(axis=1).sum())
    values -= values.mean(axis=0)
    distances = np.sqrt(squared_norms(values))
    kept = distances < float(np.percentile(distances, PERCENTILE))
    if not kept.any():
        raise DataError(
            f"points must differ, got {len(values)} rows at one distance from their mean"
        )
    if kept.sum() != (expected := int(np.floor(len(values) * PERCENTILE / 100))):
        text = f"ties at the {PERCENTILE:g} percentile: {int(kept.sum())} rows stay, not {expected}"
        warnings.warn(text, stacklevel=2)
    if marked > 1:
        warnings.warn(
            f"{marked} rows consist of {SENTINEL:g} only, a mark for unknown values", stacklevel=2
        )
    values = values[kept]
    values -= values.mean(axis=0)
    squares = squared_norms(values)
    mean_square = float(squares.mean())
    if mean_square == 0:
        raise DataError(f"points must differ, got {len(values)} equal rows")
    return Centred(values.astype(np.float32), float(np.sqrt(squares.max())), mean_square, kept)


def accepted(
    name: str, label: str, matrix: np.ndarray, groups: np.ndarray | None = None
) -> PointSet:
    """Return the centred rows of `matrix`, with the groups of those that stay.

    DataError if complete files do not give the paper's Table 1, or a part of them has another
    number of columns.
    """
    paper, result = described.of(name), centred(matrix)
    n, d = result.points.shape
    point_set = PointSet(
        name,
        label,
        result.points,
        len(matrix),
        result.radius,
        result.mean_square,
        None if groups is None else groups[result.kept],
    )
    if label == "real":
        faults = paper.faults(
            n_original=len(matrix),
            n=n,
            d=d,
            radius=point_set.radius,
            mean_square=point_set.mean_square,
        )
    else:
        faults = [f"columns must be {paper.d}, got {d}"] if d != paper.d else []
    if faults:
        raise DataError(
            f"{name} must be the data of Table 1: {'; '.join(faults)}; restore the original files"
        )
    return point_set


def write(point_set: PointSet, path: Path, **facts: Any) -> None:
    """Write the rows (NumPy format, single precision) and, with more `facts`, their description, as
    `dataset.write`."""
    rows, head = np.ascontiguousarray(point_set.points, dtype=np.float32), io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(rows))
    description = {
        "dataset": point_set.name,
        "label": point_set.label,
        "rows": len(rows),
        "columns": rows.shape[1],
        "n_original": point_set.n_original,
        "radius": point_set.radius,
        "mean_square": point_set.mean_square,
    }
    # not np.save, which forgets why a disk did not take the rows
    dataset.write([head.getvalue(), rows.data.cast("B")], path, {**description, **facts})


def load(path: Path) -> PointSet:
    """Return a prepared data set; its rows are mapped into memory, read when they are used."""
    facts = dataset.describe(
        path, dataset=str, label=str, n_original=int, radius=float, mean_square=float
    )
    points = np.load(path, mmap_mode="r", allow_pickle=False)
    return PointSet(facts.pop("dataset"), facts.pop("label"), points, **facts)


def from_ijcnn1(path: Path, rows: int) -> PointSet:
    """Return ijcnn1, with its two classes as groups; where the file is a stand-in, the twin scaled
    to Table 1."""
    features, positive, label = ijcnn1.load(path)
    if label != "real":
        return stand_in("ijcnn1", rows)
    return accepted(
        "ijcnn1", label, features, np.where(positive > 0, "positive class", "negative class")
    )


# All variants of an experiment ask for the same twins.
@cache
def stand_in(name: str, rows: int) -> PointSet:
    """Return a synthetic twin of at most `rows` rows; its groups are the rows of large and of small
    clusters."""
    points, large = twin(described.of(name), rows)
    points.setflags(write=False)
    squares = squared_norms(points)
    groups = np.where(large, "large clusters", "small clusters")
    radius, mean_square = float(np.sqrt(squares.max())), float(squares.mean())
    return PointSet(name, "synthetic", points, len(points), radius, mean_square, groups)


def twin(paper: Described, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points that resemble a data set in the quantities on which privacy accounting and cost
    depend.

    A Gaussian mixture with heavy-tailed cluster sizes and a falling spectrum; then norms are raised
    to a power and scaled, direction by direction, until largest norm and mean squared norm around
    the mean are those of Table 1. Points are centred, float32, shape (n, d); n is `rows`, or the
    paper's number of rows if that is smaller. The second array, shape (n,), says whether a row
    belongs to one of the five largest clusters.
    """
    # here, as loading it takes longer than most jobs
    from scipy.optimize import brentq

    n = min(checks.integer("rows", rows, at_least=100), paper.n)
    before = math.ceil(n / (PERCENTILE / 100)) + 1
    rng = streams.stream(
        paper.n_original,
        experiment="synthetic_points",
        cell={"name": paper.name},
        role="data",
        replicate=n,
    )
    spectrum = np.arange(1, paper.d + 1) ** -0.4
    chances = np.arange(1, CLUSTERS + 1) ** -_TAIL
    cluster = rng.choice(CLUSTERS, size=before, p=chances / chances.sum())
    centres = rng.standard_normal((CLUSTERS, paper.d)) * spectrum
    first = centred(centres[cluster] + _SPREAD * spectrum * rng.standard_normal((before, paper.d)))
    points = first.points[:n].astype(float)
    share = paper.mean_square / paper.radius**2
    for _ in range(_ROUNDS):
        points -= points.mean(axis=0)
        norms = np.sqrt(squared_norms(points))
        relative = norms / norms.max()
        power = brentq(lambda p, t=relative: float(np.mean(t ** (2 * p))) - share, 0.01, 100)
        if abs(power - 1) < 1e-7:
            break
        points *= (paper.radius * relative**power / norms)[:, None]
    return points.astype(np.float32), (cluster[first.kept] < LARGE)[:n]


class Points(DataSet):
    """A data set of the importance-sampling paper; where no file is published with a checksum,
    Table 1 is the check."""

    suffix = ".npy"

    @abstractmethod
    def features(self, paths: Mapping[str, Path]) -> np.ndarray:
        """Return the features in the raw files, shape (n, d), labels and identifiers left out."""

    def read(self, paths: Mapping[str, Path]) -> np.ndarray:
        """Return `features`; DataError if a file cannot be read as what it should be."""
        try:
            return self.features(paths)
        except (
            OSError,
            EOFError,
            ValueError,
            LookupError,
            zipfile.BadZipFile,
            pd.errors.ParserError,
        ) as problem:
            names, reason = (
                ", ".join(map(str, paths.values())),
                " ".join(str(problem).split())[:200],
            )
            rule = f"{names} must hold the {self.name} data"
            raise DataError(f"{rule}, got: {reason}; restore the original file") from None

    def make(self, obtained: Obtained, path: Path) -> int:
        if obtained.paths:
            point_set = accepted(self.name, obtained.label, self.read(obtained.paths))
            checked = "Table 1" if point_set.label == "real" else "checksum"
            write(point_set, path, checked=checked, sources=obtained.sha256)
        else:
            point_set = stand_in(self.name, TWIN_ROWS)
            write(point_set, path, checked="", reason=obtained.reason)
        return len(point_set.points)


class NumericTable(Points):
    """One table of numbers without header, which may be compressed as its name says."""

    kept: ClassVar[slice]  # columns
    skipped: ClassVar[int] = 0  # lines

    def features(self, paths: Mapping[str, Path]) -> np.ndarray:
        (path,) = paths.values()
        separator = {".dat": "\t", ".txt": r"\s+"}.get(path.suffix, ",")
        table = pd.read_csv(
            path, sep=separator, header=None, skiprows=self.skipped, dtype=np.float64
        )
        return table.to_numpy()[:, self.kept]


class KddProtein(NumericTable):
    """Block, example and class stand before the 74 features; in the recovered part a flag does."""

    name, kept = "kdd_protein", slice(-74, None)
    files: ClassVar = {"real": ("bio_train.dat",), "partial": ("kdd_protein_recovered.csv.xz",)}


class Song(NumericTable):
    """The year of the song stands before the 90 features; not in the subsample."""

    name, kept = "song", slice(-90, None)
    files: ClassVar = {
        "real": ("YearPredictionMSD.txt.zip",),
        "subsample": ("song_uniform_subsample.csv.xz",),
    }


class Covertype(NumericTable):
    """The cover type stands behind the 54 features."""

    name, kept = "covertype", slice(54)
    files: ClassVar = {"real": ("covtype.data.gz",)}


class MiniBoone(NumericTable):
    """One line of counts comes first."""

    name, kept, skipped = "miniboone", slice(None), 1
    files: ClassVar = {"real": ("MiniBooNE_PID.txt",)}


class Rna(Points):
    """Three files in the format of LIBSVM."""

    name = "rna"
    files: ClassVar = {"real": ("cod-rna", "cod-rna.t", "cod-rna.r")}

    def features(self, paths: Mapping[str, Path]) -> np.ndarray:
        return np.concatenate([ijcnn1.libsvm(path, 8)[0] for path in paths.values()])


class Fma(Points):
    """Three lines of names come first, and a track's number before its features."""

    name = "fma"
    files: ClassVar = {"real": ("fma_metadata.zip",)}

    def features(self, paths: Mapping[str, Path]) -> np.ndarray:
        with zipfile.ZipFile(paths["fma_metadata.zip"]) as archive:
            table = io.BytesIO(archive.read("fma_metadata/features.csv"))
        return pd.read_csv(table, header=[0, 1, 2], index_col=0).to_numpy(dtype=np.float64)


class Pose(Points):
    """One file for each pose, one joint per line; the first one, the root, is the origin of the
    others."""

    name = "pose"
    files: ClassVar = {"real": ("POSE",)}

    def features(self, paths: Mapping[str, Path]) -> np.ndarray:
        files = sorted(paths["POSE"].glob("*.csv"))
        if not files:
            raise ValueError("no .csv file in the folder")
        return np.stack(
            [np.loadtxt(file, delimiter=",", ndmin=2)[1:].reshape(-1) for file in files]
        )

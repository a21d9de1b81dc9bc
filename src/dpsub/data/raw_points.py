"""Readers of the original files of the data sets to be clustered, one function a file format."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.errors import DataError


def read(name: str, paths: Mapping[str, Path]) -> np.ndarray:
    """Return the features of a data set, labels and identifiers left out.

    Parameters
    ----------
    name : str
        A key of :data:`READERS`.
    paths : mapping of str to Path
        Its files, or of the named part of it, by their original names.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    DataError
        If a file cannot be read as what it should be; the sentence names it.
    """
    try:
        return READERS[name](paths)
    except (OSError, EOFError, ValueError, IndexError, KeyError, zipfile.BadZipFile, pd.errors.ParserError) as problem:
        names = ", ".join(str(path) for path in paths.values())
        reason = " ".join(str(problem).split())[:200]
        raise DataError(f"{names} must hold the {name} data, got: {reason}; restore the original file") from None


def libsvm(path: Path, n_features: int) -> np.ndarray:
    """Return the features of "label index:value ..." lines; indices from 1, what is not given is 0.

    Raises
    ------
    ValueError
        If a line is none such.
    """
    rows = []
    with Path(path).open(encoding="ascii") as lines:
        for number, line in enumerate(lines, start=1):
            row = [0.0] * n_features
            _, *entries = line.split()
            for entry in entries:
                index, found, value = entry.partition(":")
                if not found or not 1 <= int(index) <= n_features:
                    raise ValueError(f"line {number} has the entry {entry!r}")
                row[int(index) - 1] = float(value)
            rows.append(row)
    return np.array(rows).reshape(-1, n_features)


def table(source: Path | io.BytesIO, *, separator: str = ",", skip: int = 0) -> np.ndarray:
    """Return a table of numbers without header; a file that ends with .gz or .xz is decompressed."""
    frame = pd.read_csv(source, sep=separator, header=None, skiprows=skip, dtype=np.float64)
    return frame.to_numpy()


def _kdd_protein(paths: Mapping[str, Path]) -> np.ndarray:
    """Block, example and class stand before the 74 features; in the recovered part a flag does."""
    if "bio_train.dat" in paths:
        return table(paths["bio_train.dat"], separator="\t")[:, 3:77]
    return table(paths["kdd_protein_recovered.csv.xz"])[:, 1:]


def _rna(paths: Mapping[str, Path]) -> np.ndarray:
    return np.concatenate([libsvm(paths[file], 8) for file in ("cod-rna", "cod-rna.t", "cod-rna.r")])


def _song(paths: Mapping[str, Path]) -> np.ndarray:
    """The year of the song stands before the 90 features; not in the subsample."""
    if "song_uniform_subsample.csv.xz" in paths:
        return table(paths["song_uniform_subsample.csv.xz"])
    with zipfile.ZipFile(paths["YearPredictionMSD.txt.zip"]) as archive, archive.open("YearPredictionMSD.txt") as lines:
        return table(io.BytesIO(lines.read()))[:, 1:]


def _covertype(paths: Mapping[str, Path]) -> np.ndarray:
    return table(paths["covtype.data.gz"])[:, :54]


def _miniboone(paths: Mapping[str, Path]) -> np.ndarray:
    return table(paths["MiniBooNE_PID.txt"], separator=r"\s+", skip=1)


def _fma(paths: Mapping[str, Path]) -> np.ndarray:
    with zipfile.ZipFile(paths["fma_metadata.zip"]) as archive, archive.open("fma_metadata/features.csv") as lines:
        frame = pd.read_csv(io.BytesIO(lines.read()), header=[0, 1, 2], index_col=0)
    return frame.to_numpy(dtype=np.float64)


def _pose(paths: Mapping[str, Path]) -> np.ndarray:
    """One file a pose, a joint a line; the first one, the root, is the origin of the others."""
    files = sorted(paths["POSE"].glob("*.csv"))
    if not files:
        raise ValueError("no .csv file in the folder")
    return np.stack([np.loadtxt(file, delimiter=",", ndmin=2)[1:].reshape(-1) for file in files])


READERS: dict[str, Callable[[Mapping[str, Path]], np.ndarray]] = {
    "kdd_protein": _kdd_protein, "rna": _rna, "song": _song, "covertype": _covertype, "miniboone": _miniboone,
    "fma": _fma, "pose": _pose,
}  # fmt: skip

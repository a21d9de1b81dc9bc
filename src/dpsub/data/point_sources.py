"""Where the files of the data sets to be clustered come from, and which of them can be obtained.

Most of them have no published SHA-256 sum. These are never downloaded: a file of the user's is taken if what it gives
is the paper's Table 1, number by number (`dpsub.data.described`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dpsub import checks
from dpsub.data import fetch, sources
from dpsub.errors import DataError


@dataclass(frozen=True)
class Origin:
    """Files of one data set.

    Attributes
    ----------
    files : tuple of str
        The original ones; a folder for the poses.
    urls : tuple of str
        Where to get them.
    licence : str
        As its publisher states it.
    part, label : str
        A file with part of the rows that is taken in their place, and what its results are called; "" for none.
    """

    files: tuple[str, ...]
    urls: tuple[str, ...]
    licence: str
    part: str = ""
    label: str = ""


_UCI, _LIBSVM = "https://archive.ics.uci.edu/", "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
ORIGINS: dict[str, Origin] = {
    "kdd_protein": Origin(
        ("bio_train.dat",), ("https://kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",), "none stated",
        "kdd_protein_recovered.csv.xz", "partial",
    ),
    "rna": Origin(
        ("cod-rna", "cod-rna.t", "cod-rna.r"), tuple(_LIBSVM + name for name in ("cod-rna", "cod-rna.t", "cod-rna.r")),
        "none stated; cite Uzilov, Keegan, Mathews 2006",
    ),
    "song": Origin(
        ("YearPredictionMSD.txt.zip",), (f"{_UCI}ml/machine-learning-databases/00203/YearPredictionMSD.txt.zip",),
        "CC BY 4.0 (doi 10.24432/C50K61)", "song_uniform_subsample.csv.xz", "subsample",
    ),
    "covertype": Origin(
        ("covtype.data.gz",), (f"{_UCI}ml/machine-learning-databases/covtype/covtype.data.gz",),
        "CC BY 4.0 (doi 10.24432/C50K5N)",
    ),
    "miniboone": Origin(
        ("MiniBooNE_PID.txt",), (f"{_UCI}ml/machine-learning-databases/00199/MiniBooNE_PID.txt",),
        "CC BY 4.0 (doi 10.24432/C5QC87)",
    ),
    "fma": Origin(("fma_metadata.zip",), ("https://os.unil.cloud.switch.ch/fma/fma_metadata.zip",), "CC BY 4.0"),
    "pose": Origin(
        ("POSE",), ("http://vision.imar.ro/human3.6m/challenge_open.php",), "academic use, after registration",
    ),
}  # fmt: skip
"""ijcnn1 has a module of its own; it stands in the table of sources."""


@dataclass(frozen=True)
class FoundFile:
    """Files of a data set, what it must be called, and which checksums are known; or why there are none."""

    paths: dict[str, Path]
    label: str
    sha256: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def find(
    name: str, *, sources_table: Path, raw: Path, folder: Path | None, download: bool, fallback: str
) -> FoundFile:
    """Return the files of a data set: from a folder of the user, from `raw`, or downloaded if a checksum is known.

    In each folder the original files go before a part of them.

    Parameters
    ----------
    name : str
        A key of :data:`ORIGINS`.
    sources_table, raw, folder, download, fallback
        As :func:`dpsub.data.fetch.obtain`.

    Raises
    ------
    DataError
        If a file has another checksum than the table of sources says, or none can be obtained and `fallback`
        is "error".
    """
    origin = ORIGINS[checks.one_of("data set", name, ORIGINS)]
    known = {source.file: source for source in sources.read(sources_table) if source.dataset == name}
    for place in _folders(raw, folder):
        for files, label in ((origin.files, "real"), ((origin.part,) if origin.part else (), origin.label)):
            paths = {file: place / name / file for file in files}
            if paths and all(path.exists() for path in paths.values()):
                for file, path in paths.items():
                    if file in known:
                        fetch.verify(path, known[file])
                return FoundFile(paths, label, {file: known[file].sha256 for file in files if file in known})
    if set(origin.files) <= set(known):
        had = fetch.obtain(name, sources=sources_table, raw=raw, files=origin.files, download=download,
                           fallback=fallback, folders=False)  # fmt: skip
        return FoundFile(had.paths, had.label, had.sha256, had.reason)
    reason = (
        f"no {', '.join(origin.files)}, for which no checksum is published; "
        f"put the files of {' '.join(origin.urls)} into {Path(raw) / name}"
    )
    if fallback == "error":
        raise DataError(f"the files of {name} must be there when the fallback is 'error', got {reason}")
    return FoundFile({}, "synthetic", reason=reason)


def _folders(raw: Path, folder: Path | None) -> Iterator[Path]:
    given = os.environ.get(fetch.ENVIRONMENT_VARIABLE)
    for place, name in ((given, fetch.ENVIRONMENT_VARIABLE), (folder, "the data folder")):
        if place:
            if not Path(place).is_dir():
                raise DataError(f"{name} must be an existing folder, got {str(place)!r}; correct or remove it")
            yield Path(place)
    yield Path(raw)

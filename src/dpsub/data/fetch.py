"""Obtain raw files: from a folder of the user, from ``data/raw``, by download; else a stand-in is announced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpsub import checks
from dpsub.data import sources as tables
from dpsub.data.download import bring
from dpsub.data.sources import Source, checksum
from dpsub.data.transfer import Limits, UnavailableError
from dpsub.errors import DataError

ENVIRONMENT_VARIABLE = "DPSUB_DATA"
FALLBACKS = ("synthetic", "error")


@dataclass(frozen=True)
class Obtained:
    """Raw files that are what they should be, or the news that a stand-in is needed.

    Parameters
    ----------
    paths : dict of str to Path
        Verified files by name; empty if `label` is "synthetic".
    label : {"real", "synthetic"}
        What everything made from them must be called.
    sha256 : dict of str to str
        Checksums of `paths`.
    reason : str
        Why there are no files, for the user; empty if there are.
    """

    paths: dict[str, Path]
    label: str
    sha256: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def verify(path: Path, source: Source) -> Path:
    """Return `path` if it is the file that `source` describes.

    Raises
    ------
    DataError
        If the SHA-256 sum differs; the message names the file, the sum expected and the sum found.
    """
    found = checksum(path)
    if found != source.sha256:
        size = path.stat().st_size
        raise DataError(
            f"{path} must have the SHA-256 sum {source.sha256} ({source.bytes} bytes), got {found} ({size} bytes); "
            f"replace it by the original{f' from {source.urls[0]}' if source.urls else ''}"
        )
    return path


def obtain(
    dataset: str,
    *,
    sources: Path,
    raw: Path,
    folder: Path | None = None,
    files: Sequence[str] | None = None,
    download: bool = True,
    fallback: str = "synthetic",
    limits: Limits | None = None,
    folders: bool = True,
) -> Obtained:
    """Find or download the raw files of `dataset` and verify their checksums.

    Looked at in this order: the folder in the environment variable ``DPSUB_DATA``, `folder`, `raw`, the addresses in
    the table of sources. The first of the folders that holds ``<folder>/<dataset>/`` is taken.

    Parameters
    ----------
    dataset : str
        A data set of the table of sources.
    sources : Path
        The table of sources (CSV).
    raw : Path
        Folder of downloads: files go to ``<raw>/<dataset>/<file>``.
    folder : Path, optional
        A folder of the user, laid out as ``<folder>/<dataset>/<file>``; only read.
    files : sequence of str, optional
        The files wanted; all files of the data set by default.
    download : bool
        Whether to ask the addresses.
    fallback : {"synthetic", "error"}
        What to do if the files cannot be obtained: announce a stand-in, or stop.
    limits : Limits, optional
        Time limits of downloads.
    folders : bool
        Whether to look into folders of the user; False if the caller has.

    Returns
    -------
    Obtained
        The verified files, or none with the label "synthetic" and the reason.

    Raises
    ------
    DataError
        If a file is there but is another one than it should be (whatever `fallback` says), if a folder of the user is
        missing or lacks a file, or if nothing can be obtained and `fallback` is "error".
    """
    checks.one_of("fallback", fallback, FALLBACKS)
    wanted = tables.of(dataset, sources, files=files)
    for place, name in ((os.environ.get(ENVIRONMENT_VARIABLE), ENVIRONMENT_VARIABLE), (folder, "the data folder")):
        if folders and place and (given := _given(Path(place), dataset, wanted, name)):
            return _verified(given, wanted)
    paths = {source.file: Path(raw) / dataset / source.file for source in wanted}
    for source in wanted:
        if paths[source.file].is_file():
            verify(paths[source.file], source)
    missing = [source for source in wanted if not paths[source.file].is_file()]
    reason = "downloads are switched off" if missing and not download else ""
    down: set[str] = set()
    for source in missing if download else ():
        try:
            bring(source, Path(raw) / dataset, limits=limits or Limits(), down=down)
        except UnavailableError as problem:
            reason = str(problem)
            break
    if not reason:
        return _verified(paths, wanted)
    if fallback == "error":
        raise DataError(
            f"the files of {dataset} must be there when the fallback is 'error', got no {missing[0].file} ({reason}); "
            f"put them into {Path(raw) / dataset}, name a folder that holds {dataset}/ in {ENVIRONMENT_VARIABLE}, "
            "or allow the fallback 'synthetic'"
        )
    return Obtained({}, "synthetic", reason=f"no {missing[0].file}: {reason}")


def _given(place: Path, dataset: str, wanted: Sequence[Source], name: str) -> dict[str, Path]:
    """Return the files below a folder of the user, or nothing if it does not have this data set."""
    if not place.is_dir():
        raise DataError(f"{name} must be an existing folder, got {str(place)!r}; correct or remove it")
    if not (place / dataset).is_dir():
        return {}
    paths = {source.file: place / dataset / source.file for source in wanted}
    for path in paths.values():
        if not path.is_file():
            raise DataError(f"{name} must hold all files of {dataset}, got no {path}; add it or remove {path.parent}")
    return paths


def _verified(paths: dict[str, Path], wanted: Sequence[Source]) -> Obtained:
    for source in wanted:
        verify(paths[source.file], source)
    return Obtained(paths, "real", {source.file: source.sha256 for source in wanted})

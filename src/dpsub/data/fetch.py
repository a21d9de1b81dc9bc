"""Raw files: from a folder of the user, from ``data/raw``, or by download; without them a stand-in
is announced.

The table ``data/SOURCES.csv`` says where each file comes from and what it must be. A file without a
published checksum is never downloaded: one of the user's is taken, and what is made of it must be
the paper's data table.
"""

from __future__ import annotations

import csv
import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
from tqdm import tqdm

from dpsub import checks
from dpsub.data import folders
from dpsub.data.dataset import Obtained
from dpsub.errors import DataError
from dpsub.files import checksum

FALLBACKS = ("synthetic", "error")
COLUMNS = ("dataset", "file", "urls", "licence", "sha256", "bytes", "note")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHUNK = 4096  # bytes; at the slowest speed that is allowed one comes each second


class UnavailableError(DataError):
    """No address gives the file now: no network, no such page, a broken or stalled transfer."""


@dataclass(frozen=True)
class Limits:
    """Limits of a transfer, beyond which it is given up: seconds a window, bytes per second,
    attempts an address."""

    stall: float = 10.0
    slowest: float = 4096.0
    attempts: int = 3


@dataclass(frozen=True)
class Source:
    """One raw file, which lives at ``<folder>/<dataset>/<file>``."""

    dataset: str
    file: str
    urls: tuple[str, ...]  # addresses (http or https) in the order in which they are tried
    licence: str  # as its publisher states it
    sha256: str  # 64 lower-case hexadecimal digits; empty where none is published
    bytes: int  # 0 where it has no checksum
    note: str = ""  # what a reader should know about the file

    def __post_init__(self) -> None:
        for field, name in (("dataset", self.dataset), ("file", self.file)):
            if not _PLAIN_NAME.fullmatch(name):
                raise DataError(
                    f"a source's {field} must be a plain file name, got {name!r}; correct the table"
                )
        if not re.fullmatch(r"([0-9a-f]{64})?", self.sha256):
            raise DataError(
                f"sha256 of {self.file} must be 64 lower-case hexadecimal digits, got "
                f"{self.sha256!r}"
            )
        if self.sha256 and self.bytes <= 0:
            raise DataError(f"bytes of {self.file} must be positive, got {self.bytes}")
        for url in self.urls:
            if not url.startswith(("http://", "https://")):
                raise DataError(
                    f"an address of {self.file} must start with http:// or https://, got {url!r}"
                )


def read_sources(path: Path) -> tuple[Source, ...]:
    """Return all sources of the table (CSV) at `path`, in its order; addresses are separated by
    spaces."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as table:
            reader = csv.DictReader(table)
            header, rows = tuple(reader.fieldnames or ()), list(reader)
    except OSError as problem:
        raise DataError(
            f"the table of sources {path} must be readable, got: {problem.strerror}"
        ) from None
    if header != COLUMNS:
        raise DataError(
            f"{path} must have the columns {','.join(COLUMNS)}, got "
            f"{','.join(header)}; correct its header"
        )
    sources: dict[tuple[str, str], Source] = {}
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise DataError(
                f"line {line} of {path} must have {len(COLUMNS)} fields; quote fields "
                "that hold commas"
            )
        if not row["bytes"].isdecimal() and (row["bytes"] or row["sha256"]):
            raise DataError(
                f"bytes in line {line} of {path} must be a whole number, got {row['bytes']!r}"
            )
        urls, size = tuple(row.pop("urls").split()), int(row.pop("bytes") or 0)
        source = Source(urls=urls, bytes=size, **row)
        key = (source.dataset, source.file)
        if key in sources:
            raise DataError(
                f"{path} must name every file once, got {'/'.join(key)} twice; remove one line"
            )
        sources[key] = source
    return tuple(sources.values())


def verify(path: Path, source: Source) -> str:
    """Return the SHA-256 sum of the file at `path`, "" for a folder; DataError if it is not the one
    of `source`."""
    sha256 = checksum(path) if path.is_file() else ""
    if source.sha256 and sha256 != source.sha256:
        size = path.stat().st_size
        raise DataError(
            f"{path} must have the SHA-256 sum {source.sha256} ({source.bytes} bytes), got "
            f"{sha256} ({size} bytes); replace it by the "
            f"original{f' from {source.urls[0]}' if source.urls else ''}"
        )
    return sha256


def obtain(
    dataset: str,
    files: Mapping[str, Sequence[str]],
    *,
    sources: Path,
    raw: Path,
    folder: Path | None = None,
    download: bool = True,
    fallback: str = "synthetic",
    limits: Limits | None = None,
) -> Obtained:
    """Find or download the raw files of `dataset` and verify their checksums.

    Looked at in this order: the folder in the environment variable ``DPSUB_DATA``, `folder` (both
    only read), `raw`, the addresses in the table of `sources` (CSV), if `download` says so. The
    first of the user's folders that holds ``<folder>/<dataset>/`` is taken; downloads go to
    ``<raw>/<dataset>/<file>``. Of several choices in `files` (as `DataSet.files`) the first that is
    complete in a folder is taken; only the first one is downloaded.

    DataError if a file is there but is another one than it should be (whatever `fallback` says), if
    a folder of the user is missing or lacks a file, or if nothing can be obtained and `fallback` is
    "error", not "synthetic".
    """
    checks.one_of("fallback", fallback, FALLBACKS)
    table = read_sources(sources)
    checks.one_of("data set", dataset, {source.dataset for source in table})
    known = {source.file: source for source in table if source.dataset == dataset}
    choices = {
        label: [known[checks.one_of(f"file of {dataset}", name, known)] for name in names]
        for label, names in files.items()
    }
    original = next(iter(choices.values()))
    for name, place in folders.of_user(folder):
        given = place / dataset
        if paths := _complete(given, choices):
            return paths
        if given.is_dir():
            lacking = given / _missing(given, original)[0].file
            raise DataError(
                f"{name} must hold all files of {dataset}, got no {lacking}; add it or "
                f"remove {given}"
            )
    here = Path(raw) / dataset
    if paths := _complete(here, choices):
        return paths
    reason = _bring(here, original, limits or Limits(), download)
    if not reason and (paths := _complete(here, choices)):
        return paths
    if fallback == "error":
        raise DataError(
            f"the files of {dataset} must be there when the fallback is 'error', got {reason}; "
            f"put them into {here}, name a folder that holds {dataset}/ in "
            f"{folders.ENVIRONMENT_VARIABLE}, or allow the fallback 'synthetic'"
        )
    return Obtained({}, "synthetic", reason=reason)


def _missing(place: Path, wanted: Sequence[Source]) -> list[Source]:
    return [source for source in wanted if not (place / source.file).exists()]


def _complete(place: Path, choices: Mapping[str, Sequence[Source]]) -> Obtained | None:
    """Return the first choice of files that `place` holds completely, verified."""
    for label, wanted in choices.items():
        if not _missing(place, wanted):
            sums = {
                source.file: verify(place / source.file, source)
                for source in sorted(wanted, key=lambda s: s.file)
            }
            paths = {source.file: place / source.file for source in wanted}
            return Obtained(paths, label, {name: sha256 for name, sha256 in sums.items() if sha256})
    return None


def _bring(folder: Path, wanted: Sequence[Source], limits: Limits, download: bool) -> str:
    """Download the missing files of `wanted`; return why this is impossible, "" if it has been
    done."""
    missing = _missing(folder, wanted)
    if not all(source.sha256 for source in wanted):
        names, urls = (
            ", ".join(s.file for s in wanted),
            " ".join(url for s in wanted for url in s.urls),
        )
        return (
            f"no {names}, for which no checksum is published; put the files of {urls} into {folder}"
        )
    for source in wanted:
        if source not in missing:
            verify(folder / source.file, source)
    if not download:
        return f"no {missing[0].file}: downloads are switched off"
    down: set[str] = set()
    try:
        for source in missing:
            bring(source, folder, limits=limits, down=down)
    except UnavailableError as problem:
        return f"no {missing[0].file}: {problem}"
    return ""


def bring(source: Source, folder: Path, *, limits: Limits, down: set[str]) -> None:
    """Download `source` to ``<folder>/<file>``, asking its addresses in turn.

    Until the checksum is right the file's name does not exist; what has arrived waits in
    ``<file>.part``. Hosts in `down` could not be reached: they are skipped, and added to.
    UnavailableError if no address gave a complete file, DataError if one did, but another file, and
    no other address gave the right one.
    """
    reasons, wrong = [], ""
    for url in source.urls:
        host = urlsplit(url).netloc
        if host in down:
            reasons.append(f"{url}: the host was given up")
            continue
        transfer = _Transfer(source, folder / f"{source.file}.part", limits)
        try:
            return transfer.run(url, folder)
        except UnavailableError as problem:
            reasons.append(f"{url}: {problem}")
        except requests.RequestException as problem:  # after the last attempt
            reasons.append(
                f"{url}: {problem if problem.response is not None else 'the connection broke off'}"
            )
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise DataError(
                f"{folder} must be writable, got: {reason}; name another folder for raw data"
            ) from None
        except ValueError:  # pooch found another checksum, and removed the file
            wrong = wrong or f"{transfer.found} from {url}"
        if transfer.unreachable:
            down.add(host)
    if wrong:
        raise DataError(
            f"{source.file} must have the SHA-256 sum {source.sha256} ({source.bytes} bytes), got "
            f"{wrong}; put the original file into {folder}, or switch downloads off to work with "
            "the stand-in"
        )
    raise UnavailableError("; ".join(reasons) or f"no address of {source.file} is known")


class _Transfer:
    """One file from one address by pooch (attempts, checksum, its name only at the end), bounded in
    time.

    It is also the downloader that pooch calls: it keeps what has arrived and goes on from there
    (HTTP ``Range``).
    """

    def __init__(self, source: Source, part: Path, limits: Limits) -> None:
        self.source, self.part, self.limits = source, part, limits
        self.received, self.found, self.unreachable = 0, "", False

    def run(self, url: str, folder: Path) -> None:
        """Download the file; give up when too little comes, also in the look-up of the host's name,
        which has no time limit of its own."""
        keeper = pooch.create(
            folder,
            "",
            registry={self.source.file: f"sha256:{self.source.sha256}"},
            urls={self.source.file: url},
            retry_if_failed=self.limits.attempts - 1,
        )
        outcome: Future[str] = Future()

        def work() -> None:
            try:
                outcome.set_result(keeper.fetch(self.source.file, downloader=self))
            except (DataError, OSError, ValueError) as problem:
                outcome.set_exception(problem)

        threading.Thread(target=work, daemon=True).start()
        before = 0
        while not wait([outcome], timeout=self.limits.stall).done:
            if self.received - before < self.limits.stall * self.limits.slowest:
                self.unreachable = True
                slow = (
                    f"fewer than {self.limits.slowest:g} bytes a second in "
                    f"{self.limits.stall:g} seconds"
                )
                raise UnavailableError(f"the host gave {slow}")
            before = self.received
        outcome.result()

    def __call__(self, url: str, output_file: str, pooch: Any = None) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        if have > self.source.bytes:
            self.part.unlink()
        if have != self.source.bytes:
            self._receive(url, have if have < self.source.bytes else 0)
        self.found = f"{checksum(self.part)} ({self.part.stat().st_size} bytes)"
        os.replace(self.part, output_file)

    def _receive(self, url: str, offset: int) -> None:
        """Bring the partial file to its full size; a `requests` error means that another attempt
        makes sense."""
        headers = {"Accept-Encoding": "identity"} | (
            {"Range": f"bytes={offset}-"} if offset else {}
        )
        try:
            response = requests.get(url, headers=headers, stream=True, timeout=self.limits.stall)
        except requests.TooManyRedirects:
            raise UnavailableError("too many redirects") from None
        except requests.exceptions.SSLError:
            raise UnavailableError("the host's certificate cannot be verified") from None
        except (requests.ConnectionError, requests.Timeout):
            self.unreachable = True
            raise UnavailableError("the host cannot be reached") from None
        except requests.RequestException as problem:
            raise UnavailableError(f"the request failed ({type(problem).__name__})") from None
        with response:
            status, size = response.status_code, offset if response.status_code == 206 else 0
            ranged = response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
            # the partial file is not a beginning of the server's file
            if status == 416 or (status == 206 and not ranged):
                self.part.unlink()
                raise requests.HTTPError(
                    "the server answered with another range", response=response
                )
            if status == 429 or status >= 500:
                raise requests.HTTPError(
                    f"the server answered with HTTP status {status}", response=response
                )
            if status not in (200, 206):
                raise UnavailableError(f"the server answered with HTTP status {status}")
            chunks = response.iter_content(_CHUNK)
            first = next(chunks, b"")
            if size == 0 and first.lstrip().startswith(b"<"):
                raise UnavailableError("the server answered with a web page instead of the file")
            shown = {
                "desc": self.source.file,
                "total": self.source.bytes,
                "initial": size,
                "unit": "B",
            }
            # disable=None: a bar on a terminal, silence in a log
            with (
                self.part.open("ab" if size else "wb") as out,
                tqdm(**shown, unit_scale=True, disable=None) as bar,
            ):
                for chunk in chain([first], chunks):
                    if self.unreachable:
                        raise UnavailableError("given up")  # nobody waits for it any more
                    size += out.write(chunk)
                    self.received += len(chunk)
                    bar.update(len(chunk))
                    if size > self.source.bytes:
                        break  # too long: the checksum will say so, and there is no need to read on
            if size < self.source.bytes and not response.headers.get("Content-Length"):
                raise requests.HTTPError(
                    f"it ended after {size} of {self.source.bytes} bytes", response=response
                )

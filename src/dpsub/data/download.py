"""One file from several addresses: the first that gives the right checksum, under its name only then."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pooch

from dpsub.data.sources import Source
from dpsub.data.transfer import Limits, Resuming, UnavailableError
from dpsub.errors import DataError


class WrongContentError(DataError):
    """An address gave a complete file, but another one than the table of sources says."""


def bring(source: Source, folder: Path, *, limits: Limits, down: set[str]) -> Path:
    """Download `source` to ``<folder>/<file>``, asking its addresses in turn, and return the path.

    Parameters
    ----------
    source : Source
        What to download, with its checksum.
    folder : Path
        Made if missing. Until the checksum is right the file's name does not exist; what has arrived waits in
        ``<file>.part``.
    limits : Limits
        Time limits.
    down : set of str
        Hosts that could not be reached; passed over, and added to.

    Raises
    ------
    WrongContentError
        If an address gave a complete file with another checksum and no other address gave the right one.
    UnavailableError
        If no address gave a complete file; the message has each one's reason.
    """
    reasons, wrong = [], ""
    for url in source.urls:
        if urlsplit(url).netloc in down:
            reasons.append(f"{url}: the host was given up")
            continue
        for _ in range(2):  # a resumed file may mix two versions: then once more, from the start
            downloader = Resuming(source, folder / f"{source.file}.part", limits, down)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path = pooch.retrieve(url, f"sha256:{source.sha256}", source.file, folder, downloader=downloader)
            except UnavailableError as problem:
                reasons.append(f"{url}: {problem}")
                break
            except OSError as problem:
                reason = problem.strerror or type(problem).__name__
                raise DataError(f"{folder} must be writable, got: {reason}; name another folder for raw data") from None
            except ValueError:  # pooch found another checksum, and removed the file
                wrong = wrong or f"{downloader.found} from {url}"
                if not downloader.resumed:
                    break
            else:
                return Path(path)
    if wrong:
        raise WrongContentError(
            f"{source.file} must have the SHA-256 sum {source.sha256} ({source.bytes} bytes), got {wrong}; "
            f"put the original file into {folder}, or switch downloads off to work with the stand-in"
        )
    raise UnavailableError("; ".join(reasons) or f"no address of {source.file} is known")

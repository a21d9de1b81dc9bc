"""One file from one address over HTTP: resumed where it broke off, and bounded in time."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from tqdm import tqdm

from dpsub.data.sources import Source, checksum
from dpsub.errors import DataError

_CHUNK = 1 << 16
_MAX_REDIRECTS = 5


class UnavailableError(DataError):
    """No address gives the file now: no network, no such page, broken or stalled for good."""


class _BrokenError(Exception):
    """A transfer ended early; `retry` says whether a further attempt at the same address makes sense."""

    def __init__(self, reason: str, *, retry: bool, host_down: bool = False) -> None:
        super().__init__(reason)
        self.retry, self.host_down = retry, host_down


@dataclass(frozen=True)
class Limits:
    """How long a transfer may take before it is given up.

    Parameters
    ----------
    connect : float
        Seconds to reach a host (per network address); twice as long until it answers.
    stall : float
        Seconds without a byte, and the window over which the speed is judged.
    slowest : float
        Bytes per second below which a transfer counts as stalled.
    attempts : int
        Attempts per address; each resumes where the one before broke off.
    pause : float
        Seconds between attempts.
    """

    connect: float = 5.0
    stall: float = 10.0
    slowest: float = 4096.0
    attempts: int = 4
    pause: float = 1.0


@dataclass
class Resuming:
    """A downloader for pooch that keeps what has arrived in ``<file>.part`` and goes on from there (HTTP ``Range``).

    A host that cannot be reached is remembered in `down` and not asked again.
    """

    source: Source
    part: Path
    limits: Limits
    down: set[str] = field(default_factory=set)
    resumed: bool = False
    found: str = ""

    def __call__(self, url: str, output_file: str, pooch_object: Any = None) -> None:
        for attempt in range(1, self.limits.attempts + 1):
            before = self._have()
            try:
                self._transfer(url)
                break
            except _BrokenError as problem:
                progress = self._have() > before
                if problem.host_down and not progress:
                    self.down.add(urlsplit(url).netloc)
                if attempt == self.limits.attempts or not (problem.retry or progress):
                    raise UnavailableError(str(problem)) from None
                time.sleep(self.limits.pause)
        self.found = f"{checksum(self.part)} ({self._have()} bytes)"
        os.replace(self.part, output_file)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _transfer(self, url: str) -> None:
        """Bring the partial file to its full size, or raise `_BrokenError`."""
        offset = self._have()
        if offset > self.source.bytes:
            self.part.unlink()
            offset = 0
        if offset == self.source.bytes:
            self.resumed = True
            return
        with self._answer(url, offset) as response:
            appends = self._continues(response, offset)
            start = offset if appends else 0
            chunks = self._chunks(response)
            first = next(chunks, b"")
            if start == 0 and first.lstrip().startswith(b"<"):
                raise _BrokenError("the server answered with a web page instead of the file", retry=False)
            self.resumed = appends
            size = start
            shown = {"desc": self.source.file, "total": self.source.bytes, "initial": start, "unit": "B"}
            # disable=None: a bar on a terminal, silence in a log
            with self.part.open("ab" if appends else "wb") as out, tqdm(**shown, unit_scale=True, disable=None) as bar:
                for chunk in itertools.chain([first], chunks):
                    size += len(chunk)
                    out.write(chunk)
                    bar.update(len(chunk))
                    if size > self.source.bytes:
                        break  # too long: the checksum will say so, and there is no need to read on
            announced = response.headers.get("Content-Length", "")
        if size < self.source.bytes and not (announced.isdecimal() and size == start + int(announced)):
            raise _BrokenError(f"the transfer ended after {size} of {self.source.bytes} bytes", retry=False)

    def _continues(self, response: requests.Response, offset: int) -> bool:
        """Tell whether `response` goes on at `offset` (status 206) or starts again (status 200)."""
        if response.status_code == 200:
            return False
        if response.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
            return True
        self.part.unlink(missing_ok=True)
        raise _BrokenError("the server answered with another range than the one asked for", retry=True)

    def _answer(self, url: str, offset: int) -> requests.Response:
        """Return the open response to a request for the bytes from `offset` on."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})

        def ask() -> requests.Response:
            with requests.Session() as session:
                session.max_redirects = _MAX_REDIRECTS
                return session.get(url, headers=headers, stream=True, timeout=(self.limits.connect, self.limits.stall))

        try:
            response = _within(2 * self.limits.connect, ask)
        except requests.TooManyRedirects:
            raise _BrokenError(f"more than {_MAX_REDIRECTS} redirects", retry=False) from None
        except requests.exceptions.SSLError:
            raise _BrokenError("the host's certificate cannot be verified", retry=False) from None
        except (requests.Timeout, TimeoutError):
            raise _BrokenError("no answer in time", retry=False, host_down=True) from None
        except requests.ConnectionError:
            raise _BrokenError("the host cannot be reached", retry=False, host_down=True) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
            raise _BrokenError(f"the request failed ({type(problem).__name__})", retry=False) from None
        status = response.status_code
        if status in (200, 206):
            return response
        response.close()
        if status == 416:  # the partial file is not a beginning of what this server holds
            self.part.unlink(missing_ok=True)
        passing = status in (416, 429) or status >= 500
        raise _BrokenError(f"the server answered with HTTP status {status}", retry=passing)

    def _chunks(self, response: requests.Response) -> Iterator[bytes]:
        """Yield what arrives, as it arrives, as long as it arrives fast enough."""
        window, received = time.monotonic(), 0
        while True:
            try:
                # read1 returns what is there: a server that drips single bytes cannot hold the reader
                chunk = response.raw.read1(_CHUNK, decode_content=False)
            except urllib3.exceptions.ReadTimeoutError:
                reason = f"the transfer stalled for {self.limits.stall:g} seconds"
                raise _BrokenError(reason, retry=False, host_down=True) from None
            except (urllib3.exceptions.HTTPError, OSError):
                raise _BrokenError("the connection broke off", retry=True) from None
            if not chunk:
                return
            yield chunk
            received += len(chunk)
            elapsed = time.monotonic() - window
            if elapsed >= self.limits.stall:
                if received < elapsed * self.limits.slowest:
                    reason = f"the transfer is slower than {self.limits.slowest:g} bytes per second"
                    raise _BrokenError(reason, retry=False, host_down=True)
                window, received = time.monotonic(), 0


def _within(seconds: float, call: Callable[[], requests.Response]) -> requests.Response:
    """Return `call()`; raise `TimeoutError` after `seconds`, because looking up a host's name knows no time limit."""
    outcome: queue.SimpleQueue[requests.Response | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.put(call())
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
            outcome.put(problem)

    threading.Thread(target=work, daemon=True).start()
    try:
        result = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, Exception):
        raise result
    return result

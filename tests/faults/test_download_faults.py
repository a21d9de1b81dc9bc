"""Downloads that break, stall, lie or lead elsewhere: either the right bytes arrive, or one
sentence tells the reason."""

from __future__ import annotations

import csv
import hashlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpsub.data import fetch
from dpsub.data.dataset import Obtained
from dpsub.errors import DataError
from tests.faults.faulty_server import Answer, serve

BODY = np.random.default_rng(7).integers(32, 127, 200_000, dtype=np.uint8).tobytes()
SHA = hashlib.sha256(BODY).hexdigest()
HALF = 24 * 4096  # whole blocks are kept
PATIENT, QUICK = fetch.Limits(stall=5.0, slowest=1.0), fetch.Limits(stall=0.8)
SLOW = "the host gave fewer than 4096 bytes a second in 0.8 seconds"
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """No data folder and no proxy of the surroundings, and no pauses between attempts."""
    for name in ("DPSUB_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))


def obtain(
    folder: Path, *urls: str, fallback: str = "error", limits=PATIENT, download: bool = True
) -> Obtained:
    table = folder / "SOURCES.csv"
    with table.open("w", newline="") as out:
        csv.writer(out).writerows(
            [fetch.COLUMNS, ["toy", "file", " ".join(urls), "none", SHA, len(BODY), ""]]
        )
    return fetch.obtain(
        "toy",
        {"real": ("file",)},
        sources=table,
        raw=folder / "raw",
        fallback=fallback,
        limits=limits,
        download=download,
    )


def arrived(folder: Path) -> dict[str, bytes]:
    place = folder / "raw" / "toy"
    return {path.name: path.read_bytes() for path in place.iterdir()} if place.exists() else {}


def leave(folder: Path, content: bytes) -> None:
    """Leave the part that an earlier run had received."""
    (folder / "raw" / "toy").mkdir(parents=True)
    (folder / "raw" / "toy" / "file.part").write_bytes(content)


def cut(answer: Answer) -> None:
    """Promise the whole file from the start, whatever was asked for, and send half of it."""
    answer.head(200, len(BODY))
    answer.wfile.write(BODY[:HALF])


def test_a_good_server_gives_the_file_once(tmp_path):
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        first, again = (obtain(tmp_path, f"{exchange.base}/file") for _ in range(2))
    assert first == again == Obtained({"file": tmp_path / "raw/toy/file"}, "real", {"file": SHA})
    assert arrived(tmp_path) == {"file": BODY} and len(exchange.requests) == 1


def ignores_ranges(answer: Answer) -> None:
    answer.head(200, len(BODY))
    answer.wfile.write(BODY if answer.offset else BODY[:HALF])


def refuses_ranges(answer: Answer) -> None:
    answer.head(416, 0) if answer.offset else answer.whole(BODY)


def shifts_ranges(answer: Answer) -> None:
    if answer.offset:
        answer.head(206, len(BODY), Content_Range=f"bytes 0-{len(BODY) - 1}/{len(BODY)}")
        answer.wfile.write(BODY)
    else:
        answer.whole(BODY)


def breaks_once(answer: Answer) -> None:
    answer.whole(BODY) if answer.offset else answer.part(BODY, HALF)


def is_busy_twice(answer: Answer) -> None:
    answer.head(503, 0) if len(answer.exchange.requests) < 3 else answer.whole(BODY)


@pytest.mark.parametrize(
    ("behaviour", "left", "asked"),
    [
        (breaks_once, b"", ["", f"bytes={HALF}-"]),  # resumes where it broke
        # resumes what an earlier run has left
        (lambda answer: answer.whole(BODY), BODY[:HALF], [f"bytes={HALF}-"]),
        (ignores_ranges, b"", ["", f"bytes={HALF}-"]),
        (refuses_ranges, BODY[:HALF], [f"bytes={HALF}-", ""]),
        (shifts_ranges, BODY[:HALF], [f"bytes={HALF}-", ""]),
        (lambda answer: answer.whole(BODY), b"x" * HALF, [f"bytes={HALF}-", ""]),  # another version
        (lambda answer: answer.whole(BODY), b"x" * len(BODY), [""]),
        (lambda answer: answer.whole(BODY), b"x" * (len(BODY) + 1), [""]),
        (is_busy_twice, b"", ["", "", ""]),
    ],
)
def test_what_arrives_in_the_end_is_right(
    tmp_path, behaviour: Callable[[Answer], None], left, asked
):
    if left:
        leave(tmp_path, left)
    with serve(behaviour) as exchange:
        assert obtain(tmp_path, f"{exchange.base}/file").label == "real"
    assert exchange.ranges() == asked and arrived(tmp_path) == {"file": BODY}


def ends_early(answer: Answer) -> None:
    answer.head(200)
    answer.wfile.write(BODY[:HALF])


@pytest.mark.parametrize(
    ("behaviour", "left", "reason", "stays"),
    [
        (cut, b"", "the connection broke off", BODY[:HALF]),
        (ends_early, b"", f"it ended after {HALF} of {len(BODY)} bytes", BODY[:HALF]),
        (lambda answer: answer.head(404, 0), BODY[:HALF], "HTTP status 404", BODY[:HALF]),
        (lambda answer: answer.head(503, 0), b"", "HTTP status 503", b""),
        (lambda answer: answer.head(302, 0, Location="/file"), b"", "too many redirects", b""),
        (lambda answer: answer.whole(PAGE), b"", "a web page instead of the file", b""),
        # a page of a wireless network that knows nothing of ranges
        (
            lambda answer: (answer.head(200, len(PAGE)), answer.wfile.write(PAGE)),
            BODY[:HALF],
            "web page",
            BODY[:HALF],
        ),
    ],
)
def test_what_cannot_be_had_leaves_nothing_that_looks_finished(
    tmp_path, behaviour, left, reason, stays
):
    if left:
        leave(tmp_path, left)
    with serve(behaviour) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file", fallback="synthetic")
        with pytest.raises(DataError, match=reason):
            obtain(tmp_path, f"{exchange.base}/file")
    assert got == Obtained({}, "synthetic", reason=got.reason) and reason in got.reason
    assert arrived(tmp_path) == ({"file.part": stays} if stays else {})


def stalls(answer: Answer) -> None:
    answer.part(BODY, max(HALF, answer.offset))
    answer.wfile.flush()
    answer.exchange.over.wait(5)


def drips(answer: Answer) -> None:
    answer.head(200, len(BODY))
    for byte in BODY:
        answer.wfile.write(bytes([byte]))
        answer.wfile.flush()
        if answer.exchange.over.wait(0.05):
            return


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (stalls, SLOW),
        # two clocks of the same length
        (lambda answer: answer.exchange.over.wait(5), SLOW + "|cannot be reached"),
        (drips, SLOW),
    ],
)
def test_a_slow_server_is_given_up_in_bounded_time(tmp_path, behaviour, reason):
    begin = time.monotonic()
    with serve(behaviour) as exchange, pytest.raises(DataError, match=reason):
        obtain(tmp_path, f"{exchange.base}/file", f"{exchange.base}/other", limits=QUICK)
    assert time.monotonic() - begin < 4
    assert exchange.ranges("/other") == []  # the same host is not asked again


def test_a_look_up_of_a_name_that_hangs_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: time.sleep(3) or [])
    begin = time.monotonic()
    got = obtain(tmp_path, "http://no.such.host.invalid/file", fallback="synthetic", limits=QUICK)
    assert time.monotonic() - begin < 2.9 and SLOW in got.reason


def test_without_a_network_the_stand_in_comes_quickly(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # bound but not listening: connections are refused
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        begin = time.monotonic()
        got = obtain(tmp_path, f"{base}/a", f"{base}/b", fallback="synthetic")
        assert time.monotonic() - begin < 2
    assert got.reason == (
        f"no file: {base}/a: the host cannot be reached; {base}/b: the host was given up"
    )


@pytest.mark.parametrize("fallback", fetch.FALLBACKS)
@pytest.mark.parametrize(
    "wrong", [BODY[:-1], b"x" + BODY[1:], BODY + b"x" * 100_000], ids=["short", "altered", "long"]
)
def test_a_wrong_checksum_names_the_file_the_sum_expected_and_the_sum_found(
    tmp_path, wrong, fallback
):
    with serve(lambda answer: answer.whole(wrong)) as exchange, pytest.raises(DataError) as caught:
        obtain(tmp_path, f"{exchange.base}/file", fallback=fallback)
    message = str(caught.value)
    assert message.startswith(f"file must have the SHA-256 sum {SHA} ({len(BODY)} bytes), got ")
    if len(wrong) <= len(BODY):
        assert (
            f"got {hashlib.sha256(wrong).hexdigest()} ({len(wrong)} bytes) from "
            f"{exchange.base}/file"
        ) in message
    assert arrived(tmp_path) == {}


def test_redirects_are_followed_and_the_next_address_is_tried(tmp_path):
    def behaviour(answer: Answer) -> None:
        if answer.path in ("/none", "/moved"):
            answer.head(404 if answer.path == "/none" else 302, 0, Location="/file")
        else:
            answer.whole({"/page": PAGE, "/other": b"y" * len(BODY)}.get(answer.path, BODY))

    with serve(behaviour) as exchange:
        obtain(
            tmp_path, *(f"{exchange.base}/{path}" for path in ("none", "page", "other", "moved"))
        )
    asked = [path for path, _ in exchange.requests]
    assert list(dict.fromkeys(asked)) == ["/none", "/page", "/other", "/moved", "/file"]
    assert arrived(tmp_path) == {"file": BODY}


def test_downloads_can_be_switched_off_and_the_error_says_what_to_do(tmp_path):
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file", download=False, fallback="synthetic")
    assert got == Obtained({}, "synthetic", reason="no file: downloads are switched off")
    assert exchange.requests == []
    with pytest.raises(DataError, match=r"must be there when the fallback is 'error'.*DPSUB_DATA"):
        obtain(tmp_path, download=False)
    with pytest.raises(DataError, match="no address of file is known"):
        obtain(tmp_path)

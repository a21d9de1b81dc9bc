"""Downloads that break, stall, lie or lead elsewhere: what arrives is right, or the reason is told in a sentence."""

from __future__ import annotations

import csv
import hashlib
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from dpsub.data import fetch
from dpsub.data.download import WrongContentError
from dpsub.data.sources import COLUMNS
from dpsub.data.transfer import Limits
from dpsub.errors import DataError
from tests.faults.faulty_server import Answer, serve

BODY = np.random.default_rng(7).integers(32, 127, 200_000, dtype=np.uint8).tobytes()
SHA = hashlib.sha256(BODY).hexdigest()
HALF = len(BODY) // 2
PATIENT = Limits(connect=5.0, stall=5.0, slowest=1.0, attempts=3, pause=0.01)
QUICK = Limits(connect=1.0, stall=0.8, slowest=4096, attempts=3, pause=0.01)
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """No data folder and no proxy of the surroundings."""
    for name in ("DPSUB_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def table(folder: Path, *urls: str) -> Path:
    path = folder / "SOURCES.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        writer.writerow(["toy", "file", " ".join(urls), "none", SHA, len(BODY), ""])
    return path


def obtain(
    folder: Path, *urls: str, fallback: str = "error", download: bool = True, limits: Limits = PATIENT
) -> fetch.Obtained:
    return fetch.obtain(
        "toy", sources=table(folder, *urls), raw=folder / "raw", fallback=fallback, download=download, limits=limits
    )


def arrived(folder: Path) -> list[str]:
    place = folder / "raw" / "toy"
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


def test_a_good_server_gives_the_file_once(tmp_path):
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        first = obtain(tmp_path, f"{exchange.base}/file")
        again = obtain(tmp_path, f"{exchange.base}/file")
    assert first.label == again.label == "real"
    assert first.sha256 == {"file": SHA}
    assert first.paths["file"].read_bytes() == BODY
    assert arrived(tmp_path) == ["file"]
    assert len(exchange.requests) == 1


def test_a_download_that_breaks_half_way_resumes_where_it_broke(tmp_path):
    with serve(lambda answer: answer.part(BODY, HALF) if answer.offset == 0 else answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file")
    assert exchange.ranges() == ["", f"bytes={HALF}-"]
    assert got.paths["file"].read_bytes() == BODY
    assert arrived(tmp_path) == ["file"]


def test_a_later_run_resumes_what_an_earlier_one_left(tmp_path):
    with serve(lambda answer: answer.part(BODY, HALF) if answer.offset == 0 else answer.head(404, 0)) as exchange:
        assert obtain(tmp_path, f"{exchange.base}/file", fallback="synthetic").label == "synthetic"
    assert arrived(tmp_path) == ["file.part"]
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file")
    assert exchange.ranges() == [f"bytes={HALF}-"]
    assert got.paths["file"].read_bytes() == BODY


def test_a_server_that_ignores_ranges_is_read_from_the_start(tmp_path):
    def behaviour(answer: Answer) -> None:
        answer.head(200, len(BODY))
        answer.wfile.write(BODY if answer.offset else BODY[:HALF])

    with serve(behaviour) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file")
    assert exchange.ranges() == ["", f"bytes={HALF}-"]
    assert got.paths["file"].read_bytes() == BODY


def test_a_partial_file_of_another_version_is_thrown_away(tmp_path):
    (tmp_path / "raw" / "toy").mkdir(parents=True)
    (tmp_path / "raw" / "toy" / "file.part").write_bytes(b"x" * HALF)
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file")
    assert exchange.ranges() == [f"bytes={HALF}-", ""]
    assert got.paths["file"].read_bytes() == BODY


@pytest.mark.parametrize("size", [len(BODY), len(BODY) + 1])
def test_a_partial_file_of_full_size_but_other_content_is_thrown_away(tmp_path, size):
    (tmp_path / "raw" / "toy").mkdir(parents=True)
    (tmp_path / "raw" / "toy" / "file.part").write_bytes(b"x" * size)
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file")
    assert exchange.ranges() == [""]
    assert got.paths["file"].read_bytes() == BODY


def test_a_refused_or_shifted_range_starts_again(tmp_path):
    def behaviour(answer: Answer) -> None:
        if answer.path == "/refused" and answer.offset:
            answer.head(416, 0)
        elif answer.offset:
            answer.head(206, len(BODY), Content_Range=f"bytes 0-{len(BODY) - 1}/{len(BODY)}")
            answer.wfile.write(BODY)
        else:
            answer.whole(BODY)

    for path in ("refused", "shifted"):
        place = tmp_path / path
        (place / "raw" / "toy").mkdir(parents=True)
        (place / "raw" / "toy" / "file.part").write_bytes(BODY[:HALF])
        with serve(behaviour) as exchange:
            got = obtain(place, f"{exchange.base}/{path}")
        assert exchange.ranges(f"/{path}") == [f"bytes={HALF}-", ""]
        assert got.paths["file"].read_bytes() == BODY


def test_a_download_that_always_breaks_leaves_nothing_that_looks_finished(tmp_path):
    def behaviour(answer: Answer) -> None:
        answer.head(200, len(BODY))
        answer.wfile.write(BODY[:HALF])

    with serve(behaviour) as exchange, pytest.raises(DataError, match="the connection broke off"):
        obtain(tmp_path, f"{exchange.base}/file")
    assert arrived(tmp_path) == ["file.part"]
    assert len(exchange.requests) == PATIENT.attempts


def test_a_body_of_unknown_length_that_ends_early_is_told(tmp_path):
    def behaviour(answer: Answer) -> None:
        answer.head(200)
        answer.wfile.write(BODY[:HALF])

    with serve(behaviour) as exchange, pytest.raises(DataError, match=f"ended after {HALF} of {len(BODY)} bytes"):
        obtain(tmp_path, f"{exchange.base}/file")


def test_a_stalled_server_is_given_up_in_bounded_time(tmp_path):
    def behaviour(answer: Answer) -> None:
        answer.part(BODY, max(HALF, answer.offset))
        answer.wfile.flush()
        answer.exchange.over.wait(5)

    begin = time.monotonic()
    with serve(behaviour) as exchange, pytest.raises(DataError, match=r"the transfer stalled for 0\.8 seconds"):
        obtain(tmp_path, f"{exchange.base}/file", f"{exchange.base}/other", limits=QUICK)
    assert time.monotonic() - begin < 4
    assert exchange.ranges() == ["", f"bytes={HALF}-"]
    assert exchange.ranges("/other") == []  # the same host is not asked again


def test_a_server_that_never_answers_is_given_up_in_bounded_time(tmp_path):
    begin = time.monotonic()
    with serve(lambda answer: answer.exchange.over.wait(5)) as exchange, pytest.raises(DataError, match="no answer in"):
        obtain(tmp_path, f"{exchange.base}/file", limits=QUICK)
    assert time.monotonic() - begin < 4


def test_a_dripping_server_counts_as_stalled(tmp_path):
    def behaviour(answer: Answer) -> None:
        answer.head(200, len(BODY))
        for byte in BODY:
            answer.wfile.write(bytes([byte]))
            answer.wfile.flush()
            if answer.exchange.over.wait(0.05):
                return

    begin = time.monotonic()
    with serve(behaviour) as exchange, pytest.raises(DataError, match="slower than 4096 bytes per second"):
        obtain(tmp_path, f"{exchange.base}/file", limits=QUICK)
    assert time.monotonic() - begin < 4


def test_redirects_are_followed(tmp_path):
    def behaviour(answer: Answer) -> None:
        if answer.path == "/moved":
            answer.head(302, 0, Location="/file")
        else:
            answer.whole(BODY)

    with serve(behaviour) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/moved")
    assert [path for path, _ in exchange.requests] == ["/moved", "/file"]
    assert got.paths["file"].read_bytes() == BODY


def test_a_circle_of_redirects_is_left(tmp_path):
    circle = serve(lambda answer: answer.head(302, 0, Location="/file"))
    with circle as exchange, pytest.raises(DataError, match="more than 5 redirects"):
        obtain(tmp_path, f"{exchange.base}/file")
    assert len(exchange.requests) <= 7


def test_a_web_page_is_not_taken_for_the_file(tmp_path):
    with serve(lambda answer: answer.whole(PAGE)) as exchange:
        with pytest.raises(DataError, match="a web page instead of the file"):
            obtain(tmp_path, f"{exchange.base}/file")
        stand_in = obtain(tmp_path, f"{exchange.base}/file", fallback="synthetic")
    assert stand_in == fetch.Obtained({}, "synthetic", reason=stand_in.reason)
    assert "a web page instead of the file" in stand_in.reason
    assert arrived(tmp_path) == []


def test_a_web_page_does_not_spoil_what_has_arrived(tmp_path):
    (tmp_path / "raw" / "toy").mkdir(parents=True)
    (tmp_path / "raw" / "toy" / "file.part").write_bytes(BODY[:HALF])

    def behaviour(answer: Answer) -> None:
        answer.head(200, len(PAGE))
        answer.wfile.write(PAGE)

    with serve(behaviour) as exchange:
        assert obtain(tmp_path, f"{exchange.base}/file", fallback="synthetic").label == "synthetic"
    assert (tmp_path / "raw" / "toy" / "file.part").read_bytes() == BODY[:HALF]


@pytest.mark.parametrize("fallback", fetch.FALLBACKS)
@pytest.mark.parametrize("wrong", [BODY[:-1], b"x" + BODY[1:], BODY + b"x" * 100_000], ids=["short", "altered", "long"])
def test_a_wrong_checksum_names_the_file_the_sum_expected_and_the_sum_found(tmp_path, wrong, fallback):
    with serve(lambda answer: answer.whole(wrong)) as exchange, pytest.raises(WrongContentError) as caught:
        obtain(tmp_path, f"{exchange.base}/file", fallback=fallback)
    message = str(caught.value)
    assert message.startswith(f"file must have the SHA-256 sum {SHA} ({len(BODY)} bytes), got ")
    if len(wrong) <= len(BODY):
        assert f"got {hashlib.sha256(wrong).hexdigest()} ({len(wrong)} bytes) from {exchange.base}/file" in message
    assert arrived(tmp_path) == []


def test_the_next_address_is_tried(tmp_path):
    def behaviour(answer: Answer) -> None:
        if answer.path == "/none":
            answer.head(404, 0)
        elif answer.path == "/page":
            answer.whole(PAGE)
        elif answer.path == "/other":
            answer.whole(b"y" * len(BODY))
        else:
            answer.whole(BODY)

    with serve(behaviour) as exchange:
        got = obtain(tmp_path, *(f"{exchange.base}/{path}" for path in ("none", "page", "other", "file")))
    assert [path for path, _ in exchange.requests] == ["/none", "/page", "/other", "/file"]
    assert got.paths["file"].read_bytes() == BODY


def test_a_busy_server_is_asked_again(tmp_path):
    def behaviour(answer: Answer) -> None:
        if len(answer.exchange.requests) < 3:
            answer.head(503, 0)
        else:
            answer.whole(BODY)

    with serve(behaviour) as exchange:
        assert obtain(tmp_path, f"{exchange.base}/file").label == "real"
    assert len(exchange.requests) == 3


def test_without_a_network_the_stand_in_comes_quickly(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]  # bound but not listening: every connection is refused
        begin = time.monotonic()
        got = obtain(tmp_path, f"http://127.0.0.1:{port}/a", f"http://127.0.0.1:{port}/b", fallback="synthetic")
        assert time.monotonic() - begin < 2
    assert got.label == "synthetic"
    assert got.reason.startswith(f"no file: http://127.0.0.1:{port}/a: the host cannot be reached")
    assert "/b: the host was given up" in got.reason


def test_a_look_up_of_a_name_that_hangs_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: time.sleep(3) or [])
    begin = time.monotonic()
    got = obtain(tmp_path, "http://no.such.host.invalid/file", fallback="synthetic", limits=QUICK)
    assert time.monotonic() - begin < 2.9
    assert "no answer in time" in got.reason


def test_downloads_can_be_switched_off(tmp_path):
    with serve(lambda answer: answer.whole(BODY)) as exchange:
        got = obtain(tmp_path, f"{exchange.base}/file", download=False, fallback="synthetic")
    assert got == fetch.Obtained({}, "synthetic", reason="no file: downloads are switched off")
    assert exchange.requests == []


def test_the_error_fallback_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="must be there when the fallback is 'error'") as caught:
        obtain(tmp_path, download=False)
    assert "DPSUB_DATA" in str(caught.value)
    with pytest.raises(DataError, match="no address of file is known"):
        obtain(tmp_path)

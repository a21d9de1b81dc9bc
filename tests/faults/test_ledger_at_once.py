"""Many processes enter into one ledger, and some are killed: every entry that was reported is in
the file, and a budget holds for all of them together."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import dpsub
from dpsub.cli import main

WRITERS, KILLED, ENTRIES = 20, 8, 8
ENDLESS = 10_000  # entries of those that are killed, which do not come that far
PATIENCE = 60.0  # seconds, of which most runs take a few
_FORK = multiprocessing.get_context("fork")  # no second import of NumPy in twenty processes


def enter(ledger: Path, writer: int, entries: int) -> None:
    """Enter releases one after the other, and note each one that the command says was entered."""
    noted = ledger.with_name(f"{writer}.txt")
    for place in range(entries):
        name = f"{writer}-{place}"
        words = ["record", str(ledger), "poisson", "--rate", ".01", "--noise-multiplier", "9"]
        with contextlib.redirect_stdout(io.StringIO()):
            status = main([*words, "--steps", "1", "--name", name])
        assert status == 0
        with noted.open("a") as out:
            out.write(f"{name}\n")


@contextlib.contextmanager
def writers(ledger: Path, endless: int = 0) -> Iterator[list[BaseProcess]]:
    """Processes that enter, the first of them without end; those that do not end are stopped, by
    their ids."""
    started: list[BaseProcess] = [
        _FORK.Process(target=enter, args=(ledger, writer, ENDLESS if writer < endless else ENTRIES))
        for writer in range(WRITERS)
    ]
    try:
        for process in started:
            process.start()
        yield started
    finally:
        for process in started:
            if process.pid is not None and process.is_alive():
                process.kill()
            process.join()


def noted(folder: Path) -> set[str]:
    return {name for file in folder.glob("*.txt") for name in file.read_text().split()}


def entered(ledger: Path) -> set[str | None]:
    return set(dpsub.Ledger.load(ledger).names)


@pytest.mark.thorough
def test_nothing_is_lost_when_some_are_killed(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    end = time.monotonic() + PATIENCE
    with writers(ledger, endless=KILLED) as started:
        for count, process in enumerate(started[:KILLED], start=1):
            # one after the other, wherever it is: waiting, reading, writing or done
            while len(noted(tmp_path)) < 3 * count and time.monotonic() < end:
                time.sleep(0.002)
            process.kill()
        for process in started:
            process.join(max(0.0, end - time.monotonic()))
        codes = [process.exitcode for process in started]
    assert codes == [-signal.SIGKILL] * KILLED + [0] * (WRITERS - KILLED)
    names, said = entered(ledger), noted(tmp_path)
    assert said <= names
    # a killed process may have entered one entry that it has not reported yet
    assert len(names - said) <= KILLED
    # the lock went with its holders
    with dpsub.Ledger.open(ledger) as after:
        assert set(after.names) == names


def test_without_the_lock_entries_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock the test above fails, so it can see the fault."""
    monkeypatch.setattr(
        "dpsub.accounting.questions.ledger.locked", lambda _: contextlib.nullcontext()
    )
    ledger, end = tmp_path / "ledger.json", time.monotonic() + PATIENCE
    with writers(ledger) as started:
        for process in started:
            process.join(max(0.0, end - time.monotonic()))
    assert noted(tmp_path) - entered(ledger)


def test_two_runs_do_not_share_a_budget(tmp_path: Path) -> None:
    """Each alone is within it, and together they are not: one is refused."""
    budget = ["--steps", "500", "--epsilon", "1.5", "--delta", "1e-5"]
    command = [sys.executable, "-m", "dpsub", "record", "l.json", "poisson", "--rate", ".01"]
    at_once = [
        subprocess.Popen(
            [*command, "--noise-multiplier", "1", *budget],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        assert sorted(one.wait(PATIENCE) for one in at_once) == [0, 3]
    finally:
        for one in at_once:
            if one.poll() is None:
                one.kill()
    assert len(dpsub.Ledger.load(tmp_path / "l.json")) == 1


def test_an_opened_ledger_is_saved_at_its_end_alone(tmp_path: Path) -> None:
    ledger, release = tmp_path / "ledger.json", (dpsub.Poisson(0.1),)
    with dpsub.Ledger.open(ledger) as first:
        first.record(*release, noise_multiplier=2.0)
        assert not ledger.exists()
        with pytest.raises(dpsub.DataError, match="locked by this program already"):
            first.save(ledger)
    with pytest.raises(KeyError), dpsub.Ledger.open(ledger) as failed:
        failed.record(*release, noise_multiplier=3.0)
        raise KeyError
    assert [one.noise_multiplier for one in dpsub.Ledger.load(ledger)] == [2.0]


def test_a_ledger_that_was_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    mine = dpsub.Ledger().add(dpsub.Poisson(0.1), noise_multiplier=2.0)
    mine.save(path)
    mine.save(path)
    other = dpsub.Ledger.load(path)
    for one in (mine, other):
        one.record(dpsub.Poisson(0.1), noise_multiplier=2.0)
    mine.save(path)
    # the same entries, and still one of them would be lost
    with pytest.raises(dpsub.DataError, match=r"entries, 2 in all, that this one does not have"):
        other.save(path)
    with pytest.raises(dpsub.DataError, match="that this one does not have"):
        dpsub.Ledger().save(path)
    # one that begins with what is there goes on from it
    dpsub.Ledger([*mine, *mine]).save(path)
    assert len(dpsub.Ledger.load(path)) == 4
    path.write_text("notes of mine")
    with pytest.raises(dpsub.DataError, match="not complete JSON"):
        mine.save(path)
    assert path.read_text() == "notes of mine"

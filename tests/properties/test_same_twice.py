"""The same question has the same answer: in another order of questions, in one process or another,
under a clock of nonsense, with one thread or two, and next to busy processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.few import few
from tests.properties import same_questions

PROGRAM = Path(same_questions.__file__)
PATIENCE = 900  # seconds, beside busy processes
BUSY = 8
_SPIN = "while True: pass"


pytestmark = pytest.mark.thorough


def answers(order: str, clock: str, threads: int = 1, every: int = 1) -> dict[str, Any]:
    """Ask all questions, or every second, third and so on, in a process of its own."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    found = subprocess.run(
        [sys.executable, PROGRAM, order, clock, str(every)],
        env=os.environ | dict.fromkeys(names, str(threads)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    told: dict[str, Any] = json.loads(found.stdout)
    return told


@contextmanager
def busy_machine() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def first() -> dict[str, Any]:
    return answers("forwards", "true")


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    assert second.keys() <= first.keys()
    return [name for name in second if first[name] != second[name]]


def test_all_questions_are_answered(first: dict[str, Any]) -> None:
    refused = [line for line in same_questions.LINES if first[line][0][0] not in (0, 1)]
    assert refused == []
    assert len(first) >= 38


@pytest.mark.parametrize("every", few([2, 1], most=0, more=1))
def test_another_order_and_a_clock_of_nonsense_change_nothing(
    first: dict[str, Any], every: int
) -> None:
    second = answers("backwards", "nonsense", every=every)
    assert len(second) == -(-len(first) // every)
    assert differing(first, second) == []


@pytest.mark.parametrize("every", few([10, 1], most=0, more=1))
def test_two_threads_on_a_busy_machine_change_nothing(first: dict[str, Any], every: int) -> None:
    with busy_machine():
        assert differing(first, answers("forwards", "true", threads=2, every=every)) == []

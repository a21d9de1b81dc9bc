from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow import runs


@dataclass(frozen=True)
class Measured:
    """An undisturbed tiny run: its folder, and the seconds until its first job was done and until its end."""

    folder: Path
    first: float
    whole: float


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A tiny run that went through undisturbed on two cores."""
    folder = tmp_path_factory.mktemp("finished")
    started = time.monotonic()
    process = runs.start(folder)
    assert process.stdout is not None
    line = process.stdout.readline()
    first = time.monotonic() - started
    status, output = runs.finish(process)
    assert status == 0, line + output
    return Measured(folder, first, time.monotonic() - started)


@pytest.fixture(scope="session")
def finished(measured: Measured) -> Path:
    """Folder of a tiny run that went through undisturbed on two cores."""
    return measured.folder

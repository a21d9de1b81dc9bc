from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow import runs


@dataclass(frozen=True)
class Measured:
    """An undisturbed tiny run: its folder, what it printed, and how long it took."""

    folder: Path
    output: str
    seconds: float


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Return a tiny run that went through undisturbed on two cores."""
    folder, started = tmp_path_factory.mktemp("finished"), time.monotonic()
    status, output = runs.run(folder)
    assert status == 0, output
    return Measured(folder, output, time.monotonic() - started)


@pytest.fixture(scope="session")
def finished(measured: Measured) -> Path:
    """Return the folder of a tiny run that went through undisturbed on two cores."""
    return measured.folder

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow import runs


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny run that went through undisturbed on two cores."""
    folder = tmp_path_factory.mktemp("finished")
    status, output = runs.run(folder)
    assert status == 0, output
    return folder

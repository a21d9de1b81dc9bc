"""The steps of the container recipe in an empty folder, as no container engine need be there."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "Containerfile").read_text(encoding="utf-8")
PATIENCE = 900  # seconds

pytestmark = pytest.mark.slow


def instructions(name: str) -> list[str]:
    text = RECIPE.replace("\\\n", " ")
    return [found.strip() for found in re.findall(rf"^{name} (.*)$", text, flags=re.MULTILINE)]


def copied(place: Path) -> Path:
    """Copy what `COPY . .` takes: the project without the patterns of .containerignore."""
    patterns = (ROOT / ".containerignore").read_text(encoding="utf-8").split()

    def left_out(folder: str, names: list[str]) -> list[str]:
        inside = Path(folder).relative_to(ROOT)
        return [
            name
            for name in names
            for pattern in patterns
            if fnmatch.fnmatch(
                name if pattern.startswith("**/") else str(inside / name),
                pattern.removeprefix("**/"),
            )
        ]

    return shutil.copytree(ROOT, place, ignore=left_out, symlinks=True)


def called(*command: str, folder: Path) -> str:
    python = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    ours = ("DPSUB_DATA", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PATH": python},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_image_would_answer_and_run(tmp_path: Path) -> None:
    folder = copied(tmp_path / "dpsub")
    assert not (folder / ".git").exists() and not list(folder.glob("**/*.egg-info"))
    steps = [step for step in instructions("RUN") if not step.startswith("apt-get")]
    assert steps == ["make environment"]
    for step in steps:
        called(*shlex.split(step), folder=folder)
    (start,), (default,) = instructions("ENTRYPOINT"), instructions("CMD")
    (top,) = instructions("WORKDIR")
    program = [word.replace(top, str(folder)) for word in json.loads(start)]
    assert "account" in called(*program, *json.loads(default), folder=folder)
    example = re.search(r"^# +podman run --rm dpsub (.*)$", RECIPE, flags=re.MULTILINE)
    assert example is not None
    assert "epsilon" in called(*program, *shlex.split(example[1]), folder=folder)
    assert "made from this configuration" in called("make", "smoke", folder=folder)
    assert (folder / "results-smoke/report/index.html").exists()

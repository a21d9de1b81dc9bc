"""Copies of the project in which files are added or taken away, and programs that are run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (
    ".git",
    ".venv*",
    ".snakemake",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "*.egg-info",
    "raw",
    "interim",
    "results",
    "results[-_]*",
    "site",
    "build",
)


def copied(top: Path) -> Path:
    """Copy the project to `top`."""
    shutil.copytree(
        ROOT, top, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True, dirs_exist_ok=True
    )
    return top


def tried(top: Path, *words: str, patience: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python with the package of the copy."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=top,
        env=os.environ | {"PYTHONPATH": str(top / "src")},
        timeout=patience,
        capture_output=True,
        text=True,
        check=False,
    )


def ran(top: Path, *words: str, patience: float = 300) -> str:
    """Run Python as `tried` does and return what it prints; a failure fails the test."""
    done = tried(top, *words, patience=patience)
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout

"""Runs of the tiny configuration as a user starts them, each in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "workflow/scripts/run.py"
TINY = ROOT / "tests/tiny.yaml"
RESULTS = "results-tiny"
PATIENCE = 300  # seconds after which a run counts as hung


def environment() -> dict[str, str]:
    ours = ("DPSUB_DATA", "DPSUB_JOB", "DPSUB_PRELOADED")
    return {name: value for name, value in os.environ.items() if name not in ours}


def command(*arguments: str, configs: tuple[Path, ...] = (TINY,), cores: int = 2) -> list[str]:
    files = [str(path) for path in configs]
    return [sys.executable, str(RUNNER), *arguments, "--cores", str(cores), "--config", *files]


def start(folder: Path, *arguments: str, configs: tuple[Path, ...] = (TINY,), cores: int = 2) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        command(*arguments, configs=configs, cores=cores),
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit status and what was printed."""
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output


def run(folder: Path, *arguments: str, configs: tuple[Path, ...] = (TINY,), cores: int = 2) -> tuple[int, str]:
    return finish(start(folder, *arguments, configs=configs, cores=cores))


def config(path: Path, **keys: object) -> Path:
    """Write a configuration file with `keys`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return path


def compared(folder: Path, results: str = RESULTS) -> dict[str, bytes]:
    """Return the content of every file that must not differ between runs of one configuration."""
    top = folder / results
    files = [*top.glob("tables/**/*"), *top.glob("figures/**/*"), *top.glob("comparison/**/*"), top / "comparison.csv"]
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(files) if path.is_file()}

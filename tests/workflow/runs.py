"""Runs of the tiny configuration as a user starts them, each in a folder of its own.

They are of a copy of the project in which the example paper of the tests stands among the papers,
so that they need no other one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TINY = HERE / "tiny.yaml"
EXAMPLE = "src/dpsub/papers/example"
"""Place of the example paper in a copy of the project."""
PARTS = (
    "CITATION.cff",
    "Makefile",
    "Snakefile",
    "config.yaml",
    "pyproject.toml",
    "data/SOURCES.csv",
    "docs",
    "src",
    "workflow",
)
"""Files and folders of the project that a run needs."""
RESULTS = "results-tiny"
PATIENCE = 300  # seconds after which a run counts as hung
OPTIONS = ("--nolock", "--workflow-profile", str(ROOT / "workflow/profiles/default"))
"""Options of the Makefile's call, and the profile that a call from the project's top finds by
itself."""


def project_in(folder: Path) -> Path:
    """Make a copy of the project with the example paper."""
    unneeded = shutil.ignore_patterns("*.egg-info")
    for name in PARTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            # with what Python has compiled, which need not be done again
            shutil.copytree(ROOT / name, folder / name, ignore=unneeded)
        else:
            shutil.copy(ROOT / name, folder / name)
    shutil.copytree(HERE / "example", folder / EXAMPLE, ignore=unneeded)
    return folder


@cache
def project() -> Path:
    """Return the copy of the project whose runs are tested, one in each process of tests."""
    top = Path(tempfile.mkdtemp(prefix="dpsub-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    return project_in(top / "project")


def environment() -> dict[str, str]:
    # files of Adult that are at hand would change what is computed
    kept = {name: value for name, value in os.environ.items() if name != "DPSUB_DATA"}
    return kept | {"PYTHONPATH": str(project() / "src")}


def command(
    *arguments: str,
    configs: tuple[Path, ...] = (TINY,),
    cores: int = 2,
    snakefile: Path | None = None,
) -> list[str]:
    files = ["--configfile", *map(str, configs)] if configs else []
    return [
        sys.executable,
        "-m",
        "snakemake",
        *arguments,
        "--snakefile",
        str(snakefile or project() / "Snakefile"),
        *OPTIONS,
        "--cores",
        str(cores),
        *files,
    ]


def start(folder: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        command(*arguments, **options),  # type: ignore[arg-type]
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # so that a signal can reach all processes of the run, and nobody else
        start_new_session=True,
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


def run(folder: Path, *arguments: str, **options: object) -> tuple[int, str]:
    return finish(start(folder, *arguments, **options))


def config(path: Path, **keys: object) -> Path:
    """Write a configuration file with `keys`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return path


def compared(folder: Path, results: str = RESULTS) -> dict[str, bytes]:
    """Return the content of every file that must not differ between runs of one configuration."""
    top = folder / results
    files = [
        *top.glob("tables/**/*"),
        *top.glob("figures/**/*"),
        *top.glob("comparison/**/*"),
        top / "comparison.csv",
    ]
    return {
        str(path.relative_to(top)): path.read_bytes() for path in sorted(files) if path.is_file()
    }


def recorded(folder: Path, results: str = RESULTS) -> dict[str, tuple[int, bytes]]:
    """Return inode and content of every record file: a file that is written again gets another
    inode."""
    top = folder / results
    return {
        str(path.relative_to(top)): (path.stat().st_ino, path.read_bytes())
        for path in top.rglob("*.parquet")
    }

"""The source distribution is what archives and distributions take: it holds all that the repository
holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.packaging.scratch import ROOT

pytestmark = pytest.mark.thorough

ADDED = {"PKG-INFO", "setup.cfg", "src/dpsub.egg-info/SOURCES.txt"}
"""Files that setuptools adds."""
LEFT_BEHIND = (
    "src/dpsub/__pycache__/old.pyc",
    "data/raw/adult/adult.data",
    "data/interim/results/adult.parquet",
    "docs/api/dpsub.rst",
    "results/tables/must/table8.csv",
)
"""Files of runs and tools, which are no part of it."""


@pytest.fixture
def tracked() -> list[str]:
    """Return the files of the repository, and links to folders."""
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows what belongs to the project")
    words = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    return [name for name in listed.splitlines() if (ROOT / name).exists()]


def unpacked(names: list[str]) -> set[str]:
    """Return the same files where folders stand in the place of links to them."""
    found = set(names)
    for link in filter(lambda name: (ROOT / name).is_dir(), names):
        target = (ROOT / link).readlink()
        below = [Path(name) for name in names if Path(name).is_relative_to(target)]
        found.remove(link)
        found |= {(link / path.relative_to(target)).as_posix() for path in below}
    return found


def test_the_source_distribution_holds_what_the_repository_holds(
    tracked: list[str], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    for name in LEFT_BEHIND:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left behind", encoding="utf-8")
    program = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    subprocess.run(
        [sys.executable, "-c", program], cwd=source, check=True, capture_output=True, timeout=120
    )
    (made,) = (source / "dist").iterdir()
    with tarfile.open(made) as archive:
        files = {member.name.partition("/")[2] for member in archive if not member.isdir()}
    assert files - ADDED == unpacked(tracked)

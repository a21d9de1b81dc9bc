"""Wheel and source distribution: complete, and of use outside the repository, with old and new
dependencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/dpsub"
NEEDED = ("pyproject.toml", "README.md", "LICENSE")

pytestmark = pytest.mark.slow


def called(*command: str, cwd: Path, **environment: str) -> str:
    """Return the standard output of a command that succeeds; nothing of this repository is on its
    path."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=own | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(kind: str, source: Path, output: Path) -> Path:
    """Build "wheel" or "sdist" by the declared backend, without the network."""
    output.mkdir(parents=True)
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(output)!r})"
    called(sys.executable, "-c", program, cwd=source)
    (found,) = output.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel_and_sdist(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    top = tmp_path_factory.mktemp("build")
    source = top / "source"
    shutil.copytree(SOURCE, source / "src/dpsub", ignore=shutil.ignore_patterns("__pycache__"))
    for name in NEEDED:
        shutil.copy(ROOT / name, source / name)
    return built("wheel", source, top / "wheel"), built("sdist", source, top / "sdist")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")
        }


def test_the_wheel_holds_every_file_of_the_package_and_the_licence(
    wheel_and_sdist: tuple[Path, Path],
) -> None:
    found = contents(wheel_and_sdist[0])
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {name for name in found if name.startswith("dpsub/")} == {
        f"dpsub/{path.relative_to(SOURCE).as_posix()}" for path in files
    }
    assert any(name.endswith("licenses/LICENSE") for name in found)
    assert all(name.startswith(("dpsub/", "dpsub-")) for name in found)


def test_the_source_distribution_builds_the_same_wheel(
    wheel_and_sdist: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, sdist = wheel_and_sdist
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert contents(built("wheel", source, tmp_path / "again")) == contents(wheel)


def test_an_installed_wheel_answers_outside_the_repository(
    wheel_and_sdist: tuple[Path, Path], tmp_path: Path
) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
    ]
    called(*pip, str(wheel_and_sdist[0]), cwd=elsewhere)
    releases = ["--rate", "0.01", "--noise-multiplier", "1", "--steps", "100"]
    words = ["account", "poisson", *releases, "--delta", "1e-5", "--json"]
    answer = json.loads(
        called(str(target / "bin/dpsub"), *words, cwd=elsewhere, PYTHONPATH=str(target))
    )
    assert (answer["kind"], answer["guarantee"]) == ("exact", True)
    assert 0.71 < answer["lower"] <= answer["upper"] < 0.73
    where = called(
        sys.executable,
        "-c",
        "import dpsub; print(dpsub.__file__)",
        cwd=elsewhere,
        PYTHONPATH=str(target),
    )
    assert Path(where.strip()).is_relative_to(target)


def test_a_sweep_is_refused_outside_the_repository_in_a_sentence(
    wheel_and_sdist: tuple[Path, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel_and_sdist[0]) as archive:
        archive.extractall(tmp_path / "target")
    sweep = min(ROOT.glob("src/dpsub/papers/*/sweep.yaml"))
    done = subprocess.run(
        [sys.executable, "-m", "dpsub", "plan", str(sweep)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "target")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "clone of the project" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("age", ["oldest", "newest"])
def test_supported_dependencies(age: str, tmp_path: Path) -> None:
    """Take minutes each, and the network: the running interpreter gets an environment of its
    own."""
    script = ROOT / "tests/packaging/try_versions.py"
    done = subprocess.run(
        [sys.executable, str(script), age, str(tmp_path / age)], timeout=3600, check=False
    )
    assert done.returncode == 0

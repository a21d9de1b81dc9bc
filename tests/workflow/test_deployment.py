"""The workflow is deployed into an empty folder, from a tag of a repository at a forge, and runs
where Snakemake has nothing but what itself needs.

Two things are emulated: the forge is a bare repository of this machine, to which git redirects the
address; and `conda` is the stand-in of this folder, which makes a virtual environment of Python
with the packages of the tests.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement

from tests.packaging.scratch import copied
from tests.workflow import runs
from tests.workflow.runs import RESULTS

pytestmark = pytest.mark.slow

SNAKEFILE = """
from snakemake.utils import min_version

min_version("6.10.0")


configfile: "config/config.yaml"


module dpsub:
    snakefile:
        github("example/dpsub", path="workflow/Snakefile", tag="v0")
    config:
        config


use rule * from dpsub
"""
"""Snakefile in the form that `snakedeploy deploy-workflow` 0.17.1 writes."""
CONDA = Path(__file__).parent / "conda/bin"
PACKAGES = sysconfig.get_path("purelib")


def needed(name: str, known: dict[str, importlib.metadata.Distribution]) -> None:
    """Gather a distribution and all that it requires, without extras."""
    known[name] = importlib.metadata.distribution(name)
    for line in known[name].requires or ():
        requirement = Requirement(line)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in known:
            needed(requirement.name, known)


@pytest.fixture(scope="module")
def snakemake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with Snakemake and Pygments, for its report, their requirements, and no
    more."""
    place = tmp_path_factory.mktemp("snakemake")
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    known: dict[str, importlib.metadata.Distribution] = {}
    for name in ("snakemake", "pygments"):
        needed(name, known)
    for distribution in known.values():
        for file in distribution.files or ():
            top = file.parts[0]
            source = Path(PACKAGES) / top
            if top != ".." and source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)
    return place / "bin/python"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a user to whom the forge has this project, at the tag v0."""
    place = tmp_path_factory.mktemp("forge")
    project = copied(place / "project")
    shutil.copytree(runs.HERE / "example", project / runs.EXAMPLE)
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (
        ("init", "--quiet"),
        ("add", "--all"),
        (*name, "commit", "--quiet", "--message", "All"),
        ("tag", "v0"),
        ("clone", "--quiet", "--bare", str(project), str(place / "at/example/dpsub")),
    ):
        subprocess.run(["git", "-C", str(project), *words], check=True, timeout=60)
    kept = {name: value for name, value in runs.environment().items() if name != "PYTHONPATH"}
    return kept | {
        "PATH": f"{CONDA}{os.pathsep}{os.environ['PATH']}",
        "STAND_IN_PACKAGES": PACKAGES,
        "XDG_CACHE_HOME": str(place / "cache"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{place}/at/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that `snakedeploy` leaves, and the configuration of the
    tests."""
    top = tmp_path_factory.mktemp("deployed")
    (top / "workflow").mkdir()
    (top / "workflow/Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    shutil.copytree(runs.ROOT / "config", top / "config")
    shutil.copytree(runs.ROOT / "profiles", top / "profiles")
    shutil.copy(runs.TINY, top / "tiny.yaml")
    return top


def called(
    python: Path, world: dict[str, str], folder: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), *words],
        cwd=folder,
        env=world,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=runs.PATIENCE,
        check=False,
    )


RUN = ("-m", "snakemake", "example/means", "--cores", "2", "--configfile", "tiny.yaml")


def test_a_table_is_made_where_snakemake_has_no_dpsub(
    snakemake: Path, world: dict[str, str], deployed: Path
) -> None:
    for package in ("dpsub", "pandas", "scipy"):
        done = called(snakemake, world, deployed, "-c", f"import {package}")
        assert f"No module named '{package}'" in done.stdout
    done = called(snakemake, world, deployed, *RUN, "-n")
    assert done.returncode == 1 and "add `--sdm conda`" in done.stdout
    done = called(snakemake, world, deployed, *RUN, "--sdm", "conda")
    assert done.returncode == 0, done.stdout[-4000:]
    assert len(pd.read_csv(deployed / RESULTS / "tables/example/means.csv"))


@pytest.mark.slow
def test_a_whole_run_ends_in_the_report_and_in_that_of_snakemake(
    snakemake: Path, world: dict[str, str], deployed: Path
) -> None:
    everything = (*RUN[:2], *RUN[3:], "--sdm", "conda")
    done = called(snakemake, world, deployed, *everything)
    assert done.returncode == 0, done.stdout[-4000:]
    page = (deployed / RESULTS / "report/index.html").read_text(encoding="utf-8")
    assert "Richard Roe" in page and "Traceback" not in page
    done = called(snakemake, world, deployed, *everything, "--report", "report.html")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "tables/example/means.csv" in (deployed / "report.html").read_text(encoding="utf-8")


def test_a_wrong_configuration_is_told_in_one_sentence(
    snakemake: Path, world: dict[str, str], deployed: Path
) -> None:
    (deployed / "wrong.yaml").write_text("artefacts: [meanz]\n", encoding="utf-8")
    done = called(snakemake, world, deployed, *RUN[:-1], "wrong.yaml", "--sdm", "conda", "-n")
    assert done.returncode == 1
    assert "unknown artefact 'meanz'; did you mean 'means'?" in done.stdout
    assert "Traceback" not in done.stdout

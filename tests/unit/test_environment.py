"""The environment of a clone: pins that satisfy the package, and a half-made one that is not taken
as whole."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import dpsub

ROOT = Path(__file__).resolve().parents[2]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def described() -> dict:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        return tomllib.load(stream)


def project() -> dict:
    return described()["project"]


def test_every_requirement_is_pinned_to_one_version() -> None:
    lines = [
        line
        for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        if line[:1] != "#"
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {canonical(line.partition("==")[0]) for line in lines}
    assert len(pinned) == len(lines)
    facts = project()
    wanted = [
        *facts["dependencies"],
        *(item for extra in facts["optional-dependencies"].values() for item in extra),
        *(item for group in described()["dependency-groups"].values() for item in group),
    ]
    assert {canonical(re.split(r"[<>=\[ ]", item)[0]) for item in wanted} <= pinned


def test_versions_in_metadata_agree() -> None:
    version = project()["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert importlib.metadata.version("dpsub") == dpsub.__version__ == version


def test_the_environment_of_jobs_has_the_pins() -> None:
    environment = yaml.safe_load((ROOT / "workflow/envs/dpsub.yaml").read_text(encoding="utf-8"))
    (pins,) = (item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert set(pins) <= set((ROOT / "requirements.lock").read_text(encoding="utf-8").split())
    facts = project()
    needed = {
        canonical(re.split(r"[<>=\[ ]", item)[0])
        for item in [*facts["dependencies"], *facts["optional-dependencies"]["papers"]]
    }
    assert {canonical(pin.partition("==")[0]) for pin in pins} == {
        name for name in needed if not name.startswith("snakemake")
    }


def test_every_package_that_is_named_is_imported() -> None:
    """A package that only others need is theirs to name."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow").rglob("*.*")]
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".smk", "")
    )
    imported = set(re.findall(r"^ *(?:from|import) (\w+)", sources, re.MULTILINE)) | {"snakemake"}
    provided = importlib.metadata.packages_distributions()
    used = {canonical(name) for module in imported for name in provided.get(module, ())}
    facts = project()
    named = [*facts["dependencies"], *facts["optional-dependencies"]["papers"]]
    lacking = {canonical(re.split(r"[<>=\[ ]", item)[0]) for item in named} - used
    assert lacking == {"snakemake-logger-plugin-rich"}  # the Makefile's `--logger rich`


def made(folder: Path, python: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Call make in a folder with the files of the environment and with a Python that is a
    script."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        if not (folder / name).exists():
            shutil.copy(ROOT / name, folder)
    (folder / "python").write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    (folder / "python").chmod(0o755)
    return subprocess.run(
        ["make", f"PYTHON={folder / 'python'}", "environment", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_half_made_environment_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    half = (
        "mkdir -p .venv/bin; printf '#!/bin/sh\\nexit 3\\n' > .venv/bin/python; chmod +x "
        ".venv/bin/python"
    )
    for _ in range(2):
        done = made(tmp_path, f'case "$*" in *venv*) {half};; esac')
        assert done.returncode == 2 and "installing what requirements.lock pins" in done.stdout
        assert not (tmp_path / ".venv/.complete").exists()
    whole = "mkdir -p .venv/bin; ln -sf /bin/true .venv/bin/python"
    assert made(tmp_path, f'case "$*" in *venv*) {whole};; esac').returncode == 0
    assert "Nothing to be done" in made(tmp_path, "exit 1").stdout


def test_an_old_python_is_refused_in_a_sentence(tmp_path: Path) -> None:
    old = (
        f"{sys.executable} -c 'import sys; sys.version_info = (3, 9, 1); exec(sys.argv[1])' \"$2\""
    )
    done = made(tmp_path, old)
    assert done.returncode == 2
    assert done.stderr.startswith("error: Python 3.11 or later is needed, got ")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("letter", ['"', "$", "`", "\\", "{"])
def test_a_folder_that_a_shell_would_read_is_refused_in_a_sentence(
    letter: str, tmp_path: Path
) -> None:
    folder = tmp_path / f"a{letter}b"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", "environment"],
        cwd=folder,
        env=alone,  # also where `make test` runs this test
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0 and done.stdout == ""
    said = done.stderr.splitlines()[0]
    assert said.startswith(
        f"error: the project must lie in a folder without {letter!r} in its path"
    )
    assert not (folder / ".venv").exists()


def test_the_package_is_found_in_every_locale(tmp_path: Path) -> None:
    """By a path without the names of the folders above, which Python reads in the locale's letters;
    what setuptools writes is replaced by it."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    program = text[text.index("define RELATIVE\n") :].split("\n", 1)[1].split("\nendef")[0]
    top = tmp_path / "Prüfung of a b's"
    packages = top / ".venv/lib"
    (top / "src").mkdir(parents=True)
    packages.mkdir(parents=True)
    listed = packages / "__editable__.dpsub-9.pth"
    listed.write_text(f"{top / 'src'}\n", encoding="utf-8")
    program = program.replace('sysconfig.get_path("purelib")', repr(str(packages)))
    assert repr(str(packages)) in program
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert listed.read_text(encoding="ascii") == "../../src\n"
    (top / "src/found_by_it.py").touch()
    asked = f"import site; site.addsitedir({str(packages)!r}); import found_by_it"
    done = subprocess.run(
        [sys.executable, "-c", asked], env={"LC_ALL": "C"}, check=False, timeout=60
    )
    assert done.returncode == 0


@pytest.mark.parametrize("refused", [False, True])
def test_a_run_on_slurm_begins_with_the_question_whether_slurm_takes_it(
    refused: bool, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    programs = {
        "sbatch": f'echo asked "$@"; exit {int(refused)}',
        ".venv/bin/python": 'echo run "$@"',
        ".venv/.complete": "",
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "PROFILE=slurm",
            "PARTITION=main",
            "ACCOUNT=mine",
            "smoke",
        ],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    asked, *rest = done.stdout.splitlines()
    assert asked == "asked --test-only --partition=main --account=mine --wrap=true"
    assert (done.returncode == 0) is not refused and [line[:3] for line in rest] == ["run"] * (
        not refused
    )

"""What the environment is made from: pins that satisfy the package, and a half-made one that is not taken as whole."""

from __future__ import annotations

import importlib.metadata
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import dpsub

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "workflow/scripts/make_environment.py"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        return tomllib.load(stream)["project"]


def test_every_requirement_is_pinned_to_one_version() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {canonical(line.partition("==")[0]) for line in lines}
    assert len(pinned) == len(lines)
    facts = project()
    wanted = [*facts["dependencies"], *(item for extra in facts["optional-dependencies"].values() for item in extra)]
    assert {canonical(re.split(r"[<>=\[ ]", item)[0]) for item in wanted} <= pinned


def test_versions_in_metadata_agree() -> None:
    version = project()["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert importlib.metadata.version("dpsub") == dpsub.__version__ == version


def test_an_environment_without_its_stamp_is_made_anew(tmp_path: Path) -> None:
    """A python that cannot make environments shows that the half-made one is removed, and that the reason is said."""
    half = tmp_path / "venv"
    (half / "bin").mkdir(parents=True)
    (half / "bin/python").write_text("half-made", encoding="utf-8")
    (tmp_path / "venv.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(half)],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "error: the environment must be made by" in done.stderr and "install venv for it" in done.stderr
    assert not (half / "bin/python").exists()
    assert not (half / ".complete").exists()


OLD = (
    "import runpy, sys; sys.argv = ['x', 'venv']; sys.version_info = (3, 9, 1); "
    f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
)


def test_an_environment_keeps_the_python_that_made_it(tmp_path: Path) -> None:
    """It is up to date whichever Python asks, and no longer when its own has gone or is another one."""
    made = tmp_path / "venv"
    (made / "bin").mkdir(parents=True)
    python = made / "bin/python"
    found = runpy.run_path(str(SCRIPT))
    for reply in ("(3, 13)", "(3, 14)"):
        python.write_text(f"#!/bin/sh\necho '{reply}'\n", encoding="utf-8")
        python.chmod(0o755)
        (made / ".complete").write_text(found["digest"](str(python)), encoding="utf-8")
        subprocess.run([sys.executable, str(SCRIPT), str(made)], check=True, timeout=60, env={"PATH": ""})
    subprocess.run([sys.executable, "-c", OLD], cwd=tmp_path, check=True, timeout=60)  # an old one may ask, too
    complete = (made / ".complete").read_text(encoding="utf-8")
    python.write_text("#!/bin/sh\necho '(3, 15)'\n", encoding="utf-8")
    assert found["digest"](str(python)) != complete
    python.unlink()
    assert found["digest"](str(python)) != complete


def test_an_old_python_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OLD], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: Python 3.11 or later is needed, got ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

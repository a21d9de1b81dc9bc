"""Install dpsub with the oldest or the newest dependencies that pyproject.toml allows, and test it
there.

    python tests/packaging/try_versions.py oldest /tmp/oldest [pytest arguments]

The folder gets a virtual environment; what is installed there already is not installed again.
Arguments go to pytest; if none of them names tests, those of `SUBSET` are run: each part of the
package, and the tiny workflow from start to report.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from dpsub.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
AGES = ("oldest", "newest")
TOOLS = ("setuptools>=77", "hypothesis", "mpmath", "pytest", "pytest-xdist")
# to compile them would take an hour
COMPILED = "matplotlib,numpy,pandas,psutil,pyarrow,PyYAML,scikit-learn,scipy"
SUBSET = (
    "tests/conformance",
    "tests/golden",
    "tests/workflow/test_tiny_run.py",
    *(
        f"tests/unit/test_{name}.py"
        for name in (
            "adult",
            "amplification",
            "artefacts",
            "cli",
            "divergences",
            "figures",
            "noise",
            "published",
            "records",
            "report",
            "settings",
            "simulated",
            "survey",
            "sweep",
        )
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("age", choices=AGES)
    parser.add_argument("folder", type=Path)
    options, tests = parser.parse_known_args()
    python = options.folder.resolve() / "bin/python"
    if not python.exists():
        venv.create(options.folder, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    call([*pip, "--upgrade", "--only-binary", COMPILED, *TOOLS, *requirements(options.age)])
    call([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    named = any(item.startswith("tests/") for item in tests)
    call(
        [
            str(python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *tests,
            *(() if named else SUBSET),
        ]
    )


def requirements(age: str) -> list[str]:
    """Return what pip is asked for: each dependency at its lower bound, or as pyproject.toml says
    it.

    Raises
    ------
    DataError
        If a dependency has no lower bound.
    """
    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["papers"]]
    return [at_bound(item) for item in wanted] if age == "oldest" else wanted


def at_bound(requirement: str) -> str:
    found = re.match(r"([\w.-]+)>=([\d.]+)", requirement)
    if found is None:
        raise DataError(
            "a dependency must have a lower bound, as in numpy>=2.0, got "
            f"{requirement!r}; give it one"
        )
    return f"{found[1]}=={found[2]}"


def call(command: list[str]) -> None:
    """Run a command; if it fails, end with its status."""
    own = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
    status = subprocess.run(command, cwd=ROOT, env=own, check=False).returncode
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()

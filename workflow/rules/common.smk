"""Shared by the rules of runs and of sweeps: check the version of dpsub, and define helpers."""

import importlib.metadata
import importlib.util
import os
import re
import sys
import time
import tomllib

from snakemake.exceptions import WorkflowError

STARTED = time.time()
INSTALL = f"{sys.executable} -m pip install -e '{ROOT}[papers]'"
if odd := sorted(set(str(ROOT)) & set("{}<>")):  # patterns to Snakemake
    raise WorkflowError(
        f"the project must lie in a folder without {odd[0]} in its path, got {ROOT}; move it"
    )
if importlib.util.find_spec("dpsub") is None:
    raise WorkflowError(f"dpsub must be installed where snakemake is, got none; run: {INSTALL}")
if (ROOT / "pyproject.toml").exists():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if (there := importlib.metadata.version("dpsub")) != needed:
        raise WorkflowError(
            f"dpsub must be version {needed}, as this workflow is, got {there}; run: {INSTALL}"
        )

from dpsub import threads
from dpsub.reproduce import outcome, provenance

os.environ.update(threads.ONE)  # jobs are what runs in parallel
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each job compiles the package again
if (
    ROOT / "src"
).is_dir():  # in an environment or a container of their own, jobs have this code, too
    os.environ.update(
        PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    )


def shown(paths):
    return [str(path) for path in paths]


def one_of(names):
    """Return the pattern of a wildcard that stands for one of `names`."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


def doubled(first, attempt):
    """Return the resource for an attempt, doubled with each one after the first."""
    return first * 2 ** (attempt - 1)

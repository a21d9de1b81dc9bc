"""Shared by the rules of runs and of sweeps: the package of the same revision, and helpers."""

import os
import re
import shlex
import sys
import time

from snakemake.exceptions import WorkflowError

STARTED = time.time()
SOURCE = ROOT / "src"
PYTHON = sys.executable
INSTALL = shlex.join([PYTHON, "-m", "pip", "install", "-e", f"{ROOT}[papers]"])
# Snakemake puts the interpreter into the commands of jobs as it is, also where its path has a space
sys.executable = shlex.quote(PYTHON)
if odd := sorted(set(str(ROOT)) & set("{}<>")):  # patterns to Snakemake
    raise WorkflowError(
        f"the project must lie in a folder without {odd[0]} in its path, got {ROOT}; move it"
    )
# rules and package are of one revision, whatever is installed
sys.path.insert(0, str(SOURCE))

from dpsub import threads
from dpsub.reproduce.job import failures

os.environ.update(threads.ONE)  # jobs are what runs in parallel
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each job compiles the package again
# in an environment or a container of their own, jobs have this code, too
os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
)


def one_of(names):
    """Return the pattern of a wildcard that stands for one of `names`."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


def doubled(first, attempt):
    """Return the resource for an attempt, doubled with each one after the first."""
    return first * 2 ** (attempt - 1)

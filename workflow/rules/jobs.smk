"""What all jobs have in common: one thread each, this Python, an end with their run, and code that they depend on.

REQUIRED INPUTS: ROOT, the top of the project
OUTPUTS: the functions `script`, `code`, `one_of`, `shown`
"""

import os
import re
import sys

from dpsub import provenance

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # one BLAS thread a job: the jobs are what runs in parallel
os.environ["DPSUB_JOB"] = str(os.getpid())  # a job ends with the process that started it
os.environ["PATH"] = os.pathsep.join(
    (os.path.dirname(sys.executable), os.environ.get("PATH", ""))
)  # jobs use this python


def script(name):
    """Return the path of a job's script."""
    return str(ROOT / "workflow/scripts" / name)


def code(name, *modules):
    """Return the digest of a script and of all that `modules` import: a job runs again when that code changes."""
    return provenance.digest(*modules, files=[ROOT / "workflow/scripts" / name])


def one_of(names):
    """Return the pattern of a wildcard that stands for one of `names`."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


def shown(paths):
    return [str(path) for path in paths]

"""What all jobs have in common: one thread each, this Python, an end with their run, and code that they depend on.

REQUIRED INPUTS: ROOT, the top of the project
OUTPUTS: START and the functions `script`, `code`, `one_of`, `shown`
"""

import functools
import os
import re
import shlex
import sys

from dpsub import threads

from dpsub.reproduce import provenance

os.environ.update(threads.ONE)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of the jobs compiles the package again
os.environ["DPSUB_JOB"] = str(os.getpid())  # a job ends with the process that started it
os.environ["PATH"] = os.pathsep.join(
    (os.path.dirname(sys.executable), os.environ.get("PATH", ""))
)  # jobs use this python
START = (  # what comes before the path of a script; on a cluster a node has nothing but Python
    f"python -I -S -X utf8 {shlex.quote(str(ROOT / 'workflow/scripts/start_job.py'))}"
    if os.environ.get("DPSUB_PRELOADED")
    else "python"
)


def script(name):
    """Return the path of a job's script."""
    return str(ROOT / "workflow/scripts" / name)


@functools.cache
def code(name, *modules):
    """Return the digest of a script and of all that `modules` import: a job runs again when that code changes."""
    return provenance.digest(*modules, files=[ROOT / "workflow/scripts" / name])


def one_of(names):
    """Return the pattern of a wildcard that stands for one of `names`."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


def shown(paths):
    return [str(path) for path in paths]

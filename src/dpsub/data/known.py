"""Which module and script prepare a data set, and what kind of file comes of it."""

from __future__ import annotations

from dpsub.data import point_sets


def module_of(name: str) -> str:
    """Return the module that prepares the data set `name`."""
    return "dpsub.data.point_sets" if name in point_sets.NAMES else f"dpsub.data.{name}"


def script_of(name: str) -> str:
    """Return the script that prepares it."""
    return "prepare_points.py" if name in point_sets.NAMES else f"prepare_{name}.py"


def suffix_of(name: str) -> str:
    """Return the ending of its prepared file: an array for points to be clustered, a table for everything else."""
    return point_sets.SUFFIX if name in point_sets.NAMES else ".parquet"

"""Exceptions. Every message is one sentence: the rule, what came, the way out."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command that installs an optional part: of a clone, or of a package from an index."""
    return f"pip install '.[{extra}]' in a clone, or 'dpsub[{extra}]' from an index"


class DpsubError(Exception):
    """Base class of all errors that dpsub raises."""


class ArgumentError(DpsubError, ValueError):
    """The value of an argument is not allowed."""


class UnsupportedError(DpsubError):
    """The request is valid, but no theorem or algorithm covers it; the message says why."""


class DataError(DpsubError):
    """A data file is missing, damaged, or not the expected file."""


class PlanError(DpsubError):
    """A configuration or a plan of a run is inconsistent."""


class NumericalError(DpsubError):
    """A computation did not reach its accuracy; the message gives the estimate."""

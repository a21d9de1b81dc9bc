"""Exceptions. Every message is one sentence: the rule, what came, the way out."""

from __future__ import annotations


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

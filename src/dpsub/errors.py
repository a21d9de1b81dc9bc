"""What can go wrong, by whose fault; every message is one sentence: the rule, what came, the way
out."""

from __future__ import annotations


class DpsubError(Exception):
    """Base of all errors that dpsub raises on purpose."""


class ArgumentError(DpsubError, ValueError):
    """A value breaks the rule of its argument."""


class UnsupportedError(DpsubError):
    """The request is well formed, but no theorem or algorithm covers it; the message gives the
    reason."""


class DataError(DpsubError):
    """A data file is missing, damaged, or not the file that it should be."""


class PlanError(DpsubError):
    """A configuration or a plan of work contradicts itself."""


class NumericalError(DpsubError):
    """A computation did not reach its accuracy; the message carries the estimate."""

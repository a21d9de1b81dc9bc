"""What an accountant answers: an interval that says what it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.relations import Relation

KINDS = ("exact", "upper", "lower", "bounds", "paper")
"""exact: the value itself (lower = upper up to rounding); upper, lower: a proved bound on one side, the other side
trivial; bounds: proved on both sides; paper: what a paper's formula gives, bracketed, and not a guarantee."""


@dataclass(frozen=True)
class Interval:
    """A number that lies in [lower, upper], and what that statement is worth.

    Attributes
    ----------
    lower, upper : float
        Ends of the interval; lower <= upper.
    kind : str
        One of `KINDS`.
    pair : str
        The two distributions that were compared.
    adjacency : Relation
        When two data sets count as neighbours.
    sensitivity : str
        What one occurrence of the differing record does to the released value, in words.

    Raises
    ------
    ArgumentError
        If the ends are NaN or reversed, or the kind is unknown.
    """

    lower: float
    upper: float
    kind: str
    pair: str
    adjacency: Relation
    sensitivity: str

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        lower, upper = float(self.lower), float(self.upper)
        if math.isnan(lower) or math.isnan(upper) or lower > upper:
            raise ArgumentError(f"an interval needs lower <= upper, got [{lower}, {upper}]")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.lower <= value <= self.upper

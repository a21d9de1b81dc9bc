"""One case of one statement, and the sample laws that several of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsub.amplification.survey.auditor import State


@dataclass(frozen=True)
class Case:
    """A statement at one point.

    Attributes
    ----------
    statement : str
        Its short name, "T3.1 upper".
    case : str
        The point, without epsilon, in words.
    side : {"upper", "lower", "equal", "number"}
        What the formula claims to be, against `exact`.
    epsilon : float
        Base epsilon in nats.
    stated, corrected, exact : float
        The printed formula, the corrected one, and the truth.
    """

    statement: str
    case: str
    side: str
    epsilon: float
    stated: float
    corrected: float
    exact: float


def substituted(sizes: Mapping[int, float], n: int) -> tuple[dict[State, float], dict[State, float]]:
    """Return the laws of (holds x, holds x', other records) for samples of n records, of which x became x'."""
    with_x: dict[State, float] = {}
    with_other: dict[State, float] = {}
    for m, p in sizes.items():
        for held, chance in ((1, p * m / n), (0, p * (1 - m / n))):
            if chance > 0:
                with_x[held, 0, m - held] = with_x.get((held, 0, m - held), 0.0) + chance
                with_other[0, held, m - held] = with_other.get((0, held, m - held), 0.0) + chance
    return with_x, with_other


def added(
    smaller: Mapping[int, float], larger: Mapping[int, float], n: int
) -> tuple[dict[State, float], dict[State, float]]:
    """Return the laws of (holds x, other records) for samples of n records, and of these and x."""
    without: dict[State, float] = {(0, m): p for m, p in smaller.items() if p > 0}
    holding: dict[State, float] = {}
    for m, p in larger.items():
        for held, chance in ((1, p * m / (n + 1)), (0, p * (1 - m / (n + 1)))):
            if chance > 0:
                holding[held, m - held] = holding.get((held, m - held), 0.0) + chance
    return without, holding

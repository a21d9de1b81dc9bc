"""Gaussian noise that is correlated over steps by a banded strategy matrix (DP-FTRL)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError

_MOST_COLUMNS = 10**6
_ALIKE = 4e-15  # relative distance of norms that differ by rounding alone


@dataclass(frozen=True)
class BandedStrategy:
    """A lower triangular strategy matrix C, as far as privacy depends on it: the number of its
    bands, and the norms of its columns.

    Step t has the sum x_t. The release is C x + z, one row after the other, with independent noise
    z of one multiplier; or x + C^-1 z, which is the same up to a bijection.

    Attributes
    ----------
    bands : int
        Number of diagonals that are not 0, the main one included: step t is in rows t, ..., t +
        bands - 1.
    norms : tuple of float
        Euclidean norms of the columns, one for each step in order; or a single one, of all columns
        of any number of steps.

    Raises
    ------
    ArgumentError
        If a norm is not above 0, or there are more bands than columns.

    References
    ----------
    Choquette-Choo et al., arXiv 2306.08153; docs/proofs/schedules.md, Theorem 82.

    Examples
    --------
    >>> import numpy as np
    >>> strategy = BandedStrategy.of_matrix(np.eye(4) + 0.75 * np.eye(4, k=-1))
    >>> strategy.bands, [round(norm, 9) for norm in strategy.norms]
    (2, [1.25, 1.25, 1.25, 1.0])
    """

    bands: int
    norms: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        bands = checks.integer("bands", self.bands, at_least=1, at_most=_MOST_COLUMNS)
        object.__setattr__(self, "bands", bands)
        if not isinstance(self.norms, Sequence) or isinstance(self.norms, str):
            raise ArgumentError(
                f"norms must be the norms of the columns, got {self.norms!r}; give one for each "
                "step, or one for all"
            )
        norms = tuple(checks.real("norms", norm, above=0, at_most=1e9) for norm in self.norms)
        if not 1 <= len(norms) <= _MOST_COLUMNS:
            raise ArgumentError(
                f"norms must be those of 1 to {_MOST_COLUMNS} columns, got {len(norms)}; give one "
                "for each step, or one for all"
            )
        if self.columns is not None and bands > len(norms):
            raise ArgumentError(
                f"bands must be at most the number of columns, {len(norms)}, got {bands}; give the "
                "norms of all columns"
            )
        object.__setattr__(self, "norms", norms)

    @classmethod
    def of(cls, strategy: Any) -> Self | None:
        """Return a strategy in its checked form: None, a strategy, or a matrix."""
        if strategy is None or isinstance(strategy, cls):
            return strategy
        return cls.of_matrix(strategy)

    @classmethod
    def of_matrix(cls, matrix: ArrayLike) -> Self:
        """Return the strategy of a lower triangular matrix, shape (steps, steps), whose diagonal is
        above 0. Norms that differ by rounding alone are one, the largest of them.

        Raises
        ------
        ArgumentError
            If it is no such matrix.
        """
        rows = checks.finite_array("strategy", matrix)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not rows.size:
            raise ArgumentError(
                "a strategy must be a square matrix, a row and a column for each step, got shape "
                f"{rows.shape}; or give BandedStrategy(bands, norms of the columns)"
            )
        below, right = np.nonzero(rows)
        if (right > below).any() or not (np.diagonal(rows) > 0).all():
            raise ArgumentError(
                "a strategy must be lower triangular with a diagonal above 0, so that each row "
                "depends on steps before it, got another matrix; transpose it, or give its factor"
            )
        norms = np.array([_norm(column) for column in rows.T])
        return cls(int((below - right).max()) + 1, _merged(norms))

    @property
    def columns(self) -> int | None:
        """Number of steps, where it is fixed."""
        return len(self.norms) if len(self.norms) > 1 else None

    @property
    def largest(self) -> float:
        """Largest norm of a column."""
        return max(self.norms)

    def norms_of(self, steps: int) -> np.ndarray:
        """Return the norms of the columns of so many steps."""
        return np.broadcast_to(np.array(self.norms), (steps,))


def _norm(column: np.ndarray) -> float:
    """Return the norm of a column, rounded up: shorter ones tell less."""
    # squares, their sum and its root are each off by half a unit of the last place, or less
    norm = math.sqrt(math.fsum((column**2).tolist()))
    for _ in range(3):
        norm = math.nextafter(norm, math.inf)
    return norm


def _merged(norms: np.ndarray) -> tuple[float, ...]:
    """Return norms in which those that are alike are the largest of them."""
    values = np.unique(norms)[::-1]
    merged, largest = {}, float(values[0])
    for value in values.tolist():
        largest = largest if value >= largest * (1 - _ALIKE) else value
        merged[value] = largest
    return tuple(merged[value] for value in norms.tolist())

"""Couplings of discrete laws: the maximal one, and the cheapest one by a transport linear program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from dpsub import checks
from dpsub.divergences.hockey_stick import law_array
from dpsub.errors import ArgumentError, NumericalError

_INFEASIBLE = 2  # scipy's status of a program without solution


@dataclass(frozen=True)
class MaximalCoupling:
    """What two laws share, and what is left of each.

    Attributes
    ----------
    eta : float
        Total variation distance, the mass that is not shared.
    shared : ndarray, shape (outcomes,)
        nu0 = min(nu, nu') / (1 - eta); zeros where eta = 1, as nothing is shared.
    first, second : ndarray, shape (outcomes,)
        nu1 = (nu - min) / eta and nu1' = (nu' - min) / eta; equal to nu0 where eta = 0, as nothing is left.
    """

    eta: float
    shared: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def joint(self) -> np.ndarray:
        """The coupling (1 - eta) pi0 + eta pi1, shape (outcomes, outcomes): pi0 stays put, pi1 is a product.

        pi1(y, y') = (nu - min)(y) (nu' - min)(y') / eta^2; the printed divisor eta gives pi1 the mass eta.
        """
        return (1 - self.eta) * np.diag(self.shared) + self.eta * np.outer(self.first, self.second)


def maximal_coupling(first: ArrayLike, second: ArrayLike) -> MaximalCoupling:
    """Return nu = (1 - eta) nu0 + eta nu1, nu' = (1 - eta) nu0 + eta nu1' with the largest shared part.

    References
    ----------
    balle, Section 3 (its divisor of pi1 corrected).
    """
    one, other = law_array("first", first), law_array("second", second)
    common = np.minimum(one, other)
    left, right = one - common, other - common
    eta = float(left.sum())
    if eta == 0:
        return MaximalCoupling(0.0, common, common, common)
    shared = common / common.sum() if common.any() else common
    return MaximalCoupling(eta, shared, left / left.sum(), right / right.sum())


def cheapest_coupling(first: ArrayLike, second: ArrayLike, costs: ArrayLike) -> tuple[float, np.ndarray] | None:
    """Return the least expected cost over all couplings of two laws and a coupling that has it; None if there is none.

    Parameters
    ----------
    first : array_like, shape (rows,)
        Law of the first coordinate.
    second : array_like, shape (columns,)
        Law of the second one.
    costs : array_like, shape (rows, columns)
        Costs of the pairs; an infinite one forbids the pair, so that forbidding all pairs but some asks whether a
        coupling with that support exists.

    Raises
    ------
    ArgumentError
        If the shapes differ or a cost is NaN.
    NumericalError
        If the linear program is not solved.

    References
    ----------
    balle, Theorem 7 (left-hand side of Equation 6).
    """
    one, other = law_array("first", first), law_array("second", second)
    prices = np.asarray(costs, dtype=float)
    if prices.shape != (one.size, other.size) or np.isnan(prices).any():
        raise ArgumentError(f"costs must have shape {(one.size, other.size)} without NaN, got shape {prices.shape}")
    rows, columns = np.nonzero(np.isfinite(prices))
    marginals = np.zeros((one.size + other.size, rows.size))
    marginals[rows, np.arange(rows.size)] = 1
    marginals[one.size + columns, np.arange(rows.size)] = 1
    if rows.size == 0:
        return None
    # Both laws sum to 1 up to rounding only; the last equation follows from the others.
    found = linprog(prices[rows, columns], A_eq=marginals[:-1], b_eq=np.concatenate([one, other])[:-1], method="highs")
    if found.status == _INFEASIBLE:
        return None
    if found.status != 0:
        raise NumericalError(f"the transport program must be solved, got status {found.status}: {found.message}")
    joint = np.zeros(prices.shape)
    joint[rows, columns] = found.x
    return float(prices[rows, columns] @ joint[rows, columns]), joint


def compatible_sum(first: ArrayLike, distances: ArrayLike, group_deltas: ArrayLike) -> float:
    """Return the sum over k >= 1 of nu(Y_k) delta_k, Y_k the points at distance k from the other support.

    It is the cost of the cheapest coupling where a distance-compatible one exists, and never above it.

    Parameters
    ----------
    first : array_like, shape (rows,)
        The law nu.
    distances : array_like, shape (rows, columns)
        Distances from the points of nu to the points of the other support; infinite ones allowed.
    group_deltas : array_like, shape (largest distance + 1,)
        delta_k for k = 0, 1, ...; entry 0 is delta_0 = 0 for epsilon >= 0.

    Raises
    ------
    ArgumentError
        If a point of nu has no finite distance, or one beyond the table of deltas.

    References
    ----------
    balle, Theorem 7 (right-hand side of Equation 6).
    """
    one = law_array("first", first)
    deltas = checks.finite_array("group_deltas", group_deltas, ndim=1)
    nearest = np.asarray(distances, dtype=float).min(axis=1)
    held = one > 0
    if not np.isfinite(nearest[held]).all() or nearest[held].max(initial=0) >= deltas.size:
        raise ArgumentError(f"every point must have a distance of at most {deltas.size - 1}, got {nearest[held].max()}")
    return float(one[held] @ deltas[nearest[held].astype(int)])

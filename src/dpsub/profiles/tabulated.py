"""A profile known at some points, and what convexity says between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.profiles.base import Profile, mirrored

_ROUNDING = 1e-12  # of the slopes of a table, relative to its largest entry


@dataclass(frozen=True, eq=False)
class TabulatedProfile(Profile):
    """Upper bound on a profile from its values (epsilon_i, delta_i): chords in exp(epsilon), constant after the last.

    Every profile is convex in exp(epsilon) and does not increase, so that neither can lie above it.

    Parameters
    ----------
    epsilons : array_like
        Increasing, the first one 0, in nats.
    deltas : array_like
        Values in [0, 1] that do not increase and are convex in exp(epsilon).

    Raises
    ------
    ArgumentError
        If the table breaks one of these rules: no mechanism has such a profile.

    References
    ----------
    balle, Section 3 (convexity of the hockey-stick divergence in its order).
    """

    epsilons: np.ndarray
    deltas: np.ndarray

    def __post_init__(self) -> None:
        orders = checks.finite_array("epsilons", self.epsilons, ndim=1)
        deltas = checks.finite_array("deltas", self.deltas, ndim=1)
        if orders.size != deltas.size or orders.size == 0:
            raise ArgumentError(f"a table needs one delta an epsilon, got {orders.size} epsilons and {deltas.size} "
                                "deltas; give both")
        if orders[0] != 0 or (np.diff(orders) <= 0).any():
            raise ArgumentError("epsilons of a table must increase from 0, got another order; sort them and begin at 0")
        if deltas.min() < 0 or deltas.max() > 1:
            raise ArgumentError(f"deltas must lie in [0, 1], got {deltas.min():g} to {deltas.max():g}; mend the table")
        if (np.diff(deltas) > 0).any():
            raise ArgumentError("deltas must not increase with epsilon, got a rise; mend the table")
        slopes = np.diff(deltas) / np.diff(np.exp(orders))
        if (np.diff(slopes) < -_ROUNDING * max(1.0, float(np.abs(slopes).max(initial=0)))).any():
            raise ArgumentError("deltas must be convex in exp(epsilon), got a bend downwards; mend the table")
        for name, values in (("epsilons", orders), ("deltas", deltas)):
            kept = values.copy()
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        if (distance > 1).any():
            raise UnsupportedError("a table says nothing of data sets at a distance above 1; wrap it in BlackBoxGroups")
        delta = np.interp(np.exp(np.abs(order)), np.exp(self.epsilons), self.deltas)
        with np.errstate(divide="ignore"):
            return mirrored(order, np.log(delta))

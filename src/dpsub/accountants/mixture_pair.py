"""The papers' pair for samplers that may take a record several times.

Everything computed from it is *per the paper's pair: not a guarantee for the sampler* (see `gaussian_pair`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.accountants.gaussian_pair import LOSS_TOLERANCE, MIN_SCALE, GaussianPair
from dpsub.accountants.tilted import log_tilted_sum
from dpsub.errors import ArgumentError, NumericalError
from dpsub.multiplicity import MultiplicityLaw
from dpsub.relations import Relation

_NODES = 4096
_NEWTON_STEPS = 6


@dataclass(frozen=True, eq=False)
class MixturePair(GaussianPair):
    """X ~ sum_u w_u N(u, s^2) against its mirror image, for any multiplicity law w: WR, MUST and other chains.

    With A(t) = log sum_u w_u e^{-u^2/(2 s^2) + t u/s^2}, L(t) = A(t) - A(-t): odd and strictly increasing.

    Attributes
    ----------
    law : MultiplicityLaw
        w_u = P(L = u), with a positive inclusion probability.
    scale : float
        s >= 0.05, noise scale in units of the shift of one occurrence.

    Raises
    ------
    ArgumentError
        If the law never includes the record.

    References
    ----------
    MUST, Equation (8) and Section S5.
    """

    law: MultiplicityLaw = field(repr=False)
    scale: float
    label: ClassVar[str] = "sum_u w_u N(u, s^2) against sum_u w_u N(-u, s^2)"
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    closed_form: ClassVar[bool] = False
    mirrored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.real("scale", self.scale, at_least=MIN_SCALE))
        if not self.law.eta > 0:
            raise ArgumentError(f"the law must include the record with positive probability, got eta = {self.law.eta}")

    @cached_property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.flatnonzero(np.isfinite(self.law.log_pmf))
        return counts.astype(float), self.law.log_pmf[counts]

    @cached_property
    def _tilted_weights(self) -> np.ndarray:
        counts, log_weights = self.components
        return log_weights - 0.5 * (counts / self.scale) ** 2

    def _loss_and_slope(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = self.components[0]
        tau = t / self.scale**2
        up, mean_up = log_tilted_sum(self._tilted_weights, counts, tau)
        down, mean_down = log_tilted_sum(self._tilted_weights, counts, -tau)
        return up - down, (mean_up + mean_down) / self.scale**2

    def loss(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return self._loss_and_slope(t.ravel())[0].reshape(t.shape)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return self._loss_and_slope(t.ravel())[1].reshape(t.shape)

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        flat = x.ravel()
        half = flat.size // 2
        if flat.size > 1 and np.array_equal(flat[:half], -flat[: -half - 1 : -1]):
            # an accountant's grid is its own mirror image, and the loss is odd
            upper = self._inverse_positive(np.abs(flat[half:]))
            t = np.concatenate([-upper[: -half - 1 : -1], upper])
        else:
            t = np.copysign(self._inverse_positive(np.abs(flat)), flat)
        return t.reshape(x.shape)

    def _inverse_positive(self, x: np.ndarray) -> np.ndarray:
        """Invert the loss for x >= 0: table, cubic Hermite interpolation, Newton steps kept in the table's cell.

        Raises
        ------
        NumericalError
            If the residual stays above `LOSS_TOLERANCE`.
        """
        nodes, table, slope = self._table(self._reach(float(x.max(initial=0.0))))
        cell = np.clip(np.searchsorted(table, x, side="right") - 1, 0, _NODES - 1)
        low, high = nodes[cell], nodes[cell + 1]
        t = np.clip(_hermite(x, table, nodes, 1 / slope, cell), low, high)
        tolerance = LOSS_TOLERANCE * np.maximum(1.0, x)
        for _ in range(_NEWTON_STEPS):
            value, slope_at_t = self._loss_and_slope(t)
            residual = value - x
            if np.all(np.abs(residual) <= tolerance):
                return t
            t = np.clip(t - residual / slope_at_t, low, high)
        worst = float(np.max(np.abs(residual)))
        raise NumericalError(
            f"the loss could not be inverted to {LOSS_TOLERANCE:g}, residual {worst:.3g}; use a scale nearer 1"
        )

    @cached_property
    def _tables(self) -> dict[float, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What `_table` has computed, by reach."""
        return {}

    def _table(self, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points from 0 to `reach`, the loss and its slope there."""
        if reach not in self._tables:
            nodes = np.linspace(0.0, reach, _NODES + 1)
            self._tables[reach] = (nodes, *self._loss_and_slope(nodes))
        return self._tables[reach]

    def _reach(self, largest: float) -> float:
        """A point where the loss is at least `largest`."""
        t = self.scale
        while self.loss(np.array([t]))[0] < largest:
            t *= 1.5
        return t

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        return 1 / self.loss_slope(self.inverse_loss(x))

    def loss_density(self, x: np.ndarray) -> np.ndarray:
        t = self.inverse_loss(x)
        return np.exp(self.log_density(t)) / self.loss_slope(t)


def _hermite(x: np.ndarray, at: np.ndarray, value: np.ndarray, slope: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Cubic Hermite interpolation of (at, value, slope) at x, x in [at[cell], at[cell + 1]]."""
    width = at[cell + 1] - at[cell]
    v = (x - at[cell]) / width
    w = 1 - v
    return (value[cell] * w * w * (1 + 2 * v) + value[cell + 1] * v * v * (3 - 2 * v)
            + width * v * w * (slope[cell] * w - slope[cell + 1] * v))  # fmt: skip

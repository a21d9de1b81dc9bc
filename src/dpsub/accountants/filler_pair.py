"""The pair of the static attack: one record at +C among fillers at -C, against fillers alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.accountants.gaussian_pair import LOSS_TOLERANCE, GaussianPair
from dpsub.accountants.tilted import log_tilted_sum
from dpsub.errors import ArgumentError, NumericalError
from dpsub.multiplicity import MultiplicityLaw
from dpsub.relations import Relation

_NODES = 4096
_NEWTON_STEPS = 8


@dataclass(frozen=True, eq=False)
class FillerPair(GaussianPair):
    """X ~ sum_l p_l N(l, s^2) against X' ~ N(0, s^2).

    The sum of m clipped records of D = (+C, -C, ..., -C) and D' = (-C, ..., -C), from which the record is drawn l times
    with probability p_l, differs by 2 l C: with noise multiplier sigma / C this pair has scale s = sigma / (2 C).

    The loss L(t) = log sum_l p_l e^{l t / s^2 - l^2 / (2 s^2)} increases from log p_0.  It is inverted through
    R(t) = log sum_{l >= 1} p_l e^{...} = log(e^L - p_0), whose slope is at least 1 / s^2 everywhere.

    Attributes
    ----------
    law : MultiplicityLaw
        Of positive inclusion probability; its sum may fall short of 1 by what was trimmed.
    scale : float
        Noise scale in units of the shift of one occurrence, above 0.
    """

    law: MultiplicityLaw
    scale: float
    label: ClassVar[str] = "sum_l p_l N(l, s^2) against N(0, s^2)"
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    closed_form: ClassVar[bool] = False
    mirrored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.real("scale", self.scale, above=0))
        if not self.law.eta > 0:
            raise ArgumentError(f"the law must include the record with positive probability, got eta = {self.law.eta}")

    @cached_property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.flatnonzero(np.isfinite(self.law.log_pmf))
        return counts.astype(float), self.law.log_pmf[counts]

    @property
    def loss_floor(self) -> float:
        return float(self.law.log_pmf[0])

    def _included(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R(t) and its slope, for flat t."""
        counts, log_weights = self.components
        drawn = counts > 0
        tilted = log_weights[drawn] - 0.5 * (counts[drawn] / self.scale) ** 2
        value, mean = log_tilted_sum(tilted, counts[drawn], t / self.scale**2)
        return value, mean / self.scale**2

    def loss(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return np.logaddexp(self._included(t.ravel())[0], self.loss_floor).reshape(t.shape)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        value, slope = self._included(t.ravel())
        return (slope * np.exp(value - np.logaddexp(value, self.loss_floor))).reshape(t.shape)

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        height = np.maximum(x.ravel() - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            goal = x.ravel() + np.log(-np.expm1(-height))
        t = np.full(goal.shape, -np.inf)
        inside = np.isfinite(goal)
        if inside.any():
            t[inside] = self._solved(goal[inside])
        return t.reshape(x.shape)

    def _solved(self, goal: np.ndarray) -> np.ndarray:
        """R^-1, by a table and Newton steps kept in its cells.

        R is convex with slope at least 1 / s^2, which bounds where the goals can lie.
        """
        low, high = self._bracket(float(goal.min()), float(goal.max()))
        nodes = np.linspace(low, high, _NODES + 1)
        table, _ = self._included(nodes)
        cell = np.clip(np.searchsorted(table, goal, side="right") - 1, 0, _NODES - 1)
        left, right = nodes[cell], nodes[cell + 1]
        t = np.clip(np.interp(goal, table, nodes), left, right)
        tolerance = LOSS_TOLERANCE * np.maximum(1.0, np.abs(goal))
        for _ in range(_NEWTON_STEPS):
            value, slope = self._included(t)
            residual = value - goal
            if np.all(np.abs(residual) <= tolerance):
                return t
            t = np.clip(t - residual / slope, left, right)
        worst = float(np.max(np.abs(residual)))
        raise NumericalError(
            f"the loss could not be inverted to {LOSS_TOLERANCE:g}, residual {worst:.3g}; use a scale nearer 1"
        )

    def _bracket(self, smallest: float, largest: float) -> tuple[float, float]:
        low, high = 0.0, self.scale
        while self._included(np.array([low]))[0][0] > smallest:
            low = 1.5 * low - self.scale
        while self._included(np.array([high]))[0][0] < largest:
            high = 1.5 * high + self.scale
        return low, high

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return 1 / self.loss_slope(self.inverse_loss(x))

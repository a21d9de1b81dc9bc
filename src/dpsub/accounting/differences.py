"""The worst law of X - a X' in one step, and means of several of them (docs/accounting.md, Lemma 60
and Theorem 61).

X and X' are the likelihood ratios of a step that holds the differing record, as it is in either
data set, and of one that holds another record. No three vectors spread X - a X' more than the law
here, which has the positive part of one triple and the negative part of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpsub.accounting.cell_masses import normal_masses
from dpsub.accounting.compose import ComposedLoss, TiltedSum, minimum
from dpsub.accounting.pld import PrivacyLossDistribution

_EPS = float(np.finfo(float).eps)
_CELLS_A_DEVIATION = 8
_FARTHEST = 7.2  # deviations to which X is followed; what lies beyond is charged, 1e-12 or so
_MOST_CELLS = 2**14  # of either sign
_OFF = 1e-12
"""Relative error allowed for the value of X - a X' at an edge, a few roundings of both terms."""


class PositivePart(NamedTuple):
    """(c e_f - c' e_(f - d))_+ for N(0, 1), e_u(t) = exp(u t - u^2/2), f = d or 2 d, on a grid."""

    masses: np.ndarray  # moved to the ends of cells, without those of 0
    zero: float  # what cells of positive values move to 0
    positive: float  # P(> 0)
    beyond: float  # mean of what exceeds the last point of the grid


@dataclass(frozen=True)
class Differences:
    """The law Z of Lemma 60 at one order: positive values are those of e_f - a e_(f - d), negative
    ones those of -(a e_g - e_(g - d)), lengths in units of the noise.

    Parameters
    ----------
    order : float
        a >= 1.
    apart : float
        d, the distance of the two vectors of the differing record.
    ahead, behind : float
        f and g, d or 2 d: how far the record's vector in the first, and in the second data set is
        from that of another record.
    """

    order: float
    apart: float
    ahead: float
    behind: float

    @cached_property
    def step(self) -> float:
        """Of the grid of values."""
        return max(self._deviation / _CELLS_A_DEVIATION, self._farthest / _MOST_CELLS)

    @property
    def is_covered(self) -> bool:
        """Whether the grid tells values apart that are a deviation from each other."""
        return self.step <= self._deviation

    @property
    def _deviation(self) -> float:
        f = max(self.ahead, self.behind)
        g = f - self.apart
        # of e_f - e_g, whatever the order
        return math.sqrt(math.exp(f * f) + math.exp(g * g) - 2 * math.exp(f * g))

    @property
    def _farthest(self) -> float:
        f = max(self.ahead, self.behind)
        # beyond 600 no order is covered
        return self.order * math.exp(min(f * (_FARTHEST + f / 2), 600.0))

    def _part(self, factor: float, other: float, f: float) -> PositivePart:
        """Of (factor e_f - other e_(f - d))_+."""
        d, h = self.apart, self.step
        double = f > 1.5 * d
        farthest = f + _FARTHEST
        last = factor * math.exp(f * farthest - f * f / 2)
        values = h * np.arange(math.ceil(last / h) + 2)
        if double:
            # e_2d = e_d^2 exp(-d^2): a quadratic equation for e_d
            shrunk = factor * math.exp(-d * d)
            single = (other + np.sqrt(other * other + 4 * shrunk * values)) / (2 * shrunk)
        else:
            single = (other + values) / factor
        edges = np.log(single) / d + d / 2
        # of cells with positive values; f - d may be 0
        at = {mean: [part[1:] for part in normal_masses(edges, mean)] for mean in {0.0, f, f - d}}
        (p, p_error), (moved, moved_error), (near, near_error) = at[0.0], at[f], at[f - d]
        mean = factor * moved - other * near
        error = factor * (moved_error + 4 * _EPS * moved) + other * (near_error + 4 * _EPS * near)
        error += values * (p_error + 4 * _EPS * p)
        # the excess over the lower end of the cell decides what goes to the upper one
        excess = mean - values * p
        up = np.clip(excess[:-1] / h, 0.0, p[:-1])
        charge = error[:-1] / h + p_error[:-1]
        masses = np.zeros(values.size)
        masses[1:] += up + charge
        masses[:-1] += p[:-1] - up + charge
        # what is beyond the last point is moved down to it, and its excess charged
        masses[-1] += p[-1] + p_error[-1]
        beyond = max(float(excess[-1]), 0.0) + float(error[-1])
        return PositivePart(masses[1:], float(masses[0]), float(p.sum()), beyond)

    @cached_property
    def _law(self) -> tuple[PrivacyLossDistribution, float]:
        """Masses on the grid from above, and what is charged to the mean of each."""
        a = self.order
        ahead, behind = self._part(1.0, a, self.ahead), self._part(a, 1.0, self.behind)
        zero = ahead.zero + behind.zero + max(1 - ahead.positive - behind.positive, 0.0)
        masses = np.concatenate([behind.masses[::-1], [zero + 64 * _EPS], ahead.masses])
        indices = np.arange(-behind.masses.size, ahead.masses.size + 1)
        law = PrivacyLossDistribution(self.step, indices, masses, "upper")
        # negative values that are moved up need no charge
        return law, ahead.beyond + _OFF * (1 + 2 * a)

    @property
    def charge(self) -> float:
        """Charged to the mean for floating point and for values beyond the grid."""
        return self._law[1]

    def mean_above_zero(self, count: int) -> float:
        """Upper bound of the mean of the positive part of the mean of `count` independent ones."""
        law, charge = self._law
        total = ComposedLoss([law], [count])
        cumulants = total.cumulants
        unit = -math.log(cumulants.moments(0.0)[1]) / 2
        # x <= e^(tilt x) / (e tilt): the tilt with the smallest bound by it
        log_tilt, _ = minimum(lambda u: cumulants(math.exp(u)) - u, unit - 9, unit + 5, 0.05)
        return (_above_zero(total.masses(math.exp(log_tilt))) + count * charge) / count


def _above_zero(total: TiltedSum) -> float:
    """Upper bound of the mean of the positive part of a sum."""
    first = max(total.start, 1)
    x = total.step * np.arange(first, total.end)
    weights = x * np.exp(-total.tilt * x)
    seen = np.maximum(total.values[first - total.start :], 0.0)
    norm = math.sqrt(np.einsum("i,i", weights, weights))
    # beyond the window no weight exceeds 1 / (e tilt); what comes back into it only adds
    value = float(np.einsum("i,i", weights, seen)) + norm * total.round_off
    value += total.tail / (math.e * total.tilt)
    size = 4 + abs(total.log_scale) + total.tilt * float(x[-1]) if x.size else 4.0
    rounding = _EPS * (8 * total.values.size + 16 * size)
    return value * math.exp(total.log_scale) * (1 + rounding)

"""Exponential tilts of a sum of losses: where to look, and how much lies beyond."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub.accountants.loss_law import LossLaw

_MOST_PER_STEP = 20.0
"""Largest tilt, times the step: neighbouring points then differ by a factor that round-off does not swallow."""


@dataclass(frozen=True, eq=False)
class Cumulants:
    """The cumulant function of a sum of independent losses, n_compositions[t] of them with law laws[t].

    All values are for finite losses without offsets.
    """

    laws: Sequence[LossLaw]
    n_compositions: Sequence[int]

    def __call__(self, tilt: float) -> float:
        """K(tilt) = sum over t of n_t log E e^{tilt L_t}."""
        return sum(k * law.log_mgf(tilt) for law, k in zip(self.laws, self.n_compositions, strict=True))

    @cached_property
    def support(self) -> tuple[int, int]:
        """Smallest and largest index of the sum on the grid."""
        low = sum(k * law.support[0] for law, k in zip(self.laws, self.n_compositions, strict=True))
        high = sum(k * law.support[1] for law, k in zip(self.laws, self.n_compositions, strict=True))
        return low, high

    def moments(self, tilt: float) -> tuple[list[float], float]:
        """Mean of each single loss and variance of the sum, under the tilt."""
        pairs = [law.moments(tilt) for law in self.laws]
        variance = sum(k * v for (_, v), k in zip(pairs, self.n_compositions, strict=True))
        return [mean for mean, _ in pairs], variance

    def tilt_at_epsilon(self, epsilon: float) -> float:
        """The tilt that makes the Chernoff bound K(tilt) - tilt epsilon of P(S >= epsilon) smallest; 0 left of the
        mean."""
        return _best(lambda tilt: self(tilt) - tilt * epsilon, self._scale, self._largest)

    def tilt_at_delta(self, log_delta: float) -> float:
        """The tilt with the smallest epsilon that the Chernoff bound allows at the given delta."""
        return _best(lambda tilt: (self(tilt) - log_delta) / tilt, self._scale, self._largest)

    @cached_property
    def _scale(self) -> float:
        return 1 / max(np.sqrt(self.moments(0.0)[1]), 1e-12)

    @property
    def _largest(self) -> float:
        return min(_MOST_PER_STEP / self.laws[0].step, 1e4 * self._scale)

    def reach(self, tilt: float, log_tail: float) -> tuple[float, float]:
        """Return (low, high) such that the tilted sum lies below low, and above high, with log probability <= log_tail.

        The tilted law is the one of density e^{tilt S - K(tilt)}; each end by Chernoff's bound with its best exponent.
        Any exponent gives a valid end, so the search for the best one needs no certificate.
        """
        base, step = self(tilt), self.laws[0].step
        scale = 1 / max(np.sqrt(self.moments(tilt)[1]), step)

        def high(log_theta: float) -> float:
            theta = float(np.exp(log_theta))
            return (self(tilt + theta) - base - log_tail) / theta

        def low(log_theta: float) -> float:
            theta = float(np.exp(log_theta))
            return (self(tilt - theta) - base - log_tail) / theta

        bounds = (float(np.log(scale * 1e-2)), float(np.log(scale * 1e3)))
        below, above = (minimum(side, *bounds, 0.02)[1] for side in (low, high))
        smallest, largest = self.support
        return max(-below, (smallest - 0.5) * step), min(above, (largest + 0.5) * step)


def _best(exponent: Callable[[float], float], scale: float, largest: float) -> float:
    """Minimise over tilts in (0, largest) on a logarithmic axis; 0 if the smallest tilt is the best."""
    high = float(np.log(largest))
    low = min(float(np.log(scale * 1e-6)), high - 1)
    place, _ = minimum(lambda u: exponent(float(np.exp(u))), low, high, 0.01)
    return 0.0 if place < low + 0.1 else float(np.exp(place))


def minimum(value: Callable[[float], float], low: float, high: float, accuracy: float) -> tuple[float, float]:
    """Where a function falls and then rises, by golden sections, and its value there."""
    shrink = (math.sqrt(5) - 1) / 2
    left, right = high - shrink * (high - low), low + shrink * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > accuracy:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - shrink * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + shrink * (high - low)
            at_right = value(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)

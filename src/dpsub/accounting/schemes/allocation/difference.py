"""The difference of two likelihood ratios of one output (docs/proofs/allocation.md, Theorem 79)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

_NARROW = 10.0  # smallest value of a grid, over its largest one: smaller ones hardly ever count
_RAREST = 1e-300  # what may be left beyond a grid, at least


@dataclass(frozen=True)
class Difference:
    """Z = e_f - a e_g, e_u(x) = exp(u x - u^2/2), x ~ N(0, 1), f > g: it rises with x.

    Parameters
    ----------
    order : float
        a >= 1.
    ahead, behind : float
        f >= 0 and g <= 0: one of them 0, or g = -f.
    """

    order: float
    ahead: float
    behind: float

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        f, g, a = self.ahead, self.behind, self.order
        own, other, both = (math.expm1(min(u * v, 600.0)) for u, v in ((f, f), (g, g), (f, g)))
        return math.sqrt(own + a * a * other - 2 * a * both)

    def ends(self, unseen: float) -> tuple[float, float]:
        """Return values beyond which there is little: `unseen` on average above, about, and below
        those that are as rare."""
        rare = max(-float(ndtri(min(max(unseen, _RAREST), 0.25))), 1.0)
        highest = max(self.value(self.ahead + rare), 1e-3)
        return max(self.value(-rare), -_NARROW * highest), highest

    def value(self, x: float) -> float:
        """Return Z at an output."""
        f, g = self.ahead, self.behind
        return math.exp(f * x - f * f / 2) - self.order * math.exp(g * x - g * g / 2)

    def places(self, values: np.ndarray) -> np.ndarray:
        """Return where Z has these values; infinite ones beyond all that it has."""
        f, g, a = self.ahead, self.behind, self.order
        with np.errstate(divide="ignore", invalid="ignore"):
            if f == 0.0:
                return np.asarray(np.log(np.maximum(1 - values, 0.0) / a) / g + g / 2)
            if g == 0.0:
                return np.asarray(np.log(np.maximum(a + values, 0.0)) / f + f / 2)
            # a quadratic equation for e^(f x), whose positive root is a sum of positive terms
            shrunk = math.exp(-f * f / 2)
            root = np.sqrt(values * values + 4 * a * shrunk * shrunk)
            raised = np.where(
                values >= 0, (values + root) / (2 * shrunk), 2 * a * shrunk / (root - values)
            )
            return np.asarray(np.log(raised) / f)

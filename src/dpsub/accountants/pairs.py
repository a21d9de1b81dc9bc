"""The papers' pairs: Poisson, sampling without replacement, and any multiplicity law (WR, MUST, ...).

Everything computed from them is *per the paper's pair: not a guarantee for the sampler* (see `gaussian_pair`).

References
----------
MUST, Section 3.4 (Equation 8) and Sections S5 and S6 of its supplement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from dpsub import checks
from dpsub.accountants.gaussian_pair import MIN_SCALE, GaussianPair
from dpsub.accountants.mixture_pair import MixturePair
from dpsub.relations import Relation

__all__ = ["GaussianPair", "MixturePair", "PoissonPair", "WorPair"]

_LARGEST_EXPONENT = 300.0
"""Its exponential and that of half a loss have a product that doubles can hold."""


def _check_rate_and_scale(pair: PoissonPair | WorPair) -> None:
    object.__setattr__(pair, "rate", checks.real("rate", pair.rate, above=0, at_most=1))
    object.__setattr__(pair, "scale", checks.real("scale", pair.scale, at_least=MIN_SCALE))


@dataclass(frozen=True)
class PoissonPair(GaussianPair):
    """X ~ q N(1, s^2) + (1 - q) N(0, s^2) against X' ~ N(0, s^2): the paper's pair for Poisson sampling.

    L(t) = log(q e^{(2t - 1) / (2 s^2)} + 1 - q), with values in (log(1 - q), inf).  Under add/remove both directions
    would have to be composed; the paper uses this one only.

    Attributes
    ----------
    rate : float
        q, the inclusion probability, in (0, 1]; q = 1 is the Gaussian mechanism itself.
    scale : float
        s >= 0.05, noise scale in units of the shift of one occurrence.

    References
    ----------
    MUST, Section S6.
    """

    rate: float
    scale: float
    label: ClassVar[str] = "q N(1, s^2) + (1 - q) N(0, s^2) against N(0, s^2), one direction"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    closed_form: ClassVar[bool] = True
    mirrored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_rate_and_scale(self)

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        return _zero_and_one(self.rate)

    @property
    def loss_floor(self) -> float:
        return -np.inf if self.rate == 1 else float(np.log1p(-self.rate))

    def loss(self, t: np.ndarray) -> np.ndarray:
        z = (2 * np.asarray(t, dtype=float) - 1) / (2 * self.scale**2)
        change = self.rate * np.expm1(np.minimum(z, 700.0))
        # log1p keeps small losses exact; where the argument nears -1 or grows, the sum of two positive terms does
        return np.where((z <= 1) & (change > -0.5), np.log1p(np.maximum(change, -0.5)),
                        np.logaddexp(np.log(self.rate) + z, self.loss_floor))  # fmt: skip

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        z = (2 * np.asarray(t, dtype=float) - 1) / (2 * self.scale**2)
        return np.exp(np.log(self.rate) + z - np.logaddexp(np.log(self.rate) + z, self.loss_floor)) / self.scale**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        height = np.maximum(x - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            # e^x - (1 - q) = e^x (1 - e^{-height}): no difference of nearly equal numbers
            return self.scale**2 * (x + np.log(-np.expm1(-height)) - np.log(self.rate)) + 0.5

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        height = np.maximum(np.asarray(x, dtype=float) - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            return self.scale**2 / -np.expm1(-height)


@dataclass(frozen=True)
class WorPair(GaussianPair):
    """X ~ q N(1, s^2) + (1 - q) N(0, s^2) against its mirror image: the paper's pair for sampling without replacement.

    With p = 1 - q and c = q e^{-1 / (2 s^2)}, L(t) = log((c e^{t/s^2} + p) / (c e^{-t/s^2} + p)), an odd function onto
    the whole line.  Its inverse in conjugate form is t = s^2 (x/2 + arcsinh((p/c) sinh(x/2))).

    Attributes
    ----------
    rate : float
        q = m/n, in (0, 1].
    scale : float
        s >= 0.05, noise scale in units of the shift of one occurrence.

    References
    ----------
    MUST, Section S6.
    """

    rate: float
    scale: float
    label: ClassVar[str] = "q N(1, s^2) + (1 - q) N(0, s^2) against q N(-1, s^2) + (1 - q) N(0, s^2)"
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    closed_form: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_rate_and_scale(self)

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        return _zero_and_one(self.rate)

    @property
    def _log_ratio(self) -> float:
        """log(c / p); inf at q = 1."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.rate) - np.log1p(-self.rate) - 0.5 / self.scale**2)

    def loss(self, t: np.ndarray) -> np.ndarray:
        tau = np.asarray(t, dtype=float) / self.scale**2
        a = np.abs(tau)
        if self.rate == 1:
            return 2 * tau
        # (e^L - 1) = 2 c sinh(a) / (c e^{-a} + p): exact for small losses; in logs where sinh would overflow
        small = np.minimum(a, 1.0)
        ratio = np.exp(self._log_ratio)
        near = np.log1p(2 * ratio * np.sinh(small) / (ratio * np.exp(-small) + 1))
        far = np.logaddexp(self._log_ratio + a, 0.0) - np.log1p(ratio * np.exp(-a))
        return np.copysign(np.where(a <= 1, near, far), tau)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        tau = np.asarray(t, dtype=float) / self.scale**2
        # each term is the posterior weight of one occurrence, seen from t and from -t
        return (expit(self._log_ratio + tau) + expit(self._log_ratio - tau)) / self.scale**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        if self._log_ratio > -_LARGEST_EXPONENT:
            return self.scale**2 * (x / 2 + np.arcsinh(np.exp(-self._log_ratio) * np.sinh(x / 2)))
        # where (p/c) overflows, arcsinh(y) = log(2 y) for all y that matter
        with np.errstate(divide="ignore"):
            height = np.log(-np.expm1(-np.abs(x))) + np.abs(x) / 2 - self._log_ratio
        return self.scale**2 * (x / 2 + np.copysign(np.maximum(height, 0.0), x))

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        ratio = np.exp(-self._log_ratio)
        return self.scale**2 / 2 * (1 + ratio * np.cosh(x / 2) / np.hypot(1.0, ratio * np.sinh(x / 2)))


def _zero_and_one(rate: float) -> tuple[np.ndarray, np.ndarray]:
    if rate == 1:
        return np.ones(1), np.zeros(1)
    return np.array([0.0, 1.0]), np.array([np.log1p(-rate), np.log(rate)])

"""Losses of records under Poisson importance sampling, in both directions and in the log domain.

A mechanism has the profile eps(w, x) if adding (w, x) changes no probability by more than a factor
e^eps. A record x with probability q and weight 1/q has, with eps = eps(1/q, x), the loss
log(1 + q (e^eps - 1)) of present over absent, and -log(1 - q + q e^-eps) of absent over present.
The first is never smaller than the second (docs/importance.md, Theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.divergences.mixtures import mixture_loss
from dpsub.errors import ArgumentError
from dpsub.noise.base import nonnegative

MOST = 10**9
"""Largest number of rows, columns, rounds and clusters."""
_LARGE = 30.0  # nats; larger losses are computed in logarithms, where nothing overflows
_UNITS = 1e30
_RAREST = 1e-100


def moderate(name: str, value: object) -> float:
    """Return a target, length or noise scale from 1e-30 to 1e30, else raise ArgumentError.

    Their powers and quotients are finite doubles.
    """
    return checks.real(name, checks.real(name, value, above=0), at_least=1 / _UNITS, at_most=_UNITS)


def checked_lengths(name: str, value: ArrayLike) -> np.ndarray:
    """Return lengths of records from 0 to 1e30 as an array, else raise ArgumentError."""
    array = nonnegative(name, value)
    checks.real(name, array.max(initial=0.0), at_most=_UNITS)
    return array


def log_expm1(x: ArrayLike) -> np.ndarray:
    """Return log(e^x - 1) for x >= 0, of any size; -inf at 0."""
    value = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore"):
        small = np.log(np.expm1(np.minimum(value, _LARGE)))
    # x + log(1 - e^-x), which never overflows
    large = value + np.log1p(-np.exp(-np.maximum(value, _LARGE)))
    return np.where(value > _LARGE, large, small)[()]


def inclusion(q: ArrayLike) -> np.ndarray:
    """Return inclusion probabilities in (0, 1] as an array, else raise ArgumentError.

    A record that is never drawn has no weight.
    """
    rates = checks.finite_array("inclusion probabilities", q)
    if rates.size and not (rates.min() >= _RAREST and rates.max() <= 1):
        raise ArgumentError(
            f"inclusion probabilities must be in (0, 1], got {rates.min():g} to "
            f"{rates.max():g}; leave out records that are sampled never or below {_RAREST:g}, "
            "and lower m where a probability exceeds 1"
        )
    return rates


def loss_when_removed(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return log(1 + q (e^eps - 1)), the largest log-ratio of present to absent.

    `epsilon` is eps(1/q, x) >= 0 in nats, and q is in (0, 1]; they broadcast (importance, Theorem 6
    and Proposition 3).
    """
    loss, rate = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    return mixture_loss(loss, rate)[()]


def loss_when_added(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return -log(1 - q + q e^-eps), the largest log-ratio of absent to present."""
    loss, rate = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    small = -np.log1p(rate * np.expm1(-np.minimum(loss, 1.0)))
    # At large losses the argument of the logarithm above would be a difference of numbers near 1;
    # 1 - q and q e^-eps keep their digits in a sum of logarithms.
    with np.errstate(divide="ignore"):
        large = -np.logaddexp(np.log1p(-rate), np.log(rate) - loss)
    return np.where(loss > 1, large, small)[()]


def base_order(epsilon: np.ndarray, q: float | np.ndarray) -> np.ndarray:
    """log(1 + (e^eps - 1) / q) for eps >= 0 of any size.

    delta after sampling at eps is q times that of the mechanism at this order.
    """
    small = np.log1p(np.expm1(np.minimum(epsilon, _LARGE)) / q)
    large = np.logaddexp(0.0, log_expm1(epsilon) - np.log(q))
    return np.where(epsilon > _LARGE, large, small)


@dataclass(frozen=True, eq=False)
class Power:
    """Profile eps(w, x) = c(x) w^exponent of n records.

    `scales` are c(x) = eps(1, x) >= 0 in nats, shape (n,). The exponent is 1 for additive noise on
    sums, and 0 for a mechanism that ignores weights.
    """

    scales: np.ndarray
    exponent: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", np.atleast_1d(checked_lengths("scales", self.scales)))
        object.__setattr__(self, "exponent", checks.real("exponent", self.exponent, at_least=0))

    def loss(self, weights: np.ndarray) -> np.ndarray:
        """eps(w_i, x_i) in nats, shape (n,), at weights of shape (n,)."""
        # NaN and infinity are refused where the loss is used.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.scales * weights**self.exponent

    def sampled(self, q: ArrayLike) -> np.ndarray:
        """psi(x_i): the profile after sampling with probabilities q and weights 1/q, shape (n,)."""
        rates = np.broadcast_to(inclusion(q), self.scales.shape)
        return loss_when_removed(self.loss(1 / rates), rates)

    def sampling_helps(self) -> np.ndarray:
        """Whether some q < 1 lowers the loss, eps'(1) < 1 - e^-eps(1), shape (n,).

        See importance, Proposition 16.
        """
        return np.asarray(self.exponent * self.scales < -np.expm1(-self.scales))

    def sampling_never_helps(self) -> bool:
        """Whether no sampling lowers any loss, eps(w) <= w eps'(w) for all w.

        See importance, Proposition 17.
        """
        return self.exponent >= 1

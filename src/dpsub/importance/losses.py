"""Losses of records under Poisson importance sampling, in both directions and in the log domain.

A mechanism has the profile eps(w, x) if adding (w, x) changes no probability by more than a factor
e^eps. A record x of probability q and weight 1/q has the loss log(1 + q (e^eps - 1)), present over
absent, and -log(1 - q + q e^-eps), absent over present, eps = eps(1/q, x); the first is never the
smaller one (docs/importance.md, Theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.noise.base import nonnegative

MOST = 10**9  # of rows, columns, rounds and clusters
_LARGE = 30.0  # e^-x is below the rounding of 1 + ... from here on
_UNITS = 1e30
_RAREST = 1e-100


def moderate(name: str, value: object) -> float:
    """Return a target, length or noise scale above 0, from 1e-30 to 1e30: powers and quotients of
    them are doubles."""
    return checks.real(name, checks.real(name, value, above=0), at_least=1 / _UNITS, at_most=_UNITS)


def checked_lengths(name: str, value: ArrayLike) -> np.ndarray:
    """Return lengths of records as an array: at least 0, at most 1e30."""
    array = nonnegative(name, value)
    checks.real(name, array.max(initial=0.0), at_most=_UNITS)
    return array


def log_expm1(x: ArrayLike) -> np.ndarray:
    """Return log(e^x - 1) for x >= 0, of any size; -inf at 0."""
    value = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore"):
        small = np.log(np.expm1(np.minimum(value, _LARGE)))
    return np.where(value > _LARGE, value + np.log1p(-np.exp(-np.maximum(value, _LARGE))), small)[
        ()
    ]


def inclusion(q: ArrayLike) -> np.ndarray:
    """Return inclusion probabilities as an array; ArgumentError outside (0, 1]: what is never drawn
    has no weight."""
    chances = checks.finite_array("inclusion probabilities", q)
    if chances.size and not (chances.min() >= _RAREST and chances.max() <= 1):
        raise ArgumentError(
            f"inclusion probabilities must be in (0, 1], got {chances.min():g} to "
            f"{chances.max():g}; leave out records that are sampled never or below {_RAREST:g}, "
            "and lower m where a probability exceeds 1"
        )
    return chances


def loss_when_removed(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return log(1 + q (e^eps - 1)): how much likelier an output is with the record than without
    it, at most. `epsilon` is eps(1/q, x) >= 0 in nats, q in (0, 1]; they broadcast (importance,
    Theorem 6 and Proposition 3)."""
    loss, chance = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    small = np.log1p(chance * np.expm1(np.minimum(loss, _LARGE)))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(np.log1p(-chance), np.log(chance) + loss)
    return np.where(loss > _LARGE, large, small)[()]


def loss_when_added(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return -log(1 - q + q e^-eps): how much likelier an output is without the record than with
    it, at most."""
    loss, chance = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    small = -np.log1p(chance * np.expm1(-np.minimum(loss, 1.0)))
    # at large losses 1 - q and q e^-eps are what is left of numbers near 1
    with np.errstate(divide="ignore"):
        large = -np.logaddexp(np.log1p(-chance), np.log(chance) - loss)
    return np.where(loss > 1, large, small)[()]


def base_order(epsilon: np.ndarray, q: float | np.ndarray) -> np.ndarray:
    """log(1 + (e^eps - 1) / q), eps >= 0 of any size: delta after sampling is q times that of the
    mechanism there."""
    usual = np.log1p(np.expm1(np.minimum(epsilon, _LARGE)) / q)
    return np.where(epsilon > _LARGE, np.logaddexp(0.0, log_expm1(epsilon) - np.log(q)), usual)


@dataclass(frozen=True, eq=False)
class Power:
    """eps(w, x) = c(x) w^exponent, the profile of n records of `scales` c(x) = eps(1, x) >= 0,
    nats, shape (n,); exponent 1 is additive noise on sums, 0 ignores weights."""

    scales: np.ndarray
    exponent: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", np.atleast_1d(checked_lengths("scales", self.scales)))
        object.__setattr__(self, "exponent", checks.real("exponent", self.exponent, at_least=0))

    def loss(self, weights: np.ndarray) -> np.ndarray:
        """eps(w_i, x_i) in nats, shape (n,), at weights of shape (n,)."""
        # what is no number is refused where it is used
        with np.errstate(over="ignore", invalid="ignore"):
            return self.scales * weights**self.exponent

    def sampled(self, q: ArrayLike) -> np.ndarray:
        """psi(x_i): the profile after sampling with probabilities q and weights 1/q, shape (n,)."""
        chance = np.broadcast_to(inclusion(q), self.scales.shape)
        return loss_when_removed(self.loss(1 / chance), chance)

    def sampling_helps(self) -> np.ndarray:
        """Whether eps'(1) < 1 - e^-eps(1), so that some q < 1 lowers the loss, shape (n,)
        (Proposition 16)."""
        return np.asarray(self.exponent * self.scales < -np.expm1(-self.scales))

    def sampling_never_helps(self) -> bool:
        """Whether eps(w) <= w eps'(w) for all w, so that no sampling lowers any loss (Proposition
        17)."""
        return self.exponent >= 1

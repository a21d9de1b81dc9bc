"""Personalised losses under Poisson importance sampling, in both directions and in the log domain.

A mechanism on weighted records has the profile eps(w, x) if adding (w, x) changes no probability by more than a factor
e^eps.  If x is included with probability q and then weighs 1/q, its loss becomes

    present over absent:  log(1 + q (e^eps - 1)),
    absent over present:  -log(1 - q + q e^-eps),

with eps = eps(1/q, x); the first is never the smaller one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.noise.base import nonnegative

_LARGE = 30.0  # e^-x is below the rounding of 1 + ... from here on


def log_expm1(x: ArrayLike) -> np.ndarray:
    """Return log(e^x - 1) for x >= 0, of any size; -inf at 0."""
    value = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore"):
        small = np.log(np.expm1(np.minimum(value, _LARGE)))
    return np.where(value > _LARGE, value + np.log1p(-np.exp(-np.maximum(value, _LARGE))), small)[()]


def inclusion(q: ArrayLike) -> np.ndarray:
    """Return inclusion probabilities as an array.

    Raises
    ------
    ArgumentError
        If one is NaN or outside (0, 1]: a record that is never included has no weight.
    """
    chances = checks.finite_array("inclusion probabilities", q)
    if chances.size and not (chances.min() > 0 and chances.max() <= 1):
        raise ArgumentError(
            f"inclusion probabilities must be in (0, 1], got {chances.min():g} to {chances.max():g}; "
            "leave out records that are never sampled, and lower m where a probability exceeds 1"
        )
    return chances


def loss_when_removed(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return log(1 + q (e^eps - 1)): how much likelier an output is with the record than without it, at most.

    Parameters
    ----------
    epsilon : array_like
        eps(1/q, x) >= 0, nats; broadcasts with q.
    q : array_like
        Inclusion probabilities in (0, 1].

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    importance, Theorem 6; with eps that does not depend on the weight, Proposition 3.
    """
    loss, chance = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    small = np.log1p(chance * np.expm1(np.minimum(loss, _LARGE)))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(np.log1p(-chance), np.log(chance) + loss)
    return np.where(loss > _LARGE, large, small)[()]


def loss_when_added(epsilon: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Return -log(1 - q + q e^-eps): how much likelier an output is without the record than with it, at most.

    Arguments and errors as in :func:`loss_when_removed`.
    """
    loss, chance = np.broadcast_arrays(nonnegative("epsilon", epsilon), inclusion(q))
    small = -np.log1p(chance * np.expm1(-np.minimum(loss, 1.0)))
    # at large losses 1 - q and q e^-eps are what is left of numbers near 1
    with np.errstate(divide="ignore"):
        large = -np.logaddexp(np.log1p(-chance), np.log(chance) - loss)
    return np.where(loss > 1, large, small)[()]


def loss_when_replaced(
    epsilon: ArrayLike, q: ArrayLike, other_epsilon: ArrayLike, other_q: ArrayLike
) -> np.ndarray:
    """Bound the loss when a record (epsilon, q) becomes another: removing the one and adding the other."""
    return loss_when_removed(epsilon, q) + loss_when_added(other_epsilon, other_q)


def loss_of_group(epsilon: ArrayLike, q: ArrayLike) -> float:
    """Bound the loss when all these records are removed: records are included independently, so losses add up."""
    return float(np.sum(loss_when_removed(epsilon, q)))


class PersonalisedProfile(abc.ABC):
    """eps(w, x) of n records as a function of their weights w >= 1; arrays of shape (n,)."""

    @abc.abstractmethod
    def loss(self, weights: np.ndarray) -> np.ndarray:
        """eps(w_i, x_i) in nats, shape (n,)."""

    @abc.abstractmethod
    def slope(self, weights: np.ndarray) -> np.ndarray:
        """Its derivative with respect to w_i, shape (n,)."""

    @property
    @abc.abstractmethod
    def n(self) -> int:
        """Number of records."""

    def sampled(self, q: ArrayLike) -> np.ndarray:
        """psi(x_i): the profile after sampling with probabilities q and weights 1/q, shape (n,)."""
        chance = np.broadcast_to(inclusion(q), (self.n,))
        return loss_when_removed(self.loss(1 / chance), chance)

    def sampling_helps(self) -> np.ndarray:
        """Whether eps'(1) < 1 - e^-eps(1), so that some q < 1 lowers the loss, shape (n,).

        References
        ----------
        importance, Proposition 16.
        """
        one = np.ones(self.n)
        return np.asarray(self.slope(one) < -np.expm1(-self.loss(one)))


@dataclass(frozen=True, eq=False)
class Power(PersonalisedProfile):
    """eps(w, x) = c(x) w^exponent: 1 is linear (sums with additive noise), 0 ignores weights.

    Parameters
    ----------
    scales : array_like, shape (n,)
        c(x) = eps(1, x) >= 0, nats.
    exponent : float
        At least 0.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """

    scales: np.ndarray
    exponent: float = 1.0

    def __post_init__(self) -> None:
        scales = nonnegative("scales", np.atleast_1d(np.asarray(self.scales, dtype=float)))
        object.__setattr__(self, "scales", checks.finite_array("scales", scales, ndim=1))
        object.__setattr__(self, "exponent", checks.real("exponent", self.exponent, at_least=0))

    @property
    def n(self) -> int:
        return int(self.scales.size)

    def loss(self, weights: np.ndarray) -> np.ndarray:
        return self.scales * weights**self.exponent

    def slope(self, weights: np.ndarray) -> np.ndarray:
        return self.exponent * self.scales * weights ** (self.exponent - 1)

    def sampling_never_helps(self) -> bool:
        """Whether eps(w) <= w eps'(w) for all w, so that psi >= eps(1) and no sampling lowers any loss.

        References
        ----------
        importance, Proposition 17.
        """
        return self.exponent >= 1


DeltaCurve = Callable[[np.ndarray], np.ndarray]
"""Upper bounds of delta at any real epsilons (nats) of a mechanism on weighted records, for one (w, x)."""


def delta_when_removed(epsilon: ArrayLike, q: float, curve: DeltaCurve) -> np.ndarray:
    """Return q delta(log(1 + (e^eps - 1) / q)): the hockey-stick divergence, present from absent, after sampling.

    With P the outputs given that the record is included, and Q given that it is not, present is (1 - q) Q + q P, so
    that present - a absent = q (P - (1 + (a - 1) / q) Q).

    Parameters
    ----------
    epsilon : array_like
        Nats, >= 0.
    q : float
        Inclusion probability.
    curve : callable
        Bounds of H_{e^eps}(P || Q) at weight 1/q.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    rate, order = float(inclusion(q)), nonnegative("epsilon", epsilon)
    return np.minimum(rate * curve(base_order(order, rate)), 1.0)


def base_order(epsilon: np.ndarray, q: float | np.ndarray) -> np.ndarray:
    """log(1 + (e^eps - 1) / q), the order that the mechanism is asked for, eps >= 0 of any size."""
    moderate = np.log1p(np.expm1(np.minimum(epsilon, _LARGE)) / q)
    return np.where(epsilon > _LARGE, np.logaddexp(0.0, log_expm1(epsilon) - np.log(q)), moderate)


def delta_when_added(epsilon: ArrayLike, q: float, reverse: DeltaCurve) -> np.ndarray:
    """Return c delta'(log(q e^eps / c)), c = 1 - e^eps (1 - q): absent from present; 0 where c <= 0.

    Here absent - a present = c Q - a q P, with H_{e^eps}(Q || P) bounded by `reverse`; rest as in
    :func:`delta_when_removed`.
    """
    rate, order = float(inclusion(q)), np.atleast_1d(nonnegative("epsilon", epsilon))
    if rate == 1:
        return np.minimum(reverse(order), 1.0).reshape(np.shape(epsilon))[()]
    share = -np.expm1(np.minimum(order + np.log1p(-rate), 0.0))
    delta = np.zeros(order.shape)
    left = share > 0
    if left.any():
        delta[left] = share[left] * reverse(order[left] + np.log(rate) - np.log(share[left]))
    return np.minimum(delta, 1.0).reshape(np.shape(epsilon))[()]


def once_and_resampled(unsampled: ArrayLike, q: ArrayLike, n_iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses of T rounds on one sample, and with a new sample in each round, linear profiles.

    Parameters
    ----------
    unsampled : array_like
        A: the loss of all T rounds at weight 1, nats.
    q : array_like
        Inclusion probability, the weight being 1/q.
    n_iterations : int
        T.

    Returns
    -------
    once, resampled : ndarray
        log(1 + q (e^{A/q} - 1)) and T log(1 + q (e^{A/(Tq)} - 1)).
    """
    rounds = checks.integer("n_iterations", n_iterations, at_least=1)
    total, chance = nonnegative("unsampled", unsampled), inclusion(q)
    return loss_when_removed(total / chance, chance), rounds * loss_when_removed(total / (rounds * chance), chance)

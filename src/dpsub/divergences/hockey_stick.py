"""The hockey-stick divergence of discrete laws, and the identities that amplification rests on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError

_SUM = 1e-9  # laws must sum to 1 within this


def law_array(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as an array of laws along its last axis.

    Raises
    ------
    ArgumentError
        If an entry is negative or not finite, or a law does not sum to 1 within 1e-9.
    """
    array = checks.finite_array(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ArgumentError(f"{name} must hold probabilities along its last axis, got shape {array.shape}")
    if array.size and array.min() < 0:
        raise ArgumentError(f"{name} must not be negative, got {array.min():g}")
    totals = array.sum(axis=-1)
    if (np.abs(totals - 1) > _SUM).any():
        worst = float(np.ravel(totals)[np.argmax(np.abs(np.ravel(totals) - 1))])
        raise ArgumentError(f"{name} must sum to 1 within 1e-9 in every row, got {worst:.12g}; normalise it")
    return array


def hockey_stick(first: ArrayLike, second: ArrayLike, alpha: ArrayLike) -> np.ndarray:
    """Return D_alpha(mu || mu') = sum over z of max(0, mu(z) - alpha mu'(z)), in [0, 1].

    Parameters
    ----------
    first, second : array_like, shape (..., outcomes)
        Laws mu and mu'; leading axes broadcast.
    alpha : array_like
        exp(epsilon), at least 1; broadcasts with the leading axes.

    Raises
    ------
    ArgumentError
        If a law is none, or an alpha lies below 1: use the mirror 1 - alpha + alpha D_{1/alpha}(mu' || mu) there.

    References
    ----------
    balle, Equation (2).

    Examples
    --------
    >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], 1.0))        # the total variation
    0.5
    >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], 3.0))        # no ratio is above 3
    0.0
    """
    orders = checks.finite_array("alpha", alpha)
    if orders.size:
        checks.real("alpha", orders.min(), at_least=1)
    return positive_part(law_array("first", first), law_array("second", second), orders)


def positive_part(first: np.ndarray, second: np.ndarray, alpha: ArrayLike) -> np.ndarray:
    """Return the same sum without checks, for any alpha >= 0 and for measures that are no laws."""
    return np.maximum(first - np.asarray(alpha)[..., np.newaxis] * second, 0.0).sum(axis=-1)


def total_variation(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Return the total variation distance, D_1."""
    return hockey_stick(first, second, 1.0)


@dataclass(frozen=True)
class ConvexitySides:
    """D_{alpha'} of two mixtures that share a part, what it equals, and the bound that follows by convexity."""

    mixed: float
    identity: float
    bound: float


def advanced_joint_convexity(
    shared: ArrayLike, first: ArrayLike, second: ArrayLike, eta: float, alpha: float
) -> ConvexitySides:
    """Return both sides of advanced joint convexity.

    With mu = (1 - eta) mu0 + eta mu1, mu' = (1 - eta) mu0 + eta mu1', alpha' = 1 + eta (alpha - 1) and
    beta = alpha' / alpha,

        D_{alpha'}(mu || mu') = eta D_alpha(mu1 || (1 - beta) mu0 + beta mu1')
                             <= eta ((1 - beta) D_alpha(mu1 || mu0) + beta D_alpha(mu1 || mu1')).

    Parameters
    ----------
    shared, first, second : array_like, shape (outcomes,)
        mu0, mu1, mu1'.
    eta : float
        In [0, 1].
    alpha : float
        At least 1.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    balle, Theorem 2.
    """
    weight = checks.real("eta", eta, at_least=0, at_most=1)
    order = checks.real("alpha", alpha, at_least=1)
    common, one, other = (
        law_array(name, law) for name, law in (("shared", shared), ("first", first), ("second", second))
    )
    amplified = 1 + weight * (order - 1)
    beta = amplified / order
    mixed = positive_part((1 - weight) * common + weight * one, (1 - weight) * common + weight * other, amplified)
    identity = weight * positive_part(one, (1 - beta) * common + beta * other, order)
    apart = (1 - beta) * positive_part(one, common, order) + beta * positive_part(one, other, order)
    return ConvexitySides(float(mixed), float(identity), float(weight * apart))


def profile_from_losses(first: ArrayLike, second: ArrayLike, epsilon: ArrayLike) -> np.ndarray:
    """Return Pr[L > epsilon] - exp(epsilon) Pr[L' < -epsilon] for the privacy losses of a pair of discrete laws.

    L = log(mu(z) / mu'(z)) under mu, L' = log(mu'(z) / mu(z)) under mu'. An outcome that only mu has is an infinite
    loss and enters the first probability alone. Equals the hockey-stick divergence for every epsilon.

    Parameters
    ----------
    first, second : array_like, shape (outcomes,)
        Laws mu and mu'.
    epsilon : array_like
        Nats.

    References
    ----------
    balle, Theorem 5.
    """
    mu, other = law_array("first", first), law_array("second", second)
    orders = checks.finite_array("epsilon", epsilon)[..., np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(mu > 0, np.log(mu) - np.log(other), -np.inf)
    exceeds = loss > orders
    return ((mu * exceeds).sum(axis=-1) - np.exp(orders[..., 0]) * (other * exceeds).sum(axis=-1))[()]

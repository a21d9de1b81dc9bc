"""Amplification by sampling: from (epsilon, delta) of the base mechanism to (epsilon', delta') of
the subsampled one, and the kinds of amplification."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.divergences.mixtures import mixture_loss
from dpsub.errors import ArgumentError
from dpsub.noise.base import Profile, nonnegative
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw

_CHUNK = 200_000  # group terms evaluated at once; with their temporaries about 30 MB
_OVERFLOWS = 700.0


@dataclass(frozen=True, eq=False)
class Amplified:
    """Guarantees of a subsampled mechanism, point by point along the base profile."""

    # (epsilon, delta) is an exact point of the base mechanism's profile.
    epsilon: np.ndarray
    delta: np.ndarray
    # (epsilon', delta') is an upper bound under the sampler's relation.
    epsilon_amplified: np.ndarray
    delta_amplified: np.ndarray
    eta: float  # inclusion probability of one record
    log_delta: np.ndarray  # also where delta underflows; -inf where exactly 0
    log_delta_amplified: np.ndarray
    adjacency: Relation | None = None  # neighbouring relation of data sets, where it is known


def amplify(law: MultiplicityLaw, profile: Profile, epsilon: ArrayLike) -> Amplified:
    """Amplify a base mechanism by a sampler; only its multiplicity law matters.

        epsilon' = log(1 + eta (exp(epsilon) - 1)),    eta = sum over l >= 1 of P(L = l),
        delta'   = sum over l >= 1 of P(L = l) delta_l(epsilon),

    with the white-box group profiles delta_l at the *base* epsilon: must, Theorem 5, whose Table 2
    is this with one law per row; balle, Theorems 8 to 11. The sum has positive terms only and is
    taken in log space.

    Parameters
    ----------
    law : law of the number of copies of one record; P(L = 0) < 1.
    profile : profile of the base mechanism at distance 1.
    epsilon : base epsilon in nats, at least 0, of any shape; the returned arrays have this shape.

    Examples
    --------
    >>> import math
    >>> from dpsub import noise
    >>> from dpsub.sampling import Wor
    >>> amplified = amplify(Wor(10).multiplicity_law(1000), noise.of("laplace", 1.0), 1.0)
    >>> math.isclose(amplified.epsilon_amplified, math.log(1 + 0.01 * (math.e - 1)))
    True
    >>> float(amplified.delta_amplified)
    0.0
    """
    order = nonnegative("epsilon", epsilon)
    eta = min(law.eta, 1.0)
    log_delta_amplified = _log_mixture(law.log_pmf, profile, order.ravel()).reshape(order.shape)[()]
    return Amplified(
        epsilon=order[()],
        delta=profile.delta(order),
        epsilon_amplified=amplified_epsilon(order, eta),
        delta_amplified=np.exp(log_delta_amplified),
        eta=eta,
        log_delta=profile.log_delta(order),
        log_delta_amplified=log_delta_amplified,
    )


def amplified_epsilon(epsilon: ArrayLike, eta: float) -> np.ndarray:
    """Return epsilon' = log1p(eta expm1(epsilon)), at most epsilon >= 0, for eta in (0, 1] (must,
    Theorem 5)."""
    order = nonnegative("epsilon", epsilon)
    rate = checks.real("eta", eta, above=0, at_most=1)
    # Without sampling epsilon' must equal epsilon, which the formula gives up to rounding only.
    if rate == 1:
        return order[()]
    return np.minimum(mixture_loss(order, rate), order)[()]


def base_epsilon(epsilon_amplified: ArrayLike, eta: float) -> np.ndarray:
    """Return the base epsilon = log1p(expm1(epsilon') / eta), at least epsilon', that a target
    epsilon' >= 0 allows."""
    target = nonnegative("epsilon_amplified", epsilon_amplified)
    rate = checks.real("eta", eta, above=0, at_most=1)
    if rate == 1:
        return target[()]
    with np.errstate(divide="ignore", over="ignore"):
        log_lift = target + np.log(-np.expm1(-target)) - math.log(rate)
        small = np.log1p(np.expm1(np.minimum(target, _OVERFLOWS)) / rate)
    large = log_lift + np.log1p(np.exp(-np.maximum(log_lift, 0.0)))
    return np.maximum(np.where(log_lift > 30, large, small), target)[()]


def _log_mixture(log_pmf: np.ndarray, profile: Profile, order: np.ndarray) -> np.ndarray:
    """log of sum over l >= 1 of exp(log_pmf[l]) delta_l(order), for a flat array of orders."""
    support = np.flatnonzero(log_pmf[1:] > -np.inf) + 1
    if support.size == 0:
        raise ArgumentError(
            "a multiplicity law must include a record with positive probability, got P(L = 0) = 1"
        )
    # The sum is taken in blocks of increasing l. As delta_l <= 1, the remaining probability bounds
    # the remaining terms, and an order for which they no longer count is dropped.
    log_tail = np.logaddexp.accumulate(log_pmf[support][::-1])[::-1]
    total = np.full(order.shape, -np.inf)
    active = np.arange(order.size)
    first, width = 0, 32
    while first < support.size and active.size:
        last = first + min(width, max(1, _CHUNK // active.size))
        occurrences = support[first:last, np.newaxis]
        terms = log_pmf[occurrences] + profile.group_log_delta(order[active], occurrences)
        total[active] = np.logaddexp(total[active], _log_sum(terms))
        # exp(-40) = 4e-18 of the sum cannot change it in double precision.
        if last < support.size:
            active = active[log_tail[last] > total[active] - 40.0]
        first, width = last, 2 * width
    return total


def _log_sum(terms: np.ndarray) -> np.ndarray:
    """Logarithm of the sum of exp(terms) over the first axis; -inf where all terms are -inf."""
    peak = terms.max(axis=0)
    safe = np.where(peak > -np.inf, peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(terms - safe).sum(axis=0)) + safe


def category(epsilon: float, delta: float, epsilon_amplified: float, delta_amplified: float) -> str:
    """Name the kind of amplification from (epsilon, delta) to (epsilon', delta') (must, Definition
    5 and Figure 3).

    "strong" where epsilon' < epsilon and delta' < delta, "weak_type_1" where only epsilon' is
    below, "weak_type_2" where only delta' is, "dilution" where neither is. Figure 3's caption
    implies this: as printed, type I repeats the strong condition and dilution repeats type II
    (E13). "boundary" is ours, for epsilon' < epsilon and delta' = delta = 0: a delta of 0 can't
    shrink, although nothing is lost (Laplace noise, epsilon >= theta, at most one copy).
    """
    base = checks.real("epsilon", epsilon, at_least=0)
    amplified = checks.real("epsilon_amplified", epsilon_amplified, at_least=0)
    base_delta = checks.real("delta", delta, at_least=0, at_most=1)
    amplified_delta = checks.real("delta_amplified", delta_amplified, at_least=0, at_most=1)
    if amplified < base:
        if amplified_delta < base_delta:
            return "strong"
        return "boundary" if amplified_delta == 0 else "weak_type_1"
    return "weak_type_2" if amplified_delta < base_delta else "dilution"

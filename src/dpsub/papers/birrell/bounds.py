"""The paper's bounds on the Rényi divergence of one step, and the divergences that attacks attain.

All divergences are D_alpha, in nats. sigma is the noise over the clipping norm C, so that a record
that takes the place of another one moves a sum by up to 2 C; q is the size of a batch over n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy.special import gammaln, logsumexp

POINTS_A_DEVIATION = 8
"""Nodes of the trapezoidal rule; its error falls faster than any power of their distance."""
ORDERS = 60
"""Orders of the conversion, over the range of the paper's code, which takes 500 of them."""
BEYOND = 40.0
"""Deviations of the noise behind the last mean, where the integrand is below e^-700."""


@cache
def log_moment(k: int, sigma: float) -> float:
    """Return log E (L - 1)^k, L the likelihood ratio of N(2, sigma^2) and N(0, sigma^2)."""
    if k == 0:
        return 0.0
    exponents = [2 * j * (j - 1) / sigma**2 for j in range(k + 1)]
    # divided by the last term, so that large moments do not overflow
    terms = [
        (-1) ** (k - j) * math.comb(k, j) * math.exp(exponent - exponents[-1])
        for j, exponent in enumerate(exponents)
    ]
    return exponents[-1] + math.log(math.fsum(terms))


def log_absolute(k: int, sigma: float) -> float:
    """Return an upper bound on log E |L - 1|^k: exact for even k, else by Cauchy and Schwarz."""
    if k % 2 == 0:
        return log_moment(k, sigma)
    return 0.5 * (log_moment(k - 1, sigma) + log_moment(k + 1, sigma))


def falling(alpha: float, k: int) -> float:
    """Return alpha (alpha - 1) ... (alpha - k + 1)."""
    return math.prod(alpha - j for j in range(k))


def tail_of_moments(top: int, start: int, q: float, sigma: float) -> float:
    """Return a bound on start! times the remainder's integral, for (1 + q (L - 1))^top.

    Where L < 1 the power is at most 1; elsewhere it is expanded.
    """
    degrees = np.arange(top + 1)
    moments = np.array([log_absolute(start + degree, sigma) for degree in range(top + 1)])
    ratios = gammaln(top + 1) - gammaln(top - degrees + 1)
    ratios += gammaln(start + 1) - gammaln(start + degrees + 1)
    with np.errstate(over="ignore"):
        # infinite where the bound says nothing
        return float(
            np.exp(moments[0]) + np.exp(logsumexp(degrees * math.log(q) + ratios + moments))
        )


def without_replacement_added(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return Theorem 3.3 for one step: samples without replacement, a record added or removed."""
    return math.log1p(excess_when_added(alpha, sigma, q, m)) / (alpha - 1)


def excess_when_added(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return the expansion of E (1 + q (L - 1))^alpha - 1, with a bound on its remainder."""
    total = sum(
        q**k / math.factorial(k) * falling(alpha, k) * math.exp(log_moment(k, sigma))
        for k in range(2, m)
    )
    largest = q**m / math.factorial(m) * abs(falling(alpha, m))
    if alpha <= m:
        # at an integer below m the series ends, since a factor is 0
        return total + largest * (1 - q) ** (alpha - m) * math.exp(log_absolute(m, sigma))
    return total + largest * tail_of_moments(math.ceil(alpha) - m, m, q, sigma)


def derivative(alpha: float, sigma: float, k: int) -> float:
    """Return the bound on the k-th derivative in q of E P^alpha Q^(1 - alpha), at q = 0."""
    # the paper's constants: 4 for even k and 3 for odd ones, then what Hoelder leaves of each term
    terms = 4.0 if k % 2 == 0 else 3.0
    for j in range(k + 1):
        first = math.prod(1 - i / alpha for i in range(1, j))
        second = math.prod(1 + (i - 1) / alpha for i in range(k - j))
        terms += math.comb(k, j) * abs(alpha / (alpha - 1) * first * second - 1)
    return (alpha - 1) * alpha ** (k - 1) * terms * math.exp(log_absolute(k, sigma))


def remainder(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return the bound on the remainder of the expansion to degree m under replacement."""
    total = 0.0
    for j in range(m + 1):
        numerator = abs(falling(alpha, j)) * math.prod(alpha + i - 1 for i in range(m - j))
        if numerator == 0:
            continue
        if alpha <= j:
            integral = (1 - q) ** (alpha - j) * math.exp(log_absolute(m, sigma))
        else:
            integral = tail_of_moments(math.ceil(alpha) - j, m, q, sigma)
        scale = q**m / math.factorial(m) * (1 - q) ** -(alpha + m - j - 1)
        total += scale * math.comb(m, j) * numerator * integral
    return total


def replaced(alpha: float, sigma: float, q: float, m: int, leading: float) -> float:
    """Return the bound under replacement, from its coefficient of q^2 alpha (alpha - 1)."""
    total = q**2 * alpha * (alpha - 1) * leading
    total += sum(q**k / math.factorial(k) * derivative(alpha, sigma, k) for k in range(3, m))
    return math.log1p(total + remainder(alpha, sigma, q, m)) / (alpha - 1)


def leading_of_fixed_size(sigma: float) -> float:
    return math.exp(4 / sigma**2) - math.exp(2 / sigma**2)


def leading_of_poisson(sigma: float) -> float:
    return 2 * math.sinh(1 / sigma**2)


def without_replacement_replaced(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return Theorem 3.4 for one step: samples without replacement, a record replaced."""
    return replaced(alpha, sigma, q, m, leading_of_fixed_size(sigma))


def poisson_replaced(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return Theorem C.9 for one step: Poisson samples, a record replaced."""
    # each record moves the sum by C, half of what it moves a sum of fixed size by
    return replaced(alpha, 2 * sigma, q, m, leading_of_poisson(sigma))


def with_replacement_added(alpha: float, sigma: float, q: float, m: int, size: int) -> float:
    """Return Theorem 3.6 for one step: `size` draws, each the record with probability q / size."""
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    copies = np.arange(1, size + 1)
    weights = binom.logpmf(copies, size, q / size)
    # all copies at once: the divergence of shifts by 2 l, without any sampling
    shifts = 2 * alpha * (alpha - 1) * (copies / sigma) ** 2
    worst = shifts + np.log(-np.expm1(-shifts))
    few = copies < m
    included = float(np.exp(logsumexp(weights[few])))
    missed = float(np.exp(binom.logpmf(0, size, q / size)))
    rate = included / (included + missed)
    for index in np.flatnonzero(few):
        excess = excess_when_added(alpha, sigma / copies[index], rate, m)
        worst[index] = min(worst[index], math.log(excess))
    weights = np.where(few, weights - math.log(rate), weights)
    return float(logsumexp(np.append(weights + worst, 0.0))) / (alpha - 1)


def wang_upper(alpha: float, sigma: float, q: float) -> float:
    """Return the bound of Wang et al. 2019 on samples without replacement, a record replaced."""
    low, high = max(math.floor(alpha), 2), max(math.ceil(alpha), 2)
    if low == high:
        degrees = np.arange(3, low + 1)
        choose = gammaln(low + 1) - gammaln(degrees + 1) - gammaln(low - degrees + 1)
        terms = degrees * math.log(q) + choose + 2 * degrees * (degrees - 1) / sigma**2
        # the paper's code has alpha (alpha - 1) where the bound has C(alpha, 2) times 4
        second = math.log(2 * q**2 * low * (low - 1) * math.expm1(4 / sigma**2))
        log_sum = logsumexp(np.concatenate([[second], terms + math.log(2)]))
        return float(np.logaddexp(0.0, log_sum)) / (low - 1)
    # linear in (alpha - 1) D_alpha between the integers
    share = alpha - low
    ends = [(order - 1) * wang_upper(order, sigma, q) for order in (low, high)]
    return ((1 - share) * ends[0] + share * ends[1]) / (alpha - 1)


def divergence(alpha: float, sigma: float, first: np.ndarray, second: np.ndarray) -> float:
    """Return D_alpha of two mixtures of normal distributions, arrays of (mean, log weight)."""
    reach = max(np.abs(first[:, 0]).max(), np.abs(second[:, 0]).max())
    span = alpha * 2 * reach + BEYOND * sigma
    x = np.linspace(-span, span, math.ceil(2 * span / sigma * POINTS_A_DEVIATION) + 1)
    log_p, log_q = (log_density(x, sigma, mixture) for mixture in (first, second))
    # E_Q (P/Q)^alpha - 1 as a sum of small terms: a difference of two integrals near 1 would lose
    # the digits of a small divergence
    ratio = log_p - log_q
    excess = alpha * ratio
    small = np.expm1(np.minimum(excess, 1.0)) - alpha * np.expm1(np.minimum(ratio, 1.0))
    near = (np.abs(excess) < 1).astype(float)
    step = x[1] - x[0]
    inner = float(np.sum(near * np.exp(log_q) * small) * step)
    outside = near == 0
    if not outside.any():
        return math.log1p(inner) / (alpha - 1)
    far = logsumexp(alpha * log_p[outside] + (1 - alpha) * log_q[outside]) + math.log(step)
    # P and Q have the same mass: the terms that were taken from the integrand add up to nothing
    mass = alpha * (np.exp(log_p[outside]) - np.exp(log_q[outside])) + np.exp(log_q[outside])
    rest = inner - float(mass.sum() * step)
    if far > 30:
        return float(far + math.log1p(rest * math.exp(-far) + math.exp(-far))) / (alpha - 1)
    return math.log1p(math.exp(far) + rest) / (alpha - 1)


def log_density(x: np.ndarray, sigma: float, mixture: np.ndarray) -> np.ndarray:
    means, log_weights = mixture.T
    terms = -0.5 * ((x - means[:, None]) / sigma) ** 2 + log_weights[:, None]
    scale = math.log(sigma * math.sqrt(2 * math.pi))
    return np.asarray(logsumexp(terms, axis=0)) - scale


def included(q: float, shift: float) -> np.ndarray:
    """Return the mixture of a record that is in the sample with probability q."""
    return np.array([(0.0, math.log1p(-q)), (shift, math.log(q))])


NOTHING = np.array([(0.0, 0.0)])
"""The mixture of a sample that never has the record."""


def attack_without_replacement(alpha: float, sigma: float, q: float) -> float:
    """Return the divergence between the data sets (C, -C, ..., -C) and (-C, ..., -C) for samples
    without replacement, one record replaced or added."""
    return divergence(alpha, sigma, included(q, 2.0), NOTHING)


def attack_poisson(alpha: float, sigma: float, q: float) -> float:
    """Return the divergence when a record C is replaced by -C, the largest for Poisson samples."""
    return divergence(alpha, sigma, included(q, 1.0), included(q, -1.0))


def attack_with_replacement(alpha: float, sigma: float, q: float, size: int) -> float:
    """Return the divergence for a record C among records -C, which Theorem 3.7 bounds from
    below."""
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    copies = np.arange(size + 1)
    # log weights: many copies are rare beyond the range of numbers, and decide at large orders
    mixture = np.column_stack([2.0 * copies, binom.logpmf(copies, size, q / size)])
    return divergence(alpha, sigma, mixture, NOTHING)


def epsilons_of(
    divergence_of: Callable[[float], float], steps: int, deltas: Sequence[float]
) -> list[float]:
    """Return epsilon of composed steps at each delta, by the conversion of the paper's code."""
    orders = 1 + np.geomspace(0.1, 10**1.5, ORDERS)
    composed = steps * np.array([divergence_of(float(order)) for order in orders])
    # Balle et al. 2020, Theorem 21
    added = np.log1p(-1 / orders) - np.log(orders) / (orders - 1)
    return [float(np.min(composed + added - math.log(delta) / (orders - 1))) for delta in deltas]

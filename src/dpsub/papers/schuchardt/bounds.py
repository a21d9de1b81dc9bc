"""The paper's bounds, from its formulas: divergences of mixtures that a group's records make.

A mixture is an array of (mean, log weight); its components have the same noise. All sensitivities
are 1, as in the paper's experiments. delta is a hockey stick divergence at e^epsilon, D_alpha a
Rényi divergence, in nats, both of the first mixture from the second one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp

POINTS_A_DEVIATION = 4
"""Nodes of the trapezoidal rule; its error falls faster than any power of their distance."""
BEYOND = 40.0
"""Deviations of the noise behind the last mean, where densities are below e^-700."""
NOTHING = np.array([(0.0, 0.0)])
"""The mixture of a sample without any record of the group."""

Pair = tuple[np.ndarray, np.ndarray]


def mixture(log_weights: np.ndarray, sign: int = 1) -> np.ndarray:
    """Return the mixture whose component l has mean l, or -l, and the log weight l."""
    return np.column_stack([sign * np.arange(len(log_weights), dtype=float), log_weights])


def poisson(group: int, rate: float, sign: int = 1) -> np.ndarray:
    """Return the mixture of a group's records in a Poisson sample."""
    return mixture(drawn(group, rate), sign)


def splits(group: int, rate: float) -> list[Pair]:
    """Return the pairs of Theorem 3.8: some of the group removed, the others inserted."""
    return [(poisson(group - k, rate), poisson(k, rate, -1)) for k in range(group + 1)]


def log_density(law: str, noise: float, x: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the log density of a mixture at the points x."""
    means, log_weights = parts.T
    distance = np.subtract.outer(x, means) / noise
    if law == "gaussian":
        kernel = -0.5 * distance**2 - math.log(noise * math.sqrt(2 * math.pi))
    else:
        kernel = -np.abs(distance) - math.log(2 * noise)
    return np.asarray(np.logaddexp.reduce(kernel + log_weights, axis=-1))


def mass_above(law: str, noise: float, x: float, parts: np.ndarray) -> float:
    """Return the mass of a mixture above x."""
    means, log_weights = parts.T
    distance = (x - means) / noise
    if law == "gaussian":
        tails = np.exp(log_ndtr(-distance))
    else:
        half = 0.5 * np.exp(-np.abs(distance))
        tails = np.where(distance > 0, half, 1 - half)
    return math.fsum(np.exp(log_weights) * tails)


def delta(epsilon: float, law: str, noise: float, first: np.ndarray, second: np.ndarray) -> float:
    """Return the hockey stick divergence of mixtures whose loss increases with the output."""

    def excess(x: float) -> float:
        at = np.array(x)
        loss = log_density(law, noise, at, first) - log_density(law, noise, at, second)
        return float(loss) - epsilon

    # behind the last means a Laplace loss is constant, and a Gaussian one near its limit
    reach = BEYOND * noise * (1 + noise * (1 + epsilon))
    left, right = float(second[:, 0].min()) - reach, float(first[:, 0].max()) + reach
    if excess(right) <= 0:
        return 0.0
    threshold = float(brentq(excess, left, right, xtol=1e-12, rtol=1e-14))
    above = mass_above(law, noise, threshold, first)
    return above - math.exp(epsilon) * mass_above(law, noise, threshold, second)


def epsilon_at(of_epsilon: Callable[[float], float], delta: float) -> float:
    """Return epsilon at which a bound, which falls with epsilon, is delta."""
    largest = 1.0
    while of_epsilon(largest) > delta:
        largest *= 2
    return float(brentq(lambda epsilon: of_epsilon(epsilon) - delta, 1e-9, largest, xtol=1e-14))


def agnostic(epsilon: float, law: str, noise: float, log_weights: np.ndarray) -> float:
    """Return the bound of Balle et al. on delta, from the log weights of 0, 1, ... records."""
    inner = math.log1p(math.expm1(epsilon) / -math.expm1(log_weights[0]))
    terms = [
        math.exp(weight) * delta(inner, law, noise, np.array([(float(count), 0.0)]), NOTHING)
        for count, weight in enumerate(log_weights)
        if count
    ]
    return math.fsum(terms)


def group_factor(epsilon: float, group: int) -> float:
    """Return the factor of delta in the group privacy property, at epsilon of the group."""
    return math.fsum(math.exp(k * epsilon / group) for k in range(group))


def responses(theta: float, included: float) -> list[Pair]:
    """Return the pairs of Theorem M.3: randomised response, true with probability theta, whose
    answer the records of the group turn over if any is in the sample."""
    truth = np.array([theta, 1 - theta])
    mixed = (1 - included) * truth + included * truth[::-1]
    return [(mixed, truth), (truth, mixed)]


def response_delta(epsilon: float, theta: float, included: float) -> float:
    return max(
        float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
        for first, second in responses(theta, included)
    )


def response_agnostic(epsilon: float, theta: float, included: float) -> float:
    """Return Proposition N.1 for randomised response, where delta does not depend on the group."""
    return included * response_delta(math.log1p(math.expm1(epsilon) / included), theta, 1.0)


def renyi(alpha: float, noise: float, first: np.ndarray, second: np.ndarray) -> float:
    """Return D_alpha of two mixtures of normal distributions, by quadrature."""
    reach = max(np.abs(first[:, 0]).max(), np.abs(second[:, 0]).max())
    span = 2 * alpha * reach + BEYOND * noise
    x = np.linspace(-span, span, math.ceil(2 * span / noise * POINTS_A_DEVIATION) + 1)
    log_p, log_q = (log_density("gaussian", noise, x, parts) for parts in (first, second))
    exponents = alpha * log_p + (1 - alpha) * log_q
    return float(logsumexp(exponents) + math.log(x[1] - x[0])) / (alpha - 1)


def renyi_of_one(alpha: int, noise: float, rate: float) -> float:
    """Return D_alpha of one record in a Poisson sample, by the binomial sum of whole orders."""
    copies = np.arange(alpha + 1)
    choose = gammaln(alpha + 1) - gammaln(copies + 1) - gammaln(alpha - copies + 1)
    weights = choose + copies * math.log(rate) + (alpha - copies) * math.log1p(-rate)
    return float(logsumexp(weights + copies * (copies - 1) / (2 * noise**2))) / (alpha - 1)


def renyi_agnostic(alpha: int, noise: float, rate: float, group: int) -> float:
    """Return Theorem N.5 without its factor 2, which the paper's experiments leave out."""
    log_weights = poisson(group, rate)[1:, 1]
    included = -math.expm1(group * math.log1p(-rate))
    moments = [
        (alpha - 1) * renyi_of_one(alpha, noise / count, included) for count in range(1, group + 1)
    ]
    return float(logsumexp(log_weights - math.log(included) + moments)) / (alpha - 1)


def renyi_posthoc(alpha: int, group: int, of_one: Callable[[int], float]) -> float:
    """Return D_alpha of a group of 1, 2, 4, ... records from that of one (Mironov 2017, Corollary
    4)."""
    if group == 1:
        return of_one(alpha)
    first = renyi_posthoc(2 * alpha, group // 2, of_one)
    return (alpha - 0.5) / (alpha - 1) * first + renyi_posthoc(2 * alpha - 1, group // 2, of_one)


def drawn(draws: int, rate: float) -> np.ndarray:
    """Return the log probabilities of 0 to `draws` hits in independent draws."""
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    return np.asarray(binom.logpmf(np.arange(draws + 1), draws, rate))


def printed_components(n: int, batch: int) -> np.ndarray:
    """Return means and log weights of Theorem L.5 as printed, for i = 1, ..., batch."""
    i = np.arange(1, batch + 1)
    return np.column_stack([i - 1.0, batch * math.log(1 / n) + (batch - i) * math.log1p(-1 / n)])

"""The Monte Carlo accountant of the paper's repository, from its description: draws of the loss of
one record that takes part in k of T steps, its Gaussian noise of scale sigma times its norm.

P has the record, Q has 0 in its place. The likelihood ratio P/Q at the outputs y is e_k(w) /
binom(T, k), the mean of the products of k different weights w_i = exp((2 y_i - 1) / (2 sigma^2)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, rel_entr

BATCH = 2000
"""Draws that are held at a time."""
REACH, NODES = 40.0, 20_001
"""Deviations of the noise to either side, and nodes of the trapezoidal rule between them."""


def log_weights(
    rng: np.random.Generator, draws: int, steps: int, chosen: int, noise: float
) -> np.ndarray:
    """Return log w_i of draws from P, or of draws from Q for `chosen` = 0, one draw per row."""
    y = rng.standard_normal((draws, steps)) * noise
    # the steps are exchangeable: the record takes part in the first ones
    y[:, :chosen] += 1.0
    return (y - 0.5) / noise**2


def log_ratio(log_w: np.ndarray, chosen: int) -> np.ndarray:
    """Return log P/Q of each row, by the recurrence of elementary symmetric polynomials."""
    steps = log_w.shape[1]
    log_e = np.full((len(log_w), chosen + 1), -np.inf)
    log_e[:, 0] = 0.0
    for step in range(steps):
        # the right side is computed before anything is replaced
        log_e[:, 1:] = np.logaddexp(log_e[:, 1:], log_w[:, step, None] + log_e[:, :-1])
    subsets = gammaln(steps + 1) - gammaln(chosen + 1) - gammaln(steps - chosen + 1)
    return np.asarray(log_e[:, chosen] - subsets)


def screens(log_w: np.ndarray, chosen: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound on log P/Q of each row, by Maclaurin's inequalities: k
    times the mean of log w, and k times the log of the mean."""
    most = log_w.max(axis=1)
    above = most + np.log(np.exp(log_w - most[:, None]).mean(axis=1))
    return chosen * log_w.mean(axis=1), chosen * above


class DeltaEstimates(NamedTuple):
    """Estimates of delta with their standard errors, one for each epsilon, and the number of draws
    that the screen left at the smallest one."""

    delta: np.ndarray
    error: np.ndarray
    left: int


def estimate(
    rng: np.random.Generator,
    draws: int,
    steps: int,
    chosen: int,
    noise: float,
    epsilons: Sequence[float],
    *,
    forward: bool,
) -> DeltaEstimates:
    """Return estimates of the divergence of P from Q, or of Q from P."""
    levels = np.asarray(epsilons, float)
    total, squares = np.zeros(levels.size), np.zeros(levels.size)
    left = 0
    for start in range(0, draws, BATCH):
        size = min(BATCH, draws - start)
        log_w = log_weights(rng, size, steps, chosen if forward else 0, noise)
        below, above = screens(log_w, chosen)
        kept = log_w[(above if forward else -below) > levels.min()]
        left += len(kept)
        loss = log_ratio(kept, chosen) * (1 if forward else -1)
        part = -np.expm1(np.minimum(levels - loss[:, None], 0.0))
        total += part.sum(axis=0)
        squares += (part**2).sum(axis=0)
    mean = total / draws
    return DeltaEstimates(mean, np.sqrt(np.maximum(squares / draws - mean**2, 0.0) / draws), left)


def overall_delta(draws: int, base: float) -> float:
    """Return the delta of the whole procedure that verifies with `draws` draws against `base`.

    A mechanism whose delta exceeds tau times base passes with probability at most q = exp(-N
    KL(base, tau base)), so that delta is at most tau base + q (1 - tau base); tau is the best one.
    """

    def of_tau(tau: float) -> float:
        worse = tau * base
        divergence = rel_entr(base, worse) + rel_entr(1 - base, 1 - worse)
        passed = math.exp(-draws * divergence)
        return float(worse + passed * (1 - worse))

    best = minimize_scalar(of_tau, bounds=(1, 1 / base), method="bounded", options={"xatol": 1e-9})
    # any tau is valid, so that the search need not find the best one
    return min(float(best.fun), 1.0)


def base_delta(draws: int, delta: float) -> float:
    """Return the value against which estimates from `draws` draws are verified, so that the whole
    procedure has delta."""
    return float(
        brentq(lambda base: overall_delta(draws, base) - delta, delta * 1e-4, delta, xtol=1e-15)
    )


class Law(NamedTuple):
    """Probabilities of the record's participation in no, the first, the second, both of two
    steps."""

    none: float
    first: float
    second: float
    both: float


def of_two_steps(law: Law, noise: float, epsilon: float, *, forward: bool = True) -> float:
    """Return delta of two steps, by one integral.

    P/Q = a + b w with a and b functions of the first output alone; the second output's weight w is
    log-normal, so that its expectation is known.
    """
    from scipy.stats import norm  # here, as its import takes longer than most jobs compute

    z = np.linspace(-REACH, REACH, NODES)
    first = np.exp((2 * noise * z - 1) / (2 * noise**2))
    a, b = law.none + law.first * first, law.second + law.both * first
    level = math.exp(epsilon if forward else -epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = np.where(level > a, noise * np.log((level - a) / b) + 0.5 / noise, -np.inf)
    if forward:
        inner = (a - level) * norm.sf(threshold) + b * norm.sf(threshold - 1 / noise)
    else:
        inner = (1 - a / level) * norm.cdf(threshold) - b / level * norm.cdf(threshold - 1 / noise)
    return float(np.trapezoid(norm.pdf(z) * inner, z))

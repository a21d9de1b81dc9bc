"""Amplification by a single inclusion probability."""

from __future__ import annotations

import math

import numpy as np

from dpsub import checks
from dpsub.divergences.mixtures import one_mixture_loss


def amplified(rate: float, epsilon: float) -> float:
    """Return log(1 + rate (exp(epsilon) - 1)), exact for simple random samples of fixed size.

    Both epsilons are under substitution, and `rate` = m/n lies in [0, 1] (bun, Theorem 2.2).
    """
    rate = checks.real("rate", rate, at_least=0, at_most=1)
    epsilon = checks.real("epsilon", epsilon, above=0)
    if epsilon < 30:
        return one_mixture_loss(epsilon, rate)
    if rate == 0:
        return 0.0
    rest = math.log1p(-rate) if rate < 1 else -math.inf
    return float(np.logaddexp(rest, math.log(rate) + epsilon))


def amplified_delta(rate: float, delta: float) -> float:
    """Return rate * delta, the delta that goes with `amplified` (bun, Theorem 2.2)."""
    share = checks.real("rate", rate, at_least=0, at_most=1)
    return share * checks.real("delta", delta, at_least=0, below=1)


def lower_amplified(rate: float, epsilon: float) -> float:
    """Return -log(1 - rate (1 - exp(-epsilon))), the loss of the same mixture in the other
    direction."""
    rate = checks.real("rate", rate, at_least=0, at_most=1)
    epsilon = checks.real("epsilon", epsilon, above=0)
    if rate < 0.5:
        return -one_mixture_loss(-epsilon, rate)
    if rate == 1 and epsilon >= 700:
        return epsilon
    # A sum of positive terms: the form above would take the logarithm of 0 at rate 1 and a large
    # epsilon.
    return -math.log((1 - rate) + rate * math.exp(-epsilon))


def base_for(rate: float, target: float) -> float:
    """Return log(1 + (exp(target) - 1) / rate), the base epsilon whose amplified value is `target`.

    target / rate is close to it only while both are small.
    """
    rate = checks.real("rate", rate, above=0, at_most=1)
    target = checks.real("target", target, above=0)
    return math.log1p(math.expm1(target) / rate) if target < 30 else target - math.log(rate)

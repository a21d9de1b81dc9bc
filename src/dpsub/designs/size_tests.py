"""What a sample's size gives away when it depends on the data: tests of the size, and the error that privacy forces."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpsub import checks
from dpsub.designs.auditor import State, hockey_stick
from dpsub.designs.path_programme import worst_ratio

SizeLaw = Mapping[int, float]


def advantage(one: SizeLaw, other: SizeLaw, epsilon: float) -> float:
    """Return the largest Pr[H = X] - Pr[H = Y] of a size, over tests whose two answers are both epsilon-DP.

    References
    ----------
    bun, Proposition 4.1: at most e^epsilon' - 1 (`advantage_limit`) if sampling with this size keeps epsilon'.
    """
    path = range(min(*one, *other), max(*one, *other) + 1)
    p: dict[State, float] = {(m,): one.get(m, 0.0) for m in path}
    q: dict[State, float] = {(m,): other.get(m, 0.0) for m in path}
    return hockey_stick(p, q, epsilon, at=0.0, delta=0.0)


def size_loss(one: SizeLaw, other: SizeLaw, epsilon: float) -> float:
    """Return the worst loss of all mechanisms that see the size only; Delta epsilon for two sizes Delta apart.

    References
    ----------
    bun, Section 4.1.
    """
    path = range(min(*one, *other), max(*one, *other) + 1)
    with np.errstate(divide="ignore"):
        p, q = (np.log([law.get(m, 0.0) for m in path]) for law in (one, other))
    return max(worst_ratio(p, q, epsilon).upper, worst_ratio(q, p, epsilon).upper)


def advantage_limit(epsilon_amplified: float, *, sharp: bool) -> float:
    """Return how large an advantage epsilon' allows: e^epsilon' - 1 as printed, tanh(epsilon'/2) if `sharp`."""
    value = checks.real("epsilon_amplified", epsilon_amplified, at_least=0)
    return math.tanh(value / 2) if sharp else math.expm1(min(value, 700.0))


def laplace_count_advantage(difference: int, epsilon: float) -> float:
    """Return 1 - exp(-Delta epsilon/2): the advantage of a threshold on the size plus Lap(1/epsilon)."""
    return -math.expm1(-checks.integer("difference", difference, at_least=0) * epsilon / 2)


def two_point_error(step: float, epsilon_amplified: float, longest: int = 10**6) -> float:
    """Return max over k of (k step)^2 / (4 cosh^2(k epsilon'/2)), a lower bound of every estimator's mean square error.

    The estimator is epsilon'-DP under the relation whose steps change the statistic by `step` each; k steps are
    available up to `longest`. For long paths the maximum is 0.439229 step^2/epsilon'^2.

    References
    ----------
    bun, Proposition 4.2.
    """
    step = checks.real("step", step, above=0)
    epsilon = checks.real("epsilon_amplified", epsilon_amplified, above=0)
    longest = checks.integer("longest", longest, at_least=1)
    # k tanh(k epsilon/2) epsilon/2 = 1 at the continuous maximum: k epsilon/2 = 1.199678
    best = 1.1996786402577338 * 2 / epsilon
    trials = {max(1, min(longest, k)) for k in (math.floor(best), math.ceil(best))}
    return max((k * step / (2 * math.cosh(k * epsilon / 2))) ** 2 for k in trials)


def error_floor(alpha: float, epsilon: float, *, noise: float) -> float:
    """Return max(0, alpha - noise/epsilon^2), the least mean square error of the sampled size for some population.

    `noise` is the variance of Lap(1) that is taken off: 1 as printed, 2 in truth.

    References
    ----------
    bun, Proposition 4.2 (erratum BN3).
    """
    return max(0.0, alpha - noise / checks.real("epsilon", epsilon, above=0) ** 2)

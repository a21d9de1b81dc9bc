"""Privacy of samples without replacement by their size: random sizes independent of the data
(`random_size_*`), a rounded share r of the population (`rounding_*`), and sizes that depend on the
data, with what they reveal to tests and the error that privacy forces on them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from dpsub import checks
from dpsub.amplification.survey.auditor import State, hockey_stick, worst_ratio
from dpsub.amplification.survey.rates import amplified, lower_amplified
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling.allocation import SizeChances, exact_rate, rounded_sizes


def log_sizes_of(t: ArrayLike) -> np.ndarray:
    """Return the logarithms of a law of sizes t(0), ..., t(n) for n records; -inf for 0."""
    t = checks.finite_array("t", t, ndim=1)
    if t.size < 2 or t.min() < 0 or abs(t.sum() - 1) > 1e-9:
        raise ArgumentError(
            "a law of sizes must hold probabilities of 0..n that sum to 1, got a "
            f"sum of {t.sum():g}"
        )
    with np.errstate(divide="ignore"):
        return np.log(t)


def tilted_mean(log_sizes: np.ndarray, epsilon: float) -> float:
    """Return the mean of the law proportional to exp(epsilon m) t(m), given log t(0..n)."""
    sizes = np.arange(len(log_sizes))
    tilted = log_sizes + checks.real("epsilon", epsilon, above=0) * sizes
    return float(sizes @ np.exp(tilted - logsumexp(tilted)))


def random_size_upper(log_sizes: np.ndarray, epsilon: float, *, factor: int) -> float:
    """Return log(1 + (mu/n) (exp(factor epsilon) - 1)), an upper bound under substitution.

    mu is the tilted mean. factor = 2 holds for every mechanism that is epsilon-DP under add_remove.
    factor = 1, as printed, does not; it holds if the mechanism is epsilon-DP under substitute too
    (bun, Theorem 3.1, erratum BN1).
    """
    return amplified(_share(log_sizes, epsilon), factor * epsilon)


def random_size_lower(log_sizes: np.ndarray, epsilon: float, *, factor: int) -> float:
    """Return -log(1 - (mu/n) (1 - exp(-factor epsilon))), a lower bound on the worst loss.

    Some epsilon-DP mechanism attains or exceeds it, for factor = 2 a sum of values in [-1, 1] with
    Laplace noise (bun, Theorem 3.1).
    """
    return lower_amplified(_share(log_sizes, epsilon), factor * epsilon)


def random_size_exact(log_sizes: np.ndarray, epsilon: float) -> float:
    """Return the worst loss under substitution of all mechanisms that are epsilon-DP under
    add_remove, rounded up.

    If an event has probability A_m on a sample of size m that lacks the record, it has at most
    exp(epsilon) A_{m-1} on one that holds it and at least exp(-epsilon) A_{m-1} on one with its
    substitute: `worst_ratio` over sequences A.
    """
    sizes = np.arange(len(log_sizes))
    without = log_sizes[:-1] + np.log1p(-sizes[:-1] / sizes[-1])
    holding = log_sizes[1:] + np.log(sizes[1:] / sizes[-1])
    n, d = np.logaddexp(without, holding + epsilon), np.logaddexp(without, holding - epsilon)
    if not np.any(n > -np.inf):
        raise ArgumentError("a law of sizes must leave some chance of a sample, got none")
    return worst_ratio(n, d, epsilon).upper


def _share(log_sizes: np.ndarray, epsilon: float) -> float:
    return min(1.0, tilted_mean(log_sizes, epsilon) / (len(log_sizes) - 1))


def rounding_printed(rate: object, epsilon: float) -> float:
    """Return log(1 + 2r(e^(2 epsilon) - 1)) + log(1 + r(e^(2 epsilon) - 1)), upper for randomised
    rounding.

    Base and result under add_remove; r n >= 1 for both populations and r < 1 (bun, Theorems 4.3 and
    7.2).
    """
    r = float(_below_one(rate))
    epsilon = checks.real("epsilon", epsilon, above=0)
    # 2r may exceed 1, where `amplified` has no meaning as a mixture but the formula still stands
    return math.log1p(2 * r * math.expm1(2 * epsilon)) + amplified(r, 2 * epsilon)


def rounding_size_aware(rate: object, epsilon: float, n: int) -> float:
    """Return the bound of `rounding_printed` with (floor(r n) + 1)/(n + 1) in place of 2r.

    It is valid for all sizes n >= 0 of the smaller population.
    """
    exact, n = _below_one(rate), checks.integer("n", n, at_least=0)
    share = Fraction(math.floor(exact * n) + 1, n + 1)
    return amplified(float(share), 2 * epsilon) + amplified(float(exact), 2 * epsilon)


def rounding_checked(rate: object, epsilon: float, n: int) -> float:
    """Return `rounding_printed` if r n >= 1 for the smaller population, else UnsupportedError."""
    exact = _below_one(rate)
    if exact * n < 1:
        raise UnsupportedError(
            f"the theorem needs rate * n of at least 1, got {float(exact * n):g} at n = {n}; use "
            f"the form that knows n, which gives {rounding_size_aware(rate, epsilon, n):.6g}"
        )
    return rounding_printed(rate, epsilon)


def rounding_break_even(epsilon: float) -> float:
    """Return the rate r at which the printed bound equals epsilon.

    Above this rate sampling is not known to help. The bound is epsilon where
    (1 + 2u)(1 + u) = e^epsilon, with u = r (e^(2 epsilon) - 1).
    """
    return _root(checks.real("epsilon", epsilon, above=0)) / math.expm1(2 * epsilon)


def rounding_base(rate: object, target: float) -> float:
    """Return log(1 + u/r)/2, the base epsilon at which the printed bound equals `target`.

    target/(6 r) is close to it only while target is far below r.
    """
    return 0.5 * math.log1p(_root(checks.real("target", target, above=0)) / float(_below_one(rate)))


def _root(target: float) -> float:
    """u > 0 with (1 + 2u)(1 + u) = e^target, without cancellation."""
    excess = math.expm1(target)
    return 2 * excess / (3 + math.sqrt(9 + 8 * excess))


def rounding_coupled(m: int, other: int, n: int, epsilon: float) -> float:
    """Return log(1 + m/(n+1) (e^(2 epsilon) - 1)) + |m - m'| epsilon for sizes m of n and m' of n +
    1 records.

    Upper under add_remove for mechanisms that are epsilon-DP under add_remove (printed: under
    substitute, for which it is not true, as such mechanisms may show the size; bun, Lemma B.1,
    erratum BN7).
    """
    m, other = (checks.integer(name, size, at_least=0) for name, size in (("m", m), ("m'", other)))
    n = checks.integer("n", n, at_least=max(m, 1))
    return amplified(min(1.0, m / (n + 1)), 2 * epsilon) + abs(m - other) * epsilon


def rounding_exact(smaller: SizeChances, larger: SizeChances, n: int, epsilon: float) -> float:
    """Return the worst loss under add_remove of samples of n and of n + 1 records with these laws
    of sizes, rounded up.

    If an event has probability A_m on a sample of size m without the record, a sample of m that
    holds it (chance m/(n+1)) has e^(+-epsilon) A_{m-1}. Both directions are programmes over A
    (`worst_ratio`).
    """
    n = checks.integer("n", n, at_least=1)
    for name, law, records in (("smaller", smaller, n), ("larger", larger, n + 1)):
        if min(law) < 0 or max(law) > records or abs(math.fsum(law.values()) - 1) > 1e-9:
            raise ArgumentError(
                f"the sizes of the {name} population must be a law on 0..{records}, got {law}"
            )
    # Weights of A_m for all sizes m of a sample without the new record.
    low = max(0, min(min(smaller), min(larger) - 1))
    sizes = range(low, max(*smaller, *larger) + 1)
    before = np.array([smaller.get(m, 0.0) for m in sizes])
    without = np.array([larger.get(m, 0.0) * (1 - m / (n + 1)) for m in sizes])
    holding = np.array([larger.get(m + 1, 0.0) * (m + 1) / (n + 1) for m in sizes])
    with np.errstate(divide="ignore"):
        log_before = np.log(before)
        log_most = np.log(without + math.exp(epsilon) * holding)
        log_least = np.log(without + math.exp(-epsilon) * holding)
    removed = worst_ratio(log_before, log_least, epsilon).upper
    added = worst_ratio(log_most, log_before, epsilon).upper
    return max(removed, added)


def rounding_exact_at(rate: object, epsilon: float, n: int, rounding: str) -> float:
    """Return `rounding_exact` for the sizes that rounding gives to n and n + 1 records."""
    return rounding_exact(
        rounded_sizes(rate, n, rounding), rounded_sizes(rate, n + 1, rounding), n, epsilon
    )


def _below_one(rate: object) -> Fraction:
    exact = exact_rate(rate)
    if exact == 1:
        raise UnsupportedError(
            "the theorem needs a rate below 1, got 1; without sampling the loss is epsilon"
        )
    return exact


def advantage(one: SizeChances, other: SizeChances, epsilon: float) -> float:
    """Return the largest advantage Pr[H = X] - Pr[H = Y] of an epsilon-DP test that sees a size.

    At most tanh(epsilon'/2) if sampling with this size keeps epsilon' (bun, Proposition 4.1;
    printed: e^epsilon' - 1).
    """
    path = range(min(*one, *other), max(*one, *other) + 1)
    p: dict[State, float] = {(m,): one.get(m, 0.0) for m in path}
    q: dict[State, float] = {(m,): other.get(m, 0.0) for m in path}
    return hockey_stick(p, q, epsilon, at=0.0, delta=0.0)


def size_loss(one: SizeChances, other: SizeChances, epsilon: float) -> float:
    """Return the worst loss of all mechanisms that see the size only (bun, Section 4.1)."""
    path = range(min(*one, *other), max(*one, *other) + 1)
    with np.errstate(divide="ignore"):
        p, q = (np.log([law.get(m, 0.0) for m in path]) for law in (one, other))
    return max(worst_ratio(p, q, epsilon).upper, worst_ratio(q, p, epsilon).upper)


def two_point_error(step: float, epsilon_amplified: float, longest: int = 10**6) -> float:
    """Return max over k of (k step)^2 / (4 cosh^2(k epsilon'/2)).

    It is a lower bound on the mean squared error of every private estimator.

    The estimator is epsilon'-DP under the relation whose steps change the statistic by `step` each;
    k steps are available up to `longest`. For long paths the maximum is 0.439229 step^2/epsilon'^2
    (bun, Proposition 4.2).
    """
    step = checks.real("step", step, above=0)
    epsilon = checks.real("epsilon_amplified", epsilon_amplified, above=0)
    longest = checks.integer("longest", longest, at_least=1)
    # k tanh(k epsilon/2) epsilon/2 = 1 at the continuous maximum: k epsilon/2 = 1.199678
    continuous = 1.1996786402577338 * 2 / epsilon
    paths = {max(1, min(longest, k)) for k in (math.floor(continuous), math.ceil(continuous))}
    return max((k * step / (2 * math.cosh(k * epsilon / 2))) ** 2 for k in paths)


def error_floor(alpha: float, epsilon: float, *, noise: float) -> float:
    """Return max(0, alpha - noise/epsilon^2), the smallest mean squared error of a sample size.

    It is attained for some population. `noise` stands for the variance of Lap(1): 1 as printed, 2
    in truth (bun, Proposition 4.2, erratum BN3).
    """
    return max(0.0, alpha - noise / checks.real("epsilon", epsilon, above=0) ** 2)

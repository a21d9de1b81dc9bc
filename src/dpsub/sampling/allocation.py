"""Sizes of samples from public or auxiliary data: a share rounded to a whole number, allocations to
strata, PPS."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from dpsub import checks
from dpsub.errors import ArgumentError

ROUNDINGS = ("half_up", "randomised")
SizeChances = dict[int, float]
"""Probability of each possible size of a sample."""


def exact_rate(rate: object) -> Fraction:
    """Return a rate in (0, 1] as an exact rational number; 0.1, "0.1" and "1/10" are all one
    tenth."""
    try:
        # a float stands for the decimal number that it prints as
        exact = Fraction(repr(float(rate)) if isinstance(rate, float) else str(rate))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(
            f"rate must be a number such as 0.1 or 1/10, got rate = {rate!r}"
        ) from None
    if not 0 < exact <= 1:
        raise ArgumentError(f"rate must be above 0 and at most 1, got rate = {rate}")
    return exact


def rounded_sizes(rate: object, n: int, rounding: str) -> SizeChances:
    """Return the law of the size of a sample at `rate` from n records (bun, Section 4.3).
    half_up: floor(rate n + 1/2), in exact arithmetic (a language's own rounding sends ties to even
    numbers); randomised: the two integers around rate n, with the chances that keep the mean at
    rate n.
    """
    wanted = exact_rate(rate) * checks.integer("n", n, at_least=0)
    checks.one_of("rounding", rounding, ROUNDINGS)
    if rounding == "half_up":
        return {math.floor(wanted + Fraction(1, 2)): 1.0}
    low = math.floor(wanted)
    up = float(wanted - low)
    return {low: 1 - up, low + 1: up} if up else {low: 1.0}


def log_normal_sizes(n: int, mean: float, sd: float) -> np.ndarray:
    """Return log probabilities of the sizes 0, ..., n proportional to exp(-(size - mean)^2 / (2
    sd^2))."""
    n, sd = checks.integer("n", n, at_least=1), checks.real("sd", sd, above=0)
    exponent = -0.5 * ((np.arange(n + 1) - checks.real("mean", mean)) / sd) ** 2
    return np.asarray(exponent - logsumexp(exponent))


def proportional(sizes: Sequence[int], m: int, *, at_least: int = 1) -> tuple[int, ...]:
    """Return the allocation proportional to the sizes N_i of the strata, integers that sum to m."""
    return allocate(sizes, np.asarray(sizes, dtype=float), m, at_least=at_least)


def neyman(
    sizes: Sequence[int],
    deviations: Sequence[float],
    m: int,
    *,
    costs: ArrayLike | None = None,
    at_least: int = 1,
) -> tuple[int, ...]:
    """Return the allocation proportional to N_i S_i / sqrt(c_i), of least variance of the mean
    (bun, Section 7.2). `deviations` are S_i, all with one divisor (N_i - 1 makes the variance
    formula exact), `costs` c_i the costs of one unit, equal by default; `at_least` is 1, or 2 where
    a stratum's variance is to be estimated.
    """
    s = checks.finite_array("deviations", deviations, ndim=1)
    c = checks.finite_array("costs", np.ones(len(sizes)) if costs is None else costs, ndim=1)
    if not len(sizes) == len(s) == len(c):
        raise ArgumentError(
            f"sizes, deviations and costs must have equal lengths, got {len(sizes)}, "
            f"{len(s)}, {len(c)}"
        )
    if (s.size and s.min() < 0) or not np.any(s > 0):
        raise ArgumentError(
            "standard deviations must not be negative and some must be above 0; "
            "use another allocation"
        )
    if c.min() <= 0:
        raise ArgumentError(f"costs must be above 0, got {c.min():g}")
    return allocate(sizes, np.asarray(sizes, dtype=float) * s / np.sqrt(c), m, at_least=at_least)


def allocate(
    sizes: Sequence[int], weights: np.ndarray, m: int, *, at_least: int = 1
) -> tuple[int, ...]:
    """Return integers m_i in [at_least, N_i] that sum to m and minimise sum weights_i^2 / m_i.

    Units go one by one to the stratum in which weights_i / sqrt(m_i (m_i + 1)) is largest: the
    exact integer optimum, which takes all of a stratum where its share exceeds it and hands the
    rest on.
    """
    limits = [checks.integer("the size of a stratum", size, at_least=0) for size in sizes]
    m = checks.integer("m", m, at_least=1)
    at_least = checks.integer("at_least", at_least, at_least=1)
    for stratum, size in enumerate(limits):
        if size < at_least:
            rule = f"every stratum must hold its smallest allocation of {at_least}"
            raise ArgumentError(f"{rule}, got stratum {stratum} with {size}; merge strata")
    if not at_least * len(limits) <= m <= sum(limits):
        rule = (
            f"m must lie between {at_least} a stratum = {at_least * len(limits)} and all "
            f"{sum(limits)} records"
        )
        raise ArgumentError(f"{rule}, got m = {m}")
    # units that every optimum gives to a stratum: at the last unit's worth v, m_i lies between
    # w_i/v - 1 and the larger of at_least and w_i/v + 1/2, so 1/v is at least (m - 2 at_least k) /
    # sum(w). The greedy rule spends the rest.
    total, shares = float(weights.sum()), weights.tolist()
    spare = max(0, m - 2 * at_least * len(limits))
    sure = [math.floor(spare * w / total) - 1 if total > 0 else 0 for w in shares]
    allocated = [min(size, max(at_least, count)) for size, count in zip(limits, sure, strict=True)]

    def urgency(stratum: int) -> tuple[float, int]:
        """Key of a stratum in the queue, where the stratum in which one more unit is worth most
        comes first."""
        units = allocated[stratum]
        return -shares[stratum] / math.sqrt(units * (units + 1)), stratum

    queue = [urgency(stratum) for stratum, size in enumerate(limits) if allocated[stratum] < size]
    heapq.heapify(queue)
    for _ in range(m - sum(allocated)):
        _, stratum = heapq.heappop(queue)
        allocated[stratum] += 1
        if allocated[stratum] < limits[stratum]:
            heapq.heappush(queue, urgency(stratum))
    return tuple(allocated)


def inclusion_probabilities(sizes: np.ndarray, m: int) -> np.ndarray:
    """Return pi_i = m r_i / sum r, r = `sizes`; a share above 1 is certain, the rest shared again
    (bun, Section 6.1)."""
    r = checks.finite_array("sizes", sizes, ndim=1)
    m = checks.integer("m", m, at_least=1)
    if r.size == 0 or r.min() <= 0:
        raise ArgumentError(
            "sizes must be above 0 for sampling in proportion to them; leave the others out"
        )
    if m >= len(r):
        raise ArgumentError(
            f"m must be below the number of units with a size = {len(r)}, got m = {m}; take all"
        )
    pi, certain = np.zeros(len(r)), np.zeros(len(r), dtype=bool)
    while True:
        pi[~certain] = (m - int(certain.sum())) * r[~certain] / r[~certain].sum()
        over = (pi >= 1) & ~certain
        if not over.any():
            return pi
        certain |= over
        pi[certain] = 1.0

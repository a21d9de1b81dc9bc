"""Numbers of the errata that follow from no table of the run, for the placeholders `computed`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsub.amplification.survey import laws, rates, sizes, unequal
from dpsub.amplification.survey.auditor import audit
from dpsub.papers.bun.experiments import bounds
from dpsub.reproduce import experiments

SMALLEST_WEIGHT = 244
"""Establishments that the last class has at least, by the printed allocations (BN9)."""


def amplified(rate: float, epsilon: float) -> float:
    return rates.amplified(rate, epsilon)


def base_for(rate: float, epsilon_amplified: float) -> float:
    return rates.base_for(rate, epsilon_amplified)


def printed_floor() -> float:
    """Return the printed lower bound of Proposition 4.2 where an estimator has no error."""
    (case,) = (case for case in bounds.printed_numbers() if case.statement == "P4.2 deletion")
    return case.stated


def rule_for_lambda(epsilon: float, rate: float) -> float:
    # Section 7.3's rule, valid for epsilon much below the rate only (erratum BN8).
    return epsilon / (6 * rate)


def own_bound(rate: str, epsilon: float) -> float:
    """Return the bound of Theorem 4.3 for a mechanism that is `epsilon`-DP on the sample."""
    return sizes.rounding_printed(rate, epsilon)


def corrected_lambda(rate: str) -> float:
    """Return the epsilon on the sample with which Theorem 4.3 promises 1."""
    return sizes.rounding_base(rate, 1.0)


def direction_of_theorem_53(which: str) -> float:
    """Return the bound "stated" or "corrected", or the "exact" loss, of the example."""
    return float(getattr(bounds.presence(1.0), which))


def one_cluster_by_size(members: Sequence[int]) -> float:
    """Return the loss of one cluster that is drawn with a chance proportional to its size, at
    epsilon = 0.5."""
    # Epsilon = 0.5, as in the example of erratum BN14.
    return unequal.pps_cluster(tuple(members), 0, 0.5)


def inserted_over_epsilon(n: int) -> float:
    """Return the loss of an inserted record over epsilon = 0.5, every second of n records in a
    known order."""
    # Insertion in the middle of the known order moves half of the units to the other class (erratum
    # BN15).
    return audit(*laws.inserted(n, n // 2), 0.5).loss / 0.5


def growth_of_the_last_class() -> float:
    """Return the factor of the last class's weight that takes one printed allocation to the
    other."""
    # Of odds: the weights N sigma of the other classes do not change, and shares of m are in
    # proportion to all of them.
    printed = experiments.REGISTRY.get("bun_neyman").defaults()
    before, after = printed["before"], printed["after"]
    return float((after[-1] / sum(after[:-1])) / (before[-1] / sum(before[:-1])))


def largest_deviation_of_the_last_class() -> float:
    """Return an upper limit for the standard deviation in the class: (1 + (5000 / sd)^2) / N =
    growth^2 - 1."""
    return 5000 / math.sqrt((growth_of_the_last_class() ** 2 - 1) * SMALLEST_WEIGHT - 1)


def break_even(epsilon: float) -> float:
    """Return the rate from which on the bound of Theorem 4.3 is no longer below epsilon."""
    return float(sizes.rounding_break_even(epsilon))


def informative_from() -> float:
    """Return the multiple of 1/epsilon that Delta / epsilon' must exceed for the corrected bound to
    be positive."""
    # Proposition 4.2's corrected slack, 2 / epsilon^2, against the two-point bound of a path of
    # such steps (erratum BN3).
    per_step = 1e-4  # small, so that the path is long and the maximum that of a continuous one
    return math.sqrt(2 / (sizes.two_point_error(1, per_step) * per_step**2))

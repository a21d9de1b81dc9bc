"""Samples without replacement whose size is random and does not depend on the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dpsub import checks
from dpsub.designs.path_programme import worst_ratio
from dpsub.designs.rates import amplified, lower_amplified
from dpsub.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class SizeLaw:
    """The law t of the sample size, on 0..n for a population of n records.

    Parameters
    ----------
    log_pmf : ndarray, shape (n + 1,)
        Logarithms of t(0), ..., t(n); -inf for impossible sizes.

    Raises
    ------
    ArgumentError
        If there is no record, an entry is NaN or +inf, or the law does not sum to 1 within 1e-9.
    """

    log_pmf: np.ndarray

    def __post_init__(self) -> None:
        log_pmf = np.array(self.log_pmf, dtype=float)
        if log_pmf.ndim != 1 or log_pmf.size < 2 or not np.all(log_pmf < np.inf):
            raise ArgumentError(f"a law of sizes needs logarithms for 0..n with n >= 1, got shape {log_pmf.shape}")
        total = float(np.exp(logsumexp(log_pmf)))
        if abs(total - 1) > 1e-9:
            raise ArgumentError(f"a law of sizes must sum to 1, got a sum of {total!r}; divide by it")
        log_pmf.flags.writeable = False
        object.__setattr__(self, "log_pmf", log_pmf)

    @classmethod
    def of_probabilities(cls, t: np.ndarray) -> SizeLaw:
        """Return the law with the probabilities `t`, shape (n + 1,), none negative."""
        t = checks.finite_array("t", t, ndim=1)
        if t.size and t.min() < 0:
            raise ArgumentError(f"probabilities of sizes must not be negative, got {t.min():g}")
        with np.errstate(divide="ignore"):
            return cls(np.log(t))

    @classmethod
    def fixed(cls, n: int, m: int) -> SizeLaw:
        """Return the point mass at size m of n."""
        n = checks.integer("n", n, at_least=1)
        log_pmf = np.full(n + 1, -np.inf)
        log_pmf[checks.integer("m", m, at_least=0, at_most=n, at_most_name="n")] = 0.0
        return cls(log_pmf)

    @classmethod
    def truncated_gaussian(cls, n: int, mean: float, sigma: float) -> SizeLaw:
        """Return t(m) proportional to exp(-(m - mean)^2 / (2 sigma^2)) on the integers 0..n.

        Raises
        ------
        ArgumentError
            If n < 1 or sigma is not above 0.
        """
        n = checks.integer("n", n, at_least=1)
        sigma = checks.real("sigma", sigma, above=0)
        exponent = -0.5 * ((np.arange(n + 1) - checks.real("mean", mean)) / sigma) ** 2
        return cls(exponent - logsumexp(exponent))

    @property
    def n(self) -> int:
        """Number of records of the population."""
        return len(self.log_pmf) - 1

    @property
    def mean(self) -> float:
        """Expected size."""
        return float(np.arange(self.n + 1) @ np.exp(self.log_pmf))

    def tilted_mean(self, epsilon: float) -> float:
        """Return the mean of the law proportional to exp(epsilon m) t(m)."""
        sizes = np.arange(self.n + 1)
        tilted = self.log_pmf + checks.real("epsilon", epsilon, above=0) * sizes
        return float(sizes @ np.exp(tilted - logsumexp(tilted)))


def upper(law: SizeLaw, epsilon: float, *, factor: int) -> float:
    """Return log(1 + (mu/n) (exp(factor epsilon) - 1)), mu the tilted mean; substitution of one record.

    factor = 1 is printed for mechanisms that are epsilon-DP under add_remove, of which it is not true; it holds if
    the mechanism is epsilon-DP under add_remove and under substitute. factor = 2 holds for every mechanism that is
    epsilon-DP under add_remove.

    References
    ----------
    bun, Theorem 3.1 (erratum BN1).
    """
    return amplified(_share(law, epsilon), factor * epsilon)


def lower(law: SizeLaw, epsilon: float, *, factor: int) -> float:
    """Return -log(1 - (mu/n) (1 - exp(-factor epsilon))), which some epsilon-DP mechanism attains or exceeds.

    With factor = 2 the mechanism is a sum of values in [-1, 1] with Laplace noise.

    References
    ----------
    bun, Theorem 3.1.
    """
    return lower_amplified(_share(law, epsilon), factor * epsilon)


def exact(law: SizeLaw, epsilon: float) -> float:
    """Return the worst loss under substitution over all mechanisms that are epsilon-DP under add_remove.

    With A_m the probability of an event on a sample of size m that lacks the record, at most exp(epsilon) A_{m-1} on
    one that holds it and at least exp(-epsilon) A_{m-1} on one that holds its substitute, the ratio of the two
    mixtures is largest over sequences A (`worst_ratio`). O(n) a pass; rounded upwards.
    """
    sizes = np.arange(law.n + 1)
    with np.errstate(divide="ignore"):
        without = law.log_pmf[:-1] + np.log1p(-sizes[:-1] / law.n)
        holding = law.log_pmf[1:] + np.log(sizes[1:] / law.n)
    n, d = np.logaddexp(without, holding + epsilon), np.logaddexp(without, holding - epsilon)
    if not np.any(n > -np.inf):
        raise ArgumentError("a law of sizes must leave some chance of a sample, got none")
    return worst_ratio(n, d, epsilon).upper


def _share(law: SizeLaw, epsilon: float) -> float:
    return min(1.0, law.tilted_mean(epsilon) / law.n)

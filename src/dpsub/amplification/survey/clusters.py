"""Cluster sampling: l of k clusters, drawn uniformly without replacement, with all of their members
or a Poisson sample of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.amplification.survey.rates import amplified
from dpsub.errors import ArgumentError


def loss(share: float, epsilon: float, exponent: float) -> float:
    """Return log(1 + q (e^epsilon - 1) / (q + (1 - q) e^(-N epsilon))), N = `exponent` (bun,
    Theorems 5.1 and 5.2)."""
    share = checks.real("share", share, above=0, at_most=1)
    epsilon = checks.real("epsilon", epsilon, above=0)
    return _mixed(share, epsilon, -checks.real("exponent", exponent, at_least=0) * epsilon)


def _mixed(share: float, epsilon: float, log_rho: float) -> float:
    """log(1 + (e^epsilon - 1) w), w = q / (q + (1 - q) rho): the loss is that of a rate w."""
    rest = math.log1p(-share) - math.log(share) + log_rho if share < 1 else -math.inf
    return amplified(1 / (1 + math.exp(min(rest, 700.0))), epsilon)


def checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the clusters if there are two or more and none is empty."""
    checked = tuple(checks.integer("the size of a cluster", size, at_least=1) for size in sizes)
    if len(checked) < 2:
        raise ArgumentError(f"cluster sampling needs at least 2 clusters, got {len(checked)}")
    return checked


@dataclass(frozen=True)
class ClusterDesign:
    """A draw of `drawn` clusters, of each a Poisson sample of rate `second_stage`.

    It is for adding or removing one record with a fixed partition; `sizes` are those of the smaller
    population (bun, Section 5).
    """

    sizes: tuple[int, ...]
    drawn: int
    second_stage: float = 1.0

    def __post_init__(self) -> None:
        sizes = checked_sizes(self.sizes)
        drawn = checks.integer(
            "drawn", self.drawn, at_least=1, at_most=len(sizes), at_most_name="the clusters"
        )
        rate = checks.real("second_stage", self.second_stage, above=0, at_most=1)
        for name, value in (("sizes", sizes), ("drawn", drawn), ("second_stage", rate)):
            object.__setattr__(self, name, value)

    def upper(self, epsilon: float, cluster: int) -> float:
        """Return the loss with the largest other cluster, an upper bound.

        It holds for every mechanism that is epsilon-DP under add_remove.
        """
        return self._closed(epsilon, cluster, max)

    def lower(self, epsilon: float, cluster: int) -> float:
        """Return the loss with the smallest other cluster, which some mechanism reaches."""
        return self._closed(epsilon, cluster, min)

    def _closed(
        self, epsilon: float, cluster: int, extreme: Callable[[tuple[int, ...]], int]
    ) -> float:
        share, inner = self.drawn / len(self.sizes), amplified(self.second_stage, epsilon)
        return loss(share, inner, self.sizes[cluster] + extreme(self._others(cluster)))

    def _others(self, cluster: int) -> tuple[int, ...]:
        return self.sizes[:cluster] + self.sizes[cluster + 1 :]

    def exact(self, epsilon: float, cluster: int) -> float:
        """Return the worst loss of all mechanisms for a record of one cluster, in O(k l).

        The factor e^(-N epsilon) becomes e^(-n_i epsilon) [E_l(z)/C(k-1, l)] / [E_{l-1}(z)/C(k-1,
        l-1)], E the elementary symmetric polynomials of z_j = e^(-epsilon n_j) over the other
        clusters. With a second stage it is exact for the mechanism that the second stage makes of a
        worst one, an upper bound otherwise.
        """
        k, taken = len(self.sizes), self.drawn
        inner = amplified(self.second_stage, epsilon)
        if taken == k:
            return inner
        log_e = log_symmetric(-inner * np.array(self._others(cluster), dtype=float), taken)
        # C(k-1, l) / C(k-1, l-1) = (k - l) / l
        log_binomial_ratio = math.log((k - taken) / taken)
        own = -inner * self.sizes[cluster]
        log_rho = own + log_e[taken] - log_e[taken - 1] - log_binomial_ratio
        return _mixed(taken / k, inner, log_rho)

    def worst(self, epsilon: float, kind: str) -> float:
        """Return the largest loss over all clusters; `kind` is "upper", "lower" or "exact"."""
        # Clusters of one size have the same loss.
        representatives = [self.sizes.index(size) for size in sorted(set(self.sizes))]
        return max(getattr(self, kind)(epsilon, cluster) for cluster in representatives)


def log_symmetric(log_z: np.ndarray, degree: int) -> np.ndarray:
    """Return log E_0, ..., log E_degree, the elementary symmetric polynomials of exp(log_z)."""
    # E_d <- E_d + z E_{d-1} has positive terms only.
    log_e = np.full(degree + 1, -np.inf)
    log_e[0] = 0.0
    for count, log_value in enumerate(log_z.tolist(), start=1):
        top = min(count, degree)
        log_e[1 : top + 1] = np.logaddexp(log_e[1 : top + 1], log_e[:top] + log_value)
    return log_e


def presence_bound(
    share: float, epsilon_in: float, epsilon_out: float, *, reverse: bool = False
) -> float:
    """Return the loss that a test for the presence of a cluster proves.

    It is log(1 + (e^x - 1) q / (q + e^(x - y) (1 - q))). x = `epsilon_in` is the conditional loss
    on the test's event given that the cluster is in; y = `epsilon_out` is how well the event
    distinguishes in from out on the first population. The printed e^(-y) (`reverse`) is right only
    where the conditional loss is taken in the other direction (bun, Theorem 5.3, erratum BN4).
    """
    share = checks.real("share", share, above=0, below=1)
    x = checks.real("epsilon_in", epsilon_in, at_least=0)
    y = checks.real("epsilon_out", epsilon_out, at_least=0)
    leak = math.exp(-y if reverse else x - y)
    return math.log1p(math.expm1(x) * share / (share + leak * (1 - share)))

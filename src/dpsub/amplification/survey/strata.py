"""Stratified sampling: a guarantee for each stratum, and allocations compared at one guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.amplification.survey import rates
from dpsub.amplification.survey.sizes import rounding_checked
from dpsub.errors import UnsupportedError


def proportional(rate: object, epsilon: float, sizes: Sequence[int], *, differing: int) -> float:
    """Return the loss of proportional allocation with randomised rounding in each stratum, for one stratum's records.

    The size condition is needed in the differing stratum only; upper, add_remove.

    References
    ----------
    bun, Theorem 7.2.
    """
    return rounding_checked(rate, epsilon, checks.integer("the size of a stratum", sizes[differing], at_least=1))


def certificate(allocation: Sequence[int], sizes: Sequence[int], change: int, base: float) -> float:
    """Return max_i log(1 + f_i/(N_i + 1) (e^(2 base) - 1)) + s_1 base, for an allocation that depends on the data.

    s_1 = `change` is the largest L1 change of the allocation when one record is added or removed; upper, add_remove.

    References
    ----------
    bun, Lemma B.1, stratum by stratum.
    """
    share = max(f / (n + 1) for f, n in zip(allocation, sizes, strict=True))
    return rates.amplified(min(1.0, share), 2 * base) + checks.integer("change", change, at_least=0) * base


def base_for_certificate(allocation: Sequence[int], sizes: Sequence[int], change: int, target: float) -> float:
    """Return the largest base epsilon whose `certificate` is at most `target`, by bisection, rounded down."""
    target = checks.real("target", target, above=0)
    # at base = target/(change + 2) the certificate is at most the target, as the first term is at most 2 base
    low, high = target / (change + 2), 2.0 * target + 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if certificate(allocation, sizes, change, middle) <= target else (low, middle)
    return low


def base_for_public(allocation: Sequence[int], sizes: Sequence[int], target: float) -> float:
    """Return the base epsilon for an allocation fixed in advance: the smallest over strata of `rates.base_for`.

    Substitution within a stratum, mechanisms that are epsilon-DP under substitute.
    """
    return min(rates.base_for(f / n, target) for f, n in zip(allocation, sizes, strict=True) if f)


def private_weights(
    sizes: Sequence[int], deviations: Sequence[float], upper_limit: float, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Return N_i S_i with Laplace noise, epsilon-DP when one value in [0, B] is substituted within its stratum.

    N_i S_i is N_i / sqrt(N_i - 1) times the length of the centred values, which one value moves by at most
    B sqrt((N_i - 1)/N_i): the sensitivity is B sqrt(N_i), in one stratum only. The sizes N_i are public. A weight
    below the scale of its noise is raised to it, so that no stratum is starved by chance.

    Parameters
    ----------
    deviations : sequence of float
        S_i with divisor N_i - 1.
    upper_limit : float
        B, public.
    """
    upper_limit = checks.real("upper_limit", upper_limit, above=0)
    scale = upper_limit * np.sqrt(np.array(sizes, dtype=float)) / checks.real("epsilon", epsilon, above=0)
    weights = np.array(sizes, dtype=float) * np.array(deviations, dtype=float)
    return np.asarray(np.maximum(weights + rng.laplace(scale=scale), scale))


@dataclass(frozen=True)
class Scenario:
    """What a population may look like: sizes N_i and standard deviations (divisor N_i - 1) of the strata."""

    sizes: tuple[int, ...]
    deviations: tuple[float, ...]

    def sampling_variance(self, allocation: Sequence[float]) -> float:
        """Return the design variance of the mean, sum (N_i/N)^2 (1 - m_i/N_i) S_i^2/m_i.

        References
        ----------
        bun, Section 7.2.
        """
        total = sum(self.sizes)
        return math.fsum(
            (n / total) ** 2 * max(0.0, 1 - m / n) * s * s / m
            for n, s, m in zip(self.sizes, self.deviations, allocation, strict=True)
        )


@dataclass(frozen=True)
class MenuItem:
    """An allocation rule of the menu: what it allocates in each scenario, and the base epsilon that it allows."""

    name: str
    allocations: tuple[tuple[int, ...], ...]
    base: float


def compare_menu(
    items: Sequence[MenuItem], scenarios: Sequence[Scenario], upper_limit: float
) -> list[Mapping[str, float | str]]:
    """Return sampling, noise and total variance of the mean for each rule, the largest over the scenarios.

    Values lie in [0, B]; weights N_i/(N m_i) are public; the noise has variance 2 (B max w/base)^2. The rule with the
    smallest worst total is the answer to Equations 7 and 8 over this menu and family.

    References
    ----------
    bun, Equations 6 to 8.
    """
    if not items or not scenarios:
        raise UnsupportedError("a comparison needs at least one rule and one scenario; give both")
    upper_limit = checks.real("upper_limit", upper_limit, above=0)
    rows: list[Mapping[str, float | str]] = []
    for item in items:
        parts = []
        for allocation, scenario in zip(item.allocations, scenarios, strict=True):
            total = sum(scenario.sizes)
            weight = max(n / (total * m) for n, m in zip(scenario.sizes, allocation, strict=True))
            parts.append((scenario.sampling_variance(allocation), 2 * (upper_limit * weight / item.base) ** 2))
        table = np.array(parts)
        worst = int(table.sum(axis=1).argmax())
        rows.append({"rule": item.name, "base": item.base, "sampling": float(table[worst, 0]),
                     "noise": float(table[worst, 1]), "total": float(table[worst].sum())})  # fmt: skip
    return rows

"""What the paper computes: its theorems and algorithms, reproduced. None of it is a guarantee.

Theorem 1 takes the loss for Z with probability 1 - W and Z + L with probability W, Z the kernel's
loss, L = -log(1 - q) and W its mass inside the bounds for one data set and outside for its
neighbour. The exact profile may lie on either side of it, and of what Theorem 3 makes of it for
many releases: docs/recycling.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.pld import check_time
from dpsub.errors import NumericalError
from dpsub.noise import AdditiveNoiseProfile, GaussianProfile
from dpsub.recycling.choice import Choice, best_place, bracketed, checked_budget
from dpsub.recycling.composition import bisected_epsilon, checked_steps
from dpsub.recycling.kernels import Family, Kernel
from dpsub.recycling.law import Recycled
from dpsub.sampling.laws import log_binomial

OBJECTIVES = ("corrected", "printed")
CONVERSIONS = ("balle2020", "mironov")
"""From Renyi divergences to (epsilon, delta); the paper does not say which it takes."""
_SHIFTS = np.geomspace(1e-3, 3e4, 1200)

# epsilon, any real numbers -> delta_Z^T(epsilon)
ComposedProfile = Callable[[np.ndarray], np.ndarray]


def crossing_mass(kernel: Kernel, lower: float, upper: float, sensitivity: float) -> float:
    """W of brdp, Theorem 1, (7), with the second set as it is printed (for symmetric bounds it does
    not matter)."""
    first = kernel.mass(lower, min(lower + sensitivity, upper))
    return max(first, kernel.mass(max(upper, lower + sensitivity), upper + sensitivity))


def theorem1_delta(law: Recycled, epsilon: ArrayLike) -> np.ndarray:
    """(1 - W) delta_Z(epsilon) + W delta_Z(epsilon - L): brdp, Proposition 2, (8)."""
    order = checks.finite_array("epsilon", epsilon)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    return _mixed(law.kernel, law.sensitivity, weight, order, np.asarray(law.rate))


def _mixed(
    kernel: Kernel, sensitivity: float, weight: float, order: np.ndarray, rate: np.ndarray
) -> np.ndarray:
    with np.errstate(divide="ignore"):
        moved = order + np.log1p(-rate)
    return np.asarray(
        (1 - weight) * kernel.delta(order, sensitivity) + weight * kernel.delta(moved, sensitivity)
    )


def baseline_rate(epsilon: float, kernel_epsilon: float) -> float:
    """q = 1 - exp(-(epsilon - epsilon_y)): brdp, Theorem 2. For delta > 0 only (epsilon, c delta)
    is proved."""
    order = checks.real("epsilon", epsilon, at_least=0)
    spent = checks.real("kernel_epsilon", kernel_epsilon, at_least=0, at_most=order)
    return -math.expm1(spent - order)


def algorithm1(
    kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float
) -> float:
    """The largest rate at which (8) stays below delta, to 1e-9, as none is printed; 0 if none does:
    brdp, Algorithm 1.

    As (8) grows with the rate, cutting into many parts at once finds what halving does."""
    order, target = checked_budget(epsilon, delta)
    weight = crossing_mass(kernel, lower, upper, sensitivity)
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        rates = np.linspace(low, high, 101)
        kept = _mixed(kernel, sensitivity, weight, np.asarray(order), rates) <= target
        last = int(np.count_nonzero(kept)) - 1
        if last < 0:
            return 0.0
        if last == 100:
            return high
        low, high = float(rates[last]), float(rates[last + 1])
    return low


def mean_trials(law: Recycled, objective: str = "corrected") -> float:
    """1 / acceptance = q + (1 - q) / p: brdp, (10); `printed`: with q and 1 - q exchanged."""
    q = (
        law.rate
        if checks.one_of("objective", objective, OBJECTIVES) == "corrected"
        else 1 - law.rate
    )
    return q + (1 - q) / law.inside


def algorithm2(
    family: Family,
    epsilon: float,
    delta: float,
    bound: float,
    sensitivity: float,
    objective: str = "corrected",
) -> Choice:
    """The split of epsilon that minimises (10), a kernel for (epsilon_y, delta), then Algorithm 1:
    brdp, Algorithm 2.

    As there, the side of the better of two points is kept. Near 0 (8) lets q rise to 1 whatever the
    exact delta: a second optimum, without any privacy, which the search meets where the bounds are
    small against the sensitivity."""
    order, target = checked_budget(epsilon, delta)
    checks.real("bound", bound, above=0)

    def law(kernel_epsilon: float) -> Recycled:
        kernel = family.calibrated(kernel_epsilon, target, sensitivity)
        rate = algorithm1(kernel, order, target, -bound, bound, sensitivity)
        return Recycled.within(kernel, rate, bound, sensitivity)

    place = best_place(lambda e: -mean_trials(law(e), objective), 1e-9, order, 34)
    return Choice(law(place), order, target, "paper")


def renyi_composed(
    profile: AdditiveNoiseProfile, steps: int, conversion: str = "balle2020"
) -> ComposedProfile:
    """An upper bound of delta_Z^T by Renyi divergences, the smallest over their orders, at most
    1."""
    # log E e^{s L} is s times the Renyi divergence of order a = s + 1
    exponents = checks.integer("steps", steps, at_least=1) * _log_moments(profile)
    if checks.one_of("conversion", conversion, CONVERSIONS) == "balle2020":
        exponents = exponents + _SHIFTS * np.log(_SHIFTS / (1 + _SHIFTS)) - np.log1p(_SHIFTS)

    def delta(epsilon: np.ndarray) -> np.ndarray:
        logs = exponents - np.multiply.outer(np.asarray(epsilon, dtype=float), _SHIFTS)
        return np.exp(np.minimum(logs.min(axis=-1), 0.0))

    return delta


@lru_cache(maxsize=64)
def _log_moments(profile: AdditiveNoiseProfile) -> np.ndarray:
    return np.array([profile.log_moment(float(shift)) for shift in _SHIFTS])


def theorem3_delta(
    law: Recycled, steps: int, *, conversion: str = "balle2020", first: int = 0
) -> Callable[[float], float]:
    """brdp, Theorem 3, rate below 1: epsilon -> sum over k of C(T, k) (1 - W)^k W^(T - k)
    delta_Z^T(epsilon - (T - k) L), for Laplace noise by `renyi_composed`. The sum begins at k =
    `first`: 0, or 1 as in Algorithm 3."""
    times = checked_steps(steps)
    checks.real("rate", law.rate, below=1)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    # all terms that count, and more
    mean, around = times * (1 - weight), 12 * math.sqrt(times * weight * (1 - weight)) + 100
    start = max(checks.integer("first", first, at_least=0, at_most=1), math.floor(mean - around))
    k = np.arange(start, min(times, math.ceil(mean + around)) + 1)
    log_weights = log_binomial(k, times, 1 - weight)
    kept = log_weights > math.log(1e-20)
    shifts, weights = (times - k[kept]) * -math.log1p(-law.rate), np.exp(log_weights[kept])
    profile = law.kernel.profile(law.sensitivity)
    if isinstance(profile, GaussianProfile):
        composed: ComposedProfile = GaussianProfile(profile.ratio * math.sqrt(times)).delta
    else:
        composed = renyi_composed(profile, times, conversion)
    return lambda epsilon: float(weights @ composed(epsilon - shifts))


def theorem3_epsilon(
    law: Recycled, steps: int, delta: float, *, conversion: str = "balle2020"
) -> float:
    """The smallest epsilon at which `theorem3_delta` is at most `delta`."""
    target = checks.real("delta", delta, above=0, below=1)
    return bisected_epsilon(theorem3_delta(law, steps, conversion=conversion), target)[1]


def algorithm2_composed(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """Algorithm 2 for (epsilon_1, delta) each, epsilon_1 to a part in a thousand such that Theorem
    3 uses up the budget of all releases: brdp, Section 6. NumericalError if it ends at rate 1
    however little is spent."""
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    if times == 1:
        return algorithm2(family, order, target, bound, sensitivity)

    @cache
    def law(log_each: float) -> Recycled:
        return algorithm2(family, math.exp(log_each), target, bound, sensitivity).law

    @cache
    def excess(log_each: float) -> float:
        check_time()
        found = law(log_each)
        return math.log(theorem3_epsilon(found, times, target) / order) if found.rate < 1 else 1.0

    first, most = math.log(order / times) - 0.1, math.log(order)
    if excess(first) > 0:
        raise NumericalError(
            "the paper's algorithms must stop at a rate below 1, got rate 1 for epsilon = "
            f"{order:g} over {times} releases; their composition theorem has no epsilon there"
        )
    # releases that spend all of epsilon each exceed it together, and those with their T-th part do
    # not
    low, _ = bracketed(excess, first, most, 8, 1e-3)
    return Choice(law(low), order, target, "paper", times)

"""The paper's theorems and algorithms, reproduced. None of them is a guarantee.

Theorem 1 takes the loss to be Z with probability 1 - W and Z + L with probability W. Z is the loss
of the kernel, L = -log(1 - q), and W is the kernel's mass of noise that is inside the bounds for
one data set and outside for its neighbour. The exact profile may lie on either side of this
formula, and of the composition that Theorem 3 derives from it (docs/recycling.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.errors import NumericalError
from dpsub.noise import AdditiveNoiseProfile, GaussianProfile
from dpsub.recycling.choice import Choice, argmax_unimodal, bracketed, checked_budget
from dpsub.recycling.composition import bisected_epsilon, checked_steps
from dpsub.recycling.kernels import Family, Kernel
from dpsub.recycling.law import Recycled
from dpsub.sampling.laws import log_binomial

OBJECTIVES = ("corrected", "printed")
CONVERSIONS = ("balle2020", "mironov")
"""Conversions from Renyi divergences to (epsilon, delta); the paper does not say which it takes."""
_SHIFTS = np.geomspace(1e-3, 3e4, 1200)  # orders of the Renyi divergences, less 1

ComposedProfile = Callable[[np.ndarray], np.ndarray]
"""delta_Z^T(epsilon) as a function of epsilon, any real numbers."""


def crossing_mass(kernel: Kernel, lower: float, upper: float, sensitivity: float) -> float:
    """W of brdp, Theorem 1, (7)."""
    # The second set is taken as printed; for symmetric bounds it makes no difference.
    first = kernel.mass(lower, min(lower + sensitivity, upper))
    second = kernel.mass(max(upper, lower + sensitivity), upper + sensitivity)
    return max(first, second)


def theorem1_delta(law: Recycled, epsilon: ArrayLike) -> np.ndarray:
    """(1 - W) delta_Z(epsilon) + W delta_Z(epsilon - L): brdp, Proposition 2, (8)."""
    order = checks.finite_array("epsilon", epsilon)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    unshifted_delta = law.kernel.delta(order, law.sensitivity)
    shifted_delta = _shifted_delta(law.kernel, law.sensitivity, order, np.asarray(law.rate))
    return np.asarray((1 - weight) * unshifted_delta + weight * shifted_delta)


def _shifted_delta(
    kernel: Kernel, sensitivity: float, order: ArrayLike, rate: np.ndarray
) -> np.ndarray:
    """delta_Z(epsilon - L) for arrays of rates."""
    with np.errstate(divide="ignore"):
        shifted = order + np.log1p(-rate)
    return kernel.delta(shifted, sensitivity)


def baseline_rate(epsilon: float, kernel_epsilon: float) -> float:
    """q = 1 - exp(-(epsilon - epsilon_y)): brdp, Theorem 2.

    For delta > 0 only (epsilon, c delta) is proved.
    """
    order = checks.real("epsilon", epsilon, at_least=0)
    kernel_order = checks.real("kernel_epsilon", kernel_epsilon, at_least=0, at_most=order)
    return -math.expm1(kernel_order - order)


def algorithm1(
    kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float
) -> float:
    """The largest rate at which (8) is at most delta, 0 if there is none: brdp, Algorithm 1.

    The paper prints no accuracy; it is 1e-9 here.
    """
    order, target = checked_budget(epsilon, delta)
    weight = crossing_mass(kernel, lower, upper, sensitivity)
    unshifted = (1 - weight) * kernel.delta(order, sensitivity)
    low, high = 0.0, 1.0
    # (8) increases with the rate, so that a hundred rates at once bracket the same root as the
    # printed bisection, in fewer evaluations.
    while high - low > 1e-9:
        rates = np.linspace(low, high, 101)
        deltas = unshifted + weight * _shifted_delta(kernel, sensitivity, order, rates)
        last = int(np.count_nonzero(deltas <= target)) - 1
        if last < 0:
            return 0.0
        if last == 100:
            return high
        low, high = float(rates[last]), float(rates[last + 1])
    return low


def mean_trials(law: Recycled, objective: str = "corrected") -> float:
    """1 / acceptance = q + (1 - q) / p: brdp, (10).

    With the objective "printed", q and 1 - q are exchanged, as in the paper.
    """
    checks.one_of("objective", objective, OBJECTIVES)
    q = law.rate if objective == "corrected" else 1 - law.rate
    return q + (1 - q) / law.inside


def algorithm2(
    family: Family,
    epsilon: float,
    delta: float,
    bound: float,
    sensitivity: float,
    objective: str = "corrected",
) -> Choice:
    """The kernel for (epsilon_y, delta) and the rate of Algorithm 1 that minimise (10) over the
    split of epsilon: brdp, Algorithm 2.

    As in the paper, the search keeps the side of the better of two points. For epsilon_y near 0
    formula (8) lets q rise to 1 whatever the exact delta is. This is a second optimum, without any
    privacy, which the search reaches where the bounds are small compared with the sensitivity.
    """
    order, target = checked_budget(epsilon, delta)
    checks.real("bound", bound, above=0)

    def law(kernel_epsilon: float) -> Recycled:
        kernel = family.calibrated(kernel_epsilon, target, sensitivity)
        rate = algorithm1(kernel, order, target, -bound, bound, sensitivity)
        return Recycled.within(kernel, rate, bound, sensitivity)

    kernel_epsilon = argmax_unimodal(lambda e: -mean_trials(law(e), objective), 1e-9, order, 34)
    return Choice(law(kernel_epsilon), order, target, "paper")


def renyi_composed(
    profile: AdditiveNoiseProfile, steps: int, conversion: str = "balle2020"
) -> ComposedProfile:
    """Upper bound on delta_Z^T by Renyi divergences: the smallest over their orders, at most 1."""
    # log E e^{s L} is s times the Renyi divergence of order s + 1, and adds up over releases.
    exponents = checks.integer("steps", steps, at_least=1) * _log_moments(profile)
    checks.one_of("conversion", conversion, CONVERSIONS)
    if conversion == "balle2020":
        # The conversion of Balle et al. (2020) gains this factor over Markov's inequality.
        exponents = exponents + _SHIFTS * np.log(_SHIFTS / (1 + _SHIFTS)) - np.log1p(_SHIFTS)

    def delta(epsilon: np.ndarray) -> np.ndarray:
        log_deltas = exponents - np.multiply.outer(np.asarray(epsilon, dtype=float), _SHIFTS)
        return np.exp(np.minimum(log_deltas.min(axis=-1), 0.0))

    return delta


@lru_cache(maxsize=64)
def _log_moments(profile: AdditiveNoiseProfile) -> np.ndarray:
    return np.array([profile.log_moment(float(shift)) for shift in _SHIFTS])


def theorem3_delta(
    law: Recycled, steps: int, *, conversion: str = "balle2020", first: int = 0
) -> Callable[[float], float]:
    """delta of T = `steps` releases as a function of epsilon: brdp, Theorem 3.

    The sum over k of C(T, k) (1 - W)^k W^(T - k) delta_Z^T(epsilon - (T - k) L), for rates below 1.
    It begins at k = `first`: 0, or 1 as in Algorithm 3. For Laplace noise delta_Z^T is that of
    `renyi_composed`.
    """
    times = checked_steps(steps)
    checks.real("rate", law.rate, below=1)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    # Terms more than 12 standard deviations from the mean, and those below 1e-20, do not count.
    mean = times * (1 - weight)
    reach = 12 * math.sqrt(times * weight * (1 - weight)) + 100
    start = max(checks.integer("first", first, at_least=0, at_most=1), math.floor(mean - reach))
    stop = min(times, math.ceil(mean + reach))
    k = np.arange(start, stop + 1)
    log_weights = log_binomial(k, times, 1 - weight)
    counts = log_weights > math.log(1e-20)
    shifts = (times - k[counts]) * -math.log1p(-law.rate)
    weights = np.exp(log_weights[counts])
    profile = law.kernel.profile(law.sensitivity)
    if isinstance(profile, GaussianProfile):
        # T Gaussian releases are one with sqrt(T) times the sensitivity.
        composed: ComposedProfile = GaussianProfile(profile.ratio * math.sqrt(times)).delta
    else:
        composed = renyi_composed(profile, times, conversion)
    return lambda epsilon: float(weights @ composed(epsilon - shifts))


def theorem3_epsilon(
    law: Recycled, steps: int, delta: float, *, conversion: str = "balle2020"
) -> float:
    """The smallest epsilon at which `theorem3_delta` is at most `delta`."""
    target = checks.real("delta", delta, above=0, below=1)
    _, epsilon = bisected_epsilon(theorem3_delta(law, steps, conversion=conversion), target)
    return epsilon


def algorithm2_composed(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """Algorithm 2 with the (epsilon_1, delta) a release at which Theorem 3 uses up the budget.

    epsilon_1 is accurate to a part in a thousand: brdp, Section 6.

    Raises
    ------
    NumericalError
        If Algorithm 2 ends at rate 1 however small epsilon_1 is.
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    if times == 1:
        return algorithm2(family, order, target, bound, sensitivity)

    @cache
    def law(log_each: float) -> Recycled:
        return algorithm2(family, math.exp(log_each), target, bound, sensitivity).law

    @cache
    def excess(log_each: float) -> float:
        work.spend(0)
        recycler = law(log_each)
        # Theorem 3 has no epsilon at rate 1: count it as above the budget.
        if recycler.rate == 1:
            return 1.0
        return math.log(theorem3_epsilon(recycler, times, target) / order)

    # Releases that each spend their T-th part of epsilon do not exceed it together; releases that
    # each spend all of it do.
    low, high = math.log(order / times) - 0.1, math.log(order)
    if excess(low) > 0:
        raise NumericalError(
            "the paper's algorithms must stop at a rate below 1, got rate 1 for epsilon = "
            f"{order:g} over {times} releases; their composition theorem has no epsilon there"
        )
    log_each, _ = bracketed(excess, low, high, 8, 1e-3)
    return Choice(law(log_each), order, target, "paper", times)

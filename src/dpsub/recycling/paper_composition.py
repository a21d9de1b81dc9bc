"""The paper's composition theorem, reproduced: many releases of one recycler.  Not a guarantee, as Theorem 1 is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpsub import checks
from dpsub.discrete import log_binomial
from dpsub.errors import NumericalError
from dpsub.profiles import AdditiveNoiseProfile, GaussianProfile
from dpsub.recycling import paper
from dpsub.recycling.choice import Choice, bracketed, budget
from dpsub.recycling.kernels import Family
from dpsub.recycling.law import Recycled
from dpsub.recycling.paper import crossing_mass

CONVERSIONS = ("balle2020", "mironov")
"""From Renyi divergences to (epsilon, delta); the paper does not say which it takes."""
_NEGLIGIBLE = math.log(1e-20)
_SHIFTS = np.geomspace(1e-3, 3e4, 1200)
_HALVINGS = 60
_SPLITS = 8

ComposedProfile = Callable[[np.ndarray], np.ndarray]
"""epsilon, any real numbers -> delta_Z^T(epsilon)."""


def gaussian(ratio: float, n_compositions: int) -> ComposedProfile:
    """delta_Z^T of Gaussian noise: its profile at ratio sqrt(T)."""
    profile = GaussianProfile(ratio * math.sqrt(checks.integer("n_compositions", n_compositions, at_least=1)))
    return lambda epsilon: np.asarray(profile.delta(epsilon))


def by_renyi(profile: AdditiveNoiseProfile, n_compositions: int, conversion: str = "balle2020") -> ComposedProfile:
    """An upper bound of delta_Z^T by Renyi divergences, the smallest over their orders, at most 1."""
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    # log E e^{s L} is s times the Renyi divergence of order a = s + 1
    exponents = times * _moments(profile)
    if checks.one_of("conversion", conversion, CONVERSIONS) == "balle2020":
        exponents = exponents + _SHIFTS * np.log(_SHIFTS / (1 + _SHIFTS)) - np.log1p(_SHIFTS)

    def delta(epsilon: np.ndarray) -> np.ndarray:
        logs = exponents - np.multiply.outer(np.asarray(epsilon, dtype=float), _SHIFTS)
        return np.exp(np.minimum(logs.min(axis=-1), 0.0))

    return delta


@lru_cache(maxsize=64)
def _moments(profile: AdditiveNoiseProfile) -> np.ndarray:
    return np.array([profile.log_moment(float(shift)) for shift in _SHIFTS])


def kernel_composed(law: Recycled, n_compositions: int, conversion: str = "balle2020") -> ComposedProfile:
    """delta_Z^T as the paper takes it: closed form for Gaussian noise, Renyi divergences for other noise."""
    profile = law.kernel.profile(law.sensitivity)
    if isinstance(profile, GaussianProfile):
        return gaussian(profile.ratio, n_compositions)
    return by_renyi(profile, n_compositions, conversion)


def delta(
    law: Recycled, n_compositions: int, epsilon: float, *, conversion: str = "balle2020", first: int = 0
) -> float:
    """sum over k of C(T, k) (1 - W)^k W^(T - k) delta_Z^T(epsilon - (T - k) L).

    Parameters
    ----------
    law : Recycled
        With q < 1.
    n_compositions : int
    epsilon : float
    conversion : {"balle2020", "mironov"}
        For Laplace noise.
    first : {0, 1}
        Where the sum begins: Algorithm 3 prints 1, the theorem 0.

    References
    ----------
    brdp, Theorem 3 and Algorithm 3.
    """
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    checks.real("rate", law.rate, below=1)
    order = checks.real("epsilon", epsilon)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    k = np.arange(checks.integer("first", first, at_least=0, at_most=1), times + 1)
    log_weights = log_binomial(k, times, 1 - weight)
    kept = log_weights > _NEGLIGIBLE
    shifts = (times - k[kept]) * -math.log1p(-law.rate)
    values = kernel_composed(law, times, conversion)(order - shifts)
    return float(np.exp(log_weights[kept]) @ values)


def epsilon(law: Recycled, n_compositions: int, delta_target: float, *, conversion: str = "balle2020") -> float:
    """The smallest epsilon at which `delta` is at most `delta_target`."""
    target = checks.real("delta", delta_target, above=0, below=1)
    return smallest_epsilon(lambda order: delta(law, n_compositions, order, conversion=conversion), target)


def smallest_epsilon(profile: Callable[[float], float], target: float) -> float:
    """Where a nonincreasing function of epsilon >= 0 falls to `target`, by bisection, rounded up."""
    low, high = 0.0, 1.0
    if profile(low) <= target:
        return 0.0
    while profile(high) > target:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= target else (middle, high)
    return high


def algorithm2(
    family: Family, epsilon_target: float, delta_target: float, n_compositions: int, bound: float, sensitivity: float
) -> Choice:
    """Parameters of one release from Algorithm 2 whose composition by Theorem 3 uses up the budget of all releases.

    Every release gets (epsilon_1, delta): epsilon_1 is found to a part in a thousand.

    References
    ----------
    brdp, Section 6: Algorithms 2 and 3 together.

    Raises
    ------
    NumericalError
        If Algorithm 2 ends at rate 1 however little is spent: Theorem 3 then says nothing.
    """
    order, target = budget(epsilon_target, delta_target)
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    if times == 1:
        return paper.algorithm2(family, order, target, bound, sensitivity)

    def law(log_each: float) -> Recycled:
        return paper.algorithm2(family, math.exp(log_each), target, bound, sensitivity).law

    def excess(log_each: float) -> float:
        found = law(log_each)
        return math.log(epsilon(found, times, target) / order) if found.rate < 1 else 1.0

    first, most = math.log(order / times) - 0.1, math.log(order)
    if excess(first) > 0:
        raise NumericalError(
            f"the paper's algorithms must stop at a rate below 1, got rate 1 for epsilon = {order:g} over {times} "
            "releases; their composition theorem has no epsilon there"
        )
    # releases that spend all of epsilon each exceed it together, and those with their T-th part do not
    low, _ = bracketed(excess, first, most, _SPLITS, 1e-3)
    return Choice(law(low), order, target, "paper", times)

"""What the paper computes: its theorems and algorithms, reproduced.  None of it is a guarantee.

Theorem 1 takes the released loss for Z with probability 1 - W and Z + L with probability W, Z the kernel's loss,
L = -log(1 - q) and W the kernel's mass of the noise that is inside the bounds for one data set and outside for its
neighbour.  Three things are not so: the weights belong to the recycled law (a factor c is missing), shift and kernel
loss are functions of the same noise and not independent, and noise that is outside first and inside then has loss
Z - L.  The exact profile may therefore lie on either side of it: `dpsub.recycling.exact`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.recycling.choice import Choice, best_place, budget
from dpsub.recycling.kernels import Family, Kernel
from dpsub.recycling.law import Recycled

OBJECTIVES = ("corrected", "printed")
TOLERANCE = 1e-9
"""Of the rate in Algorithm 1, which prints none."""
_SMALLEST_EPSILON = 1e-9
_SECTIONS = 100
_GOLDEN_STEPS = 34


def crossing_mass(kernel: Kernel, lower: float, upper: float, sensitivity: float) -> float:
    """W of equation (7), with the second set as it is printed (for symmetric bounds it does not matter).

    References
    ----------
    brdp, Theorem 1, equation (7).
    """
    first = kernel.mass(lower, min(lower + sensitivity, upper))
    second = kernel.mass(max(upper, lower + sensitivity), upper + sensitivity)
    return max(first, second)


def delta(law: Recycled, epsilon: ArrayLike) -> np.ndarray:
    """(1 - W) delta_Z(epsilon) + W delta_Z(epsilon - L).

    References
    ----------
    brdp, Proposition 2, equation (8).
    """
    order = checks.finite_array("epsilon", epsilon)
    weight = crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    return _mixed(law.kernel, law.sensitivity, weight, order, np.asarray(law.rate))


def _mixed(kernel: Kernel, sensitivity: float, weight: float, order: np.ndarray, rate: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        moved = order + np.log1p(-rate)
    return np.asarray((1 - weight) * kernel.delta(order, sensitivity) + weight * kernel.delta(moved, sensitivity))


def baseline_rate(epsilon: float, kernel_epsilon: float) -> float:
    """q = 1 - exp(-(epsilon - epsilon_y)).

    References
    ----------
    brdp, Theorem 2 and Remark 1: true for delta = 0; otherwise (epsilon, c delta) is what is proved.
    """
    order = checks.real("epsilon", epsilon, at_least=0)
    spent = checks.real("kernel_epsilon", kernel_epsilon, at_least=0, at_most=order)
    return -math.expm1(spent - order)


def algorithm1(kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float) -> float:
    """The largest rate at which equation (8) stays below delta, to `TOLERANCE`; 0 if none does.

    It grows with the rate, so that cutting the interval in many parts at once finds what halving it does.

    References
    ----------
    brdp, Algorithm 1.
    """
    order, target = budget(epsilon, delta)
    weight = crossing_mass(kernel, lower, upper, sensitivity)
    low, high = 0.0, 1.0
    while high - low > TOLERANCE:
        rates = np.linspace(low, high, _SECTIONS + 1)
        kept = _mixed(kernel, sensitivity, weight, np.asarray(order), rates) <= target
        last = int(np.count_nonzero(kept)) - 1
        if last < 0:
            return 0.0
        if last == _SECTIONS:
            return high
        low, high = float(rates[last]), float(rates[last + 1])
    return low


def mean_trials(law: Recycled, objective: str = "corrected") -> float:
    """1 / acceptance = q + (1 - q) / p; `printed`: with q and 1 - q exchanged.

    References
    ----------
    brdp, equation (10).
    """
    q = law.rate if checks.one_of("objective", objective, OBJECTIVES) == "corrected" else 1 - law.rate
    return q + (1 - q) / law.inside


def algorithm2(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float,
    objective: str = "corrected",
) -> Choice:  # fmt: skip
    """The split of epsilon that minimises equation (10): a kernel for (epsilon_y, delta), then Algorithm 1.

    The search starts just above 0, where no kernel is defined.  It keeps the side of the better of two points, as the
    paper's does.  As epsilon_y falls to 0, (8) lets q rise to 1 whatever the exact delta: a second optimum without
    any privacy, which the search meets where the bounds are small against the sensitivity.

    References
    ----------
    brdp, Algorithm 2.
    """
    order, target = budget(epsilon, delta)

    def law(kernel_epsilon: float) -> Recycled:
        kernel = family.for_budget(kernel_epsilon, target, sensitivity)
        rate = algorithm1(kernel, order, target, -bound, bound, sensitivity)
        return Recycled.within(kernel, rate, bound, sensitivity)

    checks.real("bound", bound, above=0)
    place = best_place(lambda e: -mean_trials(law(e), objective), _SMALLEST_EPSILON, order, _GOLDEN_STEPS)
    return Choice(law(place), order, target, "paper")

"""How much of the noise can lie within the bounds at most: the ceiling of any symmetric unimodal
noise.

A linear programme over the masses f_i of cells, m of which are the sensitivity (docs/recycling.md,
section 6): maximise sum of f_i within the bound, given f_i - e^epsilon f_(i-m) <= s_i, sum of s_i
<= delta. The bound does not rest on the solver: its dual values, made nonnegative, give one by weak
duality. The staircase (delta = 0) attains nearly as much.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dpsub import checks
from dpsub.errors import NumericalError
from dpsub.recycling.choice import checked_budget

_MOST_CELLS = 4000


class Ceiling(NamedTuple):
    """Largest acceptance of symmetric unimodal noise: the staircase attains `lower`, and none
    exceeds `upper`."""

    lower: float
    upper: float


def staircase(epsilon: float, bound: float, sensitivity: float) -> float:
    """Acceptance of the best noise with delta = 0: steps by e^-epsilon at bound - k D, ..., bound,
    bound + D, ... With r = bound / D and k = floor(r), 1 - A = e^(-(k + 1) epsilon) / ((r - k)(1 -
    e^-epsilon) + e^-epsilon)."""
    order = checks.real("epsilon", epsilon, above=0)
    ratio = checks.real("bound", bound, above=0) / checks.real("sensitivity", sensitivity, above=0)
    part, steps = math.modf(ratio)
    # the fraction in logarithms, times e^epsilon above and below: any epsilon will do
    log_rest = np.logaddexp(math.log(part) + order, math.log1p(-part)) if part > 0 else 0.0
    return -math.expm1(-steps * order - float(log_rest))


def ceiling(epsilon: float, delta: float, bound: float, sensitivity: float) -> Ceiling:
    """Solve the programme. A ratio of bound to sensitivity without a small denominator is rounded
    up, which only raises the bound; where the programme would be too large, or its coefficients too
    far apart, the bound is 1."""
    order, target = checked_budget(epsilon, delta)
    lower, ratio = staircase(order, bound, sensitivity), bound / sensitivity
    if ratio > _MOST_CELLS or order > 700:  # e^epsilon is a double
        return Ceiling(lower, 1.0)
    reach = min(-math.log(1e-9) / order + 2, _MOST_CELLS)  # about 1e-9 of the mass lies further out
    parts = max(1, min(120, int(_MOST_CELLS / (ratio + reach))))
    near = Fraction(ratio).limit_denominator(parts)
    if near == 0 or abs(float(near) - ratio) > 1e-12 * ratio:
        near = Fraction(math.ceil(ratio * parts), parts)
    cells = near.numerator + min(math.ceil(reach * near.denominator), _MOST_CELLS)
    programme = _programme(order, target, near.denominator, near.numerator, cells)
    return Ceiling(lower, max(lower, _certified(programme, *_prices(programme))))


class _Programme(NamedTuple):
    """What to maximise over masses of the cells 0 .. n - 1 on one side, slacks, and the mass
    further out: privacy of each cell nearer to 0 than the one it is compared with, unimodality, sum
    of the slacks; `total`: the mass is 1."""

    objective: np.ndarray
    matrix: sparse.csr_array
    right: np.ndarray
    total: np.ndarray
    cells: int


def _programme(epsilon: float, delta: float, shift: int, accepted: int, cells: int) -> _Programme:
    place = np.arange(-cells + shift, (shift + 1) // 2)
    # the cells on the right side with the same masses
    near, far = (np.where(each >= 0, each, -each - 1) for each in (place, place - shift))
    rows, inner = np.arange(place.size), np.arange(cells - 1)
    slack, falls = cells + rows, place.size + inner
    ones, growth, size = np.ones(place.size), math.exp(epsilon), cells + place.size + 1
    entries = [
        # divided by e^epsilon, so that no coefficient is large
        (rows, near, ones / growth),
        (rows, far, -ones),
        (rows, slack, -ones / growth),
        (falls, inner + 1, np.ones(cells - 1)),
        (falls, inner, -np.ones(cells - 1)),
        (np.full(place.size, place.size + cells - 1), slack, ones),
    ]
    row, column, value = (np.concatenate(each) for each in zip(*entries, strict=True))
    matrix = sparse.csr_array((value, (row, column)), shape=(place.size + cells, size))
    right, objective = np.zeros(place.size + cells), np.zeros(size)
    right[-1], objective[:accepted] = delta, 2.0
    total = np.concatenate([np.full(cells, 2.0), np.zeros(place.size), [1.0]])
    return _Programme(objective, matrix, right, total, cells)


def _prices(programme: _Programme) -> tuple[np.ndarray, float]:
    """Dual values of the inequalities, and of the total mass."""
    objective, matrix, right, total, _ = programme
    found = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
        -objective,
        A_ub=matrix,
        b_ub=right,
        A_eq=total[None, :],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        raise NumericalError(
            f"the linear programme must have a solution, got {found.message!r}; "
            "report the arguments"
        )
    return -found.ineqlin.marginals, float(-found.eqlin.marginals[0])


def _certified(programme: _Programme, prices: np.ndarray, mass_price: float) -> float:
    """The bound of weak duality: any nonnegative prices are valid, and what they leave over is
    charged. Twice the masses of the cells sum to at most 1, the slacks to at most delta, the mass
    further out to at most 1."""
    objective, matrix, right, total, n = programme
    valid = np.maximum(prices, 0.0)
    left = np.maximum(objective - matrix.T @ valid - mass_price * total, 0.0)
    charged = left[:n].max() / 2 + left[n:-1].max(initial=0.0) * right[-1] + left[-1]
    return min(1.0, float(right @ valid) + mass_price + float(charged) + 1e-12)

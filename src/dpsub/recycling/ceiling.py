"""The ceiling: the largest acceptance of any symmetric unimodal noise with the same privacy.

It is the value of a linear program over the masses f_i of cells; m cells make up the sensitivity
(docs/recycling.md, section 6): maximise the sum of f_i within the bound, subject to
f_i - e^epsilon f_(i-m) <= s_i and sum of s_i <= delta. The bound does not rest on the solver: its
dual values, made nonnegative, give one by weak duality. The staircase (delta = 0) attains nearly
as much.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpsub import checks
from dpsub.errors import NumericalError
from dpsub.recycling.choice import checked_budget

if TYPE_CHECKING:
    from scipy import sparse

_MOST_CELLS = 4000


class Ceiling(NamedTuple):
    """Bounds on the largest acceptance of symmetric unimodal noise.

    The staircase attains `lower`, and no noise exceeds `upper`.
    """

    lower: float
    upper: float


def staircase(epsilon: float, bound: float, sensitivity: float) -> float:
    """Acceptance A of the best noise with delta = 0.

    Its density falls by the factor e^-epsilon at bound - k D, ..., bound, bound + D, ... With
    r = bound / D, k = floor(r) and b = e^-epsilon, 1 - A = b^(k + 1) / ((r - k)(1 - b) + b).
    """
    order = checks.real("epsilon", epsilon, above=0)
    ratio = checks.real("bound", bound, above=0) / checks.real("sensitivity", sensitivity, above=0)
    part, steps = math.modf(ratio)
    # The denominator in logarithms, with e^epsilon as a factor of both sides of the fraction, so
    # that a large epsilon does not overflow.
    log_divisor = np.logaddexp(math.log(part) + order, math.log1p(-part)) if part > 0 else 0.0
    return -math.expm1(-steps * order - float(log_divisor))


def ceiling(epsilon: float, delta: float, bound: float, sensitivity: float) -> Ceiling:
    """Bounds on the acceptance of symmetric unimodal noise with the privacy (epsilon, delta).

    A ratio of bound to sensitivity without a small denominator is rounded up, which only raises
    the upper bound. It is 1 where the program would be too large or its coefficients too far apart.
    """
    order, target = checked_budget(epsilon, delta)
    lower = staircase(order, bound, sensitivity)
    ratio = bound / sensitivity
    # Beyond 700 e^epsilon is no double.
    if ratio > _MOST_CELLS or order > 700:
        return Ceiling(lower, 1.0)
    # In sensitivities from the bound: about 1e-9 of the mass lies further out, which is left out
    # of all constraints and so only raises the value.
    reach = min(-math.log(1e-9) / order + 2, _MOST_CELLS)
    largest_denominator = max(1, min(120, int(_MOST_CELLS / (ratio + reach))))
    # The cells must divide both the bound and the sensitivity.
    cells_ratio = Fraction(ratio).limit_denominator(largest_denominator)
    if cells_ratio == 0 or abs(float(cells_ratio) - ratio) > 1e-12 * ratio:
        cells_ratio = Fraction(math.ceil(ratio * largest_denominator), largest_denominator)
    accepted, shift = cells_ratio.numerator, cells_ratio.denominator
    cells = accepted + min(math.ceil(reach * shift), _MOST_CELLS)
    programme = _programme(order, target, shift, accepted, cells)
    prices, mass_price = _dual_values(programme)
    upper = _weak_duality_bound(programme, prices, mass_price)
    return Ceiling(lower, max(lower, upper))


class _Programme(NamedTuple):
    """Maximise objective @ x subject to matrix @ x <= right and total @ x = 1, x >= 0.

    The variables are the masses of the cells 0 .. n - 1 on one side, the slacks of the privacy
    constraints, and the mass further out. The rows are privacy of each cell nearer to 0 than the
    one it is compared with, unimodality, and the sum of the slacks.
    """

    objective: np.ndarray
    matrix: sparse.csr_array
    right: np.ndarray
    total: np.ndarray
    cells: int


def _programme(epsilon: float, delta: float, shift: int, accepted: int, cells: int) -> _Programme:
    # here, as loading it takes longer than most jobs
    from scipy import sparse

    cell = np.arange(-cells + shift, (shift + 1) // 2)
    shifted = cell - shift
    # By symmetry a cell left of 0 has the mass of its mirror image.
    near = np.where(cell >= 0, cell, -cell - 1)
    far = np.where(shifted >= 0, shifted, -shifted - 1)
    privacy_rows = np.arange(cell.size)
    inner = np.arange(cells - 1)
    unimodal_rows = cell.size + inner
    slack_sum_row = cell.size + cells - 1
    slacks = cells + privacy_rows
    ones, growth = np.ones(cell.size), math.exp(epsilon)
    entries = [
        # The privacy constraints are divided by e^epsilon, so that no coefficient is large.
        (privacy_rows, near, ones / growth),
        (privacy_rows, far, -ones),
        (privacy_rows, slacks, -ones / growth),
        (unimodal_rows, inner + 1, np.ones(cells - 1)),
        (unimodal_rows, inner, -np.ones(cells - 1)),
        (np.full(cell.size, slack_sum_row), slacks, ones),
    ]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    variables = cells + cell.size + 1
    matrix = sparse.csr_array((values, (rows, columns)), shape=(cell.size + cells, variables))
    right = np.zeros(cell.size + cells)
    right[-1] = delta
    # Cells on one side stand for both: they count twice.
    objective = np.zeros(variables)
    objective[:accepted] = 2.0
    total = np.concatenate([np.full(cells, 2.0), np.zeros(cell.size), [1.0]])
    return _Programme(objective, matrix, right, total, cells)


def _dual_values(programme: _Programme) -> tuple[np.ndarray, float]:
    """Dual values of the inequalities, and of the total mass."""
    from scipy.optimize import linprog

    objective, matrix, right, total, _ = programme
    # SciPy minimises, hence the signs.
    solution = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
        -objective,
        A_ub=matrix,
        b_ub=right,
        A_eq=total[None, :],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if solution.status != 0:
        raise NumericalError(
            f"the linear programme must have a solution, got {solution.message!r}; "
            "report the arguments"
        )
    return -solution.ineqlin.marginals, float(-solution.eqlin.marginals[0])


def _weak_duality_bound(programme: _Programme, prices: np.ndarray, mass_price: float) -> float:
    """Upper bound on the value of the programme from any nonnegative prices."""
    objective, matrix, right, total, n = programme
    valid = np.maximum(prices, 0.0)
    # Prices of the solver may violate the dual constraints slightly. The violation is charged:
    # twice the masses of the cells sum to at most 1, the slacks to at most delta, and the mass
    # further out is at most 1.
    violation = np.maximum(objective - matrix.T @ valid - mass_price * total, 0.0)
    of_cells = violation[:n].max() / 2
    of_slacks = violation[n:-1].max(initial=0.0) * right[-1]
    charged = of_cells + of_slacks + violation[-1]
    # 1e-12 covers the rounding of these sums.
    return min(1.0, float(right @ valid) + mass_price + float(charged) + 1e-12)

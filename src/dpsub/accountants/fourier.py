"""The Fourier accountant: k-fold composition of a pair by fast Fourier transforms on a grid of losses.

All outputs of this module are *per the paper's pair: not a guarantee for the sampler*.  Three methods:

printed
    Algorithm 1: cell values, minima and maxima of the loss density, raised to the k-th convolution power.  It has no
    term for truncation or aliasing, and it puts the largest density of a cell at the cell's lower end: for few
    compositions its upper value can lie below the truth, for many the growth (1 + O(dx))^k of the sandwich covers that.
as_done
    The same with the additions behind the published bounds (E2): an error term for truncation and periodisation, bounds
    clipped to [0, 1], minima and maxima from the ends of the cells only, and, where the inverse of the loss has no
    closed form, a forward difference for its derivative.
cell_mass
    Exact masses of the cells, rounded up and down: a bracket of the pair's value (see `cell_mass`).

References
----------
MUST, Algorithm 1 and Theorem 4; the method goes back to Koskela, Jälkö and Honkela (2020, 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from dpsub import checks
from dpsub.accountants.base import Interval
from dpsub.accountants.cell_mass import cell_mass_bounds
from dpsub.accountants.gaussian_pair import GaussianPair
from dpsub.accountants.grid import LossGrid, convolution_power, excess, spectrum
from dpsub.errors import NumericalError

ROUND_OFF_FLOOR = 1e-12
"""What FFT round-off leaves of the plain methods: smaller values are noise, possibly negative."""

_DROPPED_CELL = 1e-8
"""Cells below this mass were left out of the error term of the published bounds."""


@dataclass(frozen=True, eq=False)
class FourierResult:
    """delta(epsilon) for each number of compositions, per the paper's pair: not a guarantee for the sampler.

    Attributes
    ----------
    n_compositions : ndarray of int, shape (c,)
    epsilon : float
    delta_lower, delta, delta_upper : ndarray, shape (c,)
        Raw values; those of `printed` may be below `floor` in size and negative.
    floor : ndarray, shape (c,)
        Round-off floor: nothing smaller can be told from 0.
    method : str
    pair : GaussianPair
    """

    n_compositions: np.ndarray
    epsilon: float
    delta_lower: np.ndarray
    delta: np.ndarray
    delta_upper: np.ndarray
    floor: np.ndarray
    method: str
    pair: GaussianPair

    def interval(self, index: int = 0) -> Interval:
        """The bounds as an interval of kind "paper"; ends below the floor become 0 and the floor itself."""
        floor = float(self.floor[index])
        lower, upper = float(self.delta_lower[index]), float(self.delta_upper[index])
        return Interval(
            lower=0.0 if lower < floor else min(lower, 1.0),
            upper=min(max(upper, floor, lower), 1.0),
            kind="paper",
            pair=f"{self.pair.label}, s = {self.pair.scale:g}, k = {int(self.n_compositions[index])}",
            adjacency=self.pair.relation,
            sensitivity="one occurrence of the record moves the mean by 1",
        )


def compose(
    pair: GaussianPair,
    *,
    n_compositions: int | Sequence[int] | np.ndarray,
    epsilon: float,
    half_width: float,
    grid_size: int,
    method: str,
) -> FourierResult:
    """Compute delta(epsilon) of the k-fold composition, per the paper's pair: not a guarantee for the sampler.

    delta(epsilon) = int_epsilon^inf (1 - e^{epsilon - x}) omega^{*k}(x) dx, omega the density of the loss under X.

    Parameters
    ----------
    pair : GaussianPair
        One of `pairs`.
    n_compositions : int or sequence of int
        k >= 1; several of them share the inversion and the transforms.
    epsilon : float
        >= 0 and below `half_width`.
    half_width : float
        L: losses are followed on [-L, L], in nats.  Too small a one costs accuracy without a sign in `printed`, and
        widens the bracket of `cell_mass` (`cell_mass.cell_mass_bounds` shows by how much).
    grid_size : int
        r, even; products of small primes are fastest.
    method : {"printed", "as_done", "cell_mass"}

    Returns
    -------
    FourierResult
        Arrays of shape (c,), c the number of k.

    Raises
    ------
    ArgumentError
        If an argument is out of range or the method unknown.
    NumericalError
        If the loss cannot be inverted, or (printed, as_done) its density is not unimodal.

    References
    ----------
    MUST, Algorithm 1.
    """
    compute = METHODS[checks.one_of("method", method, METHODS)]
    grid = LossGrid(half_width, grid_size)
    epsilon = checks.real("epsilon", epsilon, at_least=0, below=grid.half_width)
    counts = np.array([checks.integer("n_compositions", k, at_least=1) for k in np.atleast_1d(n_compositions).tolist()])
    lower, middle, upper, floor = compute(pair, grid, epsilon, counts)
    return FourierResult(counts, epsilon, lower, middle, upper, floor, method, pair)


_Bounds = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _printed(pair: GaussianPair, grid: LossGrid, epsilon: float, counts: np.ndarray) -> _Bounds:
    omega = pair.loss_density(grid.edges)
    cells, smallest, largest = _cells(omega, grid)
    place, peak = _mode(pair, grid, omega)
    largest[place] = max(largest[place], grid.step * peak)
    middle, lower, upper = (_deltas(c, grid, epsilon, counts) for c in (cells, smallest, largest))
    return lower, middle, upper, np.full(counts.size, ROUND_OFF_FLOOR)


def _as_done(pair: GaussianPair, grid: LossGrid, epsilon: float, counts: np.ndarray) -> _Bounds:
    if pair.closed_form:
        omega = pair.loss_density(grid.edges)
    else:
        t = pair.inverse_loss(grid.edges)
        slope = np.diff(t) / grid.step
        omega = np.exp(pair.log_density(t)) * np.append(slope, slope[-1])
    cells, smallest, largest = _cells(omega, grid)
    middle, lower, upper = (_deltas(c, grid, epsilon, counts) for c in (cells, smallest, largest))
    error = truncation_error(largest, grid, counts)
    return (
        np.clip(lower - error, 0, 1),
        np.clip(middle, 0, 1),
        np.clip(upper + error, 0, 1),
        np.full(counts.size, ROUND_OFF_FLOOR),
    )


def _cell_mass(pair: GaussianPair, grid: LossGrid, epsilon: float, counts: np.ndarray) -> _Bounds:
    bounds = cell_mass_bounds(pair, grid, epsilon, counts)
    return bounds.lower, bounds.middle, bounds.upper, bounds.round_off


METHODS: dict[str, Callable[[GaussianPair, LossGrid, float, np.ndarray], _Bounds]] = {
    "printed": _printed,
    "as_done": _as_done,
    "cell_mass": _cell_mass,
}


def truncation_error(largest: np.ndarray, grid: LossGrid, counts: np.ndarray) -> np.ndarray:
    """The error term of the published bounds, with a tilt of L/2 and cells below 1e-8 left out (E2).

    (e^{k a+} + e^{k a-}) e^{-L tilt} / (1 - e^{-2 L tilt}), a+- = log sum_i c+_i e^{+-tilt x_i}; shape (c,).
    """
    tilt = grid.half_width / 2
    kept = largest >= _DROPPED_CELL
    exponents = np.log(largest[kept]), tilt * grid.points[kept]
    up = np.logaddexp.reduce(exponents[0] + exponents[1])
    down = np.logaddexp.reduce(exponents[0] - exponents[1])
    reach = grid.half_width * tilt
    return np.exp(np.minimum(np.logaddexp(counts * up, counts * down) - reach - np.log1p(-np.exp(-2 * reach)), 0.0))


def _cells(omega: np.ndarray, grid: LossGrid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c, c-, c+ from the density at the edges (step 3 of Algorithm 1, for a unimodal density)."""
    left, right = omega[:-1] * grid.step, omega[1:] * grid.step
    return left, np.minimum(left, right), np.maximum(left, right)


def _mode(pair: GaussianPair, grid: LossGrid, omega: np.ndarray) -> tuple[int, float]:
    """The cell of the density's interior maximum, and the maximum."""
    top = int(np.argmax(omega))
    change = np.diff(omega)
    # steps that go the wrong way by more than rounding, among densities that matter at all
    wrong = np.where(np.arange(change.size) < top, -change, change) > 1e-6 * omega[:-1] + 1e-30
    if wrong.any():
        turn = grid.edges[np.argmax(wrong)]
        raise NumericalError(
            f"Algorithm 1 needs a unimodal loss density, got one that turns again at {turn:.4g}; use method 'cell_mass'"
        )
    low, high = max(top - 1, 0), min(top + 1, grid.size)
    t_low, t_top, t_high = pair.inverse_loss(grid.edges[[low, top, high]])
    if not np.isfinite(t_low):
        t_low = t_top
    found = minimize_scalar(
        lambda t: -float(np.exp(pair.log_density(np.array([t])))[0] / pair.loss_slope(np.array([t]))[0]),
        bounds=(t_low, t_high),
        method="bounded",
    )
    return (top - 1 if found.x < t_top else top), -float(found.fun)


def _deltas(cells: np.ndarray, grid: LossGrid, epsilon: float, counts: np.ndarray) -> np.ndarray:
    """Steps 4 to 7 of Algorithm 1 for every number of compositions."""
    transformed = spectrum(cells)
    weights = excess(grid.points, epsilon)
    return np.array([weights @ convolution_power(transformed, int(k), grid.size) for k in counts])

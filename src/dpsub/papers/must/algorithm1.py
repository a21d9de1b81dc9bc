"""Algorithm 1 of MUST: k-fold composition by transforms, *per the paper's pair: not a guarantee for
the sampler*.

`printed`: cell values, minima and maxima of the loss density. It has no term for truncation or
aliasing, and puts the largest density of a cell at its lower end: for few compositions its upper
value can lie below the truth. `as_done`: with the additions behind the published bounds (E2): an
error term for truncation and periodisation, ends in [0, 1], extremes from the ends of cells only,
and a forward difference where the inverse loss has no closed form. `cell_mass`: exact masses of
cells, moved to their lower or upper ends: a bracket of the pair's value, on the paper's own grid,
so that digits are compared at the same L and r (which `compose.ComposedLoss` does not keep).

References
----------
MUST, Algorithm 1 and Theorem 4; the method goes back to Koskela, Jälkö and Honkela (2020, 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.optimize import minimize_scalar

from dpsub import checks
from dpsub.accounting.engine.pairs import LOSS_TOLERANCE, GaussianPair
from dpsub.accounting.questions.account import Account
from dpsub.errors import ArgumentError, NumericalError


@dataclass(frozen=True)
class CompositionGrid:
    """Points x_i = -L + i dx, i = 0..r - 1, dx = 2 L / r, L > 0 in nats, r >= 4 even (Algorithm 1,
    steps 1 and 2)."""

    half_width: float
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", checks.real("half_width", self.half_width, above=0))
        object.__setattr__(self, "size", checks.integer("grid_size", self.size, at_least=4))
        if self.size % 2:
            raise ArgumentError(
                f"grid_size must be even, got grid_size = {self.size}; take {self.size + 1}"
            )

    @property
    def step(self) -> float:
        return 2 * self.half_width / self.size

    @cached_property
    def edges(self) -> np.ndarray:
        """x_0..x_r, shape (r + 1,), its own mirror image to the last bit."""
        return (np.arange(self.size + 1) - self.size // 2) * self.step

    @property
    def points(self) -> np.ndarray:
        """x_0..x_{r-1}, shape (r,)."""
        return self.edges[:-1]


def swap_halves(values: np.ndarray) -> np.ndarray:
    """Exchange the halves of a vector of even length, so that the loss 0 comes first (H of
    Algorithm 1)."""
    return np.roll(values, values.size // 2)


def spectrum(cells: np.ndarray) -> np.ndarray:
    """Transform of the swapped cells; of a real vector, so half of it is kept."""
    return np.asarray(fft.rfft(swap_halves(cells)))


def convolution_power(transformed: np.ndarray, steps: int, size: int) -> np.ndarray:
    """The k-th cyclic convolution power of the cells with the given spectrum, in the order of the
    grid."""
    return swap_halves(fft.irfft(transformed**steps, n=size))


def excess(points: np.ndarray, epsilon: float) -> np.ndarray:
    """The weight (1 - e^{epsilon - x})_+ of a loss x in delta(epsilon)."""
    return -np.expm1(np.minimum(epsilon - points, 0.0))


_EPS = float(np.finfo(float).eps)
_TAIL_ROUNDINGS = 16  # roundings (in eps) charged for a tail probability at an edge
_STAGE_ROUNDINGS = 3
"""Roundings (in eps) charged per binary level of a transform: a butterfly of radix 2, 3, 4, 5, 7 or
11 is one complex twiddle product (at most sqrt(5) + 1 half-eps) and a few sums and real products:
5.2 half-eps a level at worst."""
# larger prime factors are transformed by another method, which this analysis does not cover
_LARGEST_RADIX = 11
_POWER_ROUNDINGS = 8  # roundings (in eps) charged per composition for a complex power


class CellMassBounds(NamedTuple):
    """Bounds on delta(epsilon) for c numbers of compositions, each of shape (c,), and the charges
    in them. `middle`: an estimate, masses at the centres of their cells. `beyond`: single losses
    outside the grid (upper only; the lower bound drops them); `aliasing_*`: sums that leave the
    grid and come back on its other side; `round_off`."""

    lower: np.ndarray
    middle: np.ndarray
    upper: np.ndarray
    beyond: np.ndarray
    aliasing_lower: np.ndarray
    aliasing_upper: np.ndarray
    round_off: np.ndarray


def cell_mass_bounds(
    pair: GaussianPair, grid: CompositionGrid, epsilon: float, compositions: np.ndarray
) -> CellMassBounds:
    """Bracket delta(epsilon) of the k-fold composed pair, for several k, which share one transform.

    With masses p_i = P(x_i < L <= x_{i+1}), the sum of k losses at the lower ends has the masses
    p^{*k} on the grid, the sum of k losses at the upper ends the same ones moved by k dx.

    - *Inversion.* Edges are off by at most `LOSS_TOLERANCE` in loss, so sums by k times that:
      epsilon is moved by it.
    - *Aliasing.* A sum S outside [-L, L) lands inside. From above it lands lower: harmless for the
      lower end, at most P(S >= L) for the upper one. From below it lands higher: harmless for the
      upper end, at most P(S < -L) for the lower one. Both by Chernoff's bound, least over tilts.
    - *Round-off.* Intermediate values of a transform of masses are at most 1, so entries are off by
      at most `_STAGE_ROUNDINGS` a level. The mean value theorem carries this through the k-th
      power, Parseval's identity through the sum over x > epsilon; the inverse transform adds its
      own share.
    - *Masses.* An error of a tail probability at an edge moves that much mass by one cell, and the
      weight of a sum has slope at most 1: k dx times the sum of these errors, plus k roundings of
      the total for adding up the components.
    """
    check_size(grid.size)
    # Cells are cut in the loss and measured in the output: their masses are differences of the
    # mixture's exact distribution function, with no derivative of the inverse loss.
    t = pair.inverse_loss(grid.edges)
    signed = pair.interval_masses(t)
    # A difference that rounds below 0 is charged in `mass_error`.
    masses = np.maximum(signed, 0.0)
    outside_above = float(pair.sf(t[-1:])[0])
    # Mass in no cell: losses beyond both ends of the grid, and components that the pair has
    # dropped.
    outside = outside_above + float(pair.cdf(t[:1])[0]) + pair.bulk[2]
    # A tail probability has a relative error: at each edge the smaller of both tails carries it.
    smaller_tail = np.minimum(np.cumsum(masses), np.cumsum(masses[::-1])[::-1])
    mass_error = (
        grid.step * _TAIL_ROUNDINGS * _EPS * float(smaller_tail.sum())
        + _EPS * (pair.bulk[0].size + 4)
        + float(np.sum(masses - signed))
    )
    # The transform does not depend on k: one of it serves the whole curve of Figure S2.
    transformed = spectrum(masses)
    magnitude = np.abs(transformed)
    stage_error = _STAGE_ROUNDINGS * _EPS * float(np.log2(grid.size))
    # exponents of the Chernoff bounds: any positive ones are valid, the largest must not overflow
    # in a block
    tilts = np.geomspace(0.1 / grid.half_width, 500 / (_block_length(grid) * grid.step), 65)
    log_mgf_up, log_mgf_down = _log_mgf(masses, grid, tilts), _log_mgf(masses[::-1], grid, tilts)
    # masses sit at lower ends x_i: reversed, entry i stands for -x_{r-1-i} = x_i + dx
    log_mgf_down = log_mgf_down + tilts * grid.step
    rows = []
    for k in compositions.tolist():
        composed = convolution_power(transformed, k, grid.size)
        slack, shift = k * LOSS_TOLERANCE * max(1.0, grid.half_width), k * grid.step
        aliasing_upper = _chernoff(k * log_mgf_up - tilts * grid.half_width)
        aliasing_lower = _chernoff(k * log_mgf_down - tilts * grid.half_width)
        beyond, infinite = _any_of(k, outside), _any_of(k, outside_above)
        # Masses stand at the lower ends of cells: k upper ends are k dx higher. The slack of the
        # inverted edges moves epsilon to the side that widens the bracket.
        weights_above = excess(grid.points + shift, epsilon - slack)
        weights_below = excess(grid.points, epsilon + slack)
        # d(z^k) = k z^(k-1) dz: what the transform got wrong, taken through the power, and the
        # power's own rounding.
        power_error = k * (
            (magnitude + stage_error) ** (k - 1) * stage_error
            + _POWER_ROUNDINGS * _EPS * magnitude**k
        )
        inverse_error = stage_error * float(np.linalg.norm(composed))
        charge_above, charge_below = (
            _paired(spectrum(w), power_error, grid.size)
            + inverse_error * float(np.linalg.norm(w))
            + k * mass_error
            for w in (weights_above, weights_below)
        )
        lower = float(weights_below @ composed) - aliasing_lower - charge_below
        # For plots only: no side is charged, and only infinite losses count in full.
        middle = float(excess(grid.points + shift / 2, epsilon) @ composed) + infinite
        upper = float(weights_above @ composed) + aliasing_upper + beyond + charge_above
        rows.append((lower, middle, upper, beyond, aliasing_lower, aliasing_upper, charge_above))
    columns = np.array(rows).T
    # delta is a probability: clipping moves an end only towards the truth.
    columns[:3] = np.clip(columns[:3], 0.0, 1.0)
    return CellMassBounds(*columns)


def check_size(size: int) -> None:
    """Raise ArgumentError unless the bracket's round-off analysis covers transforms of this
    length."""
    rest = size
    for prime in (2, 3, 5, 7, 11):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        better = 2 * int(fft.next_fast_len(size // 2, real=True))
        raise ArgumentError(
            f"the bracket needs a grid_size without prime factors above {_LARGEST_RADIX}, got "
            f"grid_size = {size}; take {better}"
        )


def _any_of(k: int, probability: float) -> float:
    """1 - (1 - p)^k."""
    return float(-np.expm1(k * np.log1p(-probability))) if probability < 1 else 1.0


def _paired(transformed: np.ndarray, error: np.ndarray, size: int) -> float:
    """Largest change of <w, u> when the spectrum of u moves by at most `error`; w given by its
    spectrum. A real spectrum stores each conjugate pair once: all entries but the ends count twice.
    1% for rounding is added."""
    products = np.abs(transformed) * error
    return 1.01 * float(2 * products.sum() - products[0] - products[-1]) / size


def _block_length(grid: CompositionGrid) -> int:
    return int(np.sqrt(grid.size))


def _log_mgf(masses: np.ndarray, grid: CompositionGrid, tilts: np.ndarray) -> np.ndarray:
    """log sum_i p_i e^{tilt x_i} for all tilts at once: e^{tilt x} is a product over blocks of
    cells."""
    length = _block_length(grid)
    rows = -(-grid.size // length)
    padded = np.zeros(rows * length)
    padded[: grid.size] = masses
    inside = padded.reshape(rows, length) @ np.exp(
        np.multiply.outer(np.arange(length) * grid.step, tilts)
    )
    starts = grid.points[0] + np.arange(rows) * length * grid.step
    with np.errstate(divide="ignore"):
        exponents = np.log(inside) + np.multiply.outer(starts, tilts)
    return np.asarray(np.logaddexp.reduce(exponents, axis=0))


def _chernoff(exponents: np.ndarray) -> float:
    return float(np.exp(min(0.0, float(exponents.min()))))


_LEAST_ROUND_OFF = 1e-12
# cells below this mass were left out of the error term of the published bounds
_DROPPED_CELL = 1e-8


def round_off(steps: np.ndarray, grid_size: np.ndarray | int) -> np.ndarray:
    """Return the rounding error of delta by the plain methods: smaller values are noise, possibly
    negative, and differ from one processor to another.

    The transform of r points has a relative error of the order of u log2(r), u the distance of 1
    to the next float, and its k-th power k times that; 8 is a margin.
    """
    power = 8 * np.finfo(float).eps * np.asarray(steps) * np.log2(grid_size)
    return np.maximum(_LEAST_ROUND_OFF, power)


@dataclass(frozen=True, eq=False)
class FourierResult:
    """delta(epsilon) for each number of compositions, per the paper's pair: not a guarantee for the
    sampler. Values are raw: those of `printed` may be below `floor` in size and negative; nothing
    below it can be told from 0."""

    steps: np.ndarray
    epsilon: float
    delta_lower: np.ndarray
    delta: np.ndarray
    delta_upper: np.ndarray
    floor: np.ndarray
    method: str
    pair: GaussianPair

    def interval(self, index: int = 0) -> Account:
        """The bounds as an interval of kind "paper"; ends below the floor become 0 and the floor
        itself."""
        # Below the round-off of the transform neither end means anything: the lower one is 0, the
        # upper one is the floor.
        floor, lower, upper = (
            float(part[index]) for part in (self.floor, self.delta_lower, self.delta_upper)
        )
        return Account(
            0.0 if lower < floor else min(lower, 1.0),
            min(max(upper, floor, lower), 1.0),
            kind="paper",
            pair=f"{self.pair.label}, s = {self.pair.deviation:g}, k = {int(self.steps[index])}",
            adjacency=self.pair.relation,
            sensitivity="one occurrence of the record moves the mean by 1",
            quantity="delta",
        )


def compose(
    pair: GaussianPair,
    *,
    steps: int | Sequence[int] | np.ndarray,
    epsilon: float,
    half_width: float,
    grid_size: int,
    method: str,
) -> FourierResult:
    """Compute delta(epsilon) of the k-fold composition, per the paper's pair: not a guarantee for
    the sampler.

    Parameters
    ----------
    pair : GaussianPair
    steps : int or sequence of int
        k >= 1; several of them share the inversion and the transforms.
    epsilon : float
        >= 0 and below `half_width`.
    half_width : float
        L, in nats: too small a one costs accuracy without a sign in `printed`, and widens the
        bracket of `cell_mass`.
    grid_size : int
        r, even; products of small primes are fastest.
    method : {"printed", "as_done", "cell_mass"}

    Raises
    ------
    ArgumentError
        If an argument is out of range or the method unknown.
    NumericalError
        If the loss cannot be inverted, or (printed, as_done) its density is not unimodal.
    """
    compute = METHODS[checks.one_of("method", method, METHODS)]
    grid = CompositionGrid(half_width, grid_size)
    epsilon = checks.real("epsilon", epsilon, at_least=0, below=grid.half_width)
    counts = np.array(
        [checks.integer("steps", k, at_least=1) for k in np.atleast_1d(steps).tolist()]
    )
    lower, middle, upper, floor = compute(pair, grid, epsilon, counts)
    return FourierResult(counts, epsilon, lower, middle, upper, floor, method, pair)


_Bounds = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _printed(
    pair: GaussianPair, grid: CompositionGrid, epsilon: float, counts: np.ndarray
) -> _Bounds:
    # Steps 1 and 2 as printed, with the analytic derivative of the inverse loss.
    omega = pair.loss_density(grid.edges)
    cells, smallest, largest = _cells(omega, grid)
    # A unimodal density exceeds both of its end values in one cell only, that of its mode.
    mode_cell, peak = _mode(pair, grid, omega)
    largest[mode_cell] = max(largest[mode_cell], grid.step * peak)
    middle, lower, upper = (_deltas(c, grid, epsilon, counts) for c in (cells, smallest, largest))
    return lower, middle, upper, round_off(counts, grid.size)


def _as_done(
    pair: GaussianPair, grid: CompositionGrid, epsilon: float, counts: np.ndarray
) -> _Bounds:
    # Poisson and WOR have a closed inverse loss (Section S6); the released code differentiates it
    # there, and takes differences for mixtures.
    if pair.closed_form:
        omega = pair.loss_density(grid.edges)
    else:
        t = pair.inverse_loss(grid.edges)
        # Off by half a cell: this lowers the published upper bounds by 2 % in Table 8, and by 6 %
        # in Figure S2 at k = 1000.
        slope = np.diff(t) / grid.step
        omega = np.exp(pair.log_density(t)) * np.append(slope, slope[-1])
    cells, smallest, largest = _cells(omega, grid)
    middle, lower, upper = (_deltas(c, grid, epsilon, counts) for c in (cells, smallest, largest))
    # The published bounds have it, the printed algorithm does not (erratum E2): for Poisson, WOR
    # and WR the published upper bound is this term alone.
    error = truncation_error(largest, grid, counts)
    lower, middle, upper = (np.clip(ends, 0, 1) for ends in (lower - error, middle, upper + error))
    return lower, middle, upper, round_off(counts, grid.size)


def _cell_mass(
    pair: GaussianPair, grid: CompositionGrid, epsilon: float, counts: np.ndarray
) -> _Bounds:
    bounds = cell_mass_bounds(pair, grid, epsilon, counts)
    return bounds.lower, bounds.middle, bounds.upper, bounds.round_off


METHODS: dict[str, Callable[[GaussianPair, CompositionGrid, float, np.ndarray], _Bounds]] = {
    "printed": _printed,
    "as_done": _as_done,
    "cell_mass": _cell_mass,
}


def truncation_error(largest: np.ndarray, grid: CompositionGrid, counts: np.ndarray) -> np.ndarray:
    """The error term of the published bounds, with a tilt of L/2 and cells below 1e-8 left out
    (E2), shape (c,): (e^{k a+} + e^{k a-}) e^{-L tilt} / (1 - e^{-2 L tilt}), a+- = log sum_i c+_i
    e^{+-tilt x_i}."""
    tilt = grid.half_width / 2
    counted = largest >= _DROPPED_CELL
    log_masses, exponents = np.log(largest[counted]), tilt * grid.points[counted]
    up = np.logaddexp.reduce(log_masses + exponents)
    down = np.logaddexp.reduce(log_masses - exponents)
    reach = grid.half_width * tilt
    log_error = np.logaddexp(counts * up, counts * down) - reach - np.log1p(-np.exp(-2 * reach))
    # An error of probability 1 already clips the ends to [0, 1].
    return np.exp(np.minimum(log_error, 0.0))


def _cells(omega: np.ndarray, grid: CompositionGrid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c, c-, c+ from the density at the edges (step 3 of Algorithm 1, for a unimodal density)."""
    left, right = omega[:-1] * grid.step, omega[1:] * grid.step
    return left, np.minimum(left, right), np.maximum(left, right)


def _mode(pair: GaussianPair, grid: CompositionGrid, omega: np.ndarray) -> tuple[int, float]:
    """The cell of the density's interior maximum, and the maximum."""
    top = int(np.argmax(omega))
    change = np.diff(omega)
    # steps that go the wrong way by more than rounding, among densities that matter at all
    wrong = np.where(np.arange(change.size) < top, -change, change) > 1e-6 * omega[:-1] + 1e-30
    if wrong.any():
        turn = grid.edges[np.argmax(wrong)]
        raise NumericalError(
            f"Algorithm 1 needs a unimodal loss density, got one that turns again at {turn:.4g}; "
            "use method 'cell_mass'"
        )
    low, high = max(top - 1, 0), min(top + 1, grid.size)
    t_low, t_top, t_high = pair.inverse_loss(grid.edges[[low, top, high]])
    # The loss of Poisson sampling is above log(1 - q): below that there is no output to start from.
    if not np.isfinite(t_low):
        t_low = t_top
    minimum = minimize_scalar(
        lambda t: (
            -float(np.exp(pair.log_density(np.array([t])))[0] / pair.loss_slope(np.array([t]))[0])
        ),
        bounds=(t_low, t_high),
        method="bounded",
    )
    return (top - 1 if minimum.x < t_top else top), -float(minimum.fun)


def _deltas(
    cells: np.ndarray, grid: CompositionGrid, epsilon: float, counts: np.ndarray
) -> np.ndarray:
    """Steps 4 to 7 of Algorithm 1 for every number of compositions."""
    transformed = spectrum(cells)
    weights = excess(grid.points, epsilon)
    return np.array([weights @ convolution_power(transformed, int(k), grid.size) for k in counts])

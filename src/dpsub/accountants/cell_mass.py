"""A bracket of the composed pair from exact cell masses.

The loss under X is moved to the lower or the upper end of its cell, so that the two discrete losses lie on either side
of it; only their *masses* enter, never the density, so nothing grows like (1 + O(dx))^k.  Both discrete losses have the
same masses on shifted grids: one convolution power gives both bounds.

The bracket is rigorous for the given pair and *per the paper's pair: not a guarantee for the sampler*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from dpsub.accountants.gaussian_pair import LOSS_TOLERANCE, GaussianPair
from dpsub.accountants.grid import LossGrid, convolution_power, excess, spectrum
from dpsub.errors import ArgumentError

_EPS = float(np.finfo(float).eps)

_TAIL_ROUNDINGS = 16
"""Roundings (in eps) charged for a tail probability at an edge."""

_STAGE_ROUNDINGS = 3
"""Roundings (in eps) charged per binary level of a transform: a butterfly of radix 2, 3, 4, 5, 7 or 11 is one complex
twiddle product (at most sqrt(5) + 1 half-eps) and a few sums and real products: 5.2 half-eps a level at worst."""

_LARGEST_RADIX = 11
"""Larger prime factors of the grid size are transformed by another method, which this analysis does not cover."""

_POWER_ROUNDINGS = 8
"""Roundings (in eps) charged per composition for a complex power."""

_TILT_COUNT = 65


@dataclass(frozen=True)
class CellMassBounds:
    """Bounds of delta(epsilon) for each number of compositions, with what was charged for each source of error.

    Attributes
    ----------
    lower, middle, upper : ndarray, shape (c,)
        Bracket and estimate (masses at the centres of their cells, or at infinity above the grid), within [0, 1].
    beyond, aliasing_lower, aliasing_upper, round_off : ndarray, shape (c,)
        Charges included in the bounds: mass of a single loss outside the grid (1 - (1 - mass)^k, upper only; the lower
        bound drops it), sums that leave the grid and come back on its other side, and floating-point round-off.
    """

    lower: np.ndarray
    middle: np.ndarray
    upper: np.ndarray
    beyond: np.ndarray
    aliasing_lower: np.ndarray
    aliasing_upper: np.ndarray
    round_off: np.ndarray


def cell_mass_bounds(pair: GaussianPair, grid: LossGrid, epsilon: float, compositions: np.ndarray) -> CellMassBounds:
    """Bracket delta(epsilon) of the k-fold composed pair, per the paper's pair: not a guarantee for the sampler.

    Parameters
    ----------
    pair : GaussianPair
    grid : LossGrid
    epsilon : float
    compositions : ndarray of int, shape (c,)
        Numbers of compositions k >= 1; they share one transform.

    Raises
    ------
    ArgumentError
        If the grid size has a prime factor above 11.

    Notes
    -----
    With masses p_i = P(x_i < L <= x_{i+1}), the sum of k losses at the lower ends has law p^{*k} on the grid, the sum
    of k losses at the upper ends the same law moved by k dx.

    - *Inversion.* Edges are off by at most `LOSS_TOLERANCE` in loss, so sums by k times that: epsilon is moved by it.
    - *Aliasing.* A sum S outside [-L, L) lands inside.  From above it lands lower, where its weight is smaller:
      harmless below, at most P(S >= L) above.  From below it lands higher: harmless above, at most P(S < -L) below.
      Both probabilities by Chernoff, min over tilts.
    - *Round-off.* Every intermediate value of a transform of masses is at most their sum, 1, so its entries are off by
      at most the `_STAGE_ROUNDINGS` of each of its log2(r) levels.  The mean value theorem carries this through the
      k-th power, Parseval's identity through the sum over x > epsilon; the inverse transform adds its own share.
    - *Masses.* An error of a tail probability at an edge moves that much mass by one cell, and the weight of a sum has
      slope at most 1: k dx times the sum of these errors, plus k roundings of the total for adding up the components.
    """
    check_size(grid.size)
    t = pair.inverse_loss(grid.edges)
    signed = pair.interval_masses(t)
    masses = np.maximum(signed, 0.0)
    outside_above = float(pair.sf(t[-1:])[0])
    outside = outside_above + float(pair.cdf(t[:1])[0]) + pair.bulk[2]
    smaller_tail = np.minimum(np.cumsum(masses), np.cumsum(masses[::-1])[::-1])
    mass_error = (
        grid.step * _TAIL_ROUNDINGS * _EPS * float(smaller_tail.sum())
        + _EPS * (pair.bulk[0].size + 4)
        + float(np.sum(masses - signed))
    )

    transformed = spectrum(masses)
    magnitude = np.abs(transformed)
    stage_error = _STAGE_ROUNDINGS * _EPS * float(np.log2(grid.size))
    tilts = _tilts(grid)
    log_mgf_up, log_mgf_down = _log_mgf(masses, grid, tilts), _log_mgf(masses[::-1], grid, tilts)
    # masses sit at lower ends x_i: reversed, entry i stands for -x_{r-1-i} = x_i + dx
    log_mgf_down = log_mgf_down + tilts * grid.step

    rows = []
    for k in compositions.tolist():
        law = convolution_power(transformed, k, grid.size)
        slack, shift = k * LOSS_TOLERANCE * max(1.0, grid.half_width), k * grid.step
        aliasing_upper = _chernoff(k * log_mgf_up - tilts * grid.half_width)
        aliasing_lower = _chernoff(k * log_mgf_down - tilts * grid.half_width)
        beyond, infinite = _any_of(k, outside), _any_of(k, outside_above)

        above, below = excess(grid.points + shift, epsilon - slack), excess(grid.points, epsilon + slack)
        power_error = k * ((magnitude + stage_error) ** (k - 1) * stage_error + _POWER_ROUNDINGS * _EPS * magnitude**k)
        inverse_error = stage_error * float(np.linalg.norm(law))
        charge_above, charge_below = (
            _paired(spectrum(w), power_error, grid.size) + inverse_error * float(np.linalg.norm(w)) + k * mass_error
            for w in (above, below)
        )
        lower = float(below @ law) - aliasing_lower - charge_below
        middle = float(excess(grid.points + shift / 2, epsilon) @ law) + infinite
        upper = float(above @ law) + aliasing_upper + beyond + charge_above
        rows.append((lower, middle, upper, beyond, aliasing_lower, aliasing_upper, charge_above))
    columns = np.array(rows).T
    columns[:3] = np.clip(columns[:3], 0.0, 1.0)
    return CellMassBounds(*columns)


def check_size(size: int) -> None:
    """Raise ArgumentError unless the bracket's round-off analysis covers transforms of this length."""
    rest = size
    for prime in (2, 3, 5, 7, 11):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        better = 2 * int(next_fast_len(size // 2, real=True))
        raise ArgumentError(
            f"the bracket needs a grid_size without prime factors above {_LARGEST_RADIX}, got grid_size = {size}; "
            f"take {better}"
        )


def _any_of(k: int, probability: float) -> float:
    """1 - (1 - p)^k."""
    return float(-np.expm1(k * np.log1p(-probability))) if probability < 1 else 1.0


def _paired(transformed: np.ndarray, error: np.ndarray, size: int) -> float:
    """Largest change of <w, u> when the spectrum of u moves by at most `error`; w given by its spectrum.

    A real spectrum stores each conjugate pair once, so all entries but the first and the last count twice; one per cent
    is added for the rounding of this sum itself.
    """
    products = np.abs(transformed) * error
    return 1.01 * float(2 * products.sum() - products[0] - products[-1]) / size


def _tilts(grid: LossGrid) -> np.ndarray:
    """Exponents of the Chernoff bounds: any positive ones are valid, the largest must not overflow in a block."""
    return np.geomspace(0.1 / grid.half_width, 500 / (_block_length(grid) * grid.step), _TILT_COUNT)


def _block_length(grid: LossGrid) -> int:
    return int(np.sqrt(grid.size))


def _log_mgf(masses: np.ndarray, grid: LossGrid, tilts: np.ndarray) -> np.ndarray:
    """log sum_i p_i e^{tilt x_i} for all tilts at once: e^{tilt x} is a product over blocks of cells."""
    length = _block_length(grid)
    rows = -(-grid.size // length)
    padded = np.zeros(rows * length)
    padded[: grid.size] = masses
    inside = padded.reshape(rows, length) @ np.exp(np.multiply.outer(np.arange(length) * grid.step, tilts))
    starts = grid.points[0] + np.arange(rows) * length * grid.step
    with np.errstate(divide="ignore"):
        exponents = np.log(inside) + np.multiply.outer(starts, tilts)
    return np.asarray(np.logaddexp.reduce(exponents, axis=0))


def _chernoff(exponents: np.ndarray) -> float:
    return float(np.exp(min(0.0, float(exponents.min()))))

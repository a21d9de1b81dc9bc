"""A bracket of the composed pair from exact cell masses.

The loss under X is moved to the lower or the upper end of its cell, so that the two discrete losses lie on either side
of it; only their *masses* enter, never the density, so nothing grows like (1 + O(dx))^k.  Both discrete losses have the
same masses on shifted grids: one convolution power gives both bounds.

The bracket is rigorous for the given pair and *per the paper's pair: not a guarantee for the sampler*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsub.accountants.gaussian_pair import LOSS_TOLERANCE, GaussianPair
from dpsub.accountants.grid import LossGrid, convolution_power, excess, spectrum

_EPS = float(np.finfo(float).eps)

_MASS_ROUNDINGS = 16
"""Roundings charged for a cell mass, relative to the smaller tail at its edges (cdf values and their difference)."""

_TILTS = np.geomspace(2.0**-6, 2.0**10, 65)
"""Exponents of the Chernoff bounds; any positive ones are valid, the best of them is taken."""


@dataclass(frozen=True)
class CellMassBounds:
    """Bounds of delta(epsilon) for each number of compositions, with what was charged for each source of error.

    Attributes
    ----------
    lower, middle, upper : ndarray, shape (c,)
        Bracket and estimate (all masses at the centres of their cells); lower and upper within [0, 1].
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

    Notes
    -----
    With masses p_i = P(x_i < L <= x_{i+1}), the sum of k losses at the lower ends has law p^{*k} on the grid, the sum
    of k losses at the upper ends the same law moved by k dx.

    - *Inversion.* Edges are off by at most `LOSS_TOLERANCE` in loss, so sums by k times that: epsilon is moved by it.
    - *Aliasing.* A sum S outside [-L, L) lands inside.  From above it lands lower, where its weight is smaller:
      harmless below, at most P(S >= L) above.  From below it lands higher: harmless above, at most P(S < -L) below.
      Both probabilities by Chernoff, min over tilts.
    - *Round-off.* Entries of a transform of masses of sum 1 are sums through log2(r) stages whose intermediate values
      are at most 1, hence off by at most 4 eps log2(r); the mean value theorem carries this through the k-th power,
      Parseval's identity through the inverse, Cauchy-Schwarz through the sum over x > epsilon.  Masses are charged
      k times the sum of their own round-off.
    """
    t = pair.inverse_loss(grid.edges)
    masses = np.maximum(pair.interval_masses(t), 0.0)
    outside = float(pair.cdf(t[:1])[0] + pair.sf(t[-1:])[0])
    smaller_tail = np.minimum(np.cumsum(masses), np.cumsum(masses[::-1])[::-1])
    mass_error = _MASS_ROUNDINGS * _EPS * float(smaller_tail.sum())

    transformed = spectrum(masses)
    magnitude = np.abs(transformed)
    multiplicity = np.full(magnitude.size, 2.0)  # a real spectrum stores each conjugate pair once
    multiplicity[[0, -1]] = 1.0
    stage_error = 4 * _EPS * np.log2(grid.size)
    log_mgf_up, log_mgf_down = _log_mgf(masses, grid, _TILTS), _log_mgf(masses[::-1], grid, _TILTS)
    # masses sit at lower ends x_i: reversed, entry i stands for -x_{r-1-i} = x_i + dx
    log_mgf_down = log_mgf_down + _TILTS * grid.step

    rows = []
    for k in compositions.tolist():
        law = convolution_power(transformed, k, grid.size)
        slack, shift = k * LOSS_TOLERANCE * max(1.0, grid.half_width), k * grid.step
        aliasing_upper = _chernoff(k * log_mgf_up - _TILTS * grid.half_width)
        aliasing_lower = _chernoff(k * log_mgf_down - _TILTS * grid.half_width)
        beyond = float(-np.expm1(k * np.log1p(-outside))) if outside < 1 else 1.0

        power_error = k * ((magnitude + stage_error) ** (k - 1) * stage_error + 8 * _EPS * magnitude**k)
        spread = float(np.sqrt(multiplicity @ power_error**2)) + np.sqrt(grid.size) * stage_error * float(
            np.linalg.norm(law)
        )
        touched = float(np.count_nonzero(grid.points > epsilon - shift)) / grid.size
        round_off = spread * np.sqrt(touched) + k * mass_error

        lower = float(excess(grid.points, epsilon + slack) @ law) - aliasing_lower - round_off
        middle = float(excess(grid.points + shift / 2, epsilon) @ law)
        upper = float(excess(grid.points + shift, epsilon - slack) @ law) + aliasing_upper + beyond + round_off
        rows.append(
            (
                min(max(lower, 0.0), 1.0),
                middle,
                min(max(upper, 0.0), 1.0),
                beyond,
                aliasing_lower,
                aliasing_upper,
                round_off,
            )
        )
    return CellMassBounds(*np.array(rows).T)


def _log_mgf(masses: np.ndarray, grid: LossGrid, tilts: np.ndarray) -> np.ndarray:
    """log sum_i p_i e^{tilt x_i} for all tilts at once: e^{tilt x} is a product over blocks of cells."""
    length = int(np.sqrt(grid.size))
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

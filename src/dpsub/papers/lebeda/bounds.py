"""Pairs of one step with Poisson samples, in either order, and their composition from both
sides."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import fft, optimize
from scipy.special import ndtr

SPACING = 1e-4  # of privacy losses
CELLS = 40_000
REACH = 12.0  # deviations of Gaussian noise that are cut into cells
ROUNDING = 1e-13
"""Upper bound on the error of a composed delta in double precision, in steps of at most 1e2."""


def laplace_below(x: np.ndarray) -> np.ndarray:
    """Return the distribution function of Laplace noise of scale 1."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1 - tail)


LAWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "laplace": (laplace_below, 0.0),
    "gaussian": (ndtr, REACH),
}
"""Distribution function, and how far beyond both means the likelihood ratio changes."""


def losses(
    law: str, scale: float, rate: float, order: str, *, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return masses and privacy losses of one step on cells of its output.

    With the record the output is (1 - rate) law(0) + rate law(1), without it law(0), noise of this
    scale. The order "remove" has the former first, "add" the latter. The loss of a cell is that of
    its masses, a lower bound, or, `upper`, the largest within it.
    """
    below, reach = LAWS[law]
    edges = np.linspace(-reach * scale, 1 + reach * scale, CELLS + 1)
    inner = np.concatenate([[-np.inf], edges, [np.inf]])
    without = np.diff(below(inner / scale))
    with_record = (1 - rate) * without + rate * np.diff(below((inner - 1) / scale))
    sign = 1 if order == "remove" else -1
    masses = with_record if sign > 0 else without
    if not upper:
        seen = (without > 0) & (with_record > 0)
        found = sign * np.log(with_record[seen] / without[seen])
        return masses[seen], found
    # the ratio rises with the output: it is largest at the right end of a cell, or at the left one
    if law == "laplace":
        ends = (np.abs(edges) - np.abs(edges - 1)) / scale
    else:
        ends = (edges - 0.5) / scale**2
    ratio = sign * np.log1p(rate * np.expm1(ends))
    # beyond the edges the ratio of Laplace noise is constant, and that of Gaussian noise is not
    beyond = ratio[-1 if sign > 0 else 0] if law == "laplace" else math.inf
    if sign > 0:
        return masses, np.concatenate([ratio, [beyond]])
    most = beyond if law == "laplace" else -math.log1p(-rate)
    return masses, np.concatenate([[most], ratio])


def composed(
    law: str,
    scale: float,
    rate: float,
    order: str,
    steps: int,
    epsilons: np.ndarray,
    *,
    upper: bool,
) -> np.ndarray:
    """Return a bound on delta of so many steps in one order, by epsilon: from below, or from
    above."""
    masses, loss = losses(law, scale, rate, order, upper=upper)
    finite = np.isfinite(loss)
    rounded = (np.ceil if upper else np.floor)(loss[finite] / SPACING).astype(int)
    least = int(rounded.min())
    single = np.bincount(rounded - least, weights=masses[finite])
    size = steps * (single.size - 1) + 1
    padded = fft.next_fast_len(size, real=True)
    law_of_steps = fft.irfft(fft.rfft(single, padded) ** steps, padded)[:size]
    total = (steps * least + np.arange(size)) * SPACING
    infinite = -math.expm1(steps * math.log1p(-float(masses[~finite].sum())))
    sign = 1 if upper else -1
    return np.array(
        [
            infinite - np.expm1(np.minimum(epsilon - total, 0.0)) @ law_of_steps + sign * ROUNDING
            for epsilon in epsilons
        ]
    )


def opposite_pair(epsilon: float, noise: float, rate: float) -> float:
    """Return delta of (1 - q) N(0, s^2) + q N(1, s^2) against (1 - q) N(0, s^2) + q N(-1, s^2)."""

    def gap(x: float) -> float:
        up, down = ((2 * sign * x - 1) / (2 * noise**2) for sign in (1, -1))
        plain = math.log1p(-rate)
        first = np.logaddexp(plain, math.log(rate) + up)
        second = np.logaddexp(plain, math.log(rate) + down)
        return float(first - second) - epsilon

    # beyond the place where q N(1) alone is e^epsilon times the others
    far = 1 + noise**2 * (epsilon + math.log(1 / rate) + 2)
    place = optimize.brentq(gap, 0.0, far, xtol=1e-14)
    tails = [float(ndtr((mean - place) / noise)) for mean in (0.0, 1.0, -1.0)]
    first, second = ((1 - rate) * tails[0] + rate * tail for tail in tails[1:])
    return first - math.exp(epsilon) * second

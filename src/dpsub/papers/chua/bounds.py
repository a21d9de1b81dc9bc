"""The formulas of the papers' code: batches in a fixed order, and the largest step of shuffled
ones.

The differing record is at +C or at 0, all others are at -C. So an epoch of T steps is a mixture of
N(2 e_t, s^2 I) over its steps t against one of N(e_t, s^2 I), s the noise over the clipping norm C.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import fft, optimize
from scipy.special import log_ndtr, ndtr

WITH, WITHOUT = 2.0, 1.0  # mean of the record's step, over C, where it is at +C and at 0
SPACING = 1e-3  # of privacy losses, as in the code
TAIL = 1e-18  # mass beyond the outermost places that are told apart
FIRST = 0.25  # noise multiplier from which a search doubles


def fixed_order(epsilon: float, noise: float, epochs: int = 1) -> float:
    """Return delta of batches in a fixed order: a Gaussian mechanism at distance sqrt(epochs)."""
    distance = math.sqrt(epochs) / noise
    middle = epsilon / distance
    below = math.exp(epsilon + float(log_ndtr(-distance / 2 - middle)))
    return float(ndtr(distance / 2 - middle)) - below


def log_below(place: np.ndarray, mean: float, noise: float, steps: int) -> np.ndarray:
    """Return log P(largest of the steps <= place), the record's step having a mean."""
    return log_ndtr((place - mean) / noise) + (steps - 1) * log_ndtr(place / noise)


def cube(epsilon: float, noise: float, steps: int, epochs: int = 1) -> float:
    """Return the lower bound on delta of one order for all epochs: the event that the largest step,
    summed over the epochs, is beyond the best place."""
    scale = noise / math.sqrt(epochs)

    def gain(place: float | np.ndarray) -> np.ndarray:
        there, without = (
            -np.expm1(log_below(np.asarray(place), mean, scale, steps)) for mean in (WITH, WITHOUT)
        )
        return there - math.exp(epsilon) * without

    reach = WITH + scale * (10 + math.sqrt(2 * math.log(steps)))
    grid = np.linspace(-reach, reach + 2 * epsilon * scale**2, 4001)
    best = int(np.argmax(gain(grid)))
    near = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    found = optimize.minimize_scalar(
        lambda place: -float(gain(place)), bounds=near, method="bounded"
    )
    return max(-float(found.fun), float(gain(grid[best])), 0.0)


def losses(noise: float, steps: int, *, pessimistic: bool) -> tuple[int, np.ndarray, float]:
    """Return the privacy loss of an epoch, in multiples of the spacing, as the code makes it of the
    largest step: the least multiple, the masses from there on, and the mass at infinity.

    Losses are those of places of the largest step, rounded down: a lower bound. `pessimistic`, they
    are rounded up, and at each place the largest that any outputs with this largest step have.
    """
    reach = noise * math.sqrt(-2 * math.log(TAIL))
    top = WITH + reach + noise * math.sqrt(2 * math.log(steps))
    # the loss of a place changes by at most the spacing from one edge to the next
    edges = np.arange(-reach, top, SPACING * noise**2)
    with_record, without = (_masses(edges, mean, noise, steps) for mean in (WITH, WITHOUT))
    if pessimistic:
        ratio = (WITH - WITHOUT) * (edges - (WITH + WITHOUT) / 2) / noise**2
        places, known = np.ceil(ratio / SPACING), with_record[:-1]
    else:
        seen = (with_record > TAIL) & (without > 0)
        known = with_record[seen]
        places = np.floor(np.log(known / without[seen]) / SPACING)
    least = int(places.min())
    law = np.bincount((places - least).astype(int), weights=known)
    return least, law, float(with_record[-1]) if pessimistic else 0.0


def _masses(edges: np.ndarray, mean: float, noise: float, steps: int) -> np.ndarray:
    """Return the masses of the largest step below, between and above edges."""
    log_cdf = log_below(edges, mean, noise, steps)
    below, above = np.exp(log_cdf), -np.expm1(log_cdf)
    # differences of the smaller tail keep their digits
    inner = np.where(above[:-1] > 0.5, np.diff(below), -np.diff(above))
    return np.concatenate([below[:1], inner, above[-1:]])


def reshuffled(
    epsilon: float, noise: float, steps: int, epochs: int, *, pessimistic: bool = False
) -> float:
    """Return delta of epochs that are each shuffled again, by the largest step of every epoch."""
    least, law, infinite = losses(noise, steps, pessimistic=pessimistic)
    size = epochs * (law.size - 1) + 1
    padded = fft.next_fast_len(size, real=True)
    composed = fft.irfft(fft.rfft(law, padded) ** epochs, padded)[:size]
    loss = (epochs * least + np.arange(size)) * SPACING
    kept = loss > epsilon
    found = -np.expm1(epsilon - loss[kept]) @ np.maximum(composed[kept], 0.0)
    return float(found) - math.expm1(epochs * math.log1p(-infinite))


def solved(delta_of: Callable[[float], float], delta: float) -> float:
    """Return the noise multiplier at which a falling bound on delta has a value."""
    high = FIRST
    while delta_of(high) > delta:
        high *= 2
    least = 1e-300  # a delta of 0 has no logarithm
    return float(
        optimize.brentq(
            lambda noise: math.log(max(delta_of(noise), least) / delta), high / 2, high, rtol=1e-6
        )
    )

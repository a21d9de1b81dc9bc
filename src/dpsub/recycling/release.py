"""Releases with recycled noise: the loop as it is stated, and one draw with the same law.

The registry of mechanisms takes noise whose profile depends on sensitivity over scale alone; recycled noise has a rate
and bounds of its own, so it is not a member, and brings law and profile of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.recycling.law import Recycled


class Looped(NamedTuple):
    """What the loop released, and how many draws each entry took (never to be published with it).

    Attributes
    ----------
    released : ndarray
    draws : ndarray of int
    """

    released: np.ndarray
    draws: np.ndarray


def loop(law: Recycled, value: ArrayLike, rng: np.random.Generator, most: int | None = None) -> Looped:
    """Release `value` by drawing noise until the recycler lets it pass.

    The noise itself is tested, never the difference of release and value, whose rounding depends on the data.

    Parameters
    ----------
    law : Recycled
    value : array_like
        Finite numbers of any shape.
    rng : numpy.random.Generator
    most : int, optional
        Release draw number `most` whatever it is: `Recycled.capped` is the law.

    Raises
    ------
    ArgumentError
        If an entry of `value` is not finite, or `most` is below 1.
    """
    exact = checks.finite_array("value", value)
    last = None if most is None else checks.integer("most", most, at_least=1)
    noise, draws = np.empty(exact.size), np.zeros(exact.size, dtype=np.int64)
    waiting = np.arange(exact.size)
    while waiting.size:
        drawn = np.atleast_1d(law.kernel.mechanism.release(np.zeros(waiting.size), rng))
        passed = (drawn >= law.lower) & (drawn <= law.upper)
        passed |= rng.random(waiting.size) >= law.rate
        draws[waiting] += 1
        if last is not None:
            passed |= draws[waiting] >= last
        noise[waiting[passed]] = drawn[passed]
        waiting = waiting[~passed]
    return Looped((exact + noise.reshape(exact.shape))[()], draws.reshape(exact.shape)[()])


def release(law: Recycled, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
    """Release `value` with noise of the same law without a loop: constant time, whatever is drawn.

    Inside or outside is decided by the acceptance rate, then the kernel is drawn from its conditional law by inversion.

    Raises
    ------
    ArgumentError
        If an entry of `value` is not finite.
    """
    exact = checks.finite_array("value", value)
    return (exact + noise(law, exact.size, rng).reshape(exact.shape))[()]


def noise(law: Recycled, size: int, rng: np.random.Generator) -> np.ndarray:
    """Recycled noise without a loop, shape (size,)."""
    choice, place = rng.random(size), 1 - rng.random(size)
    kernel = law.kernel
    below = float(kernel.cdf(law.lower))
    above = float(kernel.cdf(-law.upper))
    keep = (1 - law.rate) * law.normaliser
    left, right = choice < keep * below, choice >= 1 - keep * above
    drawn = np.clip(kernel.quantile(below + place * law.inside), law.lower, law.upper)
    # the tails from their own small probabilities, so that they keep their digits
    drawn = np.where(left, np.minimum(kernel.quantile(place * below), law.lower), drawn)
    return np.where(right, np.maximum(-kernel.quantile(place * above), law.upper), drawn)

"""Exact draws of discrete Gaussian and Laplace noise: whole numbers and fractions only, no rounding anywhere.

References
----------
Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy (2020), Algorithms 1 to 3.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def below(limit: int, rng: np.random.Generator) -> int:
    """A whole number, uniform on 0 .. limit - 1."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        found = int.from_bytes(rng.bytes(size), "big") >> (8 * size - bits) if bits else 0
        if found < limit:
            return found


def bernoulli(probability: Fraction, rng: np.random.Generator) -> bool:
    """True with the given probability."""
    return below(probability.denominator, rng) < probability.numerator


def bernoulli_exp(exponent: Fraction, rng: np.random.Generator) -> bool:
    """True with probability e^-exponent, exponent >= 0."""
    while exponent > 1:
        if not bernoulli_exp(Fraction(1), rng):
            return False
        exponent -= 1
    count = 1
    while bernoulli(exponent / count, rng):
        count += 1
    return count % 2 == 1


def laplace(scale: Fraction, rng: np.random.Generator) -> int:
    """A whole number n with probability proportional to e^(-|n| / scale)."""
    period, steps = scale.numerator, scale.denominator
    while True:
        rest = below(period, rng)
        if not bernoulli_exp(Fraction(rest, period), rng):
            continue
        rounds = 0
        while bernoulli_exp(Fraction(1), rng):
            rounds += 1
        size = (rest + period * rounds) // steps
        negative = bernoulli(Fraction(1, 2), rng)
        if not (negative and size == 0):
            return -size if negative else size


def gaussian(variance: Fraction, rng: np.random.Generator) -> int:
    """A whole number n with probability proportional to e^(-n^2 / (2 variance))."""
    scale = _root(variance) + 1
    while True:
        found = laplace(Fraction(scale), rng)
        if bernoulli_exp((abs(found) - variance / scale) ** 2 / (2 * variance), rng):
            return found


def _root(value: Fraction) -> int:
    """The largest whole number whose square is at most `value`."""
    return math.isqrt(value.numerator // value.denominator)

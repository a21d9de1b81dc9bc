"""Write game.json: sampling without replacement under substitution, by dynamic programming, from
both sides.

Run by hand: ``python tests/golden/game.py`` (some minutes). It shares no code with the package and
makes no attempt to be fast. Lengths are in units of the clipping norm, s is the noise multiplier, q
= m/n.

Given which record is drawn in place of the replaced one, a step tells P = (1-q) N(0) + q N(x) from
Q = (1-q) N(0) + q N(y), with x = v - g, y = v' - g for vectors v, v', g of the unit ball, all noise
of variance s^2. The largest divergence of k adaptive steps is V_k(a), a = e^epsilon:

    V_0(a) = (1 - a)_+,    V_(k+1)(a) = max over (x, y) of  integral of p V_k(a q/p).

Every V is convex in a. On a grid of ln a its chords are V = V(inf) + sum of m_j (1 - a/a_j)_+, so
that a step with the profile H_a adds sum of m_j E(a/a_j) to V, E(a) = H_a - (1 - a)_+: a
convolution. Chords lie above V, so values are too high.

*Lower bound*: a few pairs (x, y) in place of all; what the grid adds is taken off by comparing with
a grid twice as coarse: an estimate with a margin, which falls by 4 when the grid is halved, not a
proof. *Upper bound*: all triples of lengths (|x|, |y|, |x - y|) are covered by cells; see
`Triangle` and `excess`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft
from scipy.special import ndtr

Array = NDArray[np.float64]
TARGET = Path(__file__).with_name("game.json")
ROUNDING = 1e-14  # of one step: the transforms, and what kernels and window leave out
LEFT_OUT = 1e-18  # of a kernel


def line(rate: float, s: float, x: float, y: float, logs: Array) -> Array:
    """Return H_a of the pair of x and y on a line, x >= y, for logs = ln a >= 0: the half-line
    where the loss exceeds ln a."""
    low = np.full_like(logs, (x + y) / 2)  # loss 0, and increasing from here on
    high = low + 40 * s
    for _ in range(70):
        middle = (low + high) / 2
        loss = log_ratio(rate, (x * middle - x * x / 2) / s**2) - log_ratio(
            rate, (y * middle - y * y / 2) / s**2
        )
        low, high = np.where(loss < logs, middle, low), np.where(loss < logs, high, middle)
    a = np.exp(logs)
    base = ndtr(-high / s)
    value = (1 - rate) * (1 - a) * base + rate * (ndtr((x - high) / s) - a * ndtr((y - high) / s))
    return np.maximum(value, 0.0)


def log_ratio(rate: float, u: Array) -> Array:
    return np.logaddexp(math.log1p(-rate), math.log(rate) + u)


def plane(rate: float, s: float, sides: ArrayLike, logs: Array) -> Array:
    """Return H_a, a >= 1, of a pair in the plane with lengths |x|, |y|, |x - y|: half-lines across
    y, a sum along it."""
    r1, r2, r3 = map(float, np.asarray(sides))
    along = (r1**2 + r2**2 - r3**2) / (2 * r2)
    across = math.sqrt(r1**2 - along**2)
    a = np.exp(logs)[:, None]
    z = np.linspace(-10 * s - 2, 10 * s + 2, 1001)
    drawn = np.exp((r2 * z - r2**2 / 2) / s**2)
    needed = a * drawn + (a - 1) * (1 - rate) / rate
    start = (s**2 * np.log(np.maximum(needed, 1e-300)) + r1**2 / 2 - along * z) / across

    def density(centre: float) -> Array:
        return np.exp(-(((z - centre) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))

    base = (1 - rate) * (1 - a) * density(0.0) * ndtr(-start / s)
    terms = density(along) * ndtr((across - start) / s) - a * density(r2) * ndtr(-start / s)
    return np.asarray((base + rate * terms).sum(axis=1) * (z[1] - z[0]))


def excess(rate: float, s: float, sides: ArrayLike, logs: Array, exact: bool = False) -> Array:
    """Return E on -logs and logs, for logs = 0, h, 2h, ...: of one pair if `exact`, else a bound
    for all pairs within `sides`.

    The bound is the largest over c of (1-q) (1-a) Phi(-c/s) + q max_t [Phi(t/s) - a Phi((t-r3)/s)],
    t between r3 - r2 - c and r1 - c. For a >= 1 it is taken with t = r1 - c, which makes it the
    divergence of r1 and r1 - r3 on a line: for smaller c the bracket is at its largest, and the
    first term still grows with c. For a <= 1 exchange x and y.
    """
    r1, r2, r3 = map(float, np.asarray(sides))
    if exact and r3 < r1 + r2 - 1e-12:
        up, down = plane(rate, s, (r1, r2, r3), logs), plane(rate, s, (r2, r1, r3), logs)
    else:
        up, down = line(rate, s, r1, r1 - r3, logs), line(rate, s, r2, r2 - r3, logs)
    return np.concatenate([(np.exp(-logs) * down)[:0:-1], up])


Triangle = NDArray[np.float64]
"""Three corners, each the angles opposite to x, y, x - y of a triangle with circumradius 1.

Longer vectors are less private, so that 0, x, y may be taken with a smallest enclosing ball of
radius 1. Either two of the points are antipodal, and the angle at the third is at least a right
one: then a right triangle has sides at least as long. Or all angles are acute. So all lengths are
covered by 2 sin of the angles of triangles without an obtuse angle, which form a triangle
themselves. A part of it is covered by the largest angles of its corners.
"""

WHOLE: Triangle = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]) * math.pi / 2


def split(part: Triangle) -> list[Triangle]:
    first, second, third = part
    half = [(first + second) / 2, (first + third) / 2, (second + third) / 2]
    return [
        np.array(corners)
        for corners in ([first, *half[:2]], [second, half[0], half[2]], [third, *half[1:]], half)
    ]


def sides_of(part: Triangle) -> Array:
    """Return lengths (r1, r2, r3) that no pair of this part exceeds."""
    sides = 2 * np.sin(part.max(axis=0))
    sides[2] = min(sides[2], sides[0] + sides[1])
    return np.asarray(sides)


PAIRS = [(2.0, 0.0, 2.0), (0.0, 2.0, 2.0), (1.0, 1.0, 2.0), (math.sqrt(2),) * 2 + (2.0,)]
"""For the lower bound: filler at v' and at v, in the middle, and at a right angle."""


def reach_of_one_step(rate: float, s: float, h: float) -> Array:
    """Return a grid of ln a up to where the largest profile of one step ends."""
    logs = np.arange(0.0, 60.0, h)
    largest = line(rate, s, 2.0, 0.0, logs)
    return logs[: int(np.argmax(largest < LEFT_OUT)) + 1] if largest[-1] < LEFT_OUT else logs


def play(kernels: Array, steps: int, h: float, half: int) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return V after `steps` at ln a = -half h, ..., half h, and how often each kernel was the best
    where it mattered."""
    logs = np.arange(-half, half + 1) * h
    a = np.exp(logs)
    value = np.maximum(1.0 - a, 0.0)
    size = fft.next_fast_len(logs.size + kernels.shape[1], real=True)
    spectra = fft.rfft(kernels, size, axis=1)
    start = kernels.shape[1] // 2
    used = np.zeros(len(kernels), dtype=np.intp)
    for _ in range(steps):
        slopes = np.concatenate([[(value[0] - 1) / a[0]], np.diff(value) / np.diff(a), [0.0]])
        masses = a * np.diff(slopes)
        gains = fft.irfft(spectra * fft.rfft(masses, size), size, axis=1)[
            :, start : start + logs.size
        ]
        best = gains.argmax(axis=0)
        gain = np.take_along_axis(gains, best[None], axis=0)[0]
        used += np.bincount(best[gain > 1e-2 * gain.max()], minlength=len(kernels))
        value = value + np.maximum(gain, 0.0)
    return logs, value, used


def epsilon_upper(logs: Array, value: Array, delta: float) -> float:
    """Return the epsilon at which the chords of `value` fall to delta."""
    a, at = np.exp(logs), crossing(logs, value, delta)
    return math.log(a[at] + (value[at] - delta) / (value[at] - value[at + 1]) * (a[at + 1] - a[at]))


def epsilon_lower(logs: Array, value: Array, delta: float) -> float:
    """Return the epsilon at which the chords next to the one that falls to delta, prolonged, do so:
    a convex function lies above them."""
    a, at = np.exp(logs), crossing(logs, value, delta)
    slopes = np.diff(value) / np.diff(a)
    left = a[at] + (delta - value[at]) / slopes[at - 1]
    right = a[at + 1] + (delta - value[at + 1]) / slopes[at + 1]
    return math.log(max(left, right))


def crossing(logs: Array, value: Array, delta: float) -> int:
    """Return the point of the grid, at or above epsilon = 0, after which `value` is at most
    delta."""
    at = int(np.argmax((value <= delta) & (logs > 0))) - 1
    if not value[at] > delta >= value[at + 1]:
        raise ValueError("delta lies outside the grid")
    return at


def lower_value(rate: float, s: float, steps: int, h: float, reach: float) -> tuple[Array, Array]:
    """Return V of the best of `PAIRS` at every step, on the grid 2h, less what halving the grid
    took off."""
    half, values = math.ceil(reach / (2 * h)), []
    for finer in (1, 2):
        one = reach_of_one_step(rate, s, 2 * h / finer)
        kernels = np.stack([excess(rate, s, pair, one, exact=True) for pair in PAIRS])
        values.append(play(kernels, steps, 2 * h / finer, half * finer)[:2])
    (logs, coarse), (_, fine) = values
    fine = fine[::2]
    return logs, fine - (coarse - fine) - steps * (ROUNDING + abs(coarse[-1]))


def cover(rate: float, s: float, steps: int, h: float, reach: float, parts: int) -> list[Triangle]:
    """Return at most about `parts` triangles that are `WHOLE`, small where they are used."""
    found = split(WHOLE)
    one = reach_of_one_step(rate, s, h)
    while True:
        kernels = np.stack([excess(rate, s, sides_of(part), one) for part in found])
        used = play(kernels, steps, h, math.ceil(reach / h))[2]
        worst = [index for index in np.argsort(-used) if used[index]][: max(4, len(found) // 3)]
        if len(found) + 3 * len(worst) > parts:
            return found
        found = [part for index, part in enumerate(found) if index not in worst] + [
            piece for index in worst for piece in split(found[index])
        ]


def not_covered_by_another(sides: Array) -> Array:
    """Return the triples that no other of them exceeds in all three lengths."""
    sides = sides[np.unique(sides.round(12), axis=0, return_index=True)[1]]
    within = (sides[:, None, :] <= sides[None, :, :]).all(axis=2)
    return np.asarray(sides[within.sum(axis=1) == 1])


def upper_value(
    rate: float, s: float, steps: int, h: float, reach: float, triples: Array
) -> tuple[Array, Array]:
    """Return V with the bound of the best of the cells `triples` at every step."""
    one = reach_of_one_step(rate, s, h)
    kernels = np.stack([excess(rate, s, sides, one) for sides in not_covered_by_another(triples)])
    logs, value, _ = play(kernels, steps, h, math.ceil(reach / h))
    return logs, value + steps * ROUNDING


def one_cell(rate: float, s: float, steps: int, h: float, reach: float) -> tuple[Array, Array]:
    """Return the bound of one cell for all pairs."""
    return upper_value(rate, s, steps, h, reach, np.array([[2.0, 2.0, 2.0]]))


SETTINGS = [
    # n, m, s, steps
    (10000, 200, 4.0, 1),
    (10000, 200, 4.0, 100),
    (10000, 200, 4.0, 1000),
    (10000, 200, 1.0, 1),
    (10000, 200, 1.0, 10),
    (10000, 200, 1.0, 100),
    (50000, 500, 1.0, 1000),
    (20000, 100, 0.7, 200),
    (1000, 100, 2.0, 50),
    (1000, 500, 4.0, 20),
    (100, 10, 1.0, 10),
    (10, 5, 2.0, 5),
    (100, 50, 0.6, 3),
    (10000, 10, 0.5, 100),
    (10000, 10, 1.0, 1000),
    (1000, 10, 2.0, 300),
    (1000, 50, 1.0, 30),
    (1000, 50, 10.0, 1000),
    (100, 10, 5.0, 300),
    (50, 10, 1.0, 100),
    (1000, 200, 10.0, 500),
    (2, 1, 1.0, 2),
    (6, 2, 1.0, 3),
    (10, 5, 10.0, 100),
    (20, 10, 0.5, 2),
    (50000, 500, 1.0, 10000),
]
DELTAS = [1e-3, 1e-5, 1e-8]
PARTS = 150
DIGITS = 6  # after the point, rounded outwards


def grid(rate: float, s: float, steps: int) -> tuple[float, float]:
    """Return a step that is fine against the losses of one release, and how far the grid must reach
    to leave nothing out."""
    h = min(0.005, 0.05 * rate * math.sqrt(math.expm1(4 / s**2)))
    reach = 0.25
    while one_cell(rate, s, steps, 8 * h, reach)[1][-1] > 1e-14 * (1 + 2 * steps):
        reach *= 1.5
    return h, reach


def rows(n: int, m: int, s: float, steps: int) -> list[dict[str, Any]]:
    rate = m / n
    h, reach = grid(rate, s, steps)
    low = lower_value(rate, s, steps, h, reach)
    if steps > 1000:  # chords add less than one percent
        h *= 4
    parts = cover(rate, s, min(steps, max(100, steps // 10)), 4 * h, reach, PARTS)
    high = upper_value(rate, s, steps, h, reach, np.array([sides_of(part) for part in parts]))
    ten = 10**DIGITS
    return [
        {
            "n": n,
            "m": m,
            "noise_multiplier": s,
            "steps": steps,
            "delta": delta,
            "lower": math.floor(ten * epsilon_lower(*low, delta)) / ten,
            "upper": math.ceil(ten * epsilon_upper(*high, delta)) / ten,
        }
        for delta in DELTAS
    ]


if __name__ == "__main__":
    lines = [json.dumps(row) for setting in SETTINGS for row in rows(*setting)]
    about = '"about": "generated by tests/golden/game.py; do not edit"'
    TARGET.write_text(
        "{\n " + about + ',\n "epsilons": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n",
        encoding="utf-8",
    )

"""Write samplers.json: samples of fixed size other than those of game.json, by dynamic programming,
from both sides.

Run by hand: ``python -m tests.golden.samplers`` (some minutes). It shares no code with the package;
the steps are played as in game.py. With p the law of how often the record that differs is drawn,
lengths over the clipping norm:

*Lower bounds*: M = sum p_l noise(2 l) against noise(0), which others at -1, v = +1 and v' = -1, or
no record, attain. Under substitute the others may be at +1 as well, which gives the two laws in the
other order: the better one at every step. Under add_remove the order is fixed, and the larger of
both epsilons is *the* answer: from above by chords, from below by comparing with a coarser grid.
*Upper bounds* under substitute: an event A with mass Phi(-c/s) under the sum without the record
has, l records replaced by vectors x, y off, at most max_t [Phi(t/s) - a Phi((t - r3)/s)], t between
r3 - r2 - c and r1 - c, where |x| <= r1, |y| <= r2, |x - y| <= r3. So with one c for all l

    H_a <= sup over c of  p_0 (1 - a) Phi(-c/s) + sum of p_l max_t[...],    a > 0,

all lengths 2 l, except with replacement those of l = 1, where the cells of game.py serve as well. A
first stage that draws i copies with probability pi_i gives sum of pi_i H_a'(second stage, i
marked), a' = 1 + (a - 1)/(1 - pi_0).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from tests.golden import game

Array = NDArray[np.float64]
TARGET = Path(__file__).with_name("samplers.json")
LEAST = 1e-20  # probability of a number of copies that is looked at


class Setting(NamedTuple):
    sampler: str
    n: int
    b: int
    m: int
    noise: str
    adjacency: str
    noise_multiplier: float
    steps: int

    @property
    def records(self) -> int:
        """Return the number of records of the larger data set."""
        return self.n + (self.adjacency == "add_remove")


def binomial(size: int, p: float) -> Array:
    law = np.ones(1)
    for _ in range(size):
        law = np.convolve(law, [1 - p, p])
    return law[: np.flatnonzero(law > LEAST)[-1] + 1]


def stages(setting: Setting) -> list[tuple[float, Array]]:
    """Return pi_i and the law of copies after the last stage, for all i a first stage may draw; one
    entry if there is none."""
    n, b, m = setting.records, setting.b, setting.m
    if setting.sampler == "wor":
        return [(1.0, np.array([1 - m / n, m / n]))]
    # a uniform subset of independent draws are independent draws
    if setting.sampler in ("wr", "must_wo"):
        return [(1.0, binomial(m, 1 / n))]
    first = np.array([1 - b / n, b / n]) if setting.sampler == "must_ow" else binomial(b, 1 / n)
    return [(weight, binomial(m, i / b)) for i, weight in enumerate(first.tolist())]


def copies(setting: Setting) -> Array:
    laws = stages(setting)
    total = np.zeros(max(law.size for _, law in laws))
    for weight, law in laws:
        total[: law.size] += weight * law
    return total[: np.flatnonzero(total > LEAST)[-1] + 1]


def log_density(noise: str, z: Array) -> Array:
    return -z * z / 2 if noise == "gaussian" else -np.abs(z)


def tail(noise: str, z: Array) -> Array:
    if noise == "gaussian":
        return np.asarray(ndtr(-z))
    return np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))


def half_line(setting: Setting, logs: Array, swapped: bool) -> Array:
    """Return H_a, a = e^logs >= 1, of M against noise(0), or of noise(0) against M reflected; the
    loss rises with t."""
    law, s = copies(setting), setting.noise_multiplier
    centres = 2.0 * np.arange(law.size) * (-1 if swapped else 1)

    def mixture(of: Callable[[str, Array], Array], t: Array) -> Array:
        return np.asarray(of(setting.noise, (t - centres[:, None]) / s))

    def loss(t: Array) -> Array:
        found = np.logaddexp.reduce(np.log(law)[:, None] + mixture(log_density, t)) - log_density(
            setting.noise, t / s
        )
        return np.asarray(-found if swapped else found)

    reach = 2 * law.size + 60 * s
    low, high = np.full_like(logs, -reach), np.full_like(logs, reach)
    for _ in range(70):
        middle = (low + high) / 2
        less = loss(middle) < logs
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    drawn, base = law @ mixture(tail, high), tail(setting.noise, high / s)
    first, second = (base, drawn) if swapped else (drawn, base)
    return np.maximum(first - np.exp(logs) * second, 0.0)


def one_event(law: Array, s: float, logs: Array, sides: ArrayLike) -> Array:
    """Return the bound at a = e^logs >= 1 for lengths `sides` of l = 1 and 2 l of the others: the
    best c of many, refined."""
    a = np.exp(logs)[:, None]
    lengths = [np.asarray(sides), *(np.full(3, 2.0 * copy) for copy in range(2, law.size))]

    def value(c: Array) -> Array:
        total = law[0] * (1 - a) * ndtr(-c / s)
        for weight, (r1, r2, r3) in zip(law[1:], lengths, strict=True):
            t = np.clip(r3 / 2 - s * s * logs[:, None] / r3, r3 - r2 - c, r1 - c)
            total = total + weight * (ndtr(t / s) - a * ndtr((t - r3) / s))
        return np.asarray(total)

    c = np.linspace(-10 * s, 10 * s + 2 * law.size, 600)
    best, width = c[value(c[None, :]).argmax(axis=1)][:, None], c[1] - c[0]
    for _ in range(12):
        near = best + width * np.linspace(-1, 1, 9)
        best, width = (
            np.take_along_axis(near, value(near).argmax(axis=1)[:, None], axis=1),
            width / 4,
        )
    return np.maximum(value(best)[:, 0], 0.0)


def bound(setting: Setting, logs: Array, sides: ArrayLike) -> Array:
    """Return the bound for a >= 1, by chords in a between orders that are looked at: it is a
    supremum of affine functions of a."""
    if setting.sampler == "wor":  # one event is a half-line
        return half_line(setting, logs, swapped=False)
    laws = stages(setting)
    share = 1.0 if len(laws) == 1 else 1 - laws[0][0]
    at = np.unique(np.linspace(0, logs.size - 1, 400).round().astype(int))
    lifted = np.log1p(np.expm1(logs[at]) / share)
    s = setting.noise_multiplier
    values = sum(weight * one_event(law, s, lifted, sides) for weight, law in laws if law.size > 1)
    return np.interp(np.exp(logs), np.exp(logs[at]), values)


def excess(up: Array, down: Array, logs: Array) -> Array:
    return np.concatenate([(np.exp(-logs) * down)[:0:-1], up])


def attained(setting: Setting, logs: Array) -> Array:
    """Return the profiles of M against noise(0), and of the other order."""
    up, down = (half_line(setting, logs, swapped) for swapped in (False, True))
    return np.stack([excess(up, down, logs), excess(down, up, logs)])


def play_above(kernels: Array, setting: Setting, h: float, half: int) -> tuple[Array, Array]:
    logs, value, _ = game.play(kernels, setting.steps, h, half)
    return logs, value + setting.steps * game.ROUNDING


def one_step(setting: Setting, h: float) -> Array:
    """Return a grid of ln a up to where the largest profile of one step ends."""
    logs = np.arange(0.0, 250.0, h)
    return logs[: np.count_nonzero(half_line(setting, logs, False) >= game.LEFT_OUT) + 1]


def play_below(setting: Setting, choice: slice, h: float, half: int) -> tuple[Array, Array]:
    """Play with the kernels of this choice, on the grid 2h, less what halving the grid took off."""
    (logs, coarse), (_, fine) = (
        game.play(
            attained(setting, one_step(setting, width))[choice], setting.steps, width, points
        )[:2]
        for width, points in ((2 * h, half), (h, 2 * half))
    )
    fine = fine[::2]
    return logs, fine - (coarse - fine) - setting.steps * (game.ROUNDING + abs(coarse[-1]))


def ends(setting: Setting) -> tuple[Array, Array]:
    """Return epsilon at `game.DELTAS`."""
    s, eta = setting.noise_multiplier, 1 - float(copies(setting)[0])
    h = min(0.002, 0.05 * eta * math.sqrt(math.expm1(4 / s**2)))
    reach, left = 0.25, math.inf
    while left > 1e-14 * (1 + 2 * setting.steps):
        reach *= 1.5
        left = play_above(
            attained(setting, one_step(setting, 8 * h)), setting, 8 * h, math.ceil(reach / h / 8)
        )[1][-1]
    logs, half = one_step(setting, h), math.ceil(reach / h)
    choices = [slice(0, 2)]
    if setting.adjacency == "add_remove":
        choices = [slice(0, 1), slice(1, 2)]
        above = [
            play_above(attained(setting, logs)[choice], setting, h, half) for choice in choices
        ]
    else:
        cells: list[ArrayLike] = [(2.0, 2.0, 2.0)]
        if setting.sampler in ("wr", "must_wo"):
            parts = game.cover(eta, s, setting.steps, 4 * h, reach, 60)
            cells = list(
                game.not_covered_by_another(np.array([game.sides_of(part) for part in parts]))
            )
        bounds = [
            (bound(setting, logs, cell), bound(setting, logs, np.asarray(cell)[[1, 0, 2]]))
            for cell in cells
        ]
        above = [play_above(np.stack([excess(*pair, logs) for pair in bounds]), setting, h, half)]
    below = [play_below(setting, choice, h, math.ceil(half / 2)) for choice in choices]
    lower = [max(one[0][game.crossing(*one, delta)] for one in below) for delta in game.DELTAS]
    upper = [max(game.epsilon_upper(*one, delta) for one in above) for delta in game.DELTAS]
    return np.array(lower), np.array(upper)


SETTINGS = [
    Setting("wr", 10000, 0, 200, "gaussian", "substitute", 4.0, 100),
    Setting("wr", 1000, 0, 50, "gaussian", "substitute", 1.0, 20),
    Setting("wr", 100, 0, 10, "gaussian", "substitute", 2.0, 50),
    Setting("wr", 20, 0, 4, "gaussian", "substitute", 1.0, 5),
    Setting("must_wo", 10, 8, 5, "gaussian", "substitute", 0.8, 2),
    Setting("must_ow", 10000, 500, 200, "gaussian", "substitute", 4.0, 100),
    Setting("must_ow", 100, 20, 10, "gaussian", "substitute", 2.0, 20),
    Setting("must_ow", 20, 5, 3, "gaussian", "substitute", 1.0, 5),
    Setting("must_ww", 1000, 100, 10, "gaussian", "substitute", 8.0, 100),
    Setting("must_ww", 20, 6, 4, "gaussian", "substitute", 1.5, 5),
    Setting("wor", 50000, 0, 120, "gaussian", "add_remove", 1.0, 1000),
    Setting("wor", 10000, 0, 200, "gaussian", "add_remove", 4.0, 1000),
    Setting("wor", 20, 0, 5, "gaussian", "add_remove", 1.0, 10),
    Setting("wr", 10000, 0, 200, "gaussian", "add_remove", 4.0, 1000),
    Setting("wr", 50, 0, 10, "gaussian", "add_remove", 1.0, 20),
    Setting("wor", 10000, 0, 200, "laplace", "substitute", 2.0, 100),
    Setting("wor", 20, 0, 5, "laplace", "substitute", 3.0, 30),
    Setting("wor", 10000, 0, 200, "laplace", "add_remove", 2.0, 1000),
    Setting("wor", 20, 0, 5, "laplace", "add_remove", 1.0, 30),
]


def rows(setting: Setting) -> list[dict[str, Any]]:
    ten = 10**game.DIGITS
    return [
        setting._asdict()
        | {
            "delta": delta,
            "lower": math.floor(ten * low) / ten,
            "upper": math.ceil(ten * high) / ten,
        }
        for delta, low, high in zip(game.DELTAS, *ends(setting), strict=True)
    ]


if __name__ == "__main__":
    lines = [json.dumps(row) for setting in SETTINGS for row in rows(setting)]
    about = '"about": "generated by tests/golden/samplers.py; do not edit"'
    TARGET.write_text(
        "{\n " + about + ',\n "epsilons": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n",
        encoding="utf-8",
    )

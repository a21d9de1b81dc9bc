"""Write profiles.json: privacy profiles, amplified deltas and scales at 50 digits, straight from
the printed formulas.

Run by hand: ``python tests/golden/generate_profiles.py`` (a few seconds). It shares no code with
the package, makes no attempt to be fast, and evaluates the formulas as they are printed, at a
precision that survives their cancellation. Arguments are exact doubles; answers are decimal texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

DIGITS = 50  # of every answer
GUARD_DIGITS = 15  # for the cancellation of the printed Gaussian form
NEAR_ONE_DIGITS = 400  # for log delta where 1 - delta is as small as 1e-300
TARGET = Path(__file__).with_name("profiles.json")

RATIOS = [2.0**-10, 0.025, 0.25, 1.0, 2.5, 10.0, 64.0]
MULTIPLES = [-9.0, -3.0, -1.5, -1.0, -0.5, -(2.0**-20), 0.0]
MULTIPLES += [2.0**-20, 0.125, 0.5, 1.0, 2.0, 4.5, 9.0, 17.0, 30.0, 36.0, 60.0]
SAMPLERS = [
    {"sampler": "wor", "n": 1000, "b": 500, "m": 400},
    {"sampler": "wr", "n": 1000, "b": 500, "m": 400},
    {"sampler": "must_ow", "n": 1000, "b": 500, "m": 400},
    {"sampler": "must_ww", "n": 300, "b": 50, "m": 30},
]
AMPLIFIED_EPSILONS = [0.05, 1.0, 4.5]
AMPLIFIED_RATIOS = [0.25, 1.0]
TARGETS = [1e-300, 1e-30, 1e-10, 1e-5, 1 / 300, 0.1, 0.5]


def text(value: mpf) -> str:
    return str(mp.nstr(value, DIGITS, min_fixed=0, max_fixed=0))


def gaussian(ratio: mpf, epsilon: mpf) -> mpf:
    """Phi(theta/2 - eps/theta) - exp(eps) Phi(-theta/2 - eps/theta), with Phi by erfc."""
    first = mp.erfc((epsilon / ratio - ratio / 2) / mp.sqrt(2)) / 2
    second = mp.erfc((epsilon / ratio + ratio / 2) / mp.sqrt(2)) / 2
    return first - mp.exp(epsilon) * second


def laplace(ratio: mpf, epsilon: mpf) -> mpf:
    """Integral of max(0, p - exp(eps) q) for unit Laplace densities at distance theta, piece by
    piece.

    Beyond the printed formula it covers epsilon < -theta, where p exceeds exp(eps) q everywhere.
    """
    if epsilon >= ratio:
        return mpf(0)
    if epsilon <= -ratio:
        return 1 - mp.exp(epsilon)
    crossing = (ratio + epsilon) / 2  # p at theta, q at 0: p > exp(eps) q beyond it
    return 1 - mp.exp(crossing - ratio) / 2 - mp.exp(epsilon - crossing) / 2


PROFILES = {"gaussian": gaussian, "laplace": laplace}


def binomial(count: int, trials: int, rate: mpf) -> mpf:
    return mp.binomial(trials, count) * rate**count * (1 - rate) ** (trials - count)


def weight(sampler: dict[str, Any], copies: int) -> mpf:
    """P(a fixed record occurs `copies` times), the printed expressions of Table 2."""
    n, b, m = (mpf(sampler[key]) for key in ("n", "b", "m"))
    if sampler["sampler"] == "wor":
        return m / n if copies == 1 else mpf(0)
    if sampler["sampler"] == "wr":
        return binomial(copies, sampler["m"], 1 / n)
    if sampler["sampler"] == "must_ow":
        return b / n * binomial(copies, sampler["m"], 1 / b)
    slots = range(1, sampler["b"] + 1)
    return mp.fsum(
        binomial(j, sampler["b"], 1 / n) * binomial(copies, sampler["m"], j / b) for j in slots
    )


def epsilon_of(ratio: float, multiple: float) -> float:
    """Spread the orders over the loss: for Gaussian noise theta²/2 is its mean and theta its
    standard deviation."""
    return ratio * multiple + (ratio * ratio / 2 if multiple > 0 else 0.0)


def profile_row(name: str, ratio: float, epsilon: float) -> dict[str, Any]:
    with mp.workdps(NEAR_ONE_DIGITS):
        delta = PROFILES[name](mpf(ratio), mpf(epsilon))
        log_delta = text(mp.log(delta)) if delta > 0 else "-inf"
        return {
            "name": name,
            "ratio": ratio,
            "epsilon": epsilon,
            "delta": text(delta),
            "log_delta": log_delta,
        }


def amplified_row(
    sampler: dict[str, Any], name: str, ratio: float, epsilon: float
) -> dict[str, Any]:
    with mp.workdps(DIGITS + GUARD_DIGITS):
        weights = [weight(sampler, copies) for copies in range(1, sampler["m"] + 1)]
        groups = [
            PROFILES[name](copies * mpf(ratio), mpf(epsilon))
            for copies in range(1, sampler["m"] + 1)
        ]
        delta = mp.fsum(w * d for w, d in zip(weights, groups, strict=True))
        amplified = mp.log(1 + mp.fsum(weights) * (mp.exp(mpf(epsilon)) - 1))
    row = {"name": name, "ratio": ratio, "epsilon": epsilon}
    return {**sampler, **row, "epsilon_amplified": text(amplified), "delta_amplified": text(delta)}


def scale_row(epsilon: float, delta: float) -> dict[str, Any]:
    """Scale for sensitivity 1 by bisection of the printed profile in the logarithm of theta."""
    with mp.workdps(DIGITS + GUARD_DIGITS):
        low, high = mpf(-12), mpf(5)
        for _ in range(190):
            middle = (low + high) / 2
            below = gaussian(mp.exp(middle), mpf(epsilon)) < mpf(delta)
            low, high = (middle, high) if below else (low, middle)
        return {"epsilon": epsilon, "delta": delta, "scale": text(mp.exp(-low))}


PARTS: dict[str, tuple[Callable[..., dict[str, Any]], list[tuple[Any, ...]]]] = {
    "profiles": (
        profile_row,
        [(name, r, epsilon_of(r, k)) for name, r, k in product(PROFILES, RATIOS, MULTIPLES)],
    ),
    "amplified": (
        amplified_row,
        [*product(SAMPLERS, PROFILES, AMPLIFIED_RATIOS, AMPLIFIED_EPSILONS)],
    ),
    "scales": (scale_row, [*product((0.01, 0.5, 1.0, 8.0, 100.0), TARGETS)]),
}


if __name__ == "__main__":
    body = [
        '"about": "generated by tests/golden/generate_profiles.py; do not edit"',
        f'"digits": {DIGITS}',
    ]
    for part, (row, arguments) in PARTS.items():
        rows = ",\n  ".join(json.dumps(row(*each)) for each in arguments)
        body.append(f'"{part}": [\n  {rows}\n ]')
    TARGET.write_text("{\n " + ",\n ".join(body) + "\n}\n", encoding="utf-8")

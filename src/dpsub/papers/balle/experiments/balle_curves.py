"""The curves of Figure 1 (Balle et al., appendix D), for parameters that the text does not give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpsub import checks, noise
from dpsub.amplification import Bound, amplify, translate
from dpsub.noise import BlackBoxGroups, ConstantGroups, Profile, RandomisedResponseProfile
from dpsub.reproduce.experiment import Experiment

SHARE_BELOW = 0.999  # of the base epsilon at which a curve ends: there it must still be positive


class BalleCurves(Experiment):
    """delta of base mechanisms over epsilon (panel a) and of subsampled ones over epsilon' (b to e).

    `point` is "grid" on the curve; "before_end" and "at_end" are the base epsilons next to and at the end of the
    Laplace curves of panel c.
    """

    name: ClassVar[str] = "balle_curves"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "panel": "str", "curve": "str", "point": "str", "level": "float64", "m": "int64",
        "eta": "float64", "x": "float64", "delta": "float64", "log_delta": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    def check(self, settings: Mapping[str, Any]) -> None:
        for start in settings["start_deltas"]:
            checks.real("start_deltas", start, above=0, below=1)
        for m in (settings["m"], *settings["group_sizes"]):
            _bound("wor", settings["n"], m)
        noise.of("laplace", settings["ratio"])
        for axis in ("epsilon", "epsilon_amplified"):
            step = checks.real(f"{axis}_step", settings[f"{axis}_step"], above=0)
            checks.real(f"{axis}_max", settings[f"{axis}_max"], at_least=2 * step, at_most=100_000 * step)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = [*_base_curves(settings), *_sampled_curves(settings), *_ends(settings)]
        return self.frame(pd.DataFrame(rows))


def grid(settings: Mapping[str, Any], axis: str) -> np.ndarray:
    """Return 0, step, 2 step, ..., max of an axis, as the decimal numbers that they stand for."""
    step, top = settings[f"{axis}_step"], settings[f"{axis}_max"]
    return np.round(np.arange(round(top / step) + 1) * step, 10)


def calibrated(start: float) -> dict[str, Profile]:
    """Return the three mechanisms whose delta(0) is `start`."""
    return {
        "randomised_response": RandomisedResponseProfile((1 + start) / 2),
        "laplace": noise.of("laplace", -2 * math.log1p(-start)),
        "gaussian": noise.of("gaussian", 2 * float(ndtri((1 + start) / 2))),
    }


def _record(panel: str, curve: str, level: float, x: float, log_delta: float, **other: object) -> dict[str, object]:
    base = {"replicate": 0, "panel": panel, "curve": curve, "point": "grid", "level": float(level), "m": 0, "eta": 1.0}
    return {**base, "x": float(x), "delta": math.exp(log_delta), "log_delta": log_delta, **other}


def _base_curves(settings: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    epsilons = grid(settings, "epsilon")
    for start in settings["start_deltas"]:
        for curve, profile in calibrated(start).items():
            for x, log_delta in zip(epsilons, profile.log_delta(epsilons), strict=True):
                yield _record("a", curve, start, x, float(log_delta))


def _sampled_curves(settings: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    n, m, ratio = settings["n"], settings["m"], settings["ratio"]
    targets = grid(settings, "epsilon_amplified")
    for panel, mechanism in (("b", "gaussian"), ("c", "laplace")):
        profile = noise.of(mechanism, ratio)
        for x, log_delta in zip(targets, profile.log_delta(targets), strict=True):
            yield _record(panel, "none", ratio, x, float(log_delta))
        for sampler in ("wor", "wr"):
            yield from _curve(panel, sampler, _bound(sampler, n, m), m, profile, ratio, targets)
    profile = noise.of("laplace", ratio)
    for size in settings["group_sizes"]:
        bound = _bound("wr", n, size)
        yield from _curve("d", "wr", bound, size, profile, ratio, targets)
        yield from _curve("d", "wr_no_group", bound, size, ConstantGroups(profile), ratio, targets)
        yield from _curve("e", "wr", bound, size, profile, ratio, targets)
        yield from _curve("e", "wr_black_box", bound, size, BlackBoxGroups(profile), ratio, targets)


def _bound(sampler: str, n: int, m: int) -> Bound:
    return translate(sampler, "substitute", "substitute", n=n, m=m)


def _curve(
    panel: str, curve: str, bound: Bound, m: int, profile: Profile, level: float, targets: np.ndarray
) -> Iterator[dict[str, object]]:
    found = amplify(bound.law, profile, bound.epsilon_base(targets))
    for x, log_delta in zip(targets, found.log_delta_amplified, strict=True):
        yield _record(panel, curve, level, x, float(log_delta), m=m, eta=bound.eta)


def _ends(settings: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Base epsilon theta ends the curve without replacement, m theta the one with it; x is epsilon'."""
    n, m, ratio = settings["n"], settings["m"], settings["ratio"]
    profile = noise.of("laplace", ratio)
    for curve, end in (("wor", ratio), ("wr", m * ratio)):
        bound = _bound(curve, n, m)
        for point, epsilon in (("before_end", SHARE_BELOW * end), ("at_end", end)):
            found = amplify(bound.law, profile, epsilon)
            yield _record("c", curve, ratio, float(found.epsilon_amplified), float(found.log_delta_amplified),
                          point=point, m=m, eta=bound.eta)  # fmt: skip

"""The curves of Figure 1 (Balle et al., appendix D), for parameters that the text does not give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import ndtri

from dpsub import checks, noise
from dpsub.amplification import Bound, amplify, translate
from dpsub.noise import BlackBoxGroups, ConstantGroups, Profile, RandomisedResponseProfile
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    FrameSize,
    Positive,
    Rates,
    SampleSize,
    Sizes,
)

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

    class Settings(ExperimentSettings):
        n: FrameSize = 1000
        m: SampleSize = 100
        ratio: Positive = Field(1, description="Sensitivity over noise scale.")
        start_deltas: Rates = Field((0.1, 0.25, 0.5), description="Values of delta at epsilon = 0 in panel a.")
        group_sizes: Sizes = Field((50, 100, 200), description="Sizes m in panels d and e.")
        epsilon_step: Positive = Field(0.02, description="Step of epsilon in panel a, in nats.")
        epsilon_max: Positive = Field(3, description="Last epsilon of panel a, in nats.")
        epsilon_amplified_step: Positive = Field(0.005, description="Step of epsilon' in panels b to e, in nats.")
        epsilon_amplified_max: Positive = Field(0.4, description="Last epsilon' of panels b to e, in nats.")

        def check(self) -> None:
            for m in (self.m, *self.group_sizes):
                _bound("wor", self.n, m)
            noise.of("laplace", self.ratio)
            for axis in ("epsilon", "epsilon_amplified"):
                step, top = getattr(self, f"{axis}_step"), getattr(self, f"{axis}_max")
                checks.real(f"{axis}_max", top, at_least=2 * step, at_most=100_000 * step)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*_base_curves(settings), *_sampled_curves(settings), *_ends(settings)]
        return self.frame(pd.DataFrame(rows))


def grid(settings: BalleCurves.Settings, axis: str) -> np.ndarray:
    """Return 0, step, 2 step, ..., max of an axis, as the decimal numbers that they stand for."""
    step, top = getattr(settings, f"{axis}_step"), getattr(settings, f"{axis}_max")
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


def _base_curves(settings: BalleCurves.Settings) -> Iterator[dict[str, object]]:
    epsilons = grid(settings, "epsilon")
    for start in settings.start_deltas:
        for curve, profile in calibrated(start).items():
            for x, log_delta in zip(epsilons, profile.log_delta(epsilons), strict=True):
                yield _record("a", curve, start, x, float(log_delta))


def _sampled_curves(settings: BalleCurves.Settings) -> Iterator[dict[str, object]]:
    n, m, ratio = settings.n, settings.m, settings.ratio
    targets = grid(settings, "epsilon_amplified")
    for panel, mechanism in (("b", "gaussian"), ("c", "laplace")):
        profile = noise.of(mechanism, ratio)
        for x, log_delta in zip(targets, profile.log_delta(targets), strict=True):
            yield _record(panel, "none", ratio, x, float(log_delta))
        for sampler in ("wor", "wr"):
            yield from _curve(panel, sampler, _bound(sampler, n, m), m, profile, ratio, targets)
    profile = noise.of("laplace", ratio)
    for size in settings.group_sizes:
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


def _ends(settings: BalleCurves.Settings) -> Iterator[dict[str, object]]:
    """Base epsilon theta ends the curve without replacement, m theta the one with it; x is epsilon'."""
    n, m, ratio = settings.n, settings.m, settings.ratio
    profile = noise.of("laplace", ratio)
    for curve, end in (("wor", ratio), ("wr", m * ratio)):
        bound = _bound(curve, n, m)
        for point, epsilon in (("before_end", SHARE_BELOW * end), ("at_end", end)):
            found = amplify(bound.law, profile, epsilon)
            yield _record("c", curve, ratio, float(found.epsilon_amplified), float(found.log_delta_amplified),
                          point=point, m=m, eta=bound.eta)  # fmt: skip

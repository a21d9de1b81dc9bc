"""Curves for parameters that the text does not give: Figure 1 (Balle et al., appendix D), and the
cost of sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from scipy.special import ndtri

from dpsub import checks, noise
from dpsub.amplification import Bound, amplify, base_epsilon, translate
from dpsub.noise import BlackBoxGroups, ConstantGroups, Profile, RandomisedResponseProfile
from dpsub.papers.balle.settings import schema
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    FrameSize,
    Listed,
    Positive,
    Rates,
    SampleSize,
    Share,
    Sizes,
)

SHARE_BELOW = 0.999  # of the base epsilon at which a curve ends: there it must still be positive


class BalleCurves(Grid):
    """delta of base mechanisms over epsilon (panel a) and of subsampled ones over epsilon' (b to
    e).

    `point` is "grid" on the curve; "before_end" and "at_end" are the base epsilons next to and at
    the end of the Laplace curves of panel c.
    """

    name = "balle_curves"
    stage = "account"
    columns = schema("panel curve point level m eta x delta log_delta")
    variants = ("stated",)
    keys = ("panel", "curve", "point", "level", "m", "x")

    class Settings(ExperimentSettings):
        n: FrameSize = 1000
        m: SampleSize = 100
        ratio: Positive = Field(1, description="Sensitivity over noise scale.")
        # Panel (a) compares mechanisms at one delta(0), the total variation distance.
        start_deltas: Rates = Field(
            (0.1, 0.25, 0.5), description="Values of delta at epsilon = 0 in panel a."
        )
        group_sizes: Sizes = Field((50, 100, 200), description="Sizes m in panels d and e.")
        epsilon_step: Positive = Field(0.02, description="Step of epsilon in panel a, in nats.")
        epsilon_max: Positive = Field(3, description="Last epsilon of panel a, in nats.")
        epsilon_amplified_step: Positive = Field(
            0.005, description="Step of epsilon' in panels b to e, in nats."
        )
        epsilon_amplified_max: Positive = Field(
            0.4, description="Last epsilon' of panels b to e, in nats."
        )

        def check(self) -> None:
            for m in (self.m, *self.group_sizes):
                self.bound("wor", m)
            noise.of("laplace", self.ratio)
            for axis in ("epsilon", "epsilon_amplified"):
                step, top = getattr(self, f"{axis}_step"), getattr(self, f"{axis}_max")
                checks.real(f"{axis}_max", top, at_least=2 * step, at_most=100_000 * step)

        def bound(self, sampler: str, m: int) -> Bound:
            """Return the bound of a sampler of size m."""
            return translate(sampler, "substitute", "substitute", n=self.n, m=m)

        def grid(self, axis: str) -> np.ndarray:
            """Return 0, step, 2 step, ..., max of an axis, as the decimal numbers that they stand
            for."""
            step, top = getattr(self, f"{axis}_step"), getattr(self, f"{axis}_max")
            return np.round(np.arange(round(top / step) + 1) * step, 10)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        epsilons = settings.grid("epsilon")
        for start in settings.start_deltas:
            for curve, profile in calibrated(start).items():
                yield _curve("a", curve, start, epsilons, profile.log_delta(epsilons))
        ratio, targets = settings.ratio, settings.grid("epsilon_amplified")
        laplace, gaussian = (noise.of(name, ratio) for name in ("laplace", "gaussian"))

        def sampled(panel: str, curve: str, profile: Profile, m: int) -> dict[str, Any]:
            bound = settings.bound("wor" if curve == "wor" else "wr", m)
            log_delta = amplify(bound.law, profile, bound.epsilon_base(targets)).log_delta_amplified
            return _curve(panel, curve, ratio, targets, log_delta, bound, m)

        for panel, profile in (("b", gaussian), ("c", laplace)):
            yield _curve(panel, "none", ratio, targets, profile.log_delta(targets))
            yield sampled(panel, "wor", profile, settings.m)
            yield sampled(panel, "wr", profile, settings.m)
        for m in settings.group_sizes:
            yield sampled("d", "wr", laplace, m)
            # delta_1 in place of delta_k: the bound as if a record could occur only once.
            yield sampled("d", "wr_no_group", ConstantGroups(laplace), m)
            yield sampled("e", "wr", laplace, m)
            yield sampled("e", "wr_black_box", BlackBoxGroups(laplace), m)
        # base epsilon theta ends the curve without replacement, m theta the one with it; x is
        # epsilon'
        for curve, end in (("wor", ratio), ("wr", settings.m * ratio)):
            bound = settings.bound(curve, settings.m)
            last = amplify(bound.law, laplace, np.array([SHARE_BELOW * end, end]))
            yield _curve(
                "c",
                curve,
                ratio,
                last.epsilon_amplified,
                last.log_delta_amplified,
                bound,
                settings.m,
                ("before_end", "at_end"),
            )


def _curve(
    panel: str,
    curve: str,
    level: float,
    x: np.ndarray,
    log_delta: np.ndarray,
    bound: Bound | None = None,
    m: int = 0,
    point: tuple[str, ...] = ("grid",),
) -> dict[str, Any]:
    return {
        "panel": panel,
        "curve": curve,
        "point": np.resize(point, len(x)),
        "level": level,
        "m": m,
        "eta": bound.eta if bound else 1.0,
        "x": x,
        "delta": np.array([math.exp(each) for each in log_delta]),
        "log_delta": log_delta,
    }


def calibrated(start: float) -> dict[str, Profile]:
    """Return the three mechanisms whose delta(0) is `start`."""
    return {
        "randomised_response": RandomisedResponseProfile((1 + start) / 2),
        "laplace": noise.of("laplace", -2 * math.log1p(-start)),
        "gaussian": noise.of("gaussian", 2 * float(ndtri((1 + start) / 2))),
    }


class BalleNoise(Grid):
    """Efficiency gamma lambda / epsilon of Poisson sampling, and the error of a total of n values
    in [0, 1].

    A total of the sample, scaled by 1 / gamma, moves by 1 / gamma with one record, and the base
    mechanism may use lambda = log(1 + (exp(epsilon) - 1) / gamma), so that Laplace noise has scale
    1 / (gamma lambda) where the total of all records would have 1 / epsilon. The values are (i -
    1/2) / n; errors are standard deviations. From Theorem 8; the accounting is ours.
    """

    name = "balle_noise"
    stage = "account"
    columns = schema(
        "n epsilon rate base_epsilon efficiency noise_error sampling_error total_error"
    )
    variants = ("rigorous",)
    axes = ("epsilons",)
    keys = ("n", "epsilon", "rate")

    class Settings(ExperimentSettings):
        n: FrameSize = 200
        epsilons: Listed[Positive] = Field(
            (0.1, 1, 3), description="epsilon of the release, in nats."
        )
        smallest_rate: Share = Field(0.001, description="Left end of the curves.")
        points: Annotated[int, Field(ge=2, le=100_000)] = Field(241, description="Rates a curve.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        n, rates = settings.n, np.geomspace(settings.smallest_rate, 1.0, settings.points)
        squares = float((((np.arange(n) + 0.5) / n) ** 2).sum())
        sampling = np.sqrt((1 - rates) / rates * squares)
        for epsilon in settings.epsilons:
            base = np.array([float(base_epsilon(epsilon, float(rate))) for rate in rates])
            spread = math.sqrt(2) / (rates * base)
            yield {
                "n": n,
                "epsilon": epsilon,
                "rate": rates,
                "base_epsilon": base,
                "efficiency": rates * base / epsilon,
                "noise_error": spread,
                "sampling_error": sampling,
                "total_error": np.hypot(spread, sampling),
            }

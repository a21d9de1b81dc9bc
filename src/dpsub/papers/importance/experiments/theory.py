"""Losses and errors that need no data sets: weighted sums (Section 3.3, Figure 2), and profiles
(Appendix A)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from scipy import optimize

from dpsub import checks
from dpsub.importance.losses import Power, loss_when_added, loss_when_removed
from dpsub.importance.samplers import (
    WeightedLaplaceSum,
    filled_rates,
    optimal_rates,
    oracle_rates,
    uniform_rates,
)
from dpsub.papers.importance.settings import Dimension, Factor
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Epsilons,
    ExperimentSettings,
    FrameSize,
    Listed,
    Positive,
    Rates,
    SampleSize,
    Share,
)
from dpsub.streams import Streams


class ImportanceSums(Experiment):
    """Topic "weight": the weight of each point at one size. Topic "curve": largest loss and error
    over noise scales.

    Topic "pareto": at one noise scale, the least error by target and size (water-filling), next to
    uniform sampling.

    The text does not state the target at which privacy-constrained weights are computed. Rules:
    free, the largest loss without sampling; fixed_eps, one target for all noise scales; b1, weights
    from the profile as printed, w |x|_1, which is that of the noise scale 1, whatever the noise.
    Samplers: unif; opt; var, which has the least variance and sees all data; water, the least
    variance among those with the losses of opt, at twice its size.
    """

    name = "importance_sums"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "rule": "str",
        "sampler": "str",
        "rank": "int64",
        "norm": "float64",
        "weight": "float64",
        "n": "int64",
        "d": "int64",
        "variance_per_dimension": "float64",
        "scale": "float64",
        "target": "float64",
        "m": "float64",
        "max_loss": "float64",
        "mse": "float64",
        "mse_error": "float64",
        "mse_exact": "float64",
        "runs": "int64",
    }
    variants = ("stated",)
    keys = ("topic", "rule", "sampler", "rank", "scale", "target", "m")

    class Settings(ExperimentSettings):
        n: FrameSize = 1000
        d: Dimension = 10
        m: SampleSize = Field(19, description="Expected size at which weights are shown.")
        scale_min: Positive = Field(3, description="Smallest noise scale.")
        scale_max: Positive = Field(3000, description="Largest noise scale.")
        points: Annotated[int, Field(ge=2, le=1_000)] = Field(
            13, description="Noise scales, in equal ratios."
        )
        runs: Annotated[int, Field(ge=2)] = Field(
            1000, description="Releases behind each mean squared error."
        )
        rules: Listed[Literal["free", "fixed_eps", "b1"]] = Field(
            ("free", "fixed_eps", "b1"),
            description="Readings of the target that the text does not state - free: the loss "
            "without "
            "sampling; fixed_eps: one target; b1: weights from the profile of noise scale 1.",
        )
        fixed_epsilon: Positive = Field(3, description="Target of fixed_eps, in nats.")
        pareto_scale: Positive = Field(
            3, description="Noise scale of the surface of targets and sizes."
        )
        pareto_targets: Listed[Factor] = Field(
            (1, 1.5, 2, 4, 8), description="Targets over the largest loss without sampling."
        )
        pareto_sizes: Listed[Factor] = Field(
            (1, 1.25, 1.5, 2, 3, 4, 6), description="Sizes over the least one at the target."
        )

        def check(self) -> None:
            checks.real("m", self.m, above=0, below=checks.integer("n", self.n, at_least=10))
            checks.real("scale_max", self.scale_max, above=self.scale_min)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, d = settings.n, settings.d
        # Section 3.3: a standard normal vector, scaled to an expected squared norm of 1.
        points = run.streams.data({"n": n, "d": d}, 0).normal(0, math.sqrt(1 / d), (n, d))
        rows: list[dict[str, Any]] = []
        for rule in settings.rules:
            rows += self._weights(rule, points, settings)
            rows += self._curve(rule, points, settings, run.streams)
        rows += self._pareto(points, settings)
        frame = pd.DataFrame(rows).assign(replicate=0, n=n, d=d, variance_per_dimension=1 / d)
        return self.frame(frame.fillna({"rank": -1, "runs": 0}))

    def _weights(
        self, rule: str, points: np.ndarray, settings: Settings
    ) -> Iterator[dict[str, Any]]:
        norms, m = np.abs(points).sum(axis=1), settings.m
        # Every rule has a free number, noise scale or target, that is solved for the size of 19.
        scale, target = _at_size(rule, norms, m, settings.fixed_epsilon)
        rates = {
            "unif": uniform_rates(len(points), m),
            "opt": optimal_rates(norms / scale, target),
            # Losses go by the l1 norm, as the noise is Laplace; squared errors go by the l2 norm.
            "var": oracle_rates(np.linalg.norm(points, axis=1), m),
        }
        for sampler, q in rates.items():
            for rank, record in enumerate(np.argsort(norms)):
                yield {
                    "topic": "weight",
                    "rule": rule,
                    "sampler": sampler,
                    "rank": rank,
                    "norm": norms[record],
                    "weight": 1 / q[record],
                    "scale": scale,
                    "target": target,
                    "m": q.sum(),
                }

    def _curve(
        self, rule: str, points: np.ndarray, settings: Settings, streams: Streams
    ) -> Iterator[dict[str, Any]]:
        norms, lengths = np.abs(points).sum(axis=1), np.linalg.norm(points, axis=1)
        for scale in np.geomspace(settings.scale_min, settings.scale_max, settings.points).tolist():
            # The rule b1 computes the weights for noise of scale 1, whatever noise is added.
            planned = 1.0 if rule == "b1" else scale
            target = settings.fixed_epsilon if rule == "fixed_eps" else float(norms.max()) / planned
            private = optimal_rates(norms / planned, target)
            # The others are matched to the size of opt, at each noise scale.
            m = float(private.sum())
            rates = {
                "unif": uniform_rates(len(points), m),
                "opt": private,
                "var": oracle_rates(lengths, m),
                # At the losses of opt a larger sample has a smaller error: twice its size, or all
                # rows.
                "water": filled_rates(private, lengths, min(2 * m, float(len(points)))),
            }
            for sampler, q in rates.items():
                # Common random numbers: the samplers are compared in pairs.
                rng = streams.sample({"rule": rule, "scale": scale}, 0)
                squares = WeightedLaplaceSum(scale).squared_errors(points, q, settings.runs, rng)
                yield {
                    "topic": "curve",
                    "rule": rule,
                    "sampler": sampler,
                    "target": target,
                    "m": q.sum(),
                    "mse": squares.mean(),
                    # Of a mean over independent runs.
                    "mse_error": squares.std(ddof=1) / math.sqrt(settings.runs),
                    "runs": settings.runs,
                    **_loss_and_error(scale, points, q),
                }

    def _pareto(self, points: np.ndarray, settings: Settings) -> Iterator[dict[str, Any]]:
        """Yield loss and error over targets and sizes, as multiples of the smallest ones."""
        lengths, scale = np.linalg.norm(points, axis=1), settings.pareto_scale
        slopes = WeightedLaplaceSum(scale).slopes(points)
        for factor in settings.pareto_targets:
            target = factor * float(slopes.max())
            floors = optimal_rates(slopes, target)
            for share in settings.pareto_sizes:
                m = float(floors.sum()) * share
                # Beyond this size every row is in the sample.
                if m >= len(points):
                    continue
                rates = {
                    "water": filled_rates(floors, lengths, m),
                    "unif": uniform_rates(len(points), m),
                }
                for sampler, q in rates.items():
                    yield {
                        "topic": "pareto",
                        "rule": "free",
                        "sampler": sampler,
                        "target": target,
                        "m": m,
                        **_loss_and_error(scale, points, q),
                    }


def _loss_and_error(scale: float, points: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Return the largest loss and the exact mean squared error of a noisy sum at rates q."""
    mechanism = WeightedLaplaceSum(scale)
    # Theorem 6 for the profile |x|_1 w / b.
    largest = Power(mechanism.slopes(points)).sampled(q).max()
    return {
        "scale": scale,
        "max_loss": largest,
        "mse_exact": mechanism.mean_squared_error(points, q),
    }


def _at_size(rule: str, norms: np.ndarray, m: float, fixed: float) -> tuple[float, float]:
    """Return noise scale and target at which opt has the expected size m."""
    largest = float(norms.max())
    if rule == "b1":
        # Assumption (8): no target below the largest loss without sampling.
        target = _root(lambda target: optimal_rates(norms, target).sum() - m, largest, 1e6)
        return 1.0, target
    if rule == "free":
        scale = _root(lambda b: optimal_rates(norms / b, largest / b).sum() - m, 1e-2, 1e6)
        return scale, largest / scale
    # With less noise the largest loss without sampling exceeds the target.
    smallest = largest / fixed * (1 + 1e-9)
    scale = _root(lambda b: optimal_rates(norms / b, fixed).sum() - m, smallest, 1e9)
    return scale, fixed


def _root(gap: Callable[[float], float], low: float, high: float) -> float:
    """Root of `gap` in the logarithm of its argument, whose range is many orders of magnitude."""

    def in_logarithm(log: float) -> float:
        return gap(math.exp(log))

    log_root = optimize.brentq(in_logarithm, math.log(low), math.log(high), xtol=1e-12)
    return float(math.exp(log_root))


class ImportanceProfiles(Experiment):
    """Losses after sampling over inclusion probabilities, on grids.

    Topics: "power", psi(q) of eps(w) = c w^exponent, `helps` says whether Proposition 16 (some q <
    1 lowers the loss) applies, `never_helps` whether Proposition 17 does; "uniform", a profile that
    ignores weights: psi next to the approximation eps - log(1/p) and Proposition 3; "rounds", a
    loss A over T rounds with a sample drawn once (psi) or in every round (other).
    """

    name = "importance_profiles"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "exponent": "float64",
        "scale": "float64",
        "q": "float64",
        "psi": "float64",
        "added": "float64",
        "unsampled": "float64",
        "other": "float64",
        "helps": "int64",
        "never_helps": "int64",
    }
    variants = ("stated",)
    keys = ("topic", "exponent", "scale", "q")

    class Settings(ExperimentSettings):
        exponents: Epsilons = Field((0, 0.5, 1, 2), description="Exponents p of eps(w) = c w^p.")
        scales: Listed[Positive] = Field(
            (0.1, 1, 3), description="Losses c without sampling, in nats."
        )
        smallest_rate: Share = Field(0.01, description="Left end of the curves.")
        points: Annotated[int, Field(ge=3, le=10_000)] = Field(
            61, description="Probabilities a curve."
        )
        epsilons: Listed[Positive] = Field(
            (1.1, 2, 5, 10, 30), description="Losses of profiles that ignore weights, in nats."
        )
        losses: Listed[Positive] = Field(
            (0.1, 0.5, 2, 8, 30, 100), description="Losses of all rounds without sampling, in nats."
        )
        rates: Rates = (0.01, 0.03, 0.1, 0.3)
        rounds: Annotated[int, Field(ge=2)] = Field(
            10, description="Rounds of the composed mechanism."
        )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*self._powers(settings), *self._uniform(settings), *self._rounds(settings)]
        names = ["topic", "exponent", "scale", "q", "psi", "added", "other", "helps", "never_helps"]
        frame = pd.DataFrame(rows, columns=names)
        return self.frame(frame.assign(replicate=0, unsampled=frame["scale"]))

    def _powers(self, settings: Settings) -> Iterator[tuple[Any, ...]]:
        rates = np.geomspace(settings.smallest_rate, 1.0, settings.points)
        for exponent, scale in itertools.product(settings.exponents, settings.scales):
            profile = Power(np.full(rates.size, float(scale)), exponent)
            helps, never = profile.sampling_helps()[0], profile.sampling_never_helps()
            # The other direction, absent over present, is never larger.
            added = loss_when_added(profile.loss(1 / rates), rates)
            for q, psi, other in zip(rates, profile.sampled(rates), added, strict=True):
                yield "power", exponent, scale, q, psi, other, math.nan, helps, never

    def _uniform(self, settings: Settings) -> Iterator[tuple[Any, ...]]:
        for epsilon, p in itertools.product(settings.epsilons, settings.rates):
            psi = Power(np.array([float(epsilon)]), 0.0).sampled(p)[0]
            # Section 2 states this for epsilon above 1; it needs p (exp(epsilon) - 1) far above 1
            # (IM9).
            approximation = epsilon + math.log(p)
            # Proposition 3, computed independently of Theorem 6 with a profile that ignores
            # weights.
            closed = math.log1p(p * math.expm1(epsilon)) if epsilon < 700 else approximation
            yield "uniform", 0, epsilon, p, psi, closed, approximation, True, False

    def _rounds(self, settings: Settings) -> Iterator[tuple[Any, ...]]:
        for loss, q in itertools.product(settings.losses, settings.rates):
            # A new sample in each round has weight 1/q in each: T losses after sampling add up.
            every = settings.rounds * loss_when_removed(loss / (settings.rounds * q), q)
            # One sample for all rounds is one mechanism with the loss of all of them.
            once, added = loss_when_removed(loss / q, q), loss_when_added(loss / q, q)
            yield "rounds", 1, loss, q, once, added, every, False, True

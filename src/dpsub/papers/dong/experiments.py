"""Noise and delta of k of t steps and of Poisson samples, and what the accountant's draws give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import dpsub
from dpsub.papers.dong import accountant
from dpsub.papers.dong import settings as own
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Grid, Run, columns

ACCURACY = 0.003  # relative width of a calibrated noise multiplier beyond that of our bounds
LEAST_COUNTED = 50  # draws that are expected to count, below which no estimate is shown
BALANCED, POISSON = "k_of_t", "poisson"
ONE_OF_TWO = accountant.Law(0.0, 0.5, 0.5, 0.0)
HALF = accountant.Law(0.25, 0.25, 0.25, 0.25)


def samplers(steps: int, chosen: int) -> dict[str, Any]:
    """Return k of t steps and Poisson samples of the same expected participation."""
    return {
        BALANCED: dpsub.RandomAllocation(steps, chosen),
        POISSON: dpsub.Poisson(chosen / steps),
    }


def ends(sampler: Any, steps: int, noise: float, **target: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both bounds on delta at each epsilon, or on epsilon at delta, where the record is
    replaced by 0."""
    account = dpsub.account(
        sampler,
        noise_multiplier=noise,
        steps=steps,
        adjacency="zero_out",
        effort=None,
        quick=True,
        **target,
    )
    return np.atleast_1d(account.lower), np.atleast_1d(account.upper)


class Noise(Grid):
    """One record for each training and sampler: the noise multiplier that is proved to keep epsilon
    and delta, and the largest one that an attack refutes."""

    name = "dong_noise"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "training sampler noise_lower noise_upper", text={"training", "sampler"}, whole=()
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        example: own.Training = own.Training()
        cluster: own.Cluster = own.Cluster()
        benchmark: own.Benchmark = own.Benchmark()
        short: own.Short = own.Short()

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for training in ("example", "cluster", "benchmark", "short"):
            asked = getattr(settings, training)
            for name, sampler in samplers(asked.steps, asked.chosen).items():
                found = dpsub.calibrate(
                    sampler,
                    epsilon=asked.epsilon,
                    delta=asked.delta,
                    steps=asked.steps,
                    adjacency="zero_out",
                    accuracy=ACCURACY,
                    effort=None,
                    quick=True,
                )
                yield {
                    "training": training,
                    "sampler": name,
                    "noise_lower": found.refuted,
                    "noise_upper": found.noise_multiplier,
                }


class CandidateNoises(Grid):
    """One record for each candidate noise of the example and epsilon: the accountant's estimates of
    delta in both directions, our two bounds on the larger one, and, at the example's epsilon, the
    value against which the accountant verifies its estimates."""

    name = "dong_candidates"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = columns(
        "noise epsilon forward forward_error reverse reverse_error base delta_lower delta_upper",
        text=(),
        whole=(),
    )
    variants = ("stated",)
    keys = ("noise", "epsilon")
    axes = ("noises",)

    class Settings(kinds.ExperimentSettings):
        example: own.Training = own.Training()
        noises: own.Noises = (0.6, 0.55, 0.5)
        epsilons: kinds.Epsilons = (2.0, 4.0, 8.0)
        draws: own.Draws = 100_000
        verified: own.Draws = 2_000_000

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        asked = settings.example
        base = accountant.base_delta(settings.verified, asked.delta)
        sampler = samplers(asked.steps, asked.chosen)[BALANCED]
        for noise in settings.noises:
            lower, upper = ends(sampler, asked.steps, noise, epsilon=list(settings.epsilons))
            # with fewer draws that count, neither an estimate nor its error is known
            known = lower * settings.draws >= LEAST_COUNTED
            drawn: dict[str, np.ndarray] = {}
            for direction in ("forward", "reverse"):
                rng = run.streams.noise({"noise": noise, "direction": direction}, 0)
                found = accountant.estimate(
                    rng,
                    settings.draws,
                    asked.steps,
                    asked.chosen,
                    noise,
                    settings.epsilons,
                    forward=direction == "forward",
                )
                drawn[direction] = np.where(known, found.delta, np.nan)
                drawn[f"{direction}_error"] = np.where(known, found.error, np.nan)
            for at, epsilon in enumerate(settings.epsilons):
                yield {
                    "noise": noise,
                    "epsilon": epsilon,
                    **{name: values[at] for name, values in drawn.items()},
                    "base": base if epsilon == asked.epsilon else np.nan,
                    "delta_lower": lower[at],
                    "delta_upper": upper[at],
                }


class Screen(Grid):
    """The benchmark's count: draws that its screen leaves. And the largest violation of both
    screens among a few draws whose likelihood is computed."""

    name = "dong_screen"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = columns(
        "draws left speedup below above", text=(), whole={"draws", "left"}
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        benchmark: own.Benchmark = own.Benchmark()
        noise: kinds.NoiseMultiplier = 20.5
        draws: own.Draws = 400_000
        computed: own.Draws = 64

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        asked, left = settings.benchmark, 0
        rng = run.streams.noise({}, 0)
        for start in range(0, settings.draws, accountant.BATCH):
            size = min(accountant.BATCH, settings.draws - start)
            log_w = accountant.log_weights(rng, size, asked.steps, asked.chosen, settings.noise)
            left += int((accountant.screens(log_w, asked.chosen)[1] > asked.epsilon).sum())
        log_w = accountant.log_weights(
            rng, settings.computed, asked.steps, asked.chosen, settings.noise
        )
        below, above = accountant.screens(log_w, asked.chosen)
        exact = accountant.log_ratio(log_w, asked.chosen)
        # operations: T for every draw, T k for those that are left
        speedup = asked.chosen / (1 + asked.chosen * left / settings.draws)
        yield {
            "draws": settings.draws,
            "left": left,
            "speedup": speedup,
            "below": float((below - exact).max()),
            "above": float((exact - above).max()),
        }


class TwoSteps(Grid):
    """One record for each noise and epsilon: delta of two steps where the record takes part in one
    of them, as likely in each or not, and where it takes part in each with probability 1/2; the
    latter two from both sides, by our bounds."""

    name = "dong_two_steps"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "noise epsilon one one_reverse skewed poisson "
        "one_lower one_upper poisson_lower poisson_upper",
        text=(),
        whole=(),
    )
    variants = ("stated",)
    keys = ("noise", "epsilon")

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0)
        epsilons: kinds.Epsilons = (0.1, 0.5, 1.0, 2.0, 4.0)
        weight: own.Weight = 0.7

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        skewed = accountant.Law(0.0, settings.weight, 1 - settings.weight, 0.0)
        for noise in settings.noises:
            both = {
                name: ends(sampler, 2, noise, epsilon=list(settings.epsilons))
                for name, sampler in samplers(2, 1).items()
            }
            for at, epsilon in enumerate(settings.epsilons):
                (one_lower, one_upper), (lower, upper) = (
                    (both[name][0][at], both[name][1][at]) for name in (BALANCED, POISSON)
                )
                yield {
                    "noise": noise,
                    "epsilon": epsilon,
                    "one": accountant.of_two_steps(ONE_OF_TWO, noise, epsilon),
                    "one_reverse": accountant.of_two_steps(
                        ONE_OF_TWO, noise, epsilon, forward=False
                    ),
                    "skewed": accountant.of_two_steps(skewed, noise, epsilon),
                    "poisson": accountant.of_two_steps(HALF, noise, epsilon),
                    "one_lower": one_lower,
                    "one_upper": one_upper,
                    "poisson_lower": lower,
                    "poisson_upper": upper,
                }


class Extremes(Grid):
    """One record for each noise and sampler: both bounds on epsilon of a short training."""

    name = "dong_extremes"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "noise sampler epsilon_lower epsilon_upper", text={"sampler"}, whole=()
    )
    variants = ("stated",)
    keys = ("noise", "sampler")
    axes = ("noises",)

    class Settings(kinds.ExperimentSettings):
        short: own.Short = own.Short()
        noises: own.Noises = (0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 4.0, 8.0)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        asked = settings.short
        for noise in settings.noises:
            for name, sampler in samplers(asked.steps, asked.chosen).items():
                lower, upper = ends(sampler, asked.steps, noise, delta=asked.delta)
                yield {
                    "noise": noise,
                    "sampler": name,
                    "epsilon_lower": lower[0],
                    "epsilon_upper": upper[0],
                }

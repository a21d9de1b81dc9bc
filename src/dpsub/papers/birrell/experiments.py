"""The paper's Rényi bounds, next to the divergences that attacks attain and to our two bounds on
epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

import dpsub
from dpsub.papers.birrell import bounds
from dpsub.papers.birrell.settings import Degree, Epochs, Order, Rate, Training
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import (
    Delta,
    ExperimentSettings,
    Listed,
    NoiseMultiplier,
    Rates,
    SampleSize,
)

CASES = {
    "3.4": ("wor", "substitute"),
    "3.3": ("wor", "add_remove"),
    "3.6": ("wr", "add_remove"),
    "C.9": ("poisson", "substitute"),
}
"""Theorem -> sampler and adjacency."""
ORDERS = (1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60)
DELTAS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
NOISES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)
SIZES = (2, 10, 20, 30, 40, 60, 80, 100, 120, 140, 160, 180, 200)


def theorem(name: str, training: Any, degree: int) -> Callable[[float], float]:
    """Return the bound of a theorem on one step, as a function of the order."""
    q, s = training.batch / training.n, training.noise_multiplier
    of_rate = {
        "3.3": bounds.without_replacement_added,
        "3.4": bounds.without_replacement_replaced,
        "C.9": bounds.poisson_replaced,
    }
    if name == "3.6":
        return lambda alpha: bounds.with_replacement_added(alpha, s, q, degree, training.batch)
    return lambda alpha: of_rate[name](alpha, s, q, degree)


def attained(name: str, training: Any) -> Callable[[float], float]:
    """Return the divergence that an attack on one step attains, as a function of the order."""
    q, s = training.batch / training.n, training.noise_multiplier
    if name == "3.6":
        return lambda alpha: bounds.attack_with_replacement(alpha, s, q, training.batch)
    attack = bounds.attack_poisson if name == "C.9" else bounds.attack_without_replacement
    return lambda alpha: attack(alpha, s, q)


class RenyiOfAStep(Grid):
    """One record for each theorem, degree of the expansion and order: its bound on the Rényi
    divergence of one step, the bound of Wang et al. for the same samples, and the divergence that
    an attack attains."""

    name = "birrell_renyi"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "theorem": "str",
        "degree": "int64",
        "alpha": "float64",
        "bound": "float64",
        "wang": "float64",
        "attained": "float64",
    }
    variants = ("stated",)

    class Settings(Training, ExperimentSettings):
        orders: Listed[Order] = ORDERS
        degrees: Listed[Degree] = (3, 4, 5)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        q = settings.batch / settings.n
        for name in CASES:
            attack = attained(name, settings)
            for alpha in settings.orders:
                reached = attack(alpha)
                # Wang et al. bound samples without replacement, one record replaced
                wang = np.nan
                if name == "3.4":
                    wang = bounds.wang_upper(alpha, settings.noise_multiplier, q)
                for degree in settings.degrees:
                    yield {
                        "theorem": name,
                        "degree": degree,
                        "alpha": alpha,
                        "bound": theorem(name, settings, degree)(alpha),
                        "wang": wang,
                        "attained": reached,
                    }


class EpsilonOfTraining(Grid):
    """One record for each theorem and delta: epsilon of the whole training by the paper's bound and
    its conversion, by Wang et al., by the exact Rényi divergence of an attack, and our two
    bounds."""

    name = "birrell_epsilon"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "theorem": "str",
        "sampler": "str",
        "adjacency": "str",
        "delta": "float64",
        "epsilon_paper": "float64",
        "epsilon_wang": "float64",
        "epsilon_renyi": "float64",
        "epsilon_lower": "float64",
        "epsilon_upper": "float64",
    }
    variants = ("stated",)

    class Settings(Training, ExperimentSettings):
        deltas: Listed[Delta] = DELTAS
        epochs: Epochs = 250
        degree: Degree = 5

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        q, s = settings.batch / settings.n, settings.noise_multiplier
        # whole steps: the paper's code multiplies by a fraction of a step more
        steps = settings.n * settings.epochs // settings.batch
        samplers = {
            "wor": dpsub.Wor(settings.batch),
            "wr": dpsub.Wr(settings.batch),
            "poisson": dpsub.Poisson(q),
        }
        for name, (sampler, adjacency) in CASES.items():
            account = dpsub.account(
                samplers[sampler],
                settings.n,
                noise_multiplier=s,
                steps=steps,
                delta=settings.deltas,
                adjacency=adjacency,
                effort=None,
                quick=True,
            )
            lower, upper = np.atleast_1d(account.lower), np.atleast_1d(account.upper)
            converted = {"paper": theorem(name, settings, settings.degree)}
            converted["renyi"] = attained(name, settings)
            if name == "3.4":
                converted["wang"] = lambda alpha: bounds.wang_upper(alpha, s, q)
            epsilons = {
                key: bounds.epsilons_of(bound, steps, settings.deltas)
                for key, bound in converted.items()
            }
            for index, delta in enumerate(settings.deltas):
                yield {
                    "theorem": name,
                    "sampler": sampler,
                    "adjacency": adjacency,
                    "delta": delta,
                    "epsilon_paper": epsilons["paper"][index],
                    "epsilon_wang": epsilons["wang"][index] if name == "3.4" else np.nan,
                    "epsilon_renyi": epsilons["renyi"][index],
                    "epsilon_lower": lower[index],
                    "epsilon_upper": upper[index],
                }


class LeadingOrder(Grid):
    """One record for each rate and noise: D_2 of one step under replacement that an attack on
    samples without replacement attains, over the exact one of Poisson samples; the same ratio of
    the paper's leading terms, and the one of Wang et al. to the paper's."""

    name = "birrell_leading"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "rate": "float64",
        "noise_multiplier": "float64",
        "attained_over_poisson": "float64",
        "leading_over_poisson": "float64",
        "wang_over_leading": "float64",
    }
    variants = ("stated",)

    class Settings(ExperimentSettings):
        rates: Rates = (0.0024, 1e-4)
        noise_multipliers: Listed[NoiseMultiplier] = NOISES

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for rate in settings.rates:
            for noise in settings.noise_multipliers:
                attack = bounds.attack_without_replacement(2.0, noise, rate)
                poisson = bounds.attack_poisson(2.0, noise, rate)
                leading = bounds.leading_of_fixed_size(noise)
                yield {
                    "rate": rate,
                    "noise_multiplier": noise,
                    "attained_over_poisson": attack / poisson,
                    "leading_over_poisson": leading / bounds.leading_of_poisson(noise),
                    "wang_over_leading": 2 * np.expm1(4 / noise**2) / leading,
                }


class DrawsWithReplacement(Grid):
    """One record for each noise and size of batches: the divergence that an attack on one step of
    draws with replacement attains at order 2 and one rate (Figure 8)."""

    name = "birrell_draws"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "noise_multiplier": "float64",
        "batch": "int64",
        "attained": "float64",
    }
    variants = ("stated",)

    class Settings(ExperimentSettings):
        noise_multipliers: Listed[NoiseMultiplier] = (2.0, 3.0, 4.0, 5.0, 6.0)
        batches: Listed[SampleSize] = SIZES
        alpha: Order = 2.0
        rate: Rate = 0.001

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for noise in settings.noise_multipliers:
            for batch in settings.batches:
                # each draw is the record with probability 1 / n = rate / batch
                reached = bounds.attack_with_replacement(
                    settings.alpha, noise, settings.rate, batch
                )
                yield {"noise_multiplier": noise, "batch": batch, "attained": reached}

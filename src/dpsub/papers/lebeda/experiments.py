"""The paper's two pitfalls by our two bounds, and the pairs that it and its reviews name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar

import numpy as np

import dpsub
from dpsub.papers.lebeda import bounds
from dpsub.papers.lebeda import settings as own
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Grid, Run, columns

EFFORT = 2.0  # of the game, which needs more than the default for many steps with little noise
CASES = (
    ("poisson", "add_remove"),
    ("poisson", "substitute"),
    ("wor", "zero_out"),
    ("wor", "substitute"),
)
"""Sampler and adjacency."""


def ends(name: str, account: Any) -> dict[str, Any]:
    """Return our two bounds as columns of a name."""
    return {f"{name}_lower": np.asarray(account.lower), f"{name}_upper": np.asarray(account.upper)}


class Samplers(Grid):
    """One record for each noise multiplier, sampler and adjacency: our two bounds on epsilon of
    Poisson samples and of samples without replacement of the same expected size."""

    name = "lebeda_samplers"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "noise sampler adjacency epsilon_lower epsilon_upper",
        text={"sampler", "adjacency"},
        whole=(),
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        n: kinds.FrameSize = 1_000_000
        batch: kinds.SampleSize = 1000
        steps: kinds.Releases = 1000
        delta: kinds.Delta = 1e-6
        noises: own.Noises = (0.6, 0.7, 0.8, 1.0, 1.5, 2.0, 4.0)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        samplers: dict[str, Any] = {
            "poisson": dpsub.Poisson(settings.batch / settings.n),
            "wor": dpsub.Wor(settings.batch),
        }
        for noise, (name, adjacency) in product(settings.noises, CASES):
            account = dpsub.account(
                samplers[name],
                settings.n,
                noise_multiplier=noise,
                steps=settings.steps,
                delta=settings.delta,
                adjacency=adjacency,
                effort=None,
                quick=True,
            )
            yield {
                "noise": noise,
                "sampler": name,
                "adjacency": adjacency,
                "epsilon_lower": float(account.lower),
                "epsilon_upper": float(account.upper),
            }


class Directions(Grid):
    """One record for each law of noise, number of steps and epsilon: delta of Poisson samples, from
    both sides, if a record is removed and if it is added."""

    name = "lebeda_directions"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "law steps epsilon remove_lower remove_upper add_lower add_upper",
        text={"law"},
        whole={"steps"},
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        scale: kinds.NoiseMultiplier = 1.0
        rate: own.Rate = 0.5
        steps: own.Steps = (1, 2, 3, 5)
        epsilons: kinds.Epsilons = (0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        epsilons = np.array(settings.epsilons, float)
        for law, steps in product(bounds.LAWS, settings.steps):
            row: dict[str, Any] = {"law": law, "steps": steps, "epsilon": epsilons}
            for order, end in product(("remove", "add"), ("lower", "upper")):
                row[f"{order}_{end}"] = bounds.composed(
                    law,
                    settings.scale,
                    settings.rate,
                    order,
                    steps,
                    epsilons,
                    upper=end == "upper",
                )
            yield row


class RemovedRecord(Grid):
    """One record for each noise multiplier and number of steps of samples without replacement under
    substitution: epsilon of the data sets (C, -C, ..., -C) and (-C, ..., -C) at every step, and our
    two bounds; and what the dominating pair of one step gives."""

    name = "lebeda_removed"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "noise steps removed_lower removed_upper epsilon_lower epsilon_upper pair_upper",
        text=(),
        whole={"steps"},
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        n: kinds.FrameSize = 10_000
        batch: kinds.SampleSize = 200
        delta: kinds.Delta = 1e-5
        noises: own.Noises = (1.0, 2.0, 4.0)
        steps: own.Steps = (1, 10, 100)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for noise, steps in product(settings.noises, settings.steps):
            described: dict[str, Any] = {"steps": steps, "delta": settings.delta}
            # the outputs are those of a Poisson sample of a record that moves sums by 2 C
            removed = dpsub.account(
                dpsub.Poisson(settings.batch / settings.n),
                noise_multiplier=noise / 2,
                adjacency="add_remove",
                width=1e-4,
                effort=None,
                **described,
            )
            wor: dict[str, Any] = {
                "noise_multiplier": noise,
                "adjacency": "substitute",
                **described,
            }
            sampler = dpsub.Wor(settings.batch)
            game = dpsub.account(sampler, settings.n, effort=EFFORT, **wor)
            pair = dpsub.account(sampler, settings.n, effort=None, quick=True, **wor)
            yield {
                "noise": noise,
                "steps": steps,
                **ends("removed", removed),
                **ends("epsilon", game),
                "pair_upper": float(pair.upper),
            }


class OppositePair(Grid):
    """One record for each sampler and epsilon: delta of one step under substitution by the pair of
    mixtures with means 1 and -1, and our two bounds."""

    name = "lebeda_opposite"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "sampler epsilon pair delta_lower delta_upper", text={"sampler"}, whole=()
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        n: kinds.FrameSize = 10_000
        batch: kinds.SampleSize = 200
        noise_multiplier: kinds.NoiseMultiplier = 1.0
        epsilons: kinds.Epsilons = (0.1, 0.5, 1, 2, 4)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        rate = settings.batch / settings.n
        samplers: dict[str, Any] = {
            "poisson": dpsub.Poisson(rate),
            "wor": dpsub.Wor(settings.batch),
        }
        for name, sampler in samplers.items():
            account = dpsub.account(
                sampler,
                settings.n,
                noise_multiplier=settings.noise_multiplier,
                epsilon=list(settings.epsilons),
                adjacency="substitute",
                effort=None,
            )
            pair = [
                bounds.opposite_pair(epsilon, settings.noise_multiplier, rate)
                for epsilon in settings.epsilons
            ]
            yield {
                "sampler": name,
                "epsilon": np.array(settings.epsilons),
                "pair": np.array(pair),
                **ends("delta", account),
            }

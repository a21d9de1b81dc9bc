"""The formulas of the papers' code next to our two bounds, one record at 0 (`zero_out`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

import dpsub
from dpsub.papers.chua import bounds
from dpsub.papers.chua import settings as own
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Grid, Run, columns

ACCURACY = 0.002  # relative, of noise multipliers that are searched
ROOM = 10.0  # standard deviations of a Poisson sample's size up to which samples are not cut


class OneEpoch(Grid):
    """One record for each noise multiplier and epsilon: delta of one epoch by the papers' formulas
    for a fixed order and for shuffled batches, and our two bounds for these and for Poisson samples
    of the same expected size."""

    name = "chua_epoch"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "noise epsilon fixed cube fixed_lower fixed_upper shuffle_lower shuffle_upper "
        "poisson_lower poisson_upper",
        text=(),
        whole=(),
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (0.35, 0.5, 1.0)
        epsilons: kinds.Epsilons = (0.5, 1, 2, 4, 6, 8, 10)
        steps: kinds.Releases = 1000

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        steps = settings.steps
        samplers: dict[str, Any] = {
            "fixed": dpsub.Deterministic(1),
            "shuffle": dpsub.Shuffle(1),
            "poisson": dpsub.Poisson(1 / steps),
        }
        for noise in settings.noises:
            found: dict[str, Any] = {"noise": noise, "epsilon": np.array(settings.epsilons)}
            for name, formula in (("fixed", bounds.fixed_order), ("cube", bounds.cube)):
                more = (steps,) if name == "cube" else ()
                found[name] = np.array([formula(e, noise, *more) for e in settings.epsilons])
            for name, sampler in samplers.items():
                account = dpsub.account(
                    sampler,
                    steps,
                    noise_multiplier=noise,
                    steps=steps,
                    epsilon=list(settings.epsilons),
                    adjacency="zero_out",
                    effort=None,
                    quick=True,
                )
                found[f"{name}_lower"] = np.atleast_1d(account.lower)
                found[f"{name}_upper"] = np.atleast_1d(account.upper)
            yield found


class Training(NamedTuple):
    """Epochs of batches of one size, with a target."""

    n: int
    batch: int
    epochs: int
    epsilon: float
    delta: float

    @property
    def steps(self) -> int:
        return math.ceil(self.n / self.batch)

    def samplers(self) -> dict[str, Any]:
        largest = self.batch + round(ROOM * math.sqrt(self.batch))
        rate = self.batch / self.n
        return {
            "deterministic": dpsub.Deterministic(self.batch),
            "persistent_shuffle": dpsub.PersistentShuffle(self.batch),
            "shuffle": dpsub.Shuffle(self.batch),
            "truncated_poisson": dpsub.TruncatedPoisson(rate, largest),
            "poisson": dpsub.Poisson(rate),
        }

    def formulas(self) -> dict[str, float]:
        """Return the noise multipliers of the papers' formulas; for shuffled batches lower bounds,
        for Poisson samples the code asks another package."""
        steps, epochs = self.steps, self.epochs
        by_formula = {
            "deterministic": lambda s: bounds.fixed_order(self.epsilon, s, epochs),
            "persistent_shuffle": lambda s: bounds.cube(self.epsilon, s, steps, epochs),
            "shuffle": lambda s: bounds.reshuffled(self.epsilon, s, steps, epochs),
        }
        return {name: bounds.solved(of, self.delta) for name, of in by_formula.items()}

    def pessimistic(self) -> float:
        """Return the noise multiplier by the code's estimate for reshuffled batches from above."""
        steps, epochs = self.steps, self.epochs
        return bounds.solved(
            lambda s: bounds.reshuffled(self.epsilon, s, steps, epochs, pessimistic=True),
            self.delta,
        )

    def noise(self, sampler: Any) -> tuple[float, float]:
        """Return a noise multiplier that an attack refutes, and one that is proved."""
        found = dpsub.calibrate(
            sampler,
            self.n,
            epsilon=self.epsilon,
            delta=self.delta,
            steps=self.steps * self.epochs,
            adjacency="zero_out",
            accuracy=ACCURACY,
            effort=None,
            quick=True,
        )
        # none is refuted where the search did not get that far
        return found.refuted or 0.0, found.noise_multiplier

    def spent(self, sampler: Any, noise: float) -> tuple[float, float]:
        """Return our two bounds on epsilon at a noise multiplier."""
        account = dpsub.account(
            sampler,
            self.n,
            noise_multiplier=noise,
            delta=self.delta,
            steps=self.steps * self.epochs,
            adjacency="zero_out",
            effort=None,
            quick=True,
        )
        return float(account.lower), float(account.upper)


class Noises(Grid):
    """One record for each sampler, size of batches and number of epochs: the noise multiplier of
    the target by the paper's formula and our two bounds on it; then our two bounds on epsilon at
    the noise that Poisson samples are proved to need, and at the one of the code's estimate for
    shuffled batches from above."""

    stage = "account"
    figure: ClassVar[str]
    """The figure of the second paper that draws these numbers."""
    columns: ClassVar[dict[str, str]] = columns(
        "figure sampler batch epochs epsilon noise_paper noise_lower noise_upper epsilon_lower "
        "epsilon_upper noise_pessimistic pessimistic_lower pessimistic_upper",
        text={"figure", "sampler"},
        whole={"batch", "epochs"},
    )
    variants = ("stated",)

    @abstractmethod
    def cells(self, settings: Any) -> Iterator[tuple[int, int]]:
        """Yield sizes of batches with numbers of epochs."""

    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        for batch, epochs in self.cells(settings):
            training = Training(settings.n, batch, epochs, settings.epsilon, settings.delta)
            formulas = training.formulas()
            samplers = training.samplers()
            needed = {name: training.noise(sampler) for name, sampler in samplers.items()}
            spent = partial(training.spent, noise=needed["poisson"][1])
            for name, sampler in samplers.items():
                row = {
                    "figure": self.figure,
                    "sampler": name,
                    "batch": batch,
                    "epochs": epochs,
                    "epsilon": settings.epsilon,
                    "noise_paper": formulas.get(name, math.nan),
                    **_ends("noise", needed[name]),
                    **_ends("epsilon", spent(sampler)),
                    "noise_pessimistic": math.nan,
                    **_ends("pessimistic", (math.nan, math.nan)),
                }
                if name == "shuffle":
                    row["noise_pessimistic"] = above = training.pessimistic()
                    row |= _ends("pessimistic", training.spent(sampler, above))
                yield row


def _ends(name: str, both: tuple[float, float]) -> dict[str, float]:
    return dict(zip((f"{name}_lower", f"{name}_upper"), both, strict=True))


class ByEpochs(Noises):
    """Noise by the number of epochs: Figure 6 of the second paper."""

    name = "chua_epochs"
    figure = "Figure 6"

    class Settings(own.TargetOfFigures, kinds.ExperimentSettings):
        batch: kinds.SampleSize = 65_536
        epochs: own.Epochs = (1, 2, 5, 20)

    def cells(self, settings: Settings) -> Iterator[tuple[int, int]]:
        yield from product((settings.batch,), settings.epochs)


class ByBatches(Noises):
    """Noise by the size of batches: Figure 3 of the second paper, whose sizes could not be read."""

    name = "chua_batches"
    figure = "Figure 3"

    class Settings(own.TargetOfFigures, kinds.ExperimentSettings):
        batches: own.Batches = (8192, 262_144)
        epochs: own.Epochs = (1, 5)

    def cells(self, settings: Settings) -> Iterator[tuple[int, int]]:
        yield from product(settings.batches, settings.epochs)

"""Every bound against the exact loss on tiny universes (Balle et al., Theorems 8 to 14)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pydantic import Field

from dpsub.amplification import DeclaredProfile
from dpsub.amplification.small_universes import BY_SIZE, TRIPLES, BoundRow, compare
from dpsub.divergences.universes import (
    Space,
    dirichlet_kernel,
    membership_kernel,
    noisy_sum_kernel,
    size_and_membership_kernel,
)
from dpsub.noise import Profile
from dpsub.papers.balle.experiments.balle_couplings import rows_of
from dpsub.papers.balle.settings import KeepProbability, Tiny
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Epsilons, ExperimentSettings

SPREAD = (0.0, 0.25, 0.5, 0.75, 1.0)  # values of the records in a sum
SINGLE = (1.0, 0.0, 0.0, 0.0, 0.0)  # all records but one contribute nothing
OUTCOMES = 3
OWN = {"Theorem 8": TRIPLES, "Theorem 14": BY_SIZE}  # our bounds stand behind the printed ones that they complete


@dataclass(frozen=True)
class PrintedResponse(Profile):
    """The printed profile of randomised response, max(0, p - exp(epsilon) (1 - p)), also below epsilon = 0."""

    keep_probability: float

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, _ = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        p = self.keep_probability
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(0.0, p - np.exp(order) * (1 - p)))[()]


class BalleEnumeration(Experiment):
    """One record a theorem, size, kernel and base epsilon: the bound and the largest loss of all neighbours.

    Variants: `stated` evaluates Theorem 14 for membership with the printed profile, also where its argument is
    negative; `consistent` evaluates every bound with the exact profile of the kernel.
    """

    name: ClassVar[str] = "balle_enumeration"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "theorem": "str", "kernel": "str", "n": "int64", "size": "float64", "grows": "int64",
        "epsilon": "float64", "epsilon_amplified": "float64", "eta": "float64", "formula": "float64",
        "distance": "float64", "bound": "float64", "exact": "float64", "reverse": "float64",
        "reverse_bound": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")

    class Settings(ExperimentSettings, Tiny):
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probability: KeepProbability = 0.75
        kernels: Annotated[int, Field(ge=1, le=1_000)] = Field(3, description="Random mechanisms a size.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rng = run.streams.data({}, 0)
        rows = [record for row in _rows(settings) for record in _records(row, settings, run.variant, rng)]
        return self.frame(pd.DataFrame(rows))


def _rows(settings: BalleEnumeration.Settings) -> Iterator[BoundRow]:
    for theorem, n, size in rows_of(settings):
        yield BoundRow(theorem, n, size)
        if theorem == "Theorem 11":
            yield BoundRow(theorem, n, size, grow=True)
        if theorem in OWN:
            yield BoundRow(OWN[theorem], n, size)


def _kernels(space: Space, settings: BalleEnumeration.Settings, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    p = settings.keep_probability
    yield "membership", membership_kernel(space, 0, p)
    if space.relation is Relation.SUBSTITUTE:
        yield "size and membership", size_and_membership_kernel(space, 0, p)
    for number in range(settings.kernels):
        yield f"random {number + 1}", dirichlet_kernel(space, OUTCOMES, rng)
    for name in ("laplace", "gaussian"):
        yield f"{name} sum", noisy_sum_kernel(space, name, SPREAD, 1.0)
        yield f"{name} single", noisy_sum_kernel(space, name, SINGLE, 1.0)


def _records(
    row: BoundRow, settings: BalleEnumeration.Settings, variant: str, rng: np.random.Generator
) -> Iterator[dict[str, object]]:
    distances = row.distances_in_law()
    worst = np.argmax(distances if row.grow else np.abs(distances - row.bound.eta))
    for name, kernel in _kernels(row.space, settings, rng):
        for found in compare(row, kernel, settings.epsilons):
            bound = found.bound
            if variant == "stated" and name.endswith("membership") and row.theorem == "Theorem 14":
                printed = DeclaredProfile.of(PrintedResponse(settings.keep_probability), row.bound.base_relation)
                bound = float(row.bound.delta(printed, found.epsilon_amplified))
            shrink = math.exp(found.epsilon_amplified - found.epsilon)
            yield {
                "replicate": 0, "theorem": row.theorem, "kernel": name, "n": row.n, "size": row.size,
                "grows": int(row.grow), "epsilon": found.epsilon, "epsilon_amplified": found.epsilon_amplified,
                "eta": row.bound.eta, "formula": _eta(row), "distance": float(distances[worst]), "bound": bound,
                "exact": found.exact, "reverse": found.reverse,
                "reverse_bound": shrink * row.bound.eta * found.base_delta,
            }  # fmt: skip


def _eta(row: BoundRow) -> float:
    """The printed inclusion probability, by its formula."""
    match row.bound.sampler:
        case "poisson":
            return row.size
        case "wor":
            return row.size / row.n
    return float(1 - (1 - 1 / row.n) ** row.size)

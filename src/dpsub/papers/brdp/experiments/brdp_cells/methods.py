"""The releases that are compared at one budget: plain noise, the paper's recycler, the best one by exact accounting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpsub import checks
from dpsub.recycling import GaussianKernel, LaplaceKernel, paper
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import Choice, best_recycler, checked_budget, plain_noise
from dpsub.recycling.law import Recycled
from dpsub.recycling.sampled import Query, sampled_delta, total_acceptance

FAMILIES: dict[str, type[GaussianKernel] | type[LaplaceKernel]] = {"gau": GaussianKernel, "lap": LaplaceKernel}
STATED = tuple(f"{kernel}_{kind}" for kind in ("dp", "br") for kernel in FAMILIES)
RIGOROUS = tuple(f"{kernel}_best" for kernel in FAMILIES)
COLUMNS: dict[str, str] = {
    "method": "str", "scale": "float64", "epsilon_y": "float64", "rate": "float64", "acceptance": "float64",
    "sd": "float64", "exact_delta": "float64",
}  # fmt: skip
"""What a row says of a release: epsilon_y is the kernel's at the same delta, `exact_delta` what the release has."""


@dataclass(frozen=True)
class Budget:
    """One query's budget: sensitivity D, bound theta, epsilon, delta.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """

    sensitivity: float
    bound: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checked_budget(self.epsilon, self.delta)
        for name in ("sensitivity", "bound"):
            checks.real(name, getattr(self, name), above=0)

    @classmethod
    def of(cls, settings: object, **changes: float) -> Budget:
        """Return the budget that settings (and changes) give by these names."""
        found = {name: float(changes.get(name, getattr(settings, name, 0))) for name in cls.__dataclass_fields__}
        return cls(**found)

    @property
    def fields(self) -> dict[str, float]:
        """The four numbers by name."""
        return {name: getattr(self, name) for name in type(self).__dataclass_fields__}

    def chosen(self, method: str) -> Choice:
        """Return the release of a method: "gau_dp", "lap_br", "gau_best" and so on."""
        kernel, kind = method.split("_")
        family = FAMILIES[kernel]
        if kind == "dp":
            return plain_noise(family, self.epsilon, self.delta, self.bound, self.sensitivity)
        if kind == "br":
            return paper.algorithm2(family, self.epsilon, self.delta, self.bound, self.sensitivity)
        if kernel == "lap" and (self.bound >= self.sensitivity or self.epsilon <= 1):
            # recycled Laplace noise gains nothing there but terms of the order of delta
            return plain_noise(family, self.epsilon, self.delta, self.bound, self.sensitivity)
        return best_recycler(family, self.epsilon, self.delta, self.bound, self.sensitivity)

    def rows(self, variant: str) -> Iterator[dict[str, Any]]:
        """Yield a row a method of the variant, stated or rigorous."""
        for method in STATED if variant == "stated" else RIGOROUS:
            yield {**self.fields, **row(method, self.chosen(method))}


def row(method: str, chosen: Choice) -> dict[str, Any]:
    """Return what a record says of one release."""
    law = chosen.law
    return {
        "method": method, "scale": law.kernel.scale, "epsilon_y": chosen.kernel_epsilon, "rate": law.rate,
        "acceptance": law.acceptance, "sd": law.sd, "exact_delta": chosen.true_delta,
    }  # fmt: skip


def sampled_row(query: Query, cell: Budget, law: Recycled, sampling_rate: float) -> dict[str, Any]:
    """Return what a release on a sample really does."""
    return {
        "sampling_rate": sampling_rate, "scale": law.kernel.scale, "rate": law.rate,
        "acceptance": total_acceptance(law, query.stated_sampling_sd(sampling_rate), cell.bound),
        "exact_delta": sampled_delta(law, sampling_rate, query.sensitivity(sampling_rate), cell.epsilon),
    }  # fmt: skip


def ceiling_row(cell: Budget) -> dict[str, Any]:
    """Return the most that any symmetric unimodal noise accepts, from above; -1 stands for what it does not have."""
    found = ceiling(cell.epsilon, cell.delta, cell.bound, cell.sensitivity)
    absent = dict.fromkeys(("scale", "epsilon_y", "rate", "sd"), -1.0)
    return {**cell.fields, "method": "ceiling", **absent, "acceptance": found.upper, "exact_delta": cell.delta}

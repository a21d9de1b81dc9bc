"""The releases that are compared at one budget: plain noise, the paper's recycler, the best one by exact accounting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from dpsub import checks
from dpsub.recycling import GaussianKernel, LaplaceKernel, paper
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import Choice, best_recycler, checked_budget, plain_noise
from dpsub.recycling.law import Recycled
from dpsub.recycling.sampled import Query, SampledChoice, algorithm4, inner_budget, sampled_delta, total_acceptance

FAMILIES: dict[str, type[GaussianKernel] | type[LaplaceKernel]] = {"gau": GaussianKernel, "lap": LaplaceKernel}
STATED = ("gau_dp", "lap_dp", "gau_br", "lap_br")
RIGOROUS = ("gau_best", "lap_best")
SHORT: dict[Any, str] = {
    "gau_dp": "Gau-DP", "lap_dp": "Lap-DP", "gau_br": "Gau-BRDP", "lap_br": "Lap-BRDP", "gau_smp": "SMP-Gau-BRDP",
    "lap_smp": "SMP-Lap-BRDP", "lap_low": "Lap-BRDP, low split",
}  # fmt: skip
"""The paper's names of methods."""
METHODS = tuple(method for method in SHORT if method != "lap_low")


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
        return cls(**{name: float(changes.get(name, getattr(settings, name, 0))) for name in cls.__annotations__})

    @property
    def fields(self) -> dict[str, float]:
        """The four numbers by name."""
        return asdict(self)

    def chosen(self, method: str, times: int = 1) -> Choice:
        """Return the release of a method: "gau_dp", "lap_br", "gau_best" and so on; of `times` releases together."""
        kernel, kind = method.split("_")
        budget = (FAMILIES[kernel], self.epsilon, self.delta, self.bound, self.sensitivity)
        if kind == "br":
            return paper.algorithm2(*budget)
        # one release of recycled Laplace noise gains nothing there but terms of the order of delta
        useless = kernel == "lap" and times == 1 and (self.bound >= self.sensitivity or self.epsilon <= 1)
        return (plain_noise if kind == "dp" or useless else best_recycler)(*budget, times)

    def kernel(self, name: str, epsilon: float) -> GaussianKernel | LaplaceKernel:
        """Return the kernel that spends `epsilon` at the budget's delta."""
        return FAMILIES[name].calibrated(epsilon, self.delta, self.sensitivity)

    def algorithm1(self, kernel: GaussianKernel | LaplaceKernel) -> Recycled:
        """Return the kernel, recycled at the rate that Algorithm 1 gives it."""
        rate = paper.algorithm1(kernel, self.epsilon, self.delta, -self.bound, self.bound, self.sensitivity)
        return Recycled.within(kernel, rate, self.bound, self.sensitivity)

    def algorithm4(self, query: Query, **rule: str) -> SampledChoice:
        """Return the paper's release on a sample of the query's records."""
        return algorithm4(query, self.epsilon, self.delta, self.bound, self.sensitivity, **rule)

    def inner(self, sampling_rate: float) -> Budget:
        """Return the budget that a sample may spend."""
        return Budget(self.sensitivity, self.bound, *inner_budget(self.epsilon, self.delta, sampling_rate))

    def ceiling(self) -> float:
        """Return the most that any symmetric unimodal noise accepts, from above."""
        return ceiling(self.epsilon, self.delta, self.bound, self.sensitivity).upper

    def rows(self, variant: str) -> Iterator[dict[str, Any]]:
        """Yield a record a method of the variant; -1 stands for what the ceiling does not have."""
        for method in STATED if variant == "stated" else RIGOROUS:
            yield {**self.fields, **row(method, self.chosen(method))}
        if variant == "rigorous":
            absent = dict.fromkeys(("scale", "epsilon_y", "rate", "sd"), -1.0)
            yield {
                **self.fields,
                "method": "ceiling",
                **absent,
                "acceptance": self.ceiling(),
                "exact_delta": self.delta,
            }


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

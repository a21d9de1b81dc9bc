"""The releases that are compared at one budget: plain noise, the paper's recycler, the best one by
exact accounting."""

from __future__ import annotations

from typing import Any

from dpsub.papers.brdp.queries import (
    Query,
    SampledChoice,
    algorithm4,
    inner_budget,
    sampled_delta,
    total_acceptance,
)
from dpsub.papers.brdp.settings import Amount
from dpsub.recycling import GaussianKernel, LaplaceKernel, paper
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import Choice, best_recycler, plain_noise
from dpsub.recycling.law import Recycled
from dpsub.reproduce.settings import Closed, Delta

FAMILIES: dict[str, type[GaussianKernel] | type[LaplaceKernel]] = {
    "gau": GaussianKernel,
    "lap": LaplaceKernel,
}
# Plain noise and the paper's recyclers: what its formulas give without a search of ours.
STATED = ("gau_dp", "lap_dp", "gau_br", "lap_br")
SHORT: dict[Any, str] = {
    "gau_dp": "Gau-DP",
    "lap_dp": "Lap-DP",
    "gau_br": "Gau-BRDP",
    "lap_br": "Lap-BRDP",
    "gau_smp": "SMP-Gau-BRDP",
    "lap_smp": "SMP-Lap-BRDP",
    "lap_low": "Lap-BRDP, low split",
}
"""The paper's names of methods."""
# The six of Section 8; the low split is ours, for Table I alone (BR11).
METHODS = tuple(method for method in SHORT if method != "lap_low")


class Budget(Closed):
    """Budget of one release, sensitivity D of its query, and the bound theta within which the noise
    is wanted."""

    sensitivity: Amount = 1
    bound: Amount = 1
    epsilon: Amount = 1
    delta: Delta = 1e-5

    @classmethod
    def of(cls, settings: object, **changes: float) -> Budget:
        """Return the budget that settings (and changes) give by these names."""
        names = Budget.model_fields
        return Budget(
            **{
                name: changes[name] if name in changes else getattr(settings, name)
                for name in names
            }
        )

    @property
    def fields(self) -> dict[str, float]:
        """The four numbers by name."""
        return {name: getattr(self, name) for name in Budget.model_fields}

    def chosen(self, method: str, times: int = 1) -> Choice:
        """Return the release of a method: "gau_dp", "lap_br", "gau_best" and so on; of `times`
        releases together."""
        kernel, kind = method.split("_")
        budget = (FAMILIES[kernel], self.epsilon, self.delta, self.bound, self.sensitivity)
        if kind == "br":
            return paper.algorithm2(*budget)
        # One release of recycled Laplace noise gains nothing there but terms of the order of delta:
        # BR6 has the best split in closed form.
        gains_nothing = (
            kernel == "lap" and times == 1 and (self.bound >= self.sensitivity or self.epsilon <= 1)
        )
        return (plain_noise if kind == "dp" or gains_nothing else best_recycler)(*budget, times)

    def calibrated(self, name: str, epsilon: float) -> GaussianKernel | LaplaceKernel:
        """Return the kernel that spends `epsilon` at the budget's delta."""
        return FAMILIES[name].calibrated(epsilon, self.delta, self.sensitivity)

    def recycled(
        self, kernel: GaussianKernel | LaplaceKernel, rate: float | None = None
    ) -> Recycled:
        """Return the recycled kernel, by default at the rate that Algorithm 1 gives it."""
        # Algorithm 1 takes bounds on both sides; all of the paper's settings are symmetric.
        if rate is None:
            rate = paper.algorithm1(
                kernel, self.epsilon, self.delta, -self.bound, self.bound, self.sensitivity
            )
        return Recycled.within(kernel, rate, self.bound, self.sensitivity)

    def algorithm4(self, query: Query, **rule: str) -> SampledChoice:
        """Return the paper's release on a sample of the query's records."""
        return algorithm4(query, self.epsilon, self.delta, self.bound, self.sensitivity, **rule)

    def inner(self, sampling_rate: float) -> Budget:
        """Return the budget that a sample may spend."""
        # Theorem 4 bounds the outer budget by the inner one; a sample needs the inverse (BR13).
        epsilon, delta = inner_budget(self.epsilon, self.delta, sampling_rate)
        return Budget.of(self, epsilon=epsilon, delta=delta)

    def ceiling(self) -> float:
        """Return an upper bound on the acceptance of any symmetric unimodal noise."""
        return ceiling(self.epsilon, self.delta, self.bound, self.sensitivity).upper


def row(method: str, chosen: Choice) -> dict[str, Any]:
    """Return the fields of one release in a record."""
    law = chosen.law
    return {
        "method": method,
        "scale": law.kernel.scale,
        "epsilon_y": chosen.kernel_epsilon,
        "rate": law.rate,
        "acceptance": law.acceptance,
        "sd": law.sd,
        "exact_delta": chosen.true_delta,
    }


def sampled_row(query: Query, cell: Budget, law: Recycled, sampling_rate: float) -> dict[str, Any]:
    """Return the fields of a release on a sample in a record, by exact accounting."""
    return {
        "sampling_rate": sampling_rate,
        "scale": law.kernel.scale,
        "rate": law.rate,
        # The sampling error is Proposition 6's, as the paper counts it; the sensitivity is the true
        # one.
        "acceptance": total_acceptance(law, query.stated_sampling_sd(sampling_rate), cell.bound),
        "exact_delta": sampled_delta(
            law, sampling_rate, query.sensitivity(sampling_rate), cell.epsilon
        ),
    }

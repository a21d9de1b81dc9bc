"""Paired comparisons over seeds: differences from Poisson, who is not worse than the best, rankings with ties."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special

from dpsub.errors import DataError
from dpsub.papers.fair.settings import NONPRIVATE, TASKS
from dpsub.reproduce import statistics
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.verdicts import holm, not_real

LEVEL = 0.05
"""Family-wise error of the tests within one data set, target and variant (Holm's procedure)."""

REFERENCE = "poisson"


def label_of(sampler: str) -> str:
    """Return a sampler's display name, the stages themselves for a chain."""
    return sampler if ":" in sampler else sampler_label(sampler)


@dataclass(frozen=True, eq=False)
class Group:
    """One data set at one target for all steps together, in one variant."""

    variant: str
    dataset: str
    epsilon: float
    losses: pd.DataFrame
    """The measure that samplers are ranked by: a row a seed, a column a sampler, in order of first appearance."""
    frame: pd.DataFrame
    """The records behind it."""

    @property
    def place(self) -> dict[str, object]:
        """The group's key fields in tables."""
        return {"dataset": self.dataset, "epsilon": self.epsilon}

    @property
    def source(self) -> str:
        """The note that says that the data stand in for those that the data set is named after, "" otherwise."""
        return not_real(set(self.frame["data_label"]) - {"real", "simulated"})

    @property
    def samplers(self) -> list[str]:
        return [str(name) for name in self.losses.columns]

    def difference(self, sampler: str, other: str = REFERENCE) -> Estimate:
        """Return the mean paired difference sampler - other and its 95 % Student interval."""
        return statistics.paired_difference(self.losses[sampler].to_numpy(), self.losses[other].to_numpy())

    @cached_property
    def better(self) -> dict[tuple[str, str], bool]:
        """For each ordered pair whether the first is shown to be better, by Holm over all pairs at 5 %."""
        found = {pair: self.difference(*pair) for pair in itertools.combinations(self.samplers, 2)}
        rejected = holm([p_value(estimate) for estimate in found.values()], LEVEL)
        shown: dict[tuple[str, str], bool] = {}
        for ((one, two), estimate), sure in zip(found.items(), rejected, strict=True):
            shown |= {(one, two): bool(sure and estimate.value < 0), (two, one): bool(sure and estimate.value > 0)}
        return shown

    @cached_property
    def ranks(self) -> dict[str, int]:
        """1 + the number of samplers that are shown to be better: what is not told apart shares a rank."""
        better, names = self.better, self.samplers
        return {name: 1 + sum(better[other, name] for other in names if other != name) for name in names}


def p_value(estimate: Estimate) -> float:
    """Return the two-sided p-value of Student's paired test; 1 for equal samples, or a single seed."""
    if estimate.replicates < 2 or estimate.value == 0:
        return 1.0
    if estimate.standard_error == 0:
        return 0.0
    t = abs(estimate.value) / estimate.standard_error
    return float(min(1.0, 2 * special.stdtr(estimate.replicates - 1, -t)))


def with_interval(values: np.ndarray) -> Estimate:
    """Return the mean with its 95 % Student interval."""
    return statistics.paired_difference(values, np.zeros(len(values)))


def groups(frame: pd.DataFrame) -> Iterator[Group]:
    """Yield the groups of the records of `fair_comparison`, in their order, without the sampler "nonprivate"."""
    private = frame[frame["sampler"] != NONPRIVATE]
    for (variant, dataset, epsilon), part in private.groupby(["variant", "dataset", "target_epsilon"], sort=False):
        measure = TASKS[str(dataset)].measure
        if part.duplicated(["replicate", "sampler"]).any():
            raise DataError(f"a sampler must have one size on {dataset}, got more; compare sizes apart")
        losses = part.pivot(index="replicate", columns="sampler", values=measure)[list(part["sampler"].unique())]
        if losses.isna().to_numpy().any():
            raise DataError(
                f"samplers must have the same seeds to be paired, got others or no {measure} on {dataset}; "
                "run all parts"
            )
        yield Group(str(variant), str(dataset), float(str(epsilon)), losses, part)


def in_variants(fair: pd.DataFrame, linear: pd.DataFrame, adult: pd.DataFrame) -> list[Group]:
    """Return the groups of the fair comparison, and for each of its targets the main paper's own as variant `stated`.

    The paper compares at equal epsilon' a query: the linear model at the smallest epsilon', where noise counts most
    (error of all coefficients together), and Adult (training log loss, the one that the paper shows), from the records
    of their experiments.
    """
    found = list(groups(fair))
    linear, adult = (frame.query(f"variant == 'stated' and sampler != '{NONPRIVATE}'") for frame in (linear, adult))
    linear = linear[linear["epsilon_amplified"] == linear["epsilon_amplified"].min()]
    errors = linear[[f"error_beta{i}" for i in range(3)]]
    papers = {"linear": linear.assign(loss=np.sqrt((errors.to_numpy() ** 2).sum(axis=1))),
              "adult": adult[adult["solver"] == "dp_sgd"].rename(columns={"train_loss": "loss"})}  # fmt: skip
    stated = []
    for group in found:
        if group.variant == "rigorous" and group.dataset in papers:
            losses = papers[group.dataset].pivot(index="replicate", columns="sampler", values="loss")
            losses = losses[[name for name in group.samplers if name in losses.columns]]
            stated.append(replace(group, variant="stated", losses=losses))
    return stated + found

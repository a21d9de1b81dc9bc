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
from dpsub.papers.fair.experiments.tasks import TASKS
from dpsub.papers.fair.settings import NONPRIVATE
from dpsub.reproduce import statistics
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.verdicts import holm

LEVEL = 0.05
"""Family-wise error of the tests within one data set, target and variant (Holm's procedure)."""

REFERENCE = "poisson"


def label_of(sampler: str) -> str:
    """Return a sampler's display name, the stages themselves for a chain."""
    return sampler if ":" in sampler else sampler_label(sampler)


@dataclass(frozen=True, eq=False)
class Group:
    """One data set at one target in one variant.

    Attributes
    ----------
    variant, dataset : str
    epsilon : float
        Target of all steps together.
    losses : DataFrame
        The measure that samplers are ranked by, a row a seed, a column a sampler, in order of first appearance.
    frame : DataFrame
        The records behind it.
    """

    variant: str
    dataset: str
    epsilon: float
    losses: pd.DataFrame
    frame: pd.DataFrame

    @property
    def place(self) -> dict[str, object]:
        """The group's key fields in tables."""
        return {"dataset": self.dataset, "epsilon": self.epsilon}

    @property
    def samplers(self) -> list[str]:
        return [str(name) for name in self.losses.columns]

    def loss(self, sampler: str) -> Estimate:
        """Return a sampler's mean loss and its 95 % Student interval."""
        return with_interval(self.losses[sampler].to_numpy())

    def difference(self, sampler: str, other: str = REFERENCE) -> Estimate:
        """Return the mean paired difference sampler - other and its 95 % Student interval."""
        return statistics.paired_difference(self.losses[sampler].to_numpy(), self.losses[other].to_numpy())

    @cached_property
    def better(self) -> dict[tuple[str, str], bool]:
        """For each ordered pair whether the first is shown to be better, by Holm over all pairs at 5 %."""
        pairs = list(itertools.combinations(self.samplers, 2))
        differences = [self.difference(*pair) for pair in pairs]
        rejected = holm([p_value(estimate) for estimate in differences], LEVEL)
        shown: dict[tuple[str, str], bool] = {}
        for (one, two), estimate, sure in zip(pairs, differences, rejected, strict=True):
            shown[one, two] = bool(sure and estimate.value < 0)
            shown[two, one] = bool(sure and estimate.value > 0)
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
    estimate = statistics.mean(values)
    lower, upper = statistics.interval(estimate)
    return replace(estimate, lower=lower, upper=upper)


def groups(frame: pd.DataFrame) -> Iterator[Group]:
    """Yield the groups of the records of `fair_comparison`, in their order.

    Parameters
    ----------
    frame : DataFrame
        Records of any variants; rows of the sampler "nonprivate" are left out.

    Raises
    ------
    DataError
        If samplers of a group have different seeds, so that they cannot be paired.
    """
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


def papers_losses(linear: pd.DataFrame, adult: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the loss of each sampler as the main paper compares them, at equal epsilon' a query, a row a seed.

    The linear model at the smallest epsilon', where noise counts most (error of all coefficients together), and Adult
    (training log loss, the one that the paper shows), from the records of their experiments.
    """
    linear, adult = (frame.query(f"variant == 'stated' and sampler != '{NONPRIVATE}'") for frame in (linear, adult))
    linear = linear[linear["epsilon_amplified"] == linear["epsilon_amplified"].min()]
    errors = linear[[f"error_beta{i}" for i in range(3)]].to_numpy()
    linear = linear.assign(loss=np.sqrt((errors**2).sum(axis=1)))
    adult = adult[adult["solver"] == "dp_sgd"].rename(columns={"train_loss": "loss"})
    named = {"linear": linear, "adult": adult}
    return {name: part.pivot(index="replicate", columns="sampler", values="loss") for name, part in named.items()}


def in_variants(fair: pd.DataFrame, linear: pd.DataFrame, adult: pd.DataFrame) -> list[Group]:
    """Return the groups of the fair comparison, and for each of its targets the paper's own as variant `stated`."""
    found, papers = list(groups(fair)), papers_losses(linear, adult)
    stated = [
        replace(group, variant="stated", losses=losses[[name for name in group.samplers if name in losses.columns]])
        for group in found
        if group.variant == "rigorous" and (losses := papers.get(group.dataset)) is not None
    ]
    return stated + found

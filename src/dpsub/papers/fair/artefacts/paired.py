"""Paired comparisons over seeds: differences from Poisson, who is not worse than the best, rankings with ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from dpsub.errors import DataError
from dpsub.reproduce import statistics
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.verdicts import holm

LEVEL = 0.05
"""Family-wise error of the tests within one data set, target and variant (Holm's procedure)."""

REFERENCE = "poisson"
NONPRIVATE = "nonprivate"
FIRST_MEASURE = {"linear": "coefficient_error", "bootstrap_mean": "estimate_error"}
"""What samplers are ranked by, fixed before any run; the test log loss for every classification task."""


def first_measure(dataset: str) -> str:
    """Return the measure by which samplers are ranked on a data set; smaller is better."""
    return FIRST_MEASURE.get(dataset, "log_loss")


@dataclass(frozen=True, eq=False)
class Group:
    """One data set at one target in one variant.

    Attributes
    ----------
    variant, dataset : str
    epsilon : float
        Target of all steps together.
    losses : DataFrame
        The first measure, a row a seed, a column a sampler, in order of first appearance.
    frame : DataFrame
        The records behind it.
    """

    variant: str
    dataset: str
    epsilon: float
    losses: pd.DataFrame
    frame: pd.DataFrame

    @property
    def samplers(self) -> list[str]:
        return [str(name) for name in self.losses.columns]

    def difference(self, sampler: str, other: str = REFERENCE) -> Estimate:
        """Return the mean paired difference sampler - other and its 95 % Student interval."""
        return statistics.paired_difference(self.losses[sampler].to_numpy(), self.losses[other].to_numpy())

    def separated(self) -> dict[tuple[str, str], bool]:
        """Return for each ordered pair whether the first is shown to be better, by Holm over all pairs at 5 %."""
        pairs = list(itertools.combinations(self.samplers, 2))
        differences = [self.difference(*pair) for pair in pairs]
        rejected = holm([p_value(estimate) for estimate in differences], LEVEL)
        shown: dict[tuple[str, str], bool] = {}
        for (one, two), estimate, sure in zip(pairs, differences, rejected, strict=True):
            shown[one, two] = bool(sure and estimate.value < 0)
            shown[two, one] = bool(sure and estimate.value > 0)
        return shown

    def ranks(self) -> dict[str, int]:
        """Return 1 + the number of samplers that are shown to be better: what is not told apart shares a rank."""
        shown = self.separated()
        return {name: 1 + sum(shown[other, name] for other in self.samplers if other != name) for name in self.samplers}


def p_value(estimate: Estimate) -> float:
    """Return the two-sided p-value of Student's paired test; 1 for equal samples, or a single seed."""
    if estimate.replicates < 2 or estimate.value == 0:
        return 1.0
    if estimate.standard_error == 0:
        return 0.0
    t = abs(estimate.value) / estimate.standard_error
    return float(min(1.0, 2 * special.stdtr(estimate.replicates - 1, -t)))


def proportion(values: np.ndarray, *, level: float = 0.95) -> Estimate:
    """Return the share of ones and its exact (Clopper and Pearson) interval."""
    count, k = len(values), int(np.sum(values))
    tail = (1 - level) / 2
    lower = float(special.betaincinv(k, count - k + 1, tail)) if k else 0.0
    upper = float(special.betaincinv(k + 1, count - k, 1 - tail)) if k < count else 1.0
    share = k / count
    return Estimate(share, math.sqrt(share * (1 - share) / count), count, lower, upper)


def with_interval(estimate: Estimate) -> Estimate:
    """Return a mean with its 95 % Student interval."""
    lower, upper = statistics.interval(estimate)
    return Estimate(estimate.value, estimate.standard_error, estimate.replicates, lower, upper)


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
    for (variant, dataset, _), part in private.groupby(["variant", "dataset", "target_epsilon"], sort=False):
        measure = first_measure(str(dataset))
        if part.duplicated(["replicate", "sampler"]).any():
            raise DataError(f"a sampler must have one size on {dataset}, got more; compare sizes apart")
        losses = part.pivot(index="replicate", columns="sampler", values=measure)[list(part["sampler"].unique())]
        if losses.isna().to_numpy().any():
            raise DataError(
                f"samplers must have the same seeds to be paired, got others or no {measure} on {dataset}; "
                "run all parts"
            )
        yield Group(str(variant), str(dataset), float(part["target_epsilon"].iloc[0]), losses, part)

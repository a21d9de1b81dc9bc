"""Paired comparisons over seeds: differences, samplers that are not worse than the best, rankings
with ties."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special

from dpsub.reproduce import statistics
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.verdicts import holm

LEVEL = 0.05
"""Family-wise error of the tests within one family (Holm's procedure)."""

REFERENCE = "poisson"


@dataclass(frozen=True, eq=False)
class Paired:
    """Samplers that share their seeds on one task."""

    losses: pd.DataFrame
    """The measure that samplers are ranked by: a row for each seed, a column for each sampler, in
    order of first appearance."""

    @property
    def samplers(self) -> list[str]:
        return [str(name) for name in self.losses.columns]

    def difference(self, sampler: str, other: str = REFERENCE) -> Estimate:
        """Return the mean paired difference sampler - other and its 95 % Student interval."""
        return statistics.paired_difference(
            self.losses[sampler].to_numpy(), self.losses[other].to_numpy()
        )

    @cached_property
    def better(self) -> dict[tuple[str, str], bool]:
        """For each ordered pair whether the first is shown to be better, by Holm over all pairs at
        5 %."""
        pairs = itertools.combinations(self.samplers, 2)
        # Each unordered pair is tested once, two-sided: Holm's procedure counts tests.
        differences = {pair: self.difference(*pair) for pair in pairs}
        rejected = holm([p_value(estimate) for estimate in differences.values()], LEVEL)
        shown: dict[tuple[str, str], bool] = {}
        for ((one, two), estimate), sure in zip(differences.items(), rejected, strict=True):
            shown |= {
                (one, two): bool(sure and estimate.value < 0),
                (two, one): bool(sure and estimate.value > 0),
            }
        return shown

    @cached_property
    def ranks(self) -> dict[str, int]:
        """1 + the number of samplers that are shown to be better: samplers that are not told
        apart share a rank."""
        better, names = self.better, self.samplers
        return {
            name: 1 + sum(better[other, name] for other in names if other != name) for name in names
        }


def p_value(estimate: Estimate) -> float:
    """Return the two-sided p-value of Student's paired test; 1 for equal samples, or a single
    seed."""
    # Equal losses are no evidence; one seed has no spread to hold a difference against.
    if estimate.replicates < 2 or estimate.value == 0:
        return 1.0
    # The same difference for every seed, and not 0: no chance is left.
    if estimate.standard_error == 0:
        return 0.0
    t = abs(estimate.value) / estimate.standard_error
    return float(min(1.0, 2 * special.stdtr(estimate.replicates - 1, -t)))


def with_interval(values: np.ndarray) -> Estimate:
    """Return the mean with its 95 % Student interval."""
    # A mean is its paired difference from 0.
    return statistics.paired_difference(values, np.zeros(len(values)))

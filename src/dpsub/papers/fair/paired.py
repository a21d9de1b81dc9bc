"""Paired comparisons over seeds: differences from Poisson, who is not worse than the best, rankings
with ties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.fair.settings import NONPRIVATE, TASKS
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.paired import Paired
from dpsub.reproduce.verdicts import not_real


def label_of(sampler: str) -> str:
    """Return a sampler's display name, the stages themselves for a chain."""
    return sampler if ":" in sampler else sampler_label(sampler)


@dataclass(frozen=True, eq=False)
class Group(Paired):
    """One data set at one target for all steps together, in one variant."""

    variant: str
    dataset: str
    epsilon: float
    frame: pd.DataFrame
    """The records behind it."""

    @property
    def place(self) -> dict[str, object]:
        """The group's key fields in tables."""
        return {"dataset": self.dataset, "epsilon": self.epsilon}

    @property
    def source(self) -> str:
        """The note that says that the data stand in for those that the data set is named after, ""
        otherwise."""
        return not_real(set(self.frame["data_label"]) - {"real", "simulated"})


def groups(frame: pd.DataFrame) -> Iterator[Group]:
    """Yield the groups of the records of `fair_comparison`, in their order, without the sampler
    "nonprivate"."""
    private = frame[frame["sampler"] != NONPRIVATE]
    for (variant, dataset, epsilon), part in private.groupby(
        ["variant", "dataset", "target_epsilon"], sort=False
    ):
        measure = TASKS[str(dataset)].measure
        if part.duplicated(["replicate", "sampler"]).any():
            raise DataError(
                f"a sampler must have one size on {dataset}, got more; compare sizes apart"
            )
        losses = part.pivot(index="replicate", columns="sampler", values=measure)[
            list(part["sampler"].unique())
        ]
        if losses.isna().to_numpy().any():
            raise DataError(
                f"samplers must have the same seeds to be paired, got others or no {measure} on "
                f"{dataset}; run all parts"
            )
        yield Group(losses, str(variant), str(dataset), float(str(epsilon)), part)


def in_variants(fair: pd.DataFrame, linear: pd.DataFrame, adult: pd.DataFrame) -> list[Group]:
    """Return the groups of the fair comparison, and for each of its targets the main paper's own as
    variant `stated`.

    The paper compares at equal epsilon' a query: the linear model at the smallest epsilon', where
    noise counts most (error of all coefficients together), and Adult (training log loss, the one
    that the paper shows), from the records of their experiments.
    """
    found = list(groups(fair))
    linear, adult = (
        frame.query(f"variant == 'stated' and sampler != '{NONPRIVATE}'")
        for frame in (linear, adult)
    )
    linear = linear[linear["epsilon_amplified"] == linear["epsilon_amplified"].min()]
    errors = linear[[f"error_beta{i}" for i in range(3)]]
    papers = {
        "linear": linear.assign(loss=np.sqrt((errors.to_numpy() ** 2).sum(axis=1))),
        "adult": adult[adult["solver"] == "dp_sgd"].rename(columns={"train_loss": "loss"}),
    }
    stated = []
    for group in found:
        if group.variant == "rigorous" and group.dataset in papers:
            losses = papers[group.dataset].pivot(
                index="replicate", columns="sampler", values="loss"
            )
            losses = losses[[name for name in group.samplers if name in losses.columns]]
            stated.append(replace(group, variant="stated", losses=losses))
    return stated + found

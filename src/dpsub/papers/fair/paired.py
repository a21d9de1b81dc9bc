"""Paired comparisons over seeds: differences from Poisson, who is not worse than the best, rankings
with ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

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


def in_variants(fair: pd.DataFrame, stated: Mapping[str, pd.DataFrame]) -> list[Group]:
    """Return the groups at equal stated epsilon', then those of the fair comparison.

    Parameters
    ----------
    fair : records of `fair_comparison`.
    stated : losses of samplers at one stated epsilon' a query, by data set; they stand next to each
        proved target of that data set, as variant `stated`.
    """
    compared = list(groups(fair))
    as_stated = []
    for group in compared:
        if group.variant == "rigorous" and group.dataset in stated:
            losses = stated[group.dataset]
            shared = [name for name in group.samplers if name in losses.columns]
            as_stated.append(replace(group, variant="stated", losses=losses[shared]))
    return as_stated + compared

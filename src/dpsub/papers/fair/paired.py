"""Contests of the fair comparison, next to the contests of other papers at one stated epsilon'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from dpsub.papers.fair.settings import TASKS
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.study.contests import Contest, contests

BY = ("dataset", "target_epsilon")
"""Columns that tell contests apart."""


def label_of(sampler: str) -> str:
    """Return a sampler's display name; of a chain "WOR 500 → WR 200", its stages with their
    sizes."""
    if ":" not in sampler:
        return sampler_label(sampler)
    stages = (stage.split(":") for stage in sampler.split(","))
    return " → ".join(f"{sampler_label(kind)} {size}" for kind, size in stages)


def fair_contests(records: pd.DataFrame) -> list[Contest]:
    """Return the contests of the records of `fair_comparison`, in their order."""
    return list(contests(records, BY, lambda place: TASKS[str(place["dataset"])].measure))


def keys_of(contest: Contest) -> dict[str, object]:
    """Return the key fields of a contest in tables."""
    return {"dataset": contest.place["dataset"], "epsilon": contest.place["target_epsilon"]}


def in_variants(fair: pd.DataFrame, stated: Mapping[str, pd.DataFrame]) -> list[Contest]:
    """Return the contests at equal stated epsilon', then those of the fair comparison.

    Parameters
    ----------
    fair : DataFrame
        Records of `fair_comparison`.
    stated : mapping of str to DataFrame
        Losses of samplers at one stated epsilon' a query, by data set; they stand next to each
        proved target of that data set, as variant `stated`.
    """
    compared = fair_contests(fair)
    as_stated = []
    for contest in compared:
        losses = stated.get(str(contest.place["dataset"]))
        if contest.variant == "rigorous" and losses is not None:
            # The other paper may lack a chain or a size that is compared here, and the reverse.
            shared = [name for name in contest.samplers if name in losses.columns]
            as_stated.append(replace(contest, variant="stated", losses=losses[shared]))
    return as_stated + compared

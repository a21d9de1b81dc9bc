"""The samplers of the MUST paper: their order in its artefacts, and which of them figures and sentences are about."""

from __future__ import annotations

from functools import cache

import pandas as pd

from dpsub.reproduce import published
from dpsub.reproduce.verdicts import VARIANTS

MUST = ("must_ow", "must_ww")
"""What the paper's statements call MUST: its two samplers that are drawn from fewer records than WR."""

MULTISETS = ("wr", *MUST)
"""What they call the samplers that give multisets."""

SAME_LAW = {"poisson": "wor", "must_wo": "wr"}
"""Samplers whose curve is that of another one, which the figures draw."""


@cache
def samplers() -> tuple[str, ...]:
    """Samplers of the paper in the order of Table 9, which prints them all."""
    return tuple(published.load("must", "table9")["sampler"].unique())


def ranks() -> dict[str, int]:
    """Rank of each sampler of the paper; rows without a sampler or without noise come first."""
    return {name: rank for rank, name in enumerate(("none", "nonprivate", *samplers()))}


def without_twins(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` in order, without the samplers whose curve is that of another one in it."""
    twins = frame["sampler"].map(SAME_LAW)
    return in_order(frame[~twins.isin(set(frame["sampler"]))], by=("sampler",))


def in_order(frame: pd.DataFrame, *, by: tuple[str, ...] = ("variant", "sampler")) -> pd.DataFrame:
    """Return `frame` sorted by the order of variants and samplers, others behind, ties as they come."""
    known = {"variant": {name: rank for rank, name in enumerate(VARIANTS)}, "sampler": ranks()}
    order = pd.DataFrame({name: frame[name].map(known[name]) if name in known else frame[name] for name in by})
    return frame.loc[order.sort_values(list(by), kind="stable").index]

"""Contests of a study: samplers that trained with the same seeds, compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce.paired import LEVEL, REFERENCE, Paired, p_value
from dpsub.reproduce.study.cells import NONPRIVATE
from dpsub.reproduce.verdicts import holm, not_real

OWN_DATA = frozenset({"real", "simulated", "subsample"})
"""Labels of data that stand in for no others."""


@dataclass(frozen=True, eq=False)
class Contest(Paired):
    """Samplers that trained with the same seeds on one task, at one target.

    Attributes
    ----------
    place : mapping
        Value of each column that tells contests apart.
    records : DataFrame
        The records behind it.
    variant : str
        Reading under which the samplers are at one privacy.
    """

    place: Mapping[str, Any]
    records: pd.DataFrame
    variant: str = field(default="rigorous", kw_only=True)

    @property
    def source(self) -> str:
        """Note that the data stand in for those of the task's name; else ""."""
        return not_real(set(self.records["data_label"]) - OWN_DATA)

    @cached_property
    def differs(self) -> dict[str, bool]:
        """Whether each sampler differs significantly from Poisson, by Holm over all at 5 %."""
        # one family of tests a contest: the question is which samplers differ at this place
        names = [name for name in self.samplers if name != REFERENCE]
        rejected = holm([p_value(self.difference(name)) for name in names], LEVEL)
        return dict(zip(names, map(bool, rejected), strict=True))


def contests(
    records: pd.DataFrame, by: Sequence[str], measure: Callable[[Mapping[str, Any]], str]
) -> Iterator[Contest]:
    """Yield the contests of the records of trainings, in their order.

    Trainings without privacy are left out.

    Parameters
    ----------
    records : DataFrame
        Of all variants that are compared, with the columns `variant`, `replicate` and `sampler`.
    by : sequence of str
        Columns that tell contests apart, in addition to the variant.
    measure : callable
        Column of the losses at a place.

    Raises
    ------
    DataError
        If a sampler trained twice with a seed, or not with the seeds of the others.
    """
    # Training without privacy takes no part: it would win every contest.
    private = records[records["sampler"] != NONPRIVATE]
    for (variant, *values), part in private.groupby(["variant", *by], sort=False):
        fields = dict(zip(by, values, strict=True))
        where = ", ".join(f"{name} = {value}" for name, value in fields.items())
        if part.duplicated(["replicate", "sampler"]).any():
            raise DataError(
                f"a sampler must train once with each seed at {where}, got more; compare sizes "
                "separately, and look for records of two runs"
            )
        order = list(part["sampler"].unique())
        # columns in the order of the grid, in which tables list the samplers
        losses = part.pivot(index="replicate", columns="sampler", values=measure(fields))[order]
        if losses.isna().to_numpy().any():
            raise DataError(
                f"samplers must have the same seeds to be paired at {where}, got others, or no "
                f"{measure(fields)}; run all parts"
            )
        yield Contest(losses, fields, part, variant=str(variant))

"""What the accountant answers about a sampler: an interval with its conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsub.accountants.base import Interval

CONDITIONS = (
    "each record enters by a vector of norm at most C that depends on that record and on past releases only",
    "the release is the sum over the sample plus N(0, (s C)^2 I), or that divided by a number fixed in advance",
    "the noise does not depend on the sample or its size",
    "samples are fresh, independent and secret at every step, with all stages drawn anew",
    "the number of records and all sizes or rates are public",
    "real arithmetic and exact sampling are assumed",
)
"""Under which every guarantee of this package holds."""


@dataclass(frozen=True)
class Account(Interval):
    """An interval for delta at an epsilon, or epsilon at a delta, of a composed mechanism.

    Attributes
    ----------
    quantity : {"delta", "epsilon"}
    lower_pair : str
        What attains the lower end.
    conditions : tuple of str
        What the upper end needs; empty where it is not a guarantee.
    """

    quantity: str = field(default="epsilon")
    lower_pair: str = field(default="")
    conditions: tuple[str, ...] = field(default=())

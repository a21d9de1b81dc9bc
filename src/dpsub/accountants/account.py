"""What the accountant answers about a sampler: an interval with its conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsub.accountants.base import Interval

_GENERAL = (
    "the noise does not depend on the sample or its size",
    "samples are fresh, independent and secret at every step, with all stages drawn anew",
    "the number of records and all sizes or rates are public",
    "real arithmetic and exact sampling are assumed",
)

CONDITIONS = (
    "each record enters by a vector of norm at most C that depends on that record and on past releases only",
    "the release is the sum over the sample plus N(0, (s C)^2 I), or that divided by a number fixed in advance",
    *_GENERAL,
)
"""Under which every guarantee for Gaussian noise holds."""

LAPLACE_CONDITIONS = (
    "the query is scalar: each record enters by a number in [-C, C] that depends on that record and on past releases "
    "only",
    "the release is the sum over the sample plus Laplace noise of scale s C, or that divided by a number fixed in "
    "advance",
    *_GENERAL,
)
"""Under which every guarantee for Laplace noise holds."""

WIDTH_MISSED = (
    "numerical limits stopped the refinement before the width that was asked for: both ends hold, but at least one is "
    "looser"
)
"""Added to the conditions where `Account.width_met` is false."""


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
    width_met : bool
        Whether both ends came out as sharp as asked for.  If not, `WIDTH_MISSED` is the last condition; both ends are
        valid in either case, and of kind exact then only says that they are about one number.
    """

    quantity: str = field(default="epsilon")
    lower_pair: str = field(default="")
    conditions: tuple[str, ...] = field(default=())
    width_met: bool = field(default=True)

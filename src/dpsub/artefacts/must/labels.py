"""The order and the names of the schemes in the artefacts of the MUST paper."""

from __future__ import annotations

import pandas as pd

from dpsub.verdicts import VARIANTS

SCHEMES = ("none", "nonprivate", "poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")


def in_order(frame: pd.DataFrame, *, by: tuple[str, ...] = ("variant", "scheme")) -> pd.DataFrame:
    """Return `frame` sorted by the fixed order of variants and schemes, ties as they come."""
    ranks = {"variant": VARIANTS, "scheme": SCHEMES}
    order = pd.DataFrame({
        name: frame[name].map({item: rank for rank, item in enumerate(ranks[name])}) if name in ranks else frame[name]
        for name in by
    })
    return frame.loc[order.sort_values(list(by), kind="stable").index]

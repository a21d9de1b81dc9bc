"""Key fields and rows that several tables share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def sampler_key(record: Mapping[Any, Any], **before: object) -> dict[str, object]:
    """Return the key fields sampler and b of a record, without b where the sampler has none (b = 0)."""
    after = {"b": int(record["b"])} if int(record["b"]) > 0 else {}
    return {**before, "sampler": record["sampler"], **after}


def proved_rows(row: Mapping[str, object], column: str, record: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return what is refuted (`column`_lower), proved (`column`_upper) and bracketed for the paper's pair.

    Parameters
    ----------
    row : mapping
        Key fields.
    column : str
        What the columns begin with ("delta_c").
    record : mapping
        A record of an `AccountsExperiment`; a probability that nothing is proved of has the trivial bound 1.
    """
    base = {**row, "variant": "rigorous"}
    where = f"{record['adjacency']}, noise {record['noise_multiplier']:.4g} C, {record['denominator']} denominator"
    proved, upper = record["proved"], f"proved (upper), {where}"
    if math.isnan(proved):
        proved, upper = 1.0, f"nothing is proved, {where}"
    rows = [
        {**base, "column": f"{column}_lower", "value": record["attack"], "note": f"attack (lower), {where}"},
        {**base, "column": f"{column}_upper", "value": proved, "note": upper},
    ]
    low, high = record["pair_lower"], record["pair_upper"]
    if not math.isnan(low):
        pair = {"value": (low + high) / 2, "lower": low, "upper": high, "note": f"no guarantee, {where}"}
        rows.append({**base, "column": f"{column}_pair", **pair})
    return rows

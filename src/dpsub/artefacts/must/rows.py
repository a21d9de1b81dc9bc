"""Row keys that several tables share, and rows from estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsub.artefacts.statistics import Estimate
from dpsub.published import row_key


def scheme_key(record: Mapping[Any, Any], **before: object) -> str:
    """Return the key "scheme=...; b=..." of a record, without b where the sampler has none (b = 0)."""
    after = {"b": int(record["b"])} if int(record["b"]) > 0 else {}
    return row_key(**before, scheme=record["scheme"], **after)


def estimate_row(row: str, column: str, variant: str, estimate: Estimate, note: str = "") -> dict[str, Any]:
    """Return one row of a values frame from an estimate."""
    return {
        "row": row,
        "column": column,
        "variant": variant,
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "replicates": estimate.replicates,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "note": note,
    }

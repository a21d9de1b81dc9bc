"""The claims of the paper's text, each with a verdict from the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpsub.papers.balle.artefacts.statements import PROFILES, STATEMENTS, VARIANTS
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.predicates import LackingError, of_variant, pick


class Claims(Artefact):
    """What the paper states: 1 where it holds, 0 where it fails."""

    paper = "balle"
    name = "claims"
    kind = "claims"
    caption = (
        "Statements of the paper, each computed from the records: 1 where it holds, 0 where it fails, as stated and "
        "with the corrections of the deviations; the note gives the numbers that decide."
    )
    experiments = ("balle_profiles", "balle_couplings", "balle_enumeration", "balle_curves")
    keys = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = [row for statement in STATEMENTS for row in statement.answers(records)]
        return values_frame([*rows, *_largest_delta(records)])


def _largest_delta(records: Records) -> Iterator[dict[str, Any]]:
    """Theorem 3: delta of the Laplace mechanism from theta on."""
    for variant in VARIANTS:
        base = {"claim": "B006", "column": "delta", "variant": variant}
        try:
            frame = pick(of_variant(records, PROFILES, variant), check="laplace_zero")
        except LackingError as reason:
            if variant == "stated":
                yield {**base, "note": str(reason)}
            continue
        yield {**base, "value": float(frame["computed"].max()), "note": f"largest of {len(frame)} values"}

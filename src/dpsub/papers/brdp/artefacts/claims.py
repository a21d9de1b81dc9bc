"""All claims of Jiang et al.: statements, settings, and clock times that are shown elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpsub.papers.brdp.artefacts import statements
from dpsub.papers.brdp.artefacts.statements import (
    ACCEPTANCE,
    ADULT,
    COMPOSITION,
    GOWALLA,
    NOISE,
    RATES,
    SAMPLING,
    TABLE,
)
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.predicates import Frames, LackingError

Place = tuple[str, str, dict[str, object]]


def _settings() -> Iterator[tuple[str, str, Place]]:
    """Yield (claim, column, place in the records) of each setting."""
    yield from (("P.Fig2b.eps", "epsilon", (NOISE, "epsilon", {})), ("P.Fig2b.delta", "delta", (NOISE, "delta", {})),
                ("P.Fig2b.theta", "bound", (NOISE, "bound", {})))  # fmt: skip
    yield "P.Fig2b/Sec3.2.n_samples", "n_samples", (NOISE, "n_samples", {})
    for name, column in (("eps", "epsilon"), ("y", "y"), ("Delta_f", "sensitivity"), ("theta", "bound")):
        yield f"P.Fig3.{name}", column, (RATES, column, {})
    yield "P.Fig4a,4b.theta", "bound", (ACCEPTANCE, "bound", {})
    for panel, span in (("a", 1.0), ("b", 5.0)):
        yield f"P.Fig4{panel}.Delta_f_{panel}", "sensitivity", (ACCEPTANCE, "sensitivity", {"sensitivity": span})
    for name, column in (("eps", "epsilon"), ("theta", "bound"), ("Delta_f", "sensitivity")):
        yield f"P.Fig5a,5b.{name}", column, (COMPOSITION, column, {})
    for name, column in (("sigma_x", "sigma_x"), ("eps", "epsilon"), ("delta", "delta"), ("p_c", "share")):
        yield f"P.Fig6.{name}", column, (SAMPLING, column, {})
    yield "P.TableI.T", "n_compositions", (TABLE, "n_compositions", {})
    yield "P.TableI.eps", "epsilon", (TABLE, "epsilon", {})
    for column in ("n_individuals", "n_subsets", "n_repeats"):
        yield f"P.Sec8.1.{column}", column, (ADULT, column, {})
    for column in ("box_mass_pct", "whisker_mass_pct"):
        yield f"P.Sec8.2.{column}", column, (ADULT, column, {})
    yield "P.Sec8.1.adult_records", "adult_records", (ADULT, "n_records", {})
    yield "P.Sec8.1.adult_attributes", "adult_attributes", (ADULT, "n_attributes", {})
    yield "P.Sec8.1.gowalla_checkins", "gowalla_checkins", (GOWALLA, "n_events", {})
    for figure, experiment in (("7", ADULT), ("8", GOWALLA)):
        for panel in "abcdef":
            for column, field in (("sensitivity",) * 2, ("bound",) * 2, ("epsilon", "stated_epsilon")):
                yield f"F{figure}{panel}.params", column, (experiment, field, {"panel": panel})


class Claims(Artefact):
    """What the paper states and fixes."""

    paper = "brdp"
    name = "claims"
    kind = "claims"
    caption = (
        "Statements and settings of Jiang et al., each computed from the records: 1 where a statement holds in every "
        "case that was tried, 0 where it fails in some; the note gives the numbers that decide. stated: by the paper's "
        "own accounting and parameters; consistent: with the sensitivity and the acceptance that a sampled release "
        "has; rigorous: by exact accounting. Clock times stand in a table of their own."
    )
    experiments = ("brdp_noise", "brdp_rates", "brdp_acceptance", "brdp_composition", "brdp_sampling", "brdp_adult",
                   "brdp_gowalla", "brdp_table1", "brdp_checks")  # fmt: skip
    keys = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = list(_used(records))
        for statement in statements.STATEMENTS:
            rows += statement.answers(records)
        return values_frame(rows)


def _used(records: Frames) -> Iterator[dict[str, Any]]:
    for row, column, (experiment, field, fields) in _settings():
        base = {"claim": row, "column": column, "variant": "stated"}
        try:
            yield {**base, "value": statements.setting(records, experiment, field, **fields)}
        except LackingError as reason:
            yield {**base, "note": str(reason)}

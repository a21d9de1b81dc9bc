"""Names of experiments, groups of samplers, and selections of records, shared by the claims of all
parts of the paper."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.settings import MUST
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.verdicts import NOT_REAL

GRID, CROSSINGS, SURFACE = "amplification_grid", "amplification_crossings", "design_surface"
NOISE, COMPOSED, PROVED = "noise_calibration", "composition", "proved_composition"
STATISTICS, REGRESSION, ADULT, DISTINCT = (
    "subset_statistics",
    "linear_regression",
    "adult_logistic",
    "distinct_counts",
)
# MUST.WO is left out: its law is that of WR.
MULTISETS = ("wr", *MUST)  # what the paper calls the samplers that give multisets
ONE_STAGE = ("poisson", "wor", "wr")
PRIVATE = (*ONE_STAGE, *MUST)
ALL = ("must_ow", "must_wo", "must_ww", "poisson", "wor", "wr")  # by name, as notes list them
TABLE8, FIGURE_S2, OW = (
    {"table": "table8"},
    {"table": "figure_s2"},
    {"table": "figure_s2", "sampler": "must_ow"},
)


def at_the_smallest(epsilon: pd.Series) -> pd.Series:
    """Return a mask of the records with the smallest eps'."""
    return epsilon == epsilon.min()


def real(frame: pd.DataFrame) -> pd.DataFrame:
    """Return records of Adult; MissingRecordsError if they are not made from the paper's data."""
    if labels := sorted(set(frame["data"]) - {"real"}):
        raise MissingRecordsError(f"{NOT_REAL} but {', '.join(labels)}")
    return frame

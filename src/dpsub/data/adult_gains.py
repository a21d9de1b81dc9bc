"""Adult as the queries of budget recycling read it: the capital gain of each of 45,222 complete records."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsub import streams
from dpsub.data import adult_raw, synthetic_adult
from dpsub.data.individuals import VALUE
from dpsub.errors import DataError

SOURCE = "adult"
FILES = ("adult.data", "adult.test")
N_RECORDS = 45222
TOTAL_GAIN = 49_808_883  # dollars over all records
UNIT = 1000.0  # dollars


def prepare(data_path: Path, test_path: Path) -> pd.DataFrame:
    """Return the complete records of both files with `VALUE`, their capital gain in thousands of dollars.

    The paper queries a "growth income", which is no attribute of the data; the capital gain is what comes closest.

    Raises
    ------
    DataError
        If a file is damaged, or the records are not those expected.

    References
    ----------
    brdp, Section 8.1.
    """
    records = pd.concat([adult_raw.read(path) for path in (data_path, test_path)], ignore_index=True)
    records = records[(records[list(adult_raw.MAY_BE_MISSING)] != adult_raw.MISSING).all(axis=1)]
    found = (len(records), int(records["capital_gain"].sum()))
    if found != (N_RECORDS, TOTAL_GAIN):
        raise DataError(
            f"adult.data and adult.test must hold {N_RECORDS} complete records with a capital gain of {TOTAL_GAIN} in "
            f"all, got {found[0]} with {found[1]}; restore the original files"
        )
    return pd.DataFrame({VALUE: records["capital_gain"].to_numpy(dtype=float) / UNIT})


def stand_in() -> pd.DataFrame:
    """Return a stand-in of the same size: capital gains of invented people, drawn with replacement."""
    people = synthetic_adult.generate()["capital_gain"].to_numpy(dtype=float)
    rng = streams.stream(synthetic_adult.ROOT, experiment="synthetic_adult_gains", cell={}, role="data", replicate=0)
    return pd.DataFrame({VALUE: rng.choice(people, N_RECORDS) / UNIT})

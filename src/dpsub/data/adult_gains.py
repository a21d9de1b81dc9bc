"""Adult as the queries of budget recycling read it: the capital gain of each of 45,222 complete
records."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pandas as pd

from dpsub import streams
from dpsub.data import adult, individuals
from dpsub.data.dataset import DataSet, Obtained
from dpsub.data.individuals import VALUE
from dpsub.errors import DataError

N_RECORDS = 45222  # complete records of all countries
TOTAL_GAIN = 49_808_883  # dollars over all of them
UNIT = 1000.0  # dollars


def prepare(data_path: Path, test_path: Path) -> pd.DataFrame:
    """Return `VALUE` of each complete record of both files: its capital gain in thousands of
    dollars.

    The paper (brdp, Section 8.1) queries a "growth income", which is no attribute of the data; the
    capital gain is what comes closest. DataError if a file is damaged, or the records are not those
    expected.
    """
    records = adult.complete(
        pd.concat([adult.read_raw(path) for path in (data_path, test_path)], ignore_index=True)
    )
    facts = (len(records), int(records["capital_gain"].sum()))
    if facts != (N_RECORDS, TOTAL_GAIN):
        raise DataError(
            f"adult.data and adult.test must hold {N_RECORDS} complete records with a capital "
            f"gain of {TOTAL_GAIN} in all, got {facts[0]} with {facts[1]}; restore the original "
            "files"
        )
    return pd.DataFrame({VALUE: records["capital_gain"].to_numpy(dtype=float) / UNIT})


def stand_in() -> pd.DataFrame:
    """Return a stand-in of the same size: capital gains of invented people, drawn with
    replacement."""
    people = adult.stand_in()["capital_gain"].to_numpy(dtype=float)
    rng = streams.stream(
        adult.ROOT, experiment="synthetic_adult_gains", cell={}, role="data", replicate=0
    )
    return pd.DataFrame({VALUE: rng.choice(people, N_RECORDS) / UNIT})


class AdultGains(DataSet):
    """Capital gains."""

    name, source = "adult_gains", "adult"
    files: ClassVar = {"real": adult.FILES}

    def make(self, obtained: Obtained, path: Path) -> int:
        table = (
            prepare(*(obtained.paths[name] for name in adult.FILES))
            if obtained.paths
            else stand_in()
        )
        individuals.write(
            table,
            path,
            dataset=self.name,
            label=obtained.label,
            sources=obtained.sha256,
            events=len(table),
            attributes=len(adult.FIELDS),
        )
        return len(table)

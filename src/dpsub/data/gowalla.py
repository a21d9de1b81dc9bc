"""Gowalla check-ins in New York City, a regional part of the published file: days that each user
was active there."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub import streams
from dpsub.data import individuals
from dpsub.data.dataset import DataSet, Obtained
from dpsub.data.individuals import VALUE
from dpsub.errors import DataError

FILE = "gowalla_events.csv.gz"
FIELDS = ("user", "time", "latitude", "longitude", "place")
N_CHECKINS, N_USERS = 138_957, 7_115
SECONDS_A_DAY = 86_400.0
# Quantiles of the days between a user's first and last check-in, at LEVELS, over the users of the
# file.
LEVELS = (0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
DAYS = (0, 0, 0.7, 1.94, 3.6, 8.84, 36.12, 82.76, 150.72, 205.71, 305.74, 425)
N_STAND_IN = 10_000
# one fixed stream: the stand-in is a data set, not a part of the randomness of an experiment
ROOT = 2011


def prepare(path: Path) -> pd.DataFrame:
    """Return each user's `VALUE`, days from first to last check-in, in the order of user numbers;
    shape (7115, 1).

    The paper (brdp, Section 8.1) queries a total duration of check-ins, which the data do not
    record. DataError if the file is damaged or holds other records than expected.
    """
    try:
        events = pd.read_csv(
            path, sep="\t", names=list(FIELDS), usecols=["user", "time"], compression="gzip"
        )
        events["time"] = pd.to_datetime(events["time"], format="%Y-%m-%dT%H:%M:%SZ")
    except (OSError, EOFError, ValueError) as problem:
        raise DataError(
            f"{path} must hold lines of {', '.join(FIELDS)}, separated by tabs, got: {problem}"
        ) from None
    facts = (len(events), events["user"].nunique())
    if facts != (N_CHECKINS, N_USERS):
        raise DataError(
            f"{path} must hold {N_CHECKINS} check-ins of {N_USERS} users, got {facts[0]} of "
            f"{facts[1]}; restore the original file"
        )
    times = events.groupby("user")["time"].agg(["min", "max"])
    return pd.DataFrame({VALUE: (times["max"] - times["min"]).dt.total_seconds() / SECONDS_A_DAY})


def stand_in() -> pd.DataFrame:
    """Return a stand-in of 10,000 invented users whose durations have the quantiles of the file."""
    rng = streams.stream(ROOT, experiment="synthetic_gowalla", cell={}, role="data", replicate=0)
    return pd.DataFrame({VALUE: np.interp(rng.random(N_STAND_IN), LEVELS, DAYS)})


class Gowalla(DataSet):
    """One city of the published file."""

    name, source = "gowalla", "gowalla_nyc"
    files: ClassVar = {"subset": (FILE,)}

    def make(self, obtained: Obtained, path: Path) -> int:
        table = prepare(obtained.paths[FILE]) if obtained.paths else stand_in()
        individuals.write(
            table,
            path,
            dataset=self.name,
            label=obtained.label,
            sources=obtained.sha256,
            events=N_CHECKINS if obtained.paths else len(table),
            attributes=len(FIELDS),
        )
        return len(table)

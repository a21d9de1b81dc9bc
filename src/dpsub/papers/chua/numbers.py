"""Numbers of the page that take several cells of a run."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.chua.figures import LOOKS
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp

KEYS = ["figure", "batch", "epochs"]
COLUMNS = {
    "paper": "noise_paper",
    "refuted": "noise_lower",
    "proved": "noise_upper",
    "attained": "epsilon_lower",
    "spent": "epsilon_upper",
}


def values(cells: LookUp, column: str, sampler: str) -> pd.Series:
    """Return a column of the table for one sampler, by figure, size of batches and epochs."""
    rows = cells.rows("noise", column, sampler=sampler, **dict.fromkeys(KEYS, "*"))
    if "stated" not in rows or rows.empty:
        raise MissingRecordsError(f"this run has no {column} of {sampler}")
    return rows.set_index(KEYS)["stated"].astype(float)


def noises(cells: LookUp) -> list[dict[str, Any]]:
    """Return the rows of Figure 6, ordered by epochs, without those of two epochs."""
    found = []
    for sampler, look in LOOKS.items():
        # Poisson samples have no formula in the code
        names = [name for name in COLUMNS if (sampler, name) != ("poisson", "paper")]
        of_sampler = {name: values(cells, COLUMNS[name], sampler) for name in names}
        for key in of_sampler["refuted"].index:
            figure, _, epochs = key
            if figure != "Figure 6" or epochs == "2":
                continue
            row = {name: column[key] for name, column in of_sampler.items()}
            found.append({"epochs": int(epochs), "words": look["label"], "paper": None, **row})
    return sorted(found, key=lambda row: row["epochs"])


def gain_of_one_order(cells: LookUp) -> float:
    """Return how much noise one order for all epochs can save of a fixed order's, in percent."""
    refuted = values(cells, "noise_lower", "persistent_shuffle")
    fixed = values(cells, "noise_upper", "deterministic")
    return float(100 * (1 - refuted / fixed).max())


def as_if_poisson(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return epsilon of Poisson samples and of an attack on shuffled batches with their noise, for
    the report."""
    attacks = values(cells, "epsilon_lower", "shuffle")
    poisson = values(cells, "epsilon_upper", "poisson")
    frame = pd.DataFrame({"poisson": poisson, "attack": attacks}).reset_index()
    return {
        f"{row['epochs']} epochs, batches of {row['batch']}": (row["poisson"], row["attack"])
        for row in frame.to_dict("records")
    }

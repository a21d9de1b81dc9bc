"""The map as a table: noise over Poisson's at the same training and target, both bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from dpsub.papers.scheme_map.schemes import RELATIONS, SCHEMES, TRAININGS
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.tables import Row, Table

EXPERIMENTS = ("map_fresh", "map_epochs", "map_uses", "map_kept")
PLACE = ["training", "adjacency", "target_epsilon"]
OPEN = 0.05
"""Relative width from which on a cell is open: more than searches and grids explain."""
PROVED, ATTACK = "proved by ", "refuted by "
"""What notes of cells begin with, between `BETWEEN`."""
BETWEEN = " | "


def over_poisson(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return all cells, in the order of `SCHEMES`, `TRAININGS` and `RELATIONS`.

    Returns
    -------
    DataFrame
        The records, with `ratio` of the proved multiplier to Poisson's proved one of the same
        relation, training and target; its bounds `lower` (refuted over Poisson's proved) and
        `upper` (proved over Poisson's refuted), between which the ratio of what is needed lies;
        `width`, of what is open, the proved noise over the refuted one, less 1; and `is_open`.
        All are NaN where the cell has a reason.
    """
    cells = pd.concat(list(frames), ignore_index=True)
    base = cells[cells["sampler"] == REFERENCE].set_index(PLACE)[["noise_multiplier", "refuted"]]
    cells = cells.join(base.add_prefix("poisson_"), on=PLACE)
    proved, refuted = cells["noise_multiplier"], cells["refuted"]
    width = proved / refuted - 1
    order = {name: i for names in (TRAININGS, map(str, RELATIONS)) for i, name in enumerate(names)}
    order |= {name: i for i, name in enumerate(SCHEMES)}
    cells = cells.assign(
        ratio=proved / cells["poisson_noise_multiplier"],
        lower=refuted / cells["poisson_noise_multiplier"],
        upper=proved / cells["poisson_refuted"],
        width=width,
        is_open=width > OPEN,
    )
    return cells.sort_values(
        [*PLACE, "sampler"],
        key=lambda keys: keys if pd.api.types.is_numeric_dtype(keys) else keys.map(order),
        kind="stable",
        ignore_index=True,
    )


class MapTable(Table):
    """Noise of every scheme over Poisson's, by training, relation and target."""

    title = "Noise of every scheme over Poisson's"
    name = "noise"
    caption = (
        "Noise multiplier that is proved to meet the target for the whole training, over the one "
        "proved for Poisson samples under the same relation, with the same number of records, "
        "batch size and epochs. The interval contains the ratio of the noise multipliers that are "
        "needed: its lower bound is the noise that an attack refutes over the noise proved for "
        "Poisson, its upper bound the noise proved over the noise refuted for Poisson. Noise: "
        "proved for Poisson samples, with the noise that is refuted as its lower bound. Notes name "
        "the theorem and the attack, or the reason why there is no number."
    )
    keys = ("training", "adjacency", "epsilon", "sampler")
    layout = Layout(
        panels=("training", "adjacency"), stub=("sampler",), heads=("epsilon", "column")
    )
    experiments = EXPERIMENTS

    def rows(self, records: Records) -> list[Row]:
        cells = over_poisson(self.needed(records, name) for name in self.experiments)
        return [row for cell in cells.to_dict("records") for row in _rows(cell)]


def _rows(cell: Mapping[Any, Any]) -> list[Row]:
    row = {
        "training": cell["training"],
        "adjacency": cell["adjacency"],
        "epsilon": cell["target_epsilon"],
        "sampler": cell["sampler"],
        "variant": "rigorous",
        "note": cell["reason"]
        or f"{PROVED}{cell['theorem']}{BETWEEN}{ATTACK}{cell['lower_theorem']}",
    }
    if cell["sampler"] == REFERENCE:
        noise, refuted = cell["noise_multiplier"], cell["refuted"]
        return [{**row, "column": "noise", "value": noise, "lower": refuted, "upper": noise}]
    ends = {"lower": cell["lower"], "upper": cell["upper"]}
    return [{**row, "column": "over_poisson", "value": cell["ratio"], **ends}]

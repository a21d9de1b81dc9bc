"""Names, colours and markers of samplers, modes and data sets of the importance-sampling paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpsub.data.described import EIGHT
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.verdicts import NOT_REAL

SAMPLERS: dict[str, dict[str, Any]] = {
    "unif": {"label": "uniform", "color": "#0072B2", "marker": "o", "linestyle": "-"},
    "core": {"label": "coreset", "color": "#009E73", "marker": "s", "linestyle": (0, (5, 1.2))},
    "opt": {"label": "privacy-optimal", "color": "#E69F00", "marker": "^", "linestyle": (0, (3, 1, 1, 1))},
    "var": {"label": "variance-optimal (oracle)", "color": "#666666", "marker": "D", "linestyle": (0, (1, 1.2))},
    "water": {"label": "water-filling", "color": "#CC79A7", "marker": "v", "linestyle": (0, (4, 1))},
    "full": {"label": "full data", "color": "black", "marker": "", "linestyle": "-"},
    "unif_nonprivate": {"label": "uniform, no noise", "color": "#0072B2", "marker": "", "linestyle": (0, (1, 1))},
    "core_nonprivate": {"label": "coreset, no noise", "color": "#009E73", "marker": "", "linestyle": (0, (1, 2))},
}
MODES = {"as_done": "released code", "stated": "as stated", "consistent": "repaired"}
MAIN = ("kdd_protein", "rna", "song", "covertype")
APPENDIX = ("ijcnn1", "pose", "miniboone", "fma")
NAMES = {described.title: name for name, described in EIGHT.items()}
TITLES = {name: described.title for name, described in EIGHT.items()}


class OnData(Artefact):
    """An artefact of which each record names its data and their label."""

    paper = "importance"

    def labels(self, records: Records) -> tuple[str, ...]:
        found: set[str] = set()
        for name in self.experiments:
            if name in records and "data_label" in records[name]:
                found |= set(records[name]["data_label"].astype(str))
        return tuple(sorted(found - {"", "table1", "simulated"}))


def not_real(label: str) -> str:
    """Return the note of a number from other data than the paper's; "" for the paper's."""
    return "" if label == "real" else f"{NOT_REAL} but {label}"


def title_of(dataset: str, labels: Iterable[str]) -> str:
    """Return a data set's name, with its label where the data are not the paper's."""
    odd = sorted(set(labels) - {"real", "table1"})
    return f"{TITLES[dataset]} ({', '.join(odd)})" if odd else TITLES[dataset]


def ordered(frame: pd.DataFrame) -> list[str]:
    """Return the data sets of a frame in the paper's order."""
    return [name for name in TITLES if name in set(frame["dataset"])]

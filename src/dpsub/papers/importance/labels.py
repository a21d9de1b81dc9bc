"""Names, colours and markers of samplers, modes and data sets, and the labels of the data behind an
artefact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pandas as pd

from dpsub.data.described import EIGHT
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.labels import Labels
from dpsub.reproduce.verdicts import NOT_REAL

SAMPLERS: dict[str, dict[str, Any]] = {
    "unif": {"label": "uniform", "color": "#0072B2", "marker": "o", "linestyle": "-"},
    "core": {"label": "coreset", "color": "#009E73", "marker": "s", "linestyle": (0, (5, 1.2))},
    "opt": {
        "label": "privacy-optimal",
        "color": "#E69F00",
        "marker": "^",
        "linestyle": (0, (3, 1, 1, 1)),
    },
    "var": {
        "label": "variance-optimal (oracle)",
        "color": "#666666",
        "marker": "D",
        "linestyle": (0, (1, 1.2)),
    },
    "water": {
        "label": "water-filling",
        "color": "#CC79A7",
        "marker": "v",
        "linestyle": (0, (4, 1)),
    },
    "full": {"label": "full data", "color": "black", "marker": "", "linestyle": "-"},
    "unif_nonprivate": {
        "label": "uniform, no noise",
        "color": "#0072B2",
        "marker": "",
        "linestyle": (0, (1, 1)),
    },
    "core_nonprivate": {
        "label": "coreset, no noise",
        "color": "#009E73",
        "marker": "",
        "linestyle": (0, (1, 2)),
    },
}
MODES = {"as_done": "released code", "stated": "as stated", "consistent": "repaired"}
ATTACKS = {"noise": "the noise radius", "first_centres": "first centres drawn from the data"}
"""Attack on weighted DP-Lloyd -> the property that it exploits."""
MAIN = ("kdd_protein", "rna", "song", "covertype")
APPENDIX = ("ijcnn1", "pose", "miniboone", "fma")
TITLES = {name: described.title for name, described in EIGHT.items()}
GENUINE_LABELS = ("real", "table1")
"""Labels of its data, and of what needs its Table 1 only."""


class ImportanceLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "importance"
    quantities: ClassVar = {
        "t_calibration": "time of calibration",
    }
    words: ClassVar = {
        "unif_nonpriv": "uniform, no noise",
        "core_nonpriv": "coreset, no noise",
        "fixed_eps": "fixed ε",
        "c04": "Section 3.3, records",
        "c09": "Section 3.3, weights",
        "c18": "Section 5, smaller one",
        "c19": "Section 5, larger one",
        "c26": "Section 5, share of full data",
        "c27": "Section 5, share of full data",
        "c28": "Section 5, weights",
        "c35": "Section 5, machine",
    }


class OnData(Artefact):
    """An artefact whose records name their data and the label of these data."""

    def labels(self, records: Records) -> tuple[str, ...]:
        frames = [
            records[name] for name in self.experiments if "data_label" in records.get(name, ())
        ]
        # Numbers that follow from Table 1 need no data, and thus no label.
        return tuple(
            sorted({label for frame in frames for label in frame["data_label"]} - {"table1"})
        )


def not_real(label: str) -> str:
    """Return the note of a number from other data than the paper's; "" for the paper's."""
    return "" if label in GENUINE_LABELS else f"{NOT_REAL} but {label}"


def title_of(part: pd.DataFrame) -> str:
    """Return the name of the data set of these records, with its label where the data are not the
    paper's."""
    # A subsample or a twin has its label in the title: its costs are not the paper's.
    labels = sorted({*part["data_label"]} - {*GENUINE_LABELS})
    title = TITLES[part["dataset"].iloc[0]]
    return f"{title} ({', '.join(labels)})" if labels else title


def by_dataset(frame: pd.DataFrame, names: Iterable[str] = TITLES) -> dict[str, pd.DataFrame]:
    """Return the records of each of these data sets, by default of all in the paper's order,
    without those that have none."""
    return {name: part for name in names if len(part := frame[frame["dataset"] == name])}

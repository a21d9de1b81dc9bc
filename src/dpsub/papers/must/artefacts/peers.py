"""Other accountants next to ours: their bounds, and apart from them their times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

QUESTION = ("sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions")


class PeerBoundsTable(Artefact):
    """epsilon by each tool on the same questions: both ends and their distance."""

    name = "peer_bounds"
    kind = "table"
    caption = (
        "epsilon at delta = 1e-5 by this package and by other accountants: a bracket of one number for Poisson, attack "
        "and proof for samplers whose exact privacy is open. The Rényi accountant of dp-accounting for sampling "
        "without replacement is given the noise in units of C, the norm bound of one record, and of 2 C, by which "
        "replacing a record moves the sum. An upper value below the attack does not cover this release, and its note "
        "says so."
    )
    experiments = ("peer_bounds",)
    keys = ("sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions", "tool")
    layout = Layout(panels=QUESTION, stub=("tool",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "peer_bounds")
        # an attack of this package on the same question: what lies below it cannot be a bound
        attacks = frame[frame["tool"] == "dpsub"].set_index(list(QUESTION))["lower"].to_dict()
        rows = []
        for record in frame.to_dict("records"):
            note = record["note"] or record["kind"]
            if record["upper"] < attacks[tuple(record[name] for name in QUESTION)]:
                note = f"{note}, below what an attack attains"
            ends = {"lower": record["lower"], "upper": record["upper"], "width": record["upper"] - record["lower"]}
            rows += [
                {**question_key(record), "column": column, "variant": "rigorous", "value": value, "note": note}
                for column, value in ends.items()
                if not math.isnan(value) or (record["note"] and column == "upper")
            ]
        return values_frame(rows)


class PeerTimesTable(Artefact):
    """Processor time of the same answers."""

    name = "peer_times"
    kind = "table"
    caption = (
        "Processor time of each answer on this machine, in seconds, and in units of the time that this package takes "
        "for both ends of the same question."
    )
    experiments = ("peer_times",)
    keys = ("sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions", "tool")
    timed = True
    layout = Layout(panels=QUESTION, stub=("tool",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "peer_times")
        frame = frame[frame["note"] == ""]
        ours = frame[frame["tool"] == "dpsub"].set_index(list(QUESTION))["seconds"].to_dict()
        rows = []
        for record in frame.to_dict("records"):
            unit = ours[tuple(record[name] for name in QUESTION)]
            times = {"seconds": record["seconds"], "times_ours": record["seconds"] / unit}
            rows += [
                {**question_key(record), "column": column, "variant": "rigorous", "value": value}
                for column, value in times.items()
            ]
        return values_frame(rows)


def question_key(record: Mapping[Any, Any]) -> dict[str, object]:
    """Return the key fields of a row: the question, then the tool."""
    return {name: record[name] for name in (*QUESTION, "tool")}

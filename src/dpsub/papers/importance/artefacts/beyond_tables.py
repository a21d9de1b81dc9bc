"""Tables beyond the paper: what a delta buys, canaries, measured core-sets, losses of groups."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.labels import TITLES, OnData, not_real
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class Gain(Artefact):
    """Pure epsilon next to what is proved at a delta."""

    paper = "importance"
    name = "gain"
    kind = "table"
    caption = (
        "Proved epsilon at the configured delta of noise that was set for pure privacy (upper bounds, first centres "
        "fixed independently of the data), and the pure target over it. lloyd: counts and sums of 10 rounds at the "
        "radius and mean square of Table 1; sums: sums alone, by dimension; gaussian: the largest weight at epsilon = "
        "1 of a record whose Gaussian noise has the shift mu at weight 1."
    )
    experiments = ("importance_gain",)
    keys = ("topic", "dataset", "mode", "sampler", "d", "epsilon", "mu")
    layout = Layout(panels=("topic", "dataset", "mode"), stub=("sampler", "d", "mu", "epsilon"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "importance_gain").to_dict("records"):
            fields: dict[str, object] = {"topic": record["topic"]}
            if record["dataset"]:
                fields |= {"dataset": TITLES[record["dataset"]], "mode": record["mode"]}
            fields["sampler"] = record["sampler"]
            fields |= {"mu": record["mu"]} if record["topic"] == "gaussian" else {"d": record["d"]}
            row = {**fields, "epsilon": record["pure"]}
            found = ({"weight": record["proved"]} if record["topic"] == "gaussian"
                     else {"proved": record["proved"], "gain": record["pure"] / record["proved"]})  # fmt: skip
            rows += [{**row, "column": name, "variant": record["variant"], "value": value}
                     for name, value in found.items()]  # fmt: skip
        return values_frame(rows)


class CanaryAuditTable(Artefact):
    """What canaries prove, mode by mode."""

    paper = "importance"
    name = "audit"
    kind = "table"
    caption = (
        "Canaries against weighted DP-Lloyd: the loss that is promised, and a lower bound of the true one from draws "
        "of the code (exact intervals at the configured confidence). As done: noise radius and first centres of the "
        "released code; as stated: the density of the text, first centres drawn from the data; consistent: first "
        "centres that do not depend on the data. flagged = 1: the draws refute the promise."
    )
    experiments = ("importance_audit",)
    keys = ("attack",)
    layout = Layout(stub=("attack",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "importance_audit").to_dict("records"):
            note = f"{record['event']}: {record['hits_with']} and {record['hits_without']} of {record['draws']} draws"
            found = {"promised": record["promised"], "shown": record["lower"],
                     "flagged": float(record["lower"] > record["promised"])}  # fmt: skip
            rows += [{"attack": record["attack"], "column": name, "variant": record["variant"],
                      "value": value, "note": note.replace("=", "")} for name, value in found.items()]  # fmt: skip
        return values_frame(rows)


class Coreset(OnData):
    """Measured deviations of costs on samples."""

    name = "coreset"
    kind = "table"
    caption = (
        "Largest of 2 |cost of all - cost of sample| / (cost of all + cost of all at the mean) over sets of 25 "
        "centres, random rows and centres fitted to the sample (mean over repeats, with its error): lower bounds of "
        "the epsilon of a lightweight core-set. independent: draws of the theorem; poisson: the sampler that is used, "
        "of which the theorem does not speak. deviation_times_root: times the root of the size, which the theorem has "
        "constant."
    )
    experiments = ("importance_coreset",)
    keys = ("dataset", "kind", "m")
    layout = Layout(panels=("dataset",), stub=("kind", "m"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "importance_coreset")
        rows = []
        for (variant, dataset, kind, m), part in frame.groupby(["variant", "dataset", "kind", "m"], sort=False):
            row = {"dataset": TITLES[str(dataset)], "kind": kind, "m": m}
            note = not_real(str(part["data_label"].iloc[0]))
            for name in ("random", "fitted"):
                value, count = float(part[name].mean()), len(part)
                error = float(part[name].std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
                rows.append({**row, "column": name, "variant": variant, "value": value, "standard_error": error,
                             "replicates": count, "note": note})  # fmt: skip
            worst = part[["random", "fitted"]].max(axis=1) * np.sqrt(part["m"])
            rows.append({**row, "column": "deviation_times_root", "variant": variant, "value": float(worst.mean()),
                         "note": note})  # fmt: skip
        return values_frame(rows)


class GroupLosses(OnData):
    """Losses and sampling rates of named groups."""

    name = "group_losses"
    kind = "table"
    caption = (
        "Losses after sampling by group of records at one target: quantiles (nats), mean inclusion probability, and "
        "the share of the group within 10 % of the largest loss of all records."
    )
    experiments = ("importance_losses",)
    keys = ("dataset", "sampler", "group")
    layout = Layout(panels=("dataset",), stub=("sampler", "group"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "importance_losses")
        frame = frame[frame["topic"] == "group"]
        rows = []
        key = ["variant", "dataset", "sampler", "group"]
        for (variant, dataset, sampler, group), part in frame.groupby(key, sort=False):
            row = {"dataset": TITLES[str(dataset)], "sampler": sampler, "group": group}
            quantiles = zip(part["place"], part["value"], strict=True)
            found = {f"quantile_{100 * place:g}": value for place, value in quantiles}
            found |= {"mean_rate": float(part["weight"].iloc[0]), "near_largest": float(part["loss"].iloc[0])}
            note = not_real(str(part["data_label"].iloc[0]))
            rows += [{**row, "column": name, "variant": variant, "value": value, "note": note}
                     for name, value in found.items()]  # fmt: skip
        return values_frame(rows)

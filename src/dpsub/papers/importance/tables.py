"""Tables of Fay et al., and further ones: noise, costs, canaries, coresets, losses of groups, and
the gain from a delta."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.importance.labels import APPENDIX, GENUINE_LABELS, MAIN, TITLES
from dpsub.papers.importance.settings import QUANTILES
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.tables import Column, Part, Table, mean, shared

TIMES = "importance_times"
PARTS = ("t_calibration", "t_weights", "t_sampling", "t_dp_lloyd")
PAPERS = PARTS[1:]  # what the paper's totals hold


def of_the_file(name: str) -> Column:
    """Return the column of a number without error: it is computed from the file, and must round to
    the printed one."""
    # Error 0 and one replicate: the number is compared by its printed digits.
    return Column(lambda group: Estimate(float(group[name].iloc[0]), 0.0, 1))


class _OfDataSets(Table):
    """A table of data sets."""

    genuine_labels = ("", *GENUINE_LABELS)
    words: ClassVar[Mapping[str, Mapping[Any, object]]] = {"dataset": TITLES}
    # Entries of a record where a row has no such field: full data have no size.
    absent: ClassVar[Mapping[str, object]] = {
        "m": 0,
        "d": 0,
        "epsilon": math.inf,
        "backend": "vectorised",
    }

    def labels(self, records: Records) -> tuple[str, ...]:
        return ()  # each row says itself on what data it is made


class DataSetFacts(_OfDataSets):
    title = "Table 1. The data sets"
    name = "table1"
    caption = (
        "Data sets: rows before and after removing the outermost 2.5 %, columns, and largest and "
        "mean squared norm of the centred rows. Data other than the paper's are shown and not "
        "compared: synthetic means a stand-in of at most the configured number of rows, scaled to "
        "the printed radius and mean square; subsample and partial mean a part of the original "
        "file."
    )
    keys = ("dataset",)
    layout = Layout(stub=("dataset",))
    parts = (
        Part(
            "importance_data",
            {n: of_the_file(n) for n in ("n_original", "n", "d", "radius", "mean_square")},
        ),
    )


def medians(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the median time of each part of each cell, the total, and its share of full data's, in
    percent."""
    cell = ["dataset", "sampler", "m_paper", "backend"]
    first = dict.fromkeys(("data_label", "m", "n"), "first")
    times = (
        frame.groupby(cell, sort=False)
        .agg({**dict.fromkeys(PARTS, "median"), **first})
        .reset_index()
    )
    # The search for the noise is not in the paper's totals (Tables 2 and 3).
    times["t_total"] = times[list(PAPERS)].sum(axis=1)
    full = (
        times["t_total"]
        .where(times["sampler"] == "full")
        .groupby([times["dataset"], times["backend"]])
    )
    # Only full data have a number here; `max` skips the blanks of the samplers.
    times["rel_total_time"] = 100 * times["t_total"] / full.transform("max")
    times["m_over_n_percent"] = 100 * times["m"] / times["n"]
    return times


def tabulated(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the medians without the parts that full data do not need."""
    times, needless = medians(frame).assign(variant="stated"), list(PARTS[:-1])
    # Full data are neither weighted nor sampled.
    times.loc[times["sampler"] == "full", needless] = math.nan
    return times


class _Times(_OfDataSets):
    """Times of some data sets, in the paper's layout."""

    experiments = (TIMES,)
    caption = (
        "Processor time in seconds of evaluating the weights once, of drawing the sample, and of "
        "DP-Lloyd on the sample at ε = 3 (medians over repetitions), with their total, the total "
        "relative to full data, and the share of records drawn, both in percent. Calibration is "
        "the search for the noise scale, which the paper's totals do not include. Loop: a plain "
        "loop over rows instead of matrix products over blocks of rows. Stand-ins have fewer rows "
        "than the paper's data."
    )
    timed = True
    keys = ("dataset", "sampler", "m", "backend")
    layout = Layout(panels=("dataset", "backend"), stub=("sampler", "m"))


def times(datasets: tuple[str, ...]) -> tuple[Part]:
    """Return the rows of some data sets."""
    columns = (*PARTS, "t_total", "rel_total_time", "m_over_n_percent")
    return (
        Part(
            TIMES,
            dict(zip(columns, columns, strict=True)),
            where={"dataset": datasets},
            keys={"m": "m_paper"},
            prepare=tabulated,
        ),
    )


class FirstComputationTimes(_Times):
    title = "Table 2. Computation times, first four data sets"
    name = "table2"
    parts = times(MAIN)


class LastComputationTimes(_Times):
    title = "Table 3. Computation times, last four data sets"
    name = "table3"
    parts = times(APPENDIX)


def chosen_noise(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with noise: from Table 1, or from data where Table 1 does not suffice or was
    not read."""
    noisy = frame[np.isfinite(frame["epsilon"])]
    # Table 1 has no norms, which opt needs, and the released grid is shown on data only.
    on_data = (noisy["sampler"] == "opt") | (noisy["variant"] == "as_done")
    return noisy[(noisy["data_label"] == "table1") != on_data]


class NoiseScales(_OfDataSets):
    title = "Noise scales of weighted DP-Lloyd"
    name = "noise_scales"
    caption = (
        "Noise of weighted DP-Lloyd at a target ε and an expected sample size m: scale of the "
        "noise on sums and on counts, the resulting loss ψ, and the largest size that meets the "
        "target. As done: weights and grid of the released code, whose loss may exceed the "
        "target. Full data, uniform and coreset sampling need only the radius and mean square of "
        "Table 1; the privacy-optimal sampler needs all norms, taken from the data named. Empty: "
        "this size does not meet the target."
    )
    keys = ("dataset", "sampler", "m", "epsilon")
    layout = Layout(panels=("dataset",), stub=("sampler", "m", "epsilon"))

    def stand_in(self, cell: Mapping[str, str], variant: str) -> str:
        return (
            super().stand_in(cell, variant)
            if cell["sampler"] == "opt" or variant == "as_done"
            else ""
        )

    parts = (
        Part(
            "importance_noise",
            {n: Column(n, empty=True) for n in ("beta_sum", "beta_count", "psi", "m_max")},
            keys={"m": "m_paper"},
            prepare=chosen_noise,
        ),
    )


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles over the repeats of each cell, runs that failed left out, and how
    many these are."""
    groups = frame.groupby(["variant", "dataset", "sampler", "m_paper", "epsilon"], sort=False)
    # Runs without a result are NaN, and quantiles leave them out, as in the released code.
    quartiles = groups["cost"].quantile(np.array([0.25, 0.5, 0.75])).unstack()
    quartiles.columns = pd.Index(["lower", "median", "upper"])
    repeats, first = groups.size(), groups[["data_label", "mean_square"]].first()
    return quartiles.assign(
        failed=repeats - groups["cost"].count(), repeats=repeats, **first
    ).reset_index()


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, those without noise under another name of the sampler."""
    scales = summary(frame)
    return scales.assign(
        # Without noise a sampler is another method, drawn as a level in the figures.
        sampler=scales["sampler"].mask(
            np.isinf(scales["epsilon"]), scales["sampler"] + "_nonprivate"
        )
    )


def failures(group: pd.DataFrame) -> str:
    """Return the note of a median cost."""
    failed, repeats = group[["failed", "repeats"]].iloc[0]
    return f"{failed} of {repeats} runs without a result" if failed else ""


class Costs(_OfDataSets):
    title = "Cost of private k-means"
    name = "costs"
    caption = (
        "Mean squared distance of all rows to the centres found by weighted DP-Lloyd on a sample: "
        "median over repeats with quartiles (lower, upper), by data set, expected size m "
        "(as in the paper; stand-ins are sampled at the same rates), target ε and sampler. As "
        "done: the released code. As stated: the text. Consistent: the repaired algorithm. Rows "
        "without ε have no noise. Empty: this size does not meet the target."
    )
    keys = ("dataset", "sampler", "m", "epsilon")
    layout = Layout(panels=("dataset", "m"), stub=("epsilon",), heads=("sampler",))
    parts = (
        Part(
            "importance_clustering",
            {
                "cost": Column(
                    "median", lower="lower", upper="upper", replicates="repeats", empty=True
                )
            },
            keys={"m": "m_paper"},
            prepare=named,
            note=failures,
        ),
    )


class Coreset(_OfDataSets):
    title = "Cost of coreset samples without privacy"
    name = "coreset"
    caption = (
        "Largest value of 2 |cost of all - cost of sample| / (cost of all + cost of all at the "
        "mean) over sets of 25 centres, either random rows or centres fitted to the sample (mean "
        "over repeats, with standard error). Each is a lower bound on the ε of a lightweight "
        "coreset. Independent: draws as in the theorem. Poisson: the sampler of the experiments, "
        "which the theorem does not cover. Deviation times root: multiplied by the square root of "
        "the size, and constant by the theorem."
    )
    keys = ("dataset", "kind", "m")
    layout = Layout(panels=("dataset",), stub=("kind", "m"))
    parts = (
        Part(
            "importance_coreset",
            {
                "random": mean("random"),
                "fitted": mean("fitted"),
                # Both are lower bounds of the same supremum: the larger one is the better.
                "deviation_times_root": lambda group: float(
                    (group[["random", "fitted"]].max(axis=1) * np.sqrt(group["m"])).mean()
                ),
            },
        ),
    )


def quantile(share: float) -> Column:
    """Return the column of one quantile of the losses of a group of records."""
    # Equal floats: both sides come from `QUANTILES`.
    return Column(lambda group: float(group.loc[group["place"] == share, "value"].iloc[0]))


class GroupLosses(_OfDataSets):
    title = "Privacy loss by group of records"
    name = "group_losses"
    caption = (
        "Privacy loss after sampling at one target, by group of records: quantiles (nats), mean "
        "inclusion probability, and the share of the group whose loss is within 10 % of the "
        "largest loss of any record."
    )
    keys = ("dataset", "sampler", "group")
    layout = Layout(panels=("dataset",), stub=("sampler", "group"))
    parts = (
        Part(
            "importance_losses",
            {
                **{f"quantile_{100 * share:g}": quantile(share) for share in QUANTILES},
                "mean_rate": shared("weight"),
                "near_largest": shared("loss"),
            },
            where={"topic": "group"},
        ),
    )


class DeltaGain(_OfDataSets):
    title = "What a positive δ saves"
    name = "gain"
    caption = (
        "Proved ε (upper bound) at the configured δ for noise calibrated to pure DP, and the pure "
        "target divided by it (gain). Initial centres do not depend on the data. Lloyd: counts "
        "and sums of 10 rounds at the radius and mean square of Table 1. Sums: sums alone, by "
        "dimension. Gaussian: the largest weight at ε = 1 of a record that shifts Gaussian noise "
        "by μ standard deviations at weight 1."
    )
    keys = ("topic", "dataset", "mode", "sampler", "d", "epsilon", "mu")
    layout = Layout(panels=("topic", "dataset", "mode"), stub=("sampler", "d", "mu", "epsilon"))
    parts = (
        Part(
            "importance_gain",
            {
                "proved": Column("proved", empty=True),
                "gain": Column(
                    lambda group: float((group["pure"] / group["proved"]).iloc[0]), empty=True
                ),
            },
            where={"topic": ("lloyd", "sums")},
            keys={"epsilon": "pure"},
        ),
        Part(
            "importance_gain",
            {"weight": "proved"},
            where={"topic": "gaussian"},
            keys={"epsilon": "pure"},
        ),
    )


def hits(group: pd.DataFrame) -> str:
    """Return the event of a canary and how often it was drawn."""
    record = group.iloc[0]
    event = record["event"].replace("=", "")
    return f"{event}: {record['hits_with']} and {record['hits_without']} of {record['draws']} draws"


class CanaryAuditTable(Table):
    title = "Canary audit: promised loss and loss shown by runs of the code"
    name = "audit"
    caption = (
        "Attacks on weighted DP-Lloyd with a canary: the promised loss, and a lower bound on the "
        "true loss from runs of the code (exact intervals at the configured confidence). As done: "
        "noise radius and initial centres of the released code. As stated: the noise density of "
        "the text, initial centres drawn from the data. Consistent: initial centres that do not "
        "depend on the data. Flagged 1: the attack refutes the promise."
    )
    keys = ("attack",)
    layout = Layout(stub=("attack",))

    def number_kind(self, column: str, variant: str) -> str:
        # Each variant is a code of its own, and an attack on it bounds its loss from below.
        return "lower" if column == "shown" else super().number_kind(column, variant)

    parts = (
        Part(
            "importance_audit",
            {"promised": "promised", "shown": "lower", "flagged": "flagged"},
            note=hits,
            prepare=lambda frame: frame.assign(
                flagged=(frame["lower"] > frame["promised"]).astype(float)
                # Flagged means refuted: a lower bound above what is promised.
            ),
        ),
    )

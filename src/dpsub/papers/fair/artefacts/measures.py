"""Everything that is measured at one target: utility, coverage, cost, noise, and the privacy that is proved."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.papers.fair.artefacts.labels import proved_of_noise
from dpsub.papers.fair.artefacts.paired import proportion, with_interval
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import estimate_row

MEANS = ("accuracy", "auc", "log_loss", "coefficient_error", "estimate_error", "interval_width", "gradients")
PRIVACY = ("noise_multiplier", "epsilon_lower", "epsilon_upper", "gradients_expected")
KEY = ["variant", "dataset", "target_epsilon", "sampler"]


class Measures(Artefact):
    """Utility, cost and privacy of every sampler on every task."""

    paper = "fair"
    name = "measures"
    kind = "table"
    caption = (
        "Utility on the test part of each seed's split (linear model: error of coefficients; bootstrap: error, width "
        "and coverage of 95 % intervals for the population mean), distinct gradients evaluated a step as observed and "
        "as expected, the noise multiplier (scale of the noise on the sum over the norm bound), and at this noise the "
        "epsilon that an attack attains (lower) and that is proved (upper) at delta of the target under substitution. "
        "Means over seeds with standard errors and 95 % intervals (Student's; of coverage Clopper and Pearson's). "
        "The non-private rows clip but add no noise. The papers' pair (consistent) is no guarantee: its "
        "upper epsilon says what its noise is worth."
    )
    experiments = ("fair_comparison",)
    keys = ("dataset", "sampler", "epsilon")
    layout = Layout(panels=("dataset", "epsilon"), stub=("sampler",), heads=("column",))

    def number_kind(self, column: str, variant: str) -> str:
        return proved_of_noise(column, variant)

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "fair_comparison")
        rows = []
        for (variant, dataset, _, sampler), part in frame.groupby(KEY, sort=False, dropna=False):
            epsilon = float(part["target_epsilon"].iloc[0])
            target = {} if math.isnan(epsilon) else {"epsilon": epsilon}
            row = {"dataset": str(dataset), **target, "sampler": str(sampler)}
            for measure in MEANS:
                found = part[measure].dropna().to_numpy()
                if found.size:
                    estimate = with_interval(statistics.mean(found))
                    rows.append(estimate_row(row, measure, str(variant), estimate))
            if part["covered"].notna().all():
                rows.append(estimate_row(row, "coverage", str(variant), proportion(part["covered"].to_numpy())))
            rows += [
                {**row, "column": name, "variant": variant, "value": float(part[name].iloc[0])}
                for name in PRIVACY
                if part[name].notna().all()
            ]
        return values_frame(rows)

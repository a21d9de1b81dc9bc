"""Table of winners: every sampler's first measure at one target, paired with Poisson, and who ties for the best."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.fair.artefacts.labels import label_of, listed
from dpsub.papers.fair.artefacts.paired import REFERENCE, Group, first_measure, groups, with_interval
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import estimate_row


class Winners(Artefact):
    """Which sampler gives the smallest loss at the same privacy, and which are not told apart from it."""

    paper = "fair"
    name = "winners"
    kind = "table"
    caption = (
        "Samplers at one target for all steps together, noise by the proved bound under substitution (rigorous) and by "
        "the papers' pair, which is no guarantee (consistent). Loss: test log loss for classification, Euclidean error "
        "of the coefficients or of the mean otherwise; means over seeds with standard errors and 95 % Student "
        "intervals. Differences from Poisson are paired by seed; each interval by itself has the level 95 %. A sampler "
        "is among the best (1) unless another one is shown to be better by Holm's procedure over all pairs of samplers "
        "of a block at 5 %; more than one 1 in a block is a tie."
    )
    experiments = ("fair_comparison",)
    keys = ("dataset", "epsilon", "sampler")
    layout = Layout(panels=("dataset", "epsilon"), stub=("sampler",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for group in groups(self.needed(records, "fair_comparison")):
            rows += _rows(group)
        return values_frame(rows)


def _rows(group: Group) -> list[dict[str, Any]]:
    rows = []
    ranks = group.ranks()
    best = [name for name in group.samplers if ranks[name] == 1]
    tie = f"the best: {listed(map(label_of, best))}" + (", not told apart" if len(best) > 1 else "")
    for sampler in group.samplers:
        row = {"dataset": group.dataset, "epsilon": group.epsilon, "sampler": sampler}
        loss = with_interval(statistics.mean(group.losses[sampler].to_numpy()))
        note = first_measure(group.dataset).replace("_", " ")
        rows.append(estimate_row(row, "loss", group.variant, loss, note))
        if sampler != REFERENCE and REFERENCE in group.samplers:
            difference = group.difference(sampler)
            rows.append(estimate_row(row, "difference_to_poisson", group.variant, difference))
        rows.append({**row, "column": "among_the_best", "variant": group.variant,
                     "value": float(ranks[sampler] == 1), "note": tie})  # fmt: skip
    return rows

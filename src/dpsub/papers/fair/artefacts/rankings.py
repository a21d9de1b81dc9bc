"""The papers' ranking of samplers against the ranking at equal proved privacy."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.papers.fair.artefacts.labels import VARIANT_NAMES, dataset_label, label_of
from dpsub.papers.fair.artefacts.paired import REFERENCE, Group, groups
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, draw_panels, where
from dpsub.reproduce.layout import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENTS = ("fair_comparison", "linear_regression", "adult_logistic")
VARIANTS = ("stated", "consistent", "rigorous")
_MARKS = {"stated": ("s", "#999999"), "consistent": ("o", "#0072B2"), "rigorous": ("D", "#D55E00")}


def papers_losses(records: Records) -> dict[str, pd.DataFrame]:
    """Return the loss of each sampler as the main paper compares them, at equal epsilon' a query, a row a seed.

    The linear model at the smallest epsilon', where noise counts most (error of all coefficients together), and Adult
    (training log loss, the one that the paper shows).
    """
    linear = records["linear_regression"]
    linear = linear[(linear["variant"] == "stated") & (linear["sampler"] != "nonprivate")]
    linear = linear[linear["epsilon_amplified"] == linear["epsilon_amplified"].min()]
    errors = linear[[f"error_beta{i}" for i in range(3)]].to_numpy()
    adult = records["adult_logistic"]
    adult = adult[(adult["variant"] == "stated") & (adult["sampler"] != "nonprivate") & (adult["solver"] == "dp_sgd")]
    return {
        "linear": linear.assign(loss=np.sqrt((errors**2).sum(axis=1))).pivot(
            index="replicate", columns="sampler", values="loss"
        ),
        "adult": adult.pivot(index="replicate", columns="sampler", values="train_loss"),
    }


def in_variants(records: Records) -> list[Group]:
    """Return the groups of the fair comparison, and for each of its targets the paper's own as variant `stated`."""
    fair = list(groups(records["fair_comparison"]))
    papers = papers_losses(records)
    found: list[Group] = []
    for group in fair:
        if group.variant == "rigorous" and group.dataset in papers:
            losses = papers[group.dataset]
            shared = [name for name in group.samplers if name in losses.columns]
            found.append(Group("stated", group.dataset, group.epsilon, losses[shared], group.frame))
    return found + fair


class Rankings(Artefact):
    """Ranks with ties, and how many pairs of samplers change their order."""

    paper = "fair"
    name = "rankings"
    kind = "table"
    caption = (
        "Rank of each sampler: 1 plus the number of samplers that are shown to be better by Holm's procedure over all "
        "pairs at 5 %, so that what is not told apart shares a rank. Stated: the main paper's experiment, equal "
        "epsilon' a query (the same for all targets; linear model and Adult). Consistent: noise for which the papers' "
        "pair meets the target. Rigorous: noise for which the target is proved. Pairs separated: how many pairs of "
        "samplers are told apart; pairs reversed: how many of these the rigorous comparison tells apart the other way."
    )
    experiments = EXPERIMENTS
    keys = ("dataset", "epsilon", "sampler")
    layout = Layout(panels=("dataset", "epsilon"), stub=("sampler",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        for experiment in EXPERIMENTS:
            self.needed(records, experiment)
        rows: list[dict[str, Any]] = []
        found = in_variants(records)
        proved = {(g.dataset, g.epsilon): g.separated() for g in found if g.variant == "rigorous"}
        for group in found:
            shown, ranks = group.separated(), group.ranks()
            for sampler in group.samplers:
                row = {"dataset": group.dataset, "epsilon": group.epsilon, "sampler": sampler}
                rows.append({**row, "column": "rank", "variant": group.variant, "value": ranks[sampler]})
            row = {"dataset": group.dataset, "epsilon": group.epsilon}
            rows.append({**row, "column": "pairs_separated", "variant": group.variant,
                         "value": sum(shown.values())})  # fmt: skip
            if group.variant != "rigorous" and (group.dataset, group.epsilon) in proved:
                other = proved[group.dataset, group.epsilon]
                turned = [(a, b) for a, b in itertools.permutations(group.samplers, 2)
                          if shown[a, b] and other.get((b, a), False)]  # fmt: skip
                note = "; ".join(f"{label_of(b)} now before {label_of(a)}" for a, b in turned)
                rows.append({**row, "column": "pairs_reversed", "variant": group.variant,
                             "value": len(turned), "note": note})  # fmt: skip
        return values_frame(rows)


class RankingsFigure(Artefact):
    """Paired differences from Poisson in the three variants, a panel a data set."""

    paper = "fair"
    name = "figure_rankings"
    kind = "figure"
    caption = (
        "Paired difference of the loss from Poisson, in percent of Poisson's, at each data set's smallest target, with "
        "95 % Student intervals over seeds; left of the line is better than Poisson. Squares: the main paper's own "
        "comparison at equal epsilon' a query; circles: noise for which the papers' pair meets the target, no "
        "guarantee (for Poisson a pair of data sets that differ by one record more, for the others by a shift both "
        "ways, which needs more noise); diamonds: noise for which the target is proved."
    )
    experiments = EXPERIMENTS

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "fair_comparison")
        found = [group for group in in_variants(records) if REFERENCE in group.samplers]
        names = dict.fromkeys(group.dataset for group in found)
        least = {name: min(group.epsilon for group in found if group.dataset == name) for name in names}
        numbers = pd.DataFrame([row for g in found if g.epsilon == least[g.dataset] for row in _relative(g)])
        panels = [Panel(f"{dataset_label(dataset, frame)}, ε = {epsilon:g}",
                        [partial(_differences, part=where(numbers, dataset=dataset))])
                  for dataset, epsilon in least.items()]  # fmt: skip
        figure = draw_panels(panels, xlabel="difference from Poisson (%)", labels=self.labels(records))
        return figure, numbers


def _differences(axes: Axes, part: pd.DataFrame) -> None:
    """Draw points with intervals across, a line a sampler, the variants one below the other."""
    order = list(part["sampler"].unique())
    for place, (variant, (marker, colour)) in enumerate(_MARKS.items()):
        chosen = where(part, variant=variant)
        at = [order.index(name) + 0.22 * (place - 1) for name in chosen["sampler"]]
        errors = [chosen["percent"] - chosen["lower"], chosen["upper"] - chosen["percent"]]
        axes.errorbar(chosen["percent"], at, xerr=errors, fmt=marker, color=colour, markersize=3.5, elinewidth=0.8,
                      capsize=1.5, label=VARIANT_NAMES[variant])  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_yticks(range(len(order)), [label_of(name).replace(",", ",\n") for name in order])
    for text, name in zip(axes.get_yticklabels(), order, strict=True):
        text.set_fontsize(5 if ":" in name else 7)
    axes.invert_yaxis()


def _relative(group: Group) -> list[dict[str, Any]]:
    base = float(group.losses[REFERENCE].mean())
    rows = []
    for sampler in group.samplers:
        if sampler != REFERENCE:
            found = group.difference(sampler)
            percent = {name: 100 * getattr(found, name) / base for name in ("value", "lower", "upper")}
            rows.append({"dataset": group.dataset, "epsilon": group.epsilon, "variant": group.variant,
                         "sampler": sampler, "percent": percent["value"], "lower": percent["lower"],
                         "upper": percent["upper"]})  # fmt: skip
    return rows

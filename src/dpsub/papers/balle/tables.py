"""The bounds of Table 1, evaluated, and their tightness."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.balle.small_universes import ROWS
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table

# Theorems 10 and 11 have one sum: the base profile's groups, weighted by the Binomial(m, 1/n)
# copies of the record.
SUM = r"\sum_{k=1}^m \binom{m}{k} n^{-k} (1-\frac{1}{n})^{m-k} \delta_k(\epsilon)"
# theorem -> eta, delta'
FORMULAS = {
    "Theorem 8": (r"\gamma", r"\gamma\,\delta(\epsilon)"),
    "Theorem 9": (r"m/n", r"(m/n)\,\delta(\epsilon)"),
    "Theorem 10": (r"1-(1-\frac{1}{n})^m", SUM),
    "Theorem 11": (r"1-(1-\frac{1}{n})^m", SUM),
    "Theorem 14": (
        r"\gamma",
        r"\gamma\beta\,\delta(\epsilon) + \gamma(1-\beta) (\sum_{k=1}^{n-1} "
        r"\tilde\gamma_k\,\delta(\epsilon_k) + "
        r"\tilde\gamma_n)",
    ),
}
# Elsewhere white-box and black-box groups give one number, and one row is enough.
GROUPED = ("Theorem 10", "Theorem 11", "Theorem 2 on triples")  # rows in which groups occur
RELATED = ("theorem", "sampler", "base_relation", "relation")
SMALLEST = 1e-12  # no share of a smaller bound is taken
ROUNDING = 1e-14  # a bound below this is 0


def related(theorem: str) -> dict[str, str]:
    """Return the key fields of a theorem."""
    sampler, base, result = ROWS[theorem]
    return dict(zip(RELATED, (theorem, sampler, base.value, result.value), strict=True))


def with_share(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the share of each bound that is reached, theorem by theorem, where neighbours do not
    grow."""
    # grows: Theorem 11 also compares with n + 1 records, where the n-record bound still holds but
    # is not meant to be attained.
    known = frame[(frame["bound"] > SMALLEST) & (frame["grows"] == 0)]
    # The larger of both directions: a bound is for either order of the neighbours.
    known = known.assign(share=known[["exact", "reverse"]].max(axis=1) / known["bound"])
    known = known.sort_values(
        "theorem", key=lambda names: names.map(list(ROWS).index), kind="stable"
    )
    return known.assign(
        **{
            name: known["theorem"].map(lambda theorem, name=name: related(theorem)[name])
            for name in RELATED
        }
    )


def attained(chosen: Callable[[pd.DataFrame], pd.Series]) -> Column:
    """Return the column of the largest share among the chosen records of a theorem."""
    return Column(
        lambda group: group.loc[chosen(group), "share"].max(),
        note=lambda group: f"largest exact/bound of {int(chosen(group).sum())} points",
    )


def where_groups_matter(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the grid without groups of theorems that have none, eta at its first point only."""
    # eta depends on no epsilon: it is shown once, in the row of the first.
    first = frame["epsilon_amplified"] == frame["epsilon_amplified"].min()
    return frame.assign(eta=frame["eta"].where(first))[
        (frame["groups"] != "black_box") | frame["theorem"].isin(GROUPED)
    ]


class AmplificationBounds(Table):
    """The rows, their values on a grid of epsilon', and the largest share of the bound on tiny
    universes."""

    title = "Table 1. Privacy amplification bounds"
    name = "table1"
    caption = (
        "Privacy amplification by subsampling: the adjacency relation of the base profile "
        "(between samples), that of the result (between data sets), η in ε′ = log(1 + η (exp(ε) - "
        "1)), and δ′. First the formulas, each with the largest share of the bound that an exact "
        "δ′ attains on universes of 5 records: for membership mechanisms, for other mechanisms, "
        "and for all of them at ε > 0. Then the bounds at n = 1000, m = γ n and sensitivity / "
        "scale = 1, with white-box or black-box group profiles. Two rows are ours: from an "
        "add/remove profile, γ (β δ₂(ε) + (1 - β) δ(ε)); and by sample size, γ times the sum over "
        "k of γ_k δ(log(α′ + (α - α′) γ (n/k - 1)/(1 - γ))), the tight form of Theorem 14."
    )
    # Its rows are statements, from that on eta of Theorem 8 to the bound of Theorem 14.
    statements = tuple(f"B{number:03d}" for number in range(15, 25))
    keys: ClassVar[tuple[str, ...]] = (
        *RELATED,
        "sampling_rate",
        "mechanism",
        "groups",
        "epsilon_amplified",
    )
    layout = Layout(
        panels=("sampling_rate", "mechanism", "groups"),
        stub=RELATED,
        heads=("epsilon_amplified", "column"),
    )
    parts = (
        Part(
            "balle_enumeration",
            {
                "attained_by_membership": attained(
                    lambda group: group["kernel"].str.endswith("membership")
                ),
                "attained_by_others": attained(
                    lambda group: ~group["kernel"].str.endswith("membership")
                ),
                "attained_at_positive_epsilon": attained(lambda group: group["epsilon"] > 0),
            },
            # Consistent: every bound is evaluated with the exact profile of the kernel, at negative
            # epsilon as well (erratum BL7).
            variants=("consistent",),
            variant="rigorous",
            keys={"epsilon_amplified": None},
            prepare=with_share,
        ),
        Part(
            "balle_bounds",
            {
                "eta": Column("eta", keys={"epsilon_amplified": ""}),
                "delta_amplified": "delta_amplified",
            },
            prepare=where_groups_matter,
        ),
    )

    def formulas(self) -> list[dict[str, str]]:
        return [
            {**related(theorem), "column": column, "printed": formula}
            for theorem, pair in FORMULAS.items()
            for column, formula in zip(
                ("eta_formula", "delta_amplified_formula"), pair, strict=True
            )
        ]


def with_ratio(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the optima over their bounds, those of vanishing bounds left open, and the size under
    its name."""
    # A size below 1 is a rate; and a bound of rounding's size is 0, of which no ratio is taken.
    zero, poisson = frame["bound"] <= ROUNDING, frame["size"] < 1
    return frame.assign(
        epsilon=frame["share"] * frame["epsilon0"],
        rate=frame["size"].where(poisson),
        m=frame["size"].mask(poisson),
        bound=frame["bound"].mask(zero, 0.0),
        optimum=frame["optimum"].mask(zero, 0.0),
        ratio_to_bound=frame["optimum"] / frame["bound"].mask(zero),
        # Primal and dual optimum of one linear programme: their distance is its numerical error.
        gap=np.abs(frame["dual"] - frame["optimum"]),
    )


class Optimum(Table):
    """Bound, largest loss of any mechanism by linear programming, and their ratio."""

    title = "Each bound compared with the largest loss of any mechanism"
    name = "optimum"
    caption = (
        "Bounds for all (ε₀, δ₀)-DP base mechanisms on designs of n = 4 records, compared with "
        "the largest loss of any such mechanism, at base ε = 0, ε₀/2 and ε₀. The loss is the "
        "optimum of a linear program for a single event, and the dual has the same optimum. A "
        "ratio of 1 means that the bound is tight for the design; no ratio: both are 0."
    )
    keys = ("theorem", "n", "rate", "epsilon0", "delta0", "epsilon", "m")
    layout = Layout(
        panels=("epsilon0", "delta0"),
        stub=("theorem", "n", "rate", "m"),
        heads=("epsilon", "column"),
    )
    parts = (
        Part(
            "balle_optimum",
            {name: Column(name, empty=True) for name in ("bound", "optimum", "ratio_to_bound")},
            prepare=with_ratio,
            note="worst direction: {direction}, duality gap {gap:.0e}",
        ),
    )

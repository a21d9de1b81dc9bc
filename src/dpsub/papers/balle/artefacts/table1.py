"""Table 1: eta and delta' of every sampler and relation, as formulas, evaluated, and how tight they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

SUM = r"\sum_{k=1}^m \binom{m}{k} n^{-k} (1-\frac{1}{n})^{m-k} \delta_k(\epsilon)"
# theorem -> eta, delta'
FORMULAS = {
    "Theorem 8": (r"\gamma", r"\gamma\,\delta(\epsilon)"),
    "Theorem 9": (r"m/n", r"(m/n)\,\delta(\epsilon)"),
    "Theorem 10": (r"1-(1-\frac{1}{n})^m", SUM),
    "Theorem 11": (r"1-(1-\frac{1}{n})^m", SUM),
    "Theorem 14": (
        r"\gamma",
        r"\gamma\beta\,\delta(\epsilon) + \gamma(1-\beta) (\sum_{k=1}^{n-1} \tilde\gamma_k\,\delta(\epsilon_k) + "
        r"\tilde\gamma_n)",
    ),
}
RELATIONS = {
    "Theorem 8": ("poisson", "add_remove", "add_remove"),
    "Theorem 9": ("wor", "substitute", "substitute"),
    "Theorem 10": ("wr", "substitute", "substitute"),
    "Theorem 11": ("wr", "substitute", "add_remove"),
    "Theorem 14": ("poisson", "substitute", "substitute"),
    "Theorem 2 on triples": ("poisson", "add_remove", "substitute"),
    "Theorem 2 given the size": ("poisson", "substitute", "substitute"),
}
GROUPED = ("Theorem 10", "Theorem 11", "Theorem 2 on triples")  # rows in which groups occur
FULL = 1 - 1e-9  # share of a bound from which it counts as attained


class Table1(Artefact):
    """The rows, their values on a grid of epsilon', and the largest share of the bound on tiny universes."""

    paper = "balle"
    name = "table1"
    kind = "table"
    caption = (
        "Privacy amplification by subsampling: the relation between samples of the base profile, the relation between "
        "data sets of the result, eta in epsilon' = log(1 + eta (exp(epsilon) - 1)), and delta'. First as formulas, "
        "with the largest share of delta' that an exact loss reaches on universes of 5 records: of membership, of "
        "other mechanisms, and of all at epsilon > 0. "
        "Then evaluated at n = 1000, m = gamma n and ratio 1; groups white-box or black-box. Two rows are ours: on "
        "triples gamma (beta delta_2(epsilon) + (1 - beta) delta(epsilon)) for a base profile under adding and "
        "removing, and given the size gamma times the sum over k of gamma_k delta(log(alpha' + (alpha - alpha') gamma "
        "(n/k - 1)/(1 - gamma))), the tight form of Theorem 14."
    )
    experiments = ("balle_bounds", "balle_enumeration")
    keys = ("theorem", "sampler", "base_relation", "relation", "sampling_rate", "mechanism", "groups",
            "epsilon_amplified")  # fmt: skip
    layout = Layout(
        panels=("sampling_rate", "mechanism", "groups"), stub=("theorem", "sampler", "base_relation", "relation"),
        heads=("epsilon_amplified", "column"),
    )  # fmt: skip

    def formulas(self) -> list[dict[str, str]]:
        return [
            {**_key(theorem), "column": column, "printed": formula}
            for theorem, pair in FORMULAS.items()
            for column, formula in zip(("eta_formula", "delta_amplified_formula"), pair, strict=True)
        ]

    def values(self, records: Records) -> pd.DataFrame:
        tiny = self.needed(records, "balle_enumeration", variants=("consistent",))
        grid = self.needed(records, "balle_bounds", variants=("stated",))
        return values_frame([*_tightness(tiny), *_evaluated(grid)])


def _key(theorem: str, **more: str) -> dict[str, str]:
    sampler, base, result = RELATIONS[theorem]
    return {"theorem": theorem, "sampler": sampler, "base_relation": base, "relation": result, **more}


def _tightness(tiny: pd.DataFrame) -> Iterator[dict[str, Any]]:
    exact = tiny[["exact", "reverse"]].max(axis=1)
    known = tiny[(tiny["bound"] > FULL * 1e-12) & (tiny["grows"] == 0)]
    share = (exact / tiny["bound"]).loc[known.index]
    for theorem in RELATIONS:
        here = known["theorem"] == theorem
        positive = here & (known["epsilon"] > 0)
        member = known["kernel"].str.endswith("membership")
        for column, rows in (
            ("attained_by_membership", here & member),
            ("attained_by_others", here & ~member),
            ("attained_at_positive_epsilon", positive),
        ):
            yield {
                **_key(theorem), "column": column, "variant": "rigorous",
                "value": float(share[rows].max()), "note": f"largest exact/bound of {int(rows.sum())} points",
            }  # fmt: skip


def _evaluated(grid: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for record in grid.to_dict("records"):
        theorem, target = record["theorem"], record["epsilon_amplified"]
        if record["groups"] == "black_box" and theorem not in GROUPED:
            continue
        place = {name: record[name] for name in ("sampling_rate", "mechanism", "groups")}
        if target == grid["epsilon_amplified"].min():
            yield {**_key(theorem, **place), "column": "eta", "variant": "stated", "value": record["eta"]}
        yield {
            **_key(theorem, **place, epsilon_amplified=target), "column": "delta_amplified", "variant": "stated",
            "value": record["delta_amplified"],
        }  # fmt: skip

"""Table I, its clock times, and the paper's statements in single cases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.brdp.releases import SHORT
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table

# The paper states no unit of time (Table I): only quotients can be compared.
RATIOS = {
    "BRDP/DP, lap": ("lap_br", "lap_dp"),
    "BRDP/DP, gau": ("gau_br", "gau_dp"),
    "SMP/BRDP, lap": ("lap_smp", "lap_br"),
    "SMP/BRDP, gau": ("gau_smp", "gau_br"),
}
"""Runtimes that the paper's numbers put in proportion."""


class PrivacyOfManyReleases(Table):
    """Composed epsilon of the six methods, by the paper's accountants and exactly."""

    title = "Table I. Privacy after 1000 releases"
    name = "table1"
    statements = ("T1.",)
    caption = (
        "ε after 1000 releases with ε = 0.1 each. As stated: Theorem 3, in closed form for "
        "Gaussian kernels and by two conversions of Rényi divergences for Laplace kernels. "
        "Rigorous: lower and upper bound of the exact value. SMP methods compose at the inner "
        "budget and are amplified once, which is valid only if all queries use the same sample; "
        "they have no exact value. The low-split row is Laplace noise that spends 0.09 on its "
        "kernel: it reproduces the printed numbers but accepts less often than plain Laplace "
        "noise. Set by us, as the paper does not state them: sensitivity 1, bound 3, δ = 10⁻⁵ per "
        "query, and a count over 1,000 records for the sampling rate."
    )
    keys = ("method", "accountant", "delta")
    words: ClassVar[Mapping[str, Mapping[object, object]]] = {"method": SHORT}
    # A panel each column, so that stated and exact epsilons share the rows of their method.
    layout = Layout(panels=("column",), stub=("method", "accountant"), heads=("delta",))
    parts = tuple(
        Part(
            "brdp_table1",
            {"epsilon": column},
            variants=(variant,),
            keys={"accountant": "conversion"},
            note="acceptance {acceptance:.4g}, q {rate:.4g}, p {sampling_rate:.4g}",
        )
        # A formula has one value, exact accounting a bracket.
        for variant, column in (
            ("stated", "upper"),
            ("rigorous", Column("upper", lower="lower", upper="upper")),
        )
    )


def slope(group: pd.DataFrame) -> float:
    """Return the slope of log(seconds) over log(T), NaN for one T."""
    if group["n_compositions"].nunique() < 2:
        return math.nan
    return float(np.polyfit(np.log(group["n_compositions"]), np.log(group["seconds"]), 1)[0])


def quotients(times: pd.DataFrame) -> pd.DataFrame:
    """Return the quotients `RATIOS` of seconds for the parameters and Theorem 3 at the largest
    T."""
    # Table I is about 1000 releases, the largest T of the run.
    last = times.loc[times["task"] == "theorem3", "n_compositions"].max()
    counted = (times["task"] == "parameters") | (
        (times["task"] == "theorem3") & (times["n_compositions"] == last)
    )
    seconds = times[counted].groupby("method")["seconds"].sum()
    rows = [
        (name, "stated", seconds[slower] / seconds[faster])
        for name, (slower, faster) in RATIOS.items()
    ]
    return pd.DataFrame(rows, columns=["method", "variant", "quotient"])


class AccountingTimes(Table):
    """Clock times of choosing parameters and of composing."""

    title = "Table I. Run times of the accounting"
    name = "table1_times"
    timed = True
    caption = (
        "Seconds to choose the parameters of a release, to compute ε by Theorem 3, and to bracket "
        "the exact ε, by method and number of releases T; slope of log time against log T; and "
        "ratios of total run times at T = 1000, to compare with the printed 5.14, 5.74, 63.8 and "
        "66.6 (the paper states no unit)."
    )
    keys = ("method", "task", "n_compositions")
    words: ClassVar[Mapping[str, Mapping[object, object]]] = {"method": SHORT}
    layout = Layout(panels=("column",), stub=("method",), heads=("task", "n_compositions"))
    parts = (
        # The slope is over all T and has none itself.
        Part("brdp_times", {"seconds": "seconds"}),
        Part("brdp_times", {"log_log_slope": slope}, keys={"n_compositions": None}),
        Part("brdp_times", {"quotient": "quotient"}, prepare=quotients),
    )


class Statements(Table):
    """Single cases of the paper's statements, claimed and true."""

    title = "Statements in single cases: claimed and true values"
    name = "statements"
    caption = (
        "Single cases of the paper's statements: the claimed value (as stated) and the true value "
        "(rigorous). Theorem 1 mean: E exp(-loss), which is 1 for every privacy loss. Theorem 1 "
        "weight: probability of the shifted loss. Proposition 3 and Theorem 2: δ promised, and δ "
        "attained with the parameters of Algorithm 2 (Algorithm 1 if a scale is given) and of "
        "Theorem 2. Degenerate: δ as the kernel's ε tends to 0. q: δ of one kernel by recycling "
        "rate (as stated: without recycling). Equation 10: acceptance under the printed "
        "objective. Algorithm 3: the printed loop. Remark 5: terms of Theorem 3, and those above "
        "10⁻²⁰. Propositions 6 and 7: sampling error and acceptance on a sample, compared with "
        "simulation. D is the sensitivity."
    )
    keys = ("statement", "case")
    layout = Layout(stub=("statement", "case"), heads=("column",))
    parts = (
        # One record holds both numbers: the claimed one is the stated variant, the true one
        # rigorous.
        Part("brdp_checks", {"value": "claimed"}),
        Part("brdp_checks", {"value": "true"}, variant="rigorous"),
    )

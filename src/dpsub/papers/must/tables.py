"""Tables of the MUST paper, from records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.must.algorithm1 import round_off
from dpsub.papers.must.settings import CONSISTENT_NOISE, METRICS, MUST, PRINTED_SCALE, SIX
from dpsub.reproduce.artefact import Quote
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.records import NO_FIRST_STAGE
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.tables import (
    Column,
    Part,
    Table,
    deviation,
    difference,
    mean,
    root_mean_square,
    shared,
)

# The six columns of Table 3, all of them points of the grid.
TABLE3_EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)
RANKS = {"sampler": ("none", "nonprivate", *SIX)}
"""Order of the samplers; rows without a sampler or without noise come first."""

# sampler -> (eta, delta'), delta_u being the group profile of u copies at the base epsilon
FORMULAS = {
    "poisson": (r"\gamma", r"\gamma\,\delta"),
    "wor": (r"m/n", r"(m/n)\,\delta"),
    "wr": (
        r"1-(1-\frac{1}{n})^m",
        r"\sum_{u=1}^m \binom{m}{u} n^{-u} (1-\frac{1}{n})^{m-u} "
        r"\delta_u",
    ),
    "must_wo": (
        r"1-(1-\frac{1}{n})^m",
        r"\sum_{u=1}^m \binom{m}{u} n^{-u} (1-\frac{1}{n})^{m-u} "
        r"\delta_u",
    ),
    "must_ow": (
        r"\frac{b}{n}(1-(1-\frac{1}{b})^m)",
        r"\frac{b}{n} \sum_{u=1}^m \binom{m}{u} b^{-u} (1-\frac{1}{b})^{m-u} \delta_u",
    ),
    "must_ww": (
        r"\sum_{j=1}^b P_j (1-(1-\frac{j}{b})^m)",
        r"\sum_{j=1}^b P_j \sum_{u=1}^m \binom{m}{u} (\frac{j}{b})^u (1-\frac{j}{b})^{m-u} "
        r"\delta_u",
    ),
}


class MustTable(Table):
    """A table whose rows stand in the order of variants, then of samplers as Table 9 has them."""

    order: ClassVar[tuple[str, ...]] = ("variant", "sampler")
    absent: ClassVar[Mapping[str, object]] = {"b": NO_FIRST_STAGE}

    def ranks(self) -> Mapping[str, tuple[object, ...]]:
        return RANKS


def departure(group: pd.DataFrame) -> float:
    """Return the largest |epsilon' - log(1 + eta (exp(epsilon) - 1))| over the grid, in nats."""
    # Evaluated here, apart from the library's own epsilon', so that the departure can fail.
    formula = np.log1p(group["eta"].iloc[0] * np.expm1(group["epsilon"].to_numpy()))
    return float(np.max(np.abs(formula - group["epsilon_amplified"].to_numpy())))


class AmplificationFormulas(MustTable):
    title = "Table 2. Amplification formulas of the six samplers"
    name = "table2"
    caption = (
        "Inclusion probability η and amplified δ′ of each sampler; ε′ = log(1 + η (exp(ε) - 1)) "
        "for all of them. P_j is the Binomial(b, 1/n) probability that a record has j copies "
        "after the first stage, and δ_u is the group profile of u copies. η is for the sizes of "
        "this run. The departure is the largest |ε′ - formula| over the grid of ε, in nats."
    )
    keys = ("sampler",)
    parts = (Part("amplification_grid", {"eta": shared("eta"), "departure": departure}),)

    def formulas(self) -> list[dict[str, str]]:
        return [
            {"sampler": sampler, "column": column, "printed": formula}
            for sampler, pair in FORMULAS.items()
            for column, formula in zip(
                ("eta_formula", "delta_amplified_formula"), pair, strict=True
            )
        ]


class AmplifiedMechanisms(MustTable):
    title = "Table 3. Amplification of the Laplace and Gaussian mechanisms"
    name = "table3"
    statements = ("table3_",)
    caption = (
        "Privacy parameters of the Laplace and Gaussian mechanisms before and after subsampling, "
        "by sampler and base ε (in nats). The values are exact, so they have no intervals."
    )
    keys = ("ratio", "mechanism", "sampler", "epsilon")
    layout = Layout(panels=("ratio", "mechanism"), stub=("sampler", "column"), heads=("epsilon",))
    together = ("ratio", "mechanism", "epsilon")
    parts = (
        Part(
            "amplification_grid",
            # The first row of each panel, before subsampling: one for all samplers.
            {name: shared(name) for name in ("epsilon", "delta")},
            where={"epsilon": TABLE3_EPSILONS},
            constants={"sampler": "none"},
        ),
        Part(
            "amplification_grid",
            {name: name for name in ("epsilon_amplified", "delta_amplified")},
            where={"epsilon": TABLE3_EPSILONS},
        ),
    )


def outside_the_rule(group: pd.DataFrame) -> str:
    """Return the note of a noise scale whose epsilon the rule of calibration does not cover."""
    record = group.iloc[0]
    return (
        ""
        if record["epsilon_valid"]
        else (f"epsilon = {record['epsilon']:.3g} is outside the rule's range")
    )


# Sigma is compared as a closed form, so that every printed digit counts; b = 70 is computed though
# no column of the table has it (erratum E15).
class QueryNoise(MustTable):
    title = "Table 4. Experiment 1: noise and δ′ of one query"
    name = "table4"
    statements = ("table4_",)
    caption = (
        "Scale of the Gaussian noise on the mean and on the variance (in the units of each "
        "statistic) and δ′ of one query in experiment 1, by sampler and first-stage size b. The "
        "values are exact, so they have no intervals."
    )
    keys = ("sampler", "b")
    layout = Layout(panels=("column",), stub=("sampler",), heads=("b",))
    parts = tuple(
        Part(
            "noise_calibration",
            {quantity: source},
            where={"table": "table4", "statistic": statistic},
            note=outside_the_rule,
        )
        for quantity, source, statistic in (
            ("sigma_mean", "sigma", "mean"),
            ("sigma_variance", "sigma", "variance"),
            # delta' is free of the sensitivity, so that it is the same for both statistics.
            ("delta_amplified", "delta_amplified", "mean"),
        )
    )


def expected_variance(group: pd.DataFrame) -> Estimate:
    """Return the exact expectation of the variance estimate, which stands next to as many
    replicates."""
    return Estimate(float(group["expected_variance"].iloc[0]), 0.0, len(group))


# Means and standard deviations are over the 200 data sets (divisor 199), and compared within their
# Monte Carlo error.
class QueryEstimates(MustTable):
    title = "Table 5. Experiment 1: estimates of mean and variance"
    name = "table5"
    statements = ("table5_",)
    caption = (
        "Mean and standard deviation, over repeated data sets, of the released mean and variance "
        "in experiment 1 (true values 0 and 1), with standard errors, and the exact expectation "
        "of the variance estimate."
    )
    keys = ("parameter", "sampler", "b")
    layout = Layout(panels=("parameter",), stub=("sampler", "b"), heads=("column",))
    parts = tuple(
        Part(
            "subset_statistics",
            {"mean": mean(name), "sd": deviation(name), **more},
            constants={"parameter": name},
        )
        for name, more in (("mean", {}), ("variance", {"expected": expected_variance}))
    )


# sigma and delta' are computed; the errors are simulated. As stated delta' has the ratio (C / n) /
# sigma, as done C / sigma (erratum E3).
class RegressionNoise(MustTable):
    title = "Table 6. Experiment 2: noise, δ′ and prediction error of linear regression"
    name = "table6"
    statements = ("table6_",)
    caption = (
        "Scale of the Gaussian noise on the mean gradient, δ′ of one query, and root mean squared "
        "prediction error in experiment 2: mean and standard deviation over repeated data sets, "
        "with standard errors."
    )
    keys = ("epsilon_amplified", "sampler")
    layout = Layout(
        panels=("epsilon_amplified",),
        stub=("sampler",),
        heads=("column",),
        apart={
            "noise and privacy": ("sigma", "delta_amplified"),
            "prediction error": ("rmse_mean", "rmse_sd"),
        },
    )
    parts = (
        Part(
            "noise_calibration",
            {name: name for name in ("sigma", "delta_amplified")},
            where={"table": "table6"},
        ),
        Part("linear_regression", {"rmse_mean": mean("rmse"), "rmse_sd": deviation("rmse")}),
    )


class RegressionCoefficients(MustTable):
    title = "Table 7. Experiment 2: bias and error of the regression coefficients"
    name = "table7"
    statements = ("table7_",)
    caption = (
        "Bias and root mean squared error of the three regression coefficients in experiment 2, "
        "over repeated data sets, with standard errors."
    )
    keys = ("epsilon_amplified", "sampler", "coefficient")
    layout = Layout(
        panels=("epsilon_amplified",), stub=("sampler",), heads=("column", "coefficient")
    )
    parts = tuple(
        Part(
            "linear_regression",
            {quantity: statistic("coefficient")},
            each={"coefficient": {f"beta{i}": f"error_beta{i}" for i in range(3)}},
        )
        # Table 7 has the mean of beta_hat - beta, and the root of its mean square, over the 200
        # data sets.
        for quantity, statistic in (("bias", mean), ("rmse", root_mean_square))
    )


def undefined(metric: str) -> Callable[[pd.DataFrame], str]:
    """Return the note that says in how many replicates a metric is undefined."""

    def note(group: pd.DataFrame) -> str:
        # PPV is 0 / 0 where no record is predicted positive: such a seed has no value, and the mean
        # is over the others.
        lacking = int(group[metric].isna().sum())
        return (
            (f"undefined in {lacking} of {len(group)} replicates (no such predictions)")
            if lacking
            else ""
        )

    return note


WHERE = "{adjacency}, noise {noise_multiplier:.4g} C, {denominator} denominator"


def sides(name: str) -> dict[str, Column]:
    """Return the columns of `both_sides`: the refuted and the proved bound, and the bracket of the
    paper's pair."""
    return {
        f"{name}_lower": Column("attack", note=f"attack (lower), {WHERE}"),
        f"{name}_upper": Column("proved", note=f"{{says}}, {WHERE}"),
        f"{name}_pair": Column(
            "pair", lower="pair_lower", upper="pair_upper", note=f"no guarantee, {WHERE}"
        ),
    }


def both_sides(frame: pd.DataFrame) -> pd.DataFrame:
    """Return answers of the accountant with the pair's middle; a probability that nothing is proved
    of is at most 1."""
    return frame.assign(
        # Poisson with the realised size as divisor: no proof covers it, so 1 is the honest upper
        # end.
        says=np.where(frame["proved"].isna(), "nothing is proved", "proved (upper)"),
        proved=frame["proved"].fillna(1.0),
        pair=(frame["pair_lower"] + frame["pair_upper"]) / 2,
    )


BY_METHOD = "method {method}, scale {scale:.4g}"


def at_rounding_error(frame: pd.DataFrame) -> pd.DataFrame:
    """Return composed bounds, those that the rounding error of the paper's method hides with the
    interval from 0 to that error."""
    error = round_off(frame["n_compositions"].to_numpy(), frame["grid_size"].to_numpy())
    hidden = (frame["method"] != "cell_mass") & (frame["delta_upper"] <= error)
    return frame.assign(
        least=np.where(hidden, 0.0, np.nan),
        most=np.where(hidden, error, np.nan),
        says=np.where(hidden, ": no more than its rounding error", ""),
    )


def with_statistic(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the proved numbers, each under the `statistic` of its place in Table 8."""
    names = {
        "table8": "",
        PRINTED_SCALE: "delta_at_the_printed_scale",
        CONSISTENT_NOISE: "epsilon_of_the_consistent_noise",
    }
    frame = frame[frame["table"].isin(names)]
    # Poisson has two releases in experiment 3: as run (divisor: realised size), and with the fixed
    # divisor, of which something is proved.
    fixed = (
        (frame["table"] == "table8")
        & (frame["sampler"] == "poisson")
        & (frame["denominator"] == "fixed")
    )
    statistic = frame["table"].map(names).mask(fixed, "delta_with_a_fixed_denominator")
    return both_sides(frame.assign(statistic=statistic))


class LogisticRegression(MustTable):
    """Table 8, and numbers that are not printed: deviations over seeds, paired differences, the
    converged solver, scikit-learn's fit."""

    title = "Table 8. Experiment 3: logistic regression on Adult"
    name = "table8"
    caption = (
        "Experiment 3: scale of the noise on the summed gradient, metrics on the test set, and δ "
        "at ε = 2 after all steps. Metrics are means over seeds with standard errors; differences "
        "from Poisson are paired by seed, with 95 % Student intervals. Consistent rows: the first "
        "bounds on δ are for the noise as stated, in units of the clipping bound; those for the "
        "larger, consistent noise stand separately. Rigorous rows, for experiment 3 as it was "
        "run: explicit data sets attain the lower number (attack); the upper one is proved for "
        "clipped sums under substitution (Poisson: add/remove). Nothing is proved for Poisson "
        "sums divided by the realised sample size. The bracket of the paper's pair is not a "
        "guarantee."
    )
    keys = ("sampler", "solver", "statistic")
    layout = Layout(
        panels=("solver", "statistic"),
        stub=("sampler",),
        heads=("column",),
        apart={
            "noise and privacy": (
                "sigma_times_m",
                "delta_c_upper",
                "delta_c_lower",
                "delta_c_pair",
            ),
            "accuracy": METRICS,
        },
    )
    statements = ("table8_",)
    attacks: ClassVar[Mapping[str, str]] = {"delta_c_upper": "delta_c_lower"}
    together = ("sampler",)
    absent: ClassVar[Mapping[str, object]] = {"solver": "dp_sgd"}
    parts = (
        Part(
            "noise_calibration",
            # The paper prints m sigma, the noise of the summed gradient: a constant of each
            # sampler, shared by all statistics.
            {"sigma_times_m": lambda group: (group["sigma"] * group["m"]).iloc[0]},
            where={"table": "table8"},
            keys={"statistic": None},
        ),
        Part(
            "adult_logistic",
            {
                metric: (
                    # The paper has a single run; a mean over seeds shows that its differences
                    # between samplers are of the spread's size (erratum E1).
                    mean(metric, drop=True, empty=True, note=undefined(metric)),
                    deviation(
                        metric,
                        drop=True,
                        note=undefined(metric),
                        keys={"statistic": "sd_over_seeds"},
                    ),
                )
                for metric in METRICS
            },
        ),
        *(
            Part(
                "composition",
                # By Algorithm 1, per the paper's own pair: no guarantee in any variant.
                {
                    "delta_c_lower": Column("delta_lower", note=BY_METHOD),
                    "delta_c_upper": Column(
                        "delta_upper", lower="least", upper="most", note=f"{BY_METHOD}{{says}}"
                    ),
                },
                where={"table": table},
                constants=constants,
                prepare=at_rounding_error,
            )
            for table, constants in (
                ("table8", {}),
                (CONSISTENT_NOISE, {"statistic": "delta_of_the_consistent_noise"}),
            )
        ),
        Part("proved_composition", sides("{quantity}_c"), prepare=with_statistic),
        Part(
            "adult_logistic",
            # Differences seed by seed, so that the interval is of the comparison and not of either
            # mean.
            {metric: difference(metric, {"sampler": "poisson"}) for metric in METRICS},
            # The paper's T = 1000 steps; converged fits have rows of their own.
            where={"solver": "dp_sgd"},
            constants={"statistic": "difference_to_poisson"},
        ),
    )


class DistinctRecords(MustTable):
    title = "Table 9. Number of distinct records in a subset"
    name = "table9"
    statements = ("table9_",)
    caption = (
        "Smallest, mean and largest number of distinct records among the subsets drawn, at the "
        "sizes of the three experiments, and the exact expectation. The intervals of the smallest "
        "and the largest hold 99.8 % of their exact distributions."
    )
    keys = ("experiment", "sampler")
    layout = Layout(panels=("experiment",), stub=("column",), heads=("sampler",))
    order = ("variant", "experiment", "sampler")
    parts = tuple(
        Part(
            "distinct_counts",
            {quantity: column},
            # The mean over 10000 draws is compared within its standard error, the extremes by the
            # exact law of an extreme: P(max <= x) = F(x)^10000.
            prepare=lambda frame: frame.assign(standard_error=frame["sd"] / frame["draws"] ** 0.5),
        )
        for quantity, column in (
            ("distinct_min", Column("distinct_min", lower="min_lower", upper="min_upper")),
            (
                "distinct_mean",
                Column("distinct_mean", standard_error="standard_error", replicates="draws"),
            ),
            # n eta in every scheme of fixed size: the printed means of experiment 2 are recognised
            # by it as swapped with the minima (erratum E7).
            ("law_mean", Column("law_mean")),
            ("distinct_max", Column("distinct_max", lower="max_lower", upper="max_upper")),
        )
    )


def over_wor(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean times, and their increase over sampling without replacement in percent.

    A sparse draw of a Poisson sample is told apart where the draw by n Bernoulli trials is timed as
    well.
    """
    cell = ["variant", "experiment"]
    means = frame.groupby([*cell, "sampler", "naive"], sort=False, as_index=False)["seconds"].mean()
    # The paper's unit: percent above WOR in the same experiment and environment.
    both = means.assign(wor=means["seconds"].where(means["sampler"] == "wor")).groupby(cell)
    base, loop = both["wor"].transform("max"), both["naive"].transform("max") == 1
    for experiment in means.loc[~(base > 0), "experiment"].head(1):
        raise DataError(
            f"times relative to 'wor' need its time above 0 s, got experiment {experiment} "
            "without one; time it with more draws"
        )
    # Text and code draw Poisson samples by different methods (erratum E18): the loop is what Table
    # 10 times, the sparse draw is ours.
    sparse = (means["sampler"] == "poisson") & loop & (means["naive"] == 0)
    return means.assign(
        draw=np.where(sparse, "sparse", ""),
        microseconds=1e6 * means["seconds"],
        increase=100 * (means["seconds"] / base - 1),
    )


class SamplingTimes(MustTable):
    title = "Table 10. Time to draw a subset, compared with WOR"
    name = "table10"
    caption = (
        "Additional time to draw one subset, compared with sampling without replacement, in "
        "percent, on this machine. Poisson samples are drawn by n Bernoulli trials, as in the "
        "paper; a sparse draw generates only the selected records."
    )
    # Times are shown next to the printed ones and never judged: they are of another machine and
    # language.
    timed = True
    keys = ("experiment", "sampler", "draw")
    layout = Layout(panels=("draw",), stub=("experiment",), heads=("sampler",))
    order = ("variant", "experiment", "sampler")
    together = ("draw",)
    parts = (
        Part(
            "sampling_time",
            {"time_increase_percent": "increase"},
            prepare=over_wor,
            note="{microseconds:.3g} microseconds a subset",
        ),
    )

    def ranks(self) -> Mapping[str, tuple[object, ...]]:
        return {**RANKS, "draw": (None, "sparse")}


class DeltaThresholds(MustTable):
    title = "Section S8. Thresholds and crossovers of δ′"
    name = "thresholds_s8"
    statements = ("s8_",)
    caption = (
        "Thresholds: the δ above which δ′ < δ. Crossovers: the point (δ, δ′) at which two "
        "samplers have the same δ′, for every pair. As stated: exact roots. As done: last points "
        "of a grid of ε."
    )
    keys = ("mechanism", "kind", "sampler", "other")
    layout = Layout(panels=("kind", "mechanism"), stub=("sampler", "other"), heads=("column",))
    parts = (
        # WOR amplifies strongly wherever delta > 0: the last such point of a grid is no threshold.
        Part(
            "amplification_crossings",
            {name: name for name in ("epsilon", "delta")},
            # The paper gives six of them, for WR, MUST.OW and MUST.WW.
            where={"kind": "threshold", "sampler": lambda sampler: sampler != "wor"},
        ),
        Part(
            "amplification_crossings",
            {name: name for name in ("epsilon", "delta", "delta_amplified")},
            where={"kind": "crossover"},
        ),
    )

    def quotes(self) -> list[Quote]:
        return [
            Quote(
                {
                    "mechanism": mechanism,
                    "kind": "threshold",
                    "sampler": sampler,
                    "column": "delta",
                },
                "claims",
                {
                    "claim": f"s8_threshold_{mechanism}_{sampler_label(sampler)}",
                    "column": "delta_threshold",
                },
            )
            for mechanism in ("laplace", "gaussian")
            for sampler in ("wr", *MUST)
        ]


# Tables of this project, next to those of the paper

SIZES = (
    "at the sizes of Figure S2 (n = 10,000, m = 200, and b = 118 for the first stage of MUST.OW "
    "and MUST.WW)"
)


def over_proved_wor(frame: pd.DataFrame) -> pd.DataFrame:
    """Return noise multipliers with the proved one over that of WOR at the same target."""
    # WOR is the one-stage reference at the same m: the question is what a second stage costs in
    # noise.
    wor = frame[frame["sampler"] == "wor"].set_index("target_epsilon")["proved"]
    return frame.assign(over_wor=frame["proved"] / frame["target_epsilon"].map(wor))


class NoiseAtEqualPrivacy(MustTable):
    title = "Noise of each sampler at equal proved privacy"
    name = "noise_at_equal_privacy"
    setting = (
        "Noise multiplier (scale of the noise on the sum divided by the norm bound C of one "
        f"record) for a target ε at δ = 10⁻⁵ after 1000 steps, {SIZES}"
    )
    caption = (
        f"{setting}. The proved noise, or more, guarantees the target for clipped sums under the "
        "adjacency relation shown. At the refuted noise, or less, explicit data sets exceed the "
        "target. The noise of the paper's pair is not a guarantee. Proved noise is rounded up, "
        "refuted noise down; both are found as by dpsub calibrate."
    )
    keys = ("target_epsilon", "sampler", "adjacency")
    layout = Layout(panels=("target_epsilon",), stub=("sampler", "adjacency"), heads=("column",))
    order = keys
    parts = (
        Part(
            "proved_noise",
            {
                "noise_proved": "proved",
                "noise_refuted": "refuted",
                "noise_pair": "pair",
                "noise_over_wor": "over_wor",
            },
            prepare=over_proved_wor,
            note="{n_compositions} steps, delta {delta:g}",
        ),
    )


class PrivacyOfFirstStages(MustTable):
    title = "Privacy of two-stage samplers at equal noise, by size of the first stage"
    name = "first_stages"
    caption = (
        "ε at δ = 10⁻⁵ after 1000 steps of samples of m = 200 of n = 10,000 records with noise "
        "multiplier 4, one record substituted, over the size b of the first stage: a lower bound "
        "(an attack: explicit data sets attain it), an upper bound (proved for clipped sums), and "
        "the paper's pair, which is not a guarantee. WOR has no first stage; MUST.OW at b = n is "
        "WR."
    )
    keys = ("sampler", "b")
    layout = Layout(panels=("sampler",), stub=("b",), heads=("column",))
    order = keys
    parts = (Part("proved_first_stages", sides("epsilon"), prepare=both_sides),)


QUESTION = ("sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions")


def of_ours(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return this package's answer to the question of each record."""
    ours = frame[frame["tool"] == "dpsub"].set_index(list(QUESTION))[column]
    return ours.reindex(pd.MultiIndex.from_frame(frame[list(QUESTION)])).to_numpy()


def with_widths(frame: pd.DataFrame) -> pd.DataFrame:
    """Return answers with their widths; an answer below an attack on the same question cannot be a
    bound."""
    # An answer below what explicit data sets attain is refuted, whatever its documentation calls
    # it.
    below = np.where(frame["upper"] < of_ours(frame, "lower"), ", below what an attack attains", "")
    says = frame["note"].where(frame["note"] != "", frame["kind"]) + below
    return frame.assign(width=frame["upper"] - frame["lower"], says=says)


class PeerBoundsTable(MustTable):
    title = "Privacy at equal noise, by this package and by other accountants"
    name = "peer_bounds"
    caption = (
        "ε at δ = 10⁻⁵ as computed by this package and by other accountants. For Poisson, the two "
        "bounds enclose one exact value. For samplers whose exact privacy is not known, they are a "
        "lower bound (an attack) and an upper bound (a proof). For sampling without replacement "
        "dp-accounting's Rényi accountant gets the noise in units of C, the norm bound of one "
        "record, and in units of 2 C, the most by which a substitution moves the sum. An upper "
        "value below the attack is not a bound for this release, and its note says so."
    )
    keys = (*QUESTION, "tool")
    layout = Layout(panels=QUESTION, stub=("tool",), heads=("column",))
    order = ()
    parts = (
        Part(
            "peer_bounds",
            {"lower": "lower", "upper": Column("upper", empty=True), "width": "width"},
            prepare=with_widths,
            note="{says}",
        ),
    )


class PeerTimesTable(MustTable):
    title = "Run times of this package and of other accountants"
    name = "peer_times"
    caption = (
        "Processor time of each answer on this machine, in seconds and as a multiple of the time "
        "of this package for both bounds of the same answer."
    )
    timed = True
    keys = PeerBoundsTable.keys
    layout = PeerBoundsTable.layout
    order = ()
    parts = (
        Part(
            "peer_times",
            {"seconds": "seconds", "times_ours": "times_ours"},
            where={"note": ""},
            prepare=lambda frame: frame.assign(
                times_ours=frame["seconds"] / of_ours(frame, "seconds")
            ),
        ),
    )

"""Statements of the paper on the utility experiments and on distinct records, each as a predicate on records."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.papers.must.artefacts.labels import MUST, samplers
from dpsub.reproduce.predicates import Finding, Frames, LackingError, Statement, equal, of_variant, per_sampler, pick
from dpsub.reproduce.verdicts import NOT_REAL

ONE_STAGE = ("poisson", "wor", "wr")
PRIVATE = (*ONE_STAGE, *MUST)
COEFFICIENTS = ("error_beta0", "error_beta1", "error_beta2")
METRICS = ("accuracy", "sensitivity", "specificity", "ppv", "npv", "f1")
SUBSET_SIZE = 30  # m of experiment 1: b <= m is where the paper speaks of a small b


def bias_of_mean(frames: Frames) -> Finding:
    """Section 4.2.1: bias of order 1e-3, read as below 1e-2."""
    mean = pick(frames["subset_statistics"], sampler=PRIVATE).groupby(["sampler", "b"])["mean"].mean()
    return Finding(bool((mean.abs() < 1e-2).all()), f"largest |mean| {mean.abs().max():.2g}")


def bias_of_variance(frames: Frames) -> Finding:
    """Section 4.2.1: bias of order 1e-2, read as below 1e-1, where b is not small."""
    frame = pick(frames["subset_statistics"], sampler=PRIVATE)
    bias = frame[(frame["b"] == 0) | (frame["b"] > SUBSET_SIZE)].groupby(["sampler", "b"])["variance"].mean() - 1
    return Finding(bool((bias.abs() < 1e-1).all()), f"largest |bias| {bias.abs().max():.2g} outside b <= m")


def biased_for_small_b(frames: Frames) -> Finding:
    """Section 4.2.1: every mean estimate for b <= m lies below 1 by more than two standard errors."""
    frame = pick(frames["subset_statistics"], sampler=MUST)
    groups = frame[frame["b"] <= SUBSET_SIZE].groupby(["sampler", "b"])
    estimate, error = groups["variance"].mean(), groups["variance"].sem()
    if estimate.empty or bool(error.isna().any()):
        raise LackingError("this run has no b <= m, or one replicate only")
    exact = groups["expected_variance"].first()
    note = f"means {estimate.min():.3f} to {estimate.max():.3f}, expected {exact.min():.3f} to {exact.max():.3f}"
    return Finding(bool((estimate + 2 * error < 1).all()), note)


def _spreads(frames: Frames, parameter: str) -> pd.Series:
    spread = pick(frames["subset_statistics"], sampler=PRIVATE).groupby(["sampler", "b"])[parameter].std()
    if bool(spread.isna().any()):
        raise LackingError("this run has one replicate only")
    return spread


def steadier(parameter: str) -> Statement:
    """Return the statement that MUST has the smaller SD over repeats; SDs of MUST are averaged over b."""

    def ask(frames: Frames) -> Finding:
        spread = _spreads(frames, parameter).groupby(level="sampler").mean()
        holds = spread[list(MUST)].max() < spread[list(ONE_STAGE)].min()
        return Finding(bool(holds), f"SD: {per_sampler(spread, '.4f')}")

    return Statement(f"table5_sd_{parameter}", ("subset_statistics",), ask)


def steadier_at_small_b(frames: Frames) -> Finding:
    """Section 4.2.1: SD of the variance estimate at the smallest and the largest b."""
    spread = _spreads(frames, "variance")
    pairs = {sampler: spread[sampler].sort_index() for sampler in MUST}
    if any(len(curve) < 2 for curve in pairs.values()):
        raise LackingError("this run has one value of b only")
    note = ", ".join(f"{sampler} {curve.iloc[0]:.4f} to {curve.iloc[-1]:.4f}" for sampler, curve in pairs.items())
    return Finding(all(bool(curve.iloc[0] < curve.iloc[-1]) for curve in pairs.values()), note)


def _regression(frames: Frames) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Records of experiment 2: the private samplers, the non-private baseline."""
    frame = frames["linear_regression"]
    return pick(frame, sampler=PRIVATE), pick(frame, sampler="nonprivate")


def error_above_baseline(frames: Frames) -> Finding:
    """Section 4.2.2: mean and SD of the RMSE of the predictions."""
    private, baseline = _regression(frames)
    summary = private.groupby(["epsilon_amplified", "sampler"])["rmse"].agg(["mean", "std"])
    if bool(summary.isna().any(axis=None)):
        raise LackingError("this run has one replicate only")
    limits = (float(baseline["rmse"].mean()), float(baseline["rmse"].std()))
    above = int((summary["mean"] > limits[0]).sum()), int((summary["std"] > limits[1]).sum())
    note = f"mean above {limits[0]:.4f} in {above[0]}, SD above {limits[1]:.4f} in {above[1]} of {len(summary)} cases"
    return Finding(above == (len(summary), len(summary)), note)


def ww_lowest(frames: Frames) -> Finding:
    """Section 4.2.2: mean RMSE at the smallest eps'."""
    private, _ = _regression(frames)
    mean = private[private["epsilon_amplified"] == private["epsilon_amplified"].min()].groupby("sampler")["rmse"].mean()
    return Finding(mean.idxmin() == "must_ww", per_sampler(mean, ".4f"))


def _coefficient_errors(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return (frame[list(COEFFICIENTS)] ** 2).groupby([frame[name] for name in by]).mean() ** 0.5


def coefficients_above_baseline(frames: Frames) -> Finding:
    """Section 4.2.2: RMSE of the coefficients."""
    private, baseline = _regression(frames)
    limit = _coefficient_errors(baseline, ["sampler"]).iloc[0]
    above = (_coefficient_errors(private, ["epsilon_amplified", "sampler"]) > limit).to_numpy()
    return Finding(bool(above.all()), f"in {above.sum()} of {above.size} cases")


def must_coefficients_smaller(frames: Frames) -> Finding:
    """Section 4.2.2: RMSE of the coefficients at the smallest eps'."""
    private, _ = _regression(frames)
    lowest = private[private["epsilon_amplified"] == private["epsilon_amplified"].min()]
    errors = _coefficient_errors(lowest, ["sampler"])
    must, others = errors.loc[list(MUST)].max(), errors.loc[list(ONE_STAGE)].min()
    return Finding(bool((must < others).all()), f"largest ratio {(must / others).max():.2f}")


def ow_best(frames: Frames) -> Finding:
    """Section 4.2.3: means over seeds of the metrics on the test part."""
    frame = pick(frames["adult_logistic"], solver="dp_sgd", sampler=PRIVATE)
    labels = sorted(set(frame["data"]) - {"real"})
    if labels:
        raise LackingError(f"{NOT_REAL} but {', '.join(labels)}")
    mean = frame.groupby("sampler")[list(METRICS)].mean()
    if mean.isna().any(axis=None):
        raise LackingError("a metric is undefined, because a classifier never predicts one of the classes")
    best = mean.idxmax()
    spread = frame[frame["sampler"] == "must_ow"]["accuracy"].std()
    lead = mean.loc["must_ow", "accuracy"] - mean["accuracy"].drop("must_ow").max()
    note = f"best in {(best == 'must_ow').sum()} of {len(METRICS)} metrics; accuracy {lead:+.4f} on the next best"
    seeds = "" if math.isnan(spread) else f", SD over seeds {spread:.4f}"
    return Finding(bool((best == "must_ow").all()), note + seeds)


def _distinct(frames: Frames) -> pd.DataFrame:
    """Exact mean number of distinct records, a row an experiment, a column a sampler."""
    frame = pick(frames["distinct_counts"], sampler=samplers())
    return frame.pivot(index="experiment", columns="sampler", values="law_mean")


def fewest_distinct(frames: Frames) -> Finding:
    """Section 4.3."""
    mean = _distinct(frames)
    others = mean[["poisson", "wor", "wr", "must_wo"]].min(axis=1)
    fewest = (mean["must_ww"] < mean["must_ow"]) & (mean["must_ow"] < others)
    return Finding(bool(fewest.all()), per_sampler(mean.iloc[-1], ".1f"))


def same_distinct(row: str, one: str, other: str) -> Statement:
    """Return a statement of Section 4.3 that two samplers have the same mean."""

    def ask(frames: Frames) -> Finding:
        mean = _distinct(frames)
        return Finding(equal(mean[one], mean[other]), per_sampler(mean[[one, other]].iloc[-1], ".4f"))

    return Statement(row, ("distinct_counts",), ask)


def wr_between(frames: Frames) -> Finding:
    """Section 4.3."""
    mean = _distinct(frames)
    between = (mean["must_ow"] < mean["wr"]) & (mean["wr"] < mean["wor"])
    return Finding(bool(between.all()), per_sampler(mean.iloc[-1], ".1f"))


def is_real(records: Frames) -> str:
    """Return the reason why the Adult records cannot be compared, "" if they can.

    Raises
    ------
    LackingError
        If there are none.
    """
    labels = sorted(set(of_variant(records, "adult_logistic", "stated")["data"]) - {"real"})
    return f"{NOT_REAL} but {', '.join(labels)}" if labels else ""


STATISTICS = ("subset_statistics",)
REGRESSION = ("linear_regression",)
UTILITY = (
    Statement("exp1_bias_mu", STATISTICS, bias_of_mean, column="order_of_bias_mu"),
    Statement("exp1_bias_tau2", STATISTICS, bias_of_variance, column="order_of_bias_tau2"),
    Statement("table5_bias_small_b", STATISTICS, biased_for_small_b),
    steadier("mean"),
    steadier("variance"),
    Statement("table5_sd_b", STATISTICS, steadier_at_small_b),
    Statement("table6_rmse_baseline", REGRESSION, error_above_baseline),
    Statement("table6_ww_lowest", REGRESSION, ww_lowest),
    Statement("table7_rmse_baseline", REGRESSION, coefficients_above_baseline),
    Statement("table7_must_smaller", REGRESSION, must_coefficients_smaller),
    Statement("table8_ow_best", ("adult_logistic",), ow_best),
    Statement("table9_ww_lowest", ("distinct_counts",), fewest_distinct),
    same_distinct("table9_wr_wo_equal", "wr", "must_wo"),
    Statement("table9_wr_between", ("distinct_counts",), wr_between),
    same_distinct("table9_poisson_mean", "poisson", "wor"),
)

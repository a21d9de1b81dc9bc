"""Statements of the text: their truth at the paper's sizes, and a planted counter-example for each
kind of question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.papers.must import PAPER
from dpsub.papers.must.claims import AMPLIFICATION, NOISE_AND_COMPOSITION, UTILITY
from dpsub.papers.must.settings import METRICS
from dpsub.reproduce import published
from dpsub.reproduce.artefacts import REGISTRY
from dpsub.reproduce.verdicts import NOT_REAL, compare

PUBLISHED = published.load("must", "claims")
EXPECTED = pd.read_csv(PAPER.folder / "expected_verdicts.csv", keep_default_na=False).query(
    "artefact == 'claims'"
)
Frames = dict[str, pd.DataFrame]
CLAIMS: Any = REGISTRY.get("must/claims")
claims_values = CLAIMS().values
STATEMENTS = (*AMPLIFICATION, *NOISE_AND_COMPOSITION, *UTILITY)
MADE_UP = ("subset_statistics", "linear_regression", "adult_logistic", "proved_composition")


def proved_composition() -> pd.DataFrame:
    """Return attack and proof far above the paper's pair, as they are; Poisson as run without a
    proof."""
    of_table8 = [
        ("table8", sampler, "fixed", 1000, 0.37, 0.57)
        for sampler in ("wor", "wr", "must_ow", "must_ww")
    ]
    of_figure = [
        ("figure_s2", sampler, "fixed", k, 5e-5 * k, 9e-5 * k)
        for sampler in ("must_ow", "must_ww")
        for k in range(200, 1001, 200)
    ]
    rows = [("table8", "poisson", "realised", 1000, 0.37, np.nan), *of_table8, *of_figure]
    columns = ["table", "sampler", "denominator", "n_compositions", "attack", "proved"]
    return pd.DataFrame(rows, columns=columns).assign(variant="rigorous", data="")


def utility() -> Frames:
    """Return made-up replicates of the three utility experiments in which the paper's statements
    hold, but for one."""
    wave = np.array([-1.0, 1.0, -1.0, 1.0])
    statistics, regression, adult = [], [], []
    two_stage = [(sampler, b) for sampler in ("must_ow", "must_ww") for b in (10, 100)]
    for sampler, b in [("poisson", 0), ("wor", 0), ("wr", 0), *two_stage]:
        centre, spread = (1 - 1 / b, 0.0005 * b) if b else (1.0, 0.1)
        for step in wave:
            statistics.append(
                {
                    "sampler": sampler,
                    "b": b,
                    "mean": (0.05 if b else 0.06) * step + 0.001,
                    "variance": centre + spread * step,
                    "expected_variance": centre,
                }
            )
    errors = {
        "nonprivate": 0.03,
        "poisson": 0.15,
        "wor": 0.15,
        "wr": 0.14,
        "must_ow": 0.11,
        "must_ww": 0.10,
    }
    for sampler, error in errors.items():
        for level in (np.nan,) if sampler == "nonprivate" else (0.01, 0.001):
            size = error if level == 0.001 or sampler == "nonprivate" else 0.04
            for step in wave:
                coefficients = {f"error_beta{i}": size * step for i in range(3)}
                rmse = (
                    0.997 if sampler == "wr" and level == 0.01 else 0.998 + size
                ) + 0.1 * size * step
                regression.append(
                    {"sampler": sampler, "epsilon_amplified": level, "rmse": rmse, **coefficients}
                )
    for sampler in errors:
        best = 0.981 if sampler == "must_ow" else 0.978
        for step in wave:
            metrics = dict.fromkeys(METRICS, best + 0.001 * step)
            adult.append(
                {
                    "sampler": sampler,
                    "solver": "dp_sgd",
                    **metrics,
                    "n_train": 30969,
                    "n_test": 10323,
                    "n_parameters": 14,
                }
            )
    frames = {"subset_statistics": statistics, "linear_regression": regression}
    made = {
        name: pd.DataFrame(rows).assign(variant="stated", data="") for name, rows in frames.items()
    }
    return {**made, "adult_logistic": pd.DataFrame(adult).assign(variant="stated", data="real")}


@pytest.fixture(scope="module")
def records(exact: Frames) -> Frames:
    return {**exact, "proved_composition": proved_composition(), **utility()}


@pytest.fixture(scope="module")
def values(records: Frames) -> pd.DataFrame:
    return claims_values(records)


@pytest.fixture(scope="module")
def verdicts(values: pd.DataFrame) -> pd.DataFrame:
    return compare(PUBLISHED, values, ("claim",), ("real",))


def stated(records: Frames, row: str) -> float:
    """Return the value of one statement as stated: 1 if it holds."""
    statement = next(found for found in STATEMENTS if found.claim == row)
    return next(
        answer["value"] for answer in statement.answers(records) if answer["variant"] == "stated"
    )


def test_claims_get_the_expected_verdicts(verdicts: pd.DataFrame, values: pd.DataFrame) -> None:
    assert set(verdicts["row"]) == set(PUBLISHED["claim"])
    known = set(zip(PUBLISHED["claim"], PUBLISHED["column"], strict=True))
    assert set(zip(values["claim"], values["column"], strict=True)) <= known
    made_up = {claim.claim for claim in CLAIMS.claims for name, _ in claim.reads if name in MADE_UP}
    settings = {claim for claim, _ in CLAIMS.settings}
    key = ["row", "column", "variant"]
    found, expected = (
        frame[~frame["row"].isin(made_up | settings)].set_index(key)["verdict"].to_dict()
        for frame in (verdicts, EXPECTED)
    )
    assert found == expected


def swapped(experiment: str, column: str, one: str, other: str) -> Callable[[Frames], Frames]:
    """Interchange a column between two samplers."""

    def change(records: Frames) -> Frames:
        frame = records[experiment].copy()
        first, second = ((frame["sampler"] == name).to_numpy() for name in (one, other))
        values = frame[column].to_numpy().copy()
        values[first], values[second] = frame.loc[second, column], frame.loc[first, column]
        return {**records, experiment: frame.assign(**{column: values})}

    return change


def scaled(experiment: str, column: str, sampler: str, factor: float) -> Callable[[Frames], Frames]:
    """Multiply a column of one sampler."""

    def change(records: Frames) -> Frames:
        frame = records[experiment]
        chosen = frame["sampler"] == sampler
        return {
            **records,
            experiment: frame.assign(
                **{column: frame[column].where(~chosen, frame[column] * factor)}
            ),
        }

    return change


def changed(
    experiment: str, **columns: Callable[[pd.DataFrame], pd.Series]
) -> Callable[[Frames], Frames]:
    """Compute columns again."""
    return lambda records: {**records, experiment: records[experiment].assign(**columns)}


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("prop7_ordering", scaled("amplification_grid", "eta", "must_wo", 1.0001)),
        ("remark2_epsilon", scaled("amplification_grid", "epsilon_amplified", "wr", 2.0)),
        ("fig4_only_wor_strong", swapped("amplification_grid", "category", "wor", "wr")),
        ("fig4_weak_order", swapped("amplification_grid", "category", "wor", "must_ow")),
        ("fig4_start_strong", scaled("amplification_grid", "category", "wr", 2)),
        (
            "fig4_convergence",
            changed("amplification_grid", ratio=lambda frame: 1.25 - frame["ratio"]),
        ),
        ("table3_epsilon_order", swapped("amplification_grid", "epsilon_amplified", "wr", "wor")),
        ("table3_delta_order", swapped("amplification_grid", "delta_amplified", "must_ww", "wor")),
        ("table3_shift", scaled("amplification_grid", "category", "must_ow", 2)),
        ("s8_order_flips", swapped("amplification_grid", "delta_amplified", "wr", "must_ow")),
        (
            "s8_crossover_laplace_delta",
            changed("amplification_crossings", delta=lambda frame: 9 * frame["delta"]),
        ),
        ("fig5_ww_eta", swapped("design_surface", "eta", "must_ow", "must_ww")),
        ("fig5_eta_b", scaled("design_surface", "eta", "must_ow", -1.0)),
        ("fig5_delta_m", scaled("design_surface", "delta_difference", "must_ww", -1.0)),
        ("discussion_m", scaled("design_surface", "eta", "must_ww", -1.0)),
        ("table4_ow_smallest", scaled("noise_calibration", "sigma", "must_ow", 2.0)),
        ("table4_ww_below_ow", scaled("noise_calibration", "sigma", "must_ww", 2.0)),
        ("table4_sigma_b", scaled("noise_calibration", "sigma", "must_ow", -1.0)),
        ("table6_sigma_order", swapped("noise_calibration", "sigma", "wr", "wor")),
        ("table8_sigma_order", scaled("noise_calibration", "sigma", "must_ww", 1.01)),
        ("table8_bounds", scaled("composition", "delta_upper", "must_ow", 100.0)),
        ("figure_s2_increases", scaled("composition", "delta", "must_ow", -1.0)),
        ("figure_s2_strict", scaled("composition", "delta_upper", "must_ow", np.nan)),
        ("exp1_bias_mu", scaled("subset_statistics", "mean", "wr", 50.0)),
        ("exp1_bias_tau2", scaled("subset_statistics", "variance", "wor", 1.2)),
        ("table5_bias_small_b", scaled("subset_statistics", "variance", "must_ow", 1.2)),
        ("table5_sd_mean", scaled("subset_statistics", "mean", "must_ow", 2.0)),
        ("table5_sd_variance", scaled("subset_statistics", "variance", "must_ww", 5.0)),
        (
            "table5_sd_b",
            changed("subset_statistics", b=lambda frame: frame["b"].replace({10: 100, 100: 10})),
        ),
        ("table6_ww_lowest", swapped("linear_regression", "rmse", "must_ow", "must_ww")),
        ("table7_rmse_baseline", scaled("linear_regression", "error_beta1", "wr", 0.1)),
        ("table7_must_smaller", scaled("linear_regression", "error_beta2", "must_ow", 2.0)),
        ("table8_ow_best", scaled("adult_logistic", "npv", "wr", 1.01)),
        ("table9_ww_lowest", swapped("distinct_counts", "law_mean", "must_ow", "must_ww")),
        ("table9_wr_wo_equal", scaled("distinct_counts", "law_mean", "must_wo", 1.001)),
        ("table9_wr_between", scaled("distinct_counts", "law_mean", "wr", 1.1)),
        ("table9_poisson_mean", scaled("distinct_counts", "law_mean", "poisson", 0.999)),
    ],
)
def test_a_planted_counter_example_fails(
    records: Frames, row: str, change: Callable[[Frames], Frames]
) -> None:
    assert stated(records, row) == 1
    assert stated(change(records), row) == 0


def ends(**factors: float) -> Callable[[Frames], Frames]:
    """Multiply attacks or proofs, where a missing proof counts as 1."""
    columns: Any = {
        name: lambda frame, name=name: factors[name] * frame[name].fillna(1.0) for name in factors
    }
    return changed("proved_composition", **columns)


def rigorous(records: Frames, row: str) -> dict[str, Any]:
    """Return the rigorous answer to one statement."""
    return next(
        answer
        for statement in STATEMENTS
        if statement.claim == row
        for answer in statement.answers(records)
        if answer["variant"] == "rigorous"
    )


def test_statements_on_composition_have_a_rigorous_answer(records: Frames) -> None:
    bounds = rigorous(records, "table8_bounds")
    assert bounds["value"] == 0
    assert bounds["note"].startswith(
        "refuted for Poisson, WOR, WR, MUST.OW, MUST.WW; attacks (lower bounds) Poisson 0.37"
    )
    assert bounds["note"].endswith("nothing is proved for Poisson")
    assert rigorous(records, "figure_s2_increases")["value"] == 1
    assert rigorous(records, "figure_s2_strict")["value"] == 0
    assert rigorous(records, "figure_s2_ww_fails")["value"] == 0


@pytest.mark.parametrize(
    ("row", "value", "change"),
    [
        ("table8_bounds", 1, ends(attack=1e-9, proved=1e-9)),
        ("table8_bounds", 0, ends(proved=1e-9)),  # one attack suffices
        # an attack too weak refutes nothing, a proof too weak proves it
        ("table8_bounds", np.nan, ends(attack=1e-9)),
        ("figure_s2_increases", np.nan, ends(attack=0.1)),
        ("figure_s2_increases", 0, scaled("proved_composition", "proved", "must_ow", -1.0)),
        (
            "figure_s2_strict",
            1,
            changed("composition", delta_lower=lambda frame: 0.0, delta_upper=lambda frame: 1.0),
        ),
        ("figure_s2_strict", np.nan, ends(attack=1e-9)),
        ("figure_s2_ww_fails", 1, scaled("proved_composition", "proved", "must_ww", np.inf)),
    ],
)
def test_a_rigorous_answer_follows_the_records(
    records: Frames, row: str, value: float, change: Callable[[Frames], Frames]
) -> None:
    np.testing.assert_equal(rigorous(change(records), row)["value"], value)


def test_statements_that_fail_can_hold(records: Frames) -> None:
    surface = swapped("design_surface", "delta_difference", "must_ow", "must_ww")
    assert stated(surface(records), "fig5_ww_delta") == 1
    failing = scaled("composition", "delta_upper", "must_ww", np.inf)
    assert stated(failing(records), "figure_s2_ww_fails") == 1
    assert stated(records, "table6_rmse_baseline") == 0
    better = records["linear_regression"].assign(
        rmse=lambda frame: frame["rmse"].where(frame["rmse"] >= 0.998, 1.1)
    )
    wider = better["rmse"].where(better["sampler"] != "wr", 1.2 + 9 * (better["rmse"] - 1))
    assert (
        stated({**records, "linear_regression": better.assign(rmse=wider)}, "table6_rmse_baseline")
        == 1
    )


def test_a_run_without_records_says_which_are_lacking() -> None:
    frame = compare(PUBLISHED, claims_values({}), ("claim",))
    lacking = frame[frame["verdict"] == "not_compared"]
    assert lacking["note"].str.startswith("this run has no stated records of ").all()
    assert set(frame["verdict"]) == {
        "not_compared",
        "used",
        "reported",
        "holds",
        "fails",
        "differs",
    }


def test_a_reduced_run_says_what_is_lacking(records: Frames) -> None:
    fewer = records["amplification_grid"].query("sampler != 'must_ww'")
    reduced = claims_values({**records, "amplification_grid": fewer}).set_index("claim")
    assert reduced["value"].isna()["table3_epsilon_order"]
    assert reduced.loc["table3_epsilon_order", "note"] == (
        "this run has no records of sampler must_ww"
    )


def test_a_stand_in_for_adult_is_never_compared(records: Frames) -> None:
    made_up = {**records, "adult_logistic": records["adult_logistic"].assign(data="synthetic")}
    frame = compare(PUBLISHED, claims_values(made_up), ("claim",), ("synthetic",))
    excused = frame[frame["note"].str.startswith(NOT_REAL)]
    assert set(excused["row"]) == {"adult_records", "adult_train", "adult_test", "table8_ow_best"}
    assert set(excused["verdict"]) == {"not_compared"}


def test_the_artefact_reads_the_records_that_its_claims_need(records: Frames) -> None:
    assert set(CLAIMS.experiments) == set(records)

"""Numbers and statements of the paper's text: each gets a value that a computation on records gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import MULTISETS
from dpsub.papers.must.artefacts.statements_amplification import AMPLIFICATION
from dpsub.papers.must.artefacts.statements_noise import NOISE_AND_COMPOSITION
from dpsub.papers.must.artefacts.statements_utility import UTILITY, is_real
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.predicates import Frames, LackingError, of_variant, pick

EXAMPLE_B, EXAMPLE_M = 10, 20  # the example of Section 3.1, n = 100
BOUND = 4  # data of experiment 1 are taken to lie in [-4, 4]


class Claims(Artefact):
    """What the paper says in its text: thresholds, counts, settings, and statements that hold (1) or fail (0)."""

    name = "claims"
    kind = "claims"
    caption = (
        "Numbers and statements of the text, each computed from the records: 1 where a statement holds, 0 where it "
        "fails; the note gives the numbers that decide."
    )
    experiments = (
        "amplification_grid", "amplification_crossings", "design_surface", "noise_calibration", "composition",
        "proved_composition", "subset_statistics", "linear_regression", "adult_logistic", "distinct_counts",
    )  # fmt: skip
    keys = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        return claims_values(records)


def claims_values(records: Records) -> pd.DataFrame:
    """Return the values of the text's numbers and statements.

    Parameters
    ----------
    records : mapping of str to DataFrame
        Records by experiment, with the column `variant`. An absent experiment leaves its claims without a value, and
        the note says which records are lacking.

    Returns
    -------
    DataFrame
        Columns `dpsub.reproduce.artefact.VALUE_COLUMNS`; `row` is the identifier of the claim.

    References
    ----------
    must, Sections 3 to 5 and S7, S8.
    """
    statements = [*AMPLIFICATION, *NOISE_AND_COMPOSITION, *UTILITY]
    rows = [*_thresholds(records), *_numbers(records), *_settings(records), *_adult(records), *_constants()]
    for statement in statements:
        rows += statement.answers(records)
    return values_frame(rows)


def _thresholds(records: Frames) -> Iterator[dict[str, Any]]:
    """Section S8: delta above which delta' < delta, as roots (stated) and as last grid points (as done)."""
    for mechanism in ("laplace", "gaussian"):
        for sampler in MULTISETS:
            base = {"claim": f"s8_threshold_{mechanism}_{sampler_label(sampler)}", "column": "delta_threshold"}
            for variant in ("stated", "as_done"):
                try:
                    crossings = of_variant(records, "amplification_crossings", variant)
                    found = pick(crossings, kind="threshold", mechanism=mechanism, sampler=sampler)
                    yield {**base, "variant": variant, "value": float(found["delta"].iloc[0])}
                except LackingError as reason:
                    if variant == "stated":
                        yield {**base, "variant": variant, "note": str(reason)}


def _stated(records: Frames, row: str, column: str, number: Callable[[Frames], float]) -> dict[str, Any]:
    """Return a row of the variant `stated`, without value and with the reason where records are lacking."""
    base = {"claim": row, "column": column, "variant": "stated"}
    try:
        return {**base, "value": number(records)}
    except LackingError as reason:
        return {**base, "note": str(reason)}


def _numbers(records: Frames) -> Iterator[dict[str, Any]]:
    """Numbers of the text that are no settings."""

    def efficiency(frames: Frames) -> float:
        counts = pick(of_variant(frames, "distinct_counts", "stated"), experiment=3, sampler=("wor", "must_ww"))
        mean = counts.set_index("sampler")["law_mean"]
        return float(100 * (mean["wor"] / mean["must_ww"] - 1))

    def largest_ratio(frames: Frames) -> float:
        noise = pick(of_variant(frames, "noise_calibration", "stated"), table="table4", statistic="mean")
        sigma = pick(noise, sampler=("poisson", "must_ow")).groupby("sampler")["sigma"].min()
        return float(sigma["poisson"] / sigma["must_ow"])

    def one_over_n(frames: Frames) -> float:
        return float(pick(of_variant(frames, "noise_calibration", "stated"), table="table8")["delta"].iloc[0])

    def grid_length(frames: Frames) -> float:
        length, points = (_composed(frames, name, table="figure_s2") for name in ("half_width", "grid_size"))
        return 2 * length / points

    def iterations(frames: Frames) -> float:
        return _composed(frames, "n_compositions", table="table8")

    yield _stated(records, "efficiency_ww", "pct_efficiency_increase", efficiency)
    yield _stated(records, "exp1_sigma_ratio", "max_sigma_ratio_Poisson_over_MUST.OW", largest_ratio)
    yield _stated(records, "adult_inv_n", "one_over_n", one_over_n)
    yield _stated(records, "s2_dx", "delta_x", grid_length)
    yield _stated(records, "sgd_k", "iterations_k", iterations)


def _composed(records: Frames, column: str, **fields: object) -> float:
    return float(pick(of_variant(records, "composition", "stated"), **fields)[column].iloc[0])


def _reader(column: str, fields: dict[str, object]) -> Callable[[Frames], float]:
    return lambda frames: _composed(frames, column, **fields)


def _end(records: Frames, experiment: str, column: str, end: str) -> float:
    values = of_variant(records, experiment, "stated")[column].to_numpy(dtype=float)
    return float(values.min() if end == "min" else values.max())


def _settings(records: Frames) -> Iterator[dict[str, Any]]:
    """Settings that the records of this run show."""
    table8, figure = {"table": "table8"}, {"table": "figure_s2"}
    shown: dict[str, tuple[str, str, dict[str, object]]] = {
        "adult_T": ("iterations_k", "n_compositions", {**table8}),
        "eps_c": ("epsilon_c", "epsilon", {**table8}),
        "fa_L": ("L", "half_width", {**table8}),
        "fa_r_WR": ("r", "grid_size", {**table8, "sampler": "wr"}),
        "fa_r_other": ("r", "grid_size", {**table8, "sampler": "must_ow"}),
        "s2_sigma": ("sigma", "scale", {**figure}),
        "s2_L": ("L", "half_width", {**figure}),
        "s2_r": ("r", "grid_size", {**figure}),
        "s2_eps": ("epsilon", "epsilon", {**figure}),
        **{f"s2_k{k}": ("k", "n_compositions", {**figure, "n_compositions": k}) for k in range(200, 1001, 200)},
    }
    for row, (column, source, fields) in shown.items():
        yield _stated(records, row, column, _reader(source, fields))
    ends = {
        "fig4_eps_max": ("epsilon_max", "amplification_grid", "epsilon", "max"),
        "fig5_m_lo": ("m_min", "design_surface", "m", "min"),
        "fig5_m_hi": ("m_max", "design_surface", "m", "max"),
        "fig5_b_lo": ("b_min", "design_surface", "b", "min"),
        "fig5_b_hi": ("b_max", "design_surface", "b", "max"),
    }
    for row, (column, experiment, source, end) in ends.items():
        yield _stated(records, row, column, partial(_end, experiment=experiment, column=source, end=end))
    parameters = partial(_end, experiment="adult_logistic", column="n_parameters", end="max")
    yield _stated(records, "sgd_p", "parameters_p", parameters)


def _adult(records: Frames) -> Iterator[dict[str, Any]]:
    """Rows of Adult that the fits used, where the data are real."""
    for row, column, parts in (
        ("adult_records", "records", ["n_train", "n_test"]),
        ("adult_train", "training_rows", ["n_train"]),
        ("adult_test", "test_rows", ["n_test"]),
    ):
        found = _stated(records, row, column, partial(_rows_used, parts=parts))
        yield {**found, "standard_error": 0.0, "replicates": 1} if "value" in found else found


def _rows_used(records: Frames, parts: list[str]) -> float:
    if reason := is_real(records):
        raise LackingError(reason)
    return float(of_variant(records, "adult_logistic", "stated")[parts].iloc[0].sum())


def _constants() -> Iterator[dict[str, Any]]:
    """Numbers that need no records."""
    inside = 100 * math.erf(BOUND / math.sqrt(2))
    yield {
        "claim": "exp1_cover", "column": "pct_inside_bounds_lower_limit", "variant": "stated",
        "value": float(inside > 99.99), "note": f"{inside:.4f} % inside",
    }  # fmt: skip
    expected = EXAMPLE_B * -np.expm1(EXAMPLE_M * np.log1p(-1 / EXAMPLE_B))
    yield {
        "claim": "sec31_ow_distinct", "column": "gradients_computed", "variant": "stated", "value": float(expected),
        "note": f"expectation b (1 - (1 - 1/b)^m); never more than {EXAMPLE_B}",
    }  # fmt: skip
    yield {
        "claim": "sec31_wo_sizes", "column": "holds", "variant": "stated", "value": float(EXAMPLE_B >= EXAMPLE_M),
        "note": f"b = {EXAMPLE_B} < m = {EXAMPLE_M}",
    }  # fmt: skip

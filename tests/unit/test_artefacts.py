"""Parts that all tables and figures share: statistics, digits, layout, escaping, and the cells that
join printed and ours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsub.errors import ArgumentError
from dpsub.reproduce import artefacts, experiments, published, statistics
from dpsub.reproduce.artefacts import values_frame
from dpsub.reproduce.digits import as_printed, form_of, written
from dpsub.reproduce.labels import display, escape_latex, escape_markdown, in_symbols
from dpsub.reproduce.layout import Layout, blocks, latex, markdown, table_cells
from dpsub.reproduce.verdicts import compare, overall

HOSTILE = r"a|b `c` <script> [d](e) *f* _g_ $h$ #i \end{table} & 50% ~x^2 {z}"


@pytest.mark.parametrize("name", artefacts.REGISTRY.names())
def test_every_artefact_says_what_it_is(name: str) -> None:
    artefact = artefacts.REGISTRY.get(name)()
    assert artefact.identifier == name
    assert artefact.kind in ("table", "figure", "claims")
    assert (
        artefact.title
        and not artefact.title.endswith(".")
        and not set("`*\\{}\n") & set(artefact.title)
    )
    for kind in ("table", "figure"):
        if number := re.fullmatch(kind + r"(S?\d+)", artefact.name):
            # numbered as in the paper
            assert re.match(rf"{kind.title()} ({number[1]}|I)\. ", artefact.title)
    assert artefact.caption.endswith(".") and not set("`\n") & set(artefact.caption)
    assert artefact.timed == any(
        experiments.REGISTRY.get(read).timed for read in artefact.experiments
    )


DRAWS = np.random.default_rng(8).gamma(3.0, size=400)


@pytest.mark.parametrize(
    "summary", [statistics.mean, statistics.deviation, statistics.root_mean_square]
)
def test_errors_agree_with_the_jackknife(
    summary: Callable[[np.ndarray], statistics.Estimate],
) -> None:
    left_out = np.array([summary(np.delete(DRAWS, i)).value for i in range(DRAWS.size)])
    jackknife = math.sqrt((DRAWS.size - 1) / DRAWS.size * np.sum((left_out - left_out.mean()) ** 2))
    assert summary(DRAWS).standard_error == pytest.approx(jackknife, rel=0.03)


def test_error_of_a_deviation_sees_the_kurtosis() -> None:
    normal = np.random.default_rng(3).normal(size=20_000)
    assert statistics.deviation(normal).standard_error == pytest.approx(
        1 / math.sqrt(2 * 20_000), rel=0.05
    )
    two_points = np.repeat([-1.0, 1.0], 500)
    assert statistics.deviation(two_points).standard_error < 0.1 / math.sqrt(2 * 1000)
    found = statistics.deviation(np.ones(5))
    assert (found.value, found.standard_error, found.replicates) == (0.0, 0.0, 5)
    assert math.isnan(found.lower) and math.isnan(found.upper)


def test_paired_difference_is_the_mean_of_differences() -> None:
    found = statistics.paired_difference(DRAWS[:50], DRAWS[50:100])
    expected = stats.ttest_rel(DRAWS[:50], DRAWS[50:100]).confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high))


def test_one_replicate_has_no_error_and_bad_input_is_refused() -> None:
    one = np.array([2.0])
    assert math.isnan(statistics.mean(one).standard_error) and math.isnan(
        statistics.deviation(one).value
    )
    assert all(math.isnan(end) for end in statistics.interval(statistics.mean(one)))
    with pytest.raises(ArgumentError, match="needs at least one replicate, got none"):
        statistics.mean(np.array([]))
    with pytest.raises(ArgumentError, match="must be finite, got 1 NaN"):
        statistics.mean(np.array([1.0, np.nan]))
    with pytest.raises(ArgumentError, match="must have one length, got 2 and 3"):
        statistics.paired_difference(np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.0123456, "0.976", "0.012"),
        (2.87e-5, "0.095", "2.87 × 10⁻⁵"),
        (4.172e-6, "4.17e-06", "4.17 × 10⁻⁶"),
        (0.0, "0.095", "0"),
        (math.nan, "0.095", ""),
        (28.25, "29", "28"),
        (1.5, "", "1.500"),
        (0.95548, "1e-06", "1"),
        (1e-15, "", "1.000 × 10⁻¹⁵"),
        (9.99996e-5, "", "1.000 × 10⁻⁴"),
        (math.inf, "0.1", "∞"),
        (8000.0, "1", "8000"),
        (-0.0042, "0.0029", "−0.0042"),
        (-0.0004, "0.00", "−4.00 × 10⁻⁴"),
        (7031359.55, "1.00", "7031359.55"),
    ],
)
def test_numbers_take_the_digits_of_the_printed_one(value: float, form: str, text: str) -> None:
    assert written(value, form) == text


@pytest.mark.parametrize(
    ("value", "about", "text"),
    [
        (0.74748, {"error": 4e-5}, "0.747480 ± 0.000040"),
        (0.0774, {"error": 2.1e-4}, "0.07740 ± 0.00021"),
        (0.00047, {"error": 0.01212}, "0.000 ± 0.012"),
        (28.6056, {"error": 0.0112}, "28.606 ± 0.011"),
        (6.53e-5, {"error": 7.8e-7}, "(6.530 ± 0.078) × 10⁻⁵"),
        (123456, {"error": 789}, "(1.2346 ± 0.0079) × 10⁵"),
        (0.4125, {"error": 3.9e-17}, "0.412"),
        (
            0.0069,
            {"error": 0.003, "lower": 0.00089, "upper": 0.01287},
            "0.0069 ± 0.0030 [0.0008, 0.0129]",
        ),
        (0.413504, {"lower": 0.413461, "upper": 0.413549}, "0.41350 [0.41346, 0.41355]"),
        (6926123, {"lower": 6897000, "upper": 6945000}, "6.93 × 10⁶ [6.89, 6.95] × 10⁶"),
        (100, {"lower": 100, "upper": 100}, "100.000"),
        (0.57011, {"side": "upper"}, "0.571"),
        (0.40139, {"side": "lower"}, "0.401"),
        (0.3, {"side": "upper"}, "0.300"),
    ],
)
def test_a_number_has_the_digits_that_its_error_allows(
    value: float, about: dict[str, Any], text: str
) -> None:
    assert written(value, "0.976", **about) == text


def test_a_count_stays_whole_and_a_column_has_one_form() -> None:
    assert written(15, "15", lower=13, upper=17) == "15 [13, 17]"
    assert (
        form_of(["0.1", "0.22", "0.33", "NA"], []) == "1.00"
        and form_of(["2e-5", "4.17e-06"], []) == "1.00e+00"
    )
    assert (form_of(["", "0"], [3.0, math.nan]), form_of([], [3.0, 0.5])) == ("1", "")
    assert form_of(["", "0"], [0.4014, math.nan]) == "1.00e+00"


def test_powers_of_ten_are_written_as_such() -> None:
    printed = {
        "4.17e-06": "4.17 × 10⁻⁶",
        "1e-05": "10⁻⁵",
        "-0.0038": "−0.0038",
        "0": "0",
        "NA": "NA",
    }
    assert {text: as_printed(text) for text in printed} == printed
    prose = "delta' of eps at delta=1e-05, for T1.eps.1e-5 and must_eta; eta <= 1"
    assert in_symbols(prose) == "δ′ of ε at δ=10⁻⁵, for T1.eps.1e-5 and must_eta; η ≤ 1"
    for text, tex in {
        "3 × 10⁻⁵": r"$3 \times 10^{-5}$",
        "(6.5 ± 0.1) × 10⁻⁵": r"(6.5 $\pm$ 0.1)${}\times 10^{-5}$",
        "−0.2 ≠": r"$-0.2$ $\neq$",
        "ε′ ≤ β₀": r"$\epsilon'$ $\leq$ "
        r"$\beta_0$",
    }.items():
        assert escape_latex(text) == tex


def cells_of(printed: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    return table_cells(("sampler",), printed, values, compare(printed, values, ("sampler",)))


def test_hostile_text_is_escaped_and_stays_in_its_cell() -> None:
    shown = escape_markdown(HOSTILE + "\n| next")
    assert "\n" not in shown
    for sign in "|`<>[]*_$#&~{}":
        assert all(shown[place - 1] == "\\" for place, letter in enumerate(shown) if letter == sign)
    tex = escape_latex(HOSTILE)
    assert r"\end{table}" not in tex
    assert all(text in tex for text in (r"\textbackslash{}end\{table\}", r"50\%", r"\_g\_"))
    values = values_frame(
        [{"sampler": HOSTILE, "column": "sigma", "variant": "stated", "value": 1.0, "note": "x|y"}]
    )
    cells = cells_of(
        pd.DataFrame(columns=["paper", "artefact", "sampler", *published.FIELDS]), values
    )
    for layout in (Layout(), None):
        lines = [
            line for line in markdown(HOSTILE, layout, cells).splitlines() if line.startswith("|")
        ]
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
        tex = latex(HOSTILE, layout, cells)
        assert tex.count(r"\end{table}") + tex.count(r"\end{longtable}") == 1
        assert r"\textbackslash{}end" in tex


@pytest.mark.parametrize(
    ("field", "value", "tex", "shown"),
    [
        ("sampler", "must_ow", False, "MUST.OW"),
        ("sampler", "nonprivate", False, "non-private"),
        ("epsilon_amplified", "0.01", True, r"$\epsilon'$ = 0.01"),
        ("experiment", "2", False, "experiment 2"),
        ("b", "", False, ""),
        ("sampler", "of_another_paper", False, "of another paper"),
        ("statement", "T3.1 upper", False, "Theorem 3.1 upper"),
        ("statement", "(10)", False, "Equation 10"),
        ("statement", "Section 5.1 tight", False, "Section 5.1 tight"),
        ("case", "m 4, n 10", False, "m 4, n 10"),
        ("attack", "first_centres", False, "first centres"),
    ],
)
def test_display_names(field: str, value: str, tex: bool, shown: str) -> None:
    assert display(field, value, latex=tex) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ε at δ = 1/n, attack", r"$\epsilon$ at $\delta = 1/n$, attack"),
        ("σ m", r"$\sigma m$"),
        ("time increase, %", r"time increase, \%"),
    ],
)
def test_signs_of_the_field_are_formulas_in_latex(text: str, shown: str) -> None:
    assert escape_latex(text) == shown


def test_layout_places_every_cell_once() -> None:
    def placed(
        layout: Layout, *fields: str
    ) -> list[tuple[list[str], list[tuple[list[str], list[str]]]]]:
        rows = [dict(zip(("sampler", "b", "column"), one.split(), strict=True)) for one in fields]
        table = pd.DataFrame(rows).assign(printed="1")
        found = blocks(
            layout, table, lambda _, value: value, lambda cell, _: f"{cell['b']} {cell['column']}"
        )
        return [
            (block.heads, [(group.labels, group.rows[0].entries) for group in block.groups])
            for block in found
        ]

    cells = [f"{sampler} {b} sigma" for sampler in ("wor", "must_ow") for b in ("10", "20")]
    lines = [([sampler], ["10 sigma", "20 sigma"]) for sampler in ("wor", "must_ow")]
    assert placed(Layout(heads=("b",)), *cells) == [(["10", "20"], lines)]
    assert placed(Layout(first=("z",)), "a 1 y", "a 1 z") == [
        (["z", "y"], [(["a"], ["1 z", "1 y"])])
    ]


def test_cells_join_printed_ours_and_verdict() -> None:
    printed = pd.DataFrame(
        [
            [
                "demo",
                "table6",
                sampler,
                "sigma",
                text,
                "exact",
                np.nan,
                np.nan,
                "suspect",
                "E3",
                "why",
            ]
            for sampler, text in (("wor", "0.118"), ("wr", "0.5"), ("must_ow", "0.7"))
        ],
        columns=["paper", "artefact", "sampler", *published.FIELDS],
    )
    values = values_frame(
        {"sampler": sampler, "column": "sigma", "variant": variant, "value": value}
        for sampler, variant, value in (
            ("must_wo", "stated", 0.3),
            ("wor", "stated", 0.1181),
            ("wr", "stated", 0.1),
            ("wr", "as_done", 0.5),
        )
    )
    cells = cells_of(printed, values).set_index("sampler")
    assert list(cells.index) == ["must_wo", "wor", "wr", "must_ow"]
    assert list(cells["printed"]) == ["", "0.118", "0.5", "0.7"]
    assert list(cells["verdict"]) == ["", "reproduced", "reproduced_as_done", "not_compared"]
    assert math.isnan(cells.loc["must_ow", "stated"])
    assert "stated_standard_error" not in cells.columns
    text = markdown("Caption.", Layout(), cells.reset_index())
    for line in (
        "| WR | printed | 0.5 |",
        "|  | as stated | 0.1 ≠ E3 |",
        "|  | as done | 0.5 ≈ E3 |",
        "| WOR | printed | 0.118 |\n|  | as stated | 0.118 |",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"stated": "reproduced", "as_done": "reproduced"}, "reproduced"),
        (
            {"stated": "differs", "as_done": "within_error_as_done", "consistent": "shown"},
            "within_error_as_done",
        ),
        ({"stated": "differs", "as_done": "differs"}, "differs"),
        ({}, ""),
    ],
)
def test_overall_verdict_prefers_stated_then_as_done(found: dict[str, str], verdict: str) -> None:
    assert overall(found) == verdict

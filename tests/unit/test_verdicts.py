"""Verdicts: each rule, Holm's procedure, rounding, variants, planted faults; the expected ones and
their scripts."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published, verdicts
from tests.few import few

FOLDER = Path(__file__).resolve().parents[2] / "src/dpsub/papers"


def printed(text: str, kind: str = "exact", **fields: Any) -> dict[str, Any]:
    row = {
        "paper": "demo",
        "artefact": "table",
        "sampler": "wr",
        "column": "mean",
        "printed": text,
        "kind": kind,
        "replicates": math.nan,
        "spread": math.nan,
        "status": "as_printed",
        "erratum": "",
        "note": "",
    }
    return {**row, **fields}


def ours(value: float, variant: str = "stated", **fields: Any) -> dict[str, Any]:
    row = dict.fromkeys(("standard_error", "replicates", "lower", "upper"), math.nan)
    return {
        "sampler": "wr",
        "column": "mean",
        "variant": variant,
        "value": value,
        "note": "",
        **row,
        **fields,
    }


def compare(
    numbers: list[dict[str, Any]], values: list[dict[str, Any]], labels: tuple[str, ...] = ()
) -> pd.DataFrame:
    frame = pd.DataFrame(values, columns=["sampler", *verdicts.VALUE_COLUMNS])
    return verdicts.compare(pd.DataFrame(numbers), frame, ("sampler",), labels)[
        list(verdicts.COLUMNS)
    ]


def verdict(number: dict[str, Any], *values: dict[str, Any], labels: tuple[str, ...] = ()) -> str:
    return str(compare([number], list(values), labels)["verdict"].iloc[0])


# Exact numbers.


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("0.050", 0.0504999, "reproduced"),
        ("0.050", 0.0505, "reproduced"),  # a tie may be rounded either way
        ("0.051", 0.0505, "reproduced"),
        ("0.050", math.nextafter(0.0505, 1), "differs"),
        ("0.050", math.nextafter(0.0495, 0), "differs"),
        ("5.73e-05", 5.7349e-05, "reproduced"),
        ("5.73e-05", 5.7351e-05, "differs"),
        ("1.22e-26", 1.224e-26, "reproduced"),
        ("1.22e-26", 0.0, "differs"),
        ("-0.0024", -0.00244, "reproduced"),
        ("-0.0024", 0.0024, "differs"),
        ("33", 33.37, "reproduced"),
        ("3000", 1000.0, "differs"),
        ("0.05", math.inf, "differs"),
        ("0", 0.0, "reproduced"),
        ("0", 1e-300, "differs"),  # a bare 0 is exactly zero
        ("0.000", 4e-4, "reproduced"),
    ],
)
def test_an_exact_number_must_round_into_the_printed_interval(
    text: str, value: float, expected: str
) -> None:
    assert verdict(printed(text), ours(value)) == expected


@given(
    st.integers(-(10**6), 10**6), st.integers(0, 6), st.integers(1, 10**6), st.sampled_from([-1, 1])
)
def test_half_a_unit_and_a_little_more_differs(
    number: int, digits: int, excess: int, sign: int
) -> None:
    assume(number != 0 or digits > 0)
    text = f"{Decimal(number).scaleb(-digits):f}"
    shown = published.parse_printed(text)
    edge = shown.value + sign * shown.half_unit
    beyond = edge + sign * shown.place * excess / Decimal(10**7)
    assert verdicts.rounds_into(float(edge), shown)
    assume(Decimal(repr(float(beyond))) == beyond)
    assert not verdicts.rounds_into(float(beyond), shown)


@pytest.mark.parametrize(
    ("variants", "only"), [(("rigorous",), "rigorous"), (("consistent", "rigorous"), None)]
)
def test_a_number_of_no_judged_variant_says_so(variants: tuple[str, ...], only: str | None) -> None:
    table = compare([printed("0.05")], [ours(0.05, variant=name) for name in variants])
    assert list(table["verdict"]) == ["not_compared", *("shown" for _ in variants)]
    assert table["note"].iloc[0] == (
        f"computed only as {only or 'consistent and rigorous'}, and only what is stated or as_done "
        "is judged"
    )


def test_a_number_without_any_value_may_be_of_a_reduced_run() -> None:
    assert compare([printed("0.05")], [])["note"].iloc[0] == verdicts.REDUCED


# Monte Carlo numbers.


def mean_row(value: float, **fields: Any) -> dict[str, Any]:
    return ours(value, **{"standard_error": 0.004, "replicates": 200, **fields})


def test_z_is_the_gap_to_the_rounding_interval_over_both_errors() -> None:
    number = printed("0.990", "monte_carlo", replicates=200, spread=0.084)
    frame = compare([number], [mean_row(1.005)])
    z = (1.005 - 0.9905) / math.hypot(0.004, 0.084 / math.sqrt(200))
    assert frame["note"].iloc[0] == f"z = {z:.2g}"
    assert frame["verdict"].iloc[0] == "within_error"
    assert frame["lower"].iloc[0] == pytest.approx(1.005 - 1.96 * 0.004)


def test_two_sided_p_agrees_with_the_normal_tail() -> None:
    z, p = verdicts.two_sided_p(1.0, published.parse_printed("0.90"), 0.03, 0.04)
    assert z == pytest.approx((0.1 - 0.005) / 0.05)
    assert p == pytest.approx(2 * stats.norm.cdf(-z))
    assert verdicts.two_sided_p(0.904, published.parse_printed("0.90"), 0.0, 0.0) == (0.0, 1.0)
    assert verdicts.two_sided_p(0.91, published.parse_printed("0.90"), 0.0, 0.0) == (math.inf, 0.0)


def test_a_single_cell_is_judged_at_one_percent() -> None:
    number = printed("1.0000", "monte_carlo", replicates=200, spread=0.04 * math.sqrt(200))
    limit = float(stats.norm.isf(0.005)) * math.hypot(0.03, 0.04)
    for factor, expected in ((0.99, "within_error"), (1.01, "differs")):
        assert (
            verdict(number, mean_row(1 + 0.00005 + factor * limit, standard_error=0.03)) == expected
        )


def test_an_error_that_the_paper_does_not_print_is_ours_at_its_number_of_replicates() -> None:
    assert verdicts.paper_error(0.01, 100, 200, math.nan) == pytest.approx(0.01 / math.sqrt(2))
    # the SD over our seeds
    assert verdicts.paper_error(0.01, 100, 1, math.nan) == pytest.approx(0.1)
    assert verdicts.paper_error(0.01, 100, 200, 0.5) == pytest.approx(0.5 / math.sqrt(200))
    assert verdicts.paper_error(0.0, math.nan, 200, math.nan) == 0
    with pytest.raises(ArgumentError, match="must come with its number of replicates, got nan"):
        verdicts.paper_error(0.01, math.nan, 200, math.nan)


def test_a_deviation_without_error_gets_the_one_of_a_normal_sample() -> None:
    assert verdicts.spread_error(0.06, 200) == pytest.approx(0.06 / math.sqrt(398))
    number = printed("0.060", "monte_carlo", column="error_sd", replicates=200)
    far, near = 0.0605 + 4 * 0.06 * math.sqrt(2 / 398), 0.0605 + 0.06 * math.sqrt(2 / 398)
    for value, expected in ((near, "within_error"), (far, "differs")):
        assert verdict(number, ours(value, column="error_sd", replicates=200)) == expected


def test_one_replicate_is_not_compared() -> None:
    frame = compare(
        [printed("0.990", "monte_carlo", replicates=200, spread=0.08)], [ours(1.2, replicates=1)]
    )
    assert frame["verdict"].iloc[0] == "not_compared"
    assert frame["note"].iloc[0] == "no standard error: this run has too few replicates"


def test_holm_on_a_worked_example() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert verdicts.holm(p, 0.05).tolist() == [True, False, False, True]
    assert verdicts.holm([0.02, 0.03], 0.05).tolist() == [True, True]
    assert verdicts.holm([0.03, 0.03], 0.05).tolist() == [False, False]
    assert verdicts.holm([], 0.05).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.001, 0.2))
def test_holm_lies_between_bonferroni_and_no_correction(p: list[float], level: float) -> None:
    rejected = verdicts.holm(p, level)
    values = np.array(p)
    assert np.all(rejected >= (values <= level / len(p)))
    assert np.all(rejected <= (values <= level))


def test_holm_spans_the_artefact_and_each_judged_variant_has_its_own_family() -> None:
    number = printed("1.0000", "monte_carlo", replicates=200, spread=1e-9)
    z = float(stats.norm.isf(0.002))  # p = 0.004: too small alone, large enough among three
    value = 1.00005 + z * 0.004
    cells = [{**number, "sampler": name} for name in ("wr", "wor", "poisson")]
    assert verdict(cells[0], mean_row(value)) == "differs"
    rows = [mean_row(value), mean_row(1.0, sampler="wor"), mean_row(1.0, sampler="poisson")]
    assert set(compare(cells, rows)["verdict"]) == {"within_error"}
    frame = compare(cells, [*rows, mean_row(value, variant="as_done")])
    assert frame.set_index("variant")["verdict"]["as_done"] == "differs"


@pytest.mark.parametrize(
    ("families", "most"),
    # at a rate of 1 %, more than `most` alarms have probability 2e-6
    few([(50, 6), (400, 17)], more=0),
)
def test_the_false_alarm_rate_is_below_the_level(families: int, most: int) -> None:
    rng = np.random.default_rng(20231220)
    cells, paper_sd = 22, 0.5
    alarms: int = 0
    for _ in range(families):
        theirs = rng.normal(1.0, paper_sd / math.sqrt(200), cells)
        mine = rng.normal(1.0, paper_sd / math.sqrt(200), cells)
        numbers = [
            printed(f"{x:.3f}", "monte_carlo", sampler=str(i), replicates=200, spread=paper_sd)
            for i, x in enumerate(theirs)
        ]
        error = paper_sd / math.sqrt(200)
        rows = [
            ours(x, sampler=str(i), standard_error=error, replicates=200)
            for i, x in enumerate(mine)
        ]
        alarms += int((compare(numbers, rows)["verdict"] == "differs").any())
    assert stats.binom.sf(most, families, 0.01) < 2e-6
    assert alarms <= most


# Other kinds.


@pytest.mark.parametrize(
    ("number", "values", "expected"),
    [
        (
            printed("14", "extreme", replicates=10000),
            [ours(17.0, lower=14, upper=20)],
            "within_error",
        ),
        (
            printed("20", "extreme", replicates=10000),
            [ours(17.0, lower=14, upper=20)],
            "within_error",
        ),
        (printed("21", "extreme", replicates=10000), [ours(17.0, lower=14, upper=20)], "differs"),
        # no interval of the exact law
        (printed("14", "extreme", replicates=10000), [ours(14.0)], "differs"),
        (
            printed("41292", "real_data"),
            [ours(41292, standard_error=0.0, replicates=1)],
            "within_error",
        ),
        # a count
        (printed("41292", "real_data"), [ours(41293, standard_error=0.0, replicates=1)], "differs"),
        (printed("eta decreases with m", "claim"), [ours(1.0)], "holds"),
        (printed("eta decreases with m", "claim"), [ours(0.0)], "fails"),
        (printed("350.00", "timing"), [], "reported"),
        (printed("curves", "structure"), [], "structure_only"),
        (printed("curves", "structure"), [ours(1.0)], "structure_only"),
        (printed("3e+05", "setting"), [ours(300000)], "used"),
    ],
)
def test_each_kind_has_its_rule(
    number: dict[str, Any], values: list[dict[str, Any]], expected: str
) -> None:
    assert verdict(number, *values, labels=("real",)) == expected


def test_a_claim_without_value_gives_its_reason() -> None:
    frame = compare(
        [printed("WW is best", "claim", note="Section 4")],
        [ours(math.nan, note="no records of it")],
    )
    assert frame[["verdict", "note"]].iloc[0].tolist() == [
        "not_compared",
        "no records of it; Section 4",
    ]


@pytest.mark.parametrize(
    ("formula", "truth", "verdict", "said"),
    [
        (1.0, [ours(1.0, "rigorous")], "proved", ""),
        (1.0, [ours(0.0, "rigorous")], "refuted", "holds by the paper's formula, refuted"),
        (1.0, [ours(math.nan, "rigorous")], "open", "holds by the paper's formula, open"),
        (1.0, [], "open", "holds by the paper's formula, open"),
        (0.0, [ours(1.0, "rigorous")], "proved", "fails by the paper's formula, proved"),
        (0.0, [ours(0.0, "rigorous")], "refuted", ""),
        (0.0, [ours(math.nan, "rigorous")], "fails", ""),
    ],
)
def test_a_statement_about_privacy_is_judged_by_what_is_true(
    formula: float, truth: list[dict[str, Any]], verdict: str, said: str
) -> None:
    frame = compare(
        [printed("delta is below 1/n", "privacy")],
        [ours(formula), ours(formula, "as_done"), *truth],
    )
    judged = frame.set_index("variant")
    for variant in ("stated", "as_done"):
        assert judged.loc[variant, ["value", "verdict", "note"]].tolist() == [
            formula,
            verdict,
            said,
        ]
    if truth and verdict != "fails":
        assert judged.loc["rigorous", "verdict"] == verdict
    assert list(verdicts.overall_by_cell(frame).values()) == [verdict]


def test_a_statement_about_privacy_without_records_is_not_compared() -> None:
    compared = compare(
        [printed("delta is below 1/n", "privacy")], [ours(math.nan, note="no records")]
    )
    assert compared["verdict"].tolist() == ["not_compared"]


def test_every_verdict_of_a_statement_agrees_fails_or_is_neither() -> None:
    assert not set(verdicts.AGREEING) & set(verdicts.FAILING)
    assert {agree for agree, *_ in verdicts.WORDS.values()} <= set(verdicts.AGREEING)
    assert {differ for *_, differ in verdicts.WORDS.values()} <= set(verdicts.FAILING)
    neither = {
        verdicts.OPEN,
        *(only for _, only, _ in verdicts.WORDS.values()),
        *verdicts.UNJUDGED.values(),
    }
    assert not neither & {*verdicts.AGREEING, *verdicts.FAILING}


def test_numbers_on_real_data_are_judged_on_real_data_only() -> None:
    number = printed("0.979", "real_data", column="accuracy", replicates=1)
    near, far = (
        ours(x, column="accuracy", standard_error=0.0002, replicates=100) for x in (0.977, 0.764)
    )
    assert verdict(number, near, labels=("real",)) == "within_error"
    assert verdict(number, far, labels=("real",)) == "differs"
    frame = compare(
        [number],
        [far, {**near, "variant": "as_done"}, {**near, "variant": "consistent"}],
        ("synthetic",),
    )
    assert frame["verdict"].tolist() == ["not_compared", "not_compared", "shown"]
    assert frame["note"].tolist() == ["not the real data but synthetic"] * 3
    assert frame["value"].tolist() == [0.764, 0.977, 0.977]


def test_timings_are_reported_without_clock_times() -> None:
    frame = compare([printed("350.00", "timing")], [ours(411.0, note="")])
    assert frame["verdict"].iloc[0] == "reported"
    assert math.isnan(frame["value"].iloc[0])
    assert "clock times are in" in frame["note"].iloc[0]


def test_a_setting_that_the_run_has_not_is_shown_as_printed_and_another_one_is_named() -> None:
    setting = printed("3e+05", "setting", note="Section 4")
    for values, expected in (
        ([], [300000, "used", f"Section 4; {verdicts.NO_SETTING}"]),
        ([ours(2000)], [2000, "not_compared", "this run uses 2000; Section 4"]),
    ):
        assert compare([setting], values)[["value", "verdict", "note"]].iloc[0].tolist() == expected
    # what the configuration says, not reduced records
    values = pd.DataFrame([{**ours(2000), "configured": True}])
    frame = verdicts.compare(pd.DataFrame([setting]), values, ("sampler",))
    assert frame[["value", "verdict"]].iloc[0].tolist() == [2000, "differs"]


def test_a_number_without_value_is_not_compared() -> None:
    frame = compare([printed("0.12")], [ours(0.12, column="other")])
    assert frame[["variant", "verdict"]].iloc[0].tolist() == ["stated", "not_compared"]
    assert "no value in this run" in frame["note"].iloc[0]


# Variants.


def judged(kind: str, stated: float, as_done: float) -> list[str]:
    number = printed("1.0", kind, replicates=200, spread=0.1, erratum="E3")
    extra: dict[str, Any] = {"standard_error": 0.01, "replicates": 200, "lower": 0.9, "upper": 1.1}
    if kind == "extreme":
        rows = [
            ours(x, v, lower=x - 0.1, upper=x + 0.1)
            for x, v in ((stated, "stated"), (as_done, "as_done"))
        ]
    else:
        rows = [ours(stated, **extra), ours(as_done, "as_done", **extra)]
    frame = compare([number], rows)
    assert set(frame["erratum"]) == {"E3"}
    return frame["verdict"].tolist()


@pytest.mark.parametrize(
    ("kind", "agree", "only_as_done", "differ"),
    [
        ("exact", "reproduced", "reproduced_as_done", "differs"),
        ("monte_carlo", "within_error", "within_error_as_done", "differs"),
        ("real_data", "within_error", "within_error_as_done", "differs"),
        ("extreme", "within_error", "within_error_as_done", "differs"),
        ("claim", "holds", "reproduced_as_done", "fails"),
    ],
)
def test_a_cell_that_agrees_only_as_done_says_so(
    kind: str, agree: str, only_as_done: str, differ: str
) -> None:
    assert judged(kind, 1.0, 1.0) == [agree, agree]
    assert judged(kind, 1.0, 5.0) == [agree, differ]
    assert judged(kind, 5.0, 1.0) == [differ, only_as_done]
    assert judged(kind, 5.0, 5.0) == [differ, differ]


def test_other_variants_are_shown_and_never_judged() -> None:
    values = [ours(0.5, "rigorous"), ours(0.12, "consistent"), ours(0.9), ours(0.12, "as_done")]
    frame = compare([printed("0.12")], values)
    assert frame["variant"].tolist() == ["stated", "as_done", "consistent", "rigorous"]
    assert frame["verdict"].tolist() == ["differs", "reproduced_as_done", "shown", "shown"]


def test_a_number_with_shown_variants_only_is_not_compared() -> None:
    frame = compare([printed("0.12")], [ours(0.12, "consistent")])
    assert frame[["variant", "verdict"]].values.tolist() == [
        ["stated", "not_compared"],
        ["consistent", "shown"],
    ]


def test_the_columns_and_the_order_of_the_rows() -> None:
    numbers = [printed("1", sampler=name) for name in ("wr", "poisson", "wor")]
    frame = compare(numbers, [ours(1.0, sampler=name) for name in ("wor", "wr", "poisson")])
    assert tuple(frame.columns) == (
        "paper",
        "artefact",
        "row",
        "column",
        "printed",
        "kind",
        "variant",
        "value",
        "lower",
        "upper",
        "verdict",
        "erratum",
        "note",
    )
    assert frame["row"].tolist() == ["sampler=wr", "sampler=poisson", "sampler=wor"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda frame: frame.assign(variant="stats"),
            "a variant must be one of stated, .*, got 'stats'",
        ),
        (
            lambda frame: pd.concat([frame, frame]),
            "each value must come once, got wr, mean, stated twice",
        ),
    ],
)
def test_malformed_values_are_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], sentence: str
) -> None:
    values = pd.DataFrame([ours(1.0)])
    with pytest.raises(DataError, match=sentence):
        verdicts.compare(pd.DataFrame([printed("1.0")]), change(values), ("sampler",))


def test_a_comparison_survives_its_file(tmp_path: Path) -> None:
    frame = compare([printed("0.050", note="a, b")], [ours(0.1 + 0.2), ours(1e-300, "as_done")])
    frame.to_csv(tmp_path / "comparison.csv", index=False)
    pd.testing.assert_frame_equal(
        verdicts.read(tmp_path / "comparison.csv"), frame, check_dtype=False
    )


# Expected verdicts.


def judgement(
    column: str, verdict: str, *, variant: str = "stated", note: str = ""
) -> dict[str, Any]:
    fixed = {
        "paper": "demo",
        "artefact": "table8",
        "row": "sampler=wr",
        "printed": "1",
        "kind": "real_data",
        "value": 1.0,
        "lower": 0.0,
        "upper": 2.0,
        "erratum": "",
    }
    return {**fixed, "column": column, "variant": variant, "verdict": verdict, "note": note}


def run_of(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(verdicts.COLUMNS))


RECORDS = [
    judgement("accuracy", "differs"),
    judgement("accuracy", "within_error_as_done", variant="as_done"),
    judgement("f1", "differs"),
]
RUN = run_of(*RECORDS)
KNOWN = verdicts.accepted(RUN, pd.DataFrame(columns=[*verdicts.KEY, "verdict"]))


def changed(run: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    changes = verdicts.expected_changes(run, KNOWN)
    return sorted(
        changes[["column", "variant", "expected", "found"]].itertuples(index=False, name=None)
    )


def test_the_same_verdicts_are_no_change() -> None:
    assert changed(RUN) == []


def test_a_changed_a_new_and_a_lost_verdict_are_changes() -> None:
    run = run_of(judgement("accuracy", "within_error"), RECORDS[1], judgement("ppv", "differs"))
    assert changed(run) == [
        ("accuracy", "stated", "differs", "within_error"),
        ("f1", "stated", "differs", ""),
        ("ppv", "stated", "", "differs"),
    ]


def test_a_stand_in_is_accepted_for_every_variant_of_its_numbers() -> None:
    note = f"{verdicts.NOT_REAL} but synthetic"
    run = run_of(
        judgement("accuracy", "not_compared", note=note), judgement("f1", "not_compared", note=note)
    )
    assert changed(run) == []


def test_a_number_that_lost_its_value_is_a_change() -> None:
    run = run_of(*RECORDS[:2], judgement("f1", "not_compared", note=verdicts.REDUCED))
    assert changed(run) == [("f1", "stated", "differs", "not_compared")]


def test_a_stand_in_takes_no_expected_verdict_away() -> None:
    run = run_of(judgement("f1", "not_compared", note=f"{verdicts.NOT_REAL} but synthetic"))
    with pytest.raises(
        DataError, match="must come from a run on the real data, got 1 numbers not compared"
    ):
        verdicts.accepted(run, KNOWN)


def test_a_number_that_no_run_could_compare_has_no_expected_verdict() -> None:
    run = run_of(
        *RECORDS, judgement("npv", "not_compared", note=f"{verdicts.NOT_REAL} but synthetic")
    )
    accepted = verdicts.accepted(run, KNOWN)
    assert accepted.equals(KNOWN)
    assert verdicts.expected_changes(run, accepted).empty


def test_only_what_is_made_at_published_settings_is_held_against_the_expected_verdicts() -> None:
    other = RUN.assign(verdict="differs")
    assert verdicts.check(RUN, KNOWN, ["demo/table8"]) == (
        f"{verdicts.AS_EXPECTED} of 3 at published settings"
    )
    assert verdicts.check(other, KNOWN, ["demo/table9"]) == (
        f"{verdicts.AS_EXPECTED} of 0 at published settings"
    )
    said = verdicts.check(other, KNOWN, ["demo/table8"])
    assert (
        said.startswith("1 of 3 verdicts changed at published settings; ")
        and "within_error_as_done  differs" in said
    )

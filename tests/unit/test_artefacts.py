"""Tables from records: values, statistics, layout, escaping, files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import artefacts, published, statistics
from dpsub.reproduce.artefact import Artefact, Records, all_values, quoted_rows
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows, values_frame
from dpsub.reproduce.cells import table_cells
from dpsub.reproduce.digits import like, usual, with_error
from dpsub.reproduce.layout import Layout, place
from dpsub.reproduce.names import display, escape_latex, escape_markdown
from dpsub.reproduce.rendering import latex, listing, markdown
from dpsub.reproduce.verdicts import compare, overall
from tests.unit import made_up_records
from tests.unit.rows import with_rows

MUST = tuple(name for name in artefacts.REGISTRY.names() if name.startswith("must/"))  # of these are the records
TABLES = tuple(name for name in MUST if artefacts.REGISTRY.get(name).kind == "table")
PRINTED_TABLES = tuple(name for name in TABLES if name.split("/")[1] in published.artefacts("must"))


@pytest.fixture(scope="module")
def records() -> dict[str, pd.DataFrame]:
    return made_up_records.everything()


def made(name: str) -> Artefact:
    return artefacts.REGISTRY.get(name)()


def test_registry_holds_every_numbered_artefact() -> None:
    numbered = {f"must/table{i}" for i in range(2, 11)} | {f"must/figure{i}" for i in range(1, 7)}
    numbered |= {f"must/figureS{i}" for i in range(1, 5)} | {"must/thresholds_s8", "must/claims"}
    assert numbered <= set(artefacts.REGISTRY.names())


TIMED = (
    "must/table10", "must/peer_times", "fair/times", "brdp/table1_times",
    "importance/table2", "importance/table3", "importance/figure5",
)  # fmt: skip


@pytest.mark.parametrize("name", artefacts.REGISTRY.names())
def test_every_artefact_says_what_it_is(name: str) -> None:
    artefact = made(name)
    assert artefact.identifier == name
    assert artefact.kind in ("table", "figure", "claims")
    assert artefact.caption.endswith(".")
    assert not set("`\n") & set(artefact.caption)
    assert artefact.timed == (name in TIMED)


@pytest.mark.parametrize("name", TABLES)
def test_missing_records_are_named(name: str) -> None:
    artefact = made(name)
    with pytest.raises(DataError, match=rf"{name} needs the records of '\w+', got none; run that experiment"):
        artefact.values({})


def test_a_missing_variant_is_named(records: Records) -> None:
    with pytest.raises(DataError, match="in the variant rigorous, got consistent, stated; run that variant"):
        made("must/table5").needed(records, "subset_statistics", variants=("rigorous",))


@pytest.mark.parametrize("name", PRINTED_TABLES)
def test_most_printed_cells_have_a_value_under_their_key(name: str, records: Records) -> None:
    artefact = made(name)
    place = [*artefact.keys, "column"]
    printed = set(printed_rows(artefact)[place].itertuples(index=False, name=None))
    found = printed & set(all_values(artefact, records)[place].itertuples(index=False, name=None))
    # The made-up records hold two sizes b of five and one setting of three; everything else is there.
    expected = {"must/table4": 21, "must/table5": 32, "must/table9": 18, "must/table10": 6}
    assert len(found) == expected.get(name, len(printed))


def test_values_are_mean_and_spread_over_replicates(records: Records) -> None:
    cell = records["subset_statistics"].query("variant == 'stated' and sampler == 'must_ow' and b == 10")
    values = with_rows(made("must/table5").values(records)).set_index(["row", "column", "variant"])
    row = "parameter=variance; sampler=must_ow; b=10"
    found = values.loc[(row, "mean", "stated")]
    assert found["value"] == pytest.approx(cell["variance"].mean())
    assert found["standard_error"] == pytest.approx(cell["variance"].std(ddof=1) / math.sqrt(12))
    assert found["replicates"] == 12
    assert values.loc[(row, "sd", "stated"), "value"] == pytest.approx(cell["variance"].std(ddof=1))
    assert values.loc[(row, "expected", "stated"), "value"] == 0.9


def test_rmse_of_a_coefficient_is_bias_and_spread(records: Records) -> None:
    values = with_rows(made("must/table7").values(records)).set_index(["row", "column", "variant"])["value"]
    cell = records["linear_regression"].query("variant == 'stated' and sampler == 'wor' and epsilon_amplified == 0.01")
    errors = cell["error_beta1"]
    row = "sampler=wor; coefficient=beta1; epsilon_amplified=0.01"
    assert values[row, "bias", "stated"] == pytest.approx(errors.mean())
    assert values[row, "rmse", "stated"] ** 2 == pytest.approx(errors.mean() ** 2 + errors.var(ddof=0))


def test_table8_has_spread_differences_solvers_and_reference(records: Records) -> None:
    values = made("must/table8").values(records)
    rows = set(with_rows(values)["row"])
    assert {"sampler=wor", "sampler=wor; statistic=sd_over_seeds", "sampler=wor; statistic=difference_to_poisson",
            "sampler=wor; solver=converged", "sampler=nonprivate; solver=scikit_learn"} <= rows  # fmt: skip
    assert "sampler=poisson; statistic=difference_to_poisson" not in rows
    noise = with_rows(values[values["column"] == "sigma_times_m"]).set_index(["row", "variant"])["value"]
    assert noise["sampler=wor", "stated"] == pytest.approx(2.6536)


def test_an_undefined_metric_is_left_out_and_said(records: Records) -> None:
    values = with_rows(made("must/table8").values(records)).set_index(["row", "column", "variant"])
    found = values.loc[("sampler=wr", "ppv", "stated")]
    assert math.isfinite(found["value"])
    assert found["replicates"] == 5
    assert found["note"] == "undefined in 1 of 6 replicates (no such predictions)"


def test_a_metric_that_is_never_defined_has_no_value(records: Records) -> None:
    empty = records["adult_logistic"].assign(ppv=np.nan)
    found = made("must/table8").values({**records, "adult_logistic": empty})
    values = with_rows(found).set_index(["row", "column", "variant"])
    assert math.isnan(values.loc[("sampler=wor", "ppv", "stated"), "value"])


def test_table9_carries_intervals_of_extremes_and_the_mean_of_the_law(records: Records) -> None:
    values = with_rows(made("must/table9").values(records)).set_index(["row", "column"])
    row = "experiment=1; sampler=wr"
    assert tuple(values.loc[(row, "distinct_min"), ["lower", "upper"]]) == (19, 24)
    assert values.loc[(row, "distinct_mean"), "standard_error"] == pytest.approx(1.5 / 100)
    assert values.loc[(row, "law_mean"), "value"] == pytest.approx(28.25)


def test_table10_is_relative_to_wor_and_knows_both_ways_of_poisson(records: Records) -> None:
    values = with_rows(made("must/table10").values(records)).set_index("row")["value"]
    assert values["experiment=1; sampler=wor"] == 0
    assert values["experiment=1; sampler=poisson"] == pytest.approx(200)
    assert values["experiment=1; sampler=poisson; draw=sparse"] == pytest.approx(100 * (2 / 3 - 1))


def test_times_without_a_base_are_refused(records: Records) -> None:
    times = records["sampling_time"].query("sampler != 'wor'")
    with pytest.raises(DataError, match="times relative to 'wor' need its time above 0 s"):
        made("must/table10").values({"sampling_time": times})


def test_the_same_records_twice_are_refused(records: Records) -> None:
    twice = pd.concat([records["amplification_crossings"]] * 2)
    with pytest.raises(DataError, match=r"comes once, got 'mechanism=laplace; .*' 4 times"):
        made("must/thresholds_s8").values({"amplification_crossings": twice})


class TestStatistics:
    """Two roads to each summary."""

    draws: ClassVar[np.ndarray] = np.random.default_rng(8).gamma(3.0, size=400)

    def test_errors_agree_with_the_jackknife(self) -> None:
        x = self.draws
        for summary in (statistics.mean, statistics.deviation, statistics.root_mean_square):
            left_out = np.array([summary(np.delete(x, i)).value for i in range(x.size)])
            jackknife = math.sqrt((x.size - 1) / x.size * np.sum((left_out - left_out.mean()) ** 2))
            assert summary(x).standard_error == pytest.approx(jackknife, rel=0.03)

    def test_error_of_a_deviation_sees_the_kurtosis(self) -> None:
        normal = np.random.default_rng(3).normal(size=20_000)
        assert statistics.deviation(normal).standard_error == pytest.approx(1 / math.sqrt(2 * 20_000), rel=0.05)
        two_points = np.repeat([-1.0, 1.0], 500)
        assert statistics.deviation(two_points).standard_error < 0.1 / math.sqrt(2 * 1000)

    def test_paired_difference_is_the_mean_of_differences(self) -> None:
        x, y = self.draws[:50], self.draws[50:100]
        found = statistics.paired_difference(x, y)
        from_scipy = pytest.importorskip("scipy.stats").ttest_rel(x, y).confidence_interval(0.95)
        assert (found.lower, found.upper) == pytest.approx((from_scipy.low, from_scipy.high))

    def test_one_replicate_has_no_error(self) -> None:
        one = np.array([2.0])
        assert math.isnan(statistics.mean(one).standard_error)
        assert math.isnan(statistics.deviation(one).value)
        assert all(math.isnan(end) for end in statistics.interval(statistics.mean(one)))

    def test_constant_values_have_no_spread(self) -> None:
        found = statistics.deviation(np.ones(5))
        assert (found.value, found.standard_error, found.replicates) == (0.0, 0.0, 5)
        assert math.isnan(found.lower) and math.isnan(found.upper)

    def test_bad_input_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="needs at least one replicate, got none"):
            statistics.mean(np.array([]))
        with pytest.raises(ArgumentError, match="must be finite, got 1 NaN"):
            statistics.mean(np.array([1.0, np.nan]))
        with pytest.raises(ArgumentError, match="must have one length, got 2 and 3"):
            statistics.paired_difference(np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    ("value", "template", "text"),
    [
        (0.0123456, "0.976", "0.012"), (2.87e-5, "0.095", "2.87e-05"), (4.172e-6, "4.17e-06", "4.17e-06"),
        (0.0, "0.095", "0"), (math.nan, "0.095", ""), (28.25, "29", "28"), (1.5, "", "1.5"),
        (1e-15, "0", "1e-15"), (math.inf, "0.1", "inf"), (-0.0042, "0.0029", "-0.0042"),
    ],
)  # fmt: skip
def test_numbers_take_the_digits_of_the_printed_one(value: float, template: str, text: str) -> None:
    assert like(value, template) == text


def test_a_value_with_an_error_gets_one_digit_more() -> None:
    assert with_error(0.99712, 0.00163, math.nan, math.nan, "0.997") == "0.9971 ± 0.0016"
    assert with_error(28.6056, 0.0112, math.nan, math.nan, "29") == "28.606 ± 0.011"
    assert with_error(15, math.nan, 13, 17, "15") == "15 [13, 17]"
    assert with_error(math.nan, 1.0, 0.0, 2.0, "15") == ""
    assert usual(["0.1", "0.22", "0.33", "NA"]) == "0.22"


def cells_of(printed: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    return table_cells(("sampler",), printed, values, compare(printed, values, ("sampler",)))


HOSTILE = r"a|b `c` <script> [d](e) *f* _g_ $h$ #i \end{table} & 50% ~x^2 {z}"


def test_hostile_text_is_escaped() -> None:
    shown = escape_markdown(HOSTILE + "\n| next")
    assert "\n" not in shown
    for mark in "|`<>[]*_$#&~{}":
        assert all(shown[place - 1] == "\\" for place, letter in enumerate(shown) if letter == mark)
    tex = escape_latex(HOSTILE)
    assert r"\end{table}" not in tex
    assert r"\textbackslash{}end\{table\}" in tex
    assert r"50\%" in tex
    assert r"\_g\_" in tex


def test_hostile_text_in_a_table_stays_in_its_cell() -> None:
    values = values_frame([{"sampler": HOSTILE, "column": "sigma", "variant": "stated", "value": 1.0, "note": "x|y"}])
    cells = cells_of(pd.DataFrame(columns=["paper", "artefact", "sampler", *published.FIELDS]), values)
    tables = (markdown(HOSTILE, Layout(), cells, HOSTILE), markdown(HOSTILE, None, cells), listing(cells, notes=True))
    for text in tables:
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
    for tex in (latex(HOSTILE, Layout(), cells, HOSTILE), latex(HOSTILE, None, cells)):
        assert tex.count(r"\end{table}") + tex.count(r"\end{longtable}") == 1
        assert r"\textbackslash{}end" in tex


def test_display_names() -> None:
    assert display("sampler", "must_ow") == "MUST.OW"
    assert display("sampler", "nonprivate") == "non-private"
    assert display("epsilon_amplified", "0.01", latex=True) == r"$\epsilon'$ = 0.01"
    assert display("experiment", "2") == "experiment 2"
    assert display("b", "") == ""
    assert display("sampler", "of_another_paper") == "of another paper"


def test_layout_places_every_cell_once() -> None:
    cells = [{"sampler": s, "b": b, "column": "sigma"} for s in ("wor", "must_ow") for b in ("10", "20")]
    (panel,) = place(Layout(stub=("sampler",), heads=("b",)), cells)
    assert panel.heads == (("10",), ("20",))
    assert panel.lines == ((("wor",), (0, 1)), (("must_ow",), (2, 3)))
    (first,) = place(Layout(heads=("column",), first=("z",)), [{"sampler": "a", "column": c} for c in "yz"])
    assert first.heads == (("z",), ("y",))
    assert first.lines == ((("a",), (1, 0)),)


def test_cells_join_printed_ours_and_verdict() -> None:
    printed = pd.DataFrame(
        [["must", "table6", sampler, "sigma", text, "exact", np.nan, np.nan, "suspect", "E3", "why"]
         for sampler, text in (("wor", "0.118"), ("wr", "0.5"), ("must_ow", "0.7"))],
        columns=["paper", "artefact", "sampler", *published.FIELDS],
    )  # fmt: skip
    values = values_frame(
        {"sampler": sampler, "column": "sigma", "variant": variant, "value": value}
        for sampler, variant, value in (
            ("must_wo", "stated", 0.3), ("wor", "stated", 0.1181), ("wr", "stated", 0.1), ("wr", "as_done", 0.5)
        )
    )  # fmt: skip
    cells = cells_of(printed, values).set_index("sampler")
    assert list(cells.index) == ["must_wo", "wor", "wr", "must_ow"]
    assert list(cells["printed"]) == ["", "0.118", "0.5", "0.7"]
    assert list(cells["verdict"]) == ["", "reproduced", "reproduced_as_done", "not_compared"]
    assert math.isnan(cells.loc["must_ow", "stated"])
    assert "stated_standard_error" not in cells.columns
    text = markdown("Caption.", Layout(), cells.reset_index())
    assert "| WR | printed | 0.5 |" in text
    assert "|  | as stated | 0.1 ≠ E3 |" in text
    assert "|  | as done | 0.5 ≈ E3 |" in text
    assert "| WOR | printed | 0.118 |\n|  | as stated | 0.118 |" in text


def test_overall_verdict_prefers_stated_then_as_done() -> None:
    def verdict(**words: str) -> str:
        return overall(words)

    assert verdict(stated="reproduced", as_done="reproduced") == "reproduced"
    assert verdict(stated="differs", as_done="within_error_as_done", consistent="shown") == "within_error_as_done"
    assert verdict(stated="differs", as_done="differs") == "differs"
    assert verdict() == ""


def test_formulas_stand_in_table_2(records: Records, tmp_path: Path) -> None:
    artefact = made("must/table2")
    files = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert r"| $\frac{b}{n}(1-(1-\frac{1}{b})^m)$ |" in files["md"].read_text()
    values = with_rows(artefact.values(records)).set_index(["row", "column"])["value"]
    assert values["sampler=must_wo", "eta"] == pytest.approx(values["sampler=wr", "eta"], rel=1e-13)
    assert values["sampler=wor", "eta"] == pytest.approx(24 / 60)
    assert values[:, "departure"].max() < 1e-14


def test_thresholds_quote_the_numbers_of_the_text(records: Records, tmp_path: Path) -> None:
    artefact = made("must/thresholds_s8")
    dirs = OutputDirs.under(tmp_path)
    files = build(artefact, records, printed_rows(artefact), dirs, quoted=quoted_rows(artefact))
    cells = pd.read_csv(files["csv"], dtype=str, keep_default_na=False)
    chosen = cells.query("mechanism == 'laplace' and kind == 'threshold' and sampler == 'wr' and column == 'delta'")
    assert list(chosen["printed"]) == ["0.039"]
    assert len(files["comparison"].read_text().splitlines()) == 1


@pytest.mark.parametrize("name", [name for name in MUST if artefacts.REGISTRY.get(name).kind != "figure"])
def test_files_have_the_same_bytes_each_time(name: str, records: Records, tmp_path: Path) -> None:
    artefact = made(name)
    shuffled = {experiment: records[experiment] for experiment in reversed(list(records))}
    first = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path / "a"))
    second = build(artefact, shuffled, printed_rows(artefact), OutputDirs.under(tmp_path / "b"))
    assert set(first) == {"csv", "md", "tex", "comparison"}
    for role, path in first.items():
        assert path.stat().st_size > 0
        assert path.read_bytes() == second[role].read_bytes()
        assert ".tmp" not in "".join(other.name for other in path.parent.iterdir())


def test_numbers_in_files_are_exact(records: Records, tmp_path: Path) -> None:
    artefact = made("must/table6")
    files = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))
    cells = pd.read_csv(files["csv"], keep_default_na=False, dtype=str)
    values = artefact.values(records)
    chosen = values[(values["column"] == "rmse_mean") & (values["variant"] == "stated")]["value"]
    written = cells[cells["column"] == "rmse_mean"]["stated"]
    assert [float(text) for text in written] == list(chosen)


def test_clock_times_stay_out_of_compared_files(records: Records, tmp_path: Path) -> None:
    artefact = made("must/table10")
    files = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert files["csv"] == tmp_path / "run" / "timings" / "tables" / "must" / "table10.csv"
    slow = records["sampling_time"].assign(seconds=lambda frame: frame["seconds"] ** 1.1)
    before = files["comparison"].read_bytes()
    build(artefact, {"sampling_time": slow}, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert files["comparison"].read_bytes() == before


def test_tables_from_synthetic_data_say_so(records: Records, tmp_path: Path) -> None:
    artefact = made("must/table8")
    files = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert files["md"].read_text().startswith("**synthetic data**")
    assert r"\textbf{synthetic data.}" in files["tex"].read_text()
    real = {**records, "adult_logistic": made_up_records.adult_logistic(data="real").reset_index(drop=True)}
    files = build(artefact, real, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert "synthetic" not in files["md"].read_text()


def test_nothing_is_written_when_records_are_missing(tmp_path: Path) -> None:
    artefact = made("must/table6")
    with pytest.raises(DataError):
        build(artefact, {}, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_only_figures_are_drawn(records: Records) -> None:
    with pytest.raises(DataError, match="only a figure is drawn, got 'must/table3' of kind 'table'"):
        made("must/table3").draw(records)

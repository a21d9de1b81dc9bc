"""Tables of this paper against their records: statistics, keys, notes, files."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import Artefact, Records, all_values, quoted_rows
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows
from tests.unit.rows import with_rows


def test_every_numbered_table_and_figure_is_there() -> None:
    numbered = {f"must/table{i}" for i in range(2, 11)} | {f"must/figure{i}" for i in range(1, 7)}
    numbered |= {f"must/figureS{i}" for i in range(1, 5)} | {"must/thresholds_s8", "must/claims"}
    assert numbered <= set(artefacts.REGISTRY.names())


def made(name: str) -> Artefact:
    return artefacts.REGISTRY.get(f"must/{name}")()


def files_of(name: str, records: Records, folder: Path) -> dict[str, Path]:
    artefact = made(name)
    return build(
        artefact,
        records,
        printed_rows(artefact),
        OutputDirs.under(folder),
        quoted=quoted_rows(artefact),
    )


def valued(name: str, records: Records) -> pd.DataFrame:
    return (
        with_rows(made(name).values(records)).set_index(["row", "column", "variant"]).sort_index()
    )


@pytest.mark.parametrize(
    ("name", "count"),
    # the records hold two sizes b of five in Tables 4 and 5
    [
        ("table3", 240),
        ("table4", 21),
        ("table5", 32),
        ("table6", 42),
        ("table7", 66),
        ("table8", 51),
        ("table9", 54),
        ("table10", 18),
    ],
)
def test_printed_cells_have_a_value_under_their_key(
    name: str, count: int, records: Records
) -> None:
    artefact = made(name)
    place = [*artefact.keys, "column"]
    printed = set(printed_rows(artefact)[place].itertuples(index=False, name=None))
    assert (
        len(printed & set(all_values(artefact, records)[place].itertuples(index=False, name=None)))
        == count
    )


def test_a_missing_variant_is_named(records: Records) -> None:
    with pytest.raises(
        DataError, match="in the variant rigorous, got consistent, stated; run that variant"
    ):
        made("table5").needed(records, "subset_statistics", variants=("rigorous",))


def test_values_are_mean_and_spread_over_replicates(records: Records) -> None:
    cell = records["subset_statistics"].query(
        "variant == 'stated' and sampler == 'must_ow' and b == 10"
    )
    values, row = valued("table5", records), "parameter=variance; sampler=must_ow; b=10"
    found = values.loc[(row, "mean", "stated")]
    assert found["value"] == pytest.approx(cell["variance"].mean())
    assert found["standard_error"] == pytest.approx(
        cell["variance"].std(ddof=1) / math.sqrt(len(cell))
    )
    assert found["replicates"] == len(cell) == 3
    assert values.loc[(row, "sd", "stated"), "value"] == pytest.approx(cell["variance"].std(ddof=1))
    assert values.loc[(row, "expected", "stated"), "value"] == pytest.approx(0.9)


def test_rmse_of_a_coefficient_is_bias_and_spread(records: Records) -> None:
    values, row = (
        valued("table7", records)["value"],
        ("sampler=wor; coefficient=beta1; epsilon_amplified=0.01"),
    )
    cell = records["linear_regression"].query(
        "variant == 'stated' and sampler == 'wor' and epsilon_amplified == 0.01"
    )
    errors = cell["error_beta1"]
    assert values[row, "bias", "stated"] == pytest.approx(errors.mean())
    assert values[row, "rmse", "stated"] ** 2 == pytest.approx(
        errors.mean() ** 2 + errors.var(ddof=0)
    )


def test_table8_has_spread_differences_solvers_and_reference(records: Records) -> None:
    rows = set(valued("table8", records).index.get_level_values("row"))
    assert {
        "sampler=wor",
        "sampler=wor; statistic=sd_over_seeds",
        "sampler=wor; statistic=difference_to_poisson",
        "sampler=wor; solver=converged",
        "sampler=nonprivate; solver=scikit_learn",
    } <= rows
    assert "sampler=poisson; statistic=difference_to_poisson" not in rows


def test_an_undefined_metric_is_left_out_and_said(records: Records) -> None:
    adult = records["adult_logistic"]
    undefined = adult["ppv"].mask((adult["sampler"] == "wor") | (adult["replicate"] == 0))
    values = valued("table8", {**records, "adult_logistic": adult.assign(ppv=undefined)})
    found = values.loc[("sampler=wr", "ppv", "stated")]
    assert math.isfinite(found["value"]) and found["replicates"] == 2
    assert found["note"].endswith("undefined in 1 of 3 replicates (no such predictions)")
    assert math.isnan(values.loc[("sampler=wor", "ppv", "stated"), "value"])


def test_table9_carries_intervals_of_extremes_and_the_mean_of_the_law(records: Records) -> None:
    record = records["distinct_counts"].query("experiment == 1 and sampler == 'wr'").iloc[0]
    values = valued("table9", records).loc["experiment=1; sampler=wr"].droplevel("variant")
    assert tuple(values.loc["distinct_min", ["lower", "upper"]]) == (
        record["min_lower"],
        record["min_upper"],
    )
    assert values.loc["distinct_mean", "standard_error"] == pytest.approx(
        record["sd"] / math.sqrt(record["draws"])
    )
    assert values.loc["law_mean", "value"] == record["law_mean"]


def test_table10_is_relative_to_wor_and_knows_both_ways_of_poisson(records: Records) -> None:
    times = (
        records["sampling_time"].query("experiment == 1").set_index(["sampler", "naive"])["seconds"]
    )
    values = with_rows(made("table10").values(records)).set_index("row")["value"]
    assert values["experiment=1; sampler=wor"] == 0
    for row, naive in (("", 1), ("; draw=sparse", 0)):
        expected = 100 * (times["poisson", naive] / times["wor", 0] - 1)
        assert values[f"experiment=1; sampler=poisson{row}"] == pytest.approx(expected)
    with pytest.raises(DataError, match="times relative to 'wor' need its time above 0 s"):
        made("table10").values(
            {"sampling_time": records["sampling_time"].query("sampler != 'wor'")}
        )


def test_the_same_records_twice_are_refused(records: Records) -> None:
    twice = pd.concat([records["amplification_crossings"]] * 2)
    with pytest.raises(DataError, match=r"comes once, got 'mechanism=laplace; .*' 4 times"):
        made("thresholds_s8").values({"amplification_crossings": twice})


def test_formulas_stand_in_table_2(records: Records, tmp_path: Path) -> None:
    assert (
        r"| "
        r"$\frac{b}{n}(1-(1-\frac{1}{b})^m)$ |"
    ) in files_of("table2", records, tmp_path)["md"].read_text()
    values = with_rows(made("table2").values(records)).set_index(["row", "column"])["value"]
    assert values["sampler=must_wo", "eta"] == pytest.approx(values["sampler=wr", "eta"], rel=1e-13)
    assert values["sampler=wor", "eta"] == pytest.approx(24 / 60)
    assert values[:, "departure"].max() < 1e-14


def test_thresholds_quote_the_numbers_of_the_text(records: Records, tmp_path: Path) -> None:
    files = files_of("thresholds_s8", records, tmp_path)
    cells = pd.read_csv(files["csv"], dtype=str, keep_default_na=False)
    chosen = cells.query(
        "mechanism == 'laplace' and kind == 'threshold' and sampler == 'wr' and column == 'delta'"
    )
    assert list(chosen["printed"]) == ["0.039"]
    assert len(files["comparison"].read_text().splitlines()) == 1


def test_numbers_in_files_are_exact(records: Records, tmp_path: Path) -> None:
    cells = pd.read_csv(
        files_of("table6", records, tmp_path)["csv"], keep_default_na=False, dtype=str
    )
    values = (
        made("table6")
        .values(records)
        .query("column == 'rmse_mean' and variant == 'stated'")["value"]
    )
    assert [float(text) for text in cells[cells["column"] == "rmse_mean"]["stated"]] == list(values)


def test_clock_times_stay_out_of_compared_files(records: Records, tmp_path: Path) -> None:
    files = files_of("table10", records, tmp_path)
    assert files["csv"] == tmp_path / "run" / "timings" / "tables" / "must" / "table10.csv"
    before = files["comparison"].read_bytes()
    slow = records["sampling_time"].assign(seconds=lambda frame: frame["seconds"] ** 1.1)
    assert (
        files_of("table10", {"sampling_time": slow}, tmp_path)["comparison"].read_bytes() == before
    )


def test_tables_from_synthetic_data_say_so(records: Records, tmp_path: Path) -> None:
    files = files_of("table8", records, tmp_path)
    assert "† from other data than the paper's (synthetic)" in files["md"].read_text()
    assert r"$\dagger$" in files["tex"].read_text()
    real = {**records, "adult_logistic": records["adult_logistic"].assign(data="real")}
    assert "synthetic" not in files_of("table8", real, tmp_path)["md"].read_text()


def test_nothing_is_written_when_records_are_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        files_of("table6", {}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_figures_are_drawn(records: Records) -> None:
    with pytest.raises(
        DataError, match="only a figure is drawn, got 'must/table3' of kind 'table'"
    ):
        made("table3").draw(records)

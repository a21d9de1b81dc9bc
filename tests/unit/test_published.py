"""Printed numbers: what the files hold, what a printed text says, row keys, the converter."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src/dpsub/papers"
COUNTS = {
    "table3": 240, "table4": 39, "table5": 64, "table6": 42, "table7": 66, "table8": 51, "table9": 54, "table10": 18,
}  # fmt: skip


def kinds(artefact: str) -> Counter[str]:
    return Counter(published.load("must", artefact, FOLDER)["kind"])


def one(artefact: str, row: str, column: str) -> dict[str, object]:
    frame = published.load("must", artefact, FOLDER)
    found = frame[(frame["row"] == row) & (frame["column"] == column)]
    assert len(found) == 1
    return {str(name): value for name, value in found.iloc[0].to_dict().items()}


@pytest.mark.parametrize(("artefact", "count"), COUNTS.items())
def test_every_cell_of_a_table_has_a_row(artefact: str, count: int) -> None:
    assert len(published.load("must", artefact, FOLDER)) == count


def test_tables_hold_574_numbers_and_the_text_51_more() -> None:
    assert sum(COUNTS.values()) == 574
    claims = published.load("must", "claims", FOLDER)
    assert (claims["column"] != "holds").sum() == 51
    assert (claims["column"] == "holds").sum() == 45
    assert published.artefacts("must", FOLDER) == ["claims", *COUNTS]


def test_kinds_of_the_tables() -> None:
    assert kinds("table3") == {"exact": 240}
    assert kinds("table4") == {"exact": 39}
    assert kinds("table5") == {"monte_carlo": 64}
    assert kinds("table6") == {"exact": 20, "monte_carlo": 22}
    assert kinds("table7") == {"monte_carlo": 66}
    assert kinds("table8") == {"exact": 15, "real_data": 36}
    assert kinds("table9") == {"extreme": 36, "monte_carlo": 18}
    assert kinds("table10") == {"timing": 18}


@pytest.mark.parametrize(
    ("artefact", "row", "column", "printed"),
    [
        ("table3", "ratio=0.25; mechanism=laplace; sampler=none; epsilon=0.05", "epsilon", "0.050"),
        ("table3", "ratio=0.25; mechanism=laplace; sampler=wr; epsilon=4.5", "delta_amplified", "1.22e-26"),
        ("table3", "ratio=0.25; mechanism=gaussian; sampler=wor; epsilon=3", "delta_amplified", "6.50e-35"),
        ("table3", "ratio=1; mechanism=laplace; sampler=must_ow; epsilon=2", "delta_amplified", "0.010"),
        ("table4", "sampler=wr", "delta_amplified", "5.73e-05"),
        ("table4", "sampler=must_ow; b=50", "sigma_mean", "0.11"),
        ("table4", "sampler=must_ww; b=100", "sigma_variance", "0.90"),
        ("table5", "parameter=mean; sampler=must_ww; b=10", "sd", "0.060"),
        ("table5", "parameter=variance; sampler=nonprivate", "mean", "0.990"),
        ("table6", "epsilon_amplified=0.01; sampler=poisson", "rmse_mean", "1.000"),
        ("table6", "sampler=nonprivate", "rmse_sd", "0.024"),
        ("table7", "epsilon_amplified=0.001; sampler=wr; coefficient=beta2", "bias", "-0.0200"),
        ("table7", "sampler=nonprivate; coefficient=beta1", "rmse", "0.034"),
        ("table8", "sampler=must_ow", "delta_c_upper", "8.49e-06"),
        ("table8", "sampler=poisson", "npv", "0.970"),
        ("table9", "experiment=2; sampler=must_ow", "distinct_mean", "65"),
        ("table10", "experiment=2; sampler=poisson", "time_increase_percent", "350.00"),
        ("claims", "fa_r_WR", "r", "2e+05"),
    ],
)
def test_numbers_stand_as_printed(artefact: str, row: str, column: str, printed: str) -> None:
    assert one(artefact, row, column)["printed"] == printed


@pytest.mark.parametrize(
    ("artefact", "row", "column", "erratum"),
    [
        ("table8", "sampler=nonprivate", "accuracy", "E1"),
        ("table8", "sampler=must_ww", "accuracy", "E1 E6"),
        ("table8", "sampler=wor", "delta_c_upper", "E2"),
        ("table6", "epsilon_amplified=0.01; sampler=wr", "delta_amplified", "E3"),
        ("table9", "experiment=2; sampler=must_ww", "distinct_min", "E7"),
        ("table6", "epsilon_amplified=0.001; sampler=must_ow", "rmse_mean", "E8"),
        ("table3", "ratio=1; mechanism=gaussian; sampler=must_ww; epsilon=1", "delta_amplified", "E9"),
        ("claims", "sgd_k", "iterations_k", "E10"),
        ("claims", "s8_threshold_laplace_WR", "delta_threshold", "E11"),
        ("claims", "fig5_eta_m", "holds", "E12"),
        ("claims", "sec31_ow_distinct", "gradients_computed", "E14"),
    ],
)
def test_suspect_numbers_name_their_erratum(artefact: str, row: str, column: str, erratum: str) -> None:
    found = one(artefact, row, column)
    assert (found["status"], found["erratum"]) == ("suspect", erratum)


def test_suspect_cells_are_as_many_as_the_errata_say() -> None:
    frames = [published.load("must", name, FOLDER) for name in COUNTS]
    suspects = Counter(erratum for frame in frames for erratum in frame.loc[frame["status"] == "suspect", "erratum"])
    assert suspects == {"E1": 30, "E1 E6": 6, "E2": 10, "E3": 6, "E7": 4, "E8": 1, "E9": 6}


def test_means_carry_the_spread_behind_them() -> None:
    mean = one("table5", "parameter=mean; sampler=wr", "mean")
    assert (mean["replicates"], mean["spread"]) == (200, 0.058)
    deviation = one("table5", "parameter=mean; sampler=wr", "sd")
    assert deviation["replicates"] == 200
    assert str(deviation["spread"]) == "nan"


@pytest.mark.parametrize(
    ("text", "value", "half_unit"),
    [
        ("0.050", "0.050", "0.0005"),
        ("5.73e-05", "0.0000573", "0.00000005"),
        ("-0.0024", "-0.0024", "0.00005"),
        ("2e+05", "200000", "50000"),
        ("30", "30", "0.5"),
        ("350.00", "350", "0.005"),
        ("0.000", "0", "0.0005"),
        ("0", "0", "0"),
    ],
)
def test_printed_text_gives_value_and_half_unit(text: str, value: str, half_unit: str) -> None:
    printed = published.parse_printed(text)
    assert printed.value == Decimal(value)
    assert printed.half_unit == Decimal(half_unit)


@given(st.floats(-1e6, 1e6), st.integers(1, 8))
def test_a_number_lies_within_half_a_unit_of_its_fixed_form(value: float, digits: int) -> None:
    printed = published.parse_printed(f"{value:.{digits}f}")
    assert abs(Decimal(value) - printed.value) <= printed.half_unit


@given(st.floats(1e-90, 1e6), st.integers(1, 5))
def test_a_number_lies_within_half_a_unit_of_its_scientific_form(value: float, digits: int) -> None:
    printed = published.parse_printed(f"{value:.{digits}e}")
    assert abs(Decimal(value) - printed.value) <= printed.half_unit


@pytest.mark.parametrize("text", ["", "NA", "1,000", "nan", "inf", "about 3", " 0.1", ".5", "0x1"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="a printed number must be written like"):
        published.parse_printed(text)


def test_row_keys_are_in_the_shortest_form_and_read_back() -> None:
    key = published.row_key(ratio=0.25, sampler="must_ow", b=np.float64(10.0), epsilon=np.int64(2))
    assert key == "ratio=0.25; sampler=must_ow; b=10; epsilon=2"
    assert published.parse_row_key(key) == {"ratio": "0.25", "sampler": "must_ow", "b": "10", "epsilon": "2"}
    assert published.row_key(epsilon_amplified=0.0005) == "epsilon_amplified=0.0005"


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.floats(-1e9, 1e9), min_size=1))
def test_row_keys_lose_no_number(fields: dict[str, float]) -> None:
    read = published.parse_row_key(published.row_key(**fields))
    assert {name: float(text) for name, text in read.items()} == fields


def test_the_identifier_of_a_claim_is_a_row_key() -> None:
    assert published.parse_row_key("s8_threshold_laplace_WR") == {"claim": "s8_threshold_laplace_WR"}


@pytest.mark.parametrize("text", ["a=1;b=2", "a=", "=1", "a=1; a=2", "a=1; b"])
def test_a_malformed_row_key_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="a row key must"):
        published.parse_row_key(text)


def test_a_value_that_would_break_a_row_key_is_refused() -> None:
    with pytest.raises(ArgumentError, match="without '=' and ';', got sampler = 'a;b'"):
        published.row_key(sampler="a;b")
    with pytest.raises(ArgumentError, match="must be finite, got b = nan"):
        published.row_key(b=float("nan"))


def test_every_row_key_is_spelled_canonically() -> None:
    for artefact in COUNTS:
        for row in published.load("must", artefact, FOLDER)["row"]:
            fields = published.parse_row_key(row)
            numbers = {name: text if name in NAMES else float(text) for name, text in fields.items()}
            assert published.row_key(**numbers) == row


NAMES = ("sampler", "mechanism", "parameter", "coefficient")

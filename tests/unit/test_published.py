"""Printed numbers: the content of the files, the meaning of a printed text, key columns."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published
from dpsub.reproduce.artefact import (
    Artefact,
    OutputDirs,
    Records,
    all_values,
    build,
    printed_rows,
    values_frame,
)
from dpsub.reproduce.labels import display
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.papers import papers

FOLDER = Path(published.__file__).parents[1] / "papers"


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


@given(st.floats(1e-90, 1e6), st.integers(1, 8), st.sampled_from("ef"), st.sampled_from((-1, 1)))
def test_a_number_lies_within_half_a_unit_of_its_printed_form(
    size: float, digits: int, form: str, sign: int
) -> None:
    printed = published.parse_printed(f"{sign * size:.{digits}{form}}")
    assert abs(Decimal(sign * size) - printed.value) <= printed.half_unit


@pytest.mark.parametrize("text", ["", "NA", "1,000", "nan", "inf", "about 3", " 0.1", ".5", "0x1"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="a printed number must be written like"):
        published.parse_printed(text)


def test_numbers_in_keys_have_one_form_on_both_sides() -> None:
    for value, text in (
        (0.25, "0.25"),
        (np.float64(10.0), "10"),
        (np.int64(2), "2"),
        ("0.050", "0.05"),
        ("wr", "wr"),
        ("1e-05", "1e-05"),
        (1e-5, "1e-05"),
        ("left, middle", "left, middle"),
        ("", ""),
    ):
        assert published.key_text(value) == text
    with pytest.raises(
        ArgumentError, match="a number in a key must be finite, got nan; leave the field out"
    ):
        published.key_text(float("nan"))


@given(st.floats(-1e9, 1e9))
def test_a_key_loses_no_number(value: float) -> None:
    assert float(published.key_text(value)) == value
    assert published.key_text(repr(value)) == published.key_text(value)


def test_a_row_is_written_from_its_keys_without_those_that_it_lacks() -> None:
    assert (
        published.row_text({"ratio": "0.25", "sampler": "must_ow", "b": ""})
        == "ratio=0.25; sampler=must_ow"
    )
    assert published.row_text({"claim": "threshold_WR"}) == "threshold_WR"


def test_every_key_is_spelled_in_its_one_form() -> None:
    for path in FOLDER.glob("*/published/*.csv"):
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        for name in published.key_names(frame):
            assert all(published.key_text(text) == text for text in frame[name]), (path.name, name)


class Made(Artefact):
    """A table of a made-up paper."""

    paper, name, kind, caption, keys = "made", "table1", "table", "A table.", ("sampler", "b")
    layout = Layout()

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame(
            [{"sampler": "wr", "b": 10, "column": "n", "variant": "stated", "value": 7.0}]
        )


HEADER = "column,printed,kind,replicates,spread,status,erratum,note"


def folder(tmp_path: Path, header: str, *lines: str) -> Path:
    place = tmp_path / "made" / "published"
    place.mkdir(parents=True)
    (place / "table1.csv").write_text("\n".join([f"{header},{HEADER}", *lines]) + "\n")
    return tmp_path


@pytest.mark.parametrize("header", ["sampler,size", "b,sampler"])
def test_a_key_that_the_artefact_does_not_declare_is_refused(tmp_path: Path, header: str) -> None:
    place = folder(tmp_path, header, "wr,10,n,7,exact,,,as_printed,,")
    with pytest.raises(
        DataError,
        match=r"keys of made/published/table1.csv must be of sampler, b, "
        r"in that order, got",
    ):
        printed_rows(Made(), place)


def test_a_declared_number_without_a_printed_row_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "sampler", "wr,n,7,exact,,,as_printed,,")

    class Declaring(Made):
        name = "table1"
        settings: ClassVar = {("wor", "", "n"): "experiment.n"}

    with pytest.raises(
        DataError, match="what made/table1 declares must be printed, got no row wor, , n in made/"
    ):
        printed_rows(Declaring(), place)


def test_a_value_with_an_undeclared_key_is_refused() -> None:
    class Narrow(Made):
        name, keys = "table1", ("sampler",)

    with pytest.raises(DataError, match="made/table1 must declare its key 'b', got sampler"):
        all_values(Narrow(), {})


@pytest.mark.parametrize(("n", "verdict"), [(7, "used"), (8, "differs")])
def test_a_setting_is_compared_with_the_configured_one(
    tmp_path: Path, n: int, verdict: str
) -> None:
    place = folder(
        tmp_path, "sampler", "wor,n,7,setting,,,as_printed,,", "wr,n,7,exact,,,as_printed,,"
    )

    class Configured(Made):
        name = "table1"
        settings: ClassVar = {("wor", "", "n"): "study.sizes.n"}

    settings = {"study": {"sizes": {"n": n}}}
    files = build(
        Configured(),
        {},
        printed_rows(Configured(), place),
        OutputDirs.under(tmp_path),
        settings=settings,
    )
    table = pd.read_csv(files["comparison"])
    assert table["row"].tolist() == ["sampler=wor", "sampler=wr"]
    assert table["verdict"].tolist() == [verdict, "not_compared"]
    assert table["value"][0] == n
    with pytest.raises(
        DataError,
        match=r"made/table1 must name a setting that is there, got "
        r"'study.sizes.n'",
    ):
        all_values(Configured(), {}, {"study": {"n": n}})
    # a run without the experiment has nothing to compare
    assert len(all_values(Configured(), {}, {})) == 1


@pytest.mark.parametrize("paper", sorted(papers()))
def test_no_number_in_a_key_is_shown_with_more_than_seven_digits(paper: str) -> None:
    for name in published.artefacts(paper):
        cells = published.load(paper, name)
        for key in published.key_names(cells):
            for value in cells[key].unique():
                shown = display(key, value, plain=True)
                for number in re.findall(r"\d+\.\d+", shown):
                    assert len(number.replace(".", "").lstrip("0")) <= 7, f"{name}: {shown}"


def test_a_quotient_in_a_key_is_shortened_where_it_is_shown() -> None:
    assert display("delta", "2.0833333333333333e-05", plain=True) == "δ = 2.0833 × 10⁻⁵"
    assert display("rate", "0.0011636363636363637", plain=True) == "γ = 0.0011636"
    assert display("rate", "0.001", plain=True) == "γ = 0.001"
    assert display("n", "14234567", plain=True) == "n = 14234567"

"""A malformed file of printed numbers, or of verdicts, stops the run in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsub.errors import DataError
from dpsub.reproduce import published, verdicts

HEADER = ",".join(["sampler", *published.FIELDS])
GOOD = "wr,sigma,0.12,exact,,,as_printed,,"


def load(tmp_path: Path, *lines: str, header: str = HEADER) -> None:
    (tmp_path / "demo/published").mkdir(parents=True)
    (tmp_path / "demo/published/table4.csv").write_text(
        "\n".join([header, *lines]) + "\n", encoding="utf-8"
    )
    published.load("demo", "table4", tmp_path)


def test_the_good_line_is_accepted(tmp_path: Path) -> None:
    load(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            GOOD.replace("exact", "exakt"),
            "table4.csv, line 3: kind must be .*, got 'exakt'; mend the row",
        ),
        (
            GOOD.replace("as_printed", "fine"),
            "status must be one of as_printed, suspect, got 'fine'",
        ),
        (
            GOOD.replace("0.12", "0.12*"),
            "a number of this kind must be printed like .*, got '0.12\\*'",
        ),
        (GOOD.replace("0.12", ""), "printed must be given, got an empty field"),
        (
            GOOD.replace("as_printed,", "suspect,"),
            "a suspect number must name its erratum, got an empty field",
        ),
        (
            GOOD.replace("as_printed,", "as_printed,E0"),
            "erratum must be like E3 or E4 E5, got 'E0'",
        ),
        (
            GOOD.replace("exact,", "monte_carlo,"),
            "a number of kind monte_carlo or extreme must have replicates",
        ),
        (
            GOOD.replace("exact,", "exact,-2"),
            "replicates must be a number above 0 or empty, got '-2'",
        ),
        (GOOD.replace("exact,,", "exact,,x"), "spread must be a number above 0 or empty, got 'x'"),
        (
            GOOD.replace("exact,,", "exact,0.0,"),
            "replicates must be a number above 0 or empty, got '0.0'",
        ),
        (GOOD.replace("wr,sigma", ",sigma"), "a row must have a key, got an empty field"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        load(tmp_path, GOOD.replace("wr,", "wor,"), line)


def test_a_number_given_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="must hold each printed number once, got 'sampler=wr', 'sigma' twice"
    ):
        load(tmp_path, GOOD, GOOD)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"table4.csv must have its keys and then the columns .*, "
        r"got sampler, column$",
    ):
        load(tmp_path, "wr,sigma", header="sampler,column")


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"table4.csv must be a CSV file"):
        load(tmp_path, header="")


def test_a_missing_file_or_paper_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"printed numbers must be in a file, got no .*table99.csv"):
        published.load("demo", "table99", tmp_path)
    with pytest.raises(DataError, match="printed numbers of 'dmeo' must be in a folder"):
        published.artefacts("dmeo", tmp_path)


def test_a_missing_or_foreign_file_of_verdicts_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"got no .*comparison.csv; run the comparison first"):
        verdicts.read(tmp_path / "comparison.csv")
    foreign = tmp_path / "demo" / "expected_verdicts.csv"
    foreign.parent.mkdir()
    foreign.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(
        DataError,
        match=r"expected_verdicts.csv must have the columns artefact, "
        r".*, verdict, got a, b",
    ):
        verdicts.read_expected(tmp_path)

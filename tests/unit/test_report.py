"""Parts of reports: names in words, kinds of numbers, prose that obeys no HTML, and cells that are
looked up."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefacts import OutputDirs
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import KINDS, in_words, number_kind
from dpsub.reproduce.report import (
    FinishedRun,
    markdown,
    numbers,
)
from dpsub.reproduce.report.cells import LookUp, read_cells
from dpsub.reproduce.verdicts import COLUMNS, VARIANTS
from tests.papers.cells import cells
from tests.report_run import HOSTILE, Made


def test_lines_end_before_an_error_or_an_interval_alone() -> None:
    nbsp = "\u00a0"
    assert numbers.unbroken("1 2 ± 3 [4, 5] <") == f"1{nbsp}2 ±{nbsp}3 [4,{nbsp}5]{nbsp}&lt;"
    assert numbers.unbroken(numbers.formula("x")) == numbers.formula("x")


def test_names_are_shown_in_words() -> None:
    assert in_words("must_ow") == "MUST.OW"
    assert in_words("method as_done, add_remove") == "method as done, add/remove"
    assert in_words("ψ(x_i), δ_c and f_Z at adult") == "ψ(x_i), δ_c and f_Z at adult"
    assert in_words("adult") == "Adult"


def test_names_say_what_a_privacy_number_is() -> None:
    for variant, kinds in {
        "stated": {"delta_amplified": "paper", "accuracy": "", "delta_amplified_formula": ""},
        "consistent": {"delta_upper": "paper"},
        "rigorous": {
            "delta_upper": "upper",
            "epsilon_lower": "lower",
            "epsilon_pair": "paper",
            "optimum": "exact",
            "epsilon": "upper",
            "some_refuted": "lower",
            "noise_over_another": "",
        },
    }.items():
        assert {column: number_kind(column, variant) for column in kinds} == kinds


def test_artefacts_have_known_kinds_of_privacy_numbers() -> None:
    for artefact in (kind() for kind in artefacts.REGISTRY.members().values()):
        assert {artefact.number_kind("epsilon", variant) for variant in VARIANTS} <= set(KINDS)


def test_prose_obeys_no_html_and_loads_nothing() -> None:
    shown = str(
        markdown.html(f"**a** {HOSTILE} ![x](http://x/y.png) [z](javascript:w)\n\n<div>b</div>")
    )
    assert "<strong>a</strong>" in shown
    assert not re.search(r"<(script|img|div|a|details)\b", shown)
    assert "<mfrac>" in numbers.formula(r"\frac{m}{n}")
    assert "<script" not in numbers.formula(HOSTILE)


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    run = FinishedRun(
        [],
        OutputDirs.under(tmp_path),
        pd.DataFrame(columns=list(COLUMNS)),
        data=[],
        errata=[],
        provenance={},
    )
    pages = Made(tmp_path, run).write()
    assert set(pages) == {"index", "numbers"}
    assert all("This run has no number to compare." in text for text in pages.values())


def test_look_up_needs_exactly_one_cell() -> None:
    rows = [
        ("3", sampler, "mean", value) for sampler, value in (("wor", 300.0), ("must_ww", 225.0))
    ]
    tables = LookUp({"table9": cells("experiment sampler column stated", *rows)})
    here = {"experiment": "3"}
    assert tables.number("table9", "mean", "stated", **here, sampler="wor") == 300
    for source, fields in (
        ("rigorous", {"sampler": "wor"}),
        ("stated", {"sampler": "wor", "b": "1"}),
    ):
        with pytest.raises(MissingRecordsError, match="there is no number in table9"):
            tables.number("table9", "mean", source, **here, **fields)
    with pytest.raises(DataError, match="must stand in one cell, got 2 in table9"):
        tables.number("table9", "mean", "stated", **here, sampler="*")
    assert len(tables.rows("table9", "mean", **here, sampler="*")) == 2
    assert tables.rows("table1", "mean").empty


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table8.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(
        DataError, match="must be a table of cells, got the columns a, b; build it again"
    ):
        read_cells(path)

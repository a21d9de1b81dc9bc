"""Numbers in prose: each placeholder finds one cell, and is rounded to the safe side."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.cells import NOT_OF_THIS_RUN, CellTables
from dpsub.reproduce.report.prose import Prose


def table(**columns: list[object]) -> pd.DataFrame:
    rows = len(next(iter(columns.values())))
    rest = {name: [""] * rows for name in ("printed", "verdict", "erratum", "note")}
    return pd.DataFrame(
        {**{name: columns.pop(name) for name in ("sampler", "column")}, **rest, **columns}
    )


@pytest.fixture
def tables() -> CellTables:
    cells = table(sampler=["wor", "wr"], column=["delta_upper"] * 2, rigorous=[0.57012, 0.58775])
    low = table(
        sampler=["wor", "wr"],
        column=["delta_lower"] * 2,
        rigorous=[0.40149, 0.42119],
        note=["z = 3.7", ""],
    )
    return {"table8": pd.concat([cells, low], ignore_index=True)}


def filled(tables: CellTables, placeholder: str, kept: CellTables | None = None) -> str:
    return Prose(papers()["must"], tables, kept).filled("{{ " + placeholder + " }}")


@pytest.mark.parametrize(
    ("placeholder", "text"),
    [
        ('number("table8", "delta_upper", "rigorous", sampler="wor")', "0.571"),
        ('number("table8", "delta_lower", "rigorous", sampler="wor")', "0.401"),
        ('least("table8", "delta_lower", "rigorous", 2, sampler="*")', "0.40"),
        ('greatest("table8", "delta_upper", "rigorous", 2, sampler="*")', "0.59"),
        ('value("table8", "delta_upper", "rigorous", sampler="wor") | decimals(5)', "0.57012"),
        ('value("table8", "delta_upper", "rigorous", sampler="wor") | upper_end(2)', "0.58"),
        ('noted("table8", "delta_lower", "z = ([0-9.]+)", sampler="wor")', "3.7"),
    ],
)
def test_ends_are_rounded_to_the_side_on_which_they_stay_ends(
    tables: CellTables, placeholder: str, text: str
) -> None:
    assert filled(tables, placeholder) == text


@pytest.mark.parametrize(
    ("placeholder", "words"),
    [
        (
            'number("table8", "delta_upper", "rigorous", sampler="must_ow")',
            "asks for a number that must be there, got none: there is no number in table8",
        ),
        (
            'number("table8", "delta_upper", "rigorous", sampler="*")',
            "must stand in one cell, got 2 in table8",
        ),
        ('number("table88", "delta_upper", "rigorous")', "must/table8"),
        ('noted("table8", "delta_upper", "z = (.+)", sampler="wor")', "no note in table8"),
        ('computed("nothing")', "a function of its module evidence, got 'nothing'"),
        ('derived("nothing")', "a function of its module numbers, got 'nothing'"),
        ("numbers.nothing()", "a function of its module numbers, got 'nothing'"),
        ('numbr("table8")', "'numbr' is undefined"),
        ('number("table8"', "unexpected"),
    ],
)
def test_a_wrong_placeholder_is_an_error_in_one_sentence(
    tables: CellTables, placeholder: str, words: str
) -> None:
    with pytest.raises((DataError, ArgumentError), match=re.escape(words)) as raised:
        filled(tables, placeholder)
    assert "\n" not in str(raised.value)


def test_paragraphs_are_unwrapped_and_tables_keep_their_rows() -> None:
    text = """{% call takeaway("Noise") %}
      Two lines
      of a paragraph.
      | scheme | ratio |
      |---|---:|
      {% for name in ("WOR", "WR") %}
      | {{ name }} | 2 |
      {% endfor %}
      After it.
      {% endcall %}"""
    page = Prose(papers()["must"], {}).filled(text)
    rows = "| scheme | ratio |\n|---|---:|\n| WOR | 2 |\n| WR | 2 |"
    assert page == f"Two lines of a paragraph.\n\n{rows}\n\nAfter it."


def test_a_number_of_another_run_is_marked(tables: CellTables) -> None:
    place = 'number("table8", "delta_upper", "rigorous", sampler="wor")'
    assert filled({}, place, kept=tables) == f"0.571{NOT_OF_THIS_RUN}"
    assert filled(tables, place, kept=tables) == "0.571"

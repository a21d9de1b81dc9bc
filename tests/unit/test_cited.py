"""Numbers in prose: each placeholder finds one cell, is rounded to the safe side, and no number of
ours is typed."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report import cited
from dpsub.reproduce.report.cells import NOT_OF_THIS_RUN, CellTables
from dpsub.reproduce.report.prose import Prose
from dpsub.reproduce.verdicts import read_expected
from tests.documentation.console import script
from tests.few import few

ROOT = Path(__file__).resolve().parents[2]
KEPT = [paper for paper in papers().values() if (paper.folder / cited.KEPT).exists()]
EVERY = pytest.mark.parametrize("paper", KEPT, ids=lambda paper: paper.key)


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


def paper_with_table8() -> Paper:
    if "must" not in papers():
        pytest.skip("speaks of a paper that is not there")
    return papers()["must"]


def filled(tables: CellTables, placeholder: str, kept: CellTables | None = None) -> str:
    return Prose(paper_with_table8(), tables, kept).filled("{{ " + placeholder + " }}")


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
    page = Prose(paper_with_table8(), {}).filled(text)
    rows = "| scheme | ratio |\n|---|---:|\n| WOR | 2 |\n| WR | 2 |"
    assert page == f"Two lines of a paragraph.\n\n{rows}\n\nAfter it."


def test_a_number_of_another_run_is_marked(tables: CellTables) -> None:
    place = 'number("table8", "delta_upper", "rigorous", sampler="wor")'
    assert filled({}, place, kept=tables) == f"0.571{NOT_OF_THIS_RUN}"
    assert filled(tables, place, kept=tables) == "0.571"


@EVERY
def test_a_full_run_has_the_numbers_of_every_part(paper: Paper) -> None:
    """A run may leave a paragraph out; the full one leaves none, else a wrong placeholder would
    not be found."""
    kept = cited.kept_of(paper)
    assert kept is not None
    template = (paper.folder / "found.md").read_text(encoding="utf-8")
    headings = re.findall(r'{% call takeaway\("([^"]+)"', template)
    assert [takeaway.heading for takeaway in Prose(paper, kept).takeaways()] == headings


@pytest.mark.parametrize("paper", few(KEPT[::-1], most=3), ids=lambda paper: paper.key)
def test_what_is_kept_is_what_the_pages_cite(paper: Paper) -> None:
    """No row is kept that no page asks for, and it says which run it is of."""
    renew, kept = script("workflow/scripts/renew_pages"), cited.kept_of(paper)
    assert kept is not None
    prose = renew.write_home.prose(paper, read_expected(ROOT / "src/dpsub/papers"), kept)
    renew.whole(prose)
    rows = (paper.folder / cited.KEPT).read_text(encoding="utf-8").splitlines()
    assert sum(map(len, prose.seen.values())) == len(rows) - 2
    assert re.fullmatch(
        r"dpsub \d+\.\d+\S*, commit [0-9a-f]{40}( with changes)?, configuration "
        r"[0-9a-f]{12}",
        cited.origin_of(paper),
    )


@pytest.mark.parametrize("paper", few(KEPT[::-1], more=2), ids=lambda paper: paper.key)
def test_a_cell_that_changes_changes_the_pages(paper: Paper, tmp_path: Path) -> None:
    """Else the tests of the pages could not fail: each kept number is nudged, and the pages are
    others."""
    renew, verdicts = (
        script("workflow/scripts/renew_pages"),
        read_expected(ROOT / "src/dpsub/papers"),
    )
    head, _, rows = (paper.folder / cited.KEPT).read_text(encoding="utf-8").partition("\n")
    nudged = re.sub(
        r"(?<=,)(\d\.\d{6,}|\d{4,}\.\d+)(?=,)", lambda found: repr(1.02 * float(found[1])), rows
    )
    (tmp_path / cited.KEPT).write_text(f"{head}\n{nudged}", encoding="utf-8")
    changed = cited.kept_of(SimpleNamespace(folder=tmp_path))  # type: ignore[arg-type]
    kept = cited.kept_of(paper)
    assert changed is not None and kept is not None
    nudged_pages, pages = (
        renew.whole(renew.write_home.prose(paper, verdicts, cells)) for cells in (changed, kept)
    )
    assert nudged_pages != pages


DECIMAL = re.compile(r"(?<![\w.^/(])\d*\.\d+(?:e-?\d+)?(?!\w)|(?<![\w.])\d(?:\.\d+)?e-\d+")
GIVEN = {
    "balle": {"0.99", "0.75", "0.62"},  # laws and mechanisms of examples
    # of examples; 22 and 12 over 1000
    "brdp": {"4.5", "0.99", "1e-3", "1.05", "0.55", "0.022", "0.012", "1e-6"},
    "bun": {"3.1", "4.3", "5.1", "5.2", "6.1"},  # theorems and a proposition
    "importance": {"0.25"},  # (1/2)^2
    "must": {"4.2", "1e-4", "1e-5"},  # section; delta
    # answers of other accountants; delta
    "practice": {"4.1", "15.96", "1.69", "1.555", "2.8996", "2.9097", "1e-6"},
}
"""Numbers in evidence, corrections and effects that are neither ours nor printed as such."""


@pytest.mark.parametrize("key", GIVEN)
def test_no_number_of_ours_is_typed(key: str) -> None:
    """What stands outside of placeholders is the paper's, or an input of an example."""
    if key not in papers():
        pytest.skip("this paper is not there")
    folder = papers()[key].folder
    printed = {
        one.strip("(),%;")
        for name in published.artefacts(key)
        for text in published.load(key, name)["printed"]
        for one in text.split()
    }
    text = "".join(
        (folder / name).read_text(encoding="utf-8") for name in ("errata.md", "found.md")
    )
    placeholder, claim = r"\{\{.*?\}\}|\{%.*?%\}", r"\*\*Claim\.\*\*.*?(?=^- )"
    text = re.sub(
        rf"{placeholder}|{claim}|`[^`]*`|arXiv:[0-9.]+", "", text, flags=re.DOTALL | re.MULTILINE
    )
    bodies = re.split(r"^#+ .*$", text, flags=re.MULTILINE)
    typed = {
        one
        for body in bodies
        for one in DECIMAL.findall(body)
        if len(one.replace(".", "").lstrip("0")) > 1
    }
    assert {
        one for one in typed - printed - GIVEN[key] if not any(one in other for other in printed)
    } == set()


def test_a_typed_number_would_be_found() -> None:
    assert DECIMAL.findall("attains 0.401 and 3.5e-6 of 1000") == ["0.401", "3.5e-6"]

"""Every page counts verdicts in one way, and the counts add up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsub.reproduce import published
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.numbers import MEANINGS, of_printed
from dpsub.reproduce.verdicts import FAILING, read_expected, reconciled, tally
from tests.gone import needs_all_papers

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = of_printed(papers(), read_expected(ROOT / "src/dpsub/papers"))
CITED = [key for key, paper in papers().items() if paper.citation]


@pytest.mark.parametrize("verdict", MEANINGS)
def test_each_verdict_is_counted_once(verdict: str) -> None:
    assert tally([verdict]).every == 1
    assert tally([verdict, "proved"]).every == 2


def test_the_line_that_reconciles_adds_up() -> None:
    line = reconciled(
        tally(["proved", "refuted", "within_error_as_done", "open", "used", "reported"]), beyond=4
    )
    assert line.startswith(
        "4 judged (1 confirmed, 1 only as done, 1 differ or fail, 1 open) + 1 shown + 1 settings + "
    )
    assert line.endswith(" + 0 not compared + 4 answers of other accountants = 10")


@needs_all_papers
def test_the_page_of_verdicts_adds_up_to_its_tables() -> None:
    page = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^Together: (.*?)\.(?: |$)", page, flags=re.MULTILINE)
    terms, _, total = re.sub(r"\(.*?\)", "", line).rpartition(" = ")
    assert sum(int(term.split()[0]) for term in terms.split(" + ")) == int(total)
    apart = {key for key, paper in papers().items() if paper.apart}
    listed = re.findall(r"^\| .*? \(`(\w+)/\w+`\) \|.*?\|.*?\| (.*?)[;|]", page, flags=re.MULTILINE)
    counts = {paper: 0 for paper, _ in listed}
    for paper, cell in listed:
        counts[paper] += sum(map(int, re.findall(r"\d+", cell)))
    assert sum(count for paper, count in counts.items() if paper not in apart) == int(total)
    assert len([place for place in VERDICTS if place[0] not in apart]) == int(total)


@pytest.mark.parametrize("key", CITED)
def test_a_page_says_how_many_statements_fail_and_lists_these(key: str) -> None:
    page = (ROOT / f"docs/found/{key}.md").read_text(encoding="utf-8")
    table = page.partition("## Statements that fail as printed")[2].partition("\n## ")[0]
    said = re.search(r"Of (\d+) statements checked, (\d+) fail as printed", page)
    kinds = {
        (key, name, row, column): kind
        for name in published.artefacts(key)
        for cells in [published.load(key, name)]
        for row, column, kind in zip(
            published.row_texts(cells, published.key_names(cells)),
            cells["column"],
            cells["kind"],
            strict=True,
        )
    }
    statements = tally(
        found for place, found in VERDICTS.items() if kinds.get(place) in published.STATEMENTS
    )
    # numbers of a grid that fail are in a table of the page's own
    listed = tally(
        found
        for place, found in VERDICTS.items()
        if kinds.get(place) in published.STATEMENTS
        and published.key_names(published.load(key, place[1])) == ["claim"]
    )
    assert table.count("\n| ") - 2 == listed.failing or not table
    if said:
        assert (int(said[1]), int(said[2])) == (statements.judged, statements.failing)
    assert statements.failing == sum(
        found in FAILING
        for place, found in VERDICTS.items()
        if kinds.get(place) in published.STATEMENTS
    )

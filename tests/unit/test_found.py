"""The pages of docs/found, as committed, follow from papers' prose, errata and verdicts, numbers
apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

from dpsub.reproduce.artefacts import REGISTRY
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report import judgement
from dpsub.reproduce.verdicts import read_expected
from tests.few import few
from tests.gone import needs_all_papers

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/found"
VERDICTS = read_expected(ROOT / "src/dpsub/papers")
TOLD = [paper for paper in papers().values() if (paper.folder / "found.md").exists()]
EVERY = pytest.mark.parametrize("paper", TOLD, ids=lambda paper: paper.key)


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "workflow/scripts"))
        import write_found

        yield write_found


def parts(script: ModuleType, paper: Paper) -> tuple[str, str]:
    """Return the part of a page about the paper, and the lists below."""
    top, _, end = (PAGES / f"{paper.key}.md").read_text(encoding="utf-8").partition(script.MADE)
    return top, end


@pytest.mark.parametrize("paper", few(TOLD[::-1], most=3), ids=lambda paper: paper.key)
def test_every_number_is_that_of_the_run_that_is_kept(script: ModuleType, paper: Paper) -> None:
    top, end = parts(script, paper)
    assert end == script.tail(paper, VERDICTS), "run workflow/scripts/renew_pages.py"
    assert top == script.body(paper, VERDICTS), "run workflow/scripts/renew_pages.py"
    assert not re.search(r"\bnan\b|\{\{|‡", top + end)


@EVERY
def test_pages_below_it_are_those_of_the_run_that_is_kept(script: ModuleType, paper: Paper) -> None:
    made = script.parts(paper, VERDICTS)
    found = {page.stem: page.read_text("utf-8") for page in (PAGES / paper.key).glob("*.md")}
    assert found == made, "run workflow/scripts/renew_pages.py"
    for text in found.values():
        assert not re.search(r"\bnan\b|\{\{|‡", text)
        for link in re.findall(r"\]\(([^)#:]+\.md)", text):
            assert (PAGES / paper.key / link).exists(), link


@EVERY
def test_what_has_no_verdict_has_a_finding_above_it(script: ModuleType, paper: Paper) -> None:
    """The finding is no repetition of the caption, which the report shows below."""
    for name, found in script.judged(paper, VERDICTS).items():
        assert found.text not in ("", judgement.NO_FINDING), f"{paper.key}/{name} needs words"
        caption = REGISTRY.get(f"{paper.key}/{name}").caption
        assert not caption.startswith(found.text.rstrip(".")), f"{paper.key}/{name}: caption"


ANY = "\0"
UNKEPT = [paper for paper in TOLD if not (paper.folder / "cited.csv").exists()]


@pytest.mark.parametrize("paper", UNKEPT, ids=lambda paper: paper.key)
def test_a_page_of_which_no_cells_are_kept_has_the_prose_of_its_template(
    script: ModuleType, paper: Paper
) -> None:
    """The prose is equal, numbers apart, which the next full run of the paper brings."""
    names = ("number", "least", "greatest", "noted", "computed", "derived")
    unknown: dict[str, object] = dict.fromkeys(names, lambda *place, **fields: ANY)
    unknown["numbers"] = Mock(return_value=ANY)
    unknown["takeaway"] = lambda heading, caller, page=True: ANY if page else ""
    unknown["picture"] = lambda name, words: f"![{words}](pictures/{paper.key}-{name}.png)"
    template = (paper.folder / "found.md").read_text(encoding="utf-8")
    page = script.Prose(paper, {}, more={**unknown, "cited": ""}).filled(template)
    pattern = ".+?".join(map(re.escape, script.tidy(page).split(ANY)))
    told = script.tidy(parts(script, paper)[0].partition("\n\n")[2])
    assert re.fullmatch(pattern, told, re.DOTALL)


@EVERY
def test_pictures_are_small_and_links_lead_somewhere(script: ModuleType, paper: Paper) -> None:
    top, end = parts(script, paper)
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", top)
    assert pictures and all((PAGES / name).stat().st_size < 60_000 for name in pictures)
    for page in re.findall(r"\]\(([^)#]+\.md)", top + end):
        assert (PAGES / page).exists(), page
    headings = {script.errata.anchor(text) for text in re.findall(r"^#+ (.+)$", end, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", top + end)) <= headings


@pytest.mark.parametrize("paper", few(TOLD[::-1], more=2), ids=lambda paper: paper.key)
def test_a_verdict_that_changes_shows(script: ModuleType, paper: Paper) -> None:
    """A changed verdict changes the page; else the test above could not fail."""
    other = {"fails": "holds", "reproduced": "differs", "refuted": "proved", "proved": "refuted"}
    changed = VERDICTS.assign(verdict=VERDICTS["verdict"].replace(other))
    judged = (VERDICTS["paper"] == paper.key).any()
    assert (script.tail(paper, changed) != script.tail(paper, VERDICTS)) == judged


@needs_all_papers
def test_the_list_has_the_first_paragraph_of_each_page(script: ModuleType) -> None:
    listed = (PAGES / "index.md").read_text(encoding="utf-8")
    for paper in TOLD:
        assert (
            f"- [{paper.title}]({paper.key}.md). {script.summary(parts(script, paper)[0])}\n"
        ) in listed


@needs_all_papers
def test_the_statements_that_fail_stand_on_one_page(script: ModuleType) -> None:
    page = (PAGES / "failed.md").read_text(encoding="utf-8")
    assert page == script.failed(VERDICTS), "run workflow/scripts/renew_pages.py"
    for paper in TOLD:
        rows = script.failing(paper, VERDICTS).count("\n| ") - 2
        own = page.partition(f"## {paper.title}\n")[2].partition("\n## ")[0]
        assert own.count("\n| ") - 2 == rows or not paper.citation or not own
    for link in re.findall(r"\]\(([^)#:]+\.md)", page):
        assert (PAGES / link).exists(), link

"""The report in a real browser, off line: five questions, search, filters, links, keyboard,
colours, phone, print."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from dpsub.reproduce.report.numbers import address, cell_verdicts
from dpsub.reproduce.verdicts import FAILING
from tests import report_run
from tests.browser.windows import DESKTOP, NEEDS_CHROMIUM, View, started, window
from tests.papers.must.report.test_report import COARSE, SHOWN
from tests.report_run import HOSTILE, Made

pytestmark = [pytest.mark.thorough, NEEDS_CHROMIUM]
CHOSEN = (
    "must/table3",
    "must/table8",
    "must/table9",
    "must/figure3",
    "must/privacy_by_steps",
    "must/claims",
)
SERIOUS = ("serious", "critical")
PHONE = {"width": 400, "height": 740}
PAGES = ("index", "must", "numbers")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return report_run.make(tmp_path_factory.mktemp("results"), CHOSEN, COARSE, SHOWN)


@pytest.fixture(scope="module")
def made(plain: Made) -> Made:
    """Make the run with hostile names."""
    found = Made(plain.results, replace(plain.run, **report_run.hostile(plain)))
    found.write()
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def view(browser: Browser, made: Made) -> View:
    return window(browser, made)


def test_is_table_8_right(view: View) -> None:
    view.open("index")
    view.ask("is Table 8 right?")
    article = view.page.locator('article[id="must/table8"]')
    expect(article.locator("h3")).to_be_in_viewport()
    expect(article.locator("h3")).to_have_text(
        "Table 8. Experiment 3: logistic regression on Adult"
    )
    expect(article.get_by_role("link", name="E1", exact=True).first).to_be_in_viewport()
    expect(article.locator(".totals").first).to_be_in_viewport()


def test_search_finds_the_heading_first(view: View) -> None:
    view.open("must")
    for asked, first in (
        ("Table 8", "Table 8. "),
        ("table 9", "Table 9. "),
        ("E2", "E2. "),
        ("figur", "Figure "),
        ("what is wrong with figure 3", "Figure 3. "),
        ("label among the predictors", "E1. "),
    ):
        view.page.locator("#search").fill(asked)
        assert view.page.locator("#found a").first.inner_text().startswith(first), asked
    view.page.locator("#search").fill("below 1/n")
    names = view.page.locator("#found a").all_inner_texts()
    assert any("Zhao and Liu 2023, Statements and numbers of the text" in name for name in names)
    view.open("index")
    view.page.locator("#search").fill("zzz")
    expect(view.page.locator("#found")).to_be_hidden()


def test_the_summary_searches_all_pages(view: View) -> None:
    view.open("numbers")
    view.ask("table 9")
    expect(view.page.locator("#search")).to_be_focused()
    assert "index.html" in view.page.url
    answers = view.page.locator("#found a").all_inner_texts()
    assert answers[0].startswith("Table 9. ")
    assert not any("Search all pages" in answer for answer in answers)
    # a page of a paper finds its own places, and offers the rest
    view.open("must")
    view.page.locator("#search").fill("zzz")
    assert view.page.locator("#found a").all_inner_texts() == ["Search all pages for “zzz”"]


def test_which_claims_fail_and_why(view: View, made: Made) -> None:
    verdicts = cell_verdicts(made.run.comparison)["verdict"].value_counts()
    view.open("index")
    link = view.page.locator(".counts").get_by_role("link", name=re.compile(r"^\d+ fails in must"))
    assert int(link.inner_text()) == verdicts["fails"]
    link.click()
    expect(view.page.locator("#shown")).to_have_text(re.compile(rf"^{verdicts['fails']} of "))
    assert {text.split("\n")[0].strip() for text in view.column(4)} == {"fails"}
    assert all(view.column(11)) and any(view.column(10))


def test_what_is_the_privacy_of_a_sampler_at_equal_noise(view: View) -> None:
    view.open("index")
    view.ask("MUST.OW privacy at equal noise")
    article = view.page.locator('article[id="must/privacy_by_steps"]')
    expect(article.locator("h3")).to_be_in_viewport()
    article.locator("summary").click()
    expect(article.locator("tr", has_text="MUST.OW").first).to_be_visible()


def test_how_do_i_redo_this(view: View) -> None:
    view.open("index#redo")
    expect(view.page.locator("#redo")).to_contain_text("make reproduce")
    view.open("must#must/table8")
    expect(view.page.locator('article[id="must/table8"] .files')).to_contain_text(
        "snakemake --cores 2 must/table8"
    )


def test_filters_of_one_kind_add_and_of_two_kinds_restrict(view: View, made: Made) -> None:
    verdicts = cell_verdicts(made.run.comparison)
    both = verdicts["verdict"].isin(["reproduced", "differs"])
    view.open("numbers#verdict=reproduced&verdict=differs")
    assert view.found == both.sum()
    view.open("numbers#verdict=reproduced&verdict=differs&artefact=must/table3")
    assert view.found == (both & (verdicts["artefact"] == "table3")).sum() > 0
    assert ": must/table3" in view.page.locator("#filters summary").inner_text()
    view.page.get_by_role("button", name="Clear").click()
    expect(view.page.locator("#active")).to_be_empty()
    assert view.found == len(verdicts)
    view.page.locator('input[name="verdict"][value="reproduced"]').check()
    assert view.found == (verdicts["verdict"] == "reproduced").sum()
    assert "verdict=reproduced" in view.page.url


def test_words_narrow_the_list(view: View) -> None:
    view.open("numbers")
    everything = view.found
    narrow = view.page.get_by_label("Only lines with")
    narrow.fill("MUST.WW distinct max")
    assert 0 < view.found < everything
    assert all("MUST.WW" in text for text in view.column(2))
    narrow.fill("sampler=must_ww/distinct_max")  # as in comparison.csv
    assert view.found == 3


def test_numbers_are_sorted_as_numbers(view: View) -> None:
    view.open("numbers#artefact=must/table9")
    head = view.page.locator("#list thead th").nth(4)
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    shown = [float(text) for text in view.column(5)]
    assert shown == sorted(shown)
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    again = [float(text) for text in view.column(5)]
    assert again == sorted(again, reverse=True) and again != sorted(again, key=str, reverse=True)


def test_a_link_leads_to_a_cell_and_opens_what_is_closed(view: View) -> None:
    wanted = address("must", "table9", "experiment=2; sampler=must_ow", "distinct_mean")
    view.open(f"must#{wanted}")
    cell = view.page.locator("td.found")
    expect(cell).to_have_attribute("id", wanted)
    expect(cell).to_be_in_viewport()
    expect(cell).to_be_focused()
    closed = view.page.locator('article[id="must/table8"] details.cells')
    assert closed.get_attribute("open") is None
    view.page.evaluate(
        "(to) => { location.hash = to }", closed.locator("td[id]").last.get_attribute("id")
    )
    expect(view.page.locator("td.found")).to_be_in_viewport()


def test_an_address_without_a_place_of_its_own_leads_to_what_it_is_part_of(view: View) -> None:
    view.open("must#must/figure3/no=such/cell")
    expect(view.page.locator('article[id="must/figure3"] h3')).to_be_in_viewport()


def test_wide_tables_keep_their_first_column_in_view(browser: Browser, made: Made) -> None:
    view = window(browser, made, viewport=PHONE)
    view.open("must#must/table8")
    expect(view.page.locator('article[id="must/table8"] details')).to_have_attribute("open", "")
    scroller = view.page.locator('article[id="must/table8"] .scroll').first
    assert scroller.evaluate("(one) => one.scrollWidth > one.clientWidth")
    scroller.evaluate("(one) => { one.scrollLeft = one.scrollWidth }")
    label = scroller.locator("th[scope=rowgroup]").first
    assert abs((label.bounding_box() or {})["x"] - (scroller.bounding_box() or {})["x"]) < 2
    view.page.context.close()


def test_table_8_is_seen_whole(browser: Browser, made: Made) -> None:
    page = window(browser, made).open("must#must/table8")
    article = page.locator('article[id="must/table8"]')
    article.locator("details.cells").evaluate("closed => { closed.open = true; }")
    widths = article.locator(".scroll").evaluate_all(
        "tables => tables.map(table => [table.scrollWidth, table.clientWidth])"
    )
    assert len(widths) > 1
    assert all(whole <= seen for whole, seen in widths)
    expect(article.locator("table").first).to_contain_text("δ")


@pytest.mark.parametrize("name", PAGES)
def test_every_table_is_seen_whole_on_a_desktop(browser: Browser, made: Made, name: str) -> None:
    page = window(browser, made).open(name)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]
    tables = page.locator(".scroll")
    assert tables.count()
    cut = tables.evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-label'))"
    )
    assert cut == []


def test_no_cell_of_the_list_reaches_into_the_next_one(browser: Browser, made: Made) -> None:
    page = window(browser, made).open("numbers")
    cells = page.locator("table.list :is(th, tr:not([hidden]) td)")
    assert cells.count() > 500
    reaching = cells.evaluate_all(
        "cells => cells.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    )
    assert reaching == []


def test_numbers_that_are_drawn_are_seen_whole(browser: Browser, made: Made) -> None:
    page = window(browser, made).open("must")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tables = page.locator("table.drawn").all()
    assert tables
    for table in tables:
        assert table.evaluate("one => one.scrollWidth <= one.parentElement.clientWidth")
        lines = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        # what all lines share stands above them
        assert len(lines) == 1 or all(len(set(column)) > 1 for column in zip(*lines, strict=True))


def test_everything_works_by_keyboard(view: View) -> None:
    view.open("index")
    view.page.keyboard.press("Tab")
    expect(view.page.locator(".skip")).to_be_focused()
    view.page.keyboard.press("/")
    expect(view.page.locator("#search")).to_be_focused()
    view.page.keyboard.type("Table 9")
    view.page.keyboard.press("ArrowDown")
    expect(view.page.locator("#found a").first).to_be_focused()
    view.page.keyboard.press("Escape")
    expect(view.page.locator("#found")).to_be_hidden()
    view.open("numbers")
    everything = view.found
    view.page.locator('input[name="verdict"]:enabled').first.focus()
    view.page.keyboard.press("Space")
    assert 0 < view.found < everything
    head = view.page.locator("#list thead th").nth(4)
    head.get_by_role("button").focus()
    view.page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")


def test_a_number_can_be_cited_by_keyboard(view: View) -> None:
    view.open("must#must/table8")
    table = view.page.locator('article[id="must/table8"]')
    cell = table.locator("td:has(> i.lower):has(> button)").first
    shown = cell.inner_text().split()[0]
    cell.get_by_role("button", name=f"Cite {shown}").focus()
    view.page.keyboard.press("Enter")
    dialog = view.page.get_by_role("dialog", name="Cite this number")
    lines = dialog.locator("pre").inner_text().split("\n")
    assert lines[0] == f"{shown} (lower bound, attained by an attack)"
    assert any(line.startswith("Table: Table 8. ") for line in lines)
    (conditions,) = (line for line in lines if line.startswith("Conditions: "))
    for part in ("ε = ", "k = ", "n = ", "m = ", "first stage b = ", "relation "):
        assert part in conditions
    staged = table.locator("tr", has_text="MUST.OW").locator("td:has(> i.lower) button").first
    staged.evaluate("button => button.click()")
    assert re.search(r"^Interval: \[\S+, \S+\]$", dialog.locator("pre").inner_text(), re.MULTILINE)
    assert f"Run: dpsub 0.2.0, commit {HOSTILE}, {HOSTILE}" in lines
    assert "@software{dpsub," in lines
    assert faults(view.page) == []
    view.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    view.open("numbers#artefact=must/table8")
    row = view.page.locator("#list tr:not([hidden]):has(> td > i.lower)").first
    row.get_by_role("button", name="Cite").first.click()
    assert "(lower bound" in dialog.locator("pre").inner_text()


def test_a_trivial_bound_is_not_cited(view: View) -> None:
    """An upper bound of 1 on delta, and a lower bound of 0, say nothing."""
    view.open("must#must/table8")
    for side, trivial in (("upper", 1), ("lower", 0)):
        bounds = view.page.locator(f'article[id="must/table8"] td:has(> i.{side})')
        buttons = {
            float(bounds.nth(index).inner_text().split()[0]): bounds.nth(index)
            .get_by_role("button")
            .count()
            for index in range(bounds.count())
        }
        assert buttons == {bound: int(bound != trivial) for bound in buttons}
        assert 1 in buttons.values()


def test_the_list_of_every_number_is_short_and_begins_with_what_fails(
    browser: Browser, made: Made
) -> None:
    for viewport, tallest in ((DESKTOP, 15_000), (PHONE, 30_000)):
        view = window(browser, made, viewport=viewport)
        view.open("numbers")
        assert view.page.evaluate("document.documentElement.scrollHeight") < tallest
        first = view.column(4)
        assert len(first) == 50 and first[0].split("\n")[0].strip() in FAILING
        view.page.get_by_role("button", name="Next").first.click()
        second = view.column(2)
        assert len(second) == 50
        view.page.get_by_role("button", name="Previous").last.click()
        assert view.column(2) != second
        view.page.context.close()


def faults(page: Page, **options: object) -> list[tuple[str, str]]:
    found = (
        Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    )
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in SERIOUS]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_serious_stands_in_the_way_of_assistive_technology(
    browser: Browser, made: Made, name: str
) -> None:
    there = window(browser, made, color_scheme="light")
    there.open(f"{name}#artefact=must/table9" if name == "numbers" else name)
    there.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = "
        "!one.matches('.cells') })"
    )
    assert faults(there.page) == []
    assert (
        there.page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    there.page.emulate_media(color_scheme="dark")
    there.page.wait_for_selector("html[data-theme='dark']")
    assert (
        there.page.evaluate("getComputedStyle(document.body).backgroundColor")
        != "rgb(255, 255, 255)"
    )
    assert faults(there.page, runOnly=["color-contrast"]) == []
    there.page.context.close()


def test_a_planted_fault_is_found(view: View) -> None:
    view.open("index")
    faint = '<p id="bad" style="color: #ddd; background: #fff">hard to read</p>'
    view.page.evaluate("(text) => document.body.insertAdjacentHTML('afterbegin', text)", faint)
    assert [name for name, _ in faults(view.page, runOnly=["color-contrast"])] == ["color-contrast"]


def test_colours_can_be_chosen(view: View) -> None:
    view.open("index")
    before = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
    view.page.locator("#theme").click()
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    view.page.locator("#theme").click()
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == before


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, made: Made, name: str) -> None:
    phone = window(browser, made, viewport=PHONE, is_mobile=True, has_touch=True)
    phone.open(name)
    phone.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    phone.page.context.close()


@pytest.mark.parametrize("script", [True, False])
def test_everything_is_printed_on_white(
    browser: Browser, made: Made, tmp_path: Path, script: bool
) -> None:
    paper = window(browser, made, color_scheme="dark", java_script_enabled=script)
    paper.page.goto((made.folder / "must.html").as_uri())
    paper.page.emulate_media(media="print", color_scheme="dark")
    for control in ("header", "#tools", "summary"):
        expect(paper.page.locator(control).first).to_be_hidden()
    paper.page.pdf(path=tmp_path / "must.pdf", format="A4", prefer_css_page_size=True)
    text = "\n".join(sheet.extract_text() for sheet in PdfReader(tmp_path / "must.pdf").pages)
    for name in ("table3", "table8"):
        cells = paper.page.locator(f'article[id="must/{name}"] td').all_text_contents()
        numbers = {found[0] for cell in cells if (found := re.match(r"0\.\d+", cell))}
        assert len(numbers) > 10
        assert {number for number in numbers if number not in text} == set(), name
    paper.page.context.close()


def test_pages_are_read_without_a_program(browser: Browser, made: Made) -> None:
    bare = window(browser, made, java_script_enabled=False)
    for name, words in (
        ("index", "Worst finding"),
        ("must", "Table 8. Experiment 3"),
        ("numbers", "Zhao and Liu 2023, Table 8"),
    ):
        bare.page.goto((made.folder / f"{name}.html").as_uri())
        assert words in bare.page.locator("main").inner_text()
        expect(bare.page.locator("#search")).to_be_hidden()
    bare.page.context.close()


def test_pages_are_loaded_in_no_time(browser: Browser, made: Made) -> None:
    for name in PAGES:
        there = window(browser, made)
        started = time.monotonic()
        there.open(name)
        took, size = time.monotonic() - started, (made.folder / f"{name}.html").stat().st_size
        print(f"{name}: {took:.2f} s, {size / 1e6:.2f} MB")
        assert took < 10 and size < 1.5e6  # on a machine with other work; see the printed times
        there.page.context.close()


def test_the_browser_never_complains_and_never_asks_for_anything(view: View) -> None:
    """The test comes last, after all that was done to the pages; hostile names in them would have
    left a trace."""
    for name in PAGES:
        view.open(name)
        assert view.page.evaluate("window.hit") is None
    assert view.said == []
    assert {
        url.partition("#")[0] for url in view.asked if not url.startswith(("data:", "about:"))
    } <= {f"{(view.folder / name).as_uri()}.html" for name in PAGES}
    view.page.evaluate("fetch('https://example.org/').catch(() => null)")
    assert any("Content Security Policy" in text for text in view.said)  # it could not have, either

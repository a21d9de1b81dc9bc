"""The report in a real browser, off line: filters, search, order, links, keyboard, colours, phone, print."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dpsub.reproduce.report.numbers import address, cell_verdicts
from tests import report_run
from tests.report_run import Made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium")
CHOSEN = ("must/table4", "must/table9", "must/figure3", "must/claims")
SERIOUS = ("serious", "critical")
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
SHOWN = re.compile(r"(\d+) to (\d+) of (\d+)")


@dataclass
class View:
    """An open page and what the browser had to say about it."""

    page: Page
    address: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def go(self, fragment: str) -> None:
        self.page.evaluate("(to) => { location.hash = to }", fragment)
        self.page.wait_for_timeout(100)

    @property
    def found(self) -> int:
        """How many printed numbers are shown, on all pages of the list together."""
        numbers = SHOWN.search(self.page.locator(".dt-info").inner_text().replace(",", ""))
        return int(numbers[3]) if numbers else 0

    def column(self, number: int) -> list[str]:
        return self.page.locator(f"#list tbody td:nth-child({number})").all_inner_texts()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    plain = report_run.make(tmp_path_factory.mktemp("results"), CHOSEN)
    few = tmp_path_factory.mktemp("paper") / "errata.md"
    few.write_text(plain.run.errata[0].read_text(encoding="utf-8").partition("### E3.")[0], encoding="utf-8")
    found = Made(plain.results, replace(plain.run, errata=[few], **report_run.hostile(plain)))
    found.write()
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser: Browser, made: Made, fragment: str = "", **options: object) -> View:
    context = browser.new_context(**{"viewport": DESKTOP, "offline": True, **options})  # type: ignore[arg-type]
    view = View(context.new_page(), made.page.as_uri())
    view.page.on("console", lambda message: view.said.append(message.text))
    view.page.on("pageerror", lambda error: view.said.append(str(error)))
    view.page.on("request", lambda request: view.asked.append(request.url))
    view.page.goto(f"{view.address}#{fragment}" if fragment else view.address)
    view.page.wait_for_selector(".dt-search")
    return view


@pytest.fixture(scope="module")
def view(browser: Browser, made: Made) -> View:
    return opened(browser, made)


def test_every_verdict_is_a_filter(view: View, made: Made) -> None:
    counts = cell_verdicts(made.run.comparison)["verdict"].value_counts()
    everything = view.found
    for verdict in ("reproduced", "fails", "reported"):
        box = view.page.locator(f'input[name="verdict"][value="{verdict}"]')
        if verdict not in counts:
            expect(box).to_be_disabled()
            continue
        box.check()
        assert view.found == counts[verdict]
        assert {text.split("\n")[0].strip() for text in view.column(9)} == {verdict.replace("_", " ")}
        assert f"verdict={verdict}" in view.page.url
        box.uncheck()
    assert view.found == everything == sum(counts)


def test_filters_of_one_kind_add_and_of_two_kinds_restrict(view: View, made: Made) -> None:
    verdicts = cell_verdicts(made.run.comparison)
    both = verdicts["verdict"].isin(["reproduced", "differs"])
    view.go("numbers?verdict=reproduced&verdict=differs")
    assert view.found == both.sum()
    view.go("numbers?verdict=reproduced&verdict=differs&artefact=must/table4")
    assert view.found == (both & (verdicts["artefact"] == "table4")).sum() > 0
    assert ": must/table4" in view.page.locator("#filters summary").inner_text()
    view.page.get_by_role("button", name="Clear filters").click()
    expect(view.page.locator("#active")).to_be_empty()
    assert view.found == len(verdicts)


def test_a_count_leads_to_what_it_counts(view: View) -> None:
    link = view.page.locator(".counts tbody a").nth(1)
    count = int(link.inner_text())
    link.click()
    expect(view.page.locator(".dt-info")).to_contain_text(f"of {count} ")
    view.go("numbers?")


def test_search_narrows_the_list(view: View) -> None:
    everything = view.found
    view.page.get_by_role("searchbox").fill("MUST.WW distinct max")
    assert 0 < view.found < everything
    assert all("MUST.WW" in text for text in view.column(2))
    view.page.get_by_role("searchbox").fill("sampler=must_ww/distinct_max")  # as in comparison.csv
    assert view.found == 3
    view.page.get_by_role("searchbox").fill("")
    assert view.found == everything


def test_numbers_are_sorted_as_numbers(view: View) -> None:
    view.go("numbers?artefact=must/table9")
    view.page.locator(".dt-length select").select_option("-1")
    head = view.page.locator("#list thead th").nth(3)
    head.click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    shown = [float(text) for text in view.column(4)]
    assert shown == sorted(shown)
    head.click()
    expect(head).to_have_attribute("aria-sort", "descending")
    again = [float(text) for text in view.column(4)]
    assert again == sorted(again, reverse=True) and again != sorted(again, key=str, reverse=True)
    view.page.locator(".dt-length select").select_option("25")
    view.go("numbers?")


def test_a_link_leads_to_a_cell_of_a_table(browser: Browser, made: Made) -> None:
    wanted = address("must", "table9", "experiment=2; sampler=must_ow", "distinct_mean")
    linked = opened(browser, made, wanted)
    cell = linked.page.locator("td.found")
    expect(cell).to_have_attribute("id", wanted)
    expect(cell).to_be_in_viewport()
    expect(cell).to_be_focused()
    linked.page.context.close()


def test_a_link_opens_what_is_closed(view: View) -> None:
    assert not view.page.locator('article[id="must/claims"] details').get_attribute("open")
    view.go(view.page.locator('article[id="must/claims"] td[id]').last.get_attribute("id") or "")
    expect(view.page.locator("td.found")).to_be_in_viewport()


def test_a_link_to_a_cell_without_a_table_leads_to_its_line(view: View, made: Made) -> None:
    hostile = made.run.comparison.iloc[-1]
    view.go("numbers?verdict=reproduced")
    view.go(address(hostile["paper"], hostile["artefact"], hostile["row"], hostile["column"]))
    row = view.page.locator("tr.found")
    expect(row).to_be_in_viewport()
    expect(row).to_contain_text(report_run.HOSTILE)


def test_the_list_works_by_keyboard(view: View) -> None:
    view.page.goto(view.address)
    view.page.wait_for_selector(".dt-search")
    view.page.keyboard.press("Tab")
    expect(view.page.locator(".skip")).to_be_focused()
    view.page.locator('input[name="verdict"]:enabled').first.focus()
    everything = view.found
    view.page.keyboard.press("Space")
    assert 0 < view.found < everything
    view.page.keyboard.press("Space")
    assert view.found == everything
    head = view.page.locator("#list thead th").nth(3)
    head.locator("[tabindex]").first.focus()
    view.page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")


def faults(page: Page, **options: object) -> list[tuple[str, str]]:
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in SERIOUS]


def test_nothing_serious_stands_in_the_way_of_assistive_technology(browser: Browser, made: Made) -> None:
    there = opened(browser, made, color_scheme="light")
    there.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = !one.matches('.cells') })")
    there.page.evaluate("document.querySelector('.cells').open = true")
    assert faults(there.page) == []
    assert there.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    there.page.emulate_media(color_scheme="dark")
    there.page.wait_for_selector("html[data-theme='dark']")
    assert there.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert faults(there.page, runOnly=["color-contrast"]) == []
    there.page.context.close()


def test_a_planted_fault_is_found(view: View) -> None:
    faint = '<p id="bad" style="color: #ddd; background: #fff">hard to read</p>'
    view.page.evaluate("(text) => document.body.insertAdjacentHTML('afterbegin', text)", faint)
    found = [name for name, _ in faults(view.page, runOnly=["color-contrast"])]
    view.page.evaluate("document.getElementById('bad').remove()")
    assert found == ["color-contrast"]


def test_colours_can_be_chosen(view: View) -> None:
    before = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
    view.page.locator("#theme").click()
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    view.page.locator("#theme").click()
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == before


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, made: Made) -> None:
    phone = opened(browser, made, viewport=PHONE, is_mobile=True, has_touch=True)
    phone.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    first = phone.page.locator("#list tbody tr").first
    assert (first.bounding_box() or {})["width"] <= PHONE["width"]
    assert phone.page.locator("#list thead th").first.is_visible()
    phone.page.context.close()


def test_it_prints_without_its_controls_and_on_white(browser: Browser, made: Made) -> None:
    paper = opened(browser, made, color_scheme="dark")
    paper.page.emulate_media(media="print", color_scheme="dark")
    assert paper.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for control in ("#filters", ".dt-search", "#theme", "header nav"):
        expect(paper.page.locator(control)).to_be_hidden()
    expect(paper.page.locator(".counts")).to_be_visible()
    assert paper.page.pdf(format="A4").startswith(b"%PDF")
    paper.page.context.close()


def test_the_browser_never_complains_and_never_asks_for_anything(view: View, made: Made) -> None:
    """Last, after all that was done to the page; hostile names in it would have left a trace."""
    assert view.said == []
    assert {url.partition("#")[0] for url in view.asked if not url.startswith(("data:", "blob:"))} == {view.address}
    assert view.page.evaluate("window.hit") is None
    view.page.evaluate("fetch('https://example.org/').catch(() => null)")
    assert any("Content Security Policy" in text for text in view.said)  # it could not have, either

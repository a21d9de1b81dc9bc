"""The site of the documentation in a real browser: every page, phone, dark, keyboard, search,
links."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import dpsub
from dpsub.cli import COMMANDS
from tests.browser.windows import CHROMIUM, DESKTOP, PATIENCE, started
from tests.documentation.console import ROOT, clone

PHONE = {"width": 400, "height": 800}
READ_MOST = (
    "index.html",
    "tutorial.html",
    "how-to/account.html",
    "verdicts.html",
    "proofs/setting.html",
    pytest.param("reference.html", marks=pytest.mark.slow),  # half a minute
    "search.html?q=opacus",
)
STRAY = re.compile(r"`|\*\*|\]\(|:(?:func|class|py|ref|doc):")
BRACES = re.compile(r"\{[A-Za-z_]+\}|\^\{")  # which the formulas of docstrings may have
SERIOUS = ("serious", "critical")
UNSET = re.compile(r"\$|\\[A-Za-z]")
LOOK = """() => {
  const prose = document.querySelector("[role=main]").cloneNode(true)
  prose.querySelectorAll("pre, code, script, style, .sig").forEach((one) => one.remove())
  return [prose.textContent, [...document.querySelectorAll("[id]")].map((one) => one.id),
          [...document.querySelectorAll("a[href]")].map((one) => one.href),
          document.documentElement.scrollWidth, document.querySelectorAll("math").length]
}"""

pytestmark = pytest.mark.thorough


@dataclass
class Seen:
    """A page as a phone shows it: its prose without code, its anchors, where its links lead, its
    width, how many formulas it has."""

    prose: str
    anchors: set[str]
    links: list[str]
    width: int
    formulas: int


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built as `make docs` does, where a warning is an error."""
    top = clone(tmp_path_factory.mktemp("clone"))
    (top / "docs").unlink()
    shutil.copytree(ROOT / "docs", top / "docs", ignore=shutil.ignore_patterns("api"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "html"],
        cwd=top,
        env={**os.environ, "PYTHONPATH": str(Path(dpsub.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return top / "html"


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[str]:
    """Serve the site at an address for a browser, as search results need a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    with started() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def seen(browser: Browser, built: Path, site: str) -> dict[str, Seen]:
    """Open every page on a phone; the browser may neither complain nor ask for anything
    elsewhere."""
    context = browser.new_context(viewport=PHONE, is_mobile=True)
    context.set_default_timeout(PATIENCE)
    page, said, asked = context.new_page(), list[str](), list[str]()
    # browsers ask for this icon, which the site does not have
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    found = {}
    for path in sorted(built.rglob("*.html")):
        name = path.relative_to(built).as_posix()
        page.goto(site + name)
        prose, anchors, links, width, formulas = page.evaluate(LOOK)
        found[name] = Seen(prose, set(anchors), links, width, formulas)
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((site, "data:"))] == []
    return found


def test_every_page_fits_a_phone(seen: dict[str, Seen]) -> None:
    assert len(seen) >= 30
    assert {name: one.width for name, one in seen.items() if one.width > PHONE["width"]} == {}


def test_no_markup_is_left_in_the_prose(seen: dict[str, Seen]) -> None:
    left = [
        (name, one.prose[max(0, at.start() - 30) : at.end() + 30])
        for name, one in seen.items()
        for pattern in (STRAY, BRACES)[: 1 if name.startswith("api/") else 2]
        for at in pattern.finditer(one.prose)
    ]
    assert left == []


def test_proofs_are_typeset(seen: dict[str, Seen]) -> None:
    proofs = {name: one for name, one in seen.items() if name.startswith("proofs/")}
    assert len(proofs) >= 20
    assert [name for name, one in proofs.items() if one.formulas == 0] == []
    assert [name for name, one in proofs.items() if UNSET.search(one.prose)] == []


def test_every_link_within_the_site_leads_to_a_page_and_an_anchor(
    seen: dict[str, Seen], built: Path, site: str
) -> None:
    broken = []
    for name, one in seen.items():
        for link in one.links:
            target, anchor = urldefrag(urljoin(site + name, link))
            if not target.startswith(site):
                continue
            place = unquote(target.removeprefix(site).partition("?")[0]) or "index.html"
            known = seen[place].anchors if place in seen else set()
            if not (built / place).is_file() or (
                place in seen and anchor and unquote(anchor) not in known
            ):
                broken.append((name, link))
    assert broken == []


def test_faults_are_found(seen: dict[str, Seen]) -> None:
    assert (
        STRAY.search("a **bold** word")
        and BRACES.search("gives {OURS} where")
        and BRACES.search("e^{x}")
    )
    assert not STRAY.search("the set {a, b} and 2 * 3") and not BRACES.search("the set {a, b}")
    assert "adding-a-sampler-a-paper-a-data-set" in seen["adding.html"].anchors


def faults(page: Page) -> list[tuple[str, str]]:
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in SERIOUS]


@pytest.mark.parametrize("name", READ_MOST)
def test_nothing_serious_stands_in_the_way_of_assistive_technology(
    page: Page, site: str, name: str
) -> None:
    page.goto(site + name)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert faults(page) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert faults(page) == []


def test_it_works_by_keyboard(page: Page, site: str) -> None:
    page.goto(site)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    page.get_by_role("textbox", name="Search").focus()
    page.keyboard.type("opacus")
    page.keyboard.press("Enter")
    expect(page.locator("ul.search a").first).to_be_visible()
    page.locator("ul.search a").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_title(re.compile("Coming from Opacus"))


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("opacus", "how-to/coming-from.html"),
        ("shuffle", "how-to/account.html"),
        ("replace-one", "guarantees.html"),
        ("Table 8", "verdicts.html"),
        ("translate", "reference.html#dpsub.translate"),
    ],
)
def test_search_finds_the_page_that_answers(page: Page, site: str, words: str, first: str) -> None:
    page.goto(f"{site}search.html?q={words}")
    expect(page.locator(".search-summary")).to_contain_text("finished")
    found = page.locator("ul.search > li > a").evaluate_all(
        "(all) => all.slice(0, 4).map((one) => one.href)"
    )
    assert any(url.partition("?")[0].removeprefix(site).startswith(first) for url in found), found


ANSWERS = {
    "Is Table 8 of Zhao and Liu 2023 (MUST) right?": "The label is among the predictors",
    "Which claims of a paper fail, and why?": "What we found",
    "What is MUST.OW's privacy at equal noise?": "2. Attack and proof",
    "What should I use instead?": "least noise of the samplers with fresh batches",
    "How do I redo this?": "make reproduce",
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_of_the_home_page_is_answered_one_click_away(
    page: Page, site: str, question: str
) -> None:
    page.goto(site)
    page.locator("p", has_text=question).get_by_role("link").first.click()
    expect(page.get_by_text(ANSWERS[question]).first).to_be_visible()


def test_the_reference_of_the_command_line_has_every_command_and_option(
    seen: dict[str, Seen],
) -> None:
    anchors = seen["api/command-line.html"].anchors
    assert {f"dpsub-{name}" for name in COMMANDS} <= anchors
    assert {f"cmdoption-dpsub-{name}-json" for name in COMMANDS} <= anchors
    assert {"cmdoption-dpsub-account-noise-multiplier", "cmdoption-dpsub-account-sigma"} <= anchors

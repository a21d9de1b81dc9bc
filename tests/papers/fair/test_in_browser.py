"""Answers of this study's report in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests import report_run
from tests.browser.windows import NEEDS_CHROMIUM, View, started, window

pytestmark = [pytest.mark.thorough, NEEDS_CHROMIUM]
PAGES = ("index", "fair", "numbers")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    made = report_run.make(tmp_path_factory.mktemp("results"), ("fair/winners",))
    made.write()
    with started() as browser:
        yield window(browser, made)


def test_what_should_i_use_instead(view: View) -> None:
    view.open("index")
    card = view.page.locator(".card", has_text="What to use.")
    expect(card).to_contain_text(re.compile(r"What to use\. Use (any of )?[A-Z]"))
    card.get_by_role("link", name="Which sampler is best at equal proved privacy").click()
    expect(view.page.locator('article[id="fair/winners"] h3')).to_be_in_viewport()


@pytest.mark.parametrize("name", PAGES)
def test_every_table_is_seen_whole(view: View, name: str) -> None:
    page = view.open(name)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    cut = page.locator(".scroll").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-label'))"
    )
    assert cut == []

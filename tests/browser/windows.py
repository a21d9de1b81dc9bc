"""Windows of a real browser, off line, in which pages of reports are shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.report_run import Made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium"
)
DESKTOP = {"width": 1280, "height": 900}
PATIENCE = 60_000  # milliseconds until a page must show what it is to show, on a busy machine


@contextmanager
def started() -> Iterator[Browser]:
    """Start a browser, and close it in the end."""
    with sync_playwright() as driver:
        expect.set_options(timeout=PATIENCE)
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@dataclass
class View:
    """A browser window and what the browser had to say about its pages."""

    page: Page
    folder: Path
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, place: str) -> Page:
        """Go to a page, or a place in it ("demo#E1")."""
        name, _, fragment = place.partition("#")
        self.page.goto("about:blank")
        self.page.goto(
            f"{(self.folder / name).as_uri()}.html" + (f"#{fragment}" if fragment else "")
        )
        self.page.wait_for_selector("#tools:not([hidden])")
        return self.page

    @property
    def found(self) -> int:
        """Return how many printed numbers the list shows."""
        return int(self.page.locator("#shown").inner_text().split()[0])

    def column(self, number: int) -> list[str]:
        return self.page.locator(
            f"#list tbody tr:not([hidden]) td:nth-child({number})"
        ).all_inner_texts()

    def ask(self, question: str) -> None:
        """Type into the search and follow the first answer."""
        self.page.locator("#search").fill(question)
        self.page.keyboard.press("Enter")


def window(browser: Browser, made: Made, **options: object) -> View:
    context = browser.new_context(**{"viewport": DESKTOP, "offline": True, **options})  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    view = View(context.new_page(), made.folder)
    view.page.on("console", lambda message: view.said.append(message.text))
    view.page.on("pageerror", lambda error: view.said.append(str(error)))
    view.page.on("request", lambda request: view.asked.append(request.url))
    return view

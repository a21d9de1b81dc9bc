"""What needs the network or a minute: links to other places, and a site that needs none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

import dpsub
from tests.documentation.console import ROOT

pytestmark = pytest.mark.slow

SOURCES = ("*.md", "config/*.md", "docs/*.md", "docs/how-to/*.md", "CITATION.cff", "data/SOURCES.csv")
ADDRESS = re.compile(r"https?://[^\s)>\]\"',;`]+")
LOADED = re.compile(r"(?:src|href)=\"(?:https?:)?//|url\(['\"]?(?:https?:)?//|@import ['\"]?(?:https?:)?//")


def addresses() -> list[str]:
    texts = (path.read_text(encoding="utf-8") for pattern in SOURCES for path in sorted(ROOT.glob(pattern)))
    return sorted({found.rstrip(".") for text in texts for found in ADDRESS.findall(text)})


@pytest.fixture(scope="module")
def online() -> None:
    try:
        requests.head("https://arxiv.org", timeout=10)
    except requests.RequestException:
        pytest.skip("there is no network here")


@pytest.mark.parametrize("address", addresses())
@pytest.mark.usefixtures("online")
def test_an_external_link_answers(address: str) -> None:
    with requests.get(address, timeout=60, stream=True, headers={"User-Agent": "dpsub-link-check"}) as answer:
        assert answer.status_code < 400


def loaded(page: str) -> Iterator[str]:
    """Addresses that a browser fetches by itself to show a page: not links that a reader may follow."""
    for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>|<style.*?</style>", page, flags=re.DOTALL):
        yield from LOADED.findall(tag)


def test_the_site_is_built_without_warnings_and_needs_no_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run(
        [*command, "docs", str(tmp_path / "html")], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(dpsub.__file__).parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    pages = list((tmp_path / "html").rglob("*.html"))
    assert len(pages) >= 20
    assert {page.name: found for page in pages if (found := list(loaded(page.read_text(encoding="utf-8"))))} == {}
    styles = [path.read_text(encoding="utf-8") for path in (tmp_path / "html").rglob("*.css")]
    assert styles
    assert not any(LOADED.search(style) for style in styles)


def test_a_script_from_elsewhere_is_seen() -> None:
    assert list(loaded('<script src="https://example.org/a.js"></script>'))
    assert list(loaded("<style>@import '//example.org/a.css';</style>"))
    assert not list(loaded('<a href="https://example.org">x</a> <img src="_static/x.png">'))

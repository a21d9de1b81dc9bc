"""Tests that need the network: links to other places."""

from __future__ import annotations

import re

import pytest
import requests

from tests.documentation.console import ROOT

pytestmark = pytest.mark.slow

SOURCES = (
    "*.md",
    "config/*.md",
    "docs/*.md",
    "docs/*/*.md",
    "paper/*",
    "CITATION.cff",
    "data/SOURCES.csv",
)
ADDRESS = re.compile(r"https?://[^\s)>\]\"',;`}]+")


def addresses() -> list[str]:
    texts = (
        path.read_text(encoding="utf-8")
        for pattern in SOURCES
        for path in sorted(ROOT.glob(pattern))
    )
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
    with requests.get(
        address, timeout=60, stream=True, headers={"User-Agent": "dpsub-link-check"}
    ) as answer:
        assert answer.status_code < 400

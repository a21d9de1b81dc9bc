"""Papers with a page whose folders have been removed: pages made from all papers are then not
current."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsub.reproduce.papers import papers

FOUND = Path(__file__).resolve().parents[1] / "docs/found"
# pages about all papers
OF_ALL = {"index", "failed"}
GONE = sorted({page.stem for page in FOUND.glob("*.md")} - OF_ALL - set(papers()))

needs_all_papers = pytest.mark.skipif(
    bool(GONE), reason=f"speaks of papers that are not there: {', '.join(GONE)}"
)

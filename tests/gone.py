"""Papers of which the README speaks and that have been taken away: what is made from all papers is
then not current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsub.reproduce.papers import papers

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
GONE = sorted(set(re.findall(r"^\| `(\w+)` \|", README, flags=re.M)) - set(papers()))

needs_all_papers = pytest.mark.skipif(
    bool(GONE), reason=f"speaks of papers that are not there: {', '.join(GONE)}"
)

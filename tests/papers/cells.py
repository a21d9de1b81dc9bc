"""Tables of cells as the report reads them, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from dpsub.reproduce.claims import Claim, Finding, Setting
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.prose import Prose


def cells(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    """Return a table of cells as it is read: texts, and numbers under the names of variants."""
    frame = pd.DataFrame(rows, columns=columns.split())
    for name, default in (("printed", ""), ("verdict", ""), ("erratum", ""), ("note", "")):
        if name not in frame:
            frame[name] = default
    return frame


def prose(paper: str, tables: Mapping[str, pd.DataFrame]) -> Prose:
    """Return the prose of a paper with the numbers of these tables."""
    return Prose(papers()[paper], tables)


def takeaways(paper: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the paragraphs for which these tables have the numbers, by their headings."""
    return {takeaway.heading: takeaway.text for takeaway in prose(paper, tables).takeaways()}


def truth_of(
    claims: Iterable[Claim | Setting], name: str, frames: dict[str, pd.DataFrame]
) -> float:
    """Return the truth of a statement about these records: of the rigorous side where it has
    two."""
    asked = [one.ask for one in claims if isinstance(one, Claim) and one.claim == name]
    answer = asked[-1](frames)
    assert isinstance(answer, Finding)
    return float(answer.holds)

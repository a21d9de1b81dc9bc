"""What a user should take from a paper: sentences whose numbers are looked up in the tables of the
run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dpsub.reproduce.labels import in_symbols
from dpsub.reproduce.papers import PACKAGE, Paper
from dpsub.reproduce.report.cells import LookUp as Tables
from dpsub.reproduce.report.cells import read_cells, tables_of
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.prose import Prose, Takeaway, listed

__all__ = ["Headline", "Tables", "Takeaways", "listed", "read_cells", "tables_of"]


@dataclass(frozen=True)
class Takeaways:
    """What to conclude from one paper, found as `TAKEAWAYS` in the module `takeaways` of its
    folder."""

    parts: Sequence[Callable[[Tables], str | list[str]]]
    """Each writes a paragraph in Markdown, "" if this run lacks the numbers, or a list of
    paragraphs."""
    introduction: str = ""
    """What must be known before reading them."""
    evidence: Callable[[Tables], Mapping[str, pd.DataFrame]] = lambda tables: {}
    """Returns by paragraph a table of the numbers that it rests on; none by default."""
    worst: Callable[[Tables], Headline | None] | None = None
    """Returns the finding that a user of the paper must know, None if this run lacks its
    numbers."""
    best: Callable[[Tables], Headline | None] | None = None
    """Returns what is confirmed best."""

    def sentences(self, tables: Tables) -> list[str]:
        """Return the paragraphs for which this run has the numbers, with the symbols of the
        field."""
        return list(self.with_errata(tables))

    def with_errata(self, tables: Tables) -> dict[str, list[str]]:
        """Return these paragraphs with the errata of the cells that they rest on, BN2 before
        BN10."""
        found = {}
        for part in self.parts:
            tables.errata.clear()
            texts = part(tables)
            names = sorted(tables.errata, key=lambda name: (len(name), name))
            found.update(
                {
                    in_symbols(text): names
                    for text in ([texts] if isinstance(texts, str) else texts)
                    if text
                }
            )
        return found

    def grounds(self, tables: Tables) -> Mapping[str, pd.DataFrame]:
        """Return `evidence` by the paragraphs as `sentences` has them."""
        return {in_symbols(text): table for text, table in self.evidence(tables).items()}


def of_paper(paper: Paper) -> Takeaways | None:
    """Return what to conclude from a paper, None if its folder has no module `takeaways`."""
    if not (paper.folder / "takeaways.py").exists():
        return None
    found: Takeaways = importlib.import_module(f"{PACKAGE}.{paper.key}.takeaways").TAKEAWAYS
    return found


def told(prose: Prose) -> tuple[str, list[Takeaway], Headline | None, Headline | None]:
    """Return the introduction, the paragraphs, and the worst and the best finding of a paper."""
    takeaways = of_paper(prose.paper)
    if takeaways is None:
        return (
            prose.introduction(),
            prose.takeaways(),
            prose.headline("worst"),
            prose.headline("best"),
        )
    tables = Tables(prose.tables, {}, prose.seen)
    grounds = takeaways.grounds(tables)
    paragraphs = []
    for paragraph, names in takeaways.with_errata(tables).items():
        heading, _, text = paragraph.removeprefix("**").partition(".** ")
        paragraphs.append(Takeaway(heading, text, names, grounds.get(paragraph)))
    worst, best = (find(tables) if find else None for find in (takeaways.worst, takeaways.best))
    return takeaways.introduction, paragraphs, worst, best

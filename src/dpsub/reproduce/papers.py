"""The registry of papers: each is a folder of `dpsub.papers` that describes itself in its
`PAPER`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpsub.errors import PlanError

PACKAGE = "dpsub.papers"


@dataclass(frozen=True)
class Citation:
    """Citation of a paper: authors, title, journal, conference or archive, and year."""

    authors: tuple[str, ...]
    title: str
    venue: str
    year: int


@dataclass(frozen=True)
class Paper:
    """One paper, or one study of this project, which has no citation."""

    key: str
    """The name of its folder ("demo"); it stands in results, verdicts and addresses."""
    title: str
    """Heading of its part of the report."""
    citation: Citation | None = None
    rank: int = 1
    """Papers are shown in the order of their ranks, those of one rank in the order of their
    keys."""
    apart: bool = False
    """Whether at its published size it is made only where a configuration names it: it takes long,
    and the rest of the report does without it."""

    front: str = ""
    """Name of its figure that stands first in the report of every run, as its page keeps it; ""
    for none."""

    @property
    def order(self) -> tuple[int, str]:
        """Sort key of papers."""
        return self.rank, self.key

    @property
    def folder(self) -> Path:
        """Folder of its files: `errata.md`, `published/`."""
        return Path(str(importlib.import_module(f"{PACKAGE}.{self.key}").__file__)).parent

    @property
    def errata(self) -> Path:
        """File of its errata in Markdown, which a paper without known errata does not have."""
        return self.folder / "errata.md"


@cache
def papers(package: str = PACKAGE) -> dict[str, Paper]:
    """Return all papers by their keys, in their order."""
    root = importlib.import_module(package)
    known: dict[str, Paper] = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(root.__path__) if info.ispkg):
        # A paper is a folder: there is no list that a new one would have to be added to.
        paper = getattr(importlib.import_module(f"{package}.{name}"), "PAPER", None)
        if not isinstance(paper, Paper):
            raise PlanError(
                "the folder of a paper must define PAPER in its __init__.py, got none "
                f"in papers/{name}"
            )
        known[name] = paper
    # a copied folder has the key of another one: the more telling sentence comes first
    for name, paper in known.items():
        if twins := [other for other in known if other < name and known[other].key == paper.key]:
            raise PlanError(
                f"two papers must not have one key, got {paper.key!r} in papers/{twins[0]} and "
                f"papers/{name}; rename one"
            )
    for name, paper in known.items():
        if paper.key != name:
            raise PlanError(
                f"the key of a paper must be the name of its folder, got {paper.key!r} in "
                f"papers/{name}; rename one"
            )
    return dict(sorted(known.items(), key=lambda item: item[1].order))


def asked(named: Sequence[str] | None, *, smoke: bool) -> tuple[str, ...]:
    """Return the keys of the papers that a run makes: those `named`, else all papers, at published
    size without those that are made apart."""
    return tuple(named or [key for key, paper in papers().items() if smoke or not paper.apart])


def errata_files() -> list[Path]:
    """Return the files of errata of all papers, in their order."""
    return [paper.errata for paper in papers().values() if paper.errata.exists()]


def of_module(module: str) -> str:
    """Return the key of the paper in whose folder a module stands
    ("dpsub.papers.demo.tables"), else ""."""
    # Modules outside of the papers' folder keep their name, and have no paper.
    inside = module.removeprefix(f"{PACKAGE}.")
    return "" if inside == module else inside.partition(".")[0]

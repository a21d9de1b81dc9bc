"""Packages that account for privacy, one file each: the package's promise, and the code that asks
it.

A module of this package that defines a `PACKAGE` is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from dpsub.papers.practice.settings import ACCOUNTANTS, AccountingQuestion


@dataclass(frozen=True)
class Way:
    """Code that puts questions of some kinds to an accountant.

    `code` is Python with the fields of the question in braces, and sets `epsilon`. It is run as it
    stands, and shown to readers as the way to reproduce an answer.
    """

    kinds: tuple[str, ...]
    code: str
    erratum: str = ""
    """Entry of errata.md that explains answers of this kind that are refuted."""


@dataclass(frozen=True)
class Accountant:
    """One accountant of a package, and the name that its documentation gives its answer."""

    name: str
    answer: str
    ways: tuple[Way, ...]
    versions: tuple[str, ...] = ()
    """Versions that have it, the newest first; by default all that are asked."""

    def way(self, question: AccountingQuestion) -> Way | None:
        """Return the way to ask a question; None if the accountant has no method for it."""
        kind = kind_of(question)
        return next((way for way in self.ways if kind in way.kinds), None)


@dataclass(frozen=True)
class Package:
    """A package, the versions that are asked, and its promise in our words."""

    title: str
    distribution: str
    versions: tuple[str, ...]
    promise: str
    tracker: str
    """Address at which its maintainers take reports."""
    accountants: tuple[Accountant, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Erratum -> why answers are refuted, as its maintainers would be told."""
    python: str = "python3"
    requires: tuple[str, ...] = ()
    """Further requirements, in the form that pip takes."""
    not_asked: Mapping[str, str] = field(default_factory=dict)
    """Release that was tried and is not asked -> why."""
    repository: str = ""
    """Address that git knows, for versions that are no releases."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Version that is no release -> its commit in the repository."""

    def versions_of(self, accountant: Accountant) -> tuple[str, ...]:
        """Return the versions at which an accountant is asked, the newest first."""
        return accountant.versions or self.versions


def kind_of(question: AccountingQuestion) -> str:
    """Return the kind of a question, such as "poisson gaussian add_remove"; rate 1 is "all"."""
    sampler = "all" if question.rate == 1 else question.sampler
    return f"{sampler} {question.mechanism} {question.adjacency}"


def asked(code: str, question: AccountingQuestion) -> str:
    """Return the code of a way, filled with the numbers of a question."""
    return code.format(**question.model_dump())


@cache
def packages() -> dict[str, Package]:
    """Return all packages by the names of their files."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").PACKAGE for name in names}


@cache
def says() -> dict[str, str]:
    """Return the name that each accountant gives its answer."""
    own = {one.name: one.answer for package in packages().values() for one in package.accountants}
    return {**ACCOUNTANTS, **own}

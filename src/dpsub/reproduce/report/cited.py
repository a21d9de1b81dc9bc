"""Numbers of ours in prose: a placeholder names a cell of a run, and what stands there is written
into the sentence.

The cells that the pages of a paper cite are kept in its folder, as `KEPT`, so that pages can be
written, and tested, without a run.
"""

from __future__ import annotations

import importlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import yaml

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import artefacts, published
from dpsub.reproduce.artefact import Artefact, OutputDirs, csv_bytes
from dpsub.reproduce.digits import as_printed, written
from dpsub.reproduce.layout import EXTRAS
from dpsub.reproduce.papers import PACKAGE, Paper
from dpsub.reproduce.provenance import settings_digest
from dpsub.reproduce.report.takeaways import Tables, numbers_of, tables_of
from dpsub.reproduce.verdicts import VARIANTS

KEPT = "cited.csv"
"""In the folder of a paper: the cells of a full run that its pages cite, under a line that says
which run it was."""
NOT_OF_THIS_RUN = "‡"
"""Stands behind a number that the run itself does not have."""
_HEAD = "# The cells that pages cite, from a full run of "
_NUMBERS = tuple(
    name for variant in VARIANTS for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))
)
_AFTER_KEYS = ("column", "printed", *_NUMBERS, "verdict", "erratum", "note")


def made_of(paper: Paper) -> list[Artefact]:
    """Return the artefacts of a paper."""
    return [kind() for kind in artefacts.REGISTRY.members().values() if kind.paper == paper.key]


@dataclass(frozen=True)
class Prose:
    """What fills the placeholders in a Markdown file of a paper.

    A placeholder is a call in double braces, such as ``{{ number("table8", "accuracy", "stated",
    sampler="wor") }}``.
    """

    paper: Paper
    tables: Tables
    """Where numbers are looked up."""
    kept: Tables | None = None
    """Where they are looked up next; such a number is marked."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Functions and texts that only some pages have."""

    def filled(self, text: str) -> str:
        """Return a text with its placeholders filled in."""
        if "{{" not in text and "{%" not in text:
            return text
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
        )
        given = {
            "number": self.number,
            "least": self.least,
            "greatest": self.greatest,
            "computed": self.computed,
            "derived": self.derived,
            "noted": self.noted,
            "printed": self.printed,
        }
        return environment.from_string(text).render(given | dict(self.more))

    def number(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return one number of a table, an upper end rounded up and a lower end down.

        `source` is the variant, or an end of its interval, such as "stated" or "consistent_lower".
        """
        return self._found(table, column, source, digits, fields, np.sum)  # of one cell

    def least(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return the smallest number of those cells; a field that is given as "*" takes any value
        but none."""
        return self._found(table, column, source, digits, fields, np.min)

    def greatest(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return the largest number of those cells."""
        return self._found(table, column, source, digits, fields, np.max)

    def computed(self, name: str, *arguments: Any, digits: int = 3, side: str = "") -> str:
        """Return what a function of the paper's module `evidence` gives: a number that no table of
        the run has."""
        evidence = importlib.import_module(f"{PACKAGE}.{self.paper.key}.evidence")
        return written(float(getattr(evidence, name)(*arguments)), _form(digits), side=side)

    def derived(self, name: str, *arguments: Any, digits: int = 3, side: str = "") -> str:
        """Return what a function of the module `evidence` makes of cells, which it looks up in its
        first argument."""
        evidence, look_up = (
            importlib.import_module(f"{PACKAGE}.{self.paper.key}.evidence"),
            LookUp(self),
        )
        found = float(getattr(evidence, name)(look_up, *arguments))
        return written(found, _form(digits), side=side) + max(look_up.marks, default="")

    def noted(self, table: str, column: str, pattern: str, which: int = 0, **fields: str) -> str:
        """Return what the group of a pattern matches in the note of a cell, the first time or the
        `which`-th after."""
        for place, mark in ((self.tables, ""), (self.kept, NOT_OF_THIS_RUN)):
            notes = place.rows(table, column, **fields).get("note", ()) if place else ()
            found = [match for note in notes for match in re.findall(pattern, str(note))]
            if len(found) > which:
                return found[which] + mark
        raise DataError(
            f"a note in {table} must match {pattern!r}, got none for {column}, {dict(fields)}"
        )

    def printed(self, artefact: str, column: str, **fields: str) -> str:
        """Return a number as the paper prints it."""
        cells = published.load(self.paper.key, artefact)
        for name, wanted in {"column": column, **fields}.items():
            cells = cells[cells[name] == wanted]
        return as_printed(str(cells["printed"].item()))

    def _found(
        self,
        table: str,
        column: str,
        source: str,
        digits: int,
        fields: Mapping[str, str],
        choose: Any,
    ) -> str:
        found, mark = self.one(table, column, source, fields, choose)
        end = re.search(r"_(lower|upper)$", source)
        kind = artefacts.REGISTRY.get(f"{self.paper.key}/{table}")().number_kind(column, source)
        return written(found, _form(digits), side=end[1] if end else kind) + mark

    def one(
        self, table: str, column: str, source: str, fields: Mapping[str, str], choose: Any
    ) -> tuple[float, str]:
        """Return the number that is chosen, and its mark."""
        for place, mark in ((self.tables, ""), (self.kept, NOT_OF_THIS_RUN)):
            found = _numbers(place, table, column, source, fields) if place else np.array([])
            if found.size and (choose is not np.sum or found.size == 1):
                return float(choose(found)), mark
        raise DataError(
            f"a page of {self.paper.key} asks for a number that must be there once, got "
            f"{found.size} in {table}: {column}, {source}, {dict(fields)}; mend the placeholder"
        )


@dataclass
class LookUp:
    """What functions of `evidence` look numbers up in, as `Prose` does."""

    prose: Prose
    marks: set[str] = field(default_factory=set)

    @property
    def tables(self) -> Tables:
        """All tables, for what takeaways compute as well."""
        return self.prose.tables

    def number(self, table: str, column: str, source: str, **fields: str) -> float:
        return self._found(table, column, source, fields, np.sum)

    def least(self, table: str, column: str, source: str, **fields: str) -> float:
        return self._found(table, column, source, fields, np.min)

    def greatest(self, table: str, column: str, source: str, **fields: str) -> float:
        return self._found(table, column, source, fields, np.max)

    def _found(
        self, table: str, column: str, source: str, fields: Mapping[str, str], choose: Any
    ) -> float:
        found, mark = self.prose.one(table, column, source, fields, choose)
        self.marks.add(mark)
        return found


def _form(digits: int) -> str:
    return f"{1:.{digits - 1}e}"


def _numbers(
    tables: Tables, table: str, column: str, source: str, fields: Mapping[str, str]
) -> np.ndarray:
    rows = tables.rows(table, column, **fields)
    texts = rows[source] if source in rows.columns else pd.Series(dtype=float)
    return pd.to_numeric(texts, errors="coerce").dropna().to_numpy(float)


def kept_of(paper: Paper) -> Tables | None:
    """Return the cells that are kept of a paper, None if there are none."""
    path = paper.folder / KEPT
    if not path.is_file():
        return None
    _, _, rows = path.read_text(encoding="utf-8").partition("\n")
    frame = pd.read_csv(io.StringIO(rows), dtype=str, keep_default_na=False)
    return Tables(
        {
            str(name): _own_columns(part.drop(columns="artefact"))
            for name, part in frame.groupby("artefact")
        }
    )


def origin_of(paper: Paper) -> str:
    """Return which run the cells that are kept of a paper come from, "" if there are none."""
    path = paper.folder / KEPT
    head = path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""
    return head.partition(_HEAD)[2].partition(";")[0]


def _own_columns(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of one table without the columns of others."""
    always = {"column", "printed", "verdict", "erratum", "note"}
    return numbers_of(
        cells[[name for name in cells if name in always or (cells[name] != "").any()]]
    )


def run_of(results: Path) -> str:
    """Return in one line which run made a results folder."""
    environment = json.loads((results / "run/environment.json").read_text(encoding="utf-8"))
    settings = yaml.safe_load((results / "run/config.yaml").read_text(encoding="utf-8"))
    version = environment["versions"]["dpsub"]
    return (
        f"dpsub {version}, commit {environment['commit']}, configuration "
        f"{settings_digest(settings)[:12]}"
    )


def keep(paper: Paper, results: Path, seen: Mapping[str, Iterable[int]]) -> None:
    """Keep the rows that were `seen` in the tables of a run, by table, in the paper's folder."""
    dirs, parts = OutputDirs.under(results), []
    for one in made_of(paper):
        if rows := sorted(seen.get(one.name, ())):
            whole = published.read_csv(
                dirs.files(one)["csv"], "cells are kept from a run, got no {path}; make it"
            )
            parts.append(whole.iloc[rows].assign(artefact=one.name))
    if not parts:
        return
    every = pd.concat(parts, ignore_index=True).fillna("")
    keys = [name for name in every if name not in (*_AFTER_KEYS, "artefact")]
    ordered = every[["artefact", *keys, *(name for name in _AFTER_KEYS if name in every)]]
    head = f"{_HEAD}{run_of(results)}; made by workflow/scripts/renew_pages.py\n"
    replace_file(paper.folder / KEPT, head.encode() + csv_bytes(ordered))


def tables_of_run(paper: Paper, results: Path) -> Tables:
    """Return the tables of a paper that a run has made."""
    dirs = OutputDirs.under(results)
    return tables_of([one for one in made_of(paper) if dirs.files(one)["csv"].is_file()], dirs)

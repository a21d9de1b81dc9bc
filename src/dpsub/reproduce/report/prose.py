"""The prose of a paper: templates (Jinja) in its folder, in which placeholders name numbers.

Words, and the conditions under which they are said, stand in the templates `found.md` and
`errata.md`. A number is looked up in a table of the run (`number`, `value`), by a function of the
paper's module `numbers` where it takes several cells (`numbers`, `derived`), or is computed by its
module `evidence` (`computed`). `found.md` is the page in docs/found, and in it stand the
paragraphs that the report takes, each inside ``{% call takeaway("Heading") %}``.
"""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jinja2
import pandas as pd
from jinja2 import nodes

from dpsub.errors import DataError
from dpsub.reproduce import artefacts, published
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.digits import as_printed, written
from dpsub.reproduce.labels import escape_markdown, in_symbols, listed, sampler_label, words
from dpsub.reproduce.papers import PACKAGE, Paper
from dpsub.reproduce.report.cells import CellTables, LookUp, in_order
from dpsub.reproduce.report.findings import Headline

TEMPLATE = "found.md"
"""File in the folder of a paper: its page, with the parts that the report takes."""


@dataclass(frozen=True)
class Takeaway:
    """A conclusion from a paper, in Markdown: a paragraph, and tables below it if need be."""

    heading: str
    text: str
    errata: list[str]
    """Errata of the cells that were looked up for it."""
    evidence: pd.DataFrame | None = None
    """Numbers that the report lists below it."""

    @property
    def paragraph(self) -> str:
        """The text under its heading."""
        return f"**{self.heading}.** {self.text}"


class Prose:
    """Fills the templates of a paper with numbers.

    Parameters
    ----------
    paper : Paper
        Whose templates they are.
    tables : CellTables
        Cells of the run.
    kept : CellTables
        Cells of another run, where a number is looked up next; it is marked there.
    more : Mapping[str, Any]
        Functions and texts that only some pages have.
    """

    def __init__(
        self,
        paper: Paper,
        tables: CellTables,
        kept: CellTables | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.paper = paper
        self.tables = tables
        self.kept = kept or {}
        self.more = more or {}
        self.seen: dict[str, set[int]] = {}
        """Rows of each table that were looked up so far."""

    def filled(self, text: str) -> str:
        """Return a page with its placeholders filled in; a number that is not there is an error."""
        if "{{" not in text and "{%" not in text:
            return text
        cells = self._look_up()
        # on the page a paragraph stands where it is written; the rest is for the report
        parts = {
            "takeaway": _on_the_page,
            "worst": _in_the_report_alone,
            "best": _in_the_report_alone,
            "introduction": _in_the_report_alone,
            "judgement": _in_the_report_alone,
        }
        try:
            return self._rendered(text, cells, {**parts, **self.more})
        except MissingRecordsError as error:
            raise DataError(
                f"a page of {self.paper.key} asks for a number that must be there, got none: "
                f"{error}; mend the placeholder"
            ) from None

    def takeaways(self) -> list[Takeaway]:
        """Return the paragraphs for which this run has the numbers, in the order of the page."""
        found: list[Takeaway] = []

        def add(cells: LookUp, heading: str, caller: Callable[[], str], page: bool = True) -> str:
            text = in_symbols(_unwrapped(caller()))
            evidence = pd.concat(cells.evidence) if cells.evidence else None
            found.append(Takeaway(in_symbols(heading), text, in_order(cells.errata), evidence))
            return ""

        self._render_parts("takeaway", add)
        return found

    def headline(self, which: str) -> Headline | None:
        """Return the "worst" or the "best" finding, None if this run lacks its numbers."""
        found: list[Headline] = []

        def add(cells: LookUp, table: str, caller: Callable[[], str], **shown: Any) -> str:
            errata = tuple(shown.pop("errata", "").split())
            found.append(Headline(_on_one_line(caller()), table, errata, **shown))
            return ""

        self._render_parts(which, add)
        return found[0] if found else None

    def judgements(self) -> dict[str, str]:
        """Return the words that the paper gives to the judgement of an artefact, by its name."""
        found: dict[str, str] = {}

        def add(cells: LookUp, table: str, caller: Callable[[], str]) -> str:
            found[table] = in_symbols(_on_one_line(caller()))
            return ""

        self._render_parts("judgement", add)
        return found

    def lead(self) -> str:
        """Return the first paragraph of the page, which says what to trust the paper for, in
        Markdown; "" if there is no page, or this run lacks its numbers."""
        path = self.paper.folder / TEMPLATE
        if not path.exists():
            return ""
        paragraph = path.read_text(encoding="utf-8").partition("\n\n")[0]
        try:
            return _on_one_line(self._rendered(paragraph, self._look_up(), {}))
        except MissingRecordsError:
            return ""

    def introduction(self) -> str:
        """Return the introduction to the takeaways."""
        found: list[str] = []

        def add(cells: LookUp, caller: Callable[[], str]) -> str:
            found.append(_on_one_line(caller()))
            return ""

        self._render_parts("introduction", add)
        return " ".join(found)

    def _look_up(self) -> LookUp:
        return LookUp(self.tables, self.kept, self.seen)

    def _render_parts(self, name: str, add: Callable[..., str]) -> None:
        """Render each part of this name by itself, without the page around it."""
        path = self.paper.folder / TEMPLATE
        if not path.exists():
            return
        for part in _parts(path.read_text(encoding="utf-8"), name):
            cells = self._look_up()
            try:
                self._rendered(part, cells, {name: partial(add, cells)})
            except MissingRecordsError:
                # a run of reduced size, or of some papers, says less
                continue

    def _rendered(
        self, source: str | nodes.Template, cells: LookUp, more: Mapping[str, Any]
    ) -> str:
        try:
            return _ENVIRONMENT.from_string(source).render(self._placeholders(cells), **more)
        except jinja2.TemplateError as error:
            raise DataError(
                f"a template of {self.paper.key} must use placeholders that docs/adding.md lists, "
                f"got: {error.message}; mend it"
            ) from error

    def _placeholders(self, cells: LookUp) -> dict[str, Any]:
        placeholders = Placeholders(self.paper, cells)
        return {
            "value": cells.number,
            "numbers": placeholders.numbers,
            "number": placeholders.number,
            "least": placeholders.least,
            "greatest": placeholders.greatest,
            "computed": placeholders.computed,
            "derived": placeholders.derived,
            "noted": placeholders.noted,
            "printed": placeholders.printed,
            "agreement": cells.agreement,
            "statements": cells.statements,
            "where_known": where_known,
            "joint": joint,
        }


@dataclass(frozen=True)
class Placeholders:
    """Functions for the placeholders of a template: each returns a number as text, rounded to the
    side on which it stays a bound."""

    paper: Paper
    cells: LookUp

    def number(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return the number of one cell.

        `source` is the variant, or an end of its interval, such as "stated" or "consistent_lower".
        """
        return self._cell(self.cells.number, table, column, source, digits, fields)

    def least(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return the smallest number of these cells; a field given as "*" takes any value but
        none."""
        return self._cell(self.cells.least, table, column, source, digits, fields)

    def greatest(self, table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        """Return the largest number of these cells."""
        return self._cell(self.cells.greatest, table, column, source, digits, fields)

    def computed(self, name: str, *arguments: Any, digits: int = 3, side: str = "") -> str:
        """Return the result of a function of the module `evidence`: a number that follows from no
        table."""
        value = float(function_of(self.paper, "evidence", name)(*arguments))
        return written(value, _form(digits), side=side)

    def derived(self, name: str, *arguments: Any, digits: int = 3, side: str = "") -> str:
        """Return the result of a function of the module `numbers`: a number that follows from
        several cells."""
        return self._marked(
            lambda: written(
                float(getattr(self.numbers, name)(*arguments)), _form(digits), side=side
            )
        )

    def noted(self, table: str, column: str, pattern: str, which: int = 0, **fields: str) -> str:
        """Return the match of a pattern's group in the note of a cell, the first one or the
        `which`-th after."""
        return self._marked(lambda: self.cells.noted(table, column, pattern, which, **fields))

    def printed(self, artefact: str, column: str, **fields: str) -> str:
        """Return a number as the paper prints it."""
        # From the transcription, not from the run: the number has the paper's digits.
        cells = published.load(self.paper.key, artefact)
        for name, wanted in {"column": column, **fields}.items():
            cells = cells[cells[name] == wanted]
        return as_printed(str(cells["printed"].item()))

    @property
    def numbers(self) -> BoundNumbers:
        """The functions of the paper's module `numbers`, which look up these cells."""
        return BoundNumbers(self.paper, self.cells)

    def _cell(
        self,
        look_up: Callable[..., float],
        table: str,
        column: str,
        source: str,
        digits: int,
        fields: Mapping[str, str],
    ) -> str:
        end = re.search(r"_(lower|upper)$", source)
        artefact = artefacts.REGISTRY.get(f"{self.paper.key}/{table}")()
        # An end of an interval says its side by its name, other numbers by what they are.
        side = end[1] if end else artefact.number_kind(column, source)
        return self._marked(
            lambda: written(look_up(table, column, source, **fields), _form(digits), side=side)
        )

    def _marked(self, write: Callable[[], str]) -> str:
        """Return a text with a mark if a number in it is of another run."""
        # marks are of this text alone: each number of a sentence has its own
        self.cells.marks.clear()
        return write() + "".join(self.cells.marks)


@dataclass(frozen=True)
class BoundNumbers:
    """The functions of a paper's module `numbers`, with their first argument, the `LookUp`, filled
    in."""

    paper: Paper
    cells: LookUp

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(function_of(self.paper, "numbers", name), self.cells)


def function_of(paper: Paper, module: str, name: str) -> Callable[..., Any]:
    """Return a function that a placeholder names, of a module in the folder of a paper."""
    functions = vars(importlib.import_module(f"{PACKAGE}.{paper.key}.{module}"))
    if name not in functions:
        raise DataError(
            f"a placeholder of {paper.key} must name a function of its module {module}, got "
            f"{name!r}; mend the placeholder"
        )
    return functions[name]


def where_known(caller: Callable[[], str]) -> str:
    """Return a part of a paragraph, "" if this run lacks its numbers."""
    try:
        return caller()
    except MissingRecordsError:
        return ""


def joint(loop: Any) -> str:
    """Return the separator after an item of a loop, for a list such as "a, b and c"."""
    return (", " if loop.revindex0 > 1 else " and ") if loop.revindex0 else ""


def _on_the_page(heading: str, caller: Callable[[], str], page: bool = True) -> str:
    return in_symbols(_unwrapped(caller())) if page else ""


def _in_the_report_alone(*given: Any, caller: Callable[[], str], **more: Any) -> str:
    return ""


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _unwrapped(text: str) -> str:
    """Return Markdown with each paragraph on one line, and each row of a table on its own."""
    blocks = []
    lines = filter(None, map(_on_one_line, text.splitlines()))
    for of_table, part in itertools.groupby(lines, lambda line: line.startswith("|")):
        blocks.append(("\n" if of_table else " ").join(part))
    return "\n\n".join(blocks)


def _form(digits: int) -> str:
    """Return a number with so many significant digits, as `written` wants it."""
    return f"{1:.{digits - 1}e}"


def _decimals(value: float, places: int, *, sign: bool = False) -> str:
    return f"{value:{'+' if sign else ''}.{places}f}"


def _digits(value: float, places: int, *, sign: bool = False) -> str:
    return f"{value:{'+' if sign else ''}.{places}g}"


def _parts(text: str, name: str) -> Iterator[nodes.Template]:
    """Yield each part of this name as a template of its own, with the macros of the whole."""
    page = _ENVIRONMENT.parse(text)
    # A part may call any macro of its page.
    macros = list(page.find_all(nodes.Macro))
    for part in page.find_all(nodes.CallBlock):
        if isinstance(part.call.node, nodes.Name) and part.call.node.name == name:
            # without the page around it, whose numbers this run may lack
            template = nodes.Template([*macros, part], lineno=1)
            template.set_environment(_ENVIRONMENT)
            yield template


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpsub.reproduce.report"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "decimals": _decimals,
        "digits": _digits,
        "lower_end": lambda value, digits: written(value, _form(digits), side="lower"),
        "upper_end": lambda value, digits: written(value, _form(digits), side="upper"),
        "with_error": lambda value, error: written(value, error=error),
        "listed": listed,
        "label": sampler_label,
        "in_words": lambda name: words()[name],
        "markdown": escape_markdown,
    }
    return environment


_ENVIRONMENT = _environment()

"""The English of pages, captions and messages: one word for one thing, and no construction that a
reader has to decode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.documentation.console import ROOT
from tests.documentation.test_pages import PAGES, TEMPLATES, name_of

PACKAGE = ROOT / "src/dpsub"
MADE_OF_TEMPLATES = {ROOT / "docs/deviations.md", *(ROOT / "docs/found").glob("*.md")}
"""Pages that `renew_pages.py` writes: their words are judged in the templates."""


class Banned(NamedTuple):
    """A construction, an example of it, and how to say that instead."""

    pattern: str
    wrong: str
    better: str


BANNED = [
    Banned(r"\bof which\b", "four values, of which two fail", "four values; two of them fail"),
    Banned(r"\b(that|those) which\b", "that which is proved", "the bound that is proved"),
    Banned(r"\b(has|have|had) it not\b", "one that has it not", "one without it"),
    Banned(
        r"(?<![\w,]\s)\bWhat (is|are|was|were)\b(?!.{0,80}\?)",
        "What is proved is the upper bound.",
        "The upper bound is proved.",
    ),
    Banned(r"\banew\b", "drawn anew", "drawn again"),
    Banned(r"\bbeside\b", "the value beside it", "the value next to it"),
    Banned(r"\b(is|are|was|were|be|been|being) had\b", "data that can be had", "data that exist"),
    Banned(
        r"\bis (said|told|named) (where|in|below|above|here|there)\b",
        "it is said where it is made",
        "the error message names the file",
    ),
    Banned(r"\b(is|are) passed over\b", "the folder is passed over", "the folder is skipped"),
    Banned(r"\bput to (0|zero)\b", "a record put to 0", "zero-out"),
    Banned(r"\breach(es)? from\b", "it reaches from 1 to 2", "it runs from 1 to 2"),
    Banned(r"\b(two|other|another|second) roads?\b", "by another road", "independently"),
    Banned(
        r"\bdifferences? to (Poisson|the|that|its)\b",
        "the difference to Poisson",
        "compared with Poisson",
    ),
    Banned(r"\b(in vain|as yet|thereof|whereof|nought)\b", "open as yet", "still open"),
    Banned(
        r"\b(held|holds \w+) against\b",
        "draws are held against the law",
        "draws are compared with the law",
    ),
    Banned(r"\bneeds not\b", "it needs not hold", "it need not hold"),
    Banned(r"\bone and the same\b", "one and the same run", "the same run"),
    Banned(
        r"\bbelow which (nothing|no guarantee)\b",
        "an attack attains the lower bound, below which nothing can be guaranteed",
        "An attack achieves the lower bound; no smaller epsilon can be claimed.",
    ),
    Banned(
        r"\bboth (ends|bounds) bracket\b",
        "both bounds bracket one number, which the worst data sets attain",
        "Exact up to numerical error.",
    ),
    Banned(
        r"\b(upper|lower|both) ends? (of|on) (ε|δ|epsilon|delta|the answer)"
        r"|\b(upper|lower|both) ends? (is|are|was|were) (proved|computed|trivial|valid|infinite)",
        "the upper end of epsilon",
        "the upper bound on epsilon",
    ),
    Banned(r"\bgot them for\b", "got them for poisson", "got a plan for poisson"),
    Banned(
        r"\bstopped before\b",
        "the refinement stopped before; both bounds hold",
        "refinement stopped early; both bounds are valid",
    ),
    Banned(
        r"\bwhat an attack shows\b",
        "What an attack shows of the mean difference",
        "How much of the extra noise is unavoidable?",
    ),
    Banned(
        r"\b(a|one) (row|column|panel|record|line|entry|file|page) an? (?!few|little)\w+",
        "one page a paper",
        "one page for each paper",
    ),
    Banned(
        r"[,(] ?\bone an? (record|row|step|seed|paper|answer|sampler|entry|printed|group)\b",
        "weights, one a record",
        "weights, one per record",
    ),
    Banned(
        r"\b(steps|gradients|seconds|minutes|bytes|copies|jobs) an? "
        r"(sample|step|row|record|epoch|batch|job|cell)\b",
        "four steps a sample",
        "four steps per sample",
    ),
    Banned(
        r"\bHow many times the \w+ of\b(?!.{0,80}\?)",
        "How many times the noise of A B needs.",
        "Noise that B needs, relative to A.",
    ),
    Banned(
        r", the (\w+er|more) the \w+(er)? ",
        "needs more noise, the more the smaller its first stage is",
        "needs more noise, and with a smaller first stage still more",
    ),
    Banned(r"\b(are|is|of) those of that\b", "are those of that noise", "were computed with it"),
    Banned(
        r"(?<!!)\[(see|here|there|this|this page|link|more)\]\(|>(see|here|this page)</a>",
        "the proof is [here](proofs/index.md)",
        "[the proof](proofs/index.md)",
    ),
]


class Fault(NamedTuple):
    """A banned construction that a text contains, and its place."""

    line: int
    found: str
    better: str


def faults(text: str, first_line: int = 1) -> list[Fault]:
    """Return the banned constructions of a text."""
    return [
        Fault(first_line + text.count("\n", 0, match.start()), match.group(), one.better)
        for one in BANNED
        for match in re.finditer(one.pattern.replace(" ", r"\s+"), text, re.IGNORECASE)
    ]


def told(path: Path, found: list[Fault]) -> str:
    """Return a line for each fault: its place, the text there, and the better form."""
    place = path.relative_to(ROOT)
    lines = [f'{place}:{one.line}: "{one.found}"; better: {one.better}' for one in found]
    return "\n".join(lines)


def prose_of(page: str, *, quotes_others: bool = True) -> str:
    """Blank out code, formulas of templates and quotations, and keep the lines.

    Quotation marks in files of rules and settings hold our own messages.
    """
    both = re.MULTILINE | re.DOTALL
    quoted = [r"\"[^\"\n]*\""] if quotes_others else []
    for code in (r"^ *```.*?^ *```", r"`[^`\n]+`", r"\{[{%#].*?[}%#]\}", *quoted):
        page = re.sub(code, lambda match: re.sub(r"[^\n]", "x", match.group()), page, flags=both)
    return page


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts that code shows, with their lines: its strings, and docstrings, which the
    reference shows."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


WRITTEN = [
    *(page for page in (*PAGES, *TEMPLATES) if page not in MADE_OF_TEMPLATES),
    *sorted(PACKAGE.rglob("*.j2")),
    *sorted((ROOT / "workflow").rglob("*.rst")),
    *sorted((ROOT / "workflow").rglob("*.yaml")),
    *sorted((ROOT / "workflow").rglob("*.smk")),
    ROOT / "config.yaml",
    ROOT / "Makefile",
]
CODE = [*sorted(PACKAGE.rglob("*.py")), *sorted((ROOT / "workflow").rglob("*.py"))]


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_a_page_is_in_the_english_of_the_field(page: Path) -> None:
    quotes_others = page.suffix not in (".smk", ".yaml") and page.name != "Makefile"
    found = faults(prose_of(page.read_text(encoding="utf-8"), quotes_others=quotes_others))
    assert not found, told(page, found)


def test_the_head_that_is_written_by_hand_is_too() -> None:
    """The index of findings has a head that is written by hand, above the list made of the
    pages."""
    index = ROOT / "docs/found/index.md"
    head, made, _ = index.read_text(encoding="utf-8").partition("<!-- from here on made by")
    assert made
    assert not (found := faults(prose_of(head))), told(index, found)


END = re.compile(
    r"\b(upper|lower|both|(answer|theorem)'s (own )?)\s+ends?\b"
    r"(?! of (a|the|its) (bracket|search|cell|bar))"
    r"|\b(proved|exact|attained|best|refined|earlier) ends\b|\bends (are|is) within\b",
    re.IGNORECASE,
)
"""A bound that is called an end, which only an interval has."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "proofs" not in page.parts], ids=name_of
)
def test_bounds_are_not_called_ends(page: Path) -> None:
    """Proofs speak of the ends of intervals; pages for users, and the change log, of bounds."""
    text = prose_of(page.read_text(encoding="utf-8"))
    assert [match.group() for match in END.finditer(text)] == []


def test_bounds_are_not_called_ends_in_captions_help_and_messages() -> None:
    """Docstrings within the package speak of intervals, too; what a user is shown does not."""
    for path in CODE:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        within = {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        }
        shown = [text for _, text in messages(path) if text not in within]
        assert not any(END.search(text) for text in shown), path


def test_a_bound_that_is_called_an_end_is_found() -> None:
    for wrong in ("its upper\nends fall", "refined ends move", "until the ends are within 1 %"):
        assert END.search(wrong)
    for right in ("the upper end of the bracket", "the run ends", "up to the end of the run"):
        assert not END.search(right)


def test_messages_and_captions_are_in_the_english_of_the_field() -> None:
    found = {
        path: [one for at, text in messages(path) for one in faults(text, at)] for path in CODE
    }
    assert not any(found.values()), "\n".join(
        told(path, found[path]) for path in CODE if found[path]
    )


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned.wrong)
def test_each_construction_is_found_and_its_better_form_is_not(banned: Banned) -> None:
    (found,) = faults(f"A first line.\n\n{banned.wrong}")
    assert (found.line, found.better) == (3, banned.better)
    assert faults(f"A first line.\n\n{banned.better}") == []


def test_a_construction_is_found_across_lines_and_not_in_code() -> None:
    assert [one.line for one in faults("Four values, of\nwhich two fail.")] == [1]
    assert faults(prose_of('say "of which"')) == []
    assert len(faults(prose_of('message: "of which"', quotes_others=False))) == 1
    assert faults(prose_of("```console\nof which\n```\nand `of which`")) == []
    assert faults("What is the epsilon of shuffled batches?") == []


MOST = 3
"""Most numbers with decimals in one item of a list; more belong in a table."""
OF_ERRATA = re.compile(r"\*\*(Claim|Evidence|Corrected|Rigorous|Effect|Command)\b")
"""Items of an erratum, which have this form in every entry and quote printed numbers with ours."""
ITEM = re.compile(
    r"^ *(?:[-*]|\d+\.) (.*(?:\n(?! *(?:[-*]|\d+\.) | *\n| *#| *\|).*)*)", re.MULTILINE
)
PLACE = re.compile(r"\]\([^)]*\)|arXiv:\S+|\b(Sections?|Tables?|Figures?|Theorems?) [\dS.]+", re.I)
NUMBER = re.compile(r"(?<![\w./:])\d[\d,]*\.\d+|(?<![\w.])\d+(?: × 10|e-?\d)")


def crowded_items(page: str) -> list[str]:
    """Return the items of lists that hold too many numbers."""
    items = [PLACE.sub("", item) for item in ITEM.findall(prose_of(page))]
    listed = [item for item in items if not OF_ERRATA.match(item)]
    return [item for item in listed if len(NUMBER.findall(item)) > MOST]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of
)
def test_no_item_of_a_list_holds_more_than_three_numbers(page: Path) -> None:
    """Items are checked in pages as a reader sees them, those made of templates included."""
    assert crowded_items(page.read_text(encoding="utf-8")) == []


def test_an_item_with_four_numbers_is_found() -> None:
    three = "- 0.1 to 0.2 in\n  Section 3.4, below 1e-5 ([Table 2.1](a.md#1.5))\n- 0.3"
    assert crowded_items(three) == []
    assert len(crowded_items(three.replace("1e-5", "1e-5 and 7 × 10⁻⁵"))) == 1


def glossary() -> list[list[str]]:
    """Return the terms of docs/notation.md, those of each table."""
    page = (ROOT / "docs/notation.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    return [re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[1:] for table in tables]


def test_the_glossary_is_short_and_names_each_thing_once() -> None:
    rows = [row for table in glossary() for row in table]
    words = [word for row in rows for word in re.split(r", | \(", row)]
    general, schemes, accounting = map(len, glossary())
    assert 20 <= general <= 32 and 5 <= schemes <= 15 and 10 <= accounting <= 20
    assert len(words) == len(set(words))

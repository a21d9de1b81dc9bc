"""Configuration of the site, which `make docs` builds. Pages are Markdown; the reference is made
from the docstrings of the package."""

from __future__ import annotations

import itertools
import re
from importlib.metadata import version as installed
from pathlib import Path
from textwrap import indent
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

from dpsub.cli import COMMANDS, parser_of

project = "dpsub"
author = "the dpsub authors"
version = release = installed("dpsub")
html_title = f"dpsub {release}"
html_theme = "furo"
html_show_copyright = False

extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["api/modules.rst"]
myst_enable_extensions = ["dollarmath"]
# formulas also stand in marks whose content forges read word for word: $`...`$, fences of math
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["formulas.css"]
suppress_warnings = [
    "myst.header",  # the errata of a paper stand three levels deep whether or not they are grouped
    "ref.python",  # the words of a type, such as n in "shape (n,)", are not references
]

# The reference: what a program may call; a new package is in it.  The papers are read in their
# folders.
LEFT_OUT = ["__main__", "cli", "papers", "reproduce/report"]
apidoc_modules = [
    {
        "path": "../src/dpsub",
        "destination": "api",
        "max_depth": 1,
        "module_first": True,
        "exclude_patterns": [
            f"../src/dpsub/{name}{end}" for name in LEFT_OUT for end in ("", ".py")
        ],
    }
]
autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style"), ("Class attributes", "params_style")]
napoleon_use_rtype = False
default_role = "code"
smartquotes = False  # a prime is no quotation mark

# What only the site needs is added to its pages here: they are read in a clone, too.
CONTENTS = {
    "Use it": ["tutorial", "training-plan", "how-to/index"],
    "Results": ["found/index", "verdicts", "deviations"],
    "Theory": [
        "guarantees",
        "certificates",
        "proofs/index",
        "recycling",
        "importance",
    ],
    "Run and extend it": ["cluster", "data", "adding", "releasing"],
    "Reference": [
        "reference",
        "comparison",
        "api/command-line",
        "All modules <api/dpsub>",
        "notation",
    ],
}
PROOFS = [
    "setting",
    "poisson",
    "without_replacement",
    "chains",
    "laplace",
    "added_records",
    "zero_out",
    "cut_samples",
    "composition",
    "schedules",
    "shuffling",
    "allocation",
    "selection",
    "groups",
    "own_pairs",
    "first_ends",
    "attacks",
    "what_fails",
    "numerics",
    "open",
]
HOW_TO = [
    "account",
    "loader",
    "coming-from",
    "choose",
    "python",
    "survey-designs",
    "reproduce",
    "cite",
]
INDEXED = {
    "### Add-one or replace-one": ["replace-one", "add-or-remove-one", "adjacency"],
    "# Coming from Opacus, dp-accounting, prv-accountant": ["Opacus"],
}
"""Words for which a search on the site finds a heading first; the tables of verdicts.md add
others."""

ABOUT_COMMANDS = """\
``dpsub COMMAND [options]`` asks for one number, ``dpsub help COMMAND`` lists the options,
``--json`` answers in one line of JSON.  In a clone the command is ``.venv/bin/dpsub``;
after ``pip install .`` it is ``dpsub``."""
SECTION = re.compile(r"-{3,}\s*")
EMPHASIS = re.compile(r"(?<![\w*])\*[^\W_][^*]*\w\*(?![\w*])")
LEFT_OVER = re.compile(r"[\\&$]")
"""Characters that stay in the text of a formula if a command in it is unknown."""
WITH_LIMITS = {"∑", "∏", "sup", "inf", "max", "min", "lim"}
TIGHT = {"|", "/"}
CAPITALS = set("ΓΔΘΛΞΠΣΦΨΩ")
BESIDE = re.compile(r'([^\s<>]*)<span class="math">(.*?)</span>([^\s<>]*)')
"""A formula in a line of text, and what stands at it without a space."""
BREAKS = set("=≤≥<>≠∼→∈↦,;+−")
"""Operators after which a formula in a line of text may go on in the next line."""
SIGNS, PRIMES, OPENING, CLOSING = set("+−"), set("′″‴"), set("([{"), set(")]}")
NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'
"""Attribute that pages in HTML go without."""


def setup(app: Any) -> None:
    """Read docstrings before napoleon (500) does; write the page of commands after apidoc has
    cleared the folder."""
    app.connect("autodoc-process-docstring", formulas_as_written, priority=400)
    app.connect("autodoc-process-signature", aliases_by_name)
    app.connect("builder-inited", commands, priority=900)
    app.connect("source-read", with_contents)
    app.connect("html-page-context", for_all_readers, priority=900)
    app.add_html_math_renderer("mathml", (in_line, None), (displayed, None))


def in_line(translator: Any, node: Any) -> None:
    """Write a formula in a line of text."""
    translator.body.append(f'<span class="math">{mathml_or_warning(node, False)}</span>')
    raise nodes.SkipNode


def displayed(translator: Any, node: Any) -> None:
    """Write a formula of its own, which the keyboard scrolls where it is wider than the page."""
    translator.body.append(
        f'<div class="math" tabindex="0">{mathml_or_warning(node, True)}</div>\n'
    )
    raise nodes.SkipNode


def mathml_or_warning(node: Any, of_its_own: bool) -> str:
    try:
        return mathml(node.astext().strip("`"), of_its_own)
    except ValueError as error:
        logging.getLogger(__name__).warning(str(error), location=node)
        return ""


def mathml(formula: str, of_its_own: bool) -> str:
    """Return a formula in TeX as MathML, which browsers show without a script."""
    # the name that the converter knows for the lines that GitHub calls aligned
    tex = formula.replace("{aligned}", "{split}").replace("\n", " ")
    try:
        found = ElementTree.fromstring(convert(tex).replace(NAMESPACE, ""))
    except Exception as error:  # the converter's exceptions have no base class of their own
        raise ValueError(f"A formula must convert to MathML: {formula!r} does not.") from error
    if left := LEFT_OVER.search("".join(found.itertext())):
        message = f"A formula must have known commands: {formula!r} leaves {left[0]!r} as text."
        raise ValueError(message)

    as_browsers_read(found)
    for row in (*found.iter("mrow"), *found.iter("mtd")):
        space(row)
    if of_its_own:
        found.set("display", "block")
        limits_below(found)
        return ElementTree.tostring(found, encoding="unicode")
    return "<wbr>".join(ElementTree.tostring(part, encoding="unicode") for part in parts_of(found))


def as_browsers_read(formula: Any) -> None:
    """Write names and marks so that they look right with fonts that are not made for formulas."""
    for one in formula.iter():
        if one.tag == "mo" and ((one.text or "").isalpha() or one.text == "∞"):
            one.tag = "mi"  # sup and max are no operators to a browser
        if one.text == "*":
            one.text = "∗"  # the other star is a raised one already
        if one.text in TIGHT:
            one.attrib.update(lspace="0", rspace="0")
        if one.text == ";":
            one.tag = "mo"
            one.attrib.update(lspace="0", rspace="0.17em")
        if one.text == "~":
            one.tag, one.text = "mo", "∼"
            one.attrib.update(lspace="0.28em", rspace="0.28em")
        if one.tag == "mi" and one.text in CAPITALS:
            one.set("mathvariant", "normal")  # a letter alone is slanted otherwise
        if one.tag in ("msup", "msubsup") and one[-1].text in PRIMES:
            base, *below, prime = one  # a prime is raised by itself
            prime.tag = "mo"
            primed = ElementTree.Element("mrow")
            primed.extend([base, prime])
            one[:] = [primed, *below]
            one.tag = "msub" if below else "mrow"


def space(row: Any) -> None:
    """Set signs close to what they belong to, and names apart from what follows them."""
    inside = list(row)
    bars = 0
    row[:] = inside[:1]
    for before, one in itertools.pairwise(inside):
        bars += before.text == "|"
        opening = before.text == "|" and bars % 2
        if one.text in SIGNS and (before.text in BREAKS or before.text in OPENING or opening):
            one.set("form", "prefix")
        ends = before.tag != "mo" or before.text in CLOSING
        apart = (is_name(before) and one.tag != "mo") or (is_name(one) and ends)
        if apart and "mspace" not in (before.tag, one.tag):
            ElementTree.SubElement(row, "mspace", width="0.17em")
        row.append(one)


def is_name(one: Any) -> bool:
    """Whether this is the name of a function, such as ln, with or without an index."""
    core = one[0] if one.tag in ("msub", "msup", "msubsup") else one
    return core.tag == "mi" and len(core.text or "") > 1 and core.text.isalpha()


def limits_below(formula: Any) -> None:
    """Write what a sum or a supremum ranges over below it."""
    for one in formula.iter():
        if one.tag in ("msub", "msubsup") and one[0].text in WITH_LIMITS:
            one.tag = {"msub": "munder", "msubsup": "munderover"}[one.tag]


def parts_of(formula: Any) -> list[Any]:
    """Return a formula in parts: no browser breaks one, so that it would not fit on a phone."""
    (row,) = formula
    parts: list[list[Any]] = [[]]
    for at, one in enumerate(row):
        parts[-1].append(one)
        breaks = one.tag == "mo" and one.text in BREAKS and one.get("form") != "prefix"
        if breaks and 0 < at < len(row) - 1:
            one.set("form", "infix")
            parts.append([])
    found = []
    for part in parts:
        found.append(ElementTree.Element("math"))
        ElementTree.SubElement(found[-1], "mrow").extend(part)
    return found


def for_all_readers(
    _app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Let the keyboard scroll code that is wider than the page, and tell screen readers the level
    of the captions."""
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = BESIDE.sub(together, body)
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def together(found: re.Match[str]) -> str:
    """Keep a comma or a bracket on the line of the formula next to it."""
    before, formula, after = found.groups()
    parts = formula.split("<wbr>")
    parts[0] = before + parts[0]
    parts[-1] += after
    kept = [f'<span style="white-space: nowrap">{part}</span>' for part in parts]
    shown = kept if before or after else parts
    return f'<span class="math">{"<wbr>".join(shown)}</span>'


def aliases_by_name(*event: Any) -> tuple[str | None, str | None]:
    """Write a type alias by its name where it is one of several types, too."""
    arguments, returned = event[-2:]
    return (arguments and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", arguments), returned)


def with_contents(app: Any, page: str, source: list[str]) -> None:
    """Append the contents of the site, and the entries of its index, to the pages that have
    some."""
    folder = Path(app.srcdir, "found")
    found = (page.relative_to(folder).with_suffix("") for page in folder.rglob("*.md"))
    parts = {
        "index": CONTENTS,
        "how-to/index": {"": [*HOW_TO, "*"]},
        "proofs/index": {"": PROOFS},
        "found/index": {"": sorted(str(one) for one in found if one.name != "index")},
    }
    if page in ("guarantees", "verdicts", "how-to/coming-from"):
        source[0] = with_entries(source[0])
    for caption, pages in parts.get(page, {}).items():
        options = [":hidden:", ":glob:", *[f":caption: {caption}"] * bool(caption)]
        source[0] += "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def with_entries(text: str) -> str:
    """Return a page with entries of the index below its headings."""
    sections = re.split(r"^(?=##)", text, flags=re.MULTILINE)
    for at, section in enumerate(sections):
        heading, _, rest = section.partition("\n")
        tables = re.findall(r"^\| ((?:Table|Figure) \d+)\.", rest, flags=re.MULTILINE)
        if words := [*INDEXED.get(heading, []), *tables]:
            entries = ", ".join(f"! {word}" for word in words)
            sections[at] = f"{heading}\n\n```{{index}} {entries}\n```\n{rest}"
    return "".join(sections)


def commands(app: Any) -> None:
    """Write the reference of the command line from the parsers of the commands."""
    listed = [f"* ``dpsub {name}``: {literally(summary)}" for name, summary in COMMANDS.items()]
    page = ["Command line", "============", "", ABOUT_COMMANDS, "", *listed, ""]
    page += [line for name in COMMANDS for line in command(name)]
    Path(app.srcdir, "api/command-line.rst").write_text("\n".join(page), encoding="utf-8")


def command(name: str) -> list[str]:
    """Return the section of one command: what it answers, its usage and its options."""
    parser = parser_of(name)
    summary, _, rest = literally(str(parser.description)).partition("\n\n")
    lines = [
        parser.prog,
        "-" * len(parser.prog),
        "",
        summary,
        "",
        "::",
        "",
        indent(parser.format_usage(), "    "),
    ]
    lines += [rest, "", f".. program:: {parser.prog}", ""]
    for action in parser._actions:
        if action.dest == "help":
            continue
        value = f" {action.metavar}" if action.metavar and action.option_strings else ""
        names = [f"{option}{value}" for option in action.option_strings] or [action.metavar]
        lines += [f".. option:: {', '.join(names)}", "", f"   {literally(str(action.help))}", ""]
    return lines


def formulas_as_written(
    _app: Any, _what: str, _name: str, _subject: Any, _options: Any, lines: list[str]
) -> None:
    """Show indented formulas as they stand, and |bars| and stars* as they are; markup would take
    them for its own."""
    ends = (at - 1 for at, line in enumerate(lines) if at and SECTION.fullmatch(line))
    prose = next(ends, len(lines))
    found: list[str] = []
    shown = False
    for at, line in enumerate(lines):
        begins = at < prose and line.startswith("    ") and (at == 0 or not lines[at - 1].strip())
        if begins and not shown:
            found += ["::", ""]
        shown = begins or (shown and (line.startswith("    ") or not line.strip()))
        example = line.lstrip().startswith((">>> ", "... "))
        found.append(line if shown or example else literally(line))
    lines[:] = found


def literally(line: str) -> str:
    """Escape what is no markup, outside of code."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(part if at % 2 else escaped(part) for at, part in enumerate(parts))


def escaped(text: str) -> str:
    """Escape bars, and stars that do not enclose words."""
    kept = EMPHASIS.findall(text)
    between = EMPHASIS.split(text)
    plain = [part.replace("|", r"\|").replace("*", r"\*") for part in between]
    return "".join(part + word for part, word in zip(plain, [*kept, ""], strict=True))

"""Prose in Markdown as HTML: nothing in it is obeyed or loaded, and names of errata and artefacts
become links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Texts come from files of data and of papers as well: they can mark words, not load or lead
    # anywhere.
    return reader.disable(["image", "link", "autolink", "html_block", "html_inline", "reference"])


def html(text: str) -> Markup:
    """Return Markdown as HTML: paragraphs, lists, tables; HTML in it is shown and not obeyed, and
    nothing is loaded."""
    return Markup(_reader().render(text))


def inline(text: str) -> Markup:
    """Return one line of Markdown as HTML without a paragraph around it."""
    return Markup(_reader().renderInline(text))


def plain(text: str) -> str:
    """Return one line of Markdown as text."""
    return inline(text).striptags()


def linked(shown: Markup, targets: Mapping[str, str]) -> Markup:
    """Return HTML in which the names of errata and artefacts ("E1", "Table 8") lead to them; code
    stays as it is."""
    if not targets:
        return shown
    # "Table 10" must not be taken for "Table 1".
    longest_first = sorted(targets, key=len, reverse=True)
    names = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest_first))})(?![\w′])")
    parts, code = re.split(r"(<[^>]*>)", shown), 0
    for position, part in enumerate(parts):
        if part.startswith("<"):
            code += part.startswith(("<code", "<pre")) - part.startswith(("</code", "</pre"))
        elif not code:
            parts[position] = names.sub(
                lambda found: f'<a href="{targets[found[0]]}">{found[0]}</a>', part
            )
    return Markup("".join(parts))

"""Prose in Markdown as HTML: raw HTML in it is shown and not obeyed, and nothing in it can load anything."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return reader.disable(["image", "link", "autolink", "html_block", "html_inline", "reference"])


def html(text: str) -> Markup:
    """Return paragraphs, lists and tables in Markdown as HTML."""
    return Markup(_reader().render(text))


def inline(text: str) -> Markup:
    """Return one line of Markdown as HTML without a paragraph around it."""
    return Markup(_reader().renderInline(text))

"""The formulas of docs/proofs are shown as formulas: each converts to MathML, and no mark of TeX or
of plain text is left in the prose around them."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.console import ROOT

pytest.importorskip("sphinx")

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

CONF = runpy.run_path(str(ROOT / "docs/conf.py"))
PAGES = sorted((ROOT / "docs/proofs").glob("*.md"))
PROGRAM = re.compile(r"\b[a-z]{3,}(?:_[a-z]{2,})+\b")
"""Words of the program, which tables have."""
LEFT = re.compile(r"[$\\_^]|<=|>=|\bsqrt\b|\|\|")


def tokens(text: str) -> Iterator[Token]:
    """Yield what a page consists of, in the Markdown of the site."""
    for block in MarkdownIt("commonmark").enable("table").use(dollarmath_plugin).parse(text):
        yield block
        yield from block.children or []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_converts_and_none_is_left_as_text(page: Path) -> None:
    found = list(tokens(page.read_text(encoding="utf-8")))
    in_lines = [one.content for one in found if one.type == "math_inline"]
    displayed = [one.content for one in found if (one.type, one.info) == ("fence", "math")]
    assert in_lines
    # a forge reads word for word what stands between these marks
    assert all(formula.startswith("`") and formula.endswith("`") for formula in in_lines)
    assert not any(one.type == "math_block" for one in found)
    for formula in in_lines:
        assert "<math" in CONF["mathml"](formula.strip("`"), False)
    for formula in displayed:
        assert "<math" in CONF["mathml"](formula, True)
    prose = [PROGRAM.sub("", one.content) for one in found if one.type == "text"]
    assert [text for text in prose if LEFT.search(text)] == []


@pytest.mark.parametrize("formula", [r"\foo x", r"\begin{aligned} a &= b", r"\left( a"])
def test_a_formula_that_would_be_shown_as_tex_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="A formula must"):
        CONF["mathml"](formula, True)


def test_a_formula_in_a_line_breaks_after_operators_and_not_after_signs() -> None:
    parts = CONF["mathml"]("a - b = -c", False).split("<wbr>")
    assert [re.sub("<[^>]+>", "", part) for part in parts] == ["a−", "b=", "−c"]
    assert CONF["mathml"](r"\sup_x f", True).count("munder") == 2


def test_formulas_are_spaced_as_tex_does_it() -> None:
    assert '<mo lspace="0" rspace="0.17em">;</mo>' in CONF["mathml"]("f(a; b)", True)
    assert '<mo lspace="0.28em" rspace="0.28em">∼</mo>' in CONF["mathml"](r"x \sim y", True)
    assert '<mi mathvariant="normal">Φ</mi>' in CONF["mathml"](r"\Phi(x)", False)
    assert CONF["mathml"](r"(a) \exp(b)", False).count("mspace") == 1


def test_a_comma_stays_with_its_formula() -> None:
    shown = CONF["BESIDE"].sub(CONF["together"], 'at (<span class="math">x=<wbr>y</span>), z')
    assert re.sub(' style="[^"]*"', "", shown) == (
        'at <span class="math"><span>(x=</span><wbr><span>y),</span></span> z'
    )

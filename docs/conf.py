"""How the site is built: `make docs`.  Pages are Markdown; the reference is made from the docstrings of the package."""

from __future__ import annotations

import re
from importlib.metadata import version as installed
from typing import Any

project = "dpsub"
author = "the dpsub authors"
version = release = installed("dpsub")
html_title = f"dpsub {release}"
html_theme = "furo"
html_show_copyright = False

extensions = ["myst_parser", "sphinx.ext.apidoc", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["api/modules.rst"]
myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # the errata of a paper stand three levels deep whether or not they are grouped
    "ref.python",  # the words of a type, such as n in "shape (n,)", are not references
]

# The reference: what a program may call; a new package is in it.  What only makes tables and pages is left out.
LEFT_OUT = (
    "__main__ artefacts cli comparison datasets experiments expected figures lock plan procedures provenance published "
    "records report settings sweeps verdicts"
)
apidoc_modules = [
    {
        "path": "../src/dpsub",
        "destination": "api",
        "max_depth": 1,
        "module_first": True,
        "exclude_patterns": [f"../src/dpsub/{name}{end}" for name in LEFT_OUT.split() for end in ("", ".py")],
    }
]
autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
napoleon_google_docstring = False
napoleon_custom_sections = [("Class attributes", "params_style")]
napoleon_use_ivar = True
napoleon_use_rtype = False
default_role = "code"
smartquotes = False  # a prime is no quotation mark

SECTION = re.compile(r"-{3,}\s*")
EMPHASIS = re.compile(r"(?<![\w*])\*[^\W_][^*]*\w\*(?![\w*])")


def setup(app: Any) -> None:
    """Read docstrings before napoleon (500) does."""
    app.connect("autodoc-process-docstring", formulas_as_written, priority=400)


def formulas_as_written(_app: Any, _what: str, _name: str, _subject: Any, _options: Any, lines: list[str]) -> None:
    """Show indented formulas as they stand, and |bars| and stars* as they are; markup would take them for its own."""
    ends = (at - 1 for at, line in enumerate(lines) if at and SECTION.fullmatch(line))
    prose = next(ends, len(lines))
    found: list[str] = []
    shown = False
    for at, line in enumerate(lines):
        begins = at < prose and line.startswith("    ") and (at == 0 or not lines[at - 1].strip())
        if begins and not shown:
            found += ["::", ""]
        shown = begins or (shown and (line.startswith("    ") or not line.strip()))
        found.append(line if shown else literally(line))
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

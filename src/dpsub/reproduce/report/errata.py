"""The errata of all papers, from the document in which they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpsub.errors import DataError

_HEADING = re.compile(r"^(#{2,4}) (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"([A-Z]{1,2})([1-9]\d*)\. (.+)")
_TEST = re.compile(r"^ {4}(\S.* -m pytest \S+ -k )([a-z]+)(\d+)(_?)\b", re.MULTILINE)
PARTS = ("claim", "evidence", "corrected", "effect")
_PART = re.compile(r"^- \*\*([^*]+?)\.\*\*", re.MULTILINE)


@dataclass(frozen=True)
class Erratum:
    """One entry: its identifier ("BL5"), its title and its text in Markdown, and the commands that show it."""

    name: str
    title: str
    text: str
    chapter: str
    commands: tuple[str, ...]

    @property
    def parts(self) -> set[str]:
        """Which of `PARTS` the text has: bold words at the beginning of an item, such as "- **Claim.**"."""
        heads = " ".join(_PART.findall(self.text)).lower()
        return {part for part in PARTS if part in heads}


def read(path: Path) -> list[Erratum]:
    """Return the errata in the order of the document.

    An entry is a heading of level 4 such as "#### BL5. Title", in a chapter of level 2. Its commands are those of its
    item "**Command.**". Where it has none, the first `pytest` command in its chapter, which ends in the test of one
    erratum (`-k e03`, `-k bl5_`), is written for it in the same way.

    Raises
    ------
    DataError
        If there is no such document, or an identifier comes twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"the report needs the document of errata, got no {path}; restore it") from None
    found = list(_entries(text))
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"each erratum must stand once in {path.name}, got {name} twice; remove one")
    return found


def _entries(text: str) -> Iterator[Erratum]:
    headings = list(_HEADING.finditer(text))
    chapter = command = ""
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        body = text[heading.end() : following.start() if following else len(text)].strip()
        if heading[1] == "##":
            chapter = heading[2]
            command = ""
        if (test := _TEST.search(body)) and heading[1] != "####":
            command = test[0].strip()
        entry = _ENTRY.fullmatch(heading[2])
        if heading[1] == "####" and entry:
            letters, number, title = entry.groups()
            own = re.findall(r"`([^`]+)`", body.partition("**Command.**")[2])
            commands = tuple(own or _commands(letters, number, command))
            yield Erratum(letters + number, title, body, chapter, commands)


def _commands(letters: str, number: str, example: str) -> Iterator[str]:
    yield f".venv/bin/python workflow/scripts/show_erratum.py {letters}{number}"
    if test := _TEST.match(f"    {example}"):
        width = len(test[3]) if test[3].startswith("0") else 1
        yield f"{test[1]}{letters.lower()}{number.zfill(width)}{test[4]}"

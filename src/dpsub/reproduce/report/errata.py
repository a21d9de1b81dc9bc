"""The errata: one file for each paper, and the document that joins them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import published
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report.cited import kept_of
from dpsub.reproduce.report.numbers import MEANINGS, of_printed
from dpsub.reproduce.report.prose import Prose
from dpsub.reproduce.verdicts import CELL, spoken

WEIGHTY = "Errors that change conclusions"
"""Part of the errata of a paper that its page in docs/found tells whole."""
_HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
_ENTRY = re.compile(r"^### ([A-Z]{1,2})([1-9]\d*)\. (.+)$", re.MULTILINE)
_TEST = re.compile(r"^ {4}(\S.* -m pytest \S+ -k )([a-z]+)(\d+)(_?)\b", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")
# how a paper's folder sees the pages of documentation
_FROM_A_PAPER = "](../../../../docs/"
_INTRODUCTION = """\
# Deviations and errata

<!-- made by workflow/scripts/renew_pages.py from errata.md, cited.csv and verdicts -->

Where the papers, their tables and their statements contradict themselves or what we compute. Each
erratum has a claim, the evidence, the corrected value, what follows from it, and a command that
shows it. Errors that change conclusions are told on the page of their paper, to which their entries
lead; the others are told here. The identifiers stand in `results/comparison.csv` and in the report
(`results/report/index.html`), which lists the compared cells of each entry.
"""


@dataclass(frozen=True)
class Erratum:
    """One entry: identifier ("BL5"), title, text in Markdown without links to pages, and the
    commands that show it."""

    name: str
    title: str
    text: str
    chapter: str
    commands: tuple[str, ...]
    paper: str
    """The folder in which its file lies."""


def read(paths: Iterable[Path]) -> list[Erratum]:
    """Return the errata of some papers in the order of their files.

    An entry is a heading of level 3 such as "### BL5. Title"; the heading of level 1 names its
    chapter. Its commands are those of its item "**Command.**". An entry without such an item gets
    the first `pytest` command of its file, written for it in the same way: it ends in the test of
    one erratum (`-k e03` or `-k bl5_`).
    """
    errata: dict[str, Erratum] = {}
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise DataError(
                f"the report needs the errata of each paper, got no {path}; restore it"
            ) from None
        for erratum in _entries(text, path.parent.name):
            if erratum.name in errata:
                raise DataError(
                    f"each erratum must stand once, got {erratum.name} twice, at last in "
                    f"{path}; remove one"
                )
            errata[erratum.name] = erratum
    return list(errata.values())


def _entries(text: str, paper: str) -> Iterator[Erratum]:
    example = _TEST.search(text)
    before, *entries = _ENTRY.split(text)
    chapter = before.partition("# ")[2].partition("\n")[0]
    # `split` by a pattern of three groups gives four texts for each entry.
    for letters, number, title, rest in zip(*[iter(entries)] * 4, strict=True):
        # A heading of a higher level after the last entry of a part is not in the entry.
        body = _HEADING.split(rest)[0].strip()
        own = re.findall(r"`([^`]+)`", body.partition("**Command.**")[2])
        commands = own or [f".venv/bin/python workflow/scripts/show_erratum.py {letters}{number}"]
        if not own and example:
            # tests are named after errata: -k e03 where numbers have two digits, -k bl5_ else
            width = len(example[3]) if example[3].startswith("0") else 1
            commands.append(f"{example[1]}{letters.lower()}{number.zfill(width)}{example[4]}")
        yield Erratum(
            name=letters + number,
            title=title,
            text=_LINK.sub(r"\1", body),
            chapter=chapter,
            commands=tuple(commands),
            paper=paper,
        )


def filled_from_kept(paper: Paper) -> Callable[[str], str]:
    """Return the function that fills the placeholders in the errata of a paper with the kept cells
    of a run."""
    return Prose(paper, kept_of(paper) or {}).filled


def document(files: Sequence[Path], verdicts: pd.DataFrame) -> str:
    """Return the document of errata, docs/deviations.md: an introduction, and a table and a
    chapter for each paper.

    It is made of the papers' errata, filled in with the cells that are kept of a run, of printed
    numbers, and of expected verdicts, as `read_expected` returns them.
    """
    listed = read(files)
    counts = _verdicts_by_erratum(verdicts, {erratum.name for erratum in listed})
    lines = [_INTRODUCTION]
    for chapter in dict.fromkeys(erratum.chapter for erratum in listed):
        lines += [
            f"**{chapter}**\n",
            "| erratum | about | printed numbers and statements |",
            "| --- | --- | --- |",
        ]
        for erratum in listed:
            if erratum.chapter == chapter:
                # A bar would end the cell of the table.
                title = erratum.title.replace("|", "\\|")
                link = f"[{erratum.name}](#{anchor(f'{erratum.name}. {erratum.title}')})"
                count = _counted(counts.get(erratum.name, Counter()))
                lines.append(f"| {link} | {title} | {count} |")
        lines.append("")
    return "\n".join([*lines, *map(_chapter, files)])


def _chapter(file: Path) -> str:
    """Return the errata of one paper as a part of the document, each heading one level lower; those
    that the page of the paper tells lead there."""
    paper = file.parent.name
    before, head, rest = file.read_text(encoding="utf-8").partition(f"## {WEIGHTY}\n")
    weighty, *others = re.split(r"^(?=## )", rest, maxsplit=1, flags=re.MULTILINE)
    whole = "".join([before, head, _told_elsewhere(paper, weighty), *others])
    # Links of a paper's folder lead to where the document stands.
    text = filled_from_kept(papers()[paper])(whole).replace(_FROM_A_PAPER, "](")
    return re.sub(r"^(#+ )", r"#\1", text, flags=re.MULTILINE)


def _told_elsewhere(paper: str, entries: str) -> str:
    """Return entries of errata with a link to the page of the paper in place of their texts, and
    with their commands."""
    before, *found = _ENTRY.split(entries)
    told = [before]
    for letters, number, title, body in zip(*[iter(found)] * 4, strict=True):
        heading = f"{letters}{number}. {title}"
        _, has_command, command = body.partition("- **Command.**")
        page = f"found/{paper}.md#{anchor(heading)}"
        told.append(f"### {heading}\n\n[Told on the page of the paper]({page}).\n\n")
        told += [f"{has_command}{command.rstrip()}\n\n"] * bool(has_command)
    return "".join(told)


def _verdicts_by_erratum(verdicts: pd.DataFrame, known: set[str]) -> dict[str, Counter[str]]:
    """Return the number of printed numbers with each verdict for each erratum."""
    judged = of_printed(papers(), verdicts)
    counts: dict[str, Counter[str]] = {}
    for paper, artefact in dict.fromkeys(place[:2] for place in judged):
        table = published.load(paper, artefact)
        table["row"] = published.row_texts(table, published.key_names(table))
        for *cell, errata in table[[*CELL, "erratum"]].itertuples(index=False, name=None):
            for name in errata.split():
                if name not in known:
                    raise DataError(
                        f"an erratum of {artefact}.csv must have an entry in errata.md, "
                        f"got none for {name}"
                    )
                counts.setdefault(name, Counter())[judged[tuple(cell)]] += 1
    return counts


def anchor(heading: str) -> str:
    """Return the anchor that GitHub and the documentation site give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _counted(verdicts: Counter[str]) -> str:
    names = dict.fromkeys([*MEANINGS, *sorted(verdicts)])
    counts = [f"{verdicts[name]} {spoken(name)}" for name in names if verdicts[name]]
    return ", ".join(counts) or "none"

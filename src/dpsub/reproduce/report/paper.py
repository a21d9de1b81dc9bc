"""Content of the page of one paper."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from dpsub.errors import DataError
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.labels import in_symbols
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.published import STATEMENTS
from dpsub.reproduce.report import cited, errata, findings, numbers
from dpsub.reproduce.report.cells import NOT_OF_THIS_RUN, read_cells, tables_of
from dpsub.reproduce.report.judgement import about, judge, number_of, place
from dpsub.reproduce.report.markdown import html, inline, linked, plain
from dpsub.reproduce.report.numbers import Line, address, cell_verdicts
from dpsub.reproduce.report.prose import Prose, Takeaway
from dpsub.reproduce.report.run import FinishedRun
from dpsub.reproduce.verdicts import FAILING, tally

DRAWN_LINES = 100
"""The numbers behind a figure are shown if they are no more."""
COLOURS = 64
"""Number of colours of a picture: more are not seen, and take more room."""
GROUPS = {"Table": "Tables", "Figure": "Figures", "claims": "Statements", "": "Further results"}
"""Beginning of a title, or kind of an artefact -> the part of the page in which it stands."""


def content(run: FinishedRun, key: str, folder: Path) -> dict[str, Any]:
    """Return the values for the template of a paper's page; `folder` is where the page will lie."""
    paper = papers().get(key)
    made = sorted((artefact for artefact in run.artefacts if artefact.paper == key), key=place)
    lines = [line for line in run.lines if line.paper == key]
    listed = [erratum for erratum in run.listed if erratum.paper == key]
    targets = {erratum.name: f"{erratum.paper}.html#{erratum.name}" for erratum in run.listed}
    targets |= {number_of(one): f"#{one.identifier}" for one in made if number_of(one)}

    prose = Prose(paper, tables_of(made, run.dirs)) if paper else None
    paragraphs = [
        _paragraph(takeaway, f"{key}-{number}", targets)
        for number, takeaway in enumerate(prose.takeaways() if prose else (), 1)
    ]
    worst, best = (prose.headline(which) if prose else None for which in ("worst", "best"))
    verdicts = cell_verdicts(run.comparison)
    verdicts = verdicts[verdicts["paper"] == key]
    words = prose.judgements() if prose else {}
    artefacts = [
        _artefact(
            run,
            artefact,
            [line for line in lines if line.place == artefact.identifier],
            listed,
            folder,
        )
        | _judged(artefact, verdicts, lines, words.get(artefact.name, ""), targets)
        for artefact in made
    ]
    # the first table says what tables look like; the others are long
    for one in artefacts:
        one["open"] = one is next(
            (other for other in _in_parts(artefacts) if other["blocks"]), None
        )
    fill = _filler_of_errata(run, paper, made)
    entries = [_erratum(erratum, fill, lines, targets) for erratum in listed]
    headlines = (("Worst finding", worst), ("Best confirmation", best))
    return {
        "key": key,
        "title": paper.title if paper else key,
        "citation": paper.citation if paper else None,
        "totals": numbers.counts(lines),
        "count": len(lines),
        "data": run.data_words(made),
        "findings": [
            {
                "words": headline.heading or words,
                "one": headline,
                "bad": headline is worst,
                "text": inline(in_symbols(headline.text)),
            }
            for words, headline in headlines
            if headline
        ],
        "picture": findings.picture(worst) if worst and worst.shown else None,
        "lead": inline(in_symbols(prose.lead())) if prose else "",
        "worst": next(
            (one for one in artefacts if worst and one["made"].name == worst.artefact), None
        ),
        "tally": tally(line.verdict for line in lines),
        "introduction": prose.introduction() if prose and paragraphs else "",
        "takeaways": paragraphs,
        "groups": _grouped(artefacts),
        "errata": entries,
        "of_another_run": any(NOT_OF_THIS_RUN in entry["text"] for entry in entries),
        "kept": cited.origin_of(paper) if paper else "",
        "anchors": {
            anchor for one in artefacts for anchor in (one["made"].identifier, *one["anchors"])
        },
        "places": list(_places(key, artefacts, entries, paragraphs)),
    }


def _paragraph(takeaway: Takeaway, anchor: str, targets: dict[str, str]) -> dict[str, Any]:
    """Return a takeaway as the page shows it; errata that its text names are not listed again."""
    paragraph = takeaway.paragraph
    # The search finds the sentence; a table below it is for the page alone.
    first, _, tables = paragraph.partition("\n\n")
    return {
        "text": linked(inline(first) + html(tables), targets),
        "plain": plain(first),
        "evidence": takeaway.evidence,
        "anchor": anchor,
        "errata": [name for name in takeaway.errata if not re.search(rf"\b{name}\b", paragraph)],
    }


def _grouped(artefacts: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the artefacts by the part of the page in which they stand."""
    groups = {
        name: [artefact for artefact in artefacts if artefact["group"] == name]
        for name in GROUPS.values()
    }
    return {name: members for name, members in groups.items() if members}


def _in_parts(artefacts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the artefacts in the order of the page."""
    for members in _grouped(artefacts).values():
        yield from members


def _places(
    key: str,
    artefacts: Sequence[dict[str, Any]],
    errata: Sequence[dict[str, Any]],
    paragraphs: Sequence[dict[str, Any]],
) -> Iterator[list[str]]:
    """Yield the places that the search finds on the page: title, link, paper, and further words."""
    for one in artefacts:
        made = one["made"]
        yield [made.title, f"{key}.html#{made.identifier}", key, _words(made.caption)]
    for entry in errata:
        yield [f"{entry['name']}. {entry['plain']}", f"{key}.html#{entry['name']}", key, ""]
    for paragraph in paragraphs:
        yield _lead(paragraph["plain"], f"{key}.html#{paragraph['anchor']}", key)
    for one in artefacts:
        for line in one["lines"]:
            if line.kind in STATEMENTS:
                yield [line.name, f"{key}.html#{line.anchor}", key, ""]


def _filler_of_errata(
    run: FinishedRun, paper: Paper | None, made: Iterable[Artefact]
) -> Callable[[str], str]:
    """Return the function that fills the placeholders of errata, which are about the published
    settings and the real data.

    Numbers that the run has otherwise, or not at all, are those of the run that is kept with the
    paper.
    """
    if paper is None:
        return str
    # An erratum speaks of the published settings: numbers of a reduced run do not belong into it.
    at_published_settings = [
        artefact
        for artefact in made
        if run.published is None or artefact.identifier in run.published
    ]
    return Prose(paper, tables_of(at_published_settings, run.dirs), cited.kept_of(paper)).filled


def _lead(text: str, link: str, key: str) -> list[str]:
    """Return a paragraph as a place to find: its first sentence, which is its heading, and the
    rest."""
    lead, _, rest = text.partition(". ")
    return [lead, link, key, _words(rest)]


def _words(text: str) -> str:
    """Return the words of a text, once each: all that a search needs."""
    return " ".join(dict.fromkeys(re.findall(r"\w{2,}", text.lower())))


def _files(run: FinishedRun, artefact: Artefact) -> dict[str, Path]:
    files = run.dirs.files(artefact)
    if missing := [path for path in files.values() if not path.exists()]:
        raise DataError(
            f"the report needs every file of {artefact.identifier}, got no "
            f"{missing[0]}; build it first"
        )
    return files


def _artefact(
    run: FinishedRun,
    artefact: Artefact,
    lines: Sequence[Line],
    listed: Sequence[errata.Erratum],
    folder: Path,
) -> dict[str, Any]:
    files = _files(run, artefact)
    number = number_of(artefact)
    named = {name for line in lines for name in line.errata}
    # an erratum is about the artefact if a number carries it, or if its title names the artefact
    concerned = [
        erratum
        for erratum in listed
        if erratum.name in named or (number and re.search(rf"\b{number}\b", erratum.title))
    ]
    shown: dict[str, Any] = {
        "made": artefact,
        "data": run.data_label(artefact),
        "conditions": run.conditions(artefact),
        "totals": numbers.counts(lines),
        "group": GROUPS["claims" if artefact.kind == "claims" else number.partition(" ")[0]],
        "errata": [{"name": erratum.name, "title": inline(erratum.title)} for erratum in concerned],
        "files": {
            role: Path(os.path.relpath(path, folder)).as_posix() for role, path in files.items()
        },
        "picture": None,
        "refuted": 0,
        "blocks": [],
        "drawn": None,
        "shared": {},
        "lines": [],
        "anchors": set(),
    }
    if artefact.kind == "figure":
        # one line more than are shown tells whether there are too many
        drawn = pd.read_csv(files["csv"], nrows=DRAWN_LINES + 1)
        picture = {"picture": picture_of(files["png"])}
        if not 0 < len(drawn) <= DRAWN_LINES:
            return shown | picture
        # Values that all lines share stand above them once, so that the table is narrow.
        alike = drawn.columns[(drawn.nunique(dropna=False) == 1) & (len(drawn) > 1)]
        return shown | {
            **picture,
            "drawn": drawn.drop(columns=alike),
            "shared": drawn[alike].iloc[0].dropna().to_dict(),
        }
    if artefact.kind == "claims":
        return shown | {
            "lines": sorted(lines, key=_failing_first),
            "anchors": {line.anchor for line in lines},
        }
    cells = read_cells(files["csv"])
    blocks = numbers.blocks_of(artefact, cells)
    rows = [row for block in blocks for group in block.groups for row in group.rows]
    entries = [entry for row in rows for entry in row.entries if entry]
    return shown | {
        "blocks": blocks,
        "refuted": sum(entry.mark == "refuted" for entry in entries),
        "cells": len(cells),
        "anchors": {entry.anchor for entry in entries if entry.anchor},
    }


def _judged(
    artefact: Artefact,
    verdicts: pd.DataFrame,
    lines: Iterable[Line],
    words: str,
    targets: dict[str, str],
) -> dict[str, Any]:
    """Return the judgement of an artefact, and the statements about it."""
    judgement = judge(artefact, verdicts, words)
    said = about(artefact, verdicts)[["artefact", "row", "column"]]
    anchors = {address(artefact.paper, *cell) for cell in said.itertuples(index=False, name=None)}
    # an artefact does not link to itself
    others = {name: target for name, target in targets.items() if name != number_of(artefact)}
    return {
        "judgement": judgement,
        "judged": linked(inline(judgement.text), others),
        "statements": sorted(
            (line for line in lines if line.anchor in anchors), key=_failing_first
        ),
    }


def _failing_first(line: Line) -> int:
    """Return the sort key of statements: those that fail come first."""
    return -FAILING.index(line.verdict) if line.verdict in FAILING else 1


def picture_of(path: Path) -> dict[str, Any]:
    """Return a drawing for the page, small: line art needs few colours, and WebP packs them without
    loss."""
    with Image.open(path) as drawn:
        # Without dithering, which would cost more room than it saves.
        few = drawn.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    packed = io.BytesIO()
    few.convert("RGB").save(packed, "WEBP", lossless=True, quality=60, method=4)
    # within the page, which may load nothing
    encoded = base64.b64encode(packed.getvalue()).decode("ascii")
    return {
        "source": f"data:image/webp;base64,{encoded}",
        "width": few.width,
        "height": few.height,
    }


def _erratum(
    one: errata.Erratum,
    filled: Callable[[str], str],
    lines: Sequence[Line],
    targets: dict[str, str],
) -> dict[str, Any]:
    touched = [line for line in lines if one.name in line.errata]
    # the first command shows compared cells: without any it shows nothing
    first_shows = touched or len(one.commands) == 1
    # an erratum does not link to itself
    others = {name: target for name, target in targets.items() if name != one.name}
    return {
        "name": one.name,
        "title": linked(inline(one.title), others),
        "plain": plain(one.title),
        "text": linked(html(filled(one.text)), others),
        "totals": numbers.counts(touched),
        "commands": one.commands if first_shows else one.commands[1:],
    }

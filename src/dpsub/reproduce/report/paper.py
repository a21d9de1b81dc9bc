"""What stands on the page of one paper."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
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
from dpsub.reproduce.report.numbers import Line
from dpsub.reproduce.report.prose import html, inline, linked, plain
from dpsub.reproduce.report.run import Run
from dpsub.reproduce.report.takeaways import of_paper, read_cells, tables_of
from dpsub.reproduce.verdicts import FAILING

OPEN_LINES = 60  # a longer table is closed until it is asked for
DRAWN_LINES = 100  # the numbers behind a figure are shown if they are no more
COLOURS = 128  # of a picture: more are not seen, and take more room
GROUPS = {"Table": "Tables", "Figure": "Figures", "claims": "Statements", "": "Further results"}
"""How a title begins, or the kind of an artefact -> the part of the page in which it stands."""


def content(run: Run, key: str, folder: Path) -> dict[str, Any]:
    """Return what the template of a paper's page asks for; `folder` is where the page will lie."""
    paper, made = (
        papers().get(key),
        sorted((one for one in run.artefacts if one.paper == key), key=_place),
    )
    lines, listed = (
        [line for line in run.lines if line.paper == key],
        [one for one in run.listed if one.paper == key],
    )
    title = paper.title if paper else key
    targets = {one.name: f"{one.paper}.html#{one.name}" for one in run.listed}
    targets |= {number_of(one): f"#{one.identifier}" for one in made if number_of(one)}
    tables = tables_of(made, run.dirs)
    takeaways = of_paper(paper) if paper and made else None
    said = takeaways.with_errata(tables) if takeaways else {}
    evidence = takeaways.grounds(tables) if takeaways else {}
    sentences: list[dict[str, Any]] = [
        {
            "text": linked(inline(text), targets),
            "plain": plain(text),
            "evidence": evidence.get(text),
            "anchor": f"{key}-{number}",
            "errata": [name for name in names if not re.search(rf"\b{name}\b", text)],
        }
        for number, (text, names) in enumerate(said.items(), 1)
    ]
    worst, best = (find(tables) if find else None for find in _finders(takeaways))
    artefacts = [
        _artefact(
            run, one, [line for line in lines if line.place == one.identifier], listed, folder
        )
        for one in made
    ]
    prose = _prose(run, paper, made)
    entries = [_erratum(one, prose, lines, targets) for one in listed]
    return {
        "key": key,
        "title": title,
        "citation": paper.citation if paper else None,
        "totals": numbers.counts(lines),
        "count": len(lines),
        "warnings": warnings(run, made),
        "findings": [
            {"words": one.heading or words, "one": one, "text": inline(in_symbols(one.text))}
            for words, one in (("Worst finding", worst), ("Best confirmation", best))
            if one
        ],
        "picture": findings.picture(worst) if worst and worst.shown else None,
        "introduction": takeaways.introduction if takeaways else "",
        "sentences": sentences,
        "groups": {
            name: found
            for name in GROUPS.values()
            if (found := [a for a in artefacts if a["group"] == name])
        },
        "errata": entries,
        "of_another_run": any(cited.NOT_OF_THIS_RUN in one["text"] for one in entries),
        "kept": cited.origin_of(paper) if paper else "",
        "anchors": {
            anchor for one in artefacts for anchor in (one["made"].identifier, *one["anchors"])
        },
        "places": [
            *(
                [
                    one["made"].title,
                    f"{key}.html#{one['made'].identifier}",
                    key,
                    _words(one["made"].caption),
                ]
                for one in artefacts
            ),
            *(
                [f"{one['name']}. {one['plain']}", f"{key}.html#{one['name']}", key, ""]
                for one in entries
            ),
            *([*_lead(one["plain"], f"{key}.html#{one['anchor']}", key)] for one in sentences),
            *(
                [line.printed.text, f"{key}.html#{line.anchor}", key, ""]
                for one in artefacts
                for line in one["lines"]
                if line.kind in STATEMENTS
            ),
        ],
    }


def _prose(run: Run, paper: Paper | None, made: Iterable[Artefact]) -> Callable[[str], str]:
    """Return what fills the placeholders of errata, which are about the published settings and the
    real data.

    Numbers that the run has otherwise, or not at all, are those of the run that is kept with the
    paper.
    """
    if paper is None:
        return str
    whole = [one for one in made if run.published is None or one.identifier in run.published]
    return cited.Prose(paper, tables_of(whole, run.dirs), cited.kept_of(paper)).filled


def warnings(run: Run, artefacts: Iterable[Artefact]) -> list[str]:
    """Return a phrase for each data set behind these artefacts that is not the real one."""
    used = {name for one in artefacts for name in run.data_sets(one)}
    words = {"synthetic": "a synthetic stand-in"}
    labels = {name: label for name, label in run.labels.items() if name in used and label != "real"}
    return [f"{name}: {words.get(label, label)}" for name, label in labels.items()]


def number_of(artefact: Artefact) -> str:
    """Return the number under which the paper prints an artefact ("Table 8"), "" if it prints
    none."""
    found = re.match(r"((?:Table|Figure) \w+)\. ", artefact.title)
    return found[1] if found else ""


def _place(artefact: Artefact) -> tuple[object, ...]:
    """Return by what the artefacts of a paper are ordered: as printed, then the others by name."""
    title = re.sub(r"\d+", lambda found: found[0].zfill(3), artefact.title)
    return not number_of(artefact), title if number_of(artefact) else artefact.name


def _finders(takeaways: Any) -> tuple[Any, Any]:
    return (takeaways.worst, takeaways.best) if takeaways else (None, None)


def _lead(text: str, link: str, key: str) -> list[str]:
    """Return a paragraph as a place to find: its first sentence, which is its heading, and the
    rest."""
    lead, _, rest = text.partition(". ")
    return [lead, link, key, _words(rest)]


def _words(text: str) -> str:
    """Return the words of a text, once each: all that a search needs."""
    return " ".join(dict.fromkeys(re.findall(r"\w{2,}", text.lower())))


def _files(run: Run, artefact: Artefact) -> dict[str, Path]:
    files = run.dirs.files(artefact)
    if missing := [path for path in files.values() if not path.exists()]:
        raise DataError(
            f"the report needs every file of {artefact.identifier}, got no "
            f"{missing[0]}; build it first"
        )
    return files


def _artefact(
    run: Run,
    artefact: Artefact,
    lines: Sequence[Line],
    listed: Sequence[errata.Erratum],
    folder: Path,
) -> dict[str, Any]:
    files, number = _files(run, artefact), number_of(artefact)
    named = {name for line in lines for name in line.errata}
    found: dict[str, Any] = {
        "made": artefact,
        "data": run.data_label(artefact),
        "totals": numbers.counts(lines),
        "group": GROUPS["claims" if artefact.kind == "claims" else number.partition(" ")[0]],
        "errata": [
            {"name": one.name, "title": inline(one.title)}
            for one in listed
            if one.name in named or (number and re.search(rf"\b{number}\b", one.title))
        ],
        "files": {
            role: Path(os.path.relpath(path, folder)).as_posix() for role, path in files.items()
        },
        "picture": None,
        "blocks": [],
        "drawn": None,
        "lines": [],
        "anchors": set(),
    }
    if artefact.kind == "figure":
        drawn = pd.read_csv(files["csv"], nrows=DRAWN_LINES + 1)
        return found | {
            "picture": _picture(files["png"]),
            "drawn": drawn if 0 < len(drawn) <= DRAWN_LINES else None,
        }
    if artefact.kind == "claims":
        shown = sorted(
            lines, key=lambda line: -FAILING.index(line.verdict) if line.verdict in FAILING else 1
        )
        return found | {"lines": shown, "anchors": {line.anchor for line in lines}}
    cells = read_cells(files["csv"])
    blocks = numbers.blocks_of(artefact, cells)
    rows = list(chain.from_iterable(group.rows for block in blocks for group in block.groups))
    anchors = {entry.anchor for row in rows for entry in row.entries if entry and entry.anchor}
    return found | {
        "blocks": blocks,
        "cells": len(cells),
        "open": len(rows) <= OPEN_LINES,
        "anchors": anchors,
    }


def _picture(path: Path) -> dict[str, Any]:
    """Return a drawing for the page, small: line art needs few colours, and WebP packs them without
    loss."""
    with Image.open(path) as drawn:
        few = drawn.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    packed = io.BytesIO()
    few.convert("RGB").save(packed, "WEBP", lossless=True, quality=60, method=4)
    source = f"data:image/webp;base64,{base64.b64encode(packed.getvalue()).decode('ascii')}"
    return {"source": source, "width": few.width, "height": few.height}


def _erratum(
    one: errata.Erratum,
    filled: Callable[[str], str],
    lines: Sequence[Line],
    targets: dict[str, str],
) -> dict[str, Any]:
    touched = [line for line in lines if one.name in line.errata]
    # the first command shows compared cells, where there are any
    seen = touched or len(one.commands) == 1
    others = {name: target for name, target in targets.items() if name != one.name}
    return {
        "name": one.name,
        "title": linked(inline(one.title), others),
        "plain": plain(one.title),
        "text": linked(html(filled(one.text)), others),
        "totals": numbers.counts(touched),
        "commands": one.commands if seen else one.commands[1:],
    }

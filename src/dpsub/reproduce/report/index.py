"""What the report of a run holds: gathered here, made into a page by `dpsub.reproduce.report.page`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import experiments
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.names import variant_name
from dpsub.reproduce.privacy import KINDS
from dpsub.reproduce.records import replace_file
from dpsub.reproduce.report import anchors, errata, numbers, page, prose, tables, times
from dpsub.reproduce.report.numbers import MEANINGS, Line
from dpsub.reproduce.report.papers import title
from dpsub.reproduce.report.takeaways import REGISTRY, Tables, read_cells
from dpsub.reproduce.verdicts import VARIANTS

OPEN_LINES = 60  # a longer table is closed until it is asked for
VARIANT_MEANINGS = {
    "stated": "what the paper's text says",
    "as_done": "what made the printed number, where that differs and is known",
    "consistent": "the paper's method with its contradictions resolved",
    "rigorous": "what can be proved, or is exact",
}


@dataclass(frozen=True)
class Run:
    """What the report is about.

    Parameters
    ----------
    artefacts : sequence of Artefact
        What the run has made, in the order of the report.
    dirs : OutputDirs
        Where their files are.
    comparison : DataFrame
        All printed numbers next to ours, as in ``results/comparison.csv``.
    data : sequence of mappings
        Descriptions of the prepared data sets, each with `dataset` and `label` ("real", "synthetic", ...).
    errata : Path
        The document of errata.
    provenance : mapping
        What the foot of the page shows first: seed, commit, digests.
    environment : mapping
        `versions` and `installed`, from describe_run.py.
    configuration : str
        The whole configuration as text.
    logs : Path, optional
        Folder of the jobs' logs, which say what time and memory they took.
    twins : sequence of str
        Data sets for which experiments make synthetic twins from the paper's own table of its data.
    remarks : sequence of str
        What a reader must know first, such as that the run is of reduced size.
    """

    artefacts: Sequence[Artefact]
    dirs: OutputDirs
    comparison: pd.DataFrame
    data: Sequence[Mapping[str, Any]]
    errata: Path
    provenance: Mapping[str, str]
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    configuration: str = ""
    logs: Path | None = None
    twins: Sequence[str] = ()
    remarks: Sequence[str] = ()

    @property
    def labels(self) -> dict[str, str]:
        """Label of each data set."""
        return {str(found["dataset"]): str(found["label"]) for found in self.data}

    def data_label(self, artefact: Artefact) -> str:
        """Return what the data behind an artefact are: "simulated", "real", or what they stand in for the real ones."""
        names = {name for one in artefact.experiments for name in experiments.REGISTRY.get(one).needs_data}
        found = {self.labels[name] for name in names & set(self.labels)}
        return ", ".join(sorted(found - {"real"})) or ("real" if found else "simulated")


def write_report(output: Path, run: Run) -> None:
    """Write the report of a run as one page in HTML.

    Raises
    ------
    DataError
        If a file of an artefact, or the document of errata, is missing.
    """
    data_labels = {artefact.identifier: run.data_label(artefact) for artefact in run.artefacts}
    lines = numbers.lines(run.comparison, run.artefacts, data_labels)
    listed = errata.read(run.errata)
    papers = list(dict.fromkeys([*(artefact.paper for artefact in run.artefacts), *(line.paper for line in lines)]))
    by_paper = {paper: [line for line in lines if line.paper == paper] for paper in papers}
    content = {
        "papers": [_paper(run, paper, by_paper[paper], output.parent) for paper in papers],
        "lines": lines,
        "facets": _facets(lines),
        "verdicts": list(numbers.counts(lines)),
        "totals": numbers.counts(lines),
        "errata": {
            chapter: [_erratum(one, lines) for one in listed if one.chapter == chapter]
            for chapter in dict.fromkeys(one.chapter for one in listed)
        },
        "known_errata": {one.name for one in listed},
        "data": [{"name": name, "label": label} for name, label in run.labels.items()],
        "described": [_flat(found) for found in run.data],
        "stand_ins": [name for name, label in run.labels.items() if label == "synthetic"],
        "parts": [name for name, label in run.labels.items() if label not in ("real", "synthetic")],
        "twins": list(run.twins),
        "remarks": list(run.remarks),
        "meanings": MEANINGS, "good": numbers.GOOD, "bad": numbers.BAD, "kinds": KINDS,
        "variant_meanings": VARIANT_MEANINGS, "variants": VARIANTS,
        "variant_name": variant_name, "anchors": anchors,
        "provenance": run.provenance, "environment": run.environment, "configuration": run.configuration,
        "stages": times.stages(run.logs) if run.logs is not None else [],
    }  # fmt: skip
    replace_file(output, page.render(content))


def _paper(run: Run, paper: str, lines: Sequence[Line], here: Path) -> dict[str, Any]:
    made = [artefact for artefact in run.artefacts if artefact.paper == paper]
    introduction, sentences = _takeaways(paper, made, run.dirs)
    return {
        "key": paper, "title": title(paper), "totals": numbers.counts(lines), "count": len(lines),
        "introduction": introduction, "sentences": sentences,
        "artefacts": [
            _artefact(run, artefact, [line for line in lines if line.artefact == artefact.name], here)
            for artefact in made
        ],
    }  # fmt: skip


def _takeaways(paper: str, made: Sequence[Artefact], dirs: OutputDirs) -> tuple[str, list[dict[str, Any]]]:
    """Return what stands before the sentences of a paper, and each as HTML with the numbers that it rests on."""
    if paper not in REGISTRY.names():
        return "", []
    known = Tables({
        artefact.name: read_cells(dirs.files(artefact)["csv"])
        for artefact in made
        if artefact.kind != "figure" and not artefact.timed
    })
    takeaways = REGISTRY.get(paper)()
    evidence = takeaways.evidence(known)
    sentences = [
        {"text": prose.inline(sentence), "evidence": evidence.get(sentence)} for sentence in takeaways.sentences(known)
    ]
    return takeaways.introduction if sentences else "", sentences


def _artefact(run: Run, artefact: Artefact, lines: Sequence[Line], here: Path) -> dict[str, Any]:
    files = run.dirs.files(artefact)
    missing = [path for path in files.values() if not path.exists()]
    if missing:
        raise DataError(f"the report needs every file of {artefact.identifier}, got no {missing[0]}; build it first")
    found: dict[str, Any] = {
        "name": artefact.name, "identifier": artefact.identifier, "kind": artefact.kind, "caption": artefact.caption,
        "data": run.data_label(artefact), "timed": artefact.timed, "totals": numbers.counts(lines),
        "files": {role: Path(os.path.relpath(path, here)).as_posix() for role, path in files.items()},
        "blocks": [], "picture": "", "open": True, "notes": {},
    }  # fmt: skip
    if artefact.kind == "figure":
        return found | {"picture": page.data_uri(files["png"].read_bytes(), "image/png")}
    cells = read_cells(files["csv"])
    blocks = tables.blocks(artefact, cells)
    count = sum(len(group.rows) for block in blocks for group in block.groups)
    return found | {"blocks": blocks, "cells": len(cells), "open": count <= OPEN_LINES}


def _erratum(one: errata.Erratum, lines: Sequence[Line]) -> dict[str, Any]:
    touched = [line for line in lines if one.name in line.errata]
    seen = touched or len(one.commands) == 1  # the first command shows compared cells, where there are any
    return {
        "name": one.name, "title": prose.inline(one.title), "text": prose.html(one.text),
        "commands": one.commands if seen else one.commands[1:], "lines": touched, "totals": numbers.counts(touched),
    }  # fmt: skip


def _facets(lines: Sequence[Line]) -> dict[str, dict[str, int]]:
    """Return by what the list of numbers can be filtered: property -> value -> how many lines have it."""
    verdicts = Counter(name for line in lines for name in line.verdicts)
    variants = Counter(name for line in lines for name in line.values)
    return {
        "verdict": {name: verdicts[name] for name in dict.fromkeys([*MEANINGS, *verdicts])},
        "paper": _counted(line.paper for line in lines),
        "kind": _counted(line.kind for line in lines),
        "variant": {name: variants[name] for name in VARIANTS},
        "data": _counted(line.data for line in lines),
        "artefact": _counted(line.place for line in lines),
        "erratum": _counted(name for line in lines for name in line.errata),
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values))


def _flat(found: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(name): ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
        for name, value in found.items()
    }

"""The report of a run, one page in HTML that needs no network: text, tables, pictures, styles and programs."""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from dpsub.errors import DataError
from dpsub.reproduce import experiments
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.labels import KINDS
from dpsub.reproduce.layout import SOURCES
from dpsub.reproduce.papers import papers
from dpsub.reproduce.records import replace_file
from dpsub.reproduce.report import errata, numbers
from dpsub.reproduce.report.numbers import Line
from dpsub.reproduce.report.takeaways import Tables, of_paper, read_cells, without_stand_ins
from dpsub.reproduce.verdicts import AGREEING, FAILING, VARIANTS

OPEN_LINES = 60  # a longer table is closed until it is asked for
LIBRARY = "html/dt_bundle.js"  # DataTables and what it needs, as the package itables ships them
VARIANT_MEANINGS = {
    "stated": "what the paper's text says",
    "as_done": "what made the printed number, where that differs and is known",
    "consistent": "the paper's method with its contradictions resolved",
    "rigorous": "what can be proved, or is exact",
}


@dataclass(frozen=True)
class Run:
    """What the report is about."""

    artefacts: Sequence[Artefact]
    """What the run has made, in the order of the report."""
    dirs: OutputDirs
    comparison: pd.DataFrame
    """All printed numbers next to ours, as in ``results/comparison.csv``."""
    data: Sequence[Mapping[str, Any]]
    """Descriptions of the prepared data sets, each with `dataset` and `label` ("real", "synthetic", ...)."""
    errata: Sequence[Path]
    provenance: Mapping[str, str]
    """For the foot of the page: seed, commit, digests."""
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`versions` and `installed`, from describe_run.py."""
    configuration: str = ""
    timings: Path | None = None
    """Folder of what Snakemake measured of the jobs of experiments."""
    twins: Sequence[str] = ()
    """Data sets for which experiments make synthetic twins from the paper's own table of its data."""
    remarks: Sequence[str] = ()
    """What a reader must know first, such as that the run is of reduced size."""

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
    """Write the report of a run as one page in HTML; the same run gives the same bytes."""
    data_labels = {artefact.identifier: run.data_label(artefact) for artefact in run.artefacts}
    lines = numbers.lines(run.comparison, run.artefacts, data_labels)
    listed = errata.read(run.errata)
    keys = dict.fromkeys([*(artefact.paper for artefact in run.artefacts), *(line.paper for line in lines)])
    content = {
        "papers": [_paper(run, key, [line for line in lines if line.paper == key], output.parent) for key in keys],
        "lines": lines,
        "facets": _facets(lines),
        "totals": numbers.counts(lines),
        "errata": {
            chapter: [_erratum(one, lines) for one in listed if one.chapter == chapter]
            for chapter in dict.fromkeys(one.chapter for one in listed)
        },
        "known_errata": {one.name for one in listed},
        "labels": run.labels,
        "described": [_flat(found) for found in run.data],
        "stand_ins": [name for name, label in run.labels.items() if label == "synthetic"],
        "parts": [name for name, label in run.labels.items() if label not in ("real", "synthetic")],
        "meanings": numbers.MEANINGS, "checks": dict(numbers.CHECKS.values()), "good": AGREEING, "bad": FAILING,
        "variant_meanings": VARIANT_MEANINGS, "variants": VARIANTS, "sources": SOURCES, "kinds": KINDS,
        "filtered": numbers.filtered,
        "run": run, "stages": stages(run.timings) if run.timings else [],
    }  # fmt: skip
    replace_file(output, _rendered(content))


def _rendered(content: Mapping[str, Any]) -> bytes:
    """Return the page made of what the template ``templates/body.html.j2`` asks for.

    Every value goes through Jinja's escaping. The page forbids the browser to load anything, and to run any program but
    its own, which it knows by the digest of all that is shown.
    """
    own = resources.files("dpsub.reproduce.report") / "templates"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpsub.reproduce.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    body = environment.get_template("body.html.j2").render(content)
    whole = environment.get_template("index.html.j2").render(
        body=Markup(body),
        nonce=hashlib.sha256(body.encode()).hexdigest()[:32],
        library=_data_uri((resources.files("itables") / LIBRARY).read_bytes(), "text/javascript"),
        style=Markup((own / "page.css").read_text(encoding="utf-8")),
        program=Markup((own / "page.js").read_text(encoding="utf-8")),
    )
    return whole.encode()


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return reader.disable(["image", "link", "autolink", "html_block", "html_inline", "reference"])


def html(text: str) -> Markup:
    """Return Markdown as HTML: paragraphs, lists, tables; HTML in it is shown and not obeyed, and nothing is loaded."""
    return Markup(_reader().render(text))


def inline(text: str) -> Markup:
    """Return one line of Markdown as HTML without a paragraph around it."""
    return Markup(_reader().renderInline(text))


def _paper(run: Run, key: str, lines: Sequence[Line], here: Path) -> dict[str, Any]:
    made = [artefact for artefact in run.artefacts if artefact.paper == key]
    paper, sentences = papers().get(key), []
    takeaways = of_paper(paper) if paper and made else None
    if takeaways:
        known = Tables({
            artefact.name: without_stand_ins(artefact, read_cells(run.dirs.files(artefact)["csv"]))
            for artefact in made if artefact.kind != "figure" and not artefact.timed
        })  # fmt: skip
        evidence = takeaways.grounds(known)
        sentences = [{"text": inline(text), "evidence": evidence.get(text)} for text in takeaways.sentences(known)]
    return {
        "key": key, "title": paper.title if paper else key, "totals": numbers.counts(lines), "count": len(lines),
        "introduction": takeaways.introduction if takeaways else "", "sentences": sentences,
        "artefacts": [
            _artefact(run, artefact, [line for line in lines if line.place == artefact.identifier], here)
            for artefact in made
        ],
    }  # fmt: skip


def _artefact(run: Run, artefact: Artefact, lines: Sequence[Line], here: Path) -> dict[str, Any]:
    files = run.dirs.files(artefact)
    if missing := [path for path in files.values() if not path.exists()]:
        raise DataError(f"the report needs every file of {artefact.identifier}, got no {missing[0]}; build it first")
    found = {
        "made": artefact, "data": run.data_label(artefact), "totals": numbers.counts(lines),
        "files": {role: Path(os.path.relpath(path, here)).as_posix() for role, path in files.items()},
    }  # fmt: skip
    if artefact.kind == "figure":
        return found | {"picture": _data_uri(files["png"].read_bytes(), "image/png"), "blocks": []}
    cells = read_cells(files["csv"])
    blocks = numbers.blocks_of(artefact, cells)
    count = sum(len(group.rows) for block in blocks for group in block.groups)
    return found | {"picture": "", "blocks": blocks, "cells": len(cells), "open": count <= OPEN_LINES}


def _erratum(one: errata.Erratum, lines: Sequence[Line]) -> dict[str, Any]:
    touched = [line for line in lines if one.name in line.errata]
    seen = touched or len(one.commands) == 1  # the first command shows compared cells, where there are any
    return {
        "name": one.name, "title": inline(one.title), "text": html(one.text), "totals": numbers.counts(touched),
        "commands": one.commands if seen else one.commands[1:],
    }  # fmt: skip


def _facets(lines: Sequence[Line]) -> dict[str, dict[str, int]]:
    """Return by what the list of numbers can be filtered: property -> value -> how many lines have it."""
    verdicts = Counter(name for line in lines for name in line.verdicts)
    variants = Counter(name for line in lines for name in line.values)
    return {
        "verdict": {name: verdicts[name] for name in dict.fromkeys([*numbers.MEANINGS, *verdicts])},
        "paper": Counter(line.paper for line in lines),
        "kind": Counter(line.kind for line in lines),
        "variant": {name: variants[name] for name in VARIANTS},
        "data": Counter(line.data for line in lines),
        "artefact": Counter(line.place for line in lines),
        "erratum": Counter(name for line in lines for name in line.errata),
    }


def _flat(found: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(name): ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
        for name, value in found.items()
    }


def stages(folder: Path) -> list[dict[str, Any]]:
    """Return what the jobs of each experiment took, the longest first.

    The folder holds `<experiment>/<part>.tsv`, as Snakemake writes its benchmarks. An entry has `name` (of
    the experiment), `jobs`, `seconds`, `peak_mib` (0 for jobs too short to be measured).
    """
    rows = []
    for path in sorted(folder.rglob("*.tsv")):
        row = pd.read_csv(path, sep="\t", na_values="-").iloc[0]
        rows.append((path.relative_to(folder).parts[0], float(row["s"]), float(row["max_rss"])))
    jobs = pd.DataFrame(rows, columns=["name", "seconds", "peak"]).fillna({"peak": 0}).groupby("name", as_index=False)
    found = jobs.agg(jobs=("seconds", "size"), seconds=("seconds", "sum"), peak_mib=("peak", "max"))
    found = found.sort_values(["seconds", "name"], ascending=[False, True])
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]

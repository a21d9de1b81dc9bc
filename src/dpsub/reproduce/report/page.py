"""The pages of a report in HTML: they lie in one folder and need no network."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import jinja2
import pandas as pd
from markupsafe import Markup

from dpsub.files import replace_file
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.labels import KINDS, in_words
from dpsub.reproduce.layout import SIGNS, SOURCES
from dpsub.reproduce.report import numbers
from dpsub.reproduce.report.numbers import Line
from dpsub.reproduce.report.paper import content, number_of, picture_of
from dpsub.reproduce.report.run import FinishedRun
from dpsub.reproduce.verdicts import AGREEING, FAILING, VARIANTS, reconciled, spoken, tally

# HTML does without those of cells and rows, and pages are a sixth smaller
_END_TAGS = re.compile(r"</t[dhr]>\n?")
MOST_MEGABYTES, MOST_OF_INDEX = 2.5, 0.75
"""Of a page, up to which browsers show it at once, and of the one that is opened first."""
VARIANT_MEANINGS = {
    "stated": "what the paper's text says",
    "as_done": "what made the printed number, where that differs and is known",
    "consistent": "the paper's method with its contradictions resolved",
    "rigorous": "what can be proved, or is exact",
}


def write_report(folder: Path, run: FinishedRun, *, processes: int = 1) -> None:
    """Write the pages of a run: `index.html`, one per paper, and `numbers.html`; the same run gives
    the same bytes, with any number of `processes`."""
    # `run.papers` makes the lines that all pages read, once for all processes.
    shown = _each(lambda key: content(run, key, folder), run.papers, processes)
    # studies of this project have no citation, and print no numbers of their own
    cited = {paper["key"] for paper in shown if paper["citation"]}
    judged = tally(line.verdict for line in run.lines if line.paper in cited)
    links = {
        anchor: f"{paper['key']}.html#{anchor}" for paper in shown for anchor in paper["anchors"]
    }
    common = {
        "papers": shown,
        "run": run,
        "lines": run.lines,
        "by_artefact": [
            (place, list(printed))
            for place, printed in itertools.groupby(
                sorted(run.lines, key=_failing_first), key=attrgetter("place")
            )
        ],
        "front": [{**one, **picture_of(Path(one["file"]))} for one in run.front],
        "totals": numbers.counts(run.lines),
        "links": {
            line.anchor: links.get(line.anchor) or links.get(line.place) or "" for line in run.lines
        },
        "erratum_links": {
            erratum.name: f"{erratum.paper}.html#{erratum.name}" for erratum in run.listed
        },
        "conditions": {artefact.identifier: run.conditions(artefact) for artefact in run.artefacts},
        "facets": _facets(run.lines),
        "names": {paper["key"]: _name(paper["title"]) for paper in shown},
        "labels": {artefact.identifier: _label(artefact) for artefact in run.artefacts},
        "measured": sum(
            line.kind == "real_data" and tally([line.verdict]).judged for line in run.lines
        ),
        "judged": judged,
        "sum": reconciled(judged, sum(line.paper not in cited for line in run.lines)),
        "described": [_flat(description) for description in run.data],
        "stages": stages(run.timings) if run.timings else [],
        "meanings": numbers.MEANINGS,
        "checks": dict(numbers.CHECKS.values()),
        "good": AGREEING,
        "bad": FAILING,
        "variant_meanings": VARIANT_MEANINGS,
        "variants": VARIANTS,
        "sources": SOURCES,
        "signs": SIGNS,
        "kinds": KINDS,
        "filtered": numbers.filtered,
        "in_words": in_words,
    }
    pages = {"index": ("index", common), "numbers": ("numbers", common)}
    pages |= {paper["key"]: ("paper", common | {"paper": paper}) for paper in shown}
    texts = _each(lambda name: _rendered(*pages[name]), list(pages), processes)
    for name, page in zip(pages, texts, strict=True):
        replace_file(folder / f"{name}.html", page)


def oversized(folder: Path) -> list[str]:
    """Return a sentence for each page in `folder` that is too large."""
    sentences = []
    for path in sorted(folder.glob("*.html")):
        limit = MOST_OF_INDEX if path.name == "index.html" else MOST_MEGABYTES
        size = path.stat().st_size / 1e6
        if size > limit:
            sentences.append(
                f"{path.name} must stay below {limit} MB, got {size:.1f} MB in {folder}; show "
                "fewer numbers or smaller figures"
            )
    return sentences


def _each(make: Callable[[str], Any], names: Sequence[str], processes: int) -> list[Any]:
    """Return the results of `make` for each name, computed by several processes at a time."""
    if processes == 1 or "fork" not in multiprocessing.get_all_start_methods():
        return [make(name) for name in names]
    # A forked process has the run already: only names and results are sent.
    forked = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, forked, _Made.by, (make,)) as pool:
        return list(pool.map(_Made.of, names))


class _Made:
    """Function that a forked process calls for each name."""

    make: ClassVar[Callable[[str], Any]]

    @classmethod
    def by(cls, make: Callable[[str], Any]) -> None:
        cls.make = staticmethod(make)

    @classmethod
    def of(cls, name: str) -> Any:
        return cls.make(name)


def _failing_first(line: Line) -> int:
    """Return the sort key of the list of every number: what fails, then what comes out only as
    done or is open, then the rest, each in the order of the papers."""
    counts = tally([line.verdict])
    return 0 if counts.failing else 1 if counts.as_done or counts.open else 2


def _name(title: str) -> str:
    """Return the short name of a paper in a line: its authors and year, or the subject of a study
    of this project."""
    authors, _, subject = title.partition(": ")
    return f"{subject[0].upper()}{subject[1:]}" if authors == "Beyond the papers" else authors


def _label(artefact: Artefact) -> str:
    """Return the text of a link to an artefact: "Table 8", else its whole title."""
    return number_of(artefact) or artefact.title


def _rendered(name: str, given: Mapping[str, Any]) -> bytes:
    """Return the page that the template ``templates/<name>.html.j2`` makes of the values `given`.

    Every value goes through Jinja's escaping. The page forbids the browser to load anything, and to
    run any program but its own, which it knows by the digest of all that is shown.
    """
    own = resources.files("dpsub.reproduce.report") / "templates"
    # A name that a template asks for and nobody gives is an error, not an empty place.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpsub.reproduce.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = numbers.unbroken
    environment.filters["spoken"] = spoken
    body = environment.get_template(f"{name}.html.j2").render(given)
    page = environment.get_template("page.html.j2").render(
        body=Markup(body),
        name=name,
        paper=given.get("paper"),
        papers=given["papers"],
        names=given["names"],
        places=_searched(name, given),
        facts={"papers": given["names"], **given["run"].made_by},
        # a digest and no random number: the same run gives the same bytes
        nonce=hashlib.sha256(body.encode()).hexdigest()[:32],
        style=Markup((own / "page.css").read_text(encoding="utf-8")),
        programs=[
            Markup((own / f"{part}.js").read_text(encoding="utf-8"))
            for part in ("page", "numbers")
            if part in ("page", name)
        ],
    )
    return _END_TAGS.sub("", page).encode()


def _searched(name: str, given: Mapping[str, Any]) -> list[list[str]]:
    """Return the places that the search of a page finds: on the summary all places, on the page of
    a paper its own, which keeps the other pages small."""
    if name == "index":
        return [place for paper in given["papers"] for place in paper["places"]]
    return given["paper"]["places"] if name == "paper" else []


def _facets(lines: Sequence[Line]) -> dict[str, dict[str, int]]:
    """Return the filters of the list of numbers: property -> value -> number of lines with it."""
    verdicts = Counter(name for line in lines for name in line.verdicts)
    variants = Counter(name for line in lines for name in line.values)
    return {
        "verdict": {name: verdicts[name] for name in dict.fromkeys([*numbers.MEANINGS, *verdicts])},
        "paper": Counter(line.paper for line in lines),
        "check": Counter(line.check for line in lines),
        "variant": {name: variants[name] for name in VARIANTS},
        "data": Counter(line.data for line in lines),
        "artefact": Counter(line.place for line in lines),
        "erratum": Counter(name for line in lines for name in line.errata),
    }


def _flat(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the description of a data set with a text for each of its fields."""
    texts = {}
    for name, value in description.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        texts[str(name)] = str(value)
    return texts


def stages(folder: Path) -> list[dict[str, Any]]:
    """Return time and memory of the jobs of each experiment, the longest first.

    The folder holds `<experiment>/<part>.tsv`, as Snakemake writes its benchmarks. An entry has
    `name` (of the experiment), `jobs`, `seconds`, `peak_mib` (0 for jobs too short to be measured).
    """
    rows = []
    for path in sorted(folder.rglob("*.tsv")):
        # Snakemake writes "-" for the memory of a job that ended before it was measured
        row = pd.read_csv(path, sep="\t", na_values="-").iloc[0]
        # Seconds of the wall clock and the largest resident memory, as Snakemake's benchmarks have
        # them.
        rows.append((path.relative_to(folder).parts[0], float(row["s"]), float(row["max_rss"])))
    jobs = pd.DataFrame(rows, columns=["name", "seconds", "peak"]).fillna({"peak": 0})
    totals = jobs.groupby("name", as_index=False).agg(
        jobs=("seconds", "size"), seconds=("seconds", "sum"), peak_mib=("peak", "max")
    )
    # Ties by name: the page must not depend on the order of files.
    totals = totals.sort_values(["seconds", "name"], ascending=[False, True])
    return [{str(name): value for name, value in row.items()} for row in totals.to_dict("records")]

"""Write the pages of docs/found, which say what was found in each paper: from its found.md, its
errata, and the cells that it cites.

The found.md in the folder of a paper is a page in Markdown with placeholders (Jinja). Besides those
of `dpsub.reproduce.report.prose` there is `picture`, a figure, `verdicts`, which counts how the
numbers of a table compare, and `cited`, the paper. No result is typed by hand. `renew_pages.py`
writes them.
"""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from pathlib import Path

import pandas as pd
from PIL import Image

from dpsub.files import replace_file
from dpsub.reproduce import published
from dpsub.reproduce.labels import escape_markdown, in_symbols
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report import errata, judgement
from dpsub.reproduce.report.cells import CellTables, LookUp
from dpsub.reproduce.report.cited import kept_of, made_of
from dpsub.reproduce.report.judgement import Judgement
from dpsub.reproduce.report.numbers import of_printed
from dpsub.reproduce.report.prose import TEMPLATE, Prose, function_of
from dpsub.reproduce.verdicts import FAILING, NOT_COMPARED, UNJUDGED, spoken

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "docs/found"
MADE = "<!-- from here on made by workflow/scripts/renew_pages.py -->\n"
SCALES, COLOURS = (2 / 3, 0.58, 0.5, 0.42, 0.35), (128, 64)
"""Shares of a figure's width that its picture has, and numbers of colours: the first that take less
than so many bytes are used."""
BYTES = 60_000
FAILED = "failed"
"""Page of the statements that fail, of all papers."""
FAILED_HEAD = """\
# Statements that fail

Statements of the papers that fail as printed, each with the erratum that says why and what holds
instead. Not here are printed numbers that differ, and numbers and statements that come out only by
following what was done: [verdicts](../verdicts.md) counts them table by table, and the page of each
paper names their errata under "Table by table".
"""
_OF_GUARANTEE = re.compile(r"^- \*\*Effect on a guarantee\.\*\* (.+)$", re.MULTILINE)
PART = "part.md"
"""Template of the pages below its own that a paper may have, in its folder."""


def renew(verdicts: pd.DataFrame, results: Path | None = None) -> None:
    """Write the pages of all papers and their list, and with `results` the pictures of the papers
    that it holds."""
    listed = []
    for key, paper in with_page().items():
        top = body(paper, verdicts)
        if results and (results / "figures" / key).is_dir():
            for name in re.findall(rf"\(pictures/{key}-(\w+)\.png\)", top):
                small(
                    results / "figures" / key / f"{name}.png",
                    FOUND / "pictures" / f"{key}-{name}.png",
                )
        replace_file(FOUND / f"{key}.md", (top + MADE + tail(paper, verdicts)).encode())
        below = parts(paper, verdicts)
        for gone in {page.stem for page in FOUND.glob(f"{key}/*.md")} - {*below}:
            (FOUND / key / f"{gone}.md").unlink()
        for name, page in below.items():
            (FOUND / key).mkdir(exist_ok=True)
            replace_file(FOUND / key / f"{name}.md", page.encode())
        listed.append(f"- [{paper.title}]({key}.md). {summary(top)}\n")
    replace_file(FOUND / f"{FAILED}.md", failed(verdicts).encode())
    index = FOUND / "index.md"
    top = index.read_text(encoding="utf-8").partition(MADE)[0]
    for gone in {page.stem for page in FOUND.glob("*.md")} - {*with_page(), "index", FAILED}:
        (FOUND / f"{gone}.md").unlink()
        for page in FOUND.glob(f"{gone}/*.md"):
            page.unlink()
    replace_file(index, f"{top}{MADE}\n{''.join(listed)}".encode())


def with_page() -> dict[str, Paper]:
    """Return the papers that have a page."""
    return {key: paper for key, paper in papers().items() if (paper.folder / TEMPLATE).exists()}


def summary(page: str) -> str:
    """Return the first paragraph of a page on one line."""
    return " ".join(page.split("\n\n")[1].split())


def body(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return what the found.md of a paper says, filled in with the cells that are kept of a run.

    A paper without kept cells, as no full run of it was at hand, keeps its page.
    """
    kept = kept_of(paper)
    if kept is None:
        return (FOUND / f"{paper.key}.md").read_text(encoding="utf-8").partition(MADE)[0]
    template = (paper.folder / TEMPLATE).read_text(encoding="utf-8")
    return f"# {paper.title}\n\n" + tidy(prose(paper, verdicts, kept).filled(template))


def parts(paper: Paper, verdicts: pd.DataFrame) -> dict[str, str]:
    """Return the pages that a paper has below its own, by name: its part.md for each of what
    `parts` of its numbers.py returns."""
    template, kept = paper.folder / PART, kept_of(paper)
    if kept is None or not template.exists():
        return {}
    told = prose(paper, verdicts, kept)
    pages = {}
    for part in function_of(paper, "numbers", "parts")(LookUp(kept)):
        told.more = {**told.more, "part": part}
        text = tidy(told.filled(template.read_text(encoding="utf-8")))
        pages[part.name] = f"# {part.title}\n\n{text.rstrip()}\n"
    return pages


def tidy(page: str) -> str:
    """Return a page without the empty lines that paragraphs meant for the report alone leave."""
    return re.sub(r"\n{3,}", "\n\n", page).rstrip("\n") + "\n\n"


def prose(paper: Paper, verdicts: pd.DataFrame, tables: CellTables) -> Prose:
    """Return what fills the placeholders of a paper's pages."""
    judged = of_printed([paper.key], verdicts)

    def picture(name: str, words: str) -> str:
        return f"![{words}](pictures/{paper.key}-{name}.png)"

    def counted(artefact: str) -> str:
        counts = Counter(verdict for (_, name, *_), verdict in judged.items() if name == artefact)
        shown = sum(counts.pop(verdict, 0) for verdict in UNJUDGED.values())
        # Judged artefacts come first.
        words = {
            spoken(verdict): count
            for verdict, count in sorted(
                counts.most_common(), key=lambda counted: counted[0] == NOT_COMPARED
            )
        } | {"shown, not judged": shown}
        return ", ".join(f"{count} {verdict}" for verdict, count in words.items() if count)

    more: dict[str, object] = {"picture": picture, "verdicts": counted, "cited": ""}
    if paper.citation:
        authors, place = ", ".join(paper.citation.authors), paper.citation
        more["cited"] = f"*{authors}: {place.title}. {place.venue}, {place.year}.*"
    return Prose(paper, tables, more=more)


def small(figure: Path, target: Path) -> None:
    """Write a figure as a picture of few colours."""
    with Image.open(figure) as whole:
        for scale, colours in itertools.product(SCALES, COLOURS):
            size = (round(whole.width * scale), round(whole.height * scale))
            reduced = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            # Coverage keeps the rare colours of curves; means make those of bands true.
            reduced = reduced.quantize(
                colours, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE
            )
            reduced.save(out := io.BytesIO(), "png", optimize=True)
            if out.tell() < BYTES:
                break
    target.parent.mkdir(exist_ok=True)
    replace_file(target, out.getvalue())


def tail(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return the end of a page: whether each table and figure is right, statements that fail,
    errata by weight, and how to redo it all."""
    parts = [
        judgements(paper, verdicts),
        failing(paper, verdicts),
        entries(paper) if paper.errata.exists() else "",
        commands(paper),
    ]
    return "\n" + "\n".join(filter(None, parts))


def judgements(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return a table that says of each printed table and figure whether it is right, and why."""
    lines = []
    for one in judged(paper, verdicts).values():
        if one.colour != "plain":
            why = one.text
            for name, link in anchors(paper).items():
                why = re.sub(rf"\b{name}\b", f"[{name}]({link})", why)
            lines.append(f"| **{one.answer}** | {why} |\n")
    head = "## Table by table\n\n| is it right? | why |\n| --- | --- |\n"
    return head + "".join(lines) if lines else ""


def judged(paper: Paper, verdicts: pd.DataFrame) -> dict[str, Judgement]:
    """Return the judgement of each table, figure and list of claims of a paper, by name, as
    printed."""
    cells = judgement.expected(paper.key, verdicts)
    words = Prose(paper, kept_of(paper) or {}).judgements()
    return {
        made.name: judgement.judge(made, cells, words.get(made.name, ""))
        for made in sorted(made_of(paper), key=judgement.place)
    }


def failing(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return a table of the statements that fail as printed."""
    judged, links, lines = of_printed([paper.key], verdicts), anchors(paper), ""
    for name in published.artefacts(paper.key):
        claims = published.load(paper.key, name)
        claims = claims[claims["kind"].isin(published.STATEMENTS)]
        keys = published.key_names(claims)
        if keys != ["claim"]:
            # Judged numbers of a grid: the page itself has a table of those that fail.
            continue
        for row, claim in zip(published.row_texts(claims, keys), claims.itertuples(), strict=True):
            if judged[(paper.key, name, row, claim.column)] in FAILING:
                why = ", ".join(f"[{one}]({links[one]})" for one in claim.erratum.split())
                lines += (
                    f"| {escape_markdown(in_symbols(claim.printed))} | "
                    f"{why or escape_markdown(claim.note)} |\n"
                )
    return (
        (f"## Statements that fail as printed\n\n| statement | why |\n| --- | --- |\n{lines}")
        if lines
        else ""
    )


def failed(verdicts: pd.DataFrame) -> str:
    """Return the page with the statements that fail of all papers."""
    text = f"{FAILED_HEAD}\n{MADE}"
    for key, paper in with_page().items():
        table = failing(paper, verdicts).partition("\n\n")[2] if paper.citation else ""
        if table:
            # errata that change conclusions are told on the page of the paper
            table = table.replace("](#", f"]({key}.md#")
            told = f"[What stands, and what does not]({key}.md)\n\n{guarantees(paper)}"
            text += f"\n## {paper.title}\n\n{told}{table}"
    return text


def guarantees(paper: Paper) -> str:
    """Return a list of the errata of a paper by which a guarantee does not hold that no printed
    number states, as seen from the page of all papers."""
    links, filled, lines = anchors(paper), errata.filled_from_kept(paper), ""
    for one in errata.read([paper.errata]):
        if effect := _OF_GUARANTEE.search(one.text):
            link = f"[{one.name}]({links[one.name]})".replace("](#", f"]({paper.key}.md#")
            lines += f"- {link}. {one.title}. {filled(effect[1])}\n"
    head = "Guarantees that do not hold although no printed number states them:"
    return f"{head}\n\n{lines}\n" if lines else ""


def anchors(paper: Paper) -> dict[str, str]:
    """Return the place where each erratum is told: those that change conclusions on this page, the
    others in the list of all."""
    text, found, chapter = (
        paper.errata.read_text(encoding="utf-8") if paper.errata.exists() else "",
        {},
        "",
    )
    for section, name, title in re.findall(r"^## (.+)$|^### (\w+)\. (.+)$", text, re.MULTILINE):
        chapter = section or chapter
        if name:
            found[name] = (
                "../deviations.md" * (chapter != errata.WEIGHTY)
                + "#"
                + errata.anchor(f"{name}. {title}")
            )
    return found


def entries(paper: Paper) -> str:
    """Return the errata that change conclusions in full, the others by their titles."""
    links, whole, rest, filled = anchors(paper), "", "", errata.filled_from_kept(paper)
    for one in errata.read([paper.errata] if paper.errata.exists() else []):
        if links[one.name].startswith("#"):
            whole += (
                f"### {one.name}. "
                f"{one.title}\n\n{filled(one.text).partition('- **Command.**')[0].strip()}\n\n"
            )
        else:
            rest += f"- [{one.name}]({links[one.name]}). {one.title}\n"
    return f"## {errata.WEIGHTY}\n\n{whole}" * bool(whole) + f"## Smaller errata\n\n{rest}" * bool(
        rest
    )


def commands(paper: Paper) -> str:
    """Return the commands for each table and figure."""
    made = made_of(paper)
    rows = "".join(f"| {escape_markdown(one.title)} | `{one.identifier}` |\n" for one in made)
    whole, asked = "`make reproduce` makes everything", made[0].identifier
    if paper.apart:
        whole, asked = (
            f"`make reproduce-{paper.key}` makes all of it",
            (f"{asked} --configfile src/dpsub/papers/{paper.key}/full.yaml"),
        )
    return (
        f"## How to redo it\n\nIn a clone of the project, {whole}, and this one table or "
        "figure:\n\n"
        f"```sh\nmake environment\n.venv/bin/snakemake --cores 2 {asked}\n```\n\n"
        f"| table or figure | name |\n| --- | --- |\n{rows}"
    )

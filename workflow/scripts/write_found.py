"""Write docs/found, what was found in each paper: from its found.md, its errata, and the results of a run.

    python workflow/scripts/write_found.py --results results    all of it, for the papers that the results hold
    python workflow/scripts/write_found.py                      what needs no run: failing statements, errata, commands

The found.md in the folder of a paper is a page in Markdown, with places that are filled in (Jinja): `number` looks a
number up in a table of the run, `takeaway` takes a paragraph of what to conclude, `picture` a figure, `printed` a
number as the paper prints it, `verdicts` counts how the numbers of a table compare. No result is typed by hand.
"""

from __future__ import annotations

import argparse
import io
import itertools
import re
from collections import Counter
from pathlib import Path

import jinja2
import pandas as pd
from PIL import Image

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import artefacts, published
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.digits import as_printed, written
from dpsub.reproduce.job import in_one_sentence
from dpsub.reproduce.labels import escape_markdown, in_symbols
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report import errata
from dpsub.reproduce.report.takeaways import of_paper, tables_of
from dpsub.reproduce.verdicts import FAILING, overall_by_cell, read_expected

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "docs/found"
MADE = "<!-- from here on made by workflow/scripts/write_found.py -->\n"
ANY = "\0"
"""What stands in a page for what only a run knows."""
SCALES, COLOURS = (2 / 3, 0.58, 0.5, 0.42, 0.35), (128, 64)
"""Of a figure's pixels from side to side, and its numbers of colours: the first that take less than so many bytes."""
BYTES = 60_000
WEIGHTY = "Errors that change conclusions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="a results folder at published size, made from the real data")
    renew(read_expected(ROOT / "src/dpsub/papers"), parser.parse_args().results)


def renew(verdicts: pd.DataFrame, results: Path | None = None) -> None:
    """Write the pages of all papers and their list; without results only what follows from errata and verdicts."""
    listed = []
    told = {key: paper for key, paper in papers().items() if (paper.folder / "found.md").exists()}
    for key, paper in told.items():
        page = FOUND / f"{key}.md"
        here = results is not None and (results / "tables" / key).exists()
        top = body(paper, verdicts, results) if here else page.read_text(encoding="utf-8").partition(MADE)[0]
        replace_file(page, (top + MADE + tail(paper, verdicts)).encode())
        listed.append(f"- [{paper.title}]({key}.md). {summary(top)}\n")
    index = FOUND / "index.md"
    top = index.read_text(encoding="utf-8").partition(MADE)[0]
    for gone in {page.stem for page in FOUND.glob("*.md")} - {*told, "index"}:
        (FOUND / f"{gone}.md").unlink()
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *told, "```", ""])
    replace_file(index, f"{top}{MADE}\n{''.join(listed)}\n{toctree}".encode())


def summary(page: str) -> str:
    """Return the first paragraph of a page on one line."""
    return " ".join(page.split("\n\n")[1].split())


def body(paper: Paper, verdicts: pd.DataFrame, results: Path | None) -> str:
    """Return what the found.md of a paper says, filled in, with `ANY` for what only a run that is not given knows."""
    tables, said = None, {}
    if results:
        tables, takeaways = tables_of(made_of(paper), OutputDirs.under(results)), of_paper(paper)
        for text in takeaways.sentences(tables) if takeaways else ():
            heading, _, said[heading] = text.removeprefix("**").partition(".** ")

    def number(table: str, column: str, source: str, digits: int = 3, **fields: str) -> str:
        if tables is None:
            return ANY
        found = tables.number(table, column, source, **fields)
        if found != found:
            raise DataError(
                f"found.md of {paper.key} asks for a number, got none in {table}: {column}, {source}, {fields}"
            )
        kind = artefacts.REGISTRY.get(f"{paper.key}/{table}")().number_kind(column, source)
        return written(found, f"{1:.{digits - 1}e}", side=kind)

    def takeaway(heading: str) -> str:
        if tables is not None and heading not in said:
            raise DataError(f"found.md of {paper.key} asks for the takeaway {heading!r}, got {', '.join(said)}")
        return said.get(heading, ANY)

    def picture(name: str, words: str) -> str:
        if results:
            small(results / "figures" / paper.key / f"{name}.png", FOUND / "pictures" / f"{paper.key}-{name}.png")
        return f"![{words}](pictures/{paper.key}-{name}.png)"

    def printed(artefact: str, column: str, **fields: str) -> str:
        cells = published.load(paper.key, artefact)
        for name, wanted in {"column": column, **fields}.items():
            cells = cells[cells[name] == wanted]
        return as_printed(str(cells["printed"].item()))

    def counted(artefact: str) -> str:
        judged = overall_by_cell(verdicts[(verdicts["paper"] == paper.key) & (verdicts["artefact"] == artefact)])
        return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in Counter(judged.values()).most_common())

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    template = environment.from_string((paper.folder / "found.md").read_text(encoding="utf-8"))
    where = paper.citation
    cited = f"*{', '.join(where.authors)}: {where.title}. {where.venue}, {where.year}.*\n" if where else "\n"
    return f"# {paper.title}\n\n" + template.render(
        number=number, takeaway=takeaway, picture=picture, printed=printed, verdicts=counted, cited=cited.strip()
    )


def small(figure: Path, target: Path) -> None:
    """Write a figure as a picture of few colours."""
    with Image.open(figure) as whole:
        for scale, colours in itertools.product(SCALES, COLOURS):
            size = (round(whole.width * scale), round(whole.height * scale))
            reduced = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            # rare colours are those of curves
            reduced = reduced.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            reduced.save(out := io.BytesIO(), "png", optimize=True)
            if out.tell() < BYTES:
                break
    target.parent.mkdir(exist_ok=True)
    replace_file(target, out.getvalue())


def made_of(paper: Paper) -> list[Artefact]:
    return [kind() for kind in artefacts.REGISTRY.members().values() if kind.paper == paper.key]


def tail(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return the end of a page: statements that fail, errata by weight, and how to redo it all."""
    parts = [failing(paper, verdicts), entries(paper) if paper.errata.exists() else "", commands(paper)]
    return "\n" + "\n".join(filter(None, parts))


def failing(paper: Paper, verdicts: pd.DataFrame) -> str:
    """Return a table of the statements that fail as printed."""
    judged, links, lines = overall_by_cell(verdicts), anchors(paper), ""
    for name in published.artefacts(paper.key):
        claims = published.load(paper.key, name)
        claims = claims[claims["kind"].isin(published.STATEMENTS)]
        keys = published.key_names(claims)
        for row, claim in zip(published.row_texts(claims, keys), claims.itertuples(), strict=True):
            if judged.get((paper.key, name, row, claim.column)) in FAILING:
                why = ", ".join(f"[{one}]({links[one]})" for one in claim.erratum.split())
                said = claim.printed if keys == ["claim"] else f"{row}: {claim.printed}"
                lines += f"| {escape_markdown(in_symbols(said))} | {why or escape_markdown(claim.note)} |\n"
    return f"## Statements that fail as printed\n\n| statement | why |\n| --- | --- |\n{lines}" if lines else ""


def anchors(paper: Paper) -> dict[str, str]:
    """Return where each erratum is told: those that change conclusions on this page, the others in the list of all."""
    text, found, chapter = paper.errata.read_text(encoding="utf-8") if paper.errata.exists() else "", {}, ""
    for section, name, title in re.findall(r"^## (.+)$|^### (\w+)\. (.+)$", text, re.MULTILINE):
        chapter = section or chapter
        if name:
            found[name] = "../deviations.md" * (chapter != WEIGHTY) + "#" + errata.anchor(f"{name}. {title}")
    return found


def entries(paper: Paper) -> str:
    """Return the errata that change conclusions in full, the others by their titles."""
    links, whole, rest = anchors(paper), "", ""
    for one in errata.read([paper.errata] if paper.errata.exists() else []):
        if links[one.name].startswith("#"):
            whole += f"### {one.name}. {one.title}\n\n{one.text.partition('- **Command.**')[0].strip()}\n\n"
        else:
            rest += f"- [{one.name}]({links[one.name]}). {one.title}\n"
    return f"## {WEIGHTY}\n\n{whole}" * bool(whole) + f"## Smaller errata\n\n{rest}" * bool(rest)


def commands(paper: Paper) -> str:
    """Return what to type for each table and figure."""
    made = made_of(paper)
    rows = "".join(f"| {escape_markdown(one.title)} | `{one.identifier}` |\n" for one in made)
    whole, asked = "`make reproduce` makes everything", made[0].identifier
    if paper.apart:
        whole, asked = f"`make {paper.key}` makes all of it", f"{asked} --configfile workflow/config/{paper.key}.yaml"
    return (
        f"## How to redo it\n\nIn a clone of the project, {whole}, and this one table or figure:\n\n"
        f"```sh\nmake environment\n.venv/bin/snakemake --cores 2 {asked}\n```\n\n"
        f"| table or figure | name |\n| --- | --- |\n{rows}"
    )


if __name__ == "__main__":
    with in_one_sentence():
        main()

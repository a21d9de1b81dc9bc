"""Renew the page docs/verdicts.md, which counts verdicts, and the picture of the first pages;
renew_pages.py calls it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import write_found

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import published
from dpsub.reproduce.artefacts import REGISTRY
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.judgement import Judgement, about, expected
from dpsub.reproduce.report.numbers import of_printed
from dpsub.reproduce.verdicts import reconciled, spoken, tally

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/verdicts.md"
BEGIN, END = (
    ("<!-- verdicts: made by workflow/scripts/renew_pages.py -->"),
    "<!-- end of verdicts -->",
)
ORDER = ("table", "figure", "claims")
PICTURES = ROOT / "docs/pictures"


def renew(verdicts: pd.DataFrame, results: Path | None = None) -> None:
    """Write the tables of `verdicts`, and copy the figures of a run that the first pages show."""
    replace_file(PAGE, renewed(PAGE.read_text(encoding="utf-8"), verdicts).encode())
    if results is None:
        return
    # a figure of a run stands there with its numbers, other pictures without
    for shown in PICTURES.glob("*.csv"):
        for figure in results.glob(f"figures/*/{shown.stem}.*"):
            if figure.suffix in (".png", ".csv"):
                shutil.copyfile(figure, PICTURES / figure.name)


def renewed(page: str, verdicts: pd.DataFrame) -> str:
    """Return the page with the tables of `verdicts` between the markers.

    Raises
    ------
    DataError
        If the page has no such markers.
    """
    parts = re.split(f"(?s)(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", page)
    if len(parts) != 2:
        raise DataError(
            f"the text must have one pair of the markers {BEGIN!r} and {END!r}, got "
            f"{len(parts) - 1}"
        )
    return parts[0] + tables(verdicts) + parts[1]


def tables(verdicts: pd.DataFrame) -> str:
    """Return one section for each paper: a line for each table, figure or list of claims that
    prints numbers, and the sum."""
    every = judged(verdicts)
    by_paper = dict(iter(every.groupby("paper")))
    anchors = dict(
        re.findall(
            r"^\| "
            r"\[(\w+)\]\((#.*?)\)",
            (ROOT / "docs/deviations.md").read_text("utf-8"),
            flags=re.M,
        )
    )
    lines = ["", together(every)]
    for key, paper in papers().items():
        if key not in by_paper:
            continue  # a paper without printed numbers
        cells = by_paper[key]
        names = {str(name): part for name, part in cells.groupby("artefact", sort=False)}
        titles = {name: REGISTRY.get(f"{key}/{name}").title for name in names}
        lines += ["", f"## {paper.title}", ""]
        if (ROOT / f"docs/found/{key}.md").is_file():
            lines += [f"[What stands, and what does not](found/{key}.md)", ""]
        lines += [
            "| printed in | is it right? | judged | verdicts | errata |",
            "|---|---|---|---|---|",
        ]
        answers, every_one = write_found.judged(paper, verdicts), expected(key, verdicts)
        for name, part in names.items():
            errata = {one for text in published.load(key, name)["erratum"] for one in text.split()}
            links = ", ".join(
                f"[{one}](deviations.md{anchor})"
                for one, anchor in anchors.items()
                if one in errata
            )
            told = f"| {titles[name]} (`{key}/{name}`) {answer(answers[name])}"
            said = about(REGISTRY.get(f"{key}/{name}"), every_one)
            of_text = f"; statements about it: {counts(said)}" if len(said) else ""
            lines.append(f"{told} | {counts(part)}{of_text} | {links} |")
        if len(names) > 1:
            lines.append(f"| **all** | | | {counts(cells)} | |")
    return "\n".join([*lines, "", ""])


def judged(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each printed number: paper, artefact, overall verdict."""
    rows = [(*place[:2], verdict) for place, verdict in of_printed(papers(), verdicts).items()]
    cells = pd.DataFrame(rows, columns=["paper", "artefact", "verdict"])
    kinds = (cells["paper"] + "/" + cells["artefact"]).map(
        lambda name: ORDER.index(REGISTRY.get(name).kind)
    )
    return cells.iloc[kinds.argsort(kind="stable")]


def together(cells: pd.DataFrame) -> str:
    """Return the line that adds up the numbers of all papers, without those that have a run of
    their own."""
    listed = papers()
    apart = cells["paper"].map(lambda key: listed[key].apart)
    beyond = cells["paper"].map(lambda key: listed[key].citation is None)
    judged = tally(cells.loc[~apart & ~beyond, "verdict"])
    text = f"Together: {reconciled(judged, int((~apart & beyond).sum()))}."
    return text + (
        f" Not among them are {apart.sum()} statements that have a run of their own."
    ) * bool(apart.any())


def answer(found: Judgement) -> str:
    """Return two cells of a line: the word of the judgement, and how much was judged."""
    return f"| {found.verdict} | {found.share if found.judged else f'none of {found.printed}'}"


def counts(part: pd.DataFrame) -> str:
    """Return how many numbers have each verdict."""
    found = part["verdict"].value_counts()
    return ", ".join(f"{count} {spoken(str(verdict))}" for verdict, count in found.items())

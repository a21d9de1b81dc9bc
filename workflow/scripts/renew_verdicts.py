"""Renew what the documentation shows of the results: the counts of verdicts, and with --results the picture.

    python workflow/scripts/renew_verdicts.py [--verdicts results/comparison.csv] [--results results]

Verdicts are those that src/dpsub/papers expects unless a comparison is named.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import published
from dpsub.reproduce.artefacts import REGISTRY
from dpsub.reproduce.job import in_one_sentence
from dpsub.reproduce.papers import papers
from dpsub.reproduce.verdicts import overall_by_cell, read_expected

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "src/dpsub/papers"
BEGIN, END = "<!-- verdicts: made by workflow/scripts/renew_verdicts.py -->", "<!-- end of verdicts -->"
PICTURE = "must/privacy_by_steps"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=Path, help="comparison.csv of a run")
    parser.add_argument("--results", type=Path, help="a results folder that has the figure of the picture")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/verdicts.md")
    options = parser.parse_args()
    text = options.page.read_text(encoding="utf-8")
    verdicts = pd.read_csv(options.verdicts, dtype=str) if options.verdicts else read_expected(PAPERS)
    options.page.write_text(renewed(text, verdicts), encoding="utf-8")
    if options.results:
        for form in ("png", "csv"):
            figure = options.results / "figures" / f"{PICTURE}.{form}"
            if not figure.is_file():
                raise DataError(f"the picture is copied from a run, got no {figure}; make privacy_by_steps first")
            shutil.copyfile(figure, ROOT / "docs/pictures" / figure.name)


def renewed(page: str, verdicts: pd.DataFrame) -> str:
    """Return the page with the tables of `verdicts` between the markers.

    Raises
    ------
    DataError
        If the page has no such markers.
    """
    parts = re.split(f"(?s)(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", page)
    if len(parts) != 2:
        raise DataError(f"the text must have one pair of the markers {BEGIN!r} and {END!r}, got {len(parts) - 1}")
    return parts[0] + tables(verdicts) + parts[1]


def tables(verdicts: pd.DataFrame) -> str:
    """Return one section a paper: a line for each table, figure or list of claims that prints numbers, and the sum."""
    by_paper = dict(iter(judged(verdicts).groupby("paper")))
    anchors = dict(re.findall(r"^\| \[(\w+)\]\((#.*?)\)", (ROOT / "docs/deviations.md").read_text("utf-8"), flags=re.M))
    lines: list[str] = []
    for key, paper in papers().items():
        if key not in by_paper:
            continue  # it prints nothing
        cells = by_paper[key]
        names = {str(name): part for name, part in cells.groupby("artefact", sort=False)}
        titles = {name: REGISTRY.get(f"{key}/{name}").title for name in names}
        numbered = [f"! {found[0]}" for title in titles.values() if (found := re.match(r"(Table|Figure) \d+", title))]
        lines += ["", f"## {paper.title}", ""]
        if (ROOT / f"docs/found/{key}.md").is_file():
            lines += [f"[What stands, and what does not](found/{key}.md)", ""]
        if numbered:  # what a search on the site finds first
            lines += [f"```{{index}} {', '.join(numbered)}", "```", ""]
        lines += ["| printed in | numbers | verdicts | errata |", "|---|---:|---|---|"]
        for name, part in names.items():
            errata = {one for text in published.load(key, name)["erratum"] for one in text.split()}
            links = ", ".join(f"[{one}](deviations.md{anchor})" for one, anchor in anchors.items() if one in errata)
            lines.append(f"| {titles[name]} (`{key}/{name}`) {counts(part)} {links} |")
        if len(names) > 1:
            lines.append(f"| **all** {counts(cells)} |")
    return "\n".join([*lines, "", ""])


def judged(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return one row a printed number: paper, artefact, overall verdict."""
    rows = [(*cell[:2], verdict) for cell, verdict in overall_by_cell(verdicts).items()]
    return pd.DataFrame(rows, columns=["paper", "artefact", "verdict"])


def counts(part: pd.DataFrame) -> str:
    """Return two cells of a line: how many numbers, and how many of each verdict."""
    found = part["verdict"].value_counts()
    listed = ", ".join(f"{count} {str(verdict).replace('_', ' ')}" for verdict, count in found.items())
    return f"| {len(part)} | {listed} |"


if __name__ == "__main__":
    with in_one_sentence():
        main()

"""Write the pages that show results: docs/found, docs/verdicts.md, docs/deviations.md, the answers
of docs/index.md, and their pictures.

After a full run, with its numbers and pictures:
    .venv/bin/python workflow/scripts/renew_pages.py --results results
after a change to errata, prose or verdicts:
    .venv/bin/python workflow/scripts/renew_pages.py

A run renews the papers that it has made: `--results results-tournament` those of `make tournament`.
The cells that pages cite are kept in the folder of each paper, as cited.csv; without a run they
fill the pages. Verdicts are those that the papers expect, which accept_verdicts.py renews.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
import renew_verdicts
import write_found
import write_home

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import configuration
from dpsub.reproduce.job import in_one_sentence
from dpsub.reproduce.papers import errata_files, papers
from dpsub.reproduce.plan import Plan
from dpsub.reproduce.report import cited, errata
from dpsub.reproduce.report.prose import TEMPLATE, Prose
from dpsub.reproduce.verdicts import read_expected

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--results", type=Path, help="a results folder at published size, made from the real data"
    )
    results = parser.parse_args().results
    verdicts = read_expected(ROOT / "src/dpsub/papers")
    if results:
        renew_cited(results, verdicts)
    replace_file(ROOT / "docs/deviations.md", deviations(verdicts).encode())
    renew_verdicts.renew(verdicts, results)
    write_found.renew(verdicts, results)
    write_home.renew(verdicts)


def renew_cited(results: Path, verdicts: pd.DataFrame) -> None:
    """Keep the cells of a run that pages cite; pages written from these alone must equal those of
    the run."""
    if remark := Plan(configuration.load([results / "run/config.yaml"])).remark:
        raise DataError(
            f"pages are written from a run at published settings, got {results}: {remark}"
        )
    for paper in papers().values():
        if not (results / "tables" / paper.key).is_dir():
            continue
        of_run = write_home.prose(paper, verdicts, cited.tables_of_run(paper, results))
        text = whole(of_run)
        cited.keep(paper, results, of_run.seen)
        kept = cited.kept_of(paper)
        if kept is not None and whole(write_home.prose(paper, verdicts, kept)) != text:
            raise DataError(
                f"kept cells of {paper.key} must give the pages of the run, got "
                f"others; mend {cited.KEPT}"
            )


def whole(prose: Prose) -> str:
    """Return all that is said of a paper with numbers: its page, its errata, and what the report
    takes."""
    folder = prose.paper.folder
    paths = (folder / TEMPLATE, folder / write_home.TEMPLATE, prose.paper.errata)
    pages = [prose.filled(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    paragraphs = [takeaway.paragraph for takeaway in prose.takeaways()]
    return "\n".join([*pages, *paragraphs, *prose.judgements().values()])


def deviations(verdicts: pd.DataFrame) -> str:
    """Return the document of the errata of the papers that are there."""
    return errata.document(errata_files(), verdicts)


if __name__ == "__main__":
    with in_one_sentence():
        main()

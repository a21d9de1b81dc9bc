"""Print an erratum and the compared cells that it is about: ``show_erratum.py E3``."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from dpsub import checks
from dpsub.errors import DataError
from dpsub.reproduce import verdicts
from dpsub.reproduce.job import in_one_sentence
from dpsub.reproduce.papers import errata_files, papers
from dpsub.reproduce.report import cited, errata
from dpsub.reproduce.report.prose import Prose

SHOWN = ["artefact", "row", "column", "printed", "variant", "value", "verdict", "note"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("erratum", help="identifier in docs/deviations.md, such as E3")
    parser.add_argument("--comparison", type=Path, default=Path("results/comparison.csv"))
    arguments = parser.parse_args()
    known = {one.name: one for one in errata.read(errata_files())}
    entry = known[checks.one_of("erratum", arguments.erratum, known)]
    paper, results = papers()[entry.paper], arguments.comparison.parent
    kept = cited.kept_of(paper)
    of_run = (
        cited.tables_of_run(paper, results) if (results / "tables" / paper.key).is_dir() else None
    )
    prose = Prose(paper, of_run or kept or {}, kept)
    print(f"{entry.name}. {entry.title}\n\n{prose.filled(entry.text)}\n")
    if not arguments.comparison.is_file():
        raise DataError(
            f"its cells need a run, got no {arguments.comparison}; run `make reproduce` first"
        )
    table = verdicts.read(arguments.comparison)
    about = table[[entry.name in names.split() for names in table["erratum"]]]
    if about.empty:
        print(f"No compared cell carries {entry.name}; {entry.commands[-1]} shows it.")
        return
    with pd.option_context(
        "display.max_rows", None, "display.max_colwidth", 70, "display.width", 250
    ):
        print(about[SHOWN].to_string(index=False, na_rep=""))


if __name__ == "__main__":
    with in_one_sentence():
        main()

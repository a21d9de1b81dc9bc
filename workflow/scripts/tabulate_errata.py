"""Write the tables at the top of docs/deviations.md: every erratum, the printed numbers it is about, their verdicts.

By hand, after a change to the document, to printed numbers or to expected verdicts:
    python workflow/scripts/tabulate_errata.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence

from dpsub.reproduce.records import replace_file
from dpsub.reproduce.report import overview
from dpsub.reproduce.verdicts import read_expected

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "docs/deviations.md")
    parser.add_argument("--papers", type=Path, default=ROOT / "src/dpsub/papers")
    options = parser.parse_args()
    text = overview.refreshed(options.document, options.papers, read_expected(options.papers))
    replace_file(options.document, text.encode())


if __name__ == "__main__":
    one_sentence.run(main)

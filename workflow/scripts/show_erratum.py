"""Print the compared cells that an erratum is about: ``show_erratum.py E3``."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from one_sentence import run

from dpsub.errors import ArgumentError, DataError

SHOWN = ["artefact", "row", "column", "printed", "variant", "value", "verdict", "note"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("erratum", help="identifier in docs/deviations.md, such as E3")
    parser.add_argument("--comparison", type=Path, default=Path("results/comparison.csv"))
    arguments = parser.parse_args()
    if not arguments.comparison.is_file():
        raise DataError(f"there is no {arguments.comparison}; run `make reproduce` first")
    table = pd.read_csv(arguments.comparison, dtype={"erratum": str}, keep_default_na=True)
    about = table[table["erratum"].fillna("").str.split(r"[ ,;]+").map(lambda names: arguments.erratum in names)]
    if about.empty:
        known = sorted({name for text in table["erratum"].dropna() for name in str(text).split()})
        raise ArgumentError(f"no compared cell carries {arguments.erratum}; those that do: {', '.join(known)}")
    with pd.option_context("display.max_rows", None, "display.max_colwidth", 70, "display.width", 250):
        print(about[SHOWN].fillna("").to_string(index=False))


if __name__ == "__main__":
    run(main)

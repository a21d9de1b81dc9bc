"""Write the verdicts of a run at full published size as the expected ones; review the difference, then commit."""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence
import pandas as pd

from dpsub.reproduce import comparison, expected


def main() -> None:
    """Write the file and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparison", type=Path, required=True, help="comparison.csv of the run")
    parser.add_argument("--expected", type=Path, required=True, help="data/expected_verdicts.csv, written again")
    options = parser.parse_args()
    there = options.expected.exists()
    present = expected.read_expected(options.expected) if there else pd.DataFrame(columns=expected.COLUMNS)
    accepted = expected.from_comparison(comparison.read(options.comparison), present)
    changes = expected.changes_on_acceptance(accepted, present)
    comparison.write(accepted, options.expected)
    print(f"{options.expected}: {len(accepted)} verdicts, {changes} of them new, changed or gone")


if __name__ == "__main__":
    one_sentence.run(main)

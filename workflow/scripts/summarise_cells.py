"""Bring the records of a sweep together by cell: one row a cell, in memory that does not grow with their number.

By hand:
    python workflow/scripts/summarise_cells.py --results results_sweeps/samplers --experiment fair_comparison
"""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence

from dpsub import sweeps
from dpsub.sweeps import by_cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path)
    parser.add_argument("--experiment", required=True)
    options = parser.parse_args()
    by_cell.summarise(options.results, sweeps.REGISTRY.get(options.experiment)())


if __name__ == "__main__":
    one_sentence.run(main)

"""Bring the records of a sweep together by cell: means and spreads, and paired differences against Poisson sampling.

Both have one row a cell; the memory does not grow with the number of cells.

By hand:
    python workflow/scripts/summarise_cells.py --results results_sweeps/samplers --experiment fair_comparison
"""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence

from dpsub.reproduce import sweeps
from dpsub.reproduce.sweeps import by_cell, differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path)
    parser.add_argument("--experiment", required=True)
    options = parser.parse_args()
    experiment = sweeps.REGISTRY.get(options.experiment)()
    differences.write(options.results, experiment)
    by_cell.summarise(options.results, experiment)  # last, as its stamp says that all is current


if __name__ == "__main__":
    one_sentence.run(main)

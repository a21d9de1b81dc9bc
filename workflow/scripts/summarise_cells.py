"""Bring the records of a sweep together by cell: means and spreads, and paired differences from Poisson sampling.

Both have one row a cell; the memory does not grow with the number of cells.

By hand:
    python workflow/scripts/summarise_cells.py --experiment fair_comparison --vary m --summary cells.parquet \
        --differences differences.parquet --records results_sweeps/samplers/records/fair_comparison
"""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence

from dpsub.reproduce import summary
from dpsub.reproduce.experiments import REGISTRY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--vary", nargs="*", default=[], metavar="SETTING", help="settings that the sweep varies")
    parser.add_argument("--records", required=True, type=Path, help="folder of the experiment's records")
    parser.add_argument("--summary", required=True, type=Path)
    parser.add_argument("--differences", required=True, type=Path)
    options = parser.parse_args()
    experiment = REGISTRY.get(options.experiment)
    keys = list(dict.fromkeys([*options.vary, *experiment.keys]))
    measured = [name for name, kind in experiment.columns.items() if kind != "str" and name not in (*keys, "replicate")]
    summary.write(sorted(options.records.glob("*/*.parquet")), keys, measured, options.summary, options.differences)


if __name__ == "__main__":
    one_sentence.run(main)

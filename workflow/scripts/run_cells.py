"""Compute the cells of one job of a sweep and write their records.

By hand, for a job that run_sweep.py has planned:
    python workflow/scripts/run_cells.py --job results_sweeps/smoke/run/jobs/0a1b.json --output 0a1b.parquet
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import one_sentence
from run_experiment import data_file, label_of

from dpsub.reproduce import sweep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", required=True, type=Path, help="what to compute, as JSON")
    parser.add_argument("--data", nargs="*", type=data_file, default=[], metavar="NAME=PATH")
    parser.add_argument("--code", default="", help="digest of the code, for the records")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    data = dict(options.data)
    label = ", ".join(sorted({label_of(path) for path in data.values()}))
    started = time.perf_counter()
    sweep.compute(options.job, options.output, data=data, label=label, code=options.code)
    print(f"computed in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    one_sentence.run(main)

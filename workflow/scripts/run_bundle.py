"""Compute the cells of one job of a sweep and write their records.

By hand, for a job that run_sweep.py has planned:
    python workflow/scripts/run_bundle.py --job results-sweeps/run/jobs/0a1b.json --output out/part-0a1b.parquet
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import one_sentence
from run_experiment import data_file, label_of

from dpsub.reproduce import provenance, sweeps
from dpsub.reproduce.sweeps import store
from dpsub.reproduce.sweeps.bundles import Work
from dpsub.reproduce.sweeps.cells import Cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", required=True, type=Path, help="what to compute, as JSON")
    parser.add_argument("--data", nargs="*", type=data_file, default=[], metavar="NAME=PATH")
    parser.add_argument("--code", default="", help="digest of the code, for the records")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()

    job = json.loads(options.job.read_text(encoding="utf-8"))
    experiment = sweeps.REGISTRY.get(job["experiment"])()
    work = [Work(Cell.of(experiment.name, fields), first, stop) for fields, first, stop in job["work"]]
    data = dict(options.data)
    started = time.perf_counter()
    found = [
        (item, experiment.run(item.cell.fields, range(item.first, item.stop), root=job["seed"], data=data))
        for item in work
    ]
    facts = {
        "experiment": experiment.name,
        "seed": job["seed"],
        "code": options.code,
        "inputs": {name: provenance.file_digest(path) for name, path in data.items()},
        "data": {name: label_of(path) for name, path in data.items()},
        "versions": provenance.versions(),
    }
    print(f"computed in {time.perf_counter() - started:.3f} s, expected were {job['seconds']:.3f} s")
    store.write(options.output, store.table(experiment, found), work, facts)


if __name__ == "__main__":
    one_sentence.run(main)

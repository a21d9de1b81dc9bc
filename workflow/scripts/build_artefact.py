"""Make one table, figure or set of claims from records.

By hand:
    python workflow/scripts/build_artefact.py --artefact must/table9 --results results --published src/dpsub/papers \
        --records results/records/distinct_counts/stated/1-of-1.parquet
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import one_sentence

from dpsub.reproduce import artefact as base
from dpsub.reproduce import artefacts, records


def configuration(text: str) -> tuple[str, str]:
    name, _, digest = text.partition("=")
    return name, digest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artefact", required=True, metavar="PAPER/NAME")
    parser.add_argument("--records", nargs="*", type=Path, default=[], help="all parts of all variants")
    parser.add_argument("--published", required=True, type=Path, help="folder of printed numbers")
    parser.add_argument("--settings", type=json.loads, default={}, help="of experiments, by name, as JSON")
    parser.add_argument("--results", required=True, type=Path, help="results folder")
    parser.add_argument(
        "--configurations",
        nargs="*",
        type=configuration,
        metavar="EXPERIMENT=DIGEST",
        help="refuse records that were made from another configuration; by default any one is taken",
    )
    options = parser.parse_args()
    artefact = artefacts.REGISTRY.get(options.artefact)()
    digests = None if options.configurations is None else dict(options.configurations)
    base.build(
        artefact,
        records.gather(options.records, config_digests=digests),
        base.printed_rows(artefact, options.published),
        base.OutputDirs.under(options.results),
        settings=options.settings,
        quoted=base.quoted_rows(artefact, options.published),
    )


if __name__ == "__main__":
    one_sentence.run(main)

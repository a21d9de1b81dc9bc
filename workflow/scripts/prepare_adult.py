"""Find or download the Adult files, prepare them, and write the table that the experiments read.

By hand: python workflow/scripts/prepare_adult.py --output data/interim/adult.parquet
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import one_sentence

from dpsub.datasets import adult, fetch, synthetic_adult


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="", help="a folder of yours laid out as <folder>/adult/adult.data")
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="folder of downloads (default: %(default)s)")
    parser.add_argument("--download", action=argparse.BooleanOptionalAction, default=True, help="ask the addresses")
    parser.add_argument("--fallback", choices=fetch.FALLBACKS, default="synthetic", help="if the files cannot be had")
    parser.add_argument("--sources", type=Path, default=Path("data/SOURCES.csv"), help="default: %(default)s")
    parser.add_argument("--output", type=Path, required=True, help="the Parquet file to write; a JSON goes beside it")
    options = parser.parse_args()

    obtained = fetch.obtain(
        "adult",
        sources=options.sources,
        raw=options.raw,
        folder=Path(options.folder) if options.folder else None,
        files=adult.FILES,
        download=options.download,
        fallback=options.fallback,
    )
    if obtained.label == "synthetic":
        print(f"adult: working with a synthetic stand-in ({obtained.reason})", file=sys.stderr)
        table = adult.scaled(synthetic_adult.generate())
    else:
        table = adult.prepare(*(obtained.paths[name] for name in adult.FILES))
    adult.write(table, options.output, label=obtained.label, sources=obtained.sha256)
    print(f"adult: {len(table)} {obtained.label} records in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

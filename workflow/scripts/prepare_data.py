"""Find or download the raw files of a data set, prepare it, and write what the experiments read.

By hand: python workflow/scripts/prepare_data.py --dataset adult --output data/interim/adult.parquet
"""

from __future__ import annotations

import one_sentence  # before what takes time: Ctrl-C then ends all of it quietly

# isort: split
import argparse
import sys
from pathlib import Path

from dpsub.data import fetch
from dpsub.data.dataset import REGISTRY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True, help="its name")
    parser.add_argument("--folder", default="", help="a folder of yours laid out as <folder>/adult/adult.data")
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="folder of downloads (default: %(default)s)")
    parser.add_argument("--download", action=argparse.BooleanOptionalAction, default=True, help="ask the addresses")
    parser.add_argument("--fallback", choices=fetch.FALLBACKS, default="synthetic", help="without the files")
    parser.add_argument("--sources", type=Path, default=Path("data/SOURCES.csv"), help="default: %(default)s")
    parser.add_argument("--output", type=Path, required=True, help="the file to write; a JSON goes next to it")
    options = parser.parse_args()
    data_set = REGISTRY.get(options.dataset)()
    obtained = fetch.obtain(
        data_set.source or data_set.name,
        data_set.files,
        sources=options.sources,
        raw=options.raw,
        folder=Path(options.folder) if options.folder else None,
        download=options.download,
        fallback=options.fallback,
    )
    if obtained.reason:
        print(f"{data_set.name}: working with a synthetic stand-in ({obtained.reason})", file=sys.stderr)
    rows = data_set.make(obtained, options.output)
    print(f"{data_set.name}: {rows} records ({obtained.label}) in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

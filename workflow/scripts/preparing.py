"""What the scripts that prepare a data set share: their options, and the files that these lead to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dpsub.data import fetch


def options(description: str | None, *, example: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="", help=f"a folder of yours laid out as <folder>/{example}")
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="folder of downloads (default: %(default)s)")
    parser.add_argument("--download", action=argparse.BooleanOptionalAction, default=True, help="ask the addresses")
    parser.add_argument("--fallback", choices=fetch.FALLBACKS, default="synthetic", help="without the files")
    parser.add_argument("--sources", type=Path, default=Path("data/SOURCES.csv"), help="default: %(default)s")
    parser.add_argument("--output", type=Path, required=True, help="the Parquet file to write; a JSON goes next to it")
    return parser.parse_args()


def obtain(dataset: str, files: Sequence[str], options: argparse.Namespace) -> fetch.Obtained:
    obtained = fetch.obtain(
        dataset,
        sources=options.sources,
        raw=options.raw,
        folder=Path(options.folder) if options.folder else None,
        files=files,
        download=options.download,
        fallback=options.fallback,
    )
    if obtained.label == "synthetic":
        print(f"{dataset}: working with a synthetic stand-in ({obtained.reason})", file=sys.stderr)
    return obtained

"""Find the files of a data set to be clustered, prepare them, and write the rows that the experiments read.

By hand: python workflow/scripts/prepare_points.py --output data/interim/song.npy
"""

from __future__ import annotations

import sys
from pathlib import Path

import one_sentence
import preparing

from dpsub.data import point_sets, point_sources

TWIN_ROWS = 20_000


def main() -> None:
    options = preparing.options(__doc__, example="song/YearPredictionMSD.txt.zip")
    name = options.output.stem
    found = point_sources.find(
        name,
        sources_table=options.sources,
        raw=options.raw,
        folder=Path(options.folder) if options.folder else None,
        download=options.download,
        fallback=options.fallback,
    )
    if found.reason:
        print(f"{name}: working with a synthetic stand-in ({found.reason})", file=sys.stderr)
    points, facts = point_sets.prepare(name, found, twin_rows=TWIN_ROWS)
    point_sets.write(points, options.output, facts)
    print(f"{name}: {len(points)} {found.label} records in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

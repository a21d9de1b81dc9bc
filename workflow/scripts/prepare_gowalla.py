"""Find the Gowalla check-ins of New York City and write how long each user was active.

By hand: python workflow/scripts/prepare_gowalla.py --output data/interim/gowalla.parquet
"""

from __future__ import annotations

import sys

import one_sentence
import preparing

from dpsub.data import gowalla, individuals


def main() -> None:
    options = preparing.options(__doc__, example=f"{gowalla.SOURCE}/{gowalla.FILES[0]}")
    obtained = preparing.obtain(gowalla.SOURCE, gowalla.FILES, options)
    real = obtained.label != "synthetic"
    table = gowalla.prepare(obtained.paths[gowalla.FILES[0]]) if real else gowalla.stand_in()
    label = "subset" if real else obtained.label  # one city of the published file
    individuals.write(
        table, options.output, dataset="gowalla", label=label, sources=obtained.sha256,
        events=gowalla.N_CHECKINS if real else len(table), attributes=len(gowalla.FIELDS),
    )  # fmt: skip
    print(f"gowalla: {len(table)} users ({label}) in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

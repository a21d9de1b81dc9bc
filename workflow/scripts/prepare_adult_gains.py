"""Find or download the Adult files and write the capital gain of each complete record.

By hand: python workflow/scripts/prepare_adult_gains.py --output data/interim/adult_gains.parquet
"""

from __future__ import annotations

import sys

import one_sentence
import preparing

from dpsub.data import adult_gains, adult_raw, individuals


def main() -> None:
    options = preparing.options(__doc__, example="adult/adult.data")
    obtained = preparing.obtain(adult_gains.SOURCE, adult_gains.FILES, options)
    real = obtained.label != "synthetic"
    paths = [obtained.paths[name] for name in adult_gains.FILES if real]
    table = adult_gains.prepare(*paths) if real else adult_gains.stand_in()
    individuals.write(
        table, options.output, dataset="adult_gains", label=obtained.label, sources=obtained.sha256,
        events=len(table), attributes=len(adult_raw.COLUMNS),
    )  # fmt: skip
    print(f"adult_gains: {len(table)} {obtained.label} records in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

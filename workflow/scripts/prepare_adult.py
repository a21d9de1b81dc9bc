"""Find or download the Adult files, prepare them, and write the table that the experiments read.

By hand: python workflow/scripts/prepare_adult.py --output data/interim/adult.parquet
"""

from __future__ import annotations

import sys

import one_sentence
import preparing

from dpsub.data import adult, synthetic_adult


def main() -> None:
    options = preparing.options(__doc__, example="adult/adult.data")
    obtained = preparing.obtain("adult", adult.FILES, options)
    if obtained.label == "synthetic":
        table = adult.scaled(synthetic_adult.generate())
    else:
        table = adult.prepare(*(obtained.paths[name] for name in adult.FILES))
    adult.write(table, options.output, label=obtained.label, sources=obtained.sha256)
    print(f"adult: {len(table)} {obtained.label} records in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

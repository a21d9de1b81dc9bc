"""Find or download the ijcnn1 file, prepare it, and write the table that the experiments read.

By hand: python workflow/scripts/prepare_ijcnn1.py --output data/interim/ijcnn1.parquet
"""

from __future__ import annotations

import sys

import one_sentence
import preparing

from dpsub.data import ijcnn1


def main() -> None:
    options = preparing.options(__doc__, example="ijcnn1/ijcnn1.trn.bz2")
    obtained = preparing.obtain("ijcnn1", ijcnn1.FILES, options)
    real = obtained.label != "synthetic"
    table = ijcnn1.prepare(obtained.paths[ijcnn1.FILES[0]]) if real else ijcnn1.stand_in()
    ijcnn1.write(table, options.output, label=obtained.label, sources=obtained.sha256)
    print(f"ijcnn1: {len(table)} {obtained.label} records in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)

"""Put the comparisons of all artefacts into one file, in the order given.

By hand: python workflow/scripts/collect_comparison.py --output comparison.csv results/comparison/must/*.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import one_sentence
import pandas as pd

from dpsub.reproduce.artefact import csv_bytes
from dpsub.reproduce.records import replace_file
from dpsub.reproduce.verdicts import COLUMNS, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    frames = [frame for path in options.files if not (frame := read(path)).empty]
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))
    replace_file(options.output, csv_bytes(whole))


if __name__ == "__main__":
    one_sentence.run(main)

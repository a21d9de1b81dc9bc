"""Write the page that says what a practitioner should use, from the tables of the fair comparison.

By hand, after a run:
    python workflow/scripts/write_advice.py --results results --output results/report/advice.md \
        --artefacts fair/winners fair/measures fair/noise fair/rankings
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import one_sentence

from dpsub import artefacts
from dpsub.artefacts.base import OutputDirs
from dpsub.report.fair import write_advice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path, help="results folder")
    parser.add_argument("--artefacts", nargs="*", default=[], metavar="PAPER/NAME")
    parser.add_argument("--data", nargs="*", type=Path, default=[], help="descriptions (JSON) of prepared data sets")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    described = [json.loads(path.read_text(encoding="utf-8")) for path in options.data]
    write_advice(
        options.output,
        artefacts=[artefacts.REGISTRY.get(name)() for name in options.artefacts],
        dirs=OutputDirs.under(options.results),
        data_labels={found["dataset"]: found["label"] for found in described},
    )


if __name__ == "__main__":
    one_sentence.run(main)

"""Write the verdicts of a run at full published size as the expected ones; review the difference,
then commit."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpsub.reproduce import verdicts
from dpsub.reproduce.job import in_one_sentence


def main() -> None:
    """Write the file of each paper that was compared and say what changed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparison", type=Path, required=True, help="comparison.csv of the run")
    parser.add_argument(
        "--papers", type=Path, required=True, help="folder of the papers, with expected verdicts"
    )
    options = parser.parse_args()
    found, present = verdicts.read(options.comparison), verdicts.read_expected(options.papers)
    accepted = verdicts.accepted(found, present)
    changes = verdicts.expected_changes(found, present[present["paper"].isin(found["paper"])])
    for path in verdicts.write_expected(accepted, options.papers):
        print(path)
    print(f"{len(accepted)} verdicts, {len(changes)} of them new, changed or gone")


if __name__ == "__main__":
    with in_one_sentence():
        main()

"""Compare the verdicts of a run with the expected ones; the exit status is 1 if one changed and the mode is enforce."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import one_sentence

from dpsub.reproduce import verdicts
from dpsub.reproduce.records import replace_file


def main() -> None:
    """Print every change as a line of a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparison", type=Path, required=True, help="comparison.csv of the run")
    parser.add_argument("--papers", type=Path, required=True, help="folder of the papers, with expected verdicts")
    parser.add_argument("--mode", choices=("enforce", "report"), default="enforce")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    found = verdicts.read(options.comparison)
    changes = verdicts.expected_changes(found, verdicts.read_expected(options.papers))
    text = verdicts.as_text(changes, compared=len(found))
    print(text)
    if options.output:
        replace_file(options.output, f"{text}\n".encode())
    if len(changes) and options.mode == "enforce":
        sys.exit(1)


if __name__ == "__main__":
    one_sentence.run(main)

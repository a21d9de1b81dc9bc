"""Judge packages at versions that are not recorded yet, in the studies that ask packages."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from dpsub.reproduce.job import in_one_sentence
from dpsub.reproduce.papers import papers


def main() -> int:
    """Return the exit status: 1 if a verdict changed or an answer is missing, else 0."""
    names = [f"dpsub.papers.{key}.judge_packages" for key in papers()]
    studies = [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
    if not studies:
        print("no study here asks packages")
    return max((study.main() for study in studies), default=0)


if __name__ == "__main__":
    with in_one_sentence():
        sys.exit(main())

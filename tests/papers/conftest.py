"""Tests of a paper are left out where the paper is missing, as nothing in them could be
imported."""

from __future__ import annotations

from pathlib import Path

from dpsub.reproduce.papers import papers

HERE = Path(__file__).parent
collect_ignore = [
    folder.name for folder in HERE.iterdir() if folder.is_dir() and folder.name not in papers()
]

"""The table for readers who come from other accountants holds what these answer now."""

from __future__ import annotations

import re

import pytest

from dpsub.errors import DataError
from tests.documentation.console import ROOT, script

PAGE = ROOT / "docs/how-to/coming-from.md"


compare = script("benchmarks/compare_accountants")


def test_the_table_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in compare.ANSWERS:
        if "prv" not in name:  # which takes longest
            assert compare.row(name) in page


@pytest.mark.slow
def test_the_whole_table_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert compare.renewed(page) == page


def test_all_accountants_agree() -> None:
    """The two ends of dpsub on the page lie within what the others say."""
    page = PAGE.read_text(encoding="utf-8")
    rows = [
        [re.findall(r"[\d.]+(?:e-\d+)?", cell) for cell in line.split("|")[2:4]]
        for line in page.splitlines()
        if re.match(r"\| (dpsub|dp-acc|prv)", line)
    ]
    ours, pld, renyi, prv = ([[float(number) for number in cell] for cell in row] for row in rows)
    for i in range(2):
        lower, upper = ours[i]
        assert lower <= pld[i][0] <= renyi[i][0]
        assert prv[i][1] <= lower <= upper <= prv[i][2]
        assert lower <= prv[i][0] <= upper


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(DataError, match="must have the lines"):
        compare.renewed("no table")

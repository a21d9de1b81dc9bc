"""The page for who comes from other accountants: its table is what they say now."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dpsub.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/coming-from.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = ROOT / "benchmarks/compare_accountants.py"
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[place.stem] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_is_current(script: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in script.ANSWERS:
        if "prv" not in name:  # which takes longest
            assert script.row(name) in page


@pytest.mark.slow
def test_the_whole_table_is_current(script: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert script.renewed(page) == page


def test_all_accountants_agree(script: ModuleType) -> None:
    """Numbers of the page: the two ends of dpsub lie within what the others say."""
    page = PAGE.read_text(encoding="utf-8")
    rows = [[re.findall(r"[\d.]+(?:e-\d+)?", cell) for cell in line.split("|")[2:4]]
            for line in page.splitlines() if re.match(r"\| (dpsub|dp-acc|prv)", line)]  # fmt: skip
    ours, pld, renyi, prv = ([[float(number) for number in cell] for cell in row] for row in rows)
    for i in range(2):
        lower, upper = ours[i]
        assert lower <= pld[i][0] <= renyi[i][0]
        assert prv[i][1] <= lower <= upper <= prv[i][2]
        assert lower <= prv[i][0] <= upper


def test_a_page_without_markers_is_refused(script: ModuleType) -> None:
    with pytest.raises(DataError, match="must have the lines"):
        script.renewed("no table")

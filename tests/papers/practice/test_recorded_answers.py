"""Recorded answers of accountants for the study `practice` are those of the installed versions."""

from __future__ import annotations

import re
from importlib.metadata import version

import pandas as pd
import pytest

from dpsub.papers.practice import settings

script = pytest.importorskip("dpsub.papers.practice.ask_accountants")
LAST_PLACE = 2e-6
"""Relative tolerance for seven digits: numerical libraries of other versions round otherwise."""


def recorded() -> pd.DataFrame:
    return pd.read_csv(script.PUBLISHED, dtype=str, keep_default_na=False)


@pytest.mark.filterwarnings("ignore")  # of the accountants themselves
@pytest.mark.parametrize(
    "grid",
    [
        pytest.param(settings.GRID[::13], marks=pytest.mark.thorough),
        pytest.param(settings.GRID, marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_accountants_answer_what_is_recorded(grid: tuple) -> None:
    found, known = pd.DataFrame(script.rows(grid)), recorded()
    both = found.merge(known, "left", list(script.KEYS), suffixes=("", "_recorded"))
    assert both["printed"].astype(float).to_numpy() == pytest.approx(
        both["printed_recorded"].astype(float).to_numpy(), rel=LAST_PLACE
    )
    places = {tuple(row) for row in found[list(script.KEYS[:-1])].to_numpy()}
    of_these = [tuple(row) in places for row in known[list(script.KEYS[:-1])].to_numpy()]
    assert len(found) == sum(of_these) > len(grid)  # what is refused there is refused here


def test_the_versions_are_those_that_are_installed() -> None:
    packages = {
        match[1]: match[2]
        for note in recorded()["note"]
        if (match := re.match(r"(\S+) (\S+),", note))
    }
    assert packages == {
        name: version(name) for name in ("dp-accounting", "prv-accountant", "autodp")
    }

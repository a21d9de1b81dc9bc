"""Shuffled batches next to Poisson's epsilon: the table holds the accountant's ends, and the words
follow from it."""

from __future__ import annotations

import pandas as pd
import pytest

import dpsub
from dpsub.papers.practice.experiments import PracticeShuffling
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.report.cells import LookUp, tables_of
from tests.papers.cells import takeaways

SETTINGS = {
    "grid": [
        {"adjacency": "zero_out", "n": 6000, "m": 60, "epochs": 1},
        {"adjacency": "substitute", "n": 6000, "m": 60, "epochs": 10},
    ],
    "noise_multipliers": [0.5, 1.0],
}


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    return (
        PracticeShuffling()
        .compute(SETTINGS, variant="rigorous")
        .assign(variant="rigorous", data="")
    )


def taken(records: pd.DataFrame, dirs: OutputDirs) -> dict[str, pd.DataFrame]:
    table = artefacts.REGISTRY.get("practice/shuffling")()
    build(table, {"practice_shuffling": records}, printed_rows(table), dirs)
    return tables_of([table], dirs)


def test_the_table_holds_both_ends_and_poissons(
    records: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tables = taken(records, OutputDirs.under(tmp_path_factory.mktemp("results")))
    asked = {"noise_multiplier": 1.0, "delta": 1e-5, "adjacency": "substitute"}
    answer = dpsub.account(dpsub.Shuffle(60), 6000, epochs=10, **asked)  # type: ignore[arg-type]
    place = {"adjacency": "substitute", "m": "60", "epochs": "10", "noise_multiplier": "1"}
    lower, upper, poisson = (
        LookUp(tables).number("shuffling", f"epsilon_{name}", "rigorous", **place)
        for name in ("lower", "upper", "poisson")
    )
    assert answer.lower == pytest.approx(lower, rel=2e-3) and answer.upper == pytest.approx(
        upper, rel=2e-3
    )
    assert poisson < lower < upper
    paragraphs = takeaways("practice", tables)
    assert "in 4 of 4 settings" in paragraphs["Shuffled batches"] and len(paragraphs) == 2


def test_words_follow_planted_numbers(
    records: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    planted = records.assign(
        epsilon_poisson=[1.0, 2.0, 3.0, 4.0],
        epsilon_lower=[5.0, 1.0, 6.0, 4.0],
        epsilon_upper=[10.0, 10.0, 10.0, 10.0],
    )
    tables = taken(planted, OutputDirs.under(tmp_path_factory.mktemp("planted")))
    first, tightness = takeaways("practice", tables).values()
    assert "in 2 of 4 settings, up to 5.00 times as much" in first
    assert "| zero-out | 60 | 1 | 0.5 | 1.00 | 5.00 | 10.0 | 5.00 |" in first
    assert "| substitution | 60 | 10 | 0.5 | 3.00 | 6.00 | 10.0 | 2.00 |" in first
    assert "| 0.5 | zero-out | 2.00 to 2.00 | 5.00 to 5.00 |" in tightness
    assert "| 1 | substitution | 2.50 to 2.50 | 1.00 to 1.00 |" in tightness

"""The summary of Bun et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.papers.cells import cells, takeaways

Tables = dict[str, pd.DataFrame]


def ratios(
    statement: str, stated: tuple[float, float], consistent: tuple[float, float] = (1.0, 1.9)
) -> pd.DataFrame:
    rows = zip(("smallest_ratio", "largest_ratio"), stated, consistent, strict=True)
    return cells("statement column stated consistent", *((statement, *row) for row in rows))


def advice(topic: str, **columns: dict[str, float]) -> Tables:
    rows = [
        (topic, "1", name, column, value)
        for column, given in columns.items()
        for name, value in given.items()
    ]
    return {"advice": cells("topic epsilon design column rigorous", *rows)}


def sizes(least: float, most: float, consistent: tuple[float, float] = (1.0, 1.9)) -> Tables:
    return {"tableB": ratios("T3.1 upper", (least, most), consistent)}


def loose(*bounds: pd.DataFrame) -> Tables:
    return {"tableB": pd.concat(bounds)}


TOTALS = {"even, public": 2.0, "rounded": 5.0, "Neyman, at best": 1e9}


@pytest.mark.parametrize(
    ("heading", "tables", "words"),
    [
        (
            "Random sample sizes",
            sizes(0.5, 0.9),
            ["falls to 0.5 of", "covers that loss and is at most 1.9 times as large"],
        ),
        (
            "Random sample sizes",
            sizes(1.0, 1.2, (0.7, 1.9)),
            ["3.1 covers the exact worst-case loss", "it still falls to 0.7 of that loss"],
        ),
        # a bound that is exceeded is not called loose
        (
            "Exact losses",
            loose(ratios("T4.3", (1.0, 5.7)), ratios("T5.2", (0.9, 1.1))),
            ["| ---: |\n| Theorem 4.3 (randomised rounding) | 5.7 times the exact loss |"],
        ),
        (
            "Designs",
            advice("advice", lower={"PPS": 1.2, "all": 1.1}, upper={"PPS": 1.3, "all": 1.2}),
            ["can lose more than ε under 2 designs, most under PPS (at least 1.20)."],
        ),
        (
            "Designs",
            advice("advice", lower={"PPS": 0.1}, upper={"PPS": 0.4}),
            ["at most half of ε under PPS."],
        ),
        (
            "Designs",
            advice("advice", lower={"PPS": 0.7}, upper={"PPS": 0.9}),
            ["at most ε as far as is"],
        ),
        (
            "Allocations at equal privacy",
            advice("menu", total_at_target=TOTALS),
            [
                "| 1 | 2 | even, public | rounded | 2.5 |",
            ],
        ),
        (
            "Allocations at equal privacy",
            advice("menu", total_at_target={**TOTALS, "rounded": 1.0}),
            ["| 1 | 1 | rounded | rounded | 1 |"],
        ),
    ],
)
def test_sentences_follow_the_tables(heading: str, tables: Tables, words: list[str]) -> None:
    text = takeaways("bun", tables)[heading]
    assert all(word in text for word in words), text


def test_a_run_without_tables_says_nothing() -> None:
    assert takeaways("bun", {}) == {}

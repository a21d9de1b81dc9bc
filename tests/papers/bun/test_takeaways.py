"""The summary of Bun et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pandas as pd
import pytest

from dpsub.papers.bun import takeaways as summary
from dpsub.reproduce.report.takeaways import Tables
from tests.papers.cells import cells


def ratios(statement: str, stated: tuple[float, float], consistent: tuple[float, float]) -> pd.DataFrame:
    names = ("smallest_ratio", "largest_ratio")
    rows = [(statement, name, a, b) for name, a, b in zip(names, stated, consistent, strict=True)]
    return cells("statement column stated consistent", *rows)


@pytest.mark.parametrize(
    ("stated", "consistent", "words"),
    [
        ((0.5, 0.9), (1.0, 1.9), ("falls to 0.5 of the exact worst loss", "covers it, by at most a factor of 1.9")),
        ((1.0, 1.2), (0.7, 1.9), ("Theorem 3.1 covers the exact worst loss", "it still falls to 0.7 of it")),
    ],
)
def test_bounds_for_random_sizes(
    stated: tuple[float, float], consistent: tuple[float, float], words: tuple[str, str]
) -> None:
    text = summary.random_sizes(Tables({"tableB": ratios("T3.1 upper", stated, consistent)}))
    assert all(word in text for word in words)


def test_a_bound_that_is_exceeded_is_not_called_loose() -> None:
    frame = pd.concat([ratios("T4.3", (1.0, 5.7), (1.0, 3.9)), ratios("T5.2", (0.9, 1.1), (1.0, 1.1))])
    text = summary.loose(Tables({"tableB": frame}))
    assert "at most T4.3 5.7 times it" in text
    assert "T5.2" not in text


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [(1.2, 1.3, "can lose more than epsilon with: PPS (1.2)."), (0.1, 0.4, "at most half of it with: PPS."),
     (0.7, 0.9, "loses at most epsilon as far as is known")],
)  # fmt: skip
def test_designs_are_sorted_by_their_loss(lower: float, upper: float, words: str) -> None:
    rows = [("advice", "1", "PPS", "lower", lower), ("advice", "1", "PPS", "upper", upper)]
    assert words in summary.designs(Tables({"advice": cells("topic epsilon design column rigorous", *rows)}))


@pytest.mark.parametrize(
    ("public", "private", "words"),
    [(2.0, 5.0, "*even, public* has the smallest error (2), the best rule that needs no public allocation, *rounded*, "
      "2.5 times it"), (5.0, 2.0, "*rounded* has the smallest error (2). The relation")],
)  # fmt: skip
def test_allocations_are_compared_by_their_error(public: float, private: float, words: str) -> None:
    rows = [("menu", "1", name, "total_at_target", value) for name, value in (
        ("even, public", public), ("rounded", private), ("Neyman, at best", 1e9))]  # fmt: skip
    text = summary.allocations(Tables({"advice": cells("topic epsilon design column rigorous", *rows)}))
    assert words.removesuffix(". The relation") in text


def test_a_run_without_tables_says_nothing() -> None:
    assert summary.TAKEAWAYS.sentences(Tables({})) == []

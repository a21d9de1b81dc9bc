"""The summary of Balle et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pandas as pd
import pytest

from dpsub.papers.balle.numbers import TABLE1
from tests.papers.cells import cells, takeaways


def test_statements_are_counted() -> None:
    """Statements are counted by their verdicts, as everywhere: a statement that the paper's formula
    gives may be refuted all the same."""
    rows = [
        ("B016", "holds", 1, 1.0, "proved", ""),
        ("B022", "holds", 0, 1.0, "fails", "BL3"),
        ("B024", "holds", 1, 0.0, "refuted", "BL5"),
    ]
    claims = cells("claim column stated consistent verdict erratum", *rows)
    assert takeaways("balle", {"claims": claims})["Statements"] == (
        "Of 3 statements checked, 2 fail as printed; 1 of the 2 with a corrected form hold in "
        "that form (BL3, BL5)."
    )


def test_a_theorem_that_fails_is_named() -> None:
    def said(*holds: float) -> str:
        rows = [(row, "holds", value) for row, value in zip(TABLE1, holds, strict=True)]
        return takeaways("balle", {"claims": cells("claim column stated", *rows)})["The bounds"]

    assert "exceeds the bound of Theorems 8, 9, 10, 11 and 14." in said(1, 1, 1, 1, 1)
    assert (
        "Theorems 8, 10, 11 and 14. Some mechanism exceeds that of Theorem 9 as printed."
    ) in said(1, 0, 1, 1, 1)


def optima(*ratios: tuple[str, float]) -> pd.DataFrame:
    """Return the optima over their bounds, by theorem."""
    rows = [
        (name, "4", "0.1", "", "1", "0", "0.5", "ratio_to_bound", ratio) for name, ratio in ratios
    ]
    return cells("theorem n rate m epsilon0 delta0 epsilon column rigorous", *rows)


@pytest.mark.parametrize(
    ("attained", "least", "row"),
    [
        (1 - 1e-9, 1 - 1e-9, "| Theorem 14 | Poisson, substitution | 1.00 | 1.00 |"),
        (0.9956, 0.8, "| Theorem 14 | Poisson, substitution | 0.995 | 0.800 |"),
    ],
)
def test_shares_of_the_bounds(attained: float, least: float, row: str) -> None:
    theorems = ("Theorem 14", "Theorem 2 given the size")
    shares = cells(
        "theorem sampler base_relation relation column rigorous",
        *(
            (name, "poisson", "substitute", "substitute", "attained_at_positive_epsilon", attained)
            for name in theorems
        ),
    )
    optimum = optima(*((name, ratio) for name in theorems for ratio in (1.0, least)))
    text = takeaways("balle", {"table1": shares, "optimum": optimum})["Tightness"]
    assert row in text and "| our bound by sample size | Poisson" in text


@pytest.mark.parametrize(
    ("by_size", "printed", "words"),
    [
        (1.0, 0.8, "equals the largest loss on these designs. That of Theorem 14 is up to 1.25"),
        (0.9, 0.8, "is at most 1.11 times the largest loss"),
        (0.8, 0.9, ""),
    ],
)
def test_the_optimum_decides_which_bound_is_tight(
    by_size: float, printed: float, words: str
) -> None:
    optimum = optima(
        ("Theorem 2 given the size", by_size), ("Theorem 14", printed), ("Theorem 14", 1.0)
    )
    paragraphs = takeaways("balle", {"optimum": optimum})
    assert words in paragraphs.get("Poisson sampling, one record substituted", "")
    assert ("Poisson sampling, one record substituted" in paragraphs) == bool(words)


def test_a_run_without_tables_says_nothing() -> None:
    assert takeaways("balle", {}) == {}

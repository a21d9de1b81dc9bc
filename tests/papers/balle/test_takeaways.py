"""The summary of Balle et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pytest

from dpsub.papers.balle.numbers import TABLE1
from tests.papers.cells import cells, takeaways


def test_statements_are_counted() -> None:
    """By their verdicts, as everywhere: a statement that the paper's formula gives may be refuted
    all the same."""
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


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.0, "attains the bound of Theorem 8 and Theorem 14."), (0.9, "Theorem 14 (90.0 % of it)")],
)
def test_attained_bounds(ratio: float, words: str) -> None:
    rows = [
        (theorem, "poisson", "a", "a", "attained_at_positive_epsilon", value)
        for theorem, value in (("Theorem 8", 1.0), ("Theorem 14", ratio))
    ]
    table = cells("theorem sampler base_relation relation column rigorous", *rows)
    assert words in takeaways("balle", {"table1": table})["Attained"]


@pytest.mark.parametrize(
    ("by_size", "printed", "words", "loose"),
    [
        (
            1.0,
            0.8,
            "equals the largest loss on these designs, whereas that of Theorem 14",
            "Theorem 14 (down to 0.80",
        ),
        (0.9, 0.8, "at most 1.11 times the largest loss", "Theorem 2 given the size (down to 0.90"),
        (0.8, 0.9, "", "0.90 of it"),
    ],
)
def test_the_optimum_decides_which_bound_is_tight(
    by_size: float, printed: float, words: str, loose: str
) -> None:
    rows = [
        (name, "4", "0.1", "", "1", "0", "0.5", "ratio_to_bound", ratio)
        for name, ratio in (
            ("Theorem 2 given the size", by_size),
            ("Theorem 14", printed),
            ("Theorem 14", 1.0),
        )
    ]
    optimum = cells("theorem n rate m epsilon0 delta0 epsilon column rigorous", *rows)
    paragraphs = takeaways("balle", {"optimum": optimum})
    assert words in paragraphs.get("Poisson sampling, one record substituted", "")
    assert ("Poisson sampling, one record substituted" in paragraphs) == bool(words)
    tight = paragraphs["Tightness by design"]
    assert loose in tight
    assert ("everywhere for Theorem 2 given the size; it stays" in tight) == (by_size == 1)


def test_a_run_without_tables_says_nothing() -> None:
    assert takeaways("balle", {}) == {}

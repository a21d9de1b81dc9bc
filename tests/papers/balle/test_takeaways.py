"""The summary of Balle et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pytest

from dpsub.papers.balle import takeaways as summary
from dpsub.reproduce.report.takeaways import Tables, counted_claims
from tests.papers.cells import cells


def claims(*holds: float) -> Tables:
    rows = [(row, "holds", value, 1.0, "" if value else "BL3") for row, value in zip(
        ("B016", "B018", "B020", "B022", "B024"), holds, strict=True)]  # fmt: skip
    return Tables({"claims": cells("claim column stated consistent erratum", *rows)})


def test_statements_are_counted() -> None:
    assert counted_claims(claims(1, 1, 1, 0, 1)) == (
        "**Statements.** Of 5 statements that were put to a computation 1 fail as printed; 1 of the 1 that have a "
        "corrected form hold with it (BL3)."
    )


def test_a_theorem_that_fails_is_named() -> None:
    assert "exceeds the bound of Theorems 8, 9, 10, 11 and 14." in summary.bounds(claims(1, 1, 1, 1, 1))
    text = summary.bounds(claims(1, 0, 1, 1, 1))
    assert "Theorems 8, 10, 11 and 14. Some mechanism exceeds that of Theorem 9 as printed." in text


@pytest.mark.parametrize(("ratio", "words"), [(1.0, "attains Theorem 8 and Theorem 14."), (0.9, "(90.0 %)")])
def test_attained_bounds(ratio: float, words: str) -> None:
    heads = "theorem sampler base_relation relation column rigorous"
    name = "attained_at_positive_epsilon"
    found = {"Theorem 8": 1.0, "Theorem 14": ratio}
    rows = [(theorem, "poisson", "a", "a", name, value) for theorem, value in found.items()]
    table = cells(heads, *rows)
    assert words in summary.attained(Tables({"table1": table}))


def optimum(by_size: float, printed: float) -> Tables:
    heads = "theorem n rate m epsilon0 delta0 epsilon column rigorous"
    rows = [(name, "4", "0.1", "", "1", "0", "0.5", "ratio_to_bound", ratio) for name, ratio in (
        ("Theorem 2 given the size", by_size), ("Theorem 14", printed), ("Theorem 14", 1.0))]  # fmt: skip
    return Tables({"optimum": cells(heads, *rows)})


def test_the_optimum_decides_which_bound_is_tight() -> None:
    text = summary.tight(optimum(1.0, 0.8))
    assert "everywhere for Theorem 2 given the size; it stays" in text
    assert "Theorem 14 (down to 0.80 of it)" in text
    assert "is the optimum of these designs, where Theorem 14 is up to 1.25 times" in (
        summary.poisson_substitution(optimum(1.0, 0.8))
    )
    assert "at most 1.11 times the optimum" in summary.poisson_substitution(optimum(0.9, 0.8))
    assert summary.poisson_substitution(optimum(0.8, 0.9)) == ""


def test_a_run_without_tables_says_nothing() -> None:
    assert summary.TAKEAWAYS.sentences(Tables({})) == []

"""The summaries of Balle et al. and Bun et al.: numbers from the tables, wording that turns with them."""

from __future__ import annotations

import pandas as pd
import pytest

from dpsub.papers.balle import takeaways as balle_summary
from dpsub.papers.bun import takeaways as bun_summary
from dpsub.reproduce.report import REGISTRY
from dpsub.reproduce.report.takeaways import Tables, counted_claims


def cells(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    """Return a table of cells as it is read: texts, and numbers under the names of variants."""
    frame = pd.DataFrame(rows, columns=columns.split())
    for name, default in (("printed", ""), ("verdict", ""), ("erratum", ""), ("note", "")):
        if name not in frame:
            frame[name] = default
    return frame


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
    assert "exceeds the bound of Theorems 8, 9, 10, 11 and 14." in balle_summary.bounds(claims(1, 1, 1, 1, 1))
    text = balle_summary.bounds(claims(1, 0, 1, 1, 1))
    assert "Theorems 8, 10, 11 and 14. Some mechanism exceeds that of Theorem 9 as printed." in text


@pytest.mark.parametrize(("ratio", "words"), [(1.0, "attains Theorem 8 and Theorem 14."), (0.9, "(90.0 %)")])
def test_attained_bounds(ratio: float, words: str) -> None:
    heads = "theorem sampler base_relation relation column rigorous"
    name = "attained_at_positive_epsilon"
    found = {"Theorem 8": 1.0, "Theorem 14": ratio}
    rows = [(theorem, "poisson", "a", "a", name, value) for theorem, value in found.items()]
    table = cells(heads, *rows)
    assert words in balle_summary.attained(Tables({"table1": table}))


def optimum(by_size: float, printed: float) -> Tables:
    heads = "theorem n rate m epsilon0 delta0 epsilon column rigorous"
    rows = [(name, "4", "0.1", "", "1", "0", "0.5", "ratio_to_bound", ratio) for name, ratio in (
        ("Theorem 2 given the size", by_size), ("Theorem 14", printed), ("Theorem 14", 1.0))]  # fmt: skip
    return Tables({"optimum": cells(heads, *rows)})


def test_the_optimum_decides_which_bound_is_tight() -> None:
    text = balle_summary.tight(optimum(1.0, 0.8))
    assert "everywhere for Theorem 2 given the size; it stays" in text
    assert "Theorem 14 (down to 0.80 of it)" in text
    assert "is the optimum of these designs, where Theorem 14 is up to 1.25 times" in (
        balle_summary.poisson_substitution(optimum(1.0, 0.8))
    )
    assert "at most 1.11 times the optimum" in balle_summary.poisson_substitution(optimum(0.9, 0.8))
    assert balle_summary.poisson_substitution(optimum(0.8, 0.9)) == ""


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
    text = bun_summary.random_sizes(Tables({"tableB": ratios("T3.1 upper", stated, consistent)}))
    assert all(word in text for word in words)


def test_a_bound_that_is_exceeded_is_not_called_loose() -> None:
    frame = pd.concat([ratios("T4.3", (1.0, 5.7), (1.0, 3.9)), ratios("T5.2", (0.9, 1.1), (1.0, 1.1))])
    text = bun_summary.loose(Tables({"tableB": frame}))
    assert "at most T4.3 5.7 times it" in text
    assert "T5.2" not in text


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [(1.2, 1.3, "can lose more than epsilon with: PPS (1.2)."), (0.1, 0.4, "at most half of it with: PPS."),
     (0.7, 0.9, "loses at most epsilon as far as is known")],
)  # fmt: skip
def test_designs_are_sorted_by_their_loss(lower: float, upper: float, words: str) -> None:
    rows = [("advice", "1", "PPS", "lower", lower), ("advice", "1", "PPS", "upper", upper)]
    assert words in bun_summary.designs(Tables({"advice": cells("topic epsilon design column rigorous", *rows)}))


@pytest.mark.parametrize(
    ("public", "private", "words"),
    [(2.0, 5.0, "*even, public* has the smallest error (2), the best rule that needs no public allocation, *rounded*, "
      "2.5 times it"), (5.0, 2.0, "*rounded* has the smallest error (2). The relation")],
)  # fmt: skip
def test_allocations_are_compared_by_their_error(public: float, private: float, words: str) -> None:
    rows = [("menu", "1", name, "total_at_target", value) for name, value in (
        ("even, public", public), ("rounded", private), ("Neyman, at best", 1e9))]  # fmt: skip
    text = bun_summary.allocations(Tables({"advice": cells("topic epsilon design column rigorous", *rows)}))
    assert words.removesuffix(". The relation") in text


@pytest.mark.parametrize("paper", ["balle", "bun"])
def test_a_run_without_tables_says_nothing(paper: str) -> None:
    assert REGISTRY.get(paper)().sentences(Tables({})) == []

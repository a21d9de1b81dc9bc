"""Judged answers of other accountants: as expected when they are judged again, and distinguished in
planted tables."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from dpsub.errors import ArgumentError
from dpsub.papers.practice.experiments import PracticeAnswers
from dpsub.papers.practice.figures import AnswersOverAttack
from dpsub.papers.practice.numbers import answers
from dpsub.papers.practice.settings import ACCOUNTANTS, GRID, AccountingQuestion
from dpsub.reproduce import artefacts, published, recording, verdicts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.figures import styled
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report import cited
from dpsub.reproduce.report.cells import LookUp, tables_of
from tests.papers.cells import prose

Tables = dict[str, pd.DataFrame]
PAPERS = Path(__file__).resolve().parents[3] / "src/dpsub/papers"
SAMPLE = [GRID[7], GRID[24], GRID[30], GRID[45], GRID[48], GRID[53]]


@pytest.mark.parametrize(
    ("claimed", "of_upper", "of_lower"),
    [
        (0.9, 0.0, 1.0),
        (1.0, math.nan, 1.0),
        (1.5, math.nan, math.nan),
        (2.0, 1.0, math.nan),
        (2.1, 1.0, 0.0),
    ],
)
def test_a_bound_is_judged_by_the_end_that_can_decide_it(
    claimed: float, of_upper: float, of_lower: float
) -> None:
    assert recording.judged(claimed, 1.0, 2.0) == pytest.approx(of_upper, nan_ok=True)
    assert recording.judged(claimed, 1.0, 2.0, below=False) == pytest.approx(of_lower, nan_ok=True)


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    grid = [setting.model_dump() for setting in SAMPLE]
    return (
        PracticeAnswers()
        .compute({"grid": grid}, variant="rigorous")
        .assign(variant="rigorous", data="")
    )


@pytest.fixture(scope="module")
def tables(
    records: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tables, pd.DataFrame]:
    """Return the tables that a run makes of the sample, and the comparison."""
    dirs, table = (
        OutputDirs.under(tmp_path_factory.mktemp("results")),
        artefacts.REGISTRY.get("practice/accountants")(),
    )
    made = build(table, {"practice_answers": records}, printed_rows(table), dirs)
    return tables_of([table], dirs), verdicts.read(made["comparison"])


def test_the_sample_has_its_expected_verdicts(
    tables: tuple[Tables, pd.DataFrame], records: pd.DataFrame
) -> None:
    expected = verdicts.read_expected(PAPERS)
    both = tables[1].merge(expected, on=list(verdicts.KEY), suffixes=("", "_expected"))
    found = both[both["value"].notna() | (both["verdict"] == "open")]
    assert len(found) == 2 * len(records) > 40  # as stated, and rigorous
    assert (found["verdict"] == found["verdict_expected"]).all()
    assert set(found["verdict"]) == {"proved", "refuted"}


def test_every_setting_of_the_grid_has_answers() -> None:
    known = published.load("practice", "accountants")
    assert (
        len(GRID)
        == len(set(GRID))
        == len(known[list(AccountingQuestion.model_fields)].drop_duplicates())
        == 60
    )
    assert set(known["accountant"]) == set(ACCOUNTANTS)


def test_what_is_said_follows_from_the_verdicts(
    tables: tuple[Tables, pd.DataFrame], records: pd.DataFrame
) -> None:
    found = answers(LookUp(tables[0]))
    counts = Counter(zip(found["accountant"], found["verdict"], strict=True))
    assert len(found) == len(records)
    told = prose("practice", tables[0])
    said = {takeaway.heading: takeaway.text for takeaway in told.takeaways()}
    for name in set(found["accountant"]):
        numbers = [counts[name, word] for word in ("proved", "refuted", "open")]
        cells = " | ".join(map(str, [ACCOUNTANTS[name], sum(numbers), *numbers]))
        assert f"\n| {name} | {cells} | " in said["Other accountants"]
    erratum = (
        "| 128 samples of 16 of 1,000 records without replacement | 1 | 10⁻⁶ | 2.646 | 10.904 |"
    )
    assert erratum in said["Noise in another unit"]
    best = told.headline("best")
    assert best is not None and "dp-accounting PLD" in best.text.partition(".")[0]
    assert "dp-accounting RDP answers ε = " in best.text
    assert told.headline("worst") is None  # of shuffled batches
    empty = prose("practice", {})
    assert empty.takeaways() == []
    assert empty.headline("worst") is None and empty.headline("best") is None


def test_each_row_of_the_figure_counts_its_answers_or_says_that_there_are_none(
    records: pd.DataFrame,
) -> None:
    with styled():
        figure, drawn = AnswersOverAttack().draw({"practice_answers": records})
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert sum(int(text) for text in texts if text.isdigit()) == len(drawn) == len(records)
    counted = sum(text.isdigit() for text in texts) // 3
    rows = sum(len(axes.get_yticks()) for axes in figure.axes)
    assert counted + texts.count("no answer") == rows


def test_the_page_lists_every_refuted_answer() -> None:
    kept = cited.kept_of(papers()["practice"])
    assert kept is not None
    said = {takeaway.heading: takeaway.text for takeaway in prose("practice", kept).takeaways()}
    listed = [
        row
        for heading in ("Noise in another unit", "Estimates below the attained value")
        for row in re.findall(r"^\| [\w,]+ (?:samples?|sums?) .*\|$", said[heading], re.MULTILINE)
    ]
    expected = verdicts.read_expected(PAPERS)
    judged = expected.query("artefact == 'accountants' and variant == 'rigorous'")
    assert len(listed) == (judged["verdict"] == "refuted").sum() > 0


@pytest.mark.parametrize(
    "fields", [{"sampler": "poisson"}, {"sampler": "wor", "m": 5}, {"sampler": "wor", "rate": 0.1}]
)
def test_a_setting_must_be_one(fields: dict) -> None:
    with pytest.raises(
        (ArgumentError, ValueError), match="poisson needs a rate above 0 and wor 0 < m <= n"
    ):
        AccountingQuestion(noise_multiplier=1.0, steps=1, delta=1e-5, **fields)

"""Recorded answers of both packages, how they are recorded and judged, and planted faults."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping

import pandas as pd
import pytest

from dpsub.papers.feldman import ask_packages
from dpsub.papers.feldman.claims import FeldmanClaims
from dpsub.papers.feldman.experiments import Answers, Bounds
from dpsub.papers.feldman.settings import (
    ASKED,
    LOWER,
    PLD_ACCOUNTING,
    QUESTIONS,
    RANDOM_ALLOCATION,
    AllocationQuestion,
)
from dpsub.reproduce import published, recording
from tests.papers.cells import truth_of

RECORDED = published.load("feldman", "answers")


def test_each_question_is_answered() -> None:
    keys = ["package", "method", *ASKED]
    assert not RECORDED.duplicated(keys).any()
    for question in QUESTIONS:
        wanted = [published.key_text(getattr(question, name)) for name in ASKED]
        found = RECORDED[(RECORDED[[*ASKED]] == wanted).all(axis=1)].groupby("package")["method"]
        answers = {package: {*methods} for package, methods in found}
        assert "direct" in answers[RANDOM_ALLOCATION]
        # what takes the other package many minutes is not asked
        short = question.k * question.t <= 2048
        assert answers.get(PLD_ACCOUNTING, set()) == ({"upper", LOWER} if short else set())


def test_steps_are_a_multiple_of_the_participations() -> None:
    with pytest.raises(ValueError, match=r"t must be a multiple of k, .*, got t = 10, k = 3; use"):
        AllocationQuestion(t=10, k=3, noise=1.0, delta=1e-5)


def test_answers_are_rounded_in_favour_of_the_package() -> None:
    code = "answers = {'upper': noise + 1/3, 'lower': noise + 2/3, 'analytic': float('inf')}"
    rows = list(ask_packages.rows(PLD_ACCOUNTING, code, sys.executable))
    assert len(rows) == 2 * len(QUESTIONS)
    upper, lower = rows[:2]
    noise = QUESTIONS[0].noise
    assert noise + 1 / 3 < float(upper["printed"]) < noise + 1 / 3 + 1e-6
    assert noise + 2 / 3 - 1e-6 < float(lower["printed"]) < noise + 2 / 3
    assert [row["erratum"] for row in rows[-2:]] == ["", "FS1"]
    assert json.loads(upper["t"]) == QUESTIONS[0].t


def test_an_answer_is_proved_refuted_or_open() -> None:
    assert recording.judged(2.0, 1.0, 2.0, below=True) == 1
    assert recording.judged(0.9, 1.0, 2.0, below=True) == 0
    assert math.isnan(recording.judged(1.5, 1.0, 2.0, below=True))
    assert recording.judged(1.0, 1.0, 2.0, below=False) == 1
    assert recording.judged(2.1, 1.0, 2.0, below=False) == 0
    assert math.isnan(recording.judged(1.5, 1.0, 2.0, below=False))


ENDS = {"allocation": (1.0, 1.01), "epochs": (1.1, 1.11), "poisson": (1.2, 1.21)}
CLAIMED = {
    (RANDOM_ALLOCATION, "recursive"): 1.3,
    (RANDOM_ALLOCATION, "decomposition"): 1.15,
    (RANDOM_ALLOCATION, "direct"): 1.4,
    (RANDOM_ALLOCATION, LOWER): 0.8,
    (PLD_ACCOUNTING, "upper"): 1.12,
    (PLD_ACCOUNTING, LOWER): 0.99,
}


def made_up(claimed: Mapping[tuple[str, str], float]) -> dict[str, pd.DataFrame]:
    """Return records of three questions, with the same bounds and these answers to each."""
    ends = {
        f"{name}_{end}": value
        for name, pair in ENDS.items()
        for end, value in zip(("lower", "upper"), pair, strict=True)
    }
    asked = [{"t": 8, "k": k, "noise": 1.0, "delta": 1e-5, **ends} for k in (1, 2, 4)]
    answers = [
        {
            **one,
            "package": package,
            "method": method,
            "claimed": value,
            "holds": recording.judged(value, *ENDS["allocation"], below=method != LOWER),
        }
        for one in asked
        for (package, method), value in claimed.items()
    ]
    return {Bounds.name: pd.DataFrame(asked), Answers.name: pd.DataFrame(answers)}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("by_poisson", {1.3: 1, 1.005: math.nan, 0.9: 0}),
        ("nearly_tight", {1.9: 1, 2.01: math.nan, 2.1: 0}),
        ("not_tight", {1.15: 1, 1.005: math.nan, 1.0: 0}),
        ("close", {2.3: 1, 2.41: math.nan, 3.0: 0, 0.5: 0}),
        ("lower_of_several", {0.99: 1, 1.005: math.nan, 1.05: 0}),
    ],
)
def test_planted_answers_turn_the_verdicts(name: str, values: dict[float, float]) -> None:
    for value, expected in values.items():
        planted = made_up(dict.fromkeys(CLAIMED, value))
        assert truth_of(FeldmanClaims.claims, name, planted) == pytest.approx(expected, nan_ok=True)


def test_techniques_that_are_never_best_are_no_improvement() -> None:
    frames = made_up(CLAIMED)
    assert truth_of(FeldmanClaims.claims, "improve", frames) == 0
    answers = frames[Answers.name]
    direct = (answers["method"] == "direct") & (answers["k"] > 1)
    # decomposition says nothing of several participations
    frames[Answers.name] = answers[(answers["method"] != "decomposition") | (answers["k"] == 1)]
    frames[Answers.name].loc[direct, "claimed"] = 1.2
    assert truth_of(FeldmanClaims.claims, "improve", frames) == 0
    another = frames[Answers.name].assign(t=9)
    frames[Answers.name] = pd.concat([frames[Answers.name], another], ignore_index=True)
    assert truth_of(FeldmanClaims.claims, "improve", frames) == 1


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("as_good", "allocation", {(1.0, 1.01): 1, (1.0, 1.205): math.nan, (1.3, 1.4): 0}),
        ("epochs_above", "epochs", {(1.1, 1.11): 1, (1.005, 1.02): math.nan, (0.8, 0.9): 0}),
    ],
)
def test_planted_bounds_turn_the_verdicts(
    name: str, column: str, values: dict[tuple[float, float], float]
) -> None:
    for (lower, upper), expected in values.items():
        frames = made_up(CLAIMED)
        frame = frames[Bounds.name]
        planted = frame.assign(**{f"{column}_lower": lower, f"{column}_upper": upper})
        assert truth_of(FeldmanClaims.claims, name, {Bounds.name: planted}) == pytest.approx(
            expected, nan_ok=True
        )

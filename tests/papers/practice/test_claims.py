"""Statements of others about shuffled epochs, judged by our bounds and in planted records."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dpsub.papers.practice.claims import (
    STATEMENTS,
    above_brackets,
    variation,
    within_brackets,
)
from dpsub.papers.practice.experiments import PracticeStatements
from dpsub.papers.practice.settings import FIVE_EPOCHS, LONG_EPOCH


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    return PracticeStatements().compute({}, variant="stated")


def test_a_second_manuscripts_bounds_agree_with_ours(records: pd.DataFrame) -> None:
    frames = {STATEMENTS: records}
    assert above_brackets(frames).holds == 1.0
    assert within_brackets(frames).holds
    # Theirs are proved under zero-out; ours must not exclude that epsilon lies between them.
    for release in FIVE_EPOCHS:
        own = records[records["noise_multiplier"].eq(release.noise_multiplier) & (records["m"] > 1)]
        assert own["lower"].item() < release.most and release.least < own["upper"].item()


def test_the_statement_about_a_long_epoch_is_open(records: pd.DataFrame) -> None:
    assert math.isnan(variation({STATEMENTS: records}).holds)
    (own,) = records[records["n"] == LONG_EPOCH.n].to_dict("records")
    assert own["lower"] < LONG_EPOCH.most < own["upper"]


@pytest.mark.parametrize(
    ("lower", "upper", "above", "within", "small"),
    [
        (0.0, 0.001, 0.0, True, 1.0),
        (9.0, 10.0, 1.0, False, 0.0),
        (0.0, 10.0, math.nan, True, math.nan),
    ],
)
def test_each_verdict_is_possible(
    records: pd.DataFrame, lower: float, upper: float, above: float, within: bool, small: float
) -> None:
    frames = {STATEMENTS: records.assign(lower=lower, upper=upper)}
    assert above_brackets(frames).holds == pytest.approx(above, nan_ok=True)
    assert within_brackets(frames).holds is within
    assert variation(frames).holds == pytest.approx(small, nan_ok=True)

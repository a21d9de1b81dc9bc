"""The cost of choosing the settings."""

from __future__ import annotations

import math

import pytest

from dpsub.papers.tournament import evidence


@pytest.mark.parametrize("distribution", ["geometric", "poisson"])
def test_the_choice_costs_more_than_one_run_and_less_than_all(distribution: str) -> None:
    target = 0.5
    lower = evidence.best_at_least(target, distribution)
    upper = evidence.best_at_most(target, distribution)
    assert target < lower < upper < 1.05 * lower
    assert upper < evidence.all_released(target)


def test_releasing_all_grows_like_the_root_of_their_number() -> None:
    """With Gaussian noise the cost is well above the root, as rare losses count, and far below the
    number."""
    root = math.sqrt(evidence.runs())
    assert root / 1.5 < evidence.all_released(0.5) / 0.5 < 1.5 * root

"""More effort is never worse, both bounds always exist, and the reasons that are given are true."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpsub
from tests.few import few

S4: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 200}
S1: dict[str, Any] = {"noise_multiplier": 1.0}
QUESTIONS: list[tuple[Any, int | None, dict[str, Any]]] = [
    (dpsub.Wor(20), 1000, {**S4, "delta": 1e-5}),
    (dpsub.MustOW(50, 20), 1000, {**S4, "delta": 1e-5}),
    (dpsub.Shuffle(10), 10_000, {"noise_multiplier": 4.0, "epochs": 2, "delta": 1e-5}),
    (dpsub.Poisson(0.02), None, {**S1, "steps": 1000, "delta": 1e-6}),
    (dpsub.Wr(20), 1000, {**S4, "epsilon": 0.5}),
    (dpsub.MustWW(50, 20), 1000, {**S1, "steps": 1000, "delta": 1e-8}),
    (dpsub.Wor(20), 1000, {**S4, "delta": 1e-5, "adjacency": "zero_out"}),
    (dpsub.RandomAllocation(100, 3), None, {**S1, "epochs": 1, "delta": 1e-5}),
    (dpsub.RandomAllocation(60, 1), None, {**S1, "epochs": 5, "delta": 1e-5}),
    (dpsub.TruncatedPoisson(0.02, 25), 1000, {**S1, "steps": 100, "delta": 1e-5}),
    (dpsub.CyclicPoisson(0.1, 10), 10_000, {**S1, "epochs": 4, "delta": 1e-5}),
    (dpsub.Poisson(0.02), None, {**S1, "steps": 10, "epsilon": [0.5, 1.0, 4.0]}),
]

LEFT_BY_THEORY: list[tuple[Any, int | None, dict[str, Any]]] = [
    (
        dpsub.RandomAllocation(48, 5),
        None,
        {"noise_multiplier": 0.6, "epochs": 1, "delta": 1e-8, "adjacency": "zero_out"},
    ),
    (dpsub.MustWW(63, 125), 1000, {"noise_multiplier": 4.0, "steps": 80, "delta": 1e-8}),
    (dpsub.MustOW(2049, 4096), 50_000, {"noise_multiplier": 1.5, "steps": 366, "delta": 1e-8}),
]
"""Questions that the budget ends, and whose width more of it would not change."""


@pytest.mark.parametrize(
    ("sampler", "n", "asked"), few(QUESTIONS[2:] + QUESTIONS[:2], most=3, more=4)
)
def test_ends_are_nested_as_effort_grows(
    sampler: Any, n: int | None, asked: dict[str, Any]
) -> None:
    asked = {"adjacency": str(sampler.relation), **asked}
    efforts = (1e-9, 0.1, 0.3, 1.0, 4.0)
    found = [dpsub.account(sampler, n, **asked, effort=e, quick=False) for e in efforts]
    for less, more in pairwise(found):
        assert np.all(less.lower <= more.lower) and np.all(more.upper <= less.upper)
    trivial = 1.0 if "epsilon" in asked else math.inf
    assert np.all(found[0].lower > 0) and np.all(found[0].upper < trivial)


@pytest.mark.parametrize(
    ("sampler", "n", "asked"),
    few(QUESTIONS + LEFT_BY_THEORY, most=0, more=len(QUESTIONS)),
)
def test_theory_is_the_reason_only_where_more_effort_changes_nothing(
    sampler: Any, n: int | None, asked: dict[str, Any]
) -> None:
    asked = {"adjacency": str(sampler.relation), **asked}
    found = dpsub.account(sampler, n, **asked, effort=1.0, quick=False)
    if not found.width_reason.startswith(("theory", "numerics")):
        return
    more = dpsub.account(sampler, n, **asked, effort=16.0, quick=False)
    assert more.upper == pytest.approx(found.upper, rel=0.01)
    assert more.lower == pytest.approx(found.lower, rel=0.01)

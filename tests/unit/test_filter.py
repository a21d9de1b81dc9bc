"""Releases chosen from past outputs: no choice of the next rate and noise exceeds the target, by
quadrature over all outputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpsub

Y = np.linspace(-40.0, 60.0, 200_001)
WIDTH = Y[1] - Y[0]
CHOICES = ((0.9, 0.8), (0.3, 1.5), (0.05, 0.6), (1.0, 4.0))


def densities(rate: float, s: float) -> tuple[np.ndarray, np.ndarray]:
    base = norm.pdf(Y, 0, s)
    return (1 - rate) * base + rate * norm.pdf(Y, 1, s), base


def of_profile(rate: float, s: float, log_orders: np.ndarray, swapped: bool) -> np.ndarray:
    """Return H_a of one step at many orders, as a table."""
    pair = densities(rate, s)
    p, q = pair[::-1] if swapped else pair
    return np.array([np.maximum(p - math.exp(x) * q, 0).sum() * WIDTH for x in log_orders])


@pytest.mark.parametrize("order", [3, 6])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_worst_second_step_for_each_first_output(order: int, swapped: bool) -> None:
    """The filter allows a choice for the second step whatever the first output is; an adversary
    takes the one that is worst at the order that is left."""
    epsilon, delta = 2.5, 0.02
    budget = dpsub.Filter(epsilon=epsilon, delta=delta, order=order)
    first = (0.4, 1.3)
    budget.record(dpsub.Poisson(first[0]), noise_multiplier=first[1])
    allowed = [
        (rate, s) for rate, s in CHOICES if budget.allows(dpsub.Poisson(rate), noise_multiplier=s)
    ]
    assert 0 < len(allowed) < len(CHOICES)
    at = np.linspace(-30, 30, 601)
    worst = np.max([of_profile(rate, s, at, swapped) for rate, s in allowed], axis=0)
    pair = densities(*first)
    p, q = pair[::-1] if swapped else pair
    seen = (p > 0) & (q > 0)
    left = epsilon + np.log(q[seen]) - np.log(p[seen])
    # profiles fall: the value at the next smaller order is above
    value = worst[np.clip(np.floor((left + 30) / 0.1).astype(int), 0, 600)]
    assert 0 < float((p[seen] * value).sum() * WIDTH) <= delta


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "substitute"])
def test_what_is_spent_is_the_moment(relation: str) -> None:
    order, rate, s = 5, 0.2, 1.5
    epsilon = 9.0
    budget = dpsub.Filter(epsilon=epsilon, delta=1e-3, order=order, adjacency=relation)
    budget.record(dpsub.Poisson(rate), noise_multiplier=s, steps=2)
    p, q = densities(rate, s)
    if relation == "substitute":
        q = (1 - rate) * norm.pdf(Y, 0, s) + rate * norm.pdf(Y, -1, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(q > 0, p / q, 0.0)
    moment = 2 * math.log(float((q * ratio**order).sum() * WIDTH))
    log_budget = math.log(1e-3) + (order - 1) * epsilon - conversion(order)
    assert budget.spent * log_budget >= moment
    if relation != "substitute":  # where moments are bounded by those of larger distances
        assert budget.spent * log_budget <= moment * 1.01


def conversion(order: int) -> float:
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def test_a_run_fixed_in_advance_needs_no_less() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "steps": 10}
    plan = dpsub.Poisson(0.01)
    budget = dpsub.Filter.planned(plan, **asked, epsilon=2.0, delta=1e-5)
    steps = 0
    while budget.allows(plan, **asked):
        budget.record(plan, **asked)
        steps += 10
    known = dpsub.account(plan, noise_multiplier=1.0, steps=steps, delta=1e-5)
    assert 1.5 < known.upper < 2.0 and 0.98 < budget.spent <= 1
    # no other order would have allowed more of what was planned
    for order in (budget.order - 2, budget.order + 2):
        other = dpsub.Filter(epsilon=2.0, delta=1e-5, order=order)
        assert not other.allows(plan, noise_multiplier=1.0, steps=steps + 10)
    with pytest.raises(dpsub.ArgumentError, match="within epsilon = 2"):
        budget.record(plan, **asked)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: dpsub.Filter(epsilon=1, delta=1e-5, order=1), "order must be at least 2"),
        (lambda: dpsub.Filter(epsilon=1, delta=1e-5, order=18), "use 17"),
        (lambda: dpsub.Filter(epsilon=1, delta=1e-5, order=3), "leaves no budget"),
        (lambda: a_filter().allows(dpsub.Wr(3), 9, noise_multiplier=2), "Poisson samples with"),
        (
            lambda: a_filter().allows(dpsub.Shuffle(3), 9, noise_multiplier=2),
            "Ledger for releases that are fixed in advance",
        ),
        (
            lambda: a_filter().allows(dpsub.Poisson(0.1), noise_multiplier=2, mechanism="laplace"),
            "Gaussian noise",
        ),
        (
            lambda: dpsub.Filter.planned(
                dpsub.Poisson(0.1), noise_multiplier=0.5, steps=1000, epsilon=1, delta=1e-5
            ),
            "the releases that are planned must stay within",
        ),
    ],
)
def test_refusals(ask: Any, words: str) -> None:
    with pytest.raises((dpsub.ArgumentError, dpsub.UnsupportedError), match=words):
        ask()


def a_filter() -> dpsub.Filter:
    return dpsub.Filter(epsilon=3, delta=1e-3, order=6)

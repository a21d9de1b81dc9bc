"""Searches for the largest proved design, on bounds whose answer is known and on real ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import dpsub
from dpsub.accounting.account import Account
from dpsub.accounting.search import largest, largest_sample, largest_steps
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import Poisson, Wor


def account(bound: Callable[[float], float], tried: list[float]) -> Callable[[float], Account]:
    def at(x: float) -> Account:
        tried.append(x)
        return Account(0.0, bound(x), "bounds", "", Relation.SUBSTITUTE, "")

    return at


BOUNDS: list[tuple[Callable[[float], float], float]] = [
    (lambda x: math.sqrt(x), 100.0),
    (lambda x: x * x / 5000, math.sqrt(50000.0)),
    (lambda x: 0.0 if x < 400 else math.inf, 400.0),
    (lambda x: 10 * (x / 900) ** 0.01, 900.0),
    (lambda x: math.expm1(min(x, 1e4) / 50), 50 * math.log(11)),
]


@pytest.mark.parametrize("start", [1.0, 90.0, 1e6])
@pytest.mark.parametrize(("bound", "root"), BOUNDS)
def test_whole_numbers_are_told_apart(bound: Callable[[float], float], root: float, start: float) -> None:
    tried: list[float] = []
    found = largest(
        account(bound, tried), 10.0, "x", start=start, least=1, most=1e7, accuracy=1e-4, whole=True
    )
    assert found.value in tried
    assert found.account.upper <= 10
    assert found.not_proved == found.value + 1
    assert bound(found.not_proved) > 10
    assert found.value == pytest.approx(root, abs=1)
    assert found.evaluations == len(tried) <= 30
    assert all(x == int(x) for x in tried)


@pytest.mark.parametrize(("bound", "root"), BOUNDS)
def test_real_numbers_are_close(bound: Callable[[float], float], root: float) -> None:
    found = largest(account(bound, []), 10.0, "x", start=3.0, least=0.1, most=1e7, accuracy=1e-3, whole=False)
    assert found.not_proved is not None
    assert found.value <= root * (1 + 1e-12) <= found.not_proved * (1 + 1e-12)
    assert found.not_proved <= found.value * 1.001


def test_limits() -> None:
    found = largest(account(lambda x: 1.0, []), 10.0, "x", start=3.0, least=1, most=50, accuracy=1e-3, whole=True)
    assert (found.value, found.not_proved) == (50, None)
    with pytest.raises(UnsupportedError, match="a thing of 1 already has a bound of 11"):
        largest(account(lambda x: 11.0, []), 10.0, "a thing", start=30.0, least=1, most=50, accuracy=1e-3, whole=True)


def test_real_searches_are_safe() -> None:
    steps = largest_steps(Wor(20), 2000, noise_multiplier=3.0, epsilon=1.0, delta=1e-6)
    again = dpsub.account(Wor(20), 2000, noise_multiplier=3.0, steps=int(steps.value), delta=1e-6, width=1e-4)
    assert again.upper <= 1
    rate = largest_sample(
        Poisson, most=1.0, whole=False, noise_multiplier=3.0, steps=100, epsilon=1.0, delta=1e-6
    )
    assert rate.account.upper <= 1
    assert rate.account.upper == pytest.approx(1, rel=3e-3)
    assert dpsub.account(Poisson(rate.value), noise_multiplier=3.0, steps=100, delta=1e-6).upper <= 1.001
    for epsilon, delta, name in ((0.0, 1e-6, "epsilon"), (1.0, 1.0, "delta")):
        with pytest.raises(ArgumentError, match=f"^{name} must be"):
            largest_steps(Wor(20), 2000, noise_multiplier=3.0, epsilon=epsilon, delta=delta)

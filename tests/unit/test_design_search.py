"""Searches for the largest proved design, on bounds whose answer is known and on real ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

import dpsub
from dpsub.accounting.account import WIDTH_MISSED, Account, Proof
from dpsub.accounting.bracket import Target
from dpsub.accounting.pld import time_limited
from dpsub.accounting.search import largest_sample, largest_steps, safe_root
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.sampling import Poisson, Wor

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

    def noted(x: float) -> float:
        tried.append(x)
        return bound(x)

    found = safe_root(noted, 10.0, "x", start=start, least=1, most=1e7, accuracy=1e-4, rising=True, whole=True)
    assert found.safe in tried
    assert bound(found.safe) <= 10
    assert found.unsafe == found.safe + 1
    assert bound(found.unsafe) > 10
    assert found.safe == pytest.approx(root, abs=1)
    assert found.evaluations == len(tried) <= 30
    assert all(x == int(x) for x in tried)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize(("bound", "root"), BOUNDS)
def test_real_numbers_are_close(bound: Callable[[float], float], root: float, rising: bool) -> None:
    limits = {"start": 3.0, "least": 0.1, "most": 1e7, "accuracy": 1e-3}
    found = safe_root(bound if rising else lambda x: bound(root * root / x), 10.0, "x", **limits, rising=rising)
    assert found.unsafe is not None and found.closed
    low, high = sorted((found.safe, found.unsafe))
    assert low <= root * (1 + 1e-12) <= high * (1 + 2e-12)
    assert high <= low * 1.001
    assert low <= found.root <= high
    assert rising == (found.safe < found.unsafe)


def test_limits() -> None:
    limits = {"start": 30.0, "least": 1.0, "most": 50.0, "accuracy": 1e-3}
    for whole in (True, False):
        found = safe_root(lambda x: 1.0, 10.0, "x", **limits, rising=True, whole=whole)
        assert (found.safe, found.unsafe, found.closed) == (50, None, True)
    with pytest.raises(UnsupportedError, match="a thing of 1 already has a bound of 11 above the target 10; add noise"):
        safe_root(lambda x: 11.0, 10.0, "a thing", **limits, rising=True)
    with pytest.raises(UnsupportedError, match="a thing of 50 still has a bound of 11 above the target 10; raise it"):
        safe_root(lambda x: 11.0, 10.0, "a thing", **limits)


def test_what_was_proved_before_the_deadline_is_returned() -> None:
    limits = {"start": 30.0, "least": 1.0, "most": 50.0, "accuracy": 1e-3}
    with time_limited(time.monotonic() + 0.1):

        def slow(x: float) -> float:
            time.sleep(0.2)
            return 1.0

        found = safe_root(slow, 10.0, "x", **limits, rising=True)
        assert (found.safe, found.evaluations, found.closed) == (30, 1, False)
        with pytest.raises(NumericalError, match="x: nothing was found to meet the target within 0 accounts"):
            safe_root(slow, 10.0, "x", **limits)


def test_a_bound_that_exceeds_the_target_by_one_rounding_is_not_met() -> None:
    target = 1.9
    over = math.nextafter(target, 2)
    found = safe_root(lambda x: over if x < 3 else 1.0, target, "x", start=2.0, least=1.0, most=50.0, accuracy=1e-3)
    assert found.safe >= 3


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


def test_what_an_attack_refutes_is_a_number() -> None:
    """It was null for sizes and steps."""
    question = {"noise_multiplier": 3.0, "epsilon": 1.0, "delta": 1e-6, "accuracy": 0.01}
    for sampler, n in ((Wor(20), 2000), (Poisson(0.01), None)):
        steps = largest_steps(sampler, n, **question)
        assert steps.not_proved is not None and steps.refuted is not None
        assert steps.value < steps.not_proved <= steps.refuted == int(steps.refuted)
        again = {"noise_multiplier": 3.0, "steps": int(steps.refuted), "delta": 1e-6, "width": 1e-3}
        assert dpsub.account(sampler, n, **again).lower > 1
    rate = largest_sample(Poisson, most=1.0, whole=False, steps=100, **question)
    assert rate.refuted is not None and rate.value < rate.refuted < 1.05 * rate.value
    assert dpsub.account(Poisson(rate.refuted), noise_multiplier=3.0, steps=100, delta=1e-6).lower > 1
    assert largest_sample(Poisson, most=1.0, whole=False, **question | {"noise_multiplier": 30.0}).refuted is None


def test_a_calibration_out_of_time_returns_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"epsilon": 1.0, "delta": 1e-6, "steps": 50}
    with pytest.raises(NumericalError, match="allow more time"):
        dpsub.calibrate(Wor(20), 2000, **asked, time_limit=1e-9)
    upper = Proof.upper

    def last(self: Proof, target: Target) -> Account:
        found = upper(self, target)
        if found.upper <= 1:
            time.sleep(max(0.0, (target.deadline or 0.0) - time.monotonic()))
        return found

    full = dpsub.calibrate(Wor(20), 2000, **asked)
    monkeypatch.setattr(Proof, "upper", last)
    found = dpsub.calibrate(Wor(20), 2000, **asked, time_limit=5.0)
    assert found.noise_multiplier >= full.noise_multiplier * (1 - 1e-3)
    assert found.account.upper <= 1.0
    assert not found.account.width_met and found.account.conditions[-1] == WIDTH_MISSED

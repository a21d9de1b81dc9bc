"""One release at extreme noise, rate, epsilon and delta, against closed forms of 60 digits: ends on
both sides of the truth, however small delta is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from dpsub.accounting.engine import pld, work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.errors import NumericalError
from dpsub.sampling import Poisson, Sampler, Wor
from dpsub.streams import stream
from tests.fresh_seeds import replay, seed

CASES = 10  # of each kind of sampler and noise; hundreds were tried when the test was written

EFFORT = 1.0  # effort of a case; bounds reached with it hold


def truth(sampler: Sampler, n: int | None, noise: str, scale: float, epsilon: float) -> mpf:
    """Return delta(epsilon) of one release."""
    q = mpf(sampler.m) / n if isinstance(sampler, Wor) else mpf(sampler.rate)
    s, a = mpf(scale), mp.exp(mpf(epsilon))
    shift = (2 if isinstance(sampler, Wor) else 1) / s
    if noise == "laplace":
        w = mp.exp(-shift)
        added = q - mp.sqrt(q * w * (a - 1 + q)) if a < 1 - q + q / w else mpf(0)
        rest = 1 - a * (1 - q)
        removed = rest - mp.sqrt(rest * a * q * w) if a < 1 / (1 - q + q * w) else mpf(0)
        return added if isinstance(sampler, Wor) else max(added, removed)
    x = mp.log1p((a - 1) / q)
    added = q * (mp.ncdf(shift / 2 - x / shift) - mp.exp(x) * mp.ncdf(-shift / 2 - x / shift))
    inner = (1 / a - (1 - q)) / q
    if isinstance(sampler, Wor) or inner <= 0:
        return added
    t = s * s * mp.log(inner) + mpf(1) / 2
    return max(added, mp.ncdf(t / s) - a * ((1 - q) * mp.ncdf(t / s) + q * mp.ncdf((t - 1) / s)))


def check(
    sampler: Sampler, n: int | None, noise: str, scale: float, asked: dict[str, float]
) -> Account:
    with work.metered(EFFORT):
        account = Proof.of([Release(sampler, n, scale, 1, noise)], str(sampler.relation)).account(
            Target(**asked, width=0.5)
        )
    with mp.workdps(60):
        if "epsilon" in asked:
            assert (
                account.lower <= truth(sampler, n, noise, scale, asked["epsilon"]) <= account.upper
            )
        else:
            goal = mpf(asked["delta"])
            if math.isfinite(account.upper):
                assert truth(sampler, n, noise, scale, account.upper) <= goal * (1 + mpf(10) ** -9)
            if account.lower > 0:
                assert truth(sampler, n, noise, scale, account.lower * (1 - 1e-12)) >= goal * (
                    1 - mpf(10) ** -9
                )
    return account


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("kind", ["wor", "poisson"])
def test_ends_lie_on_both_sides_of_the_truth(kind: str, noise: str) -> None:
    rng = stream(
        seed(), experiment="extreme", cell={"kind": kind, "noise": noise}, role="data", replicate=0
    )
    for _ in range(CASES):
        scale = float(
            np.exp(rng.uniform(math.log(0.055), math.log(8 if noise == "gaussian" else 40)))
        )
        rate = 1.0 if rng.random() < 0.2 else float(np.exp(rng.uniform(-9, 0)))
        n = int(np.exp(rng.uniform(0, math.log(1e6))))
        sampler: Sampler = Poisson(rate) if kind == "poisson" else Wor(max(1, int(n * rate)))
        asked = {"delta": float(10 ** rng.uniform(-298, -20))}
        if rng.random() < 0.3:
            asked = {"epsilon": float(np.exp(rng.uniform(math.log(0.1), math.log(500))))}
        try:
            check(sampler, None if kind == "poisson" else n, noise, scale, asked)
        except AssertionError as error:
            raise AssertionError(
                replay(seed(), f"{sampler}, n = {n}, {noise} {scale!r}, {asked}")
            ) from error


@pytest.mark.parametrize("delta", [1e-180, 1e-185, 1e-190, 1e-250])
def test_slopes_at_high_orders_do_not_underflow(delta: float) -> None:
    account = check(Wor(8), 8, "gaussian", 0.206947329589046, {"delta": delta})
    assert account.upper - account.lower < 1
    check(Wor(5), 60, "gaussian", 0.1809098503146368, {"delta": 1.17e-275})


def test_slopes_that_underflow_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld, "SLOPE_UNIT", 1.0)
    with pytest.raises(NumericalError, match="must not cross"):
        check(Wor(8), 8, "gaussian", 0.206947329589046, {"delta": 1e-190})


@pytest.mark.parametrize(
    ("sampler", "n", "noise", "scale", "delta"),
    [
        (Wor(36), 36, "laplace", 21.56, 1.4e-228),
        (Wor(276), 1984, "laplace", 0.8153925778626853, 2.1e-208),
        (Poisson(1.0), None, "laplace", 0.19440633858596915, 6.8e-278),
        (Poisson(0.2290828351718836), None, "gaussian", 0.07502531479046831, 6.7e-228),
    ],
)
def test_tiny_deltas_are_answered(
    sampler: Sampler, n: int | None, noise: str, scale: float, delta: float
) -> None:
    assert check(sampler, n, noise, scale, {"delta": delta}).lower > 0

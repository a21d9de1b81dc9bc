"""Samples of all records but a few: 1 - q is (n - m)/n, and 1 - m/n has lost up to nine of its
digits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from mpmath import mp, mpf

import dpsub
from dpsub.accounting.engine.laplace_pairs import (
    LaplacePair,
    included_once,
    removed_once,
    replaced_once,
)
from dpsub.accounting.engine.pairs import PoissonPair, WorPair, ZeroedPair
from dpsub.accounting.games.game import Copies, replaced_profile
from dpsub.accounting.games.laplace import three_laplace
from dpsub.streams import stream

N = 999_999_937
LEFT_OUT = (1, 2, 5)
DIGITS = 60
Mixture = Sequence[tuple[mpf, mpf]]


def parts(left_out: int) -> tuple[float, float, mpf]:
    """Return q and 1 - q, rounded, and q."""
    m = N - left_out
    with mp.workdps(DIGITS):
        return m / N, left_out / N, mpf(m) / N


def laplace_divergence(first: Mixture, second: Mixture, order: mpf) -> mpf:
    """Return H_a of mixtures of Lap(c), scale 1, given by (weight, c): between centres a density is
    A e^-t + B e^t."""
    signed = [*first, *((-order * weight, centre) for weight, centre in second)]
    ends = [-mp.inf, *sorted({centre for _, centre in signed}), mp.inf]
    total = mpf(0)
    for left, right in itertools.pairwise(ends):
        falling = mp.fsum(
            weight * mp.exp(centre) / 2 for weight, centre in signed if centre <= left
        )
        rising = mp.fsum(
            weight * mp.exp(-centre) / 2 for weight, centre in signed if centre >= right
        )

        def mass(low: mpf, high: mpf, falling: mpf = falling, rising: mpf = rising) -> mpf:
            down = falling * (mp.exp(-low) - mp.exp(-high)) if falling else mpf(0)
            return down + (rising * (mp.exp(high) - mp.exp(low)) if rising else mpf(0))

        cuts = [left, right]
        if falling * rising < 0:
            root = mp.log(-falling / rising) / 2
            cuts = [left, root, right] if left < root < right else cuts
        total += mp.fsum(max(mpf(0), mass(low, high)) for low, high in itertools.pairwise(cuts))
    return total


def holds(bound: np.ndarray, truth: Sequence[mpf], slack: float) -> None:
    for value, exact in zip(bound.tolist(), truth, strict=True):
        assert exact <= value <= exact * (1 + mpf(10) ** -6) + slack


def log_orders(draws: np.random.Generator, left_out: int) -> np.ndarray:
    """Draw log orders, some of them about ln(1 / (1 - q)), where rounding 1 - q is seen most."""
    last = math.log(N / left_out)
    return np.sort(
        np.concatenate([draws.uniform(0, 40, 8), last + draws.uniform(-2, 0.5, 8), [20.0, 20.722]])
    )


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_profiles_of_laplace_noise(left_out: int) -> None:
    draws = stream(
        7, experiment="complements", cell={"left_out": left_out}, role="data", replicate=0
    )
    rate, missed, q = parts(left_out)
    for _ in range(6):
        theta = float(np.exp(draws.uniform(0, math.log(40))))
        x = log_orders(draws, left_out)
        with mp.workdps(DIGITS):
            base, record = [(mpf(1), mpf(0))], [(1 - q, mpf(0)), (q, mpf(theta))]
            opposite = [(1 - q, mpf(0)), (q, mpf(-theta))]
            cases: list[tuple[Callable[..., np.ndarray], Mixture, Mixture]] = [
                (included_once(rate, theta, missed), record, base),
                (removed_once(rate, theta, missed), base, record),
                (replaced_once(rate, theta, missed), record, opposite),
                (lambda x, t=theta: three_laplace(x, rate, 0.0, -t, missed), base, opposite),
                (lambda x, t=theta: three_laplace(x, rate, t, -t, missed), record, opposite),
            ]
            for profile, first, second in cases:
                exact = [laplace_divergence(first, second, mp.exp(mpf(order))) for order in x]
                holds(profile(x), exact, 1e-10)


def test_the_places_that_were_found() -> None:
    """The places have n = 999,999,937, all records but one drawn, and s = .05."""
    rate, missed, q = parts(1)
    with mp.workdps(DIGITS):
        record, opposite = [(1 - q, mpf(0)), (q, mpf(0))], [(1 - q, mpf(0)), (q, mpf(-40))]
        exact = laplace_divergence(record, opposite, mp.exp(20))
        assert mp.nstr(exact, 12) == "0.514802198673"
        assert (
            exact
            <= three_laplace(np.array([20.0]), rate, 0.0, -40.0, missed)[0]
            <= exact * (1 + mpf(10) ** -9)
        )


@pytest.mark.parametrize("left_out", LEFT_OUT)
@pytest.mark.parametrize(("reach", "apart"), [(20.0, 10.0), (10.0, 10.0), (4.0, 2.0)])
def test_profiles_of_gaussian_noise(left_out: int, reach: float, apart: float) -> None:
    rate, missed, q = parts(left_out)
    x = np.linspace(0, 60, 25)
    with mp.workdps(DIGITS):
        exact = []
        for order in map(mp.exp, map(mpf, x.tolist())):
            tau, f, d = (1 - q) * (order - 1) / q, mpf(reach), mpf(apart)

            def excess(t: mpf, tau: mpf = tau, order: mpf = order, f: mpf = f, d: mpf = d) -> mpf:
                return tau * mp.exp(t * f - f * f / 2) + order * mp.exp(t * d - d * d / 2) - 1

            low, high = mpf(-200), mpf(200)
            for _ in range(150):
                middle = (low + high) / 2
                low, high = (middle, high) if excess(middle) < 0 else (low, middle)
            exact.append(q * (mp.ncdf(low) - order * mp.ncdf(low - d) - tau * mp.ncdf(low - f)))
        holds(replaced_profile(rate, reach, apart, missed)(x), exact, 1e-12)


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_losses(left_out: int) -> None:
    rate, missed, q = parts(left_out)
    s, theta = 0.3, 30.0
    t = np.linspace(-4, 6, 41)
    with mp.workdps(DIGITS):

        def normal(centre: float, at: float) -> mpf:
            return mp.exp((mpf(at) * centre - mpf(centre) ** 2 / 2) / mpf(s) ** 2)

        def laplace(centre: float, at: float) -> mpf:
            return mp.exp(-abs(mpf(at) - centre))

        def log_ratio(
            density: Callable[[float, float], mpf], up: float, down: float | None, at: float
        ) -> mpf:
            below = 1 - q + q * density(down, at) / density(0, at) if down is not None else mpf(1)
            return mp.log((1 - q + q * density(up, at) / density(0, at)) / below)

        pairs = [
            (PoissonPair(rate, s, missed), normal, 1.0, None, t),
            (WorPair(rate, s, missed), normal, 1.0, -1.0, t),
            (ZeroedPair(rate, s, missed), normal, 2.0, 1.0, t),
            (LaplacePair(rate, theta, missed=missed), laplace, theta, None, 4 * t),
            (LaplacePair(rate, theta, True, missed), laplace, theta, -theta, 4 * t),
        ]
        for pair, density, up, down, places in pairs:
            found = pair.loss(places)
            for value, at in zip(found.tolist(), places.tolist(), strict=True):
                exact = log_ratio(density, up, down, at)
                assert abs(value - exact) <= mpf(10) ** -12 * max(1, abs(exact)), (pair, at)


def test_odds_of_a_first_stage() -> None:
    copies = Copies.of_draws((0.3, 0.4, 0.3), (N - 1) / N, 20, 2, 1 / N)
    with mp.workdps(DIGITS):
        assert abs(copies.odds * mpf(N - 1) - 1) < 1e-15


@pytest.mark.parametrize("epsilon", [19.0, 20.0, 20.5])
def test_an_account_of_nearly_all_records(epsilon: float) -> None:
    """One record more is there, and all but one are drawn: Laplace noise, both directions."""
    answer = dpsub.account(
        dpsub.Wor(N),
        N,
        noise_multiplier=0.05,
        epsilon=epsilon,
        mechanism="laplace",
        adjacency="add_remove",
    )
    with mp.workdps(DIGITS):
        q = mpf(N) / (N + 1)
        record, base = [(1 - q, mpf(0)), (q, mpf(40))], [(mpf(1), mpf(0))]
        order = mp.exp(mpf(epsilon))
        exact = max(
            laplace_divergence(record, base, order), laplace_divergence(base, record, order)
        )
        assert answer.lower <= exact <= answer.upper <= answer.lower * (1 + 5e-3)

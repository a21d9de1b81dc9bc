"""delta far below what a plain transform can tell from 0: two-sided, rounded up where it underflows, exactly 0 where it
is; and infinite losses, which decide there."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import dpsub
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.discretise import upper_pld
from dpsub.accounting.pairs import PoissonPair
from dpsub.accounting.pld import order_indices, symmetric_pld
from dpsub.noise import GaussianProfile
from dpsub.sampling import Poisson, Sampler, Wor


@pytest.mark.parametrize(("sampler", "n"), [(Poisson(0.02), None), (Wor(5), 100)])
@pytest.mark.parametrize("delta", [1e-12, 1e-30])
def test_subsampled_deltas_have_two_sides(sampler: Sampler, n: int | None, delta: float) -> None:
    asked = {"noise_multiplier": 4.0, "steps": 50}
    epsilon = dpsub.account(sampler, n, **asked, delta=delta)
    assert 0 < epsilon.lower <= epsilon.upper
    if epsilon.kind == "exact":
        assert epsilon.upper - epsilon.lower <= 1e-3
    above = dpsub.account(sampler, n, **asked, epsilon=epsilon.upper)
    below = dpsub.account(sampler, n, **asked, epsilon=epsilon.lower)
    assert above.lower <= delta <= below.upper
    assert above.upper <= delta * 1.02
    # the attack's epsilon is asked for to 5e-3 only, and delta falls fast there
    assert below.lower >= delta * (0.9 if epsilon.kind == "exact" else 0.1)
    assert above.lower > 0


def test_bounded_losses_end() -> None:
    # five Laplace losses of at most 1 each
    for epsilon, empty in ((4.9, False), (5.1, True)):
        answer = dpsub.account(Poisson(1.0), noise_multiplier=1.0, steps=5, epsilon=epsilon, mechanism="laplace")
        assert (answer.upper == 0.0) is empty
        assert (answer.lower > 0) is not empty


def test_a_dropped_infinite_loss_is_caught() -> None:
    exact = float(GaussianProfile(math.sqrt(20) / 2).delta(6.0))
    pair = upper_pld(PoissonPair(1.0, 2.0), 1e-3, tail=1e-4)
    by_profile = symmetric_pld(lambda x: GaussianProfile(0.5).delta(x), 1e-3, order_indices(1e-3, 0.8, 0.9))
    for law in (pair, by_profile):
        assert law.infinity > 0
        faulty = dataclasses.replace(law, infinity=0.0)
        assert ComposedLoss([faulty], [20]).delta(6.0) < exact <= ComposedLoss([law], [20]).delta(6.0)


def test_tilts_of_masses_near_the_smallest_double() -> None:
    # e^(tilt loss) overflows alone, and its product with the mass does not
    pair = PoissonPair(0.05, 1.0)
    law = upper_pld(pair, 0.05, tail=1e-305)
    values = [ComposedLoss([law], [1]).delta(epsilon) for epsilon in (20.0, 40.0, 60.0)]
    assert np.all(np.isfinite(values))
    assert values[0] > values[1] >= values[2] > 0
    for epsilon, value in zip((20.0, 40.0, 60.0), values, strict=True):
        t = pair.inverse_loss(np.array([epsilon]))
        with np.errstate(over="ignore"):
            assert value >= float(pair.sf(t)[0] - math.exp(epsilon) * pair.sf_prime(t)[0]) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("sampler", "n", "noise", "steps", "epsilon", "most"),
    [
        *((Wor(5), 100, 10.0, k, epsilon, 1e-30) for k in (1, 5, 100) for epsilon in (100.0, 1e3, 1e6)),
        *((Wor(5), 100, 10.0, 10, epsilon, 1e-250) for epsilon in (50.0, 1e4)),
        *((Poisson(0.1), None, 1.0, 10, epsilon, 1e-240) for epsilon in (1e6, 1e20, 1e300)),
    ],
)
def test_what_underflows_is_rounded_up_without_a_warning(
    sampler: Sampler, n: int | None, noise: float, steps: int, epsilon: float, most: float
) -> None:
    answer = dpsub.account(sampler, n, noise_multiplier=noise, steps=steps, epsilon=epsilon)
    assert 0 <= answer.lower <= answer.upper
    assert 0 < answer.upper < most
    assert answer.lower == 0 or epsilon < 100

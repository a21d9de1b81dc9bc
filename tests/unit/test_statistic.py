"""Lower laws of one number of the output whose loss need not be monotone."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.chains.scheme import law_of
from dpsub.accounting.schemes.chains.zeroed import ZeroedCopies

NOISE = 0.8
FINE, COARSE = 0.01, 0.3
"""Steps of grids, in nats: fine, and one at which losses are rounded by much."""


def zeroed(n: int, m: int) -> ZeroedCopies:
    release = Release(dpsub.Wr(m), n, noise_multiplier=NOISE, steps=1)
    return ZeroedCopies(law_of(release.chain()), NOISE)


def delta_by_quadrature(played: ZeroedCopies, epsilon: float, *, swapped: bool) -> float:
    """Integrate the excess of one density over e^epsilon times the other."""
    (means, log_weights), (fewer, _) = played.components, played.components_prime
    weights = np.exp(log_weights)

    def excess(t: float) -> float:
        first, second = (float(weights @ norm.pdf(t, centres, NOISE)) for centres in (means, fewer))
        if swapped:
            first, second = second, first
        return max(first - math.exp(epsilon) * second, 0.0)

    places = np.linspace(-8, 14, 23)
    return sum(quad(excess, a, b, limit=200)[0] for a, b in pairwise(places))


def delta_of(law: PrivacyLossDistribution, epsilon: float) -> float:
    return float(ComposedLoss([law], [1]).deltas(np.array([epsilon]), 1e-3)[0])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_exchanged_shares_stay_below_the_truth_and_close(epsilon: float, swapped: bool) -> None:
    played = zeroed(10, 3)
    truth = delta_by_quadrature(played, epsilon, swapped=swapped)
    fine, coarse = (
        delta_of(played.exchanging_pld(step, tail=1e-12, swapped=swapped), epsilon)
        for step in (FINE, COARSE)
    )
    assert fine == pytest.approx(truth, rel=1e-2, abs=1e-9)
    assert max(fine, coarse) <= truth * (1 + 1e-9) + 1e-14


def test_a_law_that_is_too_small_where_it_divides_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    played = zeroed(10, 3)
    cells = ZeroedCopies._cells
    monkeypatch.setattr(
        ZeroedCopies, "_cells", lambda *asked: (cells(*asked)[0], 0.99 * cells(*asked)[1])
    )
    found = delta_of(played.exchanging_pld(FINE, tail=1e-12), 0.5)
    assert found > delta_by_quadrature(played, 0.5, swapped=False)


def test_means_of_losses_are_kept_on_coarse_grids() -> None:
    played, steps, delta = zeroed(250_000, 64), 351_562, np.array([1e-6])

    def attained(law: PrivacyLossDistribution) -> float:
        return float(ComposedLoss([law], [steps]).epsilons(delta, 1e-3)[0])

    step = played.spread() / 3
    exchanged = attained(played.exchanging_pld(step, tail=1e-18))
    rounded = attained(played.lower_pld(step, tail=1e-18))
    finer = attained(played.exchanging_pld(step / 2, tail=1e-18))
    assert rounded < 0.9 * exchanged
    assert exchanged == pytest.approx(finer, rel=1e-3)


def test_both_ends_meet_after_half_a_million_steps() -> None:
    asked = {"noise_multiplier": 0.6, "delta": 1e-6, "adjacency": "zero_out", "effort": 1.0}
    found = dpsub.account(dpsub.Wr(64), 1_200_000, steps=562_500, quick=False, **asked)
    assert 0 < found.upper - found.lower < 5e-3 * found.upper

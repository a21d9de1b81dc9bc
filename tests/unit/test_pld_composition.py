"""The composed laws against closed forms, and faults planted into them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpsub.accounting import compose
from dpsub.accounting.bracket import Composition, PairEvent, Target
from dpsub.accounting.compose import ComposedLoss, Cumulants
from dpsub.accounting.discretise import lower_pld, upper_pld
from dpsub.accounting.pairs import LOSS_TOLERANCE, MixturePair, PoissonPair
from dpsub.accounting.pld import PrivacyLossDistribution
from dpsub.errors import ArgumentError
from dpsub.noise import GaussianProfile
from dpsub.sampling.laws import MultiplicityLaw

GAUSSIANS = [(10.0, 1, 1.0), (30.0, 100, 2.0), (50.0, 1000, 5.0), (5.0, 10, 6.0), (1000.0, 10**6, 1.0), (0.5, 1, 0.1)]
GAUSSIANS += [(20.0, 100, float(GaussianProfile(0.5).epsilon(10.0**-k))) for k in (5, 12, 20, 30, 100)]


@pytest.mark.parametrize(("scale", "k", "epsilon"), GAUSSIANS)
def test_many_gaussians_are_one(scale: float, k: int, epsilon: float) -> None:
    exact = float(GaussianProfile(math.sqrt(k) / scale).delta(epsilon))
    composition = Composition([(PairEvent(PoissonPair(1.0, scale)), k)])
    lower, upper, *_ = composition.answer(Target(epsilon=epsilon, width=0.01))
    assert lower <= exact <= upper <= exact * 1.011
    if scale == 20:  # far below what a plain transform can tell from 0
        assert 0 < lower <= upper <= lower * 1.011


@pytest.mark.parametrize(
    ("scale", "k", "delta"), [(20.0, 100, 1e-5), (20.0, 100, 1e-30), (1.0, 50, 0.3), (3.0, 1, 1e-9)]
)
def test_epsilon_of_many_gaussians(scale: float, k: int, delta: float) -> None:
    exact = float(GaussianProfile(math.sqrt(k) / scale).epsilon(delta))
    composition = Composition([(PairEvent(PoissonPair(1.0, scale)), k)])
    lower, upper, *_ = composition.answer(Target(delta=delta, width=1e-3))
    assert lower <= exact <= upper <= lower + 1e-3


def test_gaussians_of_different_scales_add_their_squares() -> None:
    ledger = Composition([(PairEvent(PoissonPair(1.0, s)), k) for s, k in ((10.0, 30), (25.0, 200), (40.0, 7))])
    ratio = math.sqrt(30 / 10**2 + 200 / 25**2 + 7 / 40**2)
    lower, upper = ledger.answer(Target(epsilon=2.0, width=0.01))[:2]
    assert lower <= float(GaussianProfile(ratio).delta(2.0)) <= upper <= lower * 1.011


@pytest.mark.parametrize("rate", [1e-6, 1e-9, 1e-12])
def test_rare_inclusion_tilts_far(rate: float) -> None:
    """Tilts of 1e9 and more: the charge for round-off was the root of a difference that could be negative."""
    ledger = Composition([(PairEvent(PoissonPair(rate, 10.0)), 10)])
    lower, upper = ledger.answer(Target(delta=1e-5))[:2]
    assert 0 == lower <= upper <= 1e-9
    lower, upper = ledger.answer(Target(epsilon=1.0))[:2]
    # the record is ever included with probability at most 10 rate; what an inversion of the loss may lack is charged,
    # at most 2 (e^tolerance - 1) a step
    assert 0 <= lower <= upper <= 10 * (rate + 2 * math.expm1(LOSS_TOLERANCE))


def test_a_curve_is_its_points_and_bounds_are_ordered() -> None:
    pair = PoissonPair(0.02, 1.5)
    epsilons = np.linspace(0.0, 2.5, 11)
    lower = ComposedLoss([lower_pld(pair, 1e-3, tail=1e-18)], [400])
    upper = ComposedLoss([upper_pld(pair, 1e-3, tail=1e-18)], [400])
    low, high = lower.curve(epsilons), upper.curve(epsilons)
    assert np.all(low <= high)
    assert np.all(np.diff(low) <= 0)
    assert np.all(np.diff(high) <= 0)
    for epsilon, value in zip(epsilons.tolist(), high.tolist(), strict=True):
        assert lower.delta(epsilon) <= value
        # two transforms with tilts of their own: both are at least delta of the law, neither is at least the other,
        # and each is above delta by at most twice what it charges, and the round-off of 400 tilted masses
        point = upper.delta(epsilon)
        assert point - 2 * _charge(upper, epsilon, epsilon) <= value * (1 + 1e-10)
        assert value - 2 * _charge(upper, 0.0, epsilon) <= point * (1 + 1e-10)


def _charge(composed: ComposedLoss, centre: float, epsilon: float) -> float:
    """What the upper bound at `epsilon` adds for errors, tilted for an answer at `centre`."""
    tilted = composed.masses(composed.cumulants.tilt_at_epsilon(centre - composed._offset))
    return tilted._error * math.exp(tilted.log_scale - tilted.tilt * (epsilon - composed._offset))


def test_more_steps_less_noise_and_coarser_grids_never_lower_a_bound() -> None:
    def upper(q: float, s: float, k: int, step: float) -> float:
        return ComposedLoss([upper_pld(PoissonPair(q, s), step, tail=1e-18)], [k]).delta(1.0)

    assert upper(0.02, 1.5, 100, 1e-3) < upper(0.02, 1.5, 300, 1e-3)
    assert upper(0.02, 1.6, 300, 1e-3) < upper(0.02, 1.5, 300, 1e-3) < upper(0.03, 1.5, 300, 1e-3)
    widths = []
    for step in (2e-3, 1e-3, 5e-4):
        low = ComposedLoss([lower_pld(PoissonPair(0.02, 1.5), step, tail=1e-18)], [300]).delta(1.0)
        widths.append(upper(0.02, 1.5, 300, step) - low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2] > 0


def test_swapping_a_pair_twice_is_the_pair() -> None:
    law = MultiplicityLaw(np.log([0.9, 0.07, 0.02, 0.01]))
    pair = MixturePair(law, 1.5)
    for make in (lower_pld, upper_pld):
        one, two = (ComposedLoss([make(pair, 1e-3, tail=1e-18, swapped=swapped)], [50]) for swapped in (False, True))
        assert one.delta(0.5) == pytest.approx(two.delta(0.5), rel=2e-3)


def test_one_step_of_a_pair_is_its_half_line() -> None:
    pair = PoissonPair(0.3, 1.0)
    for swapped in (False, True):
        sign = -1.0 if swapped else 1.0
        for epsilon in (0.0, 0.1, 0.25):
            t = pair.inverse_loss(np.array([sign * epsilon]))
            if swapped:
                exact = pair.cdf_prime(t)[0] - math.exp(epsilon) * pair.cdf(t)[0]
            else:
                exact = pair.sf(t)[0] - math.exp(epsilon) * pair.sf_prime(t)[0]
            lower = ComposedLoss([lower_pld(pair, 2e-4, tail=1e-18, swapped=swapped)], [1]).delta(epsilon)
            upper = ComposedLoss([upper_pld(pair, 2e-4, tail=1e-18, swapped=swapped)], [1]).delta(epsilon)
            assert lower <= exact <= upper
            assert upper - lower < 1e-5


def test_a_loss_beyond_every_bound_counts_once_in_each_step() -> None:
    law = PrivacyLossDistribution(0.1, np.array([0]), np.array([0.99]), "upper", infinity=0.01)
    assert ComposedLoss([law], [100]).delta(1.0) == pytest.approx(1 - 0.99**100, rel=1e-9)
    assert ComposedLoss([law], [100]).epsilon(0.5) == math.inf


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_aliasing_is_charged_and_ignoring_it_is_caught(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, k, epsilon = 20.0, 100, 0.5
    exact = float(GaussianProfile(math.sqrt(k) / scale).delta(epsilon))
    make = upper_pld if side == "upper" else lower_pld
    composed = ComposedLoss([make(PoissonPair(1.0, scale), 1e-3, tail=1e-18)], [k])
    # windows that half of the sums leave, to come back on the other side: mean 1/8, standard deviation 1/2
    window = (-2.0, 0.8) if side == "upper" else (-0.1, 2.5)
    monkeypatch.setattr(compose, "_LOG_TAIL", math.log(0.7))
    monkeypatch.setattr(Cumulants, "reach", lambda *_: window)
    tilted = composed.masses(0.0)
    honest = float(tilted.delta(np.array([epsilon]))[0])
    careless = float(dataclasses.replace(tilted, tail=0.0).delta(np.array([epsilon]))[0])
    if side == "upper":
        assert careless < exact <= honest
    else:
        assert honest <= exact < careless


def test_a_missing_mirror_is_caught() -> None:
    pair = PoissonPair(1.0, 2.0)
    full = upper_pld(pair, 1e-3, tail=1e-18)
    right = full.losses > 0
    faulty = PrivacyLossDistribution(full.step, full.indices[right], full.masses[right], "upper", full.infinity)
    exact = float(GaussianProfile(math.sqrt(20) / 2).delta(1.0))
    assert ComposedLoss([faulty], [20]).delta(1.0) < exact <= ComposedLoss([full], [20]).delta(1.0)


def test_what_cannot_be_composed_is_refused_in_a_sentence() -> None:
    one = PrivacyLossDistribution(0.1, np.array([0]), np.array([1.0]), "upper")
    two = PrivacyLossDistribution(0.2, np.array([0]), np.array([1.0]), "upper")
    with pytest.raises(ArgumentError, match="same step"):
        ComposedLoss([one, two], [1, 1])
    with pytest.raises(ArgumentError, match="same side"):
        ComposedLoss([one, PrivacyLossDistribution(0.1, np.array([0]), np.array([1.0]), "lower")], [1, 1])
    with pytest.raises(ArgumentError, match="either epsilon or delta"):
        Target()
    with pytest.raises(ArgumentError, match="either epsilon or delta"):
        Target(epsilon=1.0, delta=1e-5)

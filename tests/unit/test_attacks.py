"""The adaptive attack: never above what it claims to attain, and attained by an adversary who is
simulated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.discretise import upper_pld
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pairs import FillerPair
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.games.filler_flip import AdaptiveAttack, FillerFlip, Fillers, choices
from dpsub.noise import GaussianProfile
from dpsub.sampling import MustOW, Wor
from dpsub.sampling.laws import MultiplicityLaw
from dpsub.streams import stream
from tests.few import few


def wor_profile(a: np.ndarray, q: float, s: float) -> np.ndarray:
    """Return the exact profile of one step without replacement, any order."""

    def above(order: np.ndarray) -> np.ndarray:
        return q * GaussianProfile(2 / s).delta(np.log(1 + (order - 1) / q))

    return np.where(a >= 1, above(np.maximum(a, 1)), 1 - a + a * above(1 / np.minimum(a, 1)))


def two_steps(q: float, s: float, epsilon: float) -> float:
    """Return the flip's value for two steps without replacement, by quadrature over the first
    output."""
    t = np.linspace(-12 * s, 2 + 12 * s, 200_001)
    p = (1 - q) * norm.pdf(t, 0, s) + q * norm.pdf(t, 2, s)
    r = norm.pdf(t, 0, s)
    sides = [
        np.sum(one * wor_profile(math.exp(epsilon) * other / one, q, s))
        for one, other in ((p, r), (r, p))
    ]
    return float(max(sides) * (t[1] - t[0]))


def simulated(
    law: MultiplicityLaw, s: float, epsilon: float, steps: int, runs: int
) -> tuple[float, float]:
    """Return mean and standard error of (1 - e^(epsilon - loss))_+ where the fillers are -1 below
    epsilon and +1 above it."""
    rng = stream(7, experiment="flip", cell={}, role="noise", replicate=0)
    counts = np.arange(law.pmf.size)
    loss = np.zeros(runs)
    for _ in range(steps):
        minus = loss < epsilon
        drawn = rng.choice(counts, size=runs, p=law.pmf / law.pmf.sum())
        # with fillers at +1 the record at +1 cannot be told from them, and the one at -1 would be
        # missed
        output = np.where(minus, 2 * drawn, 0) + s * rng.standard_normal(runs)
        ratio = sum(
            w * np.exp((2 * u * output - 2 * u**2) / s**2)
            for u, w in zip(counts, law.pmf, strict=True)
        )
        loss += np.where(minus, 1, -1) * np.log(ratio)
    gains = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0)
    return float(gains.mean()), float(gains.std() / math.sqrt(runs))


@pytest.mark.parametrize(
    ("q", "s", "epsilon"), [(0.5, 1.0, 0.0), (0.5, 1.0, 1.0), (0.1, 0.6, 0.5), (0.01, 2.0, 0.1)]
)
def test_two_steps_by_quadrature(q: float, s: float, epsilon: float) -> None:
    found = AdaptiveAttack(FillerPair(MultiplicityLaw.single(q), s / 2), 2).answer(
        Target(epsilon=epsilon)
    )
    truth = two_steps(q, s, epsilon)
    assert found <= truth * (1 + 1e-6)
    assert found >= truth * (1 - 2e-3)


SUBSTITUTE = {"adjacency": "substitute"}


def test_two_steps_lie_between_attack_and_proof() -> None:
    truth, answer = (
        two_steps(0.5, 1.0, 0.0),
        dpsub.account(Wor(2), 4, noise_multiplier=1.0, steps=2, epsilon=0.0, **SUBSTITUTE),
    )
    assert truth == pytest.approx(0.51662, abs=1e-5)
    assert truth - 1e-3 < answer.lower <= truth
    assert answer.upper == pytest.approx(0.5379, abs=1e-4)


@pytest.mark.parametrize("coarse", few([0.2, 1.0, 0.02]))
@pytest.mark.parametrize("tilt", [0.0, 0.5, 7.0])
def test_any_grid_window_and_tilt_stay_below_the_truth(coarse: float, tilt: float) -> None:
    q, s = 0.3, 0.8
    outcomes = choices(FillerPair(MultiplicityLaw.single(q), s / 2), coarse)
    for low, high in ((-0.5, 1.0), (-12.0, 15.0)):
        for steps, truth in (
            (1, lambda x: float(wor_profile(np.exp([x]), q, s)[0])),
            (2, lambda x: two_steps(q, s, x)),
        ):
            policy = FillerFlip(outcomes, steps, tilt).played(low, high)
            for epsilon in (0.0, 0.3, 0.77):
                assert policy.delta(epsilon) <= truth(epsilon) * (1 + 1e-6)


def test_an_adversary_who_is_simulated_attains_the_value() -> None:
    law, s, epsilon, steps = MultiplicityLaw(np.log([0.8, 0.15, 0.05])), 1.2, 1.0, 40
    found = AdaptiveAttack(FillerPair(law, s / 2), steps).answer(Target(epsilon=epsilon))
    mean, error = simulated(law, s, epsilon, steps, 50_000)
    assert abs(mean - found) <= 5 * error
    # the same draws tell the flip from the better static attack
    static = Composition([(PairEvent(FillerPair(law, s / 2)), steps)]).answer(
        Target(epsilon=epsilon)
    )[:2]
    assert mean - static[1] > 5 * error


@pytest.mark.parametrize(
    ("q", "s", "steps", "epsilon"),
    [(0.01, 2.6, 1000, 2.0), (0.2, 1.0, 30, 4.0), (0.5, 6.0, 9, 3.0)],
)
def test_fillers_that_never_change_give_the_static_value(
    q: float, s: float, steps: int, epsilon: float
) -> None:
    pair = FillerPair(MultiplicityLaw.single(q), s / 2)
    spread = PairEvent(pair).spread()
    above = ComposedLoss([upper_pld(pair, spread / 40, tail=1e-30)], [steps]).delta(epsilon)
    tilt = ComposedLoss(
        [upper_pld(pair, spread / 8, tail=1e-30)], [steps]
    ).cumulants.tilt_at_epsilon(epsilon)
    found = FillerFlip(choices(pair, spread / 30)[:1], steps, tilt).played(
        -12.0, epsilon + 60 * spread * math.sqrt(steps)
    )
    # from 1e-1 to 1e-12: the tilt keeps small values
    assert above * (1 - 0.01) <= found.delta(epsilon) <= above


@pytest.mark.parametrize(
    ("law", "s", "steps", "epsilon"),
    [
        (MultiplicityLaw.single(300 / 30969), 0.885, 1000, 2.0),
        (MultiplicityLaw.single(0.02), 4.0, 1000, 1.0),
        (MultiplicityLaw.single(0.5), 0.2, 3, 0.5),
        (MultiplicityLaw.single(0.3), 1.0, 1, 1.0),
    ],
)
def test_the_flip_is_not_below_the_static_attack(
    law: MultiplicityLaw, s: float, steps: int, epsilon: float
) -> None:
    static = (
        Composition([(PairEvent(FillerPair(law, s / 2)), steps)])
        .attack(Target(epsilon=epsilon))
        .value
    )
    assert AdaptiveAttack(FillerPair(law, s / 2), steps).answer(
        Target(epsilon=epsilon)
    ) >= static * (1 - 3e-3)


def test_epsilon_and_delta_are_inverse_to_each_other() -> None:
    attack = AdaptiveAttack(FillerPair(MultiplicityLaw.single(0.02), 0.5), 200)
    for delta in (1e-2, 1e-5, 1e-11):
        epsilon = attack.answer(Target(delta=delta))
        assert attack.answer(Target(epsilon=epsilon)) == pytest.approx(delta, rel=0.02)


def test_large_losses_reach_the_reference() -> None:
    # adaptive values computed elsewhere, to the digits given there
    question = {"steps": 1000, "epsilon": 2.0, **SUBSTITUTE}
    wor = dpsub.account(Wor(300), 30969, noise_multiplier=0.885, **question)
    must = dpsub.account(MustOW(500, 300), 30969, noise_multiplier=0.671, **question)
    assert 0.3996 <= wor.lower <= wor.upper <= 0.571
    assert 0.9155 <= must.lower <= must.upper <= 0.96
    assert "adaptively" in wor.lower_pair


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_a_laws_missing_mass_stays_missing(k: int) -> None:
    half = Fillers(
        PrivacyLossDistribution(0.01, np.array([100]), np.array([0.5]), "lower"),
        PrivacyLossDistribution(0.01, np.array([100]), np.array([0.5 * math.exp(-1)]), "upper"),
    )
    value = FillerFlip([half, half], k).played(-6.0, 6.0).delta(0.0)
    truth = 0.5**k * -math.expm1(-k)
    assert truth * (1 - 1e-6) <= value <= truth


def test_losses_beyond_the_window_are_accepted_or_given_up() -> None:
    for place in (-1000, 1000):
        accepted = PrivacyLossDistribution(0.01, np.array([place]), np.array([0.5]), "lower")
        charged = PrivacyLossDistribution(
            0.01, np.array([place]), np.array([0.5 * math.exp(-0.01 * place)]), "upper"
        )
        value = FillerFlip([Fillers(accepted, charged)], 1).played(-1.0, 1.0).delta(0.0)
        assert value == pytest.approx(0.5 * -math.expm1(-10.0) if place > 0 else 0.0, rel=1e-6)


def test_understated_charges_are_caught() -> None:
    # the same policy with a hundredth less mass on the second data set claims more than there is
    q, s, epsilon = 0.3, 0.8, 0.3
    outcomes = choices(FillerPair(MultiplicityLaw.single(q), s / 2), 0.02)
    faulty = [
        Fillers(one.accepted, dataclasses.replace(one.charged, masses=0.99 * one.charged.masses))
        for one in outcomes
    ]
    truth = two_steps(q, s, epsilon)
    assert FillerFlip(outcomes, 2).played(-12.0, 15.0).delta(epsilon) <= truth
    assert FillerFlip(faulty, 2).played(-12.0, 15.0).delta(epsilon) > truth

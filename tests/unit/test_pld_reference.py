"""The accountant's reference numbers: one step, many steps, two adaptive steps, and speed-free properties of
answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpsub
from dpsub.accounting.account import Release
from dpsub.accounting.attacks import AdaptiveGame, choices
from dpsub.accounting.pairs import FillerPair
from dpsub.accounting.proofs import ChainProfile, SlotChain, SlotStage, gaussian_profile, log_lift
from dpsub.sampling import Multistage, MustOO, MustOW, MustWO, MustWW, Poisson, Sampler, Wor, Wr
from dpsub.sampling import base as st
from dpsub.sampling.laws import MultiplicityLaw

S7 = 10_000
ADULT = 30_969


def test_one_step_table() -> None:
    x = np.array([0.5, 1.0, 2.0])
    wor = ChainProfile(SlotChain(4, [SlotStage("without", 2)]), 1.0)(x)
    np.testing.assert_allclose(wor, [0.27015, 0.21050, 0.11719], atol=5e-6)
    pair = ChainProfile(SlotChain(4, [SlotStage("without", 2), SlotStage("with", 2)]), 1.0)(x[1:])
    # the attack's .19962 and .15217 must lie below; the bound is not tight
    assert np.all(pair > [0.19962, 0.15217])
    assert np.all(pair < [0.206, 0.154])


@pytest.mark.parametrize("scale", [0.3, 1.0, 1e4])
@pytest.mark.parametrize("last", [SlotStage("with", 9), SlotStage("without", 9)])
def test_a_table_of_a_long_chain_is_above_what_it_holds_and_near_it(last: SlotStage, scale: float) -> None:
    profile = ChainProfile(SlotChain(50, [SlotStage("with", 30), SlotStage("with", 20), last]), scale)
    x = np.concatenate([np.linspace(0, 20 / scale, 997), np.geomspace(1e-6 / scale, 700, 499)])
    for marked in (1, 4):
        law = last.count_law(20, marked)
        table, direct = profile._looked_up(x, law), profile._lifted_sum(x, law, 1.0)
        assert np.all(table >= direct * (1 - 1e-12))
        assert np.all((table <= direct * 1.1)[direct > 1e-8])


@pytest.mark.parametrize(
    ("sampler", "n", "scale", "k", "epsilon", "value", "digits"),
    [
        (Wor(300), ADULT, 2.654, 1000, 2.0, 2.02e-19, 0.01),
        (Wr(300), ADULT, 2.641, 1000, 2.0, 3.0e-19, 0.02),
        (MustOW(500, 300), ADULT, 2.013, 1000, 2.0, 8.77e-7, 0.002),
        (MustWW(500, 300), ADULT, 2.006, 1000, 2.0, 1.44e-6, 0.004),
        (MustOW(118, 200), S7, 4.0, 200, 1.0, 1.41e-8, 0.005),
        (MustOW(118, 200), S7, 4.0, 400, 1.0, 1.11e-7, 0.005),
        (MustOW(118, 200), S7, 4.0, 600, 1.0, 3.74e-6, 0.002),
        (MustOW(118, 200), S7, 4.0, 800, 1.0, 3.56e-5, 0.002),
        (MustOW(118, 200), S7, 4.0, 1000, 1.0, 1.517e-4, 0.001),
        (MustWW(118, 200), S7, 4.0, 1000, 1.0, 1.54e-4, 0.004),
        (Wor(200), S7, 4.0, 1000, 1.0, 1.09e-4, 0.005),
        (Wr(200), S7, 4.0, 1000, 1.0, 1.09e-4, 0.005),
        (Wor(300), ADULT, 0.885, 1000, 2.0, 3.127e-3, 0.002),
        (MustOW(500, 300), ADULT, 0.671, 1000, 2.0, 0.413, 0.002),
    ],
)
def test_the_papers_pairs(
    sampler: Sampler, n: int, scale: float, k: int, epsilon: float, value: float, digits: float
) -> None:
    answer = dpsub.account(sampler, n, noise_multiplier=scale, steps=k, epsilon=epsilon, width=2e-3, variant="paper")
    assert answer.kind == "paper"
    assert answer.upper - answer.lower <= 2e-3 * answer.upper
    assert answer.lower * (1 - digits) <= value <= answer.upper * (1 + digits)


@pytest.mark.parametrize(
    ("sampler", "n", "scale", "k", "epsilon", "attack", "proved"),
    [
        (Wor(300), ADULT, 2.654, 1000, 2.0, 1.85e-12, 2.86e-10),
        (Wr(300), ADULT, 2.641, 1000, 2.0, 1.36e-11, 5.33e-10),
        (MustOW(500, 300), ADULT, 2.013, 1000, 2.0, 0.0357, 0.0520),
        (MustOW(118, 200), S7, 4.0, 1000, 1.0, 0.0400, 0.0912),
        (MustOW(118, 200), S7, 4.0, 200, 1.0, 0.00496, 0.0099),
        (MustWW(118, 200), S7, 4.0, 1000, 1.0, 0.0402, 0.0960),
        (Wor(200), S7, 4.0, 1000, 1.0, 3.06e-4, 1.15e-3),
        (Wr(200), S7, 4.0, 1000, 1.0, 3.11e-4, 1.20e-3),
        (Wor(300), ADULT, 0.885, 1000, 2.0, 0.3725, 0.570),
    ],
)
def test_attack_and_proof(
    sampler: Sampler, n: int, scale: float, k: int, epsilon: float, attack: float, proved: float
) -> None:
    answer = dpsub.account(sampler, n, noise_multiplier=scale, steps=k, epsilon=epsilon, width=5e-3)
    assert answer.kind == "bounds"
    assert answer.conditions
    # at least the reference attack up to its own digits; the proof to one per cent of the reference
    assert answer.lower >= attack * 0.985
    assert answer.lower < answer.upper
    assert proved * 0.99 <= answer.upper <= proved * 1.012


def test_poisson_meets_the_reference_bracket() -> None:
    for k, width, low, high in ((1000, 2e-4, 1.82820, 1.82828), (10_000, 2e-3, 6.1863, 6.1881)):
        answer = dpsub.account(Poisson(0.01), noise_multiplier=1.0, steps=k, delta=1e-5, width=width)
        assert answer.kind == "exact"
        assert answer.upper - answer.lower <= width
        assert low <= answer.upper <= high
        assert low <= answer.lower
    substituted = dpsub.account(
        Poisson(300 / ADULT), noise_multiplier=2.654, steps=1000, delta=1e-5, adjacency="substitute"
    )
    assert substituted.lower <= 0.8505
    assert substituted.upper >= 0.8495


def test_a_million_steps() -> None:
    answer = dpsub.account(Poisson(0.001), noise_multiplier=2.0, steps=10**6, delta=1e-5, width=2e-3)
    assert 0 < answer.upper - answer.lower <= 2e-3


def _two_adaptive_steps() -> float:
    """max over the fillers' sign, at the second step by the loss of the first, of delta(0) for WOR(4, 2), s = 1."""
    t, dt = np.linspace(-14, 16, 300_001, retstep=True)
    base = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    mixed = 0.5 * base + 0.5 * np.exp(-((t - 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = np.log(mixed) - np.log(base)
    side = 0.5 * gaussian_profile(log_lift(np.abs(loss), 0.5), np.array(2.0))
    # after a loss L the second step has order e^{-L}: the better sign has profile h for orders above 1,
    # its mirror image for orders below
    after = np.where(loss <= 0, side, 1 - np.exp(-loss) + np.exp(-loss) * side)
    return float(np.sum(mixed * after) * dt)


def test_two_adaptive_steps_lie_between_attack_and_proof() -> None:
    truth = _two_adaptive_steps()
    assert truth == pytest.approx(0.51662, abs=1e-5)
    answer = dpsub.account(Wor(2), 4, noise_multiplier=1.0, steps=2, epsilon=0.0)
    assert truth - 1e-3 < answer.lower <= truth
    assert answer.upper == pytest.approx(0.5379, abs=1e-4)
    fine = AdaptiveGame(choices(FillerPair(MultiplicityLaw.single(0.5), 0.5), 2e-3), 2).played(-20.0, 20.0)
    assert truth - 1e-5 < fine.delta(0.0) <= truth
    deltas = [fine.delta(epsilon) for epsilon in np.linspace(0, 5, 101)]
    assert np.all(np.diff(deltas) <= 0)


def test_equal_laws_give_equal_answers() -> None:
    def upper(sampler: Sampler, n: int) -> float:
        return dpsub.account(sampler, n, noise_multiplier=2.0, steps=50, epsilon=0.5, width=5e-3).upper

    assert upper(MustWO(30, 10), 100) == upper(Wr(10), 100)
    assert upper(MustOO(30, 10), 100) == upper(Wor(10), 100)
    chain = Multistage([st.WithoutReplacement(30), st.WithReplacement(10)])
    assert upper(chain, 100) == upper(MustOW(30, 10), 100)
    assert upper(MustOW(100, 10), 100) == pytest.approx(upper(Wr(10), 100), rel=1e-6)


def test_different_releases_compose() -> None:
    many = [Release(Wor(100), 5000, 3.0, 60), Release(MustOW(400, 100), 5000, 5.0, 40)]
    both = dpsub.Ledger(many).account(epsilon=0.5, width=5e-3)
    alone = [dpsub.Ledger([release]).account(epsilon=0.5, width=5e-3) for release in many]
    assert both.upper > max(answer.upper for answer in alone)
    assert both.lower > 0
    assert both.kind == "bounds"
    halves = [Release(Wor(100), 5000, 3.0, 30), Release(Wor(100), 5000, 3.0, 30)]
    whole = dpsub.Ledger([Release(Wor(100), 5000, 3.0, 60)]).account(delta=1e-6, width=1e-3)
    assert dpsub.Ledger(halves).account(delta=1e-6, width=1e-3).upper == pytest.approx(whole.upper, abs=1e-3)


def test_losses_beyond_every_order_are_charged() -> None:
    # at this noise one inclusion is a loss of about 555, and e^600 is the last order: most of it counts as infinite
    answer = dpsub.account(Wor(300), ADULT, noise_multiplier=0.06, steps=1000, epsilon=2.0)
    included = -math.expm1(1000 * math.log1p(-300 / ADULT))
    assert answer.lower <= included <= answer.upper

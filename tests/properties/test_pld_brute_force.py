"""No upper bound is below the enumerated truth, and faults planted into the bounds are caught."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.discretise import upper_pld
from dpsub.accounting.pairs import GaussianPair, MixturePair, PoissonPair, WorPair
from dpsub.accounting.proofs import ChainProfile, SlotChain, SlotStage
from dpsub.sampling.laws import MultiplicityLaw
from dpsub.streams import stream
from tests.tiny_mechanisms import RECORDS, divergences, sample_counts

LOG_ORDERS = np.array([-2.0, -1.0, -0.3, 0.0, 0.2, 0.5, 1.0, 2.0, 4.0])
SCALES = (0.5, 1.0, 2.5)
PAIRS = 80


def wo(size: int) -> SlotStage:
    return SlotStage("without", size)


def wr(size: int) -> SlotStage:
    return SlotStage("with", size)


def poisson(rate: float) -> SlotStage:
    return SlotStage("poisson", rate=rate)


CHAINS = {
    "wor": (5, [wo(2)]),
    "wor, more than half": (4, [wo(3)]),
    "wr": (4, [wr(3)]),
    "wr, m > n": (2, [wr(4)]),
    "must_ow": (4, [wo(2), wr(2)]),
    "must_ow, one slot": (3, [wo(1), wr(3)]),
    "must_wo": (4, [wr(3), wo(2)]),
    "must_ww": (4, [wr(3), wr(2)]),
    "must_ww, b > n": (2, [wr(3), wr(3)]),
    "must_oo": (5, [wo(4), wo(2)]),
    "wr, wr, wr": (3, [wr(3), wr(2), wr(2)]),
    "wo, wr, wr": (4, [wo(3), wr(3), wr(2)]),
    "wr, wo, wr": (4, [wr(3), wo(2), wr(3)]),
    "wo, poisson": (4, [wo(3), poisson(0.4)]),
    "wr, poisson": (3, [wr(3), poisson(0.6)]),
    "wo, wr, poisson": (4, [wo(2), wr(2), poisson(0.5)]),
}


def mirrored(profile: ChainProfile, log_orders: np.ndarray) -> np.ndarray:
    """The bound at orders on both sides of 1, by H(a) = 1 - a + a H(1/a)."""
    sizes, place = np.unique(np.abs(log_orders), return_inverse=True)
    values = profile(sizes)[place]
    a = np.exp(log_orders)
    return np.where(log_orders >= 0, values, 1 - a + a * values)


def neighbours(n: int, name: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Random data sets that differ in the first record; the static attack's pairs come first."""
    rng = stream(20260, experiment="brute_force", cell={"chain": name, "scale": scale}, role="data", replicate=0)
    data = rng.choice(RECORDS, size=(PAIRS, n))
    other = data.copy()
    other[:, 0] = rng.choice(RECORDS, size=PAIRS)
    data[:2, 1:] = other[:2, 1:] = -1.0
    data[0, 0], other[0, 0] = 1.0, -1.0
    data[1, 0], other[1, 0] = -1.0, 1.0
    return data, other


def truths(name: str, scale: float) -> np.ndarray:
    n, stages = CHAINS[name]
    return divergences(*sample_counts(n, stages), *neighbours(n, name, scale), scale, np.exp(LOG_ORDERS))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CHAINS)
def test_no_bound_is_below_the_truth(name: str, scale: float) -> None:
    n, stages = CHAINS[name]
    bound = mirrored(ChainProfile(SlotChain(n, stages), scale), LOG_ORDERS)
    truth = truths(name, scale)
    assert truth.size == PAIRS * LOG_ORDERS.size  # 16 chains x 3 scales x 720 = 34,560 cases
    assert np.all(truth <= bound + 1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["wor", "wor, more than half", "must_oo"])
def test_without_replacement_the_bound_is_attained(name: str, scale: float) -> None:
    n, stages = CHAINS[name]
    bound = mirrored(ChainProfile(SlotChain(n, stages), scale), LOG_ORDERS)
    np.testing.assert_allclose(truths(name, scale).max(axis=0), bound, rtol=2e-4, atol=1e-9)


def test_a_law_of_counts_by_two_roads() -> None:
    for n, stages in CHAINS.values():
        counts, weights = sample_counts(n, stages)
        law = np.bincount(counts[:, 0], weights)
        np.testing.assert_allclose(SlotChain(n, stages).multiplicity[: law.size], law, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_poisson_pairs_bound_and_attain(scale: float, rate: float) -> None:
    counts, weights = sample_counts(3, [poisson(rate)])
    data, other = neighbours(3, "poisson", scale)
    epsilons = LOG_ORDERS[LOG_ORDERS >= 0]
    substituted = divergences(counts, weights, data, other, scale, np.exp(epsilons))
    without = data.copy()
    without[:, 0] = 0.0  # a zero record is no record in a sum
    added = divergences(counts, weights, data, without, scale, np.exp(epsilons))
    removed = divergences(counts, weights, without, data, scale, np.exp(epsilons))
    zeros, one, minus = np.zeros((1, 3)), np.eye(1, 3), -np.eye(1, 3)
    cases: list[tuple[GaussianPair, bool, np.ndarray, np.ndarray]] = [
        (WorPair(rate, scale), False, substituted, divergences(counts, weights, one, minus, scale, np.exp(epsilons))),
        (PoissonPair(rate, scale), False, added, divergences(counts, weights, one, zeros, scale, np.exp(epsilons))),
        (PoissonPair(rate, scale), True, removed, divergences(counts, weights, zeros, one, scale, np.exp(epsilons))),
    ]
    for pair, swapped, truth, worst in cases:
        law = upper_pld(pair, 1e-3, tail=1e-15, swapped=swapped)
        bound = np.array([ComposedLoss([law], [1]).delta(epsilon) for epsilon in epsilons])
        assert np.all(truth <= bound + 1e-12)
        np.testing.assert_allclose(worst[0], bound, rtol=1e-3, atol=1e-9)


def test_a_shift_of_one_unit_instead_of_two_is_caught() -> None:
    caught = 0
    for name in ("wor", "wr", "must_ow", "must_ww"):
        chain = SlotChain(*CHAINS[name])
        pair = MixturePair(MultiplicityLaw(np.log(chain.multiplicity)), 1.0)
        x = LOG_ORDERS[LOG_ORDERS >= 0]
        faulty = pair.sf(pair.inverse_loss(x)) - np.exp(x) * pair.sf_prime(pair.inverse_loss(x))
        caught += bool(np.any(truths(name, 1.0)[:, LOG_ORDERS >= 0] > faulty + 1e-6))
    assert caught == 4

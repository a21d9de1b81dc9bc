"""Two steps on tiny data sets, every pair of neighbours at each step: no bound is below, whatever the noise.

For a grouping of outputs into cells of masses p, q (post-processing, so from below) two steps have

    H_a = sum over cells of the first step of p_i H_(a q_i / p_i)(second step),

and the second step may depend on the first: the largest H over the second steps that are allowed is taken at every
order.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpsub
from dpsub.accounting.proofs import SlotStage
from dpsub.sampling import MustOW, MustWW, Poisson, Sampler, Wor, Wr
from dpsub.streams import stream
from tests.tiny_mechanisms import cell_masses, sample_counts

EXTREMES = (-1.0, 0.0, 1.0)
SAMPLERS: dict[str, tuple[Sampler, int, list[SlotStage]]] = {
    "wor": (Wor(2), 4, [SlotStage("without", 2)]),
    "wr": (Wr(2), 3, [SlotStage("with", 2)]),
    "must_ow": (MustOW(2, 2), 3, [SlotStage("without", 2), SlotStage("with", 2)]),
    "must_ww": (MustWW(2, 2), 3, [SlotStage("with", 2), SlotStage("with", 2)]),
}
SCALES = (0.055, 0.06, 0.08, 0.1, 0.3, 1.0, 3.0)
EPSILONS = (0.0, 0.5, 2.0)


def neighbours(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of data sets of extreme records that differ in the first one, up to the order of the others."""
    rest = list(itertools.combinations_with_replacement(EXTREMES, n - 1))
    versions = [(v, w) for v in EXTREMES for w in EXTREMES if v != w]
    first, second = zip(*[((v, *others), (w, *others)) for v, w in versions for others in rest], strict=True)
    return np.array(first), np.array(second)


class Step:
    """H_a(P || Q) of one step at any orders, from its cells sorted by likelihood ratio."""

    def __init__(self, p: np.ndarray, q: np.ndarray) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(q > 0, p / q, np.inf)
        order = np.argsort(-ratios)
        self.ratios = ratios[order]
        self.p = np.concatenate([[0.0], np.cumsum(p[order])])
        self.q = np.concatenate([[0.0], np.cumsum(q[order])])

    def __call__(self, orders: np.ndarray) -> np.ndarray:
        # any number of leading cells is an event; the cells above the order are the best one
        count = np.searchsorted(-self.ratios, -orders, side="left")
        return np.asarray(self.p[count] - np.where(self.q[count] > 0, orders * self.q[count], 0.0))


def two_steps(p: np.ndarray, q: np.ndarray, epsilons: tuple[float, ...]) -> np.ndarray:
    """The largest H over first steps, with the best second step at every order, shape of `epsilons`."""
    steps = [Step(one, other) for one, other in zip(p, q, strict=True)]
    result = np.zeros(len(epsilons))
    # the best second step depends on the order only: its envelope is tabled, and read at the next larger order
    table = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 20_001)])
    envelope = np.max([step(table) for step in steps], axis=0)
    for one, other in zip(p, q, strict=True):
        there = one > 0
        for place, epsilon in enumerate(epsilons):
            with np.errstate(over="ignore"):
                orders = math.exp(epsilon) * other[there] / one[there]
            at = np.searchsorted(table, orders, side="left")
            after = np.where(at < table.size, envelope[np.minimum(at, table.size - 1)], 0.0)
            result[place] = max(result[place], float(one[there] @ after))
    return result


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_no_bound_of_two_steps_is_below_the_truth(name: str, scale: float) -> None:
    sampler, n, stages = SAMPLERS[name]
    data, other = neighbours(n)
    p, q = cell_masses(*sample_counts(n, stages), data, other, scale, 0.05 if scale < 0.2 else 0.02)
    truth = two_steps(p, q, EPSILONS)
    for epsilon, value in zip(EPSILONS, truth, strict=True):
        answer = dpsub.account(sampler, n, noise_multiplier=scale, steps=2, epsilon=epsilon, width=0.01)
        assert value <= answer.upper + 1e-12
        if name == "wor" and scale < 0.2:
            # two inclusions are told apart almost surely: the truth is near 1 - (1 - q)^2, and so is the bound
            assert value > 0.745
            assert answer.upper < 0.752


def test_two_steps_by_hand() -> None:
    # randomised response twice: (3/4, 1/4) against (1/4, 3/4)
    p, q = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    np.testing.assert_allclose(two_steps(p, q, (0.0,)), 0.5, rtol=2e-3)
    assert two_steps(p, q, (0.0,))[0] <= 0.5


def _random_case(index: int) -> tuple[Sampler, int | None, float, int, float]:
    rng = stream(20261, experiment="random_accounts", cell={"case": index}, role="data", replicate=0)
    n = int(rng.integers(20, 2000))
    m = int(rng.integers(2, max(3, min(n // 2, 15))))
    samplers: list[tuple[Sampler, int | None]] = [
        (Wor(m), n), (Wr(m), n), (MustOW(min(n, 2 * m), m), n), (MustWW(min(n, 2 * m), m), n), (Poisson(m / n), None)
    ]  # fmt: skip
    sampler, size = samplers[index % len(samplers)]
    scale = float(np.exp(rng.uniform(math.log(0.05), math.log(5.0))))
    k = round(float(np.exp(rng.uniform(0.0, math.log(1e4)))))
    return sampler, size, scale, k, float(rng.uniform(0, 4))


@pytest.mark.parametrize("index", range(20))
def test_ends_are_ordered_for_any_noise_and_number_of_steps(index: int) -> None:
    sampler, n, scale, k, epsilon = _random_case(index)
    answer = dpsub.account(sampler, n, noise_multiplier=scale, steps=k, epsilon=epsilon, width=0.05)
    assert 0 <= answer.lower <= answer.upper <= 1
    # an inclusion is at most a sure loss
    law_misses = (1 - _eta(sampler, n)) ** k
    assert answer.upper <= 1 - law_misses + 1e-6
    if index < 5:
        more = dpsub.account(sampler, n, noise_multiplier=scale, steps=k + k // 2 + 1, epsilon=epsilon, width=0.05)
        assert answer.lower <= more.upper


def _eta(sampler: Sampler, n: int | None) -> float:
    law = sampler.multiplicity_law(n if n is not None else 10)
    assert law is not None
    return float(law.eta)

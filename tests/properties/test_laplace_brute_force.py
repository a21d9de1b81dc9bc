"""Laplace noise on tiny data sets, all enumerated: no bound is below the truth, and the named pairs attain it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpsub
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.laplace import LaplacePair, laplace_case
from dpsub.accounting.proofs import SlotChain, SlotStage
from dpsub.relations import Relation
from dpsub.sampling import Poisson, Wor
from tests.tiny_mechanisms import RECORDS, cell_masses, divergences, sample_counts

LOG_ORDERS = np.array([-2.0, -0.7, -0.2, 0.0, 0.1, 0.4, 1.0, 2.0])
SCALES = (0.4, 1.0, 3.0)
CASES = {
    "one of two": (2, SlotStage("without", 1), Relation.SUBSTITUTE),
    "two of three": (3, SlotStage("without", 2), Relation.SUBSTITUTE),
    "two of four": (4, SlotStage("without", 2), Relation.SUBSTITUTE),
    "all of three": (3, SlotStage("without", 3), Relation.SUBSTITUTE),
    "poisson, replaced": (3, SlotStage("poisson", rate=0.3), Relation.SUBSTITUTE),
    "poisson, often replaced": (3, SlotStage("poisson", rate=0.8), Relation.SUBSTITUTE),
    "poisson, added": (4, SlotStage("poisson", rate=0.3), Relation.ADD_REMOVE),
}


def neighbours(n: int, relation: Relation) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs that differ in the first record, up to the order of the others; a zero record is an absent
    one."""
    rest = list(itertools.combinations_with_replacement(RECORDS, n - 1))
    versions = [(v, w) for v in RECORDS for w in RECORDS if v != w]
    if relation is Relation.ADD_REMOVE:
        versions = [(v, w) for v, w in versions if 0 in (v, w)]
    rows = [((v, *others), (w, *others)) for v, w in versions for others in rest]
    first, second = zip(*rows, strict=True)
    return np.array(first), np.array(second)


def bounds(name: str, scale: float, swapped: bool = False) -> np.ndarray:
    """What is proved, at all orders, from the exact profiles and their mirror images."""
    n, stage, relation = CASES[name]
    event = laplace_case(SlotChain(n, [stage]), relation, scale).event
    above, below = (event.backward, event.forward) if swapped else (event.forward, event.backward)
    a = np.exp(LOG_ORDERS)
    return np.where(LOG_ORDERS >= 0, above(np.maximum(LOG_ORDERS, 0)), 1 - a + a * below(np.maximum(-LOG_ORDERS, 0)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_for_all_data_sets_and_are_attained(name: str, scale: float) -> None:
    n, stage, relation = CASES[name]
    data, other = neighbours(n, relation)
    truth = divergences(*sample_counts(n, [stage]), data, other, scale, np.exp(LOG_ORDERS), "laplace")
    if relation is Relation.SUBSTITUTE:
        orders = [(np.ones(len(data), dtype=bool), False)]
    else:
        # the record is present on the first side, or on the second
        orders = [(other[:, 0] == 0, False), (data[:, 0] == 0, True)]
    for kept, swapped in orders:
        bound = bounds(name, scale, swapped)
        assert np.all(truth[kept] <= bound + 1e-12)
        np.testing.assert_allclose(truth[kept].max(axis=0), bound, rtol=1e-3, atol=1e-6)


def test_a_distance_of_one_unit_instead_of_two_is_caught() -> None:
    for name in ("one of two", "two of four"):
        n, stage, relation = CASES[name]
        truth = divergences(*sample_counts(n, [stage]), *neighbours(n, relation), 1.0, np.exp(LOG_ORDERS), "laplace")
        faulty = laplace_case(SlotChain(n, [stage]), relation, 2.0).event.forward  # half the distance
        assert np.any(truth[:, LOG_ORDERS >= 0].max(axis=0) > faulty(LOG_ORDERS[LOG_ORDERS >= 0]) + 1e-3)


def _two_steps(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The same two data sets twice, from all pairs of cells."""
    return float(np.maximum(np.multiply.outer(p, p) - math.exp(epsilon) * np.multiply.outer(q, q), 0).sum())


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("rate", "scale"), [(0.3, 0.5), (0.8, 2.0)])
def test_two_poisson_steps_are_exact(relation: Relation, rate: float, scale: float) -> None:
    data, other = np.array([[1.0, 0.0]]), np.array([[-1.0 if relation is Relation.SUBSTITUTE else 0.0, 0.0]])
    p, q = cell_masses(*sample_counts(2, [SlotStage("poisson", rate=rate)]), data, other, scale, 0.02, "laplace")
    for epsilon in (0.0, 0.3, 1.0):
        truth = max(_two_steps(p[0], q[0], epsilon), _two_steps(q[0], p[0], epsilon))
        answer = dpsub.account(
            Poisson(rate), noise_multiplier=scale, steps=2, epsilon=epsilon, adjacency=str(relation),
            mechanism="laplace",
        )  # fmt: skip
        assert answer.kind == "exact"
        assert answer.lower <= answer.upper <= answer.lower * (1 + 2e-3) + 1e-9
        assert truth <= answer.upper
        assert answer.lower <= truth * (1 + 2e-3) + 1e-9


def test_two_steps_without_replacement_lie_between_attack_and_proof() -> None:
    p, q = cell_masses(
        *sample_counts(4, [SlotStage("without", 2)]),
        np.array([[1.0, -1, -1, -1]]),
        -np.ones((1, 4)),
        1.0,
        0.02,
        "laplace",
    )
    for epsilon in (0.0, 0.5, 1.0):
        static = max(_two_steps(p[0], q[0], epsilon), _two_steps(q[0], p[0], epsilon))
        answer = dpsub.account(Wor(2), 4, noise_multiplier=1.0, steps=2, epsilon=epsilon, mechanism="laplace")
        assert answer.kind == "bounds"
        assert static * (1 - 5e-3) <= answer.lower <= answer.upper
        assert answer.lower > 0


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("pair", [LaplacePair(0.1, 4.0), LaplacePair(0.6, 1.0), LaplacePair(1.0, 2.0),
                                  LaplacePair(0.3, 0.1, True), LaplacePair(0.05, 6.0, True)])  # fmt: skip
def test_lower_laws_are_those_of_grouped_outputs(pair: LaplacePair, swapped: bool) -> None:
    t = np.linspace(-pair.ratio - 20, pair.ratio + 20, 400_001)
    middle, width = (t[1:] + t[:-1]) / 2, t[1] - t[0]

    def density(centre: float) -> np.ndarray:
        return 0.5 * np.exp(-np.abs(middle - centre)) * width

    p = (1 - pair.rate) * density(0) + pair.rate * density(pair.ratio)
    q = (1 - pair.rate) * density(0) + pair.rate * density(-pair.ratio) if pair.mirrored else density(0)
    p, q = (q, p) if swapped else (p, q)
    np.testing.assert_allclose((-1 if swapped else 1) * pair.loss(middle), np.log(p / q), atol=1e-9)
    for step in (0.5, 0.05, 1e-3):
        for grid in (step, pair.fitting(step)):
            law = pair.lower_pld(grid, swapped)
            assert law.masses.sum() <= 1
            for epsilon in (0.0, 0.02, 0.3):
                truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                assert ComposedLoss([law], [1]).delta(epsilon) <= truth * (1 + 1e-6) + 1e-9

"""The attack on cut samples that tells sizes: held against all samples of vectors in the plane, by
enumeration and quadrature."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition, answers_of
from dpsub.accounting.engine.privacy_events import StatisticEvent
from dpsub.accounting.schemes.truncated.cut_samples import CutSample
from dpsub.accounting.schemes.truncated.told_sizes import ToldSizes
from dpsub.relations import Relation

Vector = tuple[float, float]
EPSILONS = (0.3, 1.5)
TIMES: dict[Relation, list[float]] = {
    Relation.ADD_REMOVE: [],
    Relation.ZERO_OUT: [0.0],
    Relation.SUBSTITUTE: [-1.0],
}


def sums(data: list[Vector], rate: float, most: int) -> Counter[Vector]:
    """Return the probabilities of the sums of all samples."""
    law: Counter[Vector] = Counter()
    for size in range(len(data) + 1):
        chance = rate**size * (1 - rate) ** (len(data) - size)
        for drawn in itertools.combinations(data, size):
            kept = list(itertools.combinations(drawn, min(most, size)))
            for sample in kept:
                x, y = (math.fsum(vector[i] for vector in sample) for i in (0, 1))
                law[round(x, 12), round(y, 12)] += chance / len(kept)
    return law


def density(law: Counter[Vector], s: float, t: np.ndarray) -> np.ndarray:
    total = np.zeros((t.size, t.size))
    for (x, y), chance in law.items():
        total += chance * np.multiply.outer(
            np.exp(-(((t - x) / s) ** 2) / 2), np.exp(-(((t - y) / s) ** 2) / 2)
        )
    return total / (2 * math.pi * s * s)


def attained(attack: ToldSizes, epsilon: float) -> float:
    """Return delta of one step."""
    step = Composition([(StatisticEvent(attack), 1)])
    laws = [step.lower(1e-3, 1e-12, swapped) for swapped in (False, True)]
    return max(float(answers_of(law, [Target(epsilon=epsilon)])[0]) for law in laws)


@pytest.mark.parametrize(
    ("n", "rate", "most", "against", "s"),
    [(5, 0.4, 2, 0.2, 0.8), (4, 0.7, 3, 0.0, 1.5)],
)
@pytest.mark.parametrize("relation", list(Relation))
def test_the_attack_attains_what_its_data_sets_do(
    n: int, rate: float, most: int, against: float, s: float, relation: Relation
) -> None:
    # g is the first direction
    record = -against, math.sqrt(1 - against**2)
    others = [(1.0, 0.0)] * (n - 1)
    replaced = [(c * record[0], c * record[1]) for c in TIMES[relation]]
    t = np.linspace(-2 - 8 * s, most + 2 + 8 * s, 500)
    with_record = density(sums([record, *others], rate, most), s, t)
    without = density(sums([*replaced, *others], rate, most), s, t)
    attack = ToldSizes(CutSample(n, rate, most), relation, s, against)
    # planted fault: a record never takes the place of another one
    forgotten = CutSample(n, rate, most)
    object.__setattr__(forgotten, "displacing", 1e-9)
    seen = 0.0
    for epsilon in EPSILONS:
        a, area = math.exp(epsilon), (t[1] - t[0]) ** 2
        pairs = (with_record, without), (without, with_record)
        truth = max(float(np.maximum(p - a * q, 0).sum()) * area for p, q in pairs)
        lower, missed = (
            attained(each, epsilon) for each in (attack, replace(attack, sample=forgotten))
        )
        assert truth * (1 - 0.01) - 1e-8 <= lower <= truth * (1 + 1e-4) + 1e-9
        seen = max(seen, abs(missed / truth - 1))
    assert seen > 0.1


def test_the_masses_are_bounded_from_both_sides() -> None:
    """Sizes that are not told apart included, of which there are many here."""
    for sample in (CutSample(1000, 0.05, 50), CutSample(10_000, 0.3, 3_010)):
        for relation in Relation:
            attack = ToldSizes(sample, relation, 0.7, 0.3)
            for least, most in attack.masses(*attack.edges(1e-12)):
                assert np.all(least <= most)
                assert 1 - 1e-8 < least.sum() <= 1 <= most.sum() < 1 + 1e-8

"""A record replaced in k of t steps, Theorem 90: sums over all k-subsets and integrals over all
outputs, vectors that are chosen by the past, and the weights of the attacks; faults are noticed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.schemes.allocation.one_step import SumEvent, replaced_event
from dpsub.accounting.schemes.allocation.opposite_event import OppositeBlocks
from dpsub.streams import stream
from tests.few import few

_NODES = {2: 901, 3: 141, 4: 47}


def of_subsets(t: int, k: int, noise: float, epsilon: float) -> float:
    """H_a, a = e^epsilon, of a record at C against -C in k of t steps among zero records, by the
    trapezoidal rule over all outputs."""
    f = 1 / noise
    z = np.linspace(-7.5 - f, 7.5 + f, _NODES[t])
    density = np.exp(-z * z / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    weights = math.prod(np.ix_(*[density] * t))
    ratios = []
    for v in (f, -f):
        of_step = np.ix_(*[np.exp(v * z - v * v / 2)] * t)
        subsets = list(itertools.combinations(range(t), k))
        ratios.append(sum(math.prod(of_step[j] for j in s) for s in subsets) / len(subsets))
    return float(np.sum(weights * np.maximum(ratios[0] - math.exp(epsilon) * ratios[1], 0.0)))


def bound(t: int, k: int, noise: float, epsilon: float) -> float:
    return Composition([(OppositeBlocks(t, k, noise), 1)]).bound(Target(epsilon)).value


@pytest.mark.parametrize(
    ("t", "k", "noise", "epsilon"),
    few(
        [
            (3, 2, 1.0, 2.0),
            (3, 2, 0.6, 6.0),
            (3, 2, 3.0, 0.3),
            (4, 2, 1.0, 1.0),
            (4, 3, 1.5, 1.0),
        ]
    ),
)
def test_both_ends_hold_the_sum_over_all_choices_of_steps(
    t: int, k: int, noise: float, epsilon: float
) -> None:
    truth = of_subsets(t, k, noise, epsilon)
    found = dpsub.account(
        dpsub.RandomAllocation(t, k),
        noise_multiplier=noise,
        epsilon=epsilon,
        adjacency="substitute",
    )
    assert found.theorem.startswith("Theorem 90,")
    assert 0.9 * truth < found.lower < truth * 1.002
    assert truth * 0.998 < found.upper < 1.4 * truth
    removed = Composition([(replaced_event(t, k, noise), 1)]).bound(Target(epsilon)).value
    assert found.upper < removed


def test_no_vectors_that_are_chosen_by_the_past_exceed_the_bound() -> None:
    """Two of three steps on a line, v and w of the record anything that follows from the past."""
    noise, epsilon = 1.0, 1.0
    rng = stream(14, experiment="opposite", cell={}, role="noise", replicate=0)
    z = np.linspace(-8, 8, 101)
    density = np.exp(-z * z / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    first, second, third = np.ix_(z, z, z)
    weights = math.prod(np.ix_(density, density, density))
    most = bound(3, 2, noise, epsilon)

    def attained(depends: float) -> float:
        ratios = []
        for sign in (1.0, -1.0):
            turn = rng.normal(size=(2, 3)) * depends
            past = [0.0, turn[0, 0] * first, turn[1, 0] * first + turn[1, 1] * second]
            v = [sign * np.cos(each) for each in past]
            x = [
                np.exp((r * y - r * r / (2 * noise)) / noise)
                for r, y in zip(v, (first, second, third), strict=True)
            ]
            ratios.append((x[0] * x[1] + x[0] * x[2] + x[1] * x[2]) / 3)
        return float(np.sum(weights * np.maximum(ratios[0] - math.exp(epsilon) * ratios[1], 0.0)))

    opposite = attained(0.0)
    assert 0.9 * most < opposite < most
    assert all(0.3 * most < attained(size) < opposite for size in (0.1, 0.3, 1.0))


def test_weights_that_differ_tell_more_of_large_losses() -> None:
    t, k, noise, target = 20, 3, 0.5, Target(delta=1e-5)

    def told(up: float, down: float) -> float:
        event = SumEvent(t, k, noise, up * k / t, 1.0, -1.0, down * k / t)
        ends = [
            Composition([(event, 1)]).attacks([target], directions=[swapped])[0].value
            for swapped in (False, True)
        ]
        # each direction looks at the mirror image of the other one's statistic
        assert ends[0] == ends[1]
        edges = event.edges(swapped=False)
        assert np.array_equal(event.edges(swapped=True), -edges[::-1])
        return ends[0]

    alike = max(told(c, c) for c in (1 / 4, 1.0, 4.0))
    assert told(1 / 2, 4.0) > 1.03 * alike


def test_steps_of_one_are_gaussian() -> None:
    """Where the record is in more than every other step, some blocks are single steps."""
    blocks = OppositeBlocks(5, 4, 2.0).blocks
    assert [times for _, times in blocks] == [3, 1]
    assert not OppositeBlocks(5, 4, 0.1).applies
    assert bound(3, 2, 2.0, 1.0) < bound(4, 4, 2.0, 1.0)


def test_blocks_that_are_too_large_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    t, k, noise, epsilon = 3, 2, 1.0, 2.0
    truth = of_subsets(t, k, noise, epsilon)
    assert bound(t, k, noise, epsilon) > truth
    real = OppositeBlocks._of_block
    monkeypatch.setattr(OppositeBlocks, "_of_block", lambda self, size: real(self, size + 1))
    assert bound(t, k, noise, epsilon) < truth

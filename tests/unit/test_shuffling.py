"""Shuffled epochs: the upper bound holds for all data sets that are tried, the lower one is
attained by those named."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.cell_masses import MassBounds
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.privacy_events import Event, StatisticEvent
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of
from dpsub.accounting.schemes.shuffling.largest_step import LargestStep
from dpsub.errors import UnsupportedError
from dpsub.noise import GaussianProfile
from dpsub.relations import Relation
from dpsub.sampling import Shuffle
from dpsub.streams import stream
from tests.few import few

EPSILONS = (0.0, 0.5, 2.0)
QUADRATURE = 2e-4
"""Relative error of sums over a grid of the plane, whose integrands have kinks."""
RELATIONS = (Relation.SUBSTITUTE, Relation.ZERO_OUT)
OTHER = {Relation.SUBSTITUTE: -1.0, Relation.ZERO_OUT: 0.0}


def epoch(n: int, m: int, relation: Relation, s: float) -> Event:
    """Return the event of one epoch of shuffled batches, from its scheme."""
    release = Release(Shuffle(m), n, s, steps=-(-n // m))
    return case_of(release, relation).event


def ends(
    n: int, m: int, relation: Relation, s: float, epsilon: float, epochs: int = 1
) -> tuple[float, float]:
    event = epoch(n, m, relation, s)
    return Composition([(event, epochs)]).answer(Target(epsilon=epsilon, width=1e-3))[:2]


def two_steps(first: np.ndarray, second: np.ndarray, s: float, epsilon: float) -> float:
    """Return H of two uniform mixtures of Gaussians in the plane, centres of shape (k, 2), by
    quadrature."""
    t = np.linspace(-2 - 8 * s, 2 + 8 * s, 801)

    def density(centres: np.ndarray) -> np.ndarray:
        return np.mean(
            [np.multiply.outer(norm.pdf(t, x, s), norm.pdf(t, y, s)) for x, y in centres], axis=0
        )

    gap = density(first) - math.exp(epsilon) * density(second)
    return float(np.maximum(gap, 0).sum() * (t[1] - t[0]) ** 2)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("s", [0.4, 1.0])
def test_two_batches_by_quadrature(relation: Relation, s: float) -> None:
    """The named data sets attain the lower bound; no filler of any sign exceeds the upper one."""
    other = OTHER[relation]
    for epsilon in EPSILONS:
        lower, upper = ends(2, 1, relation, s, epsilon)
        found = {}
        for g in (-1.0, -0.3, 0.0, 1.0):
            d, d_other = np.array([[1, g], [g, 1]]), np.array([[other, g], [g, other]])
            found[g] = max(two_steps(d, d_other, s, epsilon), two_steps(d_other, d, s, epsilon))
        assert 0 < lower <= found[-1.0] * (1 + QUADRATURE)
        # where the sum over steps is the likelihood ratio
        if relation is Relation.SUBSTITUTE and s == 1:
            assert lower >= found[-1.0] * 0.995
        assert max(found.values()) <= upper * (1 + QUADRATURE)


def largest_by_quadrature(
    steps: int, x: float, y: float, s: float, epsilon: float
) -> tuple[float, float]:
    """Return both directions of H for the largest step, from its density."""
    t = np.linspace(-6 * s, x + 12 * s, 400_001)

    def density(mean: float) -> np.ndarray:
        below, others = norm.cdf(t, mean, s), norm.cdf(t, 0, s)
        first = norm.pdf(t, mean, s) * others ** (steps - 1)
        return first + (steps - 1) * below * norm.pdf(t, 0, s) * others ** (steps - 2)

    p, q = density(x), density(y)
    a, dt = math.exp(epsilon), t[1] - t[0]
    return float(np.maximum(p - a * q, 0).sum() * dt), float(np.maximum(q - a * p, 0).sum() * dt)


@pytest.mark.parametrize(
    ("steps", "y", "s"), [(2, 0.0, 1.0), (100, 1.0, 0.5), (1000, 0.0, 0.7), (1000, 1.0, 2.0)]
)
def test_largest_step_by_quadrature(steps: int, y: float, s: float) -> None:
    for epsilon in EPSILONS:
        exact = largest_by_quadrature(steps, 2.0, y, s, epsilon)
        for swapped in (False, True):
            pld = LargestStep(steps, 2.0, y, s).lower_pld(1e-3, tail=1e-18, swapped=swapped)
            lower = np.sum(pld.masses * np.maximum(-np.expm1(epsilon - pld.losses - pld.offset), 0))
            assert (
                exact[swapped] * (1 - 2e-3) - 1e-7 <= lower <= exact[swapped] * (1 + 1e-7) + 1e-12
            )


class Understated(LargestStep):
    """Fault that forgets some of Q."""

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        under_p, (least, most) = super().masses(edges)
        return under_p, (0.99 * least, 0.99 * most)


class OneTooMany(LargestStep):
    """Fault that counts the record's step among the others, under Q."""

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        under_p, _ = super().masses(edges)
        _, under_q = LargestStep(self.steps - 1, self.x, self.y, self.noise_multiplier).masses(
            edges
        )
        return under_p, under_q


@pytest.mark.parametrize("fault", [Understated, OneTooMany])
def test_the_quadrature_would_find_faults(fault: Callable[..., LargestStep]) -> None:
    pld = fault(10, 2.0, 0.0, 1.0).lower_pld(1e-3, tail=1e-18)
    lower = np.sum(pld.masses * np.maximum(-np.expm1(0.5 - pld.losses - pld.offset), 0))
    assert lower > largest_by_quadrature(10, 2.0, 0.0, 1.0, 0.5)[0] * (1 + 1e-3)


@pytest.mark.parametrize(
    ("n", "m", "relation", "s", "epsilon"),
    [
        (24, 2, Relation.SUBSTITUTE, 0.8, 1.5),
        (23, 3, Relation.SUBSTITUTE, 1.0, 1.0),  # the last batch is smaller
        (24, 2, Relation.ZERO_OUT, 0.5, 2.0),
    ],
)
def test_simulated_epochs(n: int, m: int, relation: Relation, s: float, epsilon: float) -> None:
    """By permutations, sums of batches and noise, the event that the largest step, from the value
    that the fillers give, exceeds a threshold gains as much as the lower bound claims."""
    runs, rng = 200_000, stream(3, experiment="shuffle", cell={"n": n}, role="noise", replicate=0)
    steps = -(-n // m)
    sizes = np.minimum(m, n - m * np.arange(steps))
    largest = []
    for value in (1.0, OTHER[relation]):
        # record 0 is in the batch of its place in a uniform order
        place = rng.permuted(np.tile(np.arange(n), (runs, 1)), axis=1)[:, 0] // m
        sums = np.tile(-sizes.astype(float), (runs, 1))
        sums[np.arange(runs), place] += value + 1
        sums += s * rng.standard_normal(sums.shape)
        largest.append((sums + sizes).max(axis=1))
    lower, upper = ends(n, m, relation, s, epsilon)
    t = np.linspace(0, 4, 81)[:, None]
    p, q = (np.mean(values > t, axis=1) for values in largest)
    best = int(np.argmax(p - math.exp(epsilon) * q))
    gain = p[best] - math.exp(epsilon) * q[best]
    error = math.sqrt((p[best] + math.exp(2 * epsilon) * q[best]) / runs)
    assert abs(gain - lower) < 4 * error + 0.02 * lower
    assert lower <= upper


def test_much_noise_is_attacked_by_all_steps() -> None:
    """The data are a record 2 or 1 above fillers -1, ten batches, three epochs: the likelihood
    ratio test of simulated outputs."""
    steps, epochs, s, epsilon, runs = 10, 3, 3.0, 0.2, 100_000
    rng = stream(3, experiment="shuffle", cell={"s": s}, role="noise", replicate=0)
    z = s * rng.standard_normal((runs, epochs, steps))
    z[:, :, 0] += 2
    means = [np.mean(np.exp(x * z / s**2 - x**2 / (2 * s**2)), axis=2) for x in (2, 1)]
    gains = np.maximum(-np.expm1(epsilon - np.log(means[0] / means[1]).sum(axis=1)), 0.0)
    truth, deviation = float(gains.mean()), float(gains.std()) / math.sqrt(runs)
    lower, upper = ends(60, 6, Relation.ZERO_OUT, s, epsilon, epochs)
    assert 0.9 * truth < lower < truth + 4 * deviation < 1.1 * truth < upper


def test_epochs_compose() -> None:
    """The two epochs are composed by quadrature over both largest steps."""
    steps, s, epsilon = 20, 0.9, 1.0
    t = np.linspace(-5, 8, 1601)
    p, q = (
        np.gradient(norm.cdf(t, mean, s) * norm.cdf(t, 0, s) ** (steps - 1), t)
        for mean in (2.0, 0.0)
    )
    gap = np.multiply.outer(p, p) - math.exp(epsilon) * np.multiply.outer(q, q)
    exact = np.maximum(gap, 0).sum() * (t[1] - t[0]) ** 2
    largest = StatisticEvent(LargestStep(steps, 2.0, 0.0, s))
    assert (
        exact * 0.995
        <= Composition([(largest, 2)]).attack(Target(epsilon=epsilon)).value
        <= exact * 1.001
    )
    lower, upper = ends(steps, 1, Relation.SUBSTITUTE, s, epsilon, epochs=2)
    assert lower > exact  # all steps tell more than the largest
    # with both steps known
    assert exact < upper <= float(GaussianProfile(2 * math.sqrt(2) / s).delta(epsilon)) * 1.002


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_batch_is_the_gaussian(relation: Relation) -> None:
    event = epoch(50, 50, relation, 2.0)
    lower, upper, _ = Composition([(event, 3)]).answer(Target(epsilon=1.0))
    assert (
        lower
        <= float(GaussianProfile((1 - OTHER[relation]) * math.sqrt(3) / 2).delta(1.0))
        <= upper
    )
    assert event.exact


def test_small_noise_under_zero_out_leaves_no_amplification() -> None:
    event = epoch(100_000, 10, Relation.ZERO_OUT, 0.3)
    lower, upper, _ = Composition([(event, 10)]).answer(Target(delta=1e-5))
    assert upper - lower < 0.01 < 99 < lower


def test_refused_where_sizes_would_differ() -> None:
    with pytest.raises(UnsupportedError, match="substitute or zero_out"):
        epoch(10, 2, Relation.ADD_REMOVE, 1.0)


@pytest.mark.parametrize("s", few([0.05, 1e9]))
def test_extreme_sizes_and_noise(s: float) -> None:
    for relation in RELATIONS:
        event = epoch(10**9, 1, relation, s)
        lower, upper, _ = Composition([(event, 2)]).answer(Target(delta=1e-6, width=1.0))
        assert 0 <= lower <= upper < math.inf or (s < 1 and upper > 100)


def test_losses_rarer_than_rounding_are_bounded() -> None:
    """Laws that are rounded down keep nothing of them on some grids."""
    asked = {"noise_multiplier": 0.5, "epochs": 1, "delta": 1e-6}
    answer = dpsub.account(dpsub.Shuffle(1), 10**11, **asked, adjacency="substitute", quick=True)
    assert 0 <= answer.lower <= answer.upper < math.inf

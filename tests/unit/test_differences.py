"""The worst law of X - a X', and means of several of them, against sums by quadrature."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from dpsub.accounting.schemes.shuffling.differences import Differences
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep
from dpsub.streams import stream
from tests.properties.test_epoch_games import EPSILONS, choices_of, event_of, shuffled, values

LEVELS = (-3.0, -1.0, -0.4, 0.0, 0.3, 1.0, 4.0)
"""Places b of the means of (X - a X' - b)_+."""
# a grid of 8 cells a deviation, cells of values moved to their ends
GRID = 0.03
COVERED = 3  # of the orders of the games


def worst(a: float, s: float, distance: float) -> list[Differences]:
    return list(HiddenStep(9, s, distance)._differences(a))


def mean_above_zero(law: Differences, count: int, unseen: float = 0.0) -> float:
    return law.mean_above_zero(count, unseen).value


def above(law: Differences, level: float) -> float:
    """Return the mean of (Z - b)_+, from the masses of its grid."""
    grid = law._law(0.0)
    above = np.maximum(grid.step * grid.places - level, 0)
    return float((grid.masses * above).sum()) + grid.beyond + grid.off


def by_quadrature(
    x: np.ndarray, y: np.ndarray, a: float, s: float, levels: tuple[float, ...]
) -> list[float]:
    """Return means of (N(x)/N(0) - a N(y)/N(0) - b)_+ under N(0), in the plane."""
    t = np.linspace(-2 - 7 * s, 2 + 7 * s, 320)
    p, q, base = (
        np.multiply.outer(norm.pdf(t, u[0], s), norm.pdf(t, u[1], s)) for u in (x, y, np.zeros(2))
    )
    size = (t[1] - t[0]) ** 2
    return [float(np.maximum(p - a * q - b * base, 0).sum() * size) for b in levels]


def triples(distance: float) -> list[np.ndarray]:
    """Return v, v' and g: on the line, at random, and on the circle."""
    rng = stream(7, experiment="differences", cell={}, role="data", replicate=0)
    found = [np.array([[v, 0.0], [0.0, 0.0], [g, 0.0]]) for v in (-1.0, 1.0) for g in (-1.0, 0, 1)]
    for angles in rng.uniform(0, 2 * np.pi, size=(6, 3)):
        found.append(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    for one in found[:]:
        other = -one[0] if distance > 1 else np.zeros(2)
        one[1] = one[1] if distance > 1 and np.any(one[1]) else other
    return found


@pytest.mark.parametrize(("s", "distance"), [(1.5, 2.0), (4.0, 2.0), (2.0, 1.0)])
def test_no_three_vectors_spread_the_difference_more(s: float, distance: float) -> None:
    for a in (1.0, 1.3, 3.0):
        bounds = [[above(law, b) for b in LEVELS] for law in worst(a, s, distance)]
        for v, v_other, g in triples(distance):
            for order, bound in enumerate(bounds):
                first, second = (v_other, v) if order else (v, v_other)
                found = by_quadrature(first - g, second - g, a, s, LEVELS)
                assert np.all(found <= np.array(bound) * (1 + 2e-3) + 1e-9)


def test_two_triples_attain_it() -> None:
    """Fillers on either side: the one attains the positive part, the other the negative one."""
    s, a = 2.0, 1.3
    (law,) = worst(a, s, 2.0)
    bound = [above(law, b) for b in LEVELS]
    two, none = np.array([2.0, 0.0]), np.zeros(2)
    before, after = (by_quadrature(*pair, a, s, LEVELS) for pair in ((two, none), (none, two)))
    assert np.maximum(before, after) == pytest.approx(bound, rel=GRID)
    # a fault: one triple for both signs
    for one in (before, after):
        assert not np.all(np.array(bound) <= 1.2 * np.array(one))


def test_half_the_distance_is_caught() -> None:
    found = by_quadrature(np.array([2.0, 0.0]), np.zeros(2), 1.3, 2.0, LEVELS)
    (law,) = worst(1.3, 4.0, 2.0)
    assert found[-3] > above(law, LEVELS[-3]) * 1.1


def values_of(law: Differences, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Z at equally likely places of its two normal variables, and the rest, at 0."""
    t = norm.ppf((np.arange(points) + 0.5) / points)
    d, f, g, a = law.apart, law.ahead, law.behind, law.order

    def e(u: float) -> np.ndarray:
        return np.exp(u * t - u * u / 2)

    up, down = e(f) - a * e(f - d), a * e(g) - e(g - d)
    z = np.concatenate([up[up > 0], -down[down > 0], [0.0]])
    weights = np.full(z.size, 1 / points)
    weights[-1] = 1 - (z.size - 1) / points
    return z, weights


@pytest.mark.parametrize("distance", [2.0, 1.0])
@pytest.mark.parametrize("a", [1.0, 1.2])
def test_means_of_two_and_of_four(a: float, distance: float) -> None:
    for law in worst(a, 4.0, distance):
        z, weights = values_of(law, 3000)
        single = float(weights @ np.maximum(z, 0))
        pairs = np.maximum(np.add.outer(z, z) / 2, 0)
        double = float(weights @ pairs @ weights)
        assert single * (1 - 2e-3) <= mean_above_zero(law, 1) <= single * (1 + GRID)
        assert double * (1 - 2e-3) <= mean_above_zero(law, 2) <= double * (1 + GRID)
        assert mean_above_zero(law, 4) < mean_above_zero(law, 2) < mean_above_zero(law, 1)


def test_small_probabilities_by_convolution() -> None:
    """The convolution has a hundred differences, on a finer grid, without a tilt."""
    (law,) = worst(1.3, 4.0, 2.0)
    z, weights = values_of(law, 400_000)
    h = 0.02
    places = np.floor(z / h).astype(int)
    share = z / h - places
    low = int(places.min())
    single = np.bincount(places - low, weights * (1 - share), places.max() - low + 2)
    single += np.bincount(places - low + 1, weights * share, single.size)
    power = np.fft.rfft(single, 2**17) ** 100
    total = np.fft.irfft(power)
    x = h * (np.arange(total.size) + 100 * low)
    exact = float((total * np.maximum(x, 0)).sum()) / 100
    assert exact * (1 - 5e-3) <= mean_above_zero(law, 100) <= exact * 1.04
    assert 1e-8 < exact < 1e-6


def bound_of(steps: int, s: float, distance: float, k: int) -> np.ndarray:
    hidden = HiddenStep(steps, s, distance)
    return np.array(
        [
            max(mean_above_zero(law, k) for law in hidden._differences(a))
            + (1 + a) * hidden.charge(k)
            for a in np.exp(EPSILONS[:COVERED])
        ]
    )


def exceeds(n: int, m: int, s: float, relation: str, draw: int, k: int, fault: float = 1.0) -> bool:
    """Whether an adaptive adversary attains more than Theorem 61 allows, at any order."""
    rng = stream(7, experiment="shuffled game", cell={"n": n}, role="data", replicate=draw)
    # T of the theorem, and the steps that there are
    fewest, steps = n // m, -(-n // m)
    event = event_of(None, n, s, relation, lambda who, of: shuffled(m, who, of), 0)
    choices = choices_of(rng, n, 0, relation, 6 if steps == 3 else 10)
    attained = values([event], [0] * steps, choices, 8 if steps == 3 else 20)
    distance = 2.0 if relation == "substitute" else 1.0
    return bool(np.any(attained[:, :COVERED] > bound_of(fewest, s * fault, distance, k) + 1e-12))


GAMES = [(2, 1, 1), (3, 1, 1), (3, 1, 2), (4, 2, 1), (5, 2, 1), (6, 2, 2)]
"""Sizes n, m and k."""


@pytest.mark.parametrize("relation", ["substitute", "zero_out"])
@pytest.mark.parametrize(("n", "m", "k"), GAMES)
def test_no_adaptive_adversary_exceeds_the_means(n: int, m: int, k: int, relation: str) -> None:
    for draw, s in enumerate((2.0, 4.0)):
        assert not exceeds(n, m, s, relation, draw, k)


def test_too_little_noise_is_caught() -> None:
    """The planted fault is the bound of three times the noise."""
    assert exceeds(3, 1, 2.0, "substitute", 0, 2, fault=4.0)


@pytest.mark.parametrize("s", [2.0, 4.0, 50.0])
def test_what_is_charged_for_rounding_is_that(s: float) -> None:
    """The charge is some 1e-14 of a mean that is large, and a small share of one that is rare;
    values at the edges, with 40 digits, lie off their points by no more."""
    (law,) = worst(1.1, s, 2.0)
    few, many = (law.mean_above_zero(k) for k in (1, 10**5))
    assert 0 < few.charge < 1e-12 * few.value + 1e-13
    assert 0 <= many.charge < 1e-2 * many.value + 1e-15
    with mpmath.workdps(40):
        f, h = mpmath.mpf(2) / s, mpmath.mpf(law.step)
        for place in (0, 1, 7, 100, 127):
            level = (law.order + law.step * place) / 1.0
            edge = float(np.log(level) / law.apart + law.apart / 2)
            value = mpmath.exp(f * edge - f * f / 2) - mpmath.mpf(law.order)
            terms = h * place + 2 * law.order
            off = 2 * 2.0**-52 * (12 + 5 * f * abs(edge) + 10 * f * f) * terms
            assert abs(value - h * place) <= off


def test_more_terms_change_nothing_and_fewer_only_add() -> None:
    """Mass that comes round is positive."""
    (law,) = worst(1.1, 4.0, 2.0)
    grid = law._law(0.0)
    tilt = 0.2
    log_mgf = float(grid.cumulants(np.array([tilt]))[0])
    enough, more = (grid.mean_above_zero(100, tilt, log_mgf, terms) for terms in (2**15, 2**16))
    assert enough == pytest.approx(more, rel=1e-11)
    rough = [grid.mean_above_zero(100, tilt, log_mgf, terms) for terms in (2**12, 2**10, 2**8)]
    assert rough == sorted(rough) and rough[0] >= more * (1 - 1e-11)
    assert rough[-1] > more * 1.1


@pytest.mark.parametrize("s", [1.5, 4.0])
def test_values_that_are_cut_are_charged(s: float) -> None:
    """The mean excess beyond an early last point, and a sparse grid, cost little and never less
    than nothing."""
    (law,) = worst(1.2, s, 2.0)
    whole = mean_above_zero(law, 30)
    for unseen in (1e-12, 1e-8, 1e-4):
        cut = mean_above_zero(law, 30, unseen)
        assert whole * (1 - 1e-6) <= cut <= whole * (1 + 1e-6) + 1.01 * unseen

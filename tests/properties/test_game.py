"""The statements behind tests/golden/game.py against brute force: one filler, cells, their cover,
two adaptive steps.

Truths are those of tiny data sets with vectors in the plane, all samples enumerated, outputs
grouped into squares: they are never too large. Planted faults show that a wrong statement would be
seen.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpsub.streams import stream
from tests.few import few
from tests.golden import game
from tests.tiny_mechanisms import two_steps

ORDERS = np.linspace(0.0, 2.5, 11)  # ln a


def masses(n: int, m: int, data: np.ndarray, s: float, width: float = 0.1) -> np.ndarray:
    """Return the masses of the noisy sums over all samples of m of n in squares of `width` s, for
    data of shape (n, 2)."""
    sums = np.array(
        [data[list(sample)].sum(axis=0) for sample in itertools.combinations(range(n), m)]
    )
    edges = np.concatenate(
        [[-np.inf], np.arange(-1.2 * m - 6 * s, 1.2 * m + 6 * s, width * s), [np.inf]]
    )
    first, second = (np.diff(ndtr((edges - sums[:, axis, None]) / s), axis=1) for axis in (0, 1))
    return np.asarray((first.T @ second).ravel() / len(sums))


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - a * q, 0.0).sum() for a in np.exp(ORDERS)])


def disc(rng: np.random.Generator, size: int, dimension: int = 2) -> np.ndarray:
    """Draw vectors of the unit ball, half of them on its boundary."""
    found = rng.normal(size=(size, dimension))
    length = np.minimum(1.0, rng.uniform(size=(size, 1)) * 2)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True) * length)


def sides(v: np.ndarray, other: np.ndarray, filler: np.ndarray) -> np.ndarray:
    """Return lengths |x|, |y|, |x - y| for x = v - g and y = v' - g."""
    return np.linalg.norm(np.stack([v - filler, other - filler, v - other]), axis=-1).T


def cell(rate: float, s: float, triple: np.ndarray) -> np.ndarray:
    """Return the bound of a cell for a >= 1."""
    return game.line(rate, s, triple[0], triple[0] - triple[2], ORDERS)


@pytest.mark.parametrize("index", range(12))
def test_one_filler_is_enough(index: int) -> None:
    rng = stream(17, experiment="game", cell={"case": index}, role="data", replicate=0)
    n, s = 3 + index % 2, (0.7, 1.0, 2.0)[index % 3]
    m = int(rng.integers(1, n))
    v, other, *fillers = disc(rng, n + 1)
    p, q = (masses(n, m, np.array([one, *fillers]), s) for one in (v, other))
    single = [game.plane(m / n, s, sides(v, other, filler), ORDERS) for filler in fillers]
    # the mean over the fillers by joint convexity, hence the largest
    assert (divergence(p, q) <= np.mean(single, axis=0) + 1e-9).all()
    # equal fillers attain it
    p, q = (masses(n, m, np.array([one] + [fillers[0]] * (n - 1)), s) for one in (v, other))
    np.testing.assert_allclose(divergence(p, q), single[0], rtol=1e-2, atol=2e-5)


@pytest.mark.parametrize("rate, s", [(0.02, 4.0), (0.2, 1.0), (0.5, 0.5)])
def test_cells_bound_pairs(rate: float, s: float) -> None:
    rng = stream(18, experiment="game", cell={"rate": rate}, role="data", replicate=0)
    v, other, filler = disc(rng, 40), disc(rng, 40), disc(rng, 40)
    for triple in sides(v, other, filler):
        bound = cell(rate, s, triple)
        assert (game.plane(rate, s, triple, ORDERS) <= bound + 1e-9).all()
        larger = triple + rng.uniform(0, 0.2, size=3)
        larger[2] = min(larger[2], larger[:2].sum())
        assert (bound <= cell(rate, s, larger) + 1e-12).all()
    # planted fault: r3 shortened by 5 %
    assert (
        game.plane(rate, s, (2.0, 1e-9, 2.0), ORDERS)
        > cell(rate, s, np.array([2.0, 0.0, 1.9])) * 1.01
    ).any()


@pytest.mark.parametrize(
    "triple", [(2.0, 2.0, 2.0), (1.5, 1.4, 2.0), (1.0, 1.9, 1.2), (1.9, 0.8, 1.3)]
)
def test_the_bound_of_a_cell_is_that_of_a_line(triple: tuple[float, float, float]) -> None:
    # the supremum over all events, at orders on both sides of 1, against its closed form
    (r1, r2, r3), rate, s = triple, 0.2, 1.0
    logs = np.arange(0.0, 1.5, 0.25)
    both = np.concatenate([-logs[:0:-1], logs])
    c = np.linspace(-10, 14, 240_001)
    dense = []
    for x in both:
        a = math.exp(x)
        t = np.clip(r3 / 2 - s**2 * x / r3, r3 - r2 - c, r1 - c)
        found = (1 - rate) * (1 - a) * ndtr(-c / s) + rate * (ndtr(t / s) - a * ndtr((t - r3) / s))
        dense.append(found.max() - max(1 - a, 0.0))
    np.testing.assert_allclose(game.excess(rate, s, triple, logs), dense, rtol=1e-6, atol=1e-9)


def uniform_cover(depth: int) -> np.ndarray:
    parts = [game.WHOLE]
    for _ in range(depth):
        parts = [piece for part in parts for piece in game.split(part)]
    return game.not_covered_by_another(np.array([game.sides_of(part) for part in parts]))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_cover_is_complete(dimension: int) -> None:
    rng = stream(19, experiment="game", cell={"dimension": dimension}, role="data", replicate=0)
    v, other, filler = (disc(rng, 20_000, dimension) for _ in range(3))
    other[::3] = -v[::3]
    filler[1::3] = -v[1::3]
    found = sides(v, other, filler) - 1e-9
    covers = (found[:, None, :] <= uniform_cover(3)[None]).all(axis=2)
    assert covers.any(axis=1).all()
    if dimension == 2:
        # planted fault: any one cell left out
        alone = covers[covers.sum(axis=1) == 1]
        assert alone.any(axis=0).all()


def test_refined_parts_are_the_whole() -> None:
    def area(part: np.ndarray) -> float:
        return float(np.linalg.norm(np.cross(part[1] - part[0], part[2] - part[0])) / 2)

    parts = game.cover(0.1, 2.0, 3, 0.02, 4.0, 40)
    assert 20 < len(parts) <= 40
    assert sum(map(area, parts)) == pytest.approx(area(game.WHOLE))


VECTORS = np.array([(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (0.0, -1.0)])
EPSILONS = (0.0, 0.5, 1.0, 2.0)


def neighbours(n: int, m: int, s: float, stretch: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses for all ordered neighbours on `VECTORS`, those of the fillers `stretch`
    times as long."""
    rest = list(itertools.combinations_with_replacement(range(len(VECTORS)), n - 1))
    tabled = {
        (first, *others): masses(
            n, m, np.vstack([VECTORS[first], stretch * VECTORS[list(others)]]), s, 0.15
        )
        for first in range(len(VECTORS))
        for others in rest
    }
    # a turn of the plane changes nothing: one of the two records is the first vector
    replaced = [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0)]
    pairs = [
        (tabled[one, *others], tabled[other, *others]) for one, other in replaced for others in rest
    ]
    return np.array([p for p, _ in pairs]), np.array([q for _, q in pairs])


def at(found: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.interp(EPSILONS, *found)


@pytest.mark.parametrize(("n", "m", "s"), few([(3, 1, 0.5), (3, 1, 1.0), (4, 2, 1.0), (4, 1, 2.0)]))
def test_two_adaptive_steps_lie_between_the_ends(n: int, m: int, s: float) -> None:
    truth = two_steps(*neighbours(n, m, s), EPSILONS)
    rate, h, reach = m / n, 0.02, 12.0 / s
    upper = at(game.upper_value(rate, s, 2, h, reach, uniform_cover(3)))
    lower = at(game.lower_value(rate, s, 2, h, reach))
    assert (truth <= upper + 1e-9).all()
    assert (upper <= at(game.one_cell(rate, s, 2, h, reach)) + 1e-9).all()
    # the worst data sets are on the grid; squares lose a little
    assert (lower <= truth * (1 + 1e-2) + 1e-5).all()
    # planted faults: without the cell of an end, with cells too short, with fillers outside the
    # ball
    cells = uniform_cover(2)
    without = cells[~(cells >= np.array([2.0, 0.0, 2.0]) - 1e-9).all(axis=1)]
    assert len(without) == len(cells) - 1
    assert (truth > at(game.upper_value(rate, s, 2, h, reach, without))).any()
    assert (truth > at(game.upper_value(rate, s, 2, h, reach, cells * [1, 1, 0.95]))).any()
    assert (two_steps(*neighbours(n, m, s, 1.2), EPSILONS) > upper).any()

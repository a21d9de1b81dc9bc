"""The game for Laplace noise without replacement: bounds of its cells and of its value, against
numbers in [-1, 1]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.laplace_pairs import included_once, removed_once
from dpsub.accounting.engine.pld import Profile, two_sided_pld
from dpsub.accounting.games.game import Game
from dpsub.accounting.games.laplace import LaplaceCell, LaplaceCells, three_laplace
from dpsub.sampling import Wor
from dpsub.streams import stream
from tests.properties.test_adaptive_steps import PLACES, STEPS, attained
from tests.tiny_mechanisms import sample_counts, stages

LOG_ORDERS = np.array([0.0, 0.01, 0.05, 0.2, 0.6, 1.5, 3.0, 6.0])
GRID = np.arange(-5, 6) / 5


def rng(draw: int) -> np.random.Generator:
    return stream(17, experiment="laplace_game", cell={}, role="noise", replicate=draw)


def law(centres: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return masses between edges of a mixture of Laplace laws of scale 1, centres of shape (...,
    k)."""
    away = edges - centres[..., None]
    near = np.exp(-np.abs(away)) / 2
    # from the left tail, the centre, or the right tail: no difference of numbers near 1
    masses = np.where(
        away[..., 1:] <= 0,
        np.diff(near),
        np.where(away[..., :-1] >= 0, -np.diff(near), 1 - near[..., 1:] - near[..., :-1]),
    )
    return np.asarray(np.einsum("k,...kj->...j", weights, masses))


def divergence(rate: float, x: float, y: float, parts: int) -> np.ndarray:
    """Return H_a(P_xy || Q_xy) at `LOG_ORDERS`, from below: of outputs grouped in cells, which the
    centres do not cut."""
    places = np.unique([0.0, x, y])
    ends = [np.linspace(low, high, parts) for low, high in itertools.pairwise(places)]
    edges = np.unique(np.concatenate([[-np.inf], places, *ends, [np.inf]]))
    p, q = (law(np.array([0.0, to]), np.array([1 - rate, rate]), edges) for to in (x, y))
    return np.array([np.maximum(p - a * q, 0).sum() for a in np.exp(LOG_ORDERS)])


@pytest.mark.parametrize("draw", range(4))
def test_three_places_against_fine_cells(draw: int) -> None:
    draws = rng(draw)
    for _ in range(50):
        rate, scale = float(draws.uniform(0.01, 1)), float(np.exp(draws.uniform(-2, 2)))
        x, y = draws.choice([0, *draws.uniform(-2, 2, 4)], 2) / scale
        bound, truth = three_laplace(LOG_ORDERS, rate, x, y), divergence(rate, x, y, 2000)
        assert np.all(bound >= truth * (1 - 1e-12) - 1e-15)
        # what grouping loses is second order in the width, where the ratio is a
        np.testing.assert_allclose(bound, truth, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [0.01, 0.3, 4.0, 1e3])
@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0])
def test_two_places_are_the_closed_forms(rate: float, scale: float) -> None:
    orders = np.append(np.linspace(0, 3, 31) / scale, [600.0])
    for closed, x, y in ((included_once, 2 / scale, 0.0), (removed_once, 0.0, 2 / scale)):
        found = three_laplace(orders, rate, x, y)
        np.testing.assert_allclose(
            found, closed(rate, 2 / scale)(orders), rtol=1e-7, atol=1e-11 * rate
        )
        assert found[-1] == 0.0


def covers(cells: LaplaceCells, draws: np.random.Generator, cuts: int) -> list[LaplaceCell]:
    """Return a cover by cells that were cut anywhere."""
    cover = cells.halves(cells.whole)
    for _ in range(cuts):
        cell = cover.pop(int(draws.integers(len(cover))))
        at = float(draws.uniform(cell.low, cell.high))
        cover += [cell._replace(high=at), cell._replace(low=at)]
    return cover


def triples(draws: np.random.Generator, count: int) -> np.ndarray:
    """Return v, v', g, half of them with two antipodal ones, shape (count, 3)."""
    found = draws.uniform(-1, 1, (count, 3))
    antipodal = draws.permuted(np.tile([1.0, -1.0, 0.0], (count, 1)), axis=1)
    return np.where(
        draws.random((count, 1)) < 0.5, np.where(antipodal == 0, found, antipodal), found
    )


def uncovered(cells: LaplaceCells, cover: Sequence[LaplaceCell], vectors: np.ndarray) -> int:
    """Count triples that no cell dominates in both directions."""
    profiles = [[profile(LOG_ORDERS) for profile in cells.profiles(cell, 1e-15)] for cell in cover]
    forward, backward = (np.array(sides) for sides in zip(*profiles, strict=True))
    missed = 0
    for v, other, g in vectors / cells.noise_multiplier:
        there, back = (
            divergence(cells.rate, *ends, 300) for ends in ((v - g, other - g), (other - g, v - g))
        )
        above = (there <= forward * (1 + 1e-12) + 1e-14) & (back <= backward * (1 + 1e-12) + 1e-14)
        missed += not np.any(np.all(above, axis=1))
    return missed


@pytest.mark.parametrize("draw", range(20))
def test_every_triple_has_a_cell_that_dominates_it(draw: int) -> None:
    draws = rng(100 + draw)
    cells = LaplaceCells(float(draws.uniform(0.01, 1)), float(np.exp(draws.uniform(-2, 2))))
    vectors = triples(draws, 60)
    assert not uncovered(cells, covers(cells, draws, 12), vectors)
    assert not uncovered(cells, [cells.whole], vectors)


class TestPlantedFaults:
    """A wrong cover or bound is noticed by the tests above."""

    cells = LaplaceCells(0.1, 0.3)

    @pytest.mark.parametrize("third", ["replaced", "second", "first"])
    def test_a_family_left_out(self, third: str) -> None:
        """The cells are small, as the large ones of one family may dominate the others."""
        cover = [
            LaplaceCell(cell.third, low, low + 0.05)
            for cell in self.cells.halves(self.cells.whole)
            for low in np.arange(40) / 20
        ]
        assert not uncovered(self.cells, cover, triples(rng(51), 100))
        assert uncovered(
            self.cells, [cell for cell in cover if cell.third != third], triples(rng(51), 100)
        )

    def test_a_filler_outside_the_interval(self) -> None:
        vectors = triples(rng(52), 100) * [1, 1, 1.2]
        assert uncovered(self.cells, [self.cells.whole], vectors)

    @pytest.mark.parametrize("end", [0, -1])
    def test_one_triple_for_a_cell_that_takes_two(self, end: int) -> None:
        class Wrong(LaplaceCells):
            def _largest(self, *pairs: tuple[float, float]) -> Profile:
                return super()._largest(pairs[end])

        assert members_above(LaplaceCells) == 0 < members_above(Wrong)

    def test_the_other_end_of_a_cell(self) -> None:
        class Wrong(LaplaceCells):
            def profiles(self, cell: LaplaceCell, tail: float) -> tuple[Profile, Profile]:
                return super().profiles(cell._replace(low=cell.high), tail)

        assert members_above(Wrong)


def members_above(kind: type[LaplaceCells]) -> int:
    """Count random members of random cells that their own cell does not dominate."""
    missed = 0
    for draw in range(30):
        draws = rng(60 + draw)
        cells = kind(float(draws.uniform(0.05, 0.9)), float(np.exp(draws.uniform(-1, 1.5))))
        for cell in covers(cells, draws, 6):
            at = float(draws.choice([cell.low, cell.high, draws.uniform(cell.low, cell.high)]))
            triple = {
                "replaced": [1, -1, 1 - at],
                "second": [1, at - 1, -1],
                "first": [at - 1, 1, -1],
            }[cell.third]
            missed += uncovered(cells, [cell], np.array([triple]))
    return missed


class TestAdaptiveSteps:
    """An adversary takes, in two and three steps, any neighbours with numbers of a small set,
    depending on past outputs."""

    @staticmethod
    def played(
        draw: int, wrong: Callable[[LaplaceCells], LaplaceCells], left_out: str = ""
    ) -> float:
        """Return the largest truth over its bound, less one."""
        draws = rng(300 + draw)
        n, scale = (
            int(draws.integers(2, 5)),
            float(np.exp(draws.uniform(math.log(0.35), math.log(4.0)))),
        )
        size = int(draws.integers(1, n))
        step = 0.1 / scale
        values = np.array([[-1.0, 1.0, draws.choice(GRID)] for _ in range(4)])
        counts, weights = sample_counts(n, stages(f"wor:{size}"))
        rest = np.array(list(itertools.combinations_with_replacement(range(3), n - 1)))
        first, second = (
            np.repeat(np.array(list(itertools.permutations(range(3), 2)))[:, side], len(rest))
            for side in (0, 1)
        )
        others = np.tile(rest, (6, 1))
        edges = (
            np.concatenate(
                [[-np.inf], np.arange(-5 * n - 30 * scale, 5 * n + 30 * scale + 1) / 5, [np.inf]]
            )
            / scale
        )
        sums = [
            np.concatenate([values[:, one, None], values[:, others]], axis=2) @ counts.T
            for one in (first, second)
        ]
        p, q = (law(each / scale, weights, edges) for each in sums)
        found = np.array(attained(p, q, step))[..., PLACES].max(axis=1)
        cells = wrong(LaplaceCells(size / n, scale))
        cover = [cell for cell in covers(cells, draws, 10) if cell.third != left_out]
        plds = [
            two_sided_pld(*cells.profiles(cell, 1e-15), 0.05 / scale, np.arange(round(3 / 0.05)))
            for cell in cover
        ]
        claimed = []
        for steps in STEPS:
            value = Game(plds, steps, 0.7, 12.0 / scale).played()
            claimed.append(
                [value.answer(Target(epsilon=float(epsilon))) for epsilon in PLACES * step]
            )
        return float(np.max(found / np.maximum(claimed, 1e-300))) - 1

    @pytest.mark.parametrize("draw", range(12))
    def test_no_upper_end_is_below_an_adversary(self, draw: int) -> None:
        assert self.played(draw, lambda cells: cells) <= 1e-9

    def test_noise_overstated(self) -> None:
        assert any(
            self.played(draw, lambda cells: LaplaceCells(cells.rate, 1.06 * cells.noise_multiplier))
            > 0
            for draw in range(12)
        )

    def test_antipodal_records_alone_left_out(self) -> None:
        assert any(self.played(draw, lambda cells: cells, "replaced") > 1e-9 for draw in range(12))


class TestAnswers:
    @pytest.mark.parametrize(("steps", "share"), [(100, 0.005), (1000, 0.005)])
    def test_width(self, steps: int, share: float) -> None:
        asked = {"noise_multiplier": 4.0, "steps": steps, "delta": 1e-5}
        asked |= {"mechanism": "laplace", "adjacency": "substitute"}
        quick, found = (
            dpsub.account(Wor(200), 10000, quick=quick, **asked) for quick in (True, False)
        )
        assert (found.kind, found.width_met, found.lower) == ("bounds", True, quick.lower)
        assert found.upper - found.lower <= share * found.upper < quick.upper - found.upper

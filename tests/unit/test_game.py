"""The game without replacement: the bounds of its cells and of its value, against vectors in the
plane and all policies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.pld import PrivacyLossDistribution, two_sided_pld
from dpsub.accounting.games import game, half_lines
from dpsub.accounting.games.game import (
    Copies,
    Game,
    GaussianCell,
    GaussianCells,
    tilted_kernels,
)
from dpsub.accounting.games.half_lines import best_half_line, spread_charges
from dpsub.sampling import Multistage, MustOW, Sampler, Wor, Wr
from dpsub.streams import stream
from tests import tiny_mechanisms
from tests.few import few

LOG_ORDERS = np.array([0.0, 0.01, 0.05, 0.2, 0.6, 1.5, 3.0])


def rng(draw: int) -> np.random.Generator:
    return stream(11, experiment="game", cell={}, role="noise", replicate=draw)


def triples(draws: np.random.Generator, count: int, vectors: int = 3) -> np.ndarray:
    """Return v, v', g and further fillers in the disc, shape (count, vectors, 2): many on its edge,
    antipodal, at one place or in line."""
    angles, radii = (
        draws.uniform(0, 2 * math.pi, (count, vectors)),
        np.sqrt(draws.uniform(0, 1, (count, vectors))),
    )
    radii = np.where(draws.random((count, vectors)) < 0.6, 1.0, radii)
    angles[:, 1] = np.where(draws.random(count) < 0.3, angles[:, 0] + math.pi, angles[:, 1])
    angles[:, 2] = np.where(draws.random(count) < 0.3, angles[:, 0], angles[:, 2])
    angles[:, 2] = np.where(draws.random(count) < 0.2, angles[:, 1], angles[:, 2])
    for later in range(3, vectors):
        same = draws.random(count) < 0.6
        angles[:, later], radii[:, later] = (
            np.where(same, one[:, 2], one[:, later]) for one in (angles, radii)
        )
    return radii[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def masses(
    vectors: np.ndarray, copies: Copies, scale: float, width: float = 0.15
) -> tuple[np.ndarray, np.ndarray]:
    """Return masses of the two outputs in squares of the plane: a grouping, so no divergence of
    them exceeds the truth. `vectors`: v, v', and those replaced by the first, second, ... copy. The
    adversary sees the base's weight."""
    counts, passed = copies.counts, copies.passed
    edges = np.concatenate([[-np.inf], np.arange(-5, 5 + 2 / scale, width), [np.inf]])

    def normal(centre: np.ndarray) -> np.ndarray:
        across, up = (np.diff(ndtr(edges - place)) for place in centre / scale)
        return np.multiply.outer(across, up).ravel()

    # the line from v to v' lies along an axis, the base at the origin
    first, second, *replaced = vectors
    apart = first - second
    size = math.hypot(*apart)
    along = apart / size if size > 0 else np.array([1.0, 0.0])
    turned = np.array([along, [-along[1], along[0]]])

    def output(record: np.ndarray) -> np.ndarray:
        places = [
            turned @ (drawn * record - np.sum(replaced[:drawn], axis=0))
            for drawn in range(len(counts))
        ]
        drawn = sum(weight * normal(place) for weight, place in zip(counts, places, strict=True))
        bases = (1 - passed) * np.multiply.outer(copies.points, normal(np.zeros(2)))
        return np.asarray((np.array(copies.weights)[:, None] * (bases + passed * drawn)).ravel())

    return output(first), output(second)


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - a * q, 0.0).sum() for a in np.exp(LOG_ORDERS)])


def covers(cells: GaussianCells, draws: np.random.Generator, cuts: int) -> list[GaussianCell]:
    """Return a cover by cells that were cut anywhere."""
    cover = [cells.whole]
    for _ in range(cuts):
        cover += cover.pop(int(draws.integers(len(cover)))).cuts()[int(draws.integers(2))]
    return cover


def uncovered(
    cells: GaussianCells,
    cover: Sequence[GaussianCell],
    vectors: np.ndarray,
    copies: Copies | None = None,
) -> int:
    """Count choices, of samples with the cells' or these copies, that no cell dominates in both
    directions."""
    profiles = [[profile(LOG_ORDERS) for profile in cells.profiles(cell, 1e-15)] for cell in cover]
    forward, backward = (np.array(sides) for sides in zip(*profiles, strict=True))
    missed = 0
    for triple in vectors:
        p, q = masses(triple, copies or cells.copies, cells.noise_multiplier)
        above = (divergences(p, q) <= forward + 1e-12) & (divergences(q, p) <= backward + 1e-12)
        missed += not np.any(np.all(above, axis=1))
    return missed


@pytest.mark.parametrize("draw", range(6))
def test_every_triple_of_the_disc_has_a_cell_that_dominates_it(draw: int) -> None:
    draws = rng(draw)
    cells = GaussianCells(
        once(float(draws.uniform(0.01, 0.7))), float(np.exp(draws.uniform(-1, 2)))
    )
    assert not uncovered(cells, covers(cells, draws, 25), triples(draws, 60))


@pytest.mark.parametrize("draw", range(8))
def test_every_choice_of_fillers_has_a_cell_that_dominates_it(draw: int) -> None:
    draws = rng(200 + draw)
    slots, size = int(draws.integers(2, 6)), int(draws.integers(1, 4))
    counts = tuple(binom.pmf(np.arange(size + 1), size, 1 / slots).tolist())
    copies = (
        Copies(counts)
        if draw % 2
        else Copies.of_draws(counts, float(draws.uniform(0.05, 0.9)), slots, size)
    )
    cells = GaussianCells(copies, float(np.exp(draws.uniform(-1, 2))))
    assert not uncovered(cells, covers(cells, draws, 12), triples(draws, 60, 2 + size))


def once(rate: float) -> Copies:
    return Copies((1 - rate, rate))


@pytest.mark.slow
def test_every_triple_of_ten_thousand() -> None:
    for draw in range(200):
        draws = rng(1000 + draw)
        cells = GaussianCells(
            once(float(draws.uniform(0.001, 0.9))), float(np.exp(draws.uniform(-2, 2)))
        )
        assert not uncovered(cells, covers(cells, draws, 30), triples(draws, 50)), draw


class TestPlantedFaults:
    """A wrong cover or bound is noticed by the tests above."""

    cells = GaussianCells(once(0.3), 1.0)

    def cover(self) -> list[GaussianCell]:
        return covers(self.cells, rng(50), 25)

    def test_a_cell_left_out(self) -> None:
        extreme = [
            cell
            for cell in self.cover()
            if not (cell.high == math.pi / 2 and cell.left == -math.pi / 2)
        ]
        assert uncovered(self.cells, extreme, triples(rng(51), 100))

    def test_a_filler_outside_the_ball(self) -> None:
        vectors = triples(rng(52), 100)
        vectors[:, 2] *= 1.3
        assert uncovered(self.cells, self.cover(), vectors)

    @pytest.mark.parametrize("field", ["apart", "radius", "foot"])
    def test_a_length_understated(self, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
        original = game.CellProfile.__call__

        def shortened(self: game.CellProfile, log_order: np.ndarray) -> np.ndarray:
            return original(replace(self, **{field: 0.8 * getattr(self, field)}), log_order)

        fine = [
            GaussianCell(math.pi / 2, math.pi / 2, angle, angle)
            for angle in np.linspace(-1.5, 1.5, 7)
        ]
        circle = np.array(
            [[[1, 0], [-1, 0], [math.sin(cell.left), math.cos(cell.left)]] for cell in fine]
        )
        assert not uncovered(self.cells, fine, circle)
        monkeypatch.setattr(game.CellProfile, "__call__", shortened)
        assert uncovered(self.cells, fine, circle)


class TestPlantedFaultsOfSeveralCopies:
    """A wrong cover or bound is noticed for fillers at v' and for several copies, too."""

    copies = Copies.of_draws(binom.pmf(np.arange(4), 3, 1 / 3).tolist(), 0.5, 3, 3)
    vectors: ClassVar[np.ndarray] = np.array([[[v, 0], [-v, 0], *[[-1, 0]] * 3] for v in (1, -1)])

    def missed(self, copies: Copies, stretch: float = 1.0) -> int:
        cells = GaussianCells(copies, 2.0)
        vectors = self.vectors * np.array([1, 1, *[stretch] * 3])[:, None]
        return uncovered(cells, list(cells.extremes), vectors, self.copies)

    def test_none(self) -> None:
        assert not self.missed(self.copies)

    def test_a_count_left_out(self) -> None:
        assert self.missed(replace(self.copies, counts=self.copies.counts[:3]))

    def test_the_first_stage_draws_less(self) -> None:
        assert self.missed(replace(self.copies, passed=0.48))

    def test_fillers_outside_the_ball(self) -> None:
        assert self.missed(self.copies, 1.1)

    def test_charges_above_what_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = game.CellProfile._charges
        more = lambda self, *given: original(self, *given) + 0.2  # noqa: E731
        monkeypatch.setattr(game.CellProfile, "_charges", more)
        assert self.missed(self.copies)

    def test_radii_of_several_copies_shortened(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = game.CellProfile._radii
        monkeypatch.setattr(
            game.CellProfile,
            "_radii",
            lambda self, counts: [0.9 * r for r in original(self, counts)],
        )
        assert self.missed(self.copies)

    def test_the_base_weighs_more(self) -> None:
        assert self.missed(replace(self.copies, points=tuple(1.1 * x for x in self.copies.points)))

    def test_the_base_weighs_the_same_always(self) -> None:
        assert self.missed(replace(self.copies, points=(1.0,), weights=(1.0,)))


@pytest.mark.parametrize(("slots", "drawn"), [(2, 3), (4, 3), (4, 6), (6, 4)])
def test_the_weight_of_the_base_against_all_draws(slots: int, drawn: int) -> None:
    copies = Copies.of_draws((1.0,), 0.5, slots, drawn)
    without = [
        slots - len(set(found)) for found in itertools.product(range(slots - 1), repeat=drawn)
    ]
    weight = slots * (1 - 1 / slots) ** drawn / np.array(without)
    # averaged over the slot left out, the base is that of draws from all slots, where one is empty
    some = [len(set(found)) < slots for found in itertools.product(range(slots), repeat=drawn)]
    assert weight.mean() == pytest.approx(np.mean(some))
    assert float(np.dot(copies.points, copies.weights)) == pytest.approx(np.mean(some))
    for strike in np.linspace(0.1, 3.0, 30):
        found = float(np.dot(np.maximum(strike - np.array(copies.points), 0.0), copies.weights))
        assert found >= np.maximum(strike - weight, 0.0).mean() - 1e-15


def dominating(
    cells: GaussianCells, cell: GaussianCell, step: float, last: float
) -> game.PrivacyLossDistribution:
    return two_sided_pld(*cells.profiles(cell, 1e-15), step, np.arange(round(last / step) + 1))


@pytest.mark.parametrize("draw", range(20))
def test_best_half_line_is_the_largest_value_over_thresholds(draw: int) -> None:
    draws = rng(100 + draw)
    weights = [draws.exponential(1, 40), draws.normal(0, 3, 40), draws.normal(0, 3, 40)][
        : 2 + draw % 2
    ]
    distances = (draws.exponential(1, 3) + np.array([0.05, 0.02, 0.02])).tolist()
    found = best_half_line(*zip(weights, distances, strict=False))
    t = np.linspace(-25, 15, 40_001)[:, None]
    value = ndtr(t) - sum(
        np.exp(weight) * ndtr(t - d) for weight, d in zip(weights, distances, strict=False)
    )
    truth = value.max(axis=0)
    assert np.all(found >= truth - 1e-15)
    assert np.all(found <= truth + 1e-5 * np.maximum(truth, 1e-4))


@pytest.mark.parametrize("steps", [1, 2, 3, 40])
def test_what_newton_steps_leave_is_charged(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds however early they end."""
    monkeypatch.setattr(half_lines, "_NEWTON_STEPS", steps)
    draws = rng(7)
    weights = [draws.normal(0, 3, 4000), draws.normal(2, 4, 4000)]
    distances = [draws.exponential(2, 4000) + 0.1, draws.exponential(0.5, 4000) + 0.1]
    terms = list(zip(weights, distances, strict=True))
    low, high = np.full(4000, -3000.0), np.full(4000, 3000.0)
    for _ in range(100):
        middle = (low + high) / 2
        is_right = logsumexp([w + middle * d - d * d / 2 for w, d in terms], axis=0) > 0
        low, high = np.where(is_right, low, middle), np.where(is_right, middle, high)
    truth = ndtr(low) - sum(np.exp(w) * ndtr(low - d) for w, d in terms)
    found = best_half_line(*terms)
    assert np.all(found >= truth - 1e-15)
    if steps == 40:
        assert np.all(found <= truth + 1e-11 * ndtr(low) + 1e-15)


def of_two_points(draw: int) -> tuple[list[tuple[np.ndarray, float]], np.ndarray]:
    """Terms of orders and charges with two distances, and the best thresholds by bisection."""
    draws = rng(300 + draw)
    apart, reach = np.exp(draws.uniform(-4, 1.5, 2)).tolist()
    orders, charges = draws.exponential(1, (40, 1)), draws.normal(0, 4, (40, 60))
    charges[0] = -np.inf
    low, high = np.full(charges.shape, -2000.0), np.full(charges.shape, 2000.0)
    for _ in range(100):
        middle = (low + high) / 2
        first, second = orders + middle * apart - apart**2 / 2, charges + middle * reach
        is_right = np.logaddexp(first, second - reach**2 / 2) > 0
        low, high = np.where(is_right, low, middle), np.where(is_right, middle, high)
    return [(orders, apart), (charges, reach)], low


@pytest.mark.parametrize("draw", range(8))
def test_newton_steps_may_begin_anywhere(draw: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terms, best = of_two_points(draw)
    truth = ndtr(best) - sum(np.exp(w) * ndtr(best - d) for w, d in terms)
    noise = rng(400 + draw).normal(0, 3, best.shape)
    monkeypatch.setattr(half_lines, "_first_threshold", lambda terms: best + noise)
    found = best_half_line(*terms)
    assert np.all(found >= truth - 1e-15)
    assert np.all(found <= truth + 1e-8 * ndtr(best) + 1e-15)


@pytest.mark.parametrize("draw", range(8))
def test_newton_steps_begin_close(draw: int) -> None:
    """So close that one step is enough; a pair of distances for each place of the first axis, and
    one for all of them, have the same places."""
    terms, best = of_two_points(draw)
    farthest = max(d for _, d in terms)
    distances = [(w, np.array(max(d, 1e-3 * farthest))) for w, d in terms]
    found = half_lines._first_threshold(distances)
    assert np.all(np.abs(found - best) * farthest <= 3e-3)
    rows = [(np.stack([w, w]), np.full((2, 1, 1), d)) for w, d in distances]
    assert np.array_equal(half_lines._first_threshold(rows), np.stack([found, found]))


@pytest.mark.parametrize("distance", [1e-4, 1e-7, 1e-10, 1e-12])
def test_a_half_line_of_much_noise_is_close(distance: float) -> None:
    """Charges for rounding stay small where the places of thresholds are known badly."""
    log_order = distance * np.array([0.0, 1.0, 3.0, 30.0])
    alone = ndtr(distance / 2 - log_order / distance) - np.exp(log_order) * ndtr(
        -distance / 2 - log_order / distance
    )
    for weight, farther in ((-40.0, 2.0), (-40.0, 1e-3)):
        found = best_half_line((log_order, distance), (np.full(4, weight), farther * distance))
        assert np.all(found >= alone - math.exp(weight) - 1e-15)
        assert np.all(found <= alone + 2e-11)


@pytest.mark.parametrize(("height", "slack"), [(0.01, 0.12), (0.3, 0.02), (1.0, 0.02), (4.0, 0.02)])
def test_spread_charges_raise_falling_convex_functions_a_little(
    height: float, slack: float
) -> None:
    log_points, weights = spread_charges(height, 8.5)
    points = np.exp(log_points)
    for strike in np.exp(height * np.linspace(-2, 2, 9) - height**2 / 2):
        end = np.log(strike) / height + height / 2
        truth = strike * ndtr(end) - ndtr(end - height)  # E (strike - W)_+
        value = float(weights @ np.maximum(strike - points, 0.0))
        assert truth * (1 - 1e-12) - strike * ndtr(-8.5) <= value <= truth + slack * height * strike


@pytest.mark.parametrize("height", [1e-7, 1e-3, 0.02, 0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    "bases",
    [[0.5], [2.0], [0.9, 1.1], [0.2, 0.8, 1.0, 4.0], [1e-12, 1.0], [0.0, 1e-9, 1.0], [0.0, 1.0]],
)
def test_spread_charges_of_several_bases(height: float, bases: list[float]) -> None:
    """Means of (k - u W)_+ are no smaller, and little larger, than those in closed form."""
    u = np.array(bases)
    chances = rng(len(bases)).dirichlet(np.ones(u.size))
    with np.errstate(divide="ignore"):
        log_points, weights = spread_charges(height, 8.5, np.log(u), chances)
    points = np.exp(log_points)
    assert weights.sum() >= 1 - ndtr(-8.5)
    positive = u[u > 0]
    for k in [*np.exp(max(height, 0.01) * np.linspace(-3, 3, 13)), *positive, *(1.01 * positive)]:
        with np.errstate(divide="ignore"):
            end = np.log(k / u) / height + height / 2
        truth = float(chances @ (k * ndtr(end) - u * ndtr(end - height)))
        value = float(weights @ np.maximum(k - points, 0.0))
        assert truth * (1 - 1e-12) - k * ndtr(-8.5) <= value <= truth + 3e-3 * k


@pytest.mark.parametrize("draw", range(12))
def test_the_supremum_of_three_points_falls_with_no_product(draw: int) -> None:
    """Lemma 91: given ln M_1 the mean over ln M_2 is that of a put option, and by quadrature over
    the first it grows with each product."""
    draws = rng(910 + draw)
    order, charge = math.exp(draws.uniform(0, 1)), float(draws.exponential(0.5))
    z = np.linspace(-10, 10, 40_001)

    def value(products: np.ndarray) -> float:
        along, across, rest = np.linalg.cholesky(products)[[0, 1, 1], [0, 0, 1]]
        strike = np.maximum(1 - order * np.exp(along * z - products[0, 0] / 2), 1e-300)
        base = charge * np.exp(across * z - across**2 / 2)
        end = np.log(strike / base) / rest + rest / 2
        option = strike * ndtr(end) - base * ndtr(end - rest)
        return float(np.trapezoid(option * np.exp(-z * z / 2), z)) / math.sqrt(2 * math.pi)

    vectors = draws.normal(0, 0.7, (2, 3))
    products = vectors @ vectors.T
    most = math.sqrt(products[0, 0] * products[1, 1]) - products[0, 1]
    for entry, more in (((0, 0), 0.5), ((0, 1), most / 2), ((1, 1), 0.5)):
        larger = products.copy()
        larger[entry] += more
        larger = np.maximum(larger, larger.T)
        assert value(larger) >= value(products) + 1e-9


@pytest.mark.parametrize(("n", "b", "m"), [(2, 40, 260), (5, 30, 221)])
def test_a_base_whose_weight_underflows_is_left_in(n: int, b: int, m: int) -> None:
    copies = tiny_mechanisms.copies(n, f"wr:{b},wr:{m}")
    assert min(copies.points) == 0
    chances = copies.weights_of(1)
    _, weights = spread_charges(0.3, 8.5, copies.log_bases, chances)
    assert weights.sum() >= chances.sum() - ndtr(-8.5)
    cells, cell = GaussianCells(copies, 2.0), GaussianCell(1.2, 1.2, 0.3, 0.3)
    for profile in cells.profiles(cell, 1e-15):
        log_charge = np.zeros(LOG_ORDERS.size)
        bound = profile._by_height(LOG_ORDERS, log_charge, chances)
        points = tuple(max(point, 1e-290) for point in copies.points)
        raised = replace(profile, copies=replace(copies, points=points))
        assert np.allclose(bound, raised._by_height(LOG_ORDERS, log_charge, chances), rtol=1e-3)


def test_a_cell_is_below_its_lengths_one_by_one() -> None:
    """Lengths that are largest at different places of a cell are no more private together."""
    cells, draws = GaussianCells(once(0.2), 1.3), rng(911)
    for cell in covers(cells, draws, 30):
        nearest = min(max(0.0, cell.left), cell.right)
        apart = math.cos(max(cell.low, abs(nearest))) + math.cos(nearest)
        for profile in cells.profiles(cell, 1e-12):
            looser = replace(profile, radius=math.hypot(profile.foot, apart))
            assert (profile(LOG_ORDERS) <= looser(LOG_ORDERS) * (1 + 3e-3)).all()
            on_a_line = replace(profile, foot=profile.radius)
            assert (profile(LOG_ORDERS) <= on_a_line(LOG_ORDERS) * (1 + 1e-9)).all()


TABLE = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 801)])  # holds 1


def values_of_all_policies(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], steps: int
) -> np.ndarray:
    """Return the value of steps with one of these pairs each, chosen from the past, at the orders
    of the table: from below, as later values are read at the next larger order."""
    value = np.maximum(1 - TABLE, 0.0)
    for _ in range(steps):
        best = np.zeros(TABLE.size)
        for p, q in pairs:
            at = np.searchsorted(TABLE, np.multiply.outer(TABLE, q / p), side="left")
            best = np.maximum(
                best, np.where(at < TABLE.size, value[np.minimum(at, TABLE.size - 1)], 0.0) @ p
            )
        value = best
    return value


@pytest.mark.parametrize(("rate", "scale"), few([(0.5, 1.0), (0.3, 0.5), (0.2, 2.0)]))
def test_no_bound_of_two_or_three_steps_is_below_a_policy(rate: float, scale: float) -> None:
    corners = [np.array([math.cos(angle), math.sin(angle)]) for angle in np.arange(8) * math.pi / 4]
    vectors = [np.array([corners[0], corners[i], corners[j]]) for i in (3, 4) for j in (0, 2, 4, 6)]
    vectors += [
        np.array([corners[0], corners[4], spot]) for spot in (np.zeros(2), 0.7 * corners[1])
    ]
    vectors += [triple[[1, 0, 2]] for triple in vectors]
    pairs = [masses(triple, once(rate), scale, 0.6) for triple in vectors]
    pairs = [(p[p > 1e-5], q[p > 1e-5]) for p, q in pairs]
    cells = GaussianCells(once(rate), scale)
    fine = [cells.whole]
    for _ in range(5):
        fine = [half for cell in fine for half in cells.halves(cell)]
    last = 14.0 / scale
    for cover, slack in (([cells.whole], 1.5), (fine, 1.15)):
        plds = [dominating(cells, cell, 0.03 / scale, last) for cell in cover]
        for steps in (2, 3):
            truth = values_of_all_policies(pairs, steps)
            value = Game(plds, steps, 1.0, 6.0 / scale).played()
            for epsilon in (0.0, 0.3, 1.0):
                attained = truth[np.searchsorted(TABLE, math.exp(epsilon))]
                assert attained <= value.answer(Target(epsilon=epsilon)) <= slack * attained + 0.02


def test_two_steps_of_the_extreme_triples_are_the_flip() -> None:
    # .51662 by quadrature, as in test_attacks.py
    cells = GaussianCells(once(0.5), 1.0)
    plds = [dominating(cells, cell, 0.01, 16.0) for cell in cells.extremes]
    found = Game(plds, 2, 0.7, 16.0).played().answer(Target(epsilon=0.0))
    assert 0.51661 <= found <= 0.5172


@pytest.mark.parametrize("tilt", [0.0, 1.0, 12.0])
@pytest.mark.parametrize("end", [0.5, 2.0, 6.0])
def test_any_window_and_tilt_bound_a_single_step(tilt: float, end: float) -> None:
    # one step with the pairs of one cell has their profile, whatever the window
    cells = GaussianCells(once(0.3), 0.8)
    forward, _ = cells.profiles(cells.whole, 1e-15)
    for step in (0.1, 0.02):
        value = Game([dominating(cells, cells.whole, step, 14.0)], 1, tilt, end).played()
        truth = forward(value.x)
        assert np.all(value.bounds >= truth * (1 - 1e-12))
        if end == 6.0 and tilt <= 1:
            assert value.bounds[0] <= truth[0] + 0.1 * step + value.infinity


def test_the_factor_of_a_kernel_misses_no_small_mass() -> None:
    """Added one by one to one half, each of many masses below its rounding would be lost, 8e-12 of
    it in all."""
    masses = np.append(0.5, np.full(10**5, 4e-17))
    pld = PrivacyLossDistribution(0.01, np.arange(masses.size), masses, "upper")
    kappa = tilted_kernels([pld], 0.0, 0.0, 10**6).kappa
    assert math.log(math.fsum(masses)) <= kappa <= math.log(math.fsum(masses)) + 1e-12


class TestAnswers:
    asked: ClassVar[dict[str, Any]] = {
        "noise_multiplier": 4.0,
        "steps": 100,
        "quick": False,
        "adjacency": "substitute",
    }

    def test_epsilon_within_half_a_percent(self) -> None:
        quick = dpsub.account(
            Wor(200), 10000, noise_multiplier=4.0, steps=100, delta=1e-5, adjacency="substitute"
        )
        answer = dpsub.account(Wor(200), 10000, delta=1e-5, **self.asked)
        assert (answer.kind, answer.width_met, answer.lower) == ("bounds", True, quick.lower)
        assert answer.upper - answer.lower <= 5e-3 * answer.upper < quick.upper - answer.upper
        assert answer.pair != quick.pair

    def test_with_replacement(self) -> None:
        quick = dpsub.account(
            Wr(200), 10000, noise_multiplier=4.0, steps=100, delta=1e-5, adjacency="substitute"
        )
        answer = dpsub.account(Wr(200), 10000, delta=1e-5, width=0.01, **self.asked)
        assert (answer.kind, answer.width_met, answer.lower) == ("bounds", True, quick.lower)
        assert answer.upper - answer.lower <= 0.01 < (quick.upper - answer.upper) / 2

    @pytest.mark.thorough
    def test_with_replacement_from_a_sample_without(self) -> None:
        quick = dpsub.account(
            MustOW(500, 200),
            10000,
            noise_multiplier=4.0,
            steps=100,
            delta=1e-5,
            adjacency="substitute",
        )
        answer = dpsub.account(
            MustOW(500, 200), 10000, delta=1e-5, width=0.04 * quick.lower, **self.asked
        )
        assert answer.width_met
        assert answer.upper - answer.lower <= 0.04 * quick.lower < quick.upper - quick.lower

    def test_several_values_and_a_width(self) -> None:
        answer = dpsub.account(Wor(200), 10000, epsilon=[0.4, 0.3], width=0.1, **self.asked)
        assert answer.width_met
        assert np.all(answer.upper - answer.lower <= 0.1 * answer.upper)
        assert answer.upper[0] < answer.upper[1]

    def test_the_budget_is_named_where_it_is_missed(self) -> None:
        answer = dpsub.account(Wor(200), 10000, delta=1e-5, width=1e-9, effort=1.0, **self.asked)
        assert not answer.width_met
        assert answer.width_reason.startswith("effort")
        assert answer.lower <= answer.upper < 0.4445

    def test_one_number_needs_no_game(self) -> None:
        asked = {**self.asked, "steps": 1}
        assert dpsub.account(Wor(200), 10000, delta=1e-5, **asked).kind == "exact"
        assert dpsub.account(dpsub.Poisson(0.02), delta=1e-5, **asked).kind == "exact"

    def test_what_has_no_game_keeps_its_first_bound(self) -> None:
        chain = Multistage.of_text("wr:20,wr:10,wr:5")
        asked = {**self.asked, "adjacency": "substitute"}
        quick = dpsub.account(
            chain, 100, noise_multiplier=4.0, steps=100, delta=1e-5, adjacency="substitute"
        )
        answer = dpsub.account(chain, 100, delta=1e-5, **asked)
        assert answer.upper == quick.upper
        assert answer.width_reason.startswith("theory")

    def test_the_old_name_of_what_happens_anyway_warns(self) -> None:
        asked = {**self.asked, "steps": 1, "tight": True}
        with pytest.warns(DeprecationWarning, match="quick=True"):
            dpsub.account(Wor(200), 10000, delta=1e-5, **asked)


@pytest.mark.parametrize(
    ("sampler", "n", "noise", "mechanism", "steps"),
    few(
        [
            (Wor(1), 2, 0.05874, "gaussian", 2),
            (Wr(2), 3, 0.06, "gaussian", 2),
            (MustOW(2, 1), 3, 0.055, "gaussian", 3),
            (Wor(1), 2, 0.05, "laplace", 40),
            (Wor(1), 2, 0.05, "gaussian", 20),
        ],
        more=3,
    ),
)
def test_very_large_epsilons_are_never_above_the_quick_ones(
    sampler: Sampler, n: int, noise: float, mechanism: str, steps: int
) -> None:
    asked = {"noise_multiplier": noise, "mechanism": mechanism, "steps": steps, "effort": 1.0}
    for question in ({"delta": 0.6}, {"delta": 0.294}, {"delta": 8e-5}, {"epsilon": 300.0}):
        quick = dpsub.account(sampler, n, **asked, **question)
        tight = dpsub.account(sampler, n, **asked, **question, quick=False)
        assert quick.lower * (1 - 1e-9) <= tight.upper <= quick.upper * (1 + 1e-9)


def test_little_work_is_for_a_game_on_a_coarse_grid() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 100, "delta": 1e-5}
    asked["adjacency"] = "substitute"
    quick = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, quick=True)
    found = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, effort=0.3, quick=False)
    assert quick.lower <= found.upper < quick.upper
    assert found.theorem.startswith("Theorem 22") and found.width_reason.startswith("effort")

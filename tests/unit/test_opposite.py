"""A record replaced in 1 of t steps, Theorem 79: the worst data sets against quadrature, chosen
vectors and the likelihoods as they are drawn; faults are noticed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.schemes.allocation import opposite as opposite_records
from dpsub.accounting.schemes.allocation.one_step import replaced_event
from dpsub.accounting.schemes.allocation.opposite import attained, upper_mean
from dpsub.accounting.schemes.allocation.opposite_event import OppositeEvent
from dpsub.streams import stream
from tests.few import few

_CELLS = 0.05


def of_opposites(noise: float, t: int, order: float) -> float:
    """H_a of the record at C against -C among zero records, t = 2 or 3, by the trapezoidal rule in
    all but the last step, in closed form there."""
    f = 1 / noise
    z = np.linspace(-10 - f, 10 + f, {2: 4001, 3: 301}[t])
    weights = (z[1] - z[0]) * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    value = np.exp(f * z - f * f / 2) - order * np.exp(-f * z - f * f / 2)
    rest = value
    for _ in range(t - 2):
        weights, rest = np.multiply.outer(weights, weights), np.add.outer(rest, value)
    return float(np.sum(weights * best_step(rest, order, f, 1.0, -1.0))) / t


def best_step(rest: np.ndarray, order: float, f: float, v: float, w: float) -> np.ndarray:
    """E (X - order X' + rest)_+ over one step with the record at v or w, v > w, on a line."""
    from scipy.special import ndtr

    # e_vf - order e_wf + rest grows, or falls once and then grows: its root by bisection
    low, high = np.full(rest.shape, -60.0), np.full(rest.shape, 60.0)
    for _ in range(70):
        middle = (low + high) / 2
        value = (
            np.exp(v * f * middle - (v * f) ** 2 / 2)
            - order * np.exp(w * f * middle - (w * f) ** 2 / 2)
            + rest
        )
        low, high = np.where(value < 0, middle, low), np.where(value < 0, high, middle)
    return np.asarray(ndtr(v * f - low) - order * ndtr(w * f - low) + rest * ndtr(-low))


@pytest.mark.parametrize(
    ("noise", "t", "order"),
    [(1.0, 2, 1.0), (1.0, 2, 30.0), (0.4, 2, 1e4), (3.0, 3, 1.2), (0.7, 3, 5.0)],
)
def test_both_ends_hold_the_mean_of_the_worst_differences(
    noise: float, t: int, order: float
) -> None:
    truth = of_opposites(noise, t, order)
    above = upper_mean(order, 1 / noise, t, _CELLS, 1e-6 * truth)
    event = attained(order, 1 / noise, t, _CELLS, 1e-6 * truth)
    below = event.ahead - order * event.behind
    assert truth * 0.98 < below < truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) < above < truth * 1.02


def test_finer_cells_close_on_the_mean() -> None:
    ends = [
        (upper_mean(2.2, 1.0, 37, cells, 1e-12), attained(2.2, 1.0, 37, cells, 1e-12))
        for cells in (0.2, 0.1, 0.05)
    ]
    gaps = [above / (event.ahead - 2.2 * event.behind) - 1 for above, event in ends]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0


def adaptive(noise: float, order: float, vectors: Callable[[np.ndarray], np.ndarray]) -> float:
    """H_a for two steps in the plane, the records v and w of the second one chosen by the output of
    the first: shape (n, 2, 2) of outputs, shape (n, 2)."""
    f = 1 / noise
    axis = np.linspace(-6 - f, 6 + f, 51)
    plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = (axis[1] - axis[0]) ** 2 * np.exp(-np.sum(plane**2, axis=1) / 2) / (2 * math.pi)

    def ratio(at: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(f * at @ v - f * f * (v @ v) / 2))

    start = vectors(np.zeros((1, 2)))[0]
    first = ratio(plane, start[0]) - order * ratio(plane, start[1])
    total = 0.0
    for weight, rest, (v, w) in zip(weights, first, vectors(plane), strict=True):
        second = ratio(plane, v) - order * ratio(plane, w)
        total += weight * float(weights @ np.maximum(rest + second, 0.0))
    return total / 2


def turned(noise: float, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Vectors in the unit disc, each a random function of the past."""
    turns, shifts = rng.normal(size=(2, 2, 2)), rng.uniform(0, 2 * math.pi, size=2)
    lengths = rng.uniform(0.3, 1.0, size=2) ** 0.3

    def vectors(past: np.ndarray) -> np.ndarray:
        angles = past @ turns[0] / noise + np.sin(past @ turns[1]) + shifts
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return np.asarray(circle * lengths[:, None])

    return vectors


@pytest.mark.parametrize("noise", few([1.0, 0.6, 2.0]))
def test_no_vectors_that_are_chosen_by_the_past_exceed_the_bound(noise: float) -> None:
    rng = stream(12, experiment="opposite", cell={}, role="noise", replicate=0)
    order = math.exp(0.6 / noise)
    bound = upper_mean(order, 1 / noise, 2, _CELLS, 1e-9)
    straight = np.array([[1.0, 0.0], [-1.0, 0.0]])
    worst = adaptive(noise, order, lambda past: np.broadcast_to(straight, (len(past), 2, 2)))
    assert worst == pytest.approx(bound, rel=5e-3)
    found = [adaptive(noise, order, turned(noise, rng)) for _ in range(4)]
    assert 0.05 * bound < max(found) <= bound


def test_no_vectors_on_a_line_exceed_the_bound() -> None:
    """The second step's vectors are the best ones for each output of the first."""
    f, order = 1.0, 2.0
    z = np.linspace(-9, 9, 721)
    weights = (z[1] - z[0]) * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    grid = np.linspace(-1, 1, 5)
    bound, found = 2 * upper_mean(order, f, 2, _CELLS, 1e-9), []
    for v in grid:
        for w in grid[grid < v]:
            rest = np.exp(v * f * z - v * v / 2) - order * np.exp(w * f * z - w * w / 2)
            best = [best_step(rest, order, f, x, y) for x in grid for y in grid[grid < x]]
            found.append(float(weights @ np.max(best, axis=0)))
    assert max(found) == found[-4] <= bound and max(found) > 0.99 * bound


def test_the_likelihoods_as_they_are_drawn_lie_between_the_ends() -> None:
    t, noise, epsilon, epochs, n_games = 8, 1.0, 1.0, 2, 40_000
    rng = stream(13, experiment="opposite", cell={}, role="noise", replicate=0)
    outputs = rng.standard_normal((n_games, epochs, t)) / noise
    outputs[..., 0] += noise**-2
    loss = np.sum(np.log(np.exp(outputs).sum(axis=2) / np.exp(-outputs).sum(axis=2)), axis=1)
    gains = np.maximum(-np.expm1(epsilon - loss), 0.0)
    truth, deviation = gains.mean(), gains.std() / math.sqrt(n_games)
    found = dpsub.account(
        dpsub.RandomAllocation(t),
        noise_multiplier=noise,
        epochs=epochs,
        epsilon=epsilon,
        adjacency="substitute",
        effort=1.0,
        quick=False,
    )
    assert found.lower < truth + 4 * deviation and truth - 4 * deviation < found.upper
    assert found.upper < 1.05 * found.lower and deviation < 0.02 * truth


def test_ends_are_closer_than_by_way_of_no_record() -> None:
    replaced, direct = replaced_event(4, 1, 1.0), OppositeEvent(4, 1.0)
    target = Target(delta=1e-4)
    before = Composition([(replaced, 1)]).bound(target).value
    bound = Composition([(direct, 1)]).bound(target).value
    attack = Composition([(direct, 1)]).attack(target).value
    earlier = max(
        Composition([(each, 1)]).attack(target).value for each in replaced.attack_choices[1:]
    )
    assert earlier < attack < bound < 1.01 * attack < 0.85 * before
    # two epochs, and no steps of which cells would tell too little
    assert bound < Composition([(direct, 2)]).attack(target).value
    assert not OppositeEvent(16, 0.1).applies and not OppositeEvent(1, 1.0).applies


def usual_part(places: np.ndarray) -> np.ndarray:
    return places[places < 1.0]


@pytest.mark.parametrize("fault", ["places", "mean"])
def test_faults_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = of_opposites(1.0, 3, 2.0)
    assert upper_mean(2.0, 1.0, 3, _CELLS, 1e-9) > truth
    if fault == "mean":
        # masses to the upper ends of cells alone what their means ask for, halved
        real = opposite_records._at_ends

        def halved(
            points: int, lower: np.ndarray, upper: np.ndarray, below: float, above: float
        ) -> np.ndarray:
            return real(points, lower + upper / 2, upper / 2, below, above)

        monkeypatch.setattr(opposite_records, "_at_ends", halved)
    else:
        real_places = opposite_records._places
        # a grid that ends where values are usual, without a charge for those beyond it
        monkeypatch.setattr(
            opposite_records, "_places", lambda a, b, cells: usual_part(real_places(a, b, cells))
        )
        assert upper_mean(2.0, 1.0, 3, _CELLS, 1e-9) > truth
        monkeypatch.setattr(
            opposite_records,
            "_trimmed",
            lambda law, tail: opposite_records.UpperLaw(law.terms, law.value, law.mass, 0.0),
        )
    assert upper_mean(2.0, 1.0, 3, _CELLS, 1e-9) < truth


def test_a_trillion_steps_are_bounded() -> None:
    """Losses are too small for any grid, and orders end where exponentials do."""
    for s in (1.0, 50.0):
        answer = dpsub.account(
            dpsub.RandomAllocation(10**12),
            noise_multiplier=s,
            epochs=1,
            delta=1e-6,
            adjacency="substitute",
            quick=True,
            effort=0.1,
        )
        assert 0 <= answer.lower <= answer.upper < 11

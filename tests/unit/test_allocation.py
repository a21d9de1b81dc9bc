"""Random allocation: both bounds against quadrature, closed forms and the schedule as it is drawn;
faults are noticed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Bracket, Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.fourier import ComposedLoss, TiltedSum
from dpsub.accounting.engine.lower_law import exchanged
from dpsub.accounting.engine.privacy_events import Event
from dpsub.accounting.schemes.allocation import one_step
from dpsub.accounting.schemes.allocation.one_step import (
    AllocationEvent,
    SelectionEvent,
    SumEvent,
    mean_law,
    upper_pld,
)
from dpsub.errors import UnsupportedError
from dpsub.noise import GaussianProfile
from dpsub.streams import stream
from tests.few import few

_EPSILONS = (0.0, 0.5, 2.0)


def bracket(event: Event, epsilon: float, swapped: bool = False) -> Bracket:
    return Composition([(event, 1)]).brackets([Target(epsilon, width=2e-3)], [swapped])[0]


def generator() -> np.random.Generator:
    return stream(11, experiment="allocation", cell={}, role="noise", replicate=0)


def two_steps(noise: float, epsilon: float) -> tuple[float, float]:
    """Return H_a(P || Q) and H_a(Q || P) for t = 2: Black and Scholes' formula in one coordinate, a
    sum in the other."""
    sigma, a = 1 / noise, math.exp(epsilon)
    z = np.linspace(-10, 12 + sigma, 100_001)
    weights = (z[1] - z[0]) * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    x = np.exp(sigma * z - sigma**2 / 2)

    def d(strike: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(strike, 1e-300)) / sigma + sigma / 2

    call, put = 2 * a - x, 2 / a - x
    forward = (
        weights @ np.where(call > 0, ndtr(sigma - d(call)) - call * ndtr(-d(call)), 1 - call) / 2
    )
    return float(forward), float(
        weights @ np.where(put > 0, put * ndtr(d(put)) - ndtr(d(put) - sigma), 0.0) * a / 2
    )


def gauss(noise: float, t: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of t independent N(0, s^2) variables, shape (t, n), moved to where the record's
    steps lie as well, their weights, and X_j and 1 / (X_j e^(1/s^2)) there."""
    z = np.linspace(-9, 9 + 1 / noise, points)
    axes = np.stack(np.meshgrid(*[z] * t, indexing="ij")).reshape(t, -1)
    weights = np.exp(-np.sum(axes**2, axis=0) / 2) * ((z[1] - z[0]) / math.sqrt(2 * math.pi)) ** t
    return weights, np.exp(axes / noise - noise**-2 / 2), np.exp(-axes / noise - noise**-2 / 2)


@pytest.mark.parametrize("noise", [0.3, 1.0, 5.0])
def test_one_step_is_the_gaussian_mechanism(noise: float) -> None:
    for epsilon in _EPSILONS:
        truth = float(GaussianProfile(1 / noise).delta(epsilon))
        for swapped in (False, True):
            found = bracket(AllocationEvent(1, noise), epsilon, swapped)
            assert found.lower <= truth * (1 + 1e-12) and truth <= found.upper * (1 + 1e-12)
            assert found.width_met
    exact = dpsub.account(dpsub.RandomAllocation(1), noise_multiplier=noise, epsilon=1.0)
    assert exact.lower <= float(GaussianProfile(1 / noise).delta(1.0)) <= exact.upper


@pytest.mark.parametrize("noise", [0.3, 0.7, 3.0])
def test_two_steps_are_what_quadrature_gives(noise: float) -> None:
    for epsilon in _EPSILONS:
        for swapped, truth in enumerate(two_steps(noise, epsilon)):
            found = bracket(AllocationEvent(2, noise), epsilon, bool(swapped))
            assert found.lower <= truth * (1 + 1e-8) and truth <= found.upper * (1 + 1e-8)
            assert found.upper < found.lower * 1.01


@pytest.mark.parametrize(("noise", "epsilon"), [(0.7, 1.0), (2.0, 0.2)])
def test_three_steps_need_no_power_of_two(noise: float, epsilon: float) -> None:
    weights, x, _ = gauss(noise, 3, 121)
    ratio, a = x.mean(axis=0), math.exp(epsilon)
    for swapped, truth in enumerate(
        (weights @ np.maximum(ratio - a, 0), weights @ np.maximum(1 - a * ratio, 0))
    ):
        found = bracket(AllocationEvent(3, noise), epsilon, bool(swapped))
        assert found.lower <= truth * (1 + 1e-3) and truth <= found.upper * (1 + 1e-3)


def test_charges_that_are_left_out_are_noticed() -> None:
    noise, epsilon, step = 1.0, 1.0, 0.02
    truth = two_steps(noise, epsilon)
    law = mean_law(2, noise, 0.05, 2e-2, True)

    def delta(law: Any, swapped: bool = False) -> float:
        return ComposedLoss([upper_pld(law, step, swapped)], [1]).delta(epsilon)

    assert delta(law) > truth[0] and delta(law, True) > truth[1]
    # what is cut off on the right
    assert delta(replace(law, lost=0.0)) < truth[0]
    # means of cells where their ends are due
    coarse = mean_law(2, noise, 0.3, 1e-18, False)
    assert (
        delta(
            replace(
                coarse,
                upper=True,
                ratio=np.append(0.0, coarse.ratio),
                mass=np.append(0.0, coarse.mass),
            )
        )
        < truth[0]
    )
    # no share of a ratio that rounding could have lowered
    assert delta(replace(law, ratio_error=1e-3)) > delta(law) * 1.0005


def test_rounding_up_is_no_contraction(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = two_steps(1.0, 1.0)[0]
    event = AllocationEvent(2, 1.0)
    assert ComposedLoss([event.lower(0.02, 1e-18, False)], [1]).delta(1.0) < truth
    right = one_step._collected

    def rounded(
        terms: int, edges: np.ndarray, mass: np.ndarray, excess: np.ndarray, *rest: Any
    ) -> Any:
        floor = np.append(edges, edges[-1])
        return right(terms, edges, mass, mass * (floor - np.append(0.0, edges)), *rest)

    monkeypatch.setattr(one_step, "_collected", rounded)
    with work.metered(10.0):  # which remembers nothing of other questions
        assert ComposedLoss([event.lower(0.02, 1e-18, False)], [1]).delta(1.0) > truth


def test_groups_exchange_shares_and_keep_the_whole() -> None:
    rng = generator()
    first, grid = rng.uniform(0.5, 1.5, 50), np.exp(0.1 * np.arange(50))
    second = first / (grid * np.exp(rng.uniform(-0.05, 0.05, 50)))
    after = exchanged(*exchanged(first, second, grid), grid)
    assert after[0].sum() == pytest.approx(first.sum()) and after[1].sum() == pytest.approx(
        second.sum()
    )
    assert (
        np.abs(np.log(after[0] / after[1] / grid)).max()
        < 0.5 * np.abs(np.log(first / second / grid)).max()
    )


@pytest.mark.parametrize(
    ("schedule", "noise", "epsilon"),
    [
        (dpsub.RandomAllocation(5), 0.5, 2.0),
        (dpsub.RandomAllocation(3), 1.0, 0.2),
        (dpsub.RandomAllocation(6, 2), 1.0, 0.5),
    ],
)
def test_the_schedule_as_it_is_drawn_attains_the_lower_end(
    schedule: Any, noise: float, epsilon: float
) -> None:
    rng, n_epochs = generator(), 30_000
    drawn = schedule.draw_block(dpsub.sampling.Frame(1), schedule.t * n_epochs, rng)
    included = np.diff(drawn.offsets).reshape(n_epochs, schedule.t)
    released = noise * rng.standard_normal(included.shape)
    subsets = list(combinations(range(schedule.t), schedule.k))

    def ratio(outputs: np.ndarray) -> np.ndarray:
        x = np.exp(outputs / noise**2 - noise**-2 / 2)
        return np.mean([x[:, list(subset)].prod(axis=1) for subset in subsets], axis=0)

    said = [
        (ratio(outputs) > math.exp(epsilon)).astype(float)
        for outputs in (released + included, released)
    ]
    attained = said[0].mean() - math.exp(epsilon) * said[1].mean()
    deviation = math.sqrt((said[0].var() + math.exp(2 * epsilon) * said[1].var()) / n_epochs)
    found = dpsub.account(schedule, noise_multiplier=noise, epsilon=epsilon)
    assert (
        abs(attained - max(min(attained, found.upper), found.lower))
        < 4 * deviation
        < 0.2 * attained
    )


@pytest.mark.parametrize(("noise", "epsilon"), [(0.7, 2.0), (2.0, 0.3)])
def test_two_of_three_lie_between_attack_and_blocks(noise: float, epsilon: float) -> None:
    weights, x, _ = gauss(noise, 3, 121)
    ratio, a = (x[0] * x[1] + x[0] * x[2] + x[1] * x[2]) / 3, math.exp(epsilon)
    truths = weights @ np.maximum(ratio - a, 0), weights @ np.maximum(1 - a * ratio, 0)
    composition = Composition([(SelectionEvent(3, 2, noise), 1)])
    for swapped, truth in zip((False, True), truths, strict=True):
        ends = [
            side(0.02, 1e-18, swapped).delta(epsilon)
            for side in (composition.lower, composition.upper)
        ]  # type: ignore[union-attr]
        assert 0.9 * truth < ends[0] <= truth <= ends[1] < 1.5 * truth


def test_blocks_that_differ_in_size_are_all_counted() -> None:
    assert [(event.t, times) for event, times in SelectionEvent(11, 4, 1.0).blocks] == [
        (2, 1),
        (3, 3),
    ]
    assert [(event.t, times) for event, times in SelectionEvent(12, 4, 1.0).blocks] == [(3, 4)]


@pytest.mark.parametrize(("noise", "epsilon"), [(0.7, 1.0), (2.0, 0.3)])
def test_a_replaced_record_is_bounded(noise: float, epsilon: float) -> None:
    weights, x, mirrored = gauss(noise, 2, 1001)
    truth = weights @ np.maximum(x.mean(axis=0) - math.exp(epsilon) * mirrored.mean(axis=0), 0)
    found = dpsub.account(
        dpsub.RandomAllocation(2), noise_multiplier=noise, epsilon=epsilon, adjacency="substitute"
    )
    assert found.kind == "bounds" and 0 < found.lower <= truth <= found.upper < 2 * truth
    revealed = float(GaussianProfile(2 / noise).delta(epsilon))
    assert found.upper <= revealed * 1.01


@pytest.mark.parametrize(
    ("t", "noise", "epsilon", "share"),
    [(2, 1.0, 1.0, 0.97), (2, 5.0, 0.1, 0.999), (3, 0.7, 1.0, 0.9)],
)
def test_a_record_put_to_the_opposite_attains_most_of_what_it_could(
    t: int, noise: float, epsilon: float, share: float
) -> None:
    weights, x, mirrored = gauss(noise, t, {2: 1001, 3: 161}[t])
    truth = weights @ np.maximum(x.mean(axis=0) - math.exp(epsilon) * mirrored.mean(axis=0), 0)
    composition = Composition([(SumEvent(t, 1, noise, 1 / t, 1.0, -1.0), 1)])
    ends = [
        composition.attacks([Target(epsilon)], directions=[swapped])[0].value
        for swapped in (False, True)
    ]
    assert share * truth < ends[0] <= truth * (1 + 1e-9) and ends[1] == pytest.approx(
        ends[0], rel=1e-9
    )
    removed = Composition([(AllocationEvent(t, noise), 1)]).attacks([Target(epsilon)])[0].value
    found = dpsub.account(
        dpsub.RandomAllocation(t), noise_multiplier=noise, epsilon=epsilon, adjacency="substitute"
    )
    assert (
        1.5 * removed < ends[0] <= found.lower * 1.001
        and found.lower <= truth * (1 + 1e-9) < found.upper * 1.01
    )


def test_a_replaced_record_as_it_is_drawn_attains_the_lower_end() -> None:
    schedule, noise, epsilon, epochs, n_games = dpsub.RandomAllocation(4), 1.0, 1.0, 2, 20_000
    rng = generator()
    drawn = schedule.draw_block(dpsub.sampling.Frame(1), schedule.t * epochs * n_games, rng)
    included = np.diff(drawn.offsets).reshape(n_games, epochs, schedule.t)
    outputs = (included + noise * rng.standard_normal(included.shape)) / noise**2
    loss = np.sum(np.log(np.exp(outputs).sum(axis=2) / np.exp(-outputs).sum(axis=2)), axis=1)
    gains = np.maximum(-np.expm1(epsilon - loss), 0.0)
    truth, deviation = gains.mean(), gains.std() / math.sqrt(n_games)
    found = dpsub.account(
        schedule, epochs=epochs, noise_multiplier=noise, epsilon=epsilon, adjacency="substitute"
    )
    assert (
        0.95 * truth < found.lower < truth + 4 * deviation < 1.1 * truth
        and truth - 4 * deviation < found.upper
    )


def test_fewer_steps_are_less_private_and_none_is_worse_than_in_order() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 0.6, "epochs": 3, "delta": 1e-6}
    costs = [dpsub.account(dpsub.RandomAllocation(t), **asked) for t in (1, 2, 7, 64)]
    assert all(more.upper < fewer.lower for fewer, more in pairwise(costs))
    in_order = dpsub.account(dpsub.Deterministic(), adjacency="add_remove", **asked)
    assert costs[0].upper == pytest.approx(in_order.upper, rel=1e-3)


@pytest.mark.parametrize(
    ("t", "k", "noise"),
    few(
        [
            (10**9, 1, 1.0),
            (10**9, 1, 0.05),
            (2, 1, 1000.0),
            (10**6, 3, 1.0),
            (100, 2, 0.05),
            (3, 2, 1e9),
        ],
        most=2,
    ),
)
def test_extreme_sizes_are_answered(t: int, k: int, noise: float) -> None:
    found = dpsub.account(dpsub.RandomAllocation(t, k), noise_multiplier=noise, delta=1e-6)
    assert 0 <= found.lower <= found.upper < 5000


def test_a_small_epsilon_is_no_wider_than_half_a_percent() -> None:
    found = dpsub.account(dpsub.RandomAllocation(1000), noise_multiplier=20, epochs=100, delta=1e-6)
    assert 0 < found.upper - found.lower <= 0.005 * found.upper < 5e-4


def test_where_no_grid_is_affordable_first_ends_stand() -> None:
    found = dpsub.account(
        dpsub.RandomAllocation(10**9, 5 * 10**8), noise_multiplier=1, delta=1e-6, effort=0.1
    )
    assert 0 < found.lower < found.upper < math.inf


def test_all_steps_with_little_noise_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="amounts to one step with"):
        dpsub.account(dpsub.RandomAllocation(1000, 1000), noise_multiplier=1, delta=1e-6)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_first_law_covers_what_masses_of_cells_may_be_off_by(
    share: float, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A law with all its mass at the ends of cells leaves no room for moving it there; its errors
    are as large as is allowed."""
    sigma, error = 0.7, 1e-4
    truth: dict[str, np.ndarray] = {}

    def told(z: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
        q = np.diff(ndtr(np.concatenate([[-np.inf], z, [np.inf]])))
        edges = np.exp(sigma * z - sigma**2 / 2)
        low, high = np.append(0.0, edges), np.append(edges, 1.5 * edges[-1])
        masses = q if mean == 0 else q * ((1 - share) * low + share * high)
        truth.update(low=low, high=high, q=q)
        return masses * (1 + error * (sign if mean else -sign)), masses * error * 1.001

    monkeypatch.setattr(one_step, "normal_masses", told)
    law = one_step.single_law(1 / sigma, 0.5, 1e-9, True)
    mass, rho = law.mass * (1 + law.mass_error), law.ratio_error
    for a in np.exp(np.linspace(-5, 5, 2001)):
        up, down = (
            float(
                np.sum(truth["q"] * ((1 - share) * one(truth["low"]) + share * one(truth["high"])))
            )
            for one in (
                lambda r, a=a: np.maximum(r - a, 0.0),
                lambda r, a=a: np.maximum(a - r, 0.0),
            )
        )
        assert up <= mass @ np.maximum(law.ratio * (1 + rho) - a, 0.0) + law.lost + 1e-14
        assert down <= mass @ np.maximum(a - law.ratio * (1 - rho), 0.0) + 1e-14


def test_mass_from_beyond_both_ends_may_come_back_at_one_place() -> None:
    tail, true = 1e-3, np.array([0.2, 0.5, 0.3 - 2e-3])
    for place in range(3):
        folded = true + 2 * tail * (np.arange(3) == place)
        found = TiltedSum(folded, 0, 0.1, 0.0, 0.0, 0.0, 0.0, tail, 0.0, "lower")
        assert np.all(one_step._masses(found, np.arange(3), -1) <= true)
        assert np.all(one_step._masses(found, np.arange(3), 1) >= true)

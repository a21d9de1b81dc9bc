"""Where plays are cut off, the losses far out, and the edge about order 1, against the game that is
played step by step, with planted faults."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.games import blocks
from dpsub.accounting.games.blocks import BlockedGame
from dpsub.accounting.games.game import Game, GameValue, divided
from dpsub.streams import stream
from tests.unit.test_blocked_game import FAMILIES, laws

STEPS = 300


def both(family: str, order: float, end: float) -> tuple[GameValue, GameValue]:
    """Return the value step by step on a long grid, and in blocks that are cut off above an
    order."""
    cells, tilt = FAMILIES[family]
    plds, swapped = laws(cells, 8, 0.01, 8.0)
    by_step = Game(plds, STEPS, tilt, 8.0, 1e-13, swapped).played()
    cut = BlockedGame(plds, STEPS, tilt, 20, 1e-13, swapped, end, order)
    return by_step, cut.played()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", [0.1, 0.4, 1.0])
def test_a_cut_above_the_order_asked_for_is_hardly_seen_there(family: str, order: float) -> None:
    by_step, cut = both(family, order, math.inf)
    epsilons = np.array([0.0, order / 2, order])
    ratios = cut.curve(epsilons) / by_step.curve(epsilons)
    assert np.all(ratios >= 1 - 1e-7)
    assert ratios[-1] <= 1.02
    # beyond it, a bound all the same
    beyond = order + np.array([0.3, 1.0, 3.0])
    assert np.all(cut.curve(beyond) >= by_step.curve(beyond) * (1 - 1e-7))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cut_makes_windows_smaller(family: str) -> None:
    cells, tilt = FAMILIES[family]
    plds, swapped = laws(cells, 0, 0.01, 8.0)
    whole, cut = (
        BlockedGame(plds, STEPS, tilt, 20, 1e-13, swapped, order=order).played().x.size
        for order in (math.inf, 0.1)
    )
    assert cut < whole


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("share", [-4.0, 0.0, 3.0])
def test_any_cut_is_valid(family: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one in the middle of what comes to the answer: all of it is charged."""
    monkeypatch.setattr(blocks, "_CUT_OFF", share)
    by_step, cut = both(family, 0.4, 4.0)
    epsilons = np.array([0.0, 0.2, 0.4, 0.6])
    assert np.all(cut.curve(epsilons) >= by_step.curve(epsilons) * (1 - 1e-7))


def test_a_cut_that_is_not_charged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_CUT_OFF", -4.0)
    monkeypatch.setattr(blocks._Cut, "passed", lambda self, x, beyond: 0 * x)
    by_step, cut = both("wor", 0.4, 4.0)
    assert float(cut.curve(np.array([0.4]))[0]) < float(by_step.curve(np.array([0.4]))[0]) * 0.99


def test_a_cut_at_the_floor_that_is_not_charged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: BlockedGame, steps: int, x: np.ndarray) -> np.ndarray:
        return 0 * x

    monkeypatch.setattr(blocks, "_FLOOR", 0.5)
    by_step, charged = both("wor", math.inf, math.inf)
    epsilons = np.array([0.4, 0.8])
    assert np.all(charged.curve(epsilons) >= by_step.curve(epsilons) * (1 - 1e-7))
    monkeypatch.setattr(BlockedGame, "_at_most", nothing)
    monkeypatch.setattr(BlockedGame, "_floor", 0.0)
    monkeypatch.setattr(BlockedGame, "_size", lambda self, steps, log_more=0.0: 40)
    _, free = both("wor", math.inf, math.inf)
    assert np.any(free.curve(epsilons) < by_step.curve(epsilons) * 0.99)


class TestDivided:
    pld = PrivacyLossDistribution(
        0.1, np.array([-20, -3, 4, 9, 30]), np.array([0.1, 0.3, 0.4, 0.15, 0.03]), "upper", 0.01
    )

    @staticmethod
    def profile(pld: PrivacyLossDistribution, log_orders: np.ndarray) -> np.ndarray:
        gains = -np.expm1(np.minimum(log_orders[:, None] - pld.losses, 0.0))
        return np.asarray(gains @ pld.masses + pld.infinity)

    @pytest.mark.parametrize("most", [1, 5, 9, 20])
    def test_dominates_with_equality_at_orders_below(self, most: int) -> None:
        log_orders = np.linspace(-3, 5, 161)
        before = self.profile(self.pld, log_orders)
        after = self.profile(divided(self.pld, most), log_orders)
        assert np.all(after >= before * (1 - 1e-12))
        below = log_orders <= most * 0.1
        assert after[below] == pytest.approx(before[below], rel=1e-10)

    def test_keeps_the_masses_of_both_data_sets(self) -> None:
        cut = divided(self.pld, 5)
        for tilt in (0.0, -1.0):
            before = float(np.exp(tilt * self.pld.losses) @ self.pld.masses)
            after = float(np.exp(tilt * cut.losses) @ cut.masses)
            if tilt == 0.0:
                before, after = before + self.pld.infinity, after + cut.infinity
            assert after == pytest.approx(before, rel=1e-10)

    def test_nothing_is_divided_where_nothing_lies_beyond(self) -> None:
        cut = divided(self.pld, 30)
        assert cut.infinity == self.pld.infinity
        assert float(cut.masses.sum()) == pytest.approx(float(self.pld.masses.sum()), rel=1e-12)


@pytest.mark.parametrize("draw", range(8))
def test_convex_bounds_lie_between_a_convex_function_and_its_bounds(draw: int) -> None:
    draws = stream(24, experiment="game_windows", cell={}, role="noise", replicate=draw)
    x = np.linspace(-0.5, 0.5, 101)
    orders = np.exp(x)
    # falling and convex in the order
    places = draws.uniform(0.5, 1.8, 5)
    truth = np.maximum(places - orders[:, None], 0.0).mean(axis=1) + 0.1
    bounds = truth * (1 + draws.uniform(0, 0.01, x.size))
    lower = blocks._convex_below(x, bounds, 8.0)
    assert np.all(lower >= truth)
    assert np.all(lower <= bounds * (1 + 1e-9))
    slopes = np.diff(lower) / np.diff(orders)
    assert np.all(np.diff(slopes) >= -1e-8)


@pytest.mark.parametrize("family", ["wor", "zero_out"])
@pytest.mark.parametrize("draw", range(3))
def test_errors_about_order_1_are_taken_away_and_no_more(
    family: str, draw: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise above the bounds there, which a block would carry on, is lowered, never below the
    value."""
    draws = stream(25, experiment="game_windows", cell={}, role="noise", replicate=draw)
    original = blocks.BlockedGame._convex

    def noisy(self: BlockedGame, played: blocks._Played, length: int) -> blocks._Played:
        grown = played.value * (1 + draws.uniform(0, 2e-3, played.value.shape))
        return original(self, played._replace(value=grown), length)

    monkeypatch.setattr(blocks.BlockedGame, "_convex", noisy)
    by_step, in_blocks = both(family, 0.4, 4.0)
    epsilons = np.array([0.0, 0.2, 0.4])
    assert np.all(in_blocks.curve(epsilons) >= by_step.curve(epsilons) * (1 - 1e-7))


def test_bounds_that_are_lowered_too_far_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = blocks._convex_below
    monkeypatch.setattr(
        blocks, "_convex_below", lambda *arguments: original(*arguments) * (1 - 1e-3)
    )
    by_step, in_blocks = both("wor", 0.4, 4.0)
    assert float(in_blocks.curve(np.zeros(1))[0]) < float(by_step.curve(np.zeros(1))[0]) * 0.9999


def test_mass_counts_less_the_further_down_it_moves() -> None:
    _, tilt = FAMILIES["wor"]
    plds, _ = laws(FAMILIES["wor"][0], 4, 0.01, 8.0)
    kernels = BlockedGame(plds, STEPS, tilt, 20, 1e-13).kernels
    plain, falling = (kernels.reach(20, 1e-14, fall)[0] for fall in (0.0, 5.0))
    assert falling < plain
    # the law of 20 losses, by convolution
    for masses in kernels.masses:
        law = np.array([1.0])
        for _ in range(20):
            law = np.convolve(law, masses)
        down = np.arange(law.size) - 20 * kernels.right
        beyond = down >= falling
        weight = np.exp(-5.0 * down[beyond] * kernels.step)
        assert float(law[beyond] @ weight) <= 1e-14

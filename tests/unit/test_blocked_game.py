"""Many steps of a game at a time, against the game that is played step by step on the same laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.pld import PrivacyLossDistribution, two_sided_pld
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games import blocks, covers
from dpsub.accounting.games.blocks import BlockedGame
from dpsub.accounting.games.covers import FillerGame
from dpsub.accounting.games.game import Copies, Game, GameCells, GameValue, GaussianCells, Kernels
from dpsub.accounting.games.laplace import LaplaceCells
from dpsub.accounting.games.zeroed import ZeroedCells
from dpsub.streams import stream
from tests.few import few

EPSILONS = np.array([0.0, 0.1, 0.4, 0.8])


def once(rate: float) -> Copies:
    return Copies((1 - rate, rate))


# with a tilt at which large losses matter as little as they do at that of a question
FAMILIES: dict[str, tuple[GameCells, float]] = {
    "wor": (GaussianCells(once(0.05), 3.0), 3.0),
    "wor, little noise": (GaussianCells(once(0.01), 0.8), 0.5),
    "wr": (GaussianCells(Copies(tuple(binom.pmf(np.arange(5), 4, 0.03).tolist())), 2.5), 1.0),
    "laplace": (LaplaceCells(0.05, 3.0), 3.0),
    "zero_out": (ZeroedCells(0.05, 2.0), 3.0),
}
WOR, _ = FAMILIES["wor"]


def laws(
    cells: GameCells, cuts: int, step: float, last: float
) -> tuple[list[PrivacyLossDistribution], list[PrivacyLossDistribution]]:
    """Return laws of a cover whose largest cells were cut so often; and those of the other order of
    the data sets, where it has a value of its own."""
    cover: list[Any] = [cells.whole]
    for _ in range(cuts):
        cover += cells.halves(cover.pop(0))
    orders = np.arange(round(last / step) + 1)
    profiles = [cells.profiles(cell, 1e-15) for cell in cover]
    first = [two_sided_pld(*each, step, orders) for each in profiles]
    if cells.mirrored:
        return first, []
    return first, [two_sided_pld(*each[::-1], step, orders) for each in profiles]


def both(
    plds: Sequence[PrivacyLossDistribution],
    swapped: Sequence[PrivacyLossDistribution],
    steps: int,
    tilt: float,
) -> tuple[GameValue, GameValue]:
    """Return the value step by step, and in blocks."""
    by_step = Game(plds, steps, tilt, 8.0, 1e-13, swapped).played()
    return by_step, BlockedGame(plds, steps, tilt, 20, 1e-13, swapped).played()


def ratios(values: tuple[GameValue, GameValue]) -> np.ndarray:
    by_step, in_blocks = (value.curve(EPSILONS) for value in values)
    return np.asarray(in_blocks / by_step)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("steps", [1, 2, 40, 300])
def test_the_value_in_blocks_is_no_smaller_and_nearly_as_small(family: str, steps: int) -> None:
    cells, tilt = FAMILIES[family]
    plds, swapped = laws(cells, 12, 0.01, 8.0)
    values = both(plds, swapped, steps, tilt)
    # the step-by-step play charges its round-off, and what leaves its window
    assert np.all(ratios(values) >= 1 - 1e-7)
    by_step, in_blocks = (value.bounds[1] for value in values)
    assert in_blocks <= by_step * (1 + 0.01)


@pytest.mark.parametrize(("tilt", "steps"), few([(0.0, 100), (1.0, 100), (12.0, 200)]))
def test_any_tilt_is_valid(tilt: float, steps: int) -> None:
    plds, swapped = laws(WOR, 6, 0.01, 8.0)
    assert np.all(ratios(both(plds, swapped, steps, tilt)) >= 1 - 1e-6)


@pytest.mark.parametrize("draw", range(8))
def test_any_excess_is_valid(draw: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = stream(23, experiment="blocked_game", cell={}, role="noise", replicate=draw)
    original = blocks._Window.smoothed

    def wrong(
        self: blocks._Window, excess: np.ndarray, pairs: tuple[int, ...], length: int
    ) -> np.ndarray:
        found = original(self, excess, pairs, length)
        rough = draws.normal(0, 0.3, found.shape) * np.abs(found)
        return found * draws.uniform(-0.5, 2) + draws.choice([0.0, 1.0]) * rough

    monkeypatch.setattr(blocks._Window, "smoothed", wrong)
    monkeypatch.setattr(blocks, "_MOST_LOST", 1e9)
    plds, swapped = laws(WOR, 6, 0.02, 8.0)
    assert np.all(ratios(both(plds, swapped, 120, 4.0)) >= 1 - 1e-7)


@pytest.mark.parametrize("draw", range(4))
def test_any_pair_may_be_followed(draw: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks._Block, "_references", lambda self, transformed: (draw,))
    plds, swapped = laws(WOR, 6, 0.02, 8.0)
    assert np.all(ratios(both(plds, swapped, 120, 4.0)) >= 1 - 1e-7)


def test_what_an_excess_lacks_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = lambda self, lacking, *rest: (np.zeros((1, 1)), np.zeros((1, 1)))  # noqa: E731
    monkeypatch.setattr(blocks._Block, "_added", nothing)
    none = lambda self, excess, *rest: 0 * excess  # noqa: E731
    monkeypatch.setattr(blocks._Window, "smoothed", none)
    monkeypatch.setattr(blocks._Block, "_at_edge", none)
    plds, swapped = laws(WOR, 12, 0.01, 8.0)
    assert np.any(ratios(both(plds, swapped, 300, 3.0)) < 1 - 1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_play_that_the_budget_ends_is_between_those_with_all_cells_and_with_one(
    family: str,
) -> None:
    cells, tilt = FAMILIES[family]
    plds, swapped = laws(cells, 12, 0.01, 8.0)
    whole, whole_swapped = laws(cells, 0, 0.01, 8.0)
    steps = 300
    few, many = (
        BlockedGame(first, steps, tilt, 20, 1e-13, second).played().curve(EPSILONS)
        for first, second in ((plds, swapped), (whole, whole_swapped))
    )
    game = BlockedGame(plds, steps, tilt, 20, 1e-13, swapped, widest=[*whole, *whole_swapped])
    with work.metered():
        assert game.played().by_widest == 0
        full = work.spent() / work.UNITS
    left = []
    for share in (0.5, 0.7, 0.9):
        with work.metered(share * full):
            ended = game.played()
        left.append(ended.by_widest)
        assert np.all(ended.curve(EPSILONS) >= few * (1 - 1e-7))
        assert np.all(ended.curve(EPSILONS) <= many * (1 + 2e-3))
    assert steps > left[0] > left[-1] > 0


@pytest.mark.parametrize("cuts", [0, 12])
def test_one_law_in_the_last_steps_is_the_game_with_it_alone(cuts: int) -> None:
    """Where it is the law of all steps before, too, the value is that of all steps; where others
    come before it, that of these steps, taken on by a product of its powers."""
    whole, _ = laws(WOR, 0, 0.01, 8.0)
    plds, _ = laws(WOR, cuts, 0.01, 8.0)
    game = BlockedGame(2 * plds, 300, 3.0, 20, 1e-13, widest=whole)
    played = next(after for after in game._after_each_block() if after.done >= 100)
    ended = game._ended(played)
    assert ended.by_widest == 300 - played.done
    found, target = ended.answer(Target(delta=1e-4)), Target(delta=1e-4)
    alone = [
        BlockedGame(whole, steps, 3.0, 20, 1e-13).played().answer(target)
        for steps in (300 - played.done, 300)
    ]
    assert alone[0] < found <= alone[1] * (1 + 1e-6)
    if not cuts:
        assert found == pytest.approx(alone[1], rel=1e-5)


def test_many_steps_take_little_more_than_few() -> None:
    plds, _ = laws(WOR, 6, 0.01, 8.0)
    rough = [BlockedGame(plds, steps, 2.0, 30, 1e-15).roughly(0).work for steps in (500, 8000)]
    assert rough[1] < 8 * rough[0]


def test_a_rough_value_is_near() -> None:
    plds, swapped = laws(WOR, 10, 0.01, 8.0)
    value = Game(plds, 300, 3.0, 3.0, 1e-13, swapped).played()
    rough = BlockedGame(plds, 300, 3.0, 20, 1e-13, swapped).roughly(5)
    target = Target(delta=1e-4)
    assert rough.value.answer(target) == pytest.approx(value.answer(target), rel=0.01)
    assert 3 <= len(rough.snapshots) <= 7
    assert sum(snapshot.weight for snapshot in rough.snapshots) <= 300


def test_rare_losses_far_out_do_not_widen_windows() -> None:
    """A record that is seldom drawn, and then often: a few of its losses are followed, not as many
    as a normal law of their deviation had."""
    masses = np.zeros((1, 10_001))
    masses[0, [4999, 5001]] = 0.5
    masses[0, [0, 10_000]] = 1e-10
    kernels = Kernels(1.0, masses / masses.sum(), left=5000, right=5000, infinity=0.0, kappa=0.0)
    down, up = kernels.reach(256, 1e-14)
    assert 5000 <= down <= 15_000 and down == up


def test_an_aim_that_the_budget_ends_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    game = FillerGame(WOR, 100, 0.02)
    search = game._search(Target(delta=1e-5), 0.5, 0.6)
    step = search.first_step

    def ended(*_: Any) -> None:
        raise OutOfWorkError("the budget does not suffice")

    with monkeypatch.context() as patched:
        patched.setattr(covers._CoverSearch, "_single", ended)
        with pytest.raises(OutOfWorkError):
            search._aim(step)
    assert search._aim(step) > 0
    assert search.fits([WOR.whole], step)

"""Cells of a game that share a law: it dominates each of them, and the answer moves by next to
nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.games import covers
from dpsub.accounting.games.covers import FillerGame
from dpsub.accounting.games.game import GameCells, GamePlayed
from dpsub.sampling import Sampler, Wor, Wr

# of one copy: bounds of several depend on the orders that are asked for together
ONE_COPY = [(Wor(200), 10_000, "substitute"), (Wor(200), 10_000, "zero_out")]
SEVERAL = [(Wr(50), 1000, "substitute")]
STEPS, NOISE = 100, 4.0


@pytest.fixture
def games(monkeypatch: pytest.MonkeyPatch) -> list[tuple[GameCells, GamePlayed]]:
    """Record the games that are played from here on, and the kinds of their cells."""
    played: list[tuple[GameCells, GamePlayed]] = []
    kept = FillerGame._kept

    def kept_here(self: FillerGame, *args: Any) -> float:
        proved = kept(self, *args)
        played.append((self.cells, self.played[-1]))
        return proved

    monkeypatch.setattr(FillerGame, "_kept", kept_here)
    return played


def profile_of(pld: PrivacyLossDistribution, log_orders: np.ndarray) -> np.ndarray:
    """Return H_a of a law, a sum over its losses."""
    losses = pld.indices * pld.step
    gains = np.maximum(-np.expm1(log_orders[:, None] - losses), 0.0)
    return np.asarray(gains @ pld.masses + pld.infinity)


def upper(sampler: Sampler, n: int, adjacency: str) -> float:
    found = dpsub.account(
        sampler,
        n,
        noise_multiplier=NOISE,
        steps=STEPS,
        delta=1e-5,
        adjacency=adjacency,
        quick=False,
    )
    return float(found.upper)


@pytest.mark.parametrize(("sampler", "n", "adjacency"), ONE_COPY, ids=str)
def test_a_shared_law_dominates_all_its_cells(
    games: list[tuple[GameCells, GamePlayed]], sampler: Sampler, n: int, adjacency: str
) -> None:
    upper(sampler, n, adjacency)
    cells, game = games[-1]
    laws = len({id(pld) for pld in game.plds})
    assert len(game.cells) == len(game.plds) >= laws
    # few cells of angles are unlike each other
    assert laws < len(game.cells) or adjacency == "zero_out"
    log_orders = np.linspace(0.0, 1.0, 41)
    for cell, pld in zip(game.cells, game.plds, strict=True):
        forward, _ = cells.profiles(cell, game.target.tail)
        assert np.all(profile_of(pld, log_orders) >= forward(log_orders) - 1e-12)
    for cell, pld in zip(game.cells, game.swapped, strict=bool(game.swapped)):
        _, backward = cells.profiles(cell, game.target.tail)
        assert np.all(profile_of(pld, log_orders) >= backward(log_orders) - 1e-12)


@pytest.mark.parametrize(("sampler", "n", "adjacency"), [*ONE_COPY, *SEVERAL], ids=str)
def test_the_answer_moves_by_next_to_nothing(
    monkeypatch: pytest.MonkeyPatch, sampler: Sampler, n: int, adjacency: str
) -> None:
    shared = upper(sampler, n, adjacency)
    monkeypatch.setattr(covers, "_BY_SHARING", 0.0)
    monkeypatch.setattr(covers, "_LIKE", 0)
    assert shared == pytest.approx(upper(sampler, n, adjacency), rel=3e-3)

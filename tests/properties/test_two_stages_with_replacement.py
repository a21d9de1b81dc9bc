"""Theorem 65, MUST.WW as a game: one step against every sample of tiny data sets, and what the
fillers at the worst place attain; planted faults are noticed. Several adaptive steps are in
test_adaptive_steps.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from dpsub.accounting.games.game import Branch, Copies, GaussianCell, GaussianCells
from dpsub.streams import stream
from tests import tiny_mechanisms
from tests.few import few
from tests.tiny_mechanisms import sample_counts, stages

ORDERS = np.array([0.0, 0.02, 0.1, 0.3, 0.8, 1.5, 3.0])  # ln a


def copies(n: int, b: int, m: int) -> Copies:
    return tiny_mechanisms.copies(n, f"wr:{b},wr:{m}")


def masses(n: int, b: int, m: int, data: np.ndarray, s: float) -> np.ndarray:
    """Return the masses of squares, over all samples: data of shape (n, 2)."""
    counts, weights = sample_counts(n, stages(f"wr:{b},wr:{m}"))
    sums = counts @ data
    edges = np.concatenate([[-np.inf], np.arange(-m - 6 * s, m + 6 * s, 0.1 * s), [np.inf]])
    across, up = (np.diff(ndtr((edges - sums[:, axis, None]) / s)) for axis in (0, 1))
    return np.asarray((across * weights[:, None]).T @ up)


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - a * q, 0.0).sum() for a in np.exp(ORDERS)])


def cell_of(v: np.ndarray, other: np.ndarray, filler: np.ndarray) -> GaussianCell:
    """Return the smallest cell for v and v' antipodal on the circle, and a filler on it."""
    angle = math.atan2(float(filler @ v), float(filler @ [-v[1], v[0]]))
    place = (angle + math.pi) % (2 * math.pi) - math.pi
    place = place if abs(place) <= math.pi / 2 else math.copysign(math.pi - abs(place), place)
    return GaussianCell(math.pi / 2, math.pi / 2, place, place)


@pytest.mark.parametrize(
    ("n", "b", "m", "s"), few([(3, 2, 3, 1.0), (2, 3, 3, 2.0), (3, 3, 2, 0.6), (4, 2, 4, 1.5)])
)
def test_every_data_set_lies_below_the_mean_over_its_fillers(
    n: int, b: int, m: int, s: float
) -> None:
    draws = stream(65, experiment="game", cell={"n": n, "b": b}, role="data", replicate=0)
    cells, v = GaussianCells(copies(n, b, m), s), np.array([1.0, 0.0])
    for _ in range(3):
        angles = draws.uniform(-math.pi, math.pi, n - 1)
        others = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        p, q = (masses(n, b, m, np.vstack([one, others]), s) for one in (v, -v))
        # the first member that is replaced is any of the others, all equally likely
        bound = np.mean([cells.profiles(cell_of(v, -v, g), 1e-15)[0](ORDERS) for g in others], 0)
        back = np.mean([cells.profiles(cell_of(v, -v, g), 1e-15)[1](ORDERS) for g in others], 0)
        assert (divergence(p, q) <= bound + 1e-9).all()
        assert (divergence(q, p) <= back + 1e-9).all()


def attained(n: int, b: int, m: int, s: float) -> np.ndarray:
    """Return H_a in both directions where all others are at -C, the record at +C or -C."""
    counts, weights = sample_counts(n, stages(f"wr:{b},wr:{m}"))
    law = np.bincount(counts[:, 0], weights)
    c = np.linspace(-8 * s, 2 * m + 8 * s, 8001)
    drawn = sum(p * ndtr((2 * count - c) / s) for count, p in enumerate(law))
    a, base = np.exp(ORDERS)[:, None], ndtr(-c / s)
    return np.array([(drawn - a * base).max(axis=1), ((1 - base) - a * (1 - drawn)).max(axis=1)])


SIZES = (8, 3, 2)


def excess(made: Copies) -> float:
    """Return how far the attack is above the bound of the cell of its triple."""
    bounds = [
        [profile(ORDERS) for profile in GaussianCells(made, 1.0).profiles(cell, 1e-15)]
        for cell in GaussianCells.extremes
    ]
    found = attained(*SIZES, 1.0)
    # the filler at v' has the record far away on the first side, the one at v on the second
    return min(float((found - np.array(one)).max()) for one in bounds)


def test_the_attack_is_close() -> None:
    cells = GaussianCells(copies(1000, 100, 50), 4.0)
    p, q = np.array(cells.copies.counts), cells.copies.passed
    counts = np.flatnonzero(p[1:]) + 1
    c, a = np.linspace(-30, 130, 16001), np.exp(ORDERS)[:, None]
    drawn = q * ndtr((2 * counts[:, None] - c) / 4).T @ p[counts]
    missed = 1 - q * (1 - p[0])
    truth = (drawn - (a - missed) * ndtr(-c / 4)).max(axis=1)
    bounds = [side(ORDERS) for cell in cells.extremes for side in cells.profiles(cell, 1e-15)]
    above = [bound for bound in bounds if (truth <= bound + 1e-12).all()]
    assert (np.min(above, axis=0)[:5] <= truth[:5] * 1.1 + 1e-9).all()


class TestPlantedFaults:
    made = copies(*SIZES)

    def test_none(self) -> None:
        assert excess(self.made) <= 1e-12

    @pytest.mark.parametrize(
        "fault",
        [
            lambda made: replace(made, branches=made.branches[:1]),
            lambda made: replace(made, passed=made.passed * 0.9),
            lambda made: replace(made, counts=made.counts[:2]),
        ],
    )
    def test_less_of_the_record(self, fault: Callable[[Copies], Copies]) -> None:
        wrong = fault(self.made)
        if len(wrong.branches) < len(self.made.branches):
            wrong = replace(wrong, counts=wrong.branches[0].counts)
        assert excess(wrong) > 1e-6

    def test_charges_that_the_branches_cannot_pay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unpaid(self: Copies, x: np.ndarray, likely: Any, charges: np.ndarray) -> np.ndarray:
            return charges + 0.2

        monkeypatch.setattr(Copies, "paid", unpaid)
        assert excess(self.made) > 1e-6

    def test_a_base_that_weighs_more(self) -> None:
        wrong = replace(self.made, points=tuple(1.3 * x for x in self.made.points))
        assert excess(wrong) > 1e-6


@pytest.mark.parametrize(("b", "m"), [(3, 3), (4, 2)])
def test_the_weight_of_the_base_of_two_slots(b: int, m: int) -> None:
    """Weights are compared with every allocation of the draws: where the record holds j slots, the
    others' draws are those from all slots, where j are empty, and the mean of falling functions is
    no smaller."""
    made = copies(5, b, m)
    for j, branch in enumerate(made.branches, start=1):
        assert isinstance(branch, Branch)
        found = np.array(np.meshgrid(*[np.arange(b - j)] * m)).reshape(m, -1).T
        if j == b:
            weight = np.ones(1)
        else:
            empty = np.array([b - len(set(row)) for row in found.tolist()])
            choose = np.array([math.comb(b, j) / math.comb(int(k), j) for k in empty])
            weight = (1 - j / b) ** m * choose
        for strike in np.linspace(0.1, 3.0, 15):
            value = float(np.dot(np.maximum(strike - np.array(made.points), 0.0), branch.weights))
            assert value >= np.maximum(strike - weight, 0.0).mean() - 1e-15

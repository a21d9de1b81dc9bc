"""The largest weights: four solvers, their feasible side, and what Algorithm 1 returns as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsub.errors import ArgumentError, NumericalError
from dpsub.importance import weights
from dpsub.importance import weights as printed
from dpsub.importance.losses import PersonalisedProfile, Power

TARGETS = [1e-3, 0.1, 0.5, 3.0, 30.0, 300.0, 600.0, 1000.0]
RATIOS = np.concatenate([np.geomspace(1e-4, 0.99, 300), 1 - np.geomspace(1e-12, 1e-2, 50)])


@dataclass(frozen=True, eq=False)
class Stretched(PersonalisedProfile):
    """e^{eps(w)} = e^c + slope (w - 1) + curvature (w - 1)^2 for n records alike, eps(1) = c."""

    c: float
    rise: float
    curvature: float
    n: int = 1

    def _exponential(self, w: np.ndarray) -> np.ndarray:
        return math.exp(self.c) + self.rise * (w - 1) + self.curvature * (w - 1) ** 2

    def loss(self, w: np.ndarray) -> np.ndarray:
        return np.log(self._exponential(w))

    def slope(self, w: np.ndarray) -> np.ndarray:
        return (self.rise + 2 * self.curvature * (w - 1)) / self._exponential(w)


@dataclass(frozen=True, eq=False)
class Wave(PersonalisedProfile):
    """A loss whose feasible weights have gaps."""

    n: int = 1

    def loss(self, w: np.ndarray) -> np.ndarray:
        return 0.3 + 0.25 * np.sin(3 * w) + 0.05 * w

    def slope(self, w: np.ndarray) -> np.ndarray:
        return 0.75 * np.cos(3 * w) + 0.05


@pytest.mark.parametrize("target", TARGETS)
def test_solvers_agree_and_stay_feasible(target: float) -> None:
    a = target * RATIOS
    newton, bisected = weights.optimal_weights(a, target), weights.bisected_weights(Power(a), target)
    roads = [newton, bisected]
    if target <= 700:
        roads.append(weights.lambert_weights(a, target))
    for road in roads:
        assert (Power(a).sampled(1 / road) <= target * (1 + 1e-12)).all()
        assert road[:300] == pytest.approx(bisected[:300], rel=1e-8)
        assert (road >= 1).all()
    # one step further is infeasible: they are the largest ones
    assert (weights.excess(Power(a), newton * (1 + 1e-9), target) > 0)[:300].all()


@pytest.mark.parametrize("target", [0.5, 3.0])
def test_the_proved_bracket_holds_the_root(target: float) -> None:
    a = target * np.geomspace(1e-3, 0.999, 200)
    mu = a * a * np.exp(a)
    free = weights.bisected_weights(Power(a), target)
    assert weights.bisected_weights(Power(a), target, convexity=mu) == pytest.approx(free, rel=1e-12)
    assert (weights.bracket_end(Power(a), target, mu) >= free).all()


def test_a_generic_optimiser_of_the_joint_problem_finds_the_same_size() -> None:
    target, a = 1.0, np.array([0.05, 0.2, 0.4, 0.7, 0.9])
    best = weights.optimal_weights(a, target)

    def room(w: np.ndarray) -> np.ndarray:
        return target - Power(a).sampled(np.minimum(1 / w, 1.0))

    found = minimize(
        lambda w: float(np.sum(1 / w)), np.full(5, 1.01), method="SLSQP", bounds=[(1.0, 1e3)] * 5,
        constraints=[{"type": "ineq", "fun": room}], options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.fun == pytest.approx(weights.expected_size(best), abs=1e-6)


def test_weights_with_gaps_are_found_by_the_scan() -> None:
    profile, target = Wave(), 0.42
    w = weights.scanned_weights(profile, target, largest=100.0)
    grid = np.linspace(1, 100, 400_001)
    feasible = np.array(weights.excess(Wave(grid.size), grid, target) <= 0)
    assert w[0] == pytest.approx(grid[feasible].max(), abs=1e-3)
    assert not feasible[grid < w[0]].all()
    assert weights.excess(profile, w, target)[0] <= 0
    # bisection, which needs convexity, may end at an earlier gap: it is feasible all the same
    assert weights.excess(profile, weights.bisected_weights(profile, target), target)[0] <= 0


def test_the_printed_convexity_excludes_most_roots() -> None:
    """E1: T^2 a^2 e^{Ta} is printed without the square of a T; at c = 0.05, T = 10 it is 8.24 instead of 0.41."""
    c, rounds = 0.05, 10
    assert rounds**2 * c * math.exp(c * rounds) == pytest.approx(8.24, abs=0.005)
    assert rounds**2 * c**2 * math.exp(c * rounds) == pytest.approx(0.41, abs=0.005)
    lost = {"printed": 0, "right": 0, "repaired": 0}
    shares = np.linspace(0.05, 0.999, 100)
    for target in (0.1, 1.0, 3.0):
        a = target * shares
        profile, right = Power(a), a * a * np.exp(a)
        roots = weights.bisected_weights(profile, target)
        ends = {
            "printed": weights.bracket_end(profile, target, rounds * a * np.exp(a), offset=1.0),
            "right": weights.bracket_end(profile, target, right, offset=1.0),
            "repaired": weights.bracket_end(profile, target, right),
        }
        for name, end in ends.items():
            lost[name] += int(np.count_nonzero(end < roots))
    # E2: with the right convexity the printed offset 1 still loses roots, that of the proof none
    assert lost["printed"] > lost["right"] > 0
    assert lost["repaired"] == 0


def test_the_printed_offset_may_end_below_1() -> None:
    """E2: at eps(1) = eps* with a steep loss the printed bracket is [1, 0]; that of the proof is [1, 1]."""
    profile = Stretched(1.0, 2.0, 0.1)
    assert weights.bracket_end(profile, 1.0, [0.2], offset=1.0)[0] == pytest.approx(0, abs=1e-12)
    assert weights.bracket_end(profile, 1.0, [0.2])[0] == pytest.approx(1, abs=1e-12)
    assert weights.bisected_weights(profile, 1.0, convexity=[0.2])[0] == pytest.approx(1, abs=1e-9)


def test_the_printed_test_of_the_bracket_stays_at_weight_1() -> None:
    """E3: e^eps = e + (w - 1)/2 + (w - 1)^2 / 2 at eps* = 1: printed 1, optimum 3.437."""
    profile = Stretched(1.0, 0.5, 0.5)
    found, _ = printed.printed_weights(profile, 1.0, [1.0])
    best = weights.bisected_weights(profile, 1.0, convexity=[1.0])
    assert found[0] == 1.0
    assert best[0] == pytest.approx(3.437, abs=5e-4)
    assert profile.slope(np.ones(1))[0] > 0 and profile.sampling_helps()[0]


def test_the_printed_number_of_steps_is_too_small() -> None:
    """E4: with the ceiling inside of the logarithm, and offset 1, Proposition 12 falls short of what is needed."""
    profile, a = Power(np.array([0.5])), np.array([0.5])
    mu = a * a * np.exp(a)
    printed_count = printed.printed_iterations(profile, 3.0, mu, 1e-2)[0]
    needed = printed.needed_iterations(profile, 3.0, mu, 1e-2)[0]
    end = weights.bracket_end(profile, 3.0, mu)[0]
    assert printed_count != int(printed_count) and printed_count < needed
    assert (end - 1) / 2 ** int(printed_count) > 2e-2
    assert (end - 1) / 2**needed <= 2e-2 < (end - 1) / 2 ** (needed - 1)


def test_a_loss_that_jumps_has_no_largest_weight() -> None:
    """E10: eps = 0.5 for w < 2 and 10 + w after has no maximiser; the solver stays below the jump."""

    @dataclass(frozen=True, eq=False)
    class Jump(PersonalisedProfile):
        n: int = 1

        def loss(self, w: np.ndarray) -> np.ndarray:
            return np.where(w < 2, 0.5, 10 + w)

        def slope(self, w: np.ndarray) -> np.ndarray:
            return np.where(w < 2, 0.0, 1.0)

    w = weights.bisected_weights(Jump(), 0.6)
    assert w[0] < 2
    assert w[0] == pytest.approx(2, abs=1e-12)


def test_released_weights_are_middles_that_may_exceed_the_target() -> None:
    """R4: after eleven halvings the middle is off by up to 2^-12 of the end: up to 0.25 nats at eps* = 1000."""
    a = 1000 * np.geomspace(1e-3, 0.999, 4000)
    psi = Power(a).sampled(1 / printed.released_weights(Power(a), 1000.0))
    assert 0.15 < psi.max() - 1000 < 0.25
    assert Power(a).sampled(1 / weights.optimal_weights(a, 1000.0)).max() <= 1000 * (1 + 1e-12)


def test_the_limit_of_a_free_target_is_weight_1() -> None:
    assert weights.optimal_weights([2.0], 2.0)[0] == 1.0
    assert weights.optimal_weights(np.array([]), 2.0).size == 0


@pytest.mark.parametrize(
    ("slopes", "target", "message"),
    [
        ([0.5], 0.0, "target epsilon must be above 0"),
        ([0.5], math.nan, "target epsilon must be finite"),
        ([0.0], 1.0, "slopes must be above 0.*cap it"),
        ([2.0], 1.0, "at least the largest unsampled loss = 2"),
        ([math.inf], 1.0, "slopes must be finite"),
    ],
)
def test_bad_targets_are_refused_in_a_sentence(slopes: list[float], target: float, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        weights.optimal_weights(slopes, target)


def test_profiles_without_a_largest_weight_are_refused() -> None:
    with pytest.raises(NumericalError, match="must be infeasible from some weight on"):
        weights.bisected_weights(Power(np.array([0.1]), 0.0), 0.5)
    with pytest.raises(ArgumentError, match="at least the largest unsampled loss"):
        weights.scanned_weights(Power(np.array([1.0])), 0.5)
    with pytest.raises(ArgumentError, match="convexity must be above 0"):
        weights.bisected_weights(Power(np.array([0.1])), 0.5, convexity=[0.0])

"""Theorem 76, which prices each weight of a shuffled epoch's steps: against all orders by
quadrature, against sums over all outcomes, and the use of each of its parts."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

from dpsub.accounting.schemes.shuffling.differences import FOR_MOMENTS, CutDifference, Differences
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep, OrderBound
from dpsub.accounting.schemes.shuffling.weights import Weights, _Prices
from dpsub.streams import stream
from tests.few import few
from tests.unit.test_hidden_step import FILLERS, ORDERS, QUADRATURE, orders_of_three

NOTHING = OrderBound(0.0, 1.0, 0.0, [])
"""What is known before the first order."""
KINDS = [(2.0, 2.0, 2.0), (1.0, 2.0, 1.0), (1.0, 1.0, 2.0)]
"""d, f and g of Lemma 60, times s: `substitute`, and both orders under `zero_out`."""


def rng_of(replicate: int) -> np.random.Generator:
    return stream(7, experiment="weights", cell={}, role="data", replicate=replicate)


def bound_of(steps: int, s: float, distance: float, a: float) -> float:
    return HiddenStep(steps, s, distance)._weighed_at(math.log(a), NOTHING).value


# --- Explicit attacks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("s", "other"), few([(0.7, 0.0), (0.7, -1.0), (4.0, 0.0), (4.0, -1.0)], more=1)
)
def test_three_steps_of_one_record_each(s: float, other: float) -> None:
    """No fillers, fixed or chosen from the past, exceed the bound."""
    bounds = [bound_of(3, s, 1.0 - other, a) for a in ORDERS]
    for fillers in itertools.combinations_with_replacement(FILLERS, 2):
        for flips in (False, True):
            d, d_other = (orders_of_three(v, fillers, s, flips) for v in (1.0, other))
            for a, bound in zip(ORDERS, bounds, strict=True):
                gaps = (d - a * d_other, d_other - a * d)
                found = max(float(np.maximum(gap, 0).sum()) for gap in gaps)
                assert found <= bound * (1 + QUADRATURE) + 1e-6


def orders_of_four(first: float, fillers: tuple[float, ...], s: float) -> np.ndarray:
    """Return the density of four sums in a uniform order of four records, on a grid; the signs of
    the fillers in later steps are that of the first sum."""
    t = np.linspace(-1 - 4 * s, 1 + 4 * s, 16)
    held = np.array([*itertools.permutations((first, *fillers))])
    is_record = np.array([*itertools.permutations((True, False, False, False))])
    total = np.zeros((t.size,) * 4)
    for row, own in zip(held, is_record, strict=True):
        for place, y in enumerate(t):
            signs = np.where(own, 1.0, math.copysign(1.0, y))
            second, third, fourth = (norm.pdf(t, row[i] * signs[i], s) for i in (1, 2, 3))
            later = second[:, None, None] * third[None, :, None] * fourth[None, None, :]
            total[place] += norm.pdf(y, row[0], s) * later
    return total / len(held) * (t[1] - t[0]) ** 4


def test_four_steps_of_one_record_each() -> None:
    s = 2.0
    for fillers in ((1.0, -1.0, -1.0), (1.0, 1.0, 1.0)):
        d, d_other = (orders_of_four(v, fillers, s) for v in (1.0, -1.0))
        for a in (1.0, 1.5, 4.0):
            gaps = (d - a * d_other, d_other - a * d)
            found = max(float(np.maximum(gap, 0).sum()) for gap in gaps)
            assert found <= bound_of(4, s, 2.0, a) * 1.01


def one_filler_apart(steps: int, s: float, a: float) -> float:
    """Return at most H_a where one filler is at 1, all others are at -1, and the record is 1 or -1.

    After the first output y one step, that of the filler at 1, has a weight of its own. The others'
    differences are replaced by their mean: of a positive part that makes less.
    """
    y = np.linspace(-1 - 9 * s, 1 + 9 * s, 801)
    high, low = norm.pdf(y, 1, s), norm.pdf(y, -1, s)
    mean = (high + (steps - 2) * low) / (steps - 1)
    own = high / mean / steps
    z = np.linspace(-1 - 9 * s, 1 + 9 * s, 801)
    ratio = norm.pdf(z, -1, s) / norm.pdf(z, 1, s)
    found = []
    # of either order of the data sets: the difference in that filler's step, and in the first one
    for difference, first in ((1 - a * ratio, high - a * low), (ratio - a, low - a * high)):
        rest = (1 - a) * (1 - 1 / steps - own) + first / mean / steps
        part = np.maximum(own[:, None] * difference + rest[:, None], 0.0)
        mass = mean[:, None] * norm.pdf(z, 1, s)
        found.append(float((part * mass).sum() * (y[1] - y[0]) * (z[1] - z[0])))
    return max(found)


def test_what_the_first_step_tells_must_be_paid_for() -> None:
    """The planted fault takes the excess of weights over all levels to be 0: a filler that is apart
    from all others exceeds that bound."""
    steps, s, a = 300, 1.2, math.exp(5.0)
    hidden = HiddenStep(steps, s, 2.0)
    law = hidden._differences(a, FOR_MOMENTS)[0].cut(1e-12)
    found = one_filler_apart(steps, s, a)
    weights = hidden._weights
    assert found <= weights.bound(law, None).value
    assert found > 5 * Weights(steps, weights.levels, 0 * weights.leaks).bound(law, None).value


# --- Sums over all outcomes -----------------------------------------------------------------------


class Atoms(NamedTuple):
    """A law on some values, 0 among them."""

    values: np.ndarray
    masses: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Values from 0 on."""
        return self.values[self.values >= 0]

    def beyond(self, b: float) -> float:
        return float(self.masses @ np.maximum(self.values - b, 0.0))

    def log_moment(self, b: float, theta: float) -> float:
        return math.log(self.masses @ np.exp(theta * np.minimum(self.values, b)))

    @property
    def cut(self) -> CutDifference:
        indices = np.flatnonzero(self.values >= 0)
        rest = np.array([self.masses[i:].sum() for i in indices])
        beyond = np.array([self.beyond(b) for b in self.values[indices]])
        return CutDifference(
            self.values, self.masses, indices, rest, beyond, np.zeros(self.values.size)
        )


class Epochs(NamedTuple):
    """What may come out of the first step: the chances, the difference there, and the weights of
    the other steps, shape (outcomes, T - 1)."""

    chances: np.ndarray
    first: np.ndarray
    weights: np.ndarray

    @property
    def steps(self) -> int:
        return self.weights.shape[1] + 1

    def leaks(self, levels: np.ndarray) -> np.ndarray:
        """Mean excess over levels, shape (l,)."""
        over = (self.steps - 1) * self.weights[:, :, None] - levels
        return np.einsum("y,yjl->l", self.chances, np.maximum(over, 0.0)) / (self.steps - 1)

    def mean_above_zero(self, law: Atoms) -> float:
        """E (D_1/T + sum of weights times differences)_+ over all outcomes."""
        some = np.flatnonzero(law.masses)
        shares = np.array([*itertools.product(some, repeat=self.steps - 1)])
        chances = law.masses[shares].prod(axis=1)
        sums = (1 - 1 / self.steps) * self.weights @ law.values[shares].T
        above = np.maximum(sums + self.first[:, None] / self.steps, 0.0)
        return float(self.chances @ above @ chances)


def epochs_of(law: Atoms, steps: int, spread: float) -> Epochs:
    """Return weights that are far from equal, and heavier where the first difference is large."""
    rng, each = rng_of(0), 12
    first = np.repeat(law.values, each)
    concentration = spread / (1 + np.maximum(first, 0.0))
    weights = np.array([rng.dirichlet(np.full(steps - 1, alpha)) for alpha in concentration])
    return Epochs(np.repeat(law.masses / each, each), first, weights)


LAW = Atoms(
    np.array([-2.0, -0.8, -0.3, 0.0, 0.5, 1.5, 4.0]),
    np.array([0.2, 0.25, 0.2, 0.15, 0.12, 0.07, 0.01]),
)


def priced(
    law: Atoms,
    steps: int,
    levels: np.ndarray,
    leaks: np.ndarray,
    tilt: float,
    first: float,
    cuts: list[float],
) -> float:
    """Return the bound of Theorem 76, as it is stated, for levels c_0, ..., c_r, cuts b_1, ..., b_r
    and the cut `first` of the first step."""

    def price(c: float, b: float) -> float:
        return math.exp(steps / c * law.log_moment(b, tilt * c / steps)) / (math.e * tilt)

    least = price(levels[0], cuts[0])
    common = math.log(least * math.e * tilt)
    gamma = math.exp(max(tilt * first - common, 0.0) / steps)
    chi = math.exp(law.log_moment(first, tilt / steps) - common / steps)
    chi = max(1.0, chi) + tilt / steps * gamma * law.beyond(first)

    def paid(c: float, b: float) -> float:
        more = max(law.beyond(b) - law.beyond(cuts[0]), 0.0)
        return c * (more + gamma * max(price(c, b) - least, 0.0))

    total = law.beyond(cuts[0]) + chi * least + law.beyond(first) / steps
    before, slope = 0.0, 0.0
    for i in range(1, len(levels)):
        most = max(paid(levels[i], b) for b in cuts[i - 1 : i + 1])
        steeper = max(slope, (most - before) / (levels[i] - levels[i - 1]))
        total += (steeper - slope) * leaks[i - 1]
        before, slope = most, steeper
    return total


@pytest.mark.parametrize("spread", few([0.3, 3.0, 30.0], most=3))
def test_weights_that_depend_on_the_first_difference(spread: float) -> None:
    """No choice of a tilt, levels and cuts gives less than the mean over all outcomes, and the
    least one that is found is what the statement says."""
    epochs = epochs_of(LAW, 4, spread)
    found, rng = epochs.mean_above_zero(LAW), rng_of(1)
    for _ in range(300):
        levels = np.append(1 + np.sort(3 * rng.random(4)), 4.0)
        cuts = rng.choice(LAW.values, 5).tolist()
        tilt = math.exp(rng.uniform(-1, 3))
        leaks = epochs.leaks(levels)
        assert found <= priced(LAW, 4, levels, leaks, tilt, cuts.pop(), cuts)
    levels = Weights.levels_of(4)
    leaks = epochs.leaks(levels)
    best = Weights(4, levels, leaks).bound(LAW.cut, None)
    cuts = LAW.places[[*best.cuts]].tolist()
    first = float(LAW.places[best.first_cut])
    stated = priced(LAW, 4, levels[best.level :], leaks[best.level :], best.tilt, first, cuts)
    assert found <= best.value == pytest.approx(stated, rel=1e-6)


class OfEqualWeights(Weights):
    """The planted fault: heavy weights pay the moments of light ones."""

    def _prices(self, law: CutDifference, tilt: float) -> _Prices:
        prices = super()._prices(law, tilt)
        light = [np.repeat(each[:, :1], self.levels.size, axis=1) for each in prices[2:]]
        return _Prices(tilt, prices.log_first, *light)


def test_heavy_weights_that_pay_nothing_are_caught() -> None:
    """One step has all of the weight in one of a hundred outcomes, and is above 0 as seldom; of
    seven equal weights four would have to be."""
    # no mass is between 0 and 1, but places to cut at
    values, masses = np.array([-1.0, 0.0, 0.2, 0.4, 0.6, 1.0]), np.zeros(6)
    masses[[0, -1]] = 0.99, 0.01
    law = Atoms(values, masses)
    heavy = np.where(np.arange(7) == 0, 1.0, 0.0)
    weights = np.array([heavy if y == 0 else np.full(7, 1 / 7) for y in range(100)])
    epochs = Epochs(np.full(100, 0.01), np.full(100, -0.98), weights)
    found, levels = epochs.mean_above_zero(law), Weights.levels_of(8)
    leaks = epochs.leaks(levels)
    assert found <= Weights(8, levels, leaks).bound(law.cut, None).value
    assert found > 1.5 * Weights(8, levels, 0 * leaks).bound(law.cut, None).value
    assert found > 1.5 * OfEqualWeights(8, levels, leaks).bound(law.cut, None).value


# --- The law of one difference, with the largest values cut ---------------------------------------


class OnALine(NamedTuple):
    """The law of Lemma 60 on the points of a fine grid: values above 0 and below, each with its
    density times the distance of points, and the mass of 0."""

    above: np.ndarray
    above_mass: np.ndarray
    below: np.ndarray
    below_mass: np.ndarray
    none: float

    @classmethod
    def of(cls, a: float, d: float, f: float, g: float) -> OnALine:
        parts, roots = [], []
        for one, other, far in ((1.0, a, f), (a, 1.0, g)):
            root = math.log(other / one) / d + far - d / 2
            t, width = np.linspace(root, root + 24, 60_001, retstep=True)
            value = one * np.exp(far * t - far * far / 2)
            value -= other * np.exp((far - d) * t - (far - d) ** 2 / 2)
            parts += [value, norm.pdf(t) * width]
            roots.append(root)
        return cls(*parts, none=float(norm.cdf(roots[1]) - norm.cdf(-roots[0])))

    def mean(self, function: Any) -> float:
        """E f(Z)."""
        above, below = function(self.above), function(-self.below)
        total = self.none * function(np.zeros(1))[0]
        for values, mass in ((above, self.above_mass), (below, self.below_mass)):
            total += values @ mass - (values[0] * mass[0] + values[-1] * mass[-1]) / 2
        return float(total)


@pytest.mark.parametrize(("d", "f", "g"), few(KINDS, most=3))
@pytest.mark.parametrize(("s", "log_order"), [(1.0, 0.0), (4.0, 3.8)])
def test_moments_of_a_cut_difference(
    d: float, f: float, g: float, s: float, log_order: float
) -> None:
    """They are above those of Lemma 60, and not far: also where Z is hardly ever above 0, or 0."""
    a, d, f, g = math.exp(log_order), d / s, f / s, g / s
    line = OnALine.of(a, d, f, g)
    law = Differences(a, d, f, g, FOR_MOMENTS).cut(1e-30)
    assert law.cut_places[0] == 0 and np.all(law.cuts >= 0)
    tilts = np.array([0.01, 0.3, 2.0, 8.0])
    log_moments = law.log_mgf(tilts)
    for row in range(0, law.cuts.size, 6):
        b = law.cuts[row]
        beyond = line.mean(lambda z, b=b: np.maximum(z - b, 0.0))
        assert beyond * (1 - 1e-6) <= law.beyond[row] <= beyond * (1 + 1e-4) + 1e-25
        for tilt, found in zip(tilts, log_moments[row], strict=True):
            if tilt * b < 300:
                exact = line.mean(lambda z, tilt=tilt, b=b: np.exp(tilt * np.minimum(z, b)))
                assert -1e-6 <= found - math.log(exact) <= 0.05 + 0.01 * abs(found)


@pytest.mark.parametrize("distance", few([2.0, 1.0]))
def test_more_steps_or_more_noise_never_raise_the_bound(distance: float) -> None:
    many = bound_of(100, 2.0, distance, 1.5)
    assert many < bound_of(10, 2.0, distance, 1.5)
    assert many < bound_of(100, 1.5, distance, 1.5)

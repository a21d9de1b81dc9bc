"""Attacks on the steps of an epoch with all records of a group, at the same place (docs/proofs/
groups.md, "Attacks with all records").

A step that holds i of them has the mean i x on the one data set and i y on the other. Known
laws are those of a sum of functions of the steps, of the largest step, and of the sum of all steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import MassBounds
from dpsub.accounting.engine.pairs import MIN_SCALE, PoissonPair, WorPair
from dpsub.accounting.engine.pld import Profile, RememberedProfile
from dpsub.accounting.engine.privacy_events import Event, PairEvent, StatisticEvent
from dpsub.accounting.engine.statistic import Statistic
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.accounting.schemes.allocation.one_step import SumAttack, SumLaws, laws_of_sums
from dpsub.accounting.schemes.shuffling.largest_step import masses_of_largest
from dpsub.noise import GaussianProfile

_TILTS = (1 / 4, 1.0, 1 / 16)
"""Of the sums that are tried: large losses are told by smaller ones."""
_TILTS_OF_OPPOSITES = ((1 / 2, 2.0), (1.0, 1.0), (1 / 4, 1.0), (1 / 4, 4.0))
"""Of both terms, where the records are at C against -C: large losses are told by steps with large
ratios on the one data set and small ones on the other."""


def attacks_on_steps(
    held: Occupancy, s: float, x: float, y: float
) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """Return events of one epoch, and the statistic of each."""
    # what costs least comes first
    largest = StatisticEvent(LargestOfGroup(held, x, y, s))
    tilts = _TILTS_OF_OPPOSITES if y < 0 else tuple((tilt, tilt) for tilt in _TILTS)
    sums = tuple(GroupSum(held, s, tilt, x, y, tilt_of_y) for tilt, tilt_of_y in tilts)
    return (largest, *sums), ("largest step", *["step functions"] * len(sums))


def revealed_profiles(held: Occupancy, distance: float) -> tuple[Profile, Profile]:
    """Return the profile of Theorem 77, for both directions: the mean over rows of that of
    Gaussians as far apart as the steps of a row are together, `distance` being that of one record's
    step, over the noise. The rows that are left out are charged as a sure loss."""

    def profile(log_order: np.ndarray) -> np.ndarray:
        total = np.full(np.shape(log_order), held.rest)
        for row, share in zip(held.rows, held.most, strict=True):
            square = sum(count * i**2 for i, count in enumerate(row))
            apart = distance * math.sqrt(square)
            total += share * GaussianProfile(apart).delta(log_order) if apart else 0.0
        return np.asarray(np.minimum(total * (1 + 1e-9), 1.0))

    remembered = RememberedProfile(profile)
    return remembered, remembered


def sum_of_steps(steps: int, moved: int, s: float, y: float) -> PairEvent:
    """Return the event of the sum of all steps, which `moved` occurrences of records at 1 move, and
    as many of those at y = 0 or -1."""
    s_of_one = s * math.sqrt(steps) / moved
    if s_of_one < MIN_SCALE:
        # a smaller part of what is moved is told as well
        s_of_one = MIN_SCALE
    return PairEvent(WorPair(1.0, s_of_one) if y else PoissonPair(1.0, s_of_one))


@dataclass(frozen=True)
class GroupSum(SumAttack):
    """Lower bound of an epoch by a sum of functions of its steps: of the logarithm of the
    likelihood ratio of one step, if the numbers i of records in the steps were independent, with
    weights in proportion to the i-th power of `tilt` times their own, where y < 0 with `tilt_of_y`
    for its term, by default the same. Any tilt is valid; 0 <= y < x, or y = -x."""

    held: Occupancy
    deviation: float
    tilt: float
    x: float
    y: float
    tilt_of_y: float | None = None

    @property
    def laws(self) -> SumLaws:
        return _sum_laws(self)


@work.remembered(8)
def _sum_laws(event: GroupSum) -> SumLaws:
    held, sigma = event.held, 1 / event.deviation
    most, (x, y) = held.most_in_a_step, (event.x * sigma, event.y * sigma)
    z = np.linspace(-12.0 + min(y, 0.0) * most, 12.0 + x * most, 20_001)
    counts = np.arange(most + 1)
    with np.errstate(divide="ignore"):
        log_law = np.log(held.of_a_step)

    def log_ratio(mean: float, tilt: float) -> np.ndarray:
        log_weights = log_law + counts * math.log(tilt)
        exponents = np.multiply.outer(counts * mean, z) - 0.5 * (counts * mean)[:, None] ** 2
        return np.asarray(np.logaddexp.reduce(log_weights[:, None] + exponents, axis=0))

    value = log_ratio(x, event.tilt)
    if y < 0:
        value -= log_ratio(y, event.tilt if event.tilt_of_y is None else event.tilt_of_y)
    return laws_of_sums(z, value, held, (x, y))


@dataclass(frozen=True)
class LargestOfGroup(Statistic):
    """The largest step of an epoch."""

    held: Occupancy
    x: float
    y: float
    noise_multiplier: float

    def range(self, tail: float) -> tuple[float, float]:
        reach = (math.sqrt(-2 * math.log(tail)) + math.sqrt(2 * math.log(self.held.steps + 1))) * (
            self.noise_multiplier
        )
        most = self.held.most_in_a_step
        return most * min(self.y, 0.0) - reach, most * self.x + reach

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        return self._moved(edges, self.x), self._moved(edges, self.y)

    def _moved(self, edges: np.ndarray, mean: float) -> MassBounds:
        if not mean:
            return masses_of_largest(edges, [(0.0, self.held.steps)], self.noise_multiplier)
        least, most = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
        held = self.held
        for row, low, high in zip(held.rows, held.least, held.most, strict=True):
            outputs = [(i * mean, count) for i, count in enumerate(row) if count]
            at_least, at_most = masses_of_largest(edges, outputs, self.noise_multiplier)
            least += low * at_least
            most += high * at_most
        return least * (1 - 1e-12), np.minimum(most * (1 + 1e-12) + held.rest, 1.0)

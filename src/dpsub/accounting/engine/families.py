"""Many kinds of Poisson steps at once: steps of one rate whose noise differs a little, or of one
noise whose rate does, by two laws for all of them.

A cell holds kinds with parameters next to each other. The profile of a step is convex in its rate,
and in the total variation that its noise leaves: so each kind of a cell lies below the mixture of
those at the ends of the cell, and above a tangent (docs/proofs/zero_out.md, Theorem 73). Both are
mixtures of two laws, which one composition takes for every kind (`fourier.Blends`), and both are
off by the square of the width of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import erf, erfc, ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pairs import PoissonPair
from dpsub.accounting.engine.pld import PrivacyLossDistribution, law_of_chords
from dpsub.accounting.engine.privacy_events import Event, PairEvent, order_grid
from dpsub.accounting.engine.profiles import PROFILE_ERROR, gaussian_profile, log_lift

_EPS = float(np.finfo(float).eps)
# charged for profiles, tangents and what they are made of, relative, and for shares
_ERROR, _SHARE_ERROR = 10 * PROFILE_ERROR, 1e-12
# ln(1/a') beyond which 1 - (1 - a)/q keeps too few digits for that
_MOST_LIFTED = 7.0
# kinds of larger shifts have laws of their own: bounds over a cell of what chords take would be
# coarse
_LARGEST_SHIFT = 4.0


class Kind(NamedTuple):
    """A Poisson step of this rate, whose record moves the mean by `shift` deviations of the
    noise."""

    rate: float
    shift: float


def kind_of(event: Event) -> Kind | None:
    """The kind of an event; None if it has laws of its own."""
    if type(event) is not PairEvent or event.one_direction:
        return None
    pair = event.pair
    if not isinstance(pair, PoissonPair) or pair.missed is not None:
        return None
    kind = Kind(pair.rate, 1 / pair.deviation)
    return kind if kind.shift <= _LARGEST_SHIFT else None


def cells_of(events: Sequence[Event], width: float) -> list[list[int]]:
    """Places of events whose kinds lie in one cell, of this relative width."""
    kinds = {place: kind for place, kind in enumerate(map(kind_of, events)) if kind is not None}
    rates = {kind.rate for kind in kinds.values()}
    shifts = {kind.shift for kind in kinds.values()}
    # what takes fewer values is the same in a cell
    shared, varied = (0, 1) if len(rates) <= len(shifts) else (1, 0)
    cells: list[list[int]] = []
    first = None
    for place in sorted(kinds, key=lambda place: (kinds[place][shared], kinds[place][varied])):
        kind = kinds[place]
        fits = first is not None and kind[shared] == first[shared]
        if first is None or not fits or kind[varied] > first[varied] * (1 + width):
            first = kind
            cells.append([])
        cells[-1].append(place)
    return cells


class Chords(NamedTuple):
    """Values of a profile at orders e^{step index}, and of that of the other direction."""

    step: float
    indices: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    side: str

    def law(self, swapped: bool) -> PrivacyLossDistribution:
        """The law that the chords between them make, in one direction."""
        # profiles fall: a bound at a smaller order serves at a larger one
        first, second = (
            np.minimum(np.minimum.accumulate(values), 1.0)
            for values in (self.forward, self.backward)
        )
        if swapped:
            first, second = second, first
        return law_of_chords(self.step, self.indices, first, second, self.side)


@dataclass(frozen=True)
class KindCell:
    """Kinds between two ends; neither parameter falls from the lower end to the upper one."""

    low: Kind
    high: Kind

    @classmethod
    def around(cls, kinds: Sequence[Kind]) -> KindCell:
        return cls(min(kinds), max(kinds))

    def share(self, kind: Kind, side: str) -> float:
        """The weight of the upper end in the mixture of both ends, rounded to a side."""
        if self.low == self.high:
            return 0.0
        if self.low.rate == self.high.rate:
            share = _between(self.low.shift, kind.shift) / self._extent
        else:
            share = (kind.rate - self.low.rate) / self._extent
        # profiles grow with both parameters: a larger share of the upper end raises them
        share += _SHARE_ERROR if side == "upper" else -_SHARE_ERROR
        return min(max(share, 0.0), 1.0)

    @cached_property
    def _extent(self) -> float:
        if self.low.rate == self.high.rate:
            return _between(self.low.shift, self.high.shift)
        return self.high.rate - self.low.rate

    def chords(self, side: str, step: float, tail: float) -> list[Chords]:
        """Return the chords of the laws, one or two, whose mixtures bound each kind of the cell."""
        indices = order_grid(_profile(self.high, backwards=False), step, tail)
        work.spend(work.TERM * 8 * indices.size)
        x = indices * step
        if side == "lower":
            both = self._tangents(x, backwards=False), self._tangents(x, backwards=True)
            return [Chords(step, indices, *values, side) for values in zip(*both, strict=True)]
        ends = [self.low] if self.low == self.high else [self.low, self.high]
        return [
            Chords(
                step,
                indices,
                _profile(end, backwards=False)(x),
                _profile(end, backwards=True)(x),
                side,
            )
            for end in ends
        ]

    def _tangents(self, x: np.ndarray, backwards: bool) -> list[np.ndarray]:
        """Values at both ends of tangents at the centre, less what chords between orders e^x may
        exceed a profile by, shape (n,) each; one where there is one end."""
        centre = self._centre
        value, slope = _value_and_slope(centre, x, backwards, self.low.rate == self.high.rate)
        value = value * (1 - _ERROR) - self._above_chords(x, backwards)
        share = self.share(centre, "upper")
        low = value - share * self._extent * slope * (1 + _ERROR)
        high = value + (1 - share) * self._extent * slope * (1 - _ERROR)
        # from the last order on at which there is something left, both are 0
        last = int(np.argmax(np.append(low, -1.0) <= 0)) - 1
        inside = np.arange(x.size) < last
        ends = [low] if self.low == self.high else [low, high]
        return [np.where(inside, end, 0.0) for end in ends]

    def _above_chords(self, x: np.ndarray, backwards: bool) -> np.ndarray:
        """Bound of how much a chord of the profile of any kind of the cell, between neighbouring
        orders e^x, may exceed it next to each of them.

        That is at most width^2/8 times the largest second derivative, and at most width/4 times
        what the slope changes by.
        """
        low, high = self.low, self.high
        nearest, farthest = (
            _lifted(x[:-1], high.rate, backwards),
            _lifted(x[1:], low.rate, backwards),
        )
        sign = -1 if backwards else 1
        # ends of lifted orders over shifts in the cell
        ends = np.sort([sign * nearest / high.shift, sign * farthest / low.shift], axis=0)
        log_width = x[:-1] + np.log(np.expm1(np.diff(x)))
        # in the other direction slopes are masses under P, and second derivatives go with a^3
        lost = x[:-1] if backwards else 0.0
        # phi(e/d + 3 d/2) e^(d^2)/(q d) is the second derivative at the lifted order e^e
        least, most = ends[0] + 1.5 * low.shift, ends[1] + 1.5 * high.shift
        distance = np.maximum(np.maximum(least, -most), 0.0)
        bend = high.shift**2 - distance**2 / 2 - 3 * lost
        bend -= math.log(math.sqrt(2 * math.pi) * low.rate * low.shift)
        bent = np.exp(np.minimum(bend + 2 * log_width - math.log(8), 0.0))
        # e/d + d/2 is where the loss has this order
        mass = ndtr(ends[1] + high.shift / 2) - ndtr(ends[0] + low.shift / 2) + 4 * _EPS
        turned = np.exp(log_width - lost) * mass / 4
        above = np.minimum(bent, turned) * (1 + _ERROR)
        return np.maximum(np.append(0.0, above), np.append(above, 0.0))

    @cached_property
    def _centre(self) -> Kind:
        rate = math.sqrt(self.low.rate * self.high.rate)
        shift = math.sqrt(self.low.shift * self.high.shift)
        # a parameter that is the same in the cell is not rounded
        if self.low.rate == self.high.rate:
            return self.low._replace(shift=shift)
        return self.low._replace(rate=rate)


def _between(first: float, second: float) -> float:
    """Difference of the total variations of two shifts, to a few roundings of the smaller of
    themselves and of their distances from 1."""
    if second <= 1:
        return float(erf(second / math.sqrt(8)) - erf(first / math.sqrt(8)))
    return float(erfc(first / math.sqrt(8)) - erfc(second / math.sqrt(8)))


def _lifted(x: np.ndarray, rate: float, backwards: bool) -> np.ndarray:
    """|ln(1 + (a - 1)/q)| at a = e^x or, backwards, at e^-x, infinite where there is no such
    order."""
    if not backwards or rate == 1:
        return log_lift(x, rate)
    with np.errstate(divide="ignore"):
        return -np.log(np.maximum(1 + np.expm1(-x) / rate, 0.0))


def _profile(kind: Kind, backwards: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Upper bounds of the profile at orders e^x >= 1, in one direction."""

    def values(x: np.ndarray) -> np.ndarray:
        shift = np.array(kind.shift)
        if not backwards:
            return kind.rate * gaussian_profile(log_lift(x, kind.rate), shift) * (1 + _ERROR)
        # the profile falls with the lifted order, which is rounded down
        lifted = _lifted(x, kind.rate, backwards=True)
        if kind.rate < 1:
            lifted = -np.log(np.exp(-lifted) + 8 * _EPS)
        lifted = np.maximum(lifted, 0.0)
        bounds = kind.rate * np.exp(x - lifted) * gaussian_profile(lifted, shift)
        return np.minimum(bounds * (1 + _ERROR), 1.0)

    return values


def _value_and_slope(
    kind: Kind, x: np.ndarray, backwards: bool, of_noise: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The profile at orders e^x >= 1, in one direction, and its derivative by the total variation
    of the noise, or by the rate, up to `_ERROR`; both 0 where the order is too far away."""
    lifted = _lifted(x, kind.rate, backwards)
    # 1 - (1 - a)/q keeps few digits beyond
    near = lifted < (_MOST_LIFTED if backwards and kind.rate < 1 else math.inf)
    lifted = np.where(near, lifted, 0.0)
    q, d = kind.rate, kind.shift
    weight = np.where(near, q * np.exp(x - lifted) if backwards else q, 0.0)
    value = gaussian_profile(lifted, np.array(d))
    value = np.where(value > 1e-280, weight * value, 0.0)
    if of_noise:
        return value, weight * np.exp(lifted / 2 - lifted**2 / (2 * d**2))
    slope = ndtr(d / 2 - lifted / d) - ndtr(-d / 2 - lifted / d)
    return value, np.where(near, slope * (np.exp(x) if backwards else 1.0), 0.0)

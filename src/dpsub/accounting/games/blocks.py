"""The value of a game of many steps, several of them at a time: an upper bound of the value of
`Game` on the same laws that costs about as much as some hundred of its steps, whatever their
number.

Within a block of B steps the value is followed by one law K, that of a pair that is chosen often,
and an excess F, for the gain of the best choice over K in a step. Where the step of the game, T,
has T U <= K (U + F) and T (U + (B - 1) F) <= K (U + B F), T^B U is at most K^B (U + B F): means of
a largest value are no smaller than the largest mean, and T is convex
(docs/proofs/without_replacement.md, Theorem 75). Any K and F are valid; the amount by which the two
inequalities fail is measured and added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pld import SLOPE_UNIT, PrivacyLossDistribution, hull_slopes
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.game import (
    MISPLACED,
    GameValue,
    Kernels,
    check_points,
    largest_of_tilted,
    tilted_kernels,
)
from dpsub.errors import NumericalError

_EPS, _TINY = float(np.finfo(float).eps), 1e-300
# after r steps a block has at most r / 8 steps: the value changes as quickly as it is young
_PATIENCE = 8
# a block that adds more, as a share of A, is played again with half of its steps
_MOST_LOST = 5e-4
# one that adds no more than this is followed by one of twice its steps; also soon after one that
# was played again, if it adds no more than that
_LITTLE_LOST, _NEXT_TO_NOTHING = _MOST_LOST / 8, _MOST_LOST / 32
# scale, in roots of the steps of a block, below which an excess is smoothed, and at least so many
# steps: the laws of a step differ most where it is rough
_SMOOTH, _LEAST_SMOOTH = 4, 2
_EDGE = 0.4  # width of the addition to an excess about order 1, in roots of the steps of a block
# points over which an excess rises from 0, in roots of the steps of a block
_RISE = 3
# orders about 1 at which bounds are made convex, in roots of the steps of a block, and the least
# number of them
_ABOUT, _LEAST_ABOUT = 4, 3
# A beyond the window, over its largest value; probability that K^B moves further down than is
# followed, in each step, and that it comes round a transform, in each block
_FLOOR, _ASTRAY, _ROUND = 1e-8, 1e-14, 1e-9
# A is cut off far above the order that is asked for: log of the share of A that comes from there;
# how far beyond the cut nothing is left, over its width; slopes of Chernoff's bounds that are
# tried, times the standard deviation of all steps
_CUT_OFF, _CUT_END, _CUT_SLOPES = 16.0, 4.0, np.geomspace(0.5, 512.0, 41)
# steps whose standard deviation is the least width of a cut; its middle where that is beyond the
# floor, in widths
_LEAST_WIDTH, _BEYOND_FLOOR = 1, 2.5
# slopes of the bounds of A beyond the packet, per standard deviation of so many steps: rare losses
# far out ask for small ones
_SLOPES = np.geomspace(2.0**-8, 2.0**12, 41)
_PLACES = 50  # at which slopes are compared
# a new window is larger than what is needed by this factor, so that few are
_ROOM = 1.25
# where the excess lacks something: shares of the largest A above which a share of A is added
_LEVELS = np.array([1e-1, 1e-2, 1e-4])
# orders that are looked at for K, where A is at least this share of the largest one, and how much
# of a block's sum K may lack
_LOOKS, _LARGE, _LEAST = 12, 0.3, 0.5
# work that the last steps take with the widest law: on however few points, and over a transform of
# so many times the points of A
_ENDING_LEAST, _ENDING, _ENDING_POINTS = 2e6, 80, 3
# points that are transformed at a time
_TOGETHER = 2**17


@dataclass(frozen=True, eq=False)
class BlockedGame:
    """k steps, each with one of several dominating pairs, chosen from the past; arguments as of
    `Game`. Blocks have at most steps / `blocks` steps."""

    plds: Sequence[PrivacyLossDistribution]
    steps: int
    tilt: float
    blocks: int
    lost: float = 0.0
    swapped: Sequence[PrivacyLossDistribution] = ()
    end: float = math.inf
    """Losses above it count as infinite, in part."""
    order: float = math.inf
    """Logarithm of the order that A is asked for, roughly: far above it A is cut off."""
    widest: Sequence[PrivacyLossDistribution] = ()
    """A law that dominates all others, for each order of the data sets: where the budget ends, it
    stands for all of them in the steps that are left."""

    def played(self) -> GameValue:
        """The value of all steps; NumericalError if the grid is too long."""
        played = self._followed()
        if played.done < self.steps:
            return self._ended(played)
        return self._value(played)

    def _value(self, played: _Played) -> GameValue:
        log_scale = self.steps * self.kernels.kappa
        return self._unscaled(played, log_scale, self.steps * self.kernels.infinity)

    def _unscaled(
        self, played: _Played, log_scale: float, infinity: float, by_widest: int = 0
    ) -> GameValue:
        x = np.arange(played.value.shape[1]) * self.kernels.step
        # what A may be beyond the windows passes on undiminished ("Floor")
        larger = played.value.max(axis=0) + played.floor
        if played.beyond:
            larger += self._cut.passed(x, played.beyond)
        return GameValue(x, larger, self.tilt, log_scale, infinity, by_widest)

    def _ended(self, played: _Played) -> GameValue:
        """The value of all steps, the last ones played with the widest law."""
        kernels, orders = self.kernels, played.value.shape[0]
        left = self.steps - played.done
        law, swapped = self.widest[:1], self.widest[1:]
        last = BlockedGame(law, left, self.tilt, 1, self.lost, swapped, self.end, self.order)
        scale = played.done * kernels.kappa
        # with the widest law in all steps, at the scale of these
        size = last._size(self.steps, played.done * (last.kernels.kappa - kernels.kappa))
        size = max(min(size, self._points(self.steps)), played.value.shape[1])
        window = _Window.of(last.kernels, orders, size, left, self.tilt)
        block = self._block(window, left, played)
        after = block.after_all(None) if left > 1 else block.after_one()
        scale += left * last.kernels.kappa
        rescaled = math.exp(left * (kernels.kappa - last.kernels.kappa)) * (1 + 1e-9)
        floor, beyond = played.floor * max(1.0, rescaled), played.beyond
        if self.order < math.inf:
            beyond = self._cut.after(beyond, left) * rescaled
            beyond += self._beyond_window(window.size, self.steps, left) * max(1.0, rescaled)
        infinity = played.done * kernels.infinity + left * last.kernels.infinity
        return self._unscaled(
            _Played(after.value, self.steps, floor, beyond), scale, infinity, left
        )

    def roughly(self, count: int) -> Rough:
        """Estimate the value of all steps, and A at about so many moments: no bound, as a choice is
        kept for all steps of a block."""
        orders, for_each = 2 if self.swapped else 1, 0.0
        value, window = np.zeros((orders, 1)), None
        kept: list[Snapshot] = []
        after = done = blocks = 0
        while done < self.steps:
            blocks += 1
            length = self._length(done, self.steps)
            size = self._points(done + length)
            if window is None or not window.holds(size, length):
                window = _Window.of(self.kernels, orders, self._roomy(size), length, self.tilt)
            block = self._block(window, length, _Played(value, done, 0.0, 0.0))
            value = block.after_one_choice()
            # two means by each pair
            for_each += 2 * orders * window.mean_work
            done += length
            # as many in a root of what has been played
            if math.sqrt(done / self.steps) * count >= len(kept) + 1:
                best = block.after_one().value
                start = done - length
                kept.append(Snapshot(start, done - after, window.below, block.padded, best))
                after = done
        kept.append(Snapshot(done, 0, 0, value, value))
        return Rough(self._value(_Played(value, done, self._floor, 0.0)), kept, for_each, blocks)

    def _followed(self) -> _Played:
        """A after all steps, or as many as the budget suffices for, if the widest law may stand for
        the others in the rest."""
        reached: _Played | None = None
        kept = self._ending_work if self.widest else 0.0
        try:
            with work.limited((work.left() - kept) / work.UNITS):
                for after in self._after_each_block():
                    reached = after
        except OutOfWorkError:
            if not self.widest or reached is None:
                raise
        assert reached is not None
        return reached

    def _after_each_block(self) -> Iterator[_Played]:
        """Yield A after each block."""
        kernels, orders = self.kernels, 2 if self.swapped else 1
        # what A may be beyond the windows passes on undiminished ("Floor")
        played = _Played(np.zeros((orders, 1)), 0, self._floor, 0.0)
        window = _Window.of(kernels, orders, self._points(1), 1, self.tilt)
        expected: _Expected | None = None
        longest, waits = self.steps, 0
        while played.done < self.steps:
            done = played.done
            length = self._length(done, longest)
            # also for what is left now, which may reach further
            size = max(self._points(done), self._points(done + length))
            if not window.holds(size, length):
                window = _Window.of(kernels, orders, self._roomy(size), length, self.tilt)
            block = self._block(window, length, self._convex(played, length))
            after = block.after_all(expected) if length > 1 else block.after_one()
            if after.lost > _MOST_LOST and length > 1:
                # shorter blocks lose less, and so do later ones
                longest, expected, waits = length // 2, None, done + 4 * length
                continue
            expected = after.expected or expected
            if done >= waits or after.lost < _NEXT_TO_NOTHING:
                longest = 2 * length if after.lost < _LITTLE_LOST else length
            played = self._cut_off(after.value, played, length)
            yield played

    def _convex(self, played: _Played, length: int) -> _Played:
        """A about order 1 for a block of this length, without the edge that errors leave there: V
        is convex, and so no larger than the greatest convex function below its bounds on both
        sides of order 1 ("Edge")."""
        value, done, floor, beyond = played
        kernels, tilt = self.kernels, self.tilt
        wide = _ABOUT * kernels.deviation * math.sqrt(length) / kernels.step
        last = min(value.shape[1] - 1, max(_LEAST_ABOUT, int(wide)))
        if length == 1 or last < _LEAST_ABOUT:
            return played
        work.spend(work.TERM * 12 * last)
        x = np.arange(last + 1) * kernels.step
        passed = np.full(x.size, floor)
        if beyond:
            passed += self._cut.passed(x, beyond)
        # in untilted terms, but for the scale; left of 0 the data sets are in the other order
        bounds = (value[:, : x.size] + passed) * np.exp(-tilt * x)
        lost = -np.expm1(-x[1:]) * math.exp(-done * kernels.kappa)
        left = np.exp(-x[1:]) * bounds[-1, 1:] + lost
        points = np.concatenate([-x[:0:-1], x])
        slack = 8 + (1 + tilt) * float(x[-1]) + done * abs(kernels.kappa)
        lower = _convex_below(points, np.concatenate([left[::-1], bounds[0]]), slack)
        found = [lower[last:]]
        if value.shape[0] > 1:
            right = (lower[last - 1 :: -1] - lost) * np.exp(x[1:])
            found.append(np.append(lower[last], right))
        rounding = 1 + 64 * _EPS * slack
        smoothed = np.stack(found) * np.exp(tilt * x) * rounding - passed
        value = value.copy()
        value[:, : x.size] = np.clip(smoothed, 0.0, value[:, : x.size])
        return _Played(value, done, floor, beyond)

    def _block(self, window: _Window, length: int, played: _Played) -> _Block:
        """The next block, in this window."""
        value, done, _, beyond = played
        # A at the orders whose inverses are below 1 ("Cut")
        others = _resized(value, window.below + 1)
        if beyond:
            x = np.arange(window.below + 1) * self.kernels.step
            others = others + self._cut.passed(x, beyond)
            np.minimum(others, self._at_most(done, x), out=others)
        scale = done * self.kernels.kappa
        return _Block(window, scale, length, _resized(value, window.size), others)

    @cached_property
    def _cut(self) -> _Cut:
        kernels = self.kernels
        deviation = kernels.deviation * math.sqrt(self.steps)
        slopes = _CUT_SLOPES / deviation
        slopes = slopes[slopes * kernels.right * kernels.step < 600.0]
        cuts = [
            _Cut(self.order, slope, growth, deviation / math.sqrt(self.blocks))
            for slope, growth in zip(
                slopes.tolist(), kernels.log_mgfs(-slopes).tolist(), strict=True
            )
        ]
        if not cuts:
            raise NumericalError("the game's losses are too large for its grid")
        # that with the smallest windows
        return min(cuts, key=lambda cut: max(cut.place(self.steps), cut.place(0)))

    def _points(self, done: int) -> int:
        """Points of the grid up to where nothing of A is left, after so many steps or fewer."""
        place, width, _ = self._place(done)
        return max(2, math.ceil((place + _CUT_END * width) / self.kernels.step) + 2)

    def _place(self, done: int) -> tuple[float, float, bool]:
        """Where A is cut off after so many steps, and the width of the cut: where it is below the
        floor, or so far above the order that is asked for that this hardly matters."""
        kernels = self.kernels
        floor = self._size(done) * kernels.step
        if self.order < math.inf:
            cut = self._cut
            place = cut.place(self.steps - done)
            if place < floor:
                return place, cut.width, True
        like = max(_LEAST_WIDTH, min(done / _PATIENCE, self.steps / self.blocks) / 2)
        width = kernels.deviation * math.sqrt(like)
        return floor + _BEYOND_FLOOR * width, width, False

    def _roomy(self, size: int) -> int:
        """Somewhat more than this size, so that few windows are needed."""
        most = max(size, self._points(self.steps))
        return math.ceil(min(_ROOM * size, most))

    def _cut_off(self, value: np.ndarray, before: _Played, length: int) -> _Played:
        """A after this many steps more, smoothly cut off where little of it is left."""
        done, floor, beyond = before.done + length, before.floor, before.beyond
        place, width, is_asked = self._place(done)
        x = np.arange(value.shape[1]) * self.kernels.step
        work.spend(work.TERM * x.size)
        kept = np.where(x < place + _CUT_END * width, ndtr((place - x) / width), 0.0)
        # of the larger order; from the first point on at which something is left out
        first = int(np.argmax(kept < 1)) if kept[-1] < 1 else x.size - 1
        gone = (1 - kept[first:]) * value[:, first:].max(axis=0)
        if self.order < math.inf:
            beyond = self._cut.after(beyond, length)
            beyond += self._beyond_window(x.size, done, length)
        if is_asked:
            beyond += float((gone * np.exp(-self._cut.log_rise(x[first:]))).max())
        else:
            gone = np.minimum(gone, (1 - kept[first:]) * self._at_most(done, x[first:]))
            floor += float(gone.max())
        return _Played(value * kept, done, floor * (1 + 1e-12), beyond * (1 + 1e-12))

    def _beyond_window(self, size: int, done: int, length: int) -> float:
        """What A may be beyond a window in each of the last steps, above the floor, at the order
        that is asked for."""
        if size >= self._size(done):
            return 0.0
        cut = self._cut
        rise = float(cut.log_rise(np.array((size - 1) * self.kernels.step)))
        grown = math.exp(min(max(0.0, length * cut.growth), 700.0))
        return length * largest_of_tilted(self.tilt) * math.exp(-rise) * grown

    @property
    def _ending_work(self) -> float:
        """Estimate the work of the last steps with the widest law."""
        points = _ENDING_POINTS * self._points(self.steps)
        return _ENDING_LEAST + _ENDING * (work.transform(points) + points)

    @cached_property
    def kernels(self) -> Kernels:
        most = None if self.end == math.inf else math.ceil(self.end / self.plds[0].step)
        laws = (*self.plds, *self.swapped)
        return tilted_kernels(laws, self.tilt, self.lost, most, MISPLACED / self.steps)

    def _length(self, done: int, longest: int) -> int:
        """Number of steps of the next block, a power of 2 or three times one."""
        fitting = min(done // _PATIENCE, self.steps // self.blocks, self.steps - done, longest)
        if len(self.plds) == 1:
            # no choice, so that nothing is lost
            fitting = min(self.steps - done, longest)
        power = 1 << (max(1, fitting).bit_length() - 1)
        return power + power // 2 if fitting >= power + power // 2 else power

    @cached_property
    def _slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes theta > 0, ln of the largest mean of e^(theta loss) under the tilted laws, and of
        the factor w: A_r(x) is at most w e^(r growth - theta x)."""
        kernels = self.kernels
        theta = _SLOPES / (kernels.deviation * math.sqrt(self.steps))
        theta = theta[theta * kernels.left * kernels.step < 600.0]
        growth = kernels.log_mgfs(theta)
        log_w = np.array([math.log(largest_of_tilted(self.tilt + t)) for t in theta])
        return theta, growth, log_w

    @property
    def _floor(self) -> float:
        return _FLOOR * largest_of_tilted(self.tilt)

    def _size(self, steps: int, log_more: float = 0.0) -> int:
        """Points of the grid up to where A, times this, is below the floor after so many steps or
        fewer."""
        theta, growth, log_w = self._slopes
        log_bound = np.maximum(steps * growth, 0.0) + log_w + max(log_more, 0.0)
        reached = (log_bound - math.log(self._floor)) / theta
        if not reached.size:
            raise NumericalError("the game's losses are too large for its grid")
        return max(2, math.ceil(max(0.0, float(reached.min())) / self.kernels.step) + 2)

    def _at_most(self, steps: int, x: np.ndarray) -> np.ndarray:
        """Bounds of A after these steps, whatever is played, at orders x >= 0."""
        theta, growth, log_w = self._slopes
        kernels = self.kernels
        heights = steps * growth + log_w
        # those that are lowest somewhere, as a few places show
        few = x[:: max(1, x.size // _PLACES)]
        lowest = np.unique((heights[:, None] - np.multiply.outer(theta, few)).argmin(axis=0))
        work.spend(work.NUMBER * 4 * x.size * lowest.size)
        lines = heights[lowest, None] - np.multiply.outer(theta[lowest], x)
        log_bound = np.minimum(lines.min(axis=0), self.tilt * x - steps * kernels.kappa)
        rounding = 1 + 16 * _EPS * (4 + np.abs(log_bound) + steps * abs(kernels.kappa))
        bound = np.exp(np.minimum(log_bound, 0.0)) * rounding
        return np.asarray(np.minimum(bound, largest_of_tilted(self.tilt)))


class _Played(NamedTuple):
    """A after so many steps, up to what was cut off: at most `floor` where A is small, and `beyond`
    at the order that is asked for."""

    value: np.ndarray
    done: int
    floor: float
    beyond: float


@dataclass(frozen=True)
class _Cut:
    """Where A is cut off, so far above the order that is asked for that next to nothing comes from
    there: at most a number times e^(slope (x - order)) is left out after some steps, and `growth`
    is the log of the factor by which one step may raise it ("Cut")."""

    order: float
    slope: float
    growth: float
    width: float

    def place(self, left: int) -> float:
        """The middle of the cut, where so many steps are left."""
        # what a smooth cut leaves out before its middle counts for more
        more = (self.slope * self.width) ** 2 / 2
        return self.order + (left * self.growth + _CUT_OFF + more) / self.slope

    def log_rise(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self.slope * (x - self.order), -700.0, 700.0)

    def passed(self, x: np.ndarray, beyond: float) -> np.ndarray:
        """Bound of what was left out, at these orders."""
        return np.asarray(beyond * (1 + 1e-12) * np.exp(self.log_rise(x)))

    def after(self, beyond: float, steps: int) -> float:
        """Bound at the order that is asked for, so many steps later."""
        if not beyond:
            return 0.0
        return max(_TINY, beyond * math.exp(min(steps * self.growth, 700.0)) * (1 + 1e-12))


class Rough(NamedTuple):
    """Estimate of the value of a game, A at some moments, the work of a play for each pair, and its
    number of blocks."""

    value: GameValue
    snapshots: list[Snapshot]
    work: float
    blocks: int


class Snapshot(NamedTuple):
    """A after `done` steps, with `below` orders below 1; the largest means after one more, from
    order 1 on; and how many steps it stands for."""

    done: int
    weight: int
    below: int
    padded: np.ndarray
    best: np.ndarray


@dataclass(frozen=True, eq=False)
class _Window:
    """Points of the grid where A is followed: `size` from 0 on, and `below` of negative orders,
    where it is that of the exchanged data sets.

    The inequalities of a block are checked from -`near` on, up to `up` beyond the last point, but
    for where next to nothing arrives; excesses go somewhat further, from -`start` on, where they
    rise from 0. Transforms have length `n`.
    """

    kernels: Kernels
    size: int
    near: int
    start: int
    up: int
    below: int
    n: int
    length: int
    tilt: float
    spectra: np.ndarray
    """Shape (orders, pairs, n // 2 + 1)."""
    powers: dict[tuple[int, tuple[int, ...] | None], np.ndarray] = field(default_factory=dict)
    inverses: dict[tuple[int, tuple[int, ...]], np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Kernels, orders: int, size: int, length: int, tilt: float) -> _Window:
        """The window for blocks of up to this length."""
        near, up = kernels.reach(length, _ASTRAY, tilt) if length > 1 else (0, 0)
        start = near
        if length > 1:
            start += math.ceil(_RISE * kernels.deviation * math.sqrt(length) / kernels.step)
        below = start + kernels.left
        # nothing comes round in a single mean, and little in one of many steps
        down, _ = kernels.reach(length, _ROUND)
        last = size + up + 2 * kernels.right
        n = fft.next_fast_len(last + max(below, down), real=True)
        count = kernels.masses.shape[0]
        check_points(n * count)
        work.spend(count * (work.transform(n) + work.NUMBER * n))
        padded = np.zeros((count, n))
        # a loss moves orders down; those below 0 stand at the end of the array
        padded[:, : kernels.left + 1] = kernels.masses[:, kernels.right :]
        padded[:, n - kernels.right :] = kernels.masses[:, : kernels.right]
        spectra = fft.rfft(padded).reshape(orders, count // orders, -1)
        return cls(kernels, size, near, start, up, below, n, length, tilt, spectra)

    def holds(self, size: int, length: int) -> bool:
        """Whether a block of this length fits."""
        return size <= self.size and length <= self.length

    @cached_property
    def negative(self) -> np.ndarray:
        """Negative orders, from the first point on, as distances from 0."""
        return np.arange(self.below, 0, -1) * self.kernels.step

    @cached_property
    def exchanged(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors of A and of the unit at them: V(1/a) = 1 - 1/a + V(a)/a, the data sets in the
        other order ("Orders below 1")."""
        work.spend(work.TERM * 3 * self.below)
        near, tilt = self.negative, self.tilt
        return np.exp(-(1 + 2 * tilt) * near), -np.expm1(-near) * np.exp(-tilt * near)

    @cached_property
    def untilted(self) -> np.ndarray:
        """Factors that take the tilt away at them."""
        work.spend(work.TERM * self.below)
        return np.exp(self.tilt * self.negative)

    @property
    def inside(self) -> slice:
        """The points whose orders are 1 or more."""
        return slice(self.below, self.below + self.size)

    @property
    def followed(self) -> slice:
        """The points of an excess: at the last ones the inequalities are not checked, as they look
        beyond its end."""
        last = self.below + self.size + self.up + self.kernels.right
        return slice(self.below - self.start, last)

    @property
    def checked(self) -> slice:
        """Of these, the points at which both inequalities are checked."""
        first = self.start - self.near
        return slice(first, self.start + self.size + self.up)

    @cached_property
    def rise(self) -> np.ndarray:
        """The share of an excess that is kept at its first points."""
        wide = self.start - self.near
        # from -3.3 to 3.3 standard deviations
        return ndtr(np.linspace(-3.3, 3.3, wide)) if wide else np.ones(0)

    @property
    def mean_work(self) -> float:
        """The work of a mean by one of the laws at all points: many transforms at a time take half
        of what a single one takes."""
        return work.transform(self.n) / 2 + work.NUMBER * self.n

    def moved(self, spectra: np.ndarray) -> np.ndarray:
        return np.asarray(fft.irfft(spectra, n=self.n))

    def power(self, length: int, pairs: tuple[int, ...] | None = None) -> np.ndarray:
        """Powers of the spectra of one pair of each order, or of all pairs, by halves."""
        if length == 1:
            return self.spectra if pairs is None else self.spectra[np.arange(len(pairs)), pairs]
        key = length, pairs
        if key not in self.powers:
            half = self.power(length // 2, pairs)
            work.spend(work.NUMBER * 2 * half.size)
            self.powers[key] = half * self.power(length - length // 2, pairs)
        return self.powers[key]

    def smoothed(self, excess: np.ndarray, pairs: tuple[int, ...], length: int) -> np.ndarray:
        """Return the function that K takes to an excess, nearly, where that is smooth."""
        work.spend(len(pairs) * (2 * work.transform(self.n) + work.NUMBER * 4 * self.n))
        padded = np.zeros((len(pairs), self.n))
        padded[:, self.followed] = excess
        return self.moved(self._inverse(pairs, length) * fft.rfft(padded))[:, self.followed]

    def _inverse(self, pairs: tuple[int, ...], length: int) -> np.ndarray:
        """The spectrum of `smoothed`."""
        m = max(_LEAST_SMOOTH, length // _SMOOTH)
        if (m, pairs) not in self.inverses:
            work.spend(len(pairs) * work.NUMBER * 16 * self.n)
            K, rough = self.power(1, pairs), self.power(m, pairs)
            inverse = np.conj(rough) * (rough / np.where(np.abs(K) > 1e-3, K, np.inf))
            self.inverses[m, pairs] = inverse * (2 - np.abs(rough) ** 2)
        return self.inverses[m, pairs]


class _After(NamedTuple):
    """A after a block, the excess that the next one may expect, and the amount that was added, as a
    share of A."""

    value: np.ndarray
    expected: _Expected | None
    lost: float


@dataclass(frozen=True, eq=False)
class _Expected:
    """Amount by which the second inequality asks for more than the first one, from a point of the
    grid on, in a block of this length: the next block will be like it."""

    first: int
    growth: np.ndarray
    length: int

    def at(self, first: int, size: int, length: int) -> np.ndarray:
        found = np.zeros((self.growth.shape[0], size))
        start = max(first, self.first)
        stop = min(first + size, self.first + self.growth.shape[1])
        kept = self.growth[:, start - self.first : stop - self.first]
        found[:, start - first : stop - first] = kept
        return found * ((length - 1) / (self.length - 1))


class _Block:
    """`length` steps, from A of those before on, which is V times e^(tilt x - log_scale)."""

    def __init__(
        self,
        window: _Window,
        log_scale: float,
        length: int,
        value: np.ndarray,
        others: np.ndarray,
    ) -> None:
        self.window, self.length = window, length
        unit = math.exp(-log_scale)
        work.spend(work.NUMBER * 4 * window.n)
        self.padded = np.zeros((value.shape[0], window.n))
        self.padded[:, window.inside] = value
        mirrored = others[::-1, window.below : 0 : -1]
        of_others, of_unit = window.exchanged
        self.padded[:, : window.below] = of_others * mirrored + of_unit * unit
        self.largest = max(unit, float(self.padded.max()))
        # what forming these rounds, relative to themselves
        farthest = max(window.size, window.below) * window.kernels.step
        self.grown = 1 + 4 * _EPS * (8 + (2 + 2 * window.tilt) * farthest + abs(log_scale))
        # a share of the norm of what is transformed ("Round-off")
        self.round_off = 16 * _EPS * math.log2(window.n)
        self.best = value

    def after_one(self) -> _After:
        """A after a single step."""
        self.best = self._largest(fft.rfft(self.padded), self.window.inside)
        best = np.maximum(self.best, 0.0) + self.round_off * _norms(self.padded)
        return _After(np.asarray(best * self.grown), None, 0.0)

    def after_one_choice(self) -> np.ndarray:
        """Estimate A after the block, where a choice is kept."""
        window = self.window
        orders, count, _ = window.spectra.shape
        work.spend(orders * (2 + count) * window.mean_work)
        moved = window.moved(window.power(self.length) * fft.rfft(self.padded)[:, None])
        return np.asarray(np.maximum(moved[:, :, window.inside].max(axis=1), 0.0))

    def after_all(self, expected: _Expected | None) -> _After:
        """Return A after the block, and the observed growth of its excess (Theorem 75)."""
        window, B, followed = self.window, self.length, self.window.followed
        # besides the means by each of the laws
        work.spend(self.padded.shape[0] * 6 * work.transform(window.n))
        transformed = fft.rfft(self.padded)
        largest = self._largest(transformed, followed)
        pairs = self._references(transformed)
        K = window.power(1, pairs)
        by_reference = window.moved(K * transformed)[:, followed]
        self.best = largest[:, window.start : window.start + window.size]
        gain = largest - by_reference
        guess = gain.copy()
        if expected is not None:
            # an estimate that is as large as the gain itself has gone astray
            guess = gain + np.minimum(expected.at(-window.start, gain.shape[1], B), gain)
        guess[:, : window.rise.size] *= window.rise
        excess = np.zeros_like(self.padded)
        excess[:, followed] = window.smoothed(guess, pairs, B)
        excess[:, followed] += self._at_edge(gain, excess, pairs)
        spectrum = fft.rfft(excess)
        of_excess = K * spectrum
        later = transformed + (B - 1) * spectrum
        gain_later = self._largest(later, followed)
        gain_later -= window.moved(K * later)[:, followed]
        norms, of_norms = _norms(self.padded), _norms(excess)
        lacking = np.maximum(gain, gain_later) - window.moved(of_excess)[:, followed]
        lacking += self.round_off * (4 * norms + (2 * B + 1) * of_norms)
        unit = by_reference - (B - 1) * gain
        checked = window.checked
        share, rest = self._added(lacking[:, checked], unit[:, checked], norms, pairs)
        total = (1 + B * share) * self.padded + B * excess
        value = window.moved(window.power(B, pairs) * fft.rfft(total))[:, window.inside]
        # "Round-off", of powers as well, and what leaves the window
        value = np.maximum(value + B * self.round_off * _norms(total) + rest, 0.0)
        value += self._astray(share, excess, total)
        learnt = _Expected(-window.start, np.maximum(gain_later - gain, 0.0), B)
        most = np.maximum(self.padded.max(axis=1, keepdims=True), _TINY)
        lost = float((B * share + rest / most).max())
        return _After(value * self.grown, learnt, lost)

    def _astray(self, share: np.ndarray, excess: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Bound of what comes from where the inequalities are not checked, and of what comes round
        the transform, of each order, shape (o, 1)."""
        window, B = self.window, self.length
        size, bounds = np.abs(excess), self.padded.copy()
        work.spend(work.NUMBER * 4 * size.size)
        # without the tilt, no mean of a bounded function exceeds its bound
        size[:, : window.below] *= window.untilted
        bounds[:, : window.below] *= window.untilted
        largest = np.maximum(self.largest, bounds.max(axis=1, keepdims=True))
        most = (1 + B * share) * largest + B * size.max(axis=1, keepdims=True)
        most *= math.exp(max(0.0, -B * window.kernels.kappa))
        around = np.abs(total).max(axis=1, keepdims=True)
        return np.asarray((B + 2) * _ASTRAY * most + 2 * _ROUND * around)

    def _at_edge(self, gain: np.ndarray, excess: np.ndarray, pairs: tuple[int, ...]) -> np.ndarray:
        """An addition to an excess that falls short about order 1: charges to A, right of it, leave
        an edge there after each block, on which laws of a step differ."""
        window, kernels = self.window, self.window.kernels
        deviation = kernels.deviation / kernels.step
        about = np.arange(-int(2 * deviation), int(2 * deviation) + 1)
        # few orders: a mean is a sum, term by term
        rows = excess[:, about[:, None] + self._moves]
        work.spend(work.NUMBER * rows.size)
        masses = kernels.masses.reshape(gain.shape[0], -1, kernels.masses.shape[1])
        law = masses[np.arange(gain.shape[0]), list(pairs)]
        short = gain[:, about + window.start] - np.einsum("oij,oj->oi", rows, law)
        peak = np.maximum(short.max(axis=1), 0.0)[:, None]
        x = np.arange(gain.shape[1]) - window.start
        width = deviation * max(2.0, _EDGE * math.sqrt(self.length))
        return np.asarray(2 * peak * np.exp(-0.5 * (x / width) ** 2))

    def _added(
        self, lacking: np.ndarray, unit: np.ndarray, norms: np.ndarray, pairs: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The charge for the failure of the inequalities: in each step this share of A, where A is
        large, and in all of the block this number everywhere; of each order, shape (o, 1)."""
        B, kernels = self.length, self.window.kernels
        orders = lacking.shape[0]
        sums = kernels.sums.reshape(orders, -1)
        # sums of so many terms are off by less than this share
        by_pair = B * sums[np.arange(orders), list(pairs)] * (1 - 1e-12)
        per_block = by_pair - (B - 1) * sums.max(axis=1) * (1 + 1e-12)
        work.spend(work.NUMBER * 4 * lacking.size * _LEVELS.size)
        best_share, best_rest = np.zeros((orders, 1)), np.zeros((orders, 1))
        for order in range(orders):
            top = float(unit[order].max())
            found: list[tuple[float, float, float]] = []
            for level in _LEVELS:
                large = unit[order] > level * top
                lacks = large & (lacking[order] > 0)
                share = float(np.max(lacking[order, lacks] / unit[order, lacks], initial=0.0))
                rest = float(np.max(lacking[order], initial=0.0, where=~large))
                rest += share * 2 * B * self.round_off * float(norms[order, 0])
                rest *= B / float(per_block[order])
                found.append((B * share * top / 2 + rest, share, rest))
            _, best_share[order], best_rest[order] = min(found)
        return best_share * (1 + 8 * _EPS), best_rest * (1 + 8 * _EPS)

    def _references(self, transformed: np.ndarray) -> tuple[int, ...]:
        """For each order, the pair that is chosen most often where A is large."""
        kernels = self.window.kernels
        sums = kernels.sums.reshape(transformed.shape[0], -1)
        pairs = []
        for order, best in enumerate(self.best):
            large = np.flatnonzero(best > _LARGE * best.max())
            looked = large[:: max(1, large.size // _LOOKS)]
            # few orders: a mean is a sum, term by term
            rows = self.padded[order, looked[:, None] + self._moves]
            work.spend(work.NUMBER * rows.shape[0] * kernels.masses.size)
            masses = kernels.masses.reshape(*sums.shape, -1)[order]
            means = np.einsum("ij,kj->ik", rows, masses)
            chosen = np.bincount(means.argmax(axis=1), best[looked], minlength=sums.shape[1])
            # the amount that is added everywhere must not grow
            chosen[self.length * (1 - sums[order] / sums[order].max()) > _LEAST] = -1.0
            pairs.append(int(chosen.argmax()))
        return tuple(pairs)

    @cached_property
    def _moves(self) -> np.ndarray:
        """From an order of 1 or more to where losses take it."""
        kernels = self.window.kernels
        return self.window.below + np.arange(kernels.right, -kernels.left - 1, -1)

    def _largest(self, transformed: np.ndarray, part: slice) -> np.ndarray:
        """The largest mean over the pairs."""
        window = self.window
        orders, count, _ = window.spectra.shape
        work.spend(orders * (2 + count) * window.mean_work)
        best = np.full((orders, part.stop - part.start), -np.inf)
        together = max(1, _TOGETHER // window.n)
        for start in range(0, count, together):
            some = window.spectra[:, start : start + together] * transformed[:, None]
            np.maximum(best, window.moved(some)[:, :, part].max(axis=1), out=best)
        return best


def _norms(values: np.ndarray) -> np.ndarray:
    """Euclidean norms of the rows, shape (orders, 1)."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", values, values))[:, None])


def _resized(values: np.ndarray, size: int) -> np.ndarray:
    """Rows with zeros at their ends, or without their ends."""
    missing = max(0, size - values.shape[1])
    return np.pad(values[:, :size], ((0, 0), (0, missing)))


def _convex_below(x: np.ndarray, values: np.ndarray, slack: float) -> np.ndarray:
    """The greatest convex function of e^x that is nowhere above these values, which fall, at the
    points x, rounded up, where these are off by `slack` roundings of the largest."""
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    falls = hull_slopes(values, x) * SLOPE_UNIT * widths
    lower = values[0] - np.append(0.0, np.cumsum(falls))
    return np.asarray(lower + 8 * (x.size + slack) * _EPS * float(np.abs(values).max()))

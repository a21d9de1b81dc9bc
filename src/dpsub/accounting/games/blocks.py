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

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.game import (
    GameValue,
    Kernels,
    check_points,
    largest_of_tilted,
    tilted_kernels,
)
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
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
# A beyond the window, over its largest value; probability that K^B moves further than is followed
_FLOOR, _ASTRAY = 1e-8, 1e-14
# slopes of the bounds of A beyond the packet, per standard deviation of so many steps: rare losses
# far out ask for small ones
_SLOPES = np.geomspace(2.0**-8, 2.0**12, 41)
_PLACES = 50  # at which slopes are compared
# a new window is larger than what is needed by this factor, so that few are
_ROOM = 1.25
# where the excess lacks something: shares of the largest A above which a share of A is added
_LEVELS = np.array([1e-1, 1e-2, 1e-4, 1e-6])
# orders that are looked at for K, where A is at least this share of the largest one, and how much
# of a block's sum K may lack
_LOOKS, _LARGE, _LEAST = 12, 0.3, 0.5
# work that the last steps take with the widest law: on however few points, and over a transform of
# so many times the points of A
_ENDING_LEAST, _ENDING, _ENDING_POINTS = 3e6, 80, 3
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
    """Losses above it count as infinite."""
    widest: Sequence[PrivacyLossDistribution] = ()
    """A law that dominates all others, for each order of the data sets: where the budget ends, it
    stands for all of them in the steps that are left."""

    def played(self) -> GameValue:
        """The value of all steps; NumericalError if the grid is too long."""
        played = self._followed()
        if played.done < self.steps:
            return self._ended(played)
        return self._value(played.value)

    def _value(self, value: np.ndarray) -> GameValue:
        log_scale = self.steps * self.kernels.kappa
        return self._unscaled(value, log_scale, self.steps * self.kernels.infinity)

    def _unscaled(
        self, value: np.ndarray, log_scale: float, infinity: float, by_widest: int = 0
    ) -> GameValue:
        x = np.arange(value.shape[1]) * self.kernels.step
        # what A may be beyond the windows passes on undiminished ("Floor")
        larger = value.max(axis=0) + self._floor
        return GameValue(x, larger, self.tilt, log_scale, infinity, by_widest)

    def _ended(self, played: _Played) -> GameValue:
        """The value of all steps, the last ones played with the widest law."""
        kernels, orders = self.kernels, played.value.shape[0]
        left = self.steps - played.done
        law, swapped = self.widest[:1], self.widest[1:]
        last = BlockedGame(law, left, self.tilt, 1, self.lost, swapped, self.end)
        scale = played.done * kernels.kappa
        # with the widest law in all steps, at the scale of these
        size = last._size(self.steps, played.done * (last.kernels.kappa - kernels.kappa))
        size = max(size, played.value.shape[1])
        window = _Window.of(last.kernels, orders, size, left)
        block = _Block(window, self.tilt, scale, left, _resized(played.value, window.size))
        after = block.after_all(None) if left > 1 else block.after_one()
        scale += left * last.kernels.kappa
        infinity = played.done * kernels.infinity + left * last.kernels.infinity
        return self._unscaled(after.value, scale, infinity, left)

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
            size = self._size(done + length)
            if window is None or not window.holds(size, length):
                window = _Window.of(self.kernels, orders, math.ceil(_ROOM * size), length)
            scale = done * self.kernels.kappa
            block = _Block(window, self.tilt, scale, length, _resized(value, window.size))
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
        return Rough(self._value(value), kept, for_each, blocks)

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
        value = np.zeros((orders, 1))
        window = _Window.of(kernels, orders, self._size(1), 1)
        expected: _Expected | None = None
        done, longest, waits = 0, self.steps, 0
        while done < self.steps:
            length = self._length(done, longest)
            size = self._size(done + length)
            if not window.holds(size, length):
                window = _Window.of(kernels, orders, math.ceil(_ROOM * size), length)
            scale = done * kernels.kappa
            block = _Block(window, self.tilt, scale, length, _resized(value, window.size))
            after = block.after_all(expected) if length > 1 else block.after_one()
            if after.lost > _MOST_LOST and length > 1:
                # shorter blocks lose less, and so do later ones
                longest, expected, waits = length // 2, None, done + 4 * length
                continue
            value, expected = after.value, after.expected or expected
            if done >= waits or after.lost < _NEXT_TO_NOTHING:
                longest = 2 * length if after.lost < _LITTLE_LOST else length
            done += length
            np.minimum(value, self._at_most(done, window.size), out=value)
            yield _Played(value, done)

    @property
    def _ending_work(self) -> float:
        """Estimate the work of the last steps with the widest law."""
        points = _ENDING_POINTS * self._size(self.steps)
        return _ENDING_LEAST + _ENDING * (work.transform(points) + points)

    @cached_property
    def kernels(self) -> Kernels:
        most = None if self.end == math.inf else math.ceil(self.end / self.plds[0].step)
        return tilted_kernels((*self.plds, *self.swapped), self.tilt, self.lost, most)

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
        growth = np.array([kernels.log_mgf(t) for t in theta])
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

    def _at_most(self, steps: int, size: int) -> np.ndarray:
        """Bounds of A after these steps, whatever is played."""
        theta, growth, log_w = self._slopes
        kernels = self.kernels
        x = np.arange(size) * kernels.step
        heights = steps * growth + log_w
        # those that are lowest somewhere, as a few places show
        few = x[:: max(1, size // _PLACES)]
        lowest = np.unique((heights[:, None] - np.multiply.outer(theta, few)).argmin(axis=0))
        work.spend(work.NUMBER * 4 * size * lowest.size)
        lines = heights[lowest, None] - np.multiply.outer(theta[lowest], x)
        log_bound = np.minimum(lines.min(axis=0), self.tilt * x - steps * kernels.kappa)
        rounding = 1 + 16 * _EPS * (4 + np.abs(log_bound) + steps * abs(kernels.kappa))
        bound = np.exp(np.minimum(log_bound, 0.0)) * rounding
        return np.asarray(np.minimum(bound, largest_of_tilted(self.tilt)))


class _Played(NamedTuple):
    """A after so many steps."""

    value: np.ndarray
    done: int


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

    The inequalities of a block are checked from -`near` on, up to where nothing arrives. Transforms
    have length `n`.
    """

    kernels: Kernels
    size: int
    near: int
    below: int
    n: int
    length: int
    spectra: np.ndarray
    """Shape (orders, pairs, n // 2 + 1)."""
    powers: dict[tuple[int, tuple[int, ...] | None], np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Kernels, orders: int, size: int, length: int) -> _Window:
        """The window for blocks of up to this length."""
        down, up = kernels.reach(length, _ASTRAY)
        near = down if length > 1 else 0
        below = near + kernels.left
        size = max(size, below + 1)
        n = fft.next_fast_len(below + size + max(2 * kernels.right, up), real=True)
        count = kernels.masses.shape[0]
        check_points(n * count)
        work.spend(count * (work.transform(n) + work.NUMBER * n))
        padded = np.zeros((count, n))
        # a loss moves orders down; those below 0 stand at the end of the array
        padded[:, : kernels.left + 1] = kernels.masses[:, kernels.right :]
        padded[:, n - kernels.right :] = kernels.masses[:, : kernels.right]
        spectra = fft.rfft(padded).reshape(orders, count // orders, -1)
        return cls(kernels, size, near, below, n, length, spectra)

    def holds(self, size: int, length: int) -> bool:
        """Whether a block of this length fits."""
        return size <= self.size and length <= self.length

    @property
    def inside(self) -> slice:
        """The points whose orders are 1 or more."""
        return slice(self.below, self.below + self.size)

    @property
    def checked(self) -> slice:
        """The points at which both inequalities are checked."""
        return slice(self.below - self.near, self.below + self.size + self.kernels.right)

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
        m = max(_LEAST_SMOOTH, length // _SMOOTH)
        work.spend(len(pairs) * (2 * work.transform(self.n) + work.NUMBER * 20 * self.n))
        K, rough = self.power(1, pairs), self.power(m, pairs)
        inverse = np.conj(rough) * (rough / np.where(np.abs(K) > 1e-3, K, np.inf))
        inverse *= 2 - np.abs(rough) ** 2
        padded = np.zeros((K.shape[0], self.n))
        padded[:, self.checked] = excess
        return self.moved(inverse * fft.rfft(padded))[:, self.checked]


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
        self, window: _Window, tilt: float, log_scale: float, length: int, value: np.ndarray
    ) -> None:
        self.window, self.length = window, length
        kernels = window.kernels
        near = np.arange(window.below, 0, -1) * kernels.step
        # V(1/a) = 1 - 1/a + V(a)/a, the data sets in the other order ("Orders below 1")
        unit = math.exp(-log_scale)
        work.spend(work.TERM * 3 * near.size)
        self.padded = np.zeros((value.shape[0], window.n))
        self.padded[:, window.inside] = value
        others = value[::-1, window.below : 0 : -1]
        self.padded[:, : window.below] = np.exp(-(1 + 2 * tilt) * near) * others
        self.padded[:, : window.below] += -np.expm1(-near) * np.exp(-tilt * near) * unit
        self.largest = max(unit, float(self.padded.max()))
        # what forming these rounds, relative to themselves
        farthest = window.size * kernels.step
        self.grown = 1 + 4 * _EPS * (8 + (2 + 2 * tilt) * farthest + abs(log_scale))
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
        window, B, checked = self.window, self.length, self.window.checked
        # besides the means by each of the laws
        work.spend(self.padded.shape[0] * 8 * work.transform(window.n))
        transformed = fft.rfft(self.padded)
        largest = self._largest(transformed, checked)
        pairs = self._references(transformed)
        K = window.power(1, pairs)
        by_reference = window.moved(K * transformed)[:, checked]
        self.best = largest[:, window.near : window.near + window.size]
        gain = largest - by_reference
        guess = gain
        if expected is not None:
            # an estimate that is as large as the gain itself has gone astray
            guess = gain + np.minimum(expected.at(-window.near, gain.shape[1], B), gain)
        excess = np.zeros_like(self.padded)
        excess[:, checked] = window.smoothed(guess, pairs, B)
        short = gain - window.moved(K * fft.rfft(excess))[:, checked]
        excess[:, checked] += self._at_edge(short)
        spectrum = fft.rfft(excess)
        of_excess = K * spectrum
        later = transformed + (B - 1) * spectrum
        gain_later = self._largest(later, checked)
        gain_later -= window.moved(K * later)[:, checked]
        norms, of_norms = _norms(self.padded), _norms(excess)
        lacking = np.maximum(gain, gain_later) - window.moved(of_excess)[:, checked]
        lacking += self.round_off * (4 * norms + (2 * B + 1) * of_norms)
        share, rest = self._added(lacking, by_reference - (B - 1) * gain, norms, pairs)
        total = (1 + B * share) * self.padded + B * excess
        value = window.moved(window.power(B, pairs) * fft.rfft(total))[:, window.inside]
        # "Round-off", of powers as well, and what leaves the window
        value = np.maximum(value + B * self.round_off * _norms(total) + rest, 0.0)
        most = (1 + B * share) * self.largest + B * np.abs(excess).max(axis=1, keepdims=True)
        value += (B + 2) * _ASTRAY * most
        learnt = _Expected(-window.near, np.maximum(gain_later - gain, 0.0), B)
        lost = float((B * share + rest / self.padded.max(axis=1, keepdims=True)).max())
        return _After(value * self.grown, learnt, lost)

    def _at_edge(self, short: np.ndarray) -> np.ndarray:
        """An addition to an excess that falls short about order 1: charges to A, right of it, leave
        an edge there after each block, on which laws of a step differ."""
        window = self.window
        deviation = window.kernels.deviation / window.kernels.step
        x = np.arange(short.shape[1]) - window.near
        about = np.abs(x) <= 2 * deviation
        peak = np.maximum(short[:, about].max(axis=1), 0.0)[:, None]
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
        work.spend(work.NUMBER * 8 * lacking.size * _LEVELS.size)
        best_share, best_rest = np.zeros((orders, 1)), np.zeros((orders, 1))
        for order in range(orders):
            top = float(unit[order].max())
            found: list[tuple[float, float, float]] = []
            for level in _LEVELS:
                large = unit[order] > level * top
                share = float(np.max(lacking[order, large] / unit[order, large], initial=0.0))
                rest = float(np.max(lacking[order, ~large], initial=0.0))
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

"""One epoch of random allocation where a record is replaced, by the record at C against -C among
zero records (docs/proofs/allocation.md): to 1 of t steps (Theorem 79), the profile from above at
some orders and chords between them, and the events that tell most at some orders; to k of t, from
above by blocks of steps that are revealed (Theorem 90).

Sums over the steps are formed on grids of equal steps, or pair by pair where values of one step are
too far apart for that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.chords import falling
from dpsub.accounting.engine.lower_law import exchange_law
from dpsub.accounting.engine.outputs import EpochOutputs
from dpsub.accounting.engine.pairs import WorPair
from dpsub.accounting.engine.pld import PrivacyLossDistribution, symmetric_pld
from dpsub.accounting.engine.privacy_events import Event, PairEvent, ProvedEvent, order_grid
from dpsub.accounting.schemes.allocation.one_step import AllocationEvent, sizes_of_blocks
from dpsub.accounting.schemes.allocation.opposite import Attained, attained, upper_mean
from dpsub.accounting.schemes.allocation.opposite_grid import OppositeGrid
from dpsub.errors import UnsupportedError
from dpsub.noise import GaussianProfile

_EPS = float(np.finfo(float).eps)
# cells for sums of pairs, in deviations of noise 1, the widest first: as many times the step of the
# grid of losses, over their deviation
_FINENESSES, _CELLS = (0.14, 0.1, 0.07, 0.05, 0.035, 0.025), 1.12
_WIDEST = 0.2  # times the noise: wider cells tell too little of the rarest losses
# the same for grids, in deviations of the values of a step; places of the coarsest one at order 1,
# and of any, at most
_ON_GRID, _CELLS_ON_GRID = (0.1, 0.05, 0.025, 0.0125), 1.25
_FEW_PLACES, _MOST_PLACES = 5000, 2**18
# with fewer steps not their deviation counts alone; with more of them, and with more noise, sums of
# pairs take less work, and round-off shows
_FEW_STEPS, _MANY_STEPS, _MUCH_NOISE = 16, 10_000, 100.0
# orders: by how much the log odds of the bound fall from one to the next, in cells, and more where
# it is rare, and by how much steps between them grow
_RARE, _GROWTH = 1e-9, 1.4
_FALL, _RARE_FALL = 8.0, 20.0
_FALL_ON_GRID, _RARE_FALL_ON_GRID = 3.5, 20.0
_SMALL, _LEAST_SHARE = 5.0, 0.3  # e^-5: a bound so small; and the share of the fall at large ones
_LAST_ORDER = 300.0  # log order, far beyond which exponentials overflow
_UNSEEN = 1e-6  # of a bound: what may be cut off
_FEW_ORDERS, _MORE_ORDERS = 18, 27.0  # some, and others that grow as the fall is less, about
_GROWN = 3.0  # work of an order on a grid, over that of order 1
_NOT_SEEN_BY_ATTACKS = 1e4  # tails below which no event is looked for
_ROUNDING = 1 + 1e-9


class Valued(NamedTuple):
    """A bound at a log order, or the event that it is attained by."""

    log_order: float
    value: float
    event: Attained


class Orders:
    """Bounds at ever larger orders, from 1 on, as far down as they are asked for.

    Parameters
    ----------
    bound : callable
        Function (log order, what may be cut off) -> the bound there.
    fall, rare_fall : float
        By how much the log odds of the bound fall from one order to the next, about, and where it
        is rare.
    grown : float
        The work of an order over that of the first one, about.
    """

    def __init__(
        self,
        bound: Callable[[float, float], Valued],
        fall: float,
        rare_fall: float,
        grown: float = 1.0,
    ) -> None:
        self._bound, self._fall, self._rare_fall, self._grown = bound, fall, rare_fall, grown
        self._found: list[Valued] = []
        self._step, self._cost, self._ended = 0.0, 0.0, False

    def down_to(self, least: float) -> list[Valued]:
        """Bounds up to the first one that is no more than this, or that does not fall."""
        while not self._ended and (not self._found or self._found[-1].value > least):
            self._extend()
        wanted = next((i for i, each in enumerate(self._found) if each.value <= least), None)
        return self._found if wanted is None else self._found[: wanted + 1]

    def _extend(self) -> None:
        if not self._found:
            before = work.spent()
            self._found.append(self._bound(0.0, _UNSEEN))
            self._cost = work.spent() - before
            # about a fifth of a deviation of the loss
            self._step = self._found[0].value / 2
            return
        if len(self._found) == 1:
            # nothing is begun that is not finished
            orders = _FEW_ORDERS + _MORE_ORDERS / self._fall
            work.ensure(orders * self._grown * self._cost, "the sums of an epoch")
        last = self._found[-1]
        x = last.log_order + self._step
        found = self._bound(x, _UNSEEN * last.value) if x <= _LAST_ORDER else None
        if found is None or not 0 < found.value < last.value:
            self._ended = True
            return
        self._found.append(found)
        # chords tell where bounds are large, cells where they are small
        share = min(max(-math.log(found.value) / _SMALL, _LEAST_SHARE), 1.0)
        wanted = self._fall * share if found.value > _RARE else self._rare_fall
        # near 1 what is left counts
        left = (1 - found.value) / max(1 - last.value, _EPS)
        fell = math.log(last.value / found.value) + math.log(max(left, 1.0))
        self._step *= min(max(wanted / max(fell, 1e-9), 1 / 4), _GROWTH)


class Opposite:
    """The record at C against -C, in 1 of t steps with a noise multiplier; or, for attacks alone,
    in `turns` of 1 of t groups, each with the probability `rate`."""

    def __init__(
        self, t: int, deviation: float, fineness: float, rate: float = 1.0, turns: int = 1
    ) -> None:
        self.t, self.f, self._fineness = t, 1 / deviation, fineness
        self._rate, self._turns = rate, turns
        falls = _FALL * fineness, _RARE_FALL * fineness
        self._bounds = Orders(self._upper, *falls)
        self._events = Orders(self._attained, *falls)

    def _upper(self, log_order: float, unseen: float) -> Valued:
        order = math.exp(log_order)
        return Valued(math.log(order), self._mean(order, unseen), Attained(1.0, 0.0))

    def _attained(self, log_order: float, unseen: float) -> Valued:
        order = math.exp(log_order)
        event = self._event(order, unseen)
        return Valued(math.log(order), event.ahead - order * event.behind, event)

    def _mean(self, order: float, unseen: float) -> float:
        return upper_mean(order, self.f, self.t, self._fineness, unseen / self.t)

    def _event(self, order: float, unseen: float) -> Attained:
        drawn = self._rate, self._turns
        return attained(order, self.f, self.t, self._fineness, unseen / self.t, *drawn)

    def profile(self, log_order: np.ndarray, tail: float) -> np.ndarray:
        """Upper bounds at ln a >= 0, increasing, down to a tail."""
        x = np.asarray(log_order, dtype=float)
        found = self._bounds.down_to(tail)
        nodes, values = (np.array(each) for each in zip(*(each[:2] for each in found), strict=True))
        # with the record's step revealed
        revealed = GaussianProfile(2 * self.f).delta(x) * _ROUNDING
        return np.minimum(np.minimum(falling(x, nodes, values), revealed), 1.0)

    def trade_off(self, tail: float) -> np.ndarray:
        """Probabilities of nested events, with the record at -C from above and at C from below,
        shape (2, n), from (0, 0) to (1, 1): a concave curve, the same for both directions."""
        events = [each.event for each in self._events.down_to(tail)]
        behind, ahead = np.array([(each.behind, each.ahead) for each in events]).T
        # z -> -z takes each event to one with the probabilities of the other data set
        curve = np.array(
            [
                [0.0, *behind, *(1 - ahead + 2 * _EPS), 1.0],
                [0.0, *ahead, *(1 - behind - 2 * _EPS), 1.0],
            ]
        )
        curve = np.clip(curve[:, np.lexsort((-curve[1], curve[0]))], 0.0, 1.0)
        kept: list[int] = []
        for place, (x, y) in enumerate(curve.T):
            # a coin decides between neighbours: points below a chord are not needed
            while len(kept) > 1:
                (x0, y0), (x1, y1) = curve[:, kept[-2]], curve[:, kept[-1]]
                if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):
                    break
                kept.pop()
            if not kept or y > curve[1, kept[-1]]:
                kept.append(place)
        return np.asarray(curve[:, kept])


class OppositeOnGrid(Opposite):
    """The same in 1 of t steps, by sums on grids where round-off does not show."""

    def __init__(self, t: int, deviation: float, fineness: float) -> None:
        super().__init__(t, deviation, fine_enough(deviation)[0])
        self._on_grid = fineness
        self._last_mean = self._last_event = math.inf
        falls = _FALL_ON_GRID * fineness, _RARE_FALL_ON_GRID * fineness
        self._bounds = Orders(self._upper, *falls, _GROWN)
        self._events = Orders(self._attained, *falls, _GROWN)

    def _mean(self, order: float, unseen: float) -> float:
        grid = self._grid(order, unseen, self._last_mean)
        found = None if grid is None else grid.upper_mean()
        if found is None:
            self._last_mean = min(order, self._last_mean)
            return super()._mean(order, unseen)
        return found

    def _event(self, order: float, unseen: float) -> Attained:
        grid = self._grid(order, unseen, self._last_event)
        found = None if grid is None else grid.attained()
        if found is None:
            self._last_event = min(order, self._last_event)
            return super()._event(order, unseen)
        return found

    def _grid(self, order: float, unseen: float, last: float) -> OppositeGrid | None:
        """Return the grid, for orders before the last one, from which on round-off shows."""
        # half of the places do for what is rare
        fineness = self._on_grid * (2 if unseen < _UNSEEN * _RARE else 1)
        grid = OppositeGrid(order, self.f, self.t, fineness, unseen)
        return grid if order < last and grid.size <= _MOST_PLACES else None


def fine_enough(deviation: float) -> tuple[float, ...]:
    """Return widths of cells for sums of pairs, in deviations of noise 1, that tell enough."""
    return tuple(each for each in _FINENESSES if each <= _WIDEST * deviation)


@work.remembered(32)
def is_on_grid(t: int, deviation: float) -> bool:
    """Whether the values of a step are close enough together for a grid, and steps neither few nor
    very many."""
    if not _FEW_STEPS <= t <= _MANY_STEPS or deviation > _MUCH_NOISE:
        return False
    return OppositeGrid(1.0, 1 / deviation, t, _ON_GRID[0], _UNSEEN).size <= _FEW_PLACES


@work.remembered(64)  # of questions that are equal: a search asks again and again
def opposite(
    t: int, deviation: float, fineness: float, rate: float = 1.0, turns: int = 1
) -> Opposite:
    """Return the data sets with cells of about so many deviations."""
    return Opposite(t, deviation, fineness, rate, turns)


@work.remembered(64)
def opposite_on_grid(t: int, deviation: float, fineness: float) -> OppositeOnGrid:
    """Return the data sets with a grid of this step, in deviations of the values."""
    return OppositeOnGrid(t, deviation, fineness)


def fineness_of(step: float, spread: float, deviation: float) -> float:
    """Return the width of the cells that suit a grid of losses with this spread."""
    return _finest(_CELLS * step / spread, fine_enough(deviation))


def _finest(wanted: float, allowed: tuple[float, ...]) -> float:
    """Return the widest one that is no wider than wanted, or the finest one."""
    return next((each for each in allowed if each <= wanted), allowed[-1])


def attained_pld(records: Opposite, step: float, tail: float) -> PrivacyLossDistribution:
    """Return the law of the loss that is attained, the same in both directions."""
    curve = records.trade_off(tail * _NOT_SEEN_BY_ATTACKS)
    behind, ahead = np.diff(curve)
    # differences are off by half a spacing of doubles
    return exchange_law(ahead * (1 - _EPS), behind * (1 + _EPS), step, 4 * _EPS)


@dataclass(frozen=True)
class OppositeEvent(Event):
    """One epoch of 1 of t steps where the record at C is replaced by -C among zero records."""

    t: int
    deviation: float

    @property
    def applies(self) -> bool:
        """Whether there are several steps, and cells tell enough of them."""
        return self.t > 1 and bool(fine_enough(self.deviation))

    @property
    def is_on_grid(self) -> bool:
        """Whether sums over the steps are formed on grids, which takes little work."""
        return is_on_grid(self.t, self.deviation)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        records = self._records(step)

        def profile(log_order: np.ndarray) -> np.ndarray:
            return records.profile(log_order, tail)

        return symmetric_pld(profile, step, order_grid(profile, step, tail))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return attained_pld(self._records(step), step, tail)

    def _records(self, step: float) -> Opposite:
        if self.is_on_grid:
            fineness = _finest(_CELLS_ON_GRID * step / self.spread(), _ON_GRID)
            return opposite_on_grid(self.t, self.deviation, fineness)
        return opposite(self.t, self.deviation, fineness_of(step, self.spread(), self.deviation))

    @property
    def outputs(self) -> EpochOutputs:
        return EpochOutputs(self.t, 1, 1.0, -1.0, self.deviation)

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self) -> float:
        return AllocationEvent(self.t, self.deviation).spread()


@dataclass(frozen=True)
class OppositeBlocks(ProvedEvent):
    """Upper bound of one epoch of k of t steps, k < t, where a record is replaced: the steps are
    cut at random into k nearly equal blocks, which are revealed; the record is then in 1 step of
    each block, at C against -C."""

    t: int
    k: int
    deviation: float

    @cached_property
    def blocks(self) -> list[tuple[Event, int]]:
        """Events of blocks, and how many there are of each size."""
        return [(self._of_block(size), times) for size, times in sizes_of_blocks(self.t, self.k)]

    def _of_block(self, size: int) -> Event:
        if size == 1:
            return PairEvent(WorPair(1.0, self.deviation))
        return OppositeEvent(size, self.deviation)

    @property
    def applies(self) -> bool:
        """Whether cells tell enough of the steps."""
        return bool(fine_enough(self.deviation))

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return [(event.upper(step, tail, swapped), times) for event, times in self.blocks]

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        raise UnsupportedError("an epoch with k of t steps has several upper laws; use uppers")

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self) -> float:
        return min(event.spread() for event, _ in self.blocks)

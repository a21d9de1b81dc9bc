"""Upper bounds by the value of a game: the cells that cover the choices of a step, and the grid.

The two extreme choices, those of the filler flip, are played first, on a coarse grid: they show the
value of the game with the smallest cells, and at which orders a choice matters. There every cell is
looked at, and those that gain over the extreme ones are cut. Any cover and grid are valid: this
module decides only how close the answer comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import PERCENT, Target
from dpsub.accounting.engine.fourier import ComposedLoss, check_step
from dpsub.accounting.engine.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    Profile,
    RememberedProfile,
    two_sided_pld,
)
from dpsub.accounting.engine.privacy_events import order_grid
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.blocks import BlockedGame, Rough, Snapshot
from dpsub.accounting.games.game import (
    MOST_POINTS,
    Game,
    GameCells,
    GamePlayed,
    GameValue,
    Kernels,
    divided,
)
from dpsub.errors import NumericalError

# steps of grids, in standard deviations of one loss: where a cover is sought, and the finest
_COVERING, _FINEST = 1 / 2, 1 / 64
# upper bounds that are so many times as large as lower ones tell next to nothing
_FAR_APART = 2
# work of the laws of a cell over that of an extreme choice, until some are known
_CELL_WORK = 2
# work of a law, besides the bounds at its orders
_LAW = 1e5
# blocks of steps that are followed together; work of the longest play of single steps that follows
# one of blocks
_BLOCKS, _LONGEST = 30, 2e10
# of the width: what the grid may take of it, what the cover may of the rest, and what is too little
# for a finer grid
_BY_GRID, _BY_COVER, _LITTLE = 0.6, 0.5, 0.05
# work of a play of blocks, over what a rough one takes for a pair: for each law, and besides; work
# of each block of the rough one, however small; single steps that take less than so many times what
# a rough play takes for a pair are played first with few cells
_FOR_EACH, _BESIDES, _BLOCK, _SHORT = 1.6, 14, 1.8e5, 2.2
# work on a grid of half the step
_FINER = 2.2
# what is left after a play of one cell, over what it took, for one on the next grid
_WHOLE_AGAIN = 4
# what a first play of blocks may take over what is expected: those that lose much are played again,
# in halves; and a later one, over what the one before took
_FIRST_PACE, _PACE = 1.5, 1.1
# share of the width that blocks have added, roughly, where a play of single steps is worth its work
_WORTH = 0.1
# points of a window over those of A, at most
_WINDOW = 3
# plays on one grid at most, with ever more cells
_PLAYS_ON_A_GRID = 7
# cost of cells on a fine grid over that on a coarse one, roughly
_SHOWN = 4
# cells of a cover that is worth a play on a finer grid, and where no cover of this one comes to
# within a percent
_FEW_CELLS, _FEWER_CELLS = 60, 16
# cells share a law while that adds no more than this, of what the cover may cost, and no more than
# this share of A to any mean that is looked at: means of few steps stand for others
_BY_SHARING, _RISE = 0.1, 5e-4
# of so many laws, those that are most like a cell's own are tried; cells of a cover that share one,
# roughly
_LIKE, _SHARING = 3, 1.4
# cells with this share of what a cover costs are cut
_CUT, _CUT_TWICE, _MOST_ROUNDS, _MOST_CELLS = 0.02, 0.1, 60, 400
# so many rounds that leave nearly all of what the cover costs end the search
_SLOW_ROUNDS, _SLOW = 6, 0.15
# moments of a play that are looked at, and orders at each of them, up to so many deviations
_MOMENTS, _ORDERS, _APART = 20, 40, 3.5
# standard deviations of all steps from the order that is asked for to the largest loss, and the
# share of delta that larger ones may have
_AWAY, _IN_LARGE = 5, 0.02


Group = tuple[Any, ...]
"""Cells that share a law, which dominates all of them."""


@dataclass(frozen=True, eq=False)
class FillerGame:
    """The upper bound for `steps` adaptive releases; `spread`: standard deviation of one loss,
    roughly."""

    cells: GameCells
    steps: int
    spread: float
    played: list[GamePlayed] = field(default_factory=list, repr=False)
    """The games that prove something, in the order in which they were played."""
    ended_by: list[str] = field(default_factory=list, repr=False)
    """The reason each search ended before its width was reached: effort, numerics or theory."""
    values: list[GameValue] = field(default_factory=list, repr=False)
    """The values of these games at all orders."""
    searches: dict[tuple[float | None, float | None], _CoverSearch] = field(
        default_factory=dict, repr=False
    )
    """Results of earlier searches for these targets, from which later ones go on."""

    def answer(self, target: Target, lower: float, upper: float) -> float:
        """The best upper answer, at most `upper`, until it is within the width of `lower`, or the
        next one would take more work than is left."""
        best = upper
        # numbers that leave the range of doubles end the play, as grids that are too large do: what
        # was proved stays (docs/proofs/numerics.md, "Range")
        with np.errstate(over="raise", invalid="raise"):
            reason = "theory"
            try:
                for proved in self._ends(target, lower, upper):
                    best = min(best, proved)
                    if target.gap(lower, best) <= 1:
                        return best
            except OutOfWorkError:
                reason = "effort"
            except (NumericalError, FloatingPointError, OverflowError):
                reason = "numerics"
        self.ended_by.append(reason)
        return best

    def _ends(self, target: Target, lower: float, upper: float) -> Iterator[float]:
        """Answers of ever finer games; at last that of the finest one, step by step."""
        search = self._search(target, lower, upper)
        ended: NumericalError | None = None
        cover: Sequence[Any] = []
        last = math.inf
        if search.wholes or upper > _FAR_APART * lower:
            # one cell for all choices takes little; a finer grid then shows what grids cost
            for step in (search.first_step, search.first_step / 2):
                if search.may_play_whole(step):
                    yield self._kept(search, [self.cells.whole], step, search.whole(step))
        try:
            for finer, step in enumerate(search.steps()):
                for cover in search.covers(step, _BY_COVER / 2**finer):
                    last = step
                    if not search.fits(cover, step):
                        for cover, last in search.that_fit(step):
                            yield self._proved(search, cover, last)
                        # without a budget it is the size of the grid
                        kind = OutOfWorkError if work.left() < math.inf else NumericalError
                        raise kind("no play with this cover is possible on this grid; raise effort")
                    proved = self._proved(search, cover, step)
                    yield proved
                    search.proved = proved
        except NumericalError as error:
            ended = error
        if cover and search.has_single_steps(cover, last):
            yield self._proved(search, cover, last, single=True)
        if ended is not None and not search.is_settled:
            raise ended

    def _search(self, target: Target, lower: float, upper: float) -> _CoverSearch:
        asked = target.epsilon, target.delta
        if asked not in self.searches:
            self.searches[asked] = _CoverSearch(self, target, lower, upper)
        search = self.searches[asked]
        search.target, search.lower = target, lower
        return search

    def _proved(
        self, search: _CoverSearch, cover: Sequence[Any], step: float, *, single: bool = False
    ) -> float:
        """The answer of a game, which is kept."""
        return self._kept(search, cover, step, search.value(cover, step, single=single))

    def _kept(
        self, search: _CoverSearch, cover: Sequence[Any], step: float, value: GameValue
    ) -> float:
        self.values.append(value)
        proved = value.answer(search.target)
        search.closest = min(search.closest, proved)
        groups = search.groups(cover, step)
        laws = search.plds(groups, step), search.swapped(groups, step)
        cells = [cell for group in groups for cell in group]
        by_cell = [
            [pld for group, pld in zip(groups, plds, strict=False) for _ in group] for plds in laws
        ]
        points = min(value.x.size, math.ceil(search.end / step) + 1)
        self.played.append(GamePlayed(search.target, proved, points, cells, *by_cell))
        return proved


class _CoverSearch:
    """Covers and grids for one target."""

    def __init__(self, game: FillerGame, target: Target, lower: float, upper: float) -> None:
        self.of, self.target, self.lower = game, target, lower
        self.proved = math.inf
        """The answer of the last play."""
        self.closest = math.inf
        """The answer of the best play."""
        self._pace = _FIRST_PACE
        self._cells_seen, self._cells_work = 0, 0.0
        """Cells whose laws are known, and their work, times the steps of their grids."""
        self.wholes: dict[float, float] = {}
        """The answer with one cell for all choices, on grids of these steps."""
        self._whole_work = 0.0
        self._known: dict[Any, tuple[Profile, Profile]] = {}
        self._groups: dict[tuple[tuple[Any, ...], float], list[Group]] = {}
        self._orders: dict[float, np.ndarray] = {}
        self._aims: dict[float, Rough] = {}
        self._aim_work: dict[float, float] = {}
        """The work of a play with the extreme choices, and of their laws."""
        self._single_work: dict[float, float] = {}
        """The work of a play step by step, for each cell."""
        self._gains: dict[tuple[Group, float], np.ndarray] = {}
        self._looked: dict[float, _Looks] = {}
        self._values: dict[tuple[float, tuple[Any, ...], bool], GameValue] = {}
        self._cover: list[Any] = [game.cells.whole]
        self._covers: dict[tuple[Any, ...], float] = {}
        """Covers, with the costs of their cells over the extreme choices, as a share of A."""
        # the tilt of the saddle point where one pair dominates all choices
        coarse = _COVERING if upper > _FAR_APART * lower else _COVERING / 2
        self.first_step = game.spread * coarse
        (whole,) = self.plds(self._whole, self.first_step)
        self._law_work = 0.0
        """The work of the laws of an extreme choice, times the step of their grid, at most."""
        if target.delta is not None:
            # that of the pair which dominates all choices: first bounds may be far above it
            composed = ComposedLoss([whole], [game.steps]).epsilon(target.delta)
            self.order, delta = min(upper, composed), target.delta
        else:
            assert target.epsilon is not None
            self.order, delta = target.epsilon, lower
        self.end = self._end(whole, delta)
        most = math.ceil(self.end / self.first_step)
        self.tilt = self._saddle(divided(whole, most))
        _, variance = divided(whole, most).moments(self.tilt)
        if math.sqrt(variance) < self.first_step:
            # next to all mass is at the largest loss, where few steps come to it
            self.tilt = self._saddle(whole)
        self.lost = max(delta * 1e-5 / game.steps, target.tail)

    def _saddle(self, law: PrivacyLossDistribution) -> float:
        """The tilt of the saddle point where each step has this law."""
        cumulants = ComposedLoss([law], [self.of.steps]).cumulants
        if self.target.delta is not None:
            return cumulants.tilt_at_delta(math.log(self.target.delta))
        return cumulants.tilt_at_epsilon(self.order)

    def _end(self, whole: PrivacyLossDistribution, delta: float) -> float:
        """From where on losses count as infinite, in part, and a play of single steps may give up:
        little of delta is in losses beyond, and hardly a walk from there comes to the order that is
        asked for."""
        losses, masses = whole.losses, whole.masses
        spread = math.sqrt(self.of.steps * float(np.einsum("i,i", masses, losses**2)))
        largest_first = np.argsort(-losses)
        losses, masses = losses[largest_first], masses[largest_first]
        beyond = np.cumsum(masses) - np.exp(losses) * np.cumsum(masses * np.exp(-losses))
        few = losses[self.of.steps * beyond <= _IN_LARGE * delta]
        return max(self.order + _AWAY * spread, float(few.min(initial=MAX_LOSS)))

    def steps(self) -> Iterator[float]:
        """Steps of grids, in turn: the coarsest that leaves enough of the width to the cover, as
        the extreme choices show, or that is affordable, and finer ones while they would gain
        something."""
        step, room = self.of.spread * _COVERING, _BY_GRID * self._unit
        finest = self.of.spread * _FINEST
        while step > finest and self._aim(step) - self.lower > room:
            # where the bounds of the extreme choices are loose, more than their grid matters
            apart = self._aim(step) - self.lower
            is_near = apart <= PERCENT * self._aim(step)
            cells = _FEW_CELLS if is_near else _FEWER_CELLS
            if not self._affords_half(step, cells) or not self._gains_by(step, 2 * apart):
                break
            step /= 2
        yield step
        while step > finest:
            if not self._affords_half(step, len(self._cover)):
                raise OutOfWorkError("the budget of work does not suffice; raise effort")
            if not self._gains_by(step):
                return
            step /= 2
            yield step

    def _affords_half(self, step: float, cells: int) -> bool:
        """Whether a cover of so many cells may be played on the grid of half this step."""
        self._aim(step)
        finer, laws = step / 2, math.ceil(cells / _SHARING)
        if finer not in self._aims:
            takes = self._aim_work[step] + self._play_work(laws, step)
            if not work.affords(_FINER * takes + cells * self._cell_work(finer)):
                return False
        self._aim(finer)
        return work.affords(self._play_work(laws, finer) + cells * self._cell_work(finer))

    def _gains_by(self, step: float, size: float = 0.0) -> bool:
        """Whether half of this step would gain enough for a play of its own, of the width and of
        this size; grids err by the square of their step, and what finer ones still change is a
        third of that."""
        least = _LITTLE * max(self._unit, size)
        return self._aim(step) - self._aim(step / 2) >= least

    @property
    def is_settled(self) -> bool:
        """Whether neither finer grids nor more cells would lower the answer by a percent, or to
        within one or the width of the lower bound, as the extreme choices show on the finest grid,
        the plays on others, and one choice of each cell."""
        if not self._aims:
            return False
        step = min(self._aims)
        percent = PERCENT * self.closest
        try:
            # errors of grids fall by four a halving; those of one cell for all choices are smaller
            if 2 * step not in self._aims and {step, step / 2} <= self.wholes.keys():
                by_grids = (self.wholes[step] - self.wholes[step / 2]) * 2
            else:
                by_grids = (self._aim(2 * step) - self._aim(step)) / 3
            finest = self._aim(step) - by_grids
            if self.closest - finest > percent:
                finest += self._least_cost * self._per_share
        except NumericalError:
            return False
        if not math.isfinite(finest):
            return False
        return self.closest - finest <= percent and finest - self.lower > max(self._unit, percent)

    @property
    def _least_cost(self) -> float:
        """The cost of one choice of each cell, over the extreme choices: no cover costs less."""
        grid = self.of.spread * _COVERING
        points = [self.of.cells.middle(cell) for cell in self._cover]
        gains = np.stack([self._gain((point,), grid) for point in points])
        return self._looks(grid).sure_cost(np.maximum(gains.max(axis=0), 0.0))

    def that_fit(self, step: float) -> Iterator[tuple[Sequence[Any], float]]:
        """Yield a cover of those so far, and a grid at most as fine as this one, that are likely to
        come to an end, the closest first, as the extreme choices and the looks say; then closer
        ones, if the play took less than was expected."""
        grids = [step]
        while grids[-1] < self.of.spread * _COVERING:
            grids.append(2 * grids[-1])
        closest = math.inf
        while True:
            pairs = [
                (self._aim(grid) + cost * self._per_share, cover, grid)
                for grid in grids
                for cover, cost in self._covers.items()
                if self.fits(cover, grid)
            ]
            expected, cover, grid = min(pairs, key=lambda pair: pair[0], default=(math.inf, [], 0))
            if expected >= closest:
                return
            closest = expected
            yield cover, grid

    def fits(self, cover: Sequence[Any], step: float) -> bool:
        """Whether a play on this grid is likely to come to its end."""
        self._aim(step)
        points = len(cover) * _WINDOW * self._aims[step].value.x.size
        return points <= MOST_POINTS and work.affords(self._work(cover, step))

    def _work(self, cover: Sequence[Any], step: float) -> float:
        """Estimate the work of a play with these cells."""
        self._aim(step)
        new = sum(((cell,), step) not in self._gains for cell in cover)
        play = self._pace * self._play_work(self._laws(cover, step), step)
        grouping = 0.0
        if (tuple(cover), step) not in self._groups:
            coarse = self.of.spread * _COVERING
            self._aim(coarse)
            grouping = len(cover) * (_LIKE * self._merge_work(coarse) + self._merge_work(step))
        return play + grouping + new * self._cell_work(step)

    def _cell_work(self, step: float) -> float:
        """Estimate the work of the laws of a cell on this grid."""
        if not self._cells_seen:
            return _CELL_WORK * self._law_work / step
        return self._cells_work / self._cells_seen / step

    def _merge_work(self, step: float) -> float:
        """The work of a law of several cells and of its gain, where bounds of each are known."""
        looks = self._looked.get(step)
        return self._hull_work(step) + (0.0 if looks is None else looks.work)

    def _hull_work(self, step: float) -> float:
        """The work of a law whose bounds at all orders are known."""
        return _LAW + work.NUMBER * 20 * self._orders[step].size

    def value(self, cover: Sequence[Any], step: float, *, single: bool = False) -> GameValue:
        """Return the value of the game with these cells. It is played step by step where that takes
        no more work than blocks of steps do, or if `single`."""
        key = step, tuple(cover), single
        if key in self._values:
            return self._values[key]
        value = self._played(cover, step, single=single)
        if not value.by_widest:
            self._values[key] = value
        return value

    def _played(self, cover: Sequence[Any], step: float, *, single: bool) -> GameValue:
        groups = self.groups(cover, step)
        by_blocks = self._blocks_work(len(groups), step)
        if single or self._single(groups, step).work <= by_blocks:
            return self._single(groups, step).played()
        game, before = self.game(groups, step), work.spent()
        value = game.played()
        if len(groups) > 1:
            share = 1 - value.by_widest / self.of.steps
            self._pace = _PACE * (work.spent() - before) / (share * by_blocks)
        return value

    def whole(self, step: float) -> GameValue:
        """Return the value of the game with one cell for all choices."""
        before = work.spent()
        value = self.game(self._whole, step).played()
        self.wholes[step] = value.answer(self.target)
        self._whole_work = work.spent() - before
        return value

    def may_play_whole(self, step: float) -> bool:
        """Whether it was not yet played on this grid, and what is left suffices for more."""
        return step not in self.wholes and _WHOLE_AGAIN * self._whole_work <= work.left()

    def _blocks_work(self, laws: int, step: float) -> float:
        """Estimate the work of a play of blocks."""
        rough = self._aims[step]
        return (_FOR_EACH * laws + _BESIDES) * rough.work + _BLOCK * rough.blocks

    def _play_work(self, laws: int, step: float) -> float:
        """Estimate the work of a play: of blocks, or step by step as for the extreme choices."""
        return min(self._blocks_work(laws, step), laws * self._single_work[step])

    def has_single_steps(self, cover: Sequence[Any], step: float) -> bool:
        """Whether a play of blocks may be followed by one of single steps: where it came to much
        more than the extreme choices and the costs of the cells say."""
        played = self._values.get((step, tuple(cover), False))
        cost = self._covers.get(tuple(cover))
        if played is None or cost is None:
            return False
        expected = self._aim(step) + cost * self._per_share
        by_blocks = played.answer(self.target) - expected
        if by_blocks < _WORTH * (self.closest - self.lower):
            return False
        takes = self._single(self.groups(cover, step), step).work
        shorter = self._blocks_work(self._laws(cover, step), step)
        return shorter < takes <= _LONGEST and work.affords(takes)

    def _single(self, groups: Sequence[Group], step: float) -> Game:
        laws, swapped = self.plds(groups, step), self.swapped(groups, step)
        return Game(laws, self.of.steps, self.tilt, self.end, self.lost, swapped)

    @property
    def _unit(self) -> float:
        """The width, as an answer."""
        answer = self._aim(self.of.spread * _COVERING)
        return self.target.width * (answer if self.target.delta is None else 1.0)

    def _aim(self, step: float) -> float:
        """Return the answer for the extreme choices alone, on the grid of this step."""
        if step not in self._aims:
            self.plds(self._whole, step)
            before = work.spent()
            game = self.game(self._extremes, step)
            by_law = (work.spent() - before) * step / len(self._extremes)
            self._law_work = max(self._law_work, by_law)
            rough = game.roughly(_MOMENTS)
            single = self._single(self._extremes, step).work
            self._aim_work[step] = work.spent() - before
            self._aims[step], self._single_work[step] = rough, single / len(self._extremes)
        return self._aims[step].value.answer(self.target)

    def covers(self, step: float, share: float) -> Iterator[Sequence[Any]]:
        """Yield covers for plays on this grid, until the cost of their cells is at most this share
        of the room that the grid leaves to them: often it is more than the looks at them say."""
        before, cells, least = math.inf, 0, share
        self._aim(step)
        # where a play takes less work than the laws of its cells, first with few of them; a budget
        # is better spent on the cells that the looks ask for
        is_short = self._single_work[step] < _SHORT * self._aims[step].work
        if is_short and work.left() == math.inf:
            share *= 4
        for halved in range(_PLAYS_ON_A_GRID):
            cover = self.cover(step, share / 2**halved)
            if len(cover) == cells:
                return
            yield cover
            is_close = self.proved - self._aim(step) <= least * self._room(step)
            if is_close or before - self.proved < 2 * _LITTLE * self._unit:
                return
            before, cells = self.proved, len(cover)

    def cover(self, step: float, share: float) -> Sequence[Any]:
        """Cells that cost, over the extreme choices, at most this share of what the grid leaves of
        the width; or as many as a play on this grid can afford. They are sought on a
        coarse grid first, where laws take less work."""
        coarse = self.of.spread * _COVERING
        if step < coarse:
            # finer grids show more of what cells cost
            self._refine(coarse, step, share / _SHOWN)
        self._refine(step, step, share)
        return list(self._cover)

    def _room(self, step: float) -> float:
        """Return the part of the width that this grid leaves to the cover."""
        return max(self._unit - (self._aim(step) - self.lower), _BY_COVER * self._unit)

    def _refine(self, grid: float, step: float, share: float) -> None:
        """Cut cells by what they cost on one grid, for a play on that of this step, until this is
        no more than a share of what is left."""
        looks = self._looks(grid)
        costs: list[float] = []
        if not self.fits(self._cover, step):
            return
        for _ in range(_MOST_ROUNDS):
            gains = np.stack([self._gain((cell,), grid) for cell in self._cover])
            shares = looks.shares(gains)
            costs.append(float(shares.sum()))
            self._covers[tuple(self._cover)] = costs[-1]
            if (
                costs[-1] <= share * self._room(step) / self._per_share
                or len(self._cover) > _MOST_CELLS
            ):
                break
            if (
                len(costs) > _SLOW_ROUNDS
                and costs[-1 - _SLOW_ROUNDS] - costs[-1] < _SLOW * costs[-1]
            ):
                break
            cover = self._cut(shares)
            if not self.fits(cover, step):
                break
            self._cover = cover

    def _cut(self, shares: np.ndarray) -> list[Any]:
        """Cells that cost much are cut, those that cost most twice."""
        cells = []
        for cell, share in zip(self._cover, (shares / shares.sum()).tolist(), strict=True):
            parts = [cell]
            for least in (_CUT, _CUT_TWICE):
                if share > least:
                    parts = [half for part in parts for half in self.of.cells.halves(part)]
            cells += parts
        return cells

    def _looks(self, grid: float) -> _Looks:
        """The orders at which cells are compared, on the grid of this step."""
        if grid not in self._looked:
            epsilon = self.target.epsilon
            if epsilon is None:
                epsilon = min(self._aim(grid), self.end)
            game = self.game(self._extremes, grid)
            self._aim(grid)
            self._looked[grid] = _Looks.of(self._aims[grid].snapshots, game, epsilon)
        return self._looked[grid]

    @cached_property
    def _per_share(self) -> float:
        """Return how much the answer grows where A grows by its own size, at the rate of a
        little."""
        if self.target.delta is None:
            return self._aim(self.of.spread * _COVERING)
        value = self._aims[self.of.spread * _COVERING].value
        epsilon = self._aim(self.of.spread * _COVERING)
        place = min(int(np.searchsorted(value.x, epsilon)), value.x.size - 2)
        near = np.log(value.bounds[max(0, place - 2) : place + 2])
        slope = (near[0] - near[-1]) / ((near.size - 1) * (value.x[1] - value.x[0]))
        return 1 / max(float(slope), 1e-9)

    @property
    def _extremes(self) -> list[Group]:
        return [(cell,) for cell in self.of.cells.extremes]

    @property
    def _whole(self) -> list[Group]:
        return [(self.of.cells.whole,)]

    def _laws(self, cover: Sequence[Any], step: float) -> int:
        """Number of laws that a play with this cover has, or will have."""
        known = self._groups.get((tuple(cover), step))
        return len(known) if known is not None else math.ceil(len(cover) / _SHARING)

    def groups(self, cover: Sequence[Any], step: float) -> list[Group]:
        """The cells of a cover, those together that one law serves nearly as well as one for each
        of them, as the looks say: a play takes as much for each law."""
        key = tuple(cover), step
        if key not in self._groups:
            self._groups[key] = [key[0]]
            if len(cover) > 1:
                self._groups[key] = self._served_on(step, self._grouped(cover))
        return self._groups[key]

    def _served_on(self, grid: float, groups: Sequence[Group]) -> list[Group]:
        """Return these groups, but split those that one law does not serve on this grid."""
        looks = self._looks(grid)
        by_cell = [self._gain((cell,), grid) for group in groups for cell in group]
        most = np.maximum(np.max(by_cell, axis=0), 0.0)
        allowed = looks.cost(most) + self._by_sharing / len(groups)
        kept: list[Group] = []
        for group in groups:
            gain = self._gain(group, grid)
            is_served = looks.rises_little(gain, most)
            is_served &= looks.cost(np.maximum(most, gain)) <= allowed
            kept += [group] if is_served else [(cell,) for cell in group]
        return kept

    @property
    def _by_sharing(self) -> float:
        """The most that sharing laws among cells may cost, as a share of A."""
        return _BY_SHARING * _BY_COVER * self._unit / self._per_share

    def _grouped(self, cover: Sequence[Any]) -> list[Group]:
        grid = self.of.spread * _COVERING
        looks = self._looks(grid)
        gains = np.stack([self._gain((cell,), grid) for cell in cover])
        least = self._by_sharing / len(cover)
        largest = np.maximum(gains.max(axis=0), 0.0)
        groups: list[Group] = []
        by_group = np.zeros((0, gains.shape[1]))
        # first those that cost most
        for place in np.argsort(-looks.shares(gains), kind="stable"):
            alone, gain = gains[place], gains[place]
            found = len(groups)
            most = np.maximum(by_group.max(axis=0, initial=0.0), 0.0)
            cost = looks.cost(np.maximum(most, alone)) + least
            work.spend(work.NUMBER * 2 * by_group.size)
            # a dot product might depend on the number of threads
            apart = np.einsum("gl,l->g", np.abs(by_group - alone), looks.weight)
            for like in np.argsort(apart, kind="stable")[:_LIKE].tolist():
                together = self._gain((*groups[like], cover[place]), grid)
                with_it = looks.cost(np.maximum(most, together))
                if with_it <= cost and looks.rises_little(together, largest):
                    found, gain, cost = like, together, with_it
            if found == len(groups):
                groups.append(())
                by_group = np.vstack([by_group, gain])
            groups[found] = (*groups[found], cover[place])
            by_group[found] = gain
        return groups

    def _gain(self, group: Group, grid: float) -> np.ndarray:
        """Return the gain of these cells over the extreme choices, in each look."""
        if (group, grid) not in self._gains:
            before = work.spent()
            pld = self._pld(group, grid)
            swapped = None if self.of.cells.mirrored else self._pld(group, grid, swapped=True)
            self._gains[group, grid] = self._looks(grid).gain(pld, swapped)
            if len(group) == 1:
                self._cells_seen += 1
                self._cells_work += (work.spent() - before) * grid
        return self._gains[group, grid]

    def game(self, groups: Sequence[Group], step: float) -> BlockedGame:
        """Return a game with these cells."""
        plds, swapped = self.plds(groups, step), self.swapped(groups, step)
        steps = self.of.steps
        widest = self.plds(self._whole, step) + self.swapped(self._whole, step)
        return BlockedGame(
            plds, steps, self.tilt, _BLOCKS, self.lost, swapped, self.end, self.order, widest
        )

    def plds(self, groups: Sequence[Group], step: float) -> list[PrivacyLossDistribution]:
        """Return a law for each group that dominates all of its cells."""
        return [self._pld(group, step) for group in groups]

    def swapped(self, groups: Sequence[Group], step: float) -> list[PrivacyLossDistribution]:
        """Return the laws for the other order of the data sets, where it has a value of its own."""
        mirrored = self.of.cells.mirrored
        return [] if mirrored else [self._pld(group, step, swapped=True) for group in groups]

    def _pld(self, group: Group, step: float, *, swapped: bool = False) -> PrivacyLossDistribution:
        """Return the law of a group, on the orders that suit the whole: with the same ones for all,
        larger profiles have larger bounds."""
        if step not in self._orders:
            check_step(step)
            whole, _ = self._profiles(self.of.cells.whole)
            self._orders[step] = order_grid(whole, step, self.target.tail)
        first, second = zip(*(self._profiles(cell) for cell in group), strict=True)
        if swapped:
            first, second = second, first
        work.spend(self._hull_work(step))
        return two_sided_pld(_largest(first), _largest(second), step, self._orders[step])

    def _profiles(self, cell: Any) -> tuple[Profile, Profile]:
        if cell not in self._known:
            first, second = self.of.cells.profiles(cell, self.target.tail)
            self._known[cell] = RememberedProfile(first), RememberedProfile(second)
        return self._known[cell]


@dataclass(frozen=True, eq=False)
class _Looks:
    """Orders of a play with the extreme choices, at several moments, and the share of a gain there
    that comes to the answer, as a share of A.

    Between the order asked for and the last step orders wander as losses under the tilt do.
    """

    rows: np.ndarray
    """A about each of them, from the largest loss to the smallest one, shape (looks, losses)."""
    order: int
    """Which order of the data sets it is of."""
    best: np.ndarray
    weight: np.ndarray
    chance: np.ndarray
    """The weight by sums of losses themselves, in place of a normal law, which suits the search for
    a cover: less where large losses are rare."""
    game: BlockedGame

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], game: BlockedGame, epsilon: float) -> _Looks:
        kernels, steps = game.kernels, game.steps
        law = kernels.masses[kernels.sums.argmax()]
        mean = float(np.einsum("i,i", law, kernels.losses)) / float(law.sum())
        final = snapshots[-1]
        # far out nothing is left of A
        last = int(np.flatnonzero(final.best.max(axis=0) > 0).max(initial=0))
        at_end = min(round(epsilon / kernels.step), last)
        # the larger value of both orders of the data sets counts
        order = int(final.best[:, at_end].argmax())
        size = float(final.best[order, at_end])
        if not size > 0:
            raise NumericalError("the values of the game underflow")
        rows, best, weights, chances = [], [], [], []
        walk = _Walk.of(kernels, last)
        for snapshot in snapshots[:-1]:
            left = steps - snapshot.done
            spread = kernels.deviation * math.sqrt(left)
            # most of what counts: paths that come from a loss of epsilon in all
            centre = epsilon * snapshot.done / steps
            wide = _APART * kernels.deviation * math.sqrt(snapshot.done * left / steps) + spread / 9
            low = max(0, math.floor((centre - wide) / kernels.step))
            high = min(math.ceil((centre + wide) / kernels.step), snapshot.best.shape[1] - 1)
            if high <= low:
                continue
            stride = max(1, (high - low) // _ORDERS)
            moved = walk.after(left)
            for place in range(low, high, stride):
                apart = (place * kernels.step - (epsilon - left * mean)) / spread
                density = math.exp(-apart * apart / 2) / (spread * math.sqrt(2 * math.pi))
                weights.append(snapshot.weight * density * stride * kernels.step / size)
                chances.append(snapshot.weight * moved[at_end - place] * stride / size)
                at = place + snapshot.below
                around = snapshot.padded[order, at - kernels.left : at + kernels.right + 1]
                rows.append(around[::-1])
                best.append(snapshot.best[order, place])
        work.spend(work.NUMBER * len(rows) * len(rows[0]))
        return cls(
            np.array(rows), order, np.array(best), np.array(weights), np.array(chances), game
        )

    def gain(
        self, pld: PrivacyLossDistribution, swapped: PrivacyLossDistribution | None
    ) -> np.ndarray:
        """Return the gain of this law over the extreme choices."""
        law = pld if self.order == 0 or swapped is None else swapped
        kernels = self.game.kernels
        places = np.clip(law.indices, -kernels.right, kernels.left)
        tilted = law.masses * np.exp(self.game.tilt * kernels.step * places - kernels.kappa)
        masses = np.bincount(places + kernels.right, tilted, kernels.left + kernels.right + 1)
        work.spend(self.work)
        return np.asarray(np.einsum("ij,j->i", self.rows, masses) - self.best)

    @property
    def work(self) -> float:
        """The work of a gain."""
        return work.NUMBER / 2 * self.rows.size

    def shares(self, gains: np.ndarray) -> np.ndarray:
        """Return the cost of each cell of a cover, as a share of A, from the gains of all."""
        work.spend(work.NUMBER * 2 * gains.size)
        largest = np.maximum(gains.max(axis=0), 0.0) * self.weight
        return np.bincount(gains.argmax(axis=0), largest, minlength=gains.shape[0])

    def rises_little(self, gain: np.ndarray, largest: np.ndarray) -> bool:
        """Whether a gain is nowhere much above the largest gains."""
        return bool(np.all(gain <= largest + _RISE * self.best))

    def cost(self, gains: np.ndarray) -> float:
        """Return the cost of all cells, as a share of A, from the largest gains."""
        return float(np.einsum("i,i", gains, self.weight))

    def sure_cost(self, gains: np.ndarray) -> float:
        """Return the cost that is seen by sums of losses."""
        return float(np.einsum("i,i", gains, np.minimum(self.chance, self.weight)))


class _Walk(NamedTuple):
    """The transform of one loss, under the tilt."""

    spectrum: np.ndarray
    size: int

    @classmethod
    def of(cls, kernels: Kernels, points: int) -> _Walk:
        """Of the law with the largest sum, for sums up to about so many points."""
        size = fft.next_fast_len(2 * points + kernels.left + kernels.right + 2, real=True)
        masses = kernels.masses[kernels.sums.argmax()]
        law = np.zeros(size)
        law[: kernels.left + 1] = masses[kernels.right :]
        law[size - kernels.right :] = masses[: kernels.right]
        work.spend(work.transform(size))
        return cls(fft.rfft(law), size)

    def after(self, steps: int) -> np.ndarray:
        """The masses of sums of so many losses, roughly, negative ones at the end."""
        work.spend(work.transform(self.size) + work.NUMBER * 10 * self.size)
        return np.maximum(fft.irfft(self.spectrum**steps, n=self.size), 0.0)


def _largest(profiles: Sequence[Profile]) -> Profile:
    """The pointwise largest of several profiles."""
    if len(profiles) == 1:
        return profiles[0]
    return lambda log_order: np.maximum.reduce([profile(log_order) for profile in profiles])

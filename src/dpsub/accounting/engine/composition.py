"""Compositions of privacy events, with upper and lower bounds.

A `Composition` turns the privacy loss distributions (PLDs) of its events into bounds: on one grid
(`lower`, `upper`), or on as many as are needed (`answers`). If the answer is exact they
are refined together (`brackets`), else separately (`bounds`, `attacks`). All computed bounds
are stored in `evaluations`, from which certificates are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import (
    LEAST_TAIL,
    BothEnds,
    Bracket,
    End,
    Evaluation,
    LossGrid,
    OneEnd,
    SingleGridBound,
    Target,
)
from dpsub.accounting.engine.families import Chords, KindCell, cells_of, kind_of
from dpsub.accounting.engine.fourier import Blends, ComposedLoss, check_step
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.privacy_events import Event
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.errors import ArgumentError, NumericalError

# of the work that is left, for each choice of data sets but the last one
_FIRST_CHOICES = 0.7
# steps of first grids in a standard deviation of one loss: of upper bounds alone, and of all
# others, where lower bounds lose more to rounding
_UPPER_STEPS, _STEPS = 8, 12
# of the width: what may be charged for a transform at the tilt of another target ("Many targets")
_SHARED_TRANSFORM = 1e-2
# from so many kinds on those that are alike share laws
_FEW_KINDS = 50
# width of a cell of such kinds, in units of the step over the spread
_CELL = 0.6
_KEPT = 8  # composed PLDs that are remembered: two grids, two sides, two directions
_MOST_COARSENINGS, _COARSENING = 6, 4  # of a single grid, by factors of the step
# the mass cut off is negligible next to an answer that is so many times as large
_UNSEEN_BELOW, _NEXT_TAIL = 1e12, 1e-16


@dataclass(frozen=True, eq=False)
class Composition:
    """Events of several kinds with how often each of them happens, in any order chosen in advance.

    A grid that suits one target is tried first for the next, so those close to one another should
    be neighbours.
    """

    entries: Sequence[tuple[Event, int]]
    evaluations: list[Evaluation] = field(default_factory=list, repr=False)
    """All bounds that were computed, in that order."""
    one_by_one: bool = False
    """Whether each kind has a law of its own, however many there are."""
    _built: dict[tuple[str, LossGrid, bool], ComposedLoss | None] = field(
        default_factory=dict, repr=False
    )

    _chords: dict[tuple[str, LossGrid], list[list[Chords]]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        if not self.entries:
            raise ArgumentError("a composition needs at least one event, got none")

    # What is known of the events

    @property
    def attacked(self) -> bool:
        """Whether an attack on any of the events is known."""
        return any(event.attacked for event, _ in self.entries)

    @property
    def is_exact(self) -> bool:
        """Whether both bounds are equal up to numerical error.

        They do for exact events, and for a single step whose attack attains its profile.
        """
        if all(event.exact for event, _ in self.entries):
            return True
        event, times = self.entries[0]
        return len(self.entries) == 1 and times == 1 and event.tight_for_one_step

    @property
    def largest_loss(self) -> float:
        """No loss of the composition exceeds this number, rounded up."""
        return sum(event.largest_loss * times for event, times in self.entries) * (1 + 1e-12)

    @cached_property
    def directions(self) -> tuple[bool, ...]:
        """Directions (swapped or not) to compose: one if all events are the same in both."""
        symmetric = all(event.symmetric for event, _ in self.entries)
        return (False,) if symmetric else (False, True)

    @cached_property
    def proved_directions(self) -> tuple[bool, ...]:
        """Directions to bound from above.

        An event that is symmetric from above need not be attacked symmetrically.
        """
        symmetric = all(event.upper_symmetric for event, _ in self.entries)
        return (False,) if symmetric else self.directions

    @cached_property
    def attack_choices(self) -> list[Composition]:
        """The composition that each choice of data sets attains; of one choice, this one.

        Data sets are chosen once, for all steps; events with fewer choices repeat their last one.
        """
        if all(event.attack_choices == (event,) for event, _ in self.entries):
            return [self]
        n_choices = max(len(event.attack_choices) for event, _ in self.entries)
        choices = []
        for i in range(n_choices):
            entries = []
            for event, times in self.entries:
                last = len(event.attack_choices) - 1
                entries.append((event.attack_choices[min(i, last)], times))
            choices.append(Composition(entries))
        return choices

    @cached_property
    def proofs(self) -> list[Composition]:
        """Return the bound of each of several proofs; events with fewer repeat their last one.

        A single proof has the bounds that are computed here, several have bounds of their own.
        """
        n_choices = max(len(event.upper_choices) for event, _ in self.entries)
        return [
            Composition(
                [
                    (event.upper_choices[min(i, len(event.upper_choices) - 1)], times)
                    for event, times in self.entries
                ],
                self.evaluations if n_choices == 1 else [],
            )
            for i in range(n_choices)
        ]

    @property
    def _chooses_data_sets(self) -> bool:
        return self.attack_choices != [self]

    # The unit of grid steps

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the loss of one event: the unit of grid steps.

        Of several kinds it is their mean, weighted by what each of them adds to the deviation's
        sum: a step of h adds about k s h to the variance k s^2 of k events of deviation s, so that
        it adds the same share of all variances together, however many kinds there are. By the
        smallest one, small losses next to large ones would need grids that exceed any memory.
        """
        total = sum(times * spread for spread, times in self._spreads)
        return sum(times * spread / total * spread for spread, times in self._spreads)

    @cached_property
    def _spreads(self) -> list[tuple[float, int]]:
        if self.one_by_one or len(self.entries) < _FEW_KINDS:
            return [
                (event.spread_of_many() if times >= event.many else event.spread(), times)
                for event, times in self.entries
            ]
        # one of several kinds that are roughly alike tells the spread of all
        spreads: dict[object, float] = {}
        found = []
        for event, times in self.entries:
            kind = kind_of(event)
            key = event if kind is None else tuple(round(2 * math.log(size)) for size in kind)
            if key not in spreads:
                spreads[key] = event.spread()
            found.append((spreads[key], times))
        return found

    @property
    def is_blended(self) -> bool:
        """Whether kinds that are alike share laws."""
        return bool(self._cells(1.0))

    def _cells(self, width: float) -> list[list[int]]:
        """Places of entries that are alike, where there are very many; none where there are not."""
        if self.one_by_one or len(self.entries) < _FEW_KINDS:
            return []
        return cells_of([event for event, _ in self.entries], width)

    @property
    def _smallest_spread(self) -> float:
        return min(spread for spread, _ in self._spreads)

    # One grid

    def upper(self, step: float, tail: float, swapped: bool) -> ComposedLoss:
        """The composed upper PLD of one direction."""
        composed = self._remembered("upper", LossGrid(step, tail), swapped)
        assert composed is not None
        return composed

    def lower(self, step: float, tail: float, swapped: bool) -> ComposedLoss | None:
        """The composed lower PLD of one direction; None if no attack is known.

        Events without an attack are left out, which only lowers the bound.
        """
        return self._remembered("lower", LossGrid(step, tail), swapped)

    def _remembered(self, side: str, grid: LossGrid, swapped: bool) -> ComposedLoss | None:
        work.spend(0)
        if side == "upper":
            # events that are symmetric from above have one upper PLD, which serves both directions:
            # it is composed once
            swapped = swapped and True in self.proved_directions
        key = (side, grid, swapped)
        if key not in self._built:
            check_step(grid.step)
            compose = self._composed_upper if side == "upper" else self._composed_lower
            composed = compose(grid, swapped)
            while len(self._built) >= _KEPT:
                del self._built[next(iter(self._built))]
            self._built[key] = composed
        return self._built[key]

    def _composed_upper(self, grid: LossGrid, swapped: bool) -> ComposedLoss:
        cells = self._cells(_CELL * grid.step / self.spread)
        if cells:
            return self._blended("upper", grid, swapped, cells)
        plds, counts = zip(*self._uppers(grid, swapped), strict=True)
        return ComposedLoss(plds, counts)

    def _uppers(
        self, grid: LossGrid, swapped: bool
    ) -> Iterator[tuple[PrivacyLossDistribution, int]]:
        # an event that is a composition of its own (k of t steps) gives several PLDs
        for event, times in self.entries:
            for pld, repeats in event.uppers(grid.step, grid.tail, swapped):
                yield pld, times * repeats

    def _composed_lower(self, grid: LossGrid, swapped: bool) -> ComposedLoss | None:
        grid = grid._replace(step=self.fitting_step(grid.step))
        cells = self._cells(_CELL * grid.step / self.spread)
        if cells:
            return self._blended("lower", grid, swapped, cells)
        attained = [pair for pair in self.attained(*grid, swapped) if pair[0] is not None]
        plds, counts = zip(*attained, strict=True) if attained else ((), ())
        return ComposedLoss(plds, counts) if plds else None

    def _blended(
        self, side: str, grid: LossGrid, swapped: bool, cells: list[list[int]]
    ) -> ComposedLoss:
        """Laws of kinds that are alike as mixtures of two laws (Theorem 74), and those of the
        others as they are."""
        if (side, grid) not in self._chords:
            # both directions are made of the same values
            made = [self._cell(places).chords(side, *grid) for places in cells]
            while len(self._chords) >= 2:
                del self._chords[next(iter(self._chords))]
            self._chords[side, grid] = made
        plds: list[PrivacyLossDistribution] = []
        rows: list[tuple[int, int, float, int]] = []  # of a kind: both laws, share, steps
        for places, chords in zip(cells, self._chords[side, grid], strict=True):
            cell, first = self._cell(places), len(plds)
            plds += [each.law(swapped) for each in chords]
            for place in places:
                event, times = self.entries[place]
                kind = kind_of(event)
                assert kind is not None
                rows.append((first, len(plds) - 1, cell.share(kind, side), times))
        alike = {place for cell in cells for place in cell}
        entries = [entry for place, entry in enumerate(self.entries) if place not in alike]
        others = Composition(entries) if entries else None
        if others is not None:
            laws = others._uppers(grid, swapped)
            for pld, times in laws if side == "upper" else others.attained(*grid, swapped):
                if pld is not None:
                    rows.append((len(plds), len(plds), 0.0, times))
                    plds.append(pld)
        *columns, steps = zip(*rows, strict=True)
        return ComposedLoss(plds, steps, Blends(*map(np.array, columns)))

    def _cell(self, places: Sequence[int]) -> KindCell:
        return KindCell.around(
            [kind for place in places if (kind := kind_of(self.entries[place][0]))]
        )

    def fitting_step(self, step: float) -> float:
        """The step, at most the one given, that suits the lower PLDs of all events."""
        return min(event.fitting(step) for event, _ in self.entries)

    def attained(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution | None, int]]:
        """The lower PLD of each event, None where no attack is known or none is left, and how often
        it happens."""
        plds = []
        for event, times in self.entries:
            # where what rounding takes from each loss adds up, bins exchange shares instead
            lower = event.lower_of_many if times >= event.many else event.lower
            pld = lower(step, tail, swapped)
            # of losses rarer than what rounding takes from each nothing is left
            tells = pld is not None and pld.masses.any()
            plds.append((pld if tells else None, times))
        return plds

    def forget(self) -> None:
        """Drop composed PLDs, which are large; evaluated bounds are kept."""
        self._built.clear()
        self._chords.clear()
        if len(self.proofs) > 1:
            for proof in self.proofs:
                proof.forget()
        if self._chooses_data_sets:
            for choice in self.attack_choices:
                choice.forget()

    def _single_grid_bound(self, side: str) -> SingleGridBound:
        composed_loss = self.upper if side == "upper" else self.lower

        def bound(grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
            composed = composed_loss(*grid, swapped)
            answers = np.zeros(len(targets)) if composed is None else answers_of(composed, targets)
            for target, answer in zip(targets, answers.tolist(), strict=True):
                self.evaluations.append(Evaluation(side, *grid, swapped, target, answer))
            return answers

        return bound

    def rough(self, target: Target, side: str, step: float) -> float:
        """Bound of one side from a single grid, coarser than `step` only if that is too fine."""
        if side == "lower" and self._chooses_data_sets:
            return max(choice.rough(target, side, step) for choice in self.attack_choices)
        if side == "upper" and len(self.proofs) > 1:
            return min(proof.rough(target, side, step) for proof in self.proofs)
        bound = self._single_grid_bound(side)
        directions = self.proved_directions if side == "upper" else self.directions
        # a bound from any grid holds: where the transform has too many points a coarser one
        # does, and where the budget is spent the trivial bound
        for _ in range(_MOST_COARSENINGS):
            grid = LossGrid(step, target.tail)
            try:
                return max(float(bound(grid, swapped, [target])[0]) for swapped in directions)
            except OutOfWorkError:
                break
            except NumericalError:
                step *= _COARSENING
        return target.ceiling if side == "upper" else 0.0

    # As many grids as it takes

    def answer(self, target: Target) -> Bracket:
        """Both bounds for one target, as `answers`."""
        return self.answers([target])[0]

    def answers(self, targets: Sequence[Target]) -> list[Bracket]:
        """Both bounds for each target.

        They are as close as the target wants where they are about one number; else each is as sharp
        as it wants.
        """
        if self.is_exact:
            return self.brackets(targets)
        brackets = []
        # the guarantee first: attacks get what work is left
        for upper, lower in zip(self.bounds(targets), self.attacks(targets), strict=True):
            width_met = lower.width_met and upper.width_met
            brackets.append(Bracket(lower.value, upper.value, width_met))
        return brackets

    def bound(self, target: Target) -> End:
        """Upper bound for one target, as `bounds`."""
        return self.bounds([target])[0]

    def attack(self, target: Target) -> End:
        """Lower bound for one target, as `attacks`."""
        return self.attacks([target])[0]

    def brackets(
        self, targets: Sequence[Target], directions: Sequence[bool] | None = None
    ) -> list[Bracket]:
        """Both bounds for each target where they are about one number.

        Directions are all, or those that are given.
        """
        lower, upper = self._single_grid_bound("lower"), self._single_grid_bound("upper")
        try:
            grid = LossGrid(self.spread / _STEPS, min(target.tail for target in targets))
            # the tail that the smallest delta needs serves all targets
            refinement = BothEnds(targets, lower, upper, directions or self.directions)
            return refinement.refined(grid)
        except OutOfWorkError:
            return [Bracket(0.0, target.ceiling, False) for target in targets]

    def bounds(self, targets: Sequence[Target]) -> list[End]:
        """The upper bound for each target."""
        if len(self.proofs) > 1:
            return self._smallest_bounds(targets)
        of_delta = targets[0].delta is None
        tail = min(target.tail for target in targets)
        rough = np.array([target.ceiling for target in targets])
        try:
            step = self.spread / _UPPER_STEPS
            # how small an answer is, and so what may be cut off, is known of an epsilon's delta
            # alone: of a delta's epsilon the target says it
            if of_delta:
                tail = self._unseen_tail(LossGrid(step, tail), targets, rough)
            ends = self._refined_bounds(targets, LossGrid(step, tail))
        except OutOfWorkError:
            return [End(bound, False) for bound in rough.tolist()]
        # where the budget ended before the first grid, what told how small the tail must be holds
        for i, bound in enumerate(rough.tolist()):
            if not ends[i].width_met and ends[i].value > bound:
                ends[i] = End(bound, False)
        # the shared tail may have loosened larger answers: they are sought again
        if of_delta:
            for i, target in enumerate(targets):
                if not ends[i].width_met:
                    ends[i] = self._with_its_own_tail(target, ends[i], LossGrid(step, tail))
        return ends

    def _smallest_bounds(self, targets: Sequence[Target]) -> list[End]:
        """The smallest upper bound that any proof gives, each refined on grids of its own."""
        first, *others = self.proofs
        # the first proof costs little; what it leaves of the work is for the others
        with work.share(1 / 4):
            ends = first.bounds(targets)
        refused = True
        for proof in others:
            closer = [End(target.ceiling, False) for target in targets]
            with suppress(NumericalError):
                closer = proof.bounds(targets)
            refused &= all(
                end.value == target.ceiling for end, target in zip(closer, targets, strict=True)
            )
            ends = [_least(*pair) for pair in zip(ends, closer, strict=True)]
        if refused and not all(end.width_met for end in ends):
            # the work that the others did not begin
            ends = [_least(*pair) for pair in zip(ends, first.bounds(targets), strict=True)]
        return ends

    def _refined_bounds(self, targets: Sequence[Target], grid: LossGrid) -> list[End]:
        bound = self._single_grid_bound("upper")
        refinement = OneEnd(targets, bound, self.proved_directions, "upper")
        return refinement.refined(grid, self._smallest_spread / _UPPER_STEPS)

    def _with_its_own_tail(self, target: Target, shared: End, grid: LossGrid) -> End:
        """Return the better one of an upper bound and of one with a tail that suits this target
        alone.

        The tail that the smallest answer needs keeps rare losses of many nats, at whose tilt
        round-off is visible next to larger answers.
        """
        try:
            first = LossGrid(grid.step, target.tail)
            tail = self._unseen_tail(first, [target], np.array([target.ceiling]))
            if tail <= grid.tail:
                return shared
            (alone,) = self._refined_bounds([target], LossGrid(grid.step, tail))
        except OutOfWorkError:
            return shared
        return min(shared, alone, key=lambda end: end.value)

    def _unseen_tail(self, grid: LossGrid, targets: Sequence[Target], rough: np.ndarray) -> float:
        """A tail so small that the mass cut off is negligible next to any answer.

        It is chosen by rough upper bounds, to which it lowers `rough` ("Tails and underflow").
        Where a smaller tail no longer makes the smallest bound smaller, the last one that did is
        returned: PLDs with longer tails lose more to round-off.
        """
        bound = self._single_grid_bound("upper")
        step, tail = grid
        best, best_tail = np.inf, tail
        while tail > LEAST_TAIL:
            try:
                bounds = [
                    bound(LossGrid(step, tail), swapped, targets)
                    for swapped in self.proved_directions
                ]
            except OutOfWorkError:
                raise
            except NumericalError:
                return tail
            largest = np.max(bounds, axis=0)
            np.minimum(rough, largest, out=rough)
            smallest = float(largest.min())
            if smallest > best:
                return best_tail
            # what was cut off is now 1e12 times smaller than every answer
            best, best_tail = smallest, tail
            if smallest >= tail * _UNSEEN_BELOW:
                return tail
            tail = max(min(smallest * _NEXT_TAIL, tail**2), LEAST_TAIL)
        return tail

    def attacks(
        self,
        targets: Sequence[Target],
        known_lower: Sequence[float] | None = None,
        directions: Sequence[bool] | None = None,
    ) -> list[End]:
        """The lower bound for each target; 0 where no attack is known.

        Directions are all, or those that are given. Bounds are refined only while they may overtake
        `known_lower` of an attack of another kind, which is not part of the answer.
        """
        if self._chooses_data_sets:
            return self._best_choices(targets, known_lower, directions)
        try:
            grid = LossGrid(self.spread / _STEPS, min(target.tail for target in targets))
            bound = self._single_grid_bound("lower")
            directions = directions or self.directions
            refinement = OneEnd(targets, bound, directions, "lower", known_lower)
            return refinement.refined(grid, self._smallest_spread / _STEPS)
        except OutOfWorkError:
            return [End(0.0, False)] * len(targets)

    def _best_choices(
        self,
        targets: Sequence[Target],
        known_lower: Sequence[float] | None,
        directions: Sequence[bool] | None,
    ) -> list[End]:
        """Return the largest lower bound of any choice of data sets, each refined only while it may
        be that."""
        best = [End(0.0, True, True)] * len(targets)
        known = list(known_lower or [0.0] * len(targets))
        *others, last = self.attack_choices
        for choice in (*others, last):
            # so that the last one has work left, too
            with work.share(1.0 if choice is last else _FIRST_CHOICES):
                ends = choice.attacks(targets, known, directions)
            for i, end in enumerate(ends):
                settled = best[i].settled and end.settled
                best[i] = max(best[i], end, key=lambda each: each.value)._replace(settled=settled)
            known = [max(low, end.value) for low, end in zip(known, best, strict=True)]
        return best


def _least(first: End, second: End) -> End:
    """The smaller one of two upper bounds; a proof that did not come to its end may give less."""
    least = min(first, second, key=lambda end: end.value)
    return least._replace(settled=first.settled and second.settled)


def answers_of(composed: ComposedLoss, targets: Sequence[Target]) -> np.ndarray:
    """The answers of one composition to targets in order, of one quantity, shape (targets,)."""
    share = _SHARED_TRANSFORM * min(target.width for target in targets)
    if targets[0].delta is not None:
        return composed.epsilons(np.array([target.delta for target in targets]), share)
    return composed.deltas(np.array([target.epsilon for target in targets]), share)

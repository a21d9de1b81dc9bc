"""How many records of a group are in the steps of an epoch (docs/proofs/groups.md, "Attacks with
all records").

Where equal records are at the same place, an epoch tells of the group only how many of its steps
hold how many of them: a *row* (c_0, c_1, ...), c_i the steps that hold i. The records are put into
steps one after the other, and of all rows the likeliest are kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpsub.accounting.engine.cell_masses import LAW_ERROR

_MOST_ROWS = 24  # that are kept: each has a law of its own
_MOST_WAYS = 2000  # in which the steps of one more record may meet those of the others
Row = tuple[int, ...]
_Moves = Callable[[Row, int], Iterator[tuple[Row, float]]]


@dataclass(frozen=True)
class Occupancy:
    """Rows of numbers of steps that hold 0, 1, 2, ... records of a group.

    Attributes
    ----------
    rows : tuple of tuple of int
        Each adds up to the number of steps.
    least, most : tuple of float
        Bounds of the probability of each row.
    rest : float
        Upper bound of the probability of all rows that are left out.
    """

    rows: tuple[Row, ...]
    least: tuple[float, ...] = (1.0,)
    most: tuple[float, ...] = (1.0,)
    rest: float = 0.0

    @classmethod
    def of_one(cls, t: int, k: int) -> Occupancy:
        """One record in k of t steps."""
        return cls(((t - k, k),))

    @classmethod
    def allocated(cls, t: int, k: int, group: int) -> Occupancy:
        """Records that are each in k of t steps, all choices alike, independently."""
        choices = math.comb(t, k)

        def moves(row: Row, _: int) -> Iterator[tuple[Row, float]]:
            # of the steps with i records, i > 0, some get one more, and the others are empty ones
            for drawn in product(*(range(min(k, count) + 1) for count in row[1:])):
                fresh = k - sum(drawn)
                if 0 <= fresh <= row[0]:
                    taken = (fresh, *drawn)
                    yield _moved(row, taken), math.prod(map(math.comb, row, taken)) / choices

        return cls._likeliest(_placed((t,), group, moves))

    @staticmethod
    def most_allocated(t: int, k: int, group: int) -> int:
        """Return the largest number of records, at most that of the group, whose rows are few
        enough to be known."""
        if k in (1, t):
            return group
        return min(group, 1 + int(math.log(_MOST_WAYS) / math.log(k + 1)))

    @classmethod
    def shuffled(cls, steps: int, size: int, last: int, n: int, group: int) -> Occupancy:
        """Records among n in a uniform order, which is cut into steps of `size`, but for the last
        one; what they leave of n is dropped."""
        dropped_of_all = n - (steps - 1) * size - last

        # the number in the last step is kept apart, in front
        def moves(state: Row, placed: int) -> Iterator[tuple[Row, float]]:
            in_last, row = state[0], state[1:]
            free = n - placed
            for i, count in enumerate(row):
                if count and size > i:
                    taken = tuple(int(j == i) for j in range(len(row)))
                    yield (in_last, *_moved(row, taken)), count * (size - i) / free
            if last > in_last:
                yield (in_last + 1, *row), (last - in_last) / free
            in_steps = in_last + sum(i * count for i, count in enumerate(row))
            dropped = dropped_of_all - (placed - in_steps)
            if dropped:
                yield state, dropped / free

        found, rest = _placed((0, steps - 1), group, moves)
        rows: dict[Row, float] = defaultdict(float)
        for (in_last, *others), chance in found.items():
            row = others + [0] * (in_last + 1 - len(others))
            row[in_last] += 1
            rows[tuple(row)] += chance
        return cls._likeliest((rows, rest))

    @classmethod
    def _likeliest(cls, found: tuple[dict[Row, float], float]) -> Occupancy:
        chances, rest = found
        rows = sorted(chances, key=lambda row: (-chances[row], row))
        # quotients of integers, and sums and products of a few of them
        least, most = (
            tuple(min(chances[row] * (1 + sign * LAW_ERROR), 1.0) for row in rows)
            for sign in (-1, 1)
        )
        return cls(tuple(rows), least, most, rest * (1 + LAW_ERROR))

    @property
    def steps(self) -> int:
        return sum(self.rows[0])

    @property
    def most_in_a_step(self) -> int:
        return max(len(row) for row in self.rows) - 1

    @property
    def of_a_step(self) -> np.ndarray:
        """Probabilities that one step holds 0, 1, ... records, roughly."""
        law = np.zeros(self.most_in_a_step + 1)
        for row, chance in zip(self.rows, self.least, strict=True):
            law[: len(row)] += chance * np.array(row)
        return law / law.sum()


def _moved(row: Row, taken: Row) -> Row:
    """Return the row after `taken[i]` of the steps with i records got one more."""
    more = [count - away for count, away in zip(row, taken, strict=True)] + [0]
    for i, count in enumerate(taken):
        more[i + 1] += count
    return tuple(more if more[-1] else more[:-1])


def _placed(start: Row, group: int, moves: _Moves) -> tuple[dict[Row, float], float]:
    """Return states after as many records, with their probabilities, and that of all that were
    left out."""
    found, rest = {start: 1.0}, 0.0
    for placed in range(group):
        after: dict[Row, float] = defaultdict(float)
        for state, chance in found.items():
            for state_after, share in moves(state, placed):
                after[state_after] += chance * share
        kept = sorted(after, key=lambda state: (-after[state], state))
        rest += sum(after[state] for state in kept[_MOST_ROWS:])
        found = {state: after[state] for state in kept[:_MOST_ROWS]}
    return found, rest

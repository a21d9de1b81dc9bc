"""Means of independent differences of likelihood ratios, on grids of equal steps (Theorems 61 and
89 of docs/proofs/shuffling.md).

A difference is known by the mean of what exceeds each value. On a grid it is replaced by a law for
which none of these means is smaller, so that the mean of the positive part of a sum is none either.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from balls import ONE, ZERO, NotCovered
from flint import arb, arb_poly
from work import fits, spend

MOST_PLACES = 2**17  # places of the grid of one order
# what cutting a tail to the left may add to the mean of a sum, of whose positive part it is as
# small a share as that is rare
UNSEEN_ON_THE_LEFT = arb(2) ** -44


@dataclass(frozen=True)
class Difference:
    """The law of Z, a difference X - a X' of likelihood ratios at the order a, of mean 1 - a."""

    a: arb

    def above(self, b: arb) -> arb:
        """E (Z - b)_+, b >= 0."""
        raise NotImplementedError

    def below(self, c: arb) -> arb:
        """E (-Z - c)_+, c >= 0."""
        raise NotImplementedError

    def over(self, b: arb) -> arb:
        """E (Z - b)_+ at any b: for b = -c it is 1 - a + c + E (-Z - c)_+."""
        return self.above(b) if b >= 0 else ONE - self.a - b + self.below(-b)


@dataclass(frozen=True)
class Sum:
    """A sum on the grid: masses at (start + i) units, of total 1, and the mean `excess` of what was
    cut off above the last place, in units.

    A value above the last place is moved down to it and its excess charged, as (x + y)_+ <= x_+ +
    y_+. A value below the first place is moved up to it.
    """

    start: int
    masses: arb_poly
    excess: arb

    def plus(self, other: "Sum", right: arb, left: arb) -> "Sum":
        """The sum of both, independent, its tails cut where they move values by no more than so
        many places on average."""
        length = self.masses.length() + other.masses.length()
        fits(length, 2 * MOST_PLACES, "places of the grid of a sum of differences")
        spend(length * length.bit_length(), "sums of differences")
        masses = (self.masses * other.masses).coeffs()
        excess = self.excess + other.excess
        last = len(masses) - 1 - tail_length(reversed(masses), right)
        for place in range(last + 1, len(masses)):
            excess += (place - last) * masses[place]
            masses[last] += masses[place]
        del masses[last + 1 :]
        first = tail_length(masses, left)
        masses[first] += sum(masses[:first], ZERO)
        return Sum(self.start + other.start + first, arb_poly(masses[first:]), excess)

    def mean_above_zero(self) -> arb:
        """Upper bound of the mean of the positive part, in units."""
        return self.excess + sum(
            (mass * (self.start + i) for i, mass in enumerate(self.masses) if self.start + i > 0),
            ZERO,
        )


def tail_length(masses: Iterable[arb], unseen: arb) -> int:
    """Number of masses, from the end where they begin, that can be moved to the next one such that
    values move by at most `unseen` places on average."""
    moved, passed = ZERO, ZERO
    for count, mass in enumerate(masses):
        passed += mass
        moved += passed
        if not moved <= unseen:
            return count
    return 0


@dataclass(frozen=True)
class Window:
    """Z on the grid of one unit between two of its places, below and above 0: what is beyond the
    last one is charged, and what is below the first one is moved up to it.

    Its law has W(b) = E (Z - b)_+ at the places of the grid, linear between them: what is convex is
    below its chords, so each mass is moved to both neighbours with its mean kept. The masses are
    second differences of W.
    """

    law: Difference
    unit: arb
    first: int
    last: int

    @classmethod
    def of(cls, law: Difference, unit: arb, unseen: arb) -> "Window":
        first = -place_below(lambda i: law.below(i * unit), UNSEEN_ON_THE_LEFT)
        return cls(law, unit, first, place_below(lambda i: law.above(i * unit), unseen))

    def on_grid(self) -> Sum:
        W = [self.law.over(i * self.unit) for i in range(self.first, self.last + 1)]
        falls = [ONE, *((W[i] - W[i + 1]) / self.unit for i in range(len(W) - 1)), ZERO]
        masses = [falls[i] - falls[i + 1] for i in range(len(W))]
        return Sum(self.first, arb_poly(masses), W[-1] / self.unit)


def place_below(value: Callable[[int], arb], unseen: arb) -> int:
    """The first place, from 1 on, where a value that falls is small enough."""
    if not value(MOST_PLACES) <= unseen:
        raise NotCovered("differences on a grid of so many places")
    low, high = 0, 1
    while not value(high) <= unseen:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value(middle) <= unseen else (middle, high)
    return high


def means_above_zero(
    window: Window, counts: Sequence[int], right: arb, left: arb = UNSEEN_ON_THE_LEFT
) -> list[arb]:
    """Upper bounds of E ((Z_1 + ... + Z_k)/k)_+ for several k. Cutting the tails of a sum may move
    it by `right` and `left` places."""
    doubled, means = [window.on_grid()], []
    for k in counts:
        while 2 ** len(doubled) <= k:
            doubled.append(doubled[-1].plus(doubled[-1], right, left))
        total = None
        for place, each in enumerate(doubled):
            if k >> place & 1:
                total = each if total is None else total.plus(each, right, left)
        means.append(total.mean_above_zero() * window.unit / k)
    return means

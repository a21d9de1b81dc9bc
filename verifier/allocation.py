"""Random allocation of a record to one of t steps: laws of the likelihood ratio (section 4.6 of docs/accounting.md).

Let R >= 0 be a mean of log-normal variables X_j under Q, ER = 1, so that (6) reads H_a(P || Q) = E(R - a)_+ and H_a(Q || P) = a E(1/a - R)_+.
For a law of masses m at ratios r, with `lost` beside them, let

    C(a) = sum m (r - a)_+ + lost,    D(a) = sum m (a - r)_+.

Lemma (above).  Let C(a) >= E(R - a)_+ and D(a) >= E(a - R)_+ for all a >= 0; likewise C' and D' for R', independent of R.  Then for 0 < w < 1 the
law of all w r + w' r', w' = 1 - w, of masses m m' and with the loss w lost M' + w' lost' M, M and M' the total masses, is above the mean w R + w' R'.
Proof: D(a) >= a - 1 gives M >= 1 as a grows, and C(0) >= 1, so C(a) >= 1 - a for a < 0 as well.  So E(w R + w' R' - a)_+ is at most
sum m E(w r + w' R' - a)_+ + w lost, and so on for R'.  D likewise, without loss.

Lemma (below).  With both inequalities reversed and nothing lost the law of all w r + w' r' is below the mean: M <= 1 and sum m r <= 1 follow likewise.

*Above* is shown at the ratios of the new law: between them C and D are linear, what they are above is convex.  *Below*: between two ratios C of the new
law is S - a T, with S and T its mass under P and Q to the right; the event "beyond the edge" gives such a line S' - a T' that is nowhere above what is
attained, and two lines are compared at both ends of the interval.  Any edge will do.

A law that is so by a factor alone, I C(a) >= E(R - a)_+ and so on, counts with its masses and loss times I; factors multiply as laws are joined.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from cells import normal_below
from flint import arb, fmpq

UNITS = 1074  # every double is a multiple of 2^-1074


@dataclass(frozen=True)
class Parted:
    """Masses under P and Q of the ratios beyond a place, and of those up to it."""

    right_p: arb
    right_q: arb
    left_p: arb
    left_q: arb

    def above(self, a) -> arb:
        """What the ratios beyond the place contribute to C(a) where all of them exceed a; in any case no more than C(a)."""
        return self.right_p - a * self.right_q

    def under(self, a) -> arb:
        """Likewise those up to the place to D(a)."""
        return a * self.left_q - self.left_p


class Ratios:
    """A law of likelihood ratios."""

    def __init__(self, ratios: list[float], masses: list[float], lost: float = 0.0):
        self.ratios = ratios
        self.lost = arb(lost)
        plain = [arb(m) for m in masses]
        tilted = [m * r for m, r in zip(plain, ratios, strict=True)]
        self._right = [list(accumulate(reversed(each), initial=arb(0)))[::-1] for each in (tilted, plain)]
        self._left = [list(accumulate(each, initial=arb(0))) for each in (tilted, plain)]

    def parted(self, i: int) -> Parted:
        """Between the ratios before the i-th one and those from it on."""
        return Parted(*(each[i] for each in (*self._right, *self._left)))

    def beyond(self, a: float) -> Parted:
        """At a: the ratios above a are beyond it."""
        return self.parted(bisect_right(self.ratios, a))

    @property
    def total(self) -> arb:
        """All mass under Q."""
        return self._right[1][0]

    def above(self, a: arb) -> arb:
        """C(a), the largest of its linear pieces."""
        pieces = [self.parted(i).above(a) for i in self._near(a)]
        return largest(pieces) + self.lost

    def under(self, a: arb) -> arb:
        """D(a), the largest of its linear pieces."""
        return largest([self.parted(i).under(a) for i in self._near(a)])

    def _near(self, a: arb) -> range:
        i = bisect_right(self.ratios, float(a.mid()))
        return range(max(i - 2, 0), min(i + 3, len(self.ratios) + 1))


@dataclass(frozen=True)
class LogNormal:
    """X = exp(z/s^2 - 1/(2 s^2)) of one step, z ~ N(0, s^2) under Q and N(1, s^2) under P; `distance` is 1/s."""

    distance: arb

    lost = arb(0)
    total = arb(1)

    def beyond(self, a: float) -> Parted:
        """X > a is a half-line of z."""
        if a <= 0:
            return Parted(arb(1), arb(1), arb(0), arb(0))
        place = arb(a).log() / self.distance
        half = self.distance / 2
        right_p, right_q = normal_below(half - place), normal_below(-half - place)
        return Parted(right_p, right_q, normal_below(place - half), normal_below(place + half))


class Mean:
    """w r + w' r' of two independent laws, w and w' their shares of the terms; pairs are not listed, but summed by runs."""

    def __init__(self, one: Ratios, other: Ratios, terms: int, others: int):
        self.one, self.other = one, other
        self.terms = terms + others
        self.share = arb(fmpq(terms, self.terms))
        self.other_share = arb(fmpq(others, self.terms))
        self.total = one.total * other.total
        self.lost = self.share * one.lost * other.total + self.other_share * other.lost * one.total
        self._ones = [terms * units(r) for r in one.ratios]
        self._others = [others * units(r) for r in other.ratios]

    @cached_property
    def _before(self) -> list[tuple[arb, arb]]:
        return [(self.one.parted(i).left_p, self.one.parted(i).left_q) for i in range(len(self._ones) + 1)]

    def beyond(self, a: float) -> Parted:
        """At a: down the first law, along the stairs that part the pairs, a run of ratios that meet the same others at a time."""
        border = self.terms * units(a)
        right_p = right_q = left_p = left_q = arb(0)
        stop = len(self._ones)
        while stop > 0:
            j = bisect_right(self._others, border - self._ones[stop - 1])
            start = bisect_right(self._ones, border - self._others[j], 0, stop) if j < len(self._others) else 0
            run_p = self._sum(start, stop, 0)
            run_q = self._sum(start, stop, 1)
            met = self.other.parted(j)
            right_q += run_q * met.right_q
            left_q += run_q * met.left_q
            right_p += self.share * run_p * met.right_q + self.other_share * run_q * met.right_p
            left_p += self.share * run_p * met.left_q + self.other_share * run_q * met.left_p
            stop = start
        return Parted(right_p, right_q, left_p, left_q)

    def _sum(self, start: int, stop: int, side: int) -> arb:
        return self._before[stop][side] - self._before[start][side]


def units(x: float) -> int:
    """x exactly, so that pairs are compared without rounding."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (UNITS - denominator.bit_length() + 1)


def largest(values: list[arb]) -> arb:
    """A ball of the maximum."""
    found = values[0]
    for each in values[1:]:
        found = found.max(each)
    return found


def factor_above(new: Ratios, made) -> arb:
    """I >= 1 such that `new` times I is above what it is made from; infinite where there is none."""
    places = [new.beyond(a) for a in new.ratios]
    needed = [(made.total, new.total)]
    for a, has in zip(new.ratios, places, strict=True):
        must = made.beyond(a)
        needed.append((must.above(a) + made.lost, has.above(a) + new.lost))
        needed.append((must.under(a), has.under(a)))
    everything = made.beyond(0.0)
    needed.append((everything.above(0) + made.lost, new.beyond(0.0).above(0) + new.lost))
    factor = arb(1)
    for must, has in needed:
        if must <= has:
            continue
        if not has > 0:
            return arb.pos_inf()
        factor = factor.max(must / has)
    return factor.upper()

"""Shuffled epochs whose step is hidden: Theorems 49, 61 and 76 of docs/proofs/shuffling.md, with
Lemmas 52 and 60, next to Theorems 19 and 89.

A part names some orders a and, for each, a number of steps k and the unit of a grid, or a tilt and
cuts. Any choice is valid: Theorem 61, or 76, bounds H_a there by a number that is computed here.
For some numbers of steps it holds the laws of Theorem 49, which bound H_a at the kinks of the
part's law. Chords join these bounds, those of Theorem 89 (`null_clones`), what Theorem 19 gives at
the kinks, and the mirror images of all: H is convex.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from balls import ONE, ZERO, Refuted, larger, normal_tail, positive_part, smaller
from flint import arb
from means import UNSEEN_ON_THE_LEFT, Difference, Window, means_above_zero
from null_clones import bounds_by_theorem_89, distance, shuffled_steps
from question import Release
from references import ComposedProfile, by_reference, in_single_steps
from theorems import Case, Theorem, held_against_chords, orders_from_one
from work import fits, spend

from profiles import Order, gaussian

CELLS = 32  # cells of each of the two numbers over which the supremum in Lemma 52 is taken
MOST_VALUES = 1_000_000  # values on all grids of a part: a minute or two
MOST_LEVELS = 200  # levels of weights of a part: a second for 40 of them
MOST_EXPONENTIALS = 20_000_000  # of all laws of a part by Theorem 76: a minute or so
OF_A_VALUE = 30  # a closed form takes as long as so many exponentials
# What cutting a tail to the right may add to a mean, as a share of what is charged, or of the
# masses that are negligible next to delta.
UNSEEN, UNSEEN_OF_NEGLIGIBLE = arb(2) ** -34, arb(2) ** 25


# --- What one step tells of a place (Lemma 52) ----------------------------------------------------


def leak(ratio: arb, s: arb) -> arb:
    """Bound of h(c), c >= 1: the supremum over R is taken on cells.

    Terms that fall with R are taken at the left end of a cell and those that grow with R at the
    right one: R of at least `left` makes E X^2 at most 1 - left^2, and c' at least that of `left`.
    """
    by_pairs, most = gaussian(Order(ratio - 1), 2 / s), ZERO
    for cell in range(CELLS):
        left, right = arb(cell) / CELLS, arb(cell + 1) / CELLS
        square = ONE - left * left
        order = Order(ratio * (-square / (2 * s * s)).exp() - 1)
        most = larger(most, largest_mean(order, (1 + right) / s, square / (s * s)))
    return smaller(by_pairs, most)


def largest_mean(order: Order, farthest: arb, square: arb) -> arb:
    """Bound of sup E G(c', X) over X in [0, farthest] with E X^2 <= square, by lines A + B X^2 >=
    G.

    G grows with X: up to a place A is its value there, and B the largest G / X^2 beyond it, on
    cells with G at their right end and X at their left one. The best place counts.
    """
    unit = farthest / CELLS
    values = [ZERO, *(gaussian(order, edge * unit) for edge in range(1, CELLS + 1))]
    best, steepest = values[CELLS], ZERO
    for edge in range(CELLS - 1, 0, -1):
        steepest = larger(steepest, values[edge + 1] / (edge * unit) ** 2)
        best = smaller(best, values[edge] + steepest * square)
    return best


# --- The worst difference (Lemma 60) --------------------------------------------------------------


@dataclass(frozen=True)
class WorstDifference(Difference):
    """The law of Z at the order a, lengths over s."""

    d: arb
    f: int  # 1 or 2, times d
    g: int

    def above(self, b: arb) -> arb:
        """E (Z - b)_+, b >= 0."""
        return self._part(ONE, self.a, self.f, b)

    def below(self, c: arb) -> arb:
        """E (-Z - c)_+, c >= 0."""
        return self._part(self.a, ONE, self.g, c)

    def _part(self, one: arb, other: arb, far: int, b: arb) -> arb:
        """E (one e_f - other e_(f - d) - b)_+, f = far d; the value is positive right of some t."""
        d, f = self.d, far * self.d
        if far == 1:  # e_0 = 1
            level = (other + b) / one
        else:  # e_2d = e_d^2 exp(-d^2): a quadratic equation for e_d
            shrunk = one * self._shrink
            level = (other + (other * other + 4 * shrunk * b).sqrt()) / (2 * shrunk)
        t = level.log() / d + d / 2
        if far == 1:
            return one * normal_tail(t - f) - (other + b) * normal_tail(t)
        return one * normal_tail(t - f) - other * normal_tail(t - f + d) - b * normal_tail(t)

    @cached_property
    def _shrink(self) -> arb:
        return (-self.d * self.d).exp()


# --- The bound of an epoch ------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """Order a = 1 + u of a part, with the number of steps k and the unit of the grid for it."""

    u: arb
    k: int
    unit: arb


def read_orders(rows: list[dict], T: int) -> list[Chosen]:
    chosen = []
    for row in rows:
        loss, unit, k = row["loss"], row["unit"], row["steps"]
        if k > T - 1:
            raise Refuted(f"theorem 61 needs k <= T - 1, got k = {k} of T = {T}")
        chosen.append(Chosen(arb(loss).expm1().mid(), k, arb(unit)))
    return chosen


def differences(release: Release, adjacency: str, a: arb) -> list[WorstDifference]:
    """Differences of Lemma 60, of either order of the data sets where they differ."""
    if adjacency == "substitute":
        return [WorstDifference(a, 2 / release.s, 1, 1)]
    return [WorstDifference(a, 1 / release.s, f, g) for f, g in ((2, 1), (1, 2))]


def charge(s: arb, T: int, k: int) -> arb:
    """Charge h tau of Theorems 49 and 61 for k of T steps, k <= T - 1."""
    tau = gaussian(Order(ZERO), 2 * arb(2).sqrt() / s)
    return leak(arb(T - 1) / k, s) * tau


def bounds_by_theorem_61(case: Case, T: int) -> list[tuple[arb, arb]]:
    """Points (a, bound of H_a) by Theorem 61 at the orders of a part."""
    chosen = read_orders(case.part["orders"], T)
    spend(100 * len(chosen), "orders of Theorem 61")
    charges = {k: charge(case.release.s, T, k) for k in {each.k for each in chosen}}
    work = []
    for each in chosen:
        a = ONE + each.u
        charged = (1 + a) * charges[each.k]
        unseen = larger(UNSEEN * charged, UNSEEN_OF_NEGLIGIBLE * case.negligible)
        laws = differences(case.release, case.adjacency, a)
        windows = [Window.of(law, each.unit, unseen) for law in laws]
        work.append((a, each.k, charged, unseen, windows))
    values = sum(window.last - window.first for *_, windows in work for window in windows)
    fits(values, MOST_VALUES, "places of grids of Theorem 61")
    bounds = []
    for a, k, charged, unseen, windows in work:
        mean = ZERO
        for window in windows:
            mean = larger(mean, *means_above_zero(window, [k], unseen / window.unit))
        bounds.append((a, mean + charged))
    return bounds


# --- Each weight at its price (Theorem 76) --------------------------------------------------------


@dataclass(frozen=True)
class CutLaw:
    """Z on some values, 0 among them, of which those from 0 on are places at which it may be cut.

    As in a `Window` its law has W(v) = E (Z - v)_+ at these values, linear between them. A value
    below the first one is moved up to it. `falls` are P(Z > v) on the law between each value and
    the next, `left` is the number of values below 0.
    """

    values: list[arb]
    W: list[arb]
    falls: list[arb]
    left: int

    @classmethod
    def of(cls, law: Difference, places: list[arb], last: int, unseen: arb) -> "CutLaw":
        """The law on places from 0 to the last one where it is cut, and on their like below 0, of
        which those are left out beyond which `unseen` is left at most."""
        below = places[1:]
        left = 1 + bisect_left(below, True, key=lambda c: bool(law.below(c) <= unseen))
        values = [*(-c for c in reversed(below[:left])), *places[: last + 1]]
        W = [law.over(v) for v in values]
        pairs = zip(pairwise(values), pairwise(W), strict=True)
        falls = [(one - other) / (after - before) for (before, after), (one, other) in pairs]
        return cls(values, W, falls, len(values) - last - 1)

    def above(self, place: int) -> arb:
        """m(b), b the value of a place."""
        return self.W[self.left + place]

    def value(self, place: int) -> arb:
        return self.values[self.left + place]

    def log_moments(self, theta: arb, places: list[int]) -> list[arb]:
        """K_b(theta), b the values of some places: E e^(theta min(Z, b)) is e^(theta v) at the
        first value, and its rise to each of the next ones times the mass that is above."""
        last = self.left + max(places)
        powers = [(theta * v).exp() for v in self.values[: last + 1]]
        means = [powers[0]]
        for fall, (before, after) in zip(self.falls, pairwise(powers), strict=False):
            means.append(means[-1] + fall * (after - before))
        return [means[self.left + place].log() for place in places]


@dataclass(frozen=True)
class Priced:
    """What Theorem 76 leaves free for one law: a tilt, levels from c_0 on with h there, the place
    of beta, and those of the cuts b_1, ..., b_r."""

    tilt: arb
    levels: list[arb]
    leaks: list[arb]
    first_cut: int
    cuts: list[int]

    @property
    def last(self) -> int:
        """The last place of a cut."""
        return max(self.first_cut, *self.cuts)

    def exponentials(self, places: int) -> int:
        """Number of exponentials that the bound takes, at most, for so many places."""
        return (places + self.last + 1) * (OF_A_VALUE + len(self.levels) + 1)

    def bound(self, law: CutLaw, T: int) -> arb:
        t, first, (level, *levels), cuts = self.tilt, self.first_cut, self.levels, self.cuts

        def moments(c: arb, places: list[int]) -> list[arb]:
            """T/c K_b(t c/T) = u(c, b)."""
            return [mean * T / c for mean in law.log_moments(t * c / T, places)]

        def price(u: arb) -> arb:
            """A = e^u / (e t)."""
            return (u - 1).exp() / t

        common, beyond_first = cuts[0], law.above(first)
        (exponent,) = moments(level, [common])
        least = price(exponent)
        grown = (positive_part(t * law.value(first) - exponent) / T).exp()
        (log_first,) = law.log_moments(t / T, [first])
        of_first = larger(ONE, (log_first - exponent / T).exp()) + t / T * grown * beyond_first
        total = law.above(common) + of_first * least + beyond_first / T

        paid, slope = ZERO, ZERO
        for place, (c, h) in enumerate(zip(levels, self.leaks, strict=True)):
            # the chords on either side of a level each have the cut of their weights
            here = cuts[place : place + 2]
            most = ZERO
            for cut, u in zip(here, moments(c, here), strict=True):
                by_cut = positive_part(law.above(cut) - law.above(common))
                by_moment = grown * positive_part(price(u) - least)
                most = larger(most, c * (by_cut + by_moment))
            steeper = larger(slope, (most - paid) / (c - level))
            total += (steeper - slope) * h
            level, paid, slope = c, most, steeper
        return total


def read_priced(row: dict, levels: list[arb], leaks: list[arb], places: int) -> Priced:
    start, cuts = row["level"], row["cuts"]
    if len(cuts) != len(levels) - 1 - start:
        raise Refuted(f"theorem 76 needs a cut for each level after the first, got {len(cuts)}")
    priced = Priced(arb(row["tilt"]), levels[start:], leaks[start:-1], row["first_cut"], cuts)
    if priced.last >= places:
        raise Refuted(f"theorem 76 needs cuts that are among the {places} places")
    return priced


def read_levels(weights: dict, T: int) -> list[arb]:
    """Levels c >= 1 that rise, as the file's form has it, up to T."""
    levels = weights["levels"]
    if levels[-1] != T:
        raise Refuted(f"theorem 76 needs levels up to T = {T}, got {levels[-1]}")
    if weights["places"][0] != 0:
        raise Refuted("theorem 76 needs places from 0 on")
    fits(len(levels), MOST_LEVELS, "levels of Theorem 76")
    return [arb(c) for c in levels]


def bounds_by_theorem_76(case: Case, T: int) -> list[tuple[arb, arb]]:
    """Points (a, bound of H_a) by Theorem 76 at the orders of a part."""
    weights = case.part.get("weights")
    if weights is None:
        return []
    levels, places = read_levels(weights, T), weights["places"]
    spend(CELLS * CELLS * OF_A_VALUE * len(levels), "levels of Theorem 76")
    leaks = [leak(c, case.release.s) for c in levels]
    work, count = [], 0
    for row in weights["orders"]:
        a = ONE + arb(row["loss"]).expm1().mid()
        laws = differences(case.release, case.adjacency, a)
        if len(laws) != len(row["laws"]):
            raise Refuted(f"theorem 76 has {len(laws)} laws under {case.adjacency}")
        chosen = [read_priced(each, levels, leaks, len(places)) for each in row["laws"]]
        count += sum(priced.exponentials(len(places)) for priced in chosen)
        work.append((a, arb(row["unit"]), list(zip(laws, chosen, strict=True))))
    fits(count, MOST_EXPONENTIALS, "exponentials of Theorem 76")
    spend(count, "moments of Theorem 76")
    bounds = []
    for a, unit, pairs in work:
        most = ZERO
        for law, priced in pairs:
            # what is moved up changes no exponent by more than t times its mean
            unseen = UNSEEN_ON_THE_LEFT / priced.tilt
            cut_law = CutLaw.of(law, [p * unit for p in places], priced.last, unseen)
            most = larger(most, priced.bound(cut_law, T))
        bounds.append((a, most))
    return bounds


# --- By way of another record (Theorem 49) --------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """Epoch in which another record stands in for the differing one, which is in 1 of k steps.

    `ways` are the profiles there and back, for both orders of the data sets where they differ.
    """

    ways: list[tuple[ComposedProfile, ComposedProfile]]
    charged: arb

    def bound(self, order: Order) -> arb:
        most = ZERO
        for there, back in self.ways:
            most = larger(most, by_reference(there, back, order))
        return most + (1 + order.a) * self.charged


def read_reference(row: dict, case: Case, T: int) -> Reference:
    k, s = row["steps"], case.release.s
    if k > T - 1:
        raise Refuted(f"theorem 49 needs k <= T - 1, got k = {k} of T = {T}")

    def profile(of: str, distance: int, direction: str) -> ComposedProfile:
        if of not in row:
            raise Refuted(f"theorem 49 needs {of!r} under {case.adjacency}")
        rows = row[of][direction]
        return in_single_steps(rows, k, 1, distance / s, direction, case.negligible)

    # the other record is up to 2 apart from a record, and up to 1 from one that contributes 0
    there, back = profile("record", 2, "forward"), profile("record", 2, "backward")
    ways = [(there, back)]
    if case.adjacency == "zero_out":
        empty, from_empty = profile("empty", 1, "forward"), profile("empty", 1, "backward")
        ways = [(there, from_empty), (empty, back)]
    return Reference(ways, charge(s, T, k))


def bounds_by_theorem_49(case: Case, T: int) -> list[tuple[arb, arb]]:
    """Points (a, bound of H_a) by Theorem 49 at order 1 and the kinks of a part's law, for all of
    its references."""
    references = [read_reference(row, case, T) for row in case.part["references"]]
    return [
        (order.a, reference.bound(order))
        for reference in references
        for order in orders_from_one(case)
    ]


def theorem_61(case: Case) -> arb:
    """Shortfall by Theorems 61, 76, 49 and 89, next to Theorem 19."""
    T = shuffled_steps(case)
    points = [
        *bounds_by_theorem_61(case, T),
        *bounds_by_theorem_76(case, T),
        *bounds_by_theorem_49(case, T),
        *(bounds_by_theorem_89(case, T) if "clones" in case.part else []),
    ]
    return held_against_chords(case, distance(case), points)


THEOREMS = {"61": Theorem("shuffling", theorem_61)}

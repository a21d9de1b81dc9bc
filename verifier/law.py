"""Discretised laws: their profile at its kinks, composition, and the profile of what is
composed."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, reduce

from balls import ONE, ZERO, Refuted, larger, positive_part, smaller
from flint import arb, arb_poly
from work import LONGEST, fits, spend


@dataclass(frozen=True)
class Law:
    """Masses at the losses offset + index step, in strictly increasing order, and a mass at
    infinity."""

    step: float
    offset: float
    indices: list[int]
    masses: list[arb]
    infinity: float

    @property
    def reach(self) -> int:
        """Bound of all indices, on either side of 0."""
        return max(-self.indices[0], self.indices[-1]) + 1

    def losses(self) -> list[arb]:
        step, offset = arb(self.step), arb(self.offset)
        return [offset + index * step for index in self.indices]

    def total(self) -> arb:
        """The whole mass, that at infinity with it."""
        return sum(self.masses, arb(self.infinity))

    @cached_property
    def suffixes(self) -> list[tuple[arb, arb, arb]]:
        """For every kink, from the last, its loss x_j, and S, T of the losses from x_j on.

        Right of the previous kink and up to x_j the profile is F(a) = S - a T.
        """
        S, T = arb(self.infinity), ZERO
        rows = []
        for loss, mass in zip(reversed(self.losses()), reversed(self.masses), strict=True):
            S += mass
            T += mass * (-loss).exp()
            rows.append((loss, S, T))
        return rows


def read_law(data: dict, where: str) -> Law:
    """The law of a part, its equal indices merged: so its kinks, and the lines of its profile, are
    no more than its losses.

    The schema has seen to masses of at least 0, one for each index, indices that do not fall, and a
    step above 0.
    """
    indices: list[int] = []
    masses: list[arb] = []
    for index, mass in zip(data["indices"], data["masses"], strict=True):
        if indices and indices[-1] == index:
            masses[-1] += arb(mass)
            continue
        indices.append(index)
        masses.append(arb(mass))
    fits(indices[-1] - indices[0] + 1, LONGEST, f"places of the grid of the law of {where}")
    return Law(data["step"], data["offset"], indices, masses, data["infinity"])


def shortfall_above(law: Law, profile, negligible: arb) -> arb:
    """The largest H(a) - F(a), or 0: with so much more mass at infinity the law dominates.

    H is convex, 1 at a = 0 and falls; F is linear between kinks and constant beyond the last one.
    So a = 0 and the kinks are all orders that need a look. `profile` (loss, order, enough) bounds H
    at order e^loss from above, and need not be sharper than `enough`.

    A law that is too small somewhere would have to be so at an order that is not looked at. Without
    masses there would be none but a = 0: a law has one loss at least. A value that is no number
    counts as infinity in `larger`.
    """
    spend(len(law.masses), "orders of a law")
    rows = []
    S, T = arb(law.infinity), ZERO
    for loss, S_here, T_here in law.suffixes:
        order = loss.exp()
        F = S - order * T
        H = profile(loss, order, F.lower() + negligible)
        rows.append((order, F, larger(ZERO, positive_part(H - F))))
        S, T = S_here, T_here
    rows.append((ZERO, law.total(), positive_part(ONE - law.total()).upper()))
    return reduce(larger, missing_by_chords(rows[::-1], negligible))


def missing_by_chords(rows: list[tuple[arb, arb, arb]], negligible: arb) -> list[arb]:
    """Amounts that F lacks at orders a, given as (a, F, H - F) by rising a: where it lacks
    something, H is also at most the chord between the next orders on either side where it lacks
    nothing.

    A law below the least of several bounds needs this where one of them takes over: the least is
    not convex there, and H is.
    """
    fine = [i for i, (_, _, missing) in enumerate(rows) if missing <= negligible]
    lacking = []
    for i, (a, F, missing) in enumerate(rows):
        after = bisect_right(fine, i)
        if missing > negligible and 0 < after < len(fine):
            (left, low, more), (right, high, also) = rows[fine[after - 1]], rows[fine[after]]
            share = (a - left) / (right - left)
            chord = (ONE - share) * (low + more) + share * (high + also)
            missing = smaller(missing, positive_part(chord - F)).upper()
        lacking.append(missing)
    return lacking


def shortfall_below(law: Law, event_of) -> arb:
    """The largest S_j - P(A), or 0, where A = event_of(T_j, S_j) is an event with Q(A) <= T_j.

    F is the largest of the lines S_j - a T_j and the line S = infinity, T = 0. If P(A) >= S_j - xi
    and Q(A) <= T_j, the j-th line is at most H_a + xi for all a.

    A law that is too large somewhere would have to have a line that is not looked at, or `event_of`
    an event that is not as it says. The line S = infinity, T = 0 has the empty event, which is
    where xi begins. A value that is no number counts as infinity in `larger`.
    """
    spend(len(law.masses), "points of a law")
    missing = arb(law.infinity)
    for _, S, T in law.suffixes:
        missing = larger(missing, positive_part(S - event_of(T, S)))
    return missing


@dataclass(frozen=True)
class Composed:
    """Masses at (start + i) step, i = 0, 1, ..., and a mass at infinity; the offsets of the laws
    are kept apart."""

    start: int
    masses: arb_poly
    infinity: arb

    def total(self) -> arb:
        return self.masses(ONE)


def times(one: Composed, other: Composed, cut: arb, upper: bool) -> Composed:
    """The law of the sum of two independent losses, its tails below `cut` cut off."""
    length = one.masses.length() + other.masses.length()
    fits(length, LONGEST, "places of the grid of laws that are composed")
    spend(length * length.bit_length(), "laws that are composed")
    infinity = one.infinity * (other.total() + other.infinity) + one.total() * other.infinity
    product = (one.masses * other.masses).coeffs()
    return trimmed(one.start + other.start, product, infinity, cut, upper)


def trimmed(start: int, masses: list[arb], infinity: arb, cut: arb, upper: bool) -> Composed:
    """Cut off tails of mass below `cut`: for an upper bound they go to infinity and up to the first
    kept place; for a lower one they are dropped.

    Moving mass to a larger loss raises the profile at every order, and dropping mass lowers it. One
    place is kept in any case. Where it is not certain that a tail is below `cut`, or where `cut` is
    0, it stays.
    """
    masses = masses or [ZERO]  # a product may have no mass
    right = ZERO
    while len(masses) > 1 and right + masses[-1] < cut:
        right += masses.pop()
    left, first = ZERO, 0
    while first < len(masses) - 1 and left + masses[first] < cut:
        left += masses[first]
        first += 1
    kept = masses[first:]
    if upper:
        kept[0] += left
        infinity += right
    return Composed(start + first, arb_poly(kept), infinity)


def first_power(law: Law, cut: arb, upper: bool) -> Composed:
    """The law on all indices of its window; sparse tails are cut off before."""
    pairs = list(zip(law.indices, law.masses, strict=True))
    right, left = ZERO, ZERO
    while len(pairs) > 1 and right + pairs[-1][1] < cut:
        right += pairs.pop()[1]
    first = 0
    while first < len(pairs) - 1 and left + pairs[first][1] < cut:
        left += pairs[first][1]
        first += 1
    start = pairs[first][0]
    spend(pairs[-1][0] - start + 1, "places of the grid of laws")
    dense = [ZERO] * (pairs[-1][0] - start + 1)
    for index, mass in pairs[first:]:
        dense[index - start] += mass
    infinity = arb(law.infinity)
    if upper:
        dense[0] += left
        infinity += right
    return Composed(start, arb_poly(dense), infinity)


def power(law: Law, k: int, cut: arb, upper: bool) -> Composed:
    """The law of the sum of k independent losses, by squaring."""
    square = first_power(law, cut, upper)
    result = None
    while True:
        if k % 2:
            result = square if result is None else times(result, square, cut, upper)
        k //= 2
        if k == 0:
            return result
        square = times(square, square, cut, upper)


def composed(laws: list[tuple[Law, int]], cut: arb, upper: bool) -> tuple[Composed, arb, arb]:
    """The product of powers of laws on one grid, with its first loss and the step."""
    if len({law.step for law, _ in laws}) != 1:
        raise Refuted("laws that are composed need one grid step")
    # one power at a time: thousands of wide laws do not stand in memory together
    powers = (power(law, k, cut, upper) for law, k in laws)
    product = reduce(lambda one, other: times(one, other, cut, upper), powers)
    step = arb(laws[0][0].step)
    offset = sum((k * arb(law.offset) for law, k in laws), ZERO)
    return product, offset + product.start * step, step


def composed_profile(laws: list[tuple[Law, int]], epsilon: arb, cut: arb, upper: bool) -> arb:
    """delta(epsilon) of the product of powers of laws on one grid; with `cut`, an upper or a lower
    bound of it."""
    product, first, step = composed(laws, cut, upper)
    delta = product.infinity
    gap = first - epsilon
    ratio, shrink = (-gap).exp(), (-step).exp()
    for mass in product.masses.coeffs():
        # 1 - ratio counts where it is, or may be, above 0; at 0 it adds nothing
        if not ratio >= 1:
            delta += mass * positive_part(ONE - ratio)
        ratio *= shrink
    return delta


def charge(shortfalls: list[tuple[arb, arb, int]]) -> arb:
    """Mass that masses xi at infinity beside laws of total mass M add to the product of k-th
    powers: prod (M + xi)^k - prod M^k.

    Given as (xi, M, k). The pairs with the further masses dominate, so their product does (Theorem
    8, remark 5), and of its mass only this much is not in the product without them. A law of no
    mass, M = 0, or a xi without bound makes this no finite number, which meets no claim.
    """
    growth = sum((k * (xi / M).log1p() for xi, M, k in shortfalls), ZERO)
    whole = sum((k * M.log() for _, M, k in shortfalls), ZERO)
    return growth.expm1() * whole.exp()

"""Random allocation to several of the steps of an epoch, from above: Theorem 72 of section 4.6.

L is the likelihood ratio of one block, k of t steps, and T a sum over its steps, to which each step
adds how many of the certificate's edges its output exceeds. Any edges are valid, and any cells into
which values of T are gathered, as T is a function of the outputs whatever they are. The moments of
L given the cells are sums of products of laws of one step, and a polynomial above (x - a)_+ turns
those of a cell into a bound of what it adds to H_a. Any polynomial is valid: which of a few is
taken is decided in floating point, what it gives is a ball.

Products are formed of whole numbers in units of 2^-bits, rounded down, next to one number that
bounds what each of them may be short by: that is some times faster than products of balls.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from math import comb, inf, prod, sqrt

from allocation import allocated, block_shortfall
from balls import ONE, ZERO, NotCovered, Refuted, positive_part, smaller
from flint import arb, ctx, fmpz, fmpz_poly
from multiplicity import ball
from question import Release
from references import ComposedProfile, in_single_steps
from step_sums import step_masses
from theorems import Case, Shared, Theorem, held_against
from work import fits, spend

from profiles import Bound, Order

ORDERS = range(5)  # orders of the moments
MOST_OWN = 12  # steps of the record in a block: there are a thousand ways to overlap then
MORE_BITS = 160  # bits beyond those of balls, for products that are far below the largest
CELL_BITS = 64  # bits of the terms that are added over the cells
MOST_VALUES = 2**17  # values of T
MOST_LOOKS = 20_000_000  # pairs of a cell and an order
MOST_PRODUCTS = 2**24  # values of T, of all sums, times ways to overlap: about two minutes
QUARTIC = Fraction(27, 256)  # 27 v^4 / (256 d^3) >= (v - d)_+
QUADRATIC, FOURTH, WHOLE, AT_ZERO = range(4)  # the polynomials among which each cell has one


# --- Polynomials in whole numbers -----------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """A polynomial whose coefficients are at least those of `units`, and at most `error` more, both
    in units of 2^-bits."""

    units: fmpz_poly
    error: fmpz
    bits: int
    length: int  # coefficients from here on are left out

    def __add__(self, other: "Scaled") -> "Scaled":
        return replace(self, units=self.units + other.units, error=self.error + other.error)

    def __mul__(self, other: "Scaled") -> "Scaled":
        exact = self.units.mul_low(other.units, self.length)
        # (f + e)(g + e') - f g, each error up to its bound at all places
        more = self.error * other.total + other.error * self.total
        more += self.error * other.error * self.length
        units = fmpz_poly([value >> self.bits for value in exact.coeffs()])
        return replace(self, units=units, error=(more >> self.bits) + 2)

    def times(self, factor: arb) -> "Scaled":
        """Return a multiple, the factor >= 0."""
        low, high = in_units(factor, self.bits)
        units = fmpz_poly([value * low >> self.bits for value in self.units.coeffs()])
        # no coefficient is above the sum of all
        more = self.error * high + (high - low) * self.total
        return replace(self, units=units, error=(more >> self.bits) + 2)

    def to_the(self, exponent: int) -> "Scaled":
        """Return a power, the exponent > 0."""
        if exponent == 1:
            return self
        half = self.to_the(exponent // 2)
        square = half * half
        return square * self if exponent % 2 else square

    @cached_property
    def total(self) -> fmpz:
        return self.units(1)

    def gathered(self, first: int, together: int, count: int) -> list[arb]:
        """Return sums of `together` coefficients each, from that at `first` on."""
        coefficients = self.units.coeffs()
        sums = []
        for start in range(first, first + together * count, together):
            stop = max(start + together, 0)
            low = sum(coefficients[max(start, 0) : stop], fmpz(0))
            high = low + self.error * (stop - max(start, 0))
            sums.append(arb(low).union(arb(high)) * arb(2) ** -self.bits)
        return sums


def in_units(x: arb, bits: int) -> tuple[fmpz, fmpz]:
    """Return the whole numbers of units on either side of x >= 0."""
    scaled = x * arb(2) ** bits
    low = scaled.lower().floor().unique_fmpz()
    return max(low, fmpz(0)), scaled.upper().ceil().unique_fmpz()


def scaled(masses: list[arb], bits: int, length: int) -> Scaled:
    rows = [in_units(mass, bits) for mass in masses[:length]]
    error = max(high - low for low, high in rows)
    return Scaled(fmpz_poly([low for low, _ in rows]), error, bits, length)


# --- Moments given a sum (Theorem 72, (ii)) -------------------------------------------------------


def overlaps(t: int, k: int, n: int) -> dict[tuple[int, ...], Fraction]:
    """Of n independent uniform k-subsets of t steps the probability that exactly i of them hold c_i
    of the steps, by (c_0, ..., c_n)."""
    law = {(t,): Fraction(1)}
    for _ in range(n):
        longer: dict[tuple[int, ...], Fraction] = {}
        for counts, chance in law.items():
            # how many of its k steps the next subset has in each class
            for later in product(*(range(min(k, count) + 1) for count in counts[1:])):
                taken = (k - sum(later), *later)
                if not 0 <= taken[0] <= counts[0]:
                    continue
                stay = [count - moved for count, moved in zip(counts, taken, strict=True)]
                key = tuple(a + b for a, b in zip((*stay, 0), (0, *taken), strict=True))
                ways = prod(map(comb, counts, taken))
                longer[key] = longer.get(key, Fraction(0)) + chance * Fraction(ways, comb(t, k))
        law = longer
    return law


@dataclass(frozen=True)
class Sum:
    """T of a block: edges of a step, and cells of `together` values each, from `first` on."""

    edges: list[arb]
    first: int
    together: int
    count: int


def read_sum(row: dict) -> Sum:
    first, together, count = (row[key] for key in ("first", "together", "count"))
    if not 0 < first + together * count <= MOST_VALUES:
        raise NotCovered(f"a sum over the steps with more than {MOST_VALUES} values")
    return Sum([arb(x) for x in row["edges"]], first, together, count)


def moments_of(t: int, k: int, s: arb, total: Sum) -> list[list[arb]]:
    """E_Q[L^n; cell], n = 0, ..., 4, for every cell of T."""
    bits = ctx.prec + MORE_BITS
    length = total.first + total.together * total.count
    with ctx.workprec(bits + 32):
        laws = [scaled(step_masses(total.edges, i / s), bits, length) for i in ORDERS]
        at_rest = laws[0]
        # A step in i >= 2 of the subsets goes with i - 1 steps in none, so that all terms of a
        # moment have t - n k more of the latter.
        joint = [at_rest, laws[1]] + [laws[i] * at_rest.to_the(i - 1) for i in ORDERS[2:]]
        singles = list(accumulate([laws[1]] * (ORDERS[-1] * k), Scaled.__mul__))
        resting = at_rest.to_the(t - ORDERS[-1] * k)
        group = at_rest.to_the(k)
        moments = []
        for n in reversed(ORDERS):
            moment = _weighted(t, k, n, s, joint, singles) * resting if n else resting
            moments.append(moment.gathered(total.first, total.together, total.count))
            resting = resting * group
    return moments[::-1]


def _weighted(t: int, k: int, n: int, s: arb, joint: list[Scaled], singles: list[Scaled]) -> Scaled:
    """Sum over the overlaps of n subsets of w exp(sum i (i - 1) c_i / (2 s^2)) times the law of all
    steps but the t - n k that are at rest in each of them, by Horner's rule."""
    weights = {counts[1:]: chance for counts, chance in overlaps(t, k, n).items()}

    def from_order(i: int, left: int, later: tuple[int, ...]) -> Scaled | None:
        """Contribution of the steps in at most i subsets, with `left` memberships in all; `later`
        are c_(i + 1), ..., c_n."""
        if i == 1:
            counts = (left, *later)
            if counts not in weights:
                return None
            exponent = sum(j * (j - 1) * c for j, c in enumerate(counts, start=1))
            factor = ball(weights[counts]) * (exponent / (2 * s * s)).exp()
            return (singles[left - 1] if left else one).times(factor)
        result = None
        for count in range(left // i, -1, -1):
            if result is not None:
                result = result * joint[i]
            inner = from_order(i - 1, left - i * count, (count, *later))
            if inner is not None:
                result = inner if result is None else result + inner
        return result

    one = replace(joint[0], units=fmpz_poly([fmpz(1) << joint[0].bits]), error=fmpz(0))
    found = from_order(n, n * k, ())
    assert found is not None
    return found


# --- Polynomials above (x - a)_+ (Theorem 72, (i)) ------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One cell of T: its masses under Q and P, the mean and the variance of L given the cell, and
    fourth moments times 27/256 and the mass, about the mean and about 0."""

    q: arb
    p: arb
    mean: arb
    variance: arb
    fourth: arb
    fourth_at_zero: arb

    @cached_property
    def rough(self) -> tuple[float, ...]:
        numbers = (self.q, self.p, self.mean, self.variance, self.fourth, self.fourth_at_zero)
        return tuple(float(x.mid()) if x.is_finite() else inf for x in numbers)


class GivenSum:
    """Bounds of H_a(P || Q) and of H_a(Q || P) of a block at single orders, from one sum."""

    def __init__(self, moments: list[list[arb]], negligible: arb) -> None:
        # E (L - a)_+ <= E L where T is in no cell, and E (1 - a L)_+ <= 1.
        self.outside = [positive_part(ONE - sum(moments[i], ZERO)) for i in (1, 0)]
        cells = [_cell(*each) for each in zip(*moments, strict=True)]
        self.cells = []
        for place, mass in enumerate(("p", "q")):
            seen, left_out = _seen(cells, mass, negligible)
            self.cells.append(seen)
            self.outside[place] += left_out

    def rough(self, a: float, forward: bool) -> tuple[float, list[int]]:
        """Bound at a in floating point, and which polynomial each cell takes."""
        total, kinds = 0.0, []
        place = a if forward else 1 / a
        for cell in self.cells[0 if forward else 1]:
            q, p, mean, variance, fourth, at_zero = cell.rough
            y = mean - place if forward else place - mean
            r = sqrt(y * y + variance)
            values = (
                q * ((y + r) / 2 if y > 0 else variance / (2 * (r - y)) if r > y else inf),
                fourth / abs(y * y * y) + max(y, 0.0) * q if y else inf,
                p if forward else place * q,
                at_zero / (place * place * place) if forward else inf,
            )
            best = min(range(4), key=lambda i: values[i] if values[i] >= 0 else inf)
            kinds.append(best)
            total += values[best]
        return (total if forward else total * a), kinds

    def bound(self, a: arb, forward: bool, kinds: list[int]) -> arb:
        """Bound at a in balls, by the polynomials `kinds`."""
        place = a if forward else 1 / a
        total = ZERO
        with ctx.workprec(CELL_BITS):
            for cell, kind in zip(self.cells[0 if forward else 1], kinds, strict=True):
                total += _adds(cell, kind, place, forward)
        return total + self.outside[0] if forward else total * a + self.outside[1]


def _cell(q: arb, p: arb, second: arb, third: arb, fourth: arb) -> Cell:
    mean = p / q
    about = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**3 * p
    share = ball(QUARTIC)
    variance = second / q - mean**2
    parts = [positive_part(x) if x.is_finite() else x for x in (variance, about * share)]
    return Cell(q, p, mean, *parts, fourth * share)


def _seen(cells: list[Cell], mass: str, negligible: arb) -> tuple[list[Cell], arb]:
    """Cells without those at the ends that hold less than a negligible mass together, and that
    mass."""
    masses = [getattr(cell, mass).upper() for cell in cells]
    first, last, left_out = 0, len(cells), ZERO
    while first < last and left_out + masses[first] < negligible:
        left_out += masses[first]
        first += 1
    while last > first and left_out + masses[last - 1] < 2 * negligible:
        last -= 1
        left_out += masses[last]
    return cells[first:last], left_out.upper()


def _adds(cell: Cell, kind: int, place: arb, forward: bool) -> arb:
    """Upper bound of E (L - place)_+ on the cell, or of E (place - L)_+."""
    at_most = cell.p if forward else place * cell.q
    if kind == WHOLE:
        return at_most
    if kind == AT_ZERO:
        return cell.fourth_at_zero / place**3 if forward else at_most
    y = cell.mean - place if forward else place - cell.mean
    if kind == QUADRATIC:
        # E (u + r)^2/(4 r) at its best r, sqrt(y^2 + Var u), is E(1) (y + r)/2.
        squares = y**2 + cell.variance
        if not squares > 0:
            return at_most
        r = squares.sqrt()
        value = cell.q * (cell.variance / (2 * (r - y)) if y < 0 else (y + r) / 2)
    else:
        value = cell.fourth / abs(y) ** 3 + (ZERO if y < 0 else y * cell.q)
    return value if value.is_finite() else at_most


# --- One block ------------------------------------------------------------------------------------


class Block:
    """k of t steps: H_a(P || Q) and H_a(Q || P) at a >= 1, by Theorem 72 at some orders and chords
    between these, and by Theorem 27."""

    def __init__(self, row: dict, case: Case) -> None:
        self.steps, self.own = row["steps"], row["own"]
        self.row, self.case = row, case
        fits(self.own, MOST_OWN, "steps of the record in one block of Theorem 72")
        if self.steps <= ORDERS[-1] * self.own:
            raise NotCovered(f"Theorem 72 for no more than {ORDERS[-1]} k steps")
        self._given: list[GivenSum] | None = None
        self._chords: dict[bool, Chords] = {}
        self._revealed: dict[bool, ComposedProfile] = {}

    def given(self) -> list[GivenSum]:
        """Bounds that each of the sums gives."""
        if self._given is None:
            sums = [read_sum(row) for row in self.row["sums"]]
            ways = len(overlaps(self.steps, self.own, ORDERS[-1]))
            work = sum(each.first + each.together * each.count for each in sums) * ways
            fits(work, MOST_PRODUCTS, "values of sums times ways to overlap")
            edges = sum(len(each.edges) for each in sums)
            spend(work + edges * len(ORDERS), "moments given sums")
            s = self.case.release.s
            self._given = [
                GivenSum(moments_of(self.steps, self.own, s, each), self.case.negligible / 8)
                for each in sums
            ]
        return self._given

    def bound(self, forward: bool) -> Bound:
        if forward not in self._chords:
            name = "forward" if forward else "backward"
            self._chords[forward] = Chords(self.row["orders"][name], self.given(), forward)
        chords = self._chords[forward]

        def least(order: Order, enough: arb) -> arb:
            by_moments = chords(order)
            return by_moments if by_moments <= enough else smaller(by_moments, revealed(order))

        def revealed(order: Order) -> arb:
            if forward not in self._revealed:
                self._revealed[forward] = self._in_single_steps(forward)
            return self._revealed[forward](order)

        return least

    def _in_single_steps(self, forward: bool) -> ComposedProfile:
        """Profile of the block by Theorem 27."""
        direction = "forward" if forward else "backward"
        rows, s = self.row["revealed"][direction], self.case.release.s
        return in_single_steps(rows, self.steps, self.own, 1 / s, direction, self.case.negligible)


class Chords:
    """The least bound of several sums at some orders: H_a is convex and falls, so that it is at
    most the chord between two of them, and what it is at any smaller order."""

    def __init__(self, log_orders: list[float], given: list[GivenSum], forward: bool) -> None:
        # the schema has seen to orders that rise, and to at least one of them and of the sums
        if log_orders[0] != 0:
            raise Refuted("orders of a block must rise from loss 0")
        cells = sum(len(side) for each in given for side in each.cells)
        fits(len(log_orders) * cells, MOST_LOOKS, "cells of sums at all orders of a block")
        self.places, self.given, self.forward = log_orders, given, forward
        self.orders = [arb(x).exp() for x in log_orders]
        self._values: list[arb] = []

    def value(self, i: int) -> arb:
        while len(self._values) <= i:
            found = self._at(len(self._values))
            self._values.append(smaller(found, self._values[-1]) if self._values else found)
        return self._values[i]

    def _at(self, i: int) -> arb:
        a = float(self.orders[i].mid())
        tried = [(*each.rough(a, self.forward), each) for each in self.given]
        _, kinds, best = min(tried, key=lambda each: each[0])
        return best.bound(self.orders[i], self.forward, kinds)

    def __call__(self, order: Order) -> arb:
        a = order.a.lower().max(ONE)
        i = max(bisect_right(self.places, float(a.log().mid())) - 1, 0)
        while i > 0 and not self.orders[i] <= a:
            i -= 1
        if i + 1 == len(self.orders):
            return self.value(i)
        # beyond the right end, which a may be by a rounding, the bound there is one
        share = ((a - self.orders[i]) / (self.orders[i + 1] - self.orders[i])).min(ONE)
        return (ONE - share) * self.value(i) + share * self.value(i + 1)


# --- The theorem ----------------------------------------------------------------------------------


def check_blocks(release: Release, parts: list[dict], shared: Shared) -> None:
    """Refuse blocks that do not make up epochs (Theorem 72, (iii), which includes Theorem 27): in
    every epoch the blocks have t steps together, and k of the record's.

    Blocks that prove too little would have to have fewer steps, or fewer of the record's, than an
    epoch. Without parts they have none, and t and k are at least 1.
    """
    t, k = allocated(release)
    steps = own = 0
    for part in parts:
        count, left = divmod(part["times"], release.rounds)
        if left:
            raise Refuted("a block happens equally often in every epoch")
        size, of_it = _size(part, shared)
        steps, own = steps + count * size, own + count * of_it
    if (steps, own) != (t, k):
        raise Refuted(f"blocks of {steps} steps, {own} of them the record's, are no {k} of {t}")


def _size(part: dict, shared: Shared) -> tuple[int, int]:
    """Steps of a part's block, and how many of them are the record's; its proof is held to them."""
    if ("block" in part) == ("sums" in part):
        raise Refuted("a block is proved either by sums or by one of the blocks")
    if "block" not in part:
        return part["sums"][-1]["terms"], 1
    if not part["block"] < len(shared.rows):
        raise Refuted(f"a part is of block {part['block']}, of {len(shared.rows)}")
    row = shared.rows[part["block"]]
    if row["own"] > row["steps"]:
        raise Refuted("no block holds more steps of the record than it has")
    return row["steps"], row["own"]


def theorem_72(case: Case) -> arb:
    case.need(case.adjacency != "substitute", "add_remove or zero_out")
    case.need(not case.release.in_all_steps, "steps without the record")
    if "block" not in case.part:
        return block_shortfall(case)
    place = case.part["block"]
    key = place, case.part["release"]
    block = case.shared.made(key, lambda: Block(case.shared.rows[place], case))
    forward, backward = block.bound(forward=True), block.bound(forward=False)

    def either(own: Bound, other: Bound) -> Bound:
        """Return the smaller bound at order 1, where both bound the distance in variation, which is
        the same both ways."""

        def bound(order: Order, enough: arb) -> arb:
            found = own(order, enough)
            if found <= enough or not order.u.is_zero():
                return found
            return smaller(found, other(order, enough))

        return bound

    return held_against(case, either(forward, backward), either(backward, forward))


THEOREMS = {"72": Theorem("allocation", theorem_72)}

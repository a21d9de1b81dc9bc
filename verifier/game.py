"""Upper bounds by the value of a game (docs/proofs/without_replacement.md and chains.md),
under substitution and under zero_out.

At every step, given the order that is left, the worst of all vectors v, v', g is taken. Cells cover
these choices, a law bounds the members of each cell at all orders, and recursion (3) takes at each
order the worst cell. Under substitution the two data sets may change places, so that one value
serves both orders of them; under zero_out, where v' = 0, each order has its own value.

Shown are the cover, in exact arithmetic; the domination, in balls; the recursion, in doubles that
are rounded up; and the claim.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
from balls import ONE, ZERO, Refuted, larger, positive_part, smaller
from corners import Corner, CornerBound, Draws, Line, Middle, Precision, base_law, base_weights
from flint import arb
from law import Law, read_law
from multiplicity import ball, stage_counts
from numpy.lib.stride_tricks import sliding_window_view
from question import game_of
from theorems import Case
from work import fits, spend

from profiles import Bound, Order, laplace

# As certificates write them; pi/2 and pi themselves are a little more.
QUARTER_TURN, HALF_TURN = math.pi / 2, math.pi
MOST_WORK = 4 * 10**12  # terms of all sums of the recursion: some ten minutes
MOST_POINTS = 2**20
MOST_MASSES, MOST_AT_ONCE = 2**26, 2**22  # doubles that stand in memory together
UNIT, FLOOR = 2.0**-53, 1e-300  # rounding of doubles, and more than all that may underflow
PAGES = {
    "15": "without_replacement",
    "22": "chains",
    "30": "without_replacement",
    "65": "chains",
    "70": "without_replacement",
}
ZERO_OUT, LAPLACE = "70", "30"  # theorems about another relation, and about other noise


# --- Cells (Lemma 14) -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """Cell of choices with C_0 <= C <= C_1 and psi_0 <= psi <= psi_1."""

    C: tuple[float, float]
    psi: tuple[float, float]

    @staticmethod
    def read(numbers: list[float], where: str) -> "Cell":
        C_0, C_1, psi_0, psi_1 = numbers
        # equal ends hold less, and add to no cover; what is no number, or infinite, is no angle
        if not (
            0 <= C_0 <= C_1 <= QUARTER_TURN and -QUARTER_TURN <= psi_0 <= psi_1 <= QUARTER_TURN
        ):
            raise Refuted(
                f"{where}: [{C_0!r}, {C_1!r}, {psi_0!r}, {psi_1!r}] are no angles of a cell"
            )
        return Cell((C_0, C_1), (psi_0, psi_1))

    def mirrored(self) -> "Cell":
        """Return the cell with x and y exchanged."""
        return Cell(self.C, (-self.psi[1], -self.psi[0]))

    def corner(self, s: arb, precision: Precision) -> Corner:
        """Return the largest d, |x| and product of x - y and x, d f, of members with |psi| <= C;
        h is the height of three points that have these."""
        C_0, C_1 = angle(self.C[0]), angle(self.C[1])
        lowest = -C_1 if self.psi[0] <= -self.C[1] else angle(self.psi[0])
        flattest = angle(min(max(0.0, self.psi[0]), self.psi[1]))
        if abs(flattest) > C_0:
            C_0 = abs(flattest)
        d = 2 * C_1.sin()
        f = positive_part(C_1.sin() - lowest.sin()).upper()
        length = (2 * (positive_part(C_0 + lowest) / 2).cos()).upper()
        straight, raised = Line(length / s, d / s), Line(f / s, d / s)
        return Corner(straight, raised, height(length, f) / s, precision)


def height(length: arb, f: arb) -> arb:
    """The distance from the line on which x is f beyond the origin, where |x| is this length."""
    return positive_part(length * length - f * f).upper().sqrt().upper()


def angle(number: float) -> arb:
    """The doubles next to pi/2 and pi stand for them, so that cells reach them."""
    if number == HALF_TURN:
        return arb.pi()
    return math.copysign(1, number) * arb.pi() / 2 if abs(number) == QUARTER_TURN else arb(number)


def check_cover(cells: list[Cell]) -> None:
    """Check that all |psi| <= C <= pi/2 are in some cell: in each strip between neighbouring ends
    of C the cells that span it leave no gap.

    A false cover would have to leave out a pair of angles. Strips are closed and reach from 0 to
    pi/2, so that each C is in one; in it psi is between -right and right at most. Angles are exact
    doubles, and none of them is infinite or no number (`Cell.read`).
    """
    ends = sorted({0.0, QUARTER_TURN, *(end for cell in cells for end in cell.C)})
    for left, right in pairwise(ends):
        # nothing is covered yet; without cells it stays so, and right > 0 is above it
        reached = -right
        for cell in sorted(cells, key=lambda each: each.psi):
            # a cell that ends where the strip does holds all of it; one without width spans none
            spans = cell.C[0] <= left and right <= cell.C[1]
            # cells are closed: one that begins where another ends leaves no gap
            if spans and cell.psi[0] <= reached:
                reached = max(reached, cell.psi[1])
        # the last psi, right, is in a closed cell that ends there
        if reached < right:
            raise Refuted(
                f"game: no cell holds C between {left!r} and {right!r} with psi just "
                f"above {reached!r}"
            )


# --- Angles, under zero_out (Theorem 70) ----------------------------------------------------------


@dataclass(frozen=True)
class Angles:
    """Cell of unit vectors v and g at an angle A, low <= A <= high; v' is 0."""

    low: float
    high: float

    @staticmethod
    def read(numbers: list[float], where: str) -> "Angles":
        low, high = numbers
        # equal ends are one angle; what is no number, or infinite, is no angle
        if not 0 <= low <= high <= HALF_TURN:
            raise Refuted(f"{where}: [{low!r}, {high!r}] are no angles from 0 to pi")
        return Angles(low, high)

    def corners(self, s: arb, precision: Precision) -> tuple[Corner, Corner]:
        """Return the corners that bound F_c and B_c."""
        A_0, A_1, unit = angle(self.low), angle(self.high), 1 / s
        length, f = (2 * (A_1 / 2).sin()).upper(), positive_part(ONE - A_1.cos()).upper()
        with_record = Line(length / s, unit), Line(f / s, unit)
        return (
            Corner(*with_record, height(length, f) / s, precision),
            Corner(Line(unit, unit), self._without_record(A_0, s), A_0.sin() / s, precision),
        )

    def _without_record(self, A_0: arb, s: arb) -> Line | Middle:
        """Return the bound without the record: up to a right angle the origin is b = cos A before
        y, beyond it y lies between."""
        if self.low >= QUARTER_TURN:
            return Middle(1 / s, -A_0.cos() / s)
        return Line(positive_part(A_0.cos()).upper() / s, 1 / s)


def check_angles(cells: list[Angles]) -> None:
    """Check that every angle from 0 to pi is in some cell.

    A false cover would have to leave out an angle. Angles are exact doubles, and none of them is
    infinite or no number (`Angles.read`).
    """
    # without cells, and without one from 0 on, it stays 0, which is below pi
    reached = 0.0
    for cell in sorted(cells, key=lambda each: each.low):
        # cells are closed: one that begins where another ends leaves no gap
        if cell.low <= reached:
            reached = max(reached, cell.high)
    # pi itself is in a closed cell that ends there
    if reached < HALF_TURN:
        raise Refuted(f"game: no cell holds angles just above {reached!r}")


# --- Three places, where noise is Laplace (Lemmas 28 and 29) --------------------------------------


def laplace_mass(left: arb, right: arb | None, centre: arb) -> arb:
    """Mass of Lap(centre) between two places; without `right`, to the right of the left one."""

    def below(t: arb) -> arb:
        return t.exp() / 2 if t <= 0 else ONE - (-t).exp() / 2

    if right is None:
        return ONE - below(left - centre)
    return below(right - centre) - below(left - centre)


@dataclass(frozen=True)
class Places:
    """Supremum S(x, y): the most that Lap(x) - a Lap(y) - tau Lap(0) gives to an event; x and y are
    lengths times s."""

    x: Fraction
    y: Fraction
    s: arb

    def at(self, a: arb, tau: arb) -> arb:
        others = [(a, self.y - self.x), (tau, -self.x)]
        here = sum((weight * (-abs(ball(far)) / self.s).exp() for weight, far in others), ZERO)
        if not here < 1:
            return positive_part(ONE - here)
        return self._right(others) + self._right([(weight, -far) for weight, far in others])

    def _right(self, others: list[tuple[arb, Fraction]]) -> arb:
        """Part of S right of x, which is the origin: the ratio g does not fall there, and is
        constant beyond the last place.
        """
        end, astray = None, ZERO
        left = Fraction(0)
        for place in sorted({far for _, far in others if far > 0}):
            ratio = self._ratio(others, place)
            if not ratio < 1:
                # Between the two places g = level + rise e^(2 (t - left)).
                level, rise = ZERO, ZERO
                for weight, far in others:
                    part = weight * (-abs(ball(far - left)) / self.s + ball(left) / self.s).exp()
                    level, rise = (level, rise + part) if far > left else (level + part, rise)
                if ratio >= 1:
                    end = ball(left) / self.s + ((ONE - level) / rise).log() / 2
                else:
                    end, astray = ball(place) / self.s, positive_part(ONE - ratio).upper()
                break
            left = place
        taken = sum(
            (weight * laplace_mass(ZERO, end, ball(far) / self.s) for weight, far in others), ZERO
        )
        return laplace_mass(ZERO, end, ZERO) - taken + astray

    def _ratio(self, others: list[tuple[arb, Fraction]], t: Fraction) -> arb:
        """Value of g at t >= 0."""
        return sum(
            (weight * ((ball(t) - abs(ball(t - far))) / self.s).exp() for weight, far in others),
            ZERO,
        )


@dataclass(frozen=True)
class Interval:
    """Cell of Theorem 30: which of v, v' and g is not one of the antipodal two, and its distances
    u.

    Its names are first (v), second (v'), replaced (g), and any, which holds all choices.
    """

    third: str
    u: tuple[float, float]

    @staticmethod
    def read(entry: list, where: str) -> "Interval":
        third, low, high = entry
        # equal ends are one distance; what is no number, or infinite, is no distance
        if not 0 <= low <= high <= 2:
            raise Refuted(f"{where}: [{third!r}, {low!r}, {high!r}] is no cell")
        return Interval(third, (low, high))

    def bounds(self, q: arb, s: arb) -> tuple[Bound, Bound]:
        """Return the two columns of Theorem 30; of `any`, Theorem 2."""
        if self.third == "any":
            return (lambda order, enough: q * laplace(order.lift(q), 2 / s),) * 2
        low, high = Fraction(self.u[0]), Fraction(self.u[1])

        def largest(*pairs: tuple[Fraction, Fraction]) -> Bound:
            places = [Places(x, y, s) for x, y in pairs]

            def bound(order: Order, enough: arb) -> arb:
                tau = (ONE - q) * order.u / q
                return q * reduce(larger, [place.at(order.a, tau) for place in places])

            return bound

        if self.third == "replaced":
            return largest((high, high - 2)), largest((2 - low, -low))
        both = largest((Fraction(2), low)), largest((high, high + 2 - low), (low, Fraction(2)))
        return both if self.third == "second" else both[::-1]


def check_intervals(cells: list[Interval]) -> None:
    """Check that each family covers [0, 2], unless some cell holds all choices.

    A false cover would have to leave out a distance of one family; other cells stand for none of
    it. Distances are exact doubles, and none of them is infinite or no number (`Interval.read`).
    """
    # whatever its distances are: Theorem 2, which bounds it, knows none; without cells there is
    # no such one
    if any(cell.third == "any" for cell in cells):
        return
    for family in ("replaced", "second", "first"):
        # without cells of the family, and without one from 0 on, it stays 0, which is below 2
        reached = 0.0
        for low, high in sorted(cell.u for cell in cells if cell.third == family):
            # cells are closed: one that begins where another ends leaves no gap
            if low <= reached:
                reached = max(reached, high)
        # 2 itself is in a closed cell that ends there
        if reached < 2:
            raise Refuted(f"game: no cell of {family!r} holds u just above {reached!r}")


# --- Domination -----------------------------------------------------------------------------------


def shortfall(law: Law, forward: Bound, backward: Bound, negligible: arb) -> arb:
    """The largest H(a) - F(a) at the kinks, or 0; below order 1 H is the mirror image (F3) of
    `backward`.

    A law that is too small somewhere would have to be so at an order that is not looked at: F is
    linear between kinks and constant beyond the last one, H is convex, 1 at order 0 and falls, so
    that order 0 and the kinks are all. A law has one loss at least (the schema); without any, order
    0 alone would be looked at, and F would have to be 1 there. A value that is no number counts as
    infinity in `larger`, and an infinite H lacks infinitely much.
    """
    kinks = []
    S, T = arb(law.infinity), ZERO
    for loss, S_here, T_here in law.suffixes:
        kinks.append((loss, S - loss.exp() * T))
        S, T = S_here, T_here
    # at order 0; a mass above 1 lacks nothing
    missing = positive_part(ONE - law.total()).upper()
    at_one = []
    for place, (loss, F) in enumerate(kinks):
        # the losses are whole multiples of a double, without an offset, so that each one is 0, or
        # on one side of it, for certain; equal losses were merged
        if loss.is_zero():
            at_one.append(place)
            continue
        if loss > 0:
            H = forward(Order(loss.expm1()), (F + negligible).lower())
        else:
            a = loss.exp()
            enough = (F + negligible - (ONE - a)) / a
            H = ONE - a + a * backward(Order((-loss).expm1()), enough.lower())
        missing = larger(missing, positive_part(H - F))
    for place in at_one:
        F = kinks[place][1]
        # both bound the total variation; what is no number bounds nothing in `smaller`
        H = smaller(forward(Order(ZERO), ZERO), backward(Order(ZERO), ZERO))
        higher = [kink for kink in kinks if kink[0] > 0]
        lower = [kink for kink in kinks if kink[0] < 0]
        # kinks fall: the last one above and the first one below are the neighbours; without one of
        # them there is no chord
        if higher and lower:
            # H is convex: no larger than the chord between the neighbouring kinks, where it is at
            # most F + missing.
            H = smaller(H, chord(lower[0], higher[-1], ZERO) + missing)
        missing = larger(missing, positive_part(H - F))
    return missing


def covered(
    theorem: str, entries: list[dict], draws: Draws, s: arb, negligible: arb
) -> list[tuple[Bound, Bound]]:
    """Return F_c and B_c of every cell, once the cells are shown to cover all choices."""
    kind = {ZERO_OUT: Angles, LAPLACE: Interval}.get(theorem, Cell)
    cells = [kind.read(entry["cell"], f"game, cell {place}") for place, entry in enumerate(entries)]
    if theorem == LAPLACE:
        check_intervals(cells)
        return [cell.bounds(draws.q, s) for cell in cells]
    if theorem == ZERO_OUT:
        check_angles(cells)
        return bounds_of_angles(cells, draws, s, negligible)
    check_cover(cells)
    return bounds_of(cells, draws, s, negligible)


def bounds_of_angles(
    cells: list[Angles], draws: Draws, s: arb, negligible: arb
) -> list[tuple[Bound, Bound]]:
    """Return F_c and B_c of Theorem 70."""
    precision = Precision.of(negligible)
    both = [cell.corners(s, precision) for cell in cells]
    return [(CornerBound(one, draws, s), CornerBound(other, draws, s)) for one, other in both]


def bounds_of(
    cells: list[Cell], draws: Draws, s: arb, negligible: arb
) -> list[tuple[Bound, Bound]]:
    """Return F_c and B_c of every cell. A cell and its mirror image share them."""
    precision = Precision.of(negligible)
    bounds = {}
    for cell in cells:
        for side in (cell, cell.mirrored()):
            if side not in bounds:
                bounds[side] = CornerBound(side.corner(s, precision), draws, s)
    return [(bounds[cell], bounds[cell.mirrored()]) for cell in cells]


def draws_of(case: Case) -> Draws:
    """Return the law of the draws of a release's sampler, as Theorems 15, 22, 30, 65 and 70 take
    it."""
    stages, slots, cut = case.stages, case.slots, case.negligible
    kinds = [stage.kind for stage in stages]
    if case.part["theorem"] == "65":
        case.need(kinds == ["with", "with"] and slots >= 2, "MUST.WW of two records or more")
        return draws_of_draws(case)
    if case.part["theorem"] != "22":
        case.need(kinds == ["without"], "samples without replacement")
        case.need(stages[0].size < slots, "a sample smaller than the data set")
        return Draws.once(stage_counts(stages[0], slots, 1, cut).probabilities[1])
    if kinds == ["with"]:
        case.need(slots >= 2 and stages[0].rate != 1, "two records")
        counts = stage_counts(stages[0], slots, 1, cut)
        return Draws(ONE, counts.probabilities, counts.rest, [(ONE, ONE)], ZERO)
    case.need(kinds == ["without", "with"], "WR, MUST.WO or MUST.OW")
    b, m = stages[0].size, stages[1].size
    case.need(
        2 <= b <= slots - 1, "a first sample of two records or more, smaller than the data set"
    )
    q = stage_counts(stages[0], slots, 1, cut).probabilities[1]
    counts = stage_counts(stages[1], b, 1, cut)
    weights, light = base_weights(b, m, q, counts.probabilities[0], cut)
    return Draws(q, counts.probabilities, counts.rest, weights, light)


def draws_of_draws(case: Case) -> Draws:
    """Return the law of draws of two stages with replacement: a branch for each number of slots
    that hold the record."""
    first, second = case.stages
    held = stage_counts(first, case.slots, 1, case.negligible)
    q = held.eta
    rest = held.rest / q
    branches = []
    for j, chance in held.positive():
        counts = stage_counts(second, first.size, j, case.negligible)
        chances = [chance / q * p for p in counts.probabilities]
        branches.append((chances, base_law(first.size, second.size, j)))
        rest += chance / q * counts.rest
    longest = max(len(chances) for chances, _ in branches)
    p = [
        sum((chances[hits] for chances, _ in branches if hits < len(chances)), ZERO)
        for hits in range(longest)
    ]
    return Draws(q, p, rest, [], ZERO, tuple(branches))


def chord(left: tuple[arb, arb], right: tuple[arb, arb], loss: arb) -> arb:
    """Interpolate between two values at losses, linearly in the order e^loss."""
    share = (loss - left[0]).expm1() / (right[0] - left[0]).expm1()
    return (ONE - share) * left[1] + share * right[1]


# --- Recursion (3) --------------------------------------------------------------------------------


def above(number: arb) -> float:
    """Return a double that is no smaller; 0 stays 0, and what is no number is none."""
    return 0.0 if number <= 0 else math.nextafter(float(number.upper()), math.inf)


@dataclass(frozen=True)
class Play:
    """W_r of each order of the data sets at the losses i step, i = 0, ..., points - 1, in doubles
    that are rounded up.

    Lemma (rounding). A sum of n products of doubles that are not negative, added up in any order,
    with or without fused operations, lacks at most the share n u of the true one, u = 2^-53: each
    term takes part in n roundings, of which each keeps at least the share 1 - u, and (1 - u)^n >=
    1 - n u. What underflows, or is taken for 0 because it would, makes 3 n 2^-1022 at most. So 1 +
    2 (n + 8) u times the sum, plus `FLOOR`, is no smaller than the true one, as n <= 2^20; the
    roundings of these two operations are in the 8.

    Nothing is subtracted, so errors are relative to W, however small it is. What overflows is
    infinite or no number, and meets no claim.
    """

    step: arb
    points: int

    def value(self, orders: list[list[Law]], infinite: arb, steps: int) -> list[np.ndarray]:
        """W_steps of each order, given the laws of its cells: of one that serves both, or of two.

        `infinite` is the most mass at infinity of any cell, and W_r(0) is replaced by V_r(0) = 1.
        """
        places = places_of([law for laws in orders for law in laws])
        # from a point a loss x leads to the order of x steps less: from -highest to points - lowest
        lowest, highest = min(places[0], 0), max(places[-1], 0)
        kernels = [np.array([row(law, places) for law in laws]) for laws in orders]
        losses = [i * self.step for i in range(highest, 0, -1)]
        lost = np.array([above(-(-x).expm1()) + FLOOR for x in losses])
        shrink = np.array([above((-x).exp()) for x in losses])
        grown = 1 + 2 * (len(places) + 8) * UNIT
        extra = above(smaller(infinite, ONE)) + FLOOR
        values = [np.zeros(self.points) for _ in orders]
        for _ in range(steps):
            # W(1/a) = 1 - 1/a + W'(a)/a, W' that of the other order; beyond the last point W does
            # not rise
            beyond = [np.pad(W, (0, max(highest + 1 - W.size, -lowest)), "edge") for W in values]
            after = [
                np.concatenate([(lost + shrink * other[highest:0:-1]) * (1 + 8 * UNIT), W])
                for W, other in zip(beyond, beyond[::-1], strict=True)
            ]
            values = [
                np.minimum(self._largest(kernel, W, highest - places) * grown + extra, 1.0)
                for kernel, W in zip(kernels, after, strict=True)
            ]
        return values

    def _largest(self, kernel: np.ndarray, after: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Largest, over the cells, of the sums over losses x of mass(x) W(a e^-x) at the points,
        before it is rounded up; the i-th loss leads from point 0 to `after[first[i]]`."""
        found = []
        width = max(1, MOST_AT_ONCE // first.size)
        for start in range(0, self.points, width):
            reached = sliding_window_view(after, min(width, self.points - start))[first + start]
            # the largest of values one of which is no number is none either
            found.append((kernel @ reached).max(axis=0))
        return np.concatenate(found)


def places_of(laws: list[Law]) -> np.ndarray:
    """Return the indices of the losses of all laws."""
    return np.array(sorted(set().union(*(law.indices for law in laws))))


def row(law: Law, places: np.ndarray) -> np.ndarray:
    """Return the law's masses at these places, rounded up."""
    masses = np.zeros(places.size)
    masses[np.searchsorted(places, law.indices)] = [above(arb(mass)) for mass in law.masses]
    return masses


# --- The certificate ------------------------------------------------------------------------------


def read_laws(data: list[dict], names: tuple[str, ...]) -> list[list[Law]]:
    """Return the laws of the cells for each order of the data sets, all on one grid of losses
    through 0."""
    orders = [
        [read_law(entry[name], f"game, cell {place}") for place, entry in enumerate(data)]
        for name in names
    ]
    every = [law for laws in orders for law in laws]
    if len({law.step for law in every}) != 1 or any(law.offset != 0 for law in every):
        raise Refuted("game: the laws of all cells need one grid step, and the offset 0")
    return orders


def check_work(theorem: str, laws: list[Law], points: int, steps: int) -> None:
    """Refuse a game that takes hours, or more memory than there is. Losses are no more than what
    they lead to, 2^20 at most: so few have their roundings charged in `Play`."""
    places = places_of(laws)
    reached = points + max(int(places[-1]), 0) - min(int(places[0]), 0)
    fits(reached, MOST_POINTS, "points of a game, with those that a loss leads to")
    fits(len(laws) * places.size, MOST_MASSES, "masses of the laws of a game")
    # bringing W to its places takes as long as the sums of some twenty laws
    count = steps * (len(laws) + 20) * points * places.size
    fits(count, MOST_WORK, f"terms of sums of the game of theorem {theorem}")


def at_epsilon(play: Play, W: np.ndarray, epsilon: arb) -> arb:
    """Return W_k at the order e^epsilon: V_k is convex and lies below the chord between points; it
    does not rise beyond the last one.

    A value that is too small would have to be one right of e^epsilon. So `place` may be too far to
    the left, never to the right: at equality it is the point itself.
    """
    place = min(math.floor(float(epsilon) / float(play.step)), play.points)
    while place > 0 and not place * play.step <= epsilon:
        place -= 1
    if place >= play.points - 1:
        return arb(float(W[-1]))
    left = place * play.step, arb(float(W[place]))
    right = (place + 1) * play.step, arb(float(W[place + 1]))
    # Right of the chord's end, by rounding of the quotient above, V_k is at most the value there.
    return right[1] if right[0] <= epsilon else chord(left, right, epsilon)


def prove_game(question, game: dict) -> str:
    """Prove an upper bound by Theorem 15, 22, 30, 65 or 70, for the question's only release.

    A false claim would have to play fewer steps, leave a choice of vectors out of all cells, or
    have a cell's law below its bound without a charge.
    """
    theorem = game["theorem"]
    if len(question.releases) != 1 or game["release"] != 0:
        raise Refuted("a game needs one release alone")
    release = question.releases[0]
    if theorem != game_of(release, question.adjacency):
        raise Refuted(f"theorem {theorem} is about no game of this release")
    points, steps = game["points"], game["steps"]
    if steps != release.rounds:
        raise Refuted(f"game: {steps} steps are played, of {release.rounds}")
    # Of theorem 70 the laws of V, with v in D, and those of V', with v in D'.
    orders = read_laws(game["cells"], ("law", "backward") if theorem == ZERO_OUT else ("law",))
    laws = [law for order in orders for law in order]
    check_work(theorem, laws, points, steps)
    # Shortfalls that are not seen in the nine digits of the claim.
    negligible = question.delta * arb(10) ** -13 / steps
    case = Case(release, question.adjacency, "forward", game, laws[0], negligible)
    draws = draws_of(case)
    orders_and_counts = sum(len(law.masses) for law in laws) * len(draws.p)
    spend(100 * orders_and_counts, "orders of the cells of a game")
    bounds = covered(theorem, game["cells"], draws, release.s, negligible)
    swapped = [both[::-1] for both in bounds]
    missing = [
        shortfall(law, *both, negligible)
        for order, sides in zip(orders, (bounds, swapped), strict=False)
        for law, both in zip(order, sides, strict=True)
    ]
    worst = max(missing, key=float)
    # no shortfall is no number (`larger`); an infinite one counts as 1, and meets no claim
    infinite = max(
        (xi + law.infinity for xi, law in zip(missing, laws, strict=True)),
        key=lambda each: each.upper(),
    )
    play = Play(arb(laws[0].step), points)
    with np.errstate(all="ignore"):  # what overflows meets no claim
        values = play.value(orders, infinite, steps)
    delta = reduce(larger, [at_epsilon(play, W, question.epsilon) for W in values])
    # equal is enough; what is no number is no smaller
    if not delta <= question.delta:
        raise Refuted(
            f"game: at epsilon {float(question.epsilon):.10g} its value is "
            f"{float(delta.upper()):.10g}, above {float(question.delta):.10g}"
        )
    shown = f"{float(worst):.10g}" if worst > 0 else "0"
    return (
        f"Theorem {theorem}, docs/proofs/{PAGES[theorem]}.md; {len(bounds)} cells, "
        f"{steps} steps of {points} points; shortfall {shown}"
    )

"""Upper bounds by the value of a game (section 4.1 of docs/accounting.md): samples without replacement, substitute.

At every step, given the order that is left, the worst of all vectors v, v', g is taken.  Cells cover these choices, a
law bounds the members of each cell at all orders, and recursion (3) takes at each order the worst cell.

Shown are the cover, in exact arithmetic; the domination, in balls; the recursion, in integers in units of 2^-bits that
are rounded up; and the claim.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise

from balls import HALF, ONE, ZERO, NotCovered, Refuted, larger, normal_density, normal_tail, positive_part, smaller
from flint import arb, ctx, fmpz_poly
from law import Law, read_law
from multiplicity import ball, stage_counts
from theorems import Case

from profiles import Bound, Order, laplace

QUARTER_TURN = math.pi / 2  # as certificates write it; pi/2 itself is a little more
MOST_WORK = 1_500_000_000  # terms of all products of the recursion: some ten minutes
MOST_POINTS = 100_000
BINS = (32, 64, 128, 256, 512)
FAR = 60.0  # deviations beyond which nothing counts


# --- Three points (Lemmas 12 and 13) --------------------------------------------------------------

@dataclass(frozen=True)
class Line:
    """Psi of Lemma 12 for f and d > 0."""

    f: arb
    d: arb

    def at(self, a: arb, log_a: float, tau: arb, start: float) -> tuple[arb, float]:
        """A bound of Psi(a, tau), and the place of its half-line, sought from `start` on."""
        f, d = self.f, self.d
        c = self._place(log_a, tau, start)
        beyond = f + FAR
        if c > float(beyond):
            c = float(beyond)
        one = (f * c - f * f * HALF).exp()
        two = a * ((f - d) * c - (f - d) ** 2 * HALF).exp()
        if c == float(beyond) and one <= two + tau:
            # The half-line begins further right, and N(f) has no more there than this.
            return normal_tail(c - f), c
        value = normal_tail(c - f) - a * normal_tail(c - f + d) - tau * normal_tail(arb(c))
        return value + self._astray(c, one, two, tau), c

    def _astray(self, c: float, one: arb, two: arb, tau: arb) -> arb:
        """How much more than the value at c the supremum may be.

        The excess e_f - a e_(f-d) - tau is negative left of the best place and positive right of it (Lemma 12 (iii)).
        With the opposite signs at c - r and c + r the place lies between, and what is missed is at most r times the
        largest density.
        """
        for radius in (2.0**-34, 2.0**-28, 2.0**-20, 2.0**-12):
            grow, turn = (self.f * radius).exp(), ((self.f - self.d) * radius).exp()
            left = one / grow - two / turn - tau
            right = one * grow - two * turn - tau
            if left <= 0 <= right:
                widest = larger(turn, 1 / turn)
                most = one * grow - two / widest - tau
                least = tau + two * widest - one / grow
                density = normal_density(arb(c) + arb(0, radius))
                return radius * density.upper() * positive_part(larger(most, least))
        raise NotCovered("a half-line whose end is not found")

    def _place(self, log_a: float, tau: arb, start: float) -> float:
        """Where e_f = tau + a e_(f-d), in floating point: ln(tau e_f^-1 + a e_(f-d)/e_f) is convex and falls."""
        f, d = self._floats
        log_tau = float(tau.log().mid()) if tau > 0 else -math.inf
        base_tau = log_tau + f * f / 2
        base_a = log_a + f * f / 2 - (f - d) ** 2 / 2
        c = start
        for _ in range(100):
            first, second = base_tau - f * c, base_a - d * c
            top = max(first, second)
            share, other = math.exp(first - top), math.exp(second - top)
            slope = (f * share + d * other) / (share + other)
            height = top + math.log(share + other)
            if not slope > 0:
                return math.inf
            following = c + height / slope
            if abs(following - c) <= 1e-14 * max(1.0, abs(c)):
                return following
            if following > f + FAR and height > 0:
                # Newton's method comes from the left, and never passes the root.
                return following
            c = following
        return c

    @cached_property
    def _floats(self) -> tuple[float, float]:
        return float(self.f.mid()), float(self.d.mid())


@dataclass(frozen=True)
class Heights:
    """W = exp(h Z - h^2/2) on few values: bins of Z are moved to their ends, mass and mean of W kept.

    That raises the mean of a convex function.  What is right of the last value is moved to it, as Psi falls; what is
    left of the first one is moved to 0.
    """

    values: list[arb]
    masses: list[arb]
    lost: arb

    @staticmethod
    def of(h: arb, bins: int, reach: float) -> "Heights":
        edges = [arb(reach * (2 * i - bins) / bins) for i in range(bins + 1)]
        values = [(h * z - h * h * HALF).exp() for z in edges]
        tails = [normal_tail(z) for z in edges]
        tilted = [normal_tail(z - h) for z in edges]
        masses = [ZERO] * (bins + 1)
        masses[bins] = tails[bins]
        for i in range(bins):
            mass, mean = tails[i] - tails[i + 1], tilted[i] - tilted[i + 1]
            upper = (mean - mass * values[i]) / (values[i + 1] - values[i])
            masses[i] += mass - upper
            masses[i + 1] += upper
        return Heights(values, masses, normal_tail(-edges[0]))


class Corner:
    """The bound F_c (or B_c) of a cell: q min(Psi(a, tau; |x|, d), E Psi(a, W tau; f, d))."""

    def __init__(self, q: arb, d: arb, f: arb, h: arb, length: arb, reach: float, small: arb) -> None:
        self.q, self.d, self.h, self.reach, self.small = q, d, h, reach, small
        self.straight, self.raised = Line(length, d), Line(f, d)
        self.heights: dict[int, Heights] = {}
        self.known: dict[tuple, arb] = {}
        self.bins = BINS[0]

    def __call__(self, order: Order, enough: arb) -> arb:
        """No sharper than `enough`."""
        if self.d.is_zero():
            return ZERO
        if order.u.is_zero():
            # tau = 0: the two laws alone count.
            return self.q * (ONE - 2 * normal_tail(self.d * HALF))
        key = (order.u.mid().man_exp(), order.u.rad().man_exp())
        if key in self.known and self.known[key] <= enough:
            return self.known[key]
        best = self.known[key] = self._sought(order, enough)
        return best

    def _sought(self, order: Order, enough: arb) -> arb:
        log_a = float(order.log.mid())
        tau = (ONE - self.q) * order.u / self.q
        value, _ = self.straight.at(order.a, log_a, tau, 0.0)
        best = self.q * value
        if best <= enough:
            return best
        previous = None
        for bins in BINS[BINS.index(self.bins):]:
            mean = self.q * self._mean(order.a, log_a, tau, bins)
            best = smaller(best, mean)
            if best <= enough:
                self.bins = bins
                break
            # Errors fall by four when bins are halved: where that will not be enough, time is not spent on it.
            if previous is not None and mean - (previous - mean) > enough:
                break
            previous = mean
        return best

    def _mean(self, a: arb, log_a: float, tau: arb, bins: int) -> arb:
        """E Psi(a, W tau; f, d).  Where little mass is, the value for a smaller W stands in: Psi falls."""
        if bins not in self.heights:
            self.heights[bins] = Heights.of(self.h, bins, self.reach)
        heights = self.heights[bins]
        total, value, place = heights.lost, ONE, 0.0
        for W, mass in zip(heights.values, heights.masses, strict=True):
            if not mass * value <= self.small:
                value, place = self.raised.at(a, log_a, tau * W, place)
            total += mass * value
        return total


# --- Cells (Lemma 14) -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Cell:
    """C_0 <= C <= C_1 and psi_0 <= psi <= psi_1."""

    C: tuple[float, float]
    psi: tuple[float, float]

    @staticmethod
    def read(numbers: list[float], where: str) -> "Cell":
        C_0, C_1, psi_0, psi_1 = (float(number) for number in numbers)
        if not (0 <= C_0 <= C_1 <= QUARTER_TURN and -QUARTER_TURN <= psi_0 <= psi_1 <= QUARTER_TURN):
            raise Refuted(f"{where}: [{C_0!r}, {C_1!r}, {psi_0!r}, {psi_1!r}] are no angles of a cell")
        return Cell((C_0, C_1), (psi_0, psi_1))

    def mirrored(self) -> "Cell":
        """Exchange of x and y."""
        return Cell(self.C, (-self.psi[1], -self.psi[0]))

    def corner(self, q: arb, s: arb, reach: float, small: arb) -> Corner:
        """The largest d, f, h and |x| of the members with |psi| <= C."""
        C_0, C_1 = angle(self.C[0]), angle(self.C[1])
        lowest = -C_1 if self.psi[0] <= -self.C[1] else angle(self.psi[0])
        flattest = angle(min(max(0.0, self.psi[0]), self.psi[1]))
        if abs(flattest) > C_0:
            C_0 = abs(flattest)
        d = 2 * C_1.sin()
        f = positive_part(C_1.sin() - lowest.sin())
        h = C_0.cos() + flattest.cos()
        length = 2 * (positive_part(C_0 + lowest) / 2).cos()
        return Corner(q, d / s, f.upper() / s, h / s, length.upper() / s, reach, small)


def angle(number: float) -> arb:
    """The double next to pi/2 stands for pi/2, so that cells reach it."""
    return math.copysign(1, number) * arb.pi() / 2 if abs(number) == QUARTER_TURN else arb(number)


def check_cover(cells: list[Cell]) -> None:
    """All |psi| <= C <= pi/2 are in some cell: in each strip between neighbouring ends of C the cells that span it
    leave no gap.
    """
    ends = sorted({0.0, QUARTER_TURN, *(end for cell in cells for end in cell.C)})
    for left, right in pairwise(ends):
        reached = -right
        for cell in sorted(cells, key=lambda each: each.psi):
            spans = cell.C[0] <= left and right <= cell.C[1]
            if spans and cell.psi[0] <= reached:
                reached = max(reached, cell.psi[1])
        if reached < right:
            raise Refuted(f"game: no cell holds C between {left!r} and {right!r} with psi just above {reached!r}")


# --- Three places, where noise is Laplace (Lemmas 28 and 29) --------------------------------------

def laplace_mass(left: arb, right: arb | None, centre: arb) -> arb:
    """Of Lap(centre) between two places; without `right`, to the right of the left one."""

    def below(t: arb) -> arb:
        return t.exp() / 2 if t <= 0 else ONE - (-t).exp() / 2

    if right is None:
        return ONE - below(left - centre)
    return below(right - centre) - below(left - centre)


@dataclass(frozen=True)
class Places:
    """S(x, y): the most that Lap(x) - a Lap(y) - tau Lap(0) gives to an event; x and y are lengths times s."""

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
        """The part of S right of x, which is the origin: the ratio g does not fall there, and is constant beyond the
        last place.
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
        taken = sum((weight * laplace_mass(ZERO, end, ball(far) / self.s) for weight, far in others), ZERO)
        return laplace_mass(ZERO, end, ZERO) - taken + astray

    def _ratio(self, others: list[tuple[arb, Fraction]], t: Fraction) -> arb:
        """g at t >= 0."""
        return sum((weight * ((ball(t) - abs(ball(t - far))) / self.s).exp() for weight, far in others), ZERO)


@dataclass(frozen=True)
class Interval:
    """A cell of Theorem 30: which of v, v' and g is not one of the antipodal two, and its distances u.

    Its names are first (v), second (v'), replaced (g), and any, which holds all choices.
    """

    third: str
    u: tuple[float, float]

    @staticmethod
    def read(entry: list, where: str) -> "Interval":
        third, low, high = entry
        low, high = float(low), float(high)
        if third not in ("any", "replaced", "second", "first") or not 0 <= low <= high <= 2:
            raise Refuted(f"{where}: [{third!r}, {low!r}, {high!r}] is no cell")
        return Interval(third, (low, high))

    def bounds(self, q: arb, s: arb) -> tuple[Bound, Bound]:
        """The two columns of Theorem 30; of `any`, Theorem 2."""
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
    """Each family covers [0, 2], unless some cell holds all choices."""
    if any(cell.third == "any" for cell in cells):
        return
    for family in ("replaced", "second", "first"):
        reached = 0.0
        for low, high in sorted(cell.u for cell in cells if cell.third == family):
            if low <= reached:
                reached = max(reached, high)
        if reached < 2 or not any(cell.third == family for cell in cells):
            raise Refuted(f"game: no cell of {family!r} holds u just above {reached!r}")


# --- Domination -----------------------------------------------------------------------------------

def shortfall(law: Law, forward: Bound, backward: Bound, negligible: arb) -> arb:
    """The largest H(a) - F(a) at the kinks, or 0; below order 1 H is the mirror image (F3) of `backward`."""
    kinks = []
    S, T = arb(law.infinity), ZERO
    for loss, S_here, T_here in law.suffixes:
        kinks.append((loss, S - loss.exp() * T))
        S, T = S_here, T_here
    missing = positive_part(ONE - law.total()).upper()
    at_one = []
    for place, (loss, F) in enumerate(kinks):
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
        H = smaller(forward(Order(ZERO), ZERO), backward(Order(ZERO), ZERO))
        above = [kink for kink in kinks if kink[0] > 0]
        below = [kink for kink in kinks if kink[0] < 0]
        if above and below:
            # H is convex: no larger than the chord between the neighbouring kinks, where it is at most F + missing.
            H = smaller(H, chord(below[0], above[-1], ZERO) + missing)
        missing = larger(missing, positive_part(H - F))
    return missing


def bounds_of(cells: list[Cell], q: arb, s: arb, negligible: arb) -> list[tuple[Bound, Bound]]:
    """F_c and B_c of every cell.  A cell and its mirror image share them."""
    reach = math.sqrt(-2 * float(negligible.log().mid()))
    small = negligible / (4 * BINS[-1])
    corners = {}
    for cell in cells:
        for side in (cell, cell.mirrored()):
            if side not in corners:
                corners[side] = side.corner(q, s, reach, small)
    return [(corners[cell], corners[cell.mirrored()]) for cell in cells]


def chord(left: tuple[arb, arb], right: tuple[arb, arb], loss: arb) -> arb:
    """Between two values at losses, linear in the order e^loss."""
    share = (loss - left[0]).expm1() / (right[0] - left[0]).expm1()
    return (ONE - share) * left[1] + share * right[1]


# --- Recursion (3) --------------------------------------------------------------------------------

@dataclass(frozen=True)
class Play:
    """W_r at the losses i step, i = 0, ..., points - 1, as integers in units of 2^-bits that are rounded up."""

    step: arb
    points: int
    bits: int

    @property
    def one(self) -> int:
        return 1 << self.bits

    def up(self, number: arb) -> int:
        return max(int((number * self.one).ceil().upper().ceil().unique_fmpz()), 0)

    def value(self, laws: list[Law], infinite: arb, steps: int) -> list[int]:
        """W_steps, where `infinite` is the most mass at infinity of any cell, and W_r(0) is replaced by V_r(0) = 1."""
        low = min(law.indices[0] for law in laws)
        high = max(law.indices[-1] for law in laws)
        # Of both, what reaches a point from a point: orders from -high to points - 1 - low.
        first, last = min(-high, 0), max(self.points - 1 - low, self.points - 1)
        kernels = [self._kernel(law, low) for law in laws]
        shrink = [self._down((-i * self.step).exp()) for i in range(1, -first + 1)]
        extra = self.up(infinite)
        start = -low - first
        W = [0] * self.points
        for _ in range(steps):
            after = fmpz_poly([*self._below_one(W, shrink), *W, *[W[-1]] * (last + 1 - self.points)])
            plays = [self._inside(kernel, after, start) for kernel in kernels]
            most = plays[0] if len(plays) == 1 else map(max, *plays)
            W = [min((int(value) >> self.bits) + 1 + extra, self.one) for value in most]
        return W

    def _kernel(self, law: Law, low: int) -> fmpz_poly:
        masses = [0] * (law.indices[-1] - low + 1)
        for index, mass in zip(law.indices, law.masses, strict=True):
            masses[index - low] += self.up(arb(mass))
        return fmpz_poly(masses)

    def _below_one(self, W: list[int], shrink: list[int]) -> list[int]:
        """W(1/a) = 1 - (1 - W(a))/a, from the last of `shrink` on."""
        last = self.points - 1
        values = [self.one - ((shrunk * (self.one - W[min(i, last)])) >> self.bits)
                  for i, shrunk in enumerate(shrink, start=1)]
        return values[::-1]

    def _inside(self, kernel: fmpz_poly, after: fmpz_poly, start: int) -> list:
        """The sums over losses x of mass(x) W(a e^-x) at the points."""
        found = kernel.mul_low(after, start + self.points).coeffs()
        found += [0] * (start + self.points - len(found))
        return found[start:]

    def _down(self, number: arb) -> int:
        return max(int((number * self.one).floor().lower().floor().unique_fmpz()), 0)


# --- The certificate ------------------------------------------------------------------------------

def read_laws(data: list[dict]) -> list[Law]:
    """The laws of the cells, all on one grid of losses through 0."""
    if not data:
        raise Refuted("game: no cells")
    laws = [read_law(entry["law"], f"game, cell {place}") for place, entry in enumerate(data)]
    if len({law.step for law in laws}) != 1 or any(law.offset != 0 for law in laws):
        raise Refuted("game: the laws of all cells need one grid step, and the offset 0")
    return laws


def check_work(theorem: str, laws: list[Law], points: int, steps: int) -> None:
    """Hours are not spent."""
    spread = max(law.indices[-1] for law in laws) - min(law.indices[0] for law in laws)
    if steps * len(laws) * (points + 2 * spread) > MOST_WORK:
        raise NotCovered(f"theorem {theorem}, {steps} steps of {len(laws)} cells are too long")


def fine_enough(delta: arb, roundings: int) -> int:
    """Bits for which all roundings together are not seen in the nine digits of the claim."""
    return math.ceil(float((roundings * arb(10) ** 12 / delta).log().mid()) / math.log(2))


def at_epsilon(play: Play, W: list[int], epsilon: arb) -> arb:
    """W_k at the order e^epsilon: V_k is convex and lies below the chord between points; it does not rise beyond the
    last one.
    """
    place = math.floor(float(epsilon) / float(play.step))
    while place > 0 and not place * play.step <= epsilon:
        place -= 1
    if place >= play.points - 1:
        return arb(W[-1]) / play.one
    left = place * play.step, arb(W[place])
    right = (place + 1) * play.step, arb(W[place + 1])
    # Right of the chord's end, by rounding of the quotient above, V_k is at most the value there.
    return (right[1] if right[0] <= epsilon else chord(left, right, epsilon)) / play.one


def prove_game(question, game: dict) -> str:
    """Theorem 15 or 30, for the question's only release."""
    theorem = game["theorem"]
    if theorem not in ("15", "30"):
        raise NotCovered(f"theorem {theorem}")
    if question.adjacency != "substitute" or len(question.releases) != 1 or game["release"] != 0:
        raise Refuted(f"theorem {theorem} needs substitute, and one release alone")
    release = question.releases[0]
    points, steps = game["points"], game["steps"]
    if type(steps) is not int or steps != release.rounds:
        raise Refuted(f"game: {steps!r} steps are played, of {release.rounds}")
    if type(points) is not int or not 1 <= points <= MOST_POINTS:
        raise Refuted(f"game: points must be a whole number from 1 to {MOST_POINTS}, got {points!r}")
    laws = read_laws(game["cells"])
    check_work(theorem, laws, points, steps)
    # Shortfalls that are not seen in the nine digits of the claim.
    negligible = question.delta * arb(10) ** -13 / steps
    case = Case(release, question.adjacency, "forward", game, laws[0], negligible)
    stages = case.stages
    case.need(release.laplace == (theorem == "30"), "Gaussian noise, and theorem 30 Laplace noise")
    case.need(len(stages) == 1 and stages[0].kind == "without", "samples without replacement")
    case.need(stages[0].size < case.slots, "a sample smaller than the data set")
    q = stage_counts(stages[0], case.slots, 1, negligible).probabilities[1]
    kind = Interval if release.laplace else Cell
    cells = [kind.read(entry["cell"], f"game, cell {place}") for place, entry in enumerate(game["cells"])]
    if release.laplace:
        check_intervals(cells)
        bounds = [cell.bounds(q, release.s) for cell in cells]
    else:
        check_cover(cells)
        bounds = bounds_of(cells, q, release.s, negligible)
    missing = [shortfall(law, *both, negligible) for law, both in zip(laws, bounds, strict=True)]
    worst = max(missing, key=float)
    infinite = max((xi + law.infinity for xi, law in zip(missing, laws, strict=True)), key=lambda each: each.upper())
    bits = fine_enough(question.delta, steps * len(laws[0].masses))
    ctx.prec = max(ctx.prec, bits + 32)
    play = Play(arb(laws[0].step), points, bits)
    W = play.value(laws, infinite, steps)
    delta = at_epsilon(play, W, question.epsilon)
    if not delta <= question.delta:
        raise Refuted(f"game: at epsilon {float(question.epsilon):.10g} its value is {float(delta.upper()):.10g}, "
                      f"above {float(question.delta):.10g}")
    shown = f"{float(worst):.10g}" if worst > 0 else "0"
    return (f"Theorem {theorem}, docs/accounting.md 4.1; {len(cells)} cells, {steps} steps of {points} points; "
            f"shortfall {shown}")

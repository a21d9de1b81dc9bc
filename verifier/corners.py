"""Bounds of the members of a cell for Gaussian noise: Lemmas 12, 13, 21 and 91, Theorems 15, 22, 65
and 70 of docs/proofs.

Lengths are over the noise scale s.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from balls import (
    HALF,
    ONE,
    ZERO,
    NotCovered,
    larger,
    normal_density,
    normal_tail,
    positive_part,
    smaller,
)
from flint import arb
from work import spend

from profiles import Order

BINS = (32, 64, 128, 256, 512)
WEIGHTS = 24  # values of the weight of the base that are told apart
SHARES = 24  # steps of the search for the charge of l = 1
FAR = 60.0  # deviations beyond which nothing counts
FLATTEST = arb(2) ** -20  # a height below which bins of Z are hardly told apart

Law = tuple[list[tuple[arb, arb]], arb]
"""Increasing values of a weight with their masses, and the mass of smaller ones."""


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
        two = a * ((f - d) * c - (f - d) * (f - d) * HALF).exp()  # ** fails about 0
        if c == float(beyond) and one <= two + tau:
            # The half-line begins further right, and N(f) has no more there than this.
            return normal_tail(c - f), c
        value = normal_tail(c - f) - a * normal_tail(c - f + d) - tau * normal_tail(arb(c))
        return value + self._astray(c, one, two, tau), c

    def excess(self, a: arb, c: arb) -> arb:
        """Value of e_f(c) - a e_(f-d)(c)."""
        f, back = self.f, self.f - self.d
        return (f * c - f * f * HALF).exp() - a * (back * c - back * back * HALF).exp()

    def _astray(self, c: float, one: arb, two: arb, tau: arb) -> arb:
        """Bound of how much more than the value at c the supremum may be.

        The excess e_f - a e_(f-d) - tau is negative left of the best place and positive right of it
        (Lemma 12 (iii)). With the opposite signs at c - r and c + r the place lies between, and the
        excess that is missed is at most r times the largest density.
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
        """Place where e_f = tau + a e_(f-d), in floating point: ln(tau e_f^-1 + a e_(f-d)/e_f) is
        convex and falls."""
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
class Middle:
    """The value I(a, tau; r) of Theorem 70, r >= 0, d > 0.

    I is the supremum over events of N(0) - a N(-d) - tau N(r).
    """

    d: arb
    r: arb

    def at(self, a: arb, log_a: float, tau: arb, start: float) -> tuple[arb, float]:
        """A bound of I; `start` is the argument of other bounds, and not used."""
        return self._interval(a, log_a, tau), start

    def _interval(self, a: arb, log_a: float, tau: arb) -> arb:
        """A bound of I. The ratio g of the negative densities and the first one is convex, so that
        the best event is an interval, {g < 1}, about the place where g is least.
        """
        d, r = self.d, self.r
        if not r > 0:
            # Not told apart from 0: by Lemma 12 (ii), for all places that are so near.
            return Line(positive_part(r).upper(), d).at(a, log_a, tau, 0.0)[0]

        def ratio(t: arb) -> arb:
            return a * (-d * t - d * d * HALF).exp() + tau * (r * t - r * r * HALF).exp()

        # There the two terms of the slope cancel.
        least = ((a * d / (tau * r)).log() + (r * r - d * d) * HALF) / (d + r)
        deepest = positive_part(ONE - ratio(least))
        if deepest.is_zero():
            return ZERO
        left, right = self._ends(log_a, tau, float(least.mid()))
        at_left, at_right = ratio(left), ratio(right)
        # Left of `left`, where g falls, it is no smaller than there; so it is right of `right`. If
        # the least g lies elsewhere, that bounds it.
        beyond = positive_part(ONE - at_left) if left <= least else deepest
        above = positive_part(ONE - at_right) if right >= least else deepest
        # Between them it is at most the larger one of both values: what it exceeds 1 by is no loss.
        within = positive_part(larger(at_left, at_right) - ONE)

        def mass(centre: arb) -> arb:
            return normal_tail(left - centre) - normal_tail(right - centre)

        value = mass(ZERO) * (ONE + within) - a * mass(-d) - tau * mass(r)
        outside = beyond * normal_tail(-left) + above * normal_tail(right)
        return positive_part(value + outside)

    def _ends(self, log_a: float, tau: arb, least: float) -> tuple[arb, arb]:
        """Places where g = 1, a hair too far out, in floating point.

        Newton's method for ln g, which is convex, begins where one term of g alone is 1, and stays
        outside.
        """
        d, r = float(self.d.mid()), float(self.r.mid())
        log_tau = float(tau.log().mid())
        ends = []
        for t, side in (
            ((log_a - d * d / 2) / d, -1.0),
            ((r * r / 2 - log_tau) / r, 1.0),
        ):
            for _ in range(60):
                first, second = log_a - d * t - d * d / 2, log_tau + r * t - r * r / 2
                top = max(first, second)
                share, other = math.exp(first - top), math.exp(second - top)
                height = top + math.log(share + other)
                slope = (r * other - d * share) / (share + other)
                if height <= 1e-15 or slope * side <= 0:
                    break
                t -= height / slope
            t = max(t, least) if side > 0 else min(t, least)
            t += side * 2.0**-44 * (1 + abs(t))
            ends.append(min(max(t, -FAR), FAR))
        return arb(ends[0]), arb(ends[1])


@dataclass(frozen=True)
class Heights:
    """W = exp(h Z - h^2/2) on few values: bins of Z are moved to their ends, mass and mean of W
    kept.

    That raises the mean of a convex function. Mass right of the last value is moved to it, as Psi
    and I fall; mass left of the first one is moved to 0.
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

    def times(self, law: list[tuple[arb, arb]], negligible: arb) -> "Heights":
        """u W, with u independent of W, on as many values."""
        masses: dict[float, tuple[arb, arb]] = {}
        for W, chance in zip(self.values, self.masses, strict=True):
            for u, mass in law:
                # the smaller of two values that differ by rounding
                least, so_far = masses.get(float((u * W).mid()), (u * W, ZERO))
                masses[float((u * W).mid())] = smaller(least, u * W), so_far + chance * mass
        joined = [masses[place] for place in sorted(masses)]
        kept, light = binned(joined, negligible, len(self.values))
        return Heights([value for value, _ in kept], [mass for _, mass in kept], self.lost + light)


@dataclass(frozen=True)
class Precision:
    """Number of deviations of a normal variable that are looked at, and the size below which
    contributions need not be exact."""

    reach: float
    small: arb

    @staticmethod
    def of(negligible: arb) -> "Precision":
        return Precision(math.sqrt(-2 * float(negligible.log().mid())), negligible / (4 * BINS[-1]))


class Corner:
    """The largest lengths and products of a cell, and what they bound: |x| and d are those of
    `straight`, f and d, or what takes their place in Theorem 70, of `raised`, which is at the
    height h."""

    def __init__(self, straight: Line, raised: Line | Middle, h: arb, precision: Precision) -> None:
        self.straight, self.raised, self.precision = straight, raised, precision
        self.d, self.length = straight.d, straight.f
        # The mean over W does not fall with h.
        self.h = larger(h, FLATTEST)
        self.heights: dict[int, Heights] = {}
        self.bins = BINS[0]

    def supremum(self, order: Order, tau: arb, law: Law, enough: arb) -> arb:
        """min(E Psi(a, u tau; |x|, d), the mean of `raised` at u W tau), no sharper than `enough`,
        for the law of u, always the same."""
        if order.u.is_zero():
            # tau = 0: the two laws alone count.
            return ONE - 2 * normal_tail(self.d * HALF)
        log_a = float(order.log.mid())
        best = mean_over(law, self.straight, order, tau)
        if best <= enough:
            return best
        previous = None
        for bins in BINS[BINS.index(self.bins) :]:
            mean = self._mean(order.a, log_a, tau, law, bins)
            best = smaller(best, mean)
            if best <= enough:
                self.bins = bins
                break
            # Errors fall by four when bins are halved: where that will not be enough, time is not
            # spent on it.
            if previous is not None and mean - (previous - mean) > enough:
                break
            previous = mean
        return best

    def _mean(self, a: arb, log_a: float, tau: arb, law: Law, bins: int) -> arb:
        """E Psi(a, u W tau; f, d), or E I(a, u W tau; r). Where there is little mass, the value for
        a smaller W stands in: both fall with tau."""
        weights, light = law
        if bins not in self.heights:
            spend(bins * len(weights), "weights of a game's cells")
            heights = Heights.of(self.h, bins, self.precision.reach)
            self.heights[bins] = heights.times(weights, self.precision.small)
        heights = self.heights[bins]
        total, value, place = heights.lost + light, ONE, 0.0
        for W, mass in zip(heights.values, heights.masses, strict=True):
            if not mass * value <= self.precision.small:
                value, place = self.raised.at(a, log_a, tau * W, place)
            total += mass * value
        return total


@dataclass(frozen=True)
class Draws:
    """Law of how often a record is in a sample (p_l, the probability `rest` left out), by a first
    stage that it passes with probability q, and the law of u of Theorem 22: values and masses, and
    the mass of smaller ones.

    For Theorem 65 `branches` holds, for each number of slots that hold the record, the probability
    of it and l draws, given q, and the law of w.
    """

    q: arb
    p: list[arb]
    rest: arb
    weights: list[tuple[arb, arb]]
    light: arb
    branches: tuple[tuple[list[arb], list[tuple[arb, arb]]], ...] = ()

    @staticmethod
    def once(q: arb) -> "Draws":
        """WOR: Theorem 15."""
        return Draws(q, [ZERO, ONE], ZERO, [(ONE, ONE)], ZERO)

    @property
    def base(self) -> arb:
        """p_0 + e."""
        return self.p[0] + (ONE - self.q) / self.q

    def law_of(self, hits: int, negligible: arb) -> Law:
        """The law of u, or of w given that the record is drawn so often."""
        if not self.branches:
            return self.weights, self.light
        masses: dict[float, tuple[arb, arb]] = {}
        for chances, law in self.branches:
            if hits >= len(chances) or chances[hits].is_zero():
                continue
            for w, mass in law:
                least, so_far = masses.get(float(w.mid()), (w, ZERO))
                # the smaller of two values that differ by rounding
                added = so_far + mass * chances[hits] / self.p[hits]
                masses[float(w.mid())] = smaller(least, w), added
        return binned([masses[place] for place in sorted(masses)], negligible)

    def paid(self, u: arb, charges: list[tuple[int, arb]]) -> list[list[arb]]:
        """Charges (hits, tau), lowered until the branches can pay them, u = a - 1, in one or two
        ways: all alike; and such that the first one is no lower than 1, if it was not, where the
        others may pay. What is owed is convex in these."""
        hits, taus = [hit for hit, _ in charges], [tau for _, tau in charges]
        if not self.branches:
            return [taus]

        def owed(taus: list[arb]) -> arb:
            total = ZERO
            for chances, _ in self.branches:
                pairs = zip(hits, taus, strict=False)
                asked = sum((chances[hit] * tau for hit, tau in pairs if hit < len(chances)), ZERO)
                total += positive_part(asked - u * chances[0])
            return total

        shared, all_owed = u * (ONE - self.q) / self.q, owed(taus)
        if all_owed <= shared:
            return [taus]
        lowered = [(tau * shared / all_owed).lower() for tau in taus]
        first = smaller(taus[0], larger(lowered[0], ONE)).lower()
        least, most = owed([first]), owed([first, *taus[1:]])
        if hits[0] > 1 or not least < shared < most:
            return [lowered]
        rest = (shared - least) / (most - least)
        return [lowered, [first, *((tau * rest).lower() for tau in taus[1:])]]


class CornerBound:
    """F_c (or B_c) of a cell, by Theorem 15 or 22."""

    def __init__(self, corner: Corner, draws: Draws, s: arb) -> None:
        self.corner, self.draws = corner, draws
        self.terms = [
            (p, Line(corner.length + 2 * (hits - 1) / s, hits * corner.d))
            for hits, p in enumerate(draws.p)
            if hits and not p.is_zero()
        ]
        self.hits = [hits for hits, p in enumerate(draws.p) if hits and not p.is_zero()]
        negligible = larger(draws.rest, draws.light) + arb(10) ** -25
        self.laws = [draws.law_of(hits, negligible) for hits in self.hits]
        self.known: dict[tuple, arb] = {}
        self.failed = False

    def __call__(self, order: Order, enough: arb) -> arb:
        """Bound of F_c (or B_c) at an order, no sharper than `enough`."""
        if self.corner.d.is_zero():
            return ZERO
        key = (order.u.mid().man_exp(), order.u.rad().man_exp())
        if not (key in self.known and self.known[key] <= enough):
            self.known[key] = self._sought(order, enough)
        return self.known[key]

    def _sought(self, order: Order, enough: arb) -> arb:
        budget = order.u * self.draws.base
        best = self._paid(order, self._charges(order, self.terms, budget), enough)
        hopeless = self.hits[0] > 1 or len(self.terms) == 1 or not budget > 0 or self.failed
        if best <= enough or hopeless:
            return best
        # E Psi may want another charge of l = 1; the bound is convex in it.
        p, later = self.terms[0][0], self.terms[1:]

        def shared(first: float) -> arb:
            nonlocal best
            charges = [
                (first * budget / p).lower(),
                *self._charges(order, later, ((1 - arb(first)) * budget).lower()),
            ]
            value = self._paid(order, charges, enough)
            best = smaller(best, value)
            return value

        golden = (math.sqrt(5) - 1) / 2
        low, high = 0.0, 1.0
        left, right = high - golden, low + golden
        at_left, at_right = shared(left), shared(right)
        for _ in range(SHARES):
            if best <= enough:
                break
            if at_left.upper() <= at_right.upper():
                high, right, at_right = right, left, at_left
                left = high - golden * (high - low)
                at_left = shared(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + golden * (high - low)
                at_right = shared(right)
        # A law that was too small once is refuted in time: the search, some forty times as long, is
        # not made again.
        self.failed = not best <= enough
        return best

    def _paid(self, order: Order, charges: list[arb], enough: arb) -> arb:
        """Bound of Theorem 22 for these charges, or of Theorem 65 for what branches can pay of
        them."""
        ways = self.draws.paid(order.u, list(zip(self.hits, charges, strict=True)))
        best = self._charged(order, ways[0], enough)
        for other in ways[1:]:
            if not best <= enough:
                best = smaller(best, self._charged(order, other, enough))
        return best

    def _charged(self, order: Order, charges: list[arb], enough: arb) -> arb:
        """Bound of Theorem 15 or 22 for these charges tau_l."""
        draws = self.draws
        spend(WEIGHTS * len(self.terms) + BINS[0], "charges of a game's cells")
        later = sum(
            (
                p * mean_over(law, line, order, charge)
                for (p, line), charge, law in zip(
                    self.terms[1:], charges[1:], self.laws[1:], strict=True
                )
            ),
            draws.rest,
        )
        p, line = self.terms[0]
        if self.hits[0] == 1:
            rest = ((enough / draws.q - later) / p).lower()
            first = self.corner.supremum(order, charges[0], self.laws[0], rest)
        else:
            first = mean_over(self.laws[0], line, order, charges[0])
        return draws.q * (later + p * first)

    def _charges(self, order: Order, terms: list[tuple[arb, Line]], budget: arb) -> list[arb]:
        """Numbers tau_l >= 0 with a sum of p_l tau_l of at most the budget, (a - 1)(p_0 + e) for
        all l together.

        They are such that the best half-lines of all l begin at one place, as nearly as tau_l >= 0
        allows; the place is sought in floating point.
        """
        if len(terms) == 1:
            return [budget / terms[0][0]]
        if not budget > 0:
            return [ZERO] * len(terms)
        c = self._threshold(terms, float(order.log.mid()), float(budget.log().mid()))
        charges = [positive_part(line.excess(order.a, arb(c))).mid() for _, line in terms]
        spent = sum((p * charge for (p, _), charge in zip(terms, charges, strict=True)), ZERO)
        if not spent > 0:
            return [ZERO] * len(terms)
        scale = (budget / spent).lower()
        return [(charge * scale).lower() for charge in charges]

    def _threshold(self, terms: list[tuple[arb, Line]], log_a: float, log_budget: float) -> float:
        rows = [
            (float(p.mid()), float(line.f.mid()), float((line.f - line.d).mid()))
            for p, line in terms
        ]

        def dear(c: float) -> bool:
            """Whether the charges at c cost more than the budget."""
            spent = 0.0
            for p, f, back in rows:
                one, two = f * c - f * f / 2, log_a + back * c - back * back / 2
                if one > two:
                    log_part = math.log(p) + one + math.log(-math.expm1(two - one)) - log_budget
                    spent += math.exp(min(log_part, 700.0))
            return spent > 1

        low, high = -FAR, FAR
        while not dear(high) and high < 1e6:
            high *= 2
        while dear(low) and low > -1e6:
            low *= 2
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (low, middle) if dear(middle) else (middle, high)
        return low


def mean_over(law: Law, line: Line, order: Order, charge: arb) -> arb:
    """E S(a, u charge; ...)."""
    weights, light = law
    log_a, place, total = float(order.log.mid()), 0.0, light
    for u, mass in weights:
        value, place = line.at(order.a, log_a, u * charge, place)
        total += mass * value
    return total


def base_weights(b: int, m: int, q: arb, p_0: arb, negligible: arb) -> Law:
    """Law of u = (p_0 + e w)/(p_0 + e), w of Lemma 20, and the mass of smaller values."""
    e = (ONE - q) / q
    law = [((p_0 + e * w) / (p_0 + e), mass) for w, mass in base_law(b, m, 1)]
    return binned(law, negligible)


def base_law(b: int, m: int, held: int) -> list[tuple[arb, arb]]:
    """Increasing values of w = (1 - j/b)^m C(b, j)/C(n_0, j) of Theorem 65, j = held, with their
    masses.

    n_0 is the number of b slots that m draws, to b - j of them, leave empty.
    """
    others = b - held
    if others == 0:
        return [(ONE, ONE)]
    spend(m * min(others, m), "numbers of slots that are filled")
    filled = [ONE]
    for _ in range(m):
        following = [ZERO] * min(len(filled) + 1, others + 1)
        for k, mass in enumerate(filled):
            following[k] += mass * k / others
            if k + 1 < len(following):
                following[k + 1] += mass * (others - k) / others
        filled = following
    missed = (ONE - ONE * held / b) ** m
    return [
        (missed * math.comb(b, held) / math.comb(b - k, held), mass)
        for k, mass in enumerate(filled)
        if mass > 0
    ]


def binned(law: list[tuple[arb, arb]], negligible: arb, count: int = WEIGHTS) -> Law:
    """Few values of an increasing law, with their masses, and the mass of smaller ones.

    Neighbouring values are moved to the ends of bins with their mean kept, and to the last one from
    beyond: falling convex functions have no smaller means.
    """
    first, light = 0, ZERO
    while light + law[first][1] < negligible:
        light += law[first][1]
        first += 1
    last = len(law) - 1
    above = ZERO
    while last > first and above + law[last][1] < negligible:
        above += law[last][1]
        last -= 1
    kept = law[first : last + 1]
    stride = -(-len(kept) // count)
    edges = [*range(0, len(kept) - 1, stride), len(kept) - 1]
    masses = dict.fromkeys(edges, ZERO)
    for place, (u, mass) in enumerate(kept):
        left = place // stride * stride
        if place in masses:
            masses[place] += mass
            continue
        right = min(left + stride, len(kept) - 1)
        share = (u - kept[left][0]) / (kept[right][0] - kept[left][0])
        masses[left] += mass * (ONE - share)
        masses[right] += mass * share
    masses[edges[-1]] += above
    return [(kept[edge][0], masses[edge]) for edge in edges], light

"""Bounds of hockey-stick divergences at the orders a = e^loss >= 1, in ball arithmetic. Lengths are
over the noise scale s."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import erfc, exp, log, sqrt

from balls import ONE, ZERO, NotCovered, larger, normal_density, normal_tail, positive_part, smaller
from flint import arb, ctx
from multiplicity import Counts
from work import spend


@dataclass(frozen=True)
class Order:
    """An order a = 1 + u >= 1."""

    u: arb

    @property
    def a(self) -> arb:
        return ONE + self.u

    @cached_property
    def log(self) -> arb:
        return self.u.log1p()

    def lift(self, eta: arb) -> "Order":
        """1 + (a - 1)/eta."""
        return Order(self.u / eta)


# (order, enough): at least H_a; need not be sharper than `enough`
Bound = Callable[[Order, arb], arb]


def gaussian(order: Order, distance: arb) -> arb:
    """G(a, d)."""
    place = order.log / distance
    return normal_tail(place - distance / 2) - order.a * normal_tail(place + distance / 2)


def laplace(order: Order, distance: arb) -> arb:
    """H_a(Lap(d) || Lap(0)) = 1 - sqrt(a e^-d) up to a = e^d, and 0 from there on (3.7)."""
    return positive_part(ONE - (order.log / 2 - distance / 2).exp())


class Minorant:
    """Greatest convex function that is nowhere above points (a, bound of H_a), a >= 1, their mirror
    images (1/a, 1 - 1/a + H_a/a) and (0, 1), where H is the same for both orders.

    Orders are made exact by rounding them up, which is safe as H falls.
    """

    def __init__(self, points: list[tuple[arb, arb]]) -> None:
        every = [(ZERO, ONE)]
        for a, value in points:
            every.append((a.upper(), value.upper()))
            every.append(((1 / a).upper(), (1 - 1 / a + value / a).upper()))
        self.hull: list[tuple[arb, arb]] = []
        for point in sorted(every):
            if self.hull and self.hull[-1][0] == point[0]:
                continue  # the lower one of the same order came first
            while len(self.hull) > 1 and not is_below(self.hull[-1], self.hull[-2], point):
                self.hull.pop()
            self.hull.append(point)
        self._orders = [a for a, _ in self.hull]

    def __call__(self, a: arb) -> arb:
        at = a.lower()
        right = bisect_right(self._orders, at)
        if right == len(self.hull):
            return self.hull[-1][1]
        (low, first), (high, second) = self.hull[right - 1], self.hull[right]
        return first + (second - first) * (at - low) / (high - low)


def is_below(point: tuple[arb, arb], left: tuple[arb, arb], right: tuple[arb, arb]) -> bool:
    """Whether a point is below the chord of two others."""
    rise, width = right[1] - left[1], right[0] - left[0]
    return (point[1] - left[1]) * width < rise * (point[0] - left[0])


def half_line(mixture: list[tuple[arb, arb]]) -> arb:
    """Supremum over c of the mass that sum w_i N(x_i, 1) has right of c, for (w_i, x_i) with
    weights of both signs.

    Needs that the density is negative left of some place and positive right of it, or of one sign;
    callers say why. The place is enclosed: left of the enclosure the mass right of c rises with c,
    right of it it falls, so that its supremum lies within.
    """
    spend(20 * len(mixture), "terms of mixtures")
    merged: list[list[arb]] = []
    for weight, centre in mixture:
        same = next((row for row in merged if row[1].mid() == centre.mid()), None)
        if same is None:
            merged.append([weight, centre])
        else:
            same[0] += weight
    # A weight of unknown sign is raised to its upper end, which raises every mass.
    terms = [(w if w > 0 or w < 0 else w.upper(), x) for w, x in merged]
    if not any(w > 0 for w, _ in terms):
        return ZERO
    if not any(w < 0 for w, _ in terms):
        return sum((w for w, _ in terms), ZERO)

    def mass(c: arb) -> arb:
        return sum((w * normal_tail(c - x) for w, x in terms), ZERO)

    def excess(c: arb) -> arb:
        """Ratio of the density to that of N(0, 1): sum w e^(x c - x^2/2)."""
        return sum((w * (x * c - x * x / 2).exp() for w, x in terms), ZERO)

    start = arb(_crossing([(float(w.mid()), float(x.mid())) for w, x in terms]))
    for _ in range(4):
        slope = sum((w * x * (x * start - x * x / 2).exp() for w, x in terms), ZERO)
        start = (start - excess(start) / slope).mid()
    radius = arb(2) ** -60
    low, high = start - radius, start + radius
    while not (excess(low) < 0 < excess(high)):
        radius *= 16
        low, high = start - radius, start + radius
        if radius > 1:
            raise NotCovered("a half-line whose end is not found")
    # On [low, high] the mass differs from that at the middle by at most radius times the largest
    # density.
    around = low.union(high)
    steepest = (normal_density(around) * excess(around)).abs_upper()
    return mass(start) + arb(0).union(radius * steepest)


def _crossing(terms: list[tuple[float, float]]) -> float:
    """Place where sum w e^(x c - x^2/2) turns positive, in floating point: a place to start
    from."""

    def log_sum(c: float, sign: int) -> float:
        logs = [log(sign * w) + x * c - x * x / 2 for w, x in terms if w * sign > 0]
        top = max(logs)
        return top + log(sum(exp(value - top) for value in logs))

    def negative(c: float) -> bool:
        return log_sum(c, 1) < log_sum(c, -1)

    low, high = -1.0, 1.0
    while not negative(low) and low > -1e9:
        low *= 2
    while negative(high) and high < 1e9:
        high *= 2
    # until no double lies between
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if negative(middle) else (low, middle)
    return high


def pair(P: list[tuple[arb, arb]], Q: list[tuple[arb, arb]]) -> Bound:
    """H_a of two Gaussian mixtures for which half-lines to the right are the best events at a >=
    1."""
    return lambda order, enough: half_line([*P, *((-order.a * w, x) for w, x in Q)])


def reflected(mixture: list[tuple[arb, arb]]) -> list[tuple[arb, arb]]:
    return [(weight, -centre) for weight, centre in mixture]


# --- The group lemma (3.4) ------------------------------------------------------------------------


class Groups:
    """min(h_p, t_p) of Theorem 4 for the law of l, with distances 2 l / s.

    The probability `rest` that is left out of the law is added: no event has more of it.
    """

    def __init__(self, counts: Counts, s: arb) -> None:
        spend(len(counts.probabilities), "numbers of occurrences")
        self.p0, self.eta, self.rest = counts.probabilities[0], counts.eta, counts.rest
        self.terms = [(p, hits / s) for hits, p in counts.positive() if not p.is_zero()]

    def t(self, order: Order, enough: arb) -> arb:
        """t_p(a) = sum of p_l G(lift(a, eta), 2 l/s)."""
        spend(8 * len(self.terms), "occurrences at all orders")
        lifted = order.lift(self.eta)
        return sum((p * gaussian(lifted, 2 * r) for p, r in self.terms), self.rest)

    def __call__(self, order: Order, enough: arb) -> arb:
        best = self.t(order, enough)
        return best if best <= enough else smaller(best, GroupSup(self, order).bound(enough))


class GroupSup:
    """h_p(a) at one order: the supremum over c of h(c) = -p_0 u Phi(-c) + sum p_l g_l(c), c in
    units of s, r = l/s.

    With z* = ln a/(2 r), Lemma 3 gives g_l(c) = Phi(2r - c) - a Phi(-c) where c > z* + r (`high`),
    Phi(-c) - a Phi(-2r
    - c) where
    c < z* - r (`low`), and G(a, 2 r) between.  g_l has a continuous derivative, 0 between.
    """

    def __init__(self, groups: Groups, order: Order) -> None:
        self.order, self.groups = order, groups
        self.base = groups.p0 * order.u
        self.rows = []
        for p, r in groups.terms:
            place = order.log / (2 * r)
            self.rows.append((p, r, place - r, place + r, gaussian(order, 2 * r)))

    def value(self, c: arb) -> arb:
        """h(c); at a place of unknown side both formulas are good, as they agree at the border to
        first order and are continuous."""
        a, below = self.order.a, normal_tail(c)
        total = self.groups.rest - self.base * below
        for p, r, low, high, middle in self.rows:
            if c > high:
                total += p * (normal_tail(c - 2 * r) - a * below)
            elif c < low:
                total += p * (below - a * normal_tail(c + 2 * r))
            elif c > low and c < high:
                total += p * middle
            else:
                # Everywhere f_l(z) <= G: the middle value is the largest of the three.
                total += p * middle
        return total

    def slopes(self, c: arb) -> tuple[arb, arb]:
        """Enclosures of h' and h'' on the ball c, of both one-sided second derivatives at a
        border."""
        a, here = self.order.a, normal_density(c)
        first, second = self.base * here, -self.base * c * here
        for p, r, low, high, _ in self.rows:
            if not c < high:
                there = normal_density(c - 2 * r)
                f, g = a * here - there, (c - 2 * r) * there - a * c * here
                inside = not c > high
                first += p * (f.union(ZERO) if inside else f)
                second += p * (g.union(ZERO) if inside else g)
            elif not c > low:
                there = normal_density(c + 2 * r)
                f, g = a * there - here, c * here - a * (c + 2 * r) * there
                inside = not c < low
                first += p * (f.union(ZERO) if inside else f)
                second += p * (g.union(ZERO) if inside else g)
        return first, second

    def bound(self, enough: arb) -> arb:
        """Upper bound of sup h, not sharper than `enough`.

        Left of all borders every term rises with c. To the right h <= sum p_l Phi(2 r_l - c). Near
        the largest value found h is shown to be concave, and there h <= h(c) + h'(c)^2/(2 m) with m
        the least of -h''. Elsewhere, where h' has one sign the largest value is at an end; other
        intervals [c - w, c + w] are halved until h(c) + |h'(c)| w + max(h'', 0) w^2/2 is small
        enough.
        """
        left = min(float(low.lower()) for _, _, low, _, _ in self.rows) - 1.0
        farthest = max(float((2 * r).upper()) for _, r in self.groups.terms)
        top = self._top(left, max(farthest + 8.0, left + 2.0))
        width, patch = 0.25, None
        for _ in range(12):
            curvature = self.slopes(top + arb(0, width * 1.001))[1]
            if curvature < 0:
                slope = self.slopes(top)[0]
                patch = self.value(top) + slope * slope / (-2 * curvature.upper())
                break
            width /= 2
        best = larger(enough, self.value(top).lower() if patch is None else patch)
        middle = float(top)
        right = middle + width
        while right < farthest + 40.0 and self._float_tail(right) > 0.99 * float(best):
            right += 0.5
        tail = sum(
            (p * normal_tail(arb(right) - 2 * r) for p, r in self.groups.terms), self.groups.rest
        )
        best = larger(larger(best, tail), self.value(arb(left)))
        edges = (
            [left, middle - width, middle + width, right] if patch is not None else [left, right]
        )
        stack = [(edges[i], edges[i + 1]) for i in range(0, len(edges) - 1, 2)]
        with ctx.workprec(ctx.prec // 2):
            return self._elsewhere(stack, best, patch is not None)

    def _float_tail(self, c: float) -> float:
        """sum p_l Phi(2 r_l - c)."""
        return sum(float(p) * erfc((c - 2 * float(r)) / sqrt(2)) / 2 for p, r in self.groups.terms)

    def _elsewhere(self, stack: list[tuple[float, float]], best: arb, found: bool) -> arb:
        """Bound of h on the intervals: `best` where they allow it, else a little more than the
        largest value."""
        rough = best + abs(best) * arb(2) ** -40
        for _ in range(4000):
            if not stack:
                return best
            spend(10 * len(self.rows), "places of suprema")
            low, high = stack.pop()
            if low >= high:
                continue
            c = arb((low + high) / 2)
            slope, curvature = self.slopes(arb(low).union(high))
            if slope > 0 or slope < 0:
                value = self.value(arb(high if slope > 0 else low))
            else:
                w = larger(c - low, high - c)
                value = (
                    self.value(c)
                    + abs(self.slopes(c)[0]) * w
                    + positive_part(curvature) * w * w / 2
                )
            if value <= best:
                continue
            if value <= rough and not found:
                best = larger(best, value)
                continue
            stack += [(low, float(c)), (float(c), high)]
        return ONE

    def _top(self, left: float, right: float) -> arb:
        """Place near the largest h, in floating point."""
        log_a, base = float(self.order.log.mid()), float(self.base.mid())
        rows = [
            (
                float(p.mid()),
                float(r.mid()),
                float(low.mid()),
                float(high.mid()),
                float(middle.mid()),
            )
            for p, r, low, high, middle in self.rows
        ]

        def scaled(t: float) -> float:
            """Value of a Phi(-t) without overflow."""
            tail = erfc(t / sqrt(2)) / 2
            return exp(log_a + log(tail)) if tail > 0 else 0.0

        def value(c: float) -> float:
            below, weighted = erfc(c / sqrt(2)) / 2, scaled(c)
            total = -base * below
            for p, r, low, high, middle in rows:
                if c > high:
                    total += p * (erfc((c - 2 * r) / sqrt(2)) / 2 - weighted)
                elif c < low:
                    total += p * (below - scaled(c + 2 * r))
                else:
                    total += p * middle
            return total

        count = max(40, int(2.5 * (right - left)))
        gap = (right - left) / count
        top = max((left + i * gap for i in range(count + 1)), key=value)
        low, high = top - gap, top + gap
        for _ in range(40):
            one, two = low + (high - low) * 0.381966, high - (high - low) * 0.381966
            low, high = (one, high) if value(one) < value(two) else (low, two)
        c = arb((low + high) / 2)
        for _ in range(2):
            first, second = self.slopes(c)
            if not second < 0:
                break
            step = (first / second).mid()
            if abs(step) > gap:
                break
            c = (c - step).mid()
        return c

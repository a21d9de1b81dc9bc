"""Lower bounds: half-lines as events of two mixtures of shifted noise, and whether they attain a
discretised law."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, exp, inf, log, nextafter, pi, sqrt

from attacks import Sums, all_noiseless, noiseless, spread
from balls import HALF, ONE, ZERO, normal_density, normal_tail
from cells import Frontier, Mixture
from flint import arb
from law import shortfall_below
from multiplicity import ball
from theorems import Case
from work import fits, spend

MOST_POINTS = 100_000  # places of a law that is held against unions of cells: about a minute


@dataclass(frozen=True)
class Noise:
    """The noise of a sum, lengths over its scale: its tail in balls and, for places to start from,
    in floating point."""

    laplace: bool

    def tail(self, t: arb) -> arb:
        """Value of P(noise > t)."""
        if not self.laplace:
            return normal_tail(t)
        outer = (-abs(t)).exp() * HALF
        return outer if t >= 0 else ONE - outer if t < 0 else outer.union(ONE - outer)

    def density(self, t: arb) -> arb:
        return (-abs(t)).exp() * HALF if self.laplace else normal_density(t)

    def log_tail(self, t: float) -> float:
        if self.laplace:
            return -t - log(2) if t >= 0 else log(1 - exp(t) / 2)
        if t < 35:
            return log(erfc(t / sqrt(2)) / 2)
        return -t * t / 2 - log(t * sqrt(2 * pi)) - 1 / (t * t)

    def log_density(self, t: float) -> float:
        return -abs(t) - log(2) if self.laplace else -t * t / 2 - log(2 * pi) / 2


def log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top if top == -inf else top + log(sum(exp(value - top) for value in logs))


class Curve:
    """Half-lines as events of two mixtures of shifted noise, which are the best ones where the loss
    rises.

    Any event shows that its two probabilities lie below the trade-off curve, so how it was found
    does not matter.
    """

    def __init__(self, first: Sums, second: Sums, s: arb, noise: Noise, negligible: arb) -> None:
        self.noise = noise
        P, Q = first.weights, second.weights
        values = sorted({*P, *Q})
        # What is seldom is left out of P, which lowers P(A), and counted as if it were in A under
        # Q.
        rare = {x for x in values if P.get(x, ZERO) < negligible and Q.get(x, ZERO) < negligible}
        kept = [x for x in values if x not in rare]
        # So is what the law of counts has left out.
        dropped = sum((Q.get(x, ZERO) for x in rare), ZERO)
        self.extra = (dropped + second.rest).upper()
        self.centres = [ball(x) / s for x in kept]
        self.p = [P.get(x, ZERO) for x in kept]
        self.q = [Q.get(x, ZERO) for x in kept]
        self._floats()
        places = [self.low + (self.high - self.low) * i / 1000 for i in range(1001)]
        losses = [self.loss(t) for t in places]
        if losses[0] > losses[-1]:
            self.centres = [-x for x in self.centres]
            self._floats()
            losses = losses[::-1]
        self.rises = all(later >= earlier - 1e-9 for earlier, later in pairwise(losses))
        self.last = self.high

    def _floats(self) -> None:
        self.x = [float(x.mid()) for x in self.centres]
        self.log_p = [log(float(w.mid())) if w > 0 else -inf for w in self.p]
        self.log_q = [log(float(w.mid())) if w > 0 else -inf for w in self.q]
        self.low, self.high = min(self.x) - 40.0, max(self.x) + 40.0

    def loss(self, t: float) -> float:
        heights = [self.noise.log_density(t - x) for x in self.x]
        return log_sum([w + h for w, h in zip(self.log_p, heights, strict=True)]) - log_sum(
            [w + h for w, h in zip(self.log_q, heights, strict=True)]
        )

    def log_tail(self, t: float, weights: list[float]) -> float:
        return log_sum(
            [w + self.noise.log_tail(t - x) for w, x in zip(weights, self.x, strict=True)]
        )

    def tails(self, c: arb) -> tuple[arb, arb]:
        """Masses P(t > c) and Q(t > c)."""
        tails = [self.noise.tail(c - x) for x in self.centres]
        return (
            sum((w * t for w, t in zip(self.p, tails, strict=True)), ZERO),
            sum((w * t for w, t in zip(self.q, tails, strict=True)), ZERO),
        )

    def event(self, T: arb, S: arb) -> arb:
        """Mass P(A) of an event A with Q(A) <= T, as large as is found."""
        room = (T - self.extra).lower()
        if room >= 1:  # all outputs are allowed
            return sum(self.p, ZERO)
        if not room > 0:  # none are; nor are they if it is no number
            return ZERO
        return self.half_line(room, S)

    def half_line(self, room: arb, S: arb) -> arb:
        """Mass P(t > c) with Q(t > c) <= room: c by floating point, a little larger, and sharpened
        if that is not enough."""
        c = arb(self.place_of(float(room.log().mid())))
        rough = (c + abs(c) * arb(2) ** -48 + arb(2) ** -60).mid()
        P, Q = self.tails(rough)
        # an event is taken where its charge is certainly no more than the room; equal is allowed
        best = P.lower() if room >= Q else ZERO
        for _ in range(4):
            if best >= S:
                return best
            P, Q = self.tails(c)
            if room >= Q and P.lower() > best:
                best = P.lower()
            density = sum(
                (w * self.noise.density(c - x) for w, x in zip(self.q, self.centres, strict=True)),
                ZERO,
            )
            # Newton's step, and a hair more, so that Q ends below.
            c = (c + (Q - room * (ONE - arb(2) ** -100)) / density).mid()
        return best

    def place_of(self, log_room: float) -> float:
        """Place c with ln Q(t > c) = log_room, by Newton's method between brackets, from the last
        place on."""
        c, low, high = self.last, self.low - 1e3, self.high + 1e3
        for _ in range(200):
            value = self.log_tail(c, self.log_q)
            low, high = (c, high) if value > log_room else (low, c)
            density = log_sum(
                [w + self.noise.log_density(c - x) for w, x in zip(self.log_q, self.x, strict=True)]
            )
            slope = exp(min(density - value, 700.0))
            following = c + (value - log_room) / slope if slope > 0 else (low + high) / 2
            if not low < following < high:
                following = (low + high) / 2
            if abs(following - c) <= 1e-15 * max(1.0, abs(c)):
                break
            c = following
        self.last = c
        return c


def statistic_sum(case: Case) -> arb:
    """Excess of a part's law over events of the sum of one step."""
    return excess_of_sum(case, noiseless(case), case.release.s / spread(case.release))


def sum_of_all_steps(case: Case) -> arb:
    """Excess of a part's law over events of the sum of all outputs, of which each has its noise."""
    *laws, steps = all_noiseless(case)
    return excess_of_sum(case, laws, case.release.s * arb(steps).sqrt())


def excess_of_sum(case: Case, laws: Sequence[Sums], s: arb) -> arb:
    """Excess of a part's law over events of a sum with this noise: half-lines or, where the loss
    does not rise, unions of cells."""
    first, second = laws if case.direction == "forward" else reversed(laws)
    release, law = case.release, case.law
    curve = Curve(first, second, s, Noise(release.laplace), case.negligible)
    if curve.rises:
        spend(40 * len(law.masses) * len(curve.centres), "half-lines")
        return shortfall_below(law, curve.event)
    fits(len(law.masses), MOST_POINTS, "points of a law held against unions of cells of a sum")
    # a scale that is no double is rounded up: more noise attains less
    scale = float(s.upper())
    scale = scale if s <= scale else nextafter(scale, inf)
    mixtures = [Mixture.of(sums, scale, laplace=release.laplace) for sums in (first, second)]
    unions = Frontier(*mixtures, law.step, law.reach, float(case.negligible.mid()))
    return shortfall_below(law, unions.event)

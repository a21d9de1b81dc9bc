"""Lower ends: the laws of a statistic on the data sets of an attack, and events that attain a discretised law.

To add a statistic, add it to `STATISTICS`: a function of a `Case` that returns the shortfall of the case's law below
the trade-off
curve of its two laws.  To add a policy, add it to `POLICIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import erfc, exp, inf, log, pi, sqrt

from balls import HALF, ONE, ZERO, NotCovered, Refuted, normal_density, normal_tail
from flint import arb
from law import shortfall_below
from multiplicity import ball, chain_counts, cut_sample, probability, stages_of, whole
from theorems import Case

Weights = dict[Fraction, arb]  # how probable which noiseless value is


def contribution(data: dict, name: str) -> Fraction:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1:
        raise Refuted(f"data: {name} must lie in [-1, 1], got {value!r}")
    return Fraction(value)


def neighbours(case: Case) -> tuple[Fraction, Fraction, Fraction]:
    """What the record contributes in D and in D' along u, and what all others do; a record that is not there adds 0."""
    data = case.part["data"]
    gone = data["other"] is None
    if gone != (case.adjacency == "add_remove"):
        raise Refuted(f"data: D and D' are no neighbours under {case.adjacency}")
    other = Fraction(0) if gone else contribution(data, "other")
    if case.adjacency == "zero_out" and other != 0:
        raise Refuted("data: under zero_out the record contributes 0 in D'")
    return contribution(data, "record"), other, contribution(data, "filler")


def noiseless(case: Case) -> tuple[Weights, Weights]:
    """The laws of the sum in direction u on D and on D' without its noise, up to one translation of both."""
    record, other, filler = neighbours(case)
    release, gone = case.release, case.adjacency == "add_remove"
    if release.name == "truncated_poisson":
        return cut_sums(case, record, other, filler, gone)
    if release.name in ("deterministic", "cyclic_poisson"):
        rate = probability(release.sampler["rate"], "rate") if release.name == "cyclic_poisson" else Fraction(1)
        fixed, chances = False, [ball(1 - rate), ball(rate)]
    else:
        stages = stages_of(release.sampler)
        if stages is None:
            raise NotCovered(f"statistic 'sum' of {release.name}")
        fixed = stages[-1].kind != "poisson"
        slots = 1 if release.name == "poisson" else case.slots
        chances = chain_counts(stages, slots, 1, case.negligible).probabilities
    if not fixed and filler != 0:
        raise NotCovered("fillers in a sample of random size")
    taken = filler if fixed else 0  # whose place an occurrence takes
    P: Weights = {}
    Q: Weights = {}
    for hits, chance in enumerate(chances):
        add(P, hits * (record - taken), chance)
        add(Q, Fraction(0) if gone else hits * (other - taken), chance)
    return P, Q


def add(weights: Weights, value: Fraction, chance: arb) -> None:
    weights[value] = weights.get(value, ZERO) + chance


def cut_sums(case: Case, record: Fraction, other: Fraction, filler: Fraction, gone: bool) -> tuple[Weights, Weights]:
    """Truncated Poisson (3.10): K' others are drawn; the record is kept with q where K' < B, else with q B/(K' + 1)."""
    sampler = case.release.sampler
    rate, most = probability(sampler["rate"], "rate"), whole(sampler["max_batch"], "max_batch")
    _, kept, law = cut_sample(case.slots - 1, rate, most, case.negligible)
    P: Weights = {}
    Q: Weights = {}
    full = ZERO
    for drawn, chance in law.items():
        if drawn >= most:
            full += chance
            continue
        for weights, value in ((P, record), (Q, other)):
            add(weights, drawn * filler, chance * ball(1 - rate))
            add(weights, drawn * filler + value, chance * ball(rate))
    add(P, most * filler, full - kept)
    add(P, (most - 1) * filler + record, kept)
    add(Q, most * filler, full if gone else full - kept)
    if not gone:
        add(Q, (most - 1) * filler + other, kept)
    return P, Q


@dataclass(frozen=True)
class Noise:
    """The noise of a sum, lengths over its scale: its tail in balls and, for places to start from, in floating
    point."""

    laplace: bool

    def tail(self, t: arb) -> arb:
        """P(noise > t)."""
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
    """Events of two mixtures of shifted noise, by half-lines, or by level sets of the loss where that does not rise.

    Any event shows that its two probabilities lie below the trade-off curve, so how it was found does not matter.
    """

    def __init__(self, P: Weights, Q: Weights, s: arb, noise: Noise, negligible: arb) -> None:
        self.noise = noise
        values = sorted({*P, *Q})
        # What is seldom is left out of P, which lowers P(A), and counted as if it were in A under Q.
        kept = [x for x in values if not (P.get(x, ZERO) < negligible and Q.get(x, ZERO) < negligible)]
        self.extra = sum((Q.get(x, ZERO) for x in values if x not in kept), ZERO).upper()
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
            places = [-t for t in places[::-1]]
        self.places, self.losses = places, losses
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
            [w + h for w, h in zip(self.log_q, heights, strict=True)])

    def log_tail(self, t: float, weights: list[float]) -> float:
        return log_sum([w + self.noise.log_tail(t - x) for w, x in zip(weights, self.x, strict=True)])

    def tails(self, c: arb) -> tuple[arb, arb]:
        """P(t > c) and Q(t > c)."""
        tails = [self.noise.tail(c - x) for x in self.centres]
        return (sum((w * t for w, t in zip(self.p, tails, strict=True)), ZERO),
                sum((w * t for w, t in zip(self.q, tails, strict=True)), ZERO))

    def event(self, T: arb, S: arb) -> arb:
        """P(A) for an event A with Q(A) <= T, as large as is found."""
        room = (T - self.extra).lower()
        if room >= 1:
            return sum(self.p, ZERO)
        if not room > 0:
            return ZERO
        return self.half_line(room, S) if self.rises else self.level_set(room, S)

    def half_line(self, room: arb, S: arb) -> arb:
        """P(t > c) with Q(t > c) <= room: c by floating point, a little larger, and sharpened if that is not enough."""
        c = self.place_of(float(room.log().mid()))
        rough = arb(c) + abs(arb(c)) * arb(2) ** -48 + arb(2) ** -60
        P, Q = self.tails(rough.mid())
        if room >= Q and P >= S:
            return P
        return self.sharpened(arb(c), room, [])

    def sharpened(self, c: arb, room: arb, fixed: list[tuple[arb, arb]]) -> arb:
        """P of {t > c} and of the intervals `fixed` left of c, c moved until Q of all fits into `room`."""
        P_fixed = Q_fixed = ZERO
        for low, high in fixed:
            (P_low, Q_low), (P_high, Q_high) = self.tails(low), self.tails(high)
            P_fixed, Q_fixed = P_fixed + P_low - P_high, Q_fixed + Q_low - Q_high
        target = room - Q_fixed
        best = ZERO
        for attempt in range(6):
            P, Q = self.tails(c)
            if target >= Q and (P_fixed + P).lower() > best:
                best = (P_fixed + P).lower()
                if attempt:
                    return best
            density = sum((w * self.noise.density(c - x) for w, x in zip(self.q, self.centres, strict=True)), ZERO)
            # Newton's step, and a hair more, so that Q ends below.
            c = (c + (Q - target * (ONE - arb(2) ** -100)) / density).mid()
        return best

    def place_of(self, log_room: float) -> float:
        """c with ln Q(t > c) = log_room, by Newton's method between brackets, from the last place on."""
        c, low, high = self.last, self.low - 1e3, self.high + 1e3
        for _ in range(200):
            value = self.log_tail(c, self.log_q)
            low, high = (c, high) if value > log_room else (low, c)
            density = log_sum([w + self.noise.log_density(c - x) for w, x in zip(self.log_q, self.x, strict=True)])
            slope = exp(min(density - value, 700.0))
            following = c + (value - log_room) / slope if slope > 0 else (low + high) / 2
            if not low < following < high:
                following = (low + high) / 2
            if abs(following - c) <= 1e-15 * max(1.0, abs(c)):
                break
            c = following
        self.last = c
        return c

    def level_set(self, room: arb, S: arb) -> arb:
        """P of {loss > level}, the level such that Q of it is about `room`; its last half-line is sharpened."""
        low, high = min(self.losses), max(self.losses)
        target = float(room.mid())
        for _ in range(60):
            level = (low + high) / 2
            mass = sum(self._float_mass(one, two) for one, two in self.above(level))
            low, high = (level, high) if mass > target else (low, level)
        intervals = self.above(high)
        if not intervals or intervals[-1][1] != inf:
            return ZERO
        fixed = [(arb(max(one, -1e6)), arb(two)) for one, two in intervals[:-1]]
        return self.sharpened(arb(intervals[-1][0]), room, fixed)

    def _float_mass(self, one: float, two: float) -> float:
        upper = 0.0 if two == inf else exp(self.log_tail(two, self.log_q))
        return (1.0 if one == -inf else exp(self.log_tail(one, self.log_q))) - upper

    def above(self, level: float) -> list[tuple[float, float]]:
        """The intervals of {loss > level}, up to rounding."""
        edges = [-inf] if self.losses[0] > level else []
        for i in range(1, len(self.places)):
            before, after = self.losses[i - 1] > level, self.losses[i] > level
            if before != after:
                one, two = self.places[i - 1], self.places[i]
                for _ in range(50):
                    middle = (one + two) / 2
                    one, two = (middle, two) if (self.loss(middle) > level) == before else (one, middle)
                edges.append(two)
        if len(edges) % 2:
            edges.append(inf)
        return list(zip(edges[::2], edges[1::2], strict=True))


def statistic_sum(case: Case) -> arb:
    P, Q = noiseless(case)
    if case.direction == "backward":
        P, Q = Q, P
    curve = Curve(P, Q, case.release.s, Noise(case.release.laplace), case.negligible)
    return shortfall_below(case.law, curve.event)


STATISTICS: dict[str, Callable[[Case], arb]] = {"sum": statistic_sum}

# name of a form of `lower` -> (question's releases, adjacency, lower, epsilon) -> a lower bound of delta(epsilon)
POLICIES: dict[str, Callable] = {}

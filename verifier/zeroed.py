"""Theorem 47: a record that is set to 0 where a sample may hold it several times.

The stages before the last are revealed. Each way in which they may go ends in a law p of the number
of draws at the last one, and in the number r, the product of their chances to keep a marked slot,
by which a - 1 has been divided: b - 1 = (a - 1)/r.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, log1p

from balls import ONE, ZERO, normal_tail, positive_part
from flint import arb
from multiplicity import Counts, Stage, stage_counts
from theorems import Case, Theorem, held_against
from work import fits, spend

from profiles import Bound, Order, gaussian

MOST_WORK = 1_500_000  # suprema of one direction: some two minutes


@dataclass(frozen=True)
class Draws:
    """One way in which the stages before the last may go: its probability, r, and p."""

    weight: arb
    reached: arb
    counts: Counts

    @cached_property
    def rows(self) -> list[tuple[int, arb]]:
        return [(hits, p) for hits, p in self.counts.positive() if not p.is_zero()]


def ways(
    stages: list[Stage],
    slots: int,
    marked: int,
    negligible: arb,
    weight: arb = ONE,
    reached: arb = ONE,
) -> tuple[list[Draws], arb]:
    """All ways in which the stages before the last may go, by (i) of the theorem, and the
    probability of those that are left out."""
    counts = stage_counts(stages[0], slots, marked, negligible / weight)
    rest = weight * counts.rest
    spend(len(counts.probabilities), "combinations of numbers of occurrences")
    if len(stages) == 1:
        return [Draws(weight, reached, counts)], rest
    found = []
    for hits, p in counts.positive():
        if p.is_zero():
            continue
        more, lost = ways(
            stages[1:], stages[0].size, hits, negligible, weight * p, reached * counts.eta
        )
        found += more
        rest += lost
    return found, rest


# --- One number of draws: the supremum over half-lines --------------------------------------------


def with_record(order: Order, others: arb, distance: arb) -> arb:
    """Supremum S(a, others; l, 2 l): the most that N(2 l) - a N(l) - others N(0) gives to an event,
    v first.

    Over that of N(0) the density at t is e_2l - a e_l - others, with y = e^(l t)
    y^2 e^(-2 l^2) - a y e^(-l^2/2) - others. As others >= 0, this has one positive root and is
    positive beyond it alone: the half-line from there is the best event.
    """
    square = distance * distance
    root = (order.a + (order.a * order.a + 4 * others * (-square).exp()).sqrt()) / 2
    c = 3 * distance / 2 + root.log() / distance
    mass = normal_tail(c - 2 * distance) - order.a * normal_tail(c - distance)
    return positive_part(mass - others * normal_tail(c))


def without_record(order: Order, others: arb, distance: arb) -> arb:
    """Divergence G(a + others, l), 0 first."""
    return gaussian(Order(order.u + others), distance)


# --- Charges --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """Quantities, as logarithms in floating point, from which charges are chosen."""

    a: float
    fillers: float  # b - a
    b: float
    budget: float  # (b - 1) p_0


def levels(order: Order, draws: Draws) -> Levels | None:
    """Levels of an order, or None if there is nothing to share."""
    missed = draws.counts.probabilities[0]
    if not (order.u > 0 and missed > 0):
        return None
    log_u, r = log_of(order.u), float(draws.reached.mid())
    fillers = log_of(ONE - draws.reached) - log(r) if not draws.reached >= 1 else -inf
    log_a = float(order.log.mid())
    b = max(log_u - log(r), 0.0) + log1p(exp(-abs(log_u - log(r))))
    return Levels(log_a, log_u + fillers, b, log_u - log(r) + log_of(missed))


def log_of(x: arb) -> float:
    return float(x.mid().log().mid()) if x.mid() > 0 else -inf


# (levels, l, t): ln of what is charged to l and its derivative over itself, or None for nothing
Paid = Callable[[Levels, float, float], tuple[float, float] | None]


def paid_with_record(at: Levels, x: float, t: float) -> tuple[float, float] | None:
    """Charge tau_l = e_2l - a e_l - (b - a) at the threshold t, where it is positive."""
    record = exp(min(at.a - t * x + 1.5 * x * x, 1.0))
    taken = record + exp(min(at.fillers - 2 * t * x + 2 * x * x, 1.0))
    if taken >= 1:
        return None
    return 2 * x * (t - x) + log1p(-taken), x * (2 - record) / (1 - taken)


def paid_without(at: Levels, x: float, t: float) -> tuple[float, float] | None:
    """Charge tau_l = e_l - b."""
    taken = exp(min(at.b - t * x + x * x / 2, 1.0))
    if taken >= 1:
        return None
    return x * (t - x / 2) + log1p(-taken), x / (1 - taken)


@dataclass
class Threshold:
    """The place t at which all l have the same best half-line, as far as they are charged, and the
    charges use up the budget. It is kept: the next order's is near."""

    rows: list[tuple[float, float]]  # l and ln p_l
    paid: Paid
    t: float = 0.0

    def shares(self, at: Levels) -> list[float]:
        """Shares of the budget that each l is charged, times p_l, by Newton's method between
        brackets; any shares are valid."""
        low, high = -inf, inf
        kept = [0.0] * len(self.rows)
        for _ in range(100):
            shares, slope = self._shares(at)
            total = sum(shares)
            kept = shares if total > 0 else kept
            excess = log(total) if total > 0 else -inf
            low, high = (low, self.t) if excess > 0 else (self.t, high)
            # where the first charges set in, they may be far more than the budget at once
            if abs(excess) < 1e-9 or high - low < 1e-13 * abs(self.t):
                break
            step = -excess * total / slope if total > 0 else 1.0 + abs(self.t)
            self.t = self._between(self.t + step, low, high)
        return kept

    def _shares(self, at: Levels) -> tuple[list[float], float]:
        shares, slope = [], 0.0
        for x, log_p in self.rows:
            paid = self.paid(at, x, self.t)
            share = exp(min(log_p + paid[0] - at.budget, 600.0)) if paid else 0.0
            shares.append(share)
            slope += share * paid[1] if paid else 0.0
        return shares, slope

    @staticmethod
    def _between(t: float, low: float, high: float) -> float:
        if low < t < high:
            return t
        return (low + high) / 2


class Zeroed:
    """The bound of one direction: the sum over all ways and numbers l of draws of p_l times the
    supremum for l, at b = lift(a, r) and with charges tau_l of N(0) to each.

    Charges are real numbers of sum p_l tau_l = (b - 1) p_0 by construction. Those of one threshold
    for all l make the sum least: there every supremum falls equally fast in its charge.
    """

    def __init__(self, found: list[Draws], rest: arb, s: arb, first: str) -> None:
        self.found, self.rest, self.s = found, rest, s
        self.supremum, paid = FIRST[first]
        self.thresholds = [
            Threshold([(float((hits / s).mid()), log_of(p)) for hits, p in way.rows], paid)
            for way in found
        ]

    def __call__(self, order: Order, enough: arb) -> arb:
        total = self.rest
        for way, threshold in zip(self.found, self.thresholds, strict=True):
            fillers = order.u * positive_part(ONE - way.reached) / way.reached
            for (hits, p), tau in zip(way.rows, self._charges(order, way, threshold), strict=True):
                total += way.weight * p * self.supremum(order, fillers + tau, hits / self.s)
        return total

    def _charges(self, order: Order, way: Draws, threshold: Threshold) -> list[arb]:
        at = levels(order, way)
        shares = [arb(share) for share in threshold.shares(at)] if at else []
        total = sum(shares, ZERO)
        if not total > 0:
            return [ZERO] * len(way.rows)
        budget = order.u / way.reached * way.counts.probabilities[0]
        return [
            budget * share / (total * p) for share, (_, p) in zip(shares, way.rows, strict=True)
        ]


FIRST: dict[str, tuple[Callable[[Order, arb, arb], arb], Paid]] = {
    "v": (with_record, paid_with_record),
    "0": (without_record, paid_without),
}


def zeroed_bounds(
    stages: list[Stage], slots: int, s: arb, negligible: arb
) -> tuple[Bound, Bound, int]:
    """Bounds of both directions, and how many suprema each order takes."""
    found, rest = ways(stages, slots, 1, negligible)
    both = (Zeroed(found, rest, s, first) for first in ("v", "0"))
    return *both, sum(len(way.rows) for way in found)


def theorem_47(case: Case) -> arb:
    stages = case.stages
    case.need(
        case.adjacency == "zero_out" and not case.release.laplace, "zero_out and Gaussian noise"
    )
    case.need(
        all(stage.kind in ("with", "without") for stage in stages),
        "stages of a fixed number of draws",
    )
    forward, backward, suprema = zeroed_bounds(stages, case.slots, case.release.s, case.negligible)
    orders = len(case.law.masses)
    fits(suprema * orders, MOST_WORK, "orders times numbers of draws of Theorem 47")
    return held_against(case, forward, backward)


THEOREMS = {"47": Theorem("zero_out", theorem_47)}

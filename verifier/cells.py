"""Cells of one number that is released, and the events that can be made of them.

Lemma (F2). Whoever sees only in which cell the number lies sees less, so what is attained by events
that are unions of cells is attained. That holds for any cells. They are therefore found in floating
point; their masses, which decide, are balls.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

from attacks import Sums, neighbours
from balls import NotCovered
from flint import arb
from law import shortfall_below
from multiplicity import ball
from theorems import Case
from work import fits, spend

NODES = 4000
HALVINGS = 40
MOST_REACH = 200_000  # grid points on either side of loss 0: minutes
FAR = 1e9  # shortfalls, as multiples of a negligible mass, that no claim of nine digits allows


def normal_below(z: arb) -> arb:
    """Phi(z)."""
    return (-z / arb(2).sqrt()).erfc() / 2


def laplace_below(z: arb) -> arb:
    """The distribution function of Lap(0) of scale 1."""
    left, right = z.exp() / 2, 1 - (-z).exp() / 2
    if z <= 0:
        return left
    return right if z >= 0 else left.union(right)


@dataclass(frozen=True)
class Mixture:
    """sum over l of weights[l] times the noise, of multiplier `scale`, about centres[l]."""

    weights: list[arb]
    centres: list[Fraction]
    scale: float
    laplace: bool
    rest: arb  # bound of the weights that are left out

    @classmethod
    def of(cls, sums: Sums, scale: float, *, laplace: bool) -> "Mixture":
        weights = sums.weights
        return cls(list(weights.values()), list(weights), scale, laplace, sums.rest)

    @cached_property
    def _terms(self) -> list[tuple[float, float]]:
        likely = [
            (float(w.mid()), float(c)) for w, c in zip(self.weights, self.centres, strict=True)
        ]
        return [(math.log(w), c) for w, c in likely if w > 0]

    def log_density(self, t: float) -> float:
        """Log density in floating point, less a constant: it only aims."""
        if self.laplace:
            exponents = [w - abs(t - c) / self.scale for w, c in self._terms]
        else:
            exponents = [w - ((t - c) / self.scale) ** 2 / 2 for w, c in self._terms]
        return log_sum(exponents)

    def below(self, t: float) -> arb:
        """The mass of (-infinity, t]."""
        noise = laplace_below if self.laplace else normal_below
        total = arb(0)
        for weight, centre in zip(self.weights, self.centres, strict=True):
            total += weight * noise((arb(t) - ball(centre)) / self.scale)
        return total

    def above(self, t: float) -> arb:
        """The mass of (t, infinity)."""
        noise = laplace_below if self.laplace else normal_below
        total = arb(0)
        for weight, centre in zip(self.weights, self.centres, strict=True):
            total += weight * noise((ball(centre) - arb(t)) / self.scale)
        return total

    @property
    def terms(self) -> int:
        return len(self.weights)

    @property
    def mass(self) -> arb:
        """Whole mass: below 1 where rare terms were left out."""
        return sum(self.weights, arb(0))

    def range(self, tail: float) -> tuple[float, float]:
        """An interval that holds all but about `tail` of the mass. Losses of Laplace noise are
        constant beyond the outermost centres."""
        reach = 0.0 if self.laplace else math.sqrt(-2 * math.log(tail)) * self.scale
        return float(min(self.centres)) - reach, float(max(self.centres)) + reach

    @property
    def turns(self) -> list[float]:
        """Places where the loss may turn. Between neighbouring centres Laplace densities are of the
        form A e^-t + D e^t, and the ratio of two such forms is monotone."""
        return [float(c) for c in self.centres] if self.laplace else []


@dataclass(frozen=True)
class Largest:
    """The largest of `batches` independent Gaussian sums, one about `shift` and the others about 0
    (section 4.3).
    """

    shift: Fraction
    batches: int
    s: arb

    mass, rest = arb(1), arb(0)
    turns = ()
    terms = 1

    @property
    def scale(self) -> float:
        """Roughly s: it only aims."""
        return float(self.s.mid())

    def log_density(self, t: float) -> float:
        """Log density in floating point, less a constant: it only aims."""
        z, y = t / self.scale, (t - self.shift) / self.scale
        other, own = log_normal_below(z), log_normal_below(y)
        largest_is_own = (self.batches - 1) * other - y * y / 2
        if self.batches == 1:
            return largest_is_own
        largest_is_other = math.log(self.batches - 1) + own + (self.batches - 2) * other - z * z / 2
        return log_sum([largest_is_own, largest_is_other])

    def below(self, t: float) -> arb:
        """P(max <= t) = Phi((t - shift)/s) Phi(t/s)^(T - 1)."""
        own = normal_below((arb(t) - ball(self.shift)) / self.s)
        other = normal_below(arb(t) / self.s)
        return own * other ** (self.batches - 1)

    def above(self, t: float) -> arb:
        """P(max > t) = 1 - (1 - o)(1 - p)^(T - 1) = o + (1 - o)(1 - (1 - p)^(T - 1))."""
        own = normal_below((ball(self.shift) - arb(t)) / self.s)
        other = normal_below(-arb(t) / self.s)
        return own - (1 - own) * ((self.batches - 1) * (-other).log1p()).expm1()

    def range(self, tail: float) -> tuple[float, float]:
        """An interval that holds all but at most about `tail` of the mass."""
        reach = math.sqrt(-2 * math.log(tail / self.batches)) * self.scale
        return min(float(self.shift), 0.0) - reach, max(float(self.shift), 0.0) + reach


def log_sum(exponents: list[float]) -> float:
    """ln sum exp."""
    top = max(exponents)
    return top + math.log(math.fsum(math.exp(e - top) for e in exponents))


def log_normal_below(z: float) -> float:
    """ln Phi(z), roughly; far below by its asymptotic series."""
    if z > -30:
        return math.log(math.erfc(-z / math.sqrt(2)) / 2)
    return -z * z / 2 - math.log(-z * math.sqrt(2 * math.pi)) - 1 / (z * z)


def crossings(first, second, step: float, reach: int, tail: float) -> list[float]:
    """Edges of the cells: where the loss passes half-way points (i + 1/2) step, |i| <= reach, and
    where it may turn."""
    fits(reach, MOST_REACH, "grid points of a loss whose cells are sought")
    spend((NODES + 40 * reach) * (first.terms + second.terms), "places of losses")

    def loss(t: float) -> float:
        return (first.log_density(t) - second.log_density(t)) / step

    ranges = [law.range(tail) for law in (first, second)]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    even = [low + (high - low) * i / NODES for i in range(NODES + 1)]
    turns = {*first.turns, *second.turns}
    nodes = sorted({*even, *turns})
    losses = [loss(t) for t in nodes]
    edges = set(turns)
    for left, right in pairwise(zip(nodes, losses, strict=True)):
        ends = sorted((left[1], right[1]))
        lowest, highest = (min(max(math.ceil(end - 0.5), -reach), reach) for end in ends)
        edges.update(_crossing(loss, left, right, i + 0.5) for i in range(lowest, highest))
    return sorted(edges)


def _crossing(loss, left: tuple[float, float], right: tuple[float, float], level: float) -> float:
    """A place between two others where the loss is nearly at the level, by chords; the end that
    stays is pulled in (Illinois).
    """
    (t, f), (u, g) = (left[0], left[1] - level), (right[0], right[1] - level)
    middle = (t + u) / 2
    for _ in range(100):
        chord = (t * g - u * f) / (g - f)
        middle = chord if min(t, u) < chord < max(t, u) else (t + u) / 2
        found = loss(middle) - level
        if abs(found) < 1e-9 or abs(u - t) < 1e-13:
            break
        if (found > 0) != (g > 0):
            t, f = u, g
        else:
            f /= 2
        u, g = middle, found
    return middle


def masses(law, edges: list[float]) -> list[arb]:
    """Masses of the cells between the edges, where the first and the last cell have no outer end:
    differences of the smaller tail, as the radius of a ball about 1 is more than far cells hold."""
    below = [arb(0), *(law.below(t) for t in edges)]
    # both are enclosures: which one is taken is a matter of sharpness
    turn = next((i for i, mass in enumerate(below) if 2 * mass > 1), len(below))
    above = [*(law.above(t) for t in edges[turn - 1 :]), arb(0)]
    falling = [left - right for left, right in pairwise(above)]
    if turn == len(below):
        return [*(right - left for left, right in pairwise(below)), law.mass - below[-1]]
    return [*(right - left for left, right in pairwise(below[: turn + 1])), *falling]


def rough_loss(p: arb, q: arb) -> float:
    """Loss of a cell with these masses, in nats and floating point: it orders cells."""
    return _rough_log(p.mid()) - _rough_log(q.mid())


def _rough_log(mass: arb) -> float:
    return float(mass.log().mid()) if mass > 0 else -1e6


def by_loss(cells: list[tuple[arb, arb]]) -> list[tuple[arb, arb]]:
    """Cells sorted by loss, the largest first."""
    return sorted(cells, key=lambda cell: rough_loss(*cell), reverse=True)


class Events:
    """Unions of cells, from none to all, taken by falling loss, and their masses under both laws.

    `unseen` bounds the mass under the second law of cells that are not listed, and what the masses
    of those that are listed may be short by: it counts as if it were in every event.
    """

    def __init__(self, cells: list[tuple[arb, arb]], unseen: arb):
        self._accept = list(accumulate((p for p, _ in cells), initial=arb(0)))
        charges = accumulate((q for _, q in cells), initial=unseen)
        self._charge = list(accumulate((charge.upper() for charge in charges), arb.max))
        # a charge that is no number would be taken for a small one
        if not self._charge[-1].is_finite():
            raise NotCovered("masses of cells that are no numbers")

    def attained(self, charge: arb) -> arb:
        """Mass under the first law, from below, of an event of mass at most `charge` under the
        second: one of the events, and a random share of the last cell of the next larger one."""
        charge = charge.lower()
        i = bisect_right(self._charge, charge)  # an event whose charge is equal is allowed
        if i == 0:  # not even what is unseen is: the empty event alone
            return arb(0)
        inside = self._accept[i - 1], self._charge[i - 1]
        if i == len(self._charge):
            return inside[0].lower()
        return shared(charge, inside, (self._accept[i], self._charge[i]))


def shared(charge: arb, inside: tuple[arb, arb], outside: tuple[arb, arb]) -> arb:
    """Mass under the first law of a random choice between two events, each given by its two masses:
    the share of the larger one is what the charge allows."""
    accept, used = inside
    share = ((charge - used) / (outside[1] - used)).lower()
    return (accept + share * (outside[0] - accept)).lower()


@dataclass(frozen=True)
class Piece:
    """Cell of one number: its ends, its masses under both laws, and its loss in steps."""

    left: float
    right: float
    p: arb
    q: arb
    loss: float


class Frontier(Events):
    """Events of cells between the places where the loss of one number passes a grid."""

    def __init__(self, first, second, step: float, reach: int, tail: float):
        self._laws, self._step = (first, second), step
        self._negligible, self._far = arb(tail), FAR * arb(tail)
        edges = crossings(first, second, step, reach, tail)
        ends = pairwise([-math.inf, *edges, math.inf])
        both = zip(ends, masses(first, edges), masses(second, edges), strict=True)
        cells = [Piece(*interval, p, q, rough_loss(p, q) / step) for interval, p, q in both]
        self._cells = sorted(cells, key=lambda cell: cell.loss, reverse=True)
        self._fallen = [-round(cell.loss) for cell in self._cells]
        # mass that the second law has left out may be in any event
        super().__init__([(cell.p, cell.q) for cell in self._cells], second.rest.upper())

    def event(self, charge: arb, enough: arb) -> arb:
        """Mass under the first law, from below, of an event of mass at most `charge` under the
        second: of whole cells and, where that is not enough, with those at the border cut."""
        value = self.attained(charge)
        if value + self._negligible >= enough:
            return value
        return arb.max(value, self.cut(charge, enough))

    def cut(self, charge: arb, enough: arb) -> arb:
        """As `event`, for the event of all cells that round to a larger loss than those at the
        border, and of the part of these that lies above one loss."""
        charge = charge.lower()
        i = bisect_right(self._charge, charge)
        if not 0 < i < len(self._charge):
            return self.attained(charge)
        fallen = self._fallen[i - 1]
        first, last = bisect_left(self._fallen, fallen), bisect_right(self._fallen, fallen)
        before, cells = (self._accept[first], self._charge[first]), self._cells[first:last]

        def above(loss: float) -> tuple[arb, arb]:
            parts = [self._above(cell, loss) for cell in cells]
            accept, used = (sum((part[law] for part in parts), before[law]) for law in (0, 1))
            return accept, used.upper()

        low, high = -fallen - 0.5, -fallen + 0.5
        inside, outside = before, above(low)
        if not outside[1] > charge:
            return outside[0].lower()
        for _ in range(HALVINGS):
            # the value found lies between both: it is enough, or far from it
            if inside[0] + self._negligible >= enough or outside[0] + self._far < enough:
                break
            middle = (low + high) / 2
            event = above(middle)
            if event[1] <= charge:
                high, inside = middle, event
            else:
                low, outside = middle, event
        return shared(charge, inside, outside)

    def _above(self, cell: Piece, loss: float) -> tuple[arb, arb]:
        """Masses of the part of a cell whose loss is larger; in a cell with two ends the loss is
        monotone."""
        nothing = arb(0), arb(0)
        if math.isinf(cell.left) or math.isinf(cell.right):
            return (cell.p, cell.q) if cell.loss > loss else nothing
        ends = [(t, self._loss(t)) for t in (cell.left, cell.right)]
        if min(height for _, height in ends) >= loss:
            return cell.p, cell.q
        if max(height for _, height in ends) <= loss:
            return nothing
        place = _crossing(self._loss, *ends, loss)
        left, right = (cell.left, place) if ends[0][1] > loss else (place, cell.right)
        first, second = (law.below(right) - law.below(left) for law in self._laws)
        return first, second

    def _loss(self, t: float) -> float:
        first, second = self._laws
        return (first.log_density(t) - second.log_density(t)) / self._step


def largest_step(case: Case) -> arb:
    """Excess of a part's law over events of the largest sum of a shuffled epoch; sums are
    translated by what the fillers add.
    """
    release = case.release
    if release.name != "shuffle" or release.laplace or case.adjacency == "add_remove":
        raise NotCovered(f"statistic 'largest step' of {release.name}")
    record, other, filler = neighbours(case)
    batches = release.steps_per_epoch(release.n)
    laws = [Largest(value - filler, batches, release.s) for value in (record, other)]
    if case.direction == "backward":
        laws.reverse()
    law = case.law
    events = Frontier(*laws, law.step, law.reach, float(case.negligible.mid()))
    return shortfall_below(law, events.event)

"""Random allocation of a record to one of t steps, and secret groups in turn: laws of the
likelihood ratio (docs/proofs/allocation.md).

Let R > 0 be a mean of independent log-normal variables X_j under Q, or of products of variables 1 -
q + q X_j, ER = 1, so that (6) reads H_a(P || Q) = E(R - a)_+ and H_a(Q || P) = a E(1/a - R)_+. A
law of masses m at ratios r, with `lost` beside them, has

    C(a) = sum m (r - a)_+ + lost,    D(a) = sum m (a - r)_+.

Lemma (above). Let C(a) >= E(R - a)_+ for all a >= 0 and M = sum m >= 1; likewise C' for R',
independent of R. Then for w + w' = 1 the law of all w r + w' r', of masses m m' and with w lost M'
+ w' lost' M lost, is such a law of w R + w' R'. Proof: C(0) >= 1, so C(a) >= 1 - a for a < 0 too.
So E(w R + w' R' - a)_+ is at most sum m E(w r + w' R' - a)_+ + w lost, and so on for R'. The same
holds for D(a) >= E(a - R)_+, both 0 at a < 0, whatever the masses.

Lemma (below). Likewise with all inequalities reversed, M <= 1, and nothing lost.

Lemma (products). The law of all r r', of masses m m' and with lost + p lost' lost, p = sum m r, is
one above R R', and, with nothing lost, below it where both are. Proof: for a > 0

    E(R R' - a)_+ = E R' E((R - a/R')_+ | R') <= E R' (sum m (r - a/R')_+ + lost)
                  = sum m E(r R' - a)_+ + lost,

as ER' = 1; terms of r = 0 vanish, and the others are m r E(R' - a/r)_+ <= m r (C'(a/r)). The same
holds for E(a - R R')_+ = E R' E((a/R' - R)_+ | R'), where a term of r = 0 is m a, and m a M' in
the new law: M' >= 1 above, and M' <= 1 below, as D'(a)/a tends to M', and E(a - R')_+/a to 1. ∎

*Above* is shown at the ratios of the new law: between them C and D are linear, and what they have
to be above is convex; beyond the last one C is constant and D has the slope M.  *Below*: between
two ratios C is S - a T, S and T its masses under P and Q on the right. The event "beyond the edge"
gives such a line that is nowhere above what is attained, and lines are compared at both ends of the
interval. Any edge will do, and so will a line between those of two edges, which is nowhere above
the higher one.

A law for which this holds up to a factor, I C(a) >= E(R - a)_+ and so on, counts with its masses
and loss times I. Factors multiply. Below, it may also hold up to an amount, I C(a) - e <= E(R -
a)_+: then the mean has w e + w' e', as I M <= 1, and the product e + I p e'. Tiny amounts far out,
where a factor would lower the whole law, are counted so.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from attacks import neighbours
from balls import ZERO, NotCovered, Refuted, positive_part
from cells import normal_below
from flint import arb, fmpq
from law import Law, shortfall_above
from multiplicity import ball, probability
from question import Release
from theorems import Case, Theorem, held_against
from work import spend

from profiles import gaussian

NUDGES = (1.0, 1 - 2.0**-34, 1 + 2.0**-34, 1 - 2.0**-28, 1 + 2.0**-28)
UNITS = 1074  # every double is a multiple of 2^-1074


@dataclass(frozen=True)
class Parted:
    """Masses under P and Q of the ratios beyond a place, and of those up to it."""

    right_p: arb
    right_q: arb
    left_p: arb
    left_q: arb

    def above(self, a) -> arb:
        """Contribution to C(a) of the ratios beyond the place where all of them exceed a; in any
        case no more than C(a).
        """
        return self.right_p - a * self.right_q

    def under(self, a) -> arb:
        """Contribution to D(a) of the ratios up to the place where a exceeds all of them; in any
        case no more than D(a)."""
        return a * self.left_q - self.left_p

    def mixed(self, other: "Parted", share: arb) -> "Parted":
        """So much of these masses, and the rest of the other ones."""
        rest = 1 - share
        return Parted(
            share * self.right_p + rest * other.right_p,
            share * self.right_q + rest * other.right_q,
            share * self.left_p + rest * other.left_p,
            share * self.left_q + rest * other.left_q,
        )


class Ratios:
    """A law of likelihood ratios."""

    def __init__(self, ratios: list[float], masses: list[float], lost: float = 0.0):
        self.ratios = ratios
        self.lost = arb(lost)
        plain = [arb(m) for m in masses]
        tilted = [m * r for m, r in zip(plain, ratios, strict=True)]
        right = [list(accumulate(reversed(each), initial=arb(0)))[::-1] for each in (tilted, plain)]
        left = [list(accumulate(each, initial=arb(0))) for each in (tilted, plain)]
        self._parted = [Parted(*masses) for masses in zip(*right, *left, strict=True)]

    def parted(self, i: int) -> Parted:
        """Masses of the ratios from the i-th one on, and of those before it."""
        return self._parted[i]

    def beyond(self, a: float) -> Parted:
        """Masses of the ratios above a, and of those up to a."""
        return self.parted(bisect_right(self.ratios, a))

    @property
    def everything(self) -> Parted:
        """Masses at a place that no ratio is beyond."""
        return self.parted(len(self.ratios))

    @property
    def total(self) -> arb:
        """All mass under Q."""
        return self.everything.left_q

    def above(self, a: arb) -> arb:
        """C(a), the largest of its linear pieces."""
        pieces = [self.parted(i).above(a) for i in self._near(a)]
        return largest(pieces) + self.lost

    def under(self, a: arb) -> arb:
        """D(a), the largest of its linear pieces."""
        return largest([self.parted(i).under(a) for i in self._near(a)])

    def _near(self, a: arb) -> range:
        i = bisect_right(self.ratios, float(a.mid()))
        return range(max(i - 2, 0), min(i + 3, len(self.ratios) + 1))


@dataclass(frozen=True)
class LogNormal:
    """1 - q + q X, X = exp(z/s^2 - 1/(2 s^2)) of one step, z ~ N(0, s^2) under Q; it is the ratio
    of the mixture with q of N(1, s^2), P, to Q. `distance` is 1/s, `rate` is q."""

    distance: arb
    rate: Fraction = Fraction(1)

    lost = arb(0)
    total = arb(1)
    everything = Parted(arb(0), arb(0), arb(1), arb(1))
    stairs = 1

    def beyond(self, a: float) -> Parted:
        """It is above a on a half-line of z: where X is above (a - 1 + q)/q."""
        ratio = (Fraction(a) - 1 + self.rate) / self.rate
        if ratio <= 0:
            return Parted(arb(1), arb(1), arb(0), arb(0))
        place = ball(ratio).log() / self.distance
        half = self.distance / 2
        right_q, left_q = normal_below(-half - place), normal_below(place + half)
        return Parted(
            self._under_p(normal_below(half - place), right_q),
            right_q,
            self._under_p(normal_below(place - half), left_q),
            left_q,
        )

    def _under_p(self, drawn: arb, missed: arb) -> arb:
        """A mass under P, of those of N(1, s^2) and of N(0, s^2)."""
        return ball(self.rate) * drawn + ball(1 - self.rate) * missed


class Pairs:
    """Law of a mean, or of a product, of two independent laws; pairs are not listed, but summed by
    runs.

    A subclass gives `_ones` and `_others`, which rise with the ratios of both laws and are
    integers, so that pairs are compared without rounding.
    """

    lost: arb
    _ones: list[int]
    _others: list[int]

    def __init__(self, one: Ratios, other: Ratios):
        self.one, self.other = one, other
        self.total = one.total * other.total
        self.stairs = min(len(one.ratios), len(other.ratios))

    def _border(self, a: float) -> int:
        """The integer that is a of a pair."""
        raise NotImplementedError

    def _room(self, border: int, place: int) -> int:
        """The largest integer of one law that makes a pair up to the border with `place` of the
        other one."""
        raise NotImplementedError

    def _under_p(self, p: arb, q: arb, met_p: arb, met_q: arb) -> arb:
        """Mass under P of all pairs of two sets of ratios, from their masses under P and Q."""
        raise NotImplementedError

    @property
    def everything(self) -> Parted:
        """Masses at a place that no pair is beyond."""
        p, q = self.one.everything.left_p, self.one.everything.left_q
        met = self.other.everything
        left_p = self._under_p(p, q, met.left_p, met.left_q)
        return Parted(arb(0), arb(0), left_p, q * met.left_q)

    @cached_property
    def _before(self) -> list[tuple[arb, arb]]:
        return [
            (self.one.parted(i).left_p, self.one.parted(i).left_q)
            for i in range(len(self._ones) + 1)
        ]

    def beyond(self, a: float) -> Parted:
        """Masses of the pairs above a, and of those up to a. The sum goes down the first law, along
        the stairs that part the pairs, by runs of ratios that meet the same others.
        """
        border = self._border(a)
        right_p = right_q = left_p = left_q = arb(0)
        stop = len(self._ones)
        while stop > 0:
            j = bisect_right(self._others, self._room(border, self._ones[stop - 1]))
            start = (
                bisect_right(self._ones, self._room(border, self._others[j]), 0, stop)
                if j < len(self._others)
                else 0
            )
            run_p = self._sum(start, stop, 0)
            run_q = self._sum(start, stop, 1)
            met = self.other.parted(j)
            right_q += run_q * met.right_q
            left_q += run_q * met.left_q
            right_p += self._under_p(run_p, run_q, met.right_p, met.right_q)
            left_p += self._under_p(run_p, run_q, met.left_p, met.left_q)
            stop = start
        return Parted(right_p, right_q, left_p, left_q)

    def _sum(self, start: int, stop: int, side: int) -> arb:
        return self._before[stop][side] - self._before[start][side]


class Mean(Pairs):
    """Law of w r + w' r' of two independent laws, w and w' their shares of the terms."""

    def __init__(self, one: Ratios, other: Ratios, terms: int, others: int):
        super().__init__(one, other)
        self.terms = terms + others
        self.share = arb(fmpq(terms, self.terms))
        self.other_share = arb(fmpq(others, self.terms))
        self.lost = self.share * one.lost * other.total + self.other_share * other.lost * one.total
        self._ones = [terms * units(r) for r in one.ratios]
        self._others = [others * units(r) for r in other.ratios]

    def _border(self, a: float) -> int:
        return self.terms * units(a)

    def _room(self, border: int, place: int) -> int:
        return border - place

    def _under_p(self, p: arb, q: arb, met_p: arb, met_q: arb) -> arb:
        return self.share * p * met_q + self.other_share * q * met_p

    def short(self, one: "Bounded", other: "Bounded") -> arb:
        """The amount up to which a lower bound by the two laws holds."""
        return self.share * one.short + self.other_share * other.short


class Product(Pairs):
    """Law of r r' of two independent laws."""

    def __init__(self, one: Ratios, other: Ratios):
        super().__init__(one, other)
        self.lost = one.lost + one.everything.left_p * other.lost
        self._ones, fine = on_one_grid(one.ratios)
        self._others, also = on_one_grid(other.ratios)
        self._fine = fine + also

    def _border(self, a: float) -> int:
        # rounded down: products are integers
        numerator, denominator = a.as_integer_ratio()
        return (numerator << self._fine) // denominator

    def _room(self, border: int, place: int) -> int:
        # a product with 0 is up to any border, which is not negative
        return border // place if place else max(self._ones[-1], self._others[-1])

    def _under_p(self, p: arb, q: arb, met_p: arb, met_q: arb) -> arb:
        return p * met_p

    def short(self, one: "Bounded", other: "Bounded") -> arb:
        """The amount up to which a lower bound by the two laws holds."""
        return one.short + one.factor * self.one.everything.left_p * other.short


def units(x: float) -> int:
    """Return x as a whole number of units, exactly, so that pairs are compared without rounding."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (UNITS - denominator.bit_length() + 1)


def on_one_grid(values: list[float]) -> tuple[list[int], int]:
    """Return numbers as multiples of 2^-n, exactly, and n."""
    parts = [x.as_integer_ratio() for x in values]
    fine = max(denominator.bit_length() for _, denominator in parts) - 1
    return [n << (fine - denominator.bit_length() + 1) for n, denominator in parts], fine


def largest(values: list[arb]) -> arb:
    """A ball of the maximum."""
    found = values[0]
    for each in values[1:]:
        found = found.max(each)
    return found


def spend_on(new: Ratios, made, times: int) -> None:
    """Count, for each ratio of the new law, the stairs down one of the two laws that it is made
    from."""
    spend(times * len(new.ratios) * (2 * made.stairs + 1), "sums of likelihood ratios")


def lacking(new: Ratios, made) -> arb:
    """Largest difference between C(a) of what `new` is made from and C(a) of `new`: with so much
    more lost, `new` is above."""
    # At 0, at each ratio, and beyond the last one, where C is constant and what it has to be above
    # falls.
    spend_on(new, made, 1)
    missing = arb(0)
    for a in [0.0, *new.ratios]:
        must = made.beyond(a).above(a) + made.lost
        has = new.beyond(a).above(a) + new.lost
        missing = missing.max(positive_part(must - has).upper())
    return missing.upper()


def factor_above(new: Ratios, made) -> arb:
    """The least I >= 1, or a little more, for which D(a) of `new`, times I, is above that of what
    it is made from; infinite if there is none.

    A law that is too low would have to be so between two ratios, where D is linear and what it has
    to be above is convex; beyond the last one, where it has the slope of the total; or before the
    first one, where it is 0: there it has to be above E(a - R)_+, which at the first ratio is
    compared, and rises.
    """
    spend_on(new, made, 1)
    compared = [(made.total, new.total)]
    compared += [(made.beyond(a).under(a), new.beyond(a).under(a)) for a in new.ratios]
    factor = arb(1)
    for must, has in compared:
        # equal is enough; D is nowhere negative, so that a factor raises it
        if must <= has:
            continue
        # no multiple of 0 is above what is not 0
        if not has > 0:
            return arb.pos_inf()
        factor = factor.max(must / has)
    return factor.upper()


def below(new: Ratios, made, edges: list[float], side: str, negligible: arb) -> tuple[arb, arb]:
    """I <= 1 and e such that `new` times I, less e, is below what it is made from; I is 0 where
    there is none.

    Where a line is too high by no more than `negligible` that is e, else a factor lowers it.

    A law that is too high would have to have a line above what is attained at one of the two ends
    of its interval, or a piece that is not looked at. There is a piece left of each ratio, and for
    D one right of the last, whose slope is the total and is compared first; beyond it C is 0. A
    ratio may be 0, or all masses: then lines are 0, and a line of 0 is below one that is not
    negative, and below no other (`ratio_below`).
    """
    factor, short = ratio_below(made.total, new.total), ZERO
    if len(edges) != len(new.ratios) - 1:
        raise Refuted("sums of a lower bound need one edge between any two neighbouring ratios")
    spend_on(new, made, len(NUDGES) + 2)
    left = 0.0
    for i, (edge, right) in enumerate(zip([0.0, *edges], new.ratios, strict=True)):
        piece = new.parted(i)  # its line ends at the i-th ratio, and begins at the one before
        best, least_excess = arb(0), arb.pos_inf()
        for event in events_about(edge, made, piece, side):
            if side == "C":
                corners = [(event.above(a), piece.above(a)) for a in (left, right)]
            else:
                corners = [(event.under(a), piece.under(a)) for a in (left, right)]
            best = best.max(least(ratio_below(may, has) for may, has in corners))
            excess = largest([positive_part(has - may) for may, has in corners]).upper()
            least_excess = least_excess.min(excess)
            if best >= 1:
                break
        if least_excess <= negligible:
            short = short.max(least_excess)
        else:
            factor = factor.min(best)
        left = right
    if side == "D":
        factor = factor.min(ratio_below(made.everything.under(left), new.everything.under(left)))
    lower = factor.lower()
    return (lower if lower > 0 else arb(0)), short


def events_about(edge: float, made, piece: Parted, side: str) -> Iterator[Parted]:
    """Events beyond an edge: a pair may lie on it, up to the rounding of ratios. Of many that do (a
    ratio and its inverse have the product 1) some may be on either side: then a share of two."""
    for nudge in NUDGES:
        yield made.beyond(edge * nudge)
    low, high = (made.beyond(edge * nudge) for nudge in NUDGES[-2:])
    masses = (each.right_q if side == "C" else each.left_q for each in (low, high, piece))
    first, last, wanted = (float(mass.mid()) for mass in masses)
    share = (wanted - last) / (first - last) if first != last else 0.0
    # any share will do
    yield low.mixed(high, arb(min(max(share, 0.0), 1.0)))


def ratio_below(may: arb, has: arb) -> arb:
    """Largest I <= 1 for which I has <= may is shown, where has >= 0; 0, which bounds nothing,
    where there is none.

    Equal is below. No multiple of 0 is below a `may` that is negative, or perhaps negative: so 0 is
    compared as any other number is.
    """
    if has <= may:
        return arb(1)
    return may / has if may > 0 and has > 0 else ZERO


def least(values) -> arb:
    """A ball of the minimum."""
    return -largest([-each for each in values])


@dataclass(frozen=True)
class Bounded:
    """A law of the mean of so many products, each of as many `turns`, that, times a factor and less
    `short` (of a lower bound), bounds one side of the truth."""

    law: Ratios
    factor: arb
    terms: int
    short: arb
    turns: int

    def forward(self, a: arb) -> arb:
        """The bound of H_a(P || Q) = E(R - a)_+."""
        return self.factor * self.law.above(a) - self.short

    def backward(self, a: arb) -> arb:
        """The bound of H_a(Q || P) = a E(1/a - R)_+, a > 0."""
        return a * (self.factor * self.law.under(1 / a) - self.short)


def read_sums(
    rows: list[dict],
    single: LogNormal,
    upper: bool,
    side: str,
    where: str,
    negligible: arb,
    turns: int = 1,
) -> Bounded:
    """Bound every law by the two that it is made from, the first one by that of a `single` step;
    `side` is C or D. The last one is of means of products over so many turns.

    A false law would have to stand for other ratios than those of the question: so a product is one
    of single ratios or their products, and a mean one of products of the same number.
    """
    shown: list[Bounded] = []
    for place, row in enumerate(rows):
        there = f"{where}, law {place} of the sums"
        law = Ratios(row["ratios"], row["masses"], row["lost"])
        terms, each, factor, short, made = 1, 1, arb(1), ZERO, single
        if row["of"] is not None:
            one, other = (_earlier(shown, i, there) for i in row["of"])
            factor = one.factor * other.factor
            if "product" in row:
                made, each = Product(one.law, other.law), one.turns + other.turns
                if (one.terms, other.terms) != (1, 1):
                    raise Refuted(f"{there}: it is the product of means")
            else:
                made = Mean(one.law, other.law, one.terms, other.terms)
                terms, each = one.terms + other.terms, one.turns
                if one.turns != other.turns:
                    raise Refuted(f"{there}: it is the mean of products of several lengths")
            short = made.short(one, other)
        elif "product" in row:
            raise Refuted(f"{there}: it is a product of nothing")
        if terms != row["terms"]:
            raise Refuted(f"{there}: it is the mean of {terms} terms, not of {row['terms']}")
        own = arb(1)
        if upper and side == "C":
            if not law.total >= 1:
                raise Refuted(f"{there}: its masses add up to less than 1")
            law.lost += lacking(law, made)
        elif upper:
            own = factor_above(law, made)
        else:
            law.lost = arb(0)
            own, more = below(law, made, row["edges"], side, negligible)
            short += more
        # 0 and infinity bound nothing
        if not (own > 0 and own.is_finite()):
            raise Refuted(f"{there}: no multiple of it bounds what it is made from")
        shown.append(Bounded(law, factor * own, terms, short, each))
    if shown[-1].turns != turns:
        raise Refuted(f"{where}, sums: of products of {shown[-1].turns} turns, not of {turns}")
    return shown[-1]


def _earlier(shown: list[Bounded], i: int, where: str) -> Bounded:
    if not i < len(shown):
        raise Refuted(f"{where}: it is made from laws that come later")
    return shown[i]


def shortfall_below_sums(law: Law, shown: Bounded, direction: str) -> arb:
    """The largest F(a) - H(a), or 0, where H is what `shown` attains: linear between its kinks, so
    that the convex F is looked at there alone.

    A law that is too large would have to be so beyond the last kink, or where there is none but
    a = 0. There F falls, and what is attained is not negative: so all that F is at the last order
    counts as too much, unless H is constant from there on and not lowered.
    """
    is_forward = direction == "forward"
    bound = shown.forward if is_forward else shown.backward
    orders = [arb(r) if is_forward else 1 / arb(r) for r in shown.law.ratios if r > 0]
    at_zero = bound(ZERO) if is_forward else shown.factor * shown.law.total
    missing = positive_part(law.total() - at_zero).upper()
    for order in orders:
        missing = missing.max(positive_part(profile(law, order) - bound(order)).upper())
    last = max(orders, default=ZERO, key=float)
    if is_forward or not shown.short.is_zero():
        missing = missing.max(profile(law, last).upper())
    return missing


def profile(law: Law, order: arb) -> arb:
    """F(a), the largest of its linear pieces."""
    if order.is_zero():
        return law.total()
    place = (order.log() - law.offset) / law.step
    ends = float(place.upper()), float(place.lower())
    low, high = (len(law.indices) - bisect_right(law.indices, end) for end in ends)
    # the best line is one of those about this place; no line is above F, and the first has no mass
    # but that at infinity
    lines = [(arb(law.infinity), arb(0))] + [
        (S, T) for _, S, T in law.suffixes[max(low - 3, 0) : high + 3]
    ]
    return largest([S - order * T for S, T in lines])


def allocated(release: Release) -> tuple[int, int]:
    """t and k of a random allocation."""
    if release.name != "random_allocation" or release.laplace:
        raise Refuted("the theorem is about random allocation and Gaussian noise")
    return release.sampler["t"], release.sampler["k"]


def block_shortfall(case: Case) -> arb:
    """Shortfall of a part's law below the bound that the sums of its block give."""
    case.need(case.adjacency != "substitute", "add_remove or zero_out")
    case.need(not case.release.in_all_steps, "steps without the record")
    return sums_shortfall(
        case.law, needed(case, "sums"), single_step(case.release), case.direction, case.negligible
    )


def single_step(release: Release) -> LogNormal:
    """The likelihood ratio of a step that may hold the record."""
    if release.name == "secret_cyclic_poisson":
        return LogNormal(1 / release.s, probability(release.sampler["rate"], "rate"))
    return LogNormal(1 / release.s)


def sums_shortfall(
    law: Law,
    sums: list[dict],
    single: LogNormal,
    direction: str,
    negligible: arb,
    turns: int = 1,
) -> arb:
    """Shortfall of a law below H of a mean of as many products as the sums have terms, each of so
    many `turns`, in this direction and at all orders a > 0."""
    is_forward = direction == "forward"
    side = "C" if is_forward else "D"
    shown = read_sums(sums, single, True, side, direction, negligible, turns)

    def bound(loss: arb, order: arb, enough: arb) -> arb:
        return shown.forward(order) if is_forward else shown.backward(order)

    return shortfall_above(law, bound, negligible)


def needed(case: Case, entry: str) -> list | dict:
    """Entry of a part that must be there unless the record is in all steps."""
    case.need(entry in case.part, f"the entry {entry!r}")
    return case.part[entry]


def are_blocks(t: int, k: int, rounds: int, parts: list[dict]) -> None:
    """Refuse parts that are not the blocks of Theorem 27: t = k f + g, g blocks of f + 1 steps and
    k - g of f in each round."""
    size, left = divmod(t, k)
    expected = {size: (k - left) * rounds, size + 1: left * rounds}
    found = dict.fromkeys(expected, 0)
    for part in parts:
        terms = part["sums"][-1]["terms"]
        if terms not in found:
            raise Refuted(f"{part['times']} blocks of {terms} steps are not those of Theorem 27")
        found[terms] += part["times"]
    if found != expected:
        raise Refuted(f"an epoch has other blocks than {found}")


def in_all_steps(case: Case, apart: int) -> arb:
    """Shortfall for a record in all steps of an epoch, `apart` from what is there without it: one
    Gaussian step at sqrt(t) times the distance (F1)."""
    t, _ = allocated(case.release)
    case.need(not {"sums", "block", "revealed"} & set(case.part), "no more than the law")
    distance = apart * arb(t).sqrt() / case.release.s
    return held_against(case, lambda order, enough: gaussian(order, distance))


def theorem_25(case: Case) -> arb:
    case.need(allocated(case.release)[1] == 1, "one step of an epoch for each record")
    return in_all_steps(case, 1) if case.release.in_all_steps else block_shortfall(case)


def theorem_27(case: Case) -> arb:
    allocated(case.release)
    return in_all_steps(case, 1) if case.release.in_all_steps else block_shortfall(case)


def theorem_85(case: Case) -> arb:
    """Shortfall for all epochs of secret groups together."""
    release = case.release
    groups, turns = in_turns(release)
    case.need(case.adjacency != "substitute", "add_remove or zero_out")
    sums = needed(case, "sums")
    check_terms(sums[-1]["terms"], groups)
    single = single_step(release)
    return sums_shortfall(case.law, sums, single, case.direction, case.negligible, turns)


def in_turns(release: Release) -> tuple[int, int]:
    """Numbers of secret groups and of the turns of each of them."""
    if release.name != "secret_cyclic_poisson" or release.laplace:
        raise Refuted("the theorem is about secret groups and Gaussian noise")
    return release.sampler["cycle"], release.epochs


def check_terms(terms: int, steps: int) -> None:
    if terms != steps:
        raise Refuted(f"sums of {terms} terms, where an epoch has {steps} steps")


def all_steps(case: Case) -> arb:
    """Excess of a law over the likelihood ratio of an epoch in which one of t steps is shifted and,
    on D', none, or of all epochs of secret groups (4.3 and 4.6; Theorem 26 (iii)).
    """
    record, other, filler = neighbours(case)
    release, turns = case.release, 1
    if release.name == "random_allocation":
        terms, k = allocated(release)
        same = filler == 0 and k == 1
    elif release.name == "secret_cyclic_poisson":
        terms, turns = in_turns(release)
        same = filler == 0
    elif release.name == "shuffle" and not release.laplace and case.adjacency != "add_remove":
        terms, same = release.steps_per_epoch(release.n), True
    else:
        raise NotCovered(f"statistic 'all steps' of {release.name}")
    if not same or other != filler:
        raise Refuted(
            "data: the likelihood ratio is the mean of theorem 26 only where the record "
            "does nothing in D'"
        )
    single = replace(single_step(release), distance=ball(abs(record - filler)) / release.s)
    side = "C" if case.direction == "forward" else "D"
    sums = case.part["sums"]
    shown = read_sums(sums, single, False, side, case.direction, case.negligible, turns)
    check_terms(shown.terms, terms)
    return shortfall_below_sums(case.law, shown, case.direction)


THEOREMS = {
    "25": Theorem("allocation", theorem_25),
    "27": Theorem("allocation", theorem_27),
    "85": Theorem("allocation", theorem_85),
}

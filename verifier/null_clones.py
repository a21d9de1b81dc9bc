"""Shuffled epochs in which the record hides among clones of the null: Theorem 89 of
docs/proofs/shuffling.md, next to Theorem 19.

A part names some orders a and, for each, a weight p, some numbers of steps k and the unit of a
grid. Any choice is valid: with K - 1 clones, of the law Binomial(T - 1, p), the theorem has

    H_a <= E A_K(a) + (1 + a) (T - 1) p G(1/p, 1/s),

A_k the bound of random allocation to 1 of k steps, which is the mean of the positive part of a mean
of k independent differences: of e_u - a e_-u under substitution (Theorem 79), and of e_u - a and
1 - a e_u where a record is set to 0 (Theorem 25), u = 1/s, e_u(x) = exp(u x - u^2/2), x normal.

A_k falls with k. So K may be rounded down to the numbers that are named, and to 1, at which A_1 is
that of a revealed step, G(a, d/s).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from balls import ONE, ZERO, Refuted, larger, normal_tail, positive_part, smaller
from flint import arb
from means import MOST_PLACES, Difference, Window, means_above_zero
from multiplicity import ball
from theorems import Case, Theorem, held_against_chords
from work import fits, spend

from profiles import Order, gaussian

MOST_STEPS = 2**20  # of a mean, up to which chances are summed: a few seconds
MOST_VALUES = (
    2_000_000  # places of all grids of a part, for each sum that is formed: a minute or two
)
UNSEEN = arb(2) ** -14  # of what is charged: what cutting a tail may add to a mean, about


# --- Differences of two places among nulls --------------------------------------------------------


@dataclass(frozen=True)
class Replaced(Difference):
    """Z = e_u - a e_-u."""

    u: arb

    def above(self, b: arb) -> arb:
        return self._part(ONE, self.a, b)

    def below(self, c: arb) -> arb:
        # x and -x have one law
        return self._part(self.a, ONE, c)

    def _part(self, one: arb, other: arb, b: arb) -> arb:
        """E (one e_u - other e_-u - b)_+; it rises with x, and is positive right of some t, where
        w = e^(u t) has one q w^2 - b w = other q."""
        q = self._shrink
        w = (b + (b * b + 4 * one * other * q * q).sqrt()) / (2 * one * q)
        t = w.log() / self.u
        seen, missed = normal_tail(t - self.u), normal_tail(t + self.u)
        return one * seen - other * missed - b * normal_tail(t)

    @cached_property
    def _shrink(self) -> arb:
        return (-self.u * self.u / 2).exp()


def excess_over(level: arb, u: arb) -> arb:
    """E (e_u - level)_+, level > 0."""
    t = level.log() / u + u / 2
    return normal_tail(t - u) - level * normal_tail(t)


def lack_below(level: arb, u: arb) -> arb:
    """E (level - e_u)_+, which is between 0 and the positive part of the level."""
    if not level > 0:
        return positive_part(level)
    t = level.log() / u + u / 2
    return level * normal_tail(-t) - normal_tail(u - t)


@dataclass(frozen=True)
class WithRecord(Difference):
    """Z = e_u - a: a record in D that contributes 0 in D'."""

    u: arb

    def above(self, b: arb) -> arb:
        return excess_over(self.a + b, self.u)

    def below(self, c: arb) -> arb:
        return lack_below(self.a - c, self.u)


@dataclass(frozen=True)
class WithoutRecord(Difference):
    """Z = 1 - a e_u: a record in D' that contributes 0 in D."""

    u: arb

    def above(self, b: arb) -> arb:
        return self.a * lack_below((1 - b) / self.a, self.u)

    def below(self, c: arb) -> arb:
        return self.a * excess_over((1 + c) / self.a, self.u)


def differences(adjacency: str, a: arb, u: arb) -> list[Difference]:
    """Differences for both orders of the data sets, one where these are alike."""
    if adjacency == "substitute":
        return [Replaced(a, u)]
    return [WithRecord(a, u), WithoutRecord(a, u)]


# --- The number of clones -------------------------------------------------------------------------


def charge(T: int, p: Fraction, s: arb) -> arb:
    """(T - 1) gamma(p)."""
    return (T - 1) * ball(p) * gaussian(Order(ball(1 / p - 1)), 1 / s)


def chances_below(T: int, p: Fraction, counts: Sequence[int]) -> list[arb]:
    """P(K < k) for numbers k that rise: the chance of no more than k - 2 clones among T - 1
    records."""
    spend(4 * counts[-1], "numbers of clones")
    others, odds = T - 1, ball(p / (1 - p))
    chance, total, clones, found = ball(1 - p) ** others, ZERO, 0, []
    for k in counts:
        while clones <= min(k - 2, others):
            total += chance
            chance *= (others - clones) * odds / (clones + 1)
            clones += 1
        found.append(smaller(total, ONE))
    return found


def mean_of_steps(bounds: Sequence[arb], below: Sequence[arb]) -> arb:
    """Upper bound of E A_K from those of A_k at rising numbers k, 1 the first one, and from the
    chances that K is below each of the others.

    A false one would be a mean of bounds that rise with k, or a number to which K is rounded up: a
    bound of A_k is one of all that follow, and each fall counts where K is below the next number.
    """
    falling: list[arb] = []
    for bound in bounds:
        falling.append((smaller(falling[-1], bound) if falling else bound).upper())
    total = falling[-1]
    for (before, after), chance in zip(pairwise(falling), below, strict=True):
        total += (before - after) * chance.upper()
    return total.upper()


# --- The bound of an epoch ------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """Order a of a part, with the weight p, the numbers of steps, and a window of each
    difference."""

    a: arb
    p: Fraction
    counts: list[int]
    windows: list[Window]


def read_clones(case: Case) -> list[Chosen]:
    """Read the choices of a part: by its form weights are in (0, 1), numbers of steps rise from 2
    on, and grids have places below and above 0."""
    u, chosen = 1 / case.release.s, []
    for row in case.part["clones"]:
        a = ONE + arb(row["loss"]).expm1().mid()
        laws = differences(case.adjacency, a, u)
        if len(laws) != len(row["grids"]):
            raise Refuted(f"theorem 89 has {len(laws)} laws under {case.adjacency}")
        windows = [
            Window(law, arb(grid["unit"]), grid["first"], grid["last"])
            for law, grid in zip(laws, row["grids"], strict=True)
        ]
        chosen.append(Chosen(a, Fraction(row["weight"]), row["counts"], windows))
        fits(row["counts"][-1], MOST_STEPS, "steps of a mean of Theorem 89")
        for window in windows:
            fits(window.last - window.first, MOST_PLACES, "places of a grid of Theorem 89")
    values = sum(
        (window.last - window.first) * (len(each.counts) + each.counts[-1].bit_length())
        for each in chosen
        for window in each.windows
    )
    fits(values, MOST_VALUES, "places of grids of Theorem 89, for each sum,")
    spend(100 * len(chosen), "orders of Theorem 89")
    return chosen


def bounds_by_theorem_89(case: Case, T: int) -> list[tuple[arb, arb]]:
    """Points (a, bound of H_a) by Theorem 89 at the orders of a part."""
    s, bounds = case.release.s, []
    for each in read_clones(case):
        charged = (ONE + each.a) * charge(T, each.p, s)
        below = chances_below(T, each.p, each.counts)
        alone = gaussian(Order(each.a - ONE), distance(case))
        most = ZERO
        for window in each.windows:
            unseen = UNSEEN * charged / window.unit
            means = means_above_zero(window, each.counts, unseen, unseen)
            most = larger(most, mean_of_steps([alone, *means], below))
        bounds.append((each.a, most + charged))
    return bounds


def distance(case: Case) -> arb:
    """Distance of both vectors of the record, over s."""
    return (2 if case.adjacency == "substitute" else 1) / case.release.s


def shuffled_steps(case: Case) -> int:
    """T, the number of steps of a shuffled epoch that theorems on hidden steps are about."""
    release = case.release
    case.need(
        release.name == "shuffle" and not release.laplace, "shuffled epochs and Gaussian noise"
    )
    case.need(case.adjacency != "add_remove", "substitute or zero_out")
    # by Lemma 48 a record is in one of T steps or of T + 1, which tell less
    return release.n // release.sampler["m"]


def theorem_89(case: Case) -> arb:
    """Shortfall by Theorem 89, next to Theorem 19."""
    T = shuffled_steps(case)
    return held_against_chords(case, distance(case), bounds_by_theorem_89(case, T))


THEOREMS = {"89": Theorem("shuffling", theorem_89)}

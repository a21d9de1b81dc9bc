"""Separated steps (docs/proofs/schedules.md, Theorem 87): how many of them hold the record, and an
epoch to whom it is told when the record is available.

*Numbers.* Of the last n steps, the record being available before them, k hold it with probability

    u_n(k) = (1 - p) u_(n-1)(k) + p u_(n-b)(k - 1).

Each draw takes a coin of its step, so that there are no more of them than Binomial(t, p), which
bounds what is left out.

*Losses* (i). A step at which the record is available has two parts, as (9) has them: missed, the
densities (1 - p) p_0 under P* and (1 - rho) p_0 under Q*, and drawn, p p_1 and rho p_0, both with
the likelihood ratio r. A certificate gives a law m of the first part and one d of the second one.

Lemma. If the profiles of m and d are, for all a >= 0, at least what int (dP* - a dQ*)_+ is over
their parts, those of u_n = m u_(n-1) + d u_(n-b), u_n = 1 for n <= 0, are at least V_n. Proof: by
induction V_(n-1) and V_(n-b) in (9) are at most sums of w (1 - a e^-y)_+ and a constant, the masses
at the losses y and at infinity. Of a part, int dP* (1 - a e^-y dQ*/dP*)_+ is at most F(a e^-y), and
the constant counts with F(0). ∎ For Q* first P* and Q* change places. As V_(n-b) <= V_(n-1), a
share of the drawn part may then be counted as missed, another one in each cell of r.

Of 1/r in a cell only its mean weight is not known. With E the mean of r over the cell,
1/E <= E (1/r) <= (r_1 + r_2 - E)/(r_1 r_2): J and C are these two bounds for rho p_0. Forward the
smaller one counts, as 1/r is taken off. Backward the share that is counted as drawn is the one that
has the mass J, and at least J/C of p p_1; of the two outermost cells it is 0.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from allocation import profile
from balls import ONE, ZERO, NotCovered, larger, normal_tail, positive_part
from flint import arb, arb_poly
from law import Composed, Law, first_power, read_law, shortfall_above, times
from multiplicity import Counts, ball, binomial, probability
from question import Release
from theorems import Case, Theorem
from work import LONGEST, fits, spend

LOOP = 1000  # operations that one round of a loop over the steps counts for, at least


def separated(release: Release, negligible: arb) -> Counts:
    """Law of the number of steps of an epoch that hold the record.

    A false law would have to leave out more than `rest`, or go back fewer steps than the record
    waits.
    """
    p, b, t = (release.sampler[name] for name in ("rate", "separation", "t"))
    rate = probability(p, "rate")
    spend(t * LOOP, "numbers of steps with the record")
    coins = binomial(t, rate, negligible)
    most = min(len(coins.probabilities) - 1, -(-t // b))
    rest = coins.rest if most < -(-t // b) else ZERO
    spend(t * most, "numbers of steps with the record")
    missed, hit = ball(1 - rate), arb_poly([ZERO, ball(rate)])
    # of the last n steps: the newest first, as far back as the recursion goes
    recent = deque([arb_poly([ONE])] * min(b, t + 1), maxlen=min(b, t + 1))
    for _ in range(t):
        recent.appendleft((missed * recent[0] + hit * recent[-1]).truncate(most + 1))
    whole = arb_poly([ZERO])
    for wait, share in waiting(release):
        # a record that waits for all steps is in none of them
        whole += share * (recent[wait] if wait < t else arb_poly([ONE]))
    return Counts(whole.coeffs(), rest)


def waiting(release: Release) -> Iterator[tuple[int, arb]]:
    """How many steps of an epoch a record waits at its start, all of them at most, with their
    probabilities."""
    b, t = release.sampler["separation"], release.sampler["t"]
    if not release.sampler["warm_start"]:
        yield 0, ONE
        return
    rate = Fraction(release.sampler["rate"])
    available = 1 / (1 + (b - 1) * rate)
    yield 0, ball(available)
    for wait in range(1, min(b, t)):
        yield wait, ball(rate * available)
    if b > t:
        yield t, ball((b - t) * rate * available)


# --- A step at which the record is available ------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """Masses of N(0), N(1) and N(2) of an interval of ratios, from `low` to `high`; None where it
    has no such end."""

    base: arb
    drawn: arb
    twice: arb
    low: arb | None
    high: arb | None


@dataclass(frozen=True)
class Step:
    """A step at which the record is available, by cells of its likelihood ratio."""

    rate: Fraction
    distance: arb  # 1/s

    def cells(self, ratios: list[arb]) -> Iterator[Cell]:
        """The cells above the first ratio, between it and the second one, and so on; ratios
        fall."""
        above, upper_end = None, None
        for ratio in ratios:
            place = self._place(ratio)
            yield Cell(*self._masses(place, above), ratio, upper_end)
            above, upper_end = place, ratio

    def cells_from_below(self, ratios: list[arb]) -> Iterator[Cell]:
        """The cells below the first ratio, between it and the second one, and so on; ratios
        rise."""
        below, lower_end = arb("-inf"), None
        for ratio in ratios:
            place = self._place(ratio)
            yield Cell(*self._masses(below, place), lower_end, ratio)
            below, lower_end = place, ratio

    def _place(self, ratio: arb) -> arb:
        """Where N(0, 1) has this ratio; below all of them where none has."""
        of_step = (ratio - ball(1 - self.rate)) / ball(self.rate)
        if of_step <= 0:
            return arb("-inf")
        place = of_step.log() / self.distance + self.distance / 2
        if not (of_step > 0 and place.is_finite()):
            raise NotCovered("a ratio that is not told apart from the least one, or too large")
        return place

    def _masses(self, low: arb, high: arb | None) -> list[arb]:
        return [between(low, high, hits * self.distance) for hits in range(3)]

    def mean_drawn(self, cell: Cell) -> arb:
        """int r p_1 over the cell: r p_1 is (1 - p) N(1) and p e^(1/s^2) N(2)."""
        growth = (self.distance * self.distance).exp()
        return ball(1 - self.rate) * cell.drawn + ball(self.rate) * growth * cell.twice


def between(low: arb, high: arb | None, mean: arb) -> arb:
    """Mass of N(mean, 1) between two places, by the smaller tails; None is beyond all."""
    if low.is_finite():
        if low >= mean:
            return normal_tail(low - mean) - (ZERO if high is None else normal_tail(high - mean))
        left = normal_tail(mean - low)
    else:
        left = ZERO
    if high is None:
        return ONE - left
    if not high.is_finite():
        return ZERO
    if high <= mean:
        return normal_tail(mean - high) - left
    return ONE - left - normal_tail(high - mean)


def over(x: arb, y: arb) -> arb:
    """x/y of masses, for a bound from below; 0 where y may be 0."""
    return x / y if y > 0 else ZERO


def forward(step: Step, law: Law, *, is_drawn: bool) -> arb:
    """What a law of a part lacks, P* first: int over r > a of the part under P*, less a times the
    part under Q*, which is 1/r times as large."""
    q = ball(step.rate)
    share = q if is_drawn else ONE - q
    mass, inverse = ZERO, ZERO
    bounds = []
    losses = law.losses()[::-1]
    for loss, cell in zip(losses, step.cells([loss.exp() for loss in losses]), strict=True):
        own = cell.drawn if is_drawn else cell.base
        mean = step.mean_drawn(cell) if is_drawn else (ONE - q) * cell.base + q * cell.drawn
        mass += share * own
        inverse += positive_part(share * own * over(own, mean))
        bounds.append(mass - loss.exp() * inverse)
    return missing(law, bounds, share)


def backward(step: Step, law: Law, *, is_drawn: bool) -> arb:
    """The same for Q* first: what is counted as drawn, or all else."""
    q = ball(step.rate)
    first, second, counted = ZERO, ZERO, ZERO
    bounds = []
    losses = law.losses()[::-1]
    ratios = [(-loss).exp() for loss in losses]
    for loss, cell in zip(losses, step.cells_from_below(ratios), strict=True):
        smaller = larger_bound = ZERO
        if cell.low is not None and cell.drawn > 0:
            mean = step.mean_drawn(cell)
            smaller = q * cell.drawn * over(cell.drawn, mean)
            larger_bound = q * ((cell.low + cell.high) * cell.drawn - mean) / (cell.low * cell.high)
        counted += smaller
        if is_drawn:
            first += smaller
            second += positive_part(q * cell.drawn * over(smaller, larger_bound))
        else:
            first += cell.base - smaller
            second += (ONE - q) * cell.base
        bounds.append(first - loss.exp() * second)
    return missing(law, bounds, counted if is_drawn else ONE - counted)


def missing(law: Law, bounds: list[arb], whole: arb) -> arb:
    """The largest amount that the profile of a law lacks: at the order 0, where it has to be the
    whole mass of the part, and at its kinks, from the last one on.

    Between kinks the profile is linear and what it has to be above is convex; beyond the last one
    it is constant, and the other one falls.
    """
    lacks = larger(ZERO, positive_part(whole - law.total()))
    S, T = arb(law.infinity), ZERO
    for (loss, S_here, T_here), bound in zip(law.suffixes, bounds, strict=True):
        lacks = larger(lacks, positive_part(bound - (S - loss.exp() * T)))
        S, T = S_here, T_here
    return lacks


# --- An epoch -------------------------------------------------------------------------------------


def with_more(law: Law, more: arb, cut: arb) -> Composed:
    first = first_power(law, cut, upper=True)
    return Composed(first.start, first.masses, first.infinity + more)


def added(one: Composed, other: Composed) -> Composed:
    """The law with the masses of both."""
    start = min(one.start, other.start)
    ends = (each.start + each.masses.length() for each in (one, other))
    fits(max(ends) - start, LONGEST, "places of the grid of laws that are composed")
    left, right = (each.masses.left_shift(each.start - start) for each in (one, other))
    return Composed(start, left + right, one.infinity + other.infinity)


def scaled(one: Composed, share: arb) -> Composed:
    return Composed(one.start, share * one.masses, share * one.infinity)


def composed_epoch(release: Release, missed: Composed, drawn: Composed, cut: arb) -> Composed:
    """The law of an epoch, from those of both parts of a step."""
    b, t = release.sampler["separation"], release.sampler["t"]
    spend(t * LOOP, "steps of an epoch")
    nothing = Composed(0, arb_poly([ONE]), ZERO)
    # of the last n steps: the newest first, as far back as the recursion goes
    recent = deque([nothing] * min(b, t + 1), maxlen=min(b, t + 1))
    for _ in range(t):
        recent.appendleft(
            added(
                times(missed, recent[0], cut, upper=True), times(drawn, recent[-1], cut, upper=True)
            )
        )
    whole = Composed(0, arb_poly([ZERO]), ZERO)
    for wait, share in waiting(release):
        epoch = recent[wait] if wait < t else nothing
        whole = added(whole, scaled(epoch, share))
    return whole


def theorem_87_i(case: Case) -> arb:
    """Shortfall for an epoch of separated steps, with the availability of the record revealed.

    A false bound would have to come from parts whose laws lack something that is not charged, or
    from cells that count a share of what is drawn in neither of them.
    """
    release = case.release
    case.need(
        release.name == "min_separation" and not release.laplace,
        "separated steps and Gaussian noise",
    )
    case.need(case.adjacency != "substitute", "add_remove or zero_out")
    case.need(not release.in_known_steps, "a rate below 1")
    rate = probability(release.sampler["rate"], "rate")
    step, lacks = Step(rate, 1 / release.s), forward if case.direction == "forward" else backward
    parts = case.part["steps"]
    missed, drawn = (
        read_law(parts[name], f"{case.direction}, steps, {name}") for name in ("missed", "drawn")
    )
    # what is counted as missed backward is not counted as drawn: both have the same cells
    one, other = ((law.step, law.offset, law.indices) for law in (missed, drawn))
    case.need(one == other, "both parts of a step at the same losses")
    spend(100 * len(missed.masses), "cells of a step")
    epoch = composed_epoch(
        release,
        with_more(missed, lacks(step, missed, is_drawn=False), case.negligible),
        with_more(drawn, lacks(step, drawn, is_drawn=True), case.negligible),
        case.negligible,
    )
    masses = epoch.masses.coeffs()
    indices = list(range(epoch.start, epoch.start + len(masses)))
    # a path has at most t outputs, and as few as it waits for
    offset = arb(max(missed.offset, 0.0)) * release.sampler["t"]
    whole = Law(missed.step, offset, indices, masses, epoch.infinity)
    return shortfall_above(
        case.law, lambda loss, order, enough: profile(whole, order), case.negligible
    )


THEOREMS = {"87 (i)": Theorem("schedules", theorem_87_i)}

"""Sums over the steps of an epoch (sections 4.3 and 4.6): each step adds a whole number that rises
with its output.

The number is how many of the certificate's edges the output, over s, exceeds. Any edges will do:
the sum is a function of the outputs, so what events of it attain is attained (F2). Steps are
independent given which of them hold the record, and the sum is the same for all orders of its
terms, so its law depends on how many these are, and not on which: of separated steps (4.2) on the
law of their number.
"""

from dataclasses import dataclass

from allocation import allocated
from attacks import neighbours
from balls import ONE, ZERO, NotCovered, normal_tail
from cells import Events, by_loss
from flint import arb, arb_poly
from law import Law, shortfall_below
from multiplicity import Counts, ball
from separated import separated
from theorems import Case
from work import fits, spend

MOST_VALUES = 2**19  # values of a sum: more take too long


def step_masses(edges: list[arb], mean: arb) -> list[arb]:
    """Probabilities of the numbers 0, 1, ... of a step whose output over s is N(mean, 1).

    Differences of the smaller tails, so that small ones keep their digits.
    """
    left, masses = ZERO, []  # the tail below the last edge, or above it
    is_below = True
    for edge in edges:
        z = edge - mean
        if z <= 0:
            right = normal_tail(-z)
            masses.append(right - left)
        else:
            right = normal_tail(z)
            masses.append(ONE - left - right if is_below else left - right)
            is_below = False
        left = right
    masses.append(ONE - left if is_below else left)
    return masses


@dataclass(frozen=True)
class Values:
    """Masses of the values start, start + 1, ... of a sum; `lost` bounds the mass that was dropped
    on the way, which may belong to any value."""

    start: int
    masses: arb_poly
    lost: arb

    def total(self) -> arb:
        return self.masses(ONE)


def kept(start: int, masses: list[arb], lost: arb, cut: arb) -> Values:
    """Values without tails of a mass below `cut`."""
    right = ZERO
    while len(masses) > 1 and right + masses[-1] < cut:
        right += masses.pop()
    left, first = ZERO, 0
    while first < len(masses) - 1 and left + masses[first] < cut:
        left += masses[first]
        first += 1
    return Values(start + first, arb_poly(masses[first:]), (lost + left + right).upper())


def sum_of(one: Values, other: Values, cut: arb) -> Values:
    """The law of the sum of two independent terms."""
    length = one.masses.length() + other.masses.length()
    fits(length, MOST_VALUES, "values of a sum over the steps")
    spend(length * length.bit_length(), "sums over the steps")
    lost = one.lost * (other.total() + other.lost) + one.total() * other.lost
    return kept(one.start + other.start, (one.masses * other.masses).coeffs(), lost, cut)


def law_of_sum(terms: list[tuple[list[arb], int]], cut: arb) -> Values:
    """The law of a sum of independent terms, given as (their masses, how many there are)."""
    result = Values(0, arb_poly([ONE]), ZERO)
    for masses, count in terms:
        square = kept(0, list(masses), ZERO, cut)
        while count:
            if count % 2:
                result = sum_of(result, square, cut)
            count //= 2
            if count:
                square = sum_of(square, square, cut)
    return result


def sum_over_steps(
    at_rest: list[arb], with_record: list[arb], steps: int, own: Counts, cut: arb
) -> Values:
    """The law of the sum over the steps of an epoch, of whose number that hold the record `own` is
    the law: sum of p_k D^k B^(steps - k), by Horner's rule from the largest k on."""
    *others, largest = own.probabilities
    missed, drawn = (kept(0, list(each), ZERO, cut) for each in (at_rest, with_record))
    total, power = Values(0, arb_poly([largest]), own.rest), Values(0, arb_poly([ONE]), ZERO)
    for chance in reversed(others):
        power = sum_of(power, missed, cut)
        total = mixed(sum_of(total, drawn, cut), power, chance)
    return sum_of(total, law_of_sum([(at_rest, steps - len(others))], cut), cut)


def mixed(one: Values, other: Values, share: arb) -> Values:
    """The first law, and a share of the second one."""
    start = min(one.start, other.start)
    ends = (each.start + each.masses.length() for each in (one, other))
    fits(max(ends) - start, MOST_VALUES, "values of a sum over the steps")
    left, right = (each.masses.left_shift(each.start - start) for each in (one, other))
    return Values(start, left + share * right, (one.lost + share * other.lost).upper())


def epoch(case: Case, filler: object) -> tuple[int, int | None]:
    """Number of steps of an epoch, and of those that hold the record, where all else is a
    translation of the outputs that is known; None where the latter is random."""
    release = case.release
    if release.name in ("random_allocation", "min_separation"):
        if filler != 0:
            raise NotCovered("fillers in steps whose number of records is random")
        if release.name == "random_allocation":
            return allocated(release)
        return release.sampler["t"], None
    if release.name != "shuffle" or release.laplace or case.adjacency == "add_remove":
        raise NotCovered(f"statistic 'step functions' of {release.name}")
    return release.steps_per_epoch(release.n), 1


def step_functions(case: Case) -> arb:
    """Excess of a part's law over events of the sum over the steps of an epoch."""
    record, other, filler = neighbours(case)
    release = case.release
    steps, own = epoch(case, filler)
    edges = [arb(x) for x in case.part["edges"]]
    means = [ball(value - filler) / case.release.s for value in (record, other)]
    if case.direction == "backward":
        means.reverse()
    at_rest = step_masses(edges, ZERO)
    # What is dropped lowers an event under the first law, and counts as if it were in every event
    # under the second one: there it has to be small next to events of the largest losses.
    cut = case.negligible / (8 * steps)
    cuts = cut, cut * (-largest_loss(case.law, case.negligible)).exp()

    def law(mean: arb, cut: arb) -> Values:
        if mean.is_zero():
            return law_of_sum([(at_rest, steps)], cut)
        moved = step_masses(edges, mean)
        if own is None:
            return sum_over_steps(at_rest, moved, steps, separated(release, cut), cut)
        return law_of_sum([(at_rest, steps - own), (moved, own)], cut)

    first, second = map(law, means, cuts)
    charged = dict(enumerate(second.masses.coeffs(), start=second.start))
    seen = enumerate(first.masses.coeffs(), start=first.start)
    cells = [(mass, charged.get(value, ZERO)) for value, mass in seen]
    events = Events(by_loss(cells), second.lost)
    return shortfall_below(case.law, lambda T, S: events.attained(T))


def largest_loss(law: Law, negligible: arb) -> arb:
    """The largest loss that more than a negligible mass exceeds, or 0."""
    for loss, mass, _ in law.suffixes:
        if not mass <= negligible:
            return loss.max(ZERO)
    return ZERO

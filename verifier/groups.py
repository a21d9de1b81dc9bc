"""Groups (docs/proofs/groups.md): several records of one unit are added, removed, replaced or set
to 0 together. A sample tells of them by how many of them it holds."""

from fractions import Fraction

from attacks import spread
from balls import ONE, ZERO, smaller
from flint import arb
from multiplicity import Counts, binomial, probability, stage_counts
from theorems import (
    Bound,
    Case,
    Theorem,
    against_origin,
    backward_of_chain,
    held_against,
    plus,
    revealed,
    shifted,
)

from profiles import gaussian, pair, reflected


def both_sizes(case: Case) -> tuple[int, int]:
    """Number of records of the unit that D has alone, and of those that D' has."""
    group = case.release.group
    return group if isinstance(group, tuple) else (group, group)


def one_size(case: Case) -> int:
    group = case.release.group
    case.need(isinstance(group, int), "a group that is not mixed")
    return group


def theorem_35(case: Case) -> arb:
    """Shortfall by Theorem 35: Poisson samples; cyclic ones, once an epoch; batches in the records'
    own order."""
    release = case.release
    case.need(not release.laplace, "Gaussian noise")
    if release.name == "deterministic":
        return held_against(case, lambda order, enough: gaussian(order, farthest(case)))
    if release.name == "cyclic_poisson":
        one_size(case)
        rate = probability(release.sampler["rate"], "rate")
    else:
        case.need(release.kinds == ["poisson"], "Poisson samples or a public schedule")
        rate = case.stages[0].rate
    return held_against(case, *drawn_by_coins(case, rate))


def drawn_by_coins(case: Case, rate: Fraction) -> tuple[Bound, Bound | None]:
    """Bounds of the pair of Theorem 35. Where its two laws rise and fall, half-lines are best."""
    added, removed = (binomial(size, rate, case.negligible) for size in both_sizes(case))
    unit = ONE / case.release.s
    if case.adjacency != "substitute" and isinstance(case.release.group, int):
        return against_origin(added, unit)
    P, Q = shifted(added, unit), shifted(removed, unit)
    forward = plus(pair(P, reflected(Q)), added.rest)
    if case.adjacency == "substitute":
        return forward, None
    return forward, plus(pair(Q, reflected(P)), removed.rest)


def farthest(case: Case) -> arb:
    """Distance d sqrt(floor(g/m) m^2 + (g mod m)^2) / s."""
    one_size(case)
    return (2 if case.adjacency == "substitute" else 1) * spread(case.release) / case.release.s


def theorem_36(case: Case) -> arb:
    case.need(
        case.adjacency == "substitute" and not case.release.laplace, "substitute and Gaussian noise"
    )
    size, s = one_size(case), case.release.s
    return held_against(case, revealed(case.stages, case.slots, size, s, case.negligible))


def theorem_37(case: Case) -> arb:
    case.need(
        case.adjacency == "add_remove" and not case.release.laplace, "add_remove and Gaussian noise"
    )
    stages, size, s = case.stages, one_size(case), case.release.s
    if len(stages) == 1:
        case.need(stages[0].kind in ("with", "without"), "samples of fixed size")
        counts = stage_counts(stages[0], case.slots, size, case.negligible)
        return held_against(case, *against_origin(counts, 2 / s))
    later = revealed(stages, case.slots, size, s, case.negligible)
    return held_against(case, later, backward_of_chain(later))


def theorem_38(case: Case) -> arb:
    """Shortfall by Theorem 38: the mean of the pairs of all numbers of records, and Theorem 36
    where that is smaller."""
    case.need(
        case.adjacency == "zero_out" and not case.release.laplace, "zero_out and Gaussian noise"
    )
    stages, size, s = case.stages, one_size(case), case.release.s
    case.need(len(stages) == 1 and stages[0].kind == "without", "samples without replacement")
    counts = stage_counts(stages[0], case.slots, size, case.negligible)
    replaced = revealed(stages, case.slots, size, s, case.negligible)
    bounds = (zeroed(counts, s, farthest) for farthest in (2, 1))
    return held_against(case, *(least(bound, replaced) for bound in bounds))


def zeroed(counts: Counts, s: arb, farthest: int) -> Bound:
    """sum of (p_l/eta) H_a of (1 - eta) N(0) + eta N(f l) against the same with f - 1 for f."""
    stay, eta = counts.probabilities[0], counts.eta
    parts = []
    for hits, chance in counts.positive():
        if chance.is_zero():
            continue
        unit = hits / s
        first = [(stay, ZERO), (eta, farthest * unit)]
        second = [(stay, ZERO), (eta, (farthest - 1) * unit)]
        parts.append((chance / eta, pair(first, second)))
    return lambda order, enough: sum((w * part(order, enough) for w, part in parts), counts.rest)


def least(one: Bound, other: Bound) -> Bound:
    def bound(order, enough: arb) -> arb:
        first = one(order, enough)
        return first if first <= enough else smaller(first, other(order, enough))

    return bound


THEOREMS = {
    "35": Theorem("groups", theorem_35),
    "36": Theorem("groups", theorem_36),
    "37": Theorem("groups", theorem_37),
    "38": Theorem("groups", theorem_38),
}

"""The theorems of docs/proofs: which questions they answer, and their bounds of one release.

To add a theorem, add it to `THEOREMS`: its page, and a function of a `Case` that returns the
shortfall of the case's law (usually `held_against` the `Bound`s of both directions). It raises
`Refuted` where its hypotheses do not hold for the release.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from balls import ONE, ZERO, NotCovered, Refuted, positive_part, smaller
from flint import arb
from law import Law, shortfall_above
from multiplicity import (
    Counts,
    Stage,
    ball,
    chain_counts,
    cut_sample,
    probability,
    stage_counts,
)
from question import Release
from work import spend

from profiles import Bound, Groups, Minorant, Order, gaussian, laplace, pair, reflected


@dataclass(frozen=True)
class Shared:
    """Entries that several parts of a bound refer to by their place in a list, each read once."""

    rows: list[dict] = field(default_factory=list)
    _made: dict = field(default_factory=dict)

    def made(self, key: tuple, make: Callable):
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


@dataclass(frozen=True)
class Case:
    """A part of one bound, with all that its shortfall depends on."""

    release: Release
    adjacency: str
    direction: str  # forward or backward
    part: dict
    law: Law
    negligible: arb  # probabilities below it need not be counted exactly
    shared: Shared = field(default_factory=Shared)

    @property
    def stages(self) -> list[Stage]:
        stages = self.release.stages
        if stages is None:
            raise Refuted(f"the theorem is not about {self.release.name}")
        return stages

    @property
    def slots(self) -> int:
        """The number of records of the data set that holds the record in question."""
        n = self.release.n
        if n is None and self.release.name == "weighted_wr":
            n = 2  # draws are independent, of two records or more (Theorem 86)
        if n is None:
            raise Refuted(f"question: n is needed for {self.release.name}")
        if self.adjacency != "add_remove":
            return n
        group = self.release.group
        return n + (group if isinstance(group, int) else group[0])

    def need(self, holds: bool, what: str) -> None:
        if not holds:
            raise Refuted(f"theorem {self.part.get('theorem')} needs {what}")


def held_against(case: Case, forward: Bound, backward: Bound | None = None) -> arb:
    """The shortfall of the case's law against bounds at a >= 1; below 1 the mirror (F3) gives H_a =
    1 - a + a H_(1/a) of the other order.

    Without `backward` both orders have the bound `forward` (substitution).

    A law that is too small would have to be compared with too small a bound: where a loss is not
    told apart from 0, so that it is not known which of the two is asked, nothing is proved. At
    order 1 (loss 0) both formulas are good.
    """
    one, other = forward, backward or forward
    if case.direction == "backward":
        one, other = other, one
    seen: dict[tuple, arb] = {}

    def profile(loss: arb, order: arb, enough: arb) -> arb:
        if not (loss >= 0 or loss < 0):
            raise NotCovered("a loss that is not told apart from 0")
        below = loss < 0
        bound = other if below else one
        u = positive_part(((-loss) if below else loss).expm1())
        needed = (enough - (ONE - order)) / order if below else enough
        distance = abs(loss)
        key = (distance.mid().man_exp(), distance.rad().man_exp(), below and backward is not None)
        if key not in seen or not seen[key] <= needed:
            # A little sharper than needed: under substitution the mirrored order asks for nearly
            # the same.
            seen[key] = bound(Order(u), (needed - abs(needed) * arb(2) ** -44).lower())
        return ONE - order + order * seen[key] if below else seen[key]

    return shortfall_above(case.law, profile, case.negligible)


def orders_from_one(case: Case) -> list[Order]:
    """Orders at which a law is compared with a bound: order 1 and the kinks of the case's law above
    it."""
    return [Order(ZERO), *(Order(loss.expm1().mid()) for loss in case.law.losses() if loss > 0)]


def held_against_chords(case: Case, distance: arb, points: list[tuple[arb, arb]]) -> arb:
    """The shortfall of the case's law against the least of G(a, distance), of `points` (a, bound of
    H_a), a >= 1, and of all chords between these, for H that is the same for both orders of the
    neighbours."""
    in_order = [(order.a, gaussian(order, distance)) for order in orders_from_one(case)]
    hull = Minorant([*in_order, *points])

    def bound(order: Order, enough: arb) -> arb:
        by_chords = hull(order.a)
        return by_chords if by_chords <= enough else smaller(by_chords, gaussian(order, distance))

    return held_against(case, bound)


# --- Samples that are drawn afresh at every step --------------------------------------------------


def shifted(counts: Counts, unit: arb) -> list[tuple[arb, arb]]:
    """Mixture sum p_l N(l unit)."""
    return [(p, hits * unit) for hits, p in enumerate(counts.probabilities)]


def plus(bound: Bound, rest: arb) -> Bound:
    """Bound with the probability that a law of counts leaves out added: no event has more of it."""
    return lambda order, enough: bound(order, enough) + rest


def against_origin(counts: Counts, unit: arb) -> tuple[Bound, Bound]:
    """Bounds of sum p_l N(l unit) against N(0), and back.

    Half-lines to the right are best: the ratio of the densities, sum p_l e_(l unit), rises; back it
    is reflected.
    """
    P, Q = shifted(counts, unit), [(ONE, ZERO)]
    return plus(pair(P, Q), counts.rest), pair(Q, reflected(P))


def poisson_bounds(
    rate: Fraction, adjacency: str, s: arb, is_laplace: bool
) -> tuple[Bound, Bound | None]:
    """Bounds by Theorem 1 with l in {0, 1}, r = 1; for Laplace noise the closed forms of 3.7."""
    q, counts = ball(rate), Counts([ball(1 - rate), ball(rate)], ZERO)
    if is_laplace:
        if adjacency == "substitute":
            return laplace_mirror(q, 1 / s), None
        return laplace_origin(q, 1 / s)
    if adjacency == "substitute":
        P = shifted(counts, 1 / s)
        return pair(P, reflected(P)), None
    return against_origin(counts, 1 / s)


def laplace_origin(q: arb, d: arb) -> tuple[Bound, Bound]:
    """H_a of M = (1 - q) Lap(0) + q Lap(d) against Lap(0), which is q h(lift(a, q); d) by (1), and
    back (3.7)."""

    def forward(order: Order, enough: arb) -> arb:
        return q * laplace(order.lift(q), d)

    def backward(order: Order, enough: arb) -> arb:
        r = ONE - order.a * (ONE - q)  # r h(a q/r; d), and a q/r = 1 + (a - 1)/r
        return r * laplace(Order(order.u / r), d) if r > 0 else positive_part(r)

    return forward, backward


def laplace_mirror(q: arb, d: arb) -> Bound:
    """H_a(M || M') = q - sqrt(q w E), and 0 where a w E = q or beyond."""
    w = (-d).exp()

    def forward(order: Order, enough: arb) -> arb:
        E = order.u * (ONE - q) + order.a * q * w
        return positive_part(q - (q * w * E).sqrt())

    return forward


def theorem_1(case: Case) -> arb:
    stages = case.stages
    case.need([stage.kind for stage in stages] == ["poisson"], "Poisson sampling")
    return held_against(
        case, *poisson_bounds(stages[0].rate, case.adjacency, case.release.s, case.release.laplace)
    )


def theorem_2(case: Case) -> arb:
    stages = case.stages
    case.need(case.adjacency == "substitute", "substitute")
    case.need(len(stages) == 1 and stages[0].kind == "without", "samples without replacement")
    q = stage_counts(stages[0], case.slots, 1, case.negligible).probabilities[1]
    divergence = laplace if case.release.laplace else gaussian
    return held_against(
        case, lambda order, enough: q * divergence(order.lift(q), 2 / case.release.s)
    )


def theorem_4(case: Case) -> arb:
    stages = case.stages
    case.need(
        case.adjacency == "substitute" and not case.release.laplace, "substitute and Gaussian noise"
    )
    case.need(len(stages) == 1 and stages[0].kind == "with", "a sample with replacement")
    return held_against(case, revealed(stages, case.slots, 1, case.release.s, case.negligible))


def revealed(stages: list[Stage], slots: int, marked: int, s: arb, negligible: arb) -> Bound:
    """Bound B(a; N, j, stages) of 3.5."""
    counts = stage_counts(stages[0], slots, marked, negligible)
    spend(len(counts.probabilities), "combinations of numbers of occurrences")
    if len(stages) == 1:
        if stages[0].kind == "poisson":
            # The ratio of sum p_l N(l) and its mirror image rises.
            P = shifted(counts, 1 / s)
            return plus(pair(P, reflected(P)), counts.rest)
        return Groups(counts, s)
    branches = [
        (weight, revealed(stages[1:], stages[0].size, count, s, negligible / weight))
        for count, weight in counts.positive()
        if not weight.is_zero()
    ]
    return Branches(branches, counts.eta, counts.rest)


class Branches:
    """Theorem 6: sum of pi_i B_i(lift(a, eta)).

    First every branch has its cheaper bound t; then one after another, from the most probable, is
    made sharp until it is enough.
    """

    def __init__(self, branches: list[tuple[arb, Bound]], eta: arb, rest: arb) -> None:
        self.branches, self.eta, self.rest = branches, eta, rest

    def t(self, order: Order, enough: arb) -> arb:
        lifted = order.lift(self.eta)
        return sum(
            (weight * cheap(bound)(lifted, ONE) for weight, bound in self.branches), self.rest
        )

    def __call__(self, order: Order, enough: arb) -> arb:
        return self.at(order.lift(self.eta), enough)

    def at(self, lifted: Order, enough: arb) -> arb:
        values = [weight * cheap(bound)(lifted, ONE) for weight, bound in self.branches]
        for place in sorted(range(len(values)), key=lambda i: -float(values[i].mid())):
            total = sum(values, self.rest)
            if total <= enough:
                return total
            weight, bound = self.branches[place]
            # The value up to which this branch is enough while the others stay as they are.
            allowed = (values[place] - (total - enough)) / weight
            values[place] = smaller(
                values[place], weight * bound(lifted, positive_part(allowed).lower())
            )
        return sum(values, self.rest)


def cheap(bound: Bound) -> Bound:
    return bound.t if isinstance(bound, Groups | Branches) else bound


def theorem_6(case: Case) -> arb:
    stages, s = case.stages, case.release.s
    case.need(
        case.adjacency == "substitute" and not case.release.laplace, "substitute and Gaussian noise"
    )
    return held_against(
        case, with_group_bound(case, revealed(stages, case.slots, 1, s, case.negligible))
    )


def with_group_bound(case: Case, bound: Bound) -> Bound:
    """The smaller one of a bound and, for two stages with replacement, b <= their slots, T2
    (Theorems 7 and 32)."""
    stages = case.stages
    if [stage.kind for stage in stages] != ["with", "with"] or stages[0].size > case.slots:
        return bound
    group = Groups(chain_counts(stages, case.slots, 1, case.negligible), case.release.s).t

    def least(order: Order, enough: arb) -> arb:
        T2 = group(order, enough)
        return T2 if enough >= T2 else smaller(T2, bound(order, enough))

    return least


# --- Relations where one record is missing or contributes 0 ---------------------------------------


def theorem_9(case: Case) -> arb:
    stages = case.stages
    case.need(case.adjacency == "add_remove", "add_remove")
    case.need(len(stages) == 1 and stages[0].kind in ("with", "without"), "WOR or WR")
    counts = stage_counts(stages[0], case.slots, 1, case.negligible)
    if case.release.laplace:
        case.need(stages[0].kind == "without", "one occurrence at most, where noise is Laplace")
        return held_against(case, *laplace_origin(counts.probabilities[1], 2 / case.release.s))
    return held_against(case, *against_origin(counts, 2 / case.release.s))


def theorem_10(case: Case) -> arb:
    stages, s = case.stages, case.release.s
    case.need(
        case.adjacency == "add_remove" and not case.release.laplace, "add_remove and Gaussian noise"
    )
    case.need(len(stages) > 1, "a chain of several stages")
    later = revealed(stages, case.slots, 1, s, case.negligible)
    return held_against(case, with_group_bound(case, later), backward_of_chain(later))


def backward_of_chain(later: Branches) -> Bound:
    """Bound by the second line of Theorem 10."""
    eta = later.eta

    def backward(order: Order, enough: arb) -> arb:
        """(1 - a (1 - eta)) C(1 + (a - 1)/(1 - a (1 - eta)))."""
        r = ONE - order.a * (ONE - eta)
        if not r > 0:
            return positive_part(r)
        return r / eta * later.at(Order(order.u / r), enough * eta / r)

    return backward


def zero_out_pairs(q: arb, s: arb) -> tuple[Bound, Bound]:
    """Bounds by Theorem 16: the numbers 2 and 1, and 1 and 0, in the places of x and y; half-lines
    are best by Lemma 12 (iii)."""
    stay, unit = ONE - q, ONE / s
    one = [(stay, ZERO), (q, unit)]
    return pair([(stay, ZERO), (q, 2 * unit)], one), pair(one, [(ONE, ZERO)])


def theorem_16(case: Case) -> arb:
    stages, s = case.stages, case.release.s
    case.need(
        case.adjacency == "zero_out" and not case.release.laplace, "zero_out and Gaussian noise"
    )
    case.need(len(stages) == 1 and stages[0].kind == "without", "samples without replacement")
    q = stage_counts(stages[0], case.slots, 1, case.negligible).probabilities[1]
    if stages[0].size == case.slots:
        return held_against(case, lambda order, enough: gaussian(order, 1 / s))
    return held_against(case, *zero_out_pairs(q, s))


def laplace_zero_out(q: arb, d: arb) -> tuple[Bound, Bound]:
    """Bounds by Theorem 73, d = 1/s: q times the largest 1 - e^-t/2 - (a w + tau w^2) e^t/2, tau =
    (1 - q) (a - 1)/q; and the pair of Poisson sampling."""
    w = (-d).exp()

    def forward(order: Order, enough: arb) -> arb:
        E = order.a * q + order.u * (ONE - q) * w
        return positive_part(q - (q * w * E).sqrt())

    return forward, laplace_origin(q, d)[0]


def theorem_73(case: Case) -> arb:
    """Shortfall by Theorem 73. Where every record is drawn, q = 1, both bounds are those of Lap(1)
    against Lap(0)."""
    stages = case.stages
    case.need(case.adjacency == "zero_out" and case.release.laplace, "zero_out and Laplace noise")
    case.need(len(stages) == 1 and stages[0].kind == "without", "samples without replacement")
    q = stage_counts(stages[0], case.slots, 1, case.negligible).probabilities[1]
    return held_against(case, *laplace_zero_out(q, ONE / case.release.s))


def theorem_18(case: Case) -> arb:
    release, s = case.release, case.release.s
    case.need(
        release.name == "truncated_poisson" and not release.laplace,
        "truncated Poisson and Gaussian noise",
    )
    rate, most = (
        probability(release.sampler["rate"], "rate"),
        release.sampler["max_batch"],
    )
    room = poisson_bounds(rate, case.adjacency, s, is_laplace=False)
    if most >= case.slots:
        return held_against(case, *room)
    phi, kept, _ = cut_sample(case.slots - 1, rate, most, case.negligible)
    r = kept / phi
    if case.adjacency == "substitute":
        full = (lambda order, enough: r * gaussian(order.lift(r), 2 / s)), None
    elif case.adjacency == "zero_out":
        full = zero_out_pairs(r, s)
    else:
        full = against_origin(Counts([ONE - r, r], ZERO), 2 / s)

    def mixed(one: Bound, other: Bound) -> Bound:
        return lambda order, enough: (ONE - phi) * one(order, enough) + phi * other(order, enough)

    backward = mixed(room[1], full[1]) if full[1] else None
    return held_against(case, mixed(room[0], full[0]), backward)


def theorem_71(case: Case) -> arb:
    """Shortfall by Theorem 71 for cut samples, where B - 1 and more of the others are not told
    apart: of the others' sums N(0) stands for B - 1 of them, N(g) for B, and N(v) for the record
    next to B - 1."""
    release, unit = case.release, ONE / case.release.s
    case.need(
        release.name == "truncated_poisson" and not release.laplace,
        "truncated Poisson and Gaussian noise",
    )
    rate, most = (
        probability(release.sampler["rate"], "rate"),
        release.sampler["max_batch"],
    )
    case.need(most < case.slots, "samples that can be cut")
    room = poisson_bounds(rate, case.adjacency, release.s, is_laplace=False)
    phi, kept, law = cut_sample(case.slots - 1, rate, most, case.negligible)
    # at rate 1 all others are drawn, and no other number of them is listed
    w, q, stays = law.get(most - 1, ZERO), ball(rate), phi - kept

    def record(v: arb, g: arb) -> list[tuple[arb, arb]]:
        return [(w * (ONE - q), ZERO), (stays, g), (w * q + kept, v)]

    apart, close = record(unit, -unit), record(-unit, -unit)
    zeroed = [(w + kept, ZERO), (stays, -unit)]
    if case.adjacency == "substitute":
        forward, backward = pair(apart, record(-unit, -unit)), None
    elif case.adjacency == "zero_out":
        forward, backward = pair(apart, zeroed), pair(zeroed, close)
    else:
        forward = pair(apart, [(w, ZERO), (phi, -unit)])
        opposite = pair([(w, ZERO), (phi, unit)], record(-unit, unit))
        same = pair([(w, ZERO), (phi, -unit)], close)

        def backward(order: Order, enough: arb) -> arb:
            # N(g) counts for the data set without the record up to this order
            is_against = phi - order.a * stays <= 0
            return (same if is_against else opposite)(order, enough)

    rest = ONE - phi - w

    def mixed(one: Bound, other: Bound) -> Bound:
        return lambda order, enough: rest * one(order, enough) + other(order, enough)

    return held_against(case, mixed(room[0], forward), backward and mixed(room[1], backward))


# --- Schedules ------------------------------------------------------------------------------------


def theorem_17(case: Case) -> arb:
    release = case.release
    # of secret groups the record's is revealed
    names = "deterministic", "cyclic_poisson", "secret_cyclic_poisson"
    case.need(release.name in names, "a deterministic or cyclic schedule")
    rate = (
        Fraction(1)
        if release.name == "deterministic"
        else probability(release.sampler["rate"], "rate")
    )
    return held_against(case, *poisson_bounds(rate, case.adjacency, release.s, release.laplace))


def theorem_87(case: Case) -> arb:
    """Shortfall for separated steps: by Poisson sampling in every step (ii, iii), or of one epoch
    of a record whose steps are known, which is one Gaussian step."""
    release = case.release
    case.need(
        release.name == "min_separation" and not release.laplace,
        "separated steps and Gaussian noise",
    )
    if release.in_known_steps:
        distance = (2 if case.adjacency == "substitute" else 1) / release.s
        distance *= arb(release.in_known_steps).sqrt()
        return held_against(case, lambda order, enough: gaussian(order, distance))
    rate = probability(release.sampler["rate"], "rate")
    return held_against(case, *poisson_bounds(rate, case.adjacency, release.s, is_laplace=False))


def theorem_19(case: Case) -> arb:
    release = case.release
    case.need(
        release.name == "shuffle" and not release.laplace, "shuffled epochs and Gaussian noise"
    )
    case.need(case.adjacency != "add_remove", "substitute or zero_out")
    distance = (2 if case.adjacency == "substitute" else 1) / release.s
    return held_against(case, lambda order, enough: gaussian(order, distance))


@dataclass(frozen=True)
class Theorem:
    """A theorem: the pages that have it, and how much a law lacks to dominate its bound in a case.
    The releases that it is about, and how often its laws are composed, are looked up from the
    question."""

    page: str
    shortfall: Callable[[Case], arb]
    laplace_page: str = ""


THEOREMS: dict[str, Theorem] = {
    "1": Theorem("poisson", theorem_1, "laplace"),
    "2": Theorem("without_replacement", theorem_2, "laplace"),
    "4": Theorem("chains", theorem_4),
    "6": Theorem("chains", theorem_6),
    "9": Theorem("added_records", theorem_9, "laplace"),
    "10": Theorem("added_records", theorem_10),
    "16": Theorem("zero_out", theorem_16),
    "17": Theorem("schedules", theorem_17, "laplace"),
    "73": Theorem("zero_out", theorem_73),
    "18": Theorem("cut_samples", theorem_18),
    "71": Theorem("cut_samples", theorem_71),
    "19": Theorem("shuffling", theorem_19),
    "87": Theorem("schedules", theorem_87),
}

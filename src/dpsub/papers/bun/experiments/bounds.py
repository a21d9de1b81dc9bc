"""Bounds of sampling designs, printed and corrected, each with the exact worst loss (Bun et al.,
Sections 2 to 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.amplification.survey import clusters, laws, rates, unequal
from dpsub.amplification.survey import sizes as of_sizes
from dpsub.amplification.survey.auditor import audit, hockey_stick, worst_ratio
from dpsub.errors import NumericalError
from dpsub.papers.bun import strata
from dpsub.papers.bun.experiments.sizes import RandomLaws
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Listed
from dpsub.sampling.allocation import exact_rate, rounded_sizes
from dpsub.sampling.designs import Systematic
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic, PpsWithReplacement
from dpsub.streams import Streams

BaseEpsilons = Annotated[
    Listed[Annotated[float, Field(gt=0, le=5)]], Field(description="Base epsilons, in nats.")
]


class BoundCase(NamedTuple):
    """A statement ("T3.1 upper") at one point, in words without epsilon."""

    statement: str
    case: str
    # claimed relation of the formula to `exact`: "upper", "lower", "equal" or "number"
    side: str
    epsilon: float  # of the mechanism on the sample, in nats
    stated: float
    exact: float  # the truth
    # the formula where the printed one is wrong, None where it is not
    corrected: float | None = None

    def bound(self, variant: str) -> float:
        """Return the formula in a variant; `rigorous` is the truth."""
        if variant == "rigorous":
            return self.exact
        return self.stated if variant == "stated" or self.corrected is None else self.corrected


# Sections 2 to 4 and 7: sizes of samples


def fixed_sizes(epsilon: float) -> Iterator[BoundCase]:
    """Theorem 2.2, and the relation between the two neighbouring relations (Section 2.2)."""
    # A substitution is two steps of adding and removing, which the worst mechanism attains.
    alone = audit({(1, 0): 1.0}, {(0, 1): 1.0}, epsilon).loss
    yield BoundCase("Section 2.2", "one record replaced", "equal", epsilon, 2 * epsilon, alone)
    for n, m in ((3, 1), (5, 2), (5, 4)):
        formula, delta = rates.amplified(m / n, epsilon), 0.02
        p, q = laws.substituted({m: 1.0}, n)
        worst = audit(p, q, epsilon, relation="substitute").loss
        yield BoundCase("T2.2", f"m {m} of n {n}", "equal", epsilon, formula, worst)
        leak = hockey_stick(p, q, epsilon, at=formula, delta=delta, relation="substitute")
        scaled = rates.amplified_delta(m / n, delta)
        yield BoundCase(
            "T2.2 delta", f"m {m} of n {n}, delta {delta}", "equal", epsilon, scaled, leak
        )
    for rate in (0.001, 0.01, 0.1):
        exact = rates.amplified(rate, epsilon)
        yield BoundCase(
            "Section 2.3", f"rate {rate}", "equal", epsilon, rate * epsilon, exact, exact
        )


def random_sizes(epsilon: float, random_laws: int, streams: Streams) -> Iterator[BoundCase]:
    """Theorem 3.1, and the programme that replaces it."""
    sides = (("upper", of_sizes.random_size_upper), ("lower", of_sizes.random_size_lower))
    for n in (3, 4, 5):
        rng = streams.data({"n": n}, 0)
        # The first law always takes all records; the others have full support.
        sizes = [np.eye(n + 1)[n], *rng.dirichlet(np.ones(n + 1), random_laws)]
        for number, t in enumerate(sizes):
            law = of_sizes.log_sizes_of(t)
            possible = {m: float(p) for m, p in enumerate(t) if p > 0}
            worst = audit(*laws.substituted(possible, n), epsilon).loss
            case = f"n {n}, " + (f"random law {number}" if number else "all records")
            for side, formula in sides:
                printed, doubled = (formula(law, epsilon, factor=factor) for factor in (1, 2))
                yield BoundCase(f"T3.1 {side}", case, side, epsilon, printed, worst, doubled)
            yield BoundCase(
                "T3.1 programme",
                case,
                "equal",
                epsilon,
                of_sizes.random_size_exact(law, epsilon),
                worst,
            )


def rounded_rates(epsilon: float) -> Iterator[BoundCase]:
    """Deterministic rounding (Section 4.3), randomised rounding (Theorem 4.3), and two strata
    (Theorem 7.2)."""
    for n in (14, 15, 24):
        p, q = (rounded_sizes("1/10", size, "half_up") for size in (n, n + 1))
        worst = audit(*laws.added(p, q, n), epsilon).loss
        # Where the new record changes the size, a mechanism that shows the size loses all of
        # epsilon.
        truth = epsilon if p != q else rates.amplified(max(q) / (n + 1), 2 * epsilon)
        yield BoundCase("Section 4.3 half up", f"r 1/10, n {n}", "equal", epsilon, truth, worst)
        if p != q:
            yield BoundCase(
                "Section 4.3 no gain", f"r 1/10, n {n}", "lower", epsilon, epsilon, worst
            )
    for rate in ("1/20", "1/10", "1/5", "2/5"):
        for n in (10, 14, 20, 25, 37):
            p, q = (rounded_sizes(rate, size, "randomised") for size in (n, n + 1))
            worst = audit(*laws.added(p, q, n), epsilon).loss
            aware = of_sizes.rounding_size_aware(rate, epsilon, n)
            case = f"r {rate}, n {n}"
            # The theorem needs r n >= 1; below, its form that knows n is compared alone.
            if float(exact_rate(rate)) * n >= 1:
                bound = of_sizes.rounding_checked(rate, epsilon, n)
                yield BoundCase("T4.3", case, "upper", epsilon, bound, worst, aware)
            else:
                yield BoundCase("T4.3 size-aware", case, "upper", epsilon, aware, worst)
            programme = of_sizes.rounding_exact_at(rate, epsilon, n, "randomised")
            yield BoundCase("T4.3 programme", case, "equal", epsilon, programme, worst)
    # A record added to the first of two strata does not change the draw from the other one.
    rate, case = "1/5", "r 1/5, strata of 6 and 7"
    smaller, larger, independent = (rounded_sizes(rate, size, "randomised") for size in (6, 7, 7))
    first, second = (
        {
            (*state, m): chance * share
            for state, chance in law.items()
            for m, share in independent.items()
        }
        for law in laws.added(smaller, larger, 6)
    )
    worst = audit(first, second, epsilon).loss
    bound = strata.proportional(rate, epsilon, (6, 7), differing=0)
    aware = of_sizes.rounding_size_aware(rate, epsilon, 6)
    yield BoundCase("T7.2", case, "upper", epsilon, bound, worst, aware)
    single = of_sizes.rounding_exact_at(rate, epsilon, 6, "randomised")
    yield BoundCase("T7.2 one stratum", case, "equal", epsilon, single, worst)


# Sections 5 and 6: clusters, unequal probabilities, known orders


def clustered(epsilon: float) -> Iterator[BoundCase]:
    """Theorems 5.1 and 5.2 with the sizes of the smaller population, and their consequences."""
    for sizes, drawn in (
        ((2, 2, 2, 2), 2),
        ((5, 5, 5), 1),
        ((1, 3, 2, 4), 2),
        ((3, 1, 6), 1),
        ((2, 1, 1, 5, 2), 3),
    ):
        design = clusters.ClusterDesign(sizes, drawn)
        worst = audit(*laws.cluster_laws(sizes, drawn), epsilon).loss
        case = f"{drawn} of the sizes {' '.join(map(str, sizes))}"
        lower, upper = design.lower(epsilon, 0), design.upper(epsilon, 0)
        yield BoundCase("T5.1", case, "lower", epsilon, lower, worst)
        yield BoundCase("T5.2", case, "upper", epsilon, upper, worst)
        # With clusters of one size both bounds agree, and are attained.
        if len(set(sizes)) == 1:
            yield BoundCase("Section 5.1 tight", case, "equal", epsilon, lower, worst, upper)
        yield BoundCase("Section 5.2", case, "upper", epsilon, epsilon, worst)
        yield BoundCase(
            "Section 5 programme", case, "equal", epsilon, design.exact(epsilon, 0), worst
        )
    # Clusters this large are beyond the auditor; the programme over all mechanisms is exact.
    large = clusters.ClusterDesign((400, 300, 300, 500), 1).exact(epsilon, 0)
    yield BoundCase("Section 5.1 limit", "clusters of 300 to 500", "equal", epsilon, epsilon, large)
    for rate in (0.001, 0.01):
        inner = rates.amplified(rate, epsilon)
        yield BoundCase(
            "Section 5.2 Poisson", f"rate {rate}", "equal", epsilon, rate * epsilon, inner, inner
        )


def presence(epsilon: float) -> BoundCase:
    """Return the case of Theorem 5.3 where a test of presence and the conditional loss both equal
    epsilon."""
    share, p = 0.5, 0.5
    # Pr[H = 0] on the first population with the cluster in, and out.
    inside, outside = p, p * math.exp(-epsilon)
    # The same with the cluster in, on the second population.
    other = p * math.exp(-epsilon)
    first_population = share * inside + (1 - share) * outside
    second_population = share * other + (1 - share) * outside
    truth = math.log(first_population / second_population)
    printed = clusters.presence_bound(share, epsilon, epsilon, reverse=True)
    fixed = clusters.presence_bound(share, epsilon, epsilon)
    return BoundCase(
        "T5.3", "q 0.5, p 0.5, epsilon' the base epsilon", "lower", epsilon, printed, truth, fixed
    )


def proportional_to_size(epsilon: float) -> Iterator[BoundCase]:
    """Proposition 6.1, the bounds of PPS, and one cluster drawn with a chance proportional to its
    size."""
    for sizes, m in (((1.0, 1.0, 2.0, 3.0), 2), ((1.0, 4.0, 5.0), 1)):
        frame = Frame(len(sizes), sizes=np.array(sizes))
        sampler = PpsConditionalPoisson(m)
        record = len(sizes) - 1
        largest = float(sampler.inclusion_probabilities(frame)[record])
        law = sampler.law(frame).items()
        p = {(*state, 0): chance for state, chance in law}
        q = {(*state[:record], 0, state[record]): chance for state, chance in law}
        worst = audit(p, q, epsilon, relation="both").loss
        weak, strong = unequal.pps_bounds(largest, epsilon)
        case = f"{m} of the sizes {' '.join(f'{size:g}' for size in sizes)}"
        # The event is the answer of randomised response on the record of largest probability.
        signal = 1 / (1 + math.exp(-epsilon))
        chances = [[largest], [largest], [signal], [1 - signal], [1 - signal], [1 - signal]]
        general = unequal.inclusion_bound(*chances)
        first = unequal.inclusion_bound(*chances, weak=True)
        yield BoundCase("P6.1", case, "lower", epsilon, first, worst, general)
        yield BoundCase("Section 6.1 weak", case, "lower", epsilon, weak, worst, strong)
        yield BoundCase("Section 6.1 strong", case, "lower", epsilon, strong, worst)
    for counts in ((1, 9), (1, 3), (2, 2), (1, 2, 6), (40, 60)):
        worst = audit(*laws.cluster_laws(counts, 1, by_size=True), epsilon).loss
        case = f"clusters of {' '.join(map(str, counts))}"
        yield BoundCase(
            "Section 6.2 programme",
            case,
            "equal",
            epsilon,
            unequal.pps_cluster(counts, 0, epsilon),
            worst,
        )
        # Only clusters that are far apart in epsilon show that sampling gains nothing.
        if counts[0] * epsilon > 3:
            yield BoundCase("Section 6.2 no gain", case, "lower", epsilon, epsilon, worst)
        yield BoundCase(
            "Section 6.2 limit",
            case,
            "upper",
            epsilon,
            unequal.pps_cluster_limit(counts, 0, epsilon),
            worst,
        )


def known_orders(epsilon: float, largest_order: int) -> Iterator[BoundCase]:
    """A record inserted in the middle of a known order, and one replaced in place, k = 2."""
    for n in range(4, largest_order + 1, 4):
        before, after = laws.inserted(n, n // 2)
        as_clusters = clusters.loss(0.5, epsilon, n)
        low, high = unequal.systematic_insertion(n, 2, n // 2, epsilon)
        worst = audit(before, after, epsilon).loss
        case = f"k 2, n {n}, inserted in the middle"
        yield BoundCase("Section 6.3 known order", case, "upper", epsilon, as_clusters, worst, high)
        yield BoundCase("Section 6.3 insertion", case, "lower", epsilon, low, worst)
        replaced = laws.systematic_law([n, *range(1, n)], 2, n + 1)
        in_place = audit(before, replaced, epsilon, relation="both").loss
        yield BoundCase(
            "Section 6.3 in place",
            f"k 2, n {n}, replaced in place",
            "upper",
            epsilon,
            as_clusters,
            in_place,
        )


def same_as_simple() -> Iterator[BoundCase]:
    """Yield the total variation distances of designs from the simple random sampling they claim."""
    frame, simple = Frame(4, sizes=np.ones(4)), Systematic(2, "random").law(Frame(4))
    pps = [
        ("Section 6.1 equal sizes", sampler.label, sampler.law(frame), simple)
        for sampler in (PpsConditionalPoisson(2), PpsSystematic(2), PpsWithReplacement(2))
    ]
    for name, case, first_law, second_law in (
        *pps,
        ("Section 6.3 secret order", "k 2, n 4", simple, dict.fromkeys(simple, 1 / 6)),
    ):
        distance = 0.5 * math.fsum(
            abs(first_law.get(state, 0.0) - second_law.get(state, 0.0))
            for state in {**first_law, **second_law}
        )
        yield BoundCase(name, case, "equal", 0.0, 0.0, distance, distance)


# Lemmas, and the numbers that the text prints


def lemmas(epsilon: float, random_laws: int, streams: Streams) -> Iterator[BoundCase]:
    """Yield the cases of joint convexity (A.4), coupled sizes (B.1), the tilt (B.3), and case 2 of
    Appendix C."""
    for share in (0.05, 0.3, 0.8):
        for further in (0.2, 1.0):
            bound = epsilon + rates.amplified(share, further)
            worst = _joint_convexity(share, epsilon, further)
            yield BoundCase(
                "Lemma A.4", f"q {share}, epsilon' {further}", "upper", epsilon, bound, worst
            )
    for n, m, other in ((6, 2, 2), (6, 2, 3), (8, 3, 5), (9, 4, 3)):
        pair = laws.added({m: 1.0}, {other: 1.0}, n)
        bound = of_sizes.rounding_coupled(m, other, n, epsilon)
        case = f"m {m} of {n}, m' {other} of {n + 1}"
        yield BoundCase("Lemma B.1", case, "upper", epsilon, bound, audit(*pair, epsilon).loss)
        # Mechanisms that are private under substitute may show the size: with two sizes nothing
        # holds for them.
        worst = audit(*pair, epsilon, relation="substitute").loss
        yield BoundCase(
            "Lemma B.1 base",
            case,
            "upper",
            epsilon,
            bound,
            worst,
            bound if m == other else math.inf,
        )
    rng = streams.data({"lemma": "B.3"}, 0)
    for number in range(1, random_laws + 1):
        t, w = rng.dirichlet(np.ones(12)), np.sort(rng.random(12))
        tilted = t * np.exp(epsilon * np.arange(12))
        value = math.log(float(tilted @ w / tilted.sum()))
        best = worst_ratio(np.log(w * t), np.log(t), epsilon).log_ratio
        yield BoundCase("Lemma B.3", f"random law {number}", "equal", epsilon, value, best)
    yield larger_sample(epsilon)


def larger_sample(epsilon: float) -> BoundCase:
    """Return the case of Appendix C, case 2: both populations have samples of the larger size."""
    n, m = 10, 4
    share = (m + 1) / (n + 1)
    worst = audit(*laws.added({m + 1: 1.0}, {m + 1: 1.0}, n), epsilon).loss
    fixed = rates.amplified(share, 2 * epsilon)
    return BoundCase(
        "Appendix C case 2", f"m {m}, n {n}", "upper", epsilon, math.log1p(share), worst, fixed
    )


def _joint_convexity(share: float, epsilon: float, further: float) -> float:
    """Return the largest log ratio of two mixtures whose parts are as close as Lemma A.4
    supposes."""
    # here, as loading it takes longer than most jobs
    from scipy.optimize import linprog

    near, far = math.exp(epsilon), math.exp(epsilon + further)
    rows = []
    # The unknowns x0, x1, y0, y1 are the probabilities of one event in the parts of both mixtures.
    for event_of, bounded_by, factor in ((0, 2, near), (1, 3, far), (1, 2, far), (0, 3, far)):
        for a, b in ((event_of, bounded_by), (bounded_by, event_of)):
            rows.append([1.0 if i == a else -factor if i == b else 0.0 for i in range(4)])
    solution = linprog(
        [share - 1, -share, 0.0, 0.0],
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=[[0.0, 0.0, 1 - share, share]],
        b_eq=[1.0],
        method="highs",
    )
    if solution.fun is None:
        raise NumericalError(
            f"the linear programme must reach an optimum, got {solution.message!r}"
        )
    return math.log(-float(solution.fun))


def printed_numbers() -> Iterator[BoundCase]:
    """Yield printed numbers: `stated` is ours under the paper's reading, `exact` the true value."""
    # here, as loading it takes longer than most jobs
    from scipy.integrate import quad

    def number(statement: str, case: str, epsilon: float, *values: float) -> BoundCase:
        return BoundCase(statement, case, "number", epsilon, *values)

    for name, case, value in (
        ("rate 1/100", "epsilon' of noise scale 1/n", rates.amplified(0.01, 1.0)),
        ("scale", "epsilon' of noise scale 1/(100 n)", rates.amplified(0.01, 100.0)),
        ("base", "epsilon on the sample for epsilon' 1", rates.base_for(0.01, 1.0)),
    ):
        yield number(f"Section 2.4 {name}", case, 1.0, value, value)
    variance = quad(lambda x: x * x * 0.5 * math.exp(-abs(x)), -60, 60, points=[0.0], limit=200)[0]
    yield number("P4.2 variance", "of Lap(1)", 1.0, variance, variance)
    yield deletion_estimators()
    for n in (14, 15):
        (size,) = rounded_sizes("1/10", n, "half_up")
        yield number("Section 4.3 sizes", f"r 1/10, n {n}", 0.0, size, size)
    small = 1e-6
    worst = max(
        of_sizes.rounding_exact_at("1/10", small, n, "randomised") for n in range(10, 60)
    ) / (0.1 * small)
    constant = of_sizes.rounding_printed("1/10", small) / (0.1 * small)
    yield number("T4.3 constant", "r 1/10, small epsilon", small, constant, worst)
    above = max(
        max(rounded_sizes(f"1/{k}", n, "randomised")) - max(rounded_sizes(f"1/{k}", n, "half_up"))
        for k in range(2, 40)
        for n in range(1, 120)
    )
    yield number("T4.3 one more", "rates 1/2 to 1/39, n to 119", 0.0, above, above)
    shares = np.geomspace(1e-6, 0.4, 40).tolist()
    for epsilon in (0.1, 0.5, 1.0):
        ratio = max(
            of_sizes.rounding_printed(r, epsilon) / rates.amplified(r, epsilon) for r in shares
        )
        yield BoundCase(
            "Section 1.1 comparable",
            "largest ratio to simple random sampling, rates to 0.4",
            "upper",
            epsilon,
            3 * (math.exp(epsilon) + 1),
            ratio,
        )
    for text in ("1/10", "1/20", "1/100", "1/1000"):
        proposed = 1 / (6 * float(exact_rate(text)))
        exact, loss = of_sizes.rounding_base(text, 1.0), of_sizes.rounding_printed(text, proposed)
        yield number("Section 7.3 lambda", f"r {text}", 1.0, proposed, exact, exact)
        yield number("Section 7.3 loss", f"r {text}, lambda epsilon/(6 r)", 1.0, 1.0, loss, loss)


def deletion_estimators() -> BoundCase:
    """Return the case of Proposition 4.2 with alpha taken over estimators that are private under
    add_remove.

    f is 1 for an even number of records and 20 for an odd one. Replacing a record changes nothing,
    so that the sample of size f is a simple random sample and f itself is used without error. An
    estimator that is private under add_remove must confuse n and n + 1 records.
    """
    epsilon, n, small, jump = 1.0, 1000, 1, 19
    amplified = rates.amplified((small + jump) / n, epsilon)
    alpha = of_sizes.two_point_error(jump, amplified, longest=1)
    stated = of_sizes.error_floor(alpha, epsilon, noise=1)
    fixed = of_sizes.error_floor(0.0, epsilon, noise=2)
    return BoundCase(
        "P4.2 deletion",
        f"sizes {small} and {small + jump} of {n}",
        "lower",
        epsilon,
        stated,
        0.0,
        fixed,
    )


class BunBounds(Experiment):
    """Each statement on a grid: the value of its formula in the variant, and the true value.

    `side` says what the formula claims: "upper" (at least the exact value), "lower" (at most),
    "equal", or "number" (a printed number; then `exact` is the true one). Variants: stated is the
    printed formula, consistent the corrected one, rigorous the exact value. Exact values come from
    the linear programme over all epsilon-DP mechanisms, or from a programme over sequences that the
    tests hold against it.
    """

    name: ClassVar[str] = "bun_bounds"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "statement": "str",
        "case": "str",
        "side": "str",
        "epsilon": "float64",
        "bound": "float64",
        "exact": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("statement", "case", "epsilon")
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        epsilons: BaseEpsilons = (0.1, 0.5, 1)
        random_laws: RandomLaws = 12
        largest_order: Annotated[int, Field(ge=4, le=24)] = Field(
            12, description="Longest order of systematic samples."
        )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [
            (0, *case[:4], case.bound(run.variant), case.exact)
            for case in self._cases(settings, run)
        ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _cases(self, settings: Settings, run: Run) -> Iterator[BoundCase]:
        for epsilon in settings.epsilons:
            yield from fixed_sizes(epsilon)
            yield from random_sizes(epsilon, settings.random_laws, run.streams)
            yield from rounded_rates(epsilon)
        for epsilon in settings.epsilons:
            yield from clustered(epsilon)
            yield presence(epsilon)
            yield from proportional_to_size(epsilon)
            yield from known_orders(epsilon, settings.largest_order)
        yield from same_as_simple()
        for epsilon in settings.epsilons:
            yield from lemmas(epsilon, settings.random_laws, run.streams)
        yield from printed_numbers()

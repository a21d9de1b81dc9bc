"""Statements of Sections 2 to 4 and 7 on the sizes of samples, the lemmas, and the numbers that the text prints."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.integrate import quad
from scipy.optimize import linprog

from dpsub.amplification.survey import rates, strata
from dpsub.amplification.survey import sizes as of_sizes
from dpsub.amplification.survey.auditor import audit, hockey_stick, worst_ratio
from dpsub.errors import NumericalError
from dpsub.papers.bun.experiments.laws import Case, added, substituted
from dpsub.sampling.allocation import exact_rate, rounded_sizes
from dpsub.streams import Streams


def sizes_of_samples(epsilon: float, random_laws: int, streams: Streams) -> Iterator[Case]:
    """Yield the cases of fixed, random and rounded sizes."""
    yield from _fixed(epsilon)
    yield from _random(epsilon, random_laws, streams)
    yield from _half_up(epsilon)
    yield from _randomised(epsilon)
    yield from _two_strata(epsilon)


def _fixed(epsilon: float) -> Iterator[Case]:
    """Theorem 2.2, and the relation between the two neighbouring relations (Section 2.2)."""
    alone = audit({(1, 0): 1.0}, {(0, 1): 1.0}, epsilon).loss
    yield Case("Section 2.2", "one record replaced", "equal", epsilon, 2 * epsilon, alone)
    for n, m in ((3, 1), (5, 2), (5, 4)):
        formula, delta = rates.amplified(m / n, epsilon), 0.02
        p, q = substituted({m: 1.0}, n)
        found = audit(p, q, epsilon, relation="substitute").loss
        yield Case("T2.2", f"m {m} of n {n}", "equal", epsilon, formula, found)
        leak = hockey_stick(p, q, epsilon, at=formula, delta=delta, relation="substitute")
        scaled = rates.amplified_delta(m / n, delta)
        yield Case("T2.2 delta", f"m {m} of n {n}, delta {delta}", "equal", epsilon, scaled, leak)
    for rate in (0.001, 0.01, 0.1):
        exact = rates.amplified(rate, epsilon)
        yield Case("Section 2.3", f"rate {rate}", "equal", epsilon, rate * epsilon, exact, exact)


def _random(epsilon: float, random_laws: int, streams: Streams) -> Iterator[Case]:
    """Theorem 3.1, and the programme that replaces it."""
    sides = (("upper", of_sizes.random_size_upper), ("lower", of_sizes.random_size_lower))
    for n in (3, 4, 5):
        rng = streams.data({"n": n}, 0)
        for number, t in enumerate([np.eye(n + 1)[n], *rng.dirichlet(np.ones(n + 1), random_laws)]):
            law = of_sizes.log_sizes_of(t)
            found = audit(*substituted({m: float(p) for m, p in enumerate(t) if p > 0}, n), epsilon).loss
            case = f"n {n}, " + (f"random law {number}" if number else "all records")
            for side, formula in sides:
                printed, doubled = (formula(law, epsilon, factor=factor) for factor in (1, 2))
                yield Case(f"T3.1 {side}", case, side, epsilon, printed, found, doubled)
            yield Case("T3.1 programme", case, "equal", epsilon, of_sizes.random_size_exact(law, epsilon), found)


def _half_up(epsilon: float) -> Iterator[Case]:
    """Deterministic rounding (Section 4.3)."""
    for n in (14, 15, 24):
        p, q = (rounded_sizes("1/10", size, "half_up") for size in (n, n + 1))
        found = audit(*added(p, q, n), epsilon).loss
        truth = epsilon if p != q else rates.amplified(max(q) / (n + 1), 2 * epsilon)
        yield Case("Section 4.3 half up", f"r 1/10, n {n}", "equal", epsilon, truth, found)
        if p != q:
            yield Case("Section 4.3 no gain", f"r 1/10, n {n}", "lower", epsilon, epsilon, found)


def _randomised(epsilon: float) -> Iterator[Case]:
    """Theorem 4.3: randomised rounding."""
    for rate in ("1/20", "1/10", "1/5", "2/5"):
        for n in (10, 14, 20, 25, 37):
            p, q = (rounded_sizes(rate, size, "randomised") for size in (n, n + 1))
            found = audit(*added(p, q, n), epsilon).loss
            aware = of_sizes.rounding_size_aware(rate, epsilon, n)
            case = f"r {rate}, n {n}"
            if float(exact_rate(rate)) * n >= 1:
                bound = of_sizes.rounding_checked(rate, epsilon, n)
                yield Case("T4.3", case, "upper", epsilon, bound, found, aware)
            else:
                yield Case("T4.3 size-aware", case, "upper", epsilon, aware, found)
            programme = of_sizes.rounding_exact_at(rate, epsilon, n, "randomised")
            yield Case("T4.3 programme", case, "equal", epsilon, programme, found)


def _two_strata(epsilon: float) -> Iterator[Case]:
    """Theorem 7.2: a record added to the first of two strata, both sampled, changes nothing in the other's draw."""
    rate, case = "1/5", "r 1/5, strata of 6 and 7"
    one, more, other = (rounded_sizes(rate, size, "randomised") for size in (6, 7, 7))
    p, q = ({(*state, m): chance * share for state, chance in law.items() for m, share in other.items()}
            for law in added(one, more, 6))  # fmt: skip
    found = audit(p, q, epsilon).loss
    bound = strata.proportional(rate, epsilon, (6, 7), differing=0)
    yield Case("T7.2", case, "upper", epsilon, bound, found, of_sizes.rounding_size_aware(rate, epsilon, 6))
    single = of_sizes.rounding_exact_at(rate, epsilon, 6, "randomised")
    yield Case("T7.2 one stratum", case, "equal", epsilon, single, found)


def lemmas(epsilon: float, random_laws: int, streams: Streams) -> Iterator[Case]:
    """Yield the cases of joint convexity (A.4), coupled sizes (B.1), the tilt (B.3), and case 2 of Appendix C."""
    for share in (0.05, 0.3, 0.8):
        for further in (0.2, 1.0):
            bound = epsilon + rates.amplified(share, further)
            found = _joint_convexity(share, epsilon, further)
            yield Case("Lemma A.4", f"q {share}, epsilon' {further}", "upper", epsilon, bound, found)
    for n, m, other in ((6, 2, 2), (6, 2, 3), (8, 3, 5), (9, 4, 3)):
        laws = added({m: 1.0}, {other: 1.0}, n)
        bound = of_sizes.rounding_coupled(m, other, n, epsilon)
        case = f"m {m} of {n}, m' {other} of {n + 1}"
        yield Case("Lemma B.1", case, "upper", epsilon, bound, audit(*laws, epsilon).loss)
        found = audit(*laws, epsilon, relation="substitute").loss
        yield Case("Lemma B.1 base", case, "upper", epsilon, bound, found, bound if m == other else math.inf)
    rng = streams.data({"lemma": "B.3"}, 0)
    for number in range(1, random_laws + 1):
        t, w = rng.dirichlet(np.ones(12)), np.sort(rng.random(12))
        tilted = t * np.exp(epsilon * np.arange(12))
        value = math.log(float(tilted @ w / tilted.sum()))
        best = worst_ratio(np.log(w * t), np.log(t), epsilon).log_ratio
        yield Case("Lemma B.3", f"random law {number}", "equal", epsilon, value, best)
    yield larger_sample(epsilon)


def larger_sample(epsilon: float) -> Case:
    """Return the case of Appendix C, case 2: both populations have samples of the larger size."""
    n, m = 10, 4
    share = (m + 1) / (n + 1)
    found = audit(*added({m + 1: 1.0}, {m + 1: 1.0}, n), epsilon).loss
    return Case("Appendix C case 2", f"m {m}, n {n}", "upper", epsilon, math.log1p(share), found,
                rates.amplified(share, 2 * epsilon))  # fmt: skip


def _joint_convexity(share: float, epsilon: float, further: float) -> float:
    """Return the largest log ratio of two mixtures whose parts are as close as Lemma A.4 supposes."""
    near, far = math.exp(epsilon), math.exp(epsilon + further)
    rows = []
    for one, other, factor in ((0, 2, near), (1, 3, far), (1, 2, far), (0, 3, far)):  # x0, x1, y0, y1: one event
        for a, b in ((one, other), (other, one)):
            rows.append([1.0 if i == a else -factor if i == b else 0.0 for i in range(4)])
    found = linprog([share - 1, -share, 0.0, 0.0], A_ub=rows, b_ub=np.zeros(len(rows)),
                    A_eq=[[0.0, 0.0, 1 - share, share]], b_eq=[1.0], method="highs")  # fmt: skip
    if found.fun is None:
        raise NumericalError(f"the linear programme must reach an optimum, got {found.message!r}")
    return math.log(-float(found.fun))


def printed_numbers() -> Iterator[Case]:
    """Yield printed numbers: `stated` is ours under the paper's reading, `exact` the true value."""

    def number(statement: str, case: str, epsilon: float, *values: float) -> Case:
        return Case(statement, case, "number", epsilon, *values)

    for name, case, value in (
        ("rate 1/100", "epsilon' of noise scale 1/n", rates.amplified(0.01, 1.0)),
        ("scale", "epsilon' of noise scale 1/(100 n)", rates.amplified(0.01, 100.0)),
        ("base", "epsilon on the sample for epsilon' 1", rates.base_for(0.01, 1.0)),
    ):
        yield number(f"Section 2.4 {name}", case, 1.0, value, value)
    variance = quad(lambda x: x * x * 0.5 * math.exp(-abs(x)), -60, 60, points=[0.0], limit=200)[0]
    yield number("P4.2 variance", "of Lap(1)", 1.0, variance, variance)
    yield deletion_estimators(epsilon=1.0, n=1000, small=1, jump=19)
    for n in (14, 15):
        (size,) = rounded_sizes("1/10", n, "half_up")
        yield number("Section 4.3 sizes", f"r 1/10, n {n}", 0.0, size, size)
    small = 1e-6
    worst = max(of_sizes.rounding_exact_at("1/10", small, n, "randomised") for n in range(10, 60)) / (0.1 * small)
    constant = of_sizes.rounding_printed("1/10", small) / (0.1 * small)
    yield number("T4.3 constant", "r 1/10, small epsilon", small, constant, worst)
    above = max(max(rounded_sizes(f"1/{k}", n, "randomised")) - max(rounded_sizes(f"1/{k}", n, "half_up"))
                for k in range(2, 40) for n in range(1, 120))  # fmt: skip
    yield number("T4.3 one more", "rates 1/2 to 1/39, n to 119", 0.0, above, above)
    shares = np.geomspace(1e-6, 0.4, 40).tolist()
    for epsilon in (0.1, 0.5, 1.0):
        ratio = max(of_sizes.rounding_printed(r, epsilon) / rates.amplified(r, epsilon) for r in shares)
        yield Case("Section 1.1 comparable", "largest ratio to simple random sampling, rates to 0.4", "upper", epsilon,
                   3 * (math.exp(epsilon) + 1), ratio)  # fmt: skip
    for text in ("1/10", "1/20", "1/100", "1/1000"):
        proposed = 1 / (6 * float(exact_rate(text)))
        exact, found = of_sizes.rounding_base(text, 1.0), of_sizes.rounding_printed(text, proposed)
        yield number("Section 7.3 lambda", f"r {text}", 1.0, proposed, exact, exact)
        yield number("Section 7.3 loss", f"r {text}, lambda epsilon/(6 r)", 1.0, 1.0, found, found)


def deletion_estimators(epsilon: float, n: int, small: int, jump: int) -> Case:
    """Return the case of Proposition 4.2 with alpha taken over estimators that are private under add_remove.

    f is `small` for an even number of records and `small` + `jump` for an odd one. Replacing a record changes nothing,
    so that the sample of size f is a simple random sample and f itself is used without error. An estimator that is
    private under add_remove must confuse n and n + 1 records.
    """
    amplified = rates.amplified((small + jump) / n, epsilon)
    alpha = of_sizes.two_point_error(jump, amplified, longest=1)
    floors = [of_sizes.error_floor(value, epsilon, noise=noise) for value, noise in ((alpha, 1), (0.0, 2))]
    case = f"sizes {small} and {small + jump} of {n}"
    return Case("P4.2 deletion", case, "lower", epsilon, floors[0], 0.0, floors[1])

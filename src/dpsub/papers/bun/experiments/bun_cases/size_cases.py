"""Sections 2 to 4 and Theorem 7.2: samples whose size is fixed, random, or rounded from the number of records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpsub.amplification.survey import rates, strata
from dpsub.amplification.survey.auditor import audit, hockey_stick
from dpsub.amplification.survey.sizes import (
    log_sizes_of,
    random_size_exact,
    random_size_lower,
    random_size_upper,
    rounding_checked,
    rounding_exact_at,
    rounding_size_aware,
)
from dpsub.papers.bun.experiments.bun_cases.cases import Case, added, substituted
from dpsub.sampling.allocation import exact_rate, rounded_sizes
from dpsub.streams import Streams

RATES = ("1/20", "1/10", "1/5", "2/5")
POPULATIONS = (10, 14, 20, 25, 37)


def cases(epsilons: list[float], random_laws: int, streams: Streams) -> Iterator[Case]:
    """Yield the cases of all statements on sizes."""
    for epsilon in epsilons:
        yield from _fixed(epsilon)
        yield from _random(epsilon, random_laws, streams)
        yield from _rounded(epsilon)


def _fixed(epsilon: float) -> Iterator[Case]:
    """Theorem 2.2, and the relation between the two neighbouring relations (Section 2.2)."""
    alone = audit({(1, 0): 1.0}, {(0, 1): 1.0}, epsilon).loss
    yield Case("Section 2.2", "one record replaced", "equal", epsilon, 2 * epsilon, 2 * epsilon, alone)
    for n, m in ((3, 1), (5, 2), (5, 4)):
        formula = rates.amplified(m / n, epsilon)
        p, q = substituted({m: 1.0}, n)
        found = audit(p, q, epsilon, relation="substitute").loss
        yield Case("T2.2", f"m {m} of n {n}", "equal", epsilon, formula, formula, found)
        delta = 0.02
        leak = hockey_stick(p, q, epsilon, at=formula, delta=delta, relation="substitute")
        scaled = rates.amplified_delta(m / n, delta)
        yield Case("T2.2 delta", f"m {m} of n {n}, delta {delta}", "equal", epsilon, scaled, scaled, leak)
    for rate in (0.001, 0.01, 0.1):
        yield Case("Section 2.3", f"rate {rate}", "equal", epsilon, rate * epsilon, rates.amplified(rate, epsilon),
                   rates.amplified(rate, epsilon))  # fmt: skip


def _random(epsilon: float, random_laws: int, streams: Streams) -> Iterator[Case]:
    """Theorem 3.1, and the programme that replaces it."""
    for n in (3, 4, 5):
        rng = streams.data({"n": n}, 0)
        laws = [np.eye(n + 1)[n], *rng.dirichlet(np.ones(n + 1), random_laws)]
        for number, t in enumerate(laws):
            law = log_sizes_of(t)
            found = audit(*substituted({m: float(p) for m, p in enumerate(t) if p > 0}, n), epsilon).loss
            case = f"n {n}, " + (f"random law {number}" if number else "all records")
            for statement, side, formula in (
                ("T3.1 upper", "upper", random_size_upper), ("T3.1 lower", "lower", random_size_lower)
            ):  # fmt: skip
                printed, doubled = (formula(law, epsilon, factor=factor) for factor in (1, 2))
                yield Case(statement, case, side, epsilon, printed, doubled, found)
            programme = random_size_exact(law, epsilon)
            yield Case("T3.1 programme", case, "equal", epsilon, programme, programme, found)


def _rounded(epsilon: float) -> Iterator[Case]:
    """Theorems 4.3 and 7.2, and deterministic rounding."""
    for n in (14, 15, 24):
        p, q = (rounded_sizes("1/10", size, "half_up") for size in (n, n + 1))
        found = audit(*added(p, q, n), epsilon).loss
        jump = p != q
        truth = epsilon if jump else rates.amplified(max(q) / (n + 1), 2 * epsilon)
        yield Case("Section 4.3 half up", f"r 1/10, n {n}", "equal", epsilon, truth, truth, found)
        if jump:
            yield Case("Section 4.3 no gain", f"r 1/10, n {n}", "lower", epsilon, epsilon, epsilon, found)
    for rate in RATES:
        for n in POPULATIONS:
            p, q = (rounded_sizes(rate, size, "randomised") for size in (n, n + 1))
            found = audit(*added(p, q, n), epsilon).loss
            aware = rounding_size_aware(rate, epsilon, n)
            case = f"r {rate}, n {n}"
            if float(exact_rate(rate)) * n >= 1:
                bound = rounding_checked(rate, epsilon, n)
                yield Case("T4.3", case, "upper", epsilon, bound, aware, found)
            else:
                yield Case("T4.3 size-aware", case, "upper", epsilon, aware, aware, found)
            programme = rounding_exact_at(rate, epsilon, n, "randomised")
            yield Case("T4.3 programme", case, "equal", epsilon, programme, programme, found)
    yield from _two_strata(epsilon)


def _two_strata(epsilon: float) -> Iterator[Case]:
    """A record added to the first of two strata, both sampled: the other stratum's draw changes nothing."""
    rate, sizes = "1/5", (6, 7)
    one, more = (rounded_sizes(rate, size, "randomised") for size in (sizes[0], sizes[0] + 1))
    other = rounded_sizes(rate, sizes[1], "randomised")
    p, q = (
        {(*state, m): chance * share for state, chance in law.items() for m, share in other.items()}
        for law in added(one, more, sizes[0])
    )
    found = audit(p, q, epsilon).loss
    bound = strata.proportional(rate, epsilon, sizes, differing=0)
    aware = rounding_size_aware(rate, epsilon, sizes[0])
    yield Case("T7.2", f"r {rate}, strata of 6 and 7", "upper", epsilon, bound, aware, found)
    single = rounding_exact_at(rate, epsilon, sizes[0], "randomised")
    yield Case("T7.2 one stratum", f"r {rate}, strata of 6 and 7", "equal", epsilon, single, single, found)

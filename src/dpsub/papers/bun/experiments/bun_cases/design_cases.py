"""Sections 5 and 6: clusters, unequal probabilities, known orders."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dpsub.amplification.survey import clusters, rates, unequal
from dpsub.amplification.survey.auditor import State, audit
from dpsub.papers.bun.experiments.bun_cases.cases import Case
from dpsub.sampling.designs import Systematic
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic, PpsWithReplacement

EQUAL = ((2, 2, 2, 2), 2), ((5, 5, 5), 1)
UNEQUAL = ((1, 3, 2, 4), 2), ((3, 1, 6), 1), ((2, 1, 1, 5, 2), 3)


def cases(epsilons: list[float], largest_order: int) -> Iterator[Case]:
    """Yield the cases of all statements on clusters, PPS and systematic samples."""
    for epsilon in epsilons:
        yield from _clusters(epsilon)
        yield from _presence(epsilon)
        yield from _pps(epsilon)
        yield from _systematic(epsilon, largest_order)
    yield from _same_as_simple()


def cluster_laws(sizes: tuple[int, ...], drawn: int) -> tuple[dict[State, float], dict[State, float]]:
    """Return the laws of (members of each cluster, the new member of the first one) without and with it."""
    chosen = list(combinations(range(len(sizes)), drawn))
    laws = []
    for extra in (0, 1):
        law = {}
        for some in chosen:
            state = (*(size if i in some else 0 for i, size in enumerate(sizes)), extra if 0 in some else 0)
            law[state] = 1 / len(chosen)
        laws.append(law)
    return laws[0], laws[1]


def systematic_law(order: list[int], step: int, n_records: int) -> dict[State, float]:
    """Return the law of every `step`-th record of `order` from a uniform start, as counts of records 0..n_records-1."""
    law: dict[State, float] = {}
    for start in range(step):
        state = tuple(order[start::step].count(record) for record in range(n_records))
        law[state] = law.get(state, 0.0) + 1 / step
    return law


def _clusters(epsilon: float) -> Iterator[Case]:
    """Theorems 5.1 and 5.2 with the sizes of the smaller population, and what follows from them."""
    for sizes, drawn in (*EQUAL, *UNEQUAL):
        design = clusters.ClusterDesign(sizes, drawn)
        found = audit(*cluster_laws(sizes, drawn), epsilon).loss
        case = f"{drawn} of the sizes {' '.join(map(str, sizes))}"
        lower, upper = design.lower(epsilon, 0), design.upper(epsilon, 0)
        yield Case("T5.1", case, "lower", epsilon, lower, lower, found)
        yield Case("T5.2", case, "upper", epsilon, upper, upper, found)
        if len(set(sizes)) == 1:
            yield Case("Section 5.1 tight", case, "equal", epsilon, lower, upper, found)
        yield Case("Section 5.2", case, "upper", epsilon, epsilon, epsilon, found)
        exact = design.exact(epsilon, 0)
        yield Case("Section 5 programme", case, "equal", epsilon, exact, exact, found)
    large = clusters.ClusterDesign((400, 300, 300, 500), 1)
    yield Case("Section 5.1 limit", "clusters of 300 to 500", "equal", epsilon, epsilon, epsilon,
               large.exact(epsilon, 0))  # fmt: skip
    for rate in (0.001, 0.01):
        inner = rates.amplified(rate, epsilon)
        yield Case("Section 5.2 Poisson", f"rate {rate}", "equal", epsilon, rate * epsilon, inner, inner)


def _presence(epsilon: float) -> Iterator[Case]:
    """Theorem 5.3 where a test of presence and the conditional loss both equal epsilon."""
    share, p = 0.5, 0.5
    inside, outside = p, p * math.exp(-epsilon)  # Pr[H = 0] on the first population with the cluster in, and out
    other = p * math.exp(-epsilon)  # the same with the cluster in on the second population
    truth = math.log((share * inside + (1 - share) * outside) / (share * other + (1 - share) * outside))
    printed = clusters.presence_bound(share, epsilon, epsilon, reverse=True)
    fixed = clusters.presence_bound(share, epsilon, epsilon)
    yield Case("T5.3", "q 0.5, p 0.5, epsilon' the base epsilon", "lower", epsilon, printed, fixed, truth)


def _pps(epsilon: float) -> Iterator[Case]:
    """Proposition 6.1, the bounds of PPS, and one cluster drawn with a chance proportional to its size."""
    for sizes, m in (((1.0, 1.0, 2.0, 3.0), 2), ((1.0, 4.0, 5.0), 1)):
        frame = Frame(len(sizes), sizes=np.array(sizes))
        sampler = PpsConditionalPoisson(m)
        law = sampler.law(frame)
        record = int(np.argmax(sizes))
        largest = float(sampler.inclusion_probabilities(frame)[record])
        p = {(*state, 0): chance for state, chance in law.items()}
        q = {
            (*(0 if i == record else c for i, c in enumerate(state)), state[record]): chance
            for state, chance in law.items()
        }
        found = audit(p, q, epsilon, relation="both").loss
        weak, strong = unequal.pps_bounds(largest, epsilon)
        case = f"{m} of the sizes {' '.join(f'{size:g}' for size in sizes)}"
        signal = 1 / (1 + math.exp(-epsilon))
        chances = [[largest], [largest], [signal], [1 - signal], [1 - signal], [1 - signal]]
        general = unequal.inclusion_bound(*chances)
        first = unequal.inclusion_bound(*chances, weak=True)
        yield Case("P6.1", case, "lower", epsilon, first, general, found)
        yield Case("Section 6.1 weak", case, "lower", epsilon, weak, strong, found)
        yield Case("Section 6.1 strong", case, "lower", epsilon, strong, strong, found)
    for sizes_of in ((1, 9), (1, 3), (2, 2), (1, 2, 6), (40, 60)):
        n, own = sum(sizes_of), sizes_of[0]
        laws = []
        for extra in (0, 1):
            law = {}
            for c, size in enumerate(sizes_of):
                state = (*(size if i == c else 0 for i in range(len(sizes_of))), extra if c == 0 else 0)
                law[state] = (size + (extra if c == 0 else 0)) / (n + extra)
            laws.append(law)
        found = audit(laws[0], laws[1], epsilon).loss
        case = f"clusters of {' '.join(map(str, sizes_of))}"
        exact = unequal.pps_cluster(sizes_of, 0, epsilon)
        yield Case("Section 6.2 programme", case, "equal", epsilon, exact, exact, found)
        if own * epsilon > 3:
            yield Case("Section 6.2 no gain", case, "lower", epsilon, epsilon, epsilon, found)
        limit = unequal.pps_cluster_limit(sizes_of, 0, epsilon)
        yield Case("Section 6.2 limit", case, "upper", epsilon, limit, limit, found)


def _systematic(epsilon: float, largest_order: int) -> Iterator[Case]:
    """A record inserted in the middle of a known order, and one replaced in place, k = 2."""
    for n in range(4, largest_order + 1, 4):
        order = list(range(n))
        before = systematic_law(order, 2, n + 1)
        inserted = systematic_law([*order[: n // 2], n, *order[n // 2 :]], 2, n + 1)
        as_clusters = clusters.loss(0.5, epsilon, n)
        low, high = unequal.systematic_insertion(n, 2, n // 2, epsilon)
        found = audit(before, inserted, epsilon).loss
        case = f"k 2, n {n}, inserted in the middle"
        yield Case("Section 6.3 known order", case, "upper", epsilon, as_clusters, high, found)
        yield Case("Section 6.3 insertion", case, "lower", epsilon, low, low, found)
        replaced = systematic_law([n, *order[1:]], 2, n + 1)
        in_place = audit(before, replaced, epsilon, relation="both").loss
        yield Case("Section 6.3 in place", f"k 2, n {n}, replaced in place", "upper", epsilon, as_clusters, as_clusters,
                   in_place)  # fmt: skip


def _same_as_simple() -> Iterator[Case]:
    """How far designs that are said to be simple random sampling are from it, in total variation."""
    frame, m = Frame(4, sizes=np.ones(4)), 2
    simple = Systematic(2, "random").law(Frame(4))
    for sampler in (PpsConditionalPoisson(m), PpsSystematic(m), PpsWithReplacement(m)):
        apart = _variation(sampler.law(frame), simple)
        yield Case("Section 6.1 equal sizes", sampler.label, "equal", 0.0, 0.0, apart, apart)
    listed = dict.fromkeys(simple, 1 / 6)
    for step, n in ((2, 4),):
        apart = _variation(Systematic(step, "random").law(Frame(n)), listed)
        yield Case("Section 6.3 secret order", f"k {step}, n {n}", "equal", 0.0, 0.0, apart, apart)


def _variation(one: dict[State, float], other: dict[State, float]) -> float:
    return 0.5 * math.fsum(abs(one.get(state, 0.0) - other.get(state, 0.0)) for state in {**one, **other})

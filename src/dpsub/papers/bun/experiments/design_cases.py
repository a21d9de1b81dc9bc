"""Statements of Sections 5 and 6: clusters, unequal probabilities, known orders."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpsub.amplification.survey import clusters, rates, unequal
from dpsub.amplification.survey.auditor import audit
from dpsub.papers.bun.experiments.laws import Case, Law, cluster_laws, inserted, systematic_law
from dpsub.sampling.designs import Systematic
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic, PpsWithReplacement

EQUAL = ((2, 2, 2, 2), 2), ((5, 5, 5), 1)
UNEQUAL = ((1, 3, 2, 4), 2), ((3, 1, 6), 1), ((2, 1, 1, 5, 2), 3)


def designs(epsilon: float, largest_order: int) -> Iterator[Case]:
    """Yield the cases of clusters, PPS and systematic samples."""
    yield from _clusters(epsilon)
    yield presence(epsilon)
    yield from _pps(epsilon)
    yield from _systematic(epsilon, largest_order)


def _clusters(epsilon: float) -> Iterator[Case]:
    """Theorems 5.1 and 5.2 with the sizes of the smaller population, and what follows from them."""
    for sizes, drawn in (*EQUAL, *UNEQUAL):
        design = clusters.ClusterDesign(sizes, drawn)
        found = audit(*cluster_laws(sizes, drawn), epsilon).loss
        case = f"{drawn} of the sizes {' '.join(map(str, sizes))}"
        lower, upper = design.lower(epsilon, 0), design.upper(epsilon, 0)
        yield Case("T5.1", case, "lower", epsilon, lower, found)
        yield Case("T5.2", case, "upper", epsilon, upper, found)
        if len(set(sizes)) == 1:
            yield Case("Section 5.1 tight", case, "equal", epsilon, lower, found, upper)
        yield Case("Section 5.2", case, "upper", epsilon, epsilon, found)
        yield Case("Section 5 programme", case, "equal", epsilon, design.exact(epsilon, 0), found)
    large = clusters.ClusterDesign((400, 300, 300, 500), 1).exact(epsilon, 0)
    yield Case("Section 5.1 limit", "clusters of 300 to 500", "equal", epsilon, epsilon, large)
    for rate in (0.001, 0.01):
        inner = rates.amplified(rate, epsilon)
        yield Case("Section 5.2 Poisson", f"rate {rate}", "equal", epsilon, rate * epsilon, inner, inner)


def presence(epsilon: float) -> Case:
    """Return the case of Theorem 5.3 where a test of presence and the conditional loss both equal epsilon."""
    share, p = 0.5, 0.5
    inside, outside = p, p * math.exp(-epsilon)  # Pr[H = 0] on the first population with the cluster in, and out
    other = p * math.exp(-epsilon)  # the same with the cluster in on the second population
    truth = math.log((share * inside + (1 - share) * outside) / (share * other + (1 - share) * outside))
    printed = clusters.presence_bound(share, epsilon, epsilon, reverse=True)
    fixed = clusters.presence_bound(share, epsilon, epsilon)
    return Case("T5.3", "q 0.5, p 0.5, epsilon' the base epsilon", "lower", epsilon, printed, truth, fixed)


def _pps(epsilon: float) -> Iterator[Case]:
    """Proposition 6.1, the bounds of PPS, and one cluster drawn with a chance proportional to its size."""
    for sizes, m in (((1.0, 1.0, 2.0, 3.0), 2), ((1.0, 4.0, 5.0), 1)):
        frame, sampler, record = Frame(len(sizes), sizes=np.array(sizes)), PpsConditionalPoisson(m), len(sizes) - 1
        largest = float(sampler.inclusion_probabilities(frame)[record])
        law = sampler.law(frame).items()
        p = {(*state, 0): chance for state, chance in law}
        q = {(*state[:record], 0, state[record]): chance for state, chance in law}
        found = audit(p, q, epsilon, relation="both").loss
        weak, strong = unequal.pps_bounds(largest, epsilon)
        case = f"{m} of the sizes {' '.join(f'{size:g}' for size in sizes)}"
        signal = 1 / (1 + math.exp(-epsilon))
        chances = [[largest], [largest], [signal], [1 - signal], [1 - signal], [1 - signal]]
        general, first = unequal.inclusion_bound(*chances), unequal.inclusion_bound(*chances, weak=True)
        yield Case("P6.1", case, "lower", epsilon, first, found, general)
        yield Case("Section 6.1 weak", case, "lower", epsilon, weak, found, strong)
        yield Case("Section 6.1 strong", case, "lower", epsilon, strong, found)
    for counts in ((1, 9), (1, 3), (2, 2), (1, 2, 6), (40, 60)):
        found = audit(*cluster_laws(counts, 1, by_size=True), epsilon).loss
        case = f"clusters of {' '.join(map(str, counts))}"
        yield Case("Section 6.2 programme", case, "equal", epsilon, unequal.pps_cluster(counts, 0, epsilon), found)
        if counts[0] * epsilon > 3:
            yield Case("Section 6.2 no gain", case, "lower", epsilon, epsilon, found)
        yield Case("Section 6.2 limit", case, "upper", epsilon, unequal.pps_cluster_limit(counts, 0, epsilon), found)


def _systematic(epsilon: float, largest_order: int) -> Iterator[Case]:
    """A record inserted in the middle of a known order, and one replaced in place, k = 2."""
    for n in range(4, largest_order + 1, 4):
        before, after = inserted(n)
        as_clusters = clusters.loss(0.5, epsilon, n)
        low, high = unequal.systematic_insertion(n, 2, n // 2, epsilon)
        found = audit(before, after, epsilon).loss
        case = f"k 2, n {n}, inserted in the middle"
        yield Case("Section 6.3 known order", case, "upper", epsilon, as_clusters, found, high)
        yield Case("Section 6.3 insertion", case, "lower", epsilon, low, found)
        replaced = systematic_law([n, *range(1, n)], 2, n + 1)
        in_place = audit(before, replaced, epsilon, relation="both").loss
        yield Case("Section 6.3 in place", f"k 2, n {n}, replaced in place", "upper", epsilon, as_clusters, in_place)


def same_as_simple() -> Iterator[Case]:
    """Yield how far designs that are said to be simple random sampling are from it, in total variation."""
    frame, simple = Frame(4, sizes=np.ones(4)), Systematic(2, "random").law(Frame(4))
    for sampler in (PpsConditionalPoisson(2), PpsSystematic(2), PpsWithReplacement(2)):
        apart = _variation(sampler.law(frame), simple)
        yield Case("Section 6.1 equal sizes", sampler.label, "equal", 0.0, 0.0, apart, apart)
    apart = _variation(simple, dict.fromkeys(simple, 1 / 6))
    yield Case("Section 6.3 secret order", "k 2, n 4", "equal", 0.0, 0.0, apart, apart)


def _variation(one: Law, other: Law) -> float:
    return 0.5 * math.fsum(abs(one.get(state, 0.0) - other.get(state, 0.0)) for state in {**one, **other})

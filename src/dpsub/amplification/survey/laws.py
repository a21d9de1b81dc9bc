"""Laws of small samples for the auditor: counts of each type of record, and their probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from dpsub.amplification.survey.auditor import State

Law = dict[State, float]


def _holding(sizes: Mapping[int, float], n: int) -> Law:
    """Return the law of (holds x, other records) for samples of n records, one of them x."""
    return {
        (held, m - held): chance
        for m, p in sizes.items()
        for held, chance in ((1, p * m / n), (0, p * (1 - m / n)))
        if chance > 0
    }


def substituted(sizes: Mapping[int, float], n: int) -> tuple[Law, Law]:
    """Return the laws of (holds x, holds x', other records) for samples of n records, before and
    after x is replaced by x'."""
    law = _holding(sizes, n).items()
    before: Law = {(held, 0, rest): p for (held, rest), p in law}
    after: Law = {(0, held, rest): p for (held, rest), p in law}
    return before, after


def added(smaller: Mapping[int, float], larger: Mapping[int, float], n: int) -> tuple[Law, Law]:
    """Return the laws of (holds x, other records) for samples of n records, and of these and x."""
    return {(0, m): p for m, p in smaller.items() if p > 0}, _holding(larger, n + 1)


def cluster_laws(sizes: Sequence[int], drawn: int, *, by_size: bool = False) -> tuple[Law, Law]:
    """Return the laws of (members of each cluster, new member of the first one) without and with
    the new member.

    All sets of `drawn` clusters have the same probability. With `by_size` one cluster is drawn with
    a probability proportional to its number of records.
    """
    subsets = list(combinations(range(len(sizes)), drawn))
    laws: tuple[Law, Law] = ({}, {})
    for extra, law in enumerate(laws):
        for subset in subsets:
            members = [size if i in subset else 0 for i, size in enumerate(sizes)]
            state = (*members, extra if 0 in subset else 0)
            law[state] = sum(state) / (sum(sizes) + extra) if by_size else 1 / len(subsets)
    return laws


def systematic_law(order: Sequence[int], step: int, n_records: int) -> Law:
    """Return the law of every `step`-th record of `order` from a uniform start.

    States are counts of the records 0, ..., n_records - 1.
    """
    law: Law = {}
    for start in range(step):
        state = tuple(order[start::step].count(record) for record in range(n_records))
        law[state] = law.get(state, 0.0) + 1 / step
    return law


def inserted(n: int, place: int) -> tuple[Law, Law]:
    """Return the laws of every second of n records in a known order, without and with a record
    inserted at `place`."""
    before = systematic_law(list(range(n)), 2, n + 1)
    after = systematic_law([*range(place), n, *range(place, n)], 2, n + 1)
    return before, after

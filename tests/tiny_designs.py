"""Laws of samples from tiny populations by listing all samples, and a made-up frame: for bounds of survey designs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from dpsub.amplification.survey.advisor import FrameTable
from dpsub.amplification.survey.auditor import State
from dpsub.sampling.frame import Frame


def substituted(sizes: Mapping[int, float], n: int) -> tuple[dict[State, float], dict[State, float]]:
    """Return the laws of (holds x, holds x', other records) for samples of n records, of which x became x'."""
    with_x: dict[State, float] = {}
    with_other: dict[State, float] = {}
    for m, p in sizes.items():
        for held, chance in ((1, p * m / n), (0, p * (1 - m / n))):
            if chance > 0:
                with_x[held, 0, m - held] = with_x.get((held, 0, m - held), 0.0) + chance
                with_other[0, held, m - held] = with_other.get((0, held, m - held), 0.0) + chance
    return with_x, with_other


def added(
    smaller: Mapping[int, float], larger: Mapping[int, float], n: int
) -> tuple[dict[State, float], dict[State, float]]:
    """Return the laws of (holds x, other records) for samples of n records, and of these and x."""
    without: dict[State, float] = {(0, m): p for m, p in smaller.items() if p > 0}
    holding: dict[State, float] = {}
    for m, p in larger.items():
        for held, chance in ((1, p * m / (n + 1)), (0, p * (1 - m / (n + 1)))):
            if chance > 0:
                holding[held, m - held] = holding.get((held, m - held), 0.0) + chance
    return without, holding



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


def simulated_frame(rng: np.random.Generator, n: int, n_strata: int, n_clusters: int) -> FrameTable:
    """Return records with log-normal sizes, cut into strata of falling numbers by size, in clusters of unequal size."""
    sizes = np.sort(np.round(np.exp(rng.normal(3.0, 1.0, n)), 2))
    shares = np.cumsum(2.0 ** -np.arange(n_strata))
    limits = np.round(n * shares / shares[-1]).astype(int)
    labels = np.searchsorted(limits, np.arange(n), side="right")
    clusters = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters, size=n - n_clusters)])
    frame = Frame(n, strata=labels, clusters=clusters, sizes=sizes)
    return FrameTable(frame, sizes, tuple(f"class {i + 1}" for i in range(n_strata)), None)

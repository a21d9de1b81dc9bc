"""The rows of the table of bounds on a tiny universe: all samples, laws and neighbours, so that
bounds meet truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpsub.amplification.bounds import Bound, DeclaredProfile, theorem_14, translate
from dpsub.divergences.hockey_stick import positive_part, total_variation
from dpsub.papers.balle.universes import Dataset, KernelProfile, Space, sample_law
from dpsub.relations import Relation

# Data sets of 4 records and one outside them: large enough for distances of 3, small enough to
# enumerate.
UNIVERSE = 5
R, S = Relation.ADD_REMOVE, Relation.SUBSTITUTE
# Not in the paper: two bounds of ours for Poisson under substitution, next to Theorem 14.
TRIPLES, BY_SIZE = "Theorem 2 on triples", "Theorem 2 given the size"
# theorem -> sampler, base relation, target relation
ROWS = {
    "Theorem 8": ("poisson", R, R),
    "Theorem 9": ("wor", S, S),
    "Theorem 10": ("wr", S, S),
    "Theorem 11": ("wr", S, R),
    "Theorem 14": ("poisson", S, S),
    TRIPLES: ("poisson", R, S),
    BY_SIZE: ("poisson", S, S),
}


def bound_of(theorem: str, *, n: int, size: float) -> Bound:
    """Return the typed bound of a row at size n, with the rate or m as `size`."""
    # A printed statement is judged as printed, also where a smaller bound exists.
    if theorem == "Theorem 14":  # the translator names a better one
        return theorem_14(size, n)
    sizes: dict[str, Any] = {"rate": size} if ROWS[theorem][0] == "poisson" else {"m": round(size)}
    return translate(*ROWS[theorem], n=n, **sizes)


@dataclass(frozen=True)
class BoundRow:
    """One theorem at one size, with all samples, all pairs of neighbours and their laws."""

    theorem: str  # a key of `ROWS`
    n: int  # size of the data set; for Theorem 8 of the larger one
    size: float  # rate of Poisson sampling, else m
    grow: bool = False  # for Theorem 11: compare with data sets of n + 1 records instead of n - 1

    @cached_property
    def bound(self) -> Bound:
        """The typed bound."""
        return bound_of(self.theorem, n=self.n, size=self.size)

    @cached_property
    def space(self) -> Space:
        """All samples."""
        sampler, base, _ = ROWS[self.theorem]
        if sampler == "wr":
            return Space.multisets(UNIVERSE, int(self.size), base)
        # Under substitution a Poisson sample still has a random size, and the base profile holds
        # within each size.
        sizes = range(self.n + 1) if sampler == "poisson" else [int(self.size)]
        return Space.sets(UNIVERSE, sizes, base)

    @cached_property
    def pairs(self) -> tuple[tuple[Dataset, Dataset], ...]:
        """All pairs (x, x') of neighbouring data sets; under add_remove x is the larger one."""
        # Removal is the worse direction in Theorem 8: the larger data set comes first.
        if ROWS[self.theorem][2] is R:
            larger = Space.sets(UNIVERSE, [self.n + self.grow], R).samples
            return tuple(
                (x, (*x[:u], 0, *x[u + 1 :])) for x in larger for u in range(UNIVERSE) if x[u]
            )
        near = Space.sets(UNIVERSE, [self.n], S)
        pairs = zip(*np.nonzero(near.distances == 1), strict=True)
        return tuple((near.samples[i], near.samples[j]) for i, j in pairs)

    @cached_property
    def laws(self) -> tuple[np.ndarray, np.ndarray]:
        """Laws of the samples of x and of x', each of shape (pairs, samples)."""
        sampler = ROWS[self.theorem][0]
        drawn = {data for pair in self.pairs for data in pair}
        known = {data: self.space.law(sample_law(sampler, data, self.size)) for data in drawn}
        first, second = (np.array([known[pair[side]] for pair in self.pairs]) for side in (0, 1))
        return first, second

    def distances_in_law(self) -> np.ndarray:
        """Return the total variation distance of the samples of each pair."""
        return total_variation(*self.laws)


class UniverseComparison(NamedTuple):
    """A bound next to the truth at one base epsilon and its epsilon'."""

    epsilon: float
    epsilon_amplified: float
    bound: float  # the theorem's delta' for the exact profile of the kernel
    # largest divergence of x from x' over all pairs; under add_remove x is the larger data set
    exact: float
    reverse: float  # largest divergence of x' from x
    base_delta: float  # delta(epsilon) of the kernel


def compare(
    row: BoundRow, kernel: np.ndarray, epsilons: Sequence[float]
) -> list[UniverseComparison]:
    """Return the bound of `row` and the exact divergences for a kernel, one per base epsilon."""
    # The theorem gets the kernel's exact profile, so that a bound exceeded refutes the theorem and
    # no estimate of its input.
    profile = KernelProfile(kernel, row.space.distances)
    declared = DeclaredProfile.of(profile, row.space.relation)
    first, second = (laws @ profile.kernel for laws in row.laws)
    comparisons = []
    for epsilon in epsilons:
        # The paper's bounds hold at epsilon', and take the profile at the base epsilon.
        target = float(row.bound.epsilon_amplified(epsilon))
        alpha = np.exp(target)
        exact, reverse = (
            positive_part(first, second, alpha).max(),
            positive_part(second, first, alpha).max(),
        )
        bound, base_delta = (
            float(row.bound.delta(declared, target)),
            float(profile.deltas(epsilon)[1]),
        )
        comparisons.append(
            UniverseComparison(epsilon, target, bound, float(exact), float(reverse), base_delta)
        )
    return comparisons

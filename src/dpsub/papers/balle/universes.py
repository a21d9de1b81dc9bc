"""Tiny universes in full: all samples as counts of records, their laws and distances, and exact
profiles.

A mechanism on a tiny space is a matrix, shape (samples, outcomes); its exact profile compares all
pairs of samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.divergences.hockey_stick import law_array, positive_part
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise import REGISTRY, MembershipProfile
from dpsub.noise.base import Profile
from dpsub.relations import Relation

Dataset = tuple[int, ...]
"""Number of occurrences of each record of the universe; the length is the size of the universe."""


def sample_law(sampler: str, data: Dataset, size: float) -> dict[Dataset, float]:
    """Return the exact law of the sample of a set (counts 0 and 1), by enumeration.
    `size` is the rate of the `sampler` "poisson", the number of records drawn of "wor" and "wr".
    """
    if any(count not in (0, 1) for count in data):
        raise ArgumentError(
            f"data must be a set, got counts {data}; samples may be multisets, data sets not"
        )
    records = [record for record, count in enumerate(data) if count]
    n = len(records)
    if checks.one_of("sampler", sampler, ("poisson", "wor", "wr")) == "poisson":
        rate = checks.real("rate", size, at_least=0, at_most=1)
        sizes = range(n + 1)
        drawn = [
            (c, rate**k * (1 - rate) ** (n - k))
            for k in sizes
            for c in itertools.combinations(records, k)
        ]
    elif sampler == "wor":
        m = checks.integer("m", size, at_least=1, at_most=n, at_most_name="n")
        drawn = [(chosen, 1 / math.comb(n, m)) for chosen in itertools.combinations(records, m)]
    else:
        m = checks.integer("m", size, at_least=1)
        checks.integer("n", n, at_least=1)
        # All n^m draws in order, merged to multisets below: the printed multinomial law is wrong
        # (erratum BL2).
        drawn = [(chosen, n ** -float(m)) for chosen in itertools.product(records, repeat=m)]
    law: dict[Dataset, float] = {}
    for chosen, probability in drawn:
        sample = tuple(chosen.count(record) for record in range(len(data)))
        law[sample] = law.get(sample, 0.0) + probability
    return law


def multinomial(data: Dataset, sample: Dataset, *, printed: bool = False) -> float:
    """Return m! / n^m prod over the universe of x_u^y_u / y_u!, the law of a sample drawn with
    replacement.

    As `printed` the factor is x_u / y_u!, which is 0 for every record outside the data (balle,
    Section 4).
    """
    m = sum(sample)
    factors = [
        float(count if printed else count**drawn) for count, drawn in zip(data, sample, strict=True)
    ]
    return float(
        math.factorial(m)
        / sum(data) ** m
        * math.prod(factors)
        / math.prod(map(math.factorial, sample))
    )


@dataclass(frozen=True)
class Space:
    """All samples that can occur, and the relation of those that are neighbours."""

    samples: tuple[Dataset, ...]
    relation: Relation

    @classmethod
    def sets(cls, universe: int, sizes: Sequence[int], relation: Relation) -> Space:
        """Return all sets of records with these sizes."""
        return cls(
            tuple(x for x in itertools.product((0, 1), repeat=universe) if sum(x) in sizes),
            relation,
        )

    @classmethod
    def multisets(cls, universe: int, size: int, relation: Relation) -> Space:
        """Return all multisets of records of this size."""
        chosen = itertools.combinations_with_replacement(range(universe), size)
        return cls(
            tuple(tuple(drawn.count(record) for record in range(universe)) for drawn in chosen),
            relation,
        )

    @cached_property
    def distances(self) -> np.ndarray:
        """Path distances, shape (samples, samples): |y| + |y'| - 2 |y and y'| for add_remove; for
        substitute |y| - |y and y'| at equal sizes and infinite at others."""
        counts = np.array(self.samples)
        # The largest common multiset of both samples.
        shared = np.minimum(counts[:, np.newaxis], counts[np.newaxis]).sum(axis=2)
        sizes = counts.sum(axis=1)
        if self.relation is Relation.ADD_REMOVE:
            return (sizes[:, np.newaxis] + sizes - 2 * shared).astype(float)
        # Substitution keeps the size: no path joins samples of different sizes.
        return np.where(sizes[:, np.newaxis] == sizes, sizes[:, np.newaxis] - shared, np.inf)

    def law(self, law: Mapping[Dataset, float]) -> np.ndarray:
        """Return a law of these samples as an array."""
        return np.array([law.get(sample, 0.0) for sample in self.samples])

    def neighbours(self) -> list[tuple[int, int]]:
        """Return the pairs of positions at distance 1, each once."""
        # The relation is symmetric; who looks at both directions does so by the laws.
        rows, columns = np.nonzero(np.triu(self.distances == 1))
        return list(zip(rows.tolist(), columns.tolist(), strict=True))


# Any edges are right, since binning is post-processing; finer ones only come closer to the
# divergence of the noise itself.
EDGES = np.linspace(-8.0, 12.0, 2001)  # of the bins of a noisy sum


def dirichlet_kernel(space: Space, outcomes: int, rng: np.random.Generator) -> np.ndarray:
    """Return a mechanism whose outcome laws are independent and uniform over the simplex, shape
    (samples, outcomes)."""
    return rng.dirichlet(np.ones(outcomes), size=len(space.samples))


def membership_kernel(space: Space, record: int, keep_probability: float) -> np.ndarray:
    """Return randomised response on whether `record` is in the sample, outcome 0 if so (balle,
    Section 5)."""
    inside = np.array([sample[record] > 0 for sample in space.samples])
    first = np.where(inside, keep_probability, 1 - keep_probability)
    return np.column_stack([first, 1 - first])


# A mechanism that is private for samples of one size only: it tells bounds whose base relation is
# substitute from those that need add_remove.
def size_and_membership_kernel(space: Space, record: int, keep_probability: float) -> np.ndarray:
    """Return the size of the sample with randomised membership of `record`: private under
    substitution only."""
    answer = membership_kernel(space, record, keep_probability)
    sizes = np.array(space.samples).sum(axis=1)
    kernel = np.zeros((len(sizes), sizes.max() + 1, 2))
    kernel[np.arange(len(sizes)), sizes] = answer
    return kernel.reshape(len(sizes), -1)


def noisy_sum_kernel(
    space: Space, mechanism: str, values: Sequence[float], scale: float
) -> np.ndarray:
    """Return the bin masses of a sum of the records' `values` with noise of the kind `mechanism`,
    exactly.

    Binning is post-processing, so its divergences are lower bounds.
    """
    sums = np.array(space.samples) @ np.asarray(values, dtype=float)
    below = REGISTRY.get(mechanism)(scale).cdf(EDGES - sums[:, np.newaxis])
    # The tails beyond the edges are outcomes too, so that every row sums to 1.
    ends = np.zeros((len(sums), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


class KernelProfile(Profile):
    """Exact group profiles of a mechanism on a tiny space: the largest divergence of all pairs
    within a distance. `kernel`, shape (samples, outcomes), holds the outcome's law for each sample;
    `distances`, shape (samples, samples), are symmetric path distances, infinite for pairs that no
    path joins.
    """

    def __init__(self, kernel: ArrayLike, distances: ArrayLike) -> None:
        self.kernel = law_array("kernel", kernel)
        self.distances = np.asarray(distances, dtype=float)
        if self.distances.shape != (len(self.kernel), len(self.kernel)):
            raise ArgumentError(
                f"distances must be a square matrix over {len(self.kernel)} samples, got shape "
                f"{self.distances.shape}"
            )
        # samples with one law (sums that agree) are compared once
        seen: dict[bytes, int] = {}
        self._law_of = [seen.setdefault(law.tobytes(), len(seen)) for law in self.kernel]
        self._laws = np.array(
            [self.kernel[self._law_of.index(number)] for number in range(len(seen))]
        )
        self._known: dict[float, np.ndarray] = {}

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        # Theorem 10 asks for delta_k at many k and one epsilon: each epsilon is compared once, for
        # all k.
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=int)
        )
        by_distance = [self.deltas(float(value)) for value in order.ravel()]
        # No two samples are further apart than the last distance that is known.
        deltas = [
            known[min(int(steps), len(known) - 1)]
            for known, steps in zip(by_distance, distance.ravel(), strict=True)
        ]
        with np.errstate(divide="ignore"):
            return np.log(np.array(deltas)).reshape(order.shape)[()]

    def _root(self, delta: float) -> float:
        if delta > 0:
            return super()._root(delta)
        # the largest log ratio of neighbours, in place of a bisection over all pairs
        rows, columns = np.nonzero(self.distances == 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.log(self.kernel[rows]) - np.log(self.kernel[columns])
        return float(np.max(losses, where=self.kernel[rows] > 0, initial=0.0))

    def deltas(self, epsilon: float) -> np.ndarray:
        """Return delta_k(epsilon), any real epsilon, for k = 0, 1, ..., the largest finite
        distance.

        Beyond 700 nats, where exp(epsilon) overflows, it is the value at 700: an upper bound.
        """
        if epsilon not in self._known:
            growth = np.exp(min(epsilon, 700.0))
            # Both orders of each pair are entries of this matrix, so the profile covers both
            # directions.
            apart = np.array([positive_part(law, self._laws, growth) for law in self._laws])
            pairs = apart[np.ix_(self._law_of, self._law_of)]
            largest = int(self.distances[np.isfinite(self.distances)].max())
            by_distance = [pairs[self.distances == k].max(initial=0.0) for k in range(largest + 1)]
            # delta_k is a supremum over distances of at most k, hence non-decreasing in k.
            self._known[epsilon] = np.maximum.accumulate(by_distance)
        return self._known[epsilon]


Design = Mapping[Dataset, Mapping[Dataset, float]]
"""Law of the sample for each data set."""


@dataclass(frozen=True)
class MembershipLoss:
    """Exact loss of randomised membership of one record under a sampler, next to the lemma's
    value."""

    eta: float  # largest total variation distance between samples of neighbours
    # largest probability of the record in the sample of a data set that holds it, a neighbour not
    inclusion: float
    natural: bool  # whether every record of a data set can be in its sample, and no other one can
    exact: float  # profile of the subsampled mechanism at epsilon'
    claimed: float  # eta psi_p(epsilon)

    def lower_bound(self) -> float:
        """Return the lemma's value, a lower bound on what any analysis of the sampler alone can
        promise.

        UnsupportedError unless the corrected lemma covers the design: natural, and its inclusion
        probability is eta.
        """
        if not self.natural:
            raise UnsupportedError(
                "the lower bound by membership needs a natural sampler, got one that leaves out a "
                "record for good or adds one; check its law"
            )
        # Without it the lemma claims more than the mechanism loses (erratum BL5): a false lower
        # bound.
        if abs(self.inclusion - self.eta) > 1e-12:
            raise UnsupportedError(
                "the lower bound by membership needs an inclusion probability of eta = "
                f"{self.eta:g}, got {self.inclusion:g}; the printed lemma omits this and is false"
            )
        return self.claimed


def membership_loss(
    design: Design,
    pairs: Sequence[tuple[Dataset, Dataset]],
    record: int,
    keep_probability: float,
    epsilon: float,
) -> MembershipLoss:
    """Return the exact loss of randomised membership of `record` over neighbouring data sets, with
    the lemma's value.

    Both orders of the pairs are looked at. p = `keep_probability` >= 1/2 (otherwise report the
    flipped bit, which has 1 - p); `epsilon` is the base one. balle, Lemma 12, with the hypothesis
    that it omits.
    """
    # For p < 1/2 the loss is that of 1 - p (erratum BL4).
    p = checks.real("keep_probability", keep_probability, at_least=0.5, at_most=1)
    order = checks.real("epsilon", epsilon, at_least=0)
    shares = {
        data: sum(q for sample, q in law.items() if sample[record]) for data, law in design.items()
    }
    both = [*pairs, *((other, x) for x, other in pairs)]
    # Total variation distance is symmetric: each pair counts once.
    eta = 0.0
    for x, other in pairs:
        away = design[other]
        eta = max(
            eta, sum(max(0.0, p_x - away.get(sample, 0.0)) for sample, p_x in design[x].items())
        )
    # The hypothesis that the printed lemma omits: some data set holds the record, its neighbour
    # does not, and the sampler includes it with probability eta.
    holders = [data for data, other in both if data[record] and not other[record]]
    inclusion = max((shares[data] for data in holders), default=0.0)
    # e^epsilon' for the epsilon' of the amplification map.
    alpha = 1 + eta * np.expm1(order)
    # The mechanism has two outcomes: the divergence is a sum of two positive parts.
    exact = 0.0
    for x, other in both:
        yes, other_yes = ((1 - p) + (2 * p - 1) * shares[data] for data in (x, other))
        divergence_of_yes = max(0.0, yes - alpha * other_yes)
        divergence_of_no = max(0.0, (1 - yes) - alpha * (1 - other_yes))
        exact = max(exact, divergence_of_yes + divergence_of_no)
    natural = all(_natural(data, law) for data, law in design.items())
    return MembershipLoss(
        eta, inclusion, natural, exact, eta * float(MembershipProfile(p).delta(order))
    )


def _natural(data: Dataset, law: Mapping[Dataset, float]) -> bool:
    """Whether every record of the data can be in the sample, and no other one."""
    drawn = (
        np.array([sample for sample, probability in law.items() if probability > 0]).sum(axis=0) > 0
    )
    return bool((drawn == (np.array(data) > 0)).all())

"""Divergences, couplings and sampling laws (Balle et al., Sections 2 to 5), each identity computed twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from dpsub.amplification.small_universes import BoundRow
from dpsub.divergences import (
    advanced_joint_convexity,
    cheapest_coupling,
    compatible_sum,
    hockey_stick,
    maximal_coupling,
)
from dpsub.divergences.universes import (
    Dataset,
    Design,
    KernelProfile,
    dirichlet_kernel,
    membership_loss,
    multinomial,
    sample_law,
)
from dpsub.papers.balle.experiments.identity_checks import IdentityChecks, Pair
from dpsub.papers.balle.settings import Examples, KeepProbability, Tiny
from dpsub.reproduce.settings import Epsilons, ExperimentSettings

EPSILON = 0.5
COUNTEREXAMPLE = 0.99  # probability with which the sampler of the counterexample ignores the record


class BalleCouplings(IdentityChecks):
    """Identities of the divergence, maximal and compatible couplings, laws of samples, the lower bound by membership.

    Variants: `stated` takes the printed divisor of the maximal coupling, multinomial law, description of omega_1 and
    hypothesis of Lemma 12; `consistent` the corrected ones.
    """

    name: ClassVar[str] = "balle_couplings"

    class Settings(ExperimentSettings, Tiny):
        examples: Examples = 100
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probability: KeepProbability = 0.75

    def pairs(self, settings: Settings, variant: str, rng: np.random.Generator) -> Iterator[Pair]:
        yield from _divergences(settings.examples, rng)
        yield from _convexity(settings.examples, rng)
        yield from _coupled(settings.examples, variant, rng)
        yield from _transport(settings, rng)
        yield from _sampling_laws(settings, variant)
        yield from _lower_bound(settings, variant)


def _divergences(examples: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Definition by events, and the properties of the divergence as numbers that must not be positive."""
    events = np.array(list(itertools.product((0, 1), repeat=4)))
    for number in range(examples):
        laws = rng.dirichlet(np.ones(4), size=4)
        alpha, beta = np.sort(1 + 3 * rng.random(2))
        gaps = events @ laws[0] - alpha * (events @ laws[1])
        first, larger = (float(hockey_stick(laws[0], laws[1], order)) for order in (alpha, beta))
        yield "events", f"example={number}", first, float(gaps.max())
        yield "range", f"example={number}", max(-first, first - 1), 0.0
        yield "monotone", f"example={number}", larger, first
        weight = rng.random()
        mixtures = [weight * laws[side] + (1 - weight) * laws[side + 2] for side in (0, 1)]
        mixed = hockey_stick(mixtures[0], mixtures[1], alpha)
        apart = weight * first + (1 - weight) * float(hockey_stick(laws[2], laws[3], alpha))
        yield "convex", f"example={number}", float(mixed), apart


def _convexity(examples: int, rng: np.random.Generator) -> Iterator[Pair]:
    for number in range(examples):
        shared, first, second = rng.dirichlet(np.ones(5), size=3)
        sides = advanced_joint_convexity(shared, first, second, rng.random(), 1 + 3 * rng.random())
        yield "joint_convexity", f"example={number}", sides.mixed, sides.identity
        yield "joint_convexity_bound", f"example={number}", sides.mixed, sides.bound


def _coupled(examples: int, variant: str, rng: np.random.Generator) -> Iterator[Pair]:
    """Total mass of pi_1, and whether the coupling has the right marginals."""
    for number in range(examples):
        first, second = rng.dirichlet(np.ones(4), size=2)
        parts = maximal_coupling(first, second)
        scale = parts.eta if variant == "stated" else 1.0  # the printed divisor eta in place of eta^2
        moved = scale * np.outer(parts.first, parts.second)
        joint = (1 - parts.eta) * np.diag(parts.shared) + parts.eta * moved
        yield "coupling_mass", f"example={number}", float(moved.sum()), 1.0
        wrong = max(np.abs(joint.sum(axis=1) - first).max(), np.abs(joint.sum(axis=0) - second).max())
        yield "coupling_marginals", f"example={number}", float(wrong), 0.0


def _transport(settings: BalleCouplings.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    """Cheapest couplings of the parts that the maximal coupling leaves, and where no compatible one exists."""
    for theorem, n, size in rows_of(settings):
        row = BoundRow(theorem, n, size)
        space, (first, second) = row.space, (laws[0] for laws in row.laws)
        parts = maximal_coupling(first, second)
        kernel = KernelProfile(dirichlet_kernel(space, 3, rng), space.distances)
        deltas = kernel.deltas(EPSILON)
        targets = {"second": parts.second, "shared": parts.shared}
        if not parts.shared.any():  # m = n without replacement: nothing is shared
            del targets["shared"]
        for name, target in targets.items():
            rows, columns = np.flatnonzero(parts.first), np.flatnonzero(target)
            distances = space.distances[np.ix_(rows, columns)]
            near = np.isfinite(distances)
            costs = np.where(near, deltas[np.where(near, distances, 0).astype(int)], np.inf)
            compatible = np.where(distances == distances.min(axis=1, keepdims=True), 0.0, np.inf)
            case = f"{theorem} n={n} size={size:g} {name}"
            exists = cheapest_coupling(parts.first[rows], target[columns], np.where(near, compatible, np.inf))
            if theorem == "Theorem 14" and name == "shared":
                yield "compatible_coupling", case, float(exists is not None), 0.0
                continue
            yield "compatible_elsewhere", case, float(exists is not None), 1.0
            found = cheapest_coupling(parts.first[rows], target[columns], costs)
            cost = math.inf if found is None else found[0]
            yield "transport", case, cost, compatible_sum(parts.first[rows], distances, deltas)


def rows_of(settings: BalleCouplings.Settings) -> Iterator[tuple[str, int, float]]:
    """Yield theorem, n and size for all configured sizes at which the theorem speaks."""
    for n in settings.n:
        for rate in settings.rates:
            yield "Theorem 8", n, float(rate)
            yield "Theorem 14", n, float(rate)
        for m in settings.m:
            if m <= n:
                yield "Theorem 9", n, float(m)
            yield "Theorem 10", n, float(m)
            yield "Theorem 11", n, float(m)


def _sampling_laws(settings: BalleCouplings.Settings, variant: str) -> Iterator[Pair]:
    for n in settings.n:
        data = (1,) * n + (0,)
        for m in settings.m:
            law = sample_law("wr", data, m)
            for sample, probability in law.items():
                formula = multinomial(data, sample, printed=variant == "stated")
                yield "multinomial", f"n={n} m={m} {sample}", formula, probability
    for n, m in ((4, 3), (4, 2), (3, 3)):
        described = _copies(n, m, described=variant == "stated")
        exact = _copies(n, m, described=False)
        for copies, (left, right) in enumerate(zip(described, exact, strict=True), start=1):
            yield "copies", f"n={n} m={m} copies={copies}", left, right


def _copies(n: int, m: int, *, described: bool) -> list[float]:
    """Law of the copies of a record in a sample that holds it, by enumeration of all draws.

    As described in print it is one more than in a sample of m - 1 draws; exactly, it is the law given one copy or more.
    """
    data = (1,) * n
    law = sample_law("wr", data, m - 1 if described else m)
    counts = np.zeros(m + 1)
    for sample, probability in law.items():
        counts[sample[0] + described] += probability
    kept = counts[1:]
    return [float(share) for share in kept / kept.sum()]


def _lower_bound(settings: BalleCouplings.Settings, variant: str) -> Iterator[Pair]:
    """Membership under the samplers of the table; as stated also under a natural sampler that the lemma covers."""
    p = settings.keep_probability
    for theorem, n, size in rows_of(settings):
        row = BoundRow(theorem, n, size)
        sampler = row.bound.sampler
        if theorem == "Theorem 14":
            continue  # its pairs are those of Theorem 8 under another relation, and no tightness is claimed
        design = {data: sample_law(sampler, data, size) for data in dict.fromkeys(itertools.chain(*row.pairs))}
        for epsilon in settings.epsilons:
            loss = membership_loss(design, row.pairs, 0, p, epsilon)
            yield "membership", f"{theorem} n={n} size={size:g} epsilon={epsilon:g}", loss.exact, loss.lower_bound()
    if variant == "stated":
        x: Dataset = (1, 1, 0)
        other: Dataset = (1, 0, 1)
        one, two, three = (1, 0, 0), (0, 1, 0), (0, 0, 1)
        skewed: Design = {x: {one: 0.5, two: 0.5}, other: {three: COUNTEREXAMPLE, one: 1 - COUNTEREXAMPLE}}
        loss = membership_loss(skewed, [(x, other)], 1, 0.75, 0.2)
        yield "membership", "natural sampler of inclusion 0.5, eta 0.99, p=0.75 epsilon=0.2", loss.exact, loss.claimed


"""Pairs of numbers that the paper says are equal, or ordered, each computed twice (Balle et al.,
Sections 2 to 5)."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pydantic import Field

from dpsub import divergences, noise
from dpsub.amplification import DeclaredProfile, amplified_epsilon, translate
from dpsub.divergences import hockey_stick, maximal_coupling
from dpsub.noise import (
    AdditiveNoiseProfile,
    BlackBoxGroups,
    MembershipProfile,
    Profile,
    RandomisedResponseProfile,
)
from dpsub.papers.balle import universes
from dpsub.papers.balle.experiments.bounds import rows_of
from dpsub.papers.balle.settings import Examples, KeepProbability, Tiny, schema
from dpsub.papers.balle.universes import KernelProfile, sample_law
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import Epsilons, ExperimentSettings, Listed, Positive, Probability

NAMES = ("laplace", "gaussian")
# ratios of the Laplace and the Gaussian pair of which neither profile lies above the other
# The example of erratum BL6: no pair attains the larger profile at every epsilon.
PAIR = (1.0, 0.62)
WHITE_RATIOS = np.geomspace(0.01, 10, 25)
WHITE_EPSILONS = np.linspace(0, 10, 41)
DISTANCES = (2, 3, 5, 10)
GAUSSIAN_END = 14.0  # standard deviations of the loss beyond its mean
COUPLED = 0.5  # epsilon at which couplings are compared
COUNTEREXAMPLE = 0.99  # probability with which the sampler of the counterexample ignores the record

Known = AdditiveNoiseProfile | RandomisedResponseProfile
Pair = tuple[str, str, Any, Any]
"""Name of the check, its case, what the paper's formula gives, and what another computation
gives."""


class IdentityChecks(Grid):
    """One record for each case of a check: `computed` by the paper's formula in this variant,
    `reference` by another one."""

    stage = "account"
    columns = schema("check case computed reference")
    variants = ("stated", "consistent")

    @abstractmethod
    def pairs(self, settings: Any, stated: bool, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the cases; `rng` makes the random ones, the same in all variants."""

    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        for check, case, computed, reference in self.pairs(
            settings, run.variant == "stated", run.streams.data({}, 0)
        ):
            yield {
                "check": check,
                "case": case,
                "computed": float(computed),
                "reference": float(reference),
            }


class BalleProfiles(IdentityChecks):
    """Closed profiles against quadrature, moments against profiles, groups, randomised response,
    and small rates.

    Variants: `stated` takes the printed formula of randomised response at every p and reads "in
    particular" of Theorem 6 as an equality for any two pairs; `consistent` takes max(p, 1 - p), and
    pairs with a dominating member.
    """

    name = "balle_profiles"

    class Settings(ExperimentSettings):
        ratios: Listed[Positive] = Field((0.25, 1, 2), description="Sensitivity over noise scale.")
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probabilities: Listed[Probability] = Field(
            (0, 0.2, 0.5, 0.75, 0.9, 1),
            description="Probabilities of an unflipped answer in randomised response.",
        )
        moments: Listed[Positive] = Field(
            (0.5, 1, 3), description="Orders s of the moments of the loss."
        )
        examples: Examples = 20

        def check(self) -> None:
            for ratio in self.ratios:
                noise.of("laplace", ratio)

    def pairs(self, settings: Settings, stated: bool, rng: np.random.Generator) -> Iterator[Pair]:
        yield from _closed_forms(settings)
        yield from _losses(settings, rng)
        yield from _moments(settings)
        yield from _largest_moment(stated)
        yield from _groups(settings, rng)
        yield from _responses(settings, stated)
        yield from _rates(settings)


def integrated_divergence(name: str, ratio: float, epsilon: float) -> float:
    """Return the hockey-stick divergence of noise shifted by `ratio` scales, by quadrature of its
    density."""
    # here, as loading it takes longer than most jobs
    from scipy.integrate import quad

    density = noise.REGISTRY.get(name)(1.0).log_density

    def gain(z: float) -> float:
        first = float(density(z - ratio))
        gap = epsilon + float(density(z)) - first
        return math.exp(first) * -math.expm1(gap) if gap < 0 else 0.0

    # one crossing, as the loss does not decrease: where it passes epsilon
    crossing = epsilon / ratio + ratio / 2 if name == "gaussian" else (epsilon + ratio) / 2
    edges = sorted({-40.0, 0.0, ratio, crossing, ratio + 40.0})
    return math.fsum(
        quad(gain, a, b, epsabs=1e-14, epsrel=1e-11, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )


def _closed_forms(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    for name, ratio, epsilon in itertools.product(NAMES, settings.ratios, settings.epsilons):
        case, integral = (
            (f"ratio={ratio:g} epsilon={epsilon:g}"),
            integrated_divergence(name, ratio, epsilon),
        )
        yield f"{name}_profile", case, noise.of(name, ratio).delta(epsilon), integral
    for ratio in settings.ratios:
        laplace, gaussian = (noise.of(name, ratio) for name in NAMES)
        # Theorem 3: delta is 0 from theta on, at the end itself and beyond it.
        for factor in (1.0, 1.5, 10.0):
            yield (
                "laplace_zero",
                (f"ratio={ratio:g} factor={factor:g}"),
                laplace.delta(factor * ratio),
                0.0,
            )
        # The classical bound is stated for epsilon in (0, 1).
        for epsilon in np.linspace(0.02, 0.98, 49):
            bound = min(1.0, 1.25 * math.exp(-((epsilon / ratio) ** 2) / 2))
            yield (
                "gaussian_classical",
                (f"ratio={ratio:g} epsilon={epsilon:.2f}"),
                gaussian.delta(epsilon),
                bound,
            )


def _losses(settings: BalleProfiles.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    for number in range(settings.examples):
        first, second = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        # Theorem 5 has a term for infinite losses.
        if number % 5 == 0:  # an outcome that only the first law has
            second = np.append(second[:-1], 0.0) / second[:-1].sum()
        for epsilon in settings.epsilons:
            exact = hockey_stick(first, second, math.exp(epsilon))
            by_losses = divergences.profile_from_losses(first, second, epsilon)
            yield "losses", f"example={number} epsilon={epsilon:g}", by_losses, exact


def moment(
    log_delta: Callable[[Any], np.ndarray], order: float, profile: Known
) -> tuple[float, float]:
    """Return a moment of the loss of a symmetric pair, integrated to where `profile`, its largest,
    ends or falls."""
    # Bounded losses end: the integral of Theorem 6 ends with them. The Gaussian one needs a bound
    # of its tail.
    end, rate = float(profile.epsilon(0.0)), math.inf
    if isinstance(profile, noise.GaussianProfile):
        end = profile.ratio**2 / 2 + (GAUSSIAN_END + 6 * profile.ratio) * profile.ratio
        rate = divergences.tail_rate(profile.log_delta, end)
    moment = divergences.moment_from_profiles(log_delta, log_delta, order, end=end, rate=rate)
    return moment.lower, moment.upper


def _moments(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    known: list[Known] = [
        *(noise.of(name, ratio) for name in NAMES for ratio in settings.ratios),
        *(RandomisedResponseProfile(p) for p in settings.keep_probabilities if 0.5 < p < 1),
    ]
    for profile, s in itertools.product(known, settings.moments):
        (low, high), exact = moment(profile.log_delta, s, profile), math.exp(profile.log_moment(s))
        case = f"{profile} s={s:g}"
        yield "moment", case, (low + high) / 2, exact
        yield "moment_outside", case, max(low - exact, exact - high, 0.0), 0.0


def _largest_moment(stated: bool) -> Iterator[Pair]:
    # the consistent second pair dominates the first at every epsilon
    pair = [noise.of("laplace", PAIR[0]), noise.of("gaussian", PAIR[1] * (1 if stated else 4))]
    low, high = moment(
        lambda epsilon: np.max([profile.log_delta(epsilon) for profile in pair], axis=0),
        1.0,
        pair[1],
    )
    moments = max(math.exp(profile.log_moment(1.0)) for profile in pair)
    yield "largest_moment", "s=1", (low + high) / 2, moments
    yield "largest_moment_bound", "s=1", moments, high


def _groups(settings: BalleProfiles.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    # Four samples on a line: distances up to 3, where group privacy counts.
    chain = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    for number in range(settings.examples):
        kernel = KernelProfile(rng.dirichlet(np.ones(3), size=4), chain)
        for k, epsilon in itertools.product((2, 3), settings.epsilons):
            bound = np.exp(BlackBoxGroups(kernel).log_bound(epsilon, k))
            case = f"example={number} k={k} epsilon={epsilon:g}"
            yield "black_box", case, np.exp(kernel.group_log_delta(epsilon, k)), bound
    for name, ratio, k in itertools.product(NAMES, WHITE_RATIOS, DISTANCES):
        profile: Profile = noise.of(name, float(ratio))
        white = np.exp(profile.group_log_delta(WHITE_EPSILONS, k))
        black = np.exp(BlackBoxGroups(profile).log_bound(WHITE_EPSILONS, k))
        worst = int(np.argmax(white - black))
        case = f"{name} ratio={ratio:.4g} k={k} epsilon={WHITE_EPSILONS[worst]:g}"
        yield "white_box", case, white[worst], black[worst]


def _responses(settings: BalleProfiles.Settings, stated: bool) -> Iterator[Pair]:
    def exact(p: float, epsilon: float) -> np.ndarray:
        return hockey_stick([p, 1 - p], [1 - p, p], math.exp(epsilon))

    for epsilon in settings.epsilons:
        for delta in (0.0, 1e-6, 0.01, 0.3):
            p = RandomisedResponseProfile.with_guarantee(epsilon, delta).keep_probability
            yield (
                "response_guarantee",
                (f"epsilon={epsilon:g} delta={delta:g}"),
                exact(p, epsilon),
                delta,
            )
        for p in settings.keep_probabilities:
            # The printed formula at every p (erratum BL4).
            larger = p if stated else max(p, 1 - p)
            formula = max(0.0, larger - math.exp(epsilon) * (1 - larger))
            yield "response_profile", f"p={p:g} epsilon={epsilon:g}", formula, exact(p, epsilon)


def _rates(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    for eta in (1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0):
        for epsilon in (*settings.epsilons, 5.0):
            amplified = float(amplified_epsilon(epsilon, eta))
            yield (
                "map",
                (f"eta={eta:g} epsilon={epsilon:g}"),
                math.exp(amplified),
                1 + eta * (math.exp(epsilon) - 1),
            )
        # Where the paper's O() is meant: small epsilon (erratum BL12).
        for epsilon in (1e-4, 1e-3, 1e-2, 0.1):
            yield (
                "small_rate",
                (f"eta={eta:g} epsilon={epsilon:g}"),
                amplified_epsilon(epsilon, eta),
                eta * epsilon,
            )
    for n, rate in itertools.product((10, 100, 1000, 10000), (0.1, 0.2, 0.5, 1.0)):
        drawn = translate("wr", "substitute", "substitute", n=n, m=round(rate * n))
        yield "wr_rate", f"n={n} rate={rate:g}", drawn.eta, rate
    full_sample = translate("wor", "substitute", "substitute", n=30, m=30)
    bases: list[Profile] = [MembershipProfile(0.75), *(noise.of(name, 1.0) for name in NAMES)]
    for base, epsilon in itertools.product(bases, settings.epsilons):
        full = full_sample.delta(DeclaredProfile.of(base, Relation.SUBSTITUTE), epsilon)
        yield "wor_full", f"{type(base).__name__} epsilon={epsilon:g}", full, base.delta(epsilon)


class BalleCouplings(IdentityChecks):
    """Identities of the divergence, maximal and compatible couplings, laws of samples, the lower
    bound by membership.

    Variants: `stated` takes the printed divisor of the maximal coupling, multinomial law,
    description of omega_1 and hypothesis of Lemma 12; `consistent` the corrected ones.
    """

    name = "balle_couplings"

    class Settings(ExperimentSettings, Tiny):
        examples: Examples = 100
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probability: KeepProbability = 0.75

    def pairs(self, settings: Settings, stated: bool, rng: np.random.Generator) -> Iterator[Pair]:
        yield from _divergences(settings.examples, rng)
        yield from _coupled(settings.examples, stated, rng)
        yield from _transport(settings, rng)
        yield from _sampling_laws(settings, stated)
        yield from _lower_bound(settings, stated)


def _divergences(examples: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Definition by events, properties of the divergence as numbers that must not be positive,
    joint convexity."""
    # The definition itself, a supremum over all 2^4 events.
    events = np.array(list(itertools.product((0, 1), repeat=4)))
    for number in range(examples):
        case, laws = f"example={number}", rng.dirichlet(np.ones(4), size=4)
        alpha, beta = np.sort(1 + 3 * rng.random(2))
        first, larger = (float(hockey_stick(laws[0], laws[1], order)) for order in (alpha, beta))
        yield "events", case, first, (events @ laws[0] - alpha * (events @ laws[1])).max()
        yield "range", case, max(-first, first - 1), 0.0
        yield "monotone", case, larger, first
        weight = rng.random()
        mixtures = [weight * laws[side] + (1 - weight) * laws[side + 2] for side in (0, 1)]
        mean = weight * first + (1 - weight) * float(hockey_stick(laws[2], laws[3], alpha))
        yield "convex", case, hockey_stick(mixtures[0], mixtures[1], alpha), mean
    for number in range(examples):
        shared, first_part, second_part = rng.dirichlet(np.ones(5), size=3)
        sides = divergences.advanced_joint_convexity(
            shared, first_part, second_part, rng.random(), 1 + 3 * rng.random()
        )
        yield "joint_convexity", f"example={number}", sides.mixed, sides.identity
        yield "joint_convexity_bound", f"example={number}", sides.mixed, sides.bound


def _coupled(examples: int, stated: bool, rng: np.random.Generator) -> Iterator[Pair]:
    """Total mass of pi_1, and whether the coupling has the right marginals."""
    for number in range(examples):
        first, second = rng.dirichlet(np.ones(4), size=2)
        parts = maximal_coupling(first, second)
        scale = parts.eta if stated else 1.0  # the printed divisor eta in place of eta^2
        moved = scale * np.outer(parts.first, parts.second)
        joint = (1 - parts.eta) * np.diag(parts.shared) + parts.eta * moved
        yield "coupling_mass", f"example={number}", moved.sum(), 1.0
        wrong = max(
            np.abs(joint.sum(axis=1) - first).max(), np.abs(joint.sum(axis=0) - second).max()
        )
        yield "coupling_marginals", f"example={number}", wrong, 0.0


def _transport(settings: BalleCouplings.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    """Cheapest couplings of the parts that the maximal coupling leaves, and where no compatible one
    exists."""
    for row in rows_of(settings):
        space, (first, second) = row.space, (laws[0] for laws in row.laws)
        parts = maximal_coupling(first, second)
        deltas = KernelProfile(universes.dirichlet_kernel(space, 3, rng), space.distances).deltas(
            COUPLED
        )
        for name, target in (("second", parts.second), ("shared", parts.shared)):
            if not target.any():  # m = n without replacement: nothing is shared
                continue
            rows, columns = np.flatnonzero(parts.first), np.flatnonzero(target)
            distances = space.distances[np.ix_(rows, columns)]
            near = np.isfinite(distances)
            costs = np.where(near, deltas[np.where(near, distances, 0).astype(int)], np.inf)
            compatible = np.where(
                near & (distances == distances.min(axis=1, keepdims=True)), 0.0, np.inf
            )
            case = f"{row.theorem} n={row.n} size={row.size:g} {name}"
            exists = (
                divergences.cheapest_coupling(parts.first[rows], target[columns], compatible)
                is not None
            )
            # Theorem 14 is the one for which the paper says that no compatible coupling exists.
            if row.theorem == "Theorem 14" and name == "shared":
                yield "compatible_coupling", case, exists, 0.0
                continue
            yield "compatible_elsewhere", case, exists, 1.0
            coupling = divergences.cheapest_coupling(parts.first[rows], target[columns], costs)
            cost = math.inf if coupling is None else coupling[0]
            yield (
                "transport",
                case,
                cost,
                divergences.compatible_sum(parts.first[rows], distances, deltas),
            )


def _sampling_laws(settings: BalleCouplings.Settings, stated: bool) -> Iterator[Pair]:
    for n, m in itertools.product(settings.n, settings.m):
        # One record of the universe is outside the data: there the printed law is 0 (erratum BL2).
        data = (1,) * n + (0,)
        for sample, probability in sample_law("wr", data, m).items():
            formula = universes.multinomial(data, sample, printed=stated)
            yield "multinomial", f"n={n} m={m} {sample}", formula, probability
    for n, m in ((4, 3), (4, 2), (3, 3)):
        laws = zip(_copies(n, m, described=stated), _copies(n, m, described=False), strict=True)
        for copies, (described, exact) in enumerate(laws, start=1):
            yield "copies", f"n={n} m={m} copies={copies}", described, exact


def _copies(n: int, m: int, *, described: bool) -> np.ndarray:
    """Law of the copies of a record in a sample that holds it, by enumeration of all draws.

    As described in print it is one more than in a sample of m - 1 draws; exactly, it is the law
    given one copy or more.
    """
    counts = np.zeros(m + 1)
    for sample, probability in sample_law("wr", (1,) * n, m - 1 if described else m).items():
        counts[sample[0] + described] += probability
    return counts[1:] / counts[1:].sum()


def _lower_bound(settings: BalleCouplings.Settings, stated: bool) -> Iterator[Pair]:
    """Membership under the samplers of the table; as stated also under a natural sampler that the
    lemma covers."""
    for row in rows_of(settings):
        if row.theorem == "Theorem 14":
            # its pairs are those of Theorem 8 under another relation, and no tightness is claimed
            continue
        drawn = dict.fromkeys(itertools.chain(*row.pairs))
        design = {data: sample_law(row.bound.sampler, data, row.size) for data in drawn}
        for epsilon in settings.epsilons:
            loss = universes.membership_loss(
                design, row.pairs, 0, settings.keep_probability, epsilon
            )
            case = f"{row.theorem} n={row.n} size={row.size:g} epsilon={epsilon:g}"
            yield "membership", case, loss.exact, loss.lower_bound()
    # The printed lemma covers it, the corrected one does not (erratum BL5).
    if stated:
        x, other = (1, 1, 0), (1, 0, 1)
        only_0, only_1, only_2 = (1, 0, 0), (0, 1, 0), (0, 0, 1)
        skewed: universes.Design = {
            x: {only_0: 0.5, only_1: 0.5},
            other: {only_2: COUNTEREXAMPLE, only_0: 1 - COUNTEREXAMPLE},
        }
        loss = universes.membership_loss(skewed, [(x, other)], 1, 0.75, 0.2)
        yield (
            "membership",
            ("natural sampler of inclusion 0.5, eta 0.99, p=0.75 epsilon=0.2"),
            loss.exact,
            loss.claimed,
        )

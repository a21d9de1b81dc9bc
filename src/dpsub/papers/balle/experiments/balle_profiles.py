"""Profiles of the base mechanisms and what is said of them (Balle et al., Sections 3 and 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.integrate import quad

from dpsub import noise as profiles
from dpsub.amplification import DeclaredProfile, amplified_epsilon, translate
from dpsub.divergences import hockey_stick, moment_from_profiles, profile_from_losses, tail_rate
from dpsub.divergences.hockey_stick import Curve
from dpsub.divergences.universes import KernelProfile
from dpsub.noise import BlackBoxGroups, MembershipProfile, Profile, RandomisedResponseProfile
from dpsub.papers.balle.experiments.identity_checks import IdentityChecks, Pair
from dpsub.papers.balle.settings import Examples
from dpsub.relations import Relation
from dpsub.reproduce.settings import Epsilons, ExperimentSettings, Listed, Positive, Probability

NAMES = ("laplace", "gaussian")
PAIR = (1.0, 0.62)  # ratios of the Laplace and the Gaussian pair of which neither profile lies above the other
WHITE_RATIOS = np.geomspace(0.01, 10, 25)
WHITE_EPSILONS = np.linspace(0, 10, 41)
DISTANCES = (2, 3, 5, 10)
GAUSSIAN_END = 14.0  # standard deviations of the loss beyond its mean


class BalleProfiles(IdentityChecks):
    """Closed profiles against quadrature, moments against profiles, groups, randomised response, and small rates.

    Variants: `stated` takes the printed formula of randomised response at every p and reads "in particular" of Theorem
    6 as an equality for any two pairs; `consistent` takes max(p, 1 - p), and pairs of which one dominates.
    """

    name: ClassVar[str] = "balle_profiles"

    class Settings(ExperimentSettings):
        ratios: Listed[Positive] = Field((0.25, 1, 2), description="Sensitivity over noise scale.")
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probabilities: Listed[Probability] = Field((0, 0.2, 0.5, 0.75, 0.9, 1), description="Probabilities of an unflipped answer in randomised response.")
        moments: Listed[Positive] = Field((0.5, 1, 3), description="Orders s of the moments of the loss.")
        examples: Examples = 20

        def check(self) -> None:
            for ratio in self.ratios:
                profiles.of("laplace", ratio)

    def pairs(self, settings: Settings, variant: str, rng: np.random.Generator) -> Iterator[Pair]:
        yield from _closed_forms(settings)
        yield from _losses(settings, rng)
        yield from _moments(settings)
        yield from _largest_moment(variant)
        yield from _groups(settings, rng)
        yield from _responses(settings, variant)
        yield from _rates(settings)


def integrated_divergence(name: str, ratio: float, epsilon: float) -> float:
    """Return the hockey-stick divergence of noise shifted by `ratio` scales, by quadrature of its density."""
    noise = profiles.REGISTRY.get(name)(1.0)

    def gain(z: float) -> float:
        first = float(noise.log_density(z - ratio))
        gap = epsilon + float(noise.log_density(z)) - first
        return math.exp(first) * -math.expm1(gap) if gap < 0 else 0.0

    # one crossing, as the loss does not decrease: where it passes epsilon
    crossing = epsilon / ratio + ratio / 2 if name == "gaussian" else (epsilon + ratio) / 2
    edges = sorted({-40.0, 0.0, ratio, crossing, ratio + 40.0})
    return math.fsum(quad(gain, a, b, epsabs=1e-14, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))


def _closed_forms(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    for name in NAMES:
        for ratio in settings.ratios:
            profile = profiles.of(name, ratio)
            for epsilon in settings.epsilons:
                case = f"ratio={ratio:g} epsilon={epsilon:g}"
                integral = integrated_divergence(name, ratio, epsilon)
                yield f"{name}_profile", case, float(profile.delta(epsilon)), integral
    for ratio in settings.ratios:
        for factor in (1.0, 1.5, 10.0):
            yield "laplace_zero", f"ratio={ratio:g} factor={factor:g}", float(
                profiles.of("laplace", ratio).delta(factor * ratio)), 0.0
        for epsilon in np.linspace(0.02, 0.98, 49):
            bound = min(1.0, 1.25 * math.exp(-((epsilon / ratio) ** 2) / 2))
            exact = float(profiles.of("gaussian", ratio).delta(epsilon))
            yield "gaussian_classical", f"ratio={ratio:g} epsilon={epsilon:.2f}", exact, bound


def _losses(settings: BalleProfiles.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    for number in range(settings.examples):
        first, second = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        if number % 5 == 0:  # an outcome that only the first law has
            second = np.append(second[:-1], 0.0) / second[:-1].sum()
        for epsilon in settings.epsilons:
            by_losses = float(profile_from_losses(first, second, epsilon))
            yield "losses", f"example={number} epsilon={epsilon:g}", by_losses, float(
                hockey_stick(first, second, math.exp(epsilon)))


def moment_settings(profile: profiles.AdditiveNoiseProfile | RandomisedResponseProfile) -> dict[str, float]:
    """Return where to stop the integration of a moment, and how fast the profile falls from there."""
    end = float(profile.epsilon(0.0))
    if math.isfinite(end):
        return {"end": end}
    ratio = getattr(profile, "ratio", math.nan)
    end = ratio**2 / 2 + (GAUSSIAN_END + 6 * ratio) * ratio
    return {"end": end, "rate": tail_rate(profile.log_delta, end)}


def _moments(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    known: list[profiles.AdditiveNoiseProfile | RandomisedResponseProfile] = [
        profiles.of(name, ratio) for name in NAMES for ratio in settings.ratios
    ]
    known += [RandomisedResponseProfile(p) for p in settings.keep_probabilities if 0.5 < p < 1]
    for profile in known:
        for s in settings.moments:
            found = moment_from_profiles(profile.log_delta, profile.log_delta, s, **moment_settings(profile))
            exact = math.exp(profile.log_moment(s))
            case = f"{profile} s={s:g}"
            yield "moment", case, (found.lower + found.upper) / 2, exact
            yield "moment_outside", case, max(found.lower - exact, exact - found.upper, 0.0), 0.0


def _largest_moment(variant: str) -> Iterator[Pair]:
    laplace, gaussian = profiles.of("laplace", PAIR[0]), profiles.of("gaussian", PAIR[1])
    if variant == "consistent":  # the second pair dominates the first at every epsilon
        gaussian = profiles.of("gaussian", 4 * PAIR[1])

    def largest(epsilon: np.ndarray) -> np.ndarray:
        return np.maximum(laplace.log_delta(epsilon), gaussian.log_delta(epsilon))

    curve: Curve = largest
    place = moment_settings(gaussian)
    for s in (1.0,):
        found = moment_from_profiles(curve, curve, s, **place)
        moments = max(math.exp(profile.log_moment(s)) for profile in (laplace, gaussian))
        yield "largest_moment", f"s={s:g}", (found.lower + found.upper) / 2, moments
        yield "largest_moment_bound", f"s={s:g}", moments, found.upper


def _groups(settings: BalleProfiles.Settings, rng: np.random.Generator) -> Iterator[Pair]:
    chain = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    for number in range(settings.examples):
        kernel = KernelProfile(rng.dirichlet(np.ones(3), size=4), chain)
        for k in (2, 3):
            for epsilon in settings.epsilons:
                exact = float(np.exp(kernel.group_log_delta(epsilon, k)))
                bound = float(np.exp(BlackBoxGroups(kernel).log_bound(epsilon, k)))
                yield "black_box", f"example={number} k={k} epsilon={epsilon:g}", exact, bound
    for name in NAMES:
        for ratio in WHITE_RATIOS:
            profile: Profile = profiles.of(name, float(ratio))
            for k in DISTANCES:
                white = np.exp(profile.group_log_delta(WHITE_EPSILONS, k))
                worst = int(np.argmax(white - (black := np.exp(BlackBoxGroups(profile).log_bound(WHITE_EPSILONS, k)))))
                case = f"{name} ratio={ratio:.4g} k={k} epsilon={WHITE_EPSILONS[worst]:g}"
                yield "white_box", case, float(white[worst]), float(black[worst])


def _responses(settings: BalleProfiles.Settings, variant: str) -> Iterator[Pair]:
    for epsilon in settings.epsilons:
        for delta in (0.0, 1e-6, 0.01, 0.3):
            p = RandomisedResponseProfile.with_guarantee(epsilon, delta).keep_probability
            exact = float(hockey_stick([p, 1 - p], [1 - p, p], math.exp(epsilon)))
            yield "response_guarantee", f"epsilon={epsilon:g} delta={delta:g}", exact, delta
        for p in settings.keep_probabilities:
            larger = p if variant == "stated" else max(p, 1 - p)
            formula = max(0.0, larger - math.exp(epsilon) * (1 - larger))
            exact = float(hockey_stick([p, 1 - p], [1 - p, p], math.exp(epsilon)))
            yield "response_profile", f"p={p:g} epsilon={epsilon:g}", formula, exact


def _rates(settings: BalleProfiles.Settings) -> Iterator[Pair]:
    for eta in (1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0):
        for epsilon in (*settings.epsilons, 5.0):
            amplified = float(amplified_epsilon(epsilon, eta))
            yield "map", f"eta={eta:g} epsilon={epsilon:g}", math.exp(amplified), 1 + eta * (math.exp(epsilon) - 1)
        for epsilon in (1e-4, 1e-3, 1e-2, 0.1):
            amplified = float(amplified_epsilon(epsilon, eta))
            yield "small_rate", f"eta={eta:g} epsilon={epsilon:g}", amplified, eta * epsilon
    for n in (10, 100, 1000, 10000):
        for rate in (0.1, 0.2, 0.5, 1.0):
            eta = translate("wr", "substitute", "substitute", n=n, m=round(rate * n)).eta
            yield "wr_rate", f"n={n} rate={rate:g}", eta, rate
    whole = translate("wor", "substitute", "substitute", n=30, m=30)
    base = DeclaredProfile.of(MembershipProfile(0.75), Relation.SUBSTITUTE)
    for profile in (base, *(DeclaredProfile.of(profiles.of(name, 1.0), Relation.SUBSTITUTE) for name in NAMES)):
        for epsilon in settings.epsilons:
            full = float(whole.delta(profile, epsilon))
            case = f"{type(profile.profile).__name__} epsilon={epsilon:g}"
            yield "wor_full", case, full, float(profile.profile.delta(epsilon))

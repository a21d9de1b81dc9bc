"""Numbers of the errata that follow from no table of the run, for the placeholders `computed`."""

from __future__ import annotations

import math

import numpy as np

from dpsub import noise
from dpsub.amplification import amplify, base_epsilon, translate
from dpsub.divergences import hockey_stick, moment_from_profiles, tail_rate
from dpsub.noise import ConstantGroups
from dpsub.papers.balle.universes import Design, MembershipLoss, membership_loss, sample_law

N, M = 4, 3
"""Records and draws of the example of BL3."""
PAIRS = {"laplace": 1.0, "gaussian": 0.62}
"""Sensitivity over scale of the two mechanisms of BL6."""


def copies_as_described(copies: int) -> float:
    """Return the law of the copies of v in a sample of m - 1 draws with one copy added."""
    # The printed description: one copy for certain, the others Binomial(m - 1, 1/n) (erratum BL3).
    others = copies - 1
    return math.comb(M - 1, others) * N**-others * (1 - 1 / N) ** (M - 1 - others)


def copies_if_any(copies: int) -> float:
    """Return the law of the copies of v in a sample of m draws, given at least one."""
    # By enumeration of all 4^3 draws, conditional on at least one copy.
    law = np.zeros(M + 1)
    for sample, probability in sample_law("wr", (1,) * N, M).items():
        law[sample[0]] += probability
    return float(law[copies] / law[1:].sum())


def randomised_response_at_0(p: float) -> float:
    # e^0 = 1: the total variation distance, |2 p - 1|.
    return float(hockey_stick([p, 1 - p], [1 - p, p], 1.0))


def _membership() -> MembershipLoss:
    # BL5: records 0 and 1 against records 0 and 2. The sampler includes record 1 with probability
    # 0.5 only, although the samples are at total variation distance eta = 0.99.
    x, other = (1, 1, 0), (1, 0, 1)
    only_0, only_1, only_2 = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    design: Design = {x: {only_0: 0.5, only_1: 0.5}, other: {only_2: 0.99, only_0: 0.01}}
    return membership_loss(design, [(x, other)], 1, 0.75, 0.2)


def loss_of_membership() -> float:
    return _membership().exact


def loss_of_membership_as_claimed() -> float:
    return _membership().claimed


def largest_moment() -> float:
    return max(math.exp(noise.of(name, ratio).log_moment(1.0)) for name, ratio in PAIRS.items())


def moment_of_the_profile() -> float:
    """Return the integral of the larger of both profiles, from below."""
    profiles = [noise.of(name, ratio) for name, ratio in PAIRS.items()]

    def largest(epsilon: np.ndarray) -> np.ndarray:
        return np.maximum(*(profile.log_delta(epsilon) for profile in profiles))

    # The quadrature ends at 12 nats: the rest follows the decay of the Gaussian profile, since that
    # of Laplace is 0 from theta on.
    rate = tail_rate(profiles[1].log_delta, 12.0)
    moment = moment_from_profiles(largest, largest, 1.0, end=12.0, rate=rate)
    return float(moment.lower)


def laplace_formula(epsilon: float) -> float:
    """Return the formula of the Laplace mechanism with theta = 1."""
    # Outside its range on purpose: below -theta the formula is not the profile (erratum BL7).
    return -math.expm1((epsilon - 1) / 2)


def laplace_divergence(epsilon: float) -> float:
    return float(noise.of("laplace", 1.0).delta(epsilon))


def eta_with_replacement(m: int) -> float:
    """Return the chance that a record is among m draws from 1000."""
    return translate("wr", "substitute", "substitute", n=1000, m=m).eta


def error_of_the_rate(m: int) -> float:
    """Return the excess in percent of the rate m / 1000 over that chance, relative to the rate."""
    return 100 * (1 - eta_with_replacement(m) / (m / 1000))


def base_of(epsilon_amplified: float, eta: float) -> float:
    return float(base_epsilon(epsilon_amplified, eta))


def group_effect(ratio: float) -> float:
    """Return the increase of delta' by groups at epsilon' = 0 for m = 100 of 1000 records and the
    Laplace mechanism."""
    bound, profile = (
        translate("wr", "substitute", "substitute", n=1000, m=100),
        noise.of("laplace", ratio),
    )
    # epsilon' = 0 is base epsilon 0, where groups matter and no amplification of epsilon
    # interferes.
    base = bound.epsilon_base(np.zeros(1))
    divergences = [
        amplify(bound.law, each, base).delta_amplified
        for each in (profile, ConstantGroups(profile))
    ]
    return float(divergences[0][0] - divergences[1][0])

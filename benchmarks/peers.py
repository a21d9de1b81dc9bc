"""Ask other accountants the questions that this package answers.

dp-accounting gives an upper bound by connecting the dots and a lower one by rounding;
prv-accountant an interval. Pairs that they lack are fed to them by their public interfaces, with
profiles and laws computed here and not by this package, so that the tests compare two computations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import reduce

import numpy as np
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    calibrate_dp_mechanism,
)
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import (
    PoissonSubsampledGaussianMechanism,
    PrivacyRandomVariable,
)
from scipy.special import log_ndtr, logsumexp, ndtr

STEP = 1e-4
"""dp-accounting's own choice of the distance of losses."""

_NODES = 20_001
_MOST_LOSS = 60.0


def gaussian_upper(
    s: float, q: float, step: float = STEP, *, replace: bool = False
) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's upper bound of Poisson sampling at rate q with Gaussian noise."""
    return pld.from_gaussian_mechanism(
        s,
        value_discretization_interval=step,
        sampling_prob=q,
        neighboring_relation=_relation(replace),
    )


def ends_of(
    kinds: list[tuple[float, float, int]], delta: float, *, replace: bool = False
) -> tuple[float, float]:
    """Return dp-accounting's two bounds of epsilon for steps of several kinds: noise, rate,
    number."""
    low, high = (
        reduce(
            lambda one, other: one.compose(other),
            [bound(s, q, replace=replace).self_compose(k) for s, q, k in kinds],
        ).get_epsilon_for_delta(delta)
        for bound in (gaussian_lower, gaussian_upper)
    )
    return float(low), float(high)


def upper_without_replacement(
    n: int, m: int, s: float, k: int, delta: float
) -> tuple[float, float]:
    """Return dp-accounting's Renyi bound for samples without replacement, a record replaced: an
    upper end alone. Replacing a record moves a sum by 2 C, so that the noise is s / 2 in its
    units."""
    step = SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(s / 2))
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    return math.nan, float(accountant.compose(step, k).get_epsilon(delta))


def poisson_noise(q: float, k: int, *, epsilon: float, delta: float) -> float:
    """Return dp-accounting's noise multiplier for k Poisson samples at rate q."""
    noise = calibrate_dp_mechanism(
        PLDAccountant,
        lambda s: SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(s)), k),
        epsilon,
        delta,
        tol=1e-3,
    )
    return float(noise)


def gaussian_lower(
    s: float, q: float, step: float = STEP, *, replace: bool = False
) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's lower bound of Poisson sampling at rate q with Gaussian noise."""
    return pld.from_gaussian_mechanism(
        s,
        pessimistic_estimate=False,
        value_discretization_interval=step,
        sampling_prob=q,
        use_connect_dots=False,
        neighboring_relation=_relation(replace),
    )


def laplace(
    b: float, q: float, step: float = STEP, *, upper: bool = True
) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's bound of Poisson sampling with Laplace noise."""
    return pld.from_laplace_mechanism(
        b,
        pessimistic_estimate=upper,
        value_discretization_interval=step,
        use_connect_dots=upper,
        sampling_prob=q,
    )


def one_sided_mixture(
    s: float, counts: np.ndarray, weights: np.ndarray, step: float = STEP, *, upper: bool = True
) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's bound of sum_l w_l N(l, s^2) against N(0, s^2), both directions."""
    return pld.from_mixture_gaussian_mechanism(
        s,
        [float(count) for count in counts],
        [float(weight) for weight in weights],
        pessimistic_estimate=upper,
        value_discretization_interval=step,
        use_connect_dots=upper,
    )


def cut_upper(
    n: int, q: float, most: int, s: float, step: float = STEP
) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's upper bound of Poisson samples of n records, cut to `most`, a record
    added or removed."""
    return pld.from_truncated_subsampled_gaussian_mechanism(
        n, q, most, s, value_discretization_interval=step
    )


def self_dual_upper(
    profile: Callable[[np.ndarray], np.ndarray], step: float, last: float
) -> pld_pmf.PLDPmf:
    """Return dp-accounting's connected dots of H(a) = 1 - a + a H(1/a), given at log orders in [0,
    last]."""
    size = math.ceil(last / step)
    x = np.arange(size + 1) * step
    right = profile(x)
    left = -np.expm1(-x[1:]) + np.exp(-x[1:]) * right[1:]
    deltas = np.clip(np.minimum.accumulate(np.concatenate([left[::-1], right])), 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -size, size, deltas)


def without_replacement_profile(q: float, s: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return q G(1 + (a - 1) / q, 2 / s), which substitution attains under sampling without
    replacement."""

    def profile(x: np.ndarray) -> np.ndarray:
        d = 2 / s
        order = 1 + np.expm1(x) / q
        shift = np.log(order) / d
        return q * (ndtr(d / 2 - shift) - np.exp(np.log(order) + log_ndtr(-d / 2 - shift)))

    return profile


class MirroredMixture(PrivacyRandomVariable):
    """Loss of sum_l w_l N(l, s^2) against its mirror image, tabulated, as a variable of
    prv-accountant.

    Attributes
    ----------
    counts, weights : ndarray, shape (c,)
    scale : float
        s.
    """

    def __init__(self, counts: np.ndarray, weights: np.ndarray, scale: float) -> None:
        self.counts, self.weights, self.scale = (
            np.asarray(counts, dtype=float),
            np.asarray(weights),
            scale,
        )
        reach = scale
        while self.loss(np.array([reach]))[0] < _MOST_LOSS:
            reach *= 1.2
        self.nodes = np.linspace(0.0, reach, _NODES)
        self.table = self.loss(self.nodes)

    def log_density(self, t: np.ndarray) -> np.ndarray:
        """Return the log of the mixture's density, up to a term that the mirror image shares."""
        tilted = np.log(self.weights) - 0.5 * (self.counts / self.scale) ** 2
        return np.asarray(
            logsumexp(tilted + np.multiply.outer(t, self.counts) / self.scale**2, axis=-1)
        )

    def loss(self, t: np.ndarray) -> np.ndarray:
        return self.log_density(t) - self.log_density(-t)

    def place(self, x: np.ndarray, newton: int) -> np.ndarray:
        """Return the place where the loss is x: interpolated, then improved by Newton's method."""
        size = np.abs(np.asarray(x, dtype=float))
        t = np.interp(size, self.table, self.nodes)
        h = self.nodes[1]
        for _ in range(newton):
            slope = (self.loss(t + h) - self.loss(t - h)) / (2 * h)
            t = t - (self.loss(t) - size) / slope
        return np.copysign(t, x)

    def mass_above(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(
            ndtr((self.counts - np.asarray(t)[..., None]) / self.scale) @ self.weights
        )

    def mirrored_above(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(
            ndtr((-self.counts - np.asarray(t)[..., None]) / self.scale) @ self.weights
        )

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """Return P(loss <= t), as prv-accountant asks for it."""
        return 1 - self.mass_above(self.place(np.asarray(t, dtype=float), 0))

    def profile(self, x: np.ndarray) -> np.ndarray:
        """Return H at log orders x >= 0: the best half-line, whose end need not be exact."""
        t = self.place(x, 2)
        return np.maximum(self.mass_above(t) - np.exp(x) * self.mirrored_above(t), 0.0)


def interval_poisson(q: float, s: float, k: int, delta: float, error: float) -> tuple[float, float]:
    """Return prv-accountant's interval of epsilon for Poisson sampling."""
    variable = PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=s)
    accountant = PRVAccountant(
        variable, eps_error=error, delta_error=delta / 1000, max_self_compositions=k
    )
    low, _, high = accountant.compute_epsilon(delta, k)
    return float(low), float(high)


def interval_mixture(
    variable: MirroredMixture, k: int, epsilon: float, error: float, delta_error: float, most: float
) -> tuple[float, float]:
    """Return prv-accountant's interval of delta for a mirrored mixture, all losses and sums below
    `most`."""
    with warnings.catch_warnings():
        # prv-accountant warns that it takes the given bound on trust
        warnings.simplefilter("ignore")
        accountant = PRVAccountant(
            variable,
            eps_error=error,
            delta_error=delta_error,
            max_self_compositions=k,
            eps_max=most,
        )
    low, _, high = accountant.compute_delta(epsilon, [k])
    return float(low), float(high)


def interval_allocation(
    t: int, *, noise_multiplier: float, epochs: int, delta: float, width: float
) -> tuple[float, float]:
    """Return PLD_accounting's interval of epsilon for random allocation, at its own accuracy, a
    tenth of epsilon."""
    from PLD_accounting import gaussian_allocation_epsilon_range

    high, low = gaussian_allocation_epsilon_range(
        delta=delta, sigma=noise_multiplier, num_steps=t, num_epochs=epochs
    )
    return float(low), float(high)


def upper_allocation(
    t: int, k: int, noise_multiplier: float, epochs: int, delta: float
) -> tuple[float, float]:
    """Return random-allocation's best upper bound of epsilon for k of t; its lower bounds are those
    of one epoch and k = 1 alone."""
    from random_allocation.comparisons.structs import PrivacyParams, SchemeConfig
    from random_allocation.random_allocation_scheme.combined import allocation_epsilon_combined

    asked = PrivacyParams(
        sigma=noise_multiplier, num_steps=t, num_selected=k, num_epochs=epochs, delta=delta
    )
    orders = SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
    return math.nan, float(allocation_epsilon_combined(asked, orders))


def drawn_allocation(
    t: int, k: int, noise_multiplier: float, delta: float, n_drawn: int
) -> tuple[float, float]:
    """Return a Monte Carlo interval of epsilon for k of t in one epoch, one record more against one
    less: two standard deviations to either side.

    At each of its steps the record is drawn of one of several sizes, so that the rare large losses
    are seen, and outputs are weighted by the ratio of the densities.
    """
    rng = np.random.default_rng(0)
    sizes = 1 + noise_multiplier * np.array([0.0, 0.75, 1.5, 2.75, 4.0])
    chances = np.array([0.55, 0.15, 0.13, 0.1, 0.07])
    # the record's steps may be the first ones, as all choices are alike
    z = noise_multiplier * rng.standard_normal((t, n_drawn))
    z[:k] += rng.choice(sizes, size=(k, n_drawn), p=chances)
    loss = _log_mean_product(z, sizes[:1], np.ones(1), k, noise_multiplier)
    weight = np.exp(loss - _log_mean_product(z, sizes, chances, k, noise_multiplier))

    def reached(epsilon: float, sign: int) -> bool:
        gains = weight * np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
        return bool(gains.mean() + sign * 2 * gains.std() / math.sqrt(gains.size) > delta)

    ends = []
    for sign in (-1, 1):
        low, high = 0.0, float(loss.max())
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if reached(middle, sign) else (low, middle)
        ends.append(low)
    return ends[0], ends[1]


def _log_mean_product(
    z: np.ndarray, sizes: np.ndarray, chances: np.ndarray, k: int, s: float
) -> np.ndarray:
    """Return the logarithm of the mean, over the k-subsets of the rows, of products of the
    likelihood ratios of a record whose size is drawn at each step: elementary symmetric
    polynomials."""
    means = [np.ones(z.shape[1]), *(np.zeros(z.shape[1]) for _ in range(k))]
    for place, row in enumerate(z, start=1):
        ratio = np.zeros(row.size)
        for size, chance in zip(sizes.tolist(), chances.tolist(), strict=True):
            ratio += chance * np.exp((size * row - size**2 / 2) / s**2)
        for degree in range(min(k, place), 0, -1):
            drawn = degree / place
            means[degree] = drawn * ratio * means[degree - 1] + (1 - drawn) * means[degree]
    return np.asarray(np.log(means[k]))


def _relation(replace: bool) -> pld.NeighborRel:
    return pld.NeighborRel.REPLACE_ONE if replace else pld.NeighborRel.ADD_OR_REMOVE_ONE

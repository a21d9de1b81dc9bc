"""The papers' pairs: losses, their inverses and densities, each computed in a second way."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpsub import sampling
from dpsub.accounting.engine.pairs import (
    LOSS_TOLERANCE,
    GaussianPair,
    MixturePair,
    PoissonPair,
    WorPair,
)
from dpsub.errors import ArgumentError
from dpsub.sampling.laws import MultiplicityLaw


def mixture(name: str, n: int, m: int, b: int, scale: float) -> MixturePair:
    return MixturePair(sampling.of_sizes(name, n=n, m=m, b=b).multiplicity_law(n), scale)


PAIRS: dict[str, GaussianPair] = {
    "poisson": PoissonPair(0.01, 2.654),
    "poisson, small scale": PoissonPair(0.3, 0.2),
    "poisson, rate 1": PoissonPair(1, 1.5),
    "wor": WorPair(0.01, 2.654),
    "wor, small scale": WorPair(0.02, 0.2),
    "wor, rate 1": WorPair(1, 0.7),
    "wr": mixture("wr", 1000, 100, 0, 2.0),
    "must_ow": mixture("must_ow", 10000, 200, 118, 4.0),
    "must_ow, small scale": mixture("must_ow", 30969, 300, 500, 0.671),
    "must_ww": mixture("must_ww", 300, 30, 50, 1.2),
    "two copies": MixturePair(MultiplicityLaw(np.log(np.array([0.9, 1e-300, 0.1]))), 1.0),
}
ALL = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
MIRRORED = pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair.mirrored])


def losses(pair: GaussianPair) -> np.ndarray:
    """Return losses across the range of the pair, dense near 0 and near the floor."""
    grid = np.concatenate([-np.geomspace(12, 1e-9, 40), [0.0], np.geomspace(1e-9, 12, 40)])
    if np.isfinite(pair.loss_floor):
        grid = np.concatenate(
            [pair.loss_floor + np.geomspace(1e-7, 1, 30), grid[grid > pair.loss_floor]]
        )
    return np.sort(grid)


@ALL
def test_inverse_meets_its_tolerance_at_fifty_digits(pair: GaussianPair) -> None:
    counts, log_weights = pair.components
    with mpmath.workdps(50):
        s2 = mpmath.mpf(pair.deviation) ** 2
        # the weights are the doubles that the pair was given; two-component pairs have theirs from
        # the rate
        rate = getattr(pair, "rate", None)
        weights = [mpmath.exp(mpmath.mpf(float(w))) for w in log_weights]
        if rate is not None and rate < 1:
            weights = [1 - mpmath.mpf(rate), mpmath.mpf(rate)]

        def log_sum(t: mpmath.mpf) -> mpmath.mpf:
            terms = (
                w * mpmath.exp((t * int(u) - mpmath.mpf(int(u)) ** 2 / 2) / s2)
                for w, u in zip(weights, counts, strict=True)
            )
            return mpmath.log(mpmath.fsum(terms))

        x = losses(pair)[::5]
        for wanted, t in zip(x, pair.inverse_loss(x), strict=True):
            exact = mpmath.mpf(float(t))
            loss = log_sum(exact) - (log_sum(-exact) if pair.mirrored else 0)
            assert abs(loss - mpmath.mpf(float(wanted))) <= LOSS_TOLERANCE * max(1.0, abs(wanted))


@ALL
def test_slopes_agree_with_central_differences(pair: GaussianPair) -> None:
    x = losses(pair)
    x = x[(np.abs(x) > 1e-3) & (x > pair.loss_floor + 1e-3)]
    t = pair.inverse_loss(x)
    h = 1e-5 * pair.deviation
    numeric = (pair.loss(t + h) - pair.loss(t - h)) / (2 * h)
    np.testing.assert_allclose(pair.loss_slope(t), numeric, rtol=2e-6)
    np.testing.assert_allclose(pair.inverse_slope(x) * pair.loss_slope(t), 1.0, rtol=1e-9)


def test_closed_derivative_for_sampling_without_replacement_as_printed() -> None:
    q, s = 0.05, 1.3
    pair, x, h = WorPair(q, s), np.linspace(-4, 4, 41), 1e-5
    e, c, p = np.exp(x), q * np.exp(-1 / (2 * s**2)), 1 - q
    root = np.sqrt(p**2 * (1 - e) ** 2 + 4 * c**2 * e)
    numerator = p * e * root + p**2 * (1 - e) * -e + 2 * c**2 * e
    printed = s**2 * numerator / (-p * (1 - e) * root + p**2 * (1 - e) ** 2 + 4 * c**2 * e)
    differences = (pair.inverse_loss(x + h) - pair.inverse_loss(x - h)) / (2 * h)
    np.testing.assert_allclose(printed, differences, rtol=1e-7)
    np.testing.assert_allclose(pair.inverse_slope(x), printed, rtol=1e-10)
    np.testing.assert_allclose(
        pair.inverse_loss(x), s**2 * np.log((-p * (1 - e) + root) / (2 * c)), rtol=1e-9, atol=1e-12
    )


def log_density_prime(pair: GaussianPair, t: np.ndarray) -> np.ndarray:
    """Return log f_X'(t)."""
    return pair.log_density(-t) if pair.mirrored else np.asarray(norm.logpdf(t, 0, pair.deviation))


@ALL
def test_loss_is_the_difference_of_log_densities(pair: GaussianPair) -> None:
    t = np.linspace(-8, 8, 97) * pair.deviation
    np.testing.assert_allclose(
        pair.loss(t), pair.log_density(t) - log_density_prime(pair, t), rtol=1e-11, atol=1e-11
    )
    rises = np.diff(pair.loss(t))
    assert np.all(rises >= 0)
    assert np.all(rises[pair.loss(t)[:-1] > pair.loss_floor + 1e-12] > 0)


@MIRRORED
def test_loss_is_odd(name: str) -> None:
    pair, t = PAIRS[name], np.geomspace(1e-6, 20, 50)
    np.testing.assert_array_equal(pair.loss(-t), -pair.loss(t))
    x = np.linspace(0, 8, 33)[1:]
    np.testing.assert_array_equal(pair.inverse_loss(-x), -pair.inverse_loss(x))
    grid = np.concatenate([-x[::-1], [0.0], x])
    np.testing.assert_allclose(pair.inverse_loss(grid)[33:], pair.inverse_loss(x), rtol=1e-11)


@ALL
def test_densities_integrate_to_the_cdf(pair: GaussianPair) -> None:
    marks = [float(u) for u in pair.components[0][:4]]
    low = min(marks) - 12 * pair.deviation
    for t in (-pair.deviation, 0.3, 1 + 2 * pair.deviation):
        points = [m for m in (*marks, *(-m for m in marks)) if -12 * pair.deviation - 2 < m < t]
        for density, cdf in (
            (pair.log_density, pair.cdf),
            (partial(log_density_prime, pair), pair.cdf_prime),
        ):
            start = min(low, -low if low > 0 else low) - 3
            area = quad(
                lambda y, d=density: float(np.exp(d(np.array([y]))[0])),
                start,
                t,
                points=points,
                epsabs=1e-12,
                limit=400,
            )[0]
            assert area == pytest.approx(float(cdf(np.array([t]))[0]), abs=1e-10)


@ALL
def test_tails_complement_each_other(pair: GaussianPair) -> None:
    t = np.linspace(-9, 9, 61) * pair.deviation
    np.testing.assert_allclose(pair.cdf(t) + pair.sf(t), 1.0, rtol=1e-12)
    np.testing.assert_allclose(pair.cdf_prime(t) + pair.sf_prime(t), 1.0, rtol=1e-12)


@ALL
def test_interval_masses_are_cdf_differences(pair: GaussianPair) -> None:
    edges = np.concatenate([[-np.inf], np.linspace(-6, 8, 400) * pair.deviation, [np.inf]])
    masses = pair.interval_masses(edges)
    middle = edges[1:-1]
    np.testing.assert_allclose(masses[1:-1], np.diff(pair.cdf(middle)), rtol=1e-9, atol=1e-15)
    assert masses.sum() == pytest.approx(1.0, abs=1e-13)


def test_interval_masses_keep_digits_in_both_tails() -> None:
    pair = PoissonPair(1, 1.0)
    edges = np.array([-21.0, -20.0, 22.0, 23.0])
    left, _, right = pair.interval_masses(edges)
    assert left == pytest.approx(float(pair.cdf(edges[1:2])[0] - pair.cdf(edges[:1])[0]), rel=1e-12)
    assert right == pytest.approx(left, rel=1e-12)


@ALL
def test_loss_density_integrates_to_one(pair: GaussianPair) -> None:
    # in the variable t the same integral is that of f_X, so the check is of the change of variables
    edges = np.linspace(-12, 14, 60001) * pair.deviation
    x = pair.loss(edges)
    omega = pair.loss_density(x)
    inside = np.isfinite(omega)
    area = np.sum(0.5 * (omega[1:] + omega[:-1]) * np.diff(x), where=inside[1:] & inside[:-1])
    assert area == pytest.approx(float(pair.cdf(edges[-1:])[0]), abs=3e-6)


def test_poisson_density_vanishes_at_and_below_its_floor() -> None:
    pair = PoissonPair(0.1, 1.0)
    floor = pair.loss_floor
    assert floor == pytest.approx(np.log(0.9))
    np.testing.assert_array_equal(pair.loss_density(np.array([-5.0, floor])), 0.0)
    np.testing.assert_array_equal(pair.inverse_loss(np.array([-5.0, floor])), -np.inf)


def test_a_mixture_of_none_and_one_copy_is_sampling_without_replacement() -> None:
    single, plain, x = (
        MixturePair(MultiplicityLaw.single(0.03), 1.7),
        WorPair(0.03, 1.7),
        np.linspace(-5, 5, 101),
    )
    np.testing.assert_allclose(
        single.inverse_loss(x), plain.inverse_loss(x), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(single.loss_density(x), plain.loss_density(x), rtol=1e-10)


def test_components_left_out_are_accounted_for() -> None:
    counts, weights, left_out = PAIRS["must_ow"].bulk
    assert counts.size < 40
    assert 0 < left_out <= 1e-25
    assert weights.sum() + left_out == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PoissonPair(0, 1), "rate must be above 0, got rate = 0"),
        (lambda: WorPair(1.5, 1), "rate must be at most 1, got rate = 1.5"),
        (lambda: WorPair(0.5, 0.01), "deviation must be at least 0.05, got deviation = 0.01"),
        (lambda: MixturePair(MultiplicityLaw(np.zeros(1)), 1), "the law must include the record"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(build: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        build()  # type: ignore[operator]

"""Against dp-accounting and prv-accountant: brackets overlap, and ours is the narrower one, or as
near to an upper bound as asked.

dp-accounting's lower bounds come from rounding, its upper ones from connecting the dots.
prv-accountant's interval for Poisson sampling is for adding a record or for removing it, whichever
its variable stands for; the larger of the two at these settings.
"""

from __future__ import annotations

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from scipy.stats import binom

import dpsub
from benchmarks import peers
from dpsub import sampling
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.pairs import FillerPair
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.questions.fast_search import needed
from dpsub.accounting.questions.search import Goal
from dpsub.accounting.release import Release
from dpsub.sampling.laws import MultiplicityLaw
from dpsub.sampling.schemes import scheme
from tests.few import few

WIDTH = 2e-4
ONE_STEP = 4e-5
"""Tolerance for a single release, which loses only one rounding of 1e-4."""
ROUNDING = 1e-9
"""Tolerance for the round-off of transforms, which dp-accounting does not charge."""


def assert_inside(ours: tuple[float, float], theirs: tuple[float, float], width: float) -> None:
    """Check overlap; as narrow as asked; narrower than theirs; not above their upper bound by more
    than our width."""
    assert ours[0] <= ours[1]
    assert ours[0] <= theirs[1] * (1 + ROUNDING)
    assert ours[1] >= theirs[0] * (1 - ROUNDING)
    assert ours[1] - ours[0] <= width
    assert ours[1] - ours[0] <= theirs[1] - theirs[0]
    assert ours[1] <= theirs[1] + width


def papers_pair(n: int, b: int, m: int, s: float) -> peers.MirroredMixture:
    """Return the paper's pair of MUST.OW."""
    counts = np.arange(25)
    weights = b / n * binom.pmf(counts, m, 1 / b)
    weights[0] += 1 - b / n
    return peers.MirroredMixture(counts, weights, s)


@pytest.mark.parametrize(
    ("q", "s", "k", "delta", "width"),
    few(
        [
            (0.01, 1.0, 1000, 1e-5, WIDTH),
            (0.1, 2.0, 100, 1e-6, WIDTH),
            (0.001, 0.8, 2000, 1e-8, WIDTH),
            (0.5, 4.0, 10, 1e-5, WIDTH),
            (0.02, 0.7, 50, 1e-3, WIDTH),
            (0.3, 1.5, 1, 1e-5, ONE_STEP),
            (0.004, 1.0, 5000, 1e-6, WIDTH),
            (0.05, 3.0, 300, 1e-10, WIDTH),
            (1.0, 10.0, 100, 1e-6, WIDTH),
            (1.0, 50.0, 1000, 1e-5, WIDTH),
            (1.0, 2.0, 1, 1e-4, ONE_STEP),
        ],
        most=3,
    ),
)
def test_poisson_sampling_add_remove(
    q: float, s: float, k: int, delta: float, width: float
) -> None:
    answer = dpsub.account(
        sampling.Poisson(q),
        noise_multiplier=s,
        steps=k,
        delta=delta,
        adjacency="add_remove",
        width=width,
    )
    low = peers.gaussian_lower(s, q).self_compose(k).get_epsilon_for_delta(delta)
    high = peers.gaussian_upper(s, q).self_compose(k).get_epsilon_for_delta(delta)
    assert answer.kind == "exact"
    assert_inside((answer.lower, answer.upper), (low, high), width)


@pytest.mark.parametrize(
    ("n", "m", "epochs", "epsilon", "delta"),
    few([(1000, 300, 2, 0.3, 1e-9), (5000, 100, 2, 1.0, 1e-6)]),
)
def test_recommended_noise_of_poisson_sampling(
    n: int, m: int, epochs: int, epsilon: float, delta: float
) -> None:
    plan, steps = scheme("poisson", n, m, epochs)
    goal = Goal(epsilon, delta, "add_remove", accuracy=1e-2)
    needed_noise = needed(Release(plan, n, 1.0, steps), goal)

    def theirs(noise: float) -> float:
        """Return their upper bound, which is the nearer one: the lower one is 2 % away."""
        return float(
            peers.gaussian_upper(noise, m / n).self_compose(steps).get_epsilon_for_delta(delta)
        )

    assert (
        needed_noise.epsilon_lower
        <= theirs(needed_noise.noise_multiplier)
        <= needed_noise.epsilon_upper + WIDTH
    )
    assert theirs(needed_noise.noise_multiplier) <= epsilon < theirs(needed_noise.necessary)


def test_poisson_sampling_zero_out() -> None:
    answer = dpsub.account(
        sampling.Poisson(0.01),
        noise_multiplier=1.0,
        steps=100,
        delta=1e-5,
        adjacency="zero_out",
        width=WIDTH,
    )
    theirs = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    theirs.compose(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 100
    )
    estimate = theirs.get_epsilon(1e-5)
    assert answer.lower - 1e-3 <= estimate <= answer.upper + 1e-3


@pytest.mark.parametrize(
    ("q", "s", "k", "delta"),
    few([(0.01, 1.0, 1000, 1e-5), (0.05, 2.0, 200, 1e-6), (0.2, 1.0, 3, 1e-4)]),
)
def test_poisson_sampling_substitute(q: float, s: float, k: int, delta: float) -> None:
    answer = dpsub.account(
        sampling.Poisson(q),
        noise_multiplier=s,
        steps=k,
        delta=delta,
        adjacency="substitute",
        width=WIDTH,
    )
    low = peers.gaussian_lower(s, q, replace=True).self_compose(k).get_epsilon_for_delta(delta)
    high = peers.gaussian_upper(s, q, replace=True).self_compose(k).get_epsilon_for_delta(delta)
    assert answer.kind == "exact"
    assert_inside((answer.lower, answer.upper), (low, high), WIDTH)


@pytest.mark.parametrize(
    ("n", "m", "s", "k", "epsilon"), [(10000, 200, 4.0, 1000, 1.0), (500, 50, 3.0, 40, 0.7)]
)
def test_the_papers_pair_of_sampling_without_replacement(
    n: int, m: int, s: float, k: int, epsilon: float
) -> None:
    answer = dpsub.account(
        sampling.Wor(m),
        n,
        noise_multiplier=s,
        steps=k,
        epsilon=epsilon,
        width=1e-3,
        variant="paper",
    )
    low = (
        peers.gaussian_lower(s, m / n, replace=True).self_compose(k).get_delta_for_epsilon(epsilon)
    )
    high = (
        peers.gaussian_upper(s, m / n, replace=True).self_compose(k).get_delta_for_epsilon(epsilon)
    )
    assert_inside((answer.lower, answer.upper), (low, high), 1e-3 * answer.upper)


@pytest.mark.parametrize(
    ("n", "m", "s", "k", "epsilon", "last"),
    [(10000, 200, 4.0, 1000, 1.0, 4.0), (60, 20, 5.0, 30, 0.5, 8.0)],
)
def test_proved_bound_of_sampling_without_replacement(
    n: int, m: int, s: float, k: int, epsilon: float, last: float
) -> None:
    # the exact profile in dp-accounting's connected dots; errors fall with the square of the step:
    # hence the limit
    profile = peers.without_replacement_profile(m / n, s)
    fine, coarse = (
        peers.self_dual_upper(profile, step, last).self_compose(k).get_delta_for_epsilon(epsilon)
        for step in (1e-4, 2e-4)
    )
    limit = fine - (coarse - fine) / 3
    width = 1e-3
    answer = dpsub.account(
        sampling.Wor(m),
        n,
        noise_multiplier=s,
        steps=k,
        epsilon=epsilon,
        width=width,
        adjacency="substitute",
    )
    assert limit * (1 - 1e-5) <= answer.upper <= fine * (1 + width)
    assert answer.lower <= fine


@pytest.mark.parametrize(
    ("n", "b", "m", "s", "k", "epsilon"),
    few([(10000, 118, 200, 4.0, 1000, 1.0), (300, 50, 30, 3.0, 60, 1.5)]),
)
def test_the_papers_pair_of_two_stages(
    n: int, b: int, m: int, s: float, k: int, epsilon: float
) -> None:
    pair = papers_pair(n, b, m, s)
    fine, coarse = (
        peers.self_dual_upper(pair.profile, step, 14.0)
        .self_compose(k)
        .get_delta_for_epsilon(epsilon)
        for step in (2e-4, 4e-4)
    )
    answer = dpsub.account(
        sampling.MustOW(b, m),
        n,
        noise_multiplier=s,
        steps=k,
        epsilon=epsilon,
        width=2e-3,
        variant="paper",
    )
    limit = fine - (coarse - fine) / 3
    assert answer.lower <= limit * (1 + 1e-5)
    assert answer.upper >= limit * (1 - 1e-5)
    assert answer.upper - answer.lower <= 2e-3 * answer.upper
    assert answer.upper <= fine * (1 + 2e-3)


@pytest.mark.parametrize(
    ("weights", "s", "k", "epsilon"),
    few([([0.6, 0.3, 0.0, 0.1], 6.0, 10, 0.5), ([0.97, 0.02, 0.008, 0.002], 2.0, 100, 1.0)]),
)
def test_one_sided_mixtures(weights: list[float], s: float, k: int, epsilon: float) -> None:
    counts = np.arange(len(weights))
    low = peers.one_sided_mixture(s, counts, np.array(weights), 2e-3, upper=False)
    high = peers.one_sided_mixture(s, counts, np.array(weights), 2e-3)
    theirs = tuple(side.self_compose(k).get_delta_for_epsilon(epsilon) for side in (low, high))
    with np.errstate(divide="ignore"):
        law = MultiplicityLaw(np.log(weights))
    ours = Composition([(PairEvent(FillerPair(law, s)), k)]).answer(
        Target(epsilon=epsilon, width=1e-3)
    )[:2]
    assert_inside(ours, theirs, 1e-3 * ours[1])


@pytest.mark.parametrize(
    ("q", "b", "k", "epsilon"),
    [(0.6, 2.0, 2, 0.1), (0.9, 0.5, 2, 1.0), (0.05, 1.0, 50, 1.0), (0.3, 10.0, 50, 0.2)],
)
def test_laplace_noise_under_poisson_sampling(q: float, b: float, k: int, epsilon: float) -> None:
    answer = dpsub.account(
        sampling.Poisson(q),
        noise_multiplier=b,
        steps=k,
        epsilon=epsilon,
        mechanism="laplace",
        width=1e-3,
    )
    low = peers.laplace(b, q, upper=False).self_compose(k).get_delta_for_epsilon(epsilon)
    high = peers.laplace(b, q).self_compose(k).get_delta_for_epsilon(epsilon)
    assert low * (1 - ROUNDING) <= answer.upper <= high * (1 + 2e-3)
    assert answer.lower <= high


@pytest.mark.parametrize(
    ("q", "s", "k", "delta"),
    few(
        [
            (0.01, 1.0, 1000, 1e-5),
            (0.05, 1.5, 200, 1e-6),
            (0.001, 0.7, 500, 1e-7),
            (0.2, 2.0, 20, 1e-5),
        ]
    ),
)
def test_poisson_sampling_in_the_intervals_of_prv_accountant(
    q: float, s: float, k: int, delta: float
) -> None:
    low, high = peers.interval_poisson(q, s, k, delta, 0.01)
    answer = dpsub.account(
        sampling.Poisson(q), noise_multiplier=s, steps=k, delta=delta, width=1e-3
    )
    assert low <= answer.lower <= answer.upper <= high
    assert answer.upper - answer.lower <= 0.1 * (high - low)


@pytest.mark.parametrize(
    ("n", "b", "m", "s", "k", "epsilon", "most"),
    few(
        [
            (10000, 118, 200, 4.0, 1000, 1.0, 15.0),
            (10000, 118, 200, 4.0, 200, 0.5, 15.0),
            (300, 50, 30, 3.0, 60, 1.5, 20.0),
        ]
    ),
)
def test_two_stages_in_the_intervals_of_prv_accountant(
    n: int, b: int, m: int, s: float, k: int, epsilon: float, most: float
) -> None:
    answer = dpsub.account(
        sampling.MustOW(b, m),
        n,
        noise_multiplier=s,
        steps=k,
        epsilon=epsilon,
        width=2e-3,
        variant="paper",
    )
    low, high = peers.interval_mixture(
        papers_pair(n, b, m, s), k, epsilon, 0.01, 1e-3 * answer.upper, most
    )
    assert low <= answer.lower <= answer.upper <= high
    assert answer.upper - answer.lower <= 0.1 * (high - low)


@pytest.mark.parametrize(
    ("q", "most", "s", "k"), few([(0.05, 5, 2.0, 50), (0.05, 90, 1.0, 100), (0.05, 50, 1.0, 10)])
)
def test_cut_samples_are_bounded_below_dp_accounting(q: float, most: int, s: float, k: int) -> None:
    """Its bound takes a record that displaces another as one that is substituted; ours does not,
    and no attack is above ours."""
    n, delta = 1000, 1e-5
    ours = dpsub.account(
        dpsub.TruncatedPoisson(q, most), n, noise_multiplier=s, steps=k, delta=delta, width=WIDTH
    )
    theirs = peers.cut_upper(n + 1, q, most, s).self_compose(k).get_epsilon_for_delta(delta)
    assert ours.lower <= ours.upper <= theirs + WIDTH


@pytest.mark.parametrize(
    ("group", "printed"), few([(1, 1.82824), (2, 3.97909), (4, 8.89919)], most=0, more=1)
)
def test_groups_under_poisson_sampling(group: int, printed: float) -> None:
    counts = np.arange(group + 1)
    theirs = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        1.0,
        counts.astype(float).tolist(),
        binom.pmf(counts, group, 0.01).tolist(),
        value_discretization_interval=1e-4,
    )
    their_upper = theirs.self_compose(1000).get_epsilon_for_delta(1e-5)
    assert their_upper == pytest.approx(printed, abs=1e-5)
    ours = dpsub.account(
        sampling.Poisson(0.01),
        noise_multiplier=1.0,
        steps=1000,
        delta=1e-5,
        group=group,
        width=2e-4,
    )
    assert ours.lower <= their_upper
    assert ours.upper <= their_upper + 2e-4
    # both are about one number
    assert ours.lower > their_upper - 1e-3

"""One test an erratum of Jiang et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from dpsub.data import adult_gains, gowalla
from dpsub.papers.brdp import queries
from dpsub.papers.brdp.queries import Average, Count, Query, Total
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, paper
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import Choice, best_recycler, plain_noise, true_delta
from dpsub.recycling.composition import account
from tests.experiment_runs import settings_of
from tests.unit.recycled_laws import laplace_split

DELTA = 1e-5


def recycled(kernel: GaussianKernel | LaplaceKernel, epsilon: float, bound: float) -> Recycled:
    """Return a kernel recycled at the rate of Algorithm 1, D = 1."""
    return Recycled.within(
        kernel, paper.algorithm1(kernel, epsilon, DELTA, -bound, bound, 1.0), bound, 1.0
    )


@pytest.fixture(scope="module")
def gaussian() -> dict[float, Choice]:
    """Return the paper's Gaussian recyclers at D = theta = 1, by epsilon."""
    return {
        epsilon: paper.algorithm2(GaussianKernel, epsilon, DELTA, 1.0, 1.0)
        for epsilon in (1.0, 2.0, 3.0)
    }


@pytest.fixture(scope="module")
def laplace() -> Choice:
    return paper.algorithm2(LaplaceKernel, 1.0, DELTA, 1.0, 1.0)


def test_br1_theorem_1_is_no_law_of_a_loss(gaussian: dict[float, Choice]) -> None:
    law = gaussian[2.0].law
    weight = paper.crossing_mass(law.kernel, -1.0, 1.0, 1.0)
    # under the printed law, from E exp(-Z) = 1 for the kernel
    assert (1 - weight) + weight * (1 - law.rate) == pytest.approx(0.9224, abs=5e-5)
    marks = (-40.0, -1.0, 0.0, 1.0, 2.0, 40.0)

    def shifted(low: float, high: float) -> float:
        """Return the chance that the noise is in the interval, inside for the value and outside for
        its neighbour."""
        return integrate.quad(lambda n: math.exp(law.log_density(n)), low, high)[0]

    assert (
        shifted(-1.0, 0.0)
        == pytest.approx(law.normaliser * weight, rel=1e-6)
        == pytest.approx(0.2331, abs=5e-5)
    )
    unit = math.fsum(
        integrate.quad(lambda n: math.exp(law.log_density(n - 1.0)), a, b)[0]  # f times exp(-loss)
        for a, b in itertools.pairwise(marks)
    )
    assert unit == pytest.approx(1, abs=1e-7)


def test_br2_algorithm_1_does_not_keep_delta(laplace: Choice) -> None:
    wide = paper.algorithm2(LaplaceKernel, 4.0, DELTA, 1.0, 5.0)
    large = paper.algorithm2(GaussianKernel, 1.0, DELTA, 1.0, 1e4)
    for choice, times in ((laplace, 2.00), (wide, 4.09), (large, 1e5)):
        assert choice.kind == "paper"
        assert choice.true_delta / DELTA == pytest.approx(times, rel=2e-3)
        assert float(paper.theorem1_delta(choice.law, choice.epsilon)) <= DELTA * (1 + 1e-6)
    assert true_delta(recycled(GaussianKernel(10.0), 0.5, 30.0), 0.5) / DELTA == pytest.approx(
        11.3, abs=0.05
    )


def test_br3_gaussian_recyclers_are_far_too_cautious(gaussian: dict[float, Choice]) -> None:
    assert gaussian[1.0].true_delta / DELTA == pytest.approx(0.19, abs=0.005)
    assert gaussian[3.0].true_delta / DELTA == pytest.approx(1.8e-16, rel=0.02)
    for epsilon, stated, best in ((1.0, 0.232, 0.396), (3.0, 0.704, 0.912)):
        assert gaussian[epsilon].acceptance == pytest.approx(stated, abs=5e-4)
        assert best_recycler(GaussianKernel, epsilon, DELTA, 1.0, 1.0).acceptance == pytest.approx(
            best, abs=1e-3
        )
    assert best_recycler(GaussianKernel, 2.9, DELTA, 1.0, 1.0).acceptance > 0.9
    low, high = (
        paper.algorithm2(GaussianKernel, epsilon, DELTA, 1.0, 1.0).acceptance
        for epsilon in (4.32, 4.34)
    )
    assert low < 0.9 < high


@pytest.mark.parametrize(
    ("split", "rate", "bound", "times"),
    [(0.5, 0.99, 0.1, 1.410), (0.05, paper.baseline_rate(10.05, 0.05), 0.016, 1.863)],
)
def test_br4_theorem_2_needs_a_pure_kernel(
    split: float, rate: float, bound: float, times: float
) -> None:
    law = Recycled.within(LaplaceKernel.calibrated(split, 0.1, 1.0), rate, bound, 1.0)
    delta = true_delta(law, split - math.log1p(-rate))
    assert delta / 0.1 == pytest.approx(times, abs=0.001)
    # the released density is at most c k, and at least c (1 - q) k' for the neighbour: what is
    # proved has the factor c
    assert delta <= law.normaliser * 0.1


def test_br5_the_printed_objective_prefers_no_recycling(gaussian: dict[float, Choice]) -> None:
    law = gaussian[2.0].law
    assert 1 / paper.mean_trials(law) == pytest.approx(law.acceptance, rel=1e-12)
    alone = Recycled.within(law.kernel, 0.0, 1.0, 1.0)
    assert paper.mean_trials(alone, "printed") == 1 < paper.mean_trials(law, "printed")
    printed = paper.algorithm2(GaussianKernel, 1.0, DELTA, 1.0, 1.0, "printed")
    assert printed.acceptance == pytest.approx(
        plain_noise(GaussianKernel, 1.0, DELTA, 1.0, 1.0).acceptance, rel=1e-4
    )


def test_br6_recycled_laplace_noise_gains_nothing_there(laplace: Choice) -> None:
    for epsilon, ratio in ((0.5, 0.2), (1.0, 0.7), (3.0, 1.0), (6.0, 2.0)):
        assert laplace_split(epsilon, ratio, 1.0) == epsilon
    assert laplace_split(4.0, 0.5, 1.0) == pytest.approx(2 * math.log(2))
    gain = laplace.acceptance - plain_noise(LaplaceKernel, 1.0, DELTA, 1.0, 1.0).acceptance
    assert 0 < gain < 2 * DELTA


def test_br7_composition_is_not_tight(gaussian: dict[float, Choice]) -> None:
    law, alone = gaussian[1.0].law, plain_noise(GaussianKernel, 1.0, DELTA, 1.0, 1.0).law
    stated = {
        times: [paper.theorem3_epsilon(one, times, DELTA) for one in (law, alone)]
        for times in (2, 5, 50)
    }
    assert stated[2][0] < stated[2][1]
    assert all(stated[times][0] > stated[times][1] for times in (5, 50))
    assert stated[50] == pytest.approx([9.826, 9.359], abs=1e-3)
    at = {
        times: [account(one, times, delta=DELTA, width=0.005) for one in (law, alone)]
        for times in (50, 100)
    }
    assert at[50][0].upper < at[50][1].lower and at[100][0].lower > at[100][1].upper
    best = best_recycler(GaussianKernel, 1.0, DELTA, 1.0, 1.0).law
    ends = [account(best, times, delta=DELTA, width=0.01).upper for times in (10, 100)]
    assert ends == pytest.approx([7.84, 36.5], abs=0.05)


def test_br8_algorithm_3_drops_a_term(gaussian: dict[float, Choice]) -> None:
    law = gaussian[1.0].law
    for times, share in ((1, 0.176), (2, 0.686), (10, 1.0)):
        at = paper.theorem3_epsilon(law, times, DELTA)
        printed, whole = (paper.theorem3_delta(law, times, first=first)(at) for first in (1, 0))
        assert printed / whole == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(
    "query", [Count.of_share(1000, 0.1), Average(1000, 1000.0, 100.0), Total(1000, 1.0, 0.5)]
)
def test_br9_sampling_gains_by_a_sensitivity_that_is_too_small(query: Query) -> None:
    choice = queries.algorithm4(
        query, 0.1, DELTA, 3.0, 1.0, sensitivity="scaled", objective="convolution"
    )
    assert choice.sampling_rate == 1
    if query.name == "cnt":
        stated = queries.algorithm4(query, 0.1, DELTA, 3.0, 1.0)
        assert stated.sampling_rate == pytest.approx(0.323, abs=1e-3)
        assert (
            queries.sampled_delta(stated.law, stated.sampling_rate, 1 / stated.sampling_rate, 0.1)
            > 5e-3
        )


def test_br10_the_recycler_sees_the_noise_alone() -> None:
    error = Count.of_share(1000, 0.1).sampling_sd(0.2)
    law = paper.algorithm2(GaussianKernel, *queries.inner_budget(0.1, DELTA, 0.2), 3.0, 1.0).law

    def printed(rate: float, sd: float, *, swapped: bool) -> float:
        return float(queries.printed_acceptance(law.kernel.scale, rate, sd, 3.0, swapped=swapped))

    assert [printed(law.rate, error, swapped=flag) for flag in (False, True)] == pytest.approx(
        [0.588, 0.127], abs=5e-4
    )
    assert queries.total_acceptance(law, error, 3.0) == pytest.approx(0.1171, abs=1e-4)
    assert printed(1.0, 1e6, swapped=True) == 1
    # without sampling error the mended form is right
    assert printed(law.rate, 0.0, swapped=True) == pytest.approx(law.acceptance)


def test_br11_the_printed_lap_brdp_accepts_less_than_laplace() -> None:
    best = paper.algorithm2(LaplaceKernel, 0.1, DELTA, 3.0, 1.0).law
    low = recycled(LaplaceKernel.calibrated(0.09, DELTA, 1.0), 0.1, 3.0)
    for delta, stated, met in ((1e-5, 18.6, 16.66), (1e-10, 24.89, 22.35)):
        assert paper.theorem3_epsilon(best, 1000, delta) == pytest.approx(stated, abs=0.01)
        assert paper.theorem3_epsilon(low, 1000, delta) == pytest.approx(met, abs=0.01)
    assert low.acceptance == pytest.approx(0.239, abs=5e-4)
    assert low.acceptance < plain_noise(LaplaceKernel, 0.1, DELTA, 3.0, 1.0).acceptance


def test_br12_the_second_set_is_outside_first() -> None:
    kernel = GaussianKernel(1.0)
    printed = kernel.mass(1.0, 1.5)
    assert kernel.mass(0.5, 1.0) > printed  # the mirror of the first set, inside the bounds
    # symmetric bounds: the first entry decides
    assert paper.crossing_mass(kernel, -1.0, 1.0, 0.5) == pytest.approx(
        kernel.mass(0.5, 1.0), rel=1e-12
    )


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 1.0])
def test_br13_step_6_needs_the_inverse(rate: float) -> None:
    inner = queries.inner_budget(0.1, DELTA, rate)
    assert inner[0] >= 0.1 >= queries.amplified(0.1, DELTA, rate)[0]
    assert queries.amplified(*inner, rate) == pytest.approx((0.1, DELTA), rel=1e-13)


def test_br14_an_optimum_without_privacy() -> None:
    kernel = GaussianKernel.calibrated(1e-15, DELTA, 1.0)
    wide = recycled(kernel, 1.0, 1.0)
    assert wide.rate == pytest.approx(1) and true_delta(wide, 1.0) > 0.4  # near D / (2 theta)
    assert true_delta(recycled(kernel, 1.0, 0.4), 1.0) == pytest.approx(1.0, abs=1e-3)


def test_br15_delta_is_not_monotone_in_the_rate() -> None:
    kernel = GaussianKernel.calibrated(1.05, DELTA, 1.0)
    found = [true_delta(Recycled.within(kernel, rate, 1.0, 1.0), 1.0) for rate in (0.0, 0.55, 0.7)]
    assert found == pytest.approx([2.03e-5, 1.6e-5, 0.0597], rel=0.01)
    assert found[1] < found[0] < found[2]


def test_br16_poisson_samples_need_the_second_moment() -> None:
    rng, spread = np.random.default_rng(11), 683 / math.sqrt(2000 * 0.7 / 0.3)
    values = np.where(np.arange(2000) % 2 == 0, 50 + spread, 50 - spread)
    assert Total(2000, 100.0, float(values.std())).stated_sampling_sd(0.3) == pytest.approx(683)
    moment = math.sqrt((values**2).sum() * 0.7 / 0.3)
    assert moment == pytest.approx(3484, rel=0.02)
    drawn = ((rng.random((400, 2000)) < 0.3) * values).sum(axis=1) / 0.3
    assert drawn.std() == pytest.approx(moment, rel=0.15)


def test_br17_the_number_of_draws_is_geometric(gaussian: dict[float, Choice]) -> None:
    law, count = gaussian[2.0].law, np.arange(1, 400)
    again = law.rate * law.outside
    assert (again ** (count - 1)).sum() * (1 - again) == pytest.approx(1, abs=1e-12)
    assert 1 - again == pytest.approx(1 / law.normaliser)
    # as printed in Appendix A, with (1 - q)^k in place of (1 - q) q^k
    printed = ((1 - law.rate) ** (count - 1) * law.outside ** (count - 1)).sum() / law.normaliser
    assert abs(printed - 1) > 0.1


def test_br18_captions_of_figures_7_and_8() -> None:
    assert round(22 / 0.0017) == 12941 and round(12 / 0.0012) == 10000
    assert Average(1000, 22.0, 1.0).sensitivity() == pytest.approx(0.022)
    assert 1.0 / plain_noise(
        GaussianKernel, 0.05, DELTA, 1.0, 0.0017
    ).law.kernel.scale == pytest.approx(10.2, abs=0.1)


def test_br19_table_1_by_our_defaults() -> None:
    settings = settings_of("brdp_table1")
    budget = (settings["epsilon"], settings["query_delta"], 3.0, 1.0)
    plain, laplace = (
        plain_noise(family, *budget).law for family in (GaussianKernel, LaplaceKernel)
    )
    epsilon = paper.theorem3_epsilon(plain, 1000, 1e-5)
    assert epsilon == pytest.approx(4.5216, abs=1e-3) and 0.94 < epsilon / 4.77 < 0.95
    best = paper.algorithm2(GaussianKernel, *budget).law
    deltas = (1e-5, 1e-10)
    assert [paper.theorem3_epsilon(best, 1000, delta) for delta in deltas] == pytest.approx(
        [4.779, 6.997], abs=1e-3
    )
    for conversion, values in (("balle2020", [18.58, 24.87]), ("mironov", [19.69, 25.78])):
        ends = [
            paper.theorem3_epsilon(laplace, 1000, delta, conversion=conversion) for delta in deltas
        ]
        assert ends == pytest.approx(values, abs=0.01)


def test_br20_the_increase_is_small() -> None:
    for epsilon, bound, span, low, high, other in (
        (0.5, 5.0, 22.0, 0.0258, 0.0283, 0.1074),
        (0.1, 3.0, 1.0, 0.0777, 0.0786, 0.2592),
    ):
        assert plain_noise(GaussianKernel, epsilon, DELTA, bound, span).acceptance == pytest.approx(
            low, abs=5e-5
        )
        assert paper.algorithm2(
            GaussianKernel, epsilon, DELTA, bound, span
        ).acceptance == pytest.approx(high, abs=5e-5)
        laplace = plain_noise(LaplaceKernel, epsilon, DELTA, bound, span).acceptance
        assert laplace == pytest.approx(other, abs=5e-5)
        assert 0.8 < laplace / ceiling(epsilon, DELTA, bound, span).upper <= 1


def test_br21_unstated_parameters_stand_in_the_configuration() -> None:
    assert settings_of("brdp_acceptance")["delta"] == DELTA
    low, high = (
        paper.algorithm2(GaussianKernel, epsilon, 1e-6, 1.0, 1.0).acceptance
        for epsilon in (4.51, 4.53)
    )
    assert low < 0.9 < high
    total = settings_of("brdp_sampling")["queries"][0]
    # no values in [0, clip] have that spread
    assert settings_of("brdp_sampling")["sigma_x"] > total["clip"] / 2


def test_br22_the_data() -> None:
    assert adult_gains.N_RECORDS == 45222 and gowalla.N_USERS // 1000 == 7

"""One test an erratum of Bun et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.amplification.survey import clusters, laws, rates, sizes, unequal
from dpsub.amplification.survey.auditor import audit
from dpsub.papers.bun.experiments import bounds
from dpsub.papers.bun.experiments.allocations import allocated, class_moments, with_one_more
from dpsub.sampling.allocation import rounded_sizes
from dpsub.sampling.designs import Systematic
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic
from tests.experiment_runs import settings_of

BEFORE = np.array(settings_of("bun_neyman")["before"])
AFTER = np.array(settings_of("bun_neyman")["after"])


def test_bn1_the_upper_bound_of_theorem_31_is_exceeded() -> None:
    n, epsilon = 4, 0.7
    law = sizes.log_sizes_of(np.eye(n + 1)[n])
    audited = audit(*laws.substituted({n: 1.0}, n), epsilon)
    assert sizes.random_size_upper(law, epsilon, factor=1) == pytest.approx(epsilon)
    assert audited.lower == pytest.approx(2 * epsilon, abs=1e-6)
    # the mechanism of the counterexample: a sum of +-1 with Laplace noise of scale 1/epsilon
    assert abs(n - (n - 2)) * epsilon == pytest.approx(
        sizes.random_size_upper(law, epsilon, factor=2)
    )
    # an epsilon-DP mechanism under both relations keeps the printed bound
    both = audit(*laws.substituted({n: 1.0}, n), epsilon, relation="both").loss
    assert both <= sizes.random_size_upper(law, epsilon, factor=1) + 1e-6


def test_bn2_the_example_of_section_24() -> None:
    found = [rates.amplified(0.01, 1.0), rates.amplified(0.01, 100.0), rates.base_for(0.01, 1.0)]
    assert found == pytest.approx([0.01703686, 95.39483, 5.152298], rel=5e-7)


def test_bn3_slack_and_relation_of_proposition_42() -> None:
    by_name = {case.statement: case for case in bounds.printed_numbers()}
    assert by_name["P4.2 variance"].exact == pytest.approx(2.0, abs=1e-9)
    assert by_name["P4.2 deletion"].stated > 80 > by_name["P4.2 deletion"].exact == 0
    assert sizes.two_point_error(1, 1e-4) * 1e-8 == pytest.approx(0.439229, abs=1e-6)
    assert sizes.error_floor(3.0, 1.0, noise=2) < sizes.error_floor(3.0, 1.0, noise=1)


def test_bn4_the_direction_of_theorem_53() -> None:
    case = bounds.presence(1.0)
    assert (case.stated, case.corrected, case.exact) == pytest.approx(
        (0.8137, 0.6201, 0.6201), abs=5e-5
    )


@pytest.mark.parametrize("members", [(1, 3, 2, 4), (5, 1, 1)])
def test_bn5_bn6_theorems_51_and_52_with_the_smaller_population(members: tuple[int, ...]) -> None:
    design = clusters.ClusterDesign(members, 1)
    audited = audit(*laws.cluster_laws(members, 1), 0.5)
    assert design.lower(0.5, 0) <= audited.loss and audited.lower <= design.upper(0.5, 0)
    # a replacement inside the cluster doubles the conditional loss and leaves these bounds
    law = laws.cluster_laws(members, 1)[1]
    p = {(*state[:-1], state[-1], 0): chance for state, chance in law.items()}
    q = {(*state[:-1], 0, state[-1]): chance for state, chance in law.items()}
    assert audit(p, q, 0.5).lower > design.upper(0.5, 0)


def test_bn7_lemma_b1_needs_deletion_and_case_2_a_factor() -> None:
    p, q = laws.added({2: 1.0}, {3: 1.0}, 6)
    assert audit(p, q, 0.5, relation="substitute").loss == math.inf
    assert audit(p, q, 0.5).loss <= sizes.rounding_coupled(2, 3, 6, 0.5) + 1e-6
    case = bounds.larger_sample(1.0)
    assert case.corrected is not None and case.stated < case.exact <= case.corrected + 1e-6
    tiny = 1e-5
    constant = max(
        sizes.rounding_exact_at("1/10", tiny, n, "randomised") for n in range(10, 60)
    ) / (0.1 * tiny)
    assert constant < 2.8 < sizes.rounding_printed("1/10", tiny) / (0.1 * tiny)


def test_bn8_lambda_is_not_epsilon_over_6_r() -> None:
    assert sizes.rounding_base("0.01", 1.0) == pytest.approx(1.9059, abs=5e-5)
    assert sizes.rounding_printed("0.01", 1 / 0.06) == pytest.approx(58.15, abs=5e-3)
    # it is right far below the rate
    assert sizes.rounding_base("0.1", 1e-5) == pytest.approx(1e-5 / 0.6, rel=1e-3)


def test_bn9_the_allocations_of_appendix_e1() -> None:
    assert (BEFORE.sum(), AFTER.sum()) == (10004, 10005)
    assert np.abs(AFTER - BEFORE).sum() == 37 and AFTER[-1] - BEFORE[-1] == 19
    growth = (AFTER[-1] / AFTER[:-1].sum()) / (BEFORE[-1] / BEFORE[:-1].sum())
    assert growth == pytest.approx(1.08644, abs=5e-6)
    # (1 + (d/sigma)^2)/N = growth^2 - 1 with N of at least 244: the classes would have to be piled
    # up
    assert math.sqrt((growth**2 - 1) * 244 - 1) == pytest.approx(6.56, abs=5e-3)
    for filling in ("uniform", "log_uniform", "vertex"):
        mean, variance = class_moments(5000, 10000, filling)
        _, _, grown = with_one_more(600, mean, variance, 10000.0, 1)
        assert (601 / 600) * math.sqrt(grown / variance) < 1.01
    assert sum(allocated(BEFORE.tolist(), [10000] * 12, 10000, "consistent")) == 10000


def test_bn10_the_law_of_sizes_includes_0() -> None:
    law = sizes.log_sizes_of(np.array([0.5, 0.0, 0.5]))
    assert sizes.tilted_mean(law, 1.0) == pytest.approx(2 * math.e**2 / (1 + math.e**2))


def test_bn11_a_replacement_across_strata_adds_two_losses() -> None:
    one, more = (rounded_sizes("1/3", size, "randomised") for size in (3, 4))
    without, holding = laws.added(one, more, 3)
    p = {(*a, *b): x * y for a, x in holding.items() for b, y in without.items()}
    q = {(*a, *b): x * y for a, x in without.items() for b, y in holding.items()}
    single = sizes.rounding_exact(one, more, 3, 0.5)
    assert single + 1e-3 < audit(p, q, 0.5).lower <= 2 * single


def test_bn12_weights_from_stratum_sizes_give_these_away() -> None:
    # |P_i|/|S_i| with one record sampled of 4 or of 5: the weight alone tells the two populations
    # apart
    assert audit({(4,): 1.0}, {(5,): 1.0}, 0.5, relation="substitute").loss == math.inf


def test_bn13_a_count_loses_less_than_the_worst_mechanism() -> None:
    worst = audit(*laws.substituted({2: 0.5, 4: 0.5}, 6), 0.5).lower
    count = audit({(2,): 0.5, (4,): 0.5}, {(2,): 0.5, (4,): 0.5}, 0.5).loss
    assert count == pytest.approx(0, abs=1e-6) and worst > 0.3


def test_bn14_pps_of_one_cluster_loses_more_than_epsilon() -> None:
    found = [unequal.pps_cluster(members, 0, 0.5) for members in ((1, 9), (1, 3), (2, 2))]
    assert found == pytest.approx([1.0572, 0.745368, 0.608672], abs=5e-5)


def test_bn15_insertion_under_systematic_sampling() -> None:
    for n, times in ((4, 2.56), (8, 4.56), (12, 6.56)):
        assert audit(*laws.inserted(n, n // 2), 0.5).loss / 0.5 == pytest.approx(times, abs=5e-3)


def test_bn16_equal_sizes_are_simple_random_sampling_for_some_methods_only() -> None:
    frame, simple = Frame(4, sizes=np.ones(4)), Systematic(2, "random").law(Frame(4))
    assert PpsConditionalPoisson(2).law(frame) == pytest.approx(simple)
    assert set(PpsSystematic(2).law(frame)) < set(simple)

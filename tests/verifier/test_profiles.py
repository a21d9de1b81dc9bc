"""Bounds of the verifier, in balls, against quadrature and brute force in floating point."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from balls import ONE, ZERO, Refuted, set_precision
from flint import arb
from groups import drawn_by_coins, farthest, least, theorem_36, theorem_37, theorem_38
from multiplicity import Counts, Stage, binomial, chain_counts, cut_sample, stages_of
from question import Release
from scipy import stats
from theorems import (
    Branches,
    Case,
    against_origin,
    laplace_mirror,
    laplace_origin,
    laplace_zero_out,
    pair,
    reflected,
    revealed,
    shifted,
    zero_out_pairs,
)
from zeroed import with_record, zeroed_bounds

from dpsub.accounting.schemes.chains.zeroed import ZeroedProfile
from dpsub.sampling.base import Chain, WithoutReplacement, WithReplacement
from profiles import Groups, Order, gaussian, laplace
from tests.few import few

NEGLIGIBLE = arb(10) ** -30
LOSSES = (0.0, 1e-6, 0.03, 0.4, 1.7)
T = np.linspace(-40, 40, 640_001)


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-5)


def order(loss):
    return Order(arb(loss).expm1())


def divergence(P, Q, loss, density=stats.norm.pdf):
    """Return H_a of two mixtures, given as (weight, centre), by the trapezoidal rule."""
    p, q = (sum(float(w) * density(T - float(x)) for w, x in mixture) for mixture in (P, Q))
    return np.trapezoid(np.maximum(p - np.exp(loss) * q, 0), T)


def close(ball, value):
    assert float(ball.rad()) < 1e-25
    assert float(ball.mid()) == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("loss", few(LOSSES, most=2))
def test_pairs_of_shifted_noise(loss):
    for q in (0.01, 0.5, 1.0):
        counts = Counts([ONE - arb(q), arb(q)], ZERO)
        P = shifted(counts, ONE / 2)
        forward, backward = against_origin(counts, ONE / 2)
        close(forward(order(loss), ZERO), divergence(P, [(1, 0)], loss))
        close(backward(order(loss), ZERO), divergence([(1, 0)], P, loss))
        close(pair(P, reflected(P))(order(loss), ZERO), divergence(P, reflected(P), loss))
        close(gaussian(order(loss), arb(3)), divergence([(1, 3)], [(1, 0)], loss))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_record_put_to_zero(loss):
    q, s = 0.2, 1.25
    stay, one, two = (1 - q, 0), (q, 1 / s), (q, 2 / s)
    forward, backward = zero_out_pairs(arb(q), arb(s))
    close(forward(order(loss), ZERO), divergence([stay, two], [stay, one], loss))
    close(backward(order(loss), ZERO), divergence([stay, one], [(1, 0)], loss))


@pytest.mark.parametrize("loss", LOSSES)
def test_laplace(loss):
    d = 0.8
    for q in (0.05, 0.6):
        P = [(1 - q, 0), (q, d)]
        forward, backward = laplace_origin(arb(q), arb(d))
        close(forward(order(loss), ZERO), divergence(P, [(1, 0)], loss, stats.laplace.pdf))
        close(backward(order(loss), ZERO), divergence([(1, 0)], P, loss, stats.laplace.pdf))
        mirrored = [(w, -x) for w, x in P]
        close(
            laplace_mirror(arb(q), arb(d))(order(loss), ZERO),
            divergence(P, mirrored, loss, stats.laplace.pdf),
        )
    close(laplace(order(loss), arb(d)), divergence([(1, d)], [(1, 0)], loss, stats.laplace.pdf))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_record_put_to_zero_under_laplace_noise(loss):
    d = 0.8
    for q in (0.05, 0.6, 1.0):
        near, far = [(1 - q, 0), (q, d)], [(1 - q, 0), (q, 2 * d)]
        forward, backward = laplace_zero_out(arb(q), arb(d))
        close(forward(order(loss), ZERO), divergence(far, near, loss, stats.laplace.pdf))
        close(backward(order(loss), ZERO), divergence(near, [(1, 0)], loss, stats.laplace.pdf))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_half_line_of_one_number_of_draws(loss):
    c = np.linspace(-10, 25, 700_001)
    for others, distance in ((0.0, 0.5), (0.3, 0.5), (4.0, 1.5)):
        values = stats.norm.sf(c - 2 * distance) - np.exp(loss) * stats.norm.sf(c - distance)
        truth = (values - others * stats.norm.sf(c)).max()
        found = with_record(order(loss), arb(others), arb(distance))
        close(found, max(truth, 0.0))


def bounds_of_47(stages, n, s):
    return zeroed_bounds(stages, n, arb(s), NEGLIGIBLE)[:2]


@pytest.mark.parametrize("loss", (0.0, 0.01, 0.3))
def test_several_draws_of_one_stage_are_attained(loss):
    """The bound equals the value that fillers at -1 attain where all charges are above 0, and it is
    never less."""
    n, m, s = 6, 3, 1.5
    p = stats.binom.pmf(range(m + 1), m, 1 / n)
    near, far = ([(w, k * hits / s) for hits, w in enumerate(p)] for k in (1, 2))
    forward, backward = bounds_of_47([Stage("with", m)], n, s)
    for bound, pairs in ((forward, (far, near)), (backward, (near, [(1, 0)]))):
        truth = divergence(*pairs, loss)
        assert truth - 1e-9 <= float(bound(order(loss), ZERO).upper())
    # without charges to share there is one supremum for each number of draws
    sharp = float(backward(order(loss), ZERO).mid())
    alone = sum(p[hits] * divergence([(1, hits / s)], [(1, 0)], loss) for hits in range(1, m + 1))
    if loss == 0.3:
        assert sharp < alone * (1 - 1e-3)
        assert sharp == pytest.approx(divergence(near, [(1, 0)], loss), rel=1e-5)
    if loss == 0:
        assert sharp == pytest.approx(alone, rel=1e-6)


WRITTEN = {"with": WithReplacement, "without": WithoutReplacement}
CHAINS = [
    ("wr", [Stage("with", 4)], 5),
    ("must_ow", [Stage("without", 3), Stage("with", 4)], 6),
    ("must_ww", [Stage("with", 3), Stage("with", 2)], 6),
    ("three stages", [Stage("with", 4), Stage("with", 3), Stage("with", 2)], 5),
]


@pytest.mark.parametrize(("stages", "n"), few([row[1:] for row in CHAINS], most=3))
def test_no_data_sets_lie_above_theorem_47(stages, n):
    """Fillers lie at several places; the bound is also compared with that of the package, whose
    charges are its own."""
    s = 1.25
    forward, backward = bounds_of_47(stages, n, s)
    counts = [float(p) for p in chain_counts(stages, n, 1, NEGLIGIBLE).probabilities]
    for loss in (0.0, 0.4):
        values = [float(bound(order(loss), ZERO).upper()) for bound in (forward, backward)]
        for filler in (-1.0, 0.7, 1.0):
            laws = [
                [(w, hits * (record - filler) / s) for hits, w in enumerate(counts)]
                for record in (1.0, 0.0)
            ]
            for value, pairs in zip(values, (laws, laws[::-1]), strict=True):
                assert divergence(*pairs, loss) <= value + 1e-8
        chain = Chain(n, tuple(WRITTEN[stage.kind](stage.size) for stage in stages))
        for removed, value in enumerate(values):
            other = ZeroedProfile(chain, s, removed=bool(removed))(np.array([loss]))[0]
            assert other * (1 - 2e-3) - 1e-12 <= value <= other * (1 + 1e-9)


def test_charges_of_theorem_47_use_up_their_budget():
    s, stages = 1.5, [Stage("with", 3), Stage("with", 4)]
    bound = zeroed_bounds(stages, 5, arb(s), NEGLIGIBLE)[0]
    for loss in (1e-9, 0.3, 2.0, 30.0):
        at = order(loss)
        for way, threshold in zip(bound.found, bound.thresholds, strict=True):
            charges = bound._charges(at, way, threshold)
            paid = sum((p * tau for (_, p), tau in zip(way.rows, charges, strict=True)), ZERO)
            budget = at.u / way.reached * way.counts.probabilities[0]
            assert all(tau >= 0 for tau in charges)
            assert abs(paid - budget) <= budget * arb(2) ** -60


def group_supremum(p, s, loss):
    """Return h_p of Theorem 4, on a fine grid of c."""
    a, c = np.exp(loss), np.linspace(-15, 35, 400_001) * s
    total = p[0] * (1 - a) * stats.norm.sf(c / s)
    for hits in range(1, len(p)):
        z = np.clip(s * s * loss / (2 * hits), c - hits, c + hits)
        total += p[hits] * (stats.norm.cdf((hits - z) / s) - a * stats.norm.cdf((-hits - z) / s))
    return total.max()


@pytest.mark.parametrize("loss", few(LOSSES, most=5))
@pytest.mark.parametrize(
    ("draws", "rate", "s"),
    few([(2, 0.25, 1.0), (3, 0.5, 4.0), (5, 0.4, 0.7), (20, 0.01, 2.0)], most=2),
)
def test_the_group_lemma(draws, rate, s, loss):
    p = stats.binom.pmf(range(draws + 1), draws, rate)
    groups = Groups(binomial(draws, Fraction(rate), NEGLIGIBLE), arb(s))
    eta = 1 - p[0]
    lifted = np.log1p(np.expm1(loss) / eta)
    t = sum(
        p[hits] * divergence([(1, 2 * hits / s)], [(1, 0)], lifted) for hits in range(1, draws + 1)
    )
    truth = min(t, group_supremum(p, s, loss))
    bound = float(groups(order(loss), ZERO).upper())
    assert truth - 1e-9 <= bound <= truth + 1e-8


def test_the_group_lemma_is_no_sharper_than_asked():
    groups = Groups(binomial(5, Fraction(2, 5), NEGLIGIBLE), arb(0.7))
    sharp = groups(order(0.4), ZERO)
    assert groups(order(0.4), arb(0.9)) <= 0.9
    assert groups(order(0.4), arb(0.9)) >= sharp


def test_chains_of_stages():
    """Theorem 6 for two stages with replacement is compared with its sum, written out."""
    n, b, m, s, loss = 6, 3, 2, 1.0, 0.3
    stages = stages_of({"name": "must_ww", "b": b, "m": m})
    eta = 1 - (1 - 1 / n) ** b
    inner = np.log1p(np.expm1(loss) / eta)
    total = 0.0
    for i in range(1, b + 1):
        p = stats.binom.pmf(range(m + 1), m, i / b)
        counts = binomial(m, Fraction(i, b), NEGLIGIBLE)
        total += stats.binom.pmf(i, b, 1 / n) * float(
            Groups(counts, arb(s))(order(inner), ZERO).mid()
        )
        assert sum(map(float, counts.probabilities)) == pytest.approx(1)
        np.testing.assert_allclose([float(x) for x in counts.probabilities], p, rtol=1e-12)
    bound = revealed(stages, n, 1, arb(s), NEGLIGIBLE)
    assert float(bound(order(loss), ZERO).upper()) == pytest.approx(total, rel=1e-12)


def test_counts_by_enumeration():
    """All samples of a chain of three stages are counted."""
    n, sizes = 3, (2, 3, 2)
    stages = [Stage("with", sizes[0]), Stage("with", sizes[1]), Stage("with", sizes[2])]
    law = {1: Fraction(1)}  # how many of the current slots hold the record; at first one of n
    slots = n
    for size in sizes:
        after: dict[int, Fraction] = {}
        for marked, chance in law.items():
            q = Fraction(marked, slots)
            for hits in range(size + 1):
                weight = chance * comb(size, hits) * q**hits * (1 - q) ** (size - hits)
                after[hits] = after.get(hits, Fraction(0)) + weight
        law, slots = after, size
    counts = chain_counts(stages, n, 1, NEGLIGIBLE)
    for hits, chance in law.items():
        assert float(counts.probabilities[hits]) == pytest.approx(float(chance), rel=1e-14)


@pytest.mark.parametrize("negligible", [1e-2, 1e-6])
def test_numbers_that_are_left_out_are_counted_as_such(negligible):
    """Numbers are left out of one stage, and of all stages of a chain."""
    stages = [Stage("with", 9), Stage("with", 7), Stage("with", 12)]
    for counts in (
        binomial(30, Fraction(1, 4), arb(negligible)),
        chain_counts(stages, 6, 1, arb(negligible)),
        chain_counts([Stage("without", 4), *stages[1:]], 6, 2, arb(negligible)),
    ):
        assert 0 < counts.rest < 40 * negligible
        assert sum(counts.probabilities, counts.rest) >= 1 - arb(10) ** -30


def test_numbers_that_are_left_out_are_a_branch():
    """They are a branch of the sharp bound and of the cheap one, whatever the lifted order is."""
    stages, coarse = [Stage("with", 9), Stage("with", 7)], arb("0.001")
    left_out = binomial(9, Fraction(1, 6), coarse).rest
    assert left_out > 0 and revealed(stages, 6, 1, arb(1), coarse).rest == left_out
    nothing = Branches([], ONE / 2, left_out)
    assert nothing(order(0.3), ZERO) == nothing.t(order(0.3), ZERO) == left_out


@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "stages",
    [
        [Stage("with", 9)],
        [Stage("with", 9), Stage("with", 7)],
        [Stage("without", 4), Stage("with", 7)],
        [Stage("with", 9), Stage("poisson", rate=Fraction(1, 3))],
    ],
    ids=str,
)
def test_numbers_that_are_left_out_lower_no_bound(stages, loss):
    exact = chain_counts(stages, 6, 1, ZERO)
    coarse = chain_counts(stages, 6, 1, arb("0.001"))
    assert coarse.rest > 0 and exact.rest == 0
    for less, all_of_it in (
        (revealed(stages, 6, 1, arb(1), arb("0.001")), revealed(stages, 6, 1, arb(1), ZERO)),
        *zip(against_origin(coarse, arb(2)), against_origin(exact, arb(2)), strict=True),
        (Groups(coarse, arb(1)), Groups(exact, arb(1))),
    ):
        found, truth = less(order(loss), ZERO), all_of_it(order(loss), ZERO)
        assert truth.lower() <= found.upper() < truth + 0.05


def test_merged_stages():
    chain = [
        {"kind": "with", "size": 5},
        {"kind": "without", "size": 3},
        {"kind": "without", "size": 2},
    ]
    assert stages_of({"name": "multistage", "chain": chain}) == [Stage("with", 2)]
    as_the_samplers = [{"kind": "wor", "size": 5}, {"kind": "wr", "size": 3}]
    merged = stages_of({"name": "multistage", "chain": as_the_samplers})
    assert merged == [Stage("without", 5), Stage("with", 3)]
    assert stages_of({"name": "must_oo", "b": 5, "m": 3}) == [Stage("without", 3)]


def test_cut_samples_by_enumeration():
    others, q, most = 5, Fraction(1, 4), 3
    phi, kept, _ = cut_sample(others, q, most, NEGLIGIBLE)
    law = {k: comb(others, k) * q**k * (1 - q) ** (others - k) for k in range(others + 1)}
    assert float(phi) == pytest.approx(
        float(sum(p for k, p in law.items() if k >= most)), rel=1e-14
    )
    chance = sum(p * q * Fraction(most, k + 1) for k, p in law.items() if k >= most)
    assert float(kept) == pytest.approx(float(chance), rel=1e-14)


# --- Groups ---------------------------------------------------------------------------------------


def case_of(sampler, group, adjacency, n=None, *, is_laplace=False):
    release = Release(sampler, n, arb(1.5), 1, laplace=is_laplace, group=group)
    return Case(release, adjacency, "forward", {}, None, NEGLIGIBLE)


@pytest.mark.parametrize(
    ("group", "adjacency", "added", "removed"),
    [
        ((2, 1), "add_remove", 2, 1),
        ((3, 2), "add_remove", 3, 2),
        (2, "substitute", 2, 2),
        (2, "add_remove", 2, 0),
        (2, "zero_out", 2, 0),
    ],
)
def test_groups_drawn_by_coins(group, adjacency, added, removed):
    """The pair is the sum of the records that D alone has against the sum of those that D' alone
    has; both orders of it, where they are unlike."""
    rate = Fraction(1, 4)
    case = case_of({"name": "poisson", "rate": 0.25}, group, adjacency)
    bounds = drawn_by_coins(case, rate)
    P = [(stats.binom.pmf(j, added, 0.25), j / 1.5) for j in range(added + 1)]
    Q = [(stats.binom.pmf(j, removed, 0.25), -j / 1.5) for j in range(removed + 1)]
    assert (bounds[1] is None) == (adjacency == "substitute")
    for bound, first, second in zip(bounds, (P, Q), (Q, P), strict=True):
        for loss in LOSSES if bound else ():
            exact = divergence(first, second, loss)
            assert float(bound(order(loss), ZERO)) == pytest.approx(exact, rel=1e-6, abs=1e-9)


def test_the_farthest_that_a_group_moves_a_schedule():
    for m, group, length in ((2, 5, 3.0), (3, 3, 3.0), (None, 4, 4.0), (5, 2, 2.0)):
        for adjacency, distance in (("substitute", 2), ("add_remove", 1), ("zero_out", 1)):
            case = case_of({"name": "deterministic", "m": m}, group, adjacency, 9)
            assert float(farthest(case)) == pytest.approx(distance * length / 1.5)
    with pytest.raises(Refuted, match="not mixed"):
        farthest(case_of({"name": "deterministic", "m": 2}, (2, 1), "add_remove", 9))


@pytest.mark.parametrize(
    ("theorem", "sampler", "adjacency", "is_laplace"),
    [
        (theorem_36, {"name": "wor", "m": 2}, "zero_out", False),
        (theorem_36, {"name": "wor", "m": 2}, "substitute", True),
        (theorem_37, {"name": "wor", "m": 2}, "substitute", False),
        (theorem_37, {"name": "wor", "m": 2}, "add_remove", True),
        (theorem_37, {"name": "poisson", "rate": 0.5}, "add_remove", False),
        (theorem_38, {"name": "wor", "m": 2}, "substitute", False),
        (theorem_38, {"name": "wor", "m": 2}, "zero_out", True),
        (theorem_38, {"name": "wr", "m": 2}, "zero_out", False),
        (theorem_38, {"name": "must_ow", "b": 3, "m": 2}, "zero_out", False),
    ],
)
def test_theorems_of_groups_keep_to_their_samplers(theorem, sampler, adjacency, is_laplace):
    with pytest.raises(Refuted, match="needs"):
        theorem(case_of(sampler, 2, adjacency, 9, is_laplace=is_laplace))


def test_the_second_bound_is_asked_where_the_first_is_not_enough():
    both = least(lambda order, enough: arb(2), lambda order, enough: arb(1))
    assert both(order(0.1), arb(1.5)) == 1
    assert both(order(0.1), arb(2.5)) == 2

"""Amplification: Table 2 computed in a second way, inversion, categories; typed bounds and the
translator between relations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpsub import noise, sampling
from dpsub.amplification import (
    Bound,
    DeclaredProfile,
    amplified_epsilon,
    amplify,
    base_epsilon,
    category,
    theorem_14,
    translate,
)
from dpsub.amplification.bounds import pure_epsilon
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise import (
    BlackBoxGroups,
    ConstantGroups,
    GaussianProfile,
    PointGuarantee,
    Profile,
    RandomisedResponseProfile,
)
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw


def test_certain_inclusion_changes_nothing() -> None:
    law, epsilon = MultiplicityLaw(np.array([-np.inf, 0.0])), np.linspace(0, 6, 601)
    result = amplify(law, GaussianProfile(1.0), epsilon)
    np.testing.assert_array_equal(result.epsilon_amplified, epsilon)
    np.testing.assert_array_equal(result.log_delta_amplified, result.log_delta)
    np.testing.assert_array_equal(base_epsilon(epsilon, 1.0), epsilon)


def test_deep_tails_stay_finite_in_log_space() -> None:
    law = MultiplicityLaw.single(1e-3)
    result = amplify(law, GaussianProfile(0.1), 20.0)
    assert float(result.delta_amplified) == 0.0
    assert float(result.log_delta_amplified) == pytest.approx(
        float(result.log_delta) + math.log(1e-3), rel=1e-14
    )


def test_rare_large_groups_are_not_dropped() -> None:
    """One copy gives a delta of 1e-73, so 50 copies with probability 1e-60 decide."""
    log_pmf = np.full(51, -np.inf)
    log_pmf[0], log_pmf[1], log_pmf[50] = math.log(0.9), math.log(0.1), math.log(1e-60)
    result = amplify(MultiplicityLaw(log_pmf), GaussianProfile(0.25), 4.5)
    expected = 1e-60 * float(GaussianProfile(12.5).delta(4.5))
    assert float(result.delta_amplified) == pytest.approx(expected, rel=1e-12)


def test_a_late_term_of_relative_size_1e_10_still_counts() -> None:
    # all counts possible, so that the last one is in a later block
    log_pmf = np.full(61, math.log(1e-30))
    log_pmf[0], log_pmf[1], log_pmf[60] = math.log(0.5), math.log(0.5), math.log(1e-10)
    profile = GaussianProfile(1.0)
    value = float(amplify(MultiplicityLaw(log_pmf), profile, 0.1).delta_amplified)
    late = float(profile.group(60).delta(0.1)) * 1e-10
    assert value - 0.5 * float(profile.delta(0.1)) == pytest.approx(late, rel=1e-5)


@pytest.mark.parametrize("mechanism", noise.REGISTRY.names())
def test_blocks_do_not_matter(mechanism: str) -> None:
    """Many orders (narrow blocks), one order (wide blocks) and one plain sum agree."""
    law = sampling.of_sizes("wr", n=1000, m=900).multiplicity_law(1000)
    profile, epsilon = noise.of(mechanism, 0.25), np.linspace(0, 6, 601)
    together = amplify(law, profile, epsilon).log_delta_amplified
    alone = np.array([float(amplify(law, profile, item).log_delta_amplified) for item in epsilon])
    np.testing.assert_allclose(together, alone, rtol=1e-14)
    occurrences = np.arange(1, law.log_pmf.size)
    for item, value in zip(epsilon[::100], together[::100], strict=True):
        terms = law.log_pmf[1:] + profile.group_log_delta(item, occurrences)
        assert value == pytest.approx(np.logaddexp.reduce(terms), rel=1e-13)


def test_large_epsilons_neither_overflow_nor_jump() -> None:
    around = amplified_epsilon(np.array([700 - 1e-9, 700 + 1e-9]), 1e-3)
    assert np.diff(around)[0] == pytest.approx(2e-9, rel=1e-3)
    assert float(amplified_epsilon(5000.0, 0.5)) == pytest.approx(5000 + math.log(0.5))
    assert float(base_epsilon(5000.0, 0.5)) == pytest.approx(5000 - math.log(0.5))
    lift = math.exp(730 + math.log(1e-320))
    assert float(amplified_epsilon(730.0, 1e-320)) == pytest.approx(math.log1p(lift), rel=1e-12)
    assert float(base_epsilon(1e-3, 1e-320)) == pytest.approx(
        math.log(math.expm1(1e-3)) - math.log(1e-320)
    )


CASES = [
    ((1.0, 0.1, 0.5, 0.05), "strong"),
    ((1.0, 0.1, 0.5, 0.1), "weak_type_1"),
    ((1.0, 0.1, 0.5, 0.2), "weak_type_1"),
    ((1.0, 0.0, 0.5, 0.2), "weak_type_1"),
    ((1.0, 0.1, 1.0, 0.05), "weak_type_2"),
    ((1.0, 0.1, 1.5, 0.05), "weak_type_2"),
    ((1.0, 0.1, 1.0, 0.1), "dilution"),
    ((1.0, 0.1, 2.0, 0.2), "dilution"),
    ((1.0, 0.0, 1.0, 0.0), "dilution"),
    ((1.0, 0.0, 0.5, 0.0), "boundary"),
]


@pytest.mark.parametrize(("point", "expected"), CASES)
def test_categories(point: tuple[float, float, float, float], expected: str) -> None:
    assert category(*point) == expected


R, S = Relation.ADD_REMOVE, Relation.SUBSTITUTE
TARGETS = [0, 0.05, 0.1, 0.2]
SINGLE = MultiplicityLaw.single(0.4)
LAPLACE, GAUSSIAN = noise.of("laplace", 1.0), noise.of("gaussian", 1.0)


def poisson(rate: float, base: Relation = R, target: Relation = R, n: int | None = None) -> Bound:
    return translate("poisson", base, target, rate=rate, n=n)


def wor(n: int, m: int) -> Bound:
    return translate("wor", S, S, n=n, m=m)


def wr(n: int, m: int, target: Relation = S) -> Bound:
    return translate("wr", S, target, n=n, m=m)


WOR, WR = wor(1000, 100), wr(1000, 100)


@pytest.mark.parametrize(
    ("bound", "profile", "values"),
    [
        (WOR, GAUSSIAN, (3.829249e-2, 2.614366e-2, 1.847193e-2, 9.889314e-3)),
        (WR, GAUSSIAN, (3.787573e-2, 2.613063e-2, 1.882460e-2, 1.073179e-2)),
        (WR, BlackBoxGroups(GAUSSIAN), (3.826870e-2, 2.660772e-2, 1.935942e-2, 1.133861e-2)),
        (WOR, LAPLACE, (3.934693e-2, 2.540139e-2, 1.312183e-2, 0)),
        (WR, LAPLACE, (3.859034e-2, 2.498119e-2, 1.307059e-2, 1.566856e-3)),
        (WR, ConstantGroups(LAPLACE), (3.746137e-2, 2.358085e-2, 1.143274e-2, 0)),
        (WR, BlackBoxGroups(LAPLACE), (3.931835e-2, 2.584499e-2, 1.398967e-2, 2.443132e-3)),
    ],
)
def test_reference_values(bound: Bound, profile: Profile, values: tuple[float, ...]) -> None:
    found = bound.delta(DeclaredProfile.of(profile, S), TARGETS)
    assert [f"{value:.6e}" for value in found] == [f"{value:.6e}" for value in values]  # all digits
    assert pytest.approx(0.095207853, abs=5e-10) == WR.eta


def test_edges_of_rates_and_sizes() -> None:
    both = DeclaredProfile.of(LAPLACE, R, S)
    for bound in (poisson(0), theorem_14(0, 5), poisson(0, S, S, 5), wr(5, 0), poisson(0, R, S)):
        np.testing.assert_array_equal(bound.delta(both, TARGETS), np.zeros(4))
    for bound in (poisson(1), theorem_14(1, 5), poisson(1, S, S, 5), wor(5, 5)):
        np.testing.assert_allclose(bound.delta(both, TARGETS), LAPLACE.delta(TARGETS), rtol=1e-14)
    full = poisson(1, R, S).delta(both, TARGETS)
    np.testing.assert_allclose(full, LAPLACE.group(2).delta(TARGETS), rtol=1e-12)


def theorem14(profile: Profile, rate: float, n: int, target: float) -> float:
    """Return Theorem 14, its printed formula term by term."""
    epsilon = math.log1p(math.expm1(target) / rate)
    beta = math.exp(target - epsilon)
    total = binom.pmf(n - 1, n - 1, rate)
    for k in range(1, n):
        order = epsilon + math.log(rate / (1 - rate) * (n / k - 1))
        total += binom.pmf(k - 1, n - 1, rate) * float(profile.delta(order))
    return float(rate * beta * float(profile.delta(epsilon)) + rate * (1 - beta) * total)


@given(rate=st.floats(0.01, 0.99), n=st.integers(1, 40), target=st.floats(0, 2), pure=st.booleans())
def test_theorem_14_and_its_tight_form(rate: float, n: int, target: float, pure: bool) -> None:
    profile: Profile = PointGuarantee(1.0, 0.0 if pure else 0.01)
    declared = DeclaredProfile.of(profile, S)
    printed = float(theorem_14(rate, n).delta(declared, target))
    assert printed == pytest.approx(
        min(1.0, theorem14(profile, rate, n, target)), rel=1e-10, abs=1e-15
    )
    assert float(poisson(rate, S, S, n).delta(declared, target)) <= printed * (1 + 1e-12) + 1e-15


def test_planted_fault_theorem_14_without_the_extension_is_another_number() -> None:
    class Printed(RandomisedResponseProfile):
        def group_log_delta(self, epsilon: object, occurrences: object) -> np.ndarray:
            p, order = self.keep_probability, np.asarray(epsilon, dtype=float)
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(0.0, p - np.exp(order) * (1 - p)))

    declared, faulty = (
        DeclaredProfile.of(kind(0.75), S) for kind in (RandomisedResponseProfile, Printed)
    )
    bound = theorem_14(0.1, 4)
    assert float(faulty.profile.delta(-3.0)) < float(declared.profile.delta(-3.0)) - 0.1
    assert float(bound.delta(faulty, 0.03)) < 0.99 * float(bound.delta(declared, 0.03))
    # a convex extension keeps Theorem 14 above its tight form, which never looks below epsilon'
    tight = poisson(0.1, S, S, 4)
    assert float(bound.delta(faulty, 0.03)) >= float(tight.delta(declared, 0.03))
    assert float(tight.delta(faulty, 0.03)) == pytest.approx(
        float(tight.delta(declared, 0.03)), rel=1e-13
    )


def test_the_pure_loss_of_poisson_under_substitution() -> None:
    bound, epsilon = poisson(0.1, R, S), 1.0
    limit = math.log((0.9 + 0.1 * math.e) / (0.9 + 0.1 / math.e))
    assert float(pure_epsilon(epsilon, 0.1)) == pytest.approx(limit, rel=1e-14)
    pure = DeclaredProfile.of(PointGuarantee(epsilon), R)
    assert float(bound.delta(pure, limit * (1 + 1e-9))) == 0
    assert float(bound.delta(pure, limit * (1 - 1e-3))) > 0


@pytest.mark.parametrize(
    ("sampler", "base", "target", "sizes", "name"),
    [
        ("poisson", R, R, {"rate": 0.1}, "Theorem 8"),
        ("poisson", R, S, {"rate": 0.1}, "Theorem 2 on triples of samples"),
        ("poisson", S, S, {"rate": 0.1, "n": 9}, "Theorem 2 given the size"),
        ("wor", S, S, {"n": 9, "m": 3}, "Theorem 9"),
        ("wor", R, S, {"n": 9, "m": 3}, "Theorem 9 with two steps a substitution"),
        ("wr", S, S, {"n": 9, "m": 3}, "Theorem 10"),
        ("wr", S, R, {"n": 9, "m": 3}, "Theorem 11"),
        ("wr", R, S, {"n": 9, "m": 3}, "Theorem 10 with two steps a substitution"),
        ("wr", R, R, {"n": 9, "m": 3}, "Theorem 11 with two steps a substitution"),
    ],
)
def test_the_translator_names_a_bound_that_only_its_relation_may_use(
    sampler: str, base: Relation, target: Relation, sizes: dict[str, float], name: str
) -> None:
    bound = translate(sampler, base, target, **sizes)  # type: ignore[arg-type]
    assert (bound.name, bound.base_relation, bound.relation) == (name, base, target)
    assert 0 < float(bound.delta(DeclaredProfile.of(GAUSSIAN, base), 0.1)) < 1
    other = S if base is R else R
    with pytest.raises(
        UnsupportedError,
        match=r"needs a base profile for .*, got one for .*; "
        r"declare",
    ) as caught:
        bound.delta(DeclaredProfile.of(GAUSSIAN, other), 0.1)
    assert "\n" not in str(caught.value)
    for missing in sizes:
        if name == "Theorem 2 on triples of samples":
            continue
        fewer = {key: value for key, value in sizes.items() if key != missing}
        with pytest.raises(ArgumentError, match=f"got no {missing}; declare it as a public number"):
            translate(sampler, base, target, **fewer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sampler", "base", "reason"),
    [
        ("poisson", S, "may reveal the size of its sample"),
        ("wor", S, "which adding a record changes"),
        ("wor", R, "which adding a record changes"),
    ],
)
def test_the_translator_says_why_there_is_none(sampler: str, base: Relation, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason) as caught:
        translate(sampler, base, R, rate=0.1, n=10, m=3)
    assert "\n" not in str(caught.value)


def test_a_rate_with_replacement_is_no_inclusion_probability() -> None:
    bound = translate("wr", S, S, rate=0.1, n=100)
    assert bound.eta == pytest.approx(1 - 0.99**10)
    assert bound.remark.endswith("is 0.0956179, not the rate 0.1; the former is used")
    assert not translate("wr", S, S, rate=0.1, n=100, m=10).remark


@pytest.mark.parametrize("sampler", ["poisson", "wor", "wr"])
@pytest.mark.parametrize("rate", [1e-300, 0.5, 1.0])
def test_absurd_numbers_are_answered_without_a_warning(sampler: str, rate: float) -> None:
    bound = translate(sampler, R, S, rate=rate, n=10, m=10)
    for name in noise.REGISTRY.names():
        for ratio in (1e-320, 1e-5, 40.0, 1e308):
            declared = DeclaredProfile.of(noise.of(name, ratio), R)
            delta = bound.delta(declared, [0.0, 1e-320, 30.0, 710.0, 1e155, 1.7e308])
            assert ((delta >= 0) & (delta <= 1)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: amplify(SINGLE, GAUSSIAN, [0.1, -0.1]), "epsilon must be at least 0"),
        (lambda: amplify(SINGLE, GAUSSIAN, math.inf), "epsilon must be finite"),
        (
            lambda: amplify(MultiplicityLaw(np.array([0.0, -np.inf])), GAUSSIAN, 1.0),
            "with positive probability",
        ),
        (lambda: base_epsilon(0.1, 0.0), "eta must be above 0"),
        (lambda: amplified_epsilon(0.1, 1.1), "eta must be at most 1"),
        (lambda: category(1.0, 1.5, 0.5, 0.1), "delta must be at most 1"),
        (lambda: poisson(1.1), "rate must be at most 1"),
        (lambda: poisson(math.nan), "rate must be finite"),
        (lambda: wor(5, 6), "m must be at most n = 5, got m = 6"),
        (lambda: wor(5, 0), "m must be at least 1"),
        (lambda: wor(5, 2.5), "m must be a whole number"),  # type: ignore[arg-type]
        (lambda: wr(0, 2), "n must be at least 1"),
        (lambda: wr(4, -1), "m must be at least 0"),
        (lambda: wr(1, 2, R), "n must be at least 2"),
        (lambda: theorem_14(0.1, 2.5), "n must be a whole number"),  # type: ignore[arg-type]
        (
            lambda: WOR.delta(DeclaredProfile.of(LAPLACE, S), -0.1),
            "epsilon_amplified must be at least 0",
        ),
        (
            lambda: WOR.delta(DeclaredProfile.of(LAPLACE, S), math.inf),
            "epsilon_amplified must be finite",
        ),
        (lambda: DeclaredProfile.of(LAPLACE), "must hold for a relation between samples, got none"),
        (lambda: translate("wro", S, S, n=3, m=2), "unknown sampler 'wro'; did you mean 'wr"),
        (lambda: translate("wor", "replace", S, n=3, m=2), "unknown base relation 'replace'"),
    ],
)
def test_inputs_that_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

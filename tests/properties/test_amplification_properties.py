"""Theorems of amplification as identities and inequalities over random laws, ratios and
epsilons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpsub import noise
from dpsub.amplification import amplified_epsilon, amplify, base_epsilon, category
from dpsub.noise import LaplaceProfile
from dpsub.sampling.laws import MultiplicityLaw

EPSILONS = st.one_of(st.just(0.0), st.floats(1e-12, 500.0))
ETAS = st.floats(1e-12, 1.0)
RATIOS = st.floats(1e-3, 5.0)
NAMES = st.sampled_from(noise.REGISTRY.names())
SLACK = 1 + 1e-12


@st.composite
def laws(draw: st.DrawFn, max_copies: int = 12) -> MultiplicityLaw:
    """Laws on 0..l_max with some impossible counts and at least one way to include the record."""
    weights = draw(
        st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1.0)), min_size=1, max_size=max_copies)
    )
    pmf = np.array([draw(st.floats(0.0, 2.0)), *weights, draw(st.floats(1e-6, 1.0))])
    with np.errstate(divide="ignore"):
        return MultiplicityLaw(np.log(pmf / pmf.sum()))


@given(EPSILONS, ETAS)
def test_amplified_and_base_epsilon_are_inverse_to_each_other(epsilon: float, eta: float) -> None:
    for one, other in ((amplified_epsilon, base_epsilon), (base_epsilon, amplified_epsilon)):
        assert float(other(one(epsilon, eta), eta)) == pytest.approx(epsilon, rel=1e-11, abs=0)


@given(EPSILONS, ETAS, ETAS)
def test_epsilon_grows_with_eta_and_never_exceeds_the_base(
    epsilon: float, one: float, other: float
) -> None:
    low, high = (float(amplified_epsilon(epsilon, eta)) for eta in sorted((one, other)))
    assert 0 <= low <= high * SLACK
    assert high <= epsilon


@given(laws(), NAMES, RATIOS, st.floats(0.0, 20.0))
def test_delta_lies_between_its_smallest_and_largest_group(
    law: MultiplicityLaw, name: str, ratio: float, epsilon: float
) -> None:
    profile = noise.of(name, ratio)
    largest = law.log_pmf.size - 1
    value = float(amplify(law, profile, epsilon).log_delta_amplified)
    log_eta = float(np.logaddexp.reduce(law.log_pmf[:0:-1], initial=-np.inf))
    upper = log_eta + float(profile.group(largest).log_delta(epsilon))
    lower = log_eta + float(profile.log_delta(epsilon))
    room = 1e-12 * (1 + abs(upper)) if np.isfinite(upper) else 0.0
    assert value <= upper + room
    assert value >= lower - 1e-12 * (1 + abs(lower)) if np.isfinite(lower) else value >= lower


@given(laws(), NAMES, RATIOS)
def test_amplified_profile_decreases_in_epsilon(
    law: MultiplicityLaw, name: str, ratio: float
) -> None:
    result = amplify(law, noise.of(name, ratio), np.linspace(0, 8, 60))
    assert (np.diff(result.delta_amplified) <= 1e-14).all()
    assert (np.diff(result.epsilon_amplified) > 0).all()
    assert (result.delta_amplified <= result.eta * SLACK).all()


@given(laws(), laws(), st.floats(0.0, 1.0), NAMES, RATIOS, st.floats(0.0, 8.0))
def test_delta_is_linear_in_the_law(
    first: MultiplicityLaw,
    second: MultiplicityLaw,
    share: float,
    name: str,
    ratio: float,
    epsilon: float,
) -> None:
    size = max(first.log_pmf.size, second.log_pmf.size)
    padded = [np.pad(law.pmf, (0, size - law.log_pmf.size)) for law in (first, second)]
    with np.errstate(divide="ignore"):
        mixed = MultiplicityLaw(np.log(share * padded[0] + (1 - share) * padded[1]))
    profile = noise.of(name, ratio)
    parts = [float(amplify(law, profile, epsilon).delta_amplified) for law in (first, second)]
    expected = share * parts[0] + (1 - share) * parts[1]
    assert float(amplify(mixed, profile, epsilon).delta_amplified) == pytest.approx(
        expected, rel=1e-11, abs=1e-300
    )


@given(st.floats(1e-6, 1 - 1e-6), RATIOS, st.floats(0.0, 3.0))
def test_boundary_is_exactly_where_a_single_copy_has_no_delta(
    rate: float, ratio: float, factor: float
) -> None:
    epsilon = factor * ratio
    result = amplify(MultiplicityLaw.single(rate), LaplaceProfile(ratio), epsilon)
    kind = category(
        epsilon, float(result.delta), float(result.epsilon_amplified), float(result.delta_amplified)
    )
    if epsilon >= ratio:
        assert kind == "boundary"
    elif epsilon == 0 or float(result.epsilon_amplified) >= epsilon:
        assert kind == "weak_type_2"
    else:
        assert kind == "strong"


@given(laws(), NAMES, RATIOS, st.floats(1e-6, 10.0))
def test_no_dilution_without_a_certain_record(
    law: MultiplicityLaw, name: str, ratio: float, epsilon: float
) -> None:
    """With eta < 1 epsilon always improves, so only strong, type-I weak and boundary remain."""
    assume(law.eta < 1 - 1e-9)
    result = amplify(law, noise.of(name, ratio), epsilon)
    point = (epsilon, result.delta, result.epsilon_amplified, result.delta_amplified)
    assert category(*map(float, point)) in {"strong", "weak_type_1", "boundary"}

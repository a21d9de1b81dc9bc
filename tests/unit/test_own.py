"""Mechanisms of one's own: against enumeration, against built-in noise, and refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting.pld.privacy_loss_distribution as dp_pld
import numpy as np
import pytest
from scipy import stats

import dpsub
from dpsub.accounting.engine import own_mechanism
from dpsub.errors import ArgumentError, UnsupportedError

ALL = dpsub.Deterministic()
P, Q = [0.5, 0.3, 0.15, 0.05], [0.1, 0.3, 0.35, 0.25]
UNEQUAL = dpsub.pair(P, Q, name="four outputs")
NORMAL = dpsub.pair(stats.norm(1, 2), stats.norm(0, 2), edges=np.linspace(-19, 20, 3001))
LAPLACE = dpsub.pair(stats.laplace(1), stats.laplace(0), edges=np.linspace(-30, 31, 4001))


def enumerated(p: list[float], q: list[float], rate: float, steps: int, epsilon: float) -> float:
    """Return delta of all sequences of outputs, one by one, in the worse direction."""
    r = [(1 - rate) * y + rate * x for x, y in zip(p, q, strict=True)]
    worst = 0.0
    for first, second in ((r, q), (q, r)):
        terms = (
            math.prod(first[i] for i in places)
            - math.exp(epsilon) * math.prod(second[i] for i in places)
            for places in itertools.product(range(len(p)), repeat=steps)
        )
        worst = max(worst, math.fsum(term for term in terms if term > 0))
    return worst


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.99])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_both_ends_bracket_what_enumeration_gives(rate: float, steps: int, epsilon: float) -> None:
    found = dpsub.account(_sampler(rate), mechanism=UNEQUAL, steps=steps, epsilon=epsilon)
    truth = enumerated(P, Q, rate, steps, epsilon)
    assert found.lower <= truth * (1 + 1e-12) and truth <= found.upper * (1 + 1e-12) + 1e-15
    assert found.upper - found.lower <= 2e-3 * truth + 1e-12
    # of no delta at all an attack attains nothing
    assert found.kind == ("exact" if truth > 0 or found.upper == 0 else "upper")


@pytest.mark.parametrize("places", [(0.9, 0.1, 0.0), (0.0, 0.4, 0.6)], ids=["hidden", "new"])
def test_outputs_that_one_data_set_never_has(places: tuple[float, ...]) -> None:
    p, q = [*places], [0.8, 0.1, 0.1]
    infinite = dpsub.pair(p, q)
    found = dpsub.account(dpsub.Poisson(0.2), mechanism=infinite, steps=3, epsilon=0.1)
    truth = enumerated(p, q, 0.2, 3, 0.1)
    assert found.lower <= truth * (1 + 1e-12) <= found.upper * (1 + 2e-12)
    assert found.upper < truth * 1.01


def test_a_direction_that_is_taken_for_the_other_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault exchanges the profiles: enumeration finds an upper bound too small."""

    def exchanged(event: own_mechanism.OwnEvent) -> Any:
        return (
            own_mechanism._included(event.mechanism.backward, event.rate),
            own_mechanism._included(event.mechanism.backward, event.rate),
        )

    monkeypatch.setattr(own_mechanism.OwnEvent, "profiles", exchanged)
    event = own_mechanism.OwnEvent(UNEQUAL, 0.3)
    forward, _ = event.profiles()
    truth = enumerated(P, Q, 0.3, 1, 0.1)
    assert float(forward(np.array([0.1]))[0]) < truth * 0.99


def _sampler(rate: float) -> Any:
    return ALL if rate == 1 else dpsub.Poisson(rate)


@pytest.mark.parametrize(
    ("mechanism", "built_in"),
    [
        (NORMAL, {"noise_multiplier": 2.0}),
        (LAPLACE, {"noise_multiplier": 1.0, "mechanism": "laplace"}),
    ],
    ids=["gaussian", "laplace"],
)
@pytest.mark.parametrize(("rate", "steps"), [(1.0, 1), (1.0, 10), (0.05, 1), (0.05, 200)])
def test_densities_agree_with_built_in_noise(
    mechanism: dpsub.OwnMechanism, built_in: dict[str, Any], rate: float, steps: int
) -> None:
    found = dpsub.account(_sampler(rate), mechanism=mechanism, steps=steps, delta=1e-5)
    known = dpsub.account(dpsub.Poisson(rate), steps=steps, delta=1e-5, **built_in)
    assert found.kind == "bounds" and str(found.adjacency) == "add_remove"
    assert found.lower <= known.upper and known.lower <= found.upper
    assert found.upper - found.lower <= 0.02 * known.upper + 5e-3


@pytest.mark.parametrize(("rate", "steps"), [(1.0, 10), (0.05, 200)])
def test_distributions_of_dp_accounting_give_both_ends(rate: float, steps: int) -> None:
    fine = {"value_discretization_interval": 1e-3}
    upper = dp_pld.from_laplace_mechanism(1.0, **fine)
    lower = dp_pld.from_laplace_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False, **fine
    )
    found = dpsub.account(
        _sampler(rate), mechanism=dpsub.pair(upper, lower), steps=steps, delta=1e-5
    )
    known = dpsub.account(
        dpsub.Poisson(rate), noise_multiplier=1.0, mechanism="laplace", steps=steps, delta=1e-5
    )
    assert found.lower <= known.upper and known.lower <= found.upper
    assert found.kind == ("bounds" if rate == 1 else "upper")
    theirs = dp_pld.from_laplace_mechanism(1.0, sampling_prob=rate, **fine)
    theirs = theirs.self_compose(steps).get_epsilon_for_delta(1e-5)
    assert found.lower <= theirs * (1 + 1e-9) and found.upper <= theirs * 1.02
    one_end = dpsub.account(_sampler(rate), mechanism=dpsub.pair(upper), steps=steps, delta=1e-5)
    assert one_end.kind == "upper" and one_end.lower == 0


def gaussian(epsilon: float) -> float:
    """Return the profile of noise of deviation 2, for a single number."""
    return float(
        stats.norm.cdf(0.25 - 2 * epsilon) - math.exp(epsilon) * stats.norm.cdf(-0.25 - 2 * epsilon)
    )


def test_a_profile_bounds_from_above() -> None:
    profile = np.vectorize(gaussian)
    question = {"steps": 100, "delta": 1e-5}
    known = dpsub.account(dpsub.Poisson(0.05), noise_multiplier=2.0, **question)
    for given in ((profile,), (profile, profile), (gaussian,)):
        mechanism = dpsub.pair(*given)
        found = dpsub.account(dpsub.Poisson(0.05), mechanism=mechanism, **question)
        assert found.kind == "upper" and found.lower == 0
        assert known.lower <= found.upper <= known.upper * 1.01


def test_it_enters_ledgers_curves_and_checks(tmp_path: Path) -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.1), mechanism=UNEQUAL, steps=5)
    ledger.record(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=50)
    together = ledger.account(delta=1e-5)
    alone = dpsub.account(dpsub.Poisson(0.1), mechanism=UNEQUAL, steps=5, delta=1e-5)
    assert together.kind == "exact" and together.lower > alone.upper
    with pytest.raises(UnsupportedError, match="four outputs is a mechanism of one's own, which"):
        ledger.save(tmp_path / "ledger.json")
    curve = dpsub.curve(dpsub.Poisson(0.1), mechanism=UNEQUAL, steps=2, epsilon=[0.0, 0.2])
    truth = enumerated(P, Q, 0.1, 2, 0.2)
    assert curve.delta.lower[1] <= truth * (1 + 1e-12) <= curve.delta.upper[1] * (1 + 2e-12)
    claim = dpsub.check(ALL, mechanism=UNEQUAL, delta=1e-5, claimed_epsilon=1.0)
    assert claim.verdict == "refuted"
    assert "four outputs" in str(alone)


QUESTION: dict[str, Any] = {"mechanism": UNEQUAL, "delta": 1e-5}
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "sampler": (
        lambda: dpsub.account(dpsub.Wor(3), 10, **QUESTION),
        UnsupportedError,
        "own on wor; use",
    ),
    "relation": (
        lambda: dpsub.account(ALL, adjacency="substitute", **QUESTION),
        UnsupportedError,
        "was given under add_remove, got substitute",
    ),
    "sampled replacement": (
        lambda: dpsub.account(
            dpsub.Poisson(0.1), mechanism=dpsub.pair(P, Q, adjacency="replace_one"), delta=1e-5
        ),
        UnsupportedError,
        "covered under add_remove only",
    ),
    "noise": (
        lambda: dpsub.account(ALL, noise_multiplier=2.0, **QUESTION),
        ArgumentError,
        "noise_multiplier = 2; drop it",
    ),
    "no noise": (
        lambda: dpsub.account(dpsub.Poisson(0.1), delta=1e-5),
        ArgumentError,
        "a noise_multiplier is needed, got none",
    ),
    "sum": (lambda: dpsub.pair([0.5, 0.4], [0.5, 0.5]), ArgumentError, "add up to 1, got first"),
    "shapes": (lambda: dpsub.pair([1.0], [0.5, 0.5]), ArgumentError, "got 1 and 2; give as many"),
    "edges": (
        lambda: dpsub.pair(stats.norm(), stats.norm(1)),
        ArgumentError,
        "need edges between which",
    ),
    "not monotone": (
        lambda: dpsub.pair(stats.norm(0, 1), stats.norm(0, 2), edges=[-9, -4, -1, 1, 4, 9]),
        ArgumentError,
        "the first one from -1 to 1",
    ),
    "profile": (
        lambda: dpsub.pair(lambda epsilon: 2 + 0 * epsilon),
        ArgumentError,
        "values from 0 to 1",
    ),
    "something else": (lambda: dpsub.pair("gaussian"), ArgumentError, "got str; give one of these"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    ask, kind, sentence = REFUSED[case]
    with pytest.raises(kind, match=sentence):
        ask()


def test_edges_that_are_few_are_wide_but_right() -> None:
    coarse = dpsub.pair(stats.norm(1, 2), stats.norm(0, 2), edges=np.linspace(-12, 13, 12))
    known = dpsub.account(dpsub.Poisson(0.05), noise_multiplier=2.0, steps=20, epsilon=0.3)
    found = dpsub.account(dpsub.Poisson(0.05), mechanism=coarse, steps=20, epsilon=0.3)
    assert found.lower < known.lower and known.upper < found.upper


def test_what_no_file_holds_has_no_certificate_and_a_statement_without_its_digest() -> None:
    own = dpsub.pair([0.5, 0.3, 0.2], [0.4, 0.4, 0.2])
    alone = dpsub.account(dpsub.Poisson(0.1), mechanism=own, steps=10, delta=1e-5)
    mixed = dpsub.Ledger().add(dpsub.Poisson(0.1), noise_multiplier=2.0)
    mixed.record(dpsub.Poisson(0.1), mechanism=own, steps=3)
    for found in (alone, mixed.account(delta=1e-5)):
        with pytest.raises(dpsub.UnsupportedError, match="which no file holds; keep what makes"):
            found.certificate()
        stated = found.statement()
        assert "certificate_sha256" not in stated.fields
        assert "given by the distributions of its outputs" in stated.sentence

"""Releases that amount to others with less noise: equal answers, words, refusals, files."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dpsub
from dpsub.accounting.release import as_plain, of_plain
from dpsub.accounting.schemes.reductions import plain_kinds
from dpsub.errors import ArgumentError, UnsupportedError

POISSON = dpsub.Poisson(0.02)


@pytest.mark.parametrize(
    ("sampler", "n"),
    [
        (POISSON, None),
        (dpsub.Wor(20), 1000),
        (dpsub.MustOW(100, 20), 1000),
        (dpsub.Deterministic(20), 1000),
        (dpsub.CyclicPoisson(0.1, 5), None),
        (dpsub.TruncatedPoisson(0.02, 30), 1000),
        (dpsub.RandomAllocation(4), None),
        (dpsub.RandomAllocation(20, 2), None),
        (dpsub.Shuffle(20, drop_last=True), 1010),
    ],
)
@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "substitute"])
def test_a_sample_used_four_times_is_one_release_at_half_the_noise(
    sampler: Any, n: int | None, relation: str
) -> None:
    asked: dict[str, Any] = {"epochs": 2, "delta": 1e-5, "adjacency": relation, "quick": True}
    n = 999 if relation == "add_remove" and n else n
    if isinstance(sampler, dpsub.Shuffle) and relation != "add_remove":
        return  # its order is revealed
    four = dpsub.account(sampler, n, noise_multiplier=4.0, releases_per_sample=4, **asked)
    one = dpsub.account(sampler, n, noise_multiplier=2.0, **asked)
    assert (four.lower, four.upper, four.kind) == (one.lower, one.upper, one.kind)
    assert four.theorem == f"Theorem 80, docs/proofs/composition.md; {one.theorem}"


def test_users_are_records_with_less_noise() -> None:
    asked: dict[str, Any] = {"steps": 50, "delta": 1e-6}
    for sampler, n, mechanism in (
        (POISSON, None, "gaussian"),
        (POISSON, None, "laplace"),
        (dpsub.RandomAllocation(50), None, "gaussian"),
        (dpsub.Shuffle(10), 500, "gaussian"),
    ):
        two = dpsub.account(
            sampler, n, noise_multiplier=6.0, records_per_user=2, mechanism=mechanism, **asked
        )
        one = dpsub.account(sampler, n, noise_multiplier=3.0, mechanism=mechanism, **asked)
        assert (two.lower, two.upper) == (one.lower, one.upper)
        assert two.theorem.startswith("Theorem 81, docs/proofs/groups.md; ")
        assert "one user with at most 2 records in a step" in str(two)


@pytest.mark.parametrize(("each", "most"), [(2, None), (3, 7), (4, None), (1, 3), (500, 1)])
@pytest.mark.parametrize("s", [1.7, 2.9, 77.7, 1e5])
def test_noise_is_rounded_down(each: int, most: int | None, s: float) -> None:
    release = dpsub.Release(POISSON, None, s, each, releases_per_sample=each, records_per_user=most)
    [kind] = plain_kinds(release)
    found = kind.release.noise_multiplier
    square = Fraction(s) ** 2 / (each * (most or 1) ** 2)
    assert Fraction(found) ** 2 <= square < Fraction(found) ** 2 * (1 + Fraction(1, 10**15))


def test_steps_count_releases_and_epochs_samples() -> None:
    made = dpsub.Release.of(POISSON, noise_multiplier=1, epochs=1, releases_per_sample=4)
    assert (made.steps, made.times) == (200, 50)
    made = dpsub.Release.of(dpsub.Deterministic(5), 20, noise_multiplier=1, releases_per_sample=3)
    assert (made.steps, made.times) == (12, 1)
    assert dpsub.Release.of(POISSON, noise_multiplier=1, releases_per_sample=4).steps == 4
    with pytest.raises(ArgumentError, match="steps are 4 releases of each sample, got 10; give a "):
        dpsub.Release(POISSON, None, 1.0, 10, releases_per_sample=4)


@pytest.mark.parametrize(
    ("sampler", "n", "described", "said"),
    [
        (POISSON, None, {"releases_per_sample": 2, "mechanism": "laplace"}, "use gaussian"),
        (POISSON, None, {"records_per_user": 30}, "amounts to 0.0333 for one release"),
        (dpsub.Wor(5), 50, {"records_per_user": 2, "denominator": "realised"}, "fixed number"),
    ],
)
def test_what_no_theorem_covers(sampler: Any, n: int | None, described: Any, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        dpsub.account(sampler, n, noise_multiplier=1.0, delta=1e-5, **described)


@pytest.mark.parametrize(
    ("sampler", "n", "relation"),
    [
        (dpsub.Shuffle(10), 100, "zero_out"),
        (dpsub.Shuffle(10), 100, "substitute"),
        (dpsub.Shuffle(10, drop_last=True), 105, "substitute"),
    ],
)
def test_samples_are_revealed_where_no_theorem_hides_them(
    sampler: Any, n: int, relation: str
) -> None:
    asked: dict[str, Any] = {"delta": 1e-5, "adjacency": relation}
    used = dpsub.account(
        sampler, n, noise_multiplier=6.0, epochs=3, releases_per_sample=4, quick=True, **asked
    )
    revealed = dpsub.account(
        dpsub.Deterministic(), noise_multiplier=3.0, epochs=3, quick=True, **asked
    )
    attacked = dpsub.account(sampler, n, noise_multiplier=3.0, epochs=3, **asked)
    assert used.kind == "bounds"
    assert used.upper == pytest.approx(revealed.upper, rel=2e-3)
    assert used.upper >= attacked.upper * (1 - 1e-9)
    assert 0 < used.lower <= attacked.upper
    # one of releases that tell at least as much: an attack is none on those
    certificate = used.certificate()
    (stated,) = certificate["question"]["releases"]
    assert stated["one_sided"] and stated["sampler"] == {"name": "deterministic", "m": None}
    assert (stated["steps"], certificate["lower"]) == (3, None)
    assert stated["noise_multiplier"] == pytest.approx(3.0, rel=1e-14)
    assert stated["noise_multiplier"] < 3.0
    assert used.upper * (1 - 1e-8) <= certificate["claim"]["upper"] <= used.upper * 1.001


def test_one_unit_of_privacy() -> None:
    with pytest.raises(ArgumentError, match="got 3 and 2; drop one"):
        dpsub.Release(POISSON, None, 1.0, 1, group=2, records_per_user=3)
    ledger = dpsub.Ledger()
    ledger.record(POISSON, noise_multiplier=4.0, records_per_user=3)
    ledger.record(POISSON, noise_multiplier=4.0, records_per_user=2, steps=5)
    assert "one user with at most 3 records in a step" in str(ledger.account(delta=1e-5))
    ledger.record(POISSON, noise_multiplier=4.0)
    with pytest.raises(ArgumentError, match="need records_per_user, got some with it"):
        ledger.account(delta=1e-5)


def test_groups_of_records_in_samples_that_are_used_again() -> None:
    asked: dict[str, Any] = {"group": 2, "epsilon": 1.0}
    four = dpsub.account(POISSON, noise_multiplier=4.0, steps=4, releases_per_sample=4, **asked)
    one = dpsub.account(POISSON, noise_multiplier=2.0, **asked)
    assert (four.lower, four.upper, four.kind) == (one.lower, one.upper, "exact")


def test_no_game_is_played_for_samples_that_are_used_again() -> None:
    asked: dict[str, Any] = {"steps": 400, "delta": 1e-5, "adjacency": "substitute"}
    used = dpsub.account(dpsub.Wor(20), 1000, noise_multiplier=8.0, releases_per_sample=4, **asked)
    asked["steps"] = 100
    quick = dpsub.account(dpsub.Wor(20), 1000, noise_multiplier=4.0, quick=True, **asked)
    assert used.upper == pytest.approx(quick.upper, rel=5e-3)
    assert used.kind == "bounds"


def test_calibration_and_budgets() -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
    four = dpsub.calibrate(POISSON, steps=400, releases_per_sample=4, **asked)
    one = dpsub.calibrate(POISSON, steps=100, **asked)
    assert four.noise_multiplier == pytest.approx(2 * one.noise_multiplier, rel=2e-3)
    assert four.account.upper <= 1.0
    budget: dict[str, Any] = {"noise_multiplier": 4.0, "releases_per_sample": 4, **asked}
    left = dpsub.Ledger().steps_left(POISSON, **budget)
    assert left % 4 == 0
    assert left == 4 * dpsub.Ledger().steps_left(POISSON, noise_multiplier=2.0, **asked)


def test_files_name_what_is_not_usual() -> None:
    plain = dpsub.Release(POISSON, None, 1.0, 4)
    assert not {"releases_per_sample", "records_per_user"} & set(as_plain(plain))
    used = dpsub.Release(POISSON, None, 1.0, 4, releases_per_sample=2, records_per_user=3)
    assert of_plain(as_plain(used)) == used
    assert str(used).endswith(", 2 of each sample, users with at most 3 records in a step")


def test_statements_name_the_user() -> None:
    answer = dpsub.account(
        POISSON,
        noise_multiplier=4.0,
        steps=4,
        releases_per_sample=2,
        records_per_user=2,
        delta=1e-5,
    )
    statement = answer.statement()
    assert statement.fields["privacy_unit"] == "user-level"
    assert "4 noisy sums, 2 over each of the samples of users, from" in statement.sentence


def test_an_audit_is_of_plain_releases() -> None:
    with pytest.raises(UnsupportedError, match="2 of each sample; audit the release to which"):
        dpsub.audit(POISSON, noise_multiplier=1.0, steps=2, releases_per_sample=2, epsilon=1.0)


def test_events_that_sample_a_composition() -> None:
    gaussian = {"class_name": "GaussianDpEvent", "noise_multiplier": 4.0}
    four = {"class_name": "SelfComposedDpEvent", "event": gaussian, "count": 4}
    sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.02, "event": four}
    ledger = dpsub.ledger_of({"class_name": "SelfComposedDpEvent", "event": sampled, "count": 10})
    assert list(ledger) == [dpsub.Release(POISSON, None, 4.0, 40, releases_per_sample=4)]

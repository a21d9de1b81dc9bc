"""Schemes: the theorems of each for every sampler and schedule, compared with the page of
proofs."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting import schemes
from dpsub.accounting.games.static import EpochAttack
from dpsub.accounting.release import DENOMINATORS, MECHANISMS, Release
from dpsub.accounting.schemes import case_of, default_relation, stated_relation
from dpsub.accounting.schemes.case import COVERED, OTHER, PAGES, Case, Covered
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import (
    REGISTRY,
    SCHEDULES,
    Deterministic,
    Multistage,
    Poisson,
    Sampler,
    Schedule,
    Shuffle,
    Wor,
)
from dpsub.sampling.frame import Frame, Samples
from dpsub.sampling.laws import MultiplicityLaw

PROOFS = Path(__file__).resolve().parents[2] / "docs/proofs"
SECTIONS = {
    number: (page.stem, text)
    for page in PROOFS.glob("*.md")
    for number, text in re.findall(
        r"^## (\d[0-9.]*) (.*?)(?=^#)", page.read_text(encoding="utf-8") + "\n#", flags=re.M | re.S
    )
}
KINDS = [*REGISTRY.members().values(), *SCHEDULES.members().values()]
PLANS = [example for kind in KINDS for example in kind.examples()]


def release_of(plan: Sampler | Schedule, n: int, mechanism: str = "gaussian") -> Release:
    steps = plan.steps_per_epoch(n) if isinstance(plan, Schedule) else 1
    return Release(plan, n, 1.0, steps, mechanism)


def cases() -> list[tuple[Release, Relation, Case]]:
    """Return the proofs of all examples of samplers and schedules."""
    found = []
    for plan, n in PLANS:
        for mechanism in MECHANISMS:
            for relation in Relation:
                release = release_of(plan, n, mechanism)
                try:
                    found.append((release, relation, case_of(release, relation)))
                except UnsupportedError as problem:
                    assert "\n" not in str(problem) and str(problem)[-1] != "."
    return found


CASES = cases()


def test_every_sampler_and_schedule_has_a_scheme() -> None:
    assert {type(release.sampler) for release, _, _ in CASES} == set(KINDS)


def test_a_question_loads_the_module_of_its_scheme() -> None:
    # `cases` has loaded some or all of them; what is registered in the end decides
    schemes._load(None)
    for release, *_ in CASES:
        module = schemes._module(release)
        assert module is not None
        scheme = COVERED[schemes._key(release)].scheme
        assert scheme.__module__ == f"{schemes.__name__}.{module}", release


def test_theorems_stand_in_their_sections() -> None:
    theorems = {case.theorem for *_, case in CASES}
    theorems |= {case.game.theorem for *_, case in CASES if case.game is not None}
    assert len(theorems) >= 16
    for number, section in theorems:
        named = f"Theorem {number}" if number.isdecimal() else number.capitalize()
        assert re.search(rf"\b{named}\b", SECTIONS[section][1]), (number, section)
    assert {section: page for section, (page, _) in SECTIONS.items()} == PAGES
    with pytest.raises(AssertionError):
        assert re.search(r"\bTheorem 19\b", SECTIONS["3.3"][1])


def test_a_case_agrees_with_itself() -> None:
    for release, relation, case in CASES:
        assert len(case.choices) <= len(case.event.attack_choices), (release, relation)
        for neighbours, _ in case.choices:
            if neighbours is None:
                continue
            assert neighbours.record == 1
            # where a record is replaced one put to 0 is a choice, too
            assert neighbours.other in {OTHER[relation], 0.0 if relation == "substitute" else 1.0}
            assert (neighbours.other is None) == (relation is Relation.ADD_REMOVE)
        assert case.shift >= (2.0 if relation is Relation.SUBSTITUTE else 1.0)
        assert all(text and text[-1] != "." for text in (*case.conditions, case.sensitivity))
        assert len(set(case.conditions)) == len(case.conditions)


def _is_played(release: Release, relation: Relation) -> bool:
    if release.mechanism == "laplace":
        return False
    schedule = release.sampler
    # with one record more such a loader would have one step more
    grows = isinstance(schedule, dpsub.Shuffle) and (release.n + 1) % schedule.m == 0
    return not (grows and relation is Relation.ADD_REMOVE)


def test_an_audit_plays_data_sets_of_the_case() -> None:
    played = 0
    for release, relation, case in CASES:
        if _is_played(release, relation):
            assert case.static is not None, release
            attack = case.static()
            assert attack.records == (1.0, OTHER[relation])
            assert attack.n_records[0] - attack.n_records[1] == (
                relation is Relation.ADD_REMOVE
            ) or attack.n_records == (1, 1)
            if isinstance(attack, EpochAttack):
                assert isinstance(release.sampler, Schedule)
                occurrences = release.sampler.occurrences / attack.k
                if isinstance(release.sampler, dpsub.Shuffle) and release.sampler.drop_last:
                    assert release.n is not None
                    occurrences -= release.n % release.sampler.m / release.n
                assert attack.weights.sum() == pytest.approx(occurrences)
            played += 1
    assert played > 60


@dataclass(frozen=True)
class Halves(Schedule):
    """A schedule without a scheme."""

    name = "halves"

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(), 4)]

    def steps_per_epoch(self, n: int | None) -> int:
        return 2

    @property
    def occurrences(self) -> float:
        return 1.0

    def log_distinct_law(self, n: int) -> np.ndarray:
        return np.zeros(1)

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


@dataclass(frozen=True)
class Everyone(Sampler):
    """A sampler without a scheme, which is no chain of stages."""

    name = "everyone"

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(), 4)]

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        raise NotImplementedError

    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        return MultiplicityLaw.single(1.0)

    def log_distinct_law(self, n: int) -> np.ndarray:
        return np.append(np.full(n, -np.inf), 0.0)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (
            Halves(),
            "no bound is proved for epochs of Halves, because no scheme in .* covers them; use",
        ),
        (
            Everyone(),
            "no bound is proved for samples of Everyone, because they are not a chain of stages",
        ),
    ],
)
def test_what_has_no_scheme_is_refused_with_the_way_out(
    plan: Sampler | Schedule, said: str
) -> None:
    with pytest.raises(UnsupportedError, match=said):
        case_of(release_of(plan, 4), Relation.SUBSTITUTE)


class Fewer(Wor):
    """A chain of a class of its own: it is covered as its stages are."""

    name = "fewer"


def test_a_chain_is_told_by_its_stages() -> None:
    assert case_of(release_of(Fewer(3), 9), Relation.SUBSTITUTE).theorem.number == "2"
    merged = Multistage.of_text("wor:6,wor:3")
    assert case_of(release_of(merged, 9), Relation.SUBSTITUTE).theorem.number == "2"
    one = Multistage.of_text("poisson:0.3")
    assert stated_relation(release_of(one, 9)) is Relation.ADD_REMOVE
    assert stated_relation(release_of(merged, 9)) is Relation.SUBSTITUTE


DRAWS = ("draw", "draw_block", "_drawn", "epochs", "steps_per_epoch", "chain_on", "slots")


def derived(plan: Sampler | Schedule, **methods: Any) -> Any:
    """Return the same plan as an instance of a subclass with methods of its own."""
    kind: Any = type("Derived", (type(plan),), methods)
    return kind(**{field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_subclass_that_draws_otherwise_has_no_scheme(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, n = kind.examples()[0]
    release, relation = release_of(plan, n), stated_relation(release_of(plan, n))
    # one that changes nothing is what it is derived from
    plain = case_of(replace(release, sampler=derived(plan)), relation)
    assert plain.theorem == case_of(release, relation).theorem
    overridable = [name for name in DRAWS if hasattr(kind, name)]
    assert "draw_block" in overridable
    for name in overridable:
        # the same code under another name: what it does cannot be seen from outside
        own = functools.partialmethod(getattr(kind, name))
        other = replace(release, sampler=derived(plan, **{name: own}))
        with pytest.raises(UnsupportedError, match=f"Derived, which has {name} otherwise"):
            case_of(other, relation)
        with pytest.raises(UnsupportedError, match="register a scheme"):
            default_relation([other])
        # registered, it is covered, as the library's own are
        with monkeypatch.context() as patched:
            known = Covered(lambda _, asked: case_of(release, asked), relation)
            patched.setitem(COVERED, type(other.sampler), known)
            assert case_of(other, relation).theorem == plain.theorem


def test_every_question_refuses_such_a_subclass() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    shuffled, drawn = derived(Shuffle(10), _drawn=never), derived(Poisson(0.1), draw_block=never)
    noise, goal = {"noise_multiplier": 2.0}, {"epsilon": 1.0, "delta": 1e-5}
    ledger, own = dpsub.Ledger(), dpsub.pair([0.6, 0.4], [0.4, 0.6])
    questions: list[Callable[[], Any]] = [
        lambda: dpsub.account(shuffled, 100, **noise, steps=10, delta=1e-5),
        lambda: dpsub.curve(shuffled, 100, **noise, steps=10),
        lambda: dpsub.calibrate(shuffled, 100, **goal, steps=10),
        lambda: ledger.steps_left(shuffled, 100, **noise, **goal),
        lambda: dpsub.audit(drawn, 9, **noise, steps=1, epsilon=0.5),
        lambda: dpsub.amplify(drawn, 9, **noise, epsilon=1.0),
        lambda: dpsub.account(drawn, mechanism=own, steps=3, delta=1e-5),
    ]
    for ask in questions:
        with pytest.raises(UnsupportedError, match=r"otherwise than (Shuffle|StagedSampler)"):
            ask()


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_the_number_of_steps_must_not_tell_of_a_record(denominator: str) -> None:
    release = Release(Deterministic(3), 9, 1.0, 3, denominator=denominator)
    assert case_of(release, Relation.ZERO_OUT).theorem.number == "17"
    with pytest.raises(UnsupportedError, match=r"use zero_out|divide by a fixed number"):
        case_of(release, Relation.ADD_REMOVE)


def test_a_number_of_records_that_is_needed() -> None:
    with pytest.raises(ArgumentError, match="n is needed for truncated_poisson, got none; give n"):
        kind = REGISTRY.get("truncated_poisson")
        case_of(Release(kind(0.1, 3), None, 1.0), Relation.ADD_REMOVE)  # type: ignore[call-arg]

"""A `Release` is the question of all functions: each answers it as it answers the keywords."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import dpsub
from dpsub.accounting.questions import question
from dpsub.accounting.questions.search import largest_steps
from dpsub.errors import ArgumentError, UnsupportedError

KEYWORDS: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 20}
RELEASE = dpsub.Release(dpsub.Wor(5), 100, **KEYWORDS)
BUDGET = {"epsilon": 8.0, "delta": 1e-5}
LEDGER = dpsub.Ledger([RELEASE])

ASKED: dict[str, Callable[..., Any]] = {
    "account": lambda *what, **more: dpsub.account(*what, **more, delta=1e-5),
    "curve": lambda *what, **more: dpsub.curve(*what, **more, epsilon=[0.5, 1.0]).delta,
    "check": lambda *what, **more: dpsub.check(*what, **more, delta=1e-5, claimed_epsilon=1.0),
    "select": lambda *what, **more: dpsub.select(*what, **more, delta=1e-5, runs_mean=3),
    "audit": lambda *what, **more: dpsub.audit(*what, **more, epsilon=0.5, draws=200),
    "add": lambda *what, **more: LEDGER.add(*what, **more).as_plain(),
    "would_exceed": lambda *what, **more: LEDGER.would_exceed(*what, **more, **BUDGET),
    "epsilon_with": lambda *what, **more: LEDGER.epsilon_with(*what, **more, **BUDGET),
}
"""Questions about releases."""
LACKING: dict[str, tuple[Callable[..., Any], str]] = {
    "calibrate": (lambda *w, **m: dpsub.calibrate(*w, **m, **BUDGET), "noise_multiplier"),
    "Ledger.calibrate": (lambda *w, **m: LEDGER.calibrate(*w, **m, **BUDGET), "noise_multiplier"),
    "largest_steps": (lambda *w, **m: largest_steps(*w, **m, **BUDGET), "steps"),
    "steps_left": (lambda *w, **m: LEDGER.steps_left(*w, **m, **BUDGET), "steps"),
}
"""Questions that search for one of the keywords, whose value in a release they ignore."""


@pytest.mark.parametrize("name", ASKED)
def test_a_release_is_answered_as_its_keywords(name: str) -> None:
    ask = ASKED[name]
    assert str(ask(RELEASE)) == str(ask(dpsub.Wor(5), 100, **KEYWORDS))


@pytest.mark.parametrize("name", LACKING)
def test_what_is_searched_for_is_not_taken_from_a_release(name: str) -> None:
    ask, searched = LACKING[name]
    keywords = {key: value for key, value in KEYWORDS.items() if key != searched}
    assert str(ask(RELEASE)) == str(ask(dpsub.Wor(5), 100, **keywords))


def test_a_release_of_a_schedule_is_searched_by_epochs() -> None:
    epochs = dpsub.Release(dpsub.CyclicPoisson(0.2, 4), None, 2.0, steps=12)
    found = LEDGER.steps_left(epochs, **BUDGET)
    assert found > 0 and found % 4 == 0
    assert found == LEDGER.steps_left(epochs.sampler, noise_multiplier=2.0, **BUDGET)


@pytest.mark.parametrize("name", [*ASKED, *LACKING])
@pytest.mark.parametrize("more", [{"n": 100}, {"group": 2}], ids=str)
def test_nothing_is_said_twice(name: str, more: dict[str, Any]) -> None:
    ask = ASKED[name] if name in ASKED else LACKING[name][0]
    with pytest.raises(ArgumentError, match="a Release says all of its releases itself, got"):
        ask(RELEASE, **more)


def test_a_search_takes_nothing_that_it_finds() -> None:
    with pytest.raises(TypeError, match="noise_multiplier"):
        dpsub.calibrate(dpsub.Wor(5), 100, noise_multiplier=2.0, **BUDGET)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="steps"):
        largest_steps(dpsub.Wor(5), 100, noise_multiplier=2.0, steps=3, **BUDGET)  # type: ignore[call-arg]


def test_an_audit_plays_gaussian_noise_alone() -> None:
    for odd in ({"mechanism": "laplace"}, {"denominator": "realised"}):
        with pytest.raises(UnsupportedError, match="an audit plays Gaussian noise on sums"):
            dpsub.audit(replace(RELEASE, **odd), epsilon=0.5)


def test_it_is_printed_as_answers_print_it() -> None:
    assert str(RELEASE) == "20 releases from WOR(n = 100, m = 5), gaussian noise multiplier 2"
    assert str(RELEASE) in str(dpsub.account(RELEASE, delta=1e-5))
    own = dpsub.pair([0.5, 0.5], [0.4, 0.6])
    alone = dpsub.Release.of(dpsub.Poisson(0.1), mechanism=own, group=2)
    assert str(alone) == f"1 release from Poisson(rate = 0.1), {own}, groups of 2 records"


@pytest.mark.parametrize("name", sorted({*ASKED, *LACKING} - {"add"}))
@pytest.mark.parametrize(
    ("wrong", "right"),
    [("adjacence", "adjacency"), ("efforts", "effort"), ("mechanisms", "mechanism")],
)
def test_a_wrong_keyword_is_refused_with_the_nearest(name: str, wrong: str, right: str) -> None:
    ask = ASKED[name] if name in ASKED else LACKING[name][0]
    with pytest.raises(TypeError, match=f"unexpected keyword '{wrong}'; did you mean '{right}'"):
        ask(RELEASE, **{wrong: 1})


def test_a_ledger_takes_the_keywords_of_the_question_alone() -> None:
    with pytest.raises(TypeError, match="unexpected keyword 'efforts'; did you mean 'effort'"):
        LEDGER.account(delta=1e-5, efforts=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword 'noise_multiplier'; known: adjacency"):
        LEDGER.account(delta=1e-5, noise_multiplier=2.0)  # type: ignore[call-arg]


def test_what_is_not_refined_takes_no_width() -> None:
    with pytest.raises(TypeError, match="unexpected keyword 'width'"):
        LEDGER.select(delta=1e-5, runs_mean=3, width=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword 'width'"):
        dpsub.recommend(100, batch_size=10, epochs=1, **BUDGET, width=0.1)  # type: ignore[arg-type]


def test_a_question_takes_its_defaults_from_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    default = replace(question.DEFAULT, adjacency="add_remove", width=0.5)
    monkeypatch.setattr(question, "DEFAULT", default)
    found = dpsub.account(RELEASE, delta=1e-5)
    assert str(found.adjacency) == "add_remove"
    assert str(LEDGER.account(delta=1e-5)) == str(found)
    assert str(dpsub.account(RELEASE, delta=1e-5, adjacency="substitute").adjacency) == "substitute"


def test_one_step_of_a_release_is_amplified() -> None:
    found = dpsub.amplify(RELEASE, epsilon=1.0)
    described = dpsub.amplify(dpsub.Wor(5), 100, noise_multiplier=2.0, epsilon=1.0)
    assert str(found) == str(described)
    with pytest.raises(ArgumentError, match="got noise_multiplier as well"):
        dpsub.amplify(RELEASE, epsilon=1.0, noise_multiplier=2.0)
    with pytest.raises(UnsupportedError, match="about one record"):
        dpsub.amplify(replace(RELEASE, group=2), epsilon=1.0)
    with pytest.raises(TypeError, match="unexpected keyword 'steps'"):
        dpsub.amplify(dpsub.Wor(5), 100, noise_multiplier=2.0, steps=2, epsilon=1.0)  # type: ignore[call-arg]


MAKERS = (dpsub.Release, dpsub.Release.of)


def test_what_is_not_given_is_as_in_an_account() -> None:
    release = dpsub.Release(dpsub.Poisson(0.01), noise_multiplier=2)
    assert release == dpsub.Release.of(dpsub.Poisson(0.01), noise_multiplier=2)
    assert (release.n, release.steps) == (None, 1)
    asked = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=2, delta=1e-5)
    assert dpsub.account(release, delta=1e-5).upper == asked.upper
    assert dpsub.Release(dpsub.Shuffle(10), 100, noise_multiplier=2).steps == 10


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_needed_is_refused_in_a_sentence(make: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match=r"^a noise_multiplier is needed"):
        make(dpsub.Poisson(0.01))
    with pytest.raises(ArgumentError, match=r"^the number of records n is needed"):
        make(dpsub.Shuffle(10), noise_multiplier=2)


@pytest.mark.parametrize("make", MAKERS)
def test_an_own_mechanism_has_its_own_noise(make: Callable[..., Any]) -> None:
    own = dpsub.pair([0.75, 0.25], [0.25, 0.75])
    release = make(dpsub.Poisson(0.1), mechanism=own)
    assert replace(release, steps=2).steps == 2
    with pytest.raises(ArgumentError, match=r"has its own noise, .* = 2; drop"):
        make(dpsub.Poisson(0.1), noise_multiplier=2, mechanism=own)

"""Properties that hold between answers to random questions: 38 in `make test`, 79 in `make
test-all`, ten thousand in `make test-slow`.

The truth of these questions is not known, but an order of truths is: more noise loses no more, and
so on. Ends lie around the truth, so where one truth is at most another, the lower bound of the one
is at most the upper bound of the other: that holds to the last digit, whatever stopped the
refinement. Upper bounds alone keep such an order up to the width that was asked for. No tolerance
is used but such a width, or one that a docstring promises, which the test names.

Faults are planted into the answers of each property, and its cases must find each of them.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.questions import export, fast_search, ledger
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.fast_search import Needed
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.search import Calibration, Goal
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.sampling import CyclicPoisson, Poisson, RandomAllocation, Schedule
from dpsub.sampling.schemes import SCHEMES, scheme
from tests.few import few
from tests.fresh_seeds import replay, seed
from tests.properties.questions import (
    EFFORT,
    KINDS,
    WIDTH,
    Question,
    ends_in_order,
    random_question,
)

Fault = Callable[[pytest.MonkeyPatch], None]
BLOCK = 50
"""Cases of one property that `make test-slow` tries in one test."""


# monotone in the noise, the number of releases, the size of a sample, and the relation


def noise_protects(question: Question) -> None:
    """More noise is noise added to the release: a processing, which loses nothing more."""
    ends_in_order(
        question.but(noise_multiplier=1.5 * question.noise_multiplier).ask(), question.ask()
    )


def steps_cost(question: Question) -> None:
    """An adversary who does not see the last releases learns no more."""
    ends_in_order(question.ask(), question.but(times=2 * question.times + 1).ask())


def rates_cost(question: Question) -> None:
    """A larger sample holds the record more often, and the proved bound grows with it."""
    larger = with_a_larger_sample(question)
    assert larger is not None
    ends_in_order(question.ask(), larger.ask())


def with_a_larger_sample(question: Question) -> Question | None:
    """Return the question about a sample that holds more copies of a record, or None where that
    says nothing about privacy.

    A Poisson sample, in cycles or not, of a smaller rate is a larger one thinned. The numbers of
    copies of a record grow stochastically with the last stage of a chain, and with them what is
    proved. The likelihood ratio of one of t + 1 steps is the mean of those of one of t of them,
    over which step is left out, so it is spread less. A batch that is cut, a place in a fixed order
    and a choice of several steps have no such order.
    """
    sampler, n = question.sampler, question.n
    if isinstance(sampler, RandomAllocation):
        return (
            question.but(sampler=RandomAllocation(sampler.t - 1))
            if sampler.k == 1 < sampler.t
            else None
        )
    if isinstance(sampler, Poisson | CyclicPoisson):
        return question.but(sampler=replace(sampler, rate=(1 + 2 * sampler.rate) / 3))
    if isinstance(sampler, Schedule) or not sampler.sizes or sampler.name == "truncated_poisson":
        return None
    *before, last = sampler.sizes
    family = type(sampler).family(n, **{name: getattr(sampler, name) for name in before})
    size = getattr(sampler, last)
    return (
        question.but(sampler=family.make(min(2 * size, family.most)))
        if size < family.most
        else None
    )


def zeroes_are_records(question: Question) -> None:
    """A record that contributes 0 is one that may be put in place of another."""
    ends_in_order(
        question.but(adjacency="zero_out").ask(), question.but(adjacency="substitute").ask()
    )


def covers_zero_out(question: Question) -> bool:
    return all(question.but(adjacency=name).covered for name in ("zero_out", "substitute"))


# one question asked in several ways


def tight_is_closer(question: Question) -> None:
    """A tight upper bound is at most the quick one from which it starts; no attack exceeds it."""
    asked: dict[str, Any] = {"width": None}
    quick, tight = question.ask(**asked, effort=EFFORT / 4), question.ask(**asked, quick=False)
    assert quick.lower <= tight.upper, f"attacked at {quick.lower!r}, tight {tight.upper!r}"
    assert tight.lower <= quick.upper, f"quick {quick.upper!r}, attacked at {tight.lower!r}"
    if quick.width_met:  # then the tight answer, in four times the time, began with it
        assert tight.upper <= quick.upper, f"tight {tight.upper!r}, quick {quick.upper!r}"


def tightens(question: Question) -> bool:
    return Proof.of([question.release], question.adjacency).tightens


def both_questions_agree(question: Question) -> None:
    """delta falls with epsilon: from epsilon(delta) on it is at most delta, and before at least."""
    epsilon = question.ask()
    delta = question.target["delta"]
    if math.isfinite(epsilon.upper):
        above = question.but(target={"epsilon": epsilon.upper}).ask()
        assert above.lower <= delta, (
            f"epsilon is at most {epsilon.upper!r}, where delta is at least {above.lower!r}"
        )
    if epsilon.lower > 0:
        below = question.but(target={"epsilon": epsilon.lower}).ask()
        assert delta <= below.upper, (
            f"epsilon is at least {epsilon.lower!r}, where delta is at most {below.upper!r}"
        )


def asks_for_epsilon(question: Question) -> bool:
    return "delta" in question.target


def arrays_are_single_questions(question: Question) -> None:
    """Arrays ask for the same numbers as single questions, with the same accuracy."""
    ((name, value),) = question.target.items()
    values = [value * factor for factor in (1.0, 0.5, 1e-3)]
    several = question.but(target={name: values}).ask()
    for one_value, lower, upper in zip(values, several.lower, several.upper, strict=True):
        single = question.but(target={name: one_value}).ask()
        of_array = replace(several, lower=lower, upper=upper)
        ends_in_order(single, of_array)
        ends_in_order(of_array, single)


# answers found by a search


def calibrated_noise_holds(question: Question) -> None:
    """The noise is proved, and an attack exceeds the target with what is refuted."""
    epsilon, delta = float(question.ask().upper), question.target["delta"]
    if not 0 < epsilon < math.inf:
        return
    target = {"delta": delta, "adjacency": question.adjacency, "effort": 2 * EFFORT}
    try:
        found = dpsub.calibrate(**question.releases, epsilon=epsilon, **target, accuracy=WIDTH)
    except NumericalError as error:
        assert "raise effort" in str(error)
        return
    assert found.account.upper <= epsilon
    account = question.but(noise_multiplier=found.noise_multiplier).ask()
    assert account.lower <= epsilon, (
        f"{found.noise_multiplier!r} is proved, and attacked at {account.lower!r}"
    )
    # the same proof on other grids, which is off by the width at most
    assert not account.width_met or account.upper <= epsilon + WIDTH, (
        f"{found} is proved only with {account.upper!r}"
    )
    if found.refuted is not None:
        assert found.refuted < found.noise_multiplier
        claim = {"noise_multiplier": found.refuted, "claimed_epsilon": epsilon}
        releases = {name: value for name, value in question.releases.items() if name != "sampler"}
        checked = dpsub.check(
            question.sampler, **releases, **claim, **target | {"effort": 8 * EFFORT, "quick": False}
        )
        is_spent = checked.verdict == "open" and checked.width_reason.startswith("effort")
        assert checked.verdict == "refuted" or is_spent, (
            f"{found.refuted!r} is not refuted: {checked}"
        )


def fast_searches_are_calibrations(question: Question) -> None:
    """The search of `recommend` promises noise within its accuracy of noise that is not proved, to
    which grids add at most as much again; `calibrate` promises noise within its accuracy of noise
    at which epsilon, known to that share, is not proved."""
    accuracy, epsilon = 1e-2, math.sqrt(question.noise_multiplier)
    target = {"delta": question.target["delta"], "adjacency": question.adjacency}
    plan, n, steps = planned(question)
    release = Release(plan, n, 1.0, steps)
    try:
        slow = dpsub.calibrate(
            plan, n, steps=steps, epsilon=epsilon, **target, accuracy=accuracy, effort=2 * EFFORT
        )
        with work.metered(EFFORT):
            fast = fast_search.needed(release, Goal(epsilon, **target, accuracy=accuracy))
            is_whole = work.refusals() == 0
        with work.metered(EFFORT):
            stricter_goal = Goal(epsilon * (1 - accuracy), **target, accuracy=accuracy)
            stricter = fast_search.needed(release, stricter_goal)
    except NumericalError as error:
        assert "raise effort" in str(error)
        return
    except UnsupportedError as error:
        assert "still has a bound" in str(error)
        return
    found = f"{plan}, {n} records, {steps} steps, epsilon {epsilon!r}: {fast}, {slow}"
    assert fast.necessary <= slow.noise_multiplier, found
    assert slow.refuted is None or slow.refuted <= fast.noise_multiplier, found
    assert not is_whole or fast.noise_multiplier <= slow.noise_multiplier * (1 + accuracy) ** 2, (
        found
    )
    assert not slow.account.width_met or slow.noise_multiplier <= stricter.noise_multiplier * (
        1 + accuracy
    ), found


def planned(question: Question) -> tuple[Any, int, int]:
    """Return a training by one of the schemes of `recommend`, with its records and steps."""
    names, epochs = list(SCHEMES), 1 + question.times % 4
    m = max(1, question.n // 10)
    n = 10 * m  # in ten batches, which suits all of them
    name = names[KINDS.index(type(question.sampler)) % len(names)]
    plan, steps = scheme(name, n, m, epochs)
    return plan, n, steps


def is_planned(question: Question) -> bool:
    """Whether a scheme of these sizes exists and is covered."""
    try:
        plan, n, steps = planned(question)
        Proof.of([Release(plan, n, 1.0, steps)], question.adjacency)
    except (ArgumentError, UnsupportedError):
        return False
    return asks_for_epsilon(question)


# data that leave the account, and come back


def exported_laws_are_the_account(question: Question) -> None:
    """dp-accounting has the curve of the law that is exported at multiples of its step, and is
    above it between."""
    delta = question.target["delta"]
    exported = dpsub.Ledger([question.release]).export(adjacency=question.adjacency)
    # on the law's own step: dp-accounting's is too fine for losses as large as some are here
    epsilon = exported.dp_accounting(exported.step).get_epsilon_for_delta(delta)
    account = question.ask()
    assert account.lower <= epsilon, (
        f"dp-accounting proves {epsilon!r}, attacked at {account.lower!r}"
    )
    if not 0 < epsilon < 700:  # beyond, e^epsilon is no double, which that library needs
        return

    def law(where: float) -> float:
        return max(law.delta(where) for law in exported.laws if law.side == "upper")

    # its delta is a difference of sums of doubles, of total 1; our masses were rounded up three
    # times by 1e-12
    rounding = max(each.losses.size for each in exported.laws) * np.finfo(float).eps + 4e-12 * delta
    assert law(epsilon) <= delta + rounding, (
        f"dp-accounting has {epsilon!r}, where delta is {law(epsilon)!r}"
    )
    before = max(epsilon - exported.step, 0.0)
    assert law(before) >= delta - rounding, (
        f"dp-accounting has {epsilon!r}, but {before!r} is as good"
    )


def ledgers_keep_what_was_entered(first: Question, second: Question) -> None:
    """A file holds all of it; the order of entries is not part of the question."""
    more = first.but(noise_multiplier=2 * first.noise_multiplier)
    kept = dpsub.Ledger([first.release, second.release, more.release])
    with tempfile.TemporaryDirectory() as folder:
        kept.save(Path(folder, "ledger.json"))
        loaded = dpsub.Ledger.load(Path(folder, "ledger.json"))
    assert list(loaded) == list(kept)
    asked = first.target | {"adjacency": first.adjacency, "width": WIDTH, "effort": EFFORT}
    one, other = kept.account(**asked), dpsub.Ledger(reversed(list(loaded))).account(**asked)
    ends_in_order(one, other)
    ends_in_order(other, one)


# faults: answers that are wrong in one way


def wrong_accounts(spoilt: Callable[[Account, dict[str, Any]], Account]) -> Fault:
    """Replace accounts by what `spoilt` makes of the answer and the question."""
    honest = dpsub.account

    def account(sampler: Any, n: Any = None, **asked: Any) -> Account:
        return spoilt(honest(sampler, n, **asked), {"sampler": sampler, "n": n, **asked})

    return lambda monkeypatch: monkeypatch.setattr(dpsub, "account", account)


def scaled(found: Account, factor: float) -> Account:
    """Both bounds wrong by a factor."""
    return replace(found, lower=found.lower * factor, upper=found.upper * factor)


def loose(found: Account, factor: float) -> Account:
    """The upper bound alone too high."""
    return replace(found, upper=found.upper * max(factor, 1.0))


def times(asked: Mapping[str, Any]) -> float:
    return float(asked.get("steps") or asked.get("epochs") or 1)


def copies(asked: Mapping[str, Any]) -> float:
    """Return the expected number of a record's copies in one step."""
    sampler, n = asked["sampler"], asked["n"]
    if isinstance(sampler, Schedule):
        return sampler.occurrences / sampler.steps_per_epoch(n)
    return float(sampler.multiplicity_law(n).mean)


def wrong_calibrations(**wrong: float) -> Fault:
    """Make attributes of the answer wrong by a factor."""
    honest = dpsub.calibrate

    def calibrate(*words: Any, **asked: Any) -> Calibration:
        found = honest(*words, **asked)
        return replace(
            found,
            **{name: factor * (getattr(found, name) or 0.0) for name, factor in wrong.items()},
        )

    return lambda monkeypatch: monkeypatch.setattr(dpsub, "calibrate", calibrate)


def wrong_searches(**wrong: float) -> Fault:
    honest = fast_search.needed

    def needed(*words: Any, **asked: Any) -> Needed:
        found = honest(*words, **asked)
        return found._replace(
            **{name: factor * getattr(found, name) for name, factor in wrong.items()}
        )

    return lambda monkeypatch: monkeypatch.setattr(fast_search, "needed", needed)


def moved(steps: int) -> Fault:
    """All losses some steps away."""
    honest = export._on_multiples

    def on_multiples(law: export.ComposedLaw, step: float) -> tuple[int, np.ndarray]:
        first, masses = honest(law, step)
        return first + steps, masses

    return lambda monkeypatch: monkeypatch.setattr(export, "_on_multiples", on_multiples)


def four_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file keeps four digits of the noise."""
    honest = ledger.as_plain

    def as_plain(release: Release) -> dict[str, Any]:
        return honest(release) | {"noise_multiplier": float(f"{release.noise_multiplier:.4g}")}

    monkeypatch.setattr(ledger, "as_plain", as_plain)


def first_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first release is composed twice."""
    honest = Proof.of.__func__  # type: ignore[attr-defined]

    def of(cls: type[Proof], releases: Any, adjacency: str | None = None) -> Proof:
        return honest(cls, [releases[0], *releases], adjacency)

    monkeypatch.setattr(Proof, "of", classmethod(of))


@dataclass(frozen=True)
class Property:
    """A property of a question that `suits`, or of two: `holds` raises AssertionError if it fails.

    `cases`: twice as many as `make test-all` tries, and how many `make test-slow` tries; those of
    the former are the first of the latter, and the first eighth is what `make test` tries.
    """

    holds: Callable[..., None]
    cases: tuple[int, int]
    faults: dict[str, Fault]
    suits: Callable[[Question], bool] = lambda question: True
    with_another: bool = False

    @property
    def name(self) -> str:
        return self.holds.__name__

    def questions(self, case: int) -> list[Question]:
        first = random_question(self.name, case, self.suits)
        if not self.with_another:
            return [first]
        same = first.adjacency
        return [
            first,
            random_question(
                f"beside {self.name}", case, lambda one: one.but(adjacency=same).covered
            ),
        ]


PROPERTIES = {
    each.name: each
    for each in (
        Property(
            noise_protects,
            (20, 1500),
            {
                "falls with less noise": wrong_accounts(
                    lambda found, asked: scaled(found, asked["noise_multiplier"] ** 4)
                ),
                "looser with noise": wrong_accounts(
                    lambda found, asked: loose(found, 1 + asked["noise_multiplier"] ** 4)
                ),
            },
        ),
        Property(
            steps_cost,
            (20, 1500),
            {
                "falls with steps": wrong_accounts(
                    lambda found, asked: scaled(found, times(asked) ** -3)
                ),
                "looser for few steps": wrong_accounts(
                    lambda found, asked: loose(found, 1 + 10 / times(asked) ** 2)
                ),
            },
        ),
        Property(
            rates_cost,
            (20, 1200),
            {
                "falls with the rate": wrong_accounts(
                    lambda found, asked: scaled(found, copies(asked) ** -4)
                ),
                "looser for small rates": wrong_accounts(
                    lambda found, asked: loose(found, copies(asked) ** -4)
                ),
            },
            with_a_larger_sample,
        ),
        Property(
            zeroes_are_records,
            (15, 1000),
            {
                "a zero costs more": wrong_accounts(
                    lambda found, asked: scaled(
                        found, 4.0 if asked["adjacency"] == "zero_out" else 1.0
                    )
                ),
                "looser for zeroes": wrong_accounts(
                    lambda found, asked: loose(
                        found, 4.0 if asked["adjacency"] == "zero_out" else 1.0
                    )
                ),
            },
            covers_zero_out,
        ),
        Property(
            tight_is_closer,
            (6, 150),
            {
                "looser": wrong_accounts(
                    lambda found, asked: loose(found, 1.5 if asked.get("quick") is False else 1.0)
                ),
                "below an attack": wrong_accounts(
                    lambda found, asked: scaled(found, 0.5 if asked.get("quick") is False else 1.0)
                ),
            },
            tightens,
        ),
        Property(
            both_questions_agree,
            (20, 1500),
            {
                "delta too high": wrong_accounts(
                    lambda found, asked: scaled(found, 1.1 if "epsilon" in asked else 1.0)
                ),
                "delta too low": wrong_accounts(
                    lambda found, asked: scaled(found, 0.9 if "epsilon" in asked else 1.0)
                ),
            },
            asks_for_epsilon,
        ),
        Property(
            arrays_are_single_questions,
            (12, 1000),
            {
                "in another order": wrong_accounts(
                    lambda found, asked: (
                        replace(found, lower=np.flip(found.lower), upper=np.flip(found.upper))
                        if np.ndim(found.lower)
                        else found
                    )
                ),
                "looser": wrong_accounts(
                    lambda found, asked: loose(found, 1.1 if np.ndim(found.lower) else 1.0)
                ),
            },
        ),
        Property(
            calibrated_noise_holds,
            (12, 500),
            {
                "less noise than is proved": wrong_calibrations(noise_multiplier=0.9),
                "an attack on more noise": wrong_calibrations(refuted=1.0 + 2 * WIDTH),
            },
            asks_for_epsilon,
        ),
        Property(
            fast_searches_are_calibrations,
            (13, 250),
            {
                "more noise": wrong_searches(noise_multiplier=1.03),
                "less noise": wrong_searches(noise_multiplier=0.97),
                "an attack on more noise": wrong_searches(necessary=1.03),
            },
            is_planned,
        ),
        Property(
            exported_laws_are_the_account,
            (12, 700),
            {
                "a step lower": moved(-1),
                "two steps higher": moved(2),
            },
            asks_for_epsilon,
        ),
        Property(
            ledgers_keep_what_was_entered,
            (8, 700),
            {
                "four digits": four_digits,
                "the first counts twice": first_counts_twice,
            },
            with_another=True,
        ),
    )
}


def hold(name: str, cases: range) -> None:
    """Try the cases of one property; AssertionError with the first that breaks it."""
    for case in cases:
        questions = PROPERTIES[name].questions(case)
        try:
            PROPERTIES[name].holds(*questions)
        except Exception as error:
            raise AssertionError(
                replay(seed(), f"case {case} of {name}, {questions}: {error!r}")
            ) from error


@pytest.mark.parametrize("name", PROPERTIES)
def test_answers_agree_with_each_other(name: str) -> None:
    hold(name, range(PROPERTIES[name].cases[0] // 8))


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROPERTIES)
def test_more_answers_agree_with_each_other(name: str) -> None:
    cases = PROPERTIES[name].cases[0]
    hold(name, range(cases // 8, cases // 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name in PROPERTIES for first in range(0, PROPERTIES[name].cases[1], BLOCK)],
)
def test_ten_thousand_answers_agree_with_each_other(name: str, first: int) -> None:
    hold(name, range(first, first + BLOCK))


PLANTED = [(name, fault) for name in PROPERTIES for fault in PROPERTIES[name].faults]
FIRST = [(name, next(iter(PROPERTIES[name].faults))) for name in PROPERTIES]


# the first fault of each property, then the others
@pytest.mark.parametrize(("name", "fault"), few(dict.fromkeys([*FIRST, *PLANTED]), most=len(FIRST)))
def test_a_planted_fault_is_caught(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PROPERTIES[name].faults[fault](monkeypatch)
    with pytest.raises(AssertionError, match=f"of {name}.*AssertionError"):
        hold(name, range(PROPERTIES[name].cases[0]))


def test_there_are_ten_thousand_cases() -> None:
    assert sum(each.cases[1] for each in PROPERTIES.values()) == 10_000
    assert all(
        each.cases[1] % BLOCK == 0 and each.cases[0] <= each.cases[1]
        for each in PROPERTIES.values()
    )

"""Forms of an answer in `print`, a notebook, a paper and a picture: few words, numbers on their
safe side."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import pickle
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.questions import plot
from dpsub.accounting.questions.account import WIDTH_REASONS
from dpsub.accounting.questions.words import Text, account_warnings, interval, percent
from dpsub.cli import main
from dpsub.cli.answers import account_lines, account_values
from dpsub.sampling import REGISTRY, SCHEDULES
from tests.few import few

QUESTION: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 20}
POISSON, WOR = dpsub.Poisson(0.1), dpsub.Wor(20)


@pytest.fixture(scope="module")
def found() -> dpsub.Account:
    return dpsub.account(POISSON, **QUESTION, delta=1e-5)


def ledger() -> dpsub.Ledger:
    entered = dpsub.Ledger()
    entered.record(POISSON, **QUESTION, name="pretraining")
    entered.record(POISSON, noise_multiplier=3.0, steps=7)
    return entered


@pytest.mark.parametrize("name", ["account", "array", "check", "calibration", "curve", "ledger"])
def test_print_and_a_notebook_show_at_most_six_lines(name: str) -> None:
    shown: Any = {
        "account": lambda: dpsub.account(POISSON, **QUESTION, delta=1e-5),
        "array": lambda: dpsub.account(POISSON, **QUESTION, delta=[1e-5, 1e-6]),
        "check": lambda: dpsub.check(POISSON, **QUESTION, delta=1e-5, claimed_epsilon=0.1),
        "calibration": lambda: dpsub.calibrate(POISSON, epsilon=1, delta=1e-5, steps=20),
        "curve": lambda: dpsub.curve(POISSON, **QUESTION, epsilon=[0.5, 1.0]),
        "ledger": ledger,
    }[name]()
    assert len(str(shown).splitlines()) <= 6
    assert "add_remove" in str(shown)
    assert shown._repr_html_().startswith("<p>") and "<table>" in shown._repr_html_()


@pytest.mark.slow
def test_a_recommendation_is_shown_in_a_few_lines() -> None:
    target = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "zero_out"}
    found = dpsub.recommend(1000, batch_size=250, epochs=1, **target)
    assert len(str(found).splitlines()) <= 6
    best = ", ".join([found.schemes[0].name, *found.even])
    prefix = "one of " if found.even else ""
    assert str(found).startswith(f"{prefix}{best}: the least noise for epsilon 1 at delta")


@pytest.mark.parametrize(
    ("lower", "words"),
    [
        (0.1, "bounds: the upper one is proved, an attack attains"),
        (0.0, "upper: the upper bound is proved, no"),
    ],
)
def test_no_attack_is_said_to_attain_nothing(
    found: dpsub.Account, lower: float, words: str
) -> None:
    """The lower bound is 0 where, for instance, the time ended before the attack was computed."""
    ended = dataclasses.replace(found, kind="bounds", lower=lower)
    assert words in str(ended)
    assert ended.kind == words.partition(":")[0]
    assert dataclasses.replace(ended, lower=np.array([0.0, lower])).kind == ended.kind


def test_no_attack_computed_is_another_sentence_than_none_known(found: dpsub.Account) -> None:
    computed = dataclasses.replace(found, kind="bounds", lower=0.0, lower_pair="")
    known = dataclasses.replace(computed, attack_known=False)
    for say in (str, lambda answer: answer.statement().sentence):
        assert "o attack that was computed attains more than 0" in say(computed)
        assert "o attack is known" not in say(computed)
        assert "o attack is known" in say(known)
    assert account_values(computed)["pair"].endswith("lower: none computed")
    assert account_values(known)["pair"].endswith("lower: none known")


@pytest.mark.parametrize("kind", ["exact", "bounds", "upper", "lower"])
@pytest.mark.parametrize("lower", [0.0, 1.0, math.inf])
def test_an_infinite_end_is_neither_proved_nor_exact(
    found: dpsub.Account, kind: str, lower: float
) -> None:
    answer = dataclasses.replace(found, kind=kind, lower=lower, upper=math.inf, width_met=False)
    assert answer.kind == "lower"
    text = str(answer)
    kinds = [line for name, line in account_lines(answer, 1e-5) if name == "kind"]
    assert "upper bound is proved" not in f"{text}{kinds}"
    assert "exact up to" not in text and "Exact" not in str(kinds)
    assert "no finite upper bound was computed" in text
    assert "empty guarantee" not in text
    assert account_values(answer)["guarantee"] is False
    with pytest.raises(dpsub.ArgumentError, match="needs a proved upper bound"):
        answer.statement()


def test_a_delta_of_one_is_computed_or_not(found: dpsub.Account) -> None:
    delta = dataclasses.replace(found, quantity="delta", lower=0.99, upper=1.0)
    assert "an empty guarantee" in str(delta)
    ended = dataclasses.replace(delta, width_met=False)
    assert "no upper bound below 1 was computed" in str(ended)
    assert "an empty guarantee" not in str(ended)


@pytest.mark.parametrize(("n", "delta"), [(100, 0.01), (100, 0.1), (10**6, 1e-5)])
def test_a_delta_of_one_record_is_remarked_on(n: int, delta: float) -> None:
    asked = {"noise_multiplier": 2.0, "steps": 3, "quick": True}
    answer = dpsub.account(dpsub.Wor(n // 10), n, **asked, delta=delta)
    assert "delta is at least 1/n" in str(answer)
    statement = answer.statement()
    assert "delta is at least 1/n" in statement.fields["remark"]
    less = dpsub.account(dpsub.Wor(n // 10), n, **asked, delta=0.9 / n)
    assert "at least 1/n" not in str(less) and "remark" not in less.statement().fields
    # of n that is not told nothing is
    unknown = dpsub.account(dpsub.Poisson(0.1), **asked, delta=delta)
    assert "at least 1/n" not in str(unknown)


def test_mu_stands_where_it_says_as_much_as_epsilon() -> None:
    sampled = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=1000, delta=1e-5)
    assert "mu" not in sampled.statement().fields
    question = {"epochs": 4, "delta": 1e-5, "adjacency": "substitute"}
    whole = dpsub.account(dpsub.Deterministic(), 100, noise_multiplier=5.0, **question)
    assert whole.statement().fields["mu"] == pytest.approx(2 / 5 * 4**0.5, rel=1e-5)


@pytest.mark.parametrize("effort", few([1e-3, 1e-9, 1.0], more=1))
@pytest.mark.parametrize("relation", few(["zero_out", "substitute", "add_remove"], more=1))
def test_every_scheme_says_what_it_has(effort: float, relation: str) -> None:
    """Over all samplers and schedules: words, JSON and statement agree with the ends."""
    kinds = [*REGISTRY.members().values(), *SCHEDULES.members().values()]
    answered = 0
    for kind in kinds:
        for sampler, n in kind.examples()[:2]:
            asked = {"noise_multiplier": 1.5, "adjacency": relation, "effort": effort}
            try:
                answer = dpsub.account(sampler, n, **asked, delta=1e-6)
            except (dpsub.UnsupportedError, dpsub.ArgumentError):
                continue
            answered += 1
            check_words(answer)
    assert answered > 5


def check_words(answer: dpsub.Account) -> None:
    values, text = account_values(answer), str(answer)
    assert values["kind"] == answer.kind
    assert (answer.kind == "lower") is not math.isfinite(answer.upper)
    if answer.lower > 0:
        assert answer.kind != "upper"
        assert not values["pair"].endswith(("none known", "none computed"))
        assert "no attack" not in text
    elif answer.kind != "exact":
        assert "attains the lower" not in text
    if answer.kind in ("exact", "bounds", "upper"):
        sentence = answer.statement().sentence
        assert ("attack attains" in sentence) is (answer.lower > 0)


def test_a_note_says_why_the_ends_are_apart_without_a_key(found: dpsub.Account) -> None:
    reason = f"{WIDTH_REASONS['effort']}; {WIDTH_REASONS['theory']}"
    apart = dataclasses.replace(found, width_met=False, width_reason=reason)
    assert account_warnings(apart) == [
        "wider than requested: the budget of work ended the refinement; raise effort; no closer "
        "proof or attack is known; more effort does not help"
    ]


def test_a_copy_shows_what_the_answer_shows(found: dpsub.Account) -> None:
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize(
    ("sampler", "n", "adjacency", "words"),
    [
        ("poisson", None, "add_remove", "as in Opacus"),
        ("poisson", None, "substitute", "compare Opacus' epsilon with that under zero_out"),
        ("poisson", None, "zero_out", "comparable with Opacus' epsilon"),
        ("wor", 1000, "add_remove", "compare Opacus' epsilon with that under zero_out"),
        ("wor", 1000, "substitute", "compare Opacus' epsilon with that under zero_out"),
        ("wor", 1000, "zero_out", "comparable with Opacus' epsilon"),
    ],
)
def test_the_relation_that_compares_with_opacus_is_named(
    sampler: str, n: int | None, adjacency: str, words: str
) -> None:
    drawn = {"poisson": POISSON, "wor": WOR}[sampler]
    text = str(dpsub.account(drawn, n, **QUESTION, delta=1e-5, adjacency=adjacency))
    assert words in text


def test_numbers_are_rounded_to_their_safe_side() -> None:
    assert interval(1.23456789, 2.34567891) == "1.23456 to 2.34568, width 48 %"
    assert interval(0.0, 2.34567891) == "at most 2.34568"
    assert interval(2.0, math.inf) == "at least 2"
    assert [percent(share) for share in (0.0, 1e-9, 0.00361, 0.5)] == [
        "0 %",
        "below 0.001 %",
        "0.37 %",
        "50 %",
    ]


def test_html_of_an_answer_holds_no_markup_of_its_values() -> None:
    assert "&lt;b&gt;" in Text("<b>", [("a", "<b>")]).html().partition("<table>")[2]


def test_a_statement_claims_no_less_than_is_proved(found: dpsub.Account) -> None:
    statement = found.statement(clip=1.5)
    fields = statement.fields
    assert Decimal(str(fields["epsilon"])) >= Decimal(found.upper)
    assert Decimal(str(fields["epsilon_lower"])) <= Decimal(found.lower)
    assert fields["delta"] == 1e-5 and fields["clipping_norm"] == "1.5"
    assert "standard deviation 3 on sums of vectors clipped to norm 1.5" in fields["mechanisms"]
    assert f"({fields['epsilon']:g}, 1e-05)-differentially private" in statement.sentence
    assert str(statement).startswith("The release of 20 noisy sums") and "| epsilon |" in str(
        statement
    )
    assert "<table>" in statement._repr_html_()
    assert json.loads(json.dumps(fields)) == fields
    assert fields["sampler"] == "Poisson(rate = 0.1)" and fields["steps"] == 20
    assert fields["input_metric"] == "add_remove" and fields["noise_multiplier"] == 2.0
    assert fields["privacy_unit"] == "record-level" and fields["theorem"] == found.theorem
    assert fields["made_by"] == f"dpsub {dpsub.__version__}"
    told = re.fullmatch(
        r"at most ([\d.]+), .* % true at 0\.1, 1, 10 % false positives; attack ([\d.]+), .* %",
        fields["membership"],
    )
    assert told is not None and 0.1 < float(told[2]) <= float(told[1])
    assert len(fields["certificate_sha256"]) == 64


def test_the_digest_is_that_of_the_file_of_the_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = tmp_path / "c.json"
    command = "account poisson --rate 0.1 --noise-multiplier 2 --steps 20 --delta 1e-5 --statement"
    assert main([*command.split(), "--json", "--certificate", str(certificate)]) == 0
    told = json.loads(capsys.readouterr().out)
    digest = hashlib.sha256(certificate.read_bytes()).hexdigest()
    assert told["certificate_sha256"] == digest


@pytest.mark.parametrize(
    ("question", "way_out"),
    [
        # the same question: an end that was not reached says nothing of the noise
        ({"noise_multiplier": 0.05, "steps": 10**6, "effort": 1e-6}, "ask with more effort"),
        ({"noise_multiplier": 0.05, "steps": 10**6, "effort": 1.0}, "take more noise, or fewer"),
        ({"noise_multiplier": 0.5, "steps": 10, "variant": "paper"}, "ask with variant rigorous"),
    ],
)
def test_a_statement_that_cannot_be_made_says_what_helps(
    question: dict[str, Any], way_out: str
) -> None:
    found = dpsub.account(dpsub.Poisson(0.5), epsilon=0.01, quick=False, **question)
    with pytest.raises(dpsub.ArgumentError, match=f"needs a proved upper bound, .*; {way_out}"):
        found.statement()


def test_statements_of_ledgers_and_claims() -> None:
    together = ledger().statement("1", delta=1e-5)
    assert together.fields["steps"] == "20, 7"
    claim = dpsub.check(POISSON, **QUESTION, delta=1e-5, claimed_epsilon=0.01)
    assert claim.statement().sentence.endswith("The claim that epsilon is at most 0.01 is refuted.")


@pytest.mark.parametrize(
    "options", [{"variant": "paper", "delta": 1e-5}, {"delta": [1e-5, 1e-6]}], ids=str
)
def test_what_guarantees_nothing_has_no_statement(options: dict[str, Any]) -> None:
    with pytest.raises(dpsub.ArgumentError, match="a statement needs"):
        dpsub.account(POISSON, **QUESTION, **options).statement()


@pytest.mark.parametrize("name", ["account", "ledger", "calibration", "curve", "delta"])
def test_pictures_are_drawn(name: str, tmp_path: Path, found: dpsub.Account) -> None:
    path = tmp_path / f"{name}.svg"
    if name == "account":
        figure = found.plot(path)
    elif name == "ledger":
        figure = ledger().plot(path, delta=1e-5)
    elif name == "calibration":
        figure = dpsub.calibrate(POISSON, epsilon=1, delta=1e-5, steps=8, accuracy=0.1).plot(path)
    elif name == "curve":
        figure = dpsub.curve(POISSON, **QUESTION, epsilon=[0.5, 1.0]).plot(path)
    else:
        figure = dpsub.account(POISSON, **QUESTION, epsilon=1.0).plot(path)
    assert path.read_text(encoding="utf-8").startswith("<?xml")
    for axes in figure.axes:
        proved, attained = (line.get_ydata() for line in axes.get_lines()[:2])
        # of the errors of a test the lower bound is what is proved
        sign = -1 if axes.get_ylabel() == "false negative rate" else 1
        assert not (sign * proved < sign * attained).any()
        assert axes.get_xlabel() and axes.get_ylabel()


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(dpsub, "account", lambda *_, **__: pytest.fail("computed"), raising=False)
    command = "account poisson --rate 0.1 --noise-multiplier 2 --steps 20 --delta 1e-5 --plot"
    assert main([*command.split(), str(tmp_path / "a.xyz")]) == 2
    assert "a picture must end in .png, .pdf or .svg" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([*command.split(), str(tmp_path / "a.png")]) == 2
    assert "pip install '.[plot]' in a clone, or 'dpsub[plot]'" in capsys.readouterr().err
    with pytest.raises(dpsub.UnsupportedError, match="a picture needs matplotlib"):
        plot.check_can_plot()

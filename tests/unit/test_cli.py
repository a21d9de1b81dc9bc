"""The command line answers as the library does, in JSON and in text, and refuses in one
sentence."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
import warnings
from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub import cli, noise
from dpsub.accounting.questions.words import down, up
from dpsub.amplification import amplify
from dpsub.cli import COMMANDS, main
from dpsub.cli.answers import Answer, as_json
from dpsub.cli.parsing import duration, number, numbers, whole_number
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Sampler, Wor, Wr
from tests.few import few

SOURCE = Path(dpsub.__file__).parents[1]
ACCOUNT = ["quantity", "lower", "upper", "kind", "guarantee", "pair", "adjacency", "sensitivity"]
ACCOUNT += ["theorem", "lower_theorem", "width", "width_reason", "conditions"]
AMPLIFY = ["epsilon", "delta", "epsilon_amplified", "delta_amplified", "eta", "category"]
WOR, OW = "wor --n 1000 --m 20", "must_ow --n 1000 --b 50 --m 20"
RELEASES, TARGET = "--noise-multiplier 2 --steps 50", "--epsilon 1 --delta 1e-5"
BRDP = "--sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5"

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, words: str, status: int = 0) -> str:
    """Return the output of a command: on the standard output or, if it is refused, in one line on
    the standard error."""
    assert main(words.split()) == status
    out, err = capsys.readouterr()
    assert (err if status == 0 else out) == ""
    assert status == 0 or (err.endswith("\n") and err.count("\n") == 1)
    return str(out or err)


def answered(capsys: Captured, words: str) -> Any:
    """Return the JSON of a command, by a parser that refuses other text."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    out = said(capsys, f"{words} --json")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=refuse)


def untimed(found: Any) -> Any:
    """Return an answer without the times."""
    if isinstance(found, list):
        return [untimed(item) for item in found]
    if isinstance(found, dict):
        return {key: untimed(value) for key, value in found.items() if key != "seconds"}
    return found


CHAIN = Multistage.of_text("wor:50,wr:20")
LAWS: list[tuple[str, Sampler, int | None]] = [
    ("poisson --rate 0.1", Poisson(0.1), None),
    ("poisson --n 50 --m 5", Poisson(0.1), 50),
    (WOR, Wor(20), 1000),
    ("wr --n 1e3 --m 20", Wr(20), 1000),
    (OW, MustOW(50, 20), 1000),
    ("must_ww --n 100 --b 200 --m 10", MustWW(200, 10), 100),
    ("multistage --n 1000 --stages wor:50,wr:20", CHAIN, 1000),
]


@pytest.mark.parametrize(("words", "sampler", "n"), LAWS)
def test_law_and_amplify(capsys: Captured, words: str, sampler: Sampler, n: int | None) -> None:
    values, law = answered(capsys, f"law {words}"), sampler.multiplicity_law(n or 1)
    assert list(values) == ["eta", "law", "expected_distinct"]
    assert (values["eta"], values["law"]) == (law.eta, law.pmf.tolist())
    assert values["expected_distinct"] == (None if n is None else sampler.expected_distinct(n))
    assert "eta" in said(capsys, f"law {words}")
    if "must_ww" in words:
        return  # no theorem covers b > n
    for mechanism in ("gaussian", "laplace"):
        asked = f"amplify {words} --mechanism {mechanism} --ratio 0.5 --epsilon 0.3"
        values, expected = answered(capsys, asked), amplify(law, noise.of(mechanism, 0.5), 0.3)
        assert list(values) == AMPLIFY
        assert all(values[name] == getattr(expected, name) for name in AMPLIFY[:5])
        text = said(capsys, f"{asked} --explain")
        assert "add_remove" in text if isinstance(sampler, Poisson) else "substitute" in text
        for word in (
            "kind",
            "guarantee",
            "relation",
            "sensitivity",
            "conditions",
            values["category"],
        ):
            assert word in text


@pytest.mark.parametrize("question", few(["epsilon", "delta"]))
@pytest.mark.parametrize(
    ("words", "sampler", "options", "kind", "adjacency"),
    [
        ("poisson --rate 0.02", Poisson(0.02), {}, "exact", "add_remove"),
        ("poisson --rate 0.02", Poisson(0.02), {"adjacency": "substitute"}, "exact", "substitute"),
        (WOR, Wor(20), {}, "exact", "add_remove"),
        (WOR, Wor(20), {"adjacency": "substitute"}, "bounds", "substitute"),
        (WOR, Wor(20), {"variant": "paper"}, "paper", "substitute"),
        (OW, MustOW(50, 20), {"adjacency": "substitute"}, "bounds", "substitute"),
        (WOR, Wor(20), {"mechanism": "laplace", "adjacency": "substitute"}, "bounds", "substitute"),
        ("multistage --n 1000 --stages wor:50,wr:20", CHAIN, {}, "bounds", "add_remove"),
    ],
)
def test_account(
    capsys: Captured,
    words: str,
    sampler: Sampler,
    options: dict[str, Any],
    kind: str,
    adjacency: str,
    question: str,
) -> None:
    asked = {question: {"epsilon": 0.8, "delta": 1e-6}[question], **options}
    command = " ".join(
        [
            "account --quick",
            words,
            RELEASES,
            *(f"--{name} {value}" for name, value in asked.items()),
        ]
    )
    values = answered(capsys, command)
    assert list(values) == ACCOUNT
    n = None if words.startswith("poisson") else 1000
    expected = dpsub.account(sampler, n, noise_multiplier=2.0, steps=50, **asked)
    assert (values["lower"], values["upper"]) == (expected.lower, expected.upper)
    assert values["quantity"] == {"epsilon": "delta", "delta": "epsilon"}[question]
    assert (values["kind"], values["adjacency"], values["guarantee"]) == (
        kind,
        adjacency,
        kind != "paper",
    )
    assert values["conditions"] == list(expected.conditions)
    assert values["sensitivity"] == expected.sensitivity
    assert expected.pair in values["pair"]
    text = said(capsys, f"{command} --explain")
    assert text.startswith("NOT A GUARANTEE") == (kind == "paper") != ("(proved)" in text)
    assert said(capsys, command) == f"{expected}\n"


def test_both_ends_are_there_with_hardly_any_work(capsys: Captured) -> None:
    asked = "account must_ww --n 1 --b 3 --m 3 --noise-multiplier 0.05 --steps 10 --delta 0.1"
    found = answered(capsys, f"{asked} --effort 1e-6")
    assert 0 < found["lower"] <= found["upper"] < math.inf
    assert found["kind"] == "bounds" and "first_ends" in found["theorem"]
    assert "empty" not in said(capsys, f"{asked} --effort 1e-6 --explain")


def test_infinite_numbers_are_valid_json() -> None:
    text = as_json({"a": math.inf, "b": -math.inf, "c": math.nan, "d": np.array([1.0, math.inf])})
    assert json.loads(text) == {
        "a": "Infinity",
        "b": "-Infinity",
        "c": None,
        "d": [1.0, "Infinity"],
    }


@pytest.mark.parametrize(("mechanism", "steps"), few([("laplace", 5), ("gaussian", 50)]))
def test_calibrated_noise_is_safe(capsys: Captured, mechanism: str, steps: int) -> None:
    common = f"--steps {steps} --mechanism {mechanism}"
    values = answered(capsys, f"calibrate {WOR} {TARGET} {common}")
    again = f"account {WOR} {common} --delta 1e-5 --noise-multiplier {values['noise_multiplier']!r}"
    assert answered(capsys, again)["upper"] <= 1
    text = said(capsys, f"calibrate {WOR} {TARGET} {common}")
    assert float(text.splitlines()[2].split()[2]) >= values["noise_multiplier"]
    assert text.startswith("Laplace noise multiplier") == (mechanism == "laplace")
    assert "and less refuted by an attack" in text
    explained = said(capsys, f"calibrate {WOR} {TARGET} {common} --explain")
    assert "and less: an attack exceeds the target" in explained


def test_plain_laplace_noise_is_as_good_as_recycled_noise_and_the_text_says_so(
    capsys: Captured,
) -> None:
    text = " ".join(said(capsys, f"brdp --kernel laplace {BRDP} --explain").split())
    for words in ("plain Laplace noise is as good", "the exact delta is 2.00002e-05", "guarantee"):
        assert words in text


def test_translations_are_remarked_on_and_not_warned_of(capsys: Captured) -> None:
    common = "translate --sampler wr --base substitute"
    remark = said(capsys, f"{common} --target substitute --rate 1 --n 11 --ratio 1 --epsilon 0.1")
    assert ("probability of 11 draws with replacement from 11 is 0.649506, not the") in " ".join(
        remark.split()
    )
    text = said(capsys, f"{common} --n 10 --m 3 --ratio 1 --epsilon 0.1")
    assert "Theorem 11" in text and "exactly n records" in text
    assert said(capsys, f"{common} --target substitute --n 10 --m 11 --ratio 1 --epsilon 1")


@pytest.mark.parametrize(
    "words", ["", "--target substitute", "--base substitute --target substitute --n 10"]
)
def test_a_gaussian_bound_is_never_zero(capsys: Captured, words: str) -> None:
    asked = f"translate {words} --rate 0.1 --ratio 1 --epsilon 800"
    assert 0 < answered(capsys, asked)["delta_amplified"] < 1e-300
    # bounded losses do end
    assert answered(capsys, f"{asked} --mechanism laplace")["delta_amplified"] == 0


STEPS = f"account {WOR} --sigma 2 --delta 1e-5"
REFUSALS: list[tuple[str, str]] = [  # more of them are in golden/commands.json
    ("", "a command is needed"),
    ("help acount", "did you mean 'account'?"),
    (f"account {WOR} {RELEASES}", "--epsilon --delta is required"),
    (
        f"account {WOR} {RELEASES} --epsilon 1 --delta 0.1",
        "--epsilon and --delta are two questions, got both; drop one",
    ),
    (f"account {WOR} {RELEASES} --epsilon inf", "--epsilon: must be a finite number"),
    (f"account {WOR} {RELEASES} --epsilon 1 --steps 1.5", "must be a whole number, got '1.5'"),
    (f"account {WOR} {RELEASES} --epsilon 1 --adjacency substitut", "did you mean 'substitute'?"),
    (f"account {WOR} {RELEASES} --epsilon 1 --b 3", "--b does not apply to wor"),
    (f"account {WOR} --mechanism laplace --variant paper {RELEASES} --epsilon 1", "Gaussian"),
    (f"account poisson {RELEASES} --epsilon 1", "got neither"),
    (
        "account poisson --rate .1 --sigma 2 --noise-multiplier 3 --delta .1 --steps 1",
        "are the same option",
    ),
    (f"{STEPS} --epochs 3 --steps 4", "got both"),
    (STEPS, "got neither"),
    (f"{STEPS} --epochs 0", "--epochs must be above 0"),
    (f"{STEPS} --epochs 1e300", "is too many"),
    *(
        (f"{STEPS} --steps 50 --time-limit {limit}", "--time-limit: must be above 0")
        for limit in ("0", "-1", "1e9")
    ),
    *(
        (f"account {name} --n 100", f"did you mean {meant!r}?")
        for name, meant in (
            ("Shuffling", "shuffle"),
            ("random-alocation", "random_allocation"),
            ("balls_and_bins", "random_allocation"),
            ("in-order", "deterministic"),
        )
    ),
    ("law shuffle --n 100 --m 10", "the steps of shuffle depend on one another"),
    (
        "amplify shuffle --n 100 --m 10 --ratio 1 --epsilon 1",
        "the steps of shuffle depend on one another",
    ),
    (
        f"account shuffle --m 10 {RELEASES} --delta .1",
        "the number of records n is needed for shuffle",
    ),
    (f"account shuffle --n 9 --m 10 {RELEASES} --delta .1", "m must be at most n = 9"),
    (
        "account shuffle --n 9 --m 2 --sigma 1 --steps 8 --delta .1",
        "whole epochs of 5, got 8; give --epochs",
    ),
    (
        "account shuffle --n 9 --m 2 --sigma 1 --epochs 1.5 --delta .1",
        "--epochs of a schedule must be a whole number",
    ),
    ("account deterministic --sigma 1 --epochs 0 --delta .1", "--epochs must be above 0"),
    (f"account deterministic --t 3 {RELEASES} --delta .1", "--t does not apply to deterministic"),
    (
        f"account random_allocation --n 3 {RELEASES} --delta .1",
        "random_allocation needs --t, got no --t",
    ),
    (f"account random_allocation --t 3 --k 4 {RELEASES} --delta .1", "k must be at most t = 3"),
    (
        f"account cyclic_poisson --cycle 3 {RELEASES} --delta .1",
        "needs either --rate, or --n and --m",
    ),
    (f"account truncated_poisson --n 9 --rate .1 {RELEASES} --delta .1", "got no --max-batch"),
    (
        f"account truncated_poisson --n 9 --rate .1 --max-batch 0 {RELEASES} --delta .1",
        "--max-batch must be at least 1",
    ),
    (
        "account deterministic --sigma 1 --epochs 2 --variant paper --delta .1",
        "covers chains of stages only",
    ),
    (f"calibrate shuffle --n 9 --solve size --sigma 2 {TARGET} --steps 3", "solve for noise"),
    ("law must_ow --n 9 --m 3", "got no --b (size of the first stage)"),
    (
        "law wor --n 1000 --rate .02",
        "wor, which takes --n (number of records) and --m (batch size);",
    ),
    ("law poisson --m 3", "poisson needs --n and --m, got no --n"),
    ("law without_replacement --n 9 --m 3", "did you mean 'wor'?"),
    (f"amplify {WOR} --mechanism gausian --ratio 1 --epsilon 1", "did you mean 'gaussian'?"),
    (
        "amplify multistage --n 10 --stages wr:9,wr:8,wr:7 --ratio 1 --epsilon 1",
        "more than two stages",
    ),
    (
        "amplify multistage --n 10 --stages wr:9,poisson:0.5 --ratio 1 --epsilon 1",
        "ends with a Poisson stage",
    ),
    (
        f"calibrate {WOR} {TARGET}",
        "--steps (number of releases) and --epochs is needed, got neither",
    ),
    (f"calibrate {WOR} {TARGET} {RELEASES}", "--solve noise returns --noise-multiplier"),
    (f"calibrate poisson --solve size --sigma 2 {TARGET} --epochs 3", "give --steps"),
    (f"calibrate {WOR} --solve steps --sigma 2 {TARGET} --quick", "--quick needs --solve noise"),
    (f"brdp {BRDP} --kernel exponential", "must be a known kernel"),
    (f"brdp {BRDP} --scale 1 --steps 3", "the budget must allow for the kernel"),
    (
        "translate --base substitute --rate 0.1 --ratio 1 --epsilon 0.1",
        "may reveal the size of its sample",
    ),
    (
        "translate --base substitute --target substitute --rate 0.1 --n 1e12 --ratio 1 --epsilon 1",
        "at most 1000000",
    ),
    (
        "translate --sampler wr --target substitute --n 1e308 --rate 0.5 --ratio 1 --epsilon 1",
        "n must be at most 9007",
    ),
]


@pytest.mark.parametrize(("words", "reason"), REFUSALS)
def test_errors_are_one_sentence(capsys: Captured, words: str, reason: str) -> None:
    sentence = said(capsys, words, status=2)
    assert reason in sentence


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("acount", "argument"),
        (f"account wor --rate .02 {RELEASES} --delta 1e-5", "argument"),
        ("law shuffle --n 9 --m 3", "unsupported"),
        ("advise nowhere.csv --epsilon 1 --rate 0.1", "data"),
        ("plan nowhere.yaml", "plan"),
    ],
)
def test_errors_are_json_where_json_is_asked_for(capsys: Captured, words: str, kind: str) -> None:
    sentence = said(capsys, words, status=2).partition(": ")[2].strip()
    assert main([*words.split(), "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {"error": sentence, "kind": kind}


def test_what_nobody_foresaw_is_a_sentence_too(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("dpsub.cli.law.run", broken)
    sentence = "dpsub law: unexpected ZeroDivisionError: by zero; please report the command\n"
    assert said(capsys, f"law {WOR}", status=2) == sentence


def test_a_word_of_several_lines_leaves_the_sentence_on_one(capsys: Captured) -> None:
    assert main(["law", "poisson", "--rate", "0.1", "one\nother\x1b[31m"]) == 2
    _, sentence = capsys.readouterr()
    assert sentence == (
        "dpsub law: values follow an option, got one\\nother\\x1b[31m without one; write "
        "--n 60000, for example; dpsub law --help lists the options\n"
    )


def test_warnings_of_libraries_reach_nobody(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubtful(*_: object) -> Answer:
        for _ in range(2):
            warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return Answer({}, "done")

    monkeypatch.setattr("dpsub.cli.law.run", doubtful)
    assert said(capsys, f"law {WOR}") == "done\n"


def test_help(capsys: Captured) -> None:
    overview = said(capsys, "--help")
    for name in COMMANDS:
        assert name in overview
        assert "--json" in said(capsys, f"{name} --help")
    example = overview.partition("example: dpsub ")[2]
    assert "  epsilon  " in said(capsys, example)
    assert said(capsys, "--version") == f"dpsub {dpsub.__version__}\n"
    assert said(capsys, "help law") == said(capsys, "law --help")
    text = said(capsys, "help account")
    for words in (
        "--noise-multiplier S, --sigma S",
        "--rate Q, --sample-rate Q",
        "--m M, --batch-size M",
        "must_oo",
    ):
        assert words in text
    assert "--convention" not in text
    assert text.count("make no whole") == 1  # one purpose of two schedules


@pytest.mark.parametrize("value", [1 / 3, 2.5e-300, 123456789.123, 1.0, 0.0, 0.1])
def test_digits_are_rounded_to_the_safe_side(value: float) -> None:
    assert float(down(value)) <= value <= float(up(value))
    assert float(up(value)) - float(down(value)) <= 2e-5 * value


def test_as_a_process_without_what_it_does_not_need() -> None:
    """A simple account imports nothing that takes long, and `python -m dpsub` says what `main`
    says."""
    words = f"account {WOR} {RELEASES} --delta 1e-5 --json"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dpsub", *words.split()],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    values = json.loads(found.stdout)
    assert 1.1 < values["lower"] <= values["upper"] < 1.3
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "dpsub.noise" in imported
    slow = {
        "matplotlib",
        "pandas",
        "pyarrow",
        "sklearn",
        "jsonschema",
        "scipy.optimize",
        "scipy.stats",
        "scipy.signal",
    }
    assert imported & slow == set()
    refusal = subprocess.run(
        [sys.executable, "-m", "dpsub", "law", "worr"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (refusal.returncode, refusal.stdout) == (2, "")
    assert refusal.stderr == "dpsub law: unknown sampler 'worr'; did you mean 'wor'?\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            "account poisson --rate 0.02 --noise-multiplier 2 --steps 50 --delta 1e-5",
            "account poisson --sample-rate 1/50 --sigma 2 --steps 5e1 --delta 1/100000",
        ),
        (
            "account poisson --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-5",
            "account poisson --n 1_000 --batch-size 20 --sigma 2 --steps 50 --delta=1e-5",
        ),
        ("law wor --n 100 --m 10", "law wor --n 1e2 --batch-size 10"),
        (
            f"account {WOR} {RELEASES} --epsilon 0.8 --variant paper",
            f"account {WOR} {RELEASES} --epsilon 0.8 --convention paper",
        ),
        (
            "calibrate poisson --rate 0.1 --steps 2 --epsilon 1 --delta 1e-5",
            "calibrate poisson --rate 0.1 --steps 2 --target-epsilon=1 --target-delta 1e-5",
        ),
        (
            f"brdp {BRDP} --scale 4 --rate 0.5 --steps 20",
            f"brdp {BRDP} --scale 4 --rate 0.5 --compositions 20",
        ),
        (
            "amplify wor --n 100 --m 10 --ratio 1 --epsilon 1",
            "amplify wor --n 100 --m 10 --sigma 2 --epsilon 1",
        ),
        (
            "translate --rate 0.1 --ratio 1 --epsilon 0.1",
            "translate --sample-rate 1/10 --ratio 1 --epsilon 0.1",
        ),
    ],
)
def test_other_words_ask_the_same(capsys: Captured, ours: str, theirs: str) -> None:
    assert untimed(answered(capsys, ours)) == untimed(answered(capsys, theirs))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/60000", 1 / 60000), ("1e-5", 1e-5), ("2", 2.0), ("3/4", 0.75), ("-1/2", -0.5)],
)
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    assert number(text) == value == numbers(text)
    assert numbers(f"{text},7") == (value, 7.0)


@pytest.mark.parametrize("parse", [number, whole_number, numbers, duration])
@pytest.mark.parametrize(
    "text", ["1/0", "inf", "nan", "", "x", "1/2/3", "1,,2", "9" * 400, f"-{'9' * 5000}", "1e999"]
)
def test_what_is_no_number_is_refused_in_a_few_words(parse: Any, text: str) -> None:
    with pytest.raises(ArgumentTypeError) as refusal:
        parse(text)
    assert len(str(refusal.value)) < 120


def test_whole_numbers_are_exact() -> None:
    assert [whole_number(text) for text in ("9007199254740991", "1e6", "10_000")] == [
        2**53 - 1,
        10**6,
        10**4,
    ]
    with pytest.raises(ArgumentTypeError, match="at most"):
        whole_number("9007199254740993")  # the nearest double is 2^53


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("poisson --n 60000 --batch-size 256 --epochs 60", 14063),
        ("poisson --rate 0.1 --epochs 1.1", 11),
        ("wor --n 1000 --m 300 --epochs 3", 10),
        ("must_ow --n 100 --b 40 --m 30 --epochs 1", 4),
        ("multistage --n 100 --stages wor:50,poisson:0.5 --epochs 2", 8),
    ],
)
def test_epochs_become_steps_and_the_answer_says_so(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, words: str, steps: int
) -> None:
    asked = []

    def account(*_: object, **question: Any) -> dpsub.Account:
        asked.append(question["steps"])
        return dpsub.Account(0.0, 1.0, "upper", "pair", "substitute", "C")  # type: ignore[arg-type]

    monkeypatch.setattr(dpsub, "account", account, raising=False)
    question = f"account {words} --sigma 1.1 --delta 1/60000"
    values = answered(capsys, question)
    assert values["steps"] == steps == asked[0]
    assert not re.search(rf"epochs? at {steps}\b", values["remarks"][0])
    assert values["remarks"][0].endswith(f": {steps} steps")
    assert f"of {steps} releases" in said(capsys, question)


def test_several_values_are_rows(capsys: Captured) -> None:
    question = f"account poisson --rate 0.02 {RELEASES} --delta"
    rows = untimed(answered(capsys, f"{question} 1e-5,1e-6"))
    assert [next(iter(row)) for row in rows] == ["delta", "delta"]
    for delta, row in zip(("1e-5", "1e-6"), rows, strict=True):
        alone = untimed(answered(capsys, f"{question} {delta}"))
        assert row.pop("delta") == float(delta)
        for end in ("lower", "upper"):
            assert row.pop(end) == pytest.approx(alone.pop(end), rel=1e-3)
        assert row == alone
    assert said(capsys, f"{question} 1e-5,1e-6").count(", width ") == 2
    text = said(capsys, f"{question} 1e-5,1e-6 --explain")
    assert "epsilon at 2 values of delta" in text
    assert text.count("(proved)") == 2 == text.count("yes: (")
    assert max(map(len, text.splitlines())) <= 120


def test_several_targets_are_a_list_of_answers(capsys: Captured) -> None:
    question = f"amplify {WOR} --ratio 1 --epsilon"
    assert answered(capsys, f"{question} 1,2") == [
        answered(capsys, f"{question} {epsilon}") for epsilon in "12"
    ]
    assert said(capsys, f"{question} 1,2").count("One gaussian release") == 2
    both = answered(
        capsys, "calibrate poisson --rate 0.1 --steps 2 --epsilon 1,2 --delta 1e-5,1e-6"
    )
    targets = [(row["target_epsilon"], row["target_delta"]) for row in both]
    assert targets == [(1, 1e-5), (1, 1e-6), (2, 1e-5), (2, 1e-6)]


def test_remarks_on_rates_near_one(capsys: Captured) -> None:
    values = answered(capsys, "account wor --n 100 --m 100 --sigma 8 --steps 3 --delta .1")
    assert values["guarantee"] and "no subsampling" in values["remarks"][0]
    assert "was 1 %" in said(capsys, "law poisson --rate 1")
    assert "remarks" not in answered(capsys, "law poisson --rate 0.99")


def test_a_new_noise_is_a_choice_where_it_can_be_used(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise.REGISTRY, "names", lambda: ("gaussian", "laplace", "triangle"))
    assert "{gaussian,laplace,triangle}" in said(capsys, "amplify --help")
    assert "{gaussian,laplace,triangle}" in said(capsys, "translate --help")
    # the accountant has no proof for it
    assert "{gaussian,laplace}" in said(capsys, "account --help")


def test_a_terminal_hears_of_what_takes_long(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> Answer:
        time.sleep(0.1)
        return Answer({}, "done")

    monkeypatch.setattr("dpsub.cli.law.run", slow)
    monkeypatch.setattr(cli, "_PATIENCE", 0.02)
    assert said(capsys, f"law {WOR}") == "done\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["law", *WOR.split()]) == 0
    out, err = capsys.readouterr()
    assert out == "done\n"
    assert err.startswith("\rdpsub law: 0 s") and err.endswith("\r\x1b[K")


def test_what_does_not_end_is_ended(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsub.cli.law.run", lambda _: time.sleep(60))
    monkeypatch.setattr(cli, "_GRACE", -1 + 1e-3)
    started = time.monotonic()
    assert ("no answer within --time-limit 1 s") in said(
        capsys, f"law {WOR} --time-limit 1", status=2
    )
    assert time.monotonic() - started < 10


def test_remarks_stand_in_every_row() -> None:
    class Doubtful:
        @staticmethod
        def run(arguments: Namespace) -> Answer:
            arguments.remarks.append("look")
            return Answer([{"a": 1}, {"a": 2}], "title")

    answer = cli._answer(Doubtful, Namespace())
    assert answer.values == [{"a": 1, "remarks": ["look"]}, {"a": 2, "remarks": ["look"]}]
    assert answer.text() == "title\n  note  look"
    assert answer.text(explain=True) == "title\n  remark  look"


DIGITS = "9" * 400


@pytest.mark.parametrize(
    "command",
    [
        f"law wor --n {DIGITS} --m 3",
        f"law wr --n 10 --m {DIGITS}",
        f"law multistage --n 10 --stages wr:{DIGITS}",
        f"law multistage --n 10 --stages wr:{'9' * 5000}",
        f"amplify wor --n {DIGITS} --m 3 --ratio 1 --epsilon 1",
        f"account wor --n {DIGITS} --m 3 --noise-multiplier 1 --steps 1 --delta .1",
        f"account wor --n 10 --m 3 --noise-multiplier 1 --steps {DIGITS} --delta .1",
        f"account poisson --n 10 --m {DIGITS} --noise-multiplier 1 --steps 1 --delta .1",
        f"audit wor --n {DIGITS} --m 3 --noise-multiplier 1 --steps 1 --epsilon 1",
        f"audit wor --n 10 --m 3 --noise-multiplier 1 --steps 1 --epsilon 1 --seed {DIGITS}",
        "audit wor --n 10 --m 3 --noise-multiplier 1 --steps 1 --epsilon 1 --draws 1e18",
        f"brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --steps {DIGITS}",
        "brdp --sensitivity 1 --bound 1e-12 --epsilon 1 --delta 1e-5",
        "brdp --sensitivity 1 --bound 1 --epsilon 1.0000001e9 --delta 1e-5",
        "calibrate wor --n 10 --m 3 --steps=-1 --epsilon 1 --delta .1",
        "calibrate wor --n 10 --m 3 --noise-multiplier 1e300 --solve steps --epsilon 1 --delta .1",
        "calibrate poisson --noise-multiplier 1e300 --steps 3 --solve size --epsilon 1 --delta .1",
    ],
    ids=lambda command: command[:60],
)
def test_what_is_out_of_range_is_said_so(capsys: Captured, command: str) -> None:
    """Each of these ended in "unexpected OverflowError", "ZeroDivisionError", "ValueError" or did
    not end at all."""
    status = main(command.split())
    out, err = capsys.readouterr()
    assert "unexpected" not in err
    assert (status, err) == (0, "") or (status, out, err.count("\n"), len(err) < 400) == (
        2,
        "",
        1,
        True,
    )

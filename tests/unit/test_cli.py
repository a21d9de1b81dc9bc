"""The command line: keys and values of JSON, text, and errors of one sentence."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub import noise as profiles
from dpsub.amplification import amplify
from dpsub.cli import COMMANDS, main
from dpsub.cli.answers import Answer, down, up
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Sampler, Wor, Wr
from dpsub.sampling.base import WithoutReplacement, WithReplacement

SOURCE = Path(dpsub.__file__).parents[1]
ACCOUNT = [
    "quantity", "lower", "upper", "kind", "guarantee", "pair", "adjacency", "sensitivity", "conditions", "seconds",
]  # fmt: skip
AMPLIFY = ["epsilon", "delta", "epsilon_amplified", "delta_amplified", "eta", "category"]
WOR = ["wor", "--n", "1000", "--m", "20"]
OW = ["must_ow", "--n", "1000", "--b", "50", "--m", "20"]
RELEASES = ["--noise-multiplier", "2", "--steps", "50"]
TARGET = ["--target-epsilon", "1", "--target-delta", "1e-5"]

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *words: str) -> str:
    """Standard output of a command that succeeds and complains of nothing."""
    status = main(words)
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    return out


def answered(capsys: Captured, *words: str) -> dict[str, Any]:
    """JSON of a command, by a parser that refuses what is not JSON."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    out = said(capsys, *words, "--json")
    assert out.count("\n") == 1
    values: dict[str, Any] = json.loads(out, parse_constant=refuse)
    return values


def refused(capsys: Captured, *words: str) -> str:
    """The one sentence on stderr of a command that is refused."""
    status = main(words)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


LAWS: list[tuple[list[str], Sampler, int | None]] = [
    (["poisson", "--rate", "0.1"], Poisson(0.1), None),
    (["poisson", "--n", "50", "--m", "5"], Poisson(0.1), 50),
    (WOR, Wor(20), 1000),
    (["wr", "--n", "1e3", "--m", "20"], Wr(20), 1000),
    (OW, MustOW(50, 20), 1000),
    (["must_ww", "--n", "100", "--b", "200", "--m", "10"], MustWW(200, 10), 100),
    (
        ["multistage", "--n", "1000", "--stages", "wor:500,wr:400"],
        Multistage([WithoutReplacement(500), WithReplacement(400)]),
        1000,
    ),
]


@pytest.mark.parametrize(("words", "sampler", "n"), LAWS)
def test_law(capsys: Captured, words: list[str], sampler: Sampler, n: int | None) -> None:
    values = answered(capsys, "law", *words)
    assert list(values) == ["eta", "law", "expected_distinct"]
    law = sampler.multiplicity_law(n or 1)
    assert values["eta"] == law.eta
    np.testing.assert_array_equal(values["law"], law.pmf)
    assert values["expected_distinct"] == (None if n is None else sampler.expected_distinct(n))
    assert "eta" in said(capsys, "law", *words)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize(("words", "sampler", "n"), [LAWS[0], *LAWS[2:5], LAWS[6]])
def test_amplify(capsys: Captured, words: list[str], sampler: Sampler, n: int | None, mechanism: str) -> None:
    options = ["--mechanism", mechanism, "--ratio", "0.5", "--epsilon", "0.3"]
    values = answered(capsys, "amplify", *words, *options)
    assert list(values) == AMPLIFY
    expected = amplify(sampler.multiplicity_law(n or 1), profiles.of(mechanism, 0.5), 0.3)
    for name in AMPLIFY[:5]:
        assert values[name] == getattr(expected, name)
    text = said(capsys, "amplify", *words, *options)
    assert "add_remove" in text if isinstance(sampler, Poisson) else "substitute" in text
    for word in ("kind", "guarantee", "adjacency", "sensitivity", "conditions", values["category"]):
        assert word in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["must_ww", "--n", "10", "--b", "11", "--m", "3"], "at most n = 10"),
        (["multistage", "--n", "10", "--stages", "wr:9,wr:8,wr:7"], "more than two stages"),
        (["multistage", "--n", "10", "--stages", "wr:9,poisson:0.5"], "ends with a Poisson stage"),
    ],
)
def test_amplify_refuses_what_no_theorem_covers(capsys: Captured, words: list[str], reason: str) -> None:
    assert reason in refused(capsys, "amplify", *words, "--ratio", "1", "--epsilon", "1")


ACCOUNTS: list[tuple[list[str], dict[str, Any], str, str]] = [
    (["poisson", "--rate", "0.02"], {}, "exact", "add_remove"),
    (["poisson", "--rate", "0.02", "--adjacency", "substitute"], {"adjacency": "substitute"}, "exact", "substitute"),
    (WOR, {}, "bounds", "substitute"),
    (OW, {}, "bounds", "substitute"),
    ([*WOR, "--mechanism", "laplace"], {"mechanism": "laplace"}, "bounds", "substitute"),
    (["multistage", "--n", "1000", "--stages", "wor:50,wr:20"], {}, "bounds", "substitute"),
]


@pytest.mark.parametrize("question", ["epsilon", "delta"])
@pytest.mark.parametrize(("words", "options", "kind", "adjacency"), ACCOUNTS)
def test_account(
    capsys: Captured, words: list[str], options: dict[str, Any], kind: str, adjacency: str, question: str
) -> None:
    given = {"epsilon": 0.8, "delta": 1e-6}[question]
    values = answered(capsys, "account", *words, *RELEASES, f"--{question}", str(given))
    assert list(values) == ACCOUNT
    chain = Multistage([WithoutReplacement(50), WithReplacement(20)])
    samplers: dict[str, Sampler] = {"poisson": Poisson(0.02), "wor": Wor(20), "must_ow": MustOW(50, 20)}
    sampler = samplers.get(words[0], chain)
    n = None if words[0] == "poisson" else 1000
    asked: dict[str, Any] = {question: given, **options}
    expected = dpsub.account(sampler, n, noise_multiplier=2.0, steps=50, **asked)
    assert (values["lower"], values["upper"]) == (expected.lower, expected.upper)
    assert values["quantity"] == {"epsilon": "delta", "delta": "epsilon"}[question]
    assert (values["kind"], values["adjacency"], values["guarantee"]) == (kind, adjacency, True)
    assert values["conditions"] == list(expected.conditions)
    assert values["sensitivity"] == expected.sensitivity
    assert expected.pair in values["pair"]
    assert values["seconds"] >= 0


def test_account_text_says_what_it_is(capsys: Captured) -> None:
    text = said(capsys, "account", *OW, *RELEASES, "--delta", "1e-6")
    for word in ("MUST.OW(n = 1000, b = 50, m = 20)", "(proved)", "bounds:", "yes: (", "substitute", "2 C"):
        assert word in text
    assert "conditions" in text
    assert max(map(len, text.splitlines())) <= 120


def test_paper_convention_is_no_guarantee(capsys: Captured) -> None:
    words = ["account", *WOR, *RELEASES, "--epsilon", "0.8", "--convention", "paper"]
    values = answered(capsys, *words)
    assert list(values) == ACCOUNT
    expected = dpsub.account(Wor(20), 1000, noise_multiplier=2.0, steps=50, epsilon=0.8, variant="paper")
    assert (values["lower"], values["upper"]) == (expected.lower, expected.upper)
    assert (values["kind"], values["guarantee"], values["conditions"]) == ("pair", False, [])
    text = said(capsys, *words)
    assert text.startswith("NOT A GUARANTEE")
    assert "(proved)" not in text
    assert "add_remove" in refused(capsys, *words, "--adjacency", "add_remove")


def test_an_infinite_bound_is_valid_json(capsys: Captured) -> None:
    text = Answer({"a": math.inf, "b": -math.inf, "c": math.nan, "d": np.array([1.0, math.inf])}, "").json()
    assert json.loads(text) == {"a": "Infinity", "b": "-Infinity", "c": None, "d": [1.0, "Infinity"]}


def test_calibrated_noise_is_safe(capsys: Captured) -> None:
    values = answered(capsys, "calibrate", *WOR, *TARGET, "--steps", "50")
    assert list(values)[:7] == [
        "solved", "noise_multiplier", "not_proved", "refuted", "target_epsilon", "target_delta", "evaluations",
    ]  # fmt: skip
    assert list(values)[7:] == ACCOUNT
    assert (values["solved"], values["quantity"], values["guarantee"]) == ("noise_multiplier", "epsilon", True)
    assert 0 < values["refuted"] < values["noise_multiplier"]
    assert values["upper"] <= 1
    noise = ["--noise-multiplier", repr(values["noise_multiplier"]), "--steps", "50", "--delta", "1e-5"]
    assert answered(capsys, "account", *WOR, *noise)["upper"] <= 1
    text = said(capsys, "calibrate", *WOR, *TARGET, "--steps", "50")
    assert float(text.splitlines()[1].split()[2]) >= values["noise_multiplier"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["poisson"], "rate"),
        (["wor", "--n", "1000"], "size"),
        (["must_wo", "--n", "1000", "--b", "300"], "size"),
        (["multistage", "--n", "1000", "--stages", "wor:500,wor:1"], "size"),
        (["multistage", "--n", "1000", "--stages", "poisson:0.5"], "rate"),
    ],
)
def test_calibrated_size_is_safe(capsys: Captured, words: list[str], name: str) -> None:
    values = answered(capsys, "calibrate", *words, *TARGET, *RELEASES, "--solve", "size")
    assert values["solved"] == name
    assert values["refuted"] is None or values["refuted"] >= values["not_proved"]
    assert 0 < values[name] < values["not_proved"]
    assert values["upper"] <= 1
    assert isinstance(values[name], int if name == "size" else float)
    assert f"  {name} " in said(capsys, "calibrate", *words, *TARGET, *RELEASES, "--solve", "size")


def test_calibrated_steps_are_safe(capsys: Captured) -> None:
    values = answered(capsys, "calibrate", *WOR, *TARGET, "--noise-multiplier", "2", "--solve", "steps")
    assert values["solved"] == "steps"
    for steps, safe in ((values["steps"], True), (values["not_proved"], False)):
        noise = ["--noise-multiplier", "2", "--steps", str(steps), "--delta", "1e-5"]
        assert (answered(capsys, "account", *WOR, *noise)["upper"] <= 1) == safe


def test_audit(capsys: Captured) -> None:
    words = ["audit", "wor", "--n", "4", "--m", "2", "--noise-multiplier", "1", "--steps", "1", "--epsilon", "0.5"]
    values = answered(capsys, *words, "--draws", "2000", "--seed", "3")
    assert list(values) == [
        "data_sets", "densities", "steps", "epsilon", "attack", "monte_carlo", "consistent", "account",
    ]  # fmt: skip
    assert values["data_sets"] == {
        "first": {"records": 4, "record": 1.0, "filler": -1.0},
        "second": {"records": 4, "record": -1.0, "filler": -1.0},
    }
    first, second = values["densities"]["first"], values["densities"]["second"]
    np.testing.assert_allclose(first["weights"], [0.5, 0.5])
    assert (first["means"], second["means"], second["weights"]) == ([-2.0, 0.0], [-2.0], [1.0])
    assert values["attack"]["lower"] <= 0.27015 <= values["attack"]["upper"] + 1e-5
    shown = values["monte_carlo"]
    assert (shown["draws"], shown["seed"], shown["confidence"]) == (2000, 3, 0.99)
    assert shown["lower"] <= values["attack"]["upper"]
    assert values["attack"]["lower"] <= shown["upper"]
    assert values["consistent"] is True
    assert list(values["account"]) == ACCOUNT
    again = answered(capsys, *words, "--draws", "2000", "--seed", "3")
    assert again["monte_carlo"] == shown
    text = said(capsys, *words, "--draws", "2000")
    for word in ("4 records: the record +C, the others -C", "0.5 N(-2, 1^2) + 0.5 N(0, 1^2)", "proved upper bound"):
        assert word in text


def test_audit_of_an_absent_record(capsys: Captured) -> None:
    words = ["audit", "poisson", "--rate", "0.3", *RELEASES, "--epsilon", "1", "--draws", "500"]
    values = answered(capsys, *words)
    assert values["data_sets"]["second"] == {"records": 99, "record": None, "filler": 0.0}
    assert "99 records: the record is absent, the others 0" in said(capsys, *words)


REFUSALS: list[tuple[list[str], str]] = [
    ([], "a command is needed"),
    (["acount"], "did you mean 'account'?"),
    (["account", "must_wo2", *RELEASES, "--epsilon", "1"], "did you mean 'must_wo'?"),
    (["account", *WOR, "--noise-multipler", "2", "--epsilon", "1"], "did you mean '--noise-multiplier'?"),
    (["account", *WOR, *RELEASES], "--epsilon --delta is required"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--delta", "0.1"], "--delta: not allowed with argument --epsilon"),
    (["account", *WOR, *RELEASES, "--epsilon", "-1"], "epsilon must be at least 0"),
    (["account", *WOR, *RELEASES, "--epsilon", "inf"], "--epsilon: must be a finite number"),
    (["account", *WOR, *RELEASES, "--delta", "1"], "delta must be below 1"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--noise-multiplier", "0"], "noise-multiplier must be at least"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--steps", "0"], "steps must be at least 1"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--steps", "1.5"], "must be a whole number, got '1.5'"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--adjacency", "substitut"], "did you mean 'substitute'?"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--adjacency", "add_remove"], "use adjacency substitute"),
    (["account", *WOR, *RELEASES, "--epsilon", "1", "--b", "3"], "--b does not apply to wor"),
    (["account", "wor", "--m", "3", *RELEASES, "--epsilon", "1"], "got no --n"),
    (["account", "wor", "--n", "3", "--m", "4", *RELEASES, "--epsilon", "1"], "m must be at most n = 3, got m = 4"),
    (["account", "wr", "--n", "9", "--m", "4", "--mechanism", "laplace", *RELEASES, "--epsilon", "1"], "Laplace"),
    (["account", *WOR, "--mechanism", "laplace", "--convention", "paper", *RELEASES, "--epsilon", "1"], "Gaussian"),
    (["account", "poisson", "--rate", "0.1", "--denominator", "realised", *RELEASES, "--epsilon", "1"], "fixed number"),
    (["account", "poisson", *RELEASES, "--epsilon", "1"], "got neither"),
    (["account", "multistage", "--n", "9", "--stages", "wo:5", *RELEASES, "--epsilon", "1"], "did you mean 'wor'?"),
    (["account", "multistage", "--n", "9", "--stages", "wor", *RELEASES, "--epsilon", "1"], "KIND:SIZE"),
    (["account", "multistage", "--n", "9", "--stages", "wr:x", *RELEASES, "--epsilon", "1"], "whole number"),
    (["account", "multistage", "--n", "9", "--stages", "poisson:.1,wr:5", *RELEASES, "--epsilon", "1"], "last stage"),
    (["amplify", *WOR, "--mechanism", "gausian", "--ratio", "1", "--epsilon", "1"], "did you mean 'gaussian'?"),
    (["amplify", *WOR, "--ratio", "0", "--epsilon", "1"], "ratio must be above 0"),
    (["calibrate", *WOR, *TARGET], "needs --steps"),
    (["calibrate", *WOR, *TARGET, *RELEASES], "is what --solve noise asks for"),
    (["calibrate", *WOR, *TARGET, *RELEASES, "--solve", "size"], "--m is what is asked for"),
    (["calibrate", "wor", "--n", "5", *TARGET, *RELEASES, "--solve", "size"], "add noise"),
    (["audit", *WOR, *RELEASES, "--epsilon", "1", "--draws", "0"], "draws must be at least 1"),
    (["audit", *WOR, *RELEASES, "--epsilon", "1", "--confidence", "1"], "confidence must be below 1"),
]


@pytest.mark.parametrize(("words", "reason"), REFUSALS)
def test_errors_are_one_sentence(capsys: Captured, words: list[str], reason: str) -> None:
    assert reason in refused(capsys, *words)


def test_what_nobody_foresaw_is_a_sentence_too(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("dpsub.cli.law.run", broken)
    sentence = "dpsub law: unexpected ZeroDivisionError: by zero; please report the command\n"
    assert refused(capsys, "law", *WOR) == sentence


def test_warnings_are_sentences(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubtful(*_: object) -> Answer:
        for _ in range(2):
            warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return Answer({}, "done")

    monkeypatch.setattr("dpsub.cli.law.run", doubtful)
    assert main(["law", *WOR]) == 0
    assert capsys.readouterr() == ("done\n", "dpsub law: a library warned of 'overflow' on the way\n")


def test_less_laplace_noise_is_refuted_by_its_attack(capsys: Captured) -> None:
    words = ["calibrate", *WOR, *TARGET, "--steps", "5", "--mechanism", "laplace"]
    found = answered(capsys, *words)
    assert 0 < found["refuted"] < found["noise_multiplier"]
    text = said(capsys, *words)
    assert text.startswith("Laplace noise multiplier")
    assert "and less: an attack exceeds the target" in text


def test_help(capsys: Captured) -> None:
    overview = said(capsys, "--help")
    for name in COMMANDS:
        assert name in overview
        assert "--json" in said(capsys, name, "--help")
    assert said(capsys, "--version") == f"dpsub {dpsub.__version__}\n"


@pytest.mark.parametrize("value", [1 / 3, 2.5e-300, 123456789.123, 1.0, 0.0, 0.1])
def test_digits_are_rounded_to_the_safe_side(value: float) -> None:
    assert float(down(value)) <= value <= float(up(value))
    assert float(up(value)) - float(down(value)) <= 2e-5 * value


def test_as_a_process_without_what_it_does_not_need() -> None:
    """A simple account imports nothing that takes long, and `python -m dpsub` says what `main` says."""
    words = ["account", "poisson", "--rate", "0.01", "--noise-multiplier", "1", "--steps", "1000", "--delta", "1e-5"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dpsub", *words, "--json"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    values = json.loads(found.stdout)
    assert 1.8 < values["lower"] <= values["upper"] < 1.9
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "dpsub.accounting.account" in imported
    slow = {"matplotlib", "pandas", "pyarrow", "sklearn", "jsonschema", "scipy.stats", "scipy.signal"}
    assert imported & slow == set()
    refusal = subprocess.run(
        [sys.executable, "-m", "dpsub", "law", "worr"], capture_output=True, text=True, check=False, env=environment
    )
    assert (refusal.returncode, refusal.stdout) == (2, "")
    assert refusal.stderr == "dpsub law: unknown sampler 'worr'; did you mean 'wor'?\n"

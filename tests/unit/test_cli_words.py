"""The command line in the words of who trains: other names, numbers as written, epochs, several values, help."""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentTypeError, Namespace
from typing import Any

import pytest

import dpsub
from dpsub import cli, noise
from dpsub.cli import main
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import duration, number, numbers, whole

RELEASES = ["--sigma", "2", "--steps", "50"]
WOR = ["wor", "--n", "1000", "--m", "20"]

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *words: str, status: int = 0) -> str:
    """What a command says, on the standard output or, if it is refused, on the standard error."""
    assert main(words) == status
    out, err = capsys.readouterr()
    assert "" in (out, err)
    return out or err


def answered(capsys: Captured, *words: str, status: int = 0) -> Any:
    """JSON of a command, without the times."""
    return json.loads(said(capsys, *words, "--json", status=status), object_hook=_untimed)


def _untimed(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != "seconds"}


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
            "account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --epsilon 0.8 --variant paper",
            "account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --epsilon 0.8 --convention paper",
        ),
        (
            "calibrate poisson --rate 0.1 --steps 2 --epsilon 1 --delta 1e-5",
            "calibrate poisson --rate 0.1 --steps 2 --target-epsilon=1 --target-delta 1e-5",
        ),
        (
            "brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --scale 4 --rate 0.5 --steps 20",
            "brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --scale 4 --rate 0.5 --compositions 20",
        ),
        (
            "amplify wor --n 100 --m 10 --ratio 1 --epsilon 1",
            "amplify wor --n 100 --m 10 --sigma 2 --epsilon 1",
        ),
        ("translate --rate 0.1 --ratio 1 --epsilon 0.1", "translate --sample-rate 1/10 --ratio 1 --epsilon 0.1"),
    ],
)
def test_other_words_ask_the_same(capsys: Captured, ours: str, theirs: str) -> None:
    assert answered(capsys, *ours.split()) == answered(capsys, *theirs.split())


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/60000", 1 / 60000), ("1e-5", 1e-5), ("2", 2.0), ("3/4", 0.75), ("-1/2", -0.5)],
)
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    assert number(text) == value == numbers(text)
    assert numbers(f"{text},7") == (value, 7.0)


def test_whole_numbers_are_exact() -> None:
    assert [whole(text) for text in ("9007199254740991", "1e6", "10_000")] == [2**53 - 1, 10**6, 10**4]
    with pytest.raises(ArgumentTypeError, match="at most"):
        whole("9007199254740993")  # the nearest double is 2^53


@pytest.mark.parametrize("parse", [number, whole, numbers, duration])
@pytest.mark.parametrize("text", ["1/0", "inf", "nan", "", "x", "1/2/3", "1,,2", "9" * 400, f"-{'9' * 5000}", "1e999"])
def test_what_is_no_number_is_refused_in_a_few_words(parse: Any, text: str) -> None:
    with pytest.raises(ArgumentTypeError) as refusal:
        parse(text)
    assert len(str(refusal.value)) < 120


def test_two_names_of_one_option_are_not_both_given(capsys: Captured) -> None:
    words = ["account", "poisson", "--rate", ".1", "--sigma", "2", "--noise-multiplier", "3", "--delta", ".1"]
    assert "two names of one option" in said(capsys, *words, "--steps", "1", status=2)


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
    values = answered(capsys, "account", *words.split(), "--sigma", "1.1", "--delta", "1/60000")
    assert values["steps"] == steps == asked[0]
    assert f"epochs at {steps}" not in values["remarks"][0]
    assert values["remarks"][0].endswith(f": {steps} steps")
    assert f"of {steps} releases" in said(capsys, "account", *words.split(), "--sigma", "1.1", "--delta", "1/60000")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--epochs 3 --steps 4", "got both"),
        ("", "got neither"),
        ("--epochs 0", "--epochs must be above 0"),
        ("--epochs 1e300", "is too many"),
    ],
)
def test_steps_or_epochs(capsys: Captured, words: str, reason: str) -> None:
    common = ["account", *WOR, "--sigma", "2", "--delta", "1e-5"]
    assert reason in said(capsys, *common, *words.split(), status=2)


def test_epochs_need_the_size_that_is_asked_for(capsys: Captured) -> None:
    words = ["calibrate", "poisson", "--solve", "size", "--sigma", "2", "--epsilon", "1", "--delta", "1e-5"]
    assert "give --steps" in said(capsys, *words, "--epochs", "3", status=2)


def test_several_values_are_rows(capsys: Captured) -> None:
    question = ["account", "poisson", "--rate", "0.02", *RELEASES, "--delta"]
    rows = answered(capsys, *question, "1e-5,1e-6")
    assert [next(iter(row)) for row in rows] == ["delta", "delta"]
    for delta, row in zip(("1e-5", "1e-6"), rows, strict=True):
        alone = answered(capsys, *question, delta)
        assert row.pop("delta") == float(delta)
        assert row.pop("lower") == pytest.approx(alone.pop("lower"), rel=1e-3)
        assert row.pop("upper") == pytest.approx(alone.pop("upper"), rel=1e-3)
        assert row == alone
    text = said(capsys, *question, "1e-5,1e-6")
    assert "epsilon at 2 values of delta" in text
    assert text.count("(proved)") == 2 == text.count("yes: (")
    assert max(map(len, text.splitlines())) <= 120


def test_several_targets_are_a_list_of_answers(capsys: Captured) -> None:
    question = ["amplify", *WOR, "--ratio", "1", "--epsilon"]
    rows = answered(capsys, *question, "1,2")
    assert rows == [answered(capsys, *question, epsilon) for epsilon in ("1", "2")]
    assert said(capsys, *question, "1,2").count("One gaussian release") == 2
    both = ["calibrate", "poisson", "--rate", "0.1", "--steps", "2", "--epsilon", "1,2", "--delta", "1e-5,1e-6"]
    targets = [(row["target_epsilon"], row["target_delta"]) for row in answered(capsys, *both)]
    assert targets == [(1, 1e-5), (1, 1e-6), (2, 1e-5), (2, 1e-6)]


def test_help_of_a_command(capsys: Captured) -> None:
    assert said(capsys, "help", "law") == said(capsys, "law", "--help")
    assert "did you mean 'account'?" in said(capsys, "help", "acount", status=2)
    text = said(capsys, "help", "account")
    for words in ("--noise-multiplier S, --sigma S", "--rate Q, --sample-rate Q", "--m M, --batch-size M", "must_oo"):
        assert words in text
    assert "--convention" not in text


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["acount"], "argument"),
        (["account", "wor", "--rate", ".02", *RELEASES, "--delta", "1e-5"], "argument"),
        (["account", "shuffle", *RELEASES, "--delta", "1e-5"], "unsupported"),
        (["account", *WOR, *RELEASES, "--delta", "1e-5", "--adjacency", "add_remove"], "unsupported"),
        (["advise", "nowhere.csv", "--epsilon", "1", "--rate", "0.1"], "data"),
        (["plan", "nowhere.yaml"], "plan"),
    ],
)
def test_errors_are_json_where_json_is_asked_for(capsys: Captured, words: list[str], kind: str) -> None:
    main(words)
    sentence = capsys.readouterr().err.partition(": ")[2].strip()
    assert main([*words, "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {"error": sentence, "kind": kind}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("wor --m 3", "wor needs --n and --m, got no --n (number of records)"),
        ("must_ow --n 9 --m 3", "got no --b (size of the first stage)"),
        ("wor --n 1000 --rate .02", "wor, which takes --n (number of records) and --m (size of the sample);"),
        ("poisson --m 3", "poisson needs --n and --m, got no --n"),
        ("without_replacement --n 9 --m 3", "did you mean 'wor'?"),
    ],
)
def test_a_missing_size_is_named_with_its_use(capsys: Captured, words: str, reason: str) -> None:
    assert reason in said(capsys, "law", *words.split(), status=2)


@pytest.mark.parametrize("name", ["shuffle", "Shuffling", "random-allocation", "balls_and_bins", "cyclic"])
def test_a_practice_that_is_no_sampler_is_refused_with_the_way_out(capsys: Captured, name: str) -> None:
    sentence = said(capsys, "account", name, "--n", "100", status=2)
    assert "is none of the samplers" in sentence
    assert "wor --n N --m N --steps EPOCHS" in sentence


def test_the_way_out_of_shuffling_is_answered(capsys: Captured) -> None:
    words = "account wor --n 100 --m 100 --sigma 8 --steps 3 --delta .1"
    values = answered(capsys, *words.split())
    assert values["guarantee"]
    assert "no subsampling" in values["remarks"][0]


def test_rate_one_gets_a_remark(capsys: Captured) -> None:
    assert "is it 1 %" in said(capsys, "law", "poisson", "--rate", "1")
    assert "remarks" not in answered(capsys, "law", "poisson", "--rate", "0.99")


def test_a_new_noise_is_a_choice_where_it_can_be_used(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise.REGISTRY, "names", lambda: ("gaussian", "laplace", "triangle"))
    assert "{gaussian,laplace,triangle}" in said(capsys, "amplify", "--help")
    assert "{gaussian,laplace,triangle}" in said(capsys, "translate", "--help")
    assert "{gaussian,laplace}" in said(capsys, "account", "--help")  # the accountant has no proof for it


def test_kinds_are_those_of_accounts(capsys: Captured) -> None:
    words = ["account", *WOR, *RELEASES, "--epsilon", "0.8", "--json"]
    assert json.loads(said(capsys, *words))["kind"] == "bounds"
    assert json.loads(said(capsys, *words, "--variant", "paper"))["kind"] == "paper"


def test_a_terminal_hears_of_what_takes_long(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> Answer:
        time.sleep(0.1)
        return Answer({}, "done")

    monkeypatch.setattr("dpsub.cli.law.run", slow)
    monkeypatch.setattr(cli, "_PATIENCE", 0.02)
    assert main(["law", *WOR]) == 0
    assert capsys.readouterr() == ("done\n", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["law", *WOR]) == 0
    out, err = capsys.readouterr()
    assert out == "done\n"
    assert err.startswith("\rdpsub law: 0 s")
    assert err.endswith("\r\x1b[K")


def test_what_does_not_end_is_ended(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsub.cli.law.run", lambda _: time.sleep(60))
    monkeypatch.setattr(cli, "_GRACE", -1 + 1e-3)
    started = time.monotonic()
    assert "no answer within --time-limit 1 s" in said(capsys, "law", *WOR, "--time-limit", "1", status=2)
    assert time.monotonic() - started < 10


def test_a_limit_of_time_leaves_valid_ends(capsys: Captured) -> None:
    words = ["account", "must_ww", "--n", "1e6", "--b", "1e4", "--m", "1e3", "--sigma", "100", "--steps", "1e4"]
    found = answered(capsys, *words, "--delta", "1e-6", "--time-limit", "1e-3")
    lower, upper = (math.inf if found[end] == "Infinity" else found[end] for end in ("lower", "upper"))
    assert 0 <= lower <= upper
    assert any("stopped the refinement" in line for line in found["conditions"])


@pytest.mark.parametrize("seconds", ["0", "-1", "1e9"])
def test_limits_of_time_are_checked(capsys: Captured, seconds: str) -> None:
    words = ["account", *WOR, *RELEASES, "--delta", "1e-5", "--time-limit", seconds]
    assert "--time-limit: must be above 0" in said(capsys, *words, status=2)


def test_remarks_stand_in_every_row() -> None:
    class Doubtful:
        @staticmethod
        def run(arguments: Namespace) -> Answer:
            arguments.remarks.append("look")
            return Answer([{"a": 1}, {"a": 2}], "title")

    answer = cli._answer(Doubtful, Namespace())
    assert answer.values == [{"a": 1, "remarks": ["look"]}, {"a": 2, "remarks": ["look"]}]
    assert answer.text() == "title\n  remark  look"


DIGITS = "9" * 400
FAULTS = [  # in the words of the version that had them
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
    f"brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --compositions {DIGITS}",
    "brdp --sensitivity 1 --bound 1e-12 --epsilon 1 --delta 1e-5",
    "brdp --sensitivity 1 --bound 1 --epsilon 1.0000001e9 --delta 1e-5",
    "calibrate wor --n 10 --m 3 --steps=-1 --target-epsilon 1 --target-delta .1",
    "calibrate wor --n 10 --m 3 --noise-multiplier 1e300 --solve steps --target-epsilon 1 --target-delta .1",
    "calibrate poisson --noise-multiplier 1e300 --steps 3 --solve size --target-epsilon 1 --target-delta .1",
]


@pytest.mark.parametrize("command", FAULTS, ids=lambda command: command[:60])
def test_what_is_out_of_range_is_said_so(capsys: Captured, command: str) -> None:
    """Each of these ended in "unexpected OverflowError", "ZeroDivisionError", "ValueError" or did not end at all."""
    status = main(command.split())
    out, err = capsys.readouterr()
    assert "unexpected" not in err
    assert (status, err) == (0, "") or (status, out, err.count("\n"), len(err) < 400) == (2, "", 1, True)


def test_warnings_of_the_arithmetic_do_not_show(capsys: Captured) -> None:
    words = "translate --sampler wr --base substitute --target substitute --n 10 --m 11 --ratio 1 --epsilon 1"
    assert said(capsys, *words.split())

"""Random command lines over all commands: 1500 in `make test-slow`, the first 112 of them in `make
test-all`, the first 28 in `make test`.

About half of them make sense, the others are spoilt: words are dropped, said twice or exchanged,
values replaced. In any case a command answers, or says in one sentence why not, within two seconds
of its time limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dpsub
from dpsub import cli
from dpsub.accounting.questions import words as accounting_words
from dpsub.cli import answers
from dpsub.cli import law as law_command
from dpsub.sampling import Schedule
from dpsub.streams import stream
from tests.few import few
from tests.fresh_seeds import replay, seed
from tests.properties.questions import Question, random_question

LINES, SOME = 1500, 112
"""Number of lines tried in `make test-slow` and in `make test-all`."""
BLOCK = 50
BEYOND = 2.0
"""Seconds that a command may take beyond its time limit."""
SWEEP = str(min(Path(__file__).parents[2].glob("src/dpsub/papers/*/sweep.yaml")))
EXTREME = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "2.5",
    "1/3",
    "1,2,3",
    "0.5,0.25",
    "0.999999999999",
    "1e-5",
    "1e-9",
    "1e-300",
    "1e-320",
    "30",
    "1000",
    "1e5",
    "1e9",
    "1e300",
    "9007199254740992",
    "1_000",
)
"""Numbers that can be read, to replace a number."""
HOSTILE = (
    "nan",
    "inf",
    "-inf",
    "-0",
    "1e400",
    "",
    " ",
    "1/0",
    ",",
    "½",
    "0x10",
    "--",
    "-",
    "9" * 400,
    "9007199254740993",
    "wor",
    "poisson",
    "substitute",
    "True",
    "/",
    "/nowhere/file",
    "a\nb",
)
"""Words in any place."""
NOT_A_NUMBER = re.compile(r"\bnan\b", re.IGNORECASE)
clock = time.process_time  # so that a machine with other work to do fails nobody
Words = list[str]


class Said(NamedTuple):
    """Output of a command, and its status."""

    status: int
    out: str
    error: str
    seconds: float


# words of commands that make sense


def sampler(question: Question) -> Words:
    words = [question.sampler.name, "--n", str(question.n)]
    for field in dataclasses.fields(question.sampler):  # type: ignore[arg-type]
        value = getattr(question.sampler, field.name)
        if field.name == "chain":
            stages = (
                f"{stage.kind}:{stage.rate if stage.kind == 'poisson' else stage.size}"
                for stage in value
            )
            words += ["--stages", ",".join(stages)]
        elif value is not None:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return words


def releases(question: Question, *, noise: bool = True, times: bool = True) -> Words:
    words = ["--adjacency", question.adjacency]
    if noise:
        words += ["--noise-multiplier", str(question.noise_multiplier)]
    if times:
        words += [
            "--epochs" if isinstance(question.sampler, Schedule) else "--steps",
            str(question.times),
        ]
    return words


def mechanism(question: Question) -> Words:
    return ["--mechanism", question.mechanism]


def target(question: Question) -> Words:
    return [word for name, value in question.target.items() for word in (f"--{name}", str(value))]


def budget(question: Question, rng: np.random.Generator) -> Words:
    delta = question.target.get("delta", 1e-5)
    return ["--epsilon", f"{np.exp(rng.uniform(-2, 3)):.4g}", "--delta", str(delta)]


def sometimes(rng: np.random.Generator, *words: str) -> Words:
    return list(words) if rng.random() < 0.2 else []


def law(question: Question, rng: np.random.Generator) -> Words:
    return sampler(question)


def amplify(question: Question, rng: np.random.Generator) -> Words:
    scale = [str(rng.choice(["--ratio", "--noise-multiplier"])), str(question.noise_multiplier)]
    return [
        *sampler(question),
        *scale,
        "--epsilon",
        f"{rng.uniform(0, 5):.3g}",
        *mechanism(question),
    ]


def translate(question: Question, rng: np.random.Generator) -> Words:
    name = str(rng.choice(["poisson", "wor", "wr"]))
    sizes = ["--n", str(question.n), "--m", str(1 + question.n // 7)]
    if name == "poisson":
        sizes = ["--rate", f"{rng.uniform():.4g}"]
    relations = [str(each) for each in rng.choice(["add_remove", "substitute"], size=2)]
    words = [
        "--sampler",
        name,
        *sizes,
        "--base",
        relations[0],
        "--target",
        relations[1],
        *mechanism(question),
    ]
    return [
        *words,
        "--ratio",
        str(question.noise_multiplier),
        "--epsilon",
        f"{rng.uniform(0, 5):.3g}",
    ]


def account(question: Question, rng: np.random.Generator) -> Words:
    words = [*sampler(question), *releases(question), *target(question), *mechanism(question)]
    words += (
        sometimes(rng, "--quick")
        + sometimes(rng, "--width", "0.1")
        + sometimes(rng, "--variant", "paper")
    )
    return words + sometimes(rng, "--denominator", "realised")


def select(question: Question, rng: np.random.Generator) -> Words:
    words = [*sampler(question), *releases(question), *target(question), *mechanism(question)]
    law = str(rng.choice(("geometric", "logarithmic", "poisson", "fixed")))
    words += ["--runs-mean", str(int(rng.integers(1, 30))), "--distribution", law]
    return words + sometimes(rng, "--quick")


def check(question: Question, rng: np.random.Generator) -> Words:
    (name,) = question.target
    claim = ["--claimed-epsilon", f"{np.exp(rng.uniform(-4, 5)):.3g}"]
    if name == "epsilon":
        claim = ["--claimed-delta", f"{10 ** rng.uniform(-12, 0):.3g}"]
    if rng.random() < 0.15:
        return ["--event", "event.json", *claim, *target(question)]
    return [
        *sampler(question),
        *releases(question),
        *claim,
        *target(question),
        *mechanism(question),
    ]


def curve(question: Question, rng: np.random.Generator) -> Words:
    words = [*sampler(question), *releases(question), *mechanism(question)]
    words += sometimes(rng, "--false-positive", "0,0.01,1") + sometimes(rng, "--csv", "curve.csv")
    return words + (["--epsilon", "0.1,1,2"] if rng.random() < 0.7 else [])


def record(question: Question, rng: np.random.Generator) -> Words:
    words = ["record.json", *sampler(question), *releases(question), *mechanism(question)]
    return words + sometimes(rng, *budget(question, rng)) + sometimes(rng, "--sample", "kept")


def ledger(question: Question, rng: np.random.Generator) -> Words:
    adjacency = ["--adjacency", question.adjacency] if rng.random() < 0.5 else []
    return [
        str(rng.choice(["ledger.json", "ledger.json", "record.json"])),
        *target(question),
        *adjacency,
    ]


def calibrate(question: Question, rng: np.random.Generator) -> Words:
    solve = str(rng.choice(["noise", "noise", "size", "steps"]))
    noise, times = solve != "noise", solve != "steps"
    words = [
        *sampler(question),
        *releases(question, noise=noise, times=times),
        *mechanism(question),
    ]
    if solve == "size":
        words = without(words, str(rng.choice(["--m", "--rate"])))
    return [
        *words,
        "--solve",
        solve,
        *budget(question, rng),
        *(sometimes(rng, "--quick") if solve == "noise" else []),
    ]


def recommend(question: Question, rng: np.random.Generator) -> Words:
    sizes = [
        "--n",
        str(question.n),
        "--batch-size",
        str(1 + question.n // 9),
        "--epochs",
        str(1 + question.times % 5),
    ]
    return [*sizes, *budget(question, rng), "--adjacency", question.adjacency]


def loader(question: Question, rng: np.random.Generator) -> Words:
    order = str(rng.choice(["--poisson", "--shuffle", "--replacement", "--noise-per-rank"]))
    return [
        "--n",
        str(question.n),
        "--batch-size",
        str(1 + question.n // 9),
        "--noise-multiplier",
        f"{question.noise_multiplier:.4g}",
        str(rng.choice(["--epochs", "--steps"])),
        str(1 + question.times % 5),
        "--delta",
        "1e-5",
        order,
        *sometimes(rng, "--drop-last"),
        *sometimes(rng, "--accumulation", "2"),
        *sometimes(rng, "--remainder", "step"),
        *sometimes(rng, "--ranks", "2"),
    ]


def advise(question: Question, rng: np.random.Generator) -> Words:
    rate = str(rng.choice(["0.1", "1/3", "0.5", "1"]))
    return ["frame.csv", "--epsilon", f"{rng.uniform(0.01, 4):.3g}", "--rate", rate]


def brdp(question: Question, rng: np.random.Generator) -> Words:
    words = ["--kernel", question.mechanism, "--sensitivity", f"{np.exp(rng.uniform(-3, 3)):.3g}"]
    words += [
        "--bound",
        f"{np.exp(rng.uniform(-3, 4)):.3g}",
        *budget(question, rng),
        *sometimes(rng, "--steps", "20"),
    ]
    if rng.random() < 0.5:
        words += [
            "--scale",
            str(question.noise_multiplier),
            *sometimes(rng, "--rate", f"{rng.uniform():.3g}"),
        ]
    return words


def plan(question: Question, rng: np.random.Generator) -> Words:
    return [SWEEP, *sometimes(rng, "--cores", "7")]


def audit(question: Question, rng: np.random.Generator) -> Words:
    words = [
        *sampler(question),
        *releases(question),
        "--epsilon",
        f"{rng.uniform(0, 5):.3g}",
        "--draws",
        "200",
    ]
    return [
        *words,
        *sometimes(rng, "--quick"),
        *sometimes(rng, "--confidence", "0.9"),
        *sometimes(rng, "--seed", "3"),
    ]


COMMANDS: dict[str, Callable[[Question, np.random.Generator], Words]] = {
    each.__name__: each
    for each in (
        law,
        amplify,
        translate,
        account,
        check,
        curve,
        record,
        ledger,
        calibrate,
        recommend,
        loader,
        advise,
        brdp,
        plan,
        audit,
        select,
    )
}


def without(words: Words, option: str) -> Words:
    """Return the words without an option and its value."""
    if option not in words:
        return words
    place = words.index(option)
    return words[:place] + words[place + 2 :]


# words that are spoilt


def spoilt(words: Words, options: Words, rng: np.random.Generator) -> Words:
    """Return the words of a command after one accident."""
    values = [place for place in range(1, len(words)) if words[place - 1].startswith("--")]
    if values and rng.random() < 0.5:
        place, other = int(rng.choice(values)), str(rng.choice(EXTREME))
        return [*words[:place], other, *words[place + 1 :]]
    place, other = int(rng.integers(len(words))), str(rng.choice(HOSTILE))
    match int(rng.integers(5)):
        case 0:
            return [*words[:place], other, *words[place + 1 :]]
        case 1:
            return [*words[:place], *words[place + 1 :]]
        case 2:
            return [*words[:place], words[place], *words[place:]]
        case 3:
            return [*words[:place], *reversed(words[place : place + 3]), *words[place + 3 :]]
        case _:
            return [*words, str(rng.choice(options)), str(rng.choice(EXTREME + HOSTILE))]


def line(case: int) -> tuple[Words, float | None]:
    """Return the words of one case, and their time limit."""
    command = list(COMMANDS)[case % len(COMMANDS)]
    question = random_question("command lines", case)
    rng = stream(seed(), experiment="campaign", cell={"line": 1}, role="data", replicate=case)
    words = COMMANDS[command](question, rng)
    known = [
        option
        for option in cli.parser_of(command)._option_string_actions
        if option not in ("-h", "--help")
    ]
    limited = "--time-limit" in known
    # of an option that goes a line beside the answer says so
    left_out = ("--time-limit", "--strict", "--plot", "--tight")
    unlimited = [option for option in known if option not in left_out]
    for _ in range(int(rng.choice([0, 0, 0, 1, 2]))):
        words = spoilt(words, unlimited, rng)
    limit = float(rng.choice([0.05, 0.5, 1.0])) if limited else None
    last = ["--time-limit", str(limit)] if limited else []
    return [command, *words, *(["--json"] if rng.random() < 0.3 else []), *last], limit


# what is said


def run(words: Words) -> Said:
    out, error = io.StringIO(), io.StringIO()
    started = clock()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = cli.main(words)
    return Said(status, out.getvalue(), error.getvalue(), clock() - started)


def judge(said: Said, words: Words, limit: float | None) -> None:
    """Raise AssertionError where a command did not end as it should."""
    # 3: the budget of a record does not allow it
    expected = (0, 2, 3) if words[:1] == ["record"] else (0, 2)
    assert said.status in expected, f"exit status {said.status}"
    assert limit is None or said.seconds <= limit + BEYOND, f"{said.seconds:.1f} s of {limit:g}"
    sentence = said.error
    if said.status == 3:
        assert not NOT_A_NUMBER.search(said.out), "an answer that is not a number"
        return
    if said.status == 0:
        assert said.error == "", f"beside the answer: {said.error}"
        assert said.out.strip(), "nothing was said"
        assert not NOT_A_NUMBER.search(said.out), "an answer that is not a number"
    elif "--json" in words:
        assert said.error == "", f"beside the error: {said.error}"
        sentence = f"{json.loads(said.out)['error']}\n"
    else:
        assert said.out == "", f"beside the error: {said.out}"
    if said.status == 0 and "--json" in words:
        json.loads(said.out, parse_constant=refused)
        assert said.out.count("\n") == 1, "more than one line of JSON"
    if said.status == 2:
        assert re.fullmatch(r"[^\n]{10,}\n", sentence), f"not one sentence: {sentence!r}"
        assert "unexpected" not in sentence and "report" not in sentence, sentence
    check_spelling(said, words[0])
    assert "Traceback" not in said.out + sentence and "Warning" not in said.out + sentence, sentence


def check_spelling(said: Said, command: str) -> None:
    """Raise AssertionError where a sentence or a note names an argument as Python has it."""
    notes = re.findall(r"^  note .*(?:\n {8,}.*)*", said.out, flags=re.MULTILINE)
    told = " ".join([said.error, *notes])
    for action in cli.parser_of(command)._actions if command in cli.COMMANDS else ():
        if "_" in action.dest:
            assert not re.search(rf"(?<![\w'-]){action.dest}(?!\w)", told), told


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def hold(cases: range) -> None:
    for case in cases:
        words, limit = line(case)
        try:
            judge(run(words), words, limit)
        except Exception as error:
            raise AssertionError(replay(seed(), f"line {case}, {words}: {error!r}")) from error


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a folder with files that commands read."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 3},{i % 4},{1 + i % 5}" for i in range(60)]
    Path("frame.csv").write_text("\n".join(["stratum,cluster,size", *rows]), encoding="utf-8")
    kept = dpsub.Ledger().add(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=5)
    kept.add(dpsub.Wor(3), 20, noise_multiplier=4.0, steps=2).save("ledger.json")
    event = {"class_name": "GaussianDpEvent", "noise_multiplier": 2.0}
    Path("event.json").write_text(json.dumps(event), encoding="utf-8")


@pytest.mark.parametrize("first", few(range(0, SOME, 28)))
def test_random_command_lines(first: int) -> None:
    hold(range(first, first + 28))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LINES, BLOCK))
def test_1500_random_command_lines(first: int) -> None:
    hold(range(first, first + BLOCK))


def test_all_commands_are_tried() -> None:
    assert set(COMMANDS) == set(cli.COMMANDS)
    assert SOME % 28 == LINES % BLOCK == 0


def a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpsub, "account", lambda *_, **__: 1 / 0)


def a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = cli._questions

    def questions(arguments: Namespace, several: Sequence[str]) -> Iterator[Namespace]:
        print("RuntimeWarning: overflow", file=sys.stderr)
        return honest(arguments, several)

    monkeypatch.setattr(cli, "_questions", questions)


def not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "near", lambda value: "nan")
    monkeypatch.setattr(law_command, "near", lambda value: "nan")
    for rounded in ("down", "up", "percent"):
        monkeypatch.setattr(accounting_words, rounded, lambda *_: "nan")


def two_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_complaint", lambda error, _: ("argument", f"{error}\nand so on"))


def another_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "EXIT_ERROR", 1)


def half_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "as_json", lambda values: "{")


def out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(step=4)
    monkeypatch.setattr(sys.modules[__name__], "clock", lambda: float(next(ticks)))


FAULTS = {
    a_traceback: "unexpected ZeroDivisionError",
    a_warning: "RuntimeWarning",
    not_a_number: "not a number",
    two_sentences: "not one sentence",
    another_status: "exit status 1",
    half_an_answer: "JSONDecodeError",
    out_of_time: "4.0 s of",
}
"""Faults, and a part of the message about each."""


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=rf"line \d+, .*{FAULTS[plant]}"):
        hold(range(SOME))

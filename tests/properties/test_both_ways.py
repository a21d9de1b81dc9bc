"""The command line and Python: every option of every command means what the argument of its name
does.

A question is drawn once and written down twice, as words of a command and as arguments of a
function; the answers, or the refusals, are compared number by number.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpsub
from dpsub import cli, sampling
from dpsub.cli import answers
from dpsub.errors import DpsubError
from tests.few import few

ON_TOO = 0.25
"""Chance to give an option that a question is not about."""
EFFORT = 0.05


class Choice(NamedTuple):
    """One value of an option: its words, and the argument in Python."""

    words: str
    value: Any


def plain(*values: Any) -> list[Choice]:
    return [Choice(str(value), value) for value in values]


FLAG = [Choice("", True)]
OPTIONS: dict[str, list[Choice]] = {
    "noise_multiplier": plain(2.0, 1.5),
    "steps": plain(8, 3),
    "epochs": plain(1, 2),
    "group": [Choice("2:1", (2, 1)), Choice("2", 2), Choice("1:3", (1, 3)), Choice("2:2", (2, 2))],
    "adjacency": plain("add_remove", "substitute", "zero_out"),
    "mechanism": plain("laplace", "gaussian"),
    "denominator": plain("realised", "fixed"),
    "epsilon": plain(0.25, 1.0),
    "delta": plain(1e-5, 1e-3),
    "variant": plain("paper", "rigorous"),
    "width": plain(0.01, 0.2),
    "effort": [*plain(0.02, 0.3), Choice("none", None)],
    "quick": FLAG,
    "claimed_epsilon": plain(0.3, 3.0),
    "claimed_delta": plain(1e-4, 0.2),
    "false_positive": [Choice("0.01,0.2", [0.01, 0.2])],
    "runs_mean": plain(3.0, 20.0),
    "distribution": plain("poisson", "logarithmic", "negative_binomial"),
    "shape": plain(0.5, 2.0),
    "draws": plain(200),
    "seed": plain(3),
    "confidence": plain(0.9),
    "name": plain("first"),
    "sample": plain("monday"),
    "batch_size": plain(10, 20),
    "clip": plain(0.5),
    "prior": plain(0.1, 0.7),
    "poisson": FLAG,
    "shuffle": FLAG,
    "replacement": FLAG,
    "shuffle_buffer": plain(20),
    "same_order": FLAG,
    "accumulation": plain(3, 4),
    "remainder": plain("step", "drop"),
    "ranks": plain(2),
    "noise_per_rank": FLAG,
    "microbatch": plain(2),
    "releases_per_sample": plain(2, 3),
    "records_per_user": plain(2, 3),
    "steps_per_batch": plain(2),
}
SAMPLERS: dict[str, tuple[str, Any, int | None]] = {
    "rate": ("poisson --rate 0.02", dpsub.Poisson(0.02), None),
    "m": ("wor --n 60 --m 6", dpsub.Wor(6), 60),
    "n": ("wr --n 60 --m 6", dpsub.Wr(6), 60),
    "b": ("must_ww --n 60 --b 30 --m 6", sampling.MustWW(30, 6), 60),
    "stages": (
        "multistage --n 60 --stages wor:30,wr:6",
        sampling.Multistage.of_text("wor:30,wr:6"),
        60,
    ),
    "max_batch": (
        "truncated_poisson --n 60 --rate 0.1 --max-batch 9",
        sampling.TruncatedPoisson(0.1, 9),
        60,
    ),
    "cycle": (
        "cyclic_poisson --rate 0.1 --cycle 4",
        sampling.CyclicPoisson(0.1, 4),
        None,
    ),
    "drop_last": (
        "shuffle --n 62 --m 6 --drop-last",
        sampling.Shuffle(6, drop_last=True),
        62,
    ),
    "t": ("random_allocation --t 8", sampling.RandomAllocation(8), None),
    "k": ("random_allocation --t 8 --k 2", sampling.RandomAllocation(8, 2), None),
    "separation": (
        "min_separation --rate 0.1 --separation 3 --t 8",
        dpsub.MinSeparation(0.1, 3, 8),
        None,
    ),
    "warm_start": (
        "min_separation --rate 0.1 --separation 3 --t 8 --warm-start",
        dpsub.MinSeparation(0.1, 3, 8, warm_start=True),
        None,
    ),
    "largest_weight": (
        "weighted_wr --n 60 --m 6 --largest-weight 0.03",
        dpsub.WeightedWr(6, 0.03),
        60,
    ),
}
"""Samplers by the option that they are drawn for: words, sampler and n."""


class Asked(NamedTuple):
    """A question: options that are given, and the sampler, None for commands without one."""

    given: dict[str, Choice]
    sampler: tuple[str, Any, int | None] | None
    refines: bool
    """Whether the command can be told to be quick."""

    def words(self) -> list[str]:
        words = self.sampler[0].split() if self.sampler else []
        for name, choice in self.given.items():
            words += [f"--{name.replace('_', '-')}", *filter(None, [choice.words])]
        return words

    @property
    def arguments(self) -> dict[str, Any]:
        given = {name: choice.value for name, choice in self.given.items()}
        # the default of other tests is another one
        return {"quick": False, **given} if self.refines else given


def asked_of(ask: Callable[..., Any], asked: Asked) -> tuple[Any, dict[str, Any]]:
    """Return the answer of a function, and its statement where a clipping norm is given."""
    question = asked.arguments
    clip = question.pop("clip", None)
    place = () if asked.sampler is None else asked.sampler[1:]
    prior = question.pop("prior", None)
    found = ask(*place, **question)
    if clip is None:
        return found, {}
    stated = found.account if hasattr(found, "not_proved") else found
    return found, stated_of(stated, clip, prior)


def stated_of(found: Any, clip: float, prior: float | None) -> dict[str, Any]:
    """Return what is compared of a statement."""
    statement = found.statement(clip, prior)
    guesses = {} if prior is None else {"reconstruction": statement.fields.get("reconstruction")}
    return {"statement": statement.sentence} | guesses


def shown(account: Any) -> dict[str, Any]:
    return answers.account_values(account)


def account(asked: Asked) -> Any:
    found, stated = asked_of(dpsub.account, asked)
    return stated or shown(found)


def check(asked: Asked) -> Any:
    found, stated = asked_of(dpsub.check, asked)
    return stated or {"verdict": found.verdict, **shown(found.account)}


def curve(asked: Asked) -> Any:
    _, sampler, n = asked.sampler  # type: ignore[misc]
    question = asked.arguments
    rates = question.pop("false_positive", [0.001, 0.01, 0.05, 0.1, 0.5])
    prior = question.pop("prior", None)
    if "epsilon" in question:
        question["epsilon"] = [question["epsilon"]]
    found = dpsub.curve(sampler, n, **question)
    guesses = {}
    if prior is not None:
        lower, upper = found.reconstruction([prior])
        guesses = {"prior": [prior], "right_lower": lower, "right_upper": upper}
    return guesses | {
        "epsilon": found.epsilon,
        "lower": found.delta.lower,
        "upper": found.delta.upper,
        "false_negative_lower": found.trade_off(rates).lower,
        "mu": found.mu,
    }


def select(asked: Asked) -> Any:
    found, stated = asked_of(dpsub.select, asked)
    return stated or shown(found)


def calibrate(asked: Asked) -> Any:
    found, stated = asked_of(dpsub.calibrate, asked)
    return stated or {"noise_multiplier": found.noise_multiplier, **shown(found.account)}


def audit(asked: Asked) -> Any:
    _, sampler, n = asked.sampler  # type: ignore[misc]
    found = dpsub.audit(sampler, n, **asked.arguments)
    lower, upper = found.computed
    return {"attack": {"lower": lower, "upper": upper}, "account": shown(found.account)}


def amplify(asked: Asked) -> Any:
    _, sampler, n = asked.sampler  # type: ignore[misc]
    found = dpsub.amplify(sampler, n, **asked.arguments)
    return {name: getattr(found, name) for name in ("epsilon_amplified", "delta_amplified", "eta")}


def law(asked: Asked) -> Any:
    _, sampler, n = asked.sampler  # type: ignore[misc]
    found = dpsub.law(sampler, n)
    return {"eta": found.eta, "law": found.pmf}


def record(asked: Asked) -> Any:
    """Return the content of the file, with the budget's answer."""
    _, sampler, n = asked.sampler  # type: ignore[misc]
    question, ledger = asked.arguments, dpsub.Ledger()
    names = ("epsilon", "delta", "adjacency", "effort")
    budget = {name: question.pop(name) for name in names if name in question}
    own = {name: question.pop(name) for name in ("name", "sample") if name in question}
    found: dict[str, Any] = {"entered": True}
    if "epsilon" in budget:
        found["proved_epsilon"] = ledger.epsilon_with(sampler, n, **question, **budget)
        found["entered"] = found["proved_epsilon"] <= budget["epsilon"]
    if found["entered"]:
        ledger.record(sampler, n, **question, **own)
    return found | {"file": ledger.as_plain()}


def ledger(asked: Asked) -> Any:
    found, stated = asked_of(dpsub.Ledger.load("l.json").account, asked)
    return stated or shown(found)


def recommend(asked: Asked) -> Any:
    found = dpsub.recommend(60, **asked.arguments)
    first = found.schemes[0]
    return {"recommended": first.name, "schemes": [{"noise_multiplier": first.noise_multiplier}]}


LOOP = (
    "poisson shuffle replacement shuffle_buffer same_order accumulation remainder ranks "
    "noise_per_rank microbatch steps_per_batch records_per_user"
)


def loader(asked: Asked) -> Any:
    question = asked.arguments
    of_loop = {*LOOP.split(), "batch_size", "noise_multiplier", "epochs", "steps"}
    loop = {name: question.pop(name) for name in of_loop & {*question}}
    clip, prior = question.pop("clip", None), question.pop("prior", None)
    run = dpsub.from_loader(60, **loop)
    found = run.account(**question)
    if clip is not None:
        return stated_of(found, clip, prior)
    return {"one_sided": run.one_sided, **shown(found)}


RELEASES = "noise_multiplier steps"
REPEATED = "releases_per_sample records_per_user"
TUNED = f"group adjacency mechanism denominator effort quick {REPEATED}"


class Command(NamedTuple):
    """The form of a command in Python, the options that it needs, and those that it may have."""

    ask: Callable[[Asked], Any]
    needed: str
    free: str
    samples: bool = True


COMMANDS = {
    "law": Command(law, "", ""),
    "amplify": Command(amplify, "noise_multiplier epsilon", "mechanism"),
    "account": Command(
        account, f"{RELEASES} delta", f"epochs {TUNED} width variant epsilon clip prior"
    ),
    "check": Command(
        check,
        f"{RELEASES} delta claimed_epsilon",
        f"epochs {TUNED} width epsilon claimed_delta clip prior",
    ),
    "curve": Command(curve, RELEASES, f"epochs {TUNED} width epsilon false_positive prior"),
    "select": Command(
        select,
        f"{RELEASES} delta runs_mean",
        f"epochs {TUNED} epsilon distribution shape clip prior",
    ),
    "record": Command(
        record,
        RELEASES,
        f"epochs group adjacency mechanism denominator effort name sample epsilon delta {REPEATED}",
    ),
    "ledger": Command(
        ledger, "delta", "epsilon adjacency effort quick width clip prior", samples=False
    ),
    "calibrate": Command(
        calibrate,
        "epsilon delta steps",
        f"epochs group adjacency mechanism effort quick clip prior {REPEATED}",
    ),
    "recommend": Command(
        recommend,
        "batch_size epochs epsilon delta quick",
        "adjacency group effort",
        samples=False,
    ),
    "loader": Command(
        loader,
        "batch_size noise_multiplier steps delta",
        f"epochs epsilon adjacency effort quick width clip prior {LOOP}",
        samples=False,
    ),
    "audit": Command(
        audit,
        f"{RELEASES} epsilon draws",
        f"epochs group adjacency effort quick width seed confidence {REPEATED}",
    ),
}
INSTEAD = {
    "epochs": "steps",
    "epsilon": "delta",
    "claimed_delta": "claimed_epsilon",
}
"""Options, and those that they replace in commands that take one of both."""
ELSEWHERE = {
    "help": "text",
    "json": "text",
    "explain": "text",
    "time_limit": "a guard, which no answer depends on",
    "tight": "deprecated",
    "load": "tests/unit/test_own_files.py",
    "plot": "a picture of the answer",
    "statement": "given with --clip",
    "certificate": "tests/unit/test_certificate.py",
    "csv": "the curve of the answer",
    "event": "tests/unit/test_check.py",
    "strict": "the status",
    "solve": "in Python by Ledger.steps_left; tests/unit/test_search.py",
    "left": "tests/unit/test_ledger.py",
    "ratio": "of profiles, which dpsub.amplify takes by noise alone",
    "file": "place",
    "sampler": "place",
    "drop_last": "of a schedule; of a loop in tests/unit/test_loader.py",
    "records": "also --n",
    "strategy": "tests/unit/test_banded.py",
    "bands": "a strategy in Python; tests/unit/test_banded.py",
    "advantage": "in the place of epsilon and delta; tests/unit/test_advantage.py",
}
"""Options that are no argument of a question, with the place of their tests or their kind."""
WITHOUT_SAMPLES = {"advise", "brdp", "plan", "translate"}
"""Commands about other things than releases from samples; each has a test file of its own."""


def questions(command: str) -> list[tuple[str, str]]:
    kind = COMMANDS[command]
    sizes = [*SAMPLERS] if kind.samples else []
    return [(command, name) for name in [*kind.needed.split(), *kind.free.split(), *sizes]]


ALL = sorted(
    (question for command in COMMANDS for question in questions(command)),
    # the option with two numbers in one value first; a recommendation takes longest
    key=lambda question: (question[0] == "recommend", question[1] != "group"),
)


SHORT = sum(command != "recommend" for command, _ in ALL)


def drawn(command: str, about: str) -> list[Asked]:
    """Return questions that have an option, one for each of its values."""
    rng, kind = np.random.default_rng([*command.encode(), *about.encode()]), COMMANDS[command]

    def one_of(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    found = []
    for value in OPTIONS.get(about, [None]):
        names = {*kind.needed.split()}
        names |= {name for name in kind.free.split() if rng.random() < ON_TOO and value is None}
        given = {name: one_of(OPTIONS[name]) for name in sorted(names)}
        if value is not None:
            given[about] = value
        for name, other in INSTEAD.items():
            if name in given and other in given and not {name, other} <= {*kind.needed.split()}:
                del given[name if about == other else other]
        refines = "quick" in (*kind.needed.split(), *kind.free.split())
        found.append(Asked(mended(command, given), sampler_for(kind, about, one_of), refines))
    return found


def mended(command: str, given: dict[str, Choice]) -> dict[str, Choice]:
    """Return the options that one of them needs as well."""
    if command == "check":
        # a claimed epsilon is at a delta, and the other way round
        for claim, at in (("claimed_epsilon", "delta"), ("claimed_delta", "epsilon")):
            if claim in given:
                given.setdefault(at, OPTIONS[at][0])
                given.pop("epsilon" if at == "delta" else "delta", None)
    if command == "record" and {"epsilon", "delta"} & {*given}:
        given |= {name: OPTIONS[name][0] for name in ("epsilon", "delta") if name not in given}
    if "shape" in given:
        given["distribution"] = Choice("negative_binomial", "negative_binomial")
    elif given.get("distribution") == Choice("negative_binomial", "negative_binomial"):
        given["shape"] = OPTIONS["shape"][0]
    kind = COMMANDS[command]
    if "prior" in given and "clip" in kind.free.split():
        given.setdefault("clip", OPTIONS["clip"][0])
    if "effort" in kind.free.split():
        given.setdefault("effort", Choice(str(EFFORT), EFFORT))
    return given


def sampler_for(kind: Command, about: str, one_of: Any) -> tuple[str, Any, int | None] | None:
    if not kind.samples:
        return None
    name = about if about in SAMPLERS else "rate" if about == "group" else one_of([*SAMPLERS])
    return SAMPLERS[name]


def said(command: str, asked: Asked) -> Mapping[str, Any]:
    """Return the answer of the command line, as in its JSON."""
    places = {
        "record": ["l.json"],
        "ledger": ["l.json"],
        "recommend": ["60"],
        "loader": ["--n", "60"],
    }
    before = places.get(command, [])
    words = [command, *before, *asked.words(), "--json"]
    if "clip" in asked.given:
        words.append("--statement")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        cli.main(words)
    found: dict[str, Any] = json.loads(out.getvalue())
    if command == "record" and "error" not in found:
        path = Path("l.json")
        found["file"] = json.loads(path.read_text())["releases"] if path.exists() else []
    return found


def expected(command: str, asked: Asked) -> Mapping[str, Any] | None:
    """Return the answer of Python, as in JSON; None where it refuses."""
    try:
        found: dict[str, Any] = json.loads(answers.as_json(COMMANDS[command].ask(asked)))
    except DpsubError:
        return None
    return found


def part(found: Any, of: Any) -> Any:
    """Return the parts of an answer that another one has, too."""
    if isinstance(of, Mapping) and isinstance(found, Mapping):
        return {name: part(found.get(name, "missing"), value) for name, value in of.items()}
    if isinstance(of, list) and isinstance(found, list) and of and isinstance(of[0], Mapping):
        return [part(one, other) for one, other in zip(found, of, strict=False)]
    return found


@pytest.mark.parametrize(("command", "about"), few(ALL, 7, more=SHORT // 4))
def test_an_option_means_what_the_argument_does(
    command: str, about: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for asked in drawn(command, about):
        Path("l.json").unlink(missing_ok=True)
        if command == "ledger":
            entries = dpsub.Ledger()
            entries.record(dpsub.Poisson(0.02), noise_multiplier=2.0, steps=8, group=(2, 1))
            entries.record(dpsub.Poisson(0.1), noise_multiplier=5.0, steps=3, group=(2, 1))
            entries.save("l.json")
        found, known = said(command, asked), expected(command, asked)
        if known is None:
            assert "error" in found and "unexpected" not in found["kind"], asked
        else:
            assert part(found, known) == known, asked


@pytest.mark.parametrize("command", [*cli.COMMANDS])
def test_every_option_is_asked_both_ways(command: str) -> None:
    """A new option needs its row here."""
    if command in WITHOUT_SAMPLES:
        return
    kind = COMMANDS[command]
    sizes = {*SAMPLERS} if kind.samples else {"n"}
    if command == "calibrate":
        sizes.add("noise_multiplier")  # of --solve steps
    known = {*kind.needed.split(), *kind.free.split(), *sizes, *ELSEWHERE}
    assert {action.dest for action in cli.parser_of(command)._actions} <= known

"""Mistakes that users made in typing: each is understood, or answered by one sentence with the way
out."""

from __future__ import annotations

import ast
import inspect
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import dpsub
from dpsub import cli
from dpsub.errors import ArgumentError, DataError

ROOT = Path(__file__).parents[2]
POISSON = "account poisson --rate 0.1 --steps 2 --delta 1e-5"
NOISE = "--noise-multiplier 2"

UNDERSTOOD = {
    f"{POISSON} --noise_multiplier 2": f"{POISSON} {NOISE}",
    f"{POISSON} {NOISE} --adjacency add-remove": f"{POISSON} {NOISE} --adjacency add_remove",
    f"{POISSON} {NOISE} --adjacency ADD_OR_REMOVE_ONE": f"{POISSON} {NOISE} --adjacency add_remove",
    f"{POISSON} {NOISE} --adjacency replace_one": f"{POISSON} {NOISE} --adjacency substitute",
    f"{POISSON} {NOISE} --adjacency zero-out": f"{POISSON} {NOISE} --adjacency zero_out",
    f"{POISSON} {NOISE} --mechanism Gaussian": f"{POISSON} {NOISE} --mechanism gaussian",
    f"check {POISSON.removeprefix('account ')} {NOISE} --epsilon 2": (
        f"check {POISSON.removeprefix('account ')} {NOISE} --claimed-epsilon 2"
    ),
    f"account Random-Allocation --n 20 --m 6 {NOISE} --epochs 1 --delta 1e-5": (
        f"account random_allocation --n 20 --t 4 {NOISE} --epochs 1 --delta 1e-5"
    ),
}
"""Command lines, and their meaning."""


def _answer(capsys: pytest.CaptureFixture[str], line: str) -> str:
    assert cli.main(line.split()) == 0
    return re.sub(r"(?m)^ *seconds.*$", "", capsys.readouterr().out)


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_words_of_the_field_are_understood(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    understood = _answer(capsys, line)
    assert understood == _answer(capsys, UNDERSTOOD[line])


REFUSED = {
    f"{POISSON} --noise-multiplir 2": "did you mean '--noise-multiplier'?",
    f"account poisson --rate 0.1 --steps 1e12 --delta 1e-5 {NOISE}": (
        "steps must be at most 1000000000, beyond which"
    ),
    f"account shuffle --n 60000 --m 256 --steps 234 --delta 1e-5 {NOISE}": (
        "--drop-last if the last, smaller batch is left out"
    ),
    f"account random_allocation --n 20 --m 6 --t 4 --epochs 1 --delta 1e-5 {NOISE}": (
        "--t of random_allocation follows from --n and --m, got both; drop one"
    ),
    "recommend --m 20 --epochs 1 --epsilon 2 --delta 1e-3": "is needed once, got none; give --n N",
    f"{POISSON} {NOISE} --certificate absent/c.json": "make absent first, or check the path",
    f"curve poisson --rate 0.1 --steps 2 {NOISE} --csv absent/c.csv": "make absent first",
    f"record absent/l.json poisson --rate 0.1 --steps 2 {NOISE}": "make absent first",
    f"{POISSON} {NOISE} --certificate .": "a file is needed, got the folder .; name a file in it",
    "ledger absent/l.json --delta 1e-5": "name an existing file",
    f"{POISSON} {NOISE} --epsilon 2": "ask dpsub check whether both hold together",
    f"account poisson 600 6 {NOISE} --steps 2 --delta 1e-5": "values follow an option, got 600 6",
    f"account poisson --rate 0.1 --steps 2 --delta 10^-5 {NOISE}": "as 0.01, 1e-5 or 1/100, got",
    f"account --sampler poisson {NOISE} --steps 2": "the sampler is the first word",
    f"poisson --rate 0.1 --steps 2 {NOISE}": "did you mean 'dpsub account poisson'?",
    f"curve poisson --rate 0.1 --steps 2 {NOISE} --delta 1e-5": "unknown option '--delta'; known:",
    f"check poisson --rate 0.1 --steps 2 {NOISE} --delta 1e-5 --claim 2": (
        "did you mean '--claimed-epsilon'?"
    ),
    f"{POISSON} {NOISE} --noise laplace": "did you mean '--mechanism'?",
    f"{POISSON} --noise 2": "did you mean '--noise-multiplier'?",
    f"{POISSON} --sigma 0.01": "--noise-multiplier must be at least 0.05",
    f"{POISSON} {NOISE} --clip 2": "--clip is the clipping norm of --statement",
    f"{POISSON} {NOISE} --relation zero_out": "did you mean '--adjacency'?",
    f"{POISSON} {NOISE} --target-delta 1e-5": "did you mean '--delta'?",
    f"account poisson --rate 256 --steps 2 {NOISE} --delta 1e-5": "the batch size over the number",
    f"account wor --n 99 --m 5,10 {NOISE} --steps 2 --delta 1e-5 --certificate c.json": (
        "--certificate is the file of one answer, got several values of --m; give one"
    ),
    f"check poisson --rate 0.1 --steps 2 {NOISE} --epsilon 2": (
        "got neither; give --epsilon and --delta"
    ),
    f"check poisson --rate 0.1 --steps 2 {NOISE} --claimed-epsilon 2": "give --delta",
}
"""Command lines, and the one sentence about each."""


@pytest.mark.parametrize("line", REFUSED)
def test_the_way_out_is_one_sentence(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(line.split()) == cli.EXIT_ERROR
    found = capsys.readouterr()
    assert not found.out and found.err.count("\n") == 1 and REFUSED[line] in found.err
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--n 50,000", "did you mean 50000?"),
        ("--n 50k", "did you mean 50000?"),
        ("--n 1%", "got '1%'; dpsub account"),
        ("--rate 1%", "did you mean 0.01?"),
    ],
)
def test_numbers_as_people_write_them_name_the_one_that_is_meant(
    written: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["account", "poisson", *written.split()]) == cli.EXIT_ERROR
    assert meant in capsys.readouterr().err


def test_the_number_of_records_may_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = _answer(capsys, "recommend 12 --m 4,6 --epochs 1 --epsilon 2 --delta 1e-3 --quick")
    assert "4 out of 12 records" in found and "6 out of 12 records" in found


def test_batch_sizes_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"account wor --n 100 --batch-size 5,10 --steps 3 {NOISE} --delta 1e-5 --json"
    both = cli.parser_of("account").parse_args(line.split()[1:])
    assert both.m == (5, 10)
    found = _answer(capsys, line)
    assert [int(m) for m in re.findall(r'"m": (\d+)', found)] == [5, 10]


@pytest.mark.parametrize(
    ("sampler", "way_out"),
    [
        ("poisson", r"write dpsub\.Poisson\(rate\)"),
        ("posson", "did you mean 'poisson'"),
        (dpsub.MustOW, r"write dpsub\.MustOW\(b, m\)"),
        (3, "got 3; make one"),
    ],
    ids=["name", "misspelt", "class", "number"],
)
def test_a_sampler_is_an_object(sampler: object, way_out: str) -> None:
    with pytest.raises(ArgumentError, match=way_out):
        dpsub.account(sampler, 10, noise_multiplier=1.0, delta=1e-5)  # type: ignore[arg-type]


MISTYPED = {
    "Poisson(512, 50_000)": "a batch of 512 out of 50000 records has the rate 512 / 50000",
    "Poisson(512)": "it is the batch size over the number of records",
    "Poisson(sample_rate=0.1)": "did you mean 'rate'?",
    "Poisson()": "write dpsub.Poisson(rate)",
    "Wor(50_000, 512)": "n is an argument of the question: dpsub.account(dpsub.Wor(m), n)",
    "Wor(n=100, m=10)": "got n as well; the number of records n",
    "Wor(batch_size=10)": "did you mean 'm'?",
    "Wor(10, m=10)": "got m twice",
    "Shuffle(60_000, 256)": "n is an argument of the question",
    "MustOW(5)": "takes b and m, got fewer values; write dpsub.MustOW(b, m)",
    "RandomAllocation(steps=5)": "takes t and k, got steps",
}
"""Samplers as people write them, and what is said."""


@pytest.mark.parametrize("text", MISTYPED)
def test_a_sampler_with_other_arguments_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(MISTYPED[text])):
        eval(f"dpsub.{text}")


def test_a_sampler_shows_its_own_arguments() -> None:
    assert str(inspect.signature(dpsub.MustOW)) == "(b: 'int', m: 'int') -> None"
    assert pickle.loads(pickle.dumps(dpsub.Shuffle(5))) == dpsub.Shuffle(5)


def test_sigma_is_the_noise_multiplier() -> None:
    noise: dict[str, Any] = {"sigma": 2.0}
    question = {"delta": 1e-5}
    sampler = dpsub.Poisson(0.1)
    for ask in (
        lambda **s: dpsub.account(sampler, **s, **question).upper,
        lambda **s: dpsub.check(sampler, **s, **question, claimed_epsilon=1).account.upper,
        lambda **s: dpsub.curve(sampler, **s, epsilon=[1.0], quick=True).delta.upper[0],
        lambda **s: dpsub.select(sampler, **s, **question, runs_mean=3).upper,
        lambda **s: dpsub.amplify(sampler, **s, epsilon=1.0).delta_amplified,
        lambda **s: dpsub.Ledger().add(sampler, **s).account(**question).upper,
        lambda **s: dpsub.Ledger().steps_left(sampler, **s, **question, epsilon=0.2),
        lambda **s: dpsub.from_loader(9, 3, **s, epochs=1, poisson=True).account(**question).upper,
        lambda **s: dpsub.audit(sampler, 9, **s, epsilon=0.1, draws=50).account.upper,
    ):
        assert ask(**noise) == ask(noise_multiplier=2.0)
        with pytest.raises(ArgumentError, match="two names of one number"):
            ask(**noise, noise_multiplier=2.0)


def test_words_of_other_libraries_lead_to_ours() -> None:
    question: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 2}
    for word, meant in (("relation", "adjacency"), ("target_delta", "delta"), ("eps", "epsilon")):
        with pytest.raises(TypeError, match=f"unexpected keyword '{word}'; did you mean '{meant}'"):
            dpsub.account(dpsub.Poisson(0.1), **question, **{word: 1})
    with pytest.raises(AttributeError, match="did you mean 'Poisson'"):
        dpsub.poisson  # noqa: B018
    with pytest.raises(AttributeError, match=r"it is dpsub\.opacus\.OpacusAccountant"):
        dpsub.OpacusAccountant  # noqa: B018
    with pytest.raises(ArgumentError, match="quick must be True or False"):
        dpsub.account(dpsub.Poisson(0.1), **question, delta=1e-5, quick="yes")


def test_what_belongs_elsewhere_is_led_there() -> None:
    """A size of the sampler, one number of two bounds, and the question after a loader."""
    question: dict[str, Any] = {"noise_multiplier": 2.0, "delta": 1e-5}
    with pytest.raises(TypeError, match=r"'rate', a size of the sampler; write dpsub\.Poisson"):
        dpsub.account("poisson", **question, rate=0.1)
    with pytest.raises(ArgumentError, match="got batch_size; the rate is batch_size / n"):
        dpsub.Poisson(batch_size=256)
    answer = dpsub.account(dpsub.Poisson(0.1), **question, quick=True)
    with pytest.raises(AttributeError, match=r"in \[lower, upper\], and upper is the proved"):
        answer.epsilon  # noqa: B018
    assert not hasattr(answer, "higher") and pickle.loads(pickle.dumps(answer)) == answer
    with pytest.raises(TypeError, match=r"'delta'; from_loader .* is asked: .*account\(delta"):
        dpsub.from_loader(9, 3, epochs=1, poisson=True, **question)


def test_an_epsilon_at_a_delta_is_a_claim() -> None:
    question: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 2, "delta": 1e-5}
    found = dpsub.check(dpsub.Poisson(0.1), **question, epsilon=1)
    assert found == dpsub.check(dpsub.Poisson(0.1), **question, claimed_epsilon=1)


def test_the_library_reads_the_same_words() -> None:
    question = {"noise_multiplier": 2.0, "delta": 1e-5}
    for given, meant in (("Replace-One", "substitute"), ("ZERO_OUT", "zero_out")):
        found = dpsub.account(dpsub.Poisson(0.1), adjacency=given, mechanism="Gaussian", **question)
        assert found.adjacency == meant


def test_epochs_of_a_sampler_are_steps() -> None:
    question = {"noise_multiplier": 2.0, "delta": 1e-5}
    by_epochs = dpsub.account(dpsub.Poisson(0.03), epochs=1, **question)
    by_steps = dpsub.account(dpsub.Poisson(0.03), steps=34, **question)
    assert (by_epochs.lower, by_epochs.upper) == (by_steps.lower, by_steps.upper)
    with pytest.raises(ArgumentError, match="give n or steps"):
        dpsub.account(dpsub.Wor(3), epochs=1, **question)
    with pytest.raises(ArgumentError, match="got epochs = 1e"):
        dpsub.account(dpsub.Poisson(0.03), epochs=1e12, **question)


def test_files_go_into_folders_that_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"make .*absent first"):
        dpsub.Ledger().save(tmp_path / "absent" / "ledger.json")
    assert not list(tmp_path.iterdir())


COMMANDS = {
    "account": f"{POISSON} {NOISE}",
    "several deltas": f"{POISSON},1e-6 {NOISE}",
    "check": f"check poisson --rate 0.1 --steps 2 {NOISE} --delta 1e-5 --claimed-epsilon 0.1",
    "calibrate": "calibrate poisson --rate 0.1 --steps 2 --epsilon 1 --delta 1e-3",
    "size": f"calibrate poisson --solve size --steps 2 {NOISE} --epsilon 1 --delta 1e-3",
    "curve": f"curve poisson --rate 0.1 --steps 2 {NOISE}",
    "audit": f"audit poisson --n 10 --rate 0.1 --steps 2 {NOISE} --epsilon 0.1 --draws 1000",
    "select": f"select poisson --rate 0.1 --steps 2 {NOISE} --delta 1e-3 --runs-mean 3",
    "ledger": "ledger l.json --delta 1e-5",
}
"""A short question of each command that answers from the accountant."""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a ledger, in the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    entered = dpsub.Ledger().add(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=2)
    entered.save(tmp_path / "l.json")
    return tmp_path / "l.json"


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("command", COMMANDS)
def test_answers_are_short_and_name_their_theorem(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"{COMMANDS[command]} --effort none"
    short = _answer(capsys, line).strip()
    assert len(short.splitlines()) <= 6
    assert "Theorem 1, docs/proofs/" in short or command == "select"
    relation = "relation +add_remove .one record added or removed., as in Opacus"
    assert re.search(relation, short)
    explained = _answer(capsys, f"{line} --explain")
    assert len(explained) > len(short) and "conditions" in explained and "sensitivity" in explained
    told = json.loads(_answer(capsys, f"{line} --json"))
    for single in told if isinstance(told, list) else [told.get("account", told)]:
        assert "docs/proofs/" in single["theorem"]
        assert "docs/proofs/" in single["lower_theorem"]
        assert {"width", "width_reason", "conditions", "kind"} <= set(single)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("command", ["account", "check", "calibrate", "curve", "audit", "ledger"])
def test_tight_is_accepted_with_a_sentence(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*COMMANDS[command].split(), "--tight", "--time-limit", "none"]) == 0
    assert "--tight is the default now and goes in the next release" in capsys.readouterr().err


def test_a_refused_entry_says_what_it_would_cost_and_what_is_left(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"record l.json poisson --rate 0.1 --steps 50 {NOISE} --epsilon 1 --delta 1e-5"
    before = ledger.read_bytes()
    assert cli.main(line.split()) == 3
    told = capsys.readouterr().out
    budget = {"noise_multiplier": 2.0, "epsilon": 1.0, "delta": 1e-5}
    left = dpsub.Ledger.load(ledger).steps_left(dpsub.Poisson(0.1), **budget)
    assert 0 < left < 50 and f"{left} such releases" in told and told.startswith("NOT entered")
    assert re.search(r"with these +epsilon 1\.\d+ is proved", told)
    assert ledger.read_bytes() == before
    asked = ["--left", f"poisson --rate 0.1 {NOISE}", "--epsilon", "1", "--delta", "1e-5"]
    assert cli.main(["ledger", "l.json", *asked]) == 0
    assert capsys.readouterr().out.startswith(f"{left} steps left within epsilon 1")


@pytest.mark.usefixtures("ledger")
def test_what_an_entry_changes_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"record l.json poisson --rate 0.1 {NOISE} --steps"
    assert "note" not in _answer(capsys, f"{line} 3")
    again = _answer(capsys, f"{line} 2")
    assert "entry 1 has the same releases, and both count" in again
    changed = _answer(capsys, f"record l.json shuffle --n 100 --m 5 --epochs 1 {NOISE}")
    assert "the total is under zero_out; until now it was under add_remove" in " ".join(
        changed.split()
    )


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        ("substitute", "compare Opacus' epsilon with that under zero_out"),
        ("zero_out", "comparable with Opacus' epsilon"),
    ],
)
def test_the_relation_of_a_shuffle_that_compares_with_opacus(
    adjacency: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"account shuffle --n 20 --m 5 --epochs 1 {NOISE} --delta 1e-5 --quick"
    assert words in _answer(capsys, f"{line} --adjacency {adjacency}")
    if adjacency == "zero_out":
        said = _answer(capsys, line)
        assert words in said and "as no theorem covers add_remove" in said


RELATIONS = {
    "account poisson --rate 0.1 --steps 2": "add_remove",
    "account wor --n 20 --m 5 --steps 2": "add_remove",
    "account must_ow --n 20 --b 9 --m 5 --steps 2": "add_remove",
    "account shuffle --n 20 --m 5 --epochs 1": "zero_out",
    "account deterministic --n 20 --m 5 --epochs 1": "zero_out",
    "account deterministic --n 20 --m 7 --epochs 1": "add_remove",
    "check shuffle --n 20 --m 5 --epochs 1 --claimed-epsilon 9": "zero_out",
    "loader --n 20 --batch-size 5 --epochs 1 --shuffle": "zero_out",
    "loader --n 20 --batch-size 5 --epochs 1 --replacement": "zero_out",
    "select wor --n 20 --m 5 --steps 2 --runs-mean 3": "add_remove",
}
"""Questions that name no relation, and that of their answer."""


@pytest.mark.parametrize("line", RELATIONS)
def test_one_default_for_one_training_which_comes_first(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = _answer(capsys, f"{line} {NOISE} --delta 1e-5 --quick")
    name, relation = said.splitlines()[1].split()[:2]
    assert (name, relation) == ("relation", RELATIONS[line])
    explained = _answer(capsys, f"{line} {NOISE} --delta 1e-5 --quick --explain")
    assert explained.splitlines()[1].split()[:2] == ["relation", relation]
    found = json.loads(_answer(capsys, f"{line} {NOISE} --delta 1e-5 --quick --json"))
    assert found["adjacency"] == relation
    if not line.startswith("loader") and relation != "add_remove":
        assert "as no theorem covers add_remove" in " ".join(said.split())


def test_python_has_the_same_default() -> None:
    for sampler, relation in (
        (dpsub.Wor(5), "add_remove"),
        (dpsub.Shuffle(5), "zero_out"),
        (dpsub.Multistage.of_text("wor:10,poisson:0.5"), "add_remove"),
    ):
        release = dpsub.Release(sampler, 20, 2.0)
        assert dpsub.account(release, delta=1e-5, quick=True).adjacency == relation
        assert dpsub.curve(release, epsilon=[1.0], quick=True).account.adjacency == relation
        assert dpsub.Ledger([release]).adjacency == relation
        target = {"epsilon": 1.0, "delta": 1e-2, "quick": True, "accuracy": 0.5}
        assert dpsub.calibrate(release, **target).account.adjacency == relation


def test_notes_name_options_on_the_line_and_arguments_in_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = f"account wr --n 500 --m 5 --steps 300 {NOISE} --delta 1e-5"
    question: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 300, "delta": 1e-5}
    for options, said, asked in (
        ("--effort 0.001", "raise --effort", {"effort": 1e-3}),
        ("--effort none --time-limit 1e-3", "drop --time-limit", {"time_limit": 1e-3}),
    ):
        assert said in " ".join(_answer(capsys, f"{line} {options}").split())
        told = " ".join(str(dpsub.account(dpsub.Wr(5), 500, **question, **asked)).split())
        assert said.replace("--", "").replace("-", "_") in told


def test_the_library_names_no_options() -> None:
    """Its messages name arguments, which the command line writes as options."""
    found = []
    for path in sorted((ROOT / "src" / "dpsub").rglob("*.py")):
        if {"cli", "papers", "reproduce"} & {*path.parts}:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_message = id(node) not in documented
                if is_message and re.search(r"(^|[\s'\"(])--[a-z]{2}", node.value):
                    found.append((path.name, node.value))
    assert not found


def test_the_readme_installs_before_it_asks() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index(".venv/bin/pip install .") < readme.index(".venv/bin/dpsub")

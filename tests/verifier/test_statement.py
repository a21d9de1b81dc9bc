"""The verifier states the question that it verified, and can be asked whether it is the expected
one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from certificate import REFUTED, UNREADABLE, VERIFIED, judged, verify
from expect import SIZES, question_of

import dpsub
from dpsub.cli import main, parser_of
from tests.few import few
from tests.verifier.forging import Data, honest

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")
WORDS = "wor --n 5 --m 2 --noise-multiplier 1.5 --steps 2 --delta 0.05 --adjacency add_remove"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificates") / "c.json"
    assert main(["account", *WORDS.split(), "--certificate", str(path)]) in (None, 0)
    return path


def test_the_file_and_the_whole_question_are_stated(written: Path) -> None:
    verdict = judged(str(written))
    digest = hashlib.sha256(written.read_bytes()).hexdigest()
    assert verdict.status == VERIFIED
    assert verdict.statement[0] == f"certificate: sha256 {digest}"
    said = "\n".join(verdict.statement)
    for word in ("epsilon at delta = 0.05", "add_remove: one record added or removed"):
        assert word in said
    for word in ("2 steps of wor (m = 2), n = 5", "gaussian noise of multiplier 1.5"):
        assert word in said
    assert "norm at most C" in said and "docs/guarantees.md" in said
    upper, lower, last = verdict.lines
    assert "Theorem 9, docs/proofs/added_records.md" in upper and last == "verified"
    assert "statistic sum, record 1 against none, others -1" in lower


def test_a_group_and_a_chain_are_stated(tmp_path: Path) -> None:
    data = honest("poisson, group")
    chain = [{"kind": "wor", "size": 3}, {"kind": "poisson", "rate": 0.5}]
    data["question"]["releases"][0]["sampler"] = {"name": "multistage", "chain": chain}
    data["question"]["releases"][0]["n"] = 7
    said = "\n".join(stated(data, tmp_path))
    assert "for 2 records together: one record added or removed" in said
    assert "multistage (chain = wor:3,poisson:0.5), n = 7" in said


def stated(data: Data, folder: Path) -> list[str]:
    path = folder / "c.json"
    path.write_text(json.dumps(data))
    return judged(str(path)).statement


# --- What was expected ----------------------------------------------------------------------------


def test_the_words_of_its_question_are_expected(written: Path) -> None:
    for words in (
        WORDS,
        f"dpsub account {WORDS} --quick",
        WORDS.replace("--m 2", "--batch-size=2"),
    ):
        assert verify(str(written), words) == verify(str(written))


OTHERS = [
    ("--n 5", "--n 6", "n = 6"),
    ("--m 2", "--m 3", "m = 3"),
    ("--steps 2", "--steps 3", "steps = 3"),
    ("--noise-multiplier 1.5", "--noise-multiplier 1.6", "noise_multiplier = 1.6"),
    ("--delta 0.05", "--delta 0.06", "delta = 0.06"),
    ("--delta 0.05", "--epsilon 0.05", "quantity"),
    ("--adjacency add_remove", "", "adjacency = 'substitute'"),
    ("--steps 2", "--steps 2 --group 2", "group = 2"),
    ("--steps 2", "--steps 2 --mechanism laplace", "mechanism"),
    ("wor", "wr", "sampler"),
]


@pytest.mark.parametrize(("old", "new", "named"), OTHERS)
def test_another_question_is_refuted(written: Path, old: str, new: str, named: str) -> None:
    lines, status = verify(str(written), WORDS.replace(old, new, 1))
    assert status == REFUTED and lines[-1].startswith("refuted: expected: ") and named in lines[-1]


REST = "--noise-multiplier 1.5 --delta 0.05"


@pytest.mark.parametrize(
    "words",
    [
        *("", "stratified --n 5", "wor --n five --m 2", "wor --b 1", "wor --n 5 --n 6"),
        f"wor --n 5 --m {10**30}0e {REST}",
        "wor --n 5 --m 2 --delta 0.05",
        f"wor --n 5 --m 2 {REST} --epsilon 1",
        "wor --n 5 --m 2 --noise-multiplier 1.5",
        f"wor --n 5 --m 2 --drop-last {REST}",
        f"wor --n 5 {REST}",
        f"wor --n 5 --m 2 --epochs 2 {REST}",
        f"deterministic --m 2 --epochs 2 {REST}",
        f"wor --n 5 --m 2 '{REST}",
        "wor --n 5 --m 2 --noise-multiplier much --delta 0.05",
        f"poisson --n 0 --m 1 {REST}",
        f"shuffle --n 5 --m 0 {REST}",
        f"random_allocation --n 5 --m -1 {REST}",
        f"cyclic_poisson --cycle 0 --rate 0.5 --epochs 1 {REST}",
        *(f"poisson --rate 0.5 --group {group} {REST}" for group in ("0", "0:0", "1:1:1", "-1:2")),
    ],
)
def test_words_that_are_no_question_are_told(written: Path, words: str) -> None:
    lines, status = verify(str(written), words)
    assert status == UNREADABLE and len(lines) == 1


def test_an_answer_that_is_none_is_told(written: Path, tmp_path: Path) -> None:
    answer = {"quantity": "epsilon", "adjacency": "add_remove", "lower": None, "upper": 1e6}
    assert verify(str(written), json.dumps(answer))[1] == VERIFIED
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(list(answer)))
    for text in (
        "{}",
        json.dumps({**answer, "upper": "much"}),
        json.dumps({**answer, "lower": True}),
    ):
        lines, status = verify(str(written), text)
        assert status == UNREADABLE and "what is expected " in lines[-1], text
    assert verify(str(written), str(listed))[1] == UNREADABLE
    del answer["adjacency"]
    assert verify(str(written), json.dumps(answer))[1] == UNREADABLE


def test_an_end_that_is_not_claimed_is_refuted(written: Path, tmp_path: Path) -> None:
    data = json.loads(written.read_text())
    data["claim"]["lower"] = None
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    answer = {"quantity": "epsilon", "adjacency": "add_remove", "lower": 1e-6, "upper": 1e6}
    lines, status = verify(str(path), json.dumps(answer))
    assert status == REFUTED and "none is claimed" in lines[-1]
    # what rounds to nine digits is met, and no more
    end = data["claim"]["upper"]
    for share, expected in ((1 + 5e-9, VERIFIED), (1 + 2e-8, REFUTED)):
        stated = answer | {"lower": None, "upper": end / share}
        assert verify(str(path), json.dumps(stated))[1] == expected


def test_several_kinds_of_releases_are_no_words(written: Path, tmp_path: Path) -> None:
    data = json.loads(written.read_text())
    data["question"]["releases"] *= 2
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    lines, status = verify(str(path), WORDS)
    assert status == REFUTED and "one kind of releases, the certificate has 2" in lines[-1]


@pytest.mark.parametrize("drops", [False, True])
def test_records_that_are_dropped_are_a_word(drops: bool, tmp_path: Path) -> None:
    data = honest("deterministic")
    if drops:  # an epoch of two steps, not three
        release = data["question"]["releases"][0]
        release["sampler"]["drop_last"], release["steps"] = True, 2
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    words = "deterministic --n 5 --m 2 --noise-multiplier 1.5 --delta .05 --adjacency zero_out"
    for asked in (False, True):
        lines, _ = verify(str(path), f"{words} --drop-last" if asked else words)
        assert ("drop_last" in lines[-1]) == (asked != drops), lines


@pytest.mark.thorough
def test_every_option_of_the_command_is_known(written: Path) -> None:
    """Options are known but for sizes of other samplers, and files that define one: no certificate
    is about these. Nor is one about options that a certificate turns into other releases."""
    turned = {"releases_per_sample", "records_per_user", "bands", "strategy"}
    aside = {
        "help",
        "load",
        "stages",
        "drop_last",
        *turned,
        *(size for sizes in SIZES.values() for size in sizes),
    }
    for action in parser_of("account")._actions:
        if not action.option_strings or action.dest in aside:
            continue
        words = f"{WORDS} {action.option_strings[0]}{'' if action.nargs == 0 else '=7'}"
        lines, _ = verify(str(written), words)
        assert "has no option" not in lines[-1], lines


EXPECTED = {
    "cyclic_poisson --rate .5 --cycle 2 --n 6 --noise-multiplier 1.5 --epochs 2 --delta .05": (
        "cyclic"
    ),
    "poisson --rate .25 --noise-multiplier 1.5 --delta .05 --group 2": "poisson, group",
    "random_allocation --t 4 --k 2 --noise-multiplier 1.5 --delta .05": "allocation of several",
    "deterministic --n 5 --m 2 --noise-multiplier 1.5 --delta .05 --adjacency zero_out": (
        "deterministic"
    ),
}


@pytest.mark.parametrize("words", few(EXPECTED, most=4))
def test_sizes_are_read_as_the_command_reads_them(words: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(honest(EXPECTED[words])))
    lines, status = verify(str(path), words)
    assert status == VERIFIED, lines


def test_sizes_that_follow_from_others_are_read() -> None:
    """The sizes are a rate from an expected size, and steps from the records of one."""
    assert question_of(f"poisson --n 8 --m 2 {REST}")["sampler"]["rate"] == 0.25
    cyclic = question_of(f"cyclic_poisson --n 8 --m 1 --cycle 2 {REST}")["sampler"]
    assert cyclic == {"name": "cyclic_poisson", "rate": 0.25, "cycle": 2}
    allocation = question_of(f"random_allocation --n 9 --m 2 {REST}")["sampler"]
    assert allocation == {"name": "random_allocation", "t": 5, "k": 1}
    assert question_of(f"poisson --rate 0.5 --m 2 {REST}")["sampler"]["rate"] == 0.5
    assert question_of(f"deterministic --n 5 --m 2 --epochs 3 {REST}")["steps"] == 9
    # all records, in one step
    whole = question_of(f"deterministic --n 5 --epochs 3 {REST}")
    assert whole["sampler"]["m"] is None and whole["steps"] == 3
    chain = [{"kind": "wor", "size": 3}, {"kind": "poisson", "rate": 0.5}]
    stages = question_of(f"multistage --n 7 --chain wor:3,poisson:0.5 {REST}")["sampler"]
    assert stages == {"name": "multistage", "chain": chain}


def test_the_answer_is_expected(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", *WORDS.split(), "--json"]) in (None, 0)
    text = capsys.readouterr().out
    assert verify(str(written), text) == verify(str(written))
    file = written.parent / "answer.json"
    file.write_text(text)
    assert verify(str(written), str(file)) == verify(str(written))
    os.mkfifo(written.parent / "pipe.json")
    assert verify(str(written), str(written.parent / "pipe.json"))[1] == UNREADABLE
    answer = json.loads(text)
    changes: list[dict[str, Any]] = [
        {"upper": answer["upper"] * 0.999},
        {"lower": answer["lower"] * 1.001},
        {"adjacency": "substitute"},
        {"quantity": "delta"},
        {"certificate": None},
        {"certificate": {"sha256": "0" * 64}},
    ]
    for change in changes:
        lines, status = verify(str(written), json.dumps(answer | change))
        assert status == REFUTED and lines[-1].startswith("refuted: expected: "), lines
    nothing = {"lower": 0.0, "upper": "Infinity"}
    lines, status = verify(str(written), json.dumps(answer | nothing))
    assert status == UNREADABLE and "states no bound" in lines[-1]
    # a bound that nobody knows takes no proof
    assert verify(str(written), json.dumps(answer | {"upper": "Infinity"}))[1] == VERIFIED


def test_an_answer_names_its_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The certificate of another question, whose bounds are better, is refused."""
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    texts = []
    for file, noise in zip(files, ("1.5", "1.6"), strict=True):
        words = WORDS.replace("--noise-multiplier 1.5", f"--noise-multiplier {noise}")
        assert main(["account", *words.split(), "--json", "--certificate", str(file)]) == 0
        texts.append(capsys.readouterr().out)
    answer, other = (json.loads(text) for text in texts)
    assert verify(str(files[0]), texts[0])[1] == VERIFIED
    weaker = answer | {"lower": other["lower"]}
    lines, status = verify(str(files[1]), json.dumps(weaker))
    assert status == REFUTED and "sha256" in lines[-1]
    # as it would be verified without the digest
    del weaker["certificate"]
    assert verify(str(files[1]), json.dumps(weaker))[1] == VERIFIED


# --- The program ----------------------------------------------------------------------------------


def run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **more)


def test_the_program_prints_all_of_it(written: Path) -> None:
    done = run(str(ROOT / "verifier"), str(written), "--expect", WORDS)
    verdict = judged(str(written))
    assert done.returncode == VERIFIED and done.stderr == ""
    assert done.stdout.splitlines() == [*verdict.statement, *verdict.lines]


def test_a_terminal_without_letters_is_enough(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(written.read_text().replace('"gaussian"', '"\\u00e4"'), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(str(ROOT / "verifier"), str(path), env=environment)
    assert done.returncode == 3 and done.stderr == ""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_verdict_that_nobody_can_read_is_none(written: Path, unbuffered: str) -> None:
    """The status is none of those of a verdict, and least of all `refuted`, as a traceback's is."""
    words = [sys.executable, str(ROOT / "verifier"), str(written)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with FULL.open("w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
        silent = subprocess.run(words, stdout=full, stderr=full, env=environment)
    closed = run(*words[1:], preexec_fn=lambda: os.close(1), env=environment)
    assert (done.returncode, silent.returncode, closed.returncode) == (4, 4, 4)
    for each in (done, closed):
        assert "cannot be written" in each.stderr and each.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["--expected", "wor"], ["c.json", "--expect"]])
def test_a_mistyped_command_is_no_verdict(words: list[str]) -> None:
    """The status is least of all `not readable`, which is about a file."""
    done = run(str(ROOT / "verifier"), *words)
    assert done.returncode == 5 and done.stdout == ""
    assert "error: " in done.stderr and "Traceback" not in done.stderr


def test_where_it_is_installed_it_is_a_package(written: Path, tmp_path: Path) -> None:
    """The package is the folder, by the name that pyproject.toml gives it."""
    declared = (ROOT / "verifier" / "pyproject.toml").read_text()
    assert 'package-dir = { dpsub_verifier = "." }' in declared
    assert 'dpsub-verify = "dpsub_verifier.__main__:main"' in declared
    shutil.copytree(ROOT / "verifier", tmp_path / "dpsub_verifier")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run("-m", "dpsub_verifier", str(written), env=environment, cwd=tmp_path)
    assert done.returncode == VERIFIED and done.stdout.endswith("\nverified\n")


def test_an_answer_has_the_ends_of_its_certificate() -> None:
    """The ends are the same in the sense of `--expect`."""
    answer = dpsub.account(
        dpsub.Wor(2), 5, noise_multiplier=1.5, delta=0.05, quick=True, adjacency="substitute"
    )
    claim = answer.certificate()["claim"]
    assert claim["upper"] <= answer.upper * (1 + 1e-8)
    assert claim["lower"] >= answer.lower * (1 - 1e-8)

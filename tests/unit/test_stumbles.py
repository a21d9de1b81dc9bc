"""What users typed in vain: each is understood, or answered by one sentence with the way out."""

from __future__ import annotations

import re
from pathlib import Path

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
    f"account Random-Allocation --n 20 --m 6 {NOISE} --epochs 1 --delta 1e-5": (
        f"account random_allocation --n 20 --t 4 {NOISE} --epochs 1 --delta 1e-5"
    ),
}
"""Command lines, and what they mean."""


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
        "n = 59904 if the last, smaller batch is dropped (drop_last)"
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
}
"""Command lines, and what the one sentence says."""


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


def test_the_readme_installs_before_it_asks() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index(".venv/bin/pip install .") < readme.index(".venv/bin/dpsub")

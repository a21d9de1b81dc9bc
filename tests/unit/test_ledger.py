"""Ledgers: budgets against plain accounts, JSON there and back, damaged files, and samples that are
not fresh."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub import cli, files, sampling
from dpsub.cli import main
from dpsub.errors import ArgumentError, DataError

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def mixed() -> dpsub.Ledger:
    return (
        dpsub.Ledger()
        .add(dpsub.Wor(10), 1000, noise_multiplier=2.0, steps=20)
        .add(dpsub.Poisson(1 / 30), noise_multiplier=math.pi, steps=7)
    )


def test_what_a_budget_still_allows() -> None:
    ledger = mixed()
    most = ledger.steps_left(dpsub.Poisson(0.05), noise_multiplier=2.0, **BUDGET)
    together = {
        steps: dpsub.Ledger(ledger)
        .add(dpsub.Poisson(0.05), noise_multiplier=2.0, steps=steps)
        .account(delta=1e-6, width=1e-3)
        for steps in (most, most + 1)
    }
    assert 1 < most < 1000 and together[most].upper <= 1.0 < together[most + 1].upper + 1e-3
    for steps, found in together.items():
        kind = {"noise_multiplier": 2.0, "steps": steps}
        assert ledger.would_exceed(dpsub.Poisson(0.05), **kind, **BUDGET) == (steps > most)
        assert found.upper > ledger.account(delta=1e-6).upper
    assert ledger.steps_left(dpsub.Poisson(0.05), noise_multiplier=0.3, **BUDGET) == 0
    assert len(ledger) == 2  # questions enter nothing


def test_the_noise_of_the_next_part() -> None:
    ledger = mixed()
    found = ledger.calibrate(dpsub.Wor(20), 1000, steps=30, **BUDGET)
    for noise, exceeds in ((found.noise_multiplier, False), (found.noise_multiplier * 0.995, True)):
        assert (
            ledger.would_exceed(dpsub.Wor(20), 1000, noise_multiplier=noise, steps=30, **BUDGET)
            is exceeds
        )
    alone = dpsub.calibrate(dpsub.Wor(20), 1000, steps=30, **BUDGET)
    assert found.noise_multiplier > alone.noise_multiplier
    with pytest.raises(
        dpsub.UnsupportedError,
        match=r"epsilon up to 0\.\d+, above the target "
        r"0\.1; raise the target",
    ):
        ledger.calibrate(dpsub.Wor(20), 1000, epsilon=0.1, delta=1e-6)


def test_every_sampler_comes_back_as_it_was(tmp_path: Path) -> None:
    ledger = dpsub.Ledger()
    for kind in sampling.REGISTRY.members().values():
        for place, (sampler, n) in enumerate(kind.examples()):
            ledger.record(
                sampler, n, noise_multiplier=0.1 + 1 / (3 + place), sample=f"{kind.name} {place}"
            )
    ledger.record(
        dpsub.Poisson(1 / 3),
        noise_multiplier=1e9,
        steps=10**9,
        mechanism="laplace",
        denominator="realised",
    )
    ledger.save(tmp_path / "ledger.json")
    again = dpsub.Ledger.load(tmp_path / "ledger.json")
    assert list(again) == list(ledger) and len(again) > 15
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "ledger.json").read_bytes()


def test_a_failed_save_leaves_the_old_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.json"
    mixed().save(path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(DataError, match="No space left"):
        mixed().save(path)
    assert list(dpsub.Ledger.load(path)) == list(mixed())
    assert {file.name for file in tmp_path.iterdir()} == {"ledger.json", ".ledger.json.lock"}


def saved() -> dict[str, Any]:
    return {
        "dpsub_ledger": 1,
        "releases": [
            {
                "sampler": {"name": "wor", "m": 10},
                "n": 1000,
                "noise_multiplier": 2.0,
                "steps": 20,
                "mechanism": "gaussian",
                "denominator": "fixed",
                "sample": "monday",
            },
        ],
    }


def test_the_layout_of_the_file_is_this_one(tmp_path: Path) -> None:
    """Files of this schema version must stay readable: a change here is a new version."""
    (tmp_path / "ledger.json").write_text(json.dumps(saved()))
    assert list(dpsub.Ledger.load(tmp_path / "ledger.json")) == [
        dpsub.Release(dpsub.Wor(10), 1000, 2.0, 20, sample="monday")
    ]


CHAIN = {"name": "multistage", "chain": [{"kind": "wor", "size": 5}, {"kind": "wrr", "size": 5}]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"dpsub_ledger": 2},
            "must have schema version 1, got 2; read it with the dpsub that wrote it",
        ),
        ({"dpsub_ledger": None}, "must have schema version 1, got None"),
        ({"releases": {}}, "has no list of releases"),
        ({"releases": [3]}, "release 1 of the ledger .* a release needs the entries .*, got 3"),
        ({"sampler": {"name": "wro", "m": 10}}, "unknown sampler 'wro'; did you mean"),
        ({"sampler": "wor"}, "wor needs the entries m, name, got 'wor'"),
        ({"sampler": {"name": "wor", "b": 10}}, "wor needs the entries m, name, got b, name"),
        ({"sampler": {"name": "wor", "m": "10"}}, "whole number, got m = '10'"),
        ({"sampler": CHAIN}, "unknown kind of stage 'wrr'"),
        ({"sampler": {"name": "multistage", "chain": [3]}}, "unknown kind of stage 3"),
        ({"sampler": {"name": "multistage", "chain": 3}}, "a list of stages"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"noise_multiplier": math.nan}, "noise_multiplier must be finite"),
        ({"steps": None}, "steps must be a whole number, got steps = None"),
        ({"noise_multiplier": None}, "a noise_multiplier is needed, got none"),
        ({"mechanism": ["gaussian"]}, "unknown mechanism"),
        ({"sample": 3}, "sample must be a name or null, got 3"),
        ({"more": 3}, "needs the entries denominator, .*, got denominator, mechanism, more"),
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    document, (key,) = saved(), change
    (document if key in document else document["releases"][0]).update(change)
    (tmp_path / "ledger.json").write_text(json.dumps(document))
    with pytest.raises(dpsub.DataError, match=sentence) as refused:
        dpsub.Ledger.load(tmp_path / "ledger.json")
    assert "\n" not in str(refused.value)


def test_what_is_no_ledger_at_all(tmp_path: Path) -> None:
    mixed().save(tmp_path / "whole.json")
    whole, cut = (tmp_path / "whole.json").read_bytes().rstrip(), tmp_path / "cut.json"
    for contents in (
        *(whole[:size] for size in range(0, len(whole), 7)),
        b"\xff" + whole,
        b"[" * 10**5,
        b"[]",
        b"{}",
    ):
        cut.write_bytes(contents)
        with pytest.raises(dpsub.DataError, match=r"is not (complete JSON|a ledger) "):
            dpsub.Ledger.load(cut)
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(dpsub.DataError, match=r"cannot be read|a file is needed"):
            dpsub.Ledger.load(path)


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        # the last one would win, and the answer fall
        (
            '"noise_multiplier": 2.0',
            '"noise_multiplier": 2.0,\n"noise_multiplier": 9.0',
            "noise",
            11,
        ),
        (
            '"noise_multiplier": 2.0',
            '"noise_multiplier": 2.0, "noise\\u005fmultiplier": 9',
            "noise",
            10,
        ),
        ('"m": 10', '"m": 10, "m" : 20', "m", 7),
        ('"dpsub_ledger": 1', '"dpsub_ledger": 1, "releases": []', "releases", 3),
    ],
)
def test_a_repeated_key_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, key: str, line: int
) -> None:
    text, path = json.dumps(saved(), indent=1), tmp_path / "ledger.json"
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(DataError, match=rf"every key once, got '{key}\w*' again at line {line};"):
        dpsub.Ledger.load(path)


def test_braces_and_colons_within_text_are_no_keys(tmp_path: Path) -> None:
    ledger = dpsub.Ledger()
    for place, name in enumerate(('a": 1, "a": {', "{}{}", "\\", '\\"', 'n":', "name", "é:")):
        ledger.record(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=place + 1, name=name)
    ledger.save(tmp_path / "ledger.json")
    assert dpsub.Ledger.load(tmp_path / "ledger.json").names == ledger.names


@pytest.mark.parametrize("version", [True, 1.0, "1"])
def test_the_version_is_a_whole_number(tmp_path: Path, version: object) -> None:
    (tmp_path / "ledger.json").write_text(json.dumps(saved() | {"dpsub_ledger": version}))
    with pytest.raises(DataError, match="must have schema version 1, got"):
        dpsub.Ledger.load(tmp_path / "ledger.json")


def test_small_losses_beside_large_ones_take_no_finer_grid() -> None:
    """Deviations of one loss are 3e-4 and 14 nats: a grid for the small ones would need millions of
    points for the others."""
    rare, large = (dpsub.MustWO(16, 3), 1669, 13.0, 16), (dpsub.MustWO(12, 6), 30, 0.3, 10)
    ledger = dpsub.Ledger(dpsub.Release(*release) for release in (rare, large))
    answer = ledger.account(delta=1e-5, width=0.02)
    alone = dpsub.Ledger([dpsub.Release(*large)]).account(delta=1e-5, width=0.02)
    assert answer.width_met and alone.lower <= answer.upper <= alone.upper + 0.1
    both = ledger.export()
    assert max(law.losses.size for law in both.laws) < 1e5


def test_one_sample_is_fresh_once() -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.3), noise_multiplier=1.0, sample="monday")
    for again in (ledger, dpsub.Ledger(ledger)):
        with pytest.raises(
            dpsub.UnsupportedError,
            match=r"fresh sample, got 'monday', already "
            r"used by release 1; .* 0\.79999",
        ):
            again.add(dpsub.Poisson(0.3), noise_multiplier=4 / 3, sample="monday")
    assert len(ledger.add(dpsub.Poisson(0.3), noise_multiplier=1.0, sample="tuesday")) == 2
    with pytest.raises(dpsub.UnsupportedError, match="as one release if both are asked"):
        ledger.add(dpsub.Poisson(0.3), noise_multiplier=2.0, sample="monday", mechanism="laplace")


def test_why_one_sample_is_not_composed_as_two() -> None:
    """For two queries of one sample, noise multipliers 1 and 4/3, by quadrature in the plane, the
    worst record is seen as in one release with noise multiplier 0.8, and better than two fresh
    samples allow."""
    x, q, epsilon = np.linspace(-9, 10, 1200), 0.3, 0.5
    noise = norm.pdf(x, 0, 1)[:, None] * norm.pdf(x, 0, 4 / 3)
    drawn = norm.pdf(x, 1, 1)[:, None] * norm.pdf(x, 1, 4 / 3)
    gap = (1 - q) * noise + q * drawn - math.exp(epsilon) * noise
    truth = float(np.maximum(gap, 0).sum()) * (x[1] - x[0]) ** 2
    joint = dpsub.account(dpsub.Poisson(q), noise_multiplier=0.8, epsilon=epsilon, width=1e-4)
    assert joint.lower == pytest.approx(truth, rel=1e-3)
    fresh = [dpsub.Release(dpsub.Poisson(q), None, noise) for noise in (1.0, 4 / 3)]
    assert dpsub.Ledger(fresh).account(epsilon=epsilon).upper < truth


def test_a_ledger_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ledger.json"
    words = [
        "record",
        str(path),
        "poisson",
        "--rate",
        "0.05",
        "--sigma",
        "2",
        "--steps",
        "40",
        "--json",
    ]
    budget = ["--epsilon", "1.5", "--delta", "1e-6"]

    def answer(*command: str) -> Any:
        status = main([*command])
        return status, json.loads(capsys.readouterr().out)

    assert answer(*words, "--sample", "monday") == (
        0,
        {"ledger": str(path), "releases": 1, "entered": True},
    )
    entered = 1
    while answer(*words, *budget)[1]["entered"]:
        entered += 1
    one = dpsub.Release(dpsub.Poisson(0.05), None, 2.0, 40)
    assert 1 < entered == len(dpsub.Ledger.load(path)) < 20
    assert dpsub.Ledger([one] * entered).account(delta=1e-6, width=1.5e-3).upper <= 1.5
    assert dpsub.Ledger([one] * (entered + 1)).account(delta=1e-6, width=1.5e-3).upper > 1.5
    status, told = answer("ledger", str(path), "--delta", "1e-6", "--json")
    assert (
        status == 0
        and len(told["releases"]) == entered
        and told["releases"][0]["sample"] == "monday"
    )
    assert told["upper"] == dpsub.Ledger.load(path).account(delta=1e-6).upper
    status, told = answer(*words, "--sample", "monday")
    assert status == 2 and "every release needs a fresh sample" in told["error"]
    assert answer(*words, "--epsilon", "1")[1]["error"].startswith(
        "a budget needs --epsilon and --delta"
    )
    path.write_text("{")
    assert answer("ledger", str(path), "--delta", "1e-6", "--json")[1]["kind"] == "data"
    assert path.read_text() == "{"


def test_add_makes_a_new_ledger_and_record_enters_into_this_one() -> None:
    ledger = dpsub.Ledger()
    entry = {"noise_multiplier": 2.0, "steps": 3}
    longer = ledger.add(dpsub.Poisson(0.1), **entry, name="first")
    assert (len(ledger), len(longer), longer.names) == (0, 1, ("first",))
    assert ledger.record(dpsub.Poisson(0.1), **entry, name="first") is None
    assert list(ledger) == list(longer) and ledger.names == longer.names


def test_a_cell_that_runs_twice_is_noticed(tmp_path: Path) -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.1), noise_multiplier=2.0)
    ledger.record(dpsub.Poisson(0.1), noise_multiplier=2.0, name="monday")
    ledger.save(tmp_path / "ledger.json")
    for again in (ledger, dpsub.Ledger.load(tmp_path / "ledger.json")):
        with pytest.raises(ArgumentError, match="got 'monday', which entry 2 has; leave this one"):
            again.record(dpsub.Poisson(0.1), noise_multiplier=2.0, name="monday")
        assert len(again) == 2 and again.names == (None, "monday")
    with pytest.raises(ArgumentError, match="must be a text, got 3"):
        ledger.record(dpsub.Poisson(0.1), noise_multiplier=2.0, name=3)  # type: ignore[arg-type]


def test_an_entry_may_change_the_relation_of_all() -> None:
    ledger = dpsub.Ledger()
    assert ledger.adjacency is None
    ledger.record(dpsub.Poisson(0.1), noise_multiplier=2.0)
    assert ledger.adjacency == "add_remove"
    ledger.record(dpsub.Wor(10), 100, noise_multiplier=2.0)
    assert ledger.adjacency == "add_remove"
    # no theorem covers shuffled batches under add_remove, nor the last entry under zero_out
    ledger.record(dpsub.Shuffle(10), 100, noise_multiplier=2.0)
    assert ledger.adjacency == "zero_out"
    last = dpsub.Multistage.of_text("wor:50,poisson:0.1")
    assert ledger.add(last, 100, noise_multiplier=2.0).adjacency == "substitute"


class TestRecordAndLedgerCommands:
    ENTRY = "poisson --rate 0.1 --noise-multiplier 2"

    @pytest.fixture
    def file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        file = str(tmp_path / "ledger.json")
        line = ["record", file, *self.ENTRY.split(), "--steps", "10", "--name", "monday"]
        assert cli.main(line) == 0
        capsys.readouterr()
        return file

    def test_refused_releases_have_their_own_status(
        self, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = Path(file).read_bytes()
        budget = ["--epsilon", "1", "--delta", "1e-5"]
        line = ["record", file, *self.ENTRY.split(), "--steps", "500", *budget, "--json"]
        assert cli.main(line) == 3
        found = json.loads(capsys.readouterr().out)
        assert found["entered"] is False and found["proved_epsilon"] > 1 > found["steps_left"] / 500
        assert Path(file).read_bytes() == before
        left = str(found["steps_left"])
        assert cli.main(["record", file, *self.ENTRY.split(), "--steps", left, *budget]) == 0

    @pytest.mark.parametrize("option", ["--statement", "--clip 1", "--width .1", "--quick"])
    def test_what_a_number_of_steps_has_not(
        self, option: str, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        left = ["--left", "poisson --rate .1 --noise-multiplier 2"]
        budget = ["--epsilon", "2", "--delta", "1e-5"]
        assert main(["ledger", file, *left, *budget, *option.split()]) == 2
        assert f"takes no {option.split()[0]}; drop it" in capsys.readouterr().err

    def test_steps_left(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        budget = ["--epsilon", "1", "--delta", "1e-5"]
        assert cli.main(["ledger", file, "--left", self.ENTRY, *budget, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["steps_left"]
        sampler = dpsub.Poisson(0.1)
        goal = {"epsilon": 1.0, "delta": 1e-5, "noise_multiplier": 2.0}
        assert found == dpsub.Ledger.load(file).steps_left(sampler, **goal)

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            (["--delta", "1e-5", "--left", ENTRY], "give --epsilon and --delta"),
            (["--epsilon", "1", "--delta", "1e-5"], "exactly one of --epsilon and --delta"),
            ([], "got neither"),
            (
                ["--epsilon", "1", "--delta", "1e-5", "--left", f"{ENTRY} --steps 3"],
                "cannot take --steps; drop it",
            ),
            (["--epsilon", "1", "--delta", "1e-5", "--left", "'poisson"], "close the quotes"),
        ],
        ids=["half a budget", "both", "neither", "steps", "quotes"],
    )
    def test_questions_of_a_ledger(
        self, more: list[str], sentence: str, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["ledger", file, *more]) == cli.EXIT_ERROR
        assert sentence in capsys.readouterr().err

    def test_a_name_that_is_there_and_a_change_of_relation(
        self, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line = ["record", file, *self.ENTRY.split(), "--steps", "10", "--name", "monday"]
        assert cli.main(line) == cli.EXIT_ERROR
        assert "got 'monday', which entry 1 has" in capsys.readouterr().err
        line = f"record {file} shuffle --n 100 --m 10 --noise-multiplier 2 --epochs 1"
        assert cli.main(line.split()) == 0
        assert "with this entry the total is under zero_out" in " ".join(
            capsys.readouterr().out.split()
        )

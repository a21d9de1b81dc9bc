"""The golden answers, and one answer of every theorem and attack, are proved again from their
certificates alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import certificate as verifier
import pytest

import dpsub
from dpsub.sampling import of_sizes
from tests.golden import commands, game, samplers
from tests.verifier.proving import as_stated, proved_again


class Question(NamedTuple):
    sampler: Any
    n: int | None
    asked: dict[str, Any]


def asked(noise_multiplier: float, delta: float = 1e-5, **more: Any) -> dict[str, Any]:
    return {"noise_multiplier": noise_multiplier, "delta": delta, **more}


KINDS = {
    "poisson, zero_out": Question(
        dpsub.Poisson(0.01), None, asked(1, steps=100, adjacency="zero_out")
    ),
    "poisson, substitute": Question(
        dpsub.Poisson(0.01), None, asked(1, steps=100, adjacency="substitute")
    ),
    "poisson, little noise": Question(dpsub.Poisson(0.01), None, asked(0.7, 1e-8, steps=20)),
    "poisson, delta asked": Question(
        dpsub.Poisson(0.01), None, {"noise_multiplier": 1, "steps": 9, "epsilon": 0.5}
    ),
    "laplace": Question(dpsub.Poisson(0.02), None, asked(3, steps=50, mechanism="laplace")),
    "laplace, zero_out": Question(
        dpsub.Poisson(0.02), None, asked(3, steps=50, mechanism="laplace", adjacency="zero_out")
    ),
    "laplace, wor": Question(dpsub.Wor(20), 1000, asked(2, steps=50, mechanism="laplace")),
    "laplace, wor, add_remove": Question(
        dpsub.Wor(20), 1000, asked(2, steps=50, mechanism="laplace", adjacency="add_remove")
    ),
    "wor, add_remove": Question(dpsub.Wor(50), 1000, asked(2, steps=50, adjacency="add_remove")),
    "wor, zero_out": Question(
        dpsub.Wor(50), 1000, asked(2, steps=50, adjacency="zero_out", quick=True)
    ),
    "laplace, wor, zero_out": Question(
        dpsub.Wor(2), 5, asked(1, 1e-3, steps=3, mechanism="laplace", adjacency="zero_out")
    ),
    "laplace, wor, zero_out, fillers like the record": Question(
        dpsub.Wor(4), 5, asked(5, 0.3, steps=30, mechanism="laplace", adjacency="zero_out")
    ),
    "laplace, wor, zero_out, everyone": Question(
        dpsub.Wor(4), 4, asked(2, 1e-3, steps=3, mechanism="laplace", adjacency="zero_out")
    ),
    "wr, zero_out": Question(dpsub.Wr(2), 4, asked(1, 1e-3, steps=2, adjacency="zero_out")),
    "wr, zero_out, fillers at 0": Question(
        dpsub.Wr(2), 2, asked(1, 0.3, steps=3, adjacency="zero_out")
    ),
    "must_ow, zero_out": Question(
        dpsub.MustOW(2, 2), 4, asked(1, 1e-3, steps=3, adjacency="zero_out")
    ),
    "must_wo, zero_out": Question(
        dpsub.MustWO(3, 2), 6, asked(2, 1e-3, steps=3, adjacency="zero_out")
    ),
    "must_ww, zero_out": Question(
        dpsub.MustWW(3, 3), 6, asked(2, 1e-3, steps=3, adjacency="zero_out")
    ),
    "three stages, zero_out": Question(
        dpsub.Multistage.of_text("wr:4, wr:3, wr:2"),
        6,
        asked(2, 1e-3, steps=2, adjacency="zero_out"),
    ),
    "wor, everyone": Question(
        dpsub.Wor(4), 4, {"noise_multiplier": 20, "steps": 100, "epsilon": 1}
    ),
    "wr, add_remove": Question(dpsub.Wr(5), 100, asked(2, steps=5, adjacency="add_remove")),
    "must_ow, add_remove": Question(
        dpsub.MustOW(2, 2), 4, asked(1, steps=3, adjacency="add_remove")
    ),
    "must_ww": Question(dpsub.MustWW(3, 3), 6, asked(2, 1e-3, steps=3)),
    "deterministic": Question(
        dpsub.Deterministic(100), 1000, asked(2, epochs=2, adjacency="substitute")
    ),
    "cyclic": Question(dpsub.CyclicPoisson(0.05, 10), 1000, asked(1, epochs=5)),
    "truncated": Question(dpsub.TruncatedPoisson(0.05, 60), 1000, asked(1, steps=50)),
    "truncated, substitute": Question(
        dpsub.TruncatedPoisson(0.05, 60), 1000, asked(1, steps=50, adjacency="substitute")
    ),
    "shuffle": Question(dpsub.Shuffle(100), 400, asked(0.4, adjacency="zero_out")),
    "shuffle, all steps": Question(dpsub.Shuffle(100), 1000, asked(2, epochs=2)),
    "shuffle, hidden step": Question(
        dpsub.Shuffle(2), 40, asked(30, 1e-3, epochs=2, quick=True, effort=None)
    ),
    "shuffle, hidden step, zero_out": Question(
        dpsub.Shuffle(1),
        20,
        asked(30, 1e-3, epochs=1, adjacency="zero_out", quick=True, effort=None),
    ),
    "shuffle, another record stands in": Question(
        dpsub.Shuffle(1), 1000, asked(1.6, 3e-3, epochs=1, quick=True, effort=None)
    ),
    "allocation": Question(dpsub.RandomAllocation(10), None, asked(1, epochs=3)),
    "allocation, zero_out": Question(
        dpsub.RandomAllocation(7), None, asked(1, epochs=2, adjacency="zero_out")
    ),
    "shuffle, sums": Question(dpsub.Shuffle(100), 1000, asked(3, epochs=3, adjacency="zero_out")),
    "allocation of several": Question(dpsub.RandomAllocation(10, 3), None, asked(2, epochs=2)),
    "allocation of several, substitute": Question(
        dpsub.RandomAllocation(10, 3), None, asked(2, epochs=2, adjacency="substitute")
    ),
    "allocation of several in one block": Question(
        dpsub.RandomAllocation(12, 2), None, asked(2, epochs=2, adjacency="zero_out")
    ),
    "allocation of several in two blocks": Question(
        dpsub.RandomAllocation(40, 7), None, asked(3, epochs=2)
    ),
    "group, poisson": Question(dpsub.Poisson(0.1), None, asked(1, steps=3, group=3)),
    "group, poisson, substitute": Question(
        dpsub.Poisson(0.1), None, asked(2, steps=3, group=2, adjacency="substitute")
    ),
    "group, mixed": Question(dpsub.Poisson(0.1), None, asked(2, 1e-3, steps=2, group=(2, 1))),
    "group, cyclic": Question(dpsub.CyclicPoisson(0.2, 5), 100, asked(1, epochs=3, group=2)),
    "group, deterministic": Question(
        dpsub.Deterministic(10), 100, asked(3, epochs=3, group=2, adjacency="zero_out")
    ),
    "group, wor": Question(dpsub.Wor(3), 30, asked(2, 1e-3, steps=2, group=2)),
    "group, wor, add_remove": Question(
        dpsub.Wor(3), 30, asked(2, 1e-3, steps=2, group=2, adjacency="add_remove")
    ),
    "group, wor, zero_out": Question(
        dpsub.Wor(3), 30, asked(1, 1e-3, steps=1, group=2, adjacency="zero_out")
    ),
    "group, wr": Question(dpsub.Wr(3), 30, asked(2, 1e-3, steps=2, group=2)),
    "group, wr, add_remove": Question(
        dpsub.Wr(3), 30, asked(2, 1e-3, steps=2, group=2, adjacency="add_remove")
    ),
    "group, must_ow": Question(dpsub.MustOW(5, 2), 30, asked(1, 1e-3, steps=2, group=2)),
    "group, must_ow, add_remove": Question(
        dpsub.MustOW(5, 2), 30, asked(1, 1e-3, steps=2, group=2, adjacency="add_remove")
    ),
    "tight": Question(dpsub.Wor(1), 2, asked(1, 1e-3, steps=2, quick=False)),
    "tight, laplace": Question(
        dpsub.Wor(50), 1000, asked(4, 1e-3, steps=20, mechanism="laplace", quick=False)
    ),
    "tight, zero_out": Question(
        dpsub.Wor(3), 10, asked(4, 1e-2, steps=6, adjacency="zero_out", quick=False, width=0.01)
    ),
}


LONG = {
    "laplace, wor, zero_out, 1000 steps": Question(
        dpsub.Wor(200),
        10_000,
        asked(4, steps=1000, mechanism="laplace", adjacency="zero_out"),
    ),
    "wr, zero_out, 57000 points": Question(
        dpsub.Wr(5), 100, asked(2, steps=5, adjacency="zero_out")
    ),
    "poisson, less noise": Question(dpsub.Poisson(0.01), None, asked(0.4, 1e-8, steps=20)),
    "poisson, tiny delta": Question(dpsub.Poisson(0.01), None, asked(1, 1e-30, steps=100)),
    "must_ow": Question(dpsub.MustOW(500, 200), 10_000, asked(4, steps=1000)),
    "must_ow, add_remove, 1000 steps": Question(
        dpsub.MustOW(500, 200), 10_000, asked(4, steps=1000, adjacency="add_remove")
    ),
    "must_ww, add_remove": Question(
        dpsub.MustWW(50, 20), 1000, asked(2, steps=50, adjacency="add_remove")
    ),
    "allocation to 1000 steps": Question(dpsub.RandomAllocation(1000), None, asked(1, epochs=10)),
    "allocation, substitute": Question(
        dpsub.RandomAllocation(100), None, asked(1, epochs=2, adjacency="substitute")
    ),
    "allocation of 205 in 10,000 steps, substitute": Question(
        dpsub.RandomAllocation(10_000, 205), None, asked(1.4, adjacency="substitute")
    ),
    "allocation of 5 in 391 steps": Question(
        dpsub.RandomAllocation(391, 5), None, asked(0.8, 1.25e-5, effort=None)
    ),
    "allocation of several, little noise": Question(
        dpsub.RandomAllocation(24, 2), None, asked(0.35, effort=None)
    ),
    "allocation of 10 in 100 steps": Question(
        dpsub.RandomAllocation(100, 10), None, asked(1, 1e-6, effort=None)
    ),
    "shuffle, 100 steps": Question(dpsub.Shuffle(100), 10_000, asked(1, epochs=2)),
    "shuffle, hidden among 1000 steps": Question(
        dpsub.Shuffle(60), 60_000, asked(4, epochs=10, quick=True, effort=None)
    ),
    "shuffle, another record stands in, ten epochs": Question(
        dpsub.Shuffle(1), 100_000, asked(1.5, epochs=10, quick=True, effort=None)
    ),
    "shuffle, another record stands in, a million steps": Question(
        dpsub.Shuffle(1),
        1_000_000,
        asked(1.3, adjacency="zero_out", quick=True, effort=None),
    ),
    "tight, four steps": Question(dpsub.Wor(5), 50, asked(2, 1e-3, steps=4, quick=False)),
    "tight, zero_out, 100 steps": Question(
        dpsub.Wor(200), 10_000, asked(4, steps=100, adjacency="zero_out", quick=False)
    ),
}
"""Questions that take some ten seconds or more each."""
MARKS = {
    # some seconds each; their theorems are proved again for the shorter questions beside them
    **dict.fromkeys(
        (
            "poisson, little noise",
            "poisson, delta asked",
            "laplace, wor",
            "wor, zero_out",
            "wor, everyone",
            "shuffle, all steps",
            "shuffle, hidden step",
            "shuffle, hidden step, zero_out",
            "shuffle, another record stands in",
            "allocation",
            "allocation, zero_out",
            "allocation of several",
            "allocation of several, substitute",
            "allocation of several in one block",
            "allocation of several in two blocks",
            "truncated",
            "tight, laplace",
            "group, poisson, substitute",
            "group, cyclic",
            "group, wor",
            "group, wor, zero_out",
            "group, wr, add_remove",
            "group, must_ow",
            "group, must_ow, add_remove",
            "group, wr",
            "wr, add_remove",
            "wor, add_remove",
            "poisson, zero_out",
            "truncated, substitute",
            "shuffle",
            "must_ww",
            "must_ww, zero_out",
            "must_wo, zero_out",
            "must_ow, zero_out",
            "three stages, zero_out",
            "wr, zero_out",
            "laplace, wor, zero_out, fillers like the record",
        ),
        pytest.mark.thorough,
    ),
    **dict.fromkeys(
        (
            *LONG,
            "shuffle, all steps",
            "shuffle, another record stands in",
            "shuffle, hidden step",
            "allocation of several",
            "allocation of several in two blocks",
            "allocation of several, substitute",
            "allocation, zero_out",
            "allocation",
            "wor, everyone",
            "poisson, little noise",
            "must_ww",
            "tight, laplace",
        ),
        pytest.mark.slow,
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in (*KINDS, *LONG)]
)
def test_every_theorem_and_attack_is_proved_again(name: str, tmp_path: Path) -> None:
    question = {**KINDS, **LONG}[name]
    answer = dpsub.account(
        question.sampler, question.n, **as_stated(question.sampler, question.asked)
    )
    lines, status = proved_again(answer.certificate(), tmp_path)
    assert (lines[-1], status) == ("verified", 0), lines
    assert lines[0].startswith("upper") and ": verified" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "steps"), [(dpsub.MustOW(500, 200), 1000), (dpsub.MustWW(500, 200), 100)], ids=str
)
def test_upper_ends_of_large_chains_are_proved_again(
    sampler: Any, steps: int, tmp_path: Path
) -> None:
    """The chains have records set to 0; the laws of their attacks have too many points."""
    question = asked(4, steps=steps, adjacency="zero_out", quick=True, effort=None)
    certificate = dpsub.account(sampler, 10_000, **question).certificate()
    certificate["claim"]["lower"] = None
    lines, status = proved_again(certificate, tmp_path)
    assert (lines[-1], status) == ("verified", 0), lines


GAMES = [(setting, delta) for setting in game.SETTINGS for delta in game.DELTAS]
SAMPLERS = [(setting, delta) for setting in samplers.SETTINGS for delta in game.DELTAS]
FEW = [
    pytest.param(setting, 1e-5, marks=pytest.mark.slow if setting[3] > 10 else ())
    for setting in game.SETTINGS
    if setting[0] <= 1000 and setting[3] <= 100
]
"""Settings that are proved again within seconds; all of them are `slow`."""


def check_wor(setting: tuple[int, int, float, int], delta: float, folder: Path) -> None:
    n, m, s, steps = setting
    answer = dpsub.account(
        dpsub.Wor(m), n, noise_multiplier=s, steps=steps, delta=delta, adjacency="substitute"
    )
    lines, _ = proved_again(answer.certificate(), folder)
    assert lines[-1] == "verified", lines


@pytest.mark.parametrize(("setting", "delta"), FEW, ids=str)
def test_golden_answers_are_proved_again(
    setting: tuple[int, int, float, int], delta: float, tmp_path: Path
) -> None:
    check_wor(setting, delta, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "delta"), GAMES, ids=str)
def test_all_golden_games_are_proved_again(
    setting: tuple[int, int, float, int], delta: float, tmp_path: Path
) -> None:
    check_wor(setting, delta, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "delta"), SAMPLERS, ids=str)
def test_all_golden_samplers_are_proved_again(
    setting: samplers.Setting, delta: float, tmp_path: Path
) -> None:
    sizes = {"n": setting.n, "m": setting.m, "b": setting.b}
    answer = dpsub.account(
        of_sizes(setting.sampler, **sizes),
        setting.n,
        noise_multiplier=setting.noise_multiplier,
        steps=setting.steps,
        delta=delta,
        adjacency=setting.adjacency,
        mechanism=setting.noise,
    )
    lines, _ = proved_again(answer.certificate(), tmp_path)
    assert lines[-1] == "verified", lines


COMMANDS = [
    command
    for command, recorded in commands.recorded().items()
    if command.startswith("account ")
    and recorded["status"] == 0
    and "--variant paper" not in command
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_all_golden_commands_are_proved_again(command: str, tmp_path: Path) -> None:
    from dpsub.cli import main

    path = tmp_path / "certificate.json"
    assert main([*command.split(), "--certificate", str(path)]) == 0
    lines, _ = verifier.verify(str(path))
    assert lines[-1] == "verified", lines


def test_a_golden_answer_that_claims_more_is_refuted(tmp_path: Path) -> None:
    """A golden answer that claims more is refuted; else the tests above could not fail."""
    question = KINDS["poisson, substitute"]
    certificate = dpsub.account(
        question.sampler, question.n, **as_stated(question.sampler, question.asked)
    ).certificate()
    certificate["claim"]["upper"] *= 0.9999
    lines, status = proved_again(certificate, tmp_path)
    assert status == 1 and lines[-1].startswith("refuted: upper bound")

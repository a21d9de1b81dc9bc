"""The noise that each scheme needs for a target, and the recommended scheme."""

from __future__ import annotations

import json
import math
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.questions import recommend as source
from dpsub.accounting.questions.fast_search import Needed, needed
from dpsub.accounting.questions.recommend import Recommendation, SchemeNoise, recommend
from dpsub.accounting.questions.search import Goal
from dpsub.accounting.release import Release
from dpsub.cli import main
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.sampling.frame import Frame
from dpsub.sampling.schemes import SCHEMES, scheme, scheme_names
from tests.few import few

RELATIONS = ("add_remove", "zero_out", "substitute")
SLACK = 1.01  # of the accuracy asked for


def settings(count: int) -> list[tuple[str, str, int, int, int, float, float]]:
    """Draw random settings: relation, scheme, n, m, epochs, epsilon and delta."""
    rng = random.Random(19)
    return [
        (
            rng.choice(RELATIONS),
            rng.choice(sorted(SCHEMES)),
            n := round(10 ** rng.uniform(2, 3.5)),
            max(1, round(n * 10 ** rng.uniform(-2.5, -0.7))),
            rng.choice([1, 3, 10]),
            10 ** rng.uniform(-0.3, 0.9),
            10 ** rng.uniform(-8, -4),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    "setting",
    few([(each,) for each in settings(12)], most=2, more=4),
    ids=lambda setting: " ".join(map(str, setting[:5])),
)
def test_the_account_proves_the_noise_and_refutes_the_necessary_one(setting: tuple) -> None:
    adjacency, name, n, m, epochs, epsilon, delta = setting
    try:
        plan, steps = scheme(name, n, m, epochs)
        found = needed(Release(plan, n, 1.0, steps), Goal(epsilon, delta, adjacency, 1e-2))
    except dpsub.DpsubError as error:
        pytest.skip(str(error))
    question = {"steps": steps, "delta": delta, "adjacency": adjacency}
    proved = dpsub.account(plan, n, noise_multiplier=found.noise_multiplier, **question)
    assert proved.upper <= epsilon
    assert found.epsilon_lower <= proved.upper and proved.lower <= found.epsilon_upper <= epsilon
    assert 0 < found.necessary < found.noise_multiplier
    assert (
        dpsub.account(plan, n, noise_multiplier=found.necessary / SLACK, **question).lower > epsilon
    )


@pytest.mark.parametrize(
    ("name", "adjacency"), few([("wor", "substitute"), ("must_ow", "add_remove")])
)
def test_it_is_the_noise_of_a_calibration(name: str, adjacency: str) -> None:
    plan, steps = scheme(name, 1000, 50, 2)
    target = {"epsilon": 1.0, "delta": 1e-6, "adjacency": adjacency}
    slow = dpsub.calibrate(plan, 1000, steps=steps, **target)
    assert slow.refuted is not None
    for accuracy in (2e-2, 5e-3):
        goal = Goal(**target, accuracy=accuracy)
        found = needed(Release(plan, 1000, 1.0, steps), goal)
        assert found.noise_multiplier == pytest.approx(slow.noise_multiplier, rel=2 * accuracy)
        assert found.necessary == pytest.approx(slow.refuted, rel=2 * accuracy)


@pytest.mark.parametrize(
    ("name", "n", "m", "epochs", "epsilon"),
    # rare records in many steps, which a grid can hide; laws of allocations, which are the same on
    # coarse grids
    few(
        [
            ("poisson", 10_000, 10, 50, 4.0),
            ("random_allocation", 10_000, 20, 2, 0.5),
            ("k_of_t", 10_000, 20, 50, 4.0),
        ],
        more=1,
    ),
)
def test_grids_add_no_more_than_the_accuracy(
    name: str, n: int, m: int, epochs: int, epsilon: float
) -> None:
    plan, steps = scheme(name, n, m, epochs)
    target = {"epsilon": epsilon, "delta": 1e-5, "adjacency": "zero_out"}
    slow = dpsub.calibrate(plan, n, steps=steps, accuracy=2e-3, **target)
    found = needed(Release(plan, n, 1.0, steps), Goal(**target, accuracy=5e-3))
    assert slow.refuted is not None
    assert found.noise_multiplier <= slow.noise_multiplier * (1 + 2 * 5e-3)
    # what a grid hides of an attack is estimated
    assert found.necessary >= slow.refuted * (1 - 2e-2)


def test_a_missing_proof_is_said() -> None:
    plan, steps = scheme("shuffle", 1000, 100, 1)
    goal = Goal(1.0, 1e-6, "add_remove")
    with pytest.raises(UnsupportedError, match="under add_remove"):
        needed(Release(plan, 1000, 1.0, steps), goal)


@pytest.fixture(scope="module")
def found() -> Recommendation:
    target = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "zero_out"}
    return recommend(1000, batch_size=100, epochs=2, **target, effort=None)


def test_each_scheme_names_its_theorems(found: Recommendation) -> None:
    assert all("docs/proofs/" in each.theorem for each in found.schemes)
    attacks = {
        "poisson": "Theorem 1, docs/proofs/zero_out.md",
        "wor": "Attack, docs/proofs/attacks.md",
    }
    for each in (answer for answer in found.schemes if answer.name in attacks):
        asked = {"steps": each.steps, "delta": 1e-5, "adjacency": "zero_out"}
        noise = each.noise_multiplier
        account = dpsub.account(each.sampler, 1000, noise_multiplier=noise, **asked)
        assert each.theorem == account.theorem
        assert each.lower_theorem == attacks[each.name]
    assert f"theorem           {found.schemes[0].theorem}" in str(found)


@pytest.mark.parametrize(
    ("adjacency", "group", "words"),
    [
        ("zero_out", 1, "comparable with Opacus' epsilon"),
        ("add_remove", 1, "as in Opacus; at fixed sizes compare with zero_out"),
        ("substitute", 1, "compare Opacus' epsilon with that under zero_out"),
        ("substitute", 3, "(up to 3 records of one unit replaced)"),
    ],
)
def test_the_relation_that_compares_with_opacus_is_named(
    adjacency: str, group: int, words: str, found: Recommendation
) -> None:
    asked = replace(found, adjacency=adjacency, group=group)
    assert asked.relation_text().endswith(words)
    assert len(str(asked).splitlines()) <= 6


def test_noise_that_a_game_proves_names_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def less(release: Release, goal: Goal, known: Needed) -> Needed:
        return known._replace(noise_multiplier=known.noise_multiplier - (release.sampler == wor))

    wor = dpsub.Wor(10)
    monkeypatch.setattr(source, "needed", lambda *_, **__: source.Needed(2.0, 1.0, 0.5, 1.0))
    monkeypatch.setattr(source, "tightened", less)
    target = {"epsilon": 1.0, "delta": 1e-3, "adjacency": "substitute"}
    found = recommend(1000, batch_size=10, epochs=1, **target, effort=None, quick=False)
    theorems = {each.name: each.theorem for each in found.schemes}
    assert theorems["wor"] == "Theorem 15, docs/proofs/without_replacement.md"
    assert theorems["must_ow"] == "Theorem 6, docs/proofs/chains.md"


def test_every_scheme_is_answered_or_left_out_with_a_reason(found: Recommendation) -> None:
    assert (
        sorted([*(one.name for one in found.schemes), *found.left_out])
        == sorted(scheme_names())
        == sorted(source._ORDER)
    )
    assert found.left_out == {}
    noises = [one.noise_multiplier for one in found.schemes]
    assert [one.ratio for one in found.schemes] == pytest.approx(
        [noise / noises[0] for noise in noises]
    )
    assert noises[0] <= min(noises) * 1.003
    assert found.noise_on_mean == noises[0] / 100
    assert found.even == tuple(one.name for one in found.schemes[1:] if one.refuted < noises[0])


def test_what_a_scheme_costs(found: Recommendation) -> None:
    by_name = {one.name: one for one in found.schemes}
    rng = np.random.default_rng(5)
    for name, one in by_name.items():
        blocks = [one.sampler.draw_block(Frame(1000), one.steps, rng) for _ in range(40)]
        sizes = np.array([block.sizes for block in blocks])
        deviation = sizes.sum(axis=1).std() / math.sqrt(len(blocks))
        assert sizes.max() <= one.likely_batch <= one.largest_batch, name
        if name in ("wr", "three_stage", "must_ow", "must_ww"):
            continue  # gradients count copies within a batch once
        assert (
            abs(sizes.sum(axis=1).mean() - one.gradients) <= 5 * deviation + 1e-9 * one.gradients
        ), name
        epochs = blocks[0].indices[: int(sizes[0, :10].sum())]
        assert (sorted(epochs) == list(range(1000))) == one.every_epoch, name


def test_the_reasons_follow_from_the_numbers(found: Recommendation) -> None:
    by_name = {one.name: one for one in found.schemes}
    least, fixed, shuffled = found.reasons
    assert least.startswith(f"{found.schemes[0].name} has the least proved noise")
    assert f"{by_name['wor'].ratio - 1:.1%} more noise" in fixed
    assert by_name["shuffle"].refuted > by_name["poisson"].noise_multiplier
    assert shuffled.endswith("is refuted for it.")
    assert not any("may need as little" in reason for reason in found.reasons) or found.even


def test_a_scheme_without_its_work_has_noise_by_first_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(release: Release, goal: Goal) -> Needed:
        if isinstance(release.sampler, dpsub.Wor):
            raise NumericalError("out of work")
        return Needed(2.0, 0.0, 0.5, 1.0)

    monkeypatch.setattr(source, "needed", slow)
    found = recommend(1000, batch_size=10, epochs=1, epsilon=1.0, delta=1e-5)
    wor = next(one for one in found.schemes if one.name == "wor")
    assert wor.theorem == "Closed-form bounds, docs/proofs/first_ends.md"
    assert 0 < wor.refuted < wor.noise_multiplier
    assert found.schemes[0].name == "poisson"  # of those that are even the one that is used most


def test_an_attack_that_the_budget_ended_refutes_as_much_as_closed_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ended(release: Release, goal: Goal) -> Needed:
        with suppress(NumericalError), work.limited(0.0):
            work.spend(1.0)
        return Needed(2.0, 1e-3, 0.5, 1.0)

    monkeypatch.setattr(source, "needed", ended)
    found = recommend(1000, batch_size=10, epochs=1, epsilon=1.0, delta=1e-5, quick=True)
    assert all(each.refuted > 0.01 for each in found.schemes if each.name == "wor")


def test_shuffled_batches_under_another_relation_are_looked_at_by_grids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = {}

    def one_look(release: Release, goal: Goal) -> Needed:
        shares[type(release.sampler).__name__, goal.adjacency] = work.left() / work.UNITS
        if not isinstance(release.sampler, dpsub.Shuffle):
            raise NumericalError("out of work")
        return Needed(2.0, 1.0, 0.5, 1.0)

    monkeypatch.setattr(source, "needed", one_look)
    found = recommend(1000, batch_size=100, epochs=1, epsilon=1.0, delta=1e-5, quick=True)
    known = {each.name: each for each in found.elsewhere}
    # what a search for the noise of tens of epochs takes
    assert shares["Shuffle", "zero_out"] >= 1
    assert known["shuffle"].is_refined and not known["deterministic"].is_refined
    said = " ".join(str(found).split())
    assert "shuffle no theorem covers add_remove; under zero_out: 2 proved" in said
    assert "deterministic under zero_out; ask dpsub calibrate, or raise effort" in said
    assert "shuffle under zero_out" not in said


@pytest.mark.thorough
def test_the_noise_of_shuffled_batches_is_that_of_a_calibration() -> None:
    target = {"epsilon": 2.0, "delta": 1e-5}
    found = recommend(10_000, batch_size=1000, epochs=2, **target)
    [shuffle] = [each for each in found.elsewhere if each.name == "shuffle"]
    alone = dpsub.calibrate(dpsub.Shuffle(1000), 10_000, epochs=2, adjacency="zero_out", **target)
    assert shuffle.noise_multiplier <= 1.01 * alone.noise_multiplier


def test_the_best_is_one_of_several_while_attacks_leave_them_open(found: Recommendation) -> None:
    shown = str(found)
    assert shown.startswith("one of " if found.even else f"{found.schemes[0].name}: ")


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"batch_size": 1001},
        {"adjacency": "edit"},
        {"epochs": 0},
        {"time_limit": 0.0},
    ],
    ids=str,
)
def test_a_question_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    asked = {"batch_size": 10, "epochs": 1, "epsilon": 1.0, "delta": 1e-5, **wrong}
    with pytest.raises(ArgumentError):
        recommend(1000, **asked)


@pytest.mark.thorough
def test_steps_are_counted_as_an_account_counts_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # the noise does not matter here
    monkeypatch.setattr(source, "needed", lambda *_, **__: source.Needed(2.0, 0.0, 0.5, 1.0))
    # 7 times 34 steps, but 234 batches drawn afresh hold 7 times the records
    n, m, epochs = 1000, 30, 7
    target = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "substitute"}
    found = recommend(n, batch_size=m, epochs=epochs, **target)
    steps = {one.name: one.steps for one in found.schemes}
    options = {
        "poisson": f"--m {m}",
        "wor": f"--m {m}",
        "wr": f"--m {m}",
        "random_allocation": "--t 34",
        "shuffle": f"--m {m}",
    }
    for name, sizes in options.items():
        question = (
            f"account {name} --n {n} {sizes} --epochs {epochs} --noise-multiplier 5 "
            "--delta 1e-5 --json"
        )
        assert main([*question.split(), "--adjacency", "substitute"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == steps[name]
    assert steps["poisson"] == 234 and steps["shuffle"] == 238


def test_a_picture_shows_what_is_proved_above_what_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = {"poisson": 1.0, "wor": 1.005, "wr": 2.0, "must_ow": 3.0, "must_ww": 4.0, "k_of_t": 5.0}
    schemes = [
        SchemeNoise(
            name, SCHEMES["wor"](24, 6, 1), proved, 0.5 * proved, proved, 4, 24.0, 6, 6, False
        )
        for name, proved in (noise | {"deterministic": 6.0, "shuffle": 7.0}).items()
    ]
    training = source._Training(24, 6, 1, 1, Goal(1.0, 1e-5, "zero_out"), effort=1.0)
    found = Recommendation(tuple(schemes), (), {}, 1.0, (), _training=training)
    looked_at = Needed(5.0, 0.5, 0.9, 1.0)
    monkeypatch.setattr(source._Training, "noise_of", lambda *_: looked_at)
    [axes] = found.plot(tmp_path / "r.svg").axes
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    refuted, proved = lines[::2], lines[1::2]
    # those that another one would hide are left out; shuffled batches are not
    names = [line.get_label() for line in proved]
    assert names == ["poisson", "wr", "must_ow", "must_ww", "shuffle"]
    for low, high in zip(refuted, proved, strict=True):
        assert not (low.get_ydata() > high.get_ydata()).any()
        # neither hides the other
        assert low.get_zorder() < high.get_zorder()
        assert low.get_linewidth() > high.get_linewidth()
    assert [*proved[0].get_xdata()] == [2, 3, 6, 12, 24]
    # the better one of two proofs at the size of the question
    assert proved[0].get_ydata()[2] == 1.0 and proved[-1].get_ydata()[2] == 5.0
    assert (tmp_path / "r.svg").stat().st_size > 1000
    assert found.drawn()[1] == {}
    # the size of the question is known in any case
    monkeypatch.setattr(source._Training, "noise_of", lambda *_: None)
    _, left_out = found.drawn()
    assert left_out == {name: [2, 3, 12, 24] for name in names}
    # an attack that is not drawn has no entry
    unattacked = tuple(replace(each, refuted=0.0) for each in schemes)
    [legend] = replace(found, schemes=unattacked).plot().legends
    assert [text.get_text() for text in legend.get_texts()] == names


def test_the_answer_is_printed_before_the_picture_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []

    def drawn(_: Recommendation, file: Path) -> tuple[None, dict[str, list[int]]]:
        said.append(capsys.readouterr().out)
        return None, {"wor": [50, 1000]}

    monkeypatch.setattr(Recommendation, "drawn", drawn)
    line = "recommend --n 1000 --batch-size 100 --epochs 1 --epsilon 1 --delta 1e-5 --effort 0.01"
    assert main([*line.split(), "--plot", str(tmp_path / "r.svg")]) == 0
    assert "noise multiplier" in said[0]
    after = capsys.readouterr().out
    assert after.endswith("r.svg; left out, as no noise was proved: wor at 50, 1,000\n")

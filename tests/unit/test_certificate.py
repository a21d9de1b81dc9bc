"""Certificates hold the claims of answers, and laws that give these claims; `tests/verifier` proves
them again."""

from __future__ import annotations

import copy
import json
import math
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from tests.few import few

FEW = {"noise_multiplier": 1.0, "steps": 20, "delta": 1e-5}
MANY = {"noise_multiplier": 4.0, "steps": 1000, "delta": 1e-5}
EPOCHS = {"noise_multiplier": 1.0, "epochs": 2, "delta": 1e-5}
QUESTIONS: dict[str, tuple[Any, int | None, dict[str, Any]]] = {
    "poisson": (dpsub.Poisson(0.01), None, FEW),
    "poisson, delta asked": (
        dpsub.Poisson(0.01),
        None,
        {"noise_multiplier": 1.0, "steps": 20, "epsilon": 0.5},
    ),
    "poisson, laplace": (
        dpsub.Poisson(0.01),
        None,
        {**FEW, "mechanism": "laplace", "adjacency": "substitute"},
    ),
    "wor": (dpsub.Wor(200), 10_000, MANY),
    "wor, one step": (dpsub.Wor(2), 4, {"noise_multiplier": 1.0, "steps": 1, "epsilon": 1.0}),
    "wor, add_remove": (dpsub.Wor(200), 10_000, {**MANY, "adjacency": "add_remove"}),
    "wor, zero_out": (dpsub.Wor(200), 10_000, {**FEW, "adjacency": "zero_out", "quick": True}),
    "wr": (dpsub.Wr(20), 1000, FEW),
    "must_ow": (dpsub.MustOW(50, 20), 1000, FEW),
    "truncated": (dpsub.TruncatedPoisson(0.05, 40), 1000, FEW),
    "cyclic": (dpsub.CyclicPoisson(0.05, 10), 1000, EPOCHS),
    "shuffle": (dpsub.Shuffle(100), 1000, {**EPOCHS, "adjacency": "zero_out"}),
    "shuffle, hidden step": (
        dpsub.Shuffle(1),
        20,
        {"noise_multiplier": 30.0, "epochs": 2, "delta": 1e-3, "effort": None},
    ),
    "allocation": (dpsub.RandomAllocation(20), None, EPOCHS),
    "allocation, substitute": (
        dpsub.RandomAllocation(20),
        None,
        {**EPOCHS, "adjacency": "substitute", "effort": 1.0, "quick": False},
    ),
    "allocation of several": (dpsub.RandomAllocation(20, 3), None, EPOCHS),
    "allocation of several, substitute": (
        dpsub.RandomAllocation(20, 3),
        None,
        {**EPOCHS, "adjacency": "substitute", "effort": 1.0, "quick": False},
    ),
    "must_ww, add_remove": (dpsub.MustWW(50, 20), 1000, {**FEW, "adjacency": "add_remove"}),
}
NAMES = few(QUESTIONS, most=len(QUESTIONS) - 1)
"""Names of questions; the last one takes as long as all others."""


@cache
def answered(name: str) -> tuple[dpsub.Account, dict[str, Any]]:
    sampler, n, question = QUESTIONS[name]
    answer = dpsub.account(sampler, n, **question)
    # the data in a file, not those in the program's memory
    return answer, json.loads(json.dumps(answer.certificate(), allow_nan=False))


def composed(parts: list[dict[str, Any]], side: str) -> ComposedLoss:
    laws = [
        PrivacyLossDistribution(
            law["step"],
            np.array(law["indices"]),
            np.array(law["masses"]),
            side,
            law["infinity"],
            law["offset"],
        )
        for law in (part["law"] for part in parts)
    ]
    return ComposedLoss(laws, [part["times"] for part in parts])


def end(parts: list[dict[str, Any]], side: str, given: dict[str, float]) -> float:
    total = composed(parts, side)
    return total.epsilon(given["delta"]) if "delta" in given else total.delta(given["epsilon"])


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_the_answer_with_nine_digits(name: str) -> None:
    found, certificate = answered(name)
    claim = certificate["claim"]
    assert claim["lower"] <= found.lower <= found.upper <= claim["upper"]
    # attacks with vectors in the plane are not written; of a replaced record the verifier knows an
    # earlier theorem, and in one step an earlier attack alone; of shuffled epochs earlier theorems
    is_earlier = name in (
        "allocation, substitute",
        "allocation of several, substitute",
        "shuffle",
    )
    is_lower = name not in ("allocation, substitute", "truncated")
    assert not is_lower or math.isclose(claim["lower"], found.lower, rel_tol=1e-8)
    assert is_earlier or math.isclose(claim["upper"], found.upper, rel_tol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_laws_give_the_upper_claim(name: str) -> None:
    _, certificate = answered(name)
    given, claim = certificate["question"]["given"], certificate["claim"]["upper"]
    proved = certificate["upper"]
    sides = [proved[name] for name in ("forward", "backward") if proved[name] is not None]
    ends = [end(parts, "upper", given) for parts in sides]
    assert sides and max(ends) <= claim
    # and a law that is lighter than the claim needs would show
    assert max(ends) >= claim * (1 - 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_laws_give_the_lower_claim(name: str) -> None:
    _, certificate = answered(name)
    lower = certificate["lower"]
    if "blocks" in lower:
        steps = sum(length * repeats for length, repeats in lower["blocks"])
        assert steps == certificate["question"]["releases"][0]["steps"]
        return
    found = end(lower["parts"], "lower", certificate["question"]["given"])
    assert found >= certificate["claim"]["lower"] >= found * (1 - 1e-6)


def test_parts_cover_all_releases() -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=50)
    ledger.record(dpsub.RandomAllocation(10, 3), noise_multiplier=2.0, epochs=4)
    certificate = ledger.account(delta=1e-5).certificate()
    for direction in ("forward", "backward"):
        times = [(part["release"], part["times"]) for part in certificate["upper"][direction]]
        # ten steps are cut into two blocks of three and one of four
        assert times == [(0, 50), (1, 2 * 4), (1, 1 * 4)]


def test_tight_answers_hold_the_cells_of_their_game() -> None:
    answer = dpsub.account(
        dpsub.Wor(5),
        50,
        noise_multiplier=2,
        steps=4,
        delta=1e-3,
        quick=False,
        adjacency="substitute",
    )
    game = answer.certificate()["upper"]["game"]
    assert (game["theorem"], game["steps"]) == ("15", 4)
    assert all(len(one["cell"]) == 4 and one["law"]["offset"] == 0 for one in game["cells"])


def test_cells_of_two_values_hold_a_law_of_each_order() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 4, "steps": 6, "delta": 1e-2, "width": 0.01}
    more: dict[str, Any] = {"adjacency": "zero_out", "quick": False, "effort": None}
    answer = dpsub.account(dpsub.Wor(3), 10, **asked, **more)
    found = answer.certificate()
    game = found["upper"]["game"]
    assert (game["theorem"], game["section"], game["steps"]) == ("70", "4.1", 6)
    assert answer.upper <= found["claim"]["upper"] <= answer.upper * (1 + 1e-8)
    for entry in game["cells"]:
        assert len(entry["cell"]) == 2 and entry["law"]["step"] == entry["backward"]["step"]
        # P has the record: its losses reach further up than down
        assert max(entry["law"]["indices"]) == -min(entry["backward"]["indices"])


def test_an_end_of_a_closed_form_is_not_claimed() -> None:
    answer = dpsub.account(
        dpsub.Wor(4), 4, noise_multiplier=0.05, steps=1000, delta=1e-300, adjacency="substitute"
    )
    assert answer.upper < math.inf and "first_ends" in answer.theorem
    certificate = answer.certificate()
    assert certificate["claim"]["upper"] is None and certificate["upper"] is None


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_first_ends_alone_have_no_certificate(mechanism: str) -> None:
    answer = dpsub.account(dpsub.Poisson(0.01), **FEW, mechanism=mechanism, effort=1e-9)
    assert 0 < answer.lower < answer.upper < math.inf
    with pytest.raises(dpsub.UnsupportedError, match="got closed forms"):
        answer.certificate()


def test_answers_without_a_certificate_say_so() -> None:
    several = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=1, steps=20, delta=[1e-5, 1e-6])
    with pytest.raises(
        dpsub.ArgumentError, match="a certificate needs one proved answer, got several values"
    ):
        several.certificate()
    printed = dpsub.account(
        dpsub.Poisson(0.01), noise_multiplier=1, steps=20, delta=1e-5, variant="paper"
    )
    with pytest.raises(dpsub.ArgumentError, match="variant rigorous"):
        printed.certificate()


def test_answers_travel_without_what_they_were_computed_from() -> None:
    found, _ = answered("wor, one step")
    copied = pickle.loads(pickle.dumps(found))
    assert copied == found
    with pytest.raises(dpsub.ArgumentError, match="from the answer itself"):
        copied.certificate()


def test_a_certificate_changes_with_what_it_is_made_of() -> None:
    """A certificate depends on the question and the answer; else the tests above could not fail."""
    _, certificate = answered("poisson")
    given, claim = certificate["question"]["given"], certificate["claim"]["upper"]
    changed = copy.deepcopy(certificate["upper"]["forward"])
    heaviest = int(np.argmax(changed[0]["law"]["indices"]))
    changed[0]["law"]["masses"][heaviest] += 1e-6
    assert end(changed, "upper", given) > claim


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpsub.cli import main

    path = tmp_path / "c.json"
    words = "account poisson --rate 0.01 --noise-multiplier 1 --steps 20 --delta 1e-5 --certificate"
    assert main([*words.split(), str(path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{path}; python verifier FILE proves the answer again" in printed
    expected = dpsub.account(dpsub.Poisson(0.01), **FEW).certificate()
    assert json.loads(path.read_text(encoding="utf-8")) == expected


def test_an_end_that_is_not_claimed_is_not_said_to_be_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No certificate holds the attack on epochs that drop records."""
    from dpsub.cli import main

    path = tmp_path / "c.json"
    words = "shuffle --n 23 --m 10 --noise-multiplier 2 --epochs 3 --delta 1e-5 --drop-last"
    words += " --adjacency zero_out"
    assert main(["account", *words.split(), "--certificate", str(path)]) in (None, 0)
    printed = capsys.readouterr().out
    assert json.loads(path.read_text())["claim"]["lower"] is None
    assert "proves the upper bound alone again" in " ".join(printed.split())

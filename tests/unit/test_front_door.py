"""`import dpsub`: cheap, complete, and the same numbers by every way in."""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.account import WIDTH_MISSED
from dpsub.accounting.attacks import AdaptiveAttack, AdaptiveGame
from dpsub.accounting.bracket import DominatedEvent, PairEvent, Target
from dpsub.accounting.search import largest_steps
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import Sampler

WOR = {"noise_multiplier": 2.0, "steps": 50}


def test_the_import_loads_nothing_and_is_fast() -> None:
    code = "import sys, time; t = time.perf_counter(); import dpsub; print(time.perf_counter() - t, *sys.modules)"
    best = 1.0
    for _ in range(5):
        seconds, *loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
        best = min(best, float(seconds))
        assert not {"numpy", "scipy", "pandas"} & set(loaded)
        assert [name for name in loaded if name.startswith("dpsub")] == ["dpsub"]
    assert best < 0.05


def test_what_is_offered_is_what_is_typed() -> None:
    tree = ast.parse(Path(dpsub.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {alias.name for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == set(dpsub.__all__) <= set(dir(dpsub))
    for name in dpsub.__all__:
        found = getattr(dpsub, name)
        assert inspect.getdoc(found), name
    with pytest.raises(AttributeError, match="module 'dpsub' has no attribute 'acount'"):
        _ = dpsub.acount


@pytest.mark.parametrize("name", ["account", "amplify", "audit", "calibrate", "law", "Ledger"])
def test_every_parameter_is_explained(name: str) -> None:
    offered = getattr(dpsub, name)
    documented = inspect.getdoc(offered) or ""
    for parameter in inspect.signature(offered).parameters:
        assert parameter in documented, parameter
    assert ">>> dpsub" in documented or "= dpsub." in documented


@pytest.mark.parametrize(
    ("sampler", "n", "asked"),
    [
        (dpsub.Poisson(0.02), None, {"delta": [[1e-8, 1e-3], [1e-5, 0.2]]}),
        (dpsub.Poisson(0.02), None, {"epsilon": [2.0, 0.0, 0.5], "variant": "paper"}),
        (dpsub.Wor(20), 1000, {"delta": [1e-4, 1e-6]}),
        (dpsub.MustOW(50, 20), 1000, {"epsilon": np.array([0.3, 1.0])}),
    ],
)
def test_arrays_give_what_single_values_give(sampler: Sampler, n: int | None, asked: dict[str, object]) -> None:
    together = dpsub.account(sampler, n, **WOR, **asked)  # type: ignore[arg-type]
    name = "delta" if "delta" in asked else "epsilon"
    given = np.asarray(asked[name], dtype=float)
    assert together.lower.shape == together.upper.shape == given.shape
    for place in np.ndindex(given.shape):
        alone = dpsub.account(sampler, n, **WOR, **{**asked, name: float(given[place])})  # type: ignore[arg-type]
        assert (together.kind, together.quantity, together.pair) == (alone.kind, alone.quantity, alone.pair)
        width = 2e-2 * alone.upper if name == "epsilon" else 1e-2
        # both hold, so that they overlap; and neither is much wider
        assert together.lower[place] <= alone.upper and alone.lower <= together.upper[place]
        assert together.upper[place] == pytest.approx(alone.upper, abs=width)
        assert together.lower[place] == pytest.approx(alone.lower, abs=width)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"delta": []}, "at least one value"),
        ({"delta": [1e-5, 2.0]}, "delta must be below 1, got delta = 2"),
        ({"delta": [1e-5, np.nan]}, "delta must be finite, got 1 NaN"),
        ({"delta": [1e-5], "epsilon": [1.0]}, "give either epsilon or delta"),
        ({}, "give either epsilon or delta"),
        ({"delta": 1e-5, "variant": "papers"}, "unknown variant 'papers'; did you mean 'paper'"),
        ({"delta": 1e-5, "time_limit": 0}, "time_limit must be above 0"),
        ({"delta": 1e-5, "variant": "paper", "mechanism": "laplace"}, "the papers' pairs are Gaussian, got mechanism"),
        ({"delta": 1e-5, "variant": "paper", "denominator": "realised"}, "do not know the denominator"),
        ({"delta": 1e-5, "variant": "paper", "adjacency": "add_remove"}, "under substitute, got adjacency"),
    ],
)
def test_what_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dpsub.account(dpsub.Wor(20), 1000, **WOR, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{"delta": np.geomspace(1e-8, 1e-4, 9)}, {"epsilon": np.linspace(0.2, 1.0, 9)}])
def test_an_array_costs_little_more_than_one(monkeypatch: pytest.MonkeyPatch, asked: dict[str, np.ndarray]) -> None:
    built: list[str] = []

    def counted(true: Callable[..., Any], name: str) -> Callable[..., Any]:
        return lambda *arguments: built.append(name) or true(*arguments)

    for owner, name in ((DominatedEvent, "upper"), (DominatedEvent, "lower"), (AdaptiveGame, "played")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name), name))
    (name,) = asked
    dpsub.account(dpsub.Wor(20), 1000, **WOR, **{name: float(asked[name][4])})  # type: ignore[arg-type]
    alone = len(built)
    dpsub.account(dpsub.Wor(20), 1000, **WOR, **asked)  # type: ignore[arg-type]
    assert len(built) - alone <= 3 * alone
    assert built.count("played") == 1 + 3


def test_an_array_of_tiny_deltas_costs_no_more_than_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fine grids of one tiny delta were handed on to the next one, whose tail they do not suit."""
    built: list[str] = []
    true = PairEvent.upper
    monkeypatch.setattr(PairEvent, "upper", lambda *arguments: built.append("upper") or true(*arguments))
    asked, epsilons = {"noise_multiplier": 1.0, "steps": 10}, [1.0, 2.0, 3.0, 4.0]
    alone = [dpsub.account(dpsub.Poisson(0.01), **asked, epsilon=epsilon) for epsilon in epsilons]  # type: ignore[arg-type]
    cost = len(built)
    together = dpsub.account(dpsub.Poisson(0.01), **asked, epsilon=epsilons)  # type: ignore[arg-type]
    assert len(built) - cost <= cost
    assert together.width_met and together.upper[-1] < 1e-15
    assert together.upper[2:].tolist() == [found.upper for found in alone[2:]]


def test_the_guarantee_comes_before_the_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a time limit an adaptive attack could take the time of the upper end."""
    asked = {**WOR, "epsilon": 0.5, "time_limit": 5.0}
    full = dpsub.account(dpsub.MustOW(50, 20), 1000, **{**asked, "time_limit": None})  # type: ignore[arg-type]

    def long_attack(self: AdaptiveAttack, targets: list[Target]) -> list[float]:
        monkeypatch.setattr("dpsub.accounting.pld.time.monotonic", lambda: math.inf)
        return [0.0] * len(targets)

    monkeypatch.setattr(AdaptiveAttack, "answers", long_attack)
    found = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked)  # type: ignore[arg-type]
    assert found.upper == full.upper and found.lower == 0.0 and not found.width_met


@pytest.mark.parametrize("number", [10**18, 10**400, -(10**400), 1e300, math.inf, math.nan])
@pytest.mark.parametrize("ask", [
    lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=x, delta=1e-5),
    lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=x, delta=1e-5),
    lambda x: dpsub.account(dpsub.Wor(2), x, noise_multiplier=1.0, steps=-1, delta=1e-5),
    lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, delta=[1e-5, x]),
    lambda x: dpsub.amplify(dpsub.Wor(2), 10, noise_multiplier=x, epsilon=0.5),
    lambda x: dpsub.amplify(dpsub.Wor(2), 10, noise_multiplier=1.0, epsilon=[-0.5, x]),
    lambda x: dpsub.law(dpsub.Wr(x), 10),
    lambda x: dpsub.law(dpsub.Poisson(x)),
    lambda x: dpsub.audit(dpsub.Wor(2), 4, noise_multiplier=1.0, epsilon=0.5, draws=x),
    lambda x: dpsub.calibrate(dpsub.Wor(2), 4, epsilon=1.0, delta=1e-5, steps=x),
    lambda x: largest_steps(dpsub.Wor(2), 4, noise_multiplier=x, epsilon=1.0, delta=1e-5),
])  # fmt: skip
def test_numbers_are_checked_where_they_come_in(ask: Callable[[Any], object], number: Any) -> None:
    """These ended in an OverflowError, a ZeroDivisionError or a ValueError, or ran on."""
    with pytest.raises(ArgumentError) as refused:
        ask(number)
    assert len(str(refused.value)) < 250


def test_an_audit_says_how_much_it_can_play() -> None:
    with pytest.raises(ArgumentError, match=r"^draws must be at most 100000000, got draws = 1000000000000000000$"):
        dpsub.audit(dpsub.Wor(2), 4, noise_multiplier=1.0, epsilon=0.5, draws=10**18)
    with pytest.raises(ArgumentError, match=r"plays at most 1e[+]08 indices in a sample"):
        dpsub.audit(dpsub.Poisson(0.5), 10**12, noise_multiplier=1.0, epsilon=0.5, draws=1)


def test_a_time_limit_leaves_valid_ends() -> None:
    asked = {"noise_multiplier": 2.0, "steps": 100}
    for question, trivial in (({"delta": 1e-6}, math.inf), ({"epsilon": 0.5}, 1.0), ({"delta": [0.1, 0.2]}, math.inf)):
        found = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, **question, time_limit=1e-9)  # type: ignore[arg-type]
        assert not found.width_met and found.conditions[-1] == WIDTH_MISSED
        assert np.all(found.upper == trivial) and np.all(found.lower >= 0)
    full = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, delta=1e-6)
    some = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, delta=1e-6, time_limit=300.0)
    assert full == some


def test_a_ledger_of_one_kind_is_an_account() -> None:
    ledger = dpsub.Ledger().add(dpsub.Wor(20), 1000, **WOR)
    assert ledger.account(delta=1e-6) == dpsub.account(dpsub.Wor(20), 1000, **WOR, delta=1e-6)
    halves = dpsub.Ledger([*ledger]).add(dpsub.Poisson(0.1), noise_multiplier=3.0)
    assert [release.steps for release in halves] == [50, 1] and len(halves) == 2 and len(ledger) == 1
    with pytest.raises(ArgumentError, match="needs at least one"):
        dpsub.Ledger().account(delta=1e-6)


@pytest.mark.parametrize(
    ("sampler", "n", "mechanism"),
    [
        (dpsub.Poisson(0.1), None, "gaussian"), (dpsub.Poisson(0.1), None, "laplace"), (dpsub.Wor(20), 200, "gaussian"),
        (dpsub.Wor(20), 200, "laplace"), (dpsub.Wr(20), 200, "gaussian"), (dpsub.MustOW(50, 20), 200, "gaussian"),
    ],
)  # fmt: skip
def test_one_release_by_the_theorem_and_by_the_accountant(sampler: Sampler, n: int | None, mechanism: str) -> None:
    for epsilon in (0.1, 1.0):
        found = dpsub.amplify(sampler, n, epsilon=epsilon, noise_multiplier=2.5, mechanism=mechanism)
        at = float(found.epsilon_amplified)
        account = dpsub.account(sampler, n, noise_multiplier=2.5, epsilon=at, mechanism=mechanism, width=1e-4)
        assert account.adjacency is found.adjacency
        assert account.lower <= found.delta_amplified * (1 + 1e-9)
        if isinstance(sampler, dpsub.Poisson | dpsub.Wor):
            assert account.upper == pytest.approx(float(found.delta_amplified), rel=2e-4)


def test_amplification_refuses_where_nothing_is_proved() -> None:
    stages = [dpsub.WithReplacement(9), dpsub.PoissonStage(0.5)]
    with pytest.raises(UnsupportedError, match="ends with a Poisson stage"):
        dpsub.amplify(dpsub.Multistage(stages), 10, epsilon=1.0, noise_multiplier=1.0)
    assert dpsub.amplify(dpsub.Poisson(0.1), epsilon=1.0, noise_multiplier=1.0).adjacency is Relation.ADD_REMOVE


def test_a_law_needs_the_number_of_records() -> None:
    assert dpsub.law(dpsub.Poisson(0.25)).pmf.tolist() == [0.75, 0.25]
    with pytest.raises(ArgumentError, match="number of records n is needed"):
        dpsub.law(dpsub.Wor(2))

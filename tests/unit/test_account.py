"""The accountant: reference numbers, `import dpsub`, the same numbers by every way in, and what is
refused."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import dpsub
from dpsub import threads
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.privacy_events import DominatedEvent
from dpsub.accounting.engine.profiles import ChainProfile
from dpsub.accounting.games.filler_flip import AdaptiveAttack, FillerFlip
from dpsub.accounting.games.game import Copies
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.search import largest_steps
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Sampler, Wor, Wr
from dpsub.sampling import base as st
from tests.few import few

S7 = 10_000
ADULT = 30_969


@pytest.mark.parametrize("scale", [0.3, 1.0, 1e4])
@pytest.mark.parametrize("last", [st.WithReplacement(9), st.WithoutReplacement(9)])
def test_a_table_of_a_long_chain_is_above_what_it_holds_and_near_it(
    last: st.Stage, scale: float
) -> None:
    profile = ChainProfile(
        st.Chain(50, (st.WithReplacement(30), st.WithReplacement(20), last)).normal_form(), scale
    )
    x = np.concatenate([np.linspace(0, 20 / scale, 997), np.geomspace(1e-6 / scale, 700, 499)])
    for marked in (1, 4):
        law = last.count_law(20, marked)
        table, direct = profile._looked_up(x, law), profile._lifted_sum(x, law, 1.0)
        assert np.all(table >= direct * (1 - 1e-12))
        assert np.all((table <= direct * 1.1)[direct > 1e-8])


@pytest.mark.parametrize(
    ("sampler", "n", "scale", "k", "epsilon", "attack", "proved"),
    few(
        [
            (Wor(300), ADULT, 2.654, 1000, 2.0, 1.85e-12, 2.86e-10),
            (Wr(300), ADULT, 2.641, 1000, 2.0, 1.36e-11, 5.33e-10),
            (MustOW(500, 300), ADULT, 2.013, 1000, 2.0, 0.0357, 0.0520),
            (MustOW(118, 200), S7, 4.0, 1000, 1.0, 0.0400, 0.0912),
            (MustOW(118, 200), S7, 4.0, 200, 1.0, 0.00496, 0.0099),
            (MustWW(118, 200), S7, 4.0, 1000, 1.0, 0.0402, 0.0960),
            (Wor(200), S7, 4.0, 1000, 1.0, 3.06e-4, 1.15e-3),
            (Wr(200), S7, 4.0, 1000, 1.0, 3.11e-4, 1.20e-3),
            (Wor(300), ADULT, 0.885, 1000, 2.0, 0.3725, 0.570),
        ],
        most=4,
    ),
)
def test_attack_and_proof(
    sampler: Sampler, n: int, scale: float, k: int, epsilon: float, attack: float, proved: float
) -> None:
    question = {"epsilon": epsilon, "width": 5e-3, "adjacency": "substitute"}
    answer = dpsub.account(sampler, n, noise_multiplier=scale, steps=k, **question)
    assert answer.kind == "bounds"
    assert answer.conditions
    # at least the reference attack up to its own digits; the proof to one per cent of the reference
    assert answer.lower >= attack * 0.985
    assert answer.lower < answer.upper
    assert proved * 0.99 <= answer.upper <= proved * 1.012


def test_a_million_steps() -> None:
    answer = dpsub.account(
        Poisson(0.001), noise_multiplier=2.0, steps=10**6, delta=1e-5, width=2e-3
    )
    assert 0 < answer.upper - answer.lower <= 2e-3


def test_different_releases_compose() -> None:
    many = [Release(Wor(100), 5000, 3.0, 60), Release(MustOW(400, 100), 5000, 5.0, 40)]
    both = dpsub.Ledger(many).account(epsilon=0.5, width=5e-3)
    alone = [dpsub.Ledger([release]).account(epsilon=0.5, width=5e-3) for release in many]
    assert both.upper > max(answer.upper for answer in alone)
    assert both.lower > 0
    assert both.kind == "bounds"
    halves = [Release(Wor(100), 5000, 3.0, 30), Release(Wor(100), 5000, 3.0, 30)]
    whole = dpsub.Ledger([Release(Wor(100), 5000, 3.0, 60)]).account(delta=1e-6, width=1e-3)
    assert dpsub.Ledger(halves).account(delta=1e-6, width=1e-3).upper == pytest.approx(
        whole.upper, abs=1e-3
    )


WOR = {"noise_multiplier": 2.0, "steps": 50, "adjacency": "substitute"}


def test_the_import_loads_nothing_and_is_fast() -> None:
    code = (
        "import sys, time; t = time.perf_counter(); import dpsub; print(time.perf_counter() - "
        "t, *sys.modules)"
    )
    best = 1.0
    for _ in range(5):
        seconds, *loaded = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True
        ).stdout.split()
        best = min(best, float(seconds))
        assert not {"numpy", "scipy", "pandas"} & set(loaded)
        assert [name for name in loaded if name.startswith("dpsub")] == ["dpsub"]
    assert best < 0.05


NOT_NEEDED = {
    "matplotlib",
    "pandas",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.optimize",
    "scipy.stats",
}


@pytest.mark.parametrize(
    ("plan", "needed"),
    [
        ("Poisson(0.02), noise_multiplier=2, steps=20", "poisson"),
        ("Poisson(0.02), noise_multiplier=2, steps=20, mechanism='laplace'", "poisson"),
        ("Wor(20), 1000, noise_multiplier=2, steps=20", "without_replacement"),
        ("Wr(20), 1000, noise_multiplier=2, steps=20", "chains.scheme"),
        ("MustOW(40, 20), 1000, noise_multiplier=2, steps=20", "chains.scheme"),
        ("Deterministic(20), 1000, noise_multiplier=2, epochs=2", "deterministic"),
        ("CyclicPoisson(0.1, 5), 1000, noise_multiplier=2, epochs=2", "deterministic"),
        ("Shuffle(20), 1000, noise_multiplier=2, epochs=2", "shuffling.scheme"),
        ("RandomAllocation(50), noise_multiplier=2, epochs=2", "allocation.scheme"),
        ("RandomAllocation(50, 2), noise_multiplier=2, epochs=2", "allocation.scheme"),
        ("TruncatedPoisson(0.02, 25), 1000, noise_multiplier=2, steps=20", "truncated.scheme"),
    ],
)
def test_an_account_loads_what_its_scheme_needs(plan: str, needed: str) -> None:
    code = (
        f"import sys, dpsub; dpsub.account(dpsub.{plan}, delta=1e-5, quick=True); "
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not NOT_NEEDED & loaded
    folders = ("allocation", "chains", "groups", "shuffling", "truncated")
    families = {"deterministic", *(f"{folder}.scheme" for folder in folders)}
    # samples without replacement share their attacks with other chains
    shared = {"chains.scheme"} if needed == "without_replacement" else set()
    others = {f"dpsub.accounting.schemes.{family}" for family in families - {needed} - shared}
    assert f"dpsub.accounting.schemes.{needed}" in loaded
    assert not others & loaded


@pytest.mark.thorough
def test_answers_do_not_depend_on_the_number_of_threads() -> None:
    asked = "dpsub.MustOW(118, 200), 10_000, noise_multiplier=4, steps=1000, epsilon=1"
    # without a clock, which might stop them at different grids
    code = (
        f"import dpsub; found = dpsub.account({asked}, quick=True, effort=None); "
        "print(repr(found.lower), repr(found.upper))"
    )
    answers = set()
    for number in ("1", "2"):
        environment = os.environ | dict.fromkeys(threads.ONE, number)
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        answers.add(run.stdout)
    assert len(answers) == 1


def test_what_is_offered_is_what_is_typed() -> None:
    tree = ast.parse(Path(dpsub.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {
        alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == set(dpsub.__all__) <= set(dir(dpsub))
    for name in dpsub.__all__:
        found = getattr(dpsub, name)
        assert inspect.getdoc(found), name
    with pytest.raises(AttributeError, match="module 'dpsub' has no attribute 'acount'"):
        _ = dpsub.acount


@pytest.mark.parametrize(
    "name",
    [
        "account",
        "amplify",
        "audit",
        "calibrate",
        "check",
        "curve",
        "law",
        "recommend",
        "select",
        "Ledger",
    ],
)
def test_every_parameter_is_explained(name: str) -> None:
    offered = getattr(dpsub, name)
    documented = inspect.getdoc(offered) or ""
    for parameter in inspect.signature(offered).parameters.values():
        names = [parameter.name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            described = re.search(r"\w+Keywords", str(parameter.annotation))
            assert described is not None
            names = list(get_type_hints(offered.__globals__[described[0]]))
        for name in names:
            assert name in documented, name
    assert ">>> dpsub" in documented or "= dpsub." in documented


@pytest.mark.parametrize(
    ("sampler", "n", "asked"),
    [
        (dpsub.Poisson(0.02), None, {"delta": [[1e-8, 1e-3], [1e-5, 0.2]]}),
        (
            dpsub.Poisson(0.02),
            None,
            {"epsilon": [2.0, 0.0, 0.5], "variant": "paper", "adjacency": None},
        ),
        (dpsub.Wor(20), 1000, {"delta": [1e-4, 1e-6]}),
        (dpsub.MustOW(50, 20), 1000, {"epsilon": np.array([0.3, 1.0])}),
    ],
)
def test_arrays_give_what_single_values_give(
    sampler: Sampler, n: int | None, asked: dict[str, object]
) -> None:
    together = dpsub.account(sampler, n, **{**WOR, **asked})  # type: ignore[arg-type]
    name = "delta" if "delta" in asked else "epsilon"
    given = np.asarray(asked[name], dtype=float)
    assert together.lower.shape == together.upper.shape == given.shape
    for place in np.ndindex(given.shape):
        alone = dpsub.account(sampler, n, **{**WOR, **asked, name: float(given[place])})  # type: ignore[arg-type]
        assert (together.kind, together.quantity, together.pair) == (
            alone.kind,
            alone.quantity,
            alone.pair,
        )
        width = 2e-2 * alone.upper if name == "epsilon" else 1e-2
        # both hold, so that they overlap; and neither is much wider
        assert together.lower[place] <= alone.upper and alone.lower <= together.upper[place]
        assert together.upper[place] == pytest.approx(alone.upper, abs=width)
        assert together.lower[place] == pytest.approx(alone.lower, abs=width)


@pytest.mark.parametrize(
    "asked", [{"delta": np.geomspace(1e-8, 1e-4, 9)}, {"epsilon": np.linspace(0.2, 1.0, 9)}]
)
def test_an_array_costs_little_more_than_one(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, np.ndarray]
) -> None:
    built: list[str] = []

    def counted(true: Callable[..., Any], name: str) -> Callable[..., Any]:
        return lambda *arguments: built.append(name) or true(*arguments)

    for owner, name in (
        (DominatedEvent, "upper"),
        (DominatedEvent, "lower"),
        (FillerFlip, "played"),
    ):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name), name))
    (name,) = asked
    dpsub.account(dpsub.Wor(20), 1000, **WOR, **{name: float(asked[name][4])})  # type: ignore[arg-type]
    alone = len(built)
    dpsub.account(dpsub.Wor(20), 1000, **WOR, **asked)  # type: ignore[arg-type]
    assert len(built) - alone <= 3 * alone
    assert built.count("played") == 1 + 1  # of the adaptive attack, whose policy serves all


def test_the_guarantee_comes_before_the_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a budget an adaptive attack could take the work that the upper bound needs."""
    asked: dict[str, Any] = {**WOR, "epsilon": 0.5}
    full = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, effort=None)

    def long_attack(self: AdaptiveAttack, targets: list[Target]) -> list[float]:
        work.spend(work.left() - 1e5)
        return [0.0] * len(targets)

    monkeypatch.setattr(AdaptiveAttack, "answers", long_attack)
    found = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, effort=1.0)
    assert found.upper == full.upper and not found.width_met


@pytest.mark.parametrize("number", [10**18, 10**400, -(10**400), 1e300, math.inf, math.nan])
@pytest.mark.parametrize(
    "ask",
    [
        lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=x, delta=1e-5),
        lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=x, delta=1e-5),
        lambda x: dpsub.account(
            dpsub.Wor(2), x, noise_multiplier=1.0, steps=-1, delta=1e-5, adjacency="substitute"
        ),
        lambda x: dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, delta=[1e-5, x]),
        lambda x: dpsub.amplify(dpsub.Wor(2), 10, noise_multiplier=x, epsilon=0.5),
        lambda x: dpsub.amplify(dpsub.Wor(2), 10, noise_multiplier=1.0, epsilon=[-0.5, x]),
        lambda x: dpsub.law(dpsub.Wr(x), 10),
        lambda x: dpsub.law(dpsub.Poisson(x)),
        lambda x: dpsub.audit(
            dpsub.Wor(2), 4, noise_multiplier=1.0, epsilon=0.5, draws=x, adjacency="substitute"
        ),
        lambda x: dpsub.calibrate(
            dpsub.Wor(2), 4, epsilon=1.0, delta=1e-5, steps=x, adjacency="substitute"
        ),
        lambda x: largest_steps(dpsub.Wor(2), 4, noise_multiplier=x, epsilon=1.0, delta=1e-5),
    ],
)
def test_numbers_are_checked_where_they_come_in(ask: Callable[[Any], object], number: Any) -> None:
    """These numbers ended in an OverflowError, a ZeroDivisionError or a ValueError, or ran on."""
    with pytest.raises(ArgumentError) as refused:
        ask(number)
    assert len(str(refused.value)) < 250


def test_a_budget_leaves_valid_ends() -> None:
    asked = {"noise_multiplier": 2.0, "steps": 100}
    for question, trivial in (
        ({"delta": 1e-6}, math.inf),
        ({"epsilon": 0.5}, 1.0),
        ({"delta": [1e-4, 1e-3]}, math.inf),
    ):
        little = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, **question, effort=1e-9)  # type: ignore[arg-type]
        full = dpsub.account(dpsub.MustOW(50, 20), 1000, **asked, **question)  # type: ignore[arg-type]
        assert not little.width_met
        assert np.all(little.lower > 0) and np.all(little.upper < trivial)
        assert np.all(little.lower <= full.upper) and np.all(full.lower <= little.upper)


def test_a_ledger_of_one_kind_is_an_account() -> None:
    releases: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 50}
    ledger = dpsub.Ledger().add(dpsub.Wor(20), 1000, **releases)
    assert ledger.account(delta=1e-6) == dpsub.account(dpsub.Wor(20), 1000, **releases, delta=1e-6)
    halves = dpsub.Ledger([*ledger]).add(dpsub.Poisson(0.1), noise_multiplier=3.0)
    assert (
        [release.steps for release in halves] == [50, 1] and len(halves) == 2 and len(ledger) == 1
    )


@pytest.mark.parametrize(
    ("sampler", "n", "mechanism"),
    [
        (dpsub.Poisson(0.1), None, "gaussian"),
        (dpsub.Poisson(0.1), None, "laplace"),
        (dpsub.Wor(20), 200, "gaussian"),
        (dpsub.Wor(20), 200, "laplace"),
        (dpsub.Wr(20), 200, "gaussian"),
        (dpsub.MustOW(50, 20), 200, "gaussian"),
    ],
)
def test_one_release_by_the_theorem_and_by_the_accountant(
    sampler: Sampler, n: int | None, mechanism: str
) -> None:
    for epsilon in (0.1, 1.0):
        found = dpsub.amplify(
            sampler, n, epsilon=epsilon, noise_multiplier=2.5, mechanism=mechanism
        )
        at = float(found.epsilon_amplified)
        account = dpsub.account(
            sampler,
            n,
            noise_multiplier=2.5,
            epsilon=at,
            mechanism=mechanism,
            width=1e-4,
            adjacency=found.adjacency,
        )
        assert account.lower <= found.delta_amplified * (1 + 1e-9)
        if isinstance(sampler, dpsub.Poisson | dpsub.Wor):
            assert account.upper == pytest.approx(float(found.delta_amplified), rel=2e-4)


SAMPLER = Wor(20)


def asked(
    sampler: Sampler = SAMPLER, n: int | None = 1000, **question: Any
) -> Callable[[], object]:
    """Return a question to the accountant that is not yet asked."""
    return lambda: dpsub.account(sampler, n, **{**WOR, **question})


CHAIN = Multistage([st.WithReplacement(9), st.PoissonStage(0.5)])


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (asked(delta=[]), ArgumentError, "at least one value"),
        (asked(delta=[1e-5, 2.0]), ArgumentError, "delta must be below 1, got delta = 2"),
        (asked(delta=[1e-5, np.nan]), ArgumentError, "delta must be finite, got 1 NaN"),
        (asked(delta=[1e-5], epsilon=[1.0]), ArgumentError, "give either epsilon or delta"),
        (asked(), ArgumentError, "give either epsilon or delta"),
        (
            asked(delta=1e-5, variant="papers"),
            ArgumentError,
            "unknown variant 'papers'; did you mean 'paper'",
        ),
        (asked(delta=1e-5, time_limit=0), ArgumentError, "time_limit must be above 0"),
        (
            asked(delta=1e-5, variant="paper", mechanism="laplace"),
            ArgumentError,
            "covers Gaussian noise only, got mechanism",
        ),
        (
            asked(delta=1e-5, variant="paper", denominator="realised"),
            ArgumentError,
            "takes no denominator",
        ),
        # others of the accountant are in golden/commands.json
        (asked(n=None, epsilon=1.0), UnsupportedError, "give n"),
        (
            lambda: Account(0.2, 0.1, "upper", "a pair", Relation.SUBSTITUTE, "1"),
            ArgumentError,
            "lower <= upper",
        ),
        (
            lambda: Account(0.1, np.nan, "upper", "a pair", Relation.SUBSTITUTE, "1"),
            ArgumentError,
            "lower",
        ),
        (lambda: dpsub.Ledger().account(delta=1e-6), ArgumentError, "needs at least one"),
        (
            lambda: dpsub.amplify(CHAIN, 10, epsilon=1.0, noise_multiplier=1.0),
            UnsupportedError,
            "a Poisson stage",
        ),
        (lambda: dpsub.law(Wor(2)), ArgumentError, "number of records n is needed"),
        (
            lambda: dpsub.audit(Wor(2), 4, noise_multiplier=1.0, epsilon=0.5, draws=10**18),
            ArgumentError,
            r"^draws must be at most 100000000, got draws = 1000000000000000000$",
        ),
        (
            lambda: dpsub.audit(Poisson(0.5), 10**12, noise_multiplier=1.0, epsilon=0.5, draws=1),
            ArgumentError,
            r"simulates at most 1e[+]08 indices per sample",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], object], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()


def test_what_needs_no_number_of_records() -> None:
    assert dpsub.law(Poisson(0.25)).pmf.tolist() == [0.75, 0.25]
    assert (
        dpsub.amplify(Poisson(0.1), epsilon=1.0, noise_multiplier=1.0).adjacency
        is Relation.ADD_REMOVE
    )


@pytest.mark.parametrize(
    ("steps", "adjacency", "pure"), [(1, "substitute", 1.0), (3, "add_remove", 1.5)]
)
def test_laplace_noise_without_sampling_is_not_beyond_its_pure_epsilon(
    steps: int, adjacency: str, pure: float
) -> None:
    asked: dict[str, Any] = {
        "noise_multiplier": 2.0,
        "mechanism": "laplace",
        "steps": steps,
        "adjacency": adjacency,
    }
    found = dpsub.account(dpsub.Poisson(1.0), delta=1e-9, **asked)
    assert pure - 1e-4 < found.lower <= found.upper < pure * (1 + 1e-9)
    assert dpsub.account(dpsub.Poisson(1.0), epsilon=pure * (1 + 1e-9), **asked).upper == 0


def test_what_calibrate_proves_of_a_schedule_account_says_too() -> None:
    plan, target = dpsub.RandomAllocation(50, 5), {"epochs": 2, "delta": 1e-6}
    noise = dpsub.calibrate(plan, epsilon=1.0, **target).noise_multiplier
    assert dpsub.account(plan, noise_multiplier=noise, **target).upper <= 1.0


def test_what_tight_bounds_alone_need_is_made_for_them_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(*given: object) -> Copies:
        raise InterruptedError

    monkeypatch.setattr(Copies, "of_draws", made)
    # noise at which the first bound is wider than an answer may be
    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 2, "delta": 1e-6}
    asked["adjacency"] = "substitute"
    assert dpsub.account(MustOW(20, 10), 100, **asked).upper < 2
    with pytest.raises(InterruptedError):
        dpsub.account(MustOW(20, 10), 100, **asked, quick=False)


def test_answers_of_an_array_are_as_close_as_those_of_its_values() -> None:
    """The tail that the smallest delta needs blurs larger ones: 4,000 times looser, where each got
    no tail of its own."""
    asked = {"noise_multiplier": 4.4375, "steps": 77}
    several = dpsub.account(MustOW(6906, 300), 6906, epsilon=[0.5, 3.2023, 4.0], **asked)
    alone = dpsub.account(MustOW(6906, 300), 6906, epsilon=3.2023, **asked)
    assert alone.lower < several.upper[1] <= alone.upper * 1.01


def test_an_attack_that_fails_leaves_the_proved_end() -> None:
    answer = dpsub.account(
        dpsub.MustWW(1, 34), 300, noise_multiplier=0.05, steps=1, epsilon=0, adjacency="zero_out"
    )
    # in total variation the sum tells all of a record that is drawn
    assert 1 / 300 - 1e-8 <= answer.upper <= 1 / 300 + 1e-8


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("relation", ["add_remove", "substitute", "zero_out"])
@pytest.mark.parametrize(
    ("sampler", "n"),
    [(dpsub.Poisson(1.0), 10_000), (dpsub.Wor(100), 100), (dpsub.CyclicPoisson(1.0, 2), 9)],
    ids=str,
)
def test_losses_that_all_count_as_infinite_leave_first_ends(
    sampler: dpsub.Poisson, n: int, relation: str, group: int
) -> None:
    asked = {"noise_multiplier": 0.05, "adjacency": relation, "group": group, "quick": True}
    answer = dpsub.account(sampler, n, steps=10, delta=1e-5, **asked)
    assert 0 < answer.lower <= answer.upper < math.inf

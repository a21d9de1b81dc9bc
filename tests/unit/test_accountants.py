"""Accountants with the interfaces of Opacus and dp-accounting."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import types
from typing import Any

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

import dpsub
from dpsub import opacus
from dpsub.dp_accounting import EventAccountant
from dpsub.opacus import OpacusAccountant

GAUSSIAN = dp_accounting.GaussianDpEvent(1.1)
SAMPLED = dp_accounting.PoissonSampledDpEvent(0.01, GAUSSIAN)


class Optimizer:
    """The attributes of Opacus' optimizer that an accountant reads."""

    noise_multiplier = 1.1
    accumulated_iterations = 1


def trained(steps: int) -> OpacusAccountant:
    accountant = OpacusAccountant()
    hook = accountant.get_optimizer_hook_fn(sample_rate=0.01)
    for _ in range(steps):
        hook(Optimizer())
    return accountant


def test_steps_of_a_training_are_accounted() -> None:
    accountant = trained(50)
    accountant.step(noise_multiplier=2.0, sample_rate=0.02)
    assert accountant.history == [(1.1, 0.01, 50), (2.0, 0.02, 1)] and len(accountant) == 51
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.01), noise_multiplier=1.1, steps=50)
    ledger = ledger.add(dpsub.Poisson(0.02), noise_multiplier=2.0)
    found = ledger.account(delta=1e-5, adjacency="zero_out")
    with pytest.warns(UserWarning, match="alphas is of Opacus' own accountants"):
        of_opacus = accountant.get_epsilon(delta=1e-5, alphas=[2.0])
    assert accountant.get_epsilon(1e-5) == of_opacus
    assert found.lower <= accountant.get_epsilon(1e-5) <= found.upper * 1.001
    assert str(accountant.account(1e-5).adjacency) == "zero_out"


def test_a_step_before_and_after_counts_once() -> None:
    """Equal steps are one entry of the ledger, however they were interleaved."""
    accountant = OpacusAccountant()
    for rate in (0.01, 0.02, 0.01):
        accountant.step(noise_multiplier=1.1, sample_rate=rate)
    assert [release.steps for release in accountant.ledger()] == [2, 1]


def test_no_step_and_no_noise() -> None:
    accountant = OpacusAccountant()
    assert accountant.get_epsilon(1e-5) == 0.0 and len(accountant) == 0
    accountant.step(noise_multiplier=0.0, sample_rate=0.01)
    assert accountant.get_epsilon(1e-5) == math.inf


def test_accumulated_batches_are_refused() -> None:
    optimizer = Optimizer()
    optimizer.accumulated_iterations = 2
    with pytest.raises(dpsub.UnsupportedError, match="2 accumulated batches"):
        OpacusAccountant().get_optimizer_hook_fn(0.01)(optimizer)


def test_a_checkpoint_comes_back() -> None:
    accountant, state = trained(3), {"kept": 1}
    assert accountant.state_dict(state) is state and state["kept"] == 1
    again = OpacusAccountant()
    again.load_state_dict(state)
    assert again.history == accountant.history
    # that of another accountant, as JSON has it
    again.load_state_dict({"history": [[1.0, 0.5, 2]], "mechanism": "rdp"})
    assert again.history == [(1.0, 0.5, 2)]
    with pytest.raises(dpsub.ArgumentError, match="needs its history, got mechanism"):
        again.load_state_dict({"mechanism": "dpsub"})


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (None, r"needs its history, got None; load the dictionary"),
        ([(1.0, 0.01, 100)], r"needs its history, got \[\(1.0, 0.01, 100\)\];"),
        ({}, "needs its history, got nothing;"),
        ({"history": None}, "must be a list of .*, got None;"),
        ({"history": {"noise": 1.0}}, r"must be a list of .*, got \{'noise': 1.0\};"),
        ({"history": "abc"}, "must be a list of .*, got 'abc';"),
    ],
)
def test_what_is_no_checkpoint(state: Any, sentence: str) -> None:
    accountant = trained(3)
    with pytest.raises(dpsub.ArgumentError, match=sentence):
        accountant.load_state_dict(state)
    assert len(accountant) == 3


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        # it was cut to 100
        ((1.0, 0.01, 100.7), "steps must be a whole number, got steps = 100.7"),
        ((1.0, 0.01, -1), "steps must be at least 0, got steps = -1"),
        ((1.0, 0.01, True), "steps must be a whole number, got steps = True"),
        ((1.0, 0.01, "100"), "steps must be a whole number, got steps = '100'"),
        ((1.0, 0.01, math.inf), "steps must be a whole number, got steps = inf"),
        ((1.0, 0.01, None), "steps must be a whole number, got steps = None"),
        ((None, 0.01, 100), "noise_multiplier must be a number"),
        ((math.nan, 0.01, 100), "noise_multiplier must be finite"),
        ((-1.0, 0.01, 100), "noise_multiplier must be at least 0"),
        ((0.01, 1.1, 100), r"in this order, got \(0.01, 1.1, 100\): sample_rate must be at most 1"),
        ((1.0, 0.0, 100), "sample_rate must be above 0"),
        ((1.0, 0.01), r"must be .*, got \(1.0, 0.01\); load"),
        ((1.0, 0.01, 100, 1), r"must be .*, got \(1.0, 0.01, 100, 1\); load"),
        ((), r"must be .*, got \(\); load"),
        (None, r"must be .*, got None; load"),
        (1.0, r"must be .*, got 1.0; load"),
        ("abc", r"must be .*, got 'abc'; load"),
        ({"noise": 1.0, "rate": 0.01, "steps": 100}, r"must be .*, got \{.*\}; load"),
    ],
    ids=str,
)
def test_what_is_no_entry_of_a_history(entry: Any, sentence: str) -> None:
    accountant = trained(3)
    with pytest.raises(dpsub.ArgumentError, match=sentence) as refused:
        accountant.load_state_dict({"history": [(1.0, 0.5, 2), entry]})
    assert str(refused.value).startswith("entry 2 of the history must be (noise multiplier, ")
    assert "\n" not in str(refused.value) and len(accountant) == 3


def test_it_is_registered_with_opacus(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, type] = {}
    accountants = types.ModuleType("opacus.accountants")
    accountants.IAccountant = type(  # type: ignore[attr-defined]
        "IAccountant", (), {"register": classmethod(lambda _, kind: known.update(abc=kind))}
    )
    registry = types.ModuleType("opacus.accountants.registry")
    registry.register_accountant = known.__setitem__  # type: ignore[attr-defined]
    for module in (types.ModuleType("opacus"), accountants, registry):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    opacus.register()
    assert known == {"abc": OpacusAccountant, "dpsub": OpacusAccountant}


def test_without_opacus_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(dpsub.UnsupportedError, match="pip install opacus"):
        opacus.register()


def test_neither_package_is_imported() -> None:
    code = (
        "import sys, dpsub.opacus, dpsub.dp_accounting\n"
        "print({'torch', 'opacus', 'dp_accounting'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_events_are_accounted() -> None:
    event = dp_accounting.SelfComposedDpEvent(SAMPLED, 20)
    accountant = EventAccountant().compose(event, 5).compose(dp_accounting.NoOpDpEvent())
    theirs = PLDAccountant().compose(event, 5)
    assert accountant.account(delta=1e-5).lower <= theirs.get_epsilon(1e-5)
    assert accountant.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-3)
    assert accountant.get_delta(0.5) == pytest.approx(theirs.get_delta(0.5), rel=1e-2)
    assert [release.steps for release in accountant.releases()] == [100]
    assert accountant.ledger == theirs.compose(dp_accounting.NoOpDpEvent()).ledger
    assert EventAccountant().get_epsilon(1e-5) == EventAccountant().get_delta(1.0) == 0.0


def test_the_relation_is_that_of_dp_accounting() -> None:
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    event = dp_accounting.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN)
    accountant = EventAccountant(relation).compose(event)
    assert accountant.neighboring_relation is relation
    assert str(accountant.account(delta=1e-5).adjacency) == "substitute"
    with pytest.raises(dpsub.ArgumentError, match="REPLACE_SPECIAL, got 'REPLACE_TWO'"):
        EventAccountant("REPLACE_TWO")


def test_an_event_without_a_theorem_is_refused() -> None:
    accountant = EventAccountant()
    assert accountant.supports(SAMPLED)
    assert not accountant.supports(dp_accounting.NonPrivateDpEvent())
    with pytest.raises(dpsub.UnsupportedError, match="NonPrivateDpEvent"):
        accountant.compose(dp_accounting.NonPrivateDpEvent())


def test_dp_accounting_calibrates_with_it() -> None:
    noise = dp_accounting.calibrate_dp_mechanism(
        EventAccountant,
        lambda s: dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(s)),
        target_epsilon=1.0,
        target_delta=1e-5,
        bracket_interval=dp_accounting.ExplicitBracketInterval(0.3, 5.0),
        tol=0.01,
    )
    found = dpsub.calibrate(dpsub.Poisson(0.01), epsilon=1.0, delta=1e-5, steps=1)
    assert noise == pytest.approx(found.noise_multiplier, abs=0.02)


@pytest.mark.slow
def test_dp_accounting_searches_from_no_noise_on() -> None:
    """The default bracket of dp-accounting's search begins at 0, where its own accountants answer
    infinity."""
    little = EventAccountant().compose(dp_accounting.GaussianDpEvent(0.0))
    assert little.supports(dp_accounting.GaussianDpEvent(0.0))
    assert (little.get_epsilon(1e-5), little.get_delta(1.0)) == (math.inf, 1.0)
    with pytest.raises(dpsub.ArgumentError, match=r"at least 0\.05, got 0; take more noise"):
        little.account(delta=1e-5)
    # no time at all, no event
    assert EventAccountant().compose(dp_accounting.GaussianDpEvent(0.0), 0).get_epsilon(1e-5) == 0
    assert not little.supports(dp_accounting.GaussianDpEvent(-1.0))

    def found(accountant: Any) -> float:
        return float(
            dp_accounting.calibrate_dp_mechanism(
                accountant,
                lambda s: dp_accounting.PoissonSampledDpEvent(
                    0.01, dp_accounting.GaussianDpEvent(s)
                ),
                target_epsilon=1.0,
                target_delta=1e-5,
                tol=1e-3,
            )
        )

    assert found(EventAccountant) == pytest.approx(found(PLDAccountant), rel=5e-3)


def test_dp_accounting_searches_a_number_of_steps() -> None:
    steps = dp_accounting.calibrate_dp_mechanism(
        EventAccountant,
        lambda count: dp_accounting.SelfComposedDpEvent(SAMPLED, count),
        target_epsilon=1.0,
        target_delta=1e-5,
        discrete=True,
    )
    sampler, goal = dpsub.Poisson(0.01), {"epsilon": 1.0, "delta": 1e-5}
    left = dpsub.Ledger().steps_left(sampler, noise_multiplier=1.1, **goal)
    assert steps == pytest.approx(left, rel=5e-3)


EVENTS = [
    GAUSSIAN,
    dp_accounting.LaplaceDpEvent(2.0),
    SAMPLED,
    dp_accounting.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN),
    dp_accounting.SampledWithReplacementDpEvent(100, 10, GAUSSIAN),
    dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 30, 1.5),
    dp_accounting.SelfComposedDpEvent(SAMPLED, 7),
    dp_accounting.ComposedDpEvent([SAMPLED, dp_accounting.NoOpDpEvent(), GAUSSIAN]),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_json_of_a_named_tuple_is_an_event(event: Any) -> None:
    """The JSON is a list of values, whose names are those of dp-accounting's classes, in their
    order."""
    written = json.loads(json.dumps(event.to_named_tuple()))
    assert isinstance(written, list)
    known = list(dpsub.ledger_of(event))
    assert list(dpsub.ledger_of(written)) == known == list(dpsub.ledger_of(event.to_named_tuple()))


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ([], "must hold its module, its class and its attributes"),
        (["a", 1], "must hold its module"),
        ([GAUSSIAN], "must hold its module"),
        (["dp_accounting.dp_event", "GaussianDpEvent"], "needs noise_multiplier, got 0 values"),
        (["m", "GaussianDpEvent", 1.0, 2.0], "needs noise_multiplier, got 2 values"),
        (["m", "NonPrivateDpEvent"], "events of class NonPrivateDpEvent are not supported"),
    ],
)
def test_lists_that_are_no_event(event: Any, sentence: str) -> None:
    with pytest.raises(dpsub.DpsubError, match=sentence):
        dpsub.ledger_of(event)


@pytest.mark.parametrize("kind", [opacus.OpacusAccountant, EventAccountant])
def test_an_accountant_takes_options_of_an_account_and_names_others(kind: Any) -> None:
    def entered(**options: Any) -> Any:
        accountant = kind(**options)
        if kind is opacus.OpacusAccountant:
            accountant.step(noise_multiplier=1.0, sample_rate=0.01)
        else:
            accountant.compose(SAMPLED)
        return accountant

    # the ends of a mixture are wider with little work
    rough = entered(effort=1e-4).get_epsilon(1e-5)
    assert rough == entered().get_epsilon(1e-5, effort=1e-4)
    assert rough == entered().account(delta=1e-5, effort=1e-4).upper
    assert entered(time_limit=60.0).get_epsilon(1e-5) == entered().get_epsilon(1e-5)
    with pytest.raises(TypeError, match="efforts"):
        kind(efforts=2)
    with pytest.raises(TypeError, match="did you mean 'effort'"):
        kind().get_epsilon(1e-5, efforts=2)

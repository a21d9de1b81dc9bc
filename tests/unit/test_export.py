"""Exported laws: their formula gives both bounds, files come back as they were, and dp-accounting
reads the upper one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.fourier import TiltedSum

LEDGERS = {
    "poisson": lambda: dpsub.Ledger().add(dpsub.Poisson(0.02), noise_multiplier=1.0, steps=200),
    "once": lambda: dpsub.Ledger().add(dpsub.Poisson(0.3), noise_multiplier=1.0),
    "mixed": lambda: (
        dpsub.Ledger()
        .add(dpsub.Wor(20), 1000, noise_multiplier=4.0, steps=100)
        .add(dpsub.Poisson(0.02), noise_multiplier=1.0, steps=5)
    ),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_the_formula_gives_both_ends(name: str) -> None:
    ledger = LEDGERS[name]()
    laws = ledger.export().laws
    assert [(law.side, law.direction) for law in laws] == [
        ("upper", "forward"),
        ("upper", "backward"),
        ("lower", "forward"),
        ("lower", "backward"),
    ]
    for epsilon in (0.0, 0.5, 1.5):
        answer = ledger.account(epsilon=epsilon)
        upper, lower = (
            max(law.delta(epsilon) for law in laws if law.side == side)
            for side in ("upper", "lower")
        )
        assert answer.lower <= upper * (1 + 1e-9) and lower <= answer.upper * (1 + 1e-9)
        assert upper == pytest.approx(answer.upper, rel=5e-3) and lower == pytest.approx(
            answer.lower, rel=5e-3
        )
    for law in laws:
        assert np.all(np.diff(law.losses) > 0) and np.all(law.masses >= 0) and law.infinity >= 0
        assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-6)


def test_against_a_normal_law() -> None:
    """400 releases of multiplier 20 from all records: the loss is N(1/2, 1), so that sums of masses
    are known."""
    ledger = dpsub.Ledger().add(dpsub.Poisson(1.0), noise_multiplier=20.0, steps=400)
    for law in ledger.export().laws:
        sign = 1 if law.side == "upper" else -1
        # delta of 1e-19, far below the round-off of a transform
        for epsilon in (-2.0, 0.0, 1.0, 4.0, 9.0):
            truth = norm.cdf(0.5 - epsilon) - np.exp(epsilon) * norm.cdf(-0.5 - epsilon)
            assert sign * (law.delta(epsilon) - truth) >= -1e-13 * truth
            assert law.delta(epsilon) == pytest.approx(truth, rel=2e-2 if epsilon < 9 else np.inf)


def test_round_off_that_is_not_charged_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(1.0), noise_multiplier=20.0, steps=400)
    honest = ledger.export().laws
    truth = norm.cdf(0.5 - 1.0) - np.exp(1.0) * norm.cdf(-0.5 - 1.0)
    # the tilt forgotten
    monkeypatch.setattr(TiltedSum, "bounds", property(lambda self: np.maximum(self.values, 0.0)))
    faulty = ledger.export().laws
    assert honest[0].delta(1.0) >= truth > faulty[0].delta(1.0) or faulty[2].delta(
        1.0
    ) > truth >= honest[2].delta(1.0)


@pytest.mark.parametrize("name", LEDGERS)
def test_dp_accounting_answers_from_the_upper_law(name: str) -> None:
    ledger = LEDGERS[name]()
    found = ledger.export()
    theirs = found.dp_accounting()
    for delta in (1e-3, 1e-6, 1e-10):
        ours, epsilon = ledger.account(delta=delta), theirs.get_epsilon_for_delta(delta)
        assert ours.lower <= epsilon and epsilon == pytest.approx(ours.upper, abs=4e-3)
    if name == "poisson":
        own = pld.from_gaussian_mechanism(1.0, sampling_prob=0.02).self_compose(200)
        assert theirs.get_delta_for_epsilon(1.0) == pytest.approx(
            own.get_delta_for_epsilon(1.0), rel=2e-3
        )
        # on the grid of dp-accounting by default, or on any other
        more = theirs.compose(pld.from_gaussian_mechanism(5.0))
        assert more.get_epsilon_for_delta(1e-6) > theirs.get_epsilon_for_delta(1e-6)
        coarse = {"value_discretization_interval": found.step}
        again = found.dp_accounting(found.step).compose(pld.from_gaussian_mechanism(5.0, **coarse))
        assert again.get_epsilon_for_delta(1e-6) == pytest.approx(
            more.get_epsilon_for_delta(1e-6), abs=4e-3
        )


def test_a_coarser_grid_is_valid_and_wider() -> None:
    ledger = LEDGERS["poisson"]()
    fine, coarse = ledger.export(), ledger.export(step=0.02)
    for law, rough in zip(fine.laws, coarse.laws, strict=True):
        sign = 1 if law.side == "upper" else -1
        assert sign * rough.delta(1.0) > sign * law.delta(1.0)
    assert coarse.dp_accounting().get_delta_for_epsilon(1.0) >= coarse.laws[0].delta(1.0) * (
        1 - 1e-9
    )


def test_a_file_holds_what_was_exported(tmp_path: Path) -> None:
    exported = LEDGERS["once"]().export()
    exported.save(tmp_path / "laws.npz")
    with np.load(tmp_path / "laws.npz") as arrays:
        assert arrays["side"].tolist() == ["upper", "upper", "lower", "lower"]
        assert arrays["direction"].tolist() == ["forward", "backward"] * 2
        for i, law in enumerate(exported.laws):
            assert np.array_equal(arrays[f"losses_{i}"], law.losses)
            assert np.array_equal(arrays[f"masses_{i}"], law.masses)
            assert arrays[f"infinity_{i}"] == law.infinity


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, "x"])
def test_a_step_is_positive(step: Any) -> None:
    with pytest.raises(dpsub.ArgumentError, match="step must be"):
        LEDGERS["once"]().export(step=step)


def test_dp_accounting_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = LEDGERS["once"]().export()
    monkeypatch.setitem(
        __import__("sys").modules, "dp_accounting.pld.privacy_loss_distribution", None
    )
    with pytest.raises(dpsub.UnsupportedError, match="needs dp-accounting, which is not installed"):
        exported.dp_accounting()

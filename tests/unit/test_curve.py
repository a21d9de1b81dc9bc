"""Privacy curves: against closed forms, dp-accounting, a brute-force conjugate, and with planted
faults."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

import dpsub
from dpsub.accounting.questions.curve import Curve, Interval
from dpsub.cli import main
from dpsub.sampling import Schedule
from tests.few import few

RATES = np.concatenate([[0.0, 1.0], np.geomspace(1e-7, 0.999, 60)])


def inside(ends: Interval, truth: np.ndarray, width: float) -> bool:
    return bool(
        np.all((ends.lower <= truth) & (truth <= ends.upper) & (ends.upper - ends.lower <= width))
    )


def test_the_gaussian_mechanism_in_closed_form() -> None:
    """The release, 400 times with multiplier 20 from all records, is N(1) against N(0)."""
    curve = dpsub.curve(dpsub.Poisson(1.0), noise_multiplier=20.0, steps=400)
    assert curve.epsilon[0] == 0 and curve.account.kind == "exact" and curve.account.width_met
    e = curve.epsilon
    truth = norm.cdf(0.5 - e) - np.exp(e) * norm.cdf(-0.5 - e)
    assert np.all(
        (curve.delta.lower <= truth * (1 + 1e-9)) & (truth <= curve.delta.upper * (1 + 1e-9))
    )
    assert inside(curve.trade_off(RATES), norm.cdf(norm.isf(RATES) - 1), 1e-3)
    assert inside(curve.membership(RATES), norm.sf(norm.isf(RATES) - 1), 1e-3)
    assert (
        curve.advantage.lower
        <= 2 * norm.cdf(0.5) - 1
        <= curve.advantage.upper
        < curve.advantage.lower + 1e-3
    )
    assert curve.mu.lower <= 1 <= curve.mu.upper < curve.mu.lower + 1e-6
    assert 0.99 < curve.mu_within.lower <= 1 <= curve.mu_within.upper
    coarse = dpsub.curve(
        dpsub.Poisson(1.0), noise_multiplier=20.0, steps=400, epsilon=[0.2, 1.0, 3.0]
    )
    assert coarse.epsilon.tolist() == [0.0, 0.2, 1.0, 3.0]  # any epsilons are valid
    assert inside(coarse.trade_off(RATES), norm.cdf(norm.isf(RATES) - 1), 0.2)


@pytest.mark.parametrize(("q", "s", "k"), few([(0.3, 2.0, 5), (0.01, 1.0, 300)]))
def test_against_dp_accounting(q: float, s: float, k: int) -> None:
    curve = dpsub.curve(dpsub.Poisson(q), noise_multiplier=s, steps=k)
    for pessimistic in (True, False):
        theirs = pld.from_gaussian_mechanism(
            s, sampling_prob=q, pessimistic_estimate=pessimistic, use_connect_dots=pessimistic
        ).self_compose(k)
        delta = np.array(theirs.get_delta_for_epsilon(curve.epsilon))[:300]
        if pessimistic:
            assert np.all(curve.delta.lower[:300] <= delta * (1 + 1e-6))
        else:
            assert np.all(delta <= curve.delta.upper[:300] * (1 + 1e-6))


def test_the_trade_off_function_is_the_conjugate_of_what_is_not_on_the_grid() -> None:
    """For the pair of one step, by quadrature: f of both directions, their symmetric convex hull by
    its lines."""
    q, s = 0.3, 0.7
    t = np.linspace(-8, 12, 400_001)
    p0, p1 = norm.pdf(t, 0, s) * (t[1] - t[0]), norm.pdf(t, 1, s) * (t[1] - t[0])
    mixed = (1 - q) * p0 + q * p1
    a = np.exp(np.linspace(-9, 9, 2001))
    order = np.searchsorted(mixed / p0, a)  # likelihood ratios increase with t
    tail = [np.append(np.cumsum(p[::-1])[::-1], 0.0) for p in (mixed, p0)]
    head = [np.append(0.0, np.cumsum(p)) for p in (mixed, p0)]
    forward = tail[0][order] - a * tail[1][order]
    order = np.searchsorted(mixed / p0, 1 / a)
    backward = head[1][order] - a * head[0][order]
    c = 1 - np.maximum(forward, backward)
    truth = np.max(c[:, None] - a[:, None] * RATES, axis=0)
    found = dpsub.curve(dpsub.Poisson(q), noise_multiplier=s, width=1e-4).trade_off(RATES)
    assert np.all(found.lower <= truth + 1e-5) and np.all(truth - 1e-5 <= found.upper)
    assert np.max(found.upper - found.lower) < 2e-3


def test_a_curve_that_says_too_much_is_found_out() -> None:
    """A delta that is a little too small on the upper side puts the lower line of errors above the
    truth; a grid whose cells are taken for straight lines between their ends puts the upper one
    below."""
    curve = dpsub.curve(
        dpsub.Poisson(1.0), noise_multiplier=20.0, steps=400, epsilon=np.linspace(0, 5, 12)
    )
    truth = norm.cdf(norm.isf(RATES) - 1)
    account = curve.account
    object.__setattr__(account, "upper", account.upper * 0.98)
    faulty = Curve(curve.epsilon, account, curve.mu, curve.mu_within)
    assert np.any(faulty.trade_off(RATES).lower > truth)
    a, high = curve._lines(np.asarray(account.lower))
    # no corners between the points
    assert np.any(np.max(high[:, None] - a[:, None] * RATES, axis=0) < truth)


def test_bounds_from_both_sides_and_mixed_ledgers() -> None:
    curve = dpsub.curve(dpsub.Wor(20), 1000, noise_multiplier=2.0, steps=50, adjacency="substitute")
    assert (
        curve.account.kind == "bounds"
        and curve.mu.lower == pytest.approx(50**0.5) == curve.mu.upper
    )
    ends = curve.trade_off(RATES)
    assert np.all(ends.lower <= ends.upper) and np.all(np.diff(ends.lower[2:]) <= 0)
    for epsilon in (0.0, 0.5, 1.0):  # what is promised of delta is promised of errors
        delta = dpsub.account(
            dpsub.Wor(20),
            1000,
            noise_multiplier=2.0,
            steps=50,
            epsilon=epsilon,
            adjacency="substitute",
        )
        line = 1 - delta.upper - math.exp(epsilon) * RATES
        assert np.all(ends.upper >= line - 1e-3) and np.all(ends.lower >= line - 1e-3)
    both = dpsub.Ledger(
        [dpsub.Release(dpsub.Poisson(1.0), None, s, k) for s, k in ((4.0, 8), (2.0, 2))]
    ).curve()
    assert both.mu.lower <= 1 <= both.mu.upper and both.mu.upper - both.mu.lower < 1e-6
    assert inside(both.trade_off(RATES), norm.cdf(norm.isf(RATES) - 1), 1e-3)


@pytest.mark.parametrize(
    ("sampler", "n", "adjacency", "shift", "attained"),
    [
        (dpsub.Poisson(0.2), None, "add_remove", 1, True),
        (dpsub.Poisson(0.2), None, "substitute", 2, False),
        (dpsub.Wor(5), 20, "add_remove", 2, True),
        (dpsub.Wr(5), 20, "substitute", 10, True),
        (dpsub.MustWO(7, 5), 20, "substitute", 10, True),
        (dpsub.MustWW(7, 5), 20, "substitute", 10, True),
        (dpsub.CyclicPoisson(0.2, 3), 60, "add_remove", 1, True),
        (dpsub.Shuffle(5), 20, "zero_out", 1, False),
        (dpsub.RandomAllocation(5, 4), None, "add_remove", 2, False),
        (dpsub.TruncatedPoisson(0.2, 5), 20, "add_remove", 2, False),
    ],
)
def test_no_sampling_lowers_mu(
    sampler: Any, n: int | None, adjacency: str, shift: int, attained: bool
) -> None:
    steps = 9 * (sampler.steps_per_epoch(n) if isinstance(sampler, Schedule) else 1)
    curve = dpsub.curve(
        sampler, n, noise_multiplier=2.0, steps=steps, adjacency=adjacency, epsilon=[0.5, 1.0]
    )
    assert curve.mu.upper == pytest.approx(shift / 2 * 3)
    # a curve of such a proof is no better
    revealed = isinstance(sampler, dpsub.Shuffle | dpsub.RandomAllocation)
    assert curve.mu_within.lower <= curve.mu_within.upper <= curve.mu.upper
    assert (curve.mu_within.upper < curve.mu.upper) is not revealed
    assert (curve.mu.lower == pytest.approx(curve.mu.upper)) is attained


def test_laplace_noise_has_a_mu_of_its_pure_epsilon() -> None:
    curve = dpsub.curve(dpsub.Poisson(1.0), noise_multiplier=2.0, mechanism="laplace")
    assert curve.mu.upper == pytest.approx(-2 * norm.ppf(1 / (1 + math.exp(0.5))))
    assert curve.mu_within.lower <= curve.mu.lower <= curve.mu.upper
    first, last = math.exp(-0.5) / 2 > RATES, RATES > 0.5
    middle = math.exp(-0.5) / 4 / np.maximum(RATES, 1e-9)
    truth = np.where(
        first, 1 - math.exp(0.5) * RATES, np.where(last, math.exp(-0.5) * (1 - RATES), middle)
    )
    assert inside(curve.trade_off(RATES), truth, 5e-3)


@pytest.mark.parametrize("noise", [0.05, 100.0])
def test_extreme_noise_has_a_curve(noise: float) -> None:
    curve = dpsub.curve(dpsub.Poisson(0.01), noise_multiplier=noise, steps=2)
    ends = curve.trade_off(RATES)
    assert np.all((ends.lower >= 0) & (ends.lower <= ends.upper) & (ends.upper <= 1 - RATES))
    assert (
        curve.mu_within.lower <= curve.mu.lower <= curve.mu.upper == pytest.approx(2**0.5 / noise)
    )


@pytest.mark.parametrize("rates", [[-0.1], [0.5, 1.1], [math.nan], "x"])
def test_rates_are_rates(rates: list[float]) -> None:
    curve = dpsub.curve(dpsub.Poisson(1.0), noise_multiplier=1.0, epsilon=[1.0])
    with pytest.raises(dpsub.ArgumentError, match="false_positive must be"):
        curve.trade_off(rates)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["curve", "poisson", "--rate", "0.1", "--sigma", "2", "--steps", "5"]
    table, picture = tmp_path / "curve.csv", tmp_path / "curve.png"
    assert main([*command, "--json", "--csv", str(table), "--plot", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    curve = dpsub.curve(dpsub.Poisson(0.1), noise_multiplier=2.0, steps=5)
    assert told["upper"] == curve.delta.upper.tolist() and told["mu"] == list(curve.mu)
    assert told["false_negative_lower"] == curve.trade_off(told["false_positive"]).lower.tolist()
    assert told["true_positive_upper"] == [1 - low for low in told["false_negative_lower"]]
    rows = np.genfromtxt(table, delimiter=",", names=True)
    assert (
        rows["epsilon"].tolist() == curve.epsilon.tolist()
        and rows["lower"].tolist() == curve.delta.lower.tolist()
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (
        main(
            [
                *command,
                "--epsilon",
                "1,2",
                "--false-positive",
                "0.05",
                "--plot",
                str(tmp_path / "curve.xyz"),
            ]
        )
        == 2
    )
    assert capsys.readouterr().err.startswith(
        "dpsub curve: --plot: a picture must end in .png, .pdf or .svg, got"
    )


def test_a_picture_needs_matplotlib_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = [
        "curve",
        "poisson",
        "--rate",
        "0.1",
        "--sigma",
        "2",
        "--steps",
        "5",
        "--epsilon",
        "1,2",
    ]
    assert main(command) == 0
    assert "true at 0.1, 1, 10 % false positives" in capsys.readouterr().out
    assert main([*command, "--plot", str(tmp_path / "curve.png")]) == 2
    assert "matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize("noise", [1e3, 1e6, 1e9])
def test_mu_of_tiny_laplace_losses_keeps_its_digits(noise: float) -> None:
    """(loss, 0)-DP is mu-DP of mu = -2 Phi^-1(1 / (1 + e^loss)), in 50 digits."""
    curve = dpsub.curve(
        dpsub.Poisson(1.0), noise_multiplier=noise, mechanism="laplace", epsilon=[0.0], quick=True
    )
    with mpmath.workdps(50):
        share = mpmath.expm1(1 / mpmath.mpf(noise)) / (2 + mpmath.expm1(1 / mpmath.mpf(noise)))
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(share)
    assert exact <= curve.mu.upper <= exact * (1 + 2e-4)


@pytest.mark.parametrize(
    ("sampler", "n", "noise"),
    [
        (dpsub.Wor(5), 10, 10.0),
        (dpsub.Wor(1000), 10**6, 1000.0),
        (dpsub.Wr(1000), 10**6, 1000.0),
        (dpsub.Shuffle(5), 10, 50.0),
        (dpsub.RandomAllocation(4), 10, 50.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("relation", few(["zero_out", "substitute", "add_remove"]))
def test_no_delta_with_gaussian_noise_is_0(
    sampler: dpsub.Wor, n: int, noise: float, relation: str
) -> None:
    """A delta that underflows 1e-300 is stated as 1e-300, in every question."""
    asked = {"noise_multiplier": noise, "adjacency": relation, "quick": True, "effort": 1.0}
    try:
        answer = dpsub.account(sampler, n, epsilon=40.0, **asked)
    except dpsub.UnsupportedError:
        return
    assert answer.upper >= 1e-300 and answer.kind != "exact"
    curve = dpsub.curve(sampler, n, epsilon=[5.0, 40.0], **asked)
    assert curve.account.upper.min() >= 1e-300
    assert dpsub.check(sampler, n, epsilon=40.0, claimed_delta=0.0, **asked).verdict == "open"
    assert dpsub.select(sampler, n, runs_mean=3, epsilon=40.0, **asked).upper >= 1e-300
    ledger = dpsub.Ledger()
    ledger.record(sampler, n, noise_multiplier=noise)
    laws = [
        law for law in ledger.export(adjacency=relation, quick=True).laws if law.side == "upper"
    ]
    assert laws and all(law.delta(40.0) >= 1e-300 for law in laws)

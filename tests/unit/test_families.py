"""Many kinds of Poisson steps by two laws a cell (Theorem 74), and their composition."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub import sampling
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.families import Kind, KindCell
from dpsub.accounting.engine.fourier import Blends, ComposedLoss
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.questions.proof import Proof
from tests.few import few

CELLS = [
    (Kind(0.01, 0.5), Kind(0.01, 0.53)),
    (Kind(0.3, 1.9), Kind(0.3, 2.0)),
    (Kind(1.0, 0.02), Kind(1.0, 0.021)),
    (Kind(0.02, 0.8), Kind(0.023, 0.8)),
    (Kind(0.9, 3.5), Kind(0.95, 3.5)),
    (Kind(0.05, 1.0), Kind(0.05, 1.0)),
]


def true_profile(kind: Kind, log_order: np.ndarray, swapped: bool) -> np.ndarray:
    """Return H_a by the best half-line, of (1 - q) N(0) + q N(d) against N(0), or the other way
    round."""
    q, d = kind
    a = np.exp(log_order)
    order = 1 / a if swapped else a
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(order > 1 - q, d / 2 + np.log((order - 1 + q) / q) / d, -np.inf)
    if swapped:
        return norm.cdf(t) * (1 - a * (1 - q)) - a * q * norm.cdf(t - d)
    return norm.sf(t) * (1 - q - a) + q * norm.sf(t - d)


def profile_of(law: PrivacyLossDistribution, log_order: np.ndarray) -> np.ndarray:
    losses = law.losses + law.offset
    above = -np.expm1(np.minimum(log_order[:, None] - losses, 0.0))
    return np.einsum("ij,j", above, law.masses) + law.infinity


def inside(cell: KindCell) -> list[Kind]:
    """Draw kinds of a cell, its ends included."""
    return [
        Kind(*((1 - part) * np.array(cell.low) + part * np.array(cell.high)))
        for part in (0.0, 0.2, 0.5, 0.7, 1.0)
    ]


@pytest.mark.parametrize("ends", CELLS)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("per_deviation", [3, 12, 40])
def test_mixtures_bound_every_kind_of_a_cell(ends, swapped, per_deviation):
    cell = KindCell.around(ends)
    q, d = cell.high
    step = q * np.sqrt(np.expm1(d * d)) / (1 + d * d) / per_deviation
    orders = np.concatenate([np.arange(0, 40, 0.37), np.geomspace(41, 1e4, 60)]) * step
    orders = orders[orders < 30]
    for side, sign in (("upper", 1), ("lower", -1)):
        chords = cell.chords(side, step, 1e-18)
        laws = [each.law(swapped) for each in chords]
        for kind in inside(cell):
            share = cell.share(kind, side)
            bound = (1 - share) * profile_of(laws[0], orders)
            bound += share * profile_of(laws[-1], orders)
            truth = true_profile(kind, orders, swapped)
            assert (sign * (bound - truth) >= -1e-13).all(), (side, kind)
            if per_deviation == 40 and cell.high.shift < 3:
                # both are of second order in the step and the width of the cell
                assert np.abs(bound - truth).max() < 0.02 * truth[0], (side, kind)


def test_a_kind_outside_of_its_cell_is_not_bounded():
    """The check sees a kind with more noise, or less, than the cell."""
    cell = KindCell.around(CELLS[0])
    orders = np.linspace(0, 0.05, 40)
    low, high = (law.law(swapped=False) for law in cell.chords("upper", 1e-3, 1e-18))
    less_noise = true_profile(Kind(0.01, 0.56), orders, swapped=False)
    assert (profile_of(high, orders) < less_noise).any()
    assert (profile_of(low, orders) < less_noise).any()


def test_a_composition_of_mixtures_is_that_of_their_laws():
    rng = np.random.default_rng(7)
    plds = [
        PrivacyLossDistribution(0.01, np.arange(-20, 21), masses / masses.sum(), "upper", 1e-9)
        for masses in rng.uniform(size=(4, 41)) ** 3
    ]
    first, second = np.array([0, 0, 1, 3]), np.array([1, 2, 1, 2])
    share, steps = np.array([0.3, 0.0, 1.0, 0.6]), [5, 2, 7, 4]
    mixtures = [
        dataclasses.replace(plds[i], masses=(1 - w) * plds[i].masses + w * plds[j].masses)
        for i, j, w in zip(first, second, share, strict=True)
    ]
    one, other = (
        ComposedLoss(plds, steps, Blends(first, second, share)),
        ComposedLoss(mixtures, steps),
    )
    for delta in (1e-2, 1e-5, 1e-7):
        assert one.epsilon(delta) == pytest.approx(other.epsilon(delta), rel=1e-9)
    assert one.infinity == pytest.approx(other.infinity, rel=1e-12)
    for epsilon in (0.0, 0.5, 1.0):
        assert one.delta(epsilon) == pytest.approx(other.delta(epsilon), rel=1e-9)


@pytest.mark.parametrize("varied", ["noise", "rate", "both"])
def test_many_kinds_agree_with_each_by_itself(varied):
    ledger = dpsub.Ledger()
    for i in range(60):
        noise = 0.7 * 2 ** (i / 60) if varied != "rate" else 1.0
        rate = 0.01 * (1 + (7 * i % 60) / 20) if varied != "noise" else 0.02
        ledger.record(dpsub.Poisson(rate), noise_multiplier=noise, steps=20 + i)
    entries = Proof.of(list(ledger), None).composition.entries
    alone, together = Composition(entries, one_by_one=True), Composition(entries)
    assert together.is_blended
    assert not alone.is_blended
    step = alone.spread / 12
    for swapped, delta in itertools.product((False, True), (1e-3, 1e-6, 1e-9)):
        ends = [
            (
                laws.lower(step, 1e-24, swapped).epsilon(delta),
                laws.upper(step, 1e-24, swapped).epsilon(delta),
            )
            for laws in (alone, together)
        ]
        assert ends[1][0] <= ends[0][1]
        assert ends[0][0] <= ends[1][1]
        assert ends[1][1] <= 1.02 * ends[1][0]


def test_a_thousand_noise_levels_within_the_width():
    ledger = dpsub.Ledger()
    for i in range(1000):
        ledger.record(dpsub.Poisson(0.01), noise_multiplier=2 * 0.5 ** (i / 1000), steps=6)
    answer = ledger.account(delta=1e-5)
    assert answer.width_met
    assert 2.88 < answer.lower < 2.8878 < answer.upper < 2.9


def test_other_events_stay_as_they_are():
    ledger = dpsub.Ledger()
    for i in range(60):
        ledger.record(dpsub.Poisson(0.01), noise_multiplier=1 + i / 100)
    ledger.record(dpsub.Poisson(0.01), noise_multiplier=0.2)
    composition = Proof.of(list(ledger), None).composition
    composed = composition.upper(composition.spread, 1e-18, swapped=False)
    assert sum(composed.steps) == 61
    assert isinstance(composition.entries[-1][0], PairEvent)
    # a shift of five deviations has a law of its own, the last one
    assert int(composed.blends.first[-1]) == len(composed.plds) - 1


SIZES = {"n": 10, "m": 5, "b": 5, "max_batch": 6}
SCHEMES = {name: sampling.of_sizes(name, **SIZES) for name in sampling.names_of_sizes()}
SCHEMES |= {
    "shuffle": dpsub.Shuffle(5),
    "random_allocation": dpsub.RandomAllocation(2),
    "k_of_t": dpsub.RandomAllocation(4, 2),
}


CASES = [(each, name) for name in SCHEMES for each in ("add_remove", "substitute", "zero_out")]


@pytest.mark.parametrize(
    ("adjacency", "name"),
    few(CASES[::4] + CASES[1::4] + CASES[2::4] + CASES[3::4], most=9, more=8),
)
def test_no_upper_delta_is_zero(name, adjacency):
    """Gaussian losses have no largest one: no delta is 0, be it about e^-5000."""
    asked = {"noise_multiplier": 10, "adjacency": adjacency, "effort": 0.1}
    for epsilon, quick in itertools.product((10.0, 300.0), (True, False)):
        try:
            answer = dpsub.account(SCHEMES[name], 10, epsilon=epsilon, quick=quick, **asked)
        except dpsub.UnsupportedError:
            pytest.skip("no theorem covers the case")
        assert answer.upper >= 1e-300
        assert answer.lower <= answer.upper


def test_a_bounded_loss_still_gives_a_delta_of_zero():
    asked = {"noise_multiplier": 1, "mechanism": "laplace"}
    assert dpsub.account(dpsub.Poisson(0.5), epsilon=3.0, **asked).upper == 0


def test_chords_that_are_not_lowered_are_seen(monkeypatch):
    """The planted fault is chords of a convex profile, which lie above it."""
    monkeypatch.setattr(KindCell, "_above_chords", lambda _, x, backwards: np.zeros(x.size))
    orders = np.linspace(0, 0.1, 401)
    (law,) = KindCell.around(CELLS[5]).chords("lower", 0.01, 1e-18)
    truth = true_profile(CELLS[5][0], orders, swapped=False)
    assert (profile_of(law.law(swapped=False), orders) > truth + 1e-9).any()


def test_a_certificate_has_a_law_of_each_kind():
    """The verifier knows no mixtures: laws of single kinds prove the claim."""
    ledger = dpsub.Ledger()
    for i in range(60):
        ledger.record(dpsub.Poisson(0.05), noise_multiplier=2 - i / 60, steps=2)
    answer = ledger.account(delta=1e-5)
    certificate = answer.certificate()
    assert len(certificate["upper"]["forward"]) == len(certificate["lower"]["parts"]) == 60
    assert certificate["claim"]["lower"] <= answer.lower * (1 + 1e-9)
    assert answer.upper <= certificate["claim"]["upper"] * (1 + 1e-9)

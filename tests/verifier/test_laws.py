"""Laws of the verifier: their profile at kinks, missing mass, composition and charges, against
brute force."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
import work
from attacks import Sums
from balls import ONE, ZERO, NotCovered, Refuted, Unreadable, larger, set_precision, smaller
from events import Curve, Noise
from flint import arb
from law import Law, charge, composed_profile, power, read_law, shortfall_above, shortfall_below
from multiplicity import ball
from reading import law
from scipy import stats

CUT = arb(10) ** -40
SMALL = Law(0.25, 0.125, [-3, -1, 0, 2, 5], [0.1, 0.3, 0.25, 0.2, 0.1], 0.05)
WINDOW = {"step": 0.5, "offset": 0.0, "indices": [0, 1], "masses": [0.5, 0.5], "infinity": 0.0}
OTHER = Law(0.25, -0.5, [0, 1, 4], [0.5, 0.25, 0.125], 0.0)


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-5)


def atoms(law):
    """Return losses and masses, that at infinity with them."""
    finite = [
        (law.offset + i * law.step, mass) for i, mass in zip(law.indices, law.masses, strict=True)
    ]
    return [*finite, (inf, law.infinity)]


def profile(pairs, loss):
    return sum(mass * (1 - exp(loss - x)) for x, mass in pairs if x > loss)


def test_domination_is_looked_at_where_it_is_tightest():
    """Nothing is missing against a law's own profile; against one that is larger at one kink, as
    much as there."""

    def own(loss, order, enough):
        return arb(profile(atoms(SMALL), float(loss.mid())))

    assert shortfall_above(SMALL, own, ZERO) < 1e-15
    for kink, _ in atoms(SMALL)[:-1]:

        def raised(loss, order, enough, kink=kink):
            at_the_kink = abs(float(loss.mid()) - kink) < 1e-9
            excess = arb(1) / 1024 if at_the_kink else ZERO
            return own(loss, order, enough) + excess

        assert float(shortfall_above(SMALL, raised, ZERO)) == pytest.approx(1 / 1024, rel=1e-9)


def test_a_bound_that_is_no_number_counts_as_none():
    """The bound is 0/0 in a ball at one kink: the kinks after it do not undo that."""
    nothing = ZERO / ZERO
    assert nothing.is_nan()

    def broken(loss, order, enough):
        return nothing if loss > 0.5 else ZERO

    assert not shortfall_above(SMALL, broken, ZERO).is_finite()
    for one, other in ((nothing, ONE), (ONE, nothing)):
        assert not larger(one, other).is_finite()
        assert smaller(one, other) == 1


def test_mass_that_is_missing_at_order_zero_counts():
    lacking = Law(1.0, 0.0, [0], [0.75], 0.0)
    assert float(shortfall_above(lacking, lambda loss, order, enough: ZERO, ZERO)) == 0.25


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.4])
@pytest.mark.parametrize("upper", [True, False])
def test_composition_by_enumeration(epsilon, upper):
    composed = composed_profile([(SMALL, 3), (OTHER, 2)], arb(epsilon), CUT, upper)
    total = 0.0
    for outcome in product(*[atoms(SMALL)] * 3, *[atoms(OTHER)] * 2):
        loss, mass = sum(x for x, _ in outcome), float(np.prod([m for _, m in outcome]))
        total += mass * (1 if loss == inf else max(0.0, 1 - exp(epsilon - loss)))
    assert float(composed.mid()) == pytest.approx(total, rel=1e-13)
    assert float(composed.rad()) < 1e-30


def test_laws_of_two_grids_are_not_composed():
    """The losses of one law would count as if they were on the grid of the other."""
    finer = replace(OTHER, step=OTHER.step / 2)
    with pytest.raises(Refuted, match="one grid step"):
        composed_profile([(SMALL, 1), (finer, 1)], ONE, CUT, True)


@pytest.mark.parametrize("upper", [True, False])
def test_what_is_too_large_is_counted_and_not_composed(upper, monkeypatch):
    """The message has the numbers: of points, and of operations."""
    monkeypatch.setattr("law.LONGEST", 20)
    with pytest.raises(NotCovered, match=r"too large: \d+ places .* composed, of at most 20"):
        composed_profile([(SMALL, 8)], ONE, ZERO, upper)
    with pytest.raises(NotCovered, match=r"too large: 21 places .* part 0, of at most 20"):
        read_law({**WINDOW, "indices": [-10, 10]}, "part 0")
    monkeypatch.setattr("law.LONGEST", 1000)
    work.begin()
    monkeypatch.setattr("work.MOST", 100)
    with pytest.raises(NotCovered, match=r"make \d+ operations, of at most 100"):
        composed_profile([(SMALL, 8)], ONE, ZERO, upper)
    work.begin()


def test_wide_laws_do_not_stand_in_memory_together(monkeypatch):
    """A file of some kilobytes may hold thousands of wide laws, of a hundred megabytes each."""
    monkeypatch.setattr("law.LONGEST", 1000)
    wide, read = Law(0.25, 0.0, [0, 600], [arb(0.5), arb(0.5)], 0.0), []
    monkeypatch.setattr("law.power", lambda *given: read.append(given) or power(*given))
    with pytest.raises(NotCovered, match="too large"):
        composed_profile([(wide, 1)] * 100, ONE, CUT, True)
    assert len(read) == 2


def test_what_is_cut_off_is_charged():
    """Upper bounds rise and lower bounds fall, by no more than a few times the mass that is cut."""
    exact = composed_profile([(SMALL, 40)], arb(2.0), CUT, True)
    for cut in (1e-12, 1e-6):
        above = composed_profile([(SMALL, 40)], arb(2.0), arb(cut), True)
        below = composed_profile([(SMALL, 40)], arb(2.0), arb(cut), False)
        assert below < exact < above
        assert above - below < 400 * cut


@pytest.mark.parametrize("upper", [True, False])
def test_rare_ends_of_one_law_are_charged_too(upper):
    """Mass cut on the right is charged to infinity, and mass cut on the left to the first loss that
    is kept; for a lower bound it is dropped."""
    rare = arb(1) / 1024
    law = Law(1.0, 0.0, [-5, 0, 5], [rare, arb(0.5), rare], 0.0)
    kept, low = (
        composed_profile([(law, 1)], arb(epsilon), 1.5 * rare, upper) for epsilon in (0.0, -9.0)
    )
    whole = (1 - arb(-9).exp()) / 2
    if not upper:
        assert kept == 0 and low.overlaps(whole)
        return
    assert kept.overlaps(rare)
    assert low.overlaps(whole + rare * (1 - arb(-9).exp()) + rare)


def test_mass_at_infinity_is_attained_or_charged():
    """It is attained by an event that the other law does not have, whatever the other lines are."""
    law = Law(1.0, 0.0, [0], [arb(0.5)], 0.125)
    missing = shortfall_below(law, lambda T, S: S)
    assert missing == 0.125


def test_charges_are_mass_at_infinity():
    xi, M = arb(0.01), SMALL.total()
    more = Law(SMALL.step, SMALL.offset, SMALL.indices, SMALL.masses, SMALL.infinity + 0.01)
    whole = composed_profile([(more, 3)], arb(0.0), CUT, True) - composed_profile(
        [(SMALL, 3)], arb(0.0), CUT, True
    )
    assert float(whole) <= float(charge([(xi, M, 3)])) + 1e-15
    assert float(charge([(xi, M, 3)])) == pytest.approx(float((M + xi) ** 3 - M**3), rel=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"step": 0.0},
        {"step": inf},
        {"masses": [0.5, -1e-9]},
        {"masses": [0.5]},
        {"indices": [1, 0]},
        {"indices": [0.0, 1]},
        {"masses": [0.5, float("nan")]},
        {"infinity": -1.0},
        {"masses": [], "indices": []},
    ],
)
def test_what_is_no_law(change):
    assert read_law(law(WINDOW, "part 0"), "part 0").total() == 1
    with pytest.raises(Unreadable):
        law({**WINDOW, **change}, "part 0")


def test_equal_indices_are_one_loss():
    data = {"step": 0.5, "offset": 0.0, "indices": [0, 0, 1], "masses": [0.25, 0.25, 0.5]}
    found = read_law(law({**data, "infinity": 0.0}, "part 0"), "part 0")
    assert found.indices == [0, 1] and found.masses == [0.5, 0.5]


@pytest.mark.parametrize("laplace", [False, True])
def test_half_lines_follow_the_trade_off_curve(laplace):
    q, s = 0.25, 1.25
    P, Q = {Fraction(0): ONE - q, Fraction(2): arb(q)}, {Fraction(0): ONE}
    curve = Curve(Sums(P, ZERO), Sums(Q, ZERO), arb(s), Noise(laplace), arb(10) ** -40)
    assert curve.rises
    noise = stats.laplace if laplace else stats.norm
    for T in (1e-30, 1e-6, 0.02, 0.4, 0.97):
        c = noise.isf(T)
        best = (1 - q) * T + q * noise.sf(c - 2 / s)
        found = curve.event(arb(T), arb(best))
        assert float(found) == pytest.approx(best, rel=1e-9)
        assert found <= best * (1 + 1e-9)


def test_cells_of_outputs_are_attained_and_no_more():
    """The law of grouped outputs is attained; with mass added, more than rounding losses down left
    free, it is not."""
    q, s = 0.25, 1.0
    P, Q = {Fraction(0): ONE - q, Fraction(1): arb(q)}, {Fraction(0): ONE}
    curve = Curve(Sums(P, ZERO), Sums(Q, ZERO), arb(s), Noise(False), arb(10) ** -40)
    step = 0.05
    # Cells between losses; q-masses rounded up and p-masses down, so that the law of their losses
    # lies below.
    grid = np.arange(-5, 60)
    places = np.array([0.5 + log(max((exp(i * step) - 1 + q) / q, 1e-30)) for i in grid])
    edges = np.concatenate(([-np.inf], places, [np.inf]))
    p = np.diff((1 - q) * stats.norm.cdf(edges) + q * stats.norm.cdf(edges - 1))
    masses = [float(x) * (1 - 1e-12) for x in p[1:]]  # of losses above i step, put there
    law = Law(step, 0.0, [int(i) for i in grid], masses, 0.0)
    assert shortfall_below(law, curve.event) == 0
    for place in (10, 30, 50):
        more = Law(
            step, 0.0, law.indices, [m + 0.1 * (i == place) for i, m in enumerate(masses)], 0.0
        )
        assert shortfall_below(more, curve.event) > 1e-3


def test_rare_values_are_left_out_to_the_safe_side():
    """Mass dropped from P lowers events, and mass dropped from Q counts as if it were in them."""
    rare = arb(10) ** -12
    P = {Fraction(0): ONE - rare, Fraction(5): rare}
    Q = {Fraction(0): ONE - rare, Fraction(-5): rare}
    curve = Curve(Sums(P, ZERO), Sums(Q, ZERO), ball(Fraction(1)), Noise(False), arb(10) ** -9)
    assert len(curve.centres) == 1
    assert float(curve.event(arb(0.25), ONE)) == pytest.approx(0.25, abs=2e-12)
    assert curve.event(arb(0.25), ONE) < 0.25


def test_what_laws_of_counts_leave_out_may_be_in_any_event():
    P, Q = {Fraction(0): ONE / 2, Fraction(2): ONE / 2}, {Fraction(0): ONE - arb(10) ** -9}
    rest = arb(10) ** -9
    cut = Curve(Sums(P, ZERO), Sums(Q, rest), ball(Fraction(1)), Noise(False), arb(10) ** -40)
    assert cut.event(rest, ONE) == 0
    # where nothing is, the radius of sums of balls is not charged: deep events stay what they are
    Q = {Fraction(0): (ONE / 3) + (ONE / 3) + (ONE / 3)}
    whole = Curve(Sums(P, ZERO), Sums(Q, ZERO), ball(Fraction(1)), Noise(False), arb(10) ** -40)
    deep = arb(10) ** -60
    assert float(whole.event(deep, ONE)) == pytest.approx(stats.norm.sf(16.4 - 2) / 2, rel=0.9)
    assert whole.event(deep, ONE) > 0

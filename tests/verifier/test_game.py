"""The game on cells: its bounds against brute force, and certificates with one wrong entry."""

import copy
import itertools
import math
from functools import cache

import game
import mpmath
import numpy as np
import pytest
from balls import NotCovered, Refuted, set_precision
from certificate import NOT_COVERED, REFUTED, UNREADABLE, VERIFIED
from corners import WEIGHTS, Draws, Middle, base_weights
from flint import arb
from game import (
    FLOOR,
    Angles,
    Cell,
    Interval,
    Play,
    above,
    at_epsilon,
    bounds_of,
    bounds_of_angles,
    check_angles,
    check_cover,
    check_intervals,
    check_work,
    covered,
    draws_of,
)
from law import Law
from question import Release
from scipy.stats import binom, norm
from theorems import Case

import dpsub
from profiles import Order
from tests.few import few
from tests.verifier.proving import proved_again

HALF = math.pi / 2


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-6)


# --- Bounds ---------------------------------------------------------------------------------------


def divergence(x, y, q, s, a):
    """Return H_a(P_xy || Q_xy) in the plane, on a fine grid."""
    t = np.linspace(-10, 10, 1201) * s
    width = t[1] - t[0]
    one, two = np.meshgrid(t, t)

    def density(centre):
        return norm.pdf(one, centre[0], s) * norm.pdf(two, centre[1], s)

    base = (1 - q) * density((0, 0))
    return np.maximum(base + q * density(x) - a * (base + q * density(y)), 0).sum() * width**2


@pytest.mark.parametrize(("C", "psi"), [(0.7, 0.2), (1.2, -0.9), (1.4, 1.0)])
@pytest.mark.parametrize("a", few([1.05, 1.0, 1.4]))
def test_a_cell_bounds_its_members(C, psi, a):
    q, s = 0.2, 1.5
    v, w, g = (
        (math.sin(C), -math.cos(C)),
        (-math.sin(C), -math.cos(C)),
        (math.sin(psi), math.cos(psi)),
    )
    x, y = (v[0] - g[0], v[1] - g[1]), (w[0] - g[0], w[1] - g[1])
    forward, backward = divergence(x, y, q, s, a), divergence(y, x, q, s, a)

    def bounds(cell):
        sides = bounds_of([cell], Draws.once(arb(q)), arb(s), arb(1e-15))[0]
        return [
            float(side(Order(arb(a) - 1), arb(enough * (1 + 1e-3))).upper())
            for side, enough in zip(sides, (forward, backward), strict=True)
        ]

    point = bounds(Cell((C, C), (psi, psi)))
    for bound, truth in zip(point, (forward, backward), strict=True):
        assert truth * (1 - 1e-4) <= bound <= truth * (1 + 1e-3) + 1e-9
    wide = bounds(Cell((C - 0.1, C + 0.1), (psi - 0.1, psi + 0.1)))
    assert wide[0] >= forward and wide[1] >= backward


def bounds_at(cell, q, s, a, enough=(0.0, 0.0)):
    """Return F_c and B_c of Theorem 70, no sharper than `enough`."""
    sides = bounds_of_angles([cell], Draws.once(arb(q)), arb(s), arb(1e-15))[0]
    return [
        float(side(Order(arb(a) - 1), arb(least * (1 + 1e-3))).upper())
        for side, least in zip(sides, enough, strict=True)
    ]


@pytest.mark.parametrize("A", [0.4, 1.5, 2.0, 2.9])
@pytest.mark.parametrize("a", few([1.05, 1.0, 1.4]))
def test_a_cell_of_angles_bounds_its_members(A, a):
    q, s = 0.3, 0.9
    g = math.cos(A), math.sin(A)
    x, y = (1 - g[0], -g[1]), (-g[0], -g[1])
    truth = divergence(x, y, q, s, a), divergence(y, x, q, s, a)
    for bound, exact in zip(bounds_at(Angles(A, A), q, s, a, truth), truth, strict=True):
        assert exact * (1 - 1e-4) <= bound <= exact * (1 + 2e-3) + 1e-9
    # one that reaches to either side of the right angle, and one that does not
    for wide in (Angles(max(A - 0.6, 0), min(A + 0.6, math.pi)), Angles(A - 0.05, A + 0.05)):
        wider = bounds_at(wide, q, s, a)
        assert all(bound >= exact * (1 - 1e-4) for bound, exact in zip(wider, truth, strict=True))


def test_a_cell_that_is_nearly_a_line_has_bounds():
    """A larger height stands in where bins of Z are not told apart."""
    for cell in (Angles(0.0, 1e-300), Angles(math.nextafter(math.pi, 0), math.pi)):
        flat = bounds_at(cell, 0.3, 1e3, 1.0001)
        wide = bounds_at(
            Angles(max(cell.low - 0.1, 0), min(cell.high + 0.1, math.pi)), 0.3, 1e3, 1.0001
        )
        assert all(0 <= bound <= wider for bound, wider in zip(flat, wide, strict=True))


@pytest.mark.parametrize(
    ("a", "tau", "d", "r"),
    [
        (1.0, 0.3, 0.5, 0.2),
        (1.3, 0.05, 0.5, 0.5),
        (1.02, 1e-6, 0.25, 1e-3),
        (4.0, 0.01, 2.0, 1.4),
        (3000.0, 1e-3, 1.0, 0.7),
        (1.2, 2.0, 0.7, 0.3),  # no event gains
        (1.0, 0.9, 0.5, 0.4),
    ],
)
def test_the_best_interval_is_that_of_the_densities(a, tau, d, r):
    """The interval's value is I by quadrature between the roots of 1 - g, with 40 digits."""

    def gain(t):
        ratio = a * mpmath.exp(-d * t - d * d / 2) + tau * mpmath.exp(r * t - r * r / 2)
        return (1 - ratio) * mpmath.npdf(t)

    with mpmath.workdps(40):
        a, tau, d, r = (mpmath.mpf(number) for number in (a, tau, d, r))
        least = (mpmath.log(a * d / (tau * r)) + (r * r - d * d) / 2) / (d + r)
        truth = mpmath.mpf(0)
        if gain(least) > 0:
            ends = (
                mpmath.findroot(gain_sign, (least, far), solver="anderson")
                for gain_sign, far in (
                    (lambda t: gain(t) / mpmath.npdf(t), (mpmath.log(a) - d * d / 2) / d),
                    (lambda t: gain(t) / mpmath.npdf(t), (r * r / 2 - mpmath.log(tau)) / r),
                )
            )
            left, right = ends
            pieces = mpmath.linspace(left, min(right, left + 40), 40)
            truth = mpmath.quad(gain, pieces)
    d, r = arb(float(d)), arb(float(r))
    bound, _ = Middle(d, r).at(arb(float(a)), float(mpmath.log(a)), arb(float(tau)), 0.0)
    assert float(truth) * (1 - 1e-12) <= float(bound.upper()) <= float(truth) * (1 + 1e-11)


def laplace_divergence(x, y, q, s, a):
    t = np.linspace(-30, 30, 1_200_001)

    def density(centre):
        return np.exp(-np.abs(t - centre) / s) / (2 * s)

    base = (1 - q) * density(0)
    return np.maximum(base + q * density(x) - a * (base + q * density(y)), 0).sum() * (t[1] - t[0])


@pytest.mark.parametrize(
    ("third", "place"),
    [
        ("replaced", lambda u: (u, u - 2)),
        ("second", lambda u: (2, u)),
        ("first", lambda u: (u, 2)),
    ],
)
@pytest.mark.parametrize("u", [0.0, 0.3, 1.1, 1.9, 2.0])
@pytest.mark.parametrize("a", [1.0, 1.02, 1.2, 1.6])
def test_an_interval_bounds_its_members(third, place, u, a):
    q, s = 0.3, 1.2
    x, y = place(u)
    truth = [laplace_divergence(x, y, q, s, a), laplace_divergence(y, x, q, s, a)]

    def bounds(low, high):
        return [
            float(bound(Order(arb(a) - 1), arb(0)).upper())
            for bound in Interval(third, (low, high)).bounds(arb(q), arb(s))
        ]

    assert bounds(u, u) == pytest.approx(truth, abs=1e-7)
    wide = bounds(max(u - 0.2, 0.0), min(u + 0.2, 2.0))
    assert all(bound >= exact - 1e-7 for bound, exact in zip(wide, truth, strict=True))


def test_covers_leave_no_gap():
    def cell(*numbers):
        return Cell.read(numbers, "cell")

    check_cover([cell(0, HALF, -HALF, HALF)])
    check_cover([cell(0, 1, -1, 1), cell(1, HALF, -HALF, 0.5), cell(1, HALF, 0.5, HALF)])
    for gap in (
        [cell(0, 1, -1, 1)],
        [cell(0, 1, -1, 1), cell(1, HALF, -HALF, 0.5), cell(1, HALF, math.nextafter(0.5, 1), HALF)],
        [cell(0, 1, -1, 0.999), cell(1, HALF, -HALF, HALF)],
        [cell(0, HALF, -HALF, math.nextafter(HALF, 0))],
    ):
        with pytest.raises(Refuted, match="no cell holds"):
            check_cover(gap)
    check_intervals([Interval("any", (0.0, 0.0))])
    families = [Interval(name, (0.0, 2.0)) for name in ("first", "second", "replaced")]
    check_intervals(families)
    for missing in families:
        with pytest.raises(Refuted, match=f"{missing.third!r}"):
            check_intervals([cell for cell in families if cell is not missing])
    # touching ones leave no gap, others do
    halves = [Interval("first", (0.0, 1.0)), Interval("first", (1.0, 2.0))]
    check_intervals([*families[1:], *halves])
    for gap in (
        [],
        [Interval("first", (0.0, 1.0)), Interval("first", (math.nextafter(1.0, 2), 2.0))],
        [Interval("first", (math.nextafter(0, 1), 2.0))],
        [Interval("first", (0.0, math.nextafter(2.0, 0)))],
    ):
        with pytest.raises(Refuted, match="'first'"):
            check_intervals([*families[1:], *gap])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_no_cell(value):
    """The schema has no such numbers, and a cell refuses them without it, too."""
    for read, honest in (
        (Cell.read, [0.5, 1.0, -0.5, 0.5]),
        (Angles.read, [0.5, 1.0]),
        (Interval.read, ["first", 0.5, 1.0]),
    ):
        read(honest, "cell")
        for place, number in enumerate(honest):
            if type(number) is str:
                continue
            wrong = [*honest[:place], value, *honest[place + 1 :]]
            with pytest.raises(Refuted, match="cell"):
                read(wrong, "cell")


def test_ends_that_fall_are_no_cell():
    for read, wrong in (
        (Cell.read, [1.0, 0.5, -0.5, 0.5]),
        (Cell.read, [0.5, 1.0, 0.5, -0.5]),
        (Cell.read, [-0.1, 1.0, -0.5, 0.5]),
        (Cell.read, [0.0, 1.6, -0.5, 0.5]),
        (Cell.read, [0.5, 1.0, -1.6, 0.5]),
        (Cell.read, [0.5, 1.0, -0.5, 1.6]),
        (Interval.read, ["first", 1.0, 0.5]),
        (Interval.read, ["first", -0.1, 0.5]),
        (Interval.read, ["first", 0.5, 2.1]),
    ):
        with pytest.raises(Refuted, match="cell"):
            read(wrong, "cell")


def test_angles_leave_no_gap():
    check_angles([Angles(0.0, math.pi)])
    check_angles([Angles(1.0, math.pi), Angles(0.0, 1.0)])
    for gap in (
        [Angles(0.0, math.nextafter(math.pi, 0))],
        [Angles(math.nextafter(0, 1), math.pi)],
        [Angles(0.0, 1.0), Angles(math.nextafter(1.0, 2), math.pi)],
    ):
        with pytest.raises(Refuted, match="no cell holds angles"):
            check_angles(gap)
    for numbers in ([-0.1, 1.0], [1.0, 0.9], [0.0, math.nextafter(math.pi, 4)]):
        with pytest.raises(Refuted, match="no angles"):
            Angles.read(numbers, "cell")


@pytest.mark.parametrize(
    ("theorem", "cell"),
    [
        *((theorem, [0.0, 1.5, -1.5, 1.5]) for theorem in ("15", "22", "65")),
        ("30", ["replaced", 0.0, 2.0]),
        ("70", [0.0, 3.0]),
    ],
)
def test_a_game_with_a_gap_is_not_played(theorem, cell):
    with pytest.raises(Refuted, match="no cell"):
        covered(theorem, [{"cell": cell}], None, arb(1), arb(0))


@pytest.mark.parametrize(
    ("theorem", "sampler", "n"),
    [
        ("15", {"name": "wor", "m": 3}, 3),
        ("30", {"name": "wor", "m": 3}, 3),
        ("70", {"name": "wor", "m": 3}, 3),
        ("15", {"name": "wr", "m": 3}, 5),
        ("22", {"name": "wr", "m": 3}, 1),
        ("22", {"name": "must_ow", "b": 1, "m": 3}, 5),
        ("22", {"name": "must_ow", "b": 5, "m": 3}, 5),
        ("22", {"name": "must_ww", "b": 2, "m": 3}, 5),
        ("65", {"name": "must_ww", "b": 2, "m": 3}, 1),
        ("65", {"name": "must_ow", "b": 2, "m": 3}, 5),
    ],
    ids=str,
)
def test_a_game_is_about_samplers_of_its_theorem(theorem, sampler, n):
    release = Release(sampler, n, arb(1), 2, laplace=theorem == "30")
    relation = "zero_out" if theorem == "70" else "substitute"
    with pytest.raises(Refuted, match=f"theorem {theorem} needs"):
        draws_of(Case(release, relation, "forward", {"theorem": theorem}, None, arb(1e-30)))


@pytest.mark.parametrize("negligible", [1e-30, 1e-3, 3e-2])
def test_draws_of_draws(negligible):
    """Draws are compared with binomial laws; mass that is left out, more for some numbers of slots,
    is charged."""
    n, b, m = 5, 4, 6
    release = Release({"name": "must_ww", "b": b, "m": m}, n, arb(1), 2, laplace=False)
    part = {"theorem": "65"}
    draws = draws_of(Case(release, "substitute", "forward", part, None, arb(negligible)))
    held = binom.pmf(range(b + 1), b, 1 / n)
    passed = 1 - held[0]
    truth = [
        sum(held[j] * binom.pmf(hits, m, j / b) for j in range(1, b + 1)) for hits in range(m + 1)
    ]
    found = [float(p) for p in draws.p]
    assert float(draws.q) == pytest.approx(passed)
    assert 1 - 1e-12 <= sum(found) + float(draws.rest) <= 1 + negligible
    assert all(p <= exact / passed + 1e-12 for p, exact in zip(found, truth, strict=False))
    assert 1 - sum(found) <= 40 * negligible + 1e-12
    for hits, p in enumerate(found):
        assert p == pytest.approx(
            sum(float(law[hits]) for law, _ in draws.branches if hits < len(law))
        )


def test_weights_of_the_base():
    """The law of u for b = 5, m = 4 is taken from all draws, and moved to fewer values: falling
    convex functions have no smaller means.
    """
    b, m, q, p_0 = 5, 4, 0.5, (1 - 1 / 5) ** 4
    e = (1 - q) / q
    draws = list(itertools.product(range(b - 1), repeat=m))
    truth = [(p_0 + e * b * p_0 / (b - len(set(draw)))) / (p_0 + e) for draw in draws]
    weights, light = base_weights(b, m, arb(q), arb(p_0), arb(1e-12))
    assert light == 0
    assert sum(float(mass) for _, mass in weights) == pytest.approx(1)
    assert sum(float(u * mass) for u, mass in weights) == pytest.approx(np.mean(truth))
    for power in (2, 3):
        assert sum(float(u**power * mass) for u, mass in weights) == pytest.approx(
            np.mean(np.power(truth, power))
        )
    b, m = 400, 150
    many, light = base_weights(b, m, arb(q), arb(0.7), arb(1e-12))
    assert len(many) <= WEIGHTS + 1 and light < 1e-12
    rng = np.random.default_rng(1)
    empty = b - np.array([len(np.unique(rng.integers(b - 1, size=m))) for _ in range(20_000)])
    u = (0.7 + e * b * (1 - 1 / b) ** m / empty) / (0.7 + e)
    assert sum(float(u * mass) for u, mass in many) == pytest.approx(
        u.mean(), abs=5 * u.std() / 20_000**0.5
    )
    spread = (
        sum(float(u * u * mass) for u, mass in many) - sum(float(u * mass) for u, mass in many) ** 2
    )
    # Bins of more than half a deviation, moved to their ends, spread it by a tenth; sampling is
    # good to a hundredth.
    assert 1.02 * u.var() < spread < 1.2 * u.var()


def test_charges_keep_to_their_budget():
    draws = Draws(
        arb(1),
        [arb(0.6), arb(0.3), arb(0.08), arb(0.02)],
        arb(0),
        [(arb(1), arb(1))],
        arb(0),
    )
    side = bounds_of([Cell((0.5, 0.9), (0.1, 0.4))], draws, arb(2), arb(1e-15))[0][0]
    for u in (1e-6, 0.1, 3.0, 1e4):
        budget = arb(u) * draws.base
        charges = side._charges(Order(arb(u)), side.terms, budget)
        spent = sum(
            (p * charge for (p, _), charge in zip(side.terms, charges, strict=True)), arb(0)
        )
        assert all(charge >= 0 for charge in charges)
        assert spent <= budget and spent > 0.999 * budget


def test_the_origin_is_nowhere_nearer_than_the_least_angle_says():
    """For angles from less than a right one on the origin's foot is cos A before y, else -cos A
    behind, A the least of them."""
    s = arb(2)
    for low in (0.0, 0.5, 1.0, 1.5):
        line = Angles(low, math.pi)._without_record(arb(low), s)
        assert float(line.f) == pytest.approx(math.cos(low) / 2)
        assert line.f >= math.cos(low) / 2 - 1e-15
        assert line.d == 1 / s
    behind = Angles(2.0, math.pi)._without_record(arb(2), s)
    assert isinstance(behind, Middle)
    assert float(behind.r) == pytest.approx(-math.cos(2.0) / 2)


# --- Recursion ------------------------------------------------------------------------------------


STEP = 0.125


def with_losses(low, middle, high, mass):
    """Return Q-masses at losses of so many steps, that of the highest given, for which both P,
    which has e^loss times as much, and Q have a total of 1."""
    ratios = [math.exp(x * STEP) for x in (low, middle, high)]
    sums = np.array([1 - mass, 1 - mass * ratios[2]])
    first, second = np.linalg.solve([[1, 1], ratios[:2]], sums)
    return {low: float(first), middle: float(second), high: mass}


CELLS = (with_losses(-2, 1, 3, 0.05), with_losses(-4, 1, 2, 0.3))


def laws_of(masses, swapped):
    """Return P-masses by loss, or, for the other order of the data sets, Q-masses."""
    if swapped:
        return {-x: mass for x, mass in masses.items()}
    return {x: mass * math.exp(x * STEP) for x, mass in masses.items()}


def best_play(a, steps, swapped):
    """Return the value of the adaptive game on CELLS, at all orders, by recursion over all
    losses."""
    if steps == 0:
        return max(1 - a, 0.0)
    laws = [laws_of(masses, swapped) for masses in CELLS]
    return max(
        sum(m * best_play(a * math.exp(-x * STEP), steps - 1, swapped) for x, m in law.items())
        for law in laws
    )


def test_both_orders_have_values_of_their_own():
    orders = []
    for swapped in (False, True):
        rows = [sorted(laws_of(masses, swapped).items()) for masses in CELLS]
        orders.append(
            [Law(STEP, 0.0, [x for x, _ in row], [m for _, m in row], 0.0) for row in rows]
        )
    play, steps = Play(arb(STEP), 15), 3
    found = play.value(orders, arb(0), steps)
    truth = [
        [best_play(math.exp(i * STEP), steps, swapped) for i in range(play.points)]
        for swapped in (False, True)
    ]
    for W, exact in zip(found, truth, strict=True):
        assert pytest.approx(exact, rel=1e-12, abs=1e-15) == W
    # planted fault: that orders below 1 are those of the other data sets is forgotten
    alone = [play.value([laws], arb(0), steps)[0][0] for laws in orders]
    assert alone[0] != pytest.approx(truth[0][0], rel=1e-3)
    assert alone[1] != pytest.approx(truth[1][0], rel=1e-3)


def best_play_to_60_digits(laws, a, steps):
    """Return the value of the game on these laws, whose other order has the same ones."""
    if steps == 0:
        return max(1 - a, mpmath.mpf(0))
    return max(
        sum(
            mass * best_play_to_60_digits(laws, a * mpmath.exp(-x * mpmath.mpf(STEP)), steps - 1)
            for x, mass in law.items()
        )
        for law in laws
    )


@pytest.mark.parametrize("small", [0.1, 1e-9, 1e-200, 1e-310])
def test_the_recursion_is_rounded_up(small):
    """The result is never below the truth, and never above it by more than roundings and the floor,
    however small it is."""
    generator = np.random.default_rng(41)
    laws = []
    for _ in range(3):
        # no loss below 0: from orders above 1 the others are out of reach
        losses = np.sort(generator.choice(np.arange(1, 30), size=6, replace=False))
        masses = small * generator.uniform(size=6) * 10.0 ** generator.integers(-6, 1, size=6)
        laws.append(dict(zip(losses.tolist(), masses.tolist(), strict=True)))
    rows = [Law(STEP, 0.0, list(law), [arb(m) for m in law.values()], 0.0) for law in laws]
    (found,) = Play(arb(STEP), 12).value([rows], arb(0), 1)
    with mpmath.workdps(60):
        for i, value in enumerate(found.tolist()):
            a = mpmath.exp(i * mpmath.mpf(STEP))
            truth = best_play_to_60_digits(laws, a, 1)
            assert truth <= value <= truth * (1 + 1e-13) + 4 * FLOOR


def test_many_steps_are_rounded_up():
    """Without other losses than 0 and infinity W_k is 1 - (1 - xi)^k, and the recursion adds up k
    xi, which is at least that."""
    law = Law(STEP, 0.0, [0], [arb(1)], 2.0**-30)
    (found,) = Play(arb(STEP), 3).value([[law]], arb(law.infinity), 1000)
    assert all(1000 * 2.0**-30 <= value <= 1000 * 2.0**-30 * (1 + 1e-11) for value in found)


def test_a_number_that_is_none_stays_so():
    assert above(arb(0)) == 0.0
    assert above(arb(-1)) == 0.0
    assert above(arb(0, 1e-30)) > 0
    assert above(arb(1) / 3) > 1 / 3 - 2.0**-60
    assert math.isnan(above(arb("nan")))
    assert above(arb("inf")) == math.inf
    laws = [Law(STEP, 0.0, [0, 1], [arb("nan"), arb(0.5)], 0.0), Law(STEP, 0.0, [0], [arb(1)], 0.0)]
    with np.errstate(all="ignore"):
        (found,) = Play(arb(STEP), 3).value([laws], arb(0), 2)
    assert np.isnan(found).all()


def test_between_points_lies_the_chord():
    """The chord is one in the order, not in the loss: a value that falls linearly in the order is
    met."""
    play = Play(arb(STEP), 9)
    W = 1 - np.exp(np.arange(9) * STEP) / 4
    for epsilon in (0.0, 0.06, STEP, 0.3, 0.9, 7.99 * STEP, 8 * STEP):
        exact = 1 - math.exp(epsilon) / 4
        assert float(at_epsilon(play, W, arb(epsilon))) == pytest.approx(exact, rel=1e-12)
    # beyond the last point it is what it is there
    for epsilon in (8.01 * STEP, 9 * STEP, 100.0):
        assert float(at_epsilon(play, W, arb(epsilon))) == W[-1]
    assert float(at_epsilon(Play(arb(STEP), 1), W[:1], arb(0.3))) == W[0]


@pytest.mark.parametrize(("step", "place", "epsilon"), [(0.1, 5, 0.5), (0.07, 9, 0.63)])
def test_a_point_that_is_right_of_epsilon_by_a_rounding_is_not_taken(step, place, epsilon):
    """At such a point the quotient of the doubles is whole, and that of the numbers is a little
    less."""
    assert math.floor(epsilon / step) == place and place * arb(step) > epsilon
    W = np.zeros(12)
    W[:place] = 1.0
    found = at_epsilon(Play(arb(step), 12), W, arb(epsilon))
    assert found > 0 and found < 1e-12


def test_points_are_taken_in_pieces(monkeypatch):
    rows = [sorted(laws_of(masses, False).items()) for masses in CELLS]
    laws = [Law(STEP, 0.0, [x for x, _ in row], [arb(m) for _, m in row], 0.0) for row in rows]
    (whole,) = Play(arb(STEP), 15).value([laws], arb(0), 3)
    monkeypatch.setattr(game, "MOST_AT_ONCE", 20)
    (pieces,) = Play(arb(STEP), 15).value([laws], arb(0), 3)
    assert pieces == pytest.approx(whole, rel=1e-14)


# --- Certificates ---------------------------------------------------------------------------------


GAMES = {
    "gaussian": (dpsub.Wor(4), 20, {"noise_multiplier": 2, "steps": 2, "delta": 1e-2}),
    "laplace": (
        dpsub.Wor(50),
        1000,
        {"noise_multiplier": 4, "steps": 20, "delta": 1e-3, "mechanism": "laplace"},
    ),
    "zero_out": (
        dpsub.Wor(3),
        10,
        {
            "noise_multiplier": 4,
            "steps": 6,
            "delta": 1e-2,
            "adjacency": "zero_out",
            "width": 0.01,
            "effort": None,
        },
    ),
}


@cache
def made(name):
    sampler, n, asked = GAMES[name]
    relation = {"adjacency": "substitute"}
    found = dpsub.account(sampler, n, quick=False, **(relation | asked)).certificate()
    found["claim"]["lower"] = None
    return found


@pytest.fixture(
    params=[
        "laplace",
        pytest.param("zero_out", marks=pytest.mark.slow),
        pytest.param("gaussian", marks=pytest.mark.slow),
    ]
)
def certificate(request):
    """Return the certificate of a game that is quick to play again, and among the slow tests of one
    with a value for each order of the data sets and of one with cells of the plane."""
    return copy.deepcopy(made(request.param))


def removed_cell(data):
    cells = data["upper"]["game"]["cells"]
    del cells[len(cells) // 2]


def less_mass(data):
    """Lower all cells' laws by a hair, at the loss that matters most."""
    for entry in data["upper"]["game"]["cells"]:
        law = entry["law"]
        costs = [mass * index for mass, index in zip(law["masses"], law["indices"], strict=True)]
        law["masses"][costs.index(max(costs))] *= 1 - 1e-4


def less_noise(data):
    data["question"]["releases"][0]["noise_multiplier"] *= 0.999


def larger_sample(data):
    data["question"]["releases"][0]["sampler"]["m"] += 1


def more_steps(data):
    data["question"]["releases"][0]["steps"] += 1


def steps_everywhere(data):
    data["question"]["releases"][0]["steps"] += 1
    data["upper"]["game"]["steps"] += 1


def other_relation(data):
    is_substitute = data["question"]["adjacency"] == "substitute"
    data["question"]["adjacency"] = "zero_out" if is_substitute else "substitute"


def claimed(data):
    data["claim"]["upper"] *= 1 - 1e-4


def shifted(data):
    for entry in data["upper"]["game"]["cells"]:
        entry["law"]["offset"] -= entry["law"]["step"]


def another_step(data):
    """Change the step of the grid that W is kept on, alone."""
    data["upper"]["game"]["cells"][0]["law"]["step"] *= 1.001


def other_noise(data):
    release = data["question"]["releases"][0]
    release["mechanism"] = "laplace" if release["mechanism"] == "gaussian" else "gaussian"


def swapped_laws(data):
    """Exchange two laws."""
    cells = data["upper"]["game"]["cells"]
    cells[0]["law"], cells[-1]["law"] = cells[-1]["law"], cells[0]["law"]


MUTATIONS = (
    removed_cell,
    less_mass,
    less_noise,
    larger_sample,
    more_steps,
    steps_everywhere,
    other_relation,
    claimed,
    shifted,
    another_step,
    other_noise,
    swapped_laws,
)


def no_backward(data):
    for entry in data["upper"]["game"]["cells"]:
        del entry["backward"]


def orders_exchanged(data):
    for entry in data["upper"]["game"]["cells"]:
        entry["law"], entry["backward"] = entry["backward"], entry["law"]


def forward_twice(data):
    for entry in data["upper"]["game"]["cells"]:
        entry["backward"] = entry["law"]


def less_backward_mass(data):
    """Lower the laws of the other order at the loss that matters most."""
    for entry in data["upper"]["game"]["cells"]:
        law = entry["backward"]
        costs = [mass * index for mass, index in zip(law["masses"], law["indices"], strict=True)]
        law["masses"][costs.index(max(costs))] *= 0.99


def another_grid_backward(data):
    data["upper"]["game"]["cells"][-1]["backward"]["step"] *= 1.001


def gap_of_angles(data):
    cell = max((entry["cell"] for entry in data["upper"]["game"]["cells"]), key=max)
    cell[1] = math.nextafter(cell[1], 0)


def moved_angles(data):
    """Give a cell the law of fillers that are far less harmful."""
    cells = data["upper"]["game"]["cells"]
    cells.sort(key=lambda entry: entry["cell"])
    cells[0]["cell"], cells[1]["cell"] = cells[1]["cell"], cells[0]["cell"]


def theorem_of_substitution(data):
    data["upper"]["game"]["theorem"] = "15"


def theorem_of_one_step(data):
    data["upper"]["game"]["theorem"] = "22"


def everyone(data):
    data["question"]["releases"][0]["sampler"]["m"] = data["question"]["releases"][0]["n"]


def group(data):
    data["question"]["releases"][0]["group"] = 2


OF_BOTH_ORDERS = (
    no_backward,
    orders_exchanged,
    forward_twice,
    less_backward_mass,
    another_grid_backward,
    gap_of_angles,
    moved_angles,
    theorem_of_substitution,
    theorem_of_one_step,
    everyone,
    group,
)


@pytest.mark.parametrize("mutate", few(OF_BOTH_ORDERS, most=4))
def test_one_wrong_entry_of_both_orders_is_refuted(mutate, tmp_path):
    data = copy.deepcopy(made("zero_out"))
    mutate(data)
    lines, code = proved_again(data, tmp_path)
    # what is another schema is not read
    assert code in (REFUTED, UNREADABLE), lines


@pytest.mark.parametrize("name", few(reversed(GAMES)))
def test_a_game_is_proved_again(name, tmp_path):
    lines, code = proved_again(made(name), tmp_path)
    assert code == VERIFIED, lines
    assert "cells, " in lines[0]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_one_wrong_entry_is_refuted(certificate, mutate, tmp_path):
    mutate(certificate)
    lines, code = proved_again(certificate, tmp_path)
    assert code == REFUTED, lines


def test_losses_of_another_grid_are_not_played(tmp_path):
    """All losses are moved by an offset, which the recursion would take for smaller losses, and
    prove a claim that is false; or one law has a grid of its own, which it would take for the
    others'."""
    by_offset = copy.deepcopy(made("laplace"))
    for entry in by_offset["upper"]["game"]["cells"]:
        law = entry["law"]
        law["offset"], law["indices"] = 9 * law["step"], [i - 9 for i in law["indices"]]
    by_offset["claim"]["upper"] *= 0.9
    finer = copy.deepcopy(made("laplace"))
    law = finer["upper"]["game"]["cells"][-1]["law"]
    law["step"], law["indices"] = law["step"] / 2, [2 * i for i in law["indices"]]
    for forged in (by_offset, finer):
        lines, code = proved_again(forged, tmp_path)
        assert code == REFUTED
        assert "one grid step, and the offset 0" in lines[0]


def test_points_that_end_too_early_prove_less(certificate, tmp_path):
    certificate["upper"]["game"]["points"] //= 4
    assert proved_again(certificate, tmp_path)[1] == REFUTED


def test_hours_are_not_spent(certificate, tmp_path):
    certificate["question"]["releases"][0]["steps"] = certificate["upper"]["game"]["steps"] = 10**8
    lines, code = proved_again(certificate, tmp_path)
    assert code == NOT_COVERED
    assert "too large" in lines[0] and "terms of sums" in lines[0]


@pytest.mark.parametrize("far", [10**9, -(10**9)])
def test_losses_that_lead_far_away_are_too_large(far, tmp_path):
    """The losses are few and next to each other: their sizes alone are too large."""
    data = copy.deepcopy(made("laplace"))
    for entry in data["upper"]["game"]["cells"]:
        entry["law"]["indices"] = [index + far for index in entry["law"]["indices"]]
    lines, code = proved_again(data, tmp_path)
    assert code == NOT_COVERED
    assert "too large" in lines[0] and "a loss leads to" in lines[0]


@pytest.mark.parametrize(
    ("points", "width", "laws", "steps"),
    few(
        [
            (2**20, 2, 1, 1),
            (2**19, 2**19 + 2, 1, 1),
            (2**10, 2**10, 4, 170_000),
            (8, 2**19, 129, 1),
        ],
        most=3,
    ),
)
def test_what_a_game_takes_is_counted_first(points, width, laws, steps):
    law = Law(STEP, 0.0, range(width), [], 0.0)
    check_work("15", [law], 8, 1)
    with pytest.raises(NotCovered, match="too large"):
        check_work("15", [law] * laws, points, steps)


def test_one_cell_is_theorem_2(tmp_path):
    """The law of a plain answer dominates every choice: as the law of one cell it proves the same
    claim."""
    answer = dpsub.account(
        dpsub.Wor(4), 20, adjacency="substitute", noise_multiplier=2, steps=2, epsilon=0.5
    )
    data = answer.certificate()
    data["claim"]["lower"] = None
    law = data["upper"]["forward"][0]["law"]
    assert law["offset"] == 0
    cells = [{"cell": [0.0, HALF, -HALF, HALF], "law": law}]
    points = law["indices"][-1] + 1
    data["upper"] = {
        "game": {
            "release": 0,
            "steps": 2,
            "theorem": "15",
            "section": "4.1",
            "points": points,
            "cells": cells,
        }
    }
    lines, code = proved_again(data, tmp_path)
    assert code == VERIFIED, lines


@pytest.mark.slow
def test_with_replacement(tmp_path):
    asked = {"noise_multiplier": 4, "steps": 2, "delta": 1e-2, "adjacency": "substitute"}
    data = dpsub.account(dpsub.Wr(2), 20, quick=False, **asked).certificate()
    data["claim"]["lower"] = None
    lines, code = proved_again(data, tmp_path)
    assert code == VERIFIED, lines
    assert "Theorem 22" in lines[0]
    data["upper"]["game"]["theorem"] = "15"
    assert proved_again(data, tmp_path)[1] == REFUTED
    data["upper"]["game"]["theorem"] = "22"
    data["claim"]["upper"] *= 0.999
    assert proved_again(data, tmp_path)[1] == REFUTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "n", "noise_multiplier", "steps", "delta"),
    [
        (dpsub.Wr(5), 50, 2, 10, 1e-3),
        (dpsub.MustOW(100, 20), 1000, 2, 50, 1e-5),
    ],
)
def test_samples_with_replacement(sampler, n, noise_multiplier, steps, delta, tmp_path):
    answer = dpsub.account(
        sampler,
        n,
        adjacency="substitute",
        noise_multiplier=noise_multiplier,
        steps=steps,
        delta=delta,
        quick=False,
    )
    lines, code = proved_again(answer.certificate(), tmp_path)
    assert code == VERIFIED, lines
    assert "Theorem 22" in lines[0]


@pytest.mark.thorough
def test_two_stages_with_replacement(tmp_path):
    asked = {"noise_multiplier": 2, "steps": 10, "delta": 1e-3, "width": 0.03}
    asked["adjacency"] = "substitute"
    answer = dpsub.account(dpsub.MustWW(20, 5), 200, quick=False, effort=None, **asked)
    data = answer.certificate()
    data["claim"]["lower"] = None
    lines, code = proved_again(data, tmp_path)
    assert code == VERIFIED, lines
    assert "Theorem 65" in lines[0]
    # planted faults: a theorem about another sampler, a claim that is too strong
    data["upper"]["game"]["theorem"] = "22"
    assert proved_again(data, tmp_path)[1] == REFUTED
    data["upper"]["game"]["theorem"] = "65"
    data["claim"]["upper"] *= 0.999
    assert proved_again(data, tmp_path)[1] == REFUTED


@pytest.mark.slow
def test_a_thousand_steps(tmp_path):
    answer = dpsub.account(
        dpsub.Wor(200),
        10_000,
        adjacency="substitute",
        noise_multiplier=4,
        steps=1000,
        delta=1e-5,
        quick=False,
    )
    lines, code = proved_again(answer.certificate(), tmp_path)
    assert code == VERIFIED, lines
    assert "Theorem 15" in lines[0]


@pytest.mark.slow
def test_a_thousand_steps_under_zero_out(tmp_path):
    asked = {"noise_multiplier": 4, "steps": 1000, "delta": 1e-5, "adjacency": "zero_out"}
    answer = dpsub.account(dpsub.Wor(200), 10_000, quick=False, effort=None, **asked)
    data = answer.certificate()
    # the game's own end, to nine digits
    assert data["claim"]["upper"] == pytest.approx(answer.upper, rel=1e-8)
    lines, code = proved_again(data, tmp_path)
    assert code == VERIFIED, lines
    assert "Theorem 70" in lines[0]

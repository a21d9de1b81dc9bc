"""The filler flip, laws of likelihood ratios, the largest sum of an epoch: closed forms and
mutations."""

import copy
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from allocation import LogNormal, Mean, Ratios, are_blocks, below, lacking, read_sums
from attacks import Sums
from balls import ZERO, NotCovered, Refuted, set_precision
from cells import (
    Events,
    Frontier,
    Largest,
    Mixture,
    laplace_below,
    largest_step,
    masses,
    normal_below,
)
from certificate import NOT_COVERED, REFUTED, VERIFIED
from events import Curve, Noise
from flint import arb
from policy import Flip
from scipy.stats import laplace, norm

import dpsub
from tests.few import few
from tests.verifier.proving import proved_again


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-6)


def signs(q, s, laplace=False):
    """Return, for WOR under substitution, the pair of laws for fillers at -1, and for fillers at
    1."""

    def mixture(centre):
        centres = [Fraction(0), Fraction(centre)]
        return Mixture([1 - arb(q), arb(q)], centres, s, laplace, arb(0))

    return [(mixture(2), mixture(0)), (mixture(0), mixture(-2))]


def test_one_step_attains_the_profile_but_not_more():
    q, a = 0.25, math.exp(0.5)
    lifted = 1 + (a - 1) / q
    place = math.log(lifted) / 2
    gaussian = q * (norm.cdf(1 - place) - lifted * norm.cdf(-1 - place))
    of_laplace = q - math.sqrt(q * math.exp(-2) * (a - 1 + q))
    for exact, is_laplace in ((gaussian, False), (of_laplace, True)):
        value = float(
            Flip(0.01, -400, 300, 128).value(signs(q, 1.0, is_laplace), arb(0.5), [[1, 1]])
        )
        assert exact - 1e-5 < value <= exact


def test_two_steps_beat_both_static_fillers():
    # By quadrature over the first output, with the exact profile of the second: .51662.
    value = float(Flip(0.01, -1200, 1200, 128).value(signs(0.5, 1.0), arb(0), [[1, 2]]))
    assert 0.51660 < value < 0.516625
    kept = float(Flip(0.01, -1200, 1200, 128).value(signs(0.5, 1.0), arb(0), [[2, 1]]))
    assert 0.4953 < kept < 0.4955


@pytest.mark.parametrize("length", [1, 2, 7])
def test_moves_are_rounded_down_on_one_side_and_up_on_the_other(length):
    """In units of 2^-bits, moves that are not followed are among those that are lost, and the
    others are there."""
    flip, lost = Flip(0.05, -400, 400, 64), 0
    for s in (1.0, 0.3):
        for pair in signs(0.01, s):
            block = flip.power(flip.kernel(*pair), length)
            assert sum(block.first) < 2**64 <= sum(block.second) + block.lost
            assert max(2**64 - sum(block.first), block.lost) < 2**64 // 1000
            lost = max(lost, block.lost)
    assert lost > 0


def test_pairs_are_summed_as_if_they_were_listed():
    generator = np.random.default_rng(4)
    laws = [
        Ratios(sorted(generator.lognormal(size=n).tolist()), generator.random(n).tolist())
        for n in (7, 12)
    ]
    mean = Mean(*laws, 2, 3)
    one, other = (np.array(law.ratios) for law in laws)
    masses = [
        np.array(
            [
                float(law.parted(i).right_q - law.parted(i + 1).right_q)
                for i in range(len(law.ratios))
            ]
        )
        for law in laws
    ]
    ratios, weights = np.add.outer(2 * one, 3 * other) / 5, np.outer(*masses)
    for a in (0.0, 0.3, 1.0, 1.7, 9.0):
        parted, right = mean.beyond(a), ratios > a
        assert float(parted.right_q) == pytest.approx(weights[right].sum())
        assert float(parted.right_p) == pytest.approx((weights * ratios)[right].sum())
        assert float(parted.left_q) == pytest.approx(weights[~right].sum())
        assert float(parted.left_p) == pytest.approx((weights * ratios)[~right].sum())


ONE_STEP = LogNormal(arb(1))
EDGES = np.exp(np.linspace(-4, 4, 60))
ORDERS = [0.2, 0.7, 1.0, 1.3, 2.5, 6.0]


def spread():
    """Return the log-normal law for distance 1, its cells moved to their edges: above it, except
    for the part that is lost beyond the last one."""
    z = np.log(EDGES) + 0.5
    q = np.diff(norm.cdf([-np.inf, *z, np.inf]))
    p = np.diff(norm.cdf(np.array([-np.inf, *z, np.inf]) - 1))
    ends = np.array([0.0, *EDGES])
    masses = np.zeros(len(ends))
    for cell in range(len(EDGES)):
        right = (p[cell] - q[cell] * ends[cell]) / (ends[cell + 1] - ends[cell])
        masses[[cell, cell + 1]] += q[cell] - right, right
    masses[-1] += q[-1]
    return ends, masses, p[-1] - q[-1] * ends[-1]


def grouped():
    """Return the log-normal law with its cells at their means: below it."""
    z = np.array([-np.inf, *(np.log(EDGES) + 0.5), np.inf])
    q, p = np.diff(norm.cdf(z)), np.diff(norm.cdf(z - 1))
    return p / q, q


def above_and_under(a):
    """Return E (R - a)_+ and E (a - R)_+ of the log-normal R."""
    right = norm.cdf(0.5 - np.log(a)) - a * norm.cdf(-0.5 - np.log(a))
    return right, right + a - 1


@pytest.mark.parametrize("lost", [0.0, 1e-9, 0.01])
@pytest.mark.parametrize("law", ["above", "below"])
def test_what_a_law_of_ratios_lacks_is_added(law, lost):
    """The missing amount is added for E (R - a)_+, whatever loss the file states."""
    ratios, masses = spread()[:2] if law == "above" else grouped()
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "lost": lost, "edges": []}
    row["masses"] = [masses[0] + 1e-9, *masses[1:].tolist()]
    shown = read_sums([row], ONE_STEP, True, "C", "", arb(0))
    for a in [*ORDERS, *ratios[5:-5].tolist()]:
        assert above_and_under(a)[0] - 1e-15 <= float(shown.forward(arb(a))) < 1.1


def pairs(ratios, masses):
    """Return the law of the mean of two."""
    sums, weights = np.add.outer(ratios, ratios).ravel() / 2, np.outer(masses, masses).ravel()
    apart, place = np.unique(sums, return_inverse=True)
    return {
        "terms": 2,
        "of": [0, 0],
        "ratios": apart.tolist(),
        "masses": np.bincount(place, weights).tolist(),
    }


@pytest.mark.parametrize("share", [1.0, 0.99, 0.7])
def test_what_a_law_of_ratios_lacks_is_multiplied(share):
    """The missing factor is applied for E (a - R)_+, also of a mean of two."""
    ratios, masses, _ = spread()
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "lost": 0.0, "edges": []}
    row["masses"] = (masses * share).tolist()
    shown = read_sums([row], ONE_STEP, True, "D", "", arb(0))
    for a in ORDERS:
        # backward is H at the order 1/a, over the order
        found = float(shown.backward(1 / arb(a))) * a
        assert above_and_under(a)[1] * (1 - 1e-12) <= found < 2 * above_and_under(a)[1] + 0.01
    of_two = read_sums([row, row | pairs(ratios, masses * share)], ONE_STEP, True, "D", "", arb(0))
    row["masses"] = masses.tolist()
    whole = read_sums([row, row | pairs(ratios, masses)], ONE_STEP, True, "D", "", arb(0))
    for a in ORDERS:
        assert float(of_two.backward(arb(a))) >= float(whole.backward(arb(a))) * (1 - 1e-12)


def test_what_a_lower_end_has_too_much_of_is_taken_off():
    """A negligible amount is taken off at every order, and for a mean that of both."""
    ratios, masses = grouped()
    ratios[30] *= 1.01
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "masses": masses.tolist()}
    row |= {"lost": 0.0, "edges": EDGES.tolist()}
    shown = read_sums([row], ONE_STEP, False, "C", "", arb(0.01))
    assert shown.short > 1e-6 and shown.factor == 1
    # at the ends of cells what is too much is not hidden by the grouping
    for a in EDGES[27:30]:
        assert float(shown.law.above(arb(a))) > above_and_under(a)[0] + 1e-6
        assert float(shown.forward(arb(a))) <= above_and_under(a)[0] + 1e-15
    both = row | pairs(ratios, masses)
    both["edges"] = ((np.array(both["ratios"][1:]) + both["ratios"][:-1]) / 2).tolist()
    assert read_sums([row, both], ONE_STEP, False, "C", "", arb(0.01)).short >= shown.short


@pytest.mark.parametrize("side", ["C", "D"])
def test_what_a_lower_end_says_is_lost_counts_for_nothing(side):
    ratios, masses = grouped()
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "masses": masses.tolist()}
    row |= {"lost": 0.3, "edges": EDGES.tolist()}
    shown = read_sums([row], ONE_STEP, False, side, "", arb(0))
    for a in ORDERS:
        right, left = above_and_under(a)
        forward, backward = float(shown.forward(arb(a))), float(shown.backward(1 / arb(a))) * a
        found, truth = (forward, right) if side == "C" else (backward, left)
        assert 0.9 * truth - 0.01 < found <= truth * (1 + 1e-12)


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [(2, 1)],
        [(3, 1)],
        [(2, 2)],
        [(2, 1), (3, 2)],
        [(2, 1), (2, 1), (3, 1)],
        [(1, 1), (4, 1)],
        [(5, 1)],
    ],
)
def test_other_blocks_than_those_of_theorem_27_are_refuted(blocks):
    """Two of five steps make one block of two and one of three."""

    def rows(sizes):
        return [{"times": times, "sums": [{"terms": size}]} for size, times in sizes]

    are_blocks(5, 2, 1, rows([(2, 1), (3, 1)]))
    are_blocks(5, 2, 3, rows([(3, 1), (2, 3), (3, 2)]))
    with pytest.raises(Refuted):
        are_blocks(5, 2, 1, rows(blocks))


def test_fewer_and_larger_ratios_are_no_law():
    """Such laws are above one term, as their mean is 1, and their own mean is below that of
    several."""
    row = {"terms": 1, "of": None, "ratios": [0.5, 2.0], "masses": [0.25, 0.4], "lost": 0.2}
    row["edges"] = [1.0]
    with pytest.raises(Refuted, match="add up to less than 1"):
        read_sums([row], ONE_STEP, True, "C", "here", arb(0))


def test_terms_are_counted_and_not_believed():
    row = {"terms": 1, "of": None, "ratios": [0.5, 2.0], "masses": [0.8, 0.4], "lost": 0.2}
    rows = [row, row | {"terms": 3, "of": [0, 0]}]
    for upper in (True, False):
        with pytest.raises(Refuted, match="mean of 2 terms, not of 3"):
            read_sums(
                [each | {"edges": [1.0]} for each in rows], ONE_STEP, upper, "C", "here", arb(0)
            )


def test_a_law_is_above_or_below_the_log_normal_only_if_it_is():
    edges = np.exp(np.linspace(-3, 3, 200))
    z = np.concatenate([[-np.inf], np.log(edges) + 0.5, [np.inf]])
    q, p = np.diff(norm.cdf(z)), np.diff(norm.cdf(z - 1))
    made = LogNormal(arb(1))
    grouped = Ratios((p / q).tolist(), (q * (1 - 1e-10)).tolist())
    for side in ("C", "D"):
        factor, short = below(grouped, made, edges.tolist(), side, arb(0))
        assert float(factor) > 1 - 1e-9 and short == 0
    assert float(lacking(grouped, made)) > 1e-6
    raised = (p / q).tolist()
    raised[100] *= 1.01
    too_high = Ratios(raised, q.tolist())
    factor, short = below(too_high, made, edges.tolist(), "C", arb(0))
    assert float(factor) < 1 - 1e-6 and short == 0
    # what a factor does to all of the law, an amount does to each order
    factor, short = below(too_high, made, edges.tolist(), "C", arb(0.01))
    excess = max(
        sum(w * max(r - a, 0) for r, w in zip(raised, q, strict=True))
        - (norm.cdf(0.5 - np.log(a)) - a * norm.cdf(-0.5 - np.log(a)))
        for a in raised[95:105]
    )
    assert float(factor) > 1 - 1e-9 and 1e-6 < excess <= float(short) < 1e-3


def test_events_of_the_largest_sum():
    shift, s, batches = Fraction(2), 0.8, 5
    P, Q = (Largest(each, batches, arb(s)) for each in (shift, Fraction(0)))
    events = Frontier(P, Q, 0.01, 3000, 1e-20)
    for t in (0.5, 1.3, 2.4):
        below = norm.cdf(t / s) ** (batches - 1)
        first, second = 1 - norm.cdf((t - 2) / s) * below, 1 - norm.cdf(t / s) * below
        value = float(events.attained(arb(second)))
        # the likelihood ratio rises: half-lines are best
        assert first - 1e-4 < value <= first + 1e-12
        # and those of whole cells are cut as far as is asked for, if that is not out of reach
        cut, far = (events.event(arb(second), arb(first + more)) for more in (0.0, 1e-3))
        assert first - 1e-12 < float(cut) <= first + 1e-12
        assert value <= float(far) <= first + 1e-12


def ends(x):
    return float(x.lower()), float(x.upper())


def test_tails_of_noise_on_either_side():
    """Tails are those of a ball that holds 0, too, where the two formulas meet."""
    for t in (-30.0, -0.7, 0.0, 0.7, 30.0):
        exact = laplace.sf(t), laplace.cdf(t)
        assert float(Noise(True).tail(arb(t))) == pytest.approx(exact[0], rel=1e-14)
        assert float(laplace_below(arb(t))) == pytest.approx(exact[1], rel=1e-14)
        assert Noise(True).log_tail(t) == pytest.approx(math.log(exact[0]), rel=1e-12)
        assert float(Noise(False).tail(arb(t))) == pytest.approx(norm.sf(t), rel=1e-12)
        assert float(normal_below(arb(t))) == pytest.approx(norm.cdf(t), rel=1e-12)
        assert Noise(False).log_tail(t) == pytest.approx(norm.logsf(t), rel=1e-12)
    assert Noise(False).log_tail(40.0) == pytest.approx(norm.logsf(40.0), rel=1e-6)
    about = arb(0, 0.1)
    for ball, least, most in (
        (Noise(True).tail(about), laplace.sf(0.1), laplace.sf(-0.1)),
        (laplace_below(about), laplace.cdf(-0.1), laplace.cdf(0.1)),
    ):
        low, high = ends(ball)
        assert low <= least and most <= high


def test_events_take_no_more_than_they_may():
    cells = [(arb(0.5), arb(0.1)), (arb(0.3), arb(0.3)), (arb(0.2), arb(0.5))]
    events = Events(cells, arb(0.05))

    def attained(charge):
        return float(events.attained(arb(charge)))

    # not even what is unseen
    assert attained(0.04) == 0 and attained(-1) == 0
    assert attained(0.05) == 0
    assert attained(0.1) == pytest.approx(0.25)
    # equal is allowed
    assert attained(float((arb(0.05) + arb(0.1)).upper()) + 1e-15) == pytest.approx(0.5)
    assert attained(0.3) == pytest.approx(0.65)
    # more than all there is
    assert attained(1.0) == pytest.approx(1.0) and attained(9.0) == pytest.approx(1.0)
    for wrong in ([(arb(0.5), arb("nan"))], [(arb(0.5), arb("inf"))]):
        with pytest.raises(NotCovered, match="no numbers"):
            Events([*cells, *wrong], arb(0))


@pytest.mark.parametrize("off", [-3.0, -0.1, -1e-9, 0.0, 1e-9, 0.1, 3.0])
@pytest.mark.parametrize("room", [1e-6, 0.2, 0.7])
def test_a_half_line_has_no_more_than_it_may_wherever_it_is_sought(off, room, monkeypatch):
    """The place is a hint: one that is too far to the left has too much under Q, and is moved."""
    first = Sums({Fraction(0): arb(0.5), Fraction(1): arb(0.5)}, ZERO)
    second = Sums({Fraction(0): arb(1)}, ZERO)
    curve = Curve(first, second, arb(1), Noise(False), arb(1e-30))
    best = norm.isf(room)
    most = (norm.sf(best) + norm.sf(best - 1)) / 2
    monkeypatch.setattr(curve, "place_of", lambda log_room: float(best) + off)
    # more is asked for than there is, so that it is sharpened as far as it goes
    for wanted in (arb(0), arb(most), arb(1)):
        assert float(curve.event(arb(room), wanted)) <= most * (1 + 1e-12)
    if abs(off) <= 1e-9:
        assert float(curve.event(arb(room), arb(1))) >= most * (1 - 1e-6)


@pytest.mark.parametrize(
    ("name", "is_laplace", "adjacency"),
    [
        ("wor", False, "zero_out"),
        ("shuffle", True, "zero_out"),
        ("shuffle", False, "add_remove"),
    ],
)
def test_the_largest_step_is_of_shuffled_epochs(name, is_laplace, adjacency):
    release = SimpleNamespace(name=name, laplace=is_laplace)
    with pytest.raises(NotCovered, match="largest step"):
        largest_step(SimpleNamespace(release=release, adjacency=adjacency))


@pytest.fixture(scope="module")
def certificates():
    # Sizes small enough for seconds; every statistic and theorem of these modules once.
    asked = {"noise_multiplier": 1.0, "delta": 1e-4}
    return {
        "flip": dpsub.account(
            dpsub.Wor(20), 100, steps=6, adjacency="substitute", **asked
        ).certificate(),
        "flip, zero_out": dpsub.account(
            dpsub.Wor(20), 100, steps=6, adjacency="zero_out", **asked
        ).certificate(),
        "sums": dpsub.account(
            dpsub.RandomAllocation(3), epochs=2, adjacency="add_remove", **asked
        ).certificate(),
        "epochs": dpsub.account(
            dpsub.Shuffle(25), 100, epochs=2, adjacency="zero_out", noise_multiplier=0.4, delta=1e-4
        ).certificate(),
    }


@pytest.mark.parametrize("name", few(["flip", "sums", "epochs", "flip, zero_out"], most=3))
def test_certificates_are_verified(name, certificates, tmp_path):
    assert proved_again(certificates[name], tmp_path)[1] == VERIFIED


@pytest.mark.slow
def test_rounding_far_out_does_not_lower_the_whole_of_a_coarse_law(tmp_path):
    answer = dpsub.account(
        dpsub.Shuffle(1), 1000, noise_multiplier=1.5, epochs=1, delta=1e-2, adjacency="substitute"
    )
    assert proved_again(answer.certificate(), tmp_path)[1] == VERIFIED


@pytest.mark.slow
def test_what_a_policy_leaves_out_is_seen_neither_where_epsilon_is_large(tmp_path):
    """On D' a probability is charged e^epsilon times, which is 10^18 times here."""
    answer = dpsub.account(
        dpsub.Wr(50),
        1000,
        noise_multiplier=1,
        steps=20,
        delta=1e-8,
        quick=True,
        adjacency="substitute",
    )
    assert answer.lower > 42
    assert proved_again(answer.certificate(), tmp_path)[1] == VERIFIED


def changed(certificate, place, change):
    certificate = copy.deepcopy(certificate)
    inner = certificate
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = change(inner[place[-1]])
    return certificate


UPPER, LOWER = ("upper", "forward", 0), ("lower", "parts", 0)
MUTATIONS = [
    ("flip", ("claim", "lower"), lambda x: x * 1.001),
    ("flip", ("lower", "blocks"), lambda blocks: [[1, 1], *blocks]),
    ("flip", ("lower", "step"), lambda x: x * 3),
    ("flip", ("lower", "window"), lambda window: [window[0], 0]),
    ("flip", ("lower", "data", "record"), lambda x: 0.99),
    ("flip", ("lower", "data", "other"), lambda x: 0),
    ("flip", ("question", "releases", 0, "noise_multiplier"), lambda x: x * 1.01),
    ("sums", ("claim", "lower"), lambda x: x * 1.01),
    ("sums", ("claim", "upper"), lambda x: x * 0.99),
    ("sums", (*UPPER, "sums", 0, "masses"), lambda masses: [m * 0.999 for m in masses]),
    ("sums", (*UPPER, "sums", 1, "ratios"), lambda ratios: [r * 0.999 for r in ratios]),
    ("sums", (*UPPER, "sums", 1, "of"), lambda of: [1, 0]),
    ("sums", (*UPPER, "sums", -1, "terms"), lambda terms: terms - 1),
    ("sums", (*UPPER, "times"), lambda times: times - 1),
    ("sums", (*UPPER, "law", "offset"), lambda x: x - 1e-3),
    ("sums", (*LOWER, "sums", -1, "ratios"), lambda ratios: [r * 1.01 for r in ratios]),
    ("sums", (*LOWER, "sums", 0, "masses"), lambda masses: [m * 1.01 for m in masses]),
    ("sums", (*LOWER, "law", "offset"), lambda x: x + 0.02),
    ("epochs", ("claim", "lower"), lambda x: x * 1.001),
    ("epochs", (*LOWER, "law", "masses"), lambda masses: [m * 1.001 for m in masses]),
    ("epochs", (*LOWER, "data", "filler"), lambda x: -0.99),
    ("epochs", ("question", "releases", 0, "sampler", "m"), lambda m: m - 5),
]


QUICK = [("flip", "blocks"), ("sums", "times"), ("epochs", "filler")]
PARAMETERS = [
    pytest.param(*row, marks=() if (row[0], row[1][-1]) in QUICK else pytest.mark.slow)
    for row in MUTATIONS
]


@pytest.mark.parametrize(("name", "place", "change"), PARAMETERS)
def test_mutations_are_refuted(name, place, change, certificates, tmp_path):
    mutated = changed(certificates[name], place, change)
    assert mutated != certificates[name]
    end_that_stays = "lower" if "upper" in place else "upper"
    mutated["claim"][end_that_stays] = None
    assert proved_again(mutated, tmp_path)[1] in (REFUTED, NOT_COVERED)


@pytest.mark.parametrize("edges", [[], [-1.0], [9.0], [-9.0, -1.0, 0.5, 1.5, 9.0, 40.0]])
def test_masses_of_far_cells_are_sharp(edges):
    half = Mixture([arb(1) / 2, arb(1) / 2], [Fraction(0), Fraction(2)], 1.0, False, arb(0))
    for law in (half, Largest(Fraction(2), 5, 1.0)):
        found = masses(law, edges)
        assert len(found) == len(edges) + 1
        assert sum(found, arb(0)).overlaps(arb(1))
        for left, right, mass in zip([-math.inf, *edges], [*edges, math.inf], found, strict=True):
            assert mass > 0
            if left > 5:
                assert mass.rad() <= mass.mid() * 1e-20
            below = arb(0) if math.isinf(left) else law.below(left)
            above = law.mass if math.isinf(right) else law.below(right)
            assert mass.overlaps(above - below)

"""Records that are in several steps of an epoch: sums over the steps, and moments given a sum, by
brute force; and certificates with one wrong entry."""

import copy
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from balls import ZERO, NotCovered, Refuted, Unreadable, set_precision
from certificate import NOT_COVERED, REFUTED, UNREADABLE, VERIFIED, check_upper_parts
from flint import arb, fmpz, fmpz_poly
from law import missing_by_chords
from moments import (
    AT_ZERO,
    FOURTH,
    MOST_OWN,
    QUADRATIC,
    WHOLE,
    Block,
    Chords,
    GivenSum,
    Scaled,
    Sum,
    _seen,
    check_blocks,
    moments_of,
    overlaps,
    read_sum,
)
from question import claim_of, read_question
from reading import EDGES as EDGES_OF_A_FILE
from scipy.stats import norm
from step_sums import law_of_sum, step_masses
from theorems import Shared

import dpsub
from profiles import Order
from tests.verifier.proving import proved_again

EDGES = [-0.7, 0.4, 1.1]


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-6)


def cells(mean, edges=EDGES):
    return np.diff(norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) - mean))


# --- Sums over the steps --------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [-20.0, -0.5, 0.0, 0.9, 20.0])
def test_numbers_of_a_step(mean):
    masses = step_masses([arb(x) for x in EDGES], arb(mean))
    assert [float(m) for m in masses] == pytest.approx(cells(mean), rel=1e-9)
    assert all(float(m.rad() / m.mid()) < 1e-30 for m in masses)


def test_sums_by_enumeration():
    edges = [arb(x) for x in EDGES]
    terms = [(step_masses(edges, arb(mean)), count) for mean, count in ((0.9, 2), (0.0, 3))]
    exact = Counter()
    for numbers in itertools.product(range(4), repeat=5):
        exact[sum(numbers)] += math.prod(
            cells(0.9 if place < 2 else 0.0)[i] for place, i in enumerate(numbers)
        )
    law = law_of_sum(terms, arb(10) ** -40)
    assert law.start == 0 and law.lost < 1e-39
    assert [float(m) for m in law.masses.coeffs()] == pytest.approx([exact[i] for i in range(16)])
    # what is dropped of tails is said, and may belong to any value
    cut = law_of_sum(terms, arb(1e-3))
    assert 0 < cut.lost < 0.02
    assert float(cut.total() + cut.lost) == pytest.approx(1, abs=1e-15)
    for value, mass in enumerate(cut.masses.coeffs(), start=cut.start):
        assert float(mass) - 1e-12 <= exact[value] <= float(mass + cut.lost) + 1e-12


@pytest.mark.parametrize("edges", [[], None, [True], [0.0, 0.0], [1.0, 0.5], [math.inf]], ids=str)
def test_what_are_no_edges(edges):
    assert EDGES_OF_A_FILE([1, 2.5], "edges") == [1.0, 2.5]
    with pytest.raises(Unreadable):
        EDGES_OF_A_FILE(edges, "edges")


# --- Moments given a sum --------------------------------------------------------------------------


def test_overlaps_by_enumeration():
    t, k, n = 5, 2, 3
    found = Counter()
    subsets = list(itertools.combinations(range(t), k))
    for drawn in itertools.product(subsets, repeat=n):
        times = Counter(step for subset in drawn for step in subset)
        held = Counter(times.values())
        found[tuple([t - len(times)] + [held[i] for i in range(1, n + 1)])] += 1
    exact = {key: Fraction(ways, len(subsets) ** n) for key, ways in found.items()}
    assert overlaps(t, k, n) == exact


def test_whole_numbers_enclose_products():
    generator = np.random.default_rng(5)
    bits, length = 60, 6

    def drawn():
        units = [int(x) for x in generator.integers(0, 2**58, size=length)]
        error = int(generator.integers(0, 2**20))
        more = generator.integers(0, 7 * error, length).tolist()
        exact = [unit + Fraction(x, 7) for unit, x in zip(units, more, strict=True)]
        return Scaled(fmpz_poly(units), fmpz(error), bits, length), exact

    for _ in range(20):
        (one, f), (other, g) = drawn(), drawn()
        factor = Fraction(int(generator.integers(1, 1000)), 64)
        enclosed = [
            (
                one * other,
                [sum(f[i] * g[j - i] for i in range(j + 1)) / 2**bits for j in range(length)],
            ),
            (one + other, [a + b for a, b in zip(f, g, strict=True)]),
            (one.times(arb(factor.numerator) / factor.denominator), [a * factor for a in f]),
        ]
        for made, exact in enclosed:
            units = [int(x) for x in made.units.coeffs()]
            assert all(u <= x <= u + int(made.error) for u, x in zip(units, exact, strict=True))


def brute_moments(t, k, s, n):
    """Return E_Q[L^n; T] by all n-tuples of subsets."""
    subsets = list(itertools.combinations(range(t), k))
    laws = [math.exp(i * (i - 1) / (2 * s * s)) * cells(i / s) for i in range(n + 1)]
    total = np.zeros(t * len(EDGES) + 1)
    for drawn in itertools.product(subsets, repeat=n):
        times = Counter(step for subset in drawn for step in subset)
        law = np.ones(1)
        for step in range(t):
            law = np.convolve(law, laws[times[step]])
        total += law / len(subsets) ** n
    return total


@pytest.mark.parametrize(("t", "k", "orders"), [(5, 1, range(5)), (9, 2, range(3))])
def test_moments_by_enumeration(t, k, orders):
    s = 1.3
    values = t * len(EDGES) + 1
    whole = Sum([arb(x) for x in EDGES], 0, 1, values)
    moments = moments_of(t, k, arb(s), whole)
    for n in orders:
        assert [float(m) for m in moments[n]] == pytest.approx(brute_moments(t, k, s, n), rel=1e-9)
        assert all(float(m.rad() / m.mid()) < 1e-30 for m in moments[n])
    # cells of three values from -2 on: those of place 0, of 1 to 3, ...
    gathered = moments_of(t, k, arb(s), Sum(whole.edges, -2, 3, 4))
    for n, exact in enumerate(moments):
        sums = [sum(exact[max(i, 0) : i + 3], ZERO) for i in (-2, 1, 4, 7)]
        assert all(abs(a - b) < 1e-30 for a, b in zip(gathered[n], sums, strict=True))


def test_polynomials_bound_the_divergence():
    """The bounds are compared with the divergences of simulated outputs, and are close to them
    where T tells much of L."""
    t, k, s = 9, 2, 1.5
    # where ln(1 + X/8) passes half-way points of a grid
    edges = s * np.log(8 * np.expm1((np.arange(120) + 0.5) * 0.02)) + 1 / (2 * s)
    total = Sum([arb(x) for x in edges.tolist()], 0, 1, t * edges.size + 1)
    given = GivenSum(moments_of(t, k, arb(s), total), arb(1e-30))
    z = np.random.default_rng(7).normal(size=(400_000, t))
    X = np.exp(z / s - 1 / (2 * s * s))
    L = (X.sum(axis=1) ** 2 - (X**2).sum(axis=1)) / (t * (t - 1))
    for a in (1.0, 1.5, 3.0):
        for forward in (True, False):
            values = np.maximum(L - a, 0) if forward else np.maximum(1 - a * L, 0)
            error = values.std() / math.sqrt(values.size)
            _, kinds = given.rough(a, forward)
            bound = float(given.bound(arb(a), forward, kinds))
            assert values.mean() - 4 * error < bound < values.mean() * 1.3 + 4 * error
            # any choice of polynomials is a bound
            for kind in range(AT_ZERO + 1):
                other = given.bound(arb(a), forward, [kind] * len(kinds))
                assert bound * (1 - 1e-12) <= float(other)


def test_polynomials_lie_above_what_they_bound(monkeypatch):
    """The polynomials are tried at one value of the sum, at which the ratio has any law on a few
    points."""
    generator = np.random.default_rng(72)

    def beaten():
        low = False
        for _ in range(100):
            points = np.exp(generator.normal(0.0, generator.choice([0.05, 0.5, 2.0]), 3))
            chances = generator.dirichlet([0.3] * 3)
            rows = [(arb(x), arb(c)) for x, c in zip(points, chances, strict=True)]
            moments = [[sum(c * x**n for x, c in rows)] for n in range(5)]
            given = GivenSum(moments, ZERO)
            given.outside = [ZERO, ZERO]
            for a in (1.0, 1.1, 3.0, 20.0):
                exact = {
                    True: chances @ np.maximum(points - a, 0.0),
                    False: chances @ np.maximum(1 - a * points, 0.0),
                }
                for forward, value in exact.items():
                    for kind in (QUADRATIC, FOURTH, WHOLE, AT_ZERO):
                        bound = given.bound(arb(a), forward, [kind])
                        low |= float(bound.upper()) < value * (1 - 1e-9) - 1e-12
        return low

    assert not beaten()
    # the fault: a fourth power that crosses the line
    monkeypatch.setattr("moments.QUARTIC", Fraction(7, 10) * Fraction(27, 256))
    assert beaten()


def test_the_least_of_two_bounds_is_taken_to_its_chords():
    """The law may be below both bounds where one takes over from the other, and is still above the
    chord."""
    rows = [
        (arb(a), arb(F), arb(m)) for a, F, m in ((0, 1, 0), (1, 0.5, 0), (2, 0.3, 0.1), (3, 0.1, 0))
    ]
    assert [float(x) for x in missing_by_chords(rows, arb(1e-9))] == pytest.approx([0, 0, 0, 0])
    rows[2] = (arb(2), arb(0.25), arb(0.1))
    assert float(missing_by_chords(rows, arb(1e-9))[2]) == pytest.approx(0.05)
    rows[3] = (arb(3), arb(0.1), arb(0.02))
    assert float(missing_by_chords(rows, arb(1e-9))[2]) == pytest.approx(0.1)


# --- Certificates ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates():
    asked = {"noise_multiplier": 2.0, "delta": 1e-2, "effort": None}
    several = dpsub.RandomAllocation(10, 2)
    found = {
        "moments": dpsub.account(several, **asked),
        "opposite": dpsub.account(several, **asked, adjacency="substitute"),
        "shuffled": dpsub.account(
            dpsub.Shuffle(10), 100, epochs=3, noise_multiplier=3.0, delta=1e-5, adjacency="zero_out"
        ),
    }
    return {name: json.loads(json.dumps(each.certificate())) for name, each in found.items()}


def changed(certificate, place, change):
    certificate = copy.deepcopy(certificate)
    inner = certificate
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = change(inner[place[-1]])
    return certificate


def test_an_epoch_is_cut_into_blocks_by_one_theorem(certificates):
    """Otherwise a part might count as a block of one theorem, and be proved as a block of the
    other."""
    certificate = certificates["moments"]
    claim = claim_of(read_question(certificate["question"]), 1.0)
    (release,) = claim.releases
    shared = Shared(certificate["upper"]["blocks"])
    [part] = certificate["upper"]["forward"]
    half = {"release": 0, "times": 1, "theorem": "27", "section": "4.6", "sums": [{"terms": 5}]}
    for parts in ([part], [half, half]):
        check_upper_parts(claim, parts, "forward")
        check_blocks(release, parts, shared)
    with pytest.raises(Refuted, match="several theorems"):
        check_upper_parts(claim, [half, part], "forward")
    for more in ([part, part], [half], [{**half, "block": 0}, half], []):
        with pytest.raises(Refuted):
            check_blocks(release, more, shared)


ALLOCATION = SimpleNamespace(
    name="random_allocation", laplace=False, sampler={"t": 10, "k": 3}, rounds=2
)
TWO_BLOCKS = [{"steps": 4, "own": 2}, {"steps": 6, "own": 1}]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([{"times": 3, "block": 0}, {"times": 2, "block": 1}], "equally often"),
        ([{"times": 1, "block": 0}, {"times": 2, "block": 1}], "equally often"),
        # two epochs have two of each
        ([{"times": 2, "block": 0}], "blocks of 4 steps, 2 of them the record's, are no 3 of 10"),
        ([{"times": 2, "block": 1}, {"times": 2, "block": 1}], "are no 3 of 10"),
        ([], "blocks of 0 steps"),
        # as many steps, and fewer of the record's
        ([{"times": 2, "block": 1}, {"times": 8, "sums": [{"terms": 1}]}], "5 of them"),
        ([{"times": 2, "block": 2}], "a part is of block 2, of 2"),
        ([{"times": 2, "block": 0, "sums": [{"terms": 6}]}], "either by sums"),
        ([{"times": 2}], "either by sums"),
    ],
)
def test_blocks_that_are_no_epoch_are_refused(parts, said):
    whole = [{"times": 2, "block": 0}, {"times": 2, "block": 1}]
    check_blocks(ALLOCATION, whole, Shared(TWO_BLOCKS))
    sums = [{"times": 2, "block": 0}, {"times": 2, "sums": [{"terms": 6}]}]
    check_blocks(ALLOCATION, sums, Shared(TWO_BLOCKS))
    with pytest.raises(Refuted, match=said):
        check_blocks(ALLOCATION, parts, Shared(TWO_BLOCKS))


def test_a_block_holds_no_more_steps_of_the_record_than_it_has():
    rows = [{"steps": 1, "own": 2}, {"steps": 9, "own": 1}]
    with pytest.raises(Refuted, match="holds more steps"):
        check_blocks(ALLOCATION, [{"times": 2, "block": i} for i in range(2)], Shared(rows))


def test_blocks_that_take_too_long_are_not_covered():
    Block({"steps": 13, "own": 3}, None)
    with pytest.raises(NotCovered, match="no more than 4 k steps"):
        Block({"steps": 12, "own": 3}, None)
    with pytest.raises(NotCovered, match="steps of the record"):
        Block({"steps": 1000, "own": MOST_OWN + 1}, None)
    row = {"edges": [0.0], "first": -10, "together": 2, "count": 5}
    for first, is_read in ((-10, False), (-9, True), (2**17 - 10, True), (2**17 - 9, False)):
        if is_read:
            assert read_sum({**row, "first": first}).first == first
            continue
        with pytest.raises(NotCovered, match="values"):
            read_sum({**row, "first": first})


def test_cells_without_mass_are_left_out_and_charged():
    masses = [1e-14, 1e-13, 0.5, 1e-20, 0.5, 1e-13, 1e-15]
    cells_of_them = [SimpleNamespace(q=arb(mass)) for mass in masses]
    seen, left_out = _seen(cells_of_them, "q", arb(1e-12))
    assert [float(cell.q) for cell in seen] == masses[2:5]
    assert float(left_out) == pytest.approx(sum(masses) - 1, rel=1e-2)
    seen, left_out = _seen(cells_of_them, "q", arb(1e-30))
    assert len(seen) == len(masses) and left_out == 0
    # not even where that is all
    seen, left_out = _seen(cells_of_them[:2], "q", arb(1))
    assert not seen and float(left_out) == pytest.approx(1.1e-13)


def test_orders_of_a_block_begin_at_one():
    # a likelihood ratio of 1 / 2 or 3 / 2, given nothing
    moments = [[arb(0.5**n + 1.5**n) / 2] for n in range(5)]
    given, places = GivenSum(moments, arb(1e-12)), [0.0, 0.5, 0.75]
    chords = Chords(places, [given], True)
    values = [float(chords.value(i)) for i in range(3)]
    assert values[0] > values[1] > values[2] > 0
    orders = [arb(x).exp() for x in places]
    for i, order in enumerate(orders):
        assert float(chords(Order(order - 1))) == pytest.approx(values[i], rel=1e-9)
    for i in range(2):
        middle = chords(Order((orders[i] + orders[i + 1]) / 2 - 1))
        assert float(middle) == pytest.approx((values[i] + values[i + 1]) / 2, rel=1e-9)
    # beyond the last order it is what it is there
    for u in (arb(2), arb(1e6)):
        assert float(chords(Order(u))) == values[2]
    with pytest.raises(Refuted, match="must rise from loss 0"):
        Chords([0.1, 0.5], [given], True)


@pytest.mark.parametrize("name", ["opposite", "shuffled"])
def test_sums_over_the_steps_are_attained(name, certificates, tmp_path):
    certificate = certificates[name]
    certificate["claim"]["upper"] = None
    assert certificate["lower"]["parts"][0]["statistic"] == "step functions"
    lines, status = proved_again(certificate, tmp_path)
    assert (lines[-1], status) == ("verified", VERIFIED)


def test_moments_given_a_sum_are_proved_again(certificates, tmp_path):
    certificate = certificates["moments"]
    assert certificate["upper"]["forward"][0]["theorem"] == "72"
    lines, status = proved_again(certificate, tmp_path)
    assert (lines[-1], status) == ("verified", VERIFIED), lines


def test_a_sum_is_attained_in_its_own_direction(certificates, tmp_path):
    """The law of one direction is no law of the other one, as P and Q are unlike."""
    certificate = copy.deepcopy(certificates["moments"])
    certificate["claim"]["upper"] = None
    assert certificate["lower"]["direction"] == "forward"
    certificate["lower"]["direction"] = "backward"
    assert proved_again(certificate, tmp_path)[1] == REFUTED


def heavier(masses):
    top = masses.index(max(masses))
    return [m * 1.1 if i > top else m for i, m in enumerate(masses)]


def lighter(masses):
    return [m * 0.98 for m in masses]


BLOCK = ("upper", "blocks", 0)
PART, LOWER = ("upper", "forward", 0), ("lower", "parts", 0)
RELEASE = ("question", "releases", 0)
MUTATIONS = [
    ("moments", ("claim", "lower"), lambda x: x * 1.001),
    ("moments", (*LOWER, "law", "masses"), heavier),
    ("moments", (*LOWER, "edges"), lambda edges: edges[::-1]),
    ("moments", (*LOWER, "edges"), lambda edges: edges[::40]),
    ("moments", (*LOWER, "data", "filler"), lambda x: 1),
    ("moments", (*LOWER, "data", "record"), lambda x: 0.97),
    ("moments", (*LOWER, "times"), lambda x: 2),
    ("opposite", (*LOWER, "data", "other"), lambda x: -0.95),
    ("opposite", (*LOWER, "law", "offset"), lambda x: x + 0.01),
    ("opposite", (*RELEASE, "sampler", "k"), lambda k: 1),
    ("shuffled", (*LOWER, "law", "masses"), heavier),
    ("shuffled", (*LOWER, "data", "filler"), lambda x: -0.9),
    ("shuffled", (*RELEASE, "sampler", "m"), lambda m: 9),
    ("moments", ("claim", "upper"), lambda x: x * 0.999),
    ("moments", (*PART, "law", "masses"), lighter),
    ("moments", (*PART, "law", "offset"), lambda x: x - 1e-3),
    ("moments", (*PART, "theorem"), lambda name: "27"),
    ("moments", (*PART, "block"), lambda place: 1),
    ("moments", (*PART, "times"), lambda times: 2),
    ("moments", (*BLOCK, "steps"), lambda steps: steps + 1),
    ("moments", (*BLOCK, "own"), lambda own: 1),
    ("moments", (*BLOCK, "sums"), lambda sums: []),
    ("moments", (*BLOCK, "sums", 0, "count"), lambda count: 0),
    ("moments", (*BLOCK, "sums", 0, "together"), lambda together: 0.5),
    ("moments", (*BLOCK, "orders", "forward"), lambda orders: orders[1:]),
    ("moments", (*BLOCK, "orders", "forward"), lambda orders: orders[::-1]),
    ("moments", (*BLOCK, "revealed", "backward"), lambda rows: [{**rows[0], "times": 1}]),
    ("moments", (*BLOCK, "revealed", "backward", 0, "law", "masses"), lighter),
    ("moments", (*BLOCK, "revealed", "backward", 0, "sums", -1, "terms"), lambda terms: 4),
    ("moments", (*RELEASE, "noise_multiplier"), lambda s: s * 0.99),
    ("moments", (*RELEASE, "sampler", "t"), lambda t: 9),
    ("moments", (*RELEASE, "sampler", "k"), lambda k: 3),
    ("moments", ("question", "adjacency"), lambda name: "substitute"),
]
SLOW = {"masses", "noise_multiplier", "upper", "offset", "terms", "sums"}


@pytest.mark.parametrize(
    ("name", "place", "change"),
    [
        pytest.param(*row, marks=pytest.mark.thorough if row[1][-1] in SLOW else ())
        for row in MUTATIONS
    ],
)
def test_mutations_are_refuted(name, place, change, certificates, tmp_path):
    mutated = changed(certificates[name], place, change)
    assert mutated != certificates[name]
    attacked = "lower" in place or name != "moments"
    mutated["claim"]["upper" if attacked else "lower"] = None
    lines, status = proved_again(mutated, tmp_path)
    assert status in (REFUTED, NOT_COVERED, UNREADABLE), lines


@pytest.mark.thorough
def test_sums_are_chosen_freely(certificates, tmp_path):
    """Other edges, cells and orders prove a little less, or as much."""
    certificate = copy.deepcopy(certificates["moments"])
    certificate["claim"]["lower"] = None
    block = certificate["upper"]["blocks"][0]
    block["sums"] = [
        {**row, "edges": [x + 1e-3 for x in row["edges"]]} for row in block["sums"][:1]
    ]
    for side in ("forward", "backward"):
        block["orders"][side] = block["orders"][side][::3]
    claimed = certificate["claim"]["upper"]
    certificate["claim"]["upper"] = claimed * 1.02
    assert proved_again(certificate, tmp_path)[1] == VERIFIED
    certificate["claim"]["upper"] = claimed * 1.0001
    assert proved_again(certificate, tmp_path)[1] == REFUTED

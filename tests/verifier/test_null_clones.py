"""Theorem 89: each number of the verifier against an independent computation, and certificates with
one wrong entry."""

import copy
import math
from fractions import Fraction

import null_clones
import numpy as np
import pytest
from balls import ONE, ZERO, Unreadable, set_precision
from flint import arb
from means import Window, means_above_zero
from null_clones import (
    Replaced,
    WithoutRecord,
    WithRecord,
    bounds_by_theorem_89,
    chances_below,
    charge,
    differences,
    mean_of_steps,
)
from question import Release
from reading import CLONES
from scipy import stats
from theorems import Case

import dpsub
from dpsub.accounting.questions.certificate import _clones
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep
from tests.few import few
from tests.unit.test_hidden_step import ORDERS, check_three_steps
from tests.verifier.proving import only_part, only_release, proved_again, upper_end_of

T = np.linspace(-13, 14, 60_001)
DENSITY = stats.norm.pdf(T) * (T[1] - T[0])


@pytest.fixture(autouse=True)
def precision():
    set_precision(1e-5)


def ratio(u):
    """e_u at the places of a normal variable."""
    return np.exp(u * T - u * u / 2)


LAWS = [
    (Replaced, lambda a, u: ratio(u) - a * ratio(-u)),
    (WithRecord, lambda a, u: ratio(u) - a),
    (WithoutRecord, lambda a, u: 1 - a * ratio(u)),
]


# --- One step -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "values"), LAWS, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.parametrize(("a", "u"), [(1.0, 0.4), (1.7, 0.8), (40.0, 1.3)])
def test_what_exceeds_a_value(kind, values, a, u):
    z = values(a, u)
    law = kind(arb(a), arb(u))
    for b in (0.0, 0.3, 1.0, 1.5, a, 3 * a):
        above, below = (DENSITY @ np.maximum(sign * z - b, 0) for sign in (1, -1))
        assert float(law.above(arb(b))) == pytest.approx(above, rel=1e-5, abs=1e-11)
        assert float(law.below(arb(b))) == pytest.approx(below, rel=1e-5, abs=1e-11)
        assert float(law.over(arb(-b))) == pytest.approx(below + b + 1 - a, rel=1e-5, abs=1e-7)


def test_both_orders_of_the_data_sets_have_a_law():
    assert [type(law) for law in differences("substitute", ONE, ONE)] == [Replaced]
    assert [type(law) for law in differences("zero_out", ONE, ONE)] == [WithRecord, WithoutRecord]


@pytest.mark.parametrize(("kind", "values"), LAWS, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.parametrize(("first", "last"), [(-40, 60), (-1, 1), (-3, 9), (-200, 2)])
def test_any_window_raises_the_means(kind, values, first, last):
    """Between any two places, on any grid, no mean of a positive part is too small."""
    a, u = 1.4, 0.6
    z = values(a, u)
    for unit in (0.05, 0.7):
        placed = Window(kind(arb(a), arb(u)), arb(unit), first, last).on_grid()
        masses = np.array([float(mass) for mass in placed.masses])
        assert np.all(masses > -1e-20) and masses.sum() == pytest.approx(1, abs=1e-12)
        x = unit * np.arange(placed.start, placed.start + masses.size)
        for b in np.linspace(-3, 3, 25):
            above = masses @ np.maximum(x - b, 0) + unit * float(placed.excess)
            assert above >= DENSITY @ np.maximum(z - b, 0) * (1 - 1e-5) - 1e-11


@pytest.mark.parametrize(("kind", "values"), LAWS, ids=lambda case: getattr(case, "__name__", ""))
def test_means_of_several(kind, values):
    """Of one, two and three, by quadrature."""
    a, u = 1.3, 0.7
    window = Window(kind(arb(a), arb(u)), arb(0.02), -400, 900)
    found = means_above_zero(window, [1, 2, 3], arb(1e-12), arb(1e-12))
    inside = (T > -6) & (T < 7)
    z, weights = values(a, u)[inside][::360], DENSITY[inside][::360] * 360
    total, of_total = np.zeros(1), np.ones(1)
    for k, mean in enumerate(found, 1):
        total = np.add.outer(total, z).ravel()
        of_total = np.outer(of_total, weights).ravel()
        quadrature = of_total @ np.maximum(total, 0) / k
        assert quadrature * (1 - 2e-3) <= float(mean) <= quadrature * (1 + 5e-3)


# --- Clones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.8, 1.4, 5.0])
@pytest.mark.parametrize("p", [0.003, 0.4, 0.95])
def test_the_charge_is_the_total_variation_to_a_mixture(s, p):
    y = np.linspace(-12 * s, 1 + 12 * s, 400_001)
    gap = p * stats.norm.pdf(y, 0, s) - stats.norm.pdf(y, 1, s)
    exact = np.maximum(gap, 0).sum() * (y[1] - y[0])
    assert float(charge(8, Fraction(p), arb(s))) == pytest.approx(7 * exact, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(("steps", "p"), [(2, 0.3), (9, 0.6), (1000, 0.02), (10**9, 3e-9)])
def test_chances_of_few_clones(steps, p):
    counts = [2, 3, 5, 9, 40]
    found = chances_below(steps, Fraction(p), counts)
    for k, chance in zip(counts, found, strict=True):
        exact = stats.binom.cdf(k - 2, steps - 1, p)
        assert float(chance) == pytest.approx(exact, rel=1e-7)
        assert not chance > 1


def test_the_number_of_steps_is_rounded_down():
    p, others = 0.3, 11
    values = [1 / k for k in range(1, others + 2)]
    exact = sum(stats.binom.pmf(k - 1, others, p) * values[k - 1] for k in range(1, others + 2))
    every = list(range(2, others + 2))

    def mean(counts, bounds):
        below = chances_below(others + 1, Fraction(p), counts)
        return float(mean_of_steps([arb(b) for b in bounds], below))

    assert mean(every, values) == pytest.approx(exact, rel=1e-12)
    rounded = [(1, 3, 6)[(k >= 3) + (k >= 6)] for k in range(1, others + 2)]
    exact = sum(stats.binom.pmf(k - 1, others, p) / rounded[k - 1] for k in range(1, others + 2))
    assert mean([3, 6], [1, 1 / 3, 1 / 6]) == pytest.approx(exact, rel=1e-12)
    # a bound of fewer steps is one of more, and one that is no number is none
    assert mean([3, 6], [1, 1 / 3, 0.5]) == mean([3, 6], [1, 1 / 3, 1 / 3])
    assert mean([3, 6], [1, math.nan, 1 / 6]) == mean([3, 6], [1, 1, 1 / 6])
    # of more steps than there are records none is ever hidden among
    assert mean([3, 6, 50], [1, 1 / 3, 1 / 6, 0]) == mean([3, 6], [1, 1 / 3, 1 / 6])


# --- The whole bound ------------------------------------------------------------------------------


def proved(rows, steps, s, adjacency):
    release = Release({"name": "shuffle", "m": 1}, steps, arb(s), steps, laplace=False)
    case = Case(release, adjacency, "forward", {"clones": rows}, None, ZERO)
    return [float(bound.upper()) for _, bound in bounds_by_theorem_89(case, steps)]


def row(a, p, counts, adjacency, grid=(0.05, -200, 400)):
    unit, first, last = grid
    grids = [{"unit": unit, "first": first, "last": last}] * (1 + (adjacency == "zero_out"))
    return {"loss": math.log(a), "weight": p, "counts": counts, "grids": grids}


@pytest.mark.parametrize("s", few([1.5, 0.7, 4.0]))
@pytest.mark.parametrize(("adjacency", "other"), [("substitute", -1.0), ("zero_out", 0.0)])
def test_three_steps_of_one_record_each(s, adjacency, other):
    """No fillers, fixed or chosen from the past, exceed the bound, whatever is chosen."""
    choices = [
        (p, counts, grid)
        for p, counts in ((0.9, [2, 3]), (0.5, [3]), (0.1, [2]), (0.999, [2, 3, 4, 100]))
        for grid in ((0.05, -200, 400), (0.4, -5, 3))
    ]
    bounds = [
        proved([row(a, *each[:2], adjacency, each[2]) for a in ORDERS], 3, s, adjacency)
        for each in choices
    ]
    check_three_steps(bounds, s, other)


@pytest.mark.parametrize("adjacency", ["substitute", "zero_out"])
def test_clones_that_are_not_charged_are_caught(adjacency, monkeypatch):
    """The planted fault takes nearly all others for clones at no charge: an attack attains more."""
    steps, s = 60, 2.0
    asked = {"noise_multiplier": s, "epochs": 1, "delta": 1e-3, "adjacency": adjacency}
    attained = math.exp(float(dpsub.account(dpsub.Shuffle(1), steps, **asked).lower))
    (charged,) = proved([row(attained, 0.97, [8, 16, 32], adjacency)], steps, s, adjacency)
    monkeypatch.setattr(null_clones, "charge", lambda T, p, s: ZERO)
    (free,) = proved([row(attained, 0.97, [8, 16, 32], adjacency)], steps, s, adjacency)
    assert free < 1e-3 < charged


@pytest.mark.parametrize(("adjacency", "distance"), [("substitute", 2.0), ("zero_out", 1.0)])
def test_bounds_are_those_that_a_certificate_expects(adjacency, distance):
    hidden = HiddenStep(60, 2.0, distance)
    claimed = hidden.certified.cloned
    assert len(claimed) > 5
    for bound, value in zip(claimed, proved(_clones(hidden), 60, 2.0, adjacency), strict=True):
        assert value <= bound.value <= value * (1 + 2e-3)


# --- Certificates ---------------------------------------------------------------------------------

# noise that no other test asks about: what is remembered of a question has all theorems
QUESTIONS = {
    "substitute": (dpsub.Shuffle(2), 41, {"noise_multiplier": 2.01, "epochs": 2}),
    "zero_out": (dpsub.PersistentShuffle(2), 40, {"noise_multiplier": 4.01, "epochs": 4}),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def certificate(request):
    sampler, n, asked = QUESTIONS[request.param]
    asked |= {"delta": 1e-2, "quick": True, "effort": None, "adjacency": request.param}
    with pytest.MonkeyPatch.context() as patched:
        # of fresh orders other theorems are proved as well, which takes longer
        patched.setattr(HiddenStep, "has_weights", False)
        found = upper_end_of(dpsub.account(sampler, n, **asked), most=1.01)
    assert only_part(found)["theorem"] == "89"
    return found


def test_the_certificate_itself_is_verified(certificate, tmp_path):
    lines, status = proved_again(certificate, tmp_path)
    assert (lines[-1], status) == ("verified", 0), lines


def rows_of(data):
    return only_part(data)["clones"]


def no_clones(data):
    rows_of(data).clear()


def clones_left_out(data):
    del only_part(data)["clones"]


def twice_the_weight(data):
    for each in rows_of(data):
        each["weight"] = min(2 * each["weight"], 0.999)


def half_the_weight(data):
    for each in rows_of(data):
        each["weight"] /= 2


def more_steps_than_there_may_be(data):
    for each in rows_of(data):
        each["counts"] = [16 * k for k in each["counts"]]


def one_number_of_steps(data):
    for each in rows_of(data):
        each["counts"] = each["counts"][-1:]


def lower_orders(data):
    for each in rows_of(data):
        each["loss"] *= 0.9


def higher_orders(data):
    for each in rows_of(data):
        each["loss"] *= 1.2


def orders_at_1_alone(data):
    for each in rows_of(data):
        each["loss"] = 0.0


def coarser_grids(data):
    for each in rows_of(data):
        for grid in each["grids"]:
            grid["unit"] *= 9


def finer_grids(data):
    """As many places, that reach less far."""
    for each in rows_of(data):
        for grid in each["grids"]:
            grid["unit"] /= 9


def no_place_far_above(data):
    for each in rows_of(data):
        for grid in each["grids"]:
            grid["last"] = 1


def no_place_far_below(data):
    for each in rows_of(data):
        for grid in each["grids"]:
            grid["first"] = -1


def another_number_of_laws(data):
    for each in rows_of(data):
        each["grids"] = each["grids"][:1] * (3 - len(each["grids"]))


def a_smaller_claim(data):
    data["claim"]["upper"] *= 1 - 5e-3


def less_mass(data):
    law = only_part(data)["law"]
    law["masses"] = [mass * 0.9 for mass in law["masses"]]


def less_noise(data):
    only_release(data)["noise_multiplier"] *= 0.97


def fewer_steps(data):
    """Put records in steps of twice the size, as many epochs."""
    release = only_release(data)
    release["sampler"]["m"], release["steps"] = 4, -(-release["steps"] // 2)
    epochs = 2 if release["sampler"]["name"] == "shuffle" else 4
    release["steps"] = epochs * -(-release["n"] // 4)


def one_epoch_more(data):
    release = only_release(data)
    release["steps"] += -(-release["n"] // 2)
    if release["sampler"]["name"] == "shuffle":
        only_part(data)["times"] += 1


def added_records(data):
    data["question"]["adjacency"] = "add_remove"


def a_group(data):
    only_release(data)["group"] = 2


def the_other_relation(data):
    now = data["question"]["adjacency"]
    data["question"]["adjacency"] = "zero_out" if now == "substitute" else "substitute"


def the_revealed_step(data):
    part = only_part(data)
    for entry in ("clones", "orders", "references", "weights"):
        part.pop(entry, None)
    part["theorem"] = "19"


def a_step_that_tells(data):
    """The theorems about what the first step tells, which an order that is kept does not have."""
    part = only_part(data)
    if only_release(data)["sampler"]["name"] == "shuffle":
        part["clones"] = []
    part |= {"theorem": "61", "orders": [], "references": []}


def public_batches(data):
    only_release(data)["sampler"] = {"name": "deterministic", "m": 2}


def laplace_noise(data):
    only_release(data)["mechanism"] = "laplace"


MUTATIONS = [
    no_clones,
    twice_the_weight,
    half_the_weight,
    more_steps_than_there_may_be,
    lower_orders,
    higher_orders,
    coarser_grids,
    no_place_far_above,
    another_number_of_laws,
    a_smaller_claim,
    less_noise,
    fewer_steps,
    one_epoch_more,
    a_step_that_tells,
    clones_left_out,
    one_number_of_steps,
    orders_at_1_alone,
    finer_grids,
    no_place_far_below,
    less_mass,
    added_records,
    a_group,
    the_other_relation,
    the_revealed_step,
    public_batches,
    laplace_noise,
]


@pytest.mark.parametrize("mutate", few(MUTATIONS, most=14))
def test_one_wrong_entry_is_refuted(certificate, mutate, tmp_path):
    data = copy.deepcopy(certificate)
    mutate(data)
    lines, status = proved_again(data, tmp_path)
    assert status != 0, lines


GOOD = {
    "loss": 0.1,
    "weight": 0.2,
    "counts": [2, 4],
    "grids": [{"unit": 0.1, "first": -5, "last": 5}],
}
GRID = GOOD["grids"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"loss": -0.1},
        {"loss": math.inf},
        {"loss": "0.1"},
        {"weight": 0.0},
        {"weight": 1.0},
        {"weight": -0.2},
        {"weight": 1.5},
        {"weight": math.nan},
        {"weight": True},
        {"counts": []},
        {"counts": [1, 2]},
        {"counts": [4, 2]},
        {"counts": [2, 2]},
        {"counts": [2.0, 4]},
        {"counts": [2, 2**31 + 1]},
        {"grids": []},
        {"grids": [GRID] * 3},
        {"grids": [GRID | {"unit": 0.0}]},
        {"grids": [GRID | {"unit": math.nan}]},
        {"grids": [GRID | {"first": 0}]},
        {"grids": [GRID | {"last": 0}]},
        {"grids": [GRID | {"last": 5.0}]},
        {"grids": [GRID | {"middle": 0}]},
        {"K": 3},
    ],
    ids=str,
)
def test_choices_that_are_none_are_not_read(change):
    CLONES([GOOD], "clones")
    with pytest.raises(Unreadable):
        CLONES([GOOD | change], "clones")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MOST_VALUES", "places of grids"),
        ("MOST_PLACES", "places of a grid"),
        ("MOST_STEPS", "steps"),
    ],
)
def test_what_would_take_long_is_not_covered(certificate, name, words, tmp_path, monkeypatch):
    monkeypatch.setattr(null_clones, name, 2)
    lines, status = proved_again(certificate, tmp_path)
    assert status == 3 and words in lines[-1] and "Theorem 89" in lines[-1], lines


@pytest.mark.parametrize("adjacency", few(["substitute", "zero_out"]))
@pytest.mark.parametrize(
    ("sampler", "noise", "epochs"),
    few(
        [
            (dpsub.PersistentShuffle(1), 10.0, 10),
            (dpsub.Shuffle(1), 1.4, 1),
            (dpsub.Shuffle(1), 1.0, 1),
            (dpsub.Shuffle(1), 2.0, 10),
        ],
        most=0,
        more=1,
    ),
)
def test_a_thousand_steps_are_proved_as_the_answer_says(
    sampler, noise, epochs, adjacency, tmp_path
):
    asked = {"noise_multiplier": noise, "epochs": epochs, "delta": 1e-5, "adjacency": adjacency}
    answer = dpsub.account(sampler, 1000, **asked)
    lines, status = proved_again(upper_end_of(answer, most=1.01), tmp_path)
    assert (lines[-1], status) == ("verified", 0), lines

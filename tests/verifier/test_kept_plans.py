"""Certificates of secret groups in turn and of separated steps: verified from both sides, refuted
with one wrong entry. Products of likelihood ratios, and numbers of separated steps, by brute
force."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allocation import LogNormal, Mean, Product, Ratios, on_one_grid, profile, read_sums
from balls import Refuted, set_precision
from certificate import NOT_COVERED, REFUTED, UNREADABLE, VERIFIED, verify
from flint import arb
from law import Law, read_law
from multiplicity import Fraction
from question import read_release
from scipy.stats import norm
from separated import Step, backward, composed_epoch, forward, separated, with_more
from step_sums import law_of_sum, step_masses, sum_over_steps

import dpsub
from tests.verifier.forging import honest
from tests.verifier.proving import only_part, only_release, proved_again

Data = dict[str, Any]
RELATIONS = ("add_remove", "zero_out", "substitute")


@pytest.fixture(autouse=True)
def precision() -> None:
    set_precision(1e-6)


def certificate_of(sampler: Any, n: int | None = None, **asked: Any) -> Data:
    """Return the certificate of an answer whose bounds it claims, and which it may widen above."""
    answer = dpsub.account(sampler, n, **{"noise_multiplier": 1.5, "delta": 1e-3} | asked)
    found: Data = json.loads(json.dumps(answer.certificate(), allow_nan=False))
    assert found["claim"]["upper"] >= answer.upper * (1 - 1e-8)
    assert found["claim"]["lower"] <= answer.lower * (1 + 1e-8)
    return found


def one_end(data: Data, end: str) -> Data:
    """Return a copy that claims one end alone."""
    found = copy.deepcopy(data)
    other = {"upper": "lower", "lower": "upper"}[end]
    found["claim"][other] = found[other] = None
    return found


# --- Verified -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "groups", "rate", "epochs"),
    [
        *((relation, 3, 0.5, 2) for relation in RELATIONS),
        ("zero_out", 2, 1.0, 3),
        ("add_remove", 1, 0.3, 4),
        ("substitute", 2, 1.0, 1),
    ],
)
def test_secret_groups_are_verified(
    relation: str, groups: int, rate: float, epochs: int, tmp_path: Path
) -> None:
    sampler = dpsub.SecretCyclicPoisson(rate, groups)
    found = certificate_of(sampler, epochs=epochs, adjacency=relation)
    lines, status = proved_again(found, tmp_path)
    assert status == VERIFIED, lines
    assert found["claim"]["lower"] > 0.7 * found["claim"]["upper"]
    proof = "Theorem 85" if relation != "substitute" else "Theorem (substitution|17)"
    assert re.search(proof, lines[0]), lines


def test_a_group_that_is_told_is_that_of_cyclic_poisson(tmp_path: Path) -> None:
    """With little noise the laws are those of the turns, and the attack is one on their sum."""
    found = certificate_of(
        dpsub.SecretCyclicPoisson(0.5, 2),
        epochs=3,
        noise_multiplier=0.08,
        delta=0.05,
        adjacency="add_remove",
    )
    assert only_part(found)["theorem"] == "17" and only_part(found)["times"] == 3
    assert found["lower"]["parts"][0]["statistic"] == "sum of all steps"
    assert proved_again(found, tmp_path)[1] == VERIFIED
    for end, steps in (("upper", 8), ("lower", 4)):
        data = one_end(found, end)
        only_release(data)["steps"] = steps
        assert proved_again(data, tmp_path)[1] == REFUTED


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("warm_start", [False, True])
def test_separated_steps_are_verified(relation: str, warm_start: bool, tmp_path: Path) -> None:
    sampler = dpsub.MinSeparation(0.2, 3, 12, warm_start)
    found = certificate_of(sampler, 50, epochs=2, adjacency=relation)
    lines, status = proved_again(found, tmp_path)
    assert status == VERIFIED, lines
    poisson = poisson_in_all_steps(relation)
    if relation == "substitute":
        assert "Theorem 87, docs/proofs/schedules.md" in lines[0]
        assert found["claim"]["upper"] == pytest.approx(poisson, rel=0.01)
    else:
        assert "Theorem 87 (i), docs/proofs/schedules.md" in lines[0]
        assert found["claim"]["upper"] < 0.95 * poisson


def poisson_in_all_steps(relation: str) -> float:
    """Return the upper bound by Poisson sampling in the steps of `test_separated_steps_...`."""
    answer = dpsub.account(
        dpsub.Poisson(0.2), noise_multiplier=1.5, steps=24, delta=1e-3, adjacency=relation
    )
    return answer.upper


def test_many_separated_steps_are_those_of_poisson_sampling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsub.accounting.schemes.separation.scheme._MOST_FOLLOWED", 11)
    found = certificate_of(dpsub.MinSeparation(0.2, 3, 12), 50, epochs=2, adjacency="zero_out")
    assert only_part(found)["theorem"] == "87" and only_part(found)["times"] == 24
    assert found["claim"]["upper"] == pytest.approx(poisson_in_all_steps("zero_out"), rel=0.01)
    lines, status = proved_again(found, tmp_path)
    assert status == VERIFIED, lines


def test_a_record_in_known_steps_is_one_gaussian_step(tmp_path: Path) -> None:
    found = certificate_of(dpsub.MinSeparation(1.0, 3, 7), epochs=2, adjacency="zero_out")
    gaussian = dpsub.account(
        dpsub.Poisson(1.0),
        noise_multiplier=1.5 / math.sqrt(3),
        steps=2,
        delta=1e-3,
        adjacency="zero_out",
    )
    assert found["claim"]["upper"] == pytest.approx(gaussian.upper, rel=1e-3)
    assert found["claim"]["lower"] == pytest.approx(gaussian.lower, rel=1e-3)
    lines, status = proved_again(found, tmp_path)
    assert status == VERIFIED, lines
    # from a random step on the number is random, and the plan tells less than both of its cases
    only_release(found)["sampler"]["warm_start"] = True
    assert proved_again(found, tmp_path)[1] == NOT_COVERED


def test_releases_that_share_a_sample_amount_to_less_noise(tmp_path: Path) -> None:
    found = certificate_of(
        dpsub.SecretCyclicPoisson(0.5, 2), epochs=4, noise_multiplier=8.0, releases_per_sample=4
    )
    assert only_release(found)["noise_multiplier"] == 4.0
    assert proved_again(found, tmp_path)[1] == VERIFIED


# --- Refuted --------------------------------------------------------------------------------------

# what tells more than is claimed above, and less than is claimed below
SECRET = {
    "upper": [{"rate": 0.6}, {"cycle": 1}, {"steps": 6}, {"noise_multiplier": 1.4}],
    "lower": [{"rate": 0.4}, {"cycle": 4}, {"steps": 2}, {"noise_multiplier": 1.6}],
}
SEPARATED = {
    "upper": [{"rate": 0.5}, {"t": 4, "steps": 4}, {"steps": 6}, {"noise_multiplier": 1.4}],
    "lower": [
        {"rate": 0.3},
        {"t": 2, "steps": 2},
        {"separation": 3},
        {"warm_start": True},
        {"noise_multiplier": 1.6},
    ],
}


@pytest.mark.parametrize(
    ("name", "changes"), [("secret groups", SECRET), ("separated", SEPARATED)], ids=str
)
@pytest.mark.parametrize("end", ["upper", "lower"])
def test_other_sizes_are_refuted(
    name: str, changes: dict[str, list[Data]], end: str, tmp_path: Path
) -> None:
    found = one_end(honest(name), end)
    assert proved_again(found, tmp_path)[1] == VERIFIED
    for change in changes[end]:
        data = copy.deepcopy(found)
        release = only_release(data)
        for key, value in change.items():
            (release["sampler"] if key in release["sampler"] else release)[key] = value
        lines, status = proved_again(data, tmp_path)
        assert status == REFUTED, (change, lines)


def as_mean(sums: list[Data]) -> None:
    del next(row for row in sums if "product" in row)["product"]


def as_product(sums: list[Data]) -> None:
    next(row for row in reversed(sums) if "product" not in row)["product"] = True


def product_of_nothing(sums: list[Data]) -> None:
    sums[0]["product"] = True


def means_first(sums: list[Data]) -> None:
    """Take the mean over the groups of one turn, and then its product over the turns."""
    sums[1], sums[2] = sums[2] | {"of": [0, 0]}, sums[1] | {"of": [1, 1]}


def of_other_lengths(sums: list[Data]) -> None:
    sums[2]["of"] = [0, 1]


@pytest.mark.parametrize(
    "change", [as_mean, as_product, product_of_nothing, means_first, of_other_lengths]
)
@pytest.mark.parametrize("end", ["upper", "lower"])
def test_products_and_means_are_those_of_the_plan(change: Any, end: str, tmp_path: Path) -> None:
    data = one_end(honest("secret groups"), end)
    parts = data["upper"]["forward"] if end == "upper" else data["lower"]["parts"]
    assert ["product" in row for row in parts[0]["sums"]] == [False, True, False]
    change(parts[0]["sums"])
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED, lines


def test_a_product_is_none_of_an_allocation(tmp_path: Path) -> None:
    """Two steps of one group are no epoch of one of two steps."""
    data = honest("allocation")
    for part in (*data["upper"]["forward"], *data["lower"]["parts"]):
        part["sums"][1] |= {"product": True, "terms": 1}
    for end in ("upper", "lower"):
        lines, status = proved_again(one_end(data, end), tmp_path)
        assert status == REFUTED, lines


@pytest.mark.parametrize(
    ("name", "theorem"),
    [("secret groups", "25"), ("secret groups", "17"), ("separated", "17"), ("cyclic", "87")],
)
def test_another_theorem_is_refuted(name: str, theorem: str, tmp_path: Path) -> None:
    data = one_end(honest(name), "upper")
    for part in (*data["upper"]["forward"], *data["upper"]["backward"]):
        part["theorem"] = theorem
        part.pop("steps", None)
        if theorem not in ("25", "85"):
            part.pop("sums", None)
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED, lines


@pytest.mark.parametrize(
    ("name", "statistic", "status"),
    [
        # the sum of all steps has the noise of all of them
        ("secret groups", "sum", NOT_COVERED),
        ("poisson", "sum of all steps", NOT_COVERED),
        ("separated", "sum", NOT_COVERED),
        ("separated", "sum of all steps", NOT_COVERED),
    ],
)
def test_another_statistic_is_not_covered(
    name: str, statistic: str, status: int, tmp_path: Path
) -> None:
    data = one_end(honest(name), "lower")
    for part in data["lower"]["parts"]:
        part["statistic"] = statistic
        part.pop("sums", None)
        part.pop("edges", None)
    lines, found = proved_again(data, tmp_path)
    assert found == status, lines


@pytest.mark.parametrize("other", [0, 1, None, "false", 0.5])
def test_a_start_is_warm_or_not(other: Any, tmp_path: Path) -> None:
    data = honest("separated")
    only_release(data)["sampler"]["warm_start"] = other
    assert proved_again(data, tmp_path)[1] == UNREADABLE
    del only_release(data)["sampler"]["warm_start"]
    assert proved_again(data, tmp_path)[1] == UNREADABLE


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("separated", {"separation": 0}),
        ("separated", {"t": 0}),
        ("separated", {"t": 2}),
        ("separated", {"rate": 0.0}),
        ("separated", {"rate": 1.5}),
        ("secret groups", {"cycle": 0}),
        ("secret groups", {"cycle": 3}),
        ("secret groups", {"rate": -0.5}),
    ],
)
def test_sizes_that_are_none_are_refuted(name: str, change: Data, tmp_path: Path) -> None:
    data = honest(name)
    only_release(data)["sampler"] |= change
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and lines[-1].startswith("refuted: question: "), lines


@pytest.mark.parametrize("name", ["secret groups", "separated"])
@pytest.mark.parametrize("change", [{"mechanism": "laplace"}, {"group": 2}])
def test_other_noise_and_groups_are_not_covered(name: str, change: Data, tmp_path: Path) -> None:
    data = honest(name)
    data["question"]["releases"][0] |= change
    assert proved_again(data, tmp_path)[1] == NOT_COVERED


REST = "--noise-multiplier 1.5 --delta .05"
WORDS = {
    f"secret_cyclic_poisson --rate .5 --cycle 2 --epochs 2 {REST}": "secret groups",
    f"min_separation --rate .4 --separation 2 --t 3 {REST}": "separated",
}


@pytest.mark.parametrize("words", WORDS)
def test_words_are_read_as_the_command_reads_them(words: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(honest(WORDS[words])))
    lines, status = verify(str(path), words)
    assert status == VERIFIED, lines
    lines, status = verify(str(path), words.replace("--rate .", "--rate .1"))
    assert status == REFUTED and "expected: rate" in lines[-1]
    if "min" in words:
        lines, status = verify(str(path), f"{words} --warm-start")
        assert status == REFUTED and "expected: warm_start" in lines[-1]


def test_a_size_of_batches_is_that_of_a_warm_start(tmp_path: Path) -> None:
    sampler = dpsub.MinSeparation.of_sizes(60, m=6, separation=3, t=8)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(certificate_of(sampler, 60, epochs=1)))
    words = "min_separation --n 60 --m 6 --separation 3 --t 8 --noise-multiplier 1.5 --delta 1e-3"
    lines, status = verify(str(path), words)
    assert status == VERIFIED, lines


def heaviest(law: Data) -> int:
    return int(np.argmax(law["masses"]))


def less_missed(steps: Data) -> None:
    steps["missed"]["masses"][heaviest(steps["missed"])] *= 0.5


def less_drawn(steps: Data) -> None:
    steps["drawn"]["masses"] = [mass / 2 for mass in steps["drawn"]["masses"]]


def more_missed(steps: Data) -> None:
    """Count all that is drawn as missed, after which no step is left out."""
    missed, drawn = steps["missed"]["masses"], steps["drawn"]["masses"]
    missed[:] = [m + d for m, d in zip(missed, drawn, strict=True)]
    drawn[:] = [0.0] * len(drawn)


def more_drawn(steps: Data) -> None:
    """Count all as drawn, after which steps are left out."""
    missed, drawn = steps["missed"]["masses"], steps["drawn"]["masses"]
    drawn[:] = [m + d for m, d in zip(missed, drawn, strict=True)]
    missed[:] = [0.0] * len(missed)


def moved(steps: Data) -> None:
    for law in steps.values():
        law["indices"] = [index - 1 for index in law["indices"]]


def other_losses(steps: Data) -> None:
    steps["drawn"]["offset"] += steps["drawn"]["step"] / 2


def other_step(steps: Data) -> None:
    steps["drawn"]["step"] /= 2


@pytest.mark.parametrize("side", ["forward", "backward"])
@pytest.mark.parametrize(
    "change",
    [less_missed, less_drawn, more_missed, more_drawn, moved, other_losses, other_step],
)
def test_other_laws_of_a_step_are_refuted(change: Any, side: str, tmp_path: Path) -> None:
    data = one_end(honest("separated"), "upper")
    (part,) = data["upper"][side]
    change(part["steps"])
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED, lines


def test_a_law_of_an_epoch_is_one_of_its_steps(tmp_path: Path) -> None:
    data = one_end(honest("separated"), "upper")
    (part,) = data["upper"]["forward"]
    part["law"]["masses"][heaviest(part["law"])] *= 0.99
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED, lines


# --- Separated steps, the record's availability told ----------------------------------------------


def by_recursion(asked: tuple[float, int, int], s: float, orders: np.ndarray) -> np.ndarray:
    """Return V_t of (9) at these orders, by quadrature over the outputs of one step after the
    other; or, with s < 0, the same for Q* first."""
    p, b, t = asked
    z, h = np.linspace(-9 * abs(s), 9 * abs(s) + 1, 1501, retstep=True)
    base, drawn = norm.pdf(z, 0, abs(s)) * h, norm.pdf(z, 1, abs(s)) * h
    r = 1 - p + p * drawn / base
    first, second = (p * drawn, (1 - p) * base)
    if s < 0:
        first, second, r = first / r, second / r, 1 / r
    grid = np.linspace(-14, 14, 2801)  # of ln a
    values = [np.maximum(1 - np.exp(grid), 0.0)] * max(b, 2)
    for _ in range(t):
        places = grid - np.log(r)[:, None]
        missed, waited = (
            np.interp(places.ravel(), grid, values[-lag]).reshape(places.shape) for lag in (1, b)
        )
        values.append(first @ waited + second @ missed)
    found: np.ndarray = np.interp(np.log(orders), grid, values[-1])
    return found


@pytest.mark.parametrize("side", ["forward", "backward"])
@pytest.mark.parametrize("b", [2, 3])
def test_an_epoch_is_that_of_the_recursion(side: str, b: int) -> None:
    sampler = dpsub.MinSeparation(0.4, b, 3)
    found = certificate_of(sampler, epochs=1, noise_multiplier=1.2, adjacency="zero_out")
    (part,) = found["upper"][side]
    laws = [read_law(part["steps"][name], name) for name in ("missed", "drawn")]
    epoch = composed_epoch(
        release(0.4, b, 3, False), *(with_more(law, arb(0), arb(0)) for law in laws), arb(0)
    )
    masses = epoch.masses.coeffs()
    indices = list(range(epoch.start, epoch.start + len(masses)))
    whole = Law(laws[0].step, 0.0, indices, masses, epoch.infinity)
    orders = np.exp(np.linspace(-1, 2, 7))
    truth = by_recursion((0.4, b, 3), 1.2 if side == "forward" else -1.2, orders)
    values = np.array([float(profile(whole, arb(order))) for order in orders])
    assert (values > truth - 1e-5).all() and (values < truth + 2e-3).all()


@pytest.mark.parametrize("side", [forward, backward])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_what_a_law_of_a_part_lacks(side: Any, is_drawn: bool) -> None:
    """By quadrature, at the kinks; what is counted as missed or drawn makes little difference."""
    p, s = 0.3, 0.8
    z, h = np.linspace(-12, 14, 400_001, retstep=True)
    base, drawn = norm.pdf(z, 0, s) * h, norm.pdf(z, 1, s) * h
    r = 1 - p + p * drawn / base
    first, second = (p * drawn, p * drawn / r) if is_drawn else ((1 - p) * base, (1 - p) * base / r)
    if side is backward:
        first, second = second, first
    indices = list(range(-60, 300)) if side is forward else list(range(-300, 60))
    law = Law(0.01, 0.0, indices, [arb(0)] * len(indices), 0.0)
    step = Step(Fraction(p), 1 / arb(s))
    # a law of no mass lacks all of it, at the order 0
    assert float(side(step, law, is_drawn=is_drawn)) == pytest.approx(first.sum(), abs=1e-3)
    kinks = np.exp(0.01 * np.array(indices))
    truth = np.array([np.maximum(first - a * second, 0).sum() for a in kinks])
    # of a law with all mass at infinity less a hair nothing is missing; at 1e-3 less than needed
    # somewhere, so much
    for mass in (first.sum() + 1e-3, truth[40]):
        full = Law(0.01, 0.0, indices, [arb(0)] * len(indices), mass)
        lacks = max(0.0, first.sum() - mass)
        assert float(side(step, full, is_drawn=is_drawn)) == pytest.approx(lacks, abs=2e-3)


# --- Products of likelihood ratios ----------------------------------------------------------------


def test_products_are_summed_as_if_they_were_listed() -> None:
    generator = np.random.default_rng(5)
    listed = [
        (
            np.sort(np.append(generator.lognormal(sigma=3, size=n), [0.0] * has_zero)),
            generator.random(n + has_zero),
        )
        for n, has_zero in ((7, 1), (12, 0))
    ]
    for pair in (listed, listed[::-1], [listed[0]] * 2):
        (one, m), (other, n) = pair
        product = Product(*(Ratios(r.tolist(), masses.tolist(), 0.1) for r, masses in pair))
        ratios, weights = np.outer(one, other), np.outer(m, n)
        for a in (0.0, 1e-300, 0.3, 1.0, 1.7, 9.0, 1e200):
            parted, right = product.beyond(a), ratios > a
            assert float(parted.right_q) == pytest.approx(weights[right].sum())
            assert float(parted.right_p) == pytest.approx((weights * ratios)[right].sum())
            assert float(parted.left_q) == pytest.approx(weights[~right].sum())
            assert float(parted.left_p) == pytest.approx((weights * ratios)[~right].sum())
        assert float(product.total) == pytest.approx(weights.sum())
        assert float(product.everything.left_p) == pytest.approx((weights * ratios).sum())
        assert float(product.lost) == pytest.approx(0.1 + 0.1 * (m * one).sum())


def test_products_are_compared_exactly() -> None:
    """A product that is rounded to the place is told from one that is there."""
    third = 1 / 3
    product = Product(Ratios([third], [1.0]), Ratios([3.0], [1.0]))
    exact = Fraction(third) * 3
    assert exact < 1 and float(exact) == 1.0
    assert product.beyond(1.0).right_q == 0
    assert product.beyond(math.nextafter(1.0, 0.0)).right_q == 1
    tiny = 5e-324
    assert Product(Ratios([tiny], [1.0]), Ratios([tiny], [1.0])).beyond(0.0).right_q == 1
    assert on_one_grid([0.0, 0.75, 3.0]) == ([0, 3, 12], 2)


def joined(ratios: np.ndarray, masses: np.ndarray, lost: float = 0.0) -> Data:
    """Return the law of the product of two."""
    products, weights = np.outer(ratios, ratios).ravel(), np.outer(masses, masses).ravel()
    apart, place = np.unique(products, return_inverse=True)
    return {
        "terms": 1,
        "of": [0, 0],
        "product": True,
        "ratios": apart.tolist(),
        "masses": np.bincount(place, weights).tolist(),
        "lost": lost,
        "edges": (np.sqrt(apart[1:] * apart[:-1])).tolist(),
    }


def profiles(a: float, distance: float) -> tuple[float, float]:
    """Return E (R - a)_+ and E (a - R)_+ of a log-normal R."""
    half, place = distance / 2, math.log(a) / distance
    right = norm.cdf(half - place) - a * norm.cdf(-half - place)
    return right, right + a - 1


PLACES = np.exp(np.linspace(-5, 5, 40))
ORDERS = (0.1, 0.5, 1.0, 2.0, 6.0, 20.0)


def cells() -> tuple[np.ndarray, np.ndarray]:
    """Return masses under Q and under P of cells of the log-normal law of distance 1."""
    z = np.concatenate([[-np.inf], np.log(PLACES) + 0.5, [np.inf]])
    return np.diff(norm.cdf(z)), np.diff(norm.cdf(z - 1))


def spread_out(share: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return cells at their ends, with so much of the mass: above the law, or nearly."""
    q, p = cells()
    ends = np.append(0.0, PLACES)
    up = (p[:-1] - q[:-1] * ends[:-1]) / np.diff(ends)
    masses = q.copy()
    masses[:-1] -= up
    masses[1:] += up
    return ends, masses * share


@pytest.mark.parametrize("share", [1.0, 0.98])
@pytest.mark.parametrize("side", ["C", "D"])
def test_a_product_is_above_that_of_two_steps(side: str, share: float) -> None:
    """The product of two log-normal ratios is one of distance sqrt(2)."""
    ratios, masses = spread_out(share if side == "D" else 1.0)
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "masses": masses.tolist()}
    row |= {"lost": 0.0, "edges": []}
    row["masses"][0] += 1e-12
    more = joined(ratios, masses)
    if side == "C":
        # what the product lacks is added, whatever is taken from it
        more["masses"] = [
            mass * (1 if r < 3 else share)
            for r, mass in zip(more["ratios"], more["masses"], strict=True)
        ]
        more["masses"][0] += 1 - share
    shown = read_sums([row, more], LogNormal(arb(1)), True, side, "", arb(0), turns=2)
    for a in ORDERS:
        right, left = profiles(a, math.sqrt(2))
        found, truth = (
            (float(shown.forward(arb(a))), right)
            if side == "C"
            else (float(shown.backward(1 / arb(a))) * a, left)
        )
        assert truth * (1 - 1e-12) <= found < truth + 0.1


@pytest.mark.parametrize("side", ["C", "D"])
@pytest.mark.parametrize("negligible", [0.0, 0.01])
def test_a_product_is_below_that_of_two_steps(side: str, negligible: float) -> None:
    q, p = cells()
    ratios = p / q
    ratios[20] *= 1.01  # too much, which an amount or a factor takes off
    row = {"terms": 1, "of": None, "ratios": ratios.tolist(), "masses": q.tolist()}
    row |= {"lost": 0.0, "edges": PLACES.tolist()}
    rows = [row, joined(ratios, q)]
    shown = read_sums(rows, LogNormal(arb(1)), False, side, "", arb(negligible), turns=2)
    assert (shown.short > 0) == (negligible > 0)
    for a in ORDERS:
        right, left = profiles(a, math.sqrt(2))
        found, truth = (
            (float(shown.forward(arb(a))), right)
            if side == "C"
            else (float(shown.backward(1 / arb(a))) * a, left)
        )
        assert truth - 0.2 < found <= truth * (1 + 1e-12)


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_a_step_that_may_hold_the_record(rate: Fraction) -> None:
    """The ratio is that of a mixture of Gaussians to one of them, by quadrature."""
    z, h = np.linspace(-14, 16, 300_001, retstep=True)
    missed, drawn = norm.pdf(z), norm.pdf(z - 0.8)
    q = float(rate)
    ratio = 1 - q + q * np.exp(0.8 * z - 0.32)
    under_p = (1 - q) * missed + q * drawn
    single = LogNormal(arb(0.8), rate)
    for a in (0.0, 1e-3, 1 - q, math.nextafter(1 - q, 2.0), 0.9, 1.0, 1.4, 20.0):
        parted, right = single.beyond(a), ratio > a
        found = [float(each) for each in (parted.right_p, parted.right_q)]
        assert found == pytest.approx(
            [(under_p * right).sum() * h, (missed * right).sum() * h], abs=2e-5
        )
        assert float(parted.right_p + parted.left_p) == pytest.approx(1)
        assert float(parted.right_q + parted.left_q) == pytest.approx(1)


def test_a_mean_needs_products_of_one_length() -> None:
    row = {"terms": 1, "of": None, "ratios": [0.5, 2.0], "masses": [0.8, 0.4], "lost": 0.2}
    row["edges"] = [1.0]
    two = row | {"of": [0, 0], "product": True}
    single = LogNormal(arb(1))
    for rows, words in (
        ([row, two, row | {"terms": 2, "of": [0, 1]}], "several lengths"),
        ([row, row | {"terms": 2, "of": [0, 0]}, two | {"of": [1, 0]}], "product of means"),
        ([row | {"product": True}], "of nothing"),
        ([row, two, two | {"of": [1, 0]}], "of 3 turns, not of 2"),
        ([row], "of 1 turns, not of 2"),
    ):
        with pytest.raises(Refuted, match=words):
            read_sums(rows, single, True, "C", "here", arb(0), turns=2)
    assert isinstance(Mean(*[Ratios([1.0], [1.0])] * 2, 1, 1).total, arb)


# --- Numbers of separated steps -------------------------------------------------------------------


def release(rate: float, separation: int, t: int, warm_start: bool) -> Any:
    return read_release(
        {
            "sampler": {
                "name": "min_separation",
                "rate": rate,
                "separation": separation,
                "t": t,
                "warm_start": warm_start,
            },
            "n": None,
            "noise_multiplier": 1.0,
            "steps": t,
            "mechanism": "gaussian",
            "denominator": "fixed",
            "sample": None,
        },
        "add_remove",
    )


def plans(rate: float, separation: int, t: int, warm_start: bool) -> dict[tuple[int, ...], float]:
    """Return the probabilities of all sets of steps of one record, followed step by step."""
    first = {0: 1.0}
    if warm_start:
        whole = 1 + (separation - 1) * rate
        first = {wait: (rate if wait else 1.0) / whole for wait in range(separation)}
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for wait, chance in first.items():
        for coins in itertools.product((0, 1), repeat=t):
            waits, own, weight = wait, [], chance
            for step, coin in enumerate(coins):
                weight *= rate if coin else 1 - rate
                if waits:
                    waits -= 1
                elif coin:
                    own.append(step)
                    waits = separation - 1
            found[tuple(own)] += weight
    return found


@pytest.mark.parametrize(
    ("rate", "separation", "t", "warm_start"),
    [
        (0.3, 1, 5, False),
        (0.3, 2, 6, True),
        (0.6, 3, 7, False),
        (0.4, 9, 4, True),
        (0.2, 5, 5, True),
    ],
)
def test_numbers_of_separated_steps(rate: float, separation: int, t: int, warm_start: bool) -> None:
    expected = np.zeros(-(-t // separation) + 1)
    for own, weight in plans(rate, separation, t, warm_start).items():
        expected[len(own)] += weight
    found = separated(release(rate, separation, t, warm_start), arb(1e-30))
    assert [float(each) for each in found.probabilities] == pytest.approx(expected, abs=1e-15)
    assert found.rest == 0


def test_numbers_that_are_left_out_are_counted() -> None:
    whole = separated(release(0.1, 2, 60, False), arb(1e-40))
    short = separated(release(0.1, 2, 60, False), arb(1e-6))
    left = sum(whole.probabilities[len(short.probabilities) :], arb(0))
    assert 0 < float(left) <= float(short.rest) < 1e-5
    for one, other in zip(short.probabilities, whole.probabilities, strict=False):
        assert one.overlaps(other)


@pytest.mark.parametrize("cut", [0.0, 1e-3])
def test_a_sum_over_a_random_number_of_steps(cut: float) -> None:
    """By all plans, each with the law of its sum."""
    edges = [arb(x) for x in (-0.7, 0.4, 1.1)]
    rest, moved = step_masses(edges, arb(0)), step_masses(edges, arb(0.9))
    asked = (0.4, 2, 5, True)
    expected: dict[int, float] = defaultdict(float)
    for own, weight in plans(*asked).items():
        law = law_of_sum([(rest, 5 - len(own)), (moved, len(own))], arb(0))
        for value, mass in enumerate(law.masses.coeffs(), start=law.start):
            expected[value] += weight * float(mass)
    own = separated(release(*asked), arb(1e-30))
    found = sum_over_steps(rest, moved, 5, own, arb(cut))
    masses = dict(enumerate(map(float, found.masses.coeffs()), start=found.start))
    missing = [mass - masses.get(value, 0.0) for value, mass in expected.items()]
    assert min(missing) > -1e-14
    assert sum(missing) <= float(found.lost) + 1e-14
    assert (cut > 0) == (float(found.lost) > 0)

"""Groups whose upper bound is the curve of one record, and groups with Laplace noise: every order,
allocation and sample of tiny data sets, by a program that shares nothing with the accountant."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.accounting.schemes.groups.steps import GroupSum, LargestOfGroup
from dpsub.accounting.schemes.truncated.cut_samples import CutSample, FilledSample, drawn_of_group
from dpsub.sampling import Sampler, Schedule
from tests.few import few

EPSILONS = (0.0, 0.5, 1.5)
OTHERS = {"add_remove": None, "substitute": -1, "zero_out": 0}
GAP = 1e-3  # relative, of each end

Law = dict[tuple[int, ...], float]
"""Sums of the steps of an epoch, and how likely they are."""
Places = Iterator[tuple[tuple[int, ...], ...]]
"""Equally likely outcomes: the steps of each record."""


def allocated(t: int, k: int, n: int) -> Places:
    return itertools.product(itertools.combinations(range(t), k), repeat=n)


def shuffled(m: int, dropped: bool, n: int) -> Places:
    """Steps of records by their places in an order; what is dropped has none."""
    steps = n // m if dropped else -(-n // m)
    for order in itertools.permutations(range(n)):
        yield tuple((place // m,) if place // m < steps else () for place in order)


def law_of(places: Callable[[int], Places], records: tuple[int, ...], steps: int) -> Law:
    found: dict[tuple[int, ...], int] = defaultdict(int)
    for outcome in places(len(records)):
        sums = [0] * steps
        for record, of_record in zip(records, outcome, strict=True):
            for step in of_record:
                sums[step] += record
        found[tuple(sums)] += 1
    total = sum(found.values())
    return {sums: ways / total for sums, ways in found.items()}


def cells(law: Law, s: float, noise: str = "gaussian", width: float = 0.08) -> np.ndarray:
    """Masses of the outputs in cubes, which show a little less than the outputs."""
    most, reach = 6, {"gaussian": 7, "laplace": 25}[noise]
    edges = np.arange(-most - reach * s, most + reach * s, width * max(s, 0.5))
    edges = np.concatenate([[-np.inf], edges, [np.inf]])

    def masses(mean: int) -> np.ndarray:
        z = (edges - mean) / s
        tail = 0.5 * np.exp(-np.abs(z))
        return np.diff(ndtr(z) if noise == "gaussian" else np.where(z < 0, tail, 1 - tail))

    tables = {mean: masses(mean) for mean in range(-most, most + 1)}
    total = 0.0
    for sums, chance in law.items():
        part = np.array(chance)
        for one in sums:
            part = np.multiply.outer(part, tables[one])
        total = total + part
    return np.ravel(total)


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Larger direction, at each epsilon."""
    return np.array(
        [
            max(np.maximum(one - math.exp(x) * other, 0).sum() for one, other in ((p, q), (q, p)))
            for x in EPSILONS
        ]
    )


def neighbours(
    relation: str, n: int, group: int, filler: int, vectors: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Data sets of n records, or with the group besides them, whose other records are alike."""
    others = (filler,) * (n if relation == "add_remove" else n - group)
    missing = {"add_remove": (), "substitute": (-1,) * group, "zero_out": (0,) * group}
    return vectors + others, missing[relation] + others


def ends(
    plan: Sampler | Schedule, n: int, s: float, steps: int, relation: str, group: int, noise: str
) -> tuple[np.ndarray, np.ndarray]:
    release = Release(plan, n, s, steps, noise, group=group)
    proof = Proof.of([release], relation)
    found = proof.accounts([Target(epsilon=x, width=GAP / 4) for x in EPSILONS])
    lower, upper = ([getattr(each, end) for each in found] for end in ("lower", "upper"))
    return np.array(lower), np.array(upper)


def bracketed(
    plan: Sampler | Schedule,
    places: Callable[[tuple[int, ...]], Law],
    n: int,
    s: float,
    steps: int,
    relation: str,
    group: int = 2,
    noise: str = "gaussian",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends, and what the group at C attains among records at 0 or -C; that no data sets
    with vectors -C, 0 and C of the group exceed the upper one is asserted."""
    lower, upper = ends(plan, n, s, steps, relation, group, noise)
    attained = np.zeros(len(EPSILONS))
    for filler in (0, -1):
        for vectors in itertools.combinations_with_replacement((1, 0, -1), group):
            one, other = neighbours(relation, n, group, filler, vectors)
            found = divergences(*(cells(places(records), s, noise) for records in (one, other)))
            assert np.all(found <= upper * (1 + 1e-9) + 1e-12)
            if vectors == (1,) * group:
                attained = np.maximum(attained, found)
    assert np.all(lower <= attained * (1 + 5e-3) + 1e-9)
    return lower, upper, attained


EPOCHS = [
    (dpsub.RandomAllocation(2), partial(allocated, 2, 1), 2, 0.92),
    (dpsub.Shuffle(2), partial(shuffled, 2, False), 4, 0.92),
    (dpsub.RandomAllocation(2, 2), partial(allocated, 2, 2), 2, 0.99),
    (dpsub.Shuffle(2, drop_last=True), partial(shuffled, 2, True), 5, 0.95),
    # functions that are the same for all steps do not tell a smaller last one
    (dpsub.Shuffle(2), partial(shuffled, 2, False), 3, 0.84),
]
"""Schedules of two steps, how they place records, the number of records, and how much of what all
records attain functions of the steps show."""


@pytest.mark.parametrize("relation", list(OTHERS))
@pytest.mark.parametrize("s", few([0.7, 2.0], more=0))
@pytest.mark.parametrize(("plan", "places", "n", "share"), few(EPOCHS, most=1, more=1))
def test_epochs(
    plan: Schedule, places: Callable[[int], Places], n: int, share: float, s: float, relation: str
) -> None:
    if isinstance(plan, dpsub.Shuffle) and relation == "add_remove":
        pytest.skip("one record has no bound, so that a group has none")

    def law(records: tuple[int, ...]) -> Law:
        return law_of(places, records, 2)

    lower, _, attained = bracketed(plan, law, n, s, 2, relation)
    assert np.all(lower >= share * attained - 1e-6)


def cut(rate: float, most: int, records: tuple[int, ...]) -> Law:
    """Every sample, and every subset of one that is too large."""
    law: dict[tuple[int, ...], float] = defaultdict(float)
    n = len(records)
    for k in range(n + 1):
        for drawn in itertools.combinations(range(n), k):
            kept = list(itertools.combinations(drawn, min(k, most)))
            for sample in kept:
                chance = rate**k * (1 - rate) ** (n - k) / len(kept)
                law[(sum(records[i] for i in sample),)] += chance
    return law


@pytest.mark.parametrize("relation", list(OTHERS))
@pytest.mark.parametrize(
    ("n", "rate", "most", "group"), few([(4, 0.6, 2, 2), (3, 0.5, 9, 2), (5, 0.3, 1, 3)], more=1)
)
def test_cut_samples(n: int, rate: float, most: int, group: int, relation: str) -> None:
    plan = dpsub.TruncatedPoisson(rate, most)
    lower, _, attained = bracketed(plan, partial(cut, rate, most), n, 0.8, 1, relation, group)
    assert np.all(lower >= attained * (1 - 5e-3) - 1e-9)


def without_replacement(m: int, records: tuple[int, ...]) -> Law:
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for sample in itertools.combinations(records, m):
        law[(sum(sample),)] += 1 / math.comb(len(records), m)
    return law


LAPLACE = [
    (dpsub.Poisson(0.3), partial(cut, 0.3, 9), 3),
    (dpsub.Wor(2), partial(without_replacement, 2), 4),
    (dpsub.CyclicPoisson(0.4, 1), partial(cut, 0.4, 9), 3),
    (dpsub.Deterministic(), lambda records: {(sum(records),): 1.0}, 3),
]


@pytest.mark.parametrize("relation", list(OTHERS))
@pytest.mark.parametrize(("plan", "law", "n"), few(LAPLACE, most=2, more=1))
def test_laplace_noise(
    plan: Sampler | Schedule, law: Callable[[tuple[int, ...]], Law], n: int, relation: str
) -> None:
    asked = (plan, law, n, 1.0, 1, relation)
    lower, upper, attained = bracketed(*asked, noise="laplace")
    # records at C have the values of records at -C, in the other order
    among_same = divergences(
        *(cells(law(each), 1.0, "laplace") for each in neighbours(relation, n, 2, 1, (1, 1)))
    )
    attained = np.maximum(attained, among_same if relation == "zero_out" else 0.0)
    assert np.all(lower >= attained * (1 - 5e-3) - 1e-9)
    if isinstance(plan, dpsub.Poisson) or (
        isinstance(plan, dpsub.Wor) and relation == "add_remove"
    ):
        assert np.all(upper <= attained * (1 + 5e-3) + 1e-9)


def test_the_enumeration_would_find_a_fault() -> None:
    """The planted fault: the two records of a shuffled epoch take their steps independently, as in
    an allocation."""
    held = Occupancy.allocated(2, 1, 2), Occupancy.shuffled(2, 2, 2, 4, 2)
    law = partial(law_of, partial(shuffled, 2, False), steps=2)
    truth = divergences(*(cells(law(each), 2.0) for each in ((1, 1, -1, -1), (-1, -1, -1, -1))))
    found = []
    for each in held:
        sums = GroupSum(each, 2.0, 1.0, 2.0, 0.0)
        pld = sums.lower(1e-3, 1e-15, False)
        found.append(float(np.sum(pld.masses * np.maximum(-np.expm1(-pld.losses - pld.offset), 0))))
    assert found[0] > truth[0] * 1.01
    assert 0.92 * truth[0] < found[1] <= truth[0] * (1 + 1e-3)


ROWS = [(3, 1, 3), (4, 2, 3), (5, 3, 2), (7, 1, 4)]


@pytest.mark.parametrize(("t", "k", "group"), ROWS)
def test_the_law_of_steps_that_hold_records(t: int, k: int, group: int) -> None:
    law = law_of(partial(allocated, t, k), (1,) * group, t)
    _same_rows(Occupancy.allocated(t, k, group), law)


@pytest.mark.parametrize(("n", "m", "dropped"), [(6, 2, False), (7, 3, False), (7, 3, True)])
def test_the_law_of_steps_in_a_uniform_order(n: int, m: int, dropped: bool) -> None:
    steps = n // m if dropped else -(-n // m)
    last = min(m, n - m * (steps - 1))
    records = (1,) * 3 + (0,) * (n - 3)
    law = law_of(partial(shuffled, m, dropped), records, steps)
    _same_rows(Occupancy.shuffled(steps, m, last, n, 3), law)


def _same_rows(held: Occupancy, law: Law) -> None:
    rows: dict[tuple[int, ...], float] = defaultdict(float)
    for sums, chance in law.items():
        rows[tuple(np.trim_zeros(np.bincount(sums), "b").tolist())] += chance
    found = dict(zip(held.rows, held.least, strict=True))
    assert found.keys() == rows.keys() and held.rest < 1e-9
    for row, chance in rows.items():
        assert found[row] <= chance <= found[row] * (1 + 1e-9)


def test_rows_that_are_left_out_are_charged() -> None:
    held = Occupancy.allocated(30, 1, 12)
    assert len(held.rows) == 24 and 0 < held.rest < 0.5
    assert sum(held.least) + held.rest == pytest.approx(1, abs=1e-9)
    whole = np.array([-np.inf, np.inf])
    for (least,), (most,) in LargestOfGroup(held, 1.0, 0.0, 1.0).masses(whole):
        assert least <= 1 <= most * (1 + 1e-9)


@pytest.mark.parametrize("group", [1, 2, 3])
def test_probabilities_of_a_group_in_a_cut_sample(group: int) -> None:
    n, rate, most = 6, 0.4, 2
    sample = CutSample(n, rate, most)
    law: dict[int, float] = defaultdict(float)
    for (sums,), chance in cut(rate, most, (1,) * group + (0,) * (n - group)).items():
        law[sums] += chance
    found = drawn_of_group(sample, group).pmf
    for count in range(1, min(group, most) + 1):
        assert found[count] <= law[count] <= found[count] * (1 + 1e-9)
    for other in (None, 0, -1):
        under_p, under_q = FilledSample(sample, other, 0.5, group).weights
        fillers = (-1,) * (n - group)
        replaced = fillers if other is None else (other,) * group + fillers
        for weights, records in ((under_p, (1,) * group + fillers), (under_q, replaced)):
            truth = cut(rate, most, records)
            for place, weight in enumerate(weights.tolist()):
                assert weight == pytest.approx(truth.get((place - most,), 0.0), abs=1e-12)

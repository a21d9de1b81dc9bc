"""Groups of records against every sample of tiny data sets, by a program that shares nothing with
the accountant."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.sampling import Multistage, Sampler
from tests.few import few
from tests.tiny_mechanisms import two_steps

RECORDS = (-1, 0, 1)
EPSILONS = (0.0, 0.3, 1.0, 2.0)
SCALE = 1.0
GAP = 2e-3  # relative, of ends that bracket one number


def samples(sampler: str, n: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Return each sample, as a list of records, and its probability, from the definition of a
    sampler."""
    first, _, rest = sampler.partition(",")
    name, size = first.split(":")
    if name == "poisson":
        rate = float(size)
        drawn = itertools.chain.from_iterable(
            ((kept, rate ** len(kept) * (1 - rate) ** (n - len(kept))) for kept in kept_of_size)
            for kept_of_size in (itertools.combinations(range(n), k) for k in range(n + 1))
        )
    elif name == "wor":
        drawn = (
            (kept, 1 / math.comb(n, int(size)))
            for kept in itertools.combinations(range(n), int(size))
        )
    else:
        drawn = ((kept, n ** -int(size)) for kept in itertools.product(range(n), repeat=int(size)))
    for kept, chance in drawn:
        if not rest:
            yield kept, chance
            continue
        for places, later in samples(rest, len(kept)):
            yield tuple(kept[place] for place in places), chance * later


def output_cells(laws: list[dict[int, float]], most: int) -> np.ndarray:
    """Return the masses of noisy sums in cells, one row for each law of sums."""
    edges = np.concatenate([[-np.inf], np.arange(-most - 8, most + 8, 0.02), [np.inf]]) / SCALE
    rows = np.zeros((len(laws), edges.size - 1))
    tails = {total: ndtr(edges - total / SCALE) for total in range(-most, most + 1)}
    for row, law in zip(rows, laws, strict=True):
        for total, chance in law.items():
            row += chance * np.diff(tails[total])
    return rows


def universe(
    sampler: str, n: int, group: int | tuple[int, int], relation: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses of outputs on all pairs of data sets with n records, or n besides the
    group, both orders."""
    added, removed = (group, group) if isinstance(group, int) else group
    common = n if relation == "add_remove" else n - added
    if isinstance(group, int) and relation == "add_remove":
        removed = 0
    counts: dict[int, dict[tuple[int, ...], float]] = {}
    for size in {common + added, common + removed}:
        law: dict[tuple[int, ...], float] = defaultdict(float)
        for kept, chance in samples(sampler, size):
            law[tuple(np.bincount(kept, minlength=size).tolist())] += chance
        counts[size] = law
    first, second = [], []
    for fillers in itertools.combinations_with_replacement(RECORDS, common):
        one = [sums_of(counts[common + added], (*fillers, *unit)) for unit in units(added)]
        other = [sums_of(counts[common + removed], (*fillers, *unit)) for unit in units(removed)]
        if relation == "zero_out":
            other = [sums_of(counts[n], (*fillers, *[0] * added))]
        for left, right in itertools.product(one, other):
            first += [left, right]
            second += [right, left]
    most = max(abs(total) for law in (*first, *second) for total in law)
    return output_cells(first, most), output_cells(second, most)


def units(size: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations_with_replacement(RECORDS, size)


def sums_of(counts: dict[tuple[int, ...], float], records: tuple[int, ...]) -> dict[int, float]:
    law: dict[int, float] = defaultdict(float)
    for copies, chance in counts.items():
        law[int(np.dot(copies, records))] += chance
    return law


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(x) * q, 0.0).sum(axis=1).max() for x in EPSILONS])


def plan(sampler: str) -> Sampler:
    return Multistage.of_text(sampler)


def ends(
    sampler: str, n: int, group: int | tuple[int, int], relation: str, steps: int = 1
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return both bounds at all epsilons, and their kind."""
    release = Release(plan(sampler), n, SCALE, steps, group=group)
    proof = Proof.of([release], relation)
    found = proof.accounts([Target(epsilon=x, width=GAP / 2) for x in EPSILONS])
    lower, upper = (np.array([getattr(each, end) for each in found]) for end in ("lower", "upper"))
    return lower, upper, found[0].kind


CASES = [
    ("poisson:0.3", 2, 2),
    ("wor:2", 5, 2),
    ("wr:2", 4, 2),
    ("wor:3,wr:2", 5, 2),
    ("poisson:0.3", 4, 3),
    ("wor:3", 6, 3),
    ("wor:3", 4, 3),
    ("wr:3", 3, 3),
    ("wr:2,wr:2", 3, 2),
    ("wr:2,poisson:0.4", 3, 2),
]


@pytest.mark.parametrize("relation", ["add_remove", "substitute", "zero_out"])
@pytest.mark.parametrize(("sampler", "n", "group"), few(CASES, most=4))
def test_every_group_is_below_the_bound(sampler: str, n: int, group: int, relation: str) -> None:
    if relation == "zero_out" and ",poisson" in sampler:
        pytest.skip("one record has no bound, so that a group has none")
    truth = divergence(*universe(sampler, n, group, relation))
    lower, upper, kind = ends(sampler, n, group, relation)
    assert np.all(truth <= upper * (1 + 1e-9) + 1e-12)
    # what is attained is attained by one of these data sets
    assert np.all(lower <= truth * (1 + 1e-3) + 1e-9)
    if kind == "exact":
        assert np.all(upper <= truth * (1 + 2 * GAP) + 1e-9)
    # the bound of a smaller group is not one of this group
    fewer = ends(sampler, n, group - 1, relation)[1]
    assert np.any(truth > fewer * (1 + 1e-3))


@pytest.mark.parametrize("group", [(1, 1), (2, 1), (3, 1)], ids=str)
def test_records_added_and_removed_together(group: tuple[int, int]) -> None:
    truth = divergence(*universe("poisson:0.3", 1, group, "add_remove"))
    lower, upper, kind = ends("poisson:0.3", 1, group, "add_remove")
    assert kind == "exact"
    assert np.all(truth <= upper * (1 + 1e-9) + 1e-12)
    assert np.all(lower <= truth * (1 + 1e-3) + 1e-9)
    assert np.all(upper <= truth * (1 + 2 * GAP) + 1e-9)
    # the order of the two numbers does not count
    np.testing.assert_array_equal(ends("poisson:0.3", 1, group[::-1], "add_remove")[1], upper)


@pytest.mark.parametrize("relation", ["add_remove", "substitute", "zero_out"])
@pytest.mark.parametrize(("sampler", "n", "group"), CASES[:3])
def test_two_adaptive_steps(sampler: str, n: int, group: int, relation: str) -> None:
    p, q = universe(sampler, n, group, relation)
    # a step that takes the same data sets in the other order would be another relation
    sides = [(p[::2], q[::2]), (p[1::2], q[1::2])] if relation != "substitute" else [(p, q)]
    upper = ends(sampler, n, group, relation, steps=2)[1]
    for one, other in sides:
        truth = two_steps(one, other, EPSILONS)
        assert np.all(truth <= upper * (1 + 1e-6) + 1e-9)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_group_by_the_curve_of_one_record(mechanism: str) -> None:
    """The bound that holds for all samplers is above the values that Poisson samples attain, and
    below twice the epsilon of one record."""
    asked = {"noise_multiplier": 1.0, "steps": 20, "delta": 1e-4, "mechanism": mechanism}
    single = dpsub.account(dpsub.CyclicPoisson(0.1, 1), **asked).upper
    both = dpsub.account(dpsub.CyclicPoisson(0.1, 1), group=2, **asked)
    shared = 1e-4 / (1 + math.exp(single))
    doubled = 2 * dpsub.account(dpsub.CyclicPoisson(0.1, 1), **asked | {"delta": shared}).upper
    assert single < both.lower or mechanism == "laplace"
    assert both.upper < doubled

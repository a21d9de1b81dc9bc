"""Theorems 62 and 78 (docs/proofs/shuffling.md) by brute force: epochs that drop the records behind
the last whole batch.

Who is in which of two batches is enumerated; an output is seen in cells of the line. An adversary
picks numbers of all records in {-1, 1}, for the second step from what was seen of the first. Both
sides of the theorem are games of this kind, whose values are computed without the library.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep

NOISE = 0.8
EDGES = np.array([-np.inf, -2.0, -1.0, -0.3, 0.3, 1.0, 2.0, np.inf])
Plan = tuple[tuple[int, ...], tuple[int, ...]]
CASES = [(1, 2), (1, 3), pytest.param(2, 4, marks=pytest.mark.thorough)]


def plans(present: Sequence[int], m: int) -> list[Plan]:
    """Return the plans of two batches of m of the records, every choice as likely as any other; the
    rest is dropped."""
    found = []
    for first in itertools.combinations(present, m):
        rest = [i for i in present if i not in first]
        found += [(first, second) for second in itertools.combinations(rest, m)]
    return found


def masses(numbers: Sequence[int], members: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the chances of the cells of one output, for each batch: shape (batches, cells)."""
    sums = np.array([sum(numbers[i] for i in batch) for batch in members], dtype=float)
    return np.diff(ndtr((EDGES[None, :] - sums[:, None]) / NOISE), axis=1)


def value(first: list[Plan], second: list[Plan], records: int, order: float) -> float:
    """Return the largest H_a of two adaptive steps, the first data set drawing its batches from
    `first`, all alike, the other one from `second`."""
    choices = list(itertools.product((-1, 1), repeat=records))
    sides = [
        {
            numbers: [masses(numbers, [plan[step] for plan in drawn]) for step in (0, 1)]
            for numbers in choices
        }
        for drawn in (first, second)
    ]
    best = 0.0
    for start in choices:
        total = 0.0
        # the best second step after each cell of the first
        for cell in range(EDGES.size - 1):
            reached = [side[start][0][:, cell] / side[start][0].shape[0] for side in sides]
            ends = []
            for then in choices:
                p, q = (chance @ side[then][1] for chance, side in zip(reached, sides, strict=True))
                ends.append(float(np.maximum(p - order * q, 0.0).sum()))
            total += max(ends)
        best = max(best, total)
    return best


def replaced(m: int, order: float) -> float:
    """Return the value under `substitute`: record 0 of 2 m records is replaced by a further one."""
    others = list(range(1, 2 * m))
    return value(plans([0, *others], m), plans([2 * m, *others], m), 2 * m + 1, order)


def one_more(m: int, n: int, order: float) -> float:
    """Return the value under `add_remove`: record n is there or not, larger order of the two."""
    with_it, without = plans(range(n + 1), m), plans(range(n), m)
    return max(
        value(with_it, without, n + 1, order),
        value(without, with_it, n + 1, order),
    )


def share(m: int, n: int) -> float:
    return 2 * m / (n + 1)


@pytest.mark.parametrize(("m", "n"), CASES)
def test_one_record_more_is_a_share_of_one_replaced(m: int, n: int) -> None:
    for order in (1.0, 1.3, 2.5):
        attained = one_more(m, n, order)
        assert 0 < attained <= share(m, n) * replaced(m, order) * (1 + 1e-12)


@pytest.mark.parametrize(("m", "n"), CASES)
def test_the_library_bounds_one_record_more(m: int, n: int) -> None:
    for epsilon in (0.0, 0.5, 1.0):
        proved = dpsub.account(
            dpsub.Shuffle(m),
            2 * m,
            noise_multiplier=NOISE,
            epochs=1,
            epsilon=epsilon,
            quick=True,
            adjacency="substitute",
        )
        assert one_more(m, n, math.exp(epsilon)) <= share(m, n) * proved.upper


@pytest.mark.parametrize(("m", "n"), CASES)
def test_a_smaller_share_is_noticed(m: int, n: int) -> None:
    # the fault: a further record that may be dropped
    assert one_more(m, n, 1.0) > 2 * m / (n + 2) * replaced(m, 1.0)


def test_a_batch_that_is_kept_is_noticed() -> None:
    """With the fault the last, incomplete batch is released, so that its sum tells of one record
    more."""
    m, n, order = 1, 2, 1.3
    with_it = plans(range(n + 1), m)
    # the second step of the larger data set holds what is left over as well
    kept = [(first, tuple(i for i in range(n + 1) if i not in first)) for first, _ in with_it]
    attained = value(kept, plans(range(n), m), n + 1, order)
    assert attained > share(m, n) * replaced(m, order)


# --- Both bounds of such an epoch, with a record replaced or set to 0
# -------------------------------


def dropping(m: int, n: int, relation: str) -> tuple[list[Plan], list[Plan], int]:
    """Return the plans of both data sets of a `substitute` game; of `zero_out` those in which
    record 0 does nothing in the second one."""
    drawn = plans(range(n), m)
    if relation == "substitute":
        # the other record is one with a number of its own
        renamed = [tuple(tuple(n if i == 0 else i for i in batch) for batch in p) for p in drawn]
        return drawn, renamed, n + 1  # type: ignore[return-value]
    emptied = [tuple(tuple(i for i in batch if i) for batch in plan) for plan in drawn]
    return drawn, emptied, n  # type: ignore[return-value]


@pytest.mark.parametrize(("m", "n"), [(2, 5), (1, 3), pytest.param(1, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", ["substitute", "zero_out"])
def test_no_adversary_exceeds_what_is_proved(relation: str, m: int, n: int) -> None:
    first, second, records = dropping(m, n, relation)
    for epsilon in (0.0, 0.5, 1.0):
        order = math.exp(epsilon)
        attained = max(value(first, second, records, order), value(second, first, records, order))
        proved = dpsub.account(
            dpsub.Shuffle(m, drop_last=True),
            n,
            noise_multiplier=NOISE,
            epochs=1,
            epsilon=epsilon,
            adjacency=relation,
        )
        assert attained <= proved.upper


@pytest.mark.parametrize(("m", "n"), [(1, 2), pytest.param(2, 4, marks=pytest.mark.thorough)])
def test_one_record_more_takes_the_place_of_another(m: int, n: int) -> None:
    asked = {"noise_multiplier": NOISE, "epochs": 1, "adjacency": "add_remove"}
    for epsilon in (0.0, 0.5, 1.0):
        proved = dpsub.account(dpsub.Shuffle(m, drop_last=True), n, epsilon=epsilon, **asked)
        attained = one_more(m, n, math.exp(epsilon))
        assert proved.kind == "exact"
        # cells of outputs lose some of what the data sets attain
        assert 0.8 * proved.lower < attained <= proved.upper


def test_a_record_that_is_dropped_more_often_is_noticed() -> None:
    """The planted fault drops the record as if there were one more."""
    first, second, _ = dropping(1, 3, "substitute")
    attained = value(first, second, 4, 1.0)
    x = np.zeros(1)
    assert attained <= HiddenStep(2, NOISE, 2.0, 2 / 3).profile(x)[0]
    assert attained > HiddenStep(2, NOISE, 2.0, 2 / 4).profile(x)[0]


@pytest.mark.parametrize("noise", [0.6, 1.2])
def test_one_record_more_is_exact(noise: float) -> None:
    """The bounds lie on both sides of an integral over all outputs."""
    n, m = 4, 2
    asked = {"noise_multiplier": noise, "epochs": 1, "adjacency": "add_remove"}
    for epsilon in (0.0, 0.4, 1.5):
        found = dpsub.account(dpsub.Shuffle(m, drop_last=True), n, epsilon=epsilon, **asked)
        attained = integrated(n + 1, m, (2.0, 0.0), noise, math.exp(epsilon))
        assert found.lower * (1 - 1e-3) <= attained <= found.upper * (1 + 1e-3)
        assert found.upper - found.lower < 0.01


@pytest.mark.parametrize(("steps", "noise"), [(1000, 1.4), (100, 1.0), (1000, 2.0), (10_000, 1.4)])
def test_a_dropped_record_leaves_little_between_attack_and_proof(steps: int, noise: float) -> None:
    """What a record tells whose place is taken is what keeps the two apart in other epochs."""
    asked = {"noise_multiplier": noise, "epochs": 1, "delta": 1e-5, "adjacency": "substitute"}
    kept = dpsub.account(dpsub.Shuffle(2), 2 * steps, **asked)
    dropping = dpsub.account(dpsub.Shuffle(2, drop_last=True), 2 * steps + 1, **asked)
    assert dropping.upper < 1.4 * dropping.lower
    assert dropping.upper < 0.7 * kept.upper


def integrated(n: int, m: int, shifts: tuple[float, float], noise: float, order: float) -> float:
    """Return the larger H_a of an epoch of two steps in which all other records add up to a
    constant, on a grid of outputs."""
    t = np.linspace(-9, 11, 1601)
    z = np.exp(-((t[:, None] - np.array([0.0, *shifts])) ** 2) / 2 / noise**2)
    z /= noise * math.sqrt(2 * math.pi)
    empty = np.outer(z[:, 0], z[:, 0])

    def density(place: int) -> np.ndarray:
        there = (np.outer(z[:, place], z[:, 0]) + np.outer(z[:, 0], z[:, place])) / 2
        return 2 * m / n * there + (1 - 2 * m / n) * empty

    p, q = density(1), density(2)
    cell = (t[1] - t[0]) ** 2
    sides = [cell * np.maximum(a - order * b, 0).sum() for a, b in ((p, q), (q, p))]
    return float(max(sides))


@pytest.mark.parametrize(
    ("relation", "data_sets"),
    [("substitute", [(2.0, 0.0)]), ("zero_out", [(1.0, 0.0), (2.0, 1.0)])],
)
@pytest.mark.parametrize("noise", [0.6, 1.2])
def test_the_attack_attains_what_its_data_sets_give(
    relation: str, data_sets: list[tuple[float, float]], noise: float
) -> None:
    n, m, question = 5, 2, {"noise_multiplier": noise, "epochs": 1, "adjacency": relation}
    for epsilon in (0.0, 0.4, 1.5):
        best = [integrated(n, m, shifts, noise, math.exp(epsilon)) for shifts in data_sets]
        dropping = dpsub.account(dpsub.Shuffle(m, drop_last=True), n, epsilon=epsilon, **question)
        # its first data sets by their likelihood ratio
        assert best[0] * 0.99 < dropping.lower <= max(best) * (1 + 1e-9)
        # the fault: a record that is never dropped
        kept = dpsub.account(dpsub.Shuffle(m), 2 * m, epsilon=epsilon, **question)
        assert kept.lower > max(best)

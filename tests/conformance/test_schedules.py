"""The contract of every schedule: draws of whole epochs against enumerated laws, and what is stated
of steps."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import (
    SCHEDULES,
    CyclicPoisson,
    Deterministic,
    Frame,
    PersistentShuffle,
    RandomAllocation,
    Schedule,
    SecretCyclicPoisson,
    Shuffle,
    kind_of,
)
from dpsub.sampling.frame import Samples
from tests.statistical import budget

EXAMPLES = [(s, n) for name in SCHEDULES.names() for s, n in SCHEDULES.get(name).examples()]
every_example = pytest.mark.parametrize(
    ("schedule", "n"), EXAMPLES, ids=[f"{s}-{n}" for s, n in EXAMPLES]
)
N_EPOCHS = 4000

SHARED: dict[type[Schedule], Callable[[Schedule, np.ndarray], np.ndarray]] = {
    PersistentShuffle: lambda schedule, within: within,
    # the same group, and another coin
    SecretCyclicPoisson: lambda schedule, within: schedule.rate * within,
}
"""Of epochs that follow one plan: the law of one record in steps a and b of two of them, from that
of steps a and b of one."""

Plan = tuple[int, ...]
"""Tuples for an epoch: the entry at step * n + record says whether the record is in the step."""


def plans(schedule: Schedule, n: int) -> dict[Plan, float]:
    """Return the law of an epoch, from the definition."""
    steps, law = schedule.steps_per_epoch(n), dict[Plan, float]()
    for places, chance in schedule.law(n):
        plan = tuple(int(step in places[record]) for step in range(steps) for record in range(n))
        law[plan] = law.get(plan, 0.0) + chance
    return law


def tables(samples: Samples, n: int, steps: int) -> np.ndarray:
    """Return the membership of blocks of `steps` steps, shape (blocks, steps * n)."""
    found = np.zeros((samples.n_subsets, n), dtype=int)
    np.add.at(
        found,
        (np.repeat(np.arange(samples.n_subsets), samples.distinct), samples.indices),
        samples.counts,
    )
    return found.reshape(-1, steps * n)


def drawn(schedule: Schedule, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw epochs, the first two of each run next to each other, shape (epochs, steps * n)."""
    steps = schedule.steps_per_epoch(n)
    runs = N_EPOCHS // 2 if schedule.one_plan else 1
    blocks = [schedule.draw_block(Frame(n), N_EPOCHS // runs * steps, rng) for _ in range(runs)]
    return np.concatenate([tables(block, n, steps) for block in blocks])


def epoch_p(outcomes: np.ndarray, law: dict[Plan, float]) -> float:
    return budget.joint_p([tuple(row) for row in outcomes.tolist()], law)


def pairs_p(schedule: Schedule, table: np.ndarray, law: dict[Plan, float], n: int) -> float:
    """Return the p-value of record 0 in steps a and b of two consecutive epochs, for all a and b:
    the joint law of two steps, of one epoch by the enumerated law, of two by independence, or by
    what they share."""
    plan, chance = np.array(list(law)), np.array(list(law.values()))
    steps = schedule.steps_per_epoch(n)
    theirs, ours = plan[:, ::n][:, :steps], table.reshape(-1, 2 * steps, n)[:, :, 0]
    once, within = chance @ theirs, (theirs * chance[:, None]).T @ theirs
    across = SHARED[type(schedule)](schedule, within) if schedule.one_plan else np.outer(once, once)
    expected = np.block([[within, across], [across, within]])
    return budget.p_value((ours.T @ ours).ravel(), expected.ravel(), len(ours))


@every_example
def test_an_epoch_has_its_law(schedule: Schedule, n: int) -> None:
    steps, law = schedule.steps_per_epoch(n), plans(schedule, n)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    table = drawn(schedule, n, budget.rng("schedules", (schedule, n)))
    level = budget.level("schedules", 2 * len(EXAMPLES))
    # of two epochs of one plan the first one alone is a draw
    assert epoch_p(table[:: 1 + schedule.one_plan], law) > level
    assert pairs_p(schedule, table.reshape(-1, 2 * steps * n), law, n) > level


@every_example
def test_statements_about_steps_follow_from_the_law(schedule: Schedule, n: int) -> None:
    law, steps = plans(schedule, n), schedule.steps_per_epoch(n)
    sizes = np.zeros((steps, n + 1))
    for plan, chance in law.items():
        for step in range(steps):
            sizes[step, sum(plan[step * n : (step + 1) * n])] += chance
    stated = np.pad(schedule.distinct_law(n), (0, n + 1))[: n + 1]
    assert stated == pytest.approx(sizes[0], abs=1e-12)
    tails = np.cumsum(sizes[:, ::-1], axis=1)
    assert (tails <= tails[0] + 1e-12).all()  # no step is larger in law than the first
    occurrences = sum(chance * sum(plan) for plan, chance in law.items()) / n
    assert n * occurrences == pytest.approx(steps * schedule.expected_distinct(n))
    if not getattr(schedule, "drop_last", False):
        assert occurrences == pytest.approx(schedule.occurrences)


@every_example
def test_a_block_of_steps_begins_and_ends_anywhere(schedule: Schedule, n: int) -> None:
    steps = schedule.steps_per_epoch(n)
    assert (
        schedule.draw_block(Frame(n), 2 * steps + 1, np.random.default_rng(1)).n_subsets
        == 2 * steps + 1
    )
    one, two = itertools.islice(schedule.epochs(n, np.random.default_rng(2)), 2)
    assert one.n_subsets == two.n_subsets == steps
    if isinstance(schedule, PersistentShuffle):
        assert one.indices.tolist() == two.indices.tolist()


@pytest.mark.parametrize("name", SCHEDULES.names())
def test_a_schedule_is_a_frozen_value_that_names_its_options(name: str) -> None:
    kind = SCHEDULES.get(name)
    assert kind_of(name) is kind
    assert set(kind.options) == {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    # half of the records, which epochs of two steps have, too
    made = kind.of_sizes(12, m=6, cycle=1, separation=2, t=2)
    assert made.steps_per_epoch(12) in (1, 2)
    assert np.arange(len(made.distinct_law(12))) @ made.distinct_law(12) == pytest.approx(6)
    with pytest.raises(ArgumentError, match=f"{name} needs .*m, the "):
        kind.of_sizes(12, cycle=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, next(iter(kind.options), "any"), 1)


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        (RandomAllocation, 6),
        (Shuffle, 6),
        (Deterministic, 6),
        (CyclicPoisson, 3),
        (SecretCyclicPoisson, 3),
    ],
)
def test_a_schedule_of_sizes_has_steps_of_m_records(kind: type[Schedule], steps: int) -> None:
    made = kind.of_sizes(12, m=2, cycle=3)
    assert made.steps_per_epoch(12) == steps
    assert np.arange(len(made.distinct_law(12))) @ made.distinct_law(12) == pytest.approx(2)


def test_a_schedule_without_a_law_says_what_to_define() -> None:
    class Odd(Shuffle):
        law = Schedule.law

    with pytest.raises(
        UnsupportedError,
        match=r"^epochs of shuffle can be enumerated only by its own definition, got none; define "
        r"Odd\.law$",
    ):
        plans(Odd(2), 4)


def test_few_steps_of_a_huge_epoch_are_cheap() -> None:
    rng = np.random.default_rng(1)
    for schedule, n in (
        (RandomAllocation(10**9), 1000),
        (RandomAllocation(10**9, 3), 1000),
        (Shuffle(5), 10**9),
        (PersistentShuffle(5), 10**9),
        (Deterministic(5), 10**9),
        (CyclicPoisson(1e-7, 10), 10**9),
    ):
        assert schedule.draw_block(Frame(n), 3, rng).n_subsets == 3


class TestPlantedFaults:
    """Each wrong draw must be rejected by the same test at the same level."""

    level = budget.level("schedules", 2 * len(EXAMPLES))

    def drawn(self, schedule: Schedule, n: int, fault: str) -> np.ndarray:
        return drawn(schedule, n, budget.rng(fault))

    def test_allocation_to_independent_steps(self) -> None:
        law = plans(RandomAllocation(3), 2)
        poisson = budget.rng("fault: poisson").random((N_EPOCHS, 6)) < 1 / 3
        assert epoch_p(poisson.astype(int), law) < self.level

    def test_allocation_of_a_wrong_number_of_steps(self) -> None:
        assert (
            epoch_p(
                self.drawn(RandomAllocation(3, 1), 2, "fault: k"), plans(RandomAllocation(3, 2), 2)
            )
            < self.level
        )

    def test_one_order_for_two_epochs(self) -> None:
        once = self.drawn(Shuffle(2), 4, "fault: order")
        twice = np.repeat(once, 2, axis=0).reshape(-1, 2 * once.shape[1])
        law = plans(Shuffle(2), 4)
        assert pairs_p(Shuffle(2), once.reshape(len(once) // 2, -1), law, 4) > self.level
        assert pairs_p(Shuffle(2), twice, law, 4) < self.level

    def test_a_kept_order_that_is_drawn_again(self) -> None:
        again = self.drawn(Shuffle(2), 4, "fault: again")
        law = plans(Shuffle(2), 4)
        kept = self.drawn(PersistentShuffle(2), 4, "fault: kept")
        assert pairs_p(PersistentShuffle(2), kept.reshape(-1, 16), law, 4) > self.level
        assert pairs_p(PersistentShuffle(2), again.reshape(-1, 16), law, 4) < self.level

    def test_groups_that_are_drawn_from_all_records(self) -> None:
        wrong = budget.rng("fault: groups").random((N_EPOCHS, 8)) < 0.15
        assert epoch_p(wrong.astype(int), plans(CyclicPoisson(0.3, 2), 4)) < self.level

"""Draws against laws for every sampler, and laws against literal enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import multinomial

from dpsub.sampling import REGISTRY, Multistage, MustOW, MustWW, Sampler, names_of_sizes, of_sizes
from dpsub.sampling.base import Stage, WithReplacement
from dpsub.sampling.frame import Frame, Samples
from tests.statistical import budget, forward


def chains(count: int, *, size_max: int, seed: int) -> list[tuple[Sampler, int]]:
    """Random chains of three stages."""
    rng = np.random.default_rng(seed)
    drawn = [
        forward.random_chain(("ow", "ow", "owp"), rng, n_max=4, size_max=size_max)
        for _ in range(count)
    ]
    return [(Multistage(stages), n) for stages, n in drawn]


N_DRAWS = 20_000
EXAMPLES = [(s, n) for name in REGISTRY.names() for s, n in REGISTRY.get(name).examples()]
SIZED = [name for name in names_of_sizes() if set(REGISTRY.get(name).sizes) <= {"b", "m"}]
TINY: list[tuple[Sampler, int]] = [
    *((of_sizes(name, n=4, m=2, b=3), 4) for name in SIZED),
    (MustOW(2, 4), 3),
    (MustWW(3, 3), 3),
    *chains(12, size_max=3, seed=3),
]


def stages_of(sampler: Sampler) -> tuple[Stage, ...]:
    stages: tuple[Stage, ...] = sampler.stages  # type: ignore[attr-defined]
    return stages


def count_table(samples: Samples, n: int) -> np.ndarray:
    """Return the counts of all records, shape (n_subsets, n)."""
    table = np.zeros((samples.n_subsets, n), dtype=int)
    table[np.repeat(np.arange(samples.n_subsets), samples.distinct), samples.indices] = (
        samples.counts
    )
    return table


def joint_p(table: np.ndarray, stages: tuple[Stage, ...], n: int) -> float:
    """Return the p-value of draws (rows of counts) against the enumerated joint law."""
    return budget.joint_p([tuple(row) for row in table.tolist()], forward.law(stages, n))


def multiplicity_p(table: np.ndarray, sampler: Sampler) -> float:
    """Return the p-value of the counts of record 0."""
    pmf = sampler.multiplicity_law(table.shape[1]).pmf
    if table[:, 0].max() >= len(pmf):
        return 0.0
    return budget.p_value(np.bincount(table[:, 0], minlength=len(pmf)), pmf, len(table))


def distinct_p(distinct: np.ndarray, law: np.ndarray) -> float:
    """Return the p-value of numbers of distinct records."""
    if distinct.max() >= len(law):
        return 0.0
    return budget.p_value(np.bincount(distinct, minlength=len(law)), law, len(distinct))


def cumulative_p(distinct: np.ndarray, law: np.ndarray) -> float:
    """Return the p-value of all tails of the distinct counts: a shift of a wide law shows there
    before it does in any one cell."""
    if distinct.max() >= len(law):
        return 0.0
    below = np.searchsorted(np.sort(distinct), np.arange(len(law)), side="right")
    return budget.p_value(below, np.cumsum(law), len(distinct))


def pairs_p(table: np.ndarray, distinct_law: np.ndarray) -> float:
    """Return the p-value of the joint inclusion of every pair of records: all pairs alike, E[D (D -
    1)] / (n (n - 1)) each."""
    n_draws, n = table.shape
    d = np.arange(len(distinct_law))
    probability = float(d * (d - 1) @ distinct_law) / (n * (n - 1))
    included = (table > 0).astype(float)
    together = (included.T @ included)[np.triu_indices(n, 1)]
    return budget.p_value(together, np.full(len(together), probability), n_draws)


def consecutive_p(table: np.ndarray, eta: float) -> float:
    """Return the p-value of the inclusion of each record in both of two consecutive subsets: eta^2
    if these are independent."""
    both = ((table[0::2] > 0) & (table[1::2] > 0)).sum(axis=0)
    return budget.p_value(both, np.full(len(both), eta**2), len(table) // 2)


def case_ids(cases: list[tuple[Sampler, int]]) -> list[str]:
    return [f"{i}-{sampler.name}-{n}" for i, (sampler, n) in enumerate(cases)]


@pytest.mark.parametrize(("sampler", "n"), TINY, ids=case_ids(TINY))
def test_joint_law(sampler: Sampler, n: int) -> None:
    rng = budget.rng("joint law", (sampler, n))
    table = count_table(sampler.draw_block(Frame(n), N_DRAWS, rng), n)
    assert joint_p(table, stages_of(sampler), n) > budget.level("joint law", len(TINY))


@pytest.mark.parametrize(("sampler", "n"), EXAMPLES, ids=case_ids(EXAMPLES))
def test_draws_have_the_laws(sampler: Sampler, n: int) -> None:
    table = count_table(sampler.draw_block(Frame(n), N_DRAWS, budget.rng("laws", (sampler, n))), n)
    law = sampler.distinct_law(n)
    assert multiplicity_p(table, sampler) > budget.level("multiplicity law", len(EXAMPLES))
    assert distinct_p((table > 0).sum(axis=1), law) > budget.level("distinct law", len(EXAMPLES))
    assert pairs_p(table, law) > budget.level("pairs of records", len(EXAMPLES))
    assert consecutive_p(table, sampler.multiplicity_law(n).eta) > budget.level(
        "consecutive subsets", len(EXAMPLES)
    )


PAPER = [
    (of_sizes(name, n=n, m=m, b=b), n)
    for n, b, m in ((300, 50, 30), (1000, 200, 100), (30969, 500, 300))
    for name in SIZED
]


@pytest.mark.parametrize(("sampler", "n"), PAPER, ids=case_ids(PAPER))
def test_distinct_counts_at_the_sizes_of_the_papers(sampler: Sampler, n: int) -> None:
    distinct = sampler.draw_block(
        Frame(n), 10_000, budget.rng("paper sizes", (sampler, n))
    ).distinct
    assert cumulative_p(distinct, sampler.distinct_law(n)) > budget.level("paper sizes", len(PAPER))


def replicated(sampler: Sampler, n: int, replicates: list[int]) -> np.ndarray:
    """Stack blocks of 50 subsets, one block a replicate."""
    return np.concatenate(
        [
            count_table(
                sampler.draw_block(Frame(n), 50, budget.rng("replicates", (sampler, n), r)), n
            )
            for r in replicates
        ]
    )


def test_replicates_are_independent() -> None:
    sampler, n = MustOW(4, 6), 7
    level = budget.level("replicates", 2)
    table = replicated(sampler, n, list(range(200)))
    assert multiplicity_p(table, sampler) > level
    assert pairs_p(table, sampler.distinct_law(n)) > level


class TestPlantedFaults:
    """Each wrong sampler must be rejected by the same test at the same level."""

    def test_first_stage_one_too_large(self) -> None:
        right, wrong, n = MustOW(4, 6), MustOW(5, 6), 7
        table = count_table(wrong.draw_block(Frame(n), N_DRAWS, budget.rng("fault: b", wrong)), n)
        assert multiplicity_p(table, right) < budget.level("multiplicity law", len(EXAMPLES))
        assert distinct_p((table > 0).sum(axis=1), right.distinct_law(n)) < budget.level(
            "distinct law", len(EXAMPLES)
        )
        assert pairs_p(table, right.distinct_law(n)) < budget.level(
            "pairs of records", len(EXAMPLES)
        )

    @pytest.mark.parametrize("name", ["must_ow", "must_ww"])
    def test_first_stage_wrong_at_the_sizes_of_the_papers(self, name: str) -> None:
        n, b, m = 1000, 200, 100
        right, wrong = of_sizes(name, n=n, b=b, m=m), of_sizes(name, n=n, b=b - 5, m=m)
        distinct = wrong.draw_block(Frame(n), 10_000, budget.rng("fault: b", wrong)).distinct
        assert cumulative_p(distinct, right.distinct_law(n)) < budget.level(
            "paper sizes", len(PAPER)
        )

    def test_joint_law_sees_a_wrong_stage(self) -> None:
        right, n = MustWW(3, 3), 3
        for wrong in (MustWW(4, 3), MustOW(3, 3)):
            table = count_table(
                wrong.draw_block(Frame(n), N_DRAWS, budget.rng("fault: joint", wrong)), n
            )
            assert joint_p(table, stages_of(right), n) < budget.level("joint law", len(TINY))

    def test_aggregation_by_slot(self) -> None:
        sampler, n = MustWW(6, 3), 4
        rng = budget.rng("fault: slots")
        slots = rng.integers(n, size=(N_DRAWS, 6))
        chosen = np.sort(rng.integers(6, size=(N_DRAWS, 3)), axis=1)
        by_slot = 1 + (np.diff(chosen, axis=1) > 0).sum(axis=1)
        records = np.sort(np.take_along_axis(slots, chosen, axis=1), axis=1)
        by_record = 1 + (np.diff(records, axis=1) > 0).sum(axis=1)
        level = budget.level("distinct law", len(EXAMPLES))
        assert distinct_p(by_slot, sampler.distinct_law(n)) < level
        assert distinct_p(by_record, sampler.distinct_law(n)) > level

    def test_reused_stream(self) -> None:
        sampler, n = MustOW(4, 6), 7
        table = replicated(sampler, n, [0] * 200)
        assert multiplicity_p(table, sampler) < budget.level("replicates", 2)
        assert pairs_p(table, sampler.distinct_law(n)) < budget.level("replicates", 2)

    def test_subsets_drawn_twice(self) -> None:
        sampler, n = MustOW(4, 6), 7
        once = count_table(
            sampler.draw_block(Frame(n), N_DRAWS // 2, budget.rng("fault: twice")), n
        )
        table = np.repeat(once, 2, axis=0)
        eta = sampler.multiplicity_law(n).eta
        assert consecutive_p(table, eta) < budget.level("consecutive subsets", len(EXAMPLES))

    def test_some_records_preferred(self) -> None:
        right, n = Multistage([WithReplacement(4)]), 5
        rng = budget.rng("fault: preferred")
        labels = rng.choice(n, p=[0.2, 0.2, 0.2, 0.22, 0.18], size=(N_DRAWS, 4))
        table = (labels[:, :, None] == np.arange(n)).sum(axis=1)
        assert pairs_p(table, right.distinct_law(n)) < budget.level(
            "pairs of records", len(EXAMPLES)
        )


def test_budget_is_kept() -> None:
    assert sum(budget.SHARES.values()) <= budget.TOTAL


def test_p_values_are_valid() -> None:
    """Under the exact null, over all outcomes of three draws, P(p <= t) <= t."""
    probabilities = np.array([0.2, 0.3, 0.5])
    n_draws = 6
    outcomes = [(i, j, n_draws - i - j) for i in range(n_draws + 1) for j in range(n_draws + 1 - i)]
    chance = np.array([multinomial.pmf(o, n_draws, probabilities) for o in outcomes])
    p = np.array([budget.p_value(np.array(o), probabilities, n_draws) for o in outcomes])
    for t in np.unique(p):
        assert chance[p <= t].sum() <= t * (1 + 1e-12)


MORE = chains(40, size_max=4, seed=5)


def multiplicity_and_distinct(
    joint: dict[tuple[int, ...], Fraction], record: int
) -> tuple[list, list]:
    top = max(max(outcome) for outcome in joint)
    n = len(next(iter(joint)))
    copies, distinct = [Fraction(0)] * (top + 1), [Fraction(0)] * (n + 1)
    for outcome, probability in joint.items():
        copies[outcome[record]] += probability
        distinct[sum(count > 0 for count in outcome)] += probability
    return copies, distinct


def differs(law: np.ndarray, exact: list[Fraction]) -> float:
    """Return the largest relative difference; infinite if one has mass where the other has none."""
    width = max(len(law), len(exact))
    ours = np.pad(law, (0, width - len(law)))
    theirs = np.pad(np.array([float(p) for p in exact]), (0, width - len(exact)))
    if ((ours == 0) != (theirs == 0)).any():
        return np.inf
    positive = theirs > 0
    return float(np.max(np.abs(ours[positive] / theirs[positive] - 1)))


@pytest.mark.parametrize(("sampler", "n"), TINY + MORE, ids=case_ids(TINY + MORE))
def test_laws_equal_enumeration(sampler: Sampler, n: int) -> None:
    joint = forward.law(stages_of(sampler), n)
    assert sum(joint.values()) == 1
    for record in (0, n - 1):
        copies, distinct = multiplicity_and_distinct(joint, record)
        assert differs(sampler.multiplicity_law(n).pmf, copies) < 1e-13
        assert differs(sampler.distinct_law(n), distinct) < 1e-13


def test_enumeration_tells_a_wrong_size() -> None:
    copies, distinct = multiplicity_and_distinct(forward.law(stages_of(MustWW(3, 3)), 3), 0)
    wrong = MustWW(4, 3)
    assert differs(wrong.multiplicity_law(3).pmf, copies) > 1e-3
    assert differs(wrong.distinct_law(3), distinct) > 1e-3

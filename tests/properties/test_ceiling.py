"""delta at epsilon = 0 is a distance in total variation: no attack on k samples exceeds 1 - (1 -
p)^k, p the chance that the record is in one of them, and little noise comes close to it. The
ceiling is computed with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from mpmath import mp, mpf

from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.games.filler_flip import AdaptiveAttack
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import (
    REGISTRY,
    SCHEDULES,
    CyclicPoisson,
    MustOW,
    MustWW,
    Poisson,
    Sampler,
    Schedule,
    TruncatedPoisson,
    Wor,
    Wr,
)
from dpsub.sampling.base import Stage
from dpsub.streams import stream
from tests.few import few
from tests.fresh_seeds import replay, seed

Case = tuple[Sampler | Schedule, int, Relation, str]
MEMBERS = [*REGISTRY.members().values(), *SCHEDULES.members().values()]
EXAMPLES: list[Case] = [
    (sampler, n, relation, "gaussian")
    for kind in MEMBERS
    for sampler, n in kind.examples()
    for relation in Relation
]
FIRST: list[Case] = [
    (*kind.examples()[0], relation, "gaussian") for kind in MEMBERS for relation in Relation
]
"""One example of each sampler and schedule."""
CASES = 150  # random ones


def missed(slots: int, marked: int, stages: Sequence[Stage]) -> mpf:
    """Return the probability that none of the marked slots is drawn in the end."""
    if not stages or marked == 0:
        return mpf(marked == 0)
    stage, *later = stages
    if stage.kind == "poisson":
        return (1 - mpf(stage.rate)) ** marked
    m, total = stage.size, mpf(0)
    for count in range(min(m, marked if stage.kind == "wor" else m) + 1):
        if stage.kind == "wr":
            share = mpf(marked) / slots
            weight = mp.binomial(m, count) * share**count * (1 - share) ** (m - count)
        elif m - count > slots - marked:
            continue
        else:
            weight = (
                mp.binomial(marked, count)
                * mp.binomial(slots - marked, m - count)
                / mp.binomial(slots, m)
            )
        total += weight * missed(m, count, later)
    return total


def included(sampler: Sampler | Schedule, n: int, relation: Relation, release: Release) -> mpf:
    """Return the chance that the record is in one sample, or in one epoch."""
    records = n + (relation is Relation.ADD_REMOVE)
    if isinstance(sampler, TruncatedPoisson):
        q = mpf(sampler.rate)
        chances = (
            mp.binomial(records - 1, k) * q**k * (1 - q) ** (records - 1 - k)
            for k in range(records)
        )
        return q * mp.fsum(
            chance * min(1, mpf(sampler.max_batch) / (k + 1)) for k, chance in enumerate(chances)
        )
    if isinstance(sampler, CyclicPoisson):
        return mpf(sampler.rate)
    if isinstance(sampler, Schedule):
        return mpf(1)
    return 1 - missed(records, 1, release.chain().stages)


def attained(proof: Proof, steps: int) -> float:
    """Return the lower bound before it is compared with the upper one."""
    target, composition = Target(epsilon=0.0, width=0.1), proof.composition
    if composition.is_exact:
        return composition.brackets([target])[0].lower
    flipped = proof.cases[0].filler_flip
    flip = 0.0 if flipped is None else AdaptiveAttack(flipped, steps).answer(target)
    return max(composition.attack(target).value, flip)


def check(case: Case, s: float, times: int) -> None:
    sampler, n, relation, noise = case
    steps = times * (sampler.steps_per_epoch(n) if isinstance(sampler, Schedule) else 1)
    release = Release(sampler, n, s, steps, noise)
    try:
        proof = Proof.of([release], relation)
    except UnsupportedError:
        return
    with mp.workdps(50):
        ceiling = 1 - (1 - included(sampler, n, relation, release)) ** times
        found = attained(proof, steps)
        assert found <= ceiling, (
            f"{case}, s = {s!r}, {times} times: {found!r} above {mp.nstr(ceiling, 17)}"
        )
        assert found >= 0.9 * ceiling or s > 0.1


def test_no_attack_exceeds_the_chance_to_be_seen() -> None:
    for case in FIRST:
        check(case, 0.055, 18)


@pytest.mark.parametrize(
    ("s", "times"), few([(0.055, 18), (0.5, 1), (0.055, 1), (0.5, 18)], most=0, more=1)
)
def test_no_attack_on_any_example_does(s: float, times: int) -> None:
    for case in EXAMPLES:
        check(case, s, times)


def random_case(rng: np.random.Generator) -> Case:
    n = int(np.exp(rng.uniform(math.log(2), math.log(200))))
    rate, m = float(rng.uniform(1e-3, 1)), int(rng.integers(1, n + 1))
    b = int(rng.integers(1, min(n, 40) + 1))
    samplers: list[Sampler | Schedule] = [
        Poisson(rate),
        Wor(m),
        Wr(m),
        MustOW(b, min(m, 40)),
        MustWW(b, min(m, 40)),
        CyclicPoisson(rate, 2),
        *[TruncatedPoisson(rate, m)] * 4,
    ]
    sampler = samplers[int(rng.integers(len(samplers)))]
    relation = list(Relation)[int(rng.integers(3))]
    return sampler, n, relation, "gaussian" if rng.random() < 0.8 else "laplace"


@pytest.mark.thorough
def test_no_attack_on_random_samplers_does() -> None:
    rng = stream(seed(), experiment="ceiling", cell={}, role="data", replicate=0)
    for _ in range(CASES):
        case = random_case(rng)
        s = float(np.exp(rng.uniform(math.log(0.05), math.log(0.6))))
        times = int(rng.integers(1, 20))
        try:
            check(case, s, times)
        except AssertionError as error:
            raise AssertionError(replay(seed(), str(error))) from error

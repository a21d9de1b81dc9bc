"""Audits: real draws against the computed attack and the proved bound, and samplers that do not do
what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from dpsub.accounting.games.static import EpochAttack, StepAttack
from dpsub.accounting.questions import audit as auditing
from dpsub.accounting.questions.audit import Audit, audit
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of, default_relation
from dpsub.accounting.schemes.case import COVERED, Covered
from dpsub.sampling import (
    CyclicPoisson,
    Deterministic,
    Multistage,
    MustOW,
    MustWW,
    Poisson,
    RandomAllocation,
    Sampler,
    Schedule,
    Shuffle,
    TruncatedPoisson,
    Wor,
    Wr,
)
from dpsub.sampling.base import PoissonStage, WithReplacement
from dpsub.sampling.frame import Frame, Samples
from dpsub.sampling.laws import clopper_pearson
from tests.few import few
from tests.statistical import budget

Case = tuple[Sampler | Schedule, int | None, float, int, float, str | None]
CASES: list[Case] = [
    (Wor(2), 4, 1.0, 1, 0.5, None),
    (Wr(3), 6, 2.0, 20, 1.0, None),
    (MustOW(4, 6), 30, 3.0, 40, 0.5, None),
    (MustWW(5, 4), 20, 3.0, 30, 1.0, None),
    (Poisson(0.1), None, 1.0, 10, 1.0, None),
    (Poisson(0.1), 7, 1.0, 10, 1.0, "substitute"),
    (Poisson(0.1), 7, 1.0, 10, 1.0, "zero_out"),
    (Wor(2), 6, 1.0, 8, 1.0, "zero_out"),
    (Multistage([WithReplacement(6), PoissonStage(0.5)]), 20, 2.0, 20, 0.5, None),
    (CyclicPoisson(0.2, 3), 7, 1.0, 15, 1.0, None),
    (CyclicPoisson(0.2, 3), 7, 1.0, 15, 1.0, "substitute"),
    (Deterministic(3), 7, 2.0, 6, 1.0, None),
    (Deterministic(3), 7, 2.0, 6, 1.0, "zero_out"),
    (Shuffle(3), 8, 1.0, 6, 2.0, None),
    (Shuffle(3), 8, 1.0, 6, 1.0, "zero_out"),
    (TruncatedPoisson(0.3, 3), 9, 1.0, 10, 0.5, None),
    (RandomAllocation(5), 8, 1.0, 10, 1.0, None),
    (RandomAllocation(5), 8, 1.0, 10, 1.0, "zero_out"),
    (RandomAllocation(5, 2), 8, 1.0, 10, 1.0, None),
]
CONFIDENCE = 1 - budget.level("audit", 2 * len(CASES))
DRAWS = 40_000


def run(case: Case, seed: int = 11) -> Audit:
    sampler, n, noise, steps, epsilon, adjacency = case
    return audit(
        sampler,
        n,
        noise_multiplier=noise,
        steps=steps,
        epsilon=epsilon,
        adjacency=adjacency,
        draws=DRAWS,
        seed=seed,
        confidence=CONFIDENCE,
    )


@pytest.mark.parametrize("case", few([(case,) for case in CASES], most=3))
def test_draws_show_what_the_attack_is_worth(case: Case) -> None:
    frame = run(case)
    assert frame.consistent
    assert 0 < frame.shown.lower <= frame.computed[1]
    assert frame.computed[0] <= frame.shown.upper
    assert max(frame.shown.lower, frame.shown.test_lower) <= frame.account.upper
    # the static attack is one of those that the accountant knows
    assert frame.computed[0] <= frame.account.lower * 1.001


@dataclass(frozen=True)
class Careless(Wor):
    """Sampler that says without replacement and draws with it."""

    name = "careless"

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        return Wr(self.m).draw_block(frame, n_subsets, rng)


@dataclass(frozen=True)
class Forgetful(Wor):
    """Sampler that never draws the last record, and the others too often."""

    name = "forgetful"

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        return super().draw_block(replace(frame, n=frame.n - 1), n_subsets, rng)


@dataclass(frozen=True)
class Eager(CyclicPoisson):
    """Sampler that draws more often than it says."""

    name = "eager"

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        return CyclicPoisson(min(1.0, 1.3 * self.rate), self.cycle).draw_block(
            frame, n_subsets, rng
        )


@pytest.mark.parametrize("sampler", [Careless(3), Forgetful(2), Eager(0.5, 1)])
def test_a_sampler_that_draws_otherwise_is_found_out(
    sampler: Sampler | Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    # refused by itself; somebody has registered for it what is proved of another
    said = Wor(sampler.m) if isinstance(sampler, Wor) else CyclicPoisson(0.5, 1)
    wrong = Covered(
        lambda release, relation: case_of(replace(release, sampler=said), relation),
        default_relation([Release(said, 4, 1.0)]),
    )
    monkeypatch.setitem(COVERED, type(sampler), wrong)
    relation = str(sampler.relation)
    assert not run((sampler, 4, 1.0, 1, 0.5, relation)).consistent


def test_the_tight_bound_stands_beside_the_quick_one() -> None:
    asked = {"noise_multiplier": 2.0, "steps": 60, "epsilon": 0.5, "draws": 2000}
    asked["adjacency"] = "substitute"
    plain, tight = (
        audit(Wor(20), 1000, **asked, quick=quick, effort=None) for quick in (True, False)
    )
    assert plain.quick == plain.account.upper == tight.quick
    assert plain.account.lower <= tight.account.upper < 0.9 * plain.account.upper
    assert tight.consistent
    assert tight.account.theorem.startswith("Theorem 15") and tight.account.width_met
    # planted fault: a bound below what the draws show
    low = replace(tight.account, lower=0.0, upper=tight.shown.lower / 2)
    assert not replace(tight, account=low).consistent


def test_noise_that_is_too_small_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    loud = auditing.static_attack

    def quiet(proof: Proof) -> StepAttack | EpochAttack:
        attack = loud(proof)
        return replace(attack, noise_multiplier=0.95 * attack.noise_multiplier)

    monkeypatch.setattr(auditing, "static_attack", quiet)
    assert not run((Poisson(0.5), None, 1.0, 10, 2.0, None)).consistent


@pytest.mark.parametrize("confidence", [0.9, 0.999999])
@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (1, 10), (10, 10), (37, 5000)])
def test_intervals_are_exact(hits: int, draws: int, confidence: float) -> None:
    low, high = clopper_pearson(hits, draws, confidence)
    miss = (1 - confidence) / 2
    assert (
        low == 0 if hits == 0 else binom.sf(hits - 1, draws, low) == pytest.approx(miss, rel=1e-6)
    )
    assert (
        high == 1
        if hits == draws
        else binom.cdf(hits, draws, high) == pytest.approx(miss, rel=1e-6)
    )
    # scipy.stats takes a second to import, and stays out of the commands
    peer = binomtest(hits, draws).proportion_ci(confidence, method="exact")
    assert (low, high) == pytest.approx((peer.low, peer.high), rel=1e-9)


def test_blocks_do_not_matter_to_the_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run((Wr(3), 6, 2.0, 3, 1.0, None))
    monkeypatch.setattr(auditing, "_INDICES_A_BLOCK", 50_000)
    blocked = run((Wr(3), 6, 2.0, 3, 1.0, None))
    assert whole.computed == blocked.computed
    assert blocked.consistent

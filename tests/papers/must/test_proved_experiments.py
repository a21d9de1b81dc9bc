"""What is refuted and proved, in the experiments: the accountant's numbers, their meaning, parts, absent peers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import dpsub
from dpsub import sampling
from dpsub.accounting import account
from dpsub.errors import PlanError, UnsupportedError
from dpsub.papers.must.experiments import proved
from dpsub.papers.must.experiments.proved import rounded
from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import only, settings_of, typed

SIZES = {"n": 300, "b": 30, "m": 10}
SMALL: dict[str, dict[str, Any]] = {
    "proved_composition": {
        "table8": settings_of("proved_composition")["table8"] | SIZES
        | {"n_compositions": 20, "epsilon_amplified": 0.02, "epsilon": 0.5},
        "figure_s2": settings_of("proved_composition")["figure_s2"] | SIZES | {"n_compositions": [20], "scale": 1},
    },
    "proved_steps": {**SIZES, "n_compositions": [1, 20]},
    "proved_noise": {**SIZES, "n_compositions": 20, "target_epsilons": [4], "accuracy": 0.05,
                     "samplers": ["poisson", "wor", "must_ow"]},
}  # fmt: skip


def records(name: str, **changes: Any) -> pd.DataFrame:
    settings = settings_of(name, **{**SMALL[name], **changes})
    experiment = REGISTRY.get(name)()
    every = range(experiment.replicates(experiment.settings(settings)))
    return experiment.compute(settings, variant="rigorous", replicates=every, seed=1, data={})


@pytest.fixture(scope="module")
def found() -> dict[str, pd.DataFrame]:
    return {name: records(name) for name in SMALL}


def test_attack_is_below_proof_and_the_pair_is_not_above_it(found: dict[str, pd.DataFrame]) -> None:
    for name in ("proved_composition", "proved_steps"):
        frame = found[name]
        assert ((frame["attack"] <= frame["proved"]) | (frame["kind"] == "attack")).all()
        pairs = frame.dropna(subset=["pair_lower"])
        assert (pairs["pair_lower"] <= pairs["pair_upper"]).all()
        assert (pairs["pair_lower"] <= pairs["proved"]).all()
        assert (frame["kind"] == "exact").sum() > 0
    assert (found["proved_noise"]["refuted"] < found["proved_noise"]["proved"]).all()


def test_poisson_comes_under_both_relations(found: dict[str, pd.DataFrame]) -> None:
    poisson = found["proved_steps"].query("sampler == 'poisson' and n_compositions == 20").set_index("adjacency")
    assert set(poisson.index) == {"add_remove", "substitute"}
    assert poisson.loc["add_remove", "proved"] < poisson.loc["substitute", "attack"]
    assert np.isnan(poisson.loc["substitute", "pair_upper"])


def test_the_noise_of_table8_is_in_units_of_the_clipping_bound() -> None:
    experiment = REGISTRY.get("proved_composition")()
    asked = {(a.table, a.sampler, a.release.denominator): a for a in experiment.questions(typed("proved_composition"))}
    assert asked["table8", "wor", "fixed"].release.noise_multiplier == pytest.approx(0.885, abs=5e-4)
    assert asked["table8_printed_scale", "wor", "fixed"].release.noise_multiplier == pytest.approx(2.654, abs=5e-4)
    assert asked["table8", "must_ow", "fixed"].release.noise_multiplier == pytest.approx(0.671, abs=5e-4)
    assert asked["table8_consistent_noise", "wor", "fixed"].quantity == "epsilon"
    assert ("table8", "poisson", "realised") in asked


def test_settings_agree_with_those_of_the_papers_composition() -> None:
    ours, theirs = typed("proved_composition"), typed("composition")
    for table in ("table8", "figure_s2"):
        assert dict(getattr(ours, table)).items() <= dict(getattr(theirs, table)).items()


def test_calibrated_noise_meets_its_target_and_the_refuted_one_misses_it(found: dict[str, pd.DataFrame]) -> None:
    for sampler, adjacency in (("poisson", "substitute"), ("wor", "substitute")):
        row = only(found["proved_noise"], sampler=sampler, adjacency=adjacency)
        sampler = sampling.of_sizes(sampler, **SIZES)
        question = {"steps": 20, "delta": row["delta"], "adjacency": adjacency, "width": 1e-3}
        assert dpsub.account(sampler, 300, noise_multiplier=row["proved"], **question).upper <= 4
        assert dpsub.account(sampler, 300, noise_multiplier=row["refuted"] * 0.98, **question).lower > 4


def test_noise_is_rounded_to_the_safe_side() -> None:
    assert (rounded(6.48405, math.ceil), rounded(6.48405, math.floor)) == (6.485, 6.484)
    assert rounded(2.515, math.ceil) == rounded(2.515, math.floor) == 2.515
    assert rounded(0.0, math.floor) == 0


class TestRealisedBatches:
    """A Poisson sample divided by its realised size."""

    n, rate, s, epsilon = 60, 0.2, 1.5, 0.5

    def attack(self, **changes: Any) -> float:
        release = account.Release(sampling.Poisson(self.rate), self.n, self.s, 1, denominator="realised")
        return proved.attack_on_realised_batches(release, epsilon=changes.get("epsilon", self.epsilon))

    def truth(self) -> float:
        """One step, by adding up densities of the mean on a grid; the differing record is +C or -C."""
        t = np.linspace(-3, 5, 400_001)
        sigma = self.s / (self.n * self.rate)
        others = np.arange(self.n)
        weights = binom.pmf(others, self.n - 1, self.rate)
        base = norm.pdf(t, 0, sigma)
        drawn = sum(w * norm.pdf(t, 2 / (j + 1), sigma) for j, w in zip(others, weights, strict=True) if w > 1e-14)
        with_record = (1 - self.rate) * base + self.rate * drawn
        gaps = [with_record - np.exp(self.epsilon) * base, base - np.exp(self.epsilon) * with_record]
        return max(float(np.maximum(gap, 0).sum() * (t[1] - t[0])) for gap in gaps)

    def test_the_attack_is_below_the_truth_and_close(self) -> None:
        assert self.truth() * 0.97 < self.attack() < self.truth()

    def test_a_shift_rounded_up_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = self.attack()
        monkeypatch.setattr(proved, "ROUND_DOWN", 1.1)
        assert honest < self.truth() < self.attack()

    def test_it_exceeds_what_a_fixed_denominator_is_proved_to_give(self) -> None:
        fixed = dpsub.account(
            sampling.Poisson(self.rate), self.n, noise_multiplier=self.s, steps=1, epsilon=self.epsilon
        )
        assert self.attack() > fixed.upper

    def test_empty_samples_are_charged(self) -> None:
        release = account.Release(sampling.Poisson(0.01), 100, 1.0, 50, denominator="realised")
        assert proved.attack_on_realised_batches(release, epsilon=1.0) == 0

    def test_other_samplers_are_refused(self) -> None:
        with pytest.raises(UnsupportedError, match="only a Poisson sample has a random size to divide by, got Wor"):
            proved.attack_on_realised_batches(account.Release(sampling.Wor(5), 50, 1.0, 1), epsilon=1.0)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("proved_steps", {"delta": 1.0}, "delta must be below 1, got delta = 1"),
        ("proved_steps", {"noise_multiplier": 0.01}, "noise_multiplier must be at least 0.05"),
        ("proved_steps", {"b": 301}, "b must be at most n = 300, got b = 301"),
        ("proved_noise", {"target_epsilons": [0]}, r"target_epsilons\[0\] must be above 0"),
        ("proved_noise", {"accuracy": 1}, "accuracy must be below 1"),
    ],
)
def test_bad_settings_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message.partition(", got")[0]):
        REGISTRY.get(name).settings(settings_of(name, **{**SMALL[name], **changes}))


class TestPeers:
    """Answers of other accountants, where they are installed."""

    case: ClassVar[dict[str, Any]] = {"sampler": "poisson", "n": 100, "m": 10, "noise_multiplier": 2,
                                      "n_compositions": 5, "adjacency": "add_remove", "width": 1e-3,
                                      "prv_error": 0.1}  # fmt: skip

    def run(self, name: str, *cases: dict[str, Any]) -> pd.DataFrame:
        settings = {"delta": 1e-5, "cases": list(cases), "variants": ["rigorous"], "parts": 1}
        experiment = REGISTRY.get(name)()
        every = range(experiment.replicates(experiment.settings(settings)))
        return experiment.compute(settings, variant="rigorous", replicates=every, seed=1, data={})

    def test_absent_packages_are_named_and_leave_no_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def absent(name: str) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        monkeypatch.setattr(proved, "import_module", absent)
        wor = {**self.case, "sampler": "wor", "adjacency": "substitute"}
        found = self.run("peer_bounds", self.case, wor).set_index("tool")
        assert (found.loc["dpsub", "note"] == "").all()
        others = found.drop(index="dpsub")
        assert len(others) == 4
        assert others[["lower", "upper"]].isna().to_numpy().all()
        assert others["note"].str.match(r"(dp|prv)-account\w+ is not installed \(no module [\w.]+\); install").all()

    def test_brackets_of_one_number_overlap(self) -> None:
        pytest.importorskip("dp_accounting")
        pytest.importorskip("prv_accountant")
        found = self.run("peer_times", self.case)
        assert len(found) == 3
        assert found["lower"].max() <= found["upper"].min()
        assert (found["seconds"] > 0).all()

    def test_a_relation_without_a_proof_is_refused(self) -> None:
        with pytest.raises(PlanError, match="adjacency"):
            self.run("peer_bounds", {**self.case, "sampler": "wor"})

"""Rigorous answers of the experiments, refuted or proved: the accountant's numbers, their meaning,
absent peers."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpsub
from dpsub import sampling
from dpsub.accounting.release import Release
from dpsub.errors import PlanError, UnsupportedError
from dpsub.papers.must.experiments import proved
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import only, typed
from tests.papers.must.conftest import CASES, SIZES, SMALL, records_of


def test_attack_is_below_proof_and_the_pair_is_not_above_it(records: Records) -> None:
    for name in ("proved_composition", "proved_steps"):
        frame = records[name]
        assert ((frame["attack"] <= frame["proved"]) | (frame["kind"] == "attack")).all()
        pairs = frame.dropna(subset=["pair_lower"])
        assert (pairs["pair_lower"] <= pairs["pair_upper"]).all()
        assert (pairs["pair_lower"] <= pairs["proved"]).all()
        assert (frame["kind"] == "exact").sum() > 0
    assert (records["proved_noise"]["refuted"] < records["proved_noise"]["proved"]).all()


def test_poisson_comes_under_both_relations(records: Records) -> None:
    poisson = (
        records["proved_steps"]
        .query("sampler == 'poisson' and n_compositions == 20")
        .set_index("adjacency")
    )
    assert set(poisson.index) == {"add_remove", "substitute"}
    assert poisson.loc["add_remove", "proved"] < poisson.loc["substitute", "attack"]
    assert np.isnan(poisson.loc["substitute", "pair_upper"])


def test_an_attack_that_attains_nothing_leaves_the_first_bounds() -> None:
    settings = typed("proved_steps").model_copy(update={"noise_multiplier": 2000.0})
    asked = proved.ProvedSteps.questions(settings)
    question = next(each for each in asked if each.sampler == "must_ow")
    answer = proved.ProvedSteps().answer(settings, question)
    assert answer["attack"] == 0 and answer["kind"] == "upper"


def test_the_noise_of_table8_is_in_units_of_the_clipping_bound() -> None:
    asked = proved.ProvedComposition.questions(typed("proved_composition"))
    found = {(one.table, one.sampler, one.release.denominator): one for one in asked}
    for table, sampler, scale in (
        ("table8", "wor", 0.885),
        ("table8_printed_scale", "wor", 2.654),
        ("table8", "must_ow", 0.671),
    ):
        assert found[table, sampler, "fixed"].release.noise_multiplier == pytest.approx(
            scale, abs=5e-4
        )
    assert found["table8_consistent_noise", "wor", "fixed"].quantity == "epsilon"
    assert ("table8", "poisson", "realised") in found


@pytest.mark.parametrize("sampler", ["poisson", "wor"])
def test_calibrated_noise_meets_its_target_and_the_refuted_one_misses_it(
    sampler: str, records: Records
) -> None:
    row = only(records["proved_noise"], sampler=sampler, adjacency="substitute", target_epsilon=4)
    drawn = sampling.of_sizes(sampler, **SIZES)
    question = {"steps": 20, "delta": row["delta"], "adjacency": "substitute", "width": 1e-3}
    n = SIZES["n"]
    assert dpsub.account(drawn, n, noise_multiplier=row["proved"], **question).upper <= 4
    assert dpsub.account(drawn, n, noise_multiplier=row["refuted"] * 0.98, **question).lower > 4


def test_noise_is_rounded_to_the_safe_side() -> None:
    for value, up, down in ((6.48405, 6.485, 6.484), (2.515, 2.515, 2.515), (0.0, 0, 0)):
        assert (proved.rounded(value, ROUND_CEILING), proved.rounded(value, ROUND_FLOOR)) == (
            up,
            down,
        )


class TestRealisedBatches:
    """A Poisson sample divided by its realised size."""

    n, rate, s, epsilon = 60, 0.2, 1.5, 0.5

    def attack(self) -> float:
        release = Release(sampling.Poisson(self.rate), self.n, self.s, 1, denominator="realised")
        return proved.attack_on_realised_batches(release, epsilon=self.epsilon)

    def truth(self) -> float:
        """Return the truth for one step, by adding up densities of the mean on a grid; the
        differing record is +C or -C."""
        t = np.linspace(-3, 5, 400_001)
        sigma = self.s / (self.n * self.rate)
        others = np.arange(self.n)
        weights = binom.pmf(others, self.n - 1, self.rate)
        base = norm.pdf(t, 0, sigma)
        drawn = sum(
            w * norm.pdf(t, 2 / (j + 1), sigma)
            for j, w in zip(others, weights, strict=True)
            if w > 1e-14
        )
        with_record = (1 - self.rate) * base + self.rate * drawn
        gaps = [
            with_record - np.exp(self.epsilon) * base,
            base - np.exp(self.epsilon) * with_record,
        ]
        return max(float(np.maximum(gap, 0).sum() * (t[1] - t[0])) for gap in gaps)

    def test_the_attack_is_below_the_truth_and_close(self, monkeypatch: pytest.MonkeyPatch) -> None:
        truth = self.truth()
        assert truth * 0.97 < self.attack() < truth
        monkeypatch.setattr(proved, "ROUND_DOWN", 1.1)
        assert self.attack() > truth  # a shift rounded up is noticed

    def test_it_exceeds_what_a_fixed_denominator_is_proved_to_give(self) -> None:
        fixed = dpsub.account(
            sampling.Poisson(self.rate),
            self.n,
            noise_multiplier=self.s,
            steps=1,
            epsilon=self.epsilon,
        )
        assert self.attack() > fixed.upper

    def test_empty_samples_are_charged(self) -> None:
        release = Release(sampling.Poisson(0.01), 100, 1.0, 50, denominator="realised")
        assert proved.attack_on_realised_batches(release, epsilon=1.0) == 0

    def test_other_samplers_are_refused(self) -> None:
        with pytest.raises(
            UnsupportedError, match="only a Poisson sample has a random size to divide by, got Wor"
        ):
            proved.attack_on_realised_batches(Release(sampling.Wor(5), 50, 1.0, 1), epsilon=1.0)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("proved_steps", {"delta": 1.0}, "delta must be below 1"),
        ("proved_steps", {"noise_multiplier": 0.01}, "noise_multiplier must be at least 0.05"),
        ("proved_steps", {"b": 101}, "b must be at most n = 100"),
        ("proved_noise", {"target_epsilons": [0]}, r"target_epsilons\[0\] must be above 0"),
        ("proved_noise", {"accuracy": 1}, "accuracy must be below 1"),
        ("peer_bounds", {"cases": [{**CASES[0], "sampler": "wor"}]}, "adjacency"),
    ],
)
def test_bad_settings_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        REGISTRY.get(name).settings({**SMALL[name], **changes})


class TestPeers:
    """Answers of other accountants, where they are installed."""

    def test_absent_packages_are_named_and_leave_no_number(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def absent(name: str) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        monkeypatch.setattr(proved, "import_module", absent)
        found = records_of("peer_bounds", {}).set_index("tool")
        assert (found.loc["dpsub", "note"] == "").all()
        others = found.drop(index="dpsub")
        assert len(others) == 4
        assert others[["lower", "upper"]].isna().to_numpy().all()
        assert (
            others["note"]
            .str.match(
                r"(dp|prv)-account\w+ is not installed \(no module "
                r"[\w.]+\); install"
            )
            .all()
        )

    def test_brackets_of_one_number_overlap(self, records: Records) -> None:
        pytest.importorskip("dp_accounting")
        pytest.importorskip("prv_accountant")
        found = records["peer_times"].query("sampler == 'poisson'")
        assert len(found) == 3
        assert found["lower"].max() <= found["upper"].min()
        assert (found["seconds"] > 0).all()

"""Scales of the noise and composed privacy against the printed numbers and the known errata."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import erfc

from dpsub import noise as profiles
from dpsub import sampling
from dpsub.errors import ArgumentError
from dpsub.learning.descent import squared_error_residual
from dpsub.learning.subsets import plan_noise
from dpsub.papers.must.experiments.accounting import pair_of
from dpsub.papers.must.experiments.utility import SubsetStatistics, gradient_cells
from dpsub.papers.must.settings import SizesOfFigureS2
from dpsub.reproduce.experiments import REGISTRY
from tests.experiment_runs import CONFIG, only, printed_cells, rounds_to, run, settings_of, typed


@pytest.fixture(scope="module")
def noise() -> dict[str, pd.DataFrame]:
    return {variant: run("noise_calibration", variant) for variant in ("stated", "as_done", "consistent")}


@pytest.fixture(scope="module")
def as_done() -> pd.DataFrame:
    return run("composition", "as_done")


class TestNoiseCalibration:
    def test_table_4(self, noise: dict[str, pd.DataFrame]) -> None:
        cells = printed_cells("table4", "sigma_mean", "sigma_variance", "delta_amplified")
        assert len(cells) == 39
        for fields, column, text, _ in cells:
            statistic = column.removeprefix("sigma_") if column != "delta_amplified" else "mean"
            row = only(noise["stated"], table="table4", sampler=fields["sampler"], b=int(fields.get("b", 0)),
                       statistic=statistic)  # fmt: skip
            assert rounds_to(row["delta_amplified" if column == "delta_amplified" else "sigma"], text)

    def test_delta_does_not_depend_on_the_statistic(self, noise: dict[str, pd.DataFrame]) -> None:
        for frame in (noise["stated"], noise["consistent"]):
            found = frame[(frame["table"] == "table4") & ~((frame["sampler"] == "poisson") & (frame["sigma"] > 5))]
            for _, pair in found.groupby(["sampler", "b"]):
                assert pair["delta_amplified"].max() == pytest.approx(pair["delta_amplified"].min(), rel=1e-9)

    def test_tables_6_and_8(self, noise: dict[str, pd.DataFrame]) -> None:
        """sigma as stated; delta' as stated where nominal, with C in place of C / n elsewhere (E3)."""
        cells = [c for c in printed_cells("table6", "sigma", "delta_amplified") if c[0]["sampler"] != "nonprivate"]
        assert len(cells) == 20
        as_stated = 0
        for fields, column, text, errata in cells:
            target = float(fields["epsilon_amplified"])
            stated, as_done = (
                only(noise[variant], table="table6", sampler=fields["sampler"], epsilon_amplified=target)[column]
                for variant in ("stated", "as_done")
            )
            assert rounds_to(as_done, text)
            assert rounds_to(stated, text) == ("E3" not in errata)
            as_stated += rounds_to(stated, text)
        assert as_stated == 14
        for fields, _, text, _ in printed_cells("table8", "sigma_times_m"):
            row = only(noise["stated"], table="table8", sampler=fields["sampler"])
            assert rounds_to(300 * row["sigma"], text)
        assert set(noise["as_done"]["table"]) == {"table6"}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"group_sensitivity": 0.0}, "group_sensitivity must be above 0, got group_sensitivity = 0"),
            ({"epsilon_amplified": 0}, "epsilon_amplified must be above 0, got epsilon_amplified = 0"),
            ({"delta": 1.0}, "delta must be below 1, got delta = 1"),
        ],
    )
    def test_bad_plans_are_refused_under_their_own_name(self, change: dict[str, float], message: str) -> None:
        arguments: dict[str, Any] = {"epsilon_amplified": 0.1, "delta": 0.1, "sensitivity": 1.0} | change
        with pytest.raises(ArgumentError) as refused:
            plan_noise(sampling.Wr(3).multiplicity_law(10), calibration="classical", **arguments)
        assert str(refused.value) == message

    def test_consistent_scales_meet_delta_exactly(self, noise: dict[str, pd.DataFrame]) -> None:
        frame = noise["consistent"]
        for row in frame.to_dict("records"):
            exact = float(profiles.of("gaussian", row["sensitivity"] / row["sigma"]).delta(row["epsilon"]))
            assert exact <= row["delta"] * (1 + 1e-12) and exact == pytest.approx(row["delta"], rel=1e-9)
        single = frame[frame["sampler"].isin(["poisson", "wor"])]
        assert single["delta_amplified"].to_numpy() == pytest.approx((single["eta"] * single["delta"]).to_numpy())
        assert (frame["delta_amplified"] >= frame["eta"] * frame["delta"] * (1 - 1e-9)).all()

    @pytest.mark.parametrize("variant", ["stated", "consistent"])
    def test_scales_are_those_that_the_utility_experiments_add(
        self, noise: dict[str, pd.DataFrame], variant: str
    ) -> None:
        for cell in SubsetStatistics.runs(typed("subset_statistics"), variant):
            if cell.sampler == "nonprivate":
                continue
            for statistic, sigma in (("mean", cell.sigma_mean), ("variance", cell.sigma_variance)):
                row = only(noise[variant], table="table4", sampler=cell.sampler, b=cell.b, statistic=statistic)
                assert row["sigma"] == pytest.approx(sigma, rel=1e-14)
        for table, name in (("table6", "linear_regression"), ("table8", "adult_logistic")):
            n = CONFIG["experiments"]["noise_calibration"]["tables"][table]["n"]
            for step in gradient_cells(
                typed(name),
                variant,
                n,
                np.atleast_1d(typed(name).epsilon_amplified).tolist(),
                squared_error_residual,
                0.01,
            ):
                if step.sampler != "nonprivate":
                    row = only(noise[variant], table=table, sampler=step.sampler,
                               epsilon_amplified=step.epsilon_amplified)  # fmt: skip
                    assert row["sigma"] == pytest.approx(step.sigma, rel=1e-14)


class TestComposition:
    def test_table_8(self, as_done: pd.DataFrame) -> None:
        """E2: all printed bounds, from the as-done inputs of the accountant."""
        table = as_done[as_done["table"] == "table8"]
        cells = printed_cells("table8", "delta_c_lower", "delta_c_upper")
        assert len(cells) == 10
        for fields, column, text, _ in cells:
            assert rounds_to(only(table, sampler=fields["sampler"])[column.replace("delta_c", "delta")], text)
        assert table.set_index("sampler")["delta_upper"].map(lambda value: float(f"{value:.3e}")).to_dict() == {
            "poisson": 4.172e-06, "wor": 3.795e-07, "wr": 1.283e-06, "must_ow": 8.488e-06, "must_ww": 1.374e-05,
        }  # fmt: skip

    def test_figure_s2(self, as_done: pd.DataFrame) -> None:
        curve = as_done[(as_done["table"] == "figure_s2") & (as_done["sampler"] == "must_ow")]
        bounds = [
            (float(f"{low:.2e}"), float(f"{high:.2e}"))
            for low, high in zip(curve["delta_lower"], curve["delta_upper"], strict=True)
        ]
        assert bounds == [
            (9.07e-9, 2.04e-8), (4.21e-8, 2.16e-7), (8.53e-7, 9.95e-6), (5.32e-6, 1.40e-4), (1.49e-5, 8.88e-4),
        ]  # fmt: skip
        ww = as_done[(as_done["table"] == "figure_s2") & (as_done["sampler"] == "must_ww")]["delta_upper"]
        assert (float(f"{ww.iloc[0]:.2e}"), float(f"{ww.iloc[-1]:.2e}")) == (4.05e-8, 9.08e-4)

    def test_scales_as_printed(self) -> None:
        experiment: Any = REGISTRY.get("composition")()
        stated = {t.sampler: t for t in experiment.tasks(typed("composition"), "stated") if t.table == "table8"}
        consistent = {t.sampler: t for t in experiment.tasks(typed("composition"), "consistent") if t.table == "table8"}
        expected = {"poisson": 2.6536, "wor": 2.6536, "wr": 2.6411, "must_ow": 2.0131, "must_ww": 2.0061}
        assert {name: round(task.pair.scale, 4) for name, task in stated.items()} == expected
        assert [round(task.pair.scale, 3) for task in consistent.values()] == [0.885, 0.885, 0.880, 0.671, 0.669]
        assert stated["poisson"].pair.rate == 300 / 30969

    def test_printed_lower_bounds(self) -> None:
        """E2: Algorithm 1 as printed gives 8.4e-8 (MUST.OW) and 1.4e-7 (MUST.WW), 0 up to round-off for the rest."""
        figure = settings_of("composition")["figure_s2"] | {"grid_size": 1000, "n_compositions": [1]}
        table = run("composition", figure_s2=figure)
        lower = table[table["table"] == "table8"].set_index("sampler")["delta_lower"]
        assert (lower[["poisson", "wor", "wr"]] == 0).all()
        assert [float(f"{lower[name]:.1e}") for name in ("must_ow", "must_ww")] == [8.4e-8, 1.4e-7]

    def test_consistent_brackets(self) -> None:
        """E2 at the right scale, on a grid too narrow for MUST.OW and MUST.WW: it is widened until it suffices."""
        coarse = {"n_compositions": 1000, "grid_size": 60_000, "grid_size_wr": 60_000}
        settings = settings_of("composition")
        found = run(
            "composition", "consistent", table8=settings["table8"] | coarse,
            figure_s2=settings["figure_s2"] | {"grid_size": 1000, "n_compositions": [1]},
        )  # fmt: skip
        table = found[found["table"] == "table8"].set_index("sampler")
        expected = {"poisson": 6.41e-5, "wor": 3.148e-3, "wr": 3.620e-3, "must_ow": 0.4135, "must_ww": 0.4221}
        for sampler, delta in expected.items():
            row = table.loc[sampler]
            assert row["delta_lower"] < delta < row["delta_upper"]
            assert row["delta"] == pytest.approx(delta, rel=0.01)
            assert 2 * row["half_width"] / row["grid_size"] == pytest.approx(12 / 60_000)
        assert (table.loc[["poisson", "wor"], "half_width"] == 6).all()
        assert (table.loc[["must_ow", "must_ww"], "half_width"] == 48).all()
        # every upper bound is above 1/n, against the claim on Table 8
        assert (table["delta_lower"] > 1 / 30969).all()

    def test_one_composition_is_the_profile(self) -> None:
        """k = 1, q = 1: the Gaussian mechanism itself, another road to the same number."""
        settings = settings_of("composition")
        sizes = {"n": 50, "m": 50, "b": 50}
        pair = pair_of("poisson", SizesOfFigureS2(**sizes), 2.0)
        assert pair.components[0].tolist() == [1.0]
        exact = float(profiles.of("gaussian", 1 / 2.0).delta(1.0))
        half = erfc((2.0 * 1.0 - 0.25) / 2**0.5) / 2 - np.e * erfc((2.0 * 1.0 + 0.25) / 2**0.5) / 2
        assert exact == pytest.approx(half, rel=1e-12)
        found = run(
            "composition", "consistent",
            table8=settings["table8"] | {"grid_size": 1000, "grid_size_wr": 1000, "n_compositions": 1},
            figure_s2=settings["figure_s2"] | sizes
            | {"samplers": ["poisson"], "scale": 2, "n_compositions": [1], "grid_size": 200_000},
        )  # fmt: skip
        row = found[found["table"] == "figure_s2"].iloc[0]
        assert row["delta_lower"] <= exact <= row["delta_upper"]
        assert row["delta"] == pytest.approx(exact, rel=1e-4)

"""Amplification, surfaces, distinct counts and clock times against the printed numbers and the known errata."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpsub import noise, sampling
from dpsub.amplification import amplify
from dpsub.papers.must.experiments.counts import extreme_intervals
from dpsub.reproduce.experiments import REGISTRY
from dpsub.sampling.frame import Frame
from dpsub.streams import stream
from tests.experiment_runs import CONFIG, only, printed_cells, rounds_to, run
from tests.statistical import budget


@pytest.fixture(scope="module")
def grid() -> pd.DataFrame:
    return run("amplification_grid")


@pytest.fixture(scope="module")
def exact() -> pd.DataFrame:
    return run("amplification_crossings")


@pytest.fixture(scope="module")
def surface() -> pd.DataFrame:
    return run("design_surface", step=10)


@pytest.fixture(scope="module")
def counts() -> pd.DataFrame:
    return run("distinct_counts")


class TestAmplificationGrid:
    def test_grid_is_complete(self, grid: pd.DataFrame) -> None:
        assert len(grid) == 600 * 2 * 2 * 6
        assert np.array_equal(grid["epsilon"].unique(), np.arange(1, 601) / 100)

    def test_table_3(self, grid: pd.DataFrame) -> None:
        """All cells but the last row's delta', which is the Laplace row again (E9)."""
        keys = ("ratio", "mechanism", "sampler", "epsilon")
        table = {tuple(row[name] for name in keys): row for row in grid.to_dict("records")}
        wrong = []
        cells = printed_cells("table3", "epsilon", "delta", "epsilon_amplified", "delta_amplified")
        for fields, column, text, errata in cells:
            sampler = "wor" if fields["sampler"] == "none" else fields["sampler"]
            key = (float(fields["ratio"]), fields["mechanism"], sampler, float(fields["epsilon"]))
            value = table[key][column]
            if not rounds_to(value, text):
                wrong.append((fields, column, errata, value))
        assert len(cells) == 240
        assert len(wrong) == 6
        for fields, column, errata, _ in wrong:
            assert (fields["ratio"], fields["mechanism"], column) == ("1", "gaussian", "delta_amplified")
            assert "E9" in errata
        assert [round(value, 3) for *_, value in wrong] == [0.129, 0.105, 0.083, 0.053, 0.037, 0.023]

    def test_must_wo_is_wr(self, grid: pd.DataFrame) -> None:
        wr, wo = (grid[grid["sampler"] == name] for name in ("wr", "must_wo"))
        for column in ("epsilon_amplified", "delta_amplified", "eta"):
            assert wo[column].to_numpy() == pytest.approx(wr[column].to_numpy(), rel=1e-12, abs=0)

    def test_categories(self, grid: pd.DataFrame) -> None:
        assert set(grid["category"]) == {"strong", "weak_type_1", "boundary"}
        boundary = grid[grid["category"] == "boundary"]
        assert set(boundary["sampler"]) == {"poisson", "wor"} and set(boundary["mechanism"]) == {"laplace"}
        assert (boundary["epsilon"] >= boundary["ratio"]).all()


class TestAmplificationCrossings:
    def test_thresholds_as_done_are_the_printed_ones(self) -> None:
        grid = run("amplification_crossings", "as_done")
        assert set(grid["kind"]) == {"threshold"} and len(grid) == 6
        printed = {fields["claim"]: text for fields, _, text, _ in printed_cells("claims", "delta_threshold")}
        labels = {"wr": "WR", "must_ow": "MUST.OW", "must_ww": "MUST.WW"}
        for row in grid.to_dict("records"):
            assert rounds_to(row["delta"], printed[f"s8_threshold_{row['mechanism']}_{labels[row['sampler']]}"])
            assert row["delta_amplified"] < row["delta"]

    def test_roots_are_roots(self, exact: pd.DataFrame) -> None:
        laws = {
            name: sampling.of_sizes(name, n=1000, m=400, b=500).multiplicity_law(1000)
            for name in ("wor", "wr", "must_ow", "must_ww")
        }
        for row in exact.to_dict("records"):
            profile = noise.of(row["mechanism"], 1)
            ours = amplify(laws[row["sampler"]], profile, row["epsilon"])
            if row["kind"] == "threshold":
                theirs = ours.delta
            else:
                theirs = amplify(laws[row["other"]], profile, row["epsilon"]).delta_amplified
            assert float(ours.delta_amplified) == pytest.approx(float(theirs), rel=1e-12)

    def test_six_crossovers_a_mechanism(self, exact: pd.DataFrame) -> None:
        """E11: the crossover of the text is six pairwise ones."""
        ranges = {"laplace": (0.190, 0.272, 0.088, 0.109), "gaussian": (0.216, 0.314, 0.101, 0.126)}
        for mechanism, expected in ranges.items():
            found = exact[(exact["kind"] == "crossover") & (exact["mechanism"] == mechanism)]
            assert len(found) == len(set(zip(found["sampler"], found["other"], strict=True))) == 6
            ends = (f(found[c]) for c in ("delta", "delta_amplified") for f in (min, max))
            assert tuple(round(end, 3) for end in ends) == expected

    def test_twins_do_not_cross(self) -> None:
        found = run("amplification_crossings", samplers=["wr", "must_wo", "poisson", "wor"])
        pairs = set(zip(found["sampler"], found["other"], strict=True))
        assert ("wr", "must_wo") not in pairs and ("poisson", "wor") not in pairs


class TestDesignSurface:
    def test_is_the_general_amplification(self, surface: pd.DataFrame) -> None:
        assert len(surface) == 2 * 2 * 6 * 6
        for row in surface.sample(12, random_state=1).to_dict("records"):
            law = sampling.of_sizes(row["sampler"], n=1000, m=row["m"], b=row["b"]).multiplicity_law(1000)
            point = amplify(law, noise.of(row["mechanism"], 1), 1.0)
            assert row["delta_amplified"] == pytest.approx(float(point.delta_amplified), rel=1e-13)
            assert row["delta"] == pytest.approx(float(point.delta), rel=1e-14)
            assert row["delta_difference"] == row["delta_amplified"] - row["delta"]


class TestDistinctCounts:
    def test_table_9(self, counts: pd.DataFrame) -> None:
        """50 of 54 cells fit; the other four are interchanged (E7)."""
        outside = []
        for fields, column, text, errata in printed_cells("table9", "distinct_min", "distinct_mean", "distinct_max"):
            row = only(counts, experiment=int(fields["experiment"]), sampler=fields["sampler"])
            end = column.removeprefix("distinct_")
            if end == "mean":
                fits = rounds_to(row["law_mean"], text)
            else:
                fits = row[f"{end}_lower"] <= int(text) <= row[f"{end}_upper"]
            if not fits:
                outside.append((fields["experiment"], fields["sampler"], end, int(text), errata))
        assert outside == [
            ("2", "must_ow", "min", 79, "E7"), ("2", "must_ww", "min", 76, "E7"),
            ("2", "must_ow", "mean", 65, "E7"), ("2", "must_ww", "mean", 63, "E7"),
        ]  # fmt: skip
        # read the other way round, all four fit
        for sampler, minimum, mean in (("must_ow", 65, 79), ("must_ww", 63, 76)):
            row = only(counts, experiment=2, sampler=sampler)
            assert row["min_lower"] <= minimum <= row["min_upper"] and round(row["law_mean"]) == mean

    def test_our_draws_fit_their_law(self, counts: pd.DataFrame) -> None:
        assert len(counts) == 18
        # four tails of extremes and two of the mean for each of 18 cells
        alpha = budget.level("distinct counts", 6 * len(counts))
        for row in counts.to_dict("records"):
            law = sampling.of_sizes(row["sampler"], n=row["n"], b=row["b"], m=row["m"]).distinct_law(row["n"])
            minimum, maximum = extreme_intervals(law, row["draws"], side=alpha)
            assert minimum[0] <= row["distinct_min"] <= minimum[1]
            assert maximum[0] <= row["distinct_max"] <= maximum[1]
            d = np.arange(len(law))
            variance = float((d - d @ law) ** 2 @ law)
            # Bernstein's inequality: exact, as no normal approximation is in a far tail
            log = -np.log(alpha)
            bound = np.sqrt(2 * variance * log / row["draws"]) + 2 * len(law) * log / (3 * row["draws"])
            assert abs(row["distinct_mean"] - row["law_mean"]) <= bound


class TestExtremeIntervals:
    @pytest.mark.parametrize("draws", [1, 7, 40, 10_000])
    def test_equal_exact_tails(self, draws: int) -> None:
        weights = [1, 5, 30, 400, 4000, 4000, 300, 20, 2]
        law = [Fraction(weight, sum(weights)) for weight in weights]
        below = [sum(law[: x + 1]) for x in range(len(law))]
        above = [sum(law[x:]) for x in range(len(law))]
        side = Fraction(1, 1000)
        smallest = [x for x in range(len(law)) if 1 - (1 - below[x]) ** draws >= side and above[x] ** draws >= side]
        largest = [x for x in range(len(law)) if below[x] ** draws >= side and 1 - (1 - above[x]) ** draws >= side]
        found = extreme_intervals(np.array([float(p) for p in law]), draws)
        assert found == ((smallest[0], smallest[-1]), (largest[0], largest[-1]))

    def test_a_constant(self) -> None:
        assert extreme_intervals(np.array([0.0, 0.0, 1.0]), 100) == ((2, 2), (2, 2))


class TestSamplingTime:
    def test_records(self) -> None:
        found = run("sampling_time", draws=250, settings=[{"n": 300, "b": 50, "m": 30}])
        assert REGISTRY.get("sampling_time").timed and not REGISTRY.get("distinct_counts").timed
        assert list(zip(found["sampler"], found["naive"], strict=True)) == [
            ("poisson", 1), ("poisson", 0), ("wor", 0), ("wr", 0), ("must_wo", 0), ("must_ow", 0), ("must_ww", 0),
        ]  # fmt: skip
        assert (found["seconds"] > 0).all() and (found["seconds"] < 1).all()


def test_streams_keep_their_first_key() -> None:
    """Draws are those of the first release: the key of a stream calls the sampler a scheme."""
    sizes = {"n": 30, "b": 10, "m": 5}
    (record,) = run("distinct_counts", draws=20, settings=[sizes], samplers=["must_ow"]).to_dict("records")
    key = {"scheme": "must_ow", **sizes, "draws": 20}
    rng = stream(CONFIG["seed"], experiment="distinct_counts", cell=key, role="sample", replicate=0)
    assert record["distinct_mean"] == sampling.MustOW(10, 5).draw_block(Frame(30), 20, rng).distinct.mean()

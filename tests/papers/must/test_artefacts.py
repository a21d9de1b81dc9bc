"""Tables and figures of this paper, from its records."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpsub.errors import DataError
from dpsub.papers.must.figures.diagrams import QUADRANTS
from dpsub.papers.must.figures.utility import means
from dpsub.papers.must.settings import SIX
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows
from dpsub.reproduce.figures import figure_bytes, styled
from dpsub.reproduce.labels import sampler_label
from dpsub.sampling import REGISTRY as SAMPLERS
from tests.few import few
from tests.papers.must.conftest import records_of
from tests.papers.must.printed import printed_cells
from tests.unit.rows import with_rows

MEMBERS = {
    name: kind for name, kind in artefacts.REGISTRY.members().items() if kind.paper == "must"
}
FIGURES = [name for name, kind in MEMBERS.items() if kind.kind == "figure"]


def made(name: str) -> Artefact:
    return MEMBERS[f"must/{name}"]()


def drawn(name: str, records: Records) -> tuple[list[Axes], pd.DataFrame, Figure]:
    """Return the panels, the plotted numbers and the figure."""
    with styled():
        figure, numbers = made(name).draw(records)
    return [axes for axes in figure.axes if axes.axison], numbers, figure


def valued(name: str, records: Records, *by: str) -> pd.DataFrame:
    return with_rows(made(name).values(records)).set_index(["row", "column", *by])


# the smoke run builds all of them once: a table and a figure show that nothing else flows in
@pytest.mark.parametrize(
    "name", few(dict.fromkeys(("must/table3", "must/figure2", *MEMBERS)), most=2, more=0)
)
def test_files_have_the_same_bytes_each_time_and_figures_no_title(
    name: str, records: Records, tmp_path: Path
) -> None:
    artefact = MEMBERS[name]()
    first, again = (
        build(artefact, given, printed_rows(artefact), OutputDirs.under(tmp_path / folder))
        for folder, given in (("a", records), ("b", dict(reversed(list(records.items())))))
    )
    assert set(first) == ({"pdf", "png"} if name in FIGURES else {"md", "tex"}) | {
        "csv",
        "comparison",
    }
    assert {role: path.read_bytes() for role, path in first.items()} == {
        role: path.read_bytes() for role, path in again.items()
    }
    if name in FIGURES:
        _, numbers, figure = drawn(artefact.name, records)
        assert (
            len(numbers)
            and figure.get_suptitle() == ""
            and not any(axes.get_title() for axes in figure.axes)
        )


@pytest.mark.parametrize(
    "name", [name for name, kind in MEMBERS.items() if kind.kind != "claims" and kind.experiments]
)
def test_missing_records_are_named(name: str) -> None:
    ask = MEMBERS[name]().draw if name in FIGURES else MEMBERS[name]().values
    with pytest.raises(
        DataError,
        match=rf"{name} needs the records of '\w+', got none; run that "
        r"experiment",
    ):
        ask({})


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_process() -> None:
    script = (
        "import hashlib; from dpsub.reproduce.artefacts import REGISTRY\n"
        "from dpsub.reproduce.figures import figure_bytes, styled\n"
        "with styled(): figure, _ = REGISTRY.get('must/figure2')().draw({})\n"
        "print(*(hashlib.sha256(figure_bytes(figure, form)).hexdigest() for form in ('pdf', "
        "'png')))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"))
    }
    assert len(found) == 1


def test_the_samplers_stand_in_the_order_of_table_9() -> None:
    assert (
        tuple(dict.fromkeys(cell[0]["sampler"] for cell in printed_cells("table9", "distinct_min")))
        == SIX
    )


class TestTables:
    def test_table8_has_attack_proof_and_pair_in_the_rigorous_rows(self, records: Records) -> None:
        found = valued("table8", records, "variant").xs("rigorous", level="variant")
        wor = found.loc["sampler=wor"]
        record = (
            records["proved_composition"].query("table == 'table8' and sampler == 'wor'").iloc[0]
        )
        assert (wor["value"]["delta_c_lower"], wor["value"]["delta_c_upper"]) == (
            record["attack"],
            record["proved"],
        )
        assert (
            wor["lower"]["delta_c_pair"]
            < wor["value"]["delta_c_pair"]
            < wor["upper"]["delta_c_pair"]
        )
        assert wor["note"]["delta_c_lower"].startswith("attack (lower), substitute")
        assert wor["note"]["delta_c_upper"].startswith("proved (upper), substitute")
        assert "no guarantee" in wor["note"]["delta_c_pair"]
        assert ("sampler=wor; statistic=delta_at_the_printed_scale", "delta_c_lower") in found.index
        assert (
            "sampler=wor; statistic=epsilon_of_the_consistent_noise",
            "epsilon_c_upper",
        ) in found.index

    def test_nothing_is_proved_for_poisson_as_it_was_run(self, records: Records) -> None:
        values = valued("table8", records, "variant")
        upper = values.loc[("sampler=poisson", "delta_c_upper", "rigorous")]
        assert upper["value"] == 1 and upper["note"].startswith("nothing is proved, add_remove")
        assert 0 < values.loc[("sampler=poisson", "delta_c_lower", "rigorous"), "value"] < 1
        fixed = "sampler=poisson; statistic=delta_with_a_fixed_denominator"
        assert values.loc[(fixed, "delta_c_upper", "rigorous"), "value"] < 1

    def test_noise_is_set_against_that_of_wor(self, records: Records) -> None:
        values = valued("noise_at_equal_privacy", records)["value"]
        row = "target_epsilon=4; sampler={}; adjacency=substitute"
        ratio = (
            values[row.format("must_ow"), "noise_proved"]
            / values[row.format("wor"), "noise_proved"]
        )
        assert values[row.format("must_ow"), "noise_over_wor"] == pytest.approx(ratio)
        assert ratio > 1
        assert (row.format("poisson"), "noise_pair") not in values.index

    def test_peers_are_shown_with_their_widths_and_what_lies_below_an_attack(
        self, records: Records
    ) -> None:
        frame = records["peer_bounds"]
        ours = frame[frame["tool"] == "dpsub"].reset_index(drop=True)
        absent = ours.assign(
            tool="absent", lower=np.nan, upper=np.nan, note="absent is not installed"
        )
        low = ours.assign(tool="low", lower=np.nan, upper=ours["lower"] / 2)
        values = valued("peer_bounds", {"peer_bounds": pd.concat([ours, absent, low])})
        row = (
            "sampler=wor; adjacency=substitute; n=100; m=10; noise_multiplier=2; "
            "n_compositions=5; tool={}"
        )
        assert (
            values.loc[(row.format("dpsub"), "width"), "value"]
            == ours["upper"][1] - ours["lower"][1]
        )
        assert math.isnan(values.loc[(row.format("absent"), "upper"), "value"])
        assert values.loc[(row.format("absent"), "upper"), "note"] == "absent is not installed"
        below = values[values["note"].str.endswith("below what an attack attains")]
        assert {row.rpartition("tool=")[2] for row, _ in below.index} == {"low"}
        seconds = ours.assign(seconds=[0.1, 0.2])
        times = pd.concat(
            [seconds, seconds.assign(tool="slow", seconds=1.0), absent.assign(seconds=0.0)]
        )
        values = valued("peer_times", {"peer_times": times})["value"]
        assert values[row.format("slow"), "times_ours"] == pytest.approx(5)
        assert (row.format("absent"), "seconds") not in values.index


class TestFigures:
    def test_a_sampler_keeps_its_colour(self, records: Records) -> None:
        for name in ("figure4", "figure6", "figureS3", "figureS4"):
            for axes in drawn(name, records)[0]:
                # A curve for two samplers is named "WOR and Poisson".
                lines = {
                    str(line.get_label()).partition(" and ")[0]: to_hex(line.get_color()).upper()
                    for line in axes.get_lines()
                }
                for sampler in ("wor", "wr", "must_ow", "must_ww"):
                    assert lines[sampler_label(sampler)] == SAMPLERS.get(sampler).colour

    def test_figure3_names_the_quadrants_by_their_conditions(self) -> None:
        for name, condition, x, y, _ in QUADRANTS:
            assert ("ε′ < ε" in condition, "δ′ < δ" in condition) == (x < 1, y < 0)
            assert (name == "strong") == (x < 1 and y < 0)
        assert set(drawn("figure3", {})[1]["category"]) == {
            "strong",
            "type-I weak",
            "type-II weak",
            "dilution",
        }

    def test_figure4_has_the_printed_ranges_and_the_recorded_points(self, records: Records) -> None:
        panels, numbers, _ = drawn("figure4", records)
        assert [axes.get_xlim() for axes in panels] == [(0.2, 0.9)] * 4
        assert [axes.get_ylim() for axes in panels] == [(-0.1, 0.1), (-0.3, 0.3)] * 2
        line = next(line for line in panels[3].get_lines() if line.get_label() == "MUST.OW")
        here = numbers.query(
            "mechanism == 'gaussian' and ratio == 1 and sampler == 'must_ow'"
        ).sort_values("epsilon")
        np.testing.assert_array_equal(
            line.get_xydata(), here[["epsilon_ratio", "delta_difference"]]
        )
        values = valued("figure4", records)["value"]
        assert values["ratio=1; mechanism=gaussian; sampler=wor", "never_weak"] == 1
        assert values["ratio=1; mechanism=gaussian; sampler=must_ww", "never_weak"] == 0

    def test_figure5_and_s1_show_the_same_surfaces(self, records: Records) -> None:
        flat, numbers, _ = drawn("figure5", records)
        _, same, solid = drawn("figureS1", records)
        pd.testing.assert_frame_equal(numbers, same)
        assert len(flat) == len(solid.axes) == 6
        assert [axes.get_xlabel() for axes in flat[3:]] == ["size of the second stage, m"] * 3
        assert (flat[0].get_xlim(), flat[0].get_ylim()) == ((10, 15), (16, 23))
        values = valued("figure5", records)["value"]
        assert values["sampler=must_ow; quantity=eta; mechanism=laplace", "rises_with_m"] == 1
        assert (
            values["sampler=must_ow; quantity=delta_difference; mechanism=laplace", "rises_with_b"]
            == 0
        )

    @pytest.mark.parametrize("name", ["figure5", "figureS1"])
    @pytest.mark.thorough
    def test_a_surface_needs_two_sizes_of_each_stage_but_no_certain_number(self, name: str) -> None:
        prime = {
            "design_surface": records_of("design_surface", {}, m_max=33, b_min=16, b_max=53, step=1)
        }
        assert figure_bytes(drawn(name, prime)[2], "png")
        one = {"design_surface": records_of("design_surface", {}, m_max=10)}
        with pytest.raises(
            DataError, match="at least 2 sizes of each stage, got 1 of m and 8 of b for must_ow"
        ):
            drawn(name, one)

    def test_figure6_has_a_panel_for_each_reading_and_epsilon_and_bands_for_replicates(
        self, records: Records
    ) -> None:
        panels, numbers, _ = drawn("figure6", records)
        assert len(panels) == 6
        assert {axes.get_ylim() for axes in panels} == {(0.0, 9.0)}
        assert all(len(axes.get_lines()) == 6 for axes in panels)
        assert numbers["lower"].isna().all() and len(panels[0].collections) == 0
        four = {"linear_regression_trace": records_of("linear_regression_trace", {}, replicates=4)}
        panels, numbers, _ = drawn("figure6", four)
        assert (numbers["lower"] < numbers["mse"]).all() and (numbers["replicates"] == 4).all()
        assert len(panels[0].collections) == 6

    def test_an_interval_is_students(self) -> None:
        frame = pd.DataFrame({"sampler": "wor", "iteration": 1, "loss": [1.0, 2.0, 4.0]})
        found = means(frame, "loss", ["sampler"]).iloc[0]
        half = 4.302652729911275 * frame["loss"].std() / np.sqrt(3)
        assert (found["lower"], found["upper"]) == pytest.approx((7 / 3 - half, 7 / 3 + half))

    def test_figure_s2_draws_four_curves_and_the_round_off_floor(self, records: Records) -> None:
        panels, numbers, _ = drawn("figureS2", records)
        assert {axes.get_yscale() for axes in panels} == {"log"}
        assert set(numbers["method"]) == {"printed", "as_done", "paper_pair", "attack_and_proof"}
        values = made("figureS2").values(records)
        assert set(values["method"]) == {*numbers["method"], "cell_mass"}
        lost = {**records, "composition": records["composition"].assign(delta_lower=-1e-15)}
        panels, _, figure = drawn("figureS2", lost)
        assert figure_bytes(figure, "png") and panels[0].get_ylim()[0] > 0

    def test_one_number_of_compositions_is_drawn(self, records: Records) -> None:
        one = {
            **records,
            "composition": records["composition"].query("n_compositions == 200"),
            "proved_composition": records["proved_composition"].query("n_compositions == 20"),
        }
        panels, _, _ = drawn("figureS2", one)
        points = np.concatenate([line.get_xdata() for line in panels[0].get_lines()]).astype(float)
        assert np.isfinite(points).all() and np.ptp(points) < 400

    def test_figure_s3_has_the_line_of_no_amplification(self, records: Records) -> None:
        panels, _, _ = drawn("figureS3", records)
        assert [axes.get_xlim()[1] for axes in panels] == [4.5, 0.4, 0.4, 0.11, 0.09]
        for axes in panels:
            line = axes.get_lines()[0]
            assert line.get_color() == "black"
            np.testing.assert_array_equal(line.get_xdata(), line.get_ydata())

    def test_curves_of_figure_s3_rise_where_delta_is_0(self, records: Records) -> None:
        panels, _, _ = drawn("figureS3", records)
        (curve,) = (line for line in panels[1].get_lines() if line.get_label() == "MUST.OW")
        at_0 = curve.get_ydata()[curve.get_xdata() == 0]
        assert len(at_0) > 2 and (np.diff(at_0) >= 0).all() and at_0[-1] > 0

    def test_samplers_with_one_curve_share_its_name(self, records: Records) -> None:
        labels = {line.get_label() for line in drawn("figure4", records)[0][0].get_lines()}
        assert {"WOR and Poisson", "WR and MUST.WO", "MUST.OW", "MUST.WW"} < labels

    def test_figure6_says_where_curves_leave_the_printed_axis(self, records: Records) -> None:
        trace = records["linear_regression_trace"]
        high = trace.assign(mse=trace["mse"].clip(upper=8.0))
        high.loc[high["variant"] == "consistent", "mse"] += 20
        panels, _, _ = drawn("figure6", {"linear_regression_trace": high})
        told = [any("curves up to" in text.get_text() for text in axes.texts) for axes in panels]
        assert told == [False] * 4 + [True] * 2

    def test_figure_s4_shows_differences_from_the_run_without_privacy(
        self, records: Records
    ) -> None:
        panels, numbers, _ = drawn("figureS4", records)
        of = numbers.set_index(["variant", "sampler", "iteration"])["loss"].sort_index()
        assert len(panels) == 2 * numbers["variant"].nunique()
        for variant, axes in zip(
            numbers["variant"].unique(), panels[len(panels) // 2 :], strict=True
        ):
            (curve,) = (line for line in axes.get_lines() if line.get_label() == "WOR")
            expected = of[variant, "wor"] - of[variant, "nonprivate"]
            np.testing.assert_allclose(curve.get_ydata(), expected, rtol=0, atol=1e-12)
            assert "non-private" not in {line.get_label() for line in axes.get_lines()}

    @pytest.mark.parametrize(
        ("name", "x", "ends"),
        [
            ("privacy_by_steps", "n_compositions", ["attack", "proved"]),
            ("noise_by_target", "target_epsilon", ["refuted", "proved"]),
        ],
    )
    def test_bands_lie_between_attack_and_proof(
        self, name: str, x: str, ends: list[str], records: Records
    ) -> None:
        (axes,), numbers, _ = drawn(name, records)
        wor = numbers.query("sampler == 'wor'").sort_values(x)
        colour = SAMPLERS.get("wor").colour
        curves = [line for line in axes.get_lines() if to_hex(line.get_color()).upper() == colour]
        for curve, end in zip(curves, ends, strict=True):
            np.testing.assert_array_equal(curve.get_ydata(), wor[end])
        (band,) = (
            one for one in axes.collections if to_hex(one.get_facecolor()[0][:3]).upper() == colour
        )
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (wor[ends].min().min(), wor[ends].max().max())

    @pytest.mark.parametrize(
        ("name", "attack", "pair"),
        [
            ("privacy_by_steps", "attack", "pair_upper"),
            ("noise_by_target", "refuted", "pair"),
        ],
    )
    def test_curves_are_named_at_their_ends_and_an_arrow_leads_from_the_published_one_to_an_attack(
        self, name: str, attack: str, pair: str, records: Records
    ) -> None:
        (axes,), numbers, figure = drawn(name, records)
        samplers = [sampler_label(one) for one in ("poisson", "wor", "wr")]
        samplers += [f"{sampler_label(one)}, b = 10" for one in ("must_ow", "must_ww")]
        texts = {text.get_text(): text for text in axes.texts}
        assert {*samplers, "published, MUST", "published, WOR and WR"} < set(texts)
        assert not any(one.get_legend() for one in figure.axes)
        # One relation for all: Poisson sampling with a record added or removed is not drawn.
        assert len([line for line in axes.get_lines() if len(line.get_xdata())]) == 2 * 5 + 2
        last = numbers.query("sampler == 'must_ow'").iloc[-1]
        (arrow,) = (text for text in axes.texts if text.arrow_patch)
        assert (arrow.xyann[1], arrow.xy[1]) == (last[pair], last[attack])
        ratio = f"{last[attack] / last[pair]:.1f} times the published"
        assert any(ratio in text for text in texts)
        named = sorted(text.xy[1] for key, text in texts.items() if key in samplers)
        assert np.diff(np.log(named)).min() > 0

    def test_figures_from_synthetic_data_say_so(self, records: Records) -> None:
        assert [text.get_text() for text in drawn("figureS4", records)[2].texts] == [
            "synthetic data"
        ]
        real = {"adult_logistic_trace": records["adult_logistic_trace"].assign(data="real")}
        assert not drawn("figureS4", real)[2].texts and not drawn("figure6", records)[2].texts

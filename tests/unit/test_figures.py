"""Figures: what is drawn, in which colours and ranges, with the same bytes each time."""

from __future__ import annotations

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
from dpsub.papers.must.artefacts.figure3 import QUADRANTS
from dpsub.papers.must.artefacts.traces import means
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows
from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    figure_bytes,
    finish,
    new,
    sampler_style,
    styled,
)
from dpsub.reproduce.figures import (
    line as single_line,
)
from dpsub.reproduce.labels import sampler_label
from dpsub.sampling import REGISTRY as SAMPLERS
from tests.unit import made_up_records
from tests.unit.rows import with_rows

DIAGRAMS = ("must/figure1", "must/figure2", "must/figure3")
FIGURES = tuple(
    name for name, kind in artefacts.REGISTRY.members().items() if kind.kind == "figure" and kind.paper == "must"
)
OKABE_ITO = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#000000", "#999999"}


@pytest.fixture(scope="module")
def records() -> dict[str, pd.DataFrame]:
    return made_up_records.everything()


def made(name: str) -> Artefact:
    return artefacts.REGISTRY.get(name)()


def drawn(name: str, records: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    with styled():
        return made(name).draw(records)


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_written_three_ways_without_a_title(
    name: str, records: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    artefact = made(name)
    files = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))
    assert set(files) == {"pdf", "png", "csv", "comparison"}
    assert files["pdf"].read_bytes().startswith(b"%PDF")
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(files["csv"])) > 0
    again = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path / "again"))
    for role, path in files.items():
        assert path.read_bytes() == again[role].read_bytes()
    figure, _ = drawn(name, records)
    assert all(axes.get_title() == "" for axes in figure.axes)
    assert figure.get_suptitle() == ""


def test_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    script = (
        "import hashlib; from dpsub.reproduce.artefacts import REGISTRY\n"
        "from dpsub.reproduce.figures import figure_bytes, styled\n"
        "with styled(): figure, _ = REGISTRY.get('must/figure2')().draw({})\n"
        "print(*(hashlib.sha256(figure_bytes(figure, form)).hexdigest() for form in ('pdf', 'png')))"
    )
    found = {
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
                       capture_output=True, text=True, check=True).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"))
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in DIAGRAMS])
def test_missing_records_are_named(name: str) -> None:
    with pytest.raises(DataError, match=rf"{name} needs the records of '\w+', got none; run that experiment"):
        made(name).draw({})


def test_colours_are_safe_distinct_and_the_samplers_own() -> None:
    names = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
    styles = [sampler_style(name) for name in (*names, "nonprivate")]
    assert len({style["color"] for style in styles}) == len({style["marker"] for style in styles}) == 7
    assert sampler_style("nonprivate")["color"] == "black"
    for name in names:
        assert sampler_style(name)["color"] == SAMPLERS.get(name).colour
        assert SAMPLERS.get(name).colour in OKABE_ITO
        assert sampler_label(name) == SAMPLERS.get(name).label


def test_a_sampler_keeps_its_colour_in_all_figures(records: dict[str, pd.DataFrame]) -> None:
    for name in ("must/figure4", "must/figure6", "must/figureS3", "must/figureS4"):
        for axes in panels(drawn(name, records)[0]):
            for line in axes.get_lines():
                for sampler in ("wor", "wr", "must_ow", "must_ww"):
                    if line.get_label() == sampler_label(sampler):
                        assert to_hex(line.get_color()).upper() == SAMPLERS.get(sampler).colour


def test_figure3_names_the_quadrants_by_their_conditions() -> None:
    for name, condition, x, y, _ in QUADRANTS:
        assert ("ε′ < ε" in condition) == (x < 1)
        assert ("δ′ < δ" in condition) == (y < 0)
        assert (name == "strong") == (x < 1 and y < 0)
    _, numbers = drawn("must/figure3", {})
    assert set(numbers["category"]) == {"strong", "type-I weak", "type-II weak", "dilution"}


def test_figure4_has_the_printed_ranges_and_the_recorded_points(records: dict[str, pd.DataFrame]) -> None:
    figure, numbers = drawn("must/figure4", records)
    assert [axes.get_xlim() for axes in panels(figure)] == [(0.2, 0.9)] * 4
    assert [axes.get_ylim() for axes in panels(figure)] == [(-0.1, 0.1), (-0.3, 0.3)] * 2
    line = next(line for line in panels(figure)[3].get_lines() if line.get_label() == "MUST.OW")
    here = numbers.query("mechanism == 'gaussian' and ratio == 1 and sampler == 'must_ow'").sort_values("epsilon")
    np.testing.assert_array_equal(line.get_xdata(), here["epsilon_ratio"])
    np.testing.assert_array_equal(line.get_ydata(), here["delta_difference"])


def test_figure4_values_know_strong_amplification(records: dict[str, pd.DataFrame]) -> None:
    values = with_rows(made("must/figure4").values(records)).set_index(["row", "column"])["value"]
    assert values["ratio=1; mechanism=gaussian; sampler=wor", "never_weak"] == 1
    assert values["ratio=1; mechanism=gaussian; sampler=must_ww", "never_weak"] == 0


def test_figure5_and_s1_show_the_same_surfaces(records: dict[str, pd.DataFrame]) -> None:
    flat, numbers = drawn("must/figure5", records)
    solid, same = drawn("must/figureS1", records)
    pd.testing.assert_frame_equal(numbers, same)
    assert len(panels(flat)) == len(solid.axes) == 6
    assert [axes.get_xlabel() for axes in panels(flat)[3:]] == ["m"] * 3
    assert panels(flat)[0].get_xlim() == (10, 15)
    assert panels(flat)[0].get_ylim() == (16, 23)
    values = with_rows(made("must/figure5").values(records)).set_index(["row", "column"])["value"]
    assert values["sampler=must_ow; quantity=eta; mechanism=laplace", "rises_with_m"] == 1
    assert values["sampler=must_ow; quantity=delta_difference; mechanism=laplace", "rises_with_b"] == 0


def test_a_surface_over_a_prime_number_of_steps_is_drawn(records: dict[str, pd.DataFrame]) -> None:
    surface = made_up_records.design_surface(m=range(10, 34), b=range(16, 54))
    figure, _ = drawn("must/figureS1", {"design_surface": surface})
    assert figure_bytes(figure, "png")


def test_a_surface_needs_two_sizes_of_each_stage() -> None:
    surface = made_up_records.design_surface(m=range(10, 11))
    for name in ("must/figure5", "must/figureS1"):
        with pytest.raises(DataError, match="at least 2 sizes of each stage, got 1 of m and 8 of b for must_ow"):
            drawn(name, {"design_surface": surface})


def test_one_number_of_compositions_is_drawn(records: dict[str, pd.DataFrame]) -> None:
    one = records["composition"].query("table == 'figure_s2' and n_compositions == 200")
    both = records["proved_composition"].query("table == 'figure_s2' and n_compositions == 200")
    figure, _ = drawn("must/figureS2", {"composition": one, "proved_composition": both})
    points = np.concatenate([line.get_xdata() for line in panels(figure)[0].get_lines()]).astype(float)
    assert np.isfinite(points).all()
    assert np.ptp(points) < 100


def test_figure6_has_a_panel_for_each_reading_and_epsilon(records: dict[str, pd.DataFrame]) -> None:
    figure, numbers = drawn("must/figure6", records)
    assert len(panels(figure)) == 6
    assert {axes.get_ylim() for axes in panels(figure)} == {(0.0, 9.0)}
    assert all(len(axes.get_lines()) == 6 for axes in panels(figure))
    assert numbers["lower"].isna().all()
    assert len(panels(figure)[0].collections) == 0


def test_replicates_give_bands() -> None:
    records = {"linear_regression_trace": made_up_records.linear_regression_trace(replicates=4)}
    figure, numbers = drawn("must/figure6", records)
    assert (numbers["lower"] < numbers["mse"]).all()
    assert (numbers["replicates"] == 4).all()
    assert len(panels(figure)[0].collections) == 6


def test_an_interval_is_students() -> None:
    frame = pd.DataFrame({"sampler": "wor", "iteration": 1, "loss": [1.0, 2.0, 4.0]})
    found = means(frame, "loss", ["sampler"]).iloc[0]
    half = 4.302652729911275 * frame["loss"].std() / np.sqrt(3)
    assert (found["lower"], found["upper"]) == pytest.approx((7 / 3 - half, 7 / 3 + half))


def test_figure_s2_draws_four_curves_and_the_round_off_floor(records: dict[str, pd.DataFrame]) -> None:
    figure, numbers = drawn("must/figureS2", records)
    assert {axes.get_yscale() for axes in panels(figure)} == {"log"}
    assert set(numbers["method"]) == {"printed", "as_done", "paper_pair", "attack_and_proof"}
    noise = records["composition"].assign(delta_lower=-1e-15)
    figure, _ = drawn("must/figureS2", {**records, "composition": noise})
    assert figure_bytes(figure, "png")
    assert panels(figure)[0].get_ylim()[0] > 0


def test_bands_lie_between_attack_and_proof(records: dict[str, pd.DataFrame]) -> None:
    for name, x, ends in (
        ("must/privacy_by_steps", "n_compositions", ("attack", "proved")),
        ("must/noise_by_target", "target_epsilon", ("refuted", "proved")),
    ):
        figure, numbers = drawn(name, records)
        (axes,) = panels(figure)
        wor = numbers.query("sampler == 'wor'").sort_values(x)
        line = next(line for line in axes.get_lines() if line.get_label() == sampler_label("wor"))
        np.testing.assert_array_equal(line.get_ydata(), wor["proved"])
        (band,) = (band for band in axes.collections if to_hex(band.get_facecolor()[0][:3]).upper()
                   == SAMPLERS.get("wor").colour)  # fmt: skip
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == wor[list(ends)].min().min()
        assert heights.max() == wor[list(ends)].max().max()
        texts = [text.get_text() for text in figure.legends[0].get_texts()]
        assert len(texts) == len(set(texts)) == 7
        assert {"Poisson, add or remove", "Poisson, substitute", "the paper's pair"} <= set(texts)


def test_figure_s3_has_the_line_of_no_amplification(records: dict[str, pd.DataFrame]) -> None:
    figure, _ = drawn("must/figureS3", records)
    assert [axes.get_xlim()[1] for axes in panels(figure)] == [4.5, 0.4, 0.4, 0.11, 0.09]
    for axes in panels(figure):
        line = axes.get_lines()[0]
        assert line.get_color() == "black"
        np.testing.assert_array_equal(line.get_xdata(), line.get_ydata())


def test_figures_from_synthetic_data_say_so(records: dict[str, pd.DataFrame]) -> None:
    figure, _ = drawn("must/figureS4", records)
    assert [text.get_text() for text in figure.texts] == ["synthetic data"]
    real = {"adult_logistic_trace": made_up_records.adult_logistic_trace(data="real")}
    assert drawn("must/figureS4", real)[0].texts == []
    assert drawn("must/figure6", records)[0].texts == []


def test_style_does_not_leak_or_follow_the_users_own() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        figure, grid = new(1, 1, width=2, height=2)
        grid[0, 0].plot([0, 1])
        loud = figure_bytes(finish(figure), "png")
        assert mpl.rcParams["font.size"] == 30.0
    figure, grid = new(1, 1, width=2, height=2)
    with styled():
        grid[0, 0].plot([0, 1])
    assert loud != b""
    assert grid[0, 0].xaxis.label.get_fontsize() == 8
    assert grid[0, 0].get_facecolor() == (1, 1, 1, 1)


def test_a_mapping_of_styles_chooses_the_curves_and_one_legend_names_each_once() -> None:
    frame = pd.DataFrame({"method": ["b", "b", "a", "a", "c"], "x": [2, 1, 1, 2, 1], "y": [4.0, 3.0, 1.0, 2.0, 9.0],
                          "lower": 0.5, "upper": 10.0})  # fmt: skip
    styles = {name: {"label": name, "color": "black"} for name in ("a", "b", "absent")}
    layer = curves(frame, "x", "y", by="method", styles=styles, bars=("lower", "upper"), apart=4, linestyle="none")
    figure = draw_panels([Panel("left", [layer]), Panel("right", [layer])], grid={"sharey": True}, ylabel="y")
    first, second = panels(figure)
    drawn = {line.get_label(): list(line.get_ydata()) for line in first.get_lines() if line.get_label() in styles}
    assert drawn == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert (first.get_ylabel(), second.get_ylabel()) == ("y", "")
    assert [axes.texts[0].get_text() for axes in (first, second)] == ["(a) left", "(b) right"]


def test_a_short_logarithmic_axis_has_plain_numbers_and_the_legend_takes_the_empty_place() -> None:
    named = single_line([1, 30], [0.5, 5], label="one")
    figure = draw_panels([Panel("", [named]), None], xscale="log")
    axes, empty = figure.axes
    assert axes.xaxis.get_major_formatter()(20) == "20"
    assert empty.get_legend() is not None and not figure.legends

"""Artefacts and advice of the fair comparison, from records at small settings with losses that are
planted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.data.dataset import Obtained
from dpsub.errors import DataError
from dpsub.papers.fair.experiments import comparison
from dpsub.papers.fair.experiments.cells import Calibrated, OtherRelations
from dpsub.papers.fair.figures import NoiseRelations, NoiseSizes, points, sections
from dpsub.papers.fair.paired import fair_contests
from dpsub.papers.fair.settings import TASKS
from dpsub.papers.fair.tables import coverage
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.figures import styled
from dpsub.reproduce.paired import p_value
from dpsub.reproduce.report.cells import LookUp, read_cells
from dpsub.reproduce.statistics import Estimate, paired_difference
from dpsub.reproduce.study.cells import Cell
from tests.papers.cells import prose, takeaways

SEEDS = 20
NOISE = {"poisson": 2.0, "wor": 2.2, "must_oo": 2.2, "must_ow": 3.0}
SIZES = {
    "linear": (100, 200),
    "adult": (300, 500),
    "digits": (100, 200),
    "bootstrap_mean": (30, 50),
}
GRID = [
    {
        "dataset": name,
        "samplers": ["nonprivate", *NOISE],
        "m": m,
        "b": b,
        "steps": 2,
        "target_epsilon": [0.5, 2],
    }
    for name, (m, b) in SIZES.items()
]
SURFACE = [
    {**GRID[0], "samplers": ["must_ow"], "b": [100, 400], "target_epsilon": 0.5},
    {**GRID[0], "samplers": ["poisson", "wor", "must_ow"], "m": [50, 150], "target_epsilon": 0.5},
]
SETTINGS: dict[str, dict[str, Any]] = {
    "fair_noise": {"grid": GRID, "surface": SURFACE},
    "fair_comparison": {"grid": GRID, "replicates": SEEDS},
    # of other papers, at a stated privacy
    **{
        name: {"replicates": 6, "iterations": 16}
        for name, kind in REGISTRY.members().items()
        if kind.compares is not None
    },
}
Frames = Mapping[str, pd.DataFrame]


def noise_by_rule(cell: Cell) -> Calibrated:
    """Stand-in for noise that takes minutes to calibrate; the papers' pair asks for less noise,
    whose proof is three times the target."""
    if not cell.private:
        return Calibrated()
    share, proof = (1.0, 1.0) if cell.variant == "rigorous" else (0.6, 3.0)
    noise = (
        share
        * NOISE[cell.sampler]
        * (cell.m / 100) ** 0.5
        * (1 + 20 / (cell.b or math.inf))
        / cell.target_epsilon
    )
    known = (
        noise,
        0.9 * noise if share == 1 else 0.0,
        0.9 * proof * cell.target_epsilon,
        proof * cell.target_epsilon,
    )
    return Calibrated(*known, *((cell.target_epsilon / 2,) if len(cell.plan.stages) == 1 else ()))


def relations_by_rule(cell: Cell, *, several: bool) -> OtherRelations:
    """Stand-in for noise under other relations: Poisson's halves where a record is added or
    removed, that of the others stays; all halve under zero_out."""
    noise = noise_by_rule(replace(cell, variant="rigorous")).noise_multiplier
    share = 0.5 if cell.sampler == "poisson" else 1.0
    if len(cell.plan.stages) > 1:
        return OtherRelations(noise, 0.9 * noise) if several else OtherRelations()
    return OtherRelations(share * noise, 0.9 * share * noise, noise / 2, 0.45 * noise)


def planted(frame: pd.DataFrame, worse: Mapping[str, float]) -> pd.DataFrame:
    """Return records with losses 1 + `worse` / epsilon (by the papers' pair: - `worse`) and a shift
    of each seed."""
    rng = np.random.default_rng(7)
    sign = frame["variant"].map({"rigorous": 1, "consistent": -1})
    loss = (
        1 + rng.normal(0, 0.3, SEEDS)[frame["replicate"]] + 0.01 * rng.standard_normal(len(frame))
    )
    loss += (sign * frame["sampler"].map(worse) / frame["target_epsilon"]).fillna(0)
    ranked_by = frame["dataset"].map({name: task.measure for name, task in TASKS.items()})
    return frame.assign(
        **{name: loss.where(ranked_by == name, frame[name]) for name in ranked_by.unique()}
    )


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    adult = tmp_path_factory.mktemp("data") / "adult.parquet"
    DATA_SETS.get("adult")().make(Obtained({}, "synthetic"), adult)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "calibrate", noise_by_rule)
        patch.setattr(comparison, "other_relations", relations_by_rule)
        for name, over in SETTINGS.items():
            experiment, variants = REGISTRY.get(name)(), REGISTRY.get(name).variants
            seeds = range(experiment.replicates(experiment.settings(over)))
            frames = [
                experiment.compute(
                    over, variant=each, replicates=seeds, data={"adult": adult}
                ).assign(variant=each, data="")
                for each in variants
            ]
            found[name] = pd.concat(frames, ignore_index=True)
    return {**found, "fair_comparison": planted(found["fair_comparison"], {"must_ow": 0.2})}


@pytest.fixture(scope="module")
def rigorous(records: Frames) -> pd.DataFrame:
    return records["fair_comparison"].query("variant == 'rigorous'")


@pytest.fixture(scope="module")
def tables(records: Frames, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., LookUp]:
    """Make the tables, with other records of the comparison."""

    def made(**changes: pd.DataFrame) -> LookUp:
        dirs = OutputDirs.under(tmp_path_factory.mktemp("fair"))
        chosen = [
            artefacts.REGISTRY.get(f"fair/{name}")()
            for name in ("winners", "measures", "noise", "rankings")
        ]
        return LookUp(
            {
                one.name: read_cells(
                    build(one, {**records, **changes}, printed_rows(one), dirs)["csv"]
                )
                for one in chosen
            }
        )

    return made


@pytest.fixture(scope="module")
def made(tables: Callable[..., LookUp]) -> LookUp:
    return tables()


def said(cells: LookUp, heading: str) -> str:
    return takeaways("fair", cells.tables)[heading]


def test_pairing_takes_the_seed_out(made: LookUp, rigorous: pd.DataFrame) -> None:
    where = {"dataset": "adult", "epsilon": "0.5", "sampler": "must_ow"}
    value, lower, upper = (
        made.number("winners", "difference_to_poisson", f"rigorous{end}", **where)
        for end in ("", "_lower", "_upper")
    )
    assert lower < 0.4 < upper and upper - lower < 0.03
    frame = rigorous.query("dataset == 'adult' and target_epsilon == 0.5")
    wide = frame.pivot(index="replicate", columns="sampler", values="log_loss")
    found = stats.ttest_rel(wide["must_ow"], wide["poisson"])
    interval = found.confidence_interval(0.95)
    assert (value, lower, upper) == pytest.approx(
        (wide["must_ow"].sub(wide["poisson"]).mean(), *interval), rel=1e-9
    )


def test_p_values_are_students() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=12), rng.normal(size=12)
    assert p_value(paired_difference(x, y)) == pytest.approx(stats.ttest_rel(x, y).pvalue, rel=1e-9)
    assert p_value(Estimate(0.0, 0.0, 12)) == p_value(Estimate(1.0, math.nan, 1)) == 1.0
    assert p_value(Estimate(1.0, 0.0, 12)) == 0.0


def test_coverage_has_the_exact_interval() -> None:
    found = coverage(pd.DataFrame({"covered": [1.0] * 18 + [0.0] * 2}))
    exact = stats.binomtest(18, 20).proportion_ci(0.95, method="exact")
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert coverage(pd.DataFrame({"covered": np.ones(20)})).upper == 1.0


def test_winners_are_ties_where_nothing_tells_them_apart(made: LookUp) -> None:
    cells = made.rows("winners", "among_the_best", dataset="*", epsilon="*", sampler="*")
    best = cells.groupby("sampler")["rigorous"].mean()
    assert best["poisson"] == best["wor"] == best["must_oo"] == 1 and best["must_ow"] == 0
    assert cells["note"].str.contains("not told apart").all()
    reverse = cells.groupby("sampler")["consistent"].mean()
    assert reverse["must_ow"] == 1 and reverse["poisson"] == 0


def test_rankings_count_the_reversals(made: LookUp) -> None:
    where = {"dataset": "digits", "epsilon": "2"}
    for column, variant, sampler, expected in (
        ("rank", "rigorous", "must_ow", 4),
        ("rank", "consistent", "must_ow", 1),
        ("pairs_separated", "rigorous", "", 3),
        ("pairs_reversed", "consistent", "", 3),
    ):
        assert made.number("rankings", column, variant, **where, sampler=sampler) == expected


def test_the_front_holds_what_nothing_beats(rigorous: pd.DataFrame) -> None:
    front = points(rigorous).groupby("sampler")["on_front"].mean()
    assert front["must_ow"] == 1, "the cheapest stays on the front"
    assert front["poisson"] >= 0.75 and front["wor"] >= 0.75, "equals leave it by chance only"
    cost = rigorous["gradients_expected"]
    dear = rigorous.assign(
        gradients_expected=cost.where(rigorous["sampler"] != "must_ow", 2 * cost)
    )
    assert not points(dear).query("sampler == 'must_ow'")["on_front"].any()


def test_every_sign_of_the_noise_figure_has_a_key(records: Frames) -> None:
    with styled():
        figure, _ = NoiseSizes().draw(records)
    (legend,) = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[:3] == ["proved", "from attack to proof", "papers' pair, no guarantee"]


def test_no_mark_of_the_noise_figure_hides_another(records: Frames) -> None:
    with styled():
        figure, _ = NoiseSizes().draw(records)
    for axes in filter(lambda axes: axes.has_data(), figure.axes):
        marks = [
            (*line.get_xdata(), *line.get_ydata())
            for line in axes.lines
            if len(line.get_xdata()) == 1
        ]
        assert len(marks) == len(set(marks)) == 2 * len(axes.get_yticks())


def test_the_figure_of_relations_shows_what_is_known_of_each(records: Frames) -> None:
    with styled():
        figure, numbers = NoiseRelations().draw(records)
    panels = [axes for axes in figure.axes if axes.has_data()]
    drawn = [
        sum(len(line.get_xdata()) == 1 and np.isfinite(line.get_xdata()[0]) for line in axes.lines)
        for axes in panels
    ]
    # a sampler of several stages is not asked for its noise where a record is put to 0
    assert drawn == [3, 2, 3] * 2
    remarks = [[text.get_text() for text in axes.texts].count("left out") for axes in panels]
    assert remarks == [0, 1, 0] * 2
    poisson = numbers.query("sampler == 'poisson' and m == 50").set_index("relation")["proved"]
    assert poisson["add_remove"] == poisson["zero_out"] == poisson["substitute"] / 2
    assert (numbers["refuted"] < numbers["proved"]).all()


def test_sections_of_the_noise_hold_one_size_fixed(records: Frames) -> None:
    along_b, along_m, fixed = sections(records["fair_noise"])
    assert (fixed["m"], fixed["b"]) == (100, 200)
    assert set(along_b.loc[along_b["sampler"] == "must_ow", "b"]) == {100, 200, 400}
    assert set(along_m.loc[along_m["sampler"] == "must_ow", "m"]) == {50, 100, 150}
    with pytest.raises(
        DataError, match="noise against b needs a surface with a two-stage sampler, got none"
    ):
        sections(records["fair_noise"].assign(surface=0))


def test_unpaired_seeds_and_two_sizes_are_refused(rigorous: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="samplers must have the same seeds to be paired"):
        list(fair_contests(rigorous.query("sampler != 'wor' or replicate != 3")))
    with pytest.raises(
        DataError, match=r"train once with each seed at .* linear, .* compare sizes separately"
    ):
        list(fair_contests(pd.concat([rigorous, rigorous.assign(m=50)])))


def test_the_words_follow_from_the_numbers(
    made: LookUp, records: Frames, tables: Callable[..., LookUp]
) -> None:
    words = takeaways("fair", made.tables)
    assert words["Which sampler"].startswith(
        "Use any of Poisson, WOR and MUST.OO, a tie: in all 8 comparisons"
    )
    matters = words["How much it matters"]
    assert "| MUST.OW | 8 | 8 | 0 | 0 |" in matters
    shown = re.search(r"\| WOR \| 8 \| (\d) \| (\d) \| (\d) \|", matters)
    assert shown and int(shown[2]) >= 6, "what chance gives"
    assert "Do not calibrate noise by that pair." in words["The papers' pair"]
    assert "| noise by the papers' pair | 24 | 24 |" in words["Rankings"]
    assert "| MUST.OW | 1.56 to 2.10 | 3.30 to 3.30 | left out |" in words["Adjacency"]
    compared = records["fair_comparison"]
    turned = tables(fair_comparison=planted(compared, {"poisson": 0.3, "wor": 0.3, "must_oo": 0.3}))
    assert said(turned, "Which sampler").startswith("Use MUST.OW: in all 8 comparisons")
    honest = tables(fair_comparison=compared.assign(epsilon_lower=0.5 * compared["target_epsilon"]))
    assert "No attack known here" in said(honest, "The papers' pair")


def test_every_number_of_the_advice_stands_in_a_table(made: LookUp) -> None:
    paragraphs = prose("fair", made.tables).takeaways()
    evidence = [paragraph.evidence for paragraph in paragraphs if paragraph.evidence is not None]
    assert len(paragraphs) == len(evidence) == 9
    assert prose("fair", {}).takeaways() == []
    for cell in pd.concat(evidence).to_dict("records"):
        table = cell["table"].removeprefix("fair/")
        more = {"steps": "2", "m": "*"} if table == "noise" else {}
        if more and cell["sampler"].startswith("must_"):
            more["b"] = "*"
        rows = made.rows(
            table,
            cell["quantity"].replace(" ", "_"),
            dataset=cell["data set"],
            epsilon=cell["ε"],
            sampler=cell["sampler"],
            **more,
        )
        assert cell["number"] in {
            f"{number:.6g}" for number in rows[cell["variant"].replace(" ", "_")]
        }
        assert len(rows) == 1 or more


def test_the_noise_of_the_papers_pair_says_what_it_is() -> None:
    noise = artefacts.REGISTRY.get("fair/noise")()
    # attained with the noise of the papers' pair
    assert noise.number_kind("epsilon_lower", "consistent") == "lower"
    assert noise.number_kind("noise_multiplier", "consistent") == "paper"

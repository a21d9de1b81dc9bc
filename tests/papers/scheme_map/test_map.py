"""The map: its rows and commands, cells that agree with recommendations, a table without an empty
cell, the picture and the page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import dpsub
from dpsub.accounting.questions.recommend import Recommendation
from dpsub.cli import parser_of
from dpsub.cli.releases import steps_of
from dpsub.cli.samplers import sampler_of
from dpsub.errors import ArgumentError
from dpsub.papers.scheme_map import PAPER, numbers
from dpsub.papers.scheme_map.experiments import (
    MapOfEpochs,
    MapOfFreshBatches,
    MapOfKeptPlans,
    MapOfUses,
    noise_of,
)
from dpsub.papers.scheme_map.figures import MapFigure
from dpsub.papers.scheme_map.schemes import RELATIONS, SCHEMES, TRAININGS, MapTraining
from dpsub.papers.scheme_map.tables import EXPERIMENTS, MapTable, over_poisson
from dpsub.reproduce import configuration, verdicts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.figures import figure_bytes, styled
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.planned import planned
from dpsub.reproduce.report import FinishedRun, write_report
from dpsub.reproduce.report.cells import LookUp, tables_of
from dpsub.sampling.schemes import scheme_names
from tests.few import few
from tests.papers.cells import takeaways

ROOT = Path(__file__).resolve().parents[3]
SMALL = MapTraining("small", "small", 400, 40, 1)
EPSILON, EFFORT = 2.0, 0.25
NOISE = {"poisson": 1.0, "wor": 1.5, "shuffle": 2.0, "random_allocation": 0.97}
"""Planted noise, proved; 1.2 for the other schemes."""
REFUSED = [
    ("shuffle", "add_remove"),
    ("cyclic_poisson", "fine_tuning"),
    ("banded_cyclic_poisson", "fine_tuning"),
    ("secret_cyclic_poisson", "fine_tuning"),
]
Frames = dict[str, pd.DataFrame]


@pytest.mark.parametrize("name", scheme_names())
def test_what_is_recommended_has_a_row(name: str) -> None:
    assert name in SCHEMES


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("training", TRAININGS)
def test_a_command_asks_about_the_training_of_its_row(name: str, training: str) -> None:
    try:
        release = SCHEMES[name].releases(TRAININGS[training])
    except ArgumentError:
        return  # the cell has this reason
    words = SCHEMES[name].arguments(TRAININGS[training]).split()
    arguments = parser_of("calibrate").parse_args([*words, "--epsilon", "1", "--delta", "1e-5"])
    arguments.epsilon, arguments.remarks = 1.0, []
    sampler = sampler_of(arguments)
    assert sampler == release.sampler
    assert steps_of(arguments, sampler) == release.steps and arguments.n == release.n


@pytest.fixture(scope="module", params=few(map(str, RELATIONS), more=0))
def recommended(request: pytest.FixtureRequest) -> Recommendation:
    return dpsub.recommend(
        SMALL.n,
        batch_size=SMALL.m,
        epochs=SMALL.epochs,
        epsilon=EPSILON,
        delta=SMALL.delta,
        adjacency=request.param,
        effort=EFFORT,
    )


def test_the_map_agrees_with_recommendations(recommended: Recommendation) -> None:
    relation = dpsub.relations.relation_named(recommended.adjacency)
    ranked = {one.name: one for one in recommended.schemes}
    for name in scheme_names():
        cell = noise_of(SCHEMES[name], SMALL, relation, EPSILON, effort=EFFORT)
        if name not in ranked:
            assert cell["reason"] == recommended.left_out[name]
            continue
        proved, refuted = ranked[name].noise_multiplier, ranked[name].refuted
        # one scheme alone has more of the effort
        assert cell["noise_multiplier"] <= 1.003 * proved, name
        assert cell["refuted"] >= 0.99 * refuted, name
        assert cell["refuted"] < proved and refuted < cell["noise_multiplier"], name
        assert cell["theorem"] and cell["steps"] == ranked[name].steps


def planted() -> Frames:
    """Return records of the whole map, in which ends are 2 % apart, those of shuffled batches
    20 %."""
    frames = {}
    for name, kind in zip(
        EXPERIMENTS, (MapOfFreshBatches, MapOfEpochs, MapOfUses, MapOfKeptPlans), strict=True
    ):
        experiment, rows = kind(), []
        settings = experiment.settings({})
        for replicate, (scheme, training) in enumerate(experiment.pairs(settings)):
            for relation in RELATIONS:
                for epsilon in settings.target_epsilon:
                    refused = any(
                        scheme.name == name and place in (training.name, str(relation))
                        for name, place in REFUSED
                    )
                    proved = NOISE.get(scheme.name, 1.2) / epsilon
                    apart = 1.2 if scheme.name == "shuffle" else 1.02
                    rows.append(
                        {
                            "replicate": replicate,
                            "training": training.name,
                            "adjacency": str(relation),
                            "sampler": scheme.name,
                            **{key: getattr(training, key) for key in ("n", "m", "epochs")},
                            "steps": 10,
                            "target_epsilon": epsilon,
                            "target_delta": training.delta,
                            "noise_multiplier": np.nan if refused else proved,
                            "refuted": np.nan if refused else proved / apart,
                            "theorem": "" if refused else "Theorem 1, docs/proofs/poisson.md",
                            "lower_theorem": "" if refused else "Attack, docs/proofs/attacks.md",
                            "reason": "no bound is proved; use zero_out" if refused else "",
                        }
                    )
        frames[name] = experiment.frame(rows).assign(variant="rigorous", data="")
    return frames


def test_the_smoke_run_has_both_ends_or_a_reason() -> None:
    settings = {"samplers": ["poisson", "wor"], "trainings": ["tabular"], "target_epsilon": [3]}
    records = MapOfFreshBatches().compute(settings, variant="rigorous", replicates=range(2))
    assert len(records) == 2 * len(RELATIONS)
    known = records["reason"] == ""
    assert known.all() and (records["refuted"] < records["noise_multiplier"]).all()
    assert records.groupby("sampler")["steps"].nunique().eq(1).all()


def test_no_cell_of_the_table_is_empty_and_open_cells_are_marked() -> None:
    records = planted()
    rows = MapTable().values(records)
    cells = len(SCHEMES) * len(TRAININGS) * len(RELATIONS) * 3
    assert len(rows) == cells
    lacking = rows[rows["value"].isna()]
    assert set(lacking["sampler"]) == {name for name, _ in REFUSED} and lacking["note"].ne("").all()
    whole = over_poisson(records.values())
    is_open = whole[whole["is_open"]]
    assert set(is_open["sampler"]) == {"shuffle"}
    shuffled = whole[(whole["sampler"] == "shuffle") & whole["ratio"].notna()]
    assert np.allclose(shuffled["ratio"], 2.0) and np.allclose(shuffled["lower"], 2 / 1.2)
    assert np.allclose(shuffled["upper"], 2 * 1.02)


def test_the_picture_fits_a_page_and_its_texts_are_apart() -> None:
    with styled():
        figure, cells = MapFigure().draw(planted())
        assert figure.get_figwidth() <= 8 and figure.get_figheight() <= 6
        figure.draw_without_rendering()
        for axes in figure.axes:
            texts = [text for text in axes.findobj(Text) if text.get_text() and text.get_visible()]
            boxes = [text.get_window_extent() for text in texts]
            apart = [
                not one.overlaps(other)
                for index, one in enumerate(boxes)
                for other in boxes[:index]
                if one.width and other.width
            ]
            assert all(apart)
    assert set(cells["training"]) == {"cifar"} and set(cells["target_epsilon"]) == {3.0}
    labels = {sampler_label(name) for name in SCHEMES}
    assert labels <= {text.get_text() for text in figure.findobj(Text)}


def test_the_picture_stands_first_in_the_report_of_a_run_that_did_not_make_it(
    tmp_path: Path,
) -> None:
    picture = tmp_path / f"docs/found/pictures/{PAPER.key}-{PAPER.front}.png"
    picture.parent.mkdir(parents=True)
    with styled():
        picture.write_bytes(figure_bytes(MapFigure().draw(planted())[0], "png"))
    config = configuration.load([ROOT / "config.yaml"])
    plan = planned(config, tmp_path)
    assert not [name for name in plan["artefacts"] if name.startswith(f"{PAPER.key}/")]
    assert [one["file"] for one in plan["front"]] == [str(picture)]
    dirs = OutputDirs.under(tmp_path)
    files = build(MapTable(), planted(), printed_rows(MapTable()), dirs)
    run = FinishedRun(
        artefacts=[MapTable()],
        dirs=dirs,
        comparison=verdicts.read(files["comparison"]),
        data=[],
        errata=[],
        provenance={},
        front=plan["front"],
    )
    write_report(tmp_path, run)
    head, _, _ = html.unescape((tmp_path / "index.html").read_text("utf-8")).partition("<h2")
    assert f'alt="{MapFigure.title}"' in head and "data:image/webp;base64" in head


def test_the_page_has_all_cells_with_their_links(tmp_path: Path) -> None:
    dirs = OutputDirs.under(tmp_path)
    build(MapTable(), planted(), printed_rows(MapTable()), dirs)
    tables = tables_of([MapTable()], dirs)
    shown = numbers.trainings(LookUp(tables))
    assert [one["training"].name for one in shown] == list(TRAININGS)
    for one in shown:
        linked = [cell for _, cells in one["rows"] for cell in cells]
        assert len(one["rows"]) == len(SCHEMES) - 1 and len(linked) == 9 * len(one["rows"])
        for cell in linked:
            assert cell == "–" or re.search(
                r"\[\d.*\]\(\.\./proofs/attacks\.md .*\) to \[.*poisson\.md", cell
            )
        assert sum(cell.startswith("**") for cell in linked) == 6
        assert len(one["commands"]) == len(SCHEMES) - 3 * (one["training"].name == "fine_tuning")
    said = takeaways("scheme_map", tables)
    assert set(said) >= {"Which scheme to take", "Open cells", "No number"}
    assert "use zero" in said["No number"]

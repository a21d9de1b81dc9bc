"""The noise of the tournament: which cells share a law, what is left out, and records that do not
depend on jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpsub.accounting.questions.fast_search import SingleGrids
from dpsub.accounting.questions.search import NOISE, Candidates, Goal
from dpsub.accounting.release import Release
from dpsub.papers.tournament import settings
from dpsub.papers.tournament.experiments import noise, training
from dpsub.papers.tournament.settings import (
    NoiseEntry,
    cell_of,
    expanded,
    law_of,
    left_out,
    needed,
)
from dpsub.reproduce import configuration, sweep
from dpsub.reproduce.papers import papers
from dpsub.reproduce.study.cells import Cell
from dpsub.reproduce.study.noise import Needed
from dpsub.reproduce.sweep import SweepBlock
from dpsub.sampling.schemes import SCHEMES

ROOT = Path(__file__).resolve().parents[3]
FOLDER = papers()["tournament"].folder
SMALL = (
    NoiseEntry(
        samplers=("poisson", "wor", "deterministic"),
        n=(500, 1000),
        m=(50, 100),
        epochs=(1,),
        target_epsilon=(1.0, 4.0),
    ),
)
PROVED = sorted(
    {
        (cell.adjacency, cell.sampler)
        for cell in expanded([NoiseEntry(n=(4000,), m=(40,), epochs=(1,), target_epsilon=(1,))])
    }
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_KNOWN", {})


def ends(cell: Cell) -> tuple[float, float]:
    """Return both bounds at a noise multiplier of 2, by one grid each."""
    goal = Goal(1.0, cell.target_delta, cell.adjacency, 0.05)
    candidates = Candidates(
        lambda noise: [Release(cell.plan, cell.n, noise, cell.steps)], NOISE, goal
    )
    grids = SingleGrids(candidates)
    choices = range(len(candidates.composition(2.0).attack_choices))
    return grids.bound(2.0, 1.0, None), max(grids.bound(2.0, 1.0, i) for i in choices)


@pytest.mark.parametrize(("relation", "sampler"), PROVED)
def test_cells_of_one_law_have_the_same_ends_and_other_cells_have_others(
    relation: str, sampler: str
) -> None:
    """Compare cells with twice as many records in batches twice as large and, where they may be one
    law, with a record removed or zeroed out."""
    small, large = (cell_of(relation, sampler, n, n // 40, 1, 1.0, 1e-5) for n in (400, 800))
    same = ends(small) == pytest.approx(ends(large), rel=1e-9)
    assert same == (law_of(small) == law_of(large))
    zeroed = replace(small, adjacency="zero_out")
    if relation == "add_remove" and ("zero_out", sampler) in PROVED:
        assert (ends(zeroed) == ends(small)) == (law_of(zeroed) == law_of(small))


def test_what_is_left_out_is_said_with_its_reason() -> None:
    grid = [
        NoiseEntry(n=(100, 1000), m=(50,), epochs=(1, 2, 3), target_epsilon=(1,)),
        NoiseEntry(
            samplers=("wr",), n=(1000,), m=(50,), epochs=(1,), target_epsilon=(1,), tight=True
        ),
    ]
    reasons = left_out(grid)
    assert reasons["three_stage needs n of at least 4 m"] == 2 * 3
    assert reasons["cyclic_poisson needs n of at least 10 m"] == 3 * 3
    assert any(line.startswith("shuffle under add_remove: no bound is proved") for line in reasons)
    assert {
        line.split()[0]
        for line in reasons
        if "under zero_out: there is a bound, and its search" in line
    } == {
        "wr",
        "must_ow",
        "must_ww",
        "three_stage",
    }
    assert any("tight bound" in line for line in reasons)
    every = 2 * 3 * 3 * len(SCHEMES) + 3
    assert reasons.total() + sum(1 for _ in expanded(grid)) == every


def test_no_law_is_computed_twice_and_records_do_not_depend_on_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counted(cell: Cell) -> Needed:
        asked.append((*law_of(cell), cell.target_epsilon))
        return Needed(len(asked), 0.0, 0.0, cell.target_epsilon)

    monkeypatch.setattr(settings.noise, "needed", counted)
    experiment, over = noise.TournamentNoise(), {"grid": [entry.model_dump() for entry in SMALL]}
    count = experiment.replicates(experiment.settings(over))
    whole = experiment.compute(over, variant="rigorous", replicates=range(count))
    assert len(asked) == len(set(asked)) < len(whole) == len(list(expanded(SMALL)))
    monkeypatch.setattr(settings, "_KNOWN", {})
    asked.clear()
    parts = [range(count * i // 3, count * (i + 1) // 3) for i in range(3)]
    split = pd.concat(
        [experiment.compute(over, variant="rigorous", replicates=part) for part in parts]
    )
    assert len(asked) == len(set(asked))
    pd.testing.assert_frame_equal(split.reset_index(drop=True), whole)


def test_a_cell_of_a_sweep_is_a_law_and_its_records_are_counted() -> None:
    block = SweepBlock(
        experiment="tournament_noise",
        variants=["rigorous"],
        grid=[one.model_dump() for one in SMALL],
    )
    cells = [cell for cell, count in sweep.expand([block]).values() if count == 1]
    experiment = noise.TournamentNoise()
    assert len(cells) == len(noise.laws(SMALL))
    assert sum(experiment.records_a_replicate(cell.settings) for cell in cells) == len(
        list(expanded(SMALL))
    )
    assert all(
        noise.laws(cell.settings.grid) == (tuple(expanded(cell.settings.grid)),) for cell in cells
    )
    whole = sum(experiment.cost(cell.settings).setup for cell in cells)
    assert whole == pytest.approx(
        experiment.cost(experiment.settings({"grid": block.model_extra["grid"]})).setup
    )


@pytest.mark.parametrize("tight", [False, True])
def test_noise_is_proved_and_less_is_refuted(tight: bool) -> None:
    cell = cell_of("substitute", "wor", 1000, 100, 1, 2.0, 1e-5, tight)
    found = needed(cell)
    assert 0 < found.epsilon_lower <= found.epsilon_upper <= 2.0
    assert 0 < found.necessary < found.noise_multiplier
    assert not tight or found.noise_multiplier < needed(replace(cell, tight=False)).noise_multiplier


def test_the_configurations_name_the_published_grid_and_ten_times_as_much() -> None:
    published = configuration.load([ROOT / "config.yaml", FOLDER / "full.yaml"])
    grid = noise.TournamentNoise.settings(published["experiments"]["tournament_noise"]).grid
    assert sum(1 for _ in expanded(grid)) >= 10_000
    (block, trainings) = sweep.load([FOLDER / "sweep.yaml"]).sweep
    whole = noise.TournamentNoise.settings({"grid": block.model_extra["grid"]}).grid
    assert sum(1 for _ in expanded(whole)) >= 100_000
    trained = training.TournamentTraining.settings(trainings.model_extra)
    assert (
        trained.replicates * sum(len(group.cells) for group in training.expanded(trained)) >= 10_000
    )

"""From grids to cells, and what is refused before the first job."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsub.errors import PlanError
from dpsub.reproduce.sweeps import planning
from dpsub.reproduce.sweeps.cells import Cell
from tests.sweep_grids import DRAWS, FAIR, planned, written

ROOT = Path(__file__).resolve().parents[2]


def test_a_grid_is_a_product_in_which_one_stage_takes_no_b(tmp_path: Path) -> None:
    cells = [item.cell.fields for item in planned(tmp_path).wanted]
    found = [(cell["sampler"], cell["b"], cell["steps"]) for cell in cells]
    one_stage = [(name, None, steps) for name in ("poisson", "wor") for steps in (5, 10)]
    two_stages = [("must_ow", b, steps) for b in (20, 30) for steps in (5, 10)]
    assert found == one_stage + two_stages


def test_a_cell_is_named_by_what_it_is_and_not_by_how_it_is_written(tmp_path: Path) -> None:
    (item,) = planned(tmp_path, FAIR | {"samplers": ["poisson"]}).wanted
    fields = {
        "target_delta": 1e-5, "target_epsilon": 2, "sampler": "poisson", "n": 1000, "m": 20, "b": None, "steps": 10,
        "dataset": "linear", "convention": "rigorous",
    }  # fmt: skip
    assert item.cell.fields == fields
    assert item.cell.digest == Cell.of("fair_comparison", dict(reversed(fields.items()))).digest
    text = (
        '["fair_comparison",{"b":null,"convention":"rigorous","dataset":"linear","m":20,"n":1000,"sampler":"poisson",'
        '"steps":10,"target_delta":1e-05,"target_epsilon":2}]'
    )
    assert item.cell.digest == hashlib.sha256(text.encode()).hexdigest()[:32]
    for name, other in (("m", 21), ("target_delta", 1e-6), ("b", 20)):
        assert Cell.of("fair_comparison", {**fields, name: other}).digest != item.cell.digest
    assert Cell.of("distinct_draws", fields).digest != item.cell.digest


def test_files_go_over_each_other(tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("job_minutes: 3\n", encoding="utf-8")
    config = planning.load([written(tmp_path / "sweep.yaml"), more])
    assert (config["job_minutes"], config["memory_mib"], config["data"]["fallback"]) == (3, None, "synthetic")


@pytest.mark.parametrize("name", ["sweep.yaml", "smoke_sweep.yaml"])
def test_the_sweeps_of_the_project_can_be_planned(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = planning.SweepPlan(planning.load([ROOT / "workflow" / name]))
    assert plan.totals(2)["records_to_compute"] == sum(item.replicates for item in plan.wanted) > 0


def grid(base: dict[str, Any], **keys: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in {**base, **keys}.items() if value is not None}]


CELL = r" \(cell: distinct_draws with sampler = {}, n = 100, m = {}.*\)$"
REFUSED = {
    "b above n": (
        grid(DRAWS, sizes=[{"n": 100, "m": 10, "b": 101}]),
        "b must be at most n = 100, got b = 101" + CELL.format("must_ow", 10),
    ),
    "m above b": (
        grid(DRAWS, samplers=["must_oo"], sizes=[{"n": 100, "m": 10, "b": 9}]),
        "m must be at most b = 9, got m = 10" + CELL.format("must_oo", 10),
    ),
    "m above n": (grid(DRAWS, sizes=[{"n": 9, "m": 10}]), "m must be at most n = 9, got m = 10 .cell: .*poisson"),
    "no b": (grid(DRAWS, sizes=[{"n": 100, "m": 10}]), "must_ow needs b, the size of the first stage, got none .cell"),
    "no n": (grid(DRAWS, sizes=[{"m": 10}]), "the number of records n of the frame is missing; add n to every one"),
    "another n": (grid(FAIR, sizes=[{"n": 7, "m": 2}]), "n must be the 1000 records of linear, got n = 7; drop it"),
    "empty axis": (grid(DRAWS, steps=[]), r"grids\[0\].steps must have at least 1 value\(s\), got 0"),
    "value twice": (grid(DRAWS, steps=[5, 5.0]), r"grids\[0\].steps must not repeat a value, got \[5, 5.0\]"),
    "chain twice": (
        grid(FAIR, samplers=["wor:40,wr:20", "wor:40, wr:20"]),
        "samplers must not repeat a value, got 'wor:40,wr:20' twice; drop one",
    ),
    "cell twice": ([DRAWS, DRAWS | {"steps": [10, 20]}], r"grids\[1\]: a cell must be in one grid only, got it again"),
    "unknown sampler": (grid(DRAWS, samplers=["poison"]), "unknown sampler 'poison'; did you mean 'poisson'?"),
    "unknown stage": (grid(FAIR, samplers=["war:40,wr:20"]), "unknown kind of stage 'war'; did you mean 'wr'?"),
    "chain without stages": (grid(DRAWS, samplers=["multistage"]), "unknown sampler 'multistage'; "),
    "unknown data": (grid(FAIR, datasets=["linaer"]), "unknown data set 'linaer'; did you mean 'linear'?"),
    "unknown experiment": (grid(DRAWS, experiment="distinct_drows"), "unknown experiment .* 'distinct_draws'"),
    "unknown key": (grid(DRAWS, seed=3), r"unknown configuration key 'grids\[0\].seed'; did you mean 'seeds'?"),
    "axis too many": (grid(DRAWS, datasets=["linear"]), "datasets does not apply to distinct_draws; drop it"),
    "axis too few": (grid(FAIR, targets=None), "targets is missing, which fair_comparison needs; add it"),
    "chain that leaves another m": (grid(FAIR, samplers=["wor:40,wr:30"]), "m must be the 30 slots that the chain"),
    "target out of reach": (
        grid(FAIR, samplers=["wr"], sizes=[{"m": 1000}], steps=[1000], targets=[{"epsilon": 0.001, "delta": 1e-5}]),
        "the target epsilon = 0.001 .* must be within reach .*cell: fair_comparison with sampler = wr, n = 1000, ",
    ),
    "chain that no bound covers": (
        grid(FAIR, samplers=["wr:900,wr:800,wr:700,wr:600"], sizes=[{"m": 600}]),
        "a chain of 4 stages .* take fewer stages or smaller ones .cell: fair_comparison",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_contradiction_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    grids, sentence = REFUSED[name]
    with pytest.raises(PlanError) as refused:
        planned(tmp_path, *grids)
    assert re.search(sentence, str(refused.value)), str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "results").exists()


def test_a_cell_that_needs_more_memory_than_there_is_is_refused(tmp_path: Path) -> None:
    sizes = [{"n": 100, "m": 10, "b": 20}, {"n": 10**6, "m": 10**6, "b": 10**6}]
    with pytest.raises(
        PlanError, match=r"^a cell must fit .* memory_mib = 4000, got .* \(cell: .*m = 1000000"
    ) as refused:
        planned(tmp_path, DRAWS | {"sizes": sizes}, memory_mib=4000)
    assert "\n" not in str(refused.value)
    assert planned(tmp_path, DRAWS | {"sizes": sizes}, memory_mib=10**6).bundles


@pytest.mark.parametrize("folder", [".", ".."])
def test_results_do_not_mix_with_the_project(folder: str, tmp_path: Path) -> None:
    path = written(tmp_path / "sweep.yaml")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"results_dir": folder}), encoding="utf-8")
    with pytest.raises(PlanError, match=r"^results_dir must be a folder of its own"):
        planning.load([path])

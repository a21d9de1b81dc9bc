"""Sweeps: cells, jobs, the work that an addition leaves, and the fate of the records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from dpsub import sampling
from dpsub.cli import main
from dpsub.errors import DataError, PlanError
from dpsub.papers.fair.experiments.distinct_draws import DistinctDraws
from dpsub.reproduce import records, summary, sweep
from dpsub.reproduce.experiment import Cost
from dpsub.reproduce.packing import BASE_MIB, BASE_SECONDS, Job, SweepCell, Work, pack
from dpsub.reproduce.sweep import SweepPlan

ROOT = Path(__file__).resolve().parents[3]
EXPERIMENT = DistinctDraws()
DRAWS: dict[str, Any] = {
    "experiment": "distinct_draws",
    "samplers": ["poisson", "wor", "must_ow"],
    "n": 100,
    "m": 10,
    "replicates": 2,
    "vary": {"b": [20, 30], "steps": [5, 10]},
}
ENTRY: dict[str, Any] = {
    "dataset": "linear",
    "samplers": ["nonprivate", "poisson", "must_ow"],
    "m": 20,
    "b": 40,
    "steps": 10,
    "target_epsilon": 2,
}
FAIR: dict[str, Any] = {
    "experiment": "fair_comparison",
    "variants": ["rigorous"],
    "replicates": 2,
    "grid": [ENTRY],
}


def written(path: Path, *blocks: dict[str, Any], **keys: Any) -> Path:
    """Write a sweep as its file holds it."""
    whole = {
        "seed": 1,
        "results_dir": str(path.parent / "results"),
        **keys,
        "sweep": list(blocks or [DRAWS]),
    }
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return path


def planned(folder: Path, *blocks: dict[str, Any], **keys: Any) -> SweepPlan:
    """Return the plan of a sweep with results in `folder`."""
    folder.mkdir(exist_ok=True)
    return SweepPlan(sweep.load([written(folder / "sweep.yaml", *blocks, **keys)]))


def finish(plan: SweepPlan) -> None:
    """Do what the workflow does with the jobs of a plan."""
    plan.write()
    for part, job in plan.jobs.items():
        records = plan.results / "records" / job.experiment / job.variant / f"{part}.parquet"
        sweep.compute(plan.job_file(part), records, data={})


def summarised(plan: SweepPlan, rows_at_once: int = 1000) -> tuple[Path, Path]:
    paths = plan.results / "summary.parquet", plan.results / "differences.parquet"
    measured = ["gradients", "distinct_mean", "distinct_sd"]
    summary.write(
        sweep.part_files(plan.results),
        list(EXPERIMENT.keys),
        measured,
        *paths,
        rows_at_once=rows_at_once,
    )
    return paths


def units(plan: SweepPlan) -> list[tuple[str, int]]:
    """Return the (cell, replicate) that the jobs of a plan compute."""
    return [
        (work.cell.digest, number)
        for job in plan.jobs.values()
        for work in job.work
        for number in range(work.first, work.stop)
    ]


def priced(number: int, cost: Cost, replicates: int = 4) -> tuple[Work, Cost, tuple[str, ...]]:
    cell = SweepCell("distinct_draws", "consistent", None, {}, f"{number:032x}")
    return Work(cell, 0, replicates), cost, ()


def test_a_block_is_a_product_in_which_one_stage_takes_no_b(tmp_path: Path) -> None:
    cells = [cell.settings for cell, _ in planned(tmp_path).wanted.values()]
    found = {(cell.samplers[0], cell.b, cell.steps) for cell in cells}
    assert len(cells) == len(found)
    one_stage = {(name, None, steps) for name in ("poisson", "wor") for steps in (5, 10)}
    assert found == one_stage | {("must_ow", b, steps) for b in (20, 30) for steps in (5, 10)}


def test_a_cell_in_two_blocks_is_counted_once(tmp_path: Path) -> None:
    wider = DRAWS | {"replicates": 5, "vary": {"b": [30], "steps": [10, 20]}}
    both = planned(tmp_path, DRAWS, wider)
    assert len(both.wanted) == 8 + 3
    assert sorted(count for _, count in both.wanted.values()) == [2] * 5 + [5] * 6


def test_a_cell_is_named_by_what_fixes_its_numbers(tmp_path: Path) -> None:
    def names(name: str, **over: Any) -> set[str]:
        return set(
            planned(tmp_path / name, DRAWS | {"samplers": ["wor"], "vary": {}} | over).wanted
        )

    assert (
        names("a")
        == names("b", replicates=7, n=100.0)
        == names("c", vary={"steps": [100], "b": [40, 50]})
    )
    assert len(set.union(*(names(f"d{m}", m=m) for m in (10, 11)), names("e", steps=5))) == 3


def test_without_privacy_a_cell_stands_for_all_targets(tmp_path: Path) -> None:
    entry = ENTRY | {
        "dataset": ["linear", "digits"],
        "steps": [10, 20],
        "target_epsilon": [1, 2],
        "m": [20, 30],
    }
    found = [
        cell.settings.grid[0]
        for cell, _ in planned(tmp_path, FAIR | {"grid": [entry]}).wanted.values()
    ]
    without = [one for one in found if one.samplers == ("nonprivate",)]
    assert len(found) == 8 + 2 * 16 and len(without) == 8
    assert all(one.b == one.target_epsilon == () for one in without)


@pytest.mark.parametrize("name", ["sweep.yaml", "smoke_sweep.yaml"])
def test_the_sweeps_of_the_project_can_be_planned(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = SweepPlan(sweep.load([ROOT / "src/dpsub/papers/fair" / name]))
    assert (
        plan.totals(2)["records_to_compute"] == sum(count for _, count in plan.wanted.values()) > 0
    )


def changed(base: dict[str, Any], **keys: Any) -> list[dict[str, Any]]:
    return [base | keys]


REFUSED = {
    "b above n": (
        changed(DRAWS, vary={"b": [101]}),
        r"^sweep\[0\]: b must be at most n = 100, got "
        r"b = 101",
    ),
    "m above n": (changed(DRAWS, n=9), "m must be at most n = 9, got m = 10"),
    "empty axis": (
        changed(DRAWS, vary={"steps": []}),
        r"sweep\[0\].vary.steps must have at least "
        r"1 value\(s\), got 0",
    ),
    "value twice": (changed(DRAWS, vary={"steps": [5, 5.0]}), r"must not repeat a value"),
    "unknown sampler": (
        changed(DRAWS, samplers=["poison"]),
        "unknown sampler 'poison'.*; did you mean 'poisson'?",
    ),
    "unknown data": (
        changed(FAIR, grid=[ENTRY | {"dataset": "linaer"}]),
        "'linaer'.*; did you mean 'linear'?",
    ),
    "unknown experiment": (
        changed(DRAWS, experiment="distinct_drows"),
        "unknown experiment .*'distinct_draws'",
    ),
    "unknown key": (
        changed(DRAWS, step=3),
        r"unknown configuration key 'sweep\[0\].step'; did you "
        r"mean 'steps'?",
    ),
    "unknown axis": (
        changed(DRAWS, vary={"stebs": [3]}),
        r"unknown configuration key .*did you "
        r"mean 'steps'?",
    ),
    "unknown variant": (
        changed(FAIR, variants=["stated"]),
        r"sweep\[0\].variants must be among "
        r"rigorous, consistent",
    ),
    "chain that no bound covers": (
        changed(
            FAIR, grid=[ENTRY | {"samplers": ["wr:900,wr:800,wr:700,wr:600"], "m": [600], "b": []}]
        ),
        "a chain of 4 stages .* take fewer or smaller stages",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_contradiction_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    blocks, sentence = REFUSED[name]
    with pytest.raises(PlanError, match=sentence) as refused:
        planned(tmp_path, *blocks)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "results").exists()


def test_a_cell_that_needs_more_memory_than_there_is_is_refused(tmp_path: Path) -> None:
    large = DRAWS | {"n": 10**6, "m": 10**6, "vary": {"b": [10**6]}}
    with pytest.raises(
        PlanError,
        match=r"^a cell must fit .* memory_mib = 4000, got .* \(cell: "
        r".*1000000",
    ):
        planned(tmp_path, large, memory_mib=4000)
    assert planned(tmp_path, large, memory_mib=10**6).jobs


@pytest.mark.parametrize("folder", [".", ".."])
def test_results_do_not_mix_with_the_project(folder: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"^results_dir must be a folder of its own"):
        planned(tmp_path, results_dir=folder)


def test_jobs_are_as_few_as_can_be_and_even() -> None:
    jobs = pack([priced(number, Cost(1, 1, 10)) for number in range(12)], seconds=BASE_SECONDS + 25)
    assert [len(job.work) for job in jobs] == [4, 4, 4]
    assert [job.seconds for job in jobs] == [BASE_SECONDS + 20] * 3


def test_a_long_cell_is_cut_between_its_replicates_and_pays_its_setup_in_each_job() -> None:
    jobs = pack([priced(0, Cost(5, 2, 10), replicates=20)], seconds=BASE_SECONDS + 25)
    assert [(work.first, work.stop) for job in jobs for work in job.work] == [(0, 10), (10, 20)]
    assert [job.seconds for job in jobs] == [BASE_SECONDS + 25] * 2
    (alone,) = pack([priced(0, Cost(5, 1000, 10), replicates=1)], seconds=60)
    assert alone.seconds == BASE_SECONDS + 1005


def test_small_cells_do_not_wait_for_the_memory_of_a_large_one() -> None:
    jobs = pack(
        [priced(number, Cost(1, 1, 5000 * (number % 2))) for number in range(6)], seconds=600
    )
    assert [job.memory for job in jobs] == [BASE_MIB, BASE_MIB + 5000]


@pytest.mark.slow
def test_a_hundred_thousand_cells_are_planned_in_2_gib_and_few_jobs(tmp_path: Path) -> None:
    vary = {"m": list(range(50, 70)), "steps": list(range(100, 1100))}
    large = DRAWS | {
        "samplers": ["poisson", "wor", "wr", "must_ow", "must_ww"],
        "n": 1000,
        "replicates": 10,
    }
    path = written(tmp_path / "sweep.yaml", large | {"b": 200, "vary": vary})
    script = (
        "import json, sys; from pathlib import Path; from dpsub.reproduce import provenance, "
        "sweep\n"
        "totals = sweep.SweepPlan(sweep.load([Path(sys.argv[1])])).totals(2)\n"
        "print(json.dumps([totals, provenance.peak_memory()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    totals, memory = json.loads(done.stdout)
    assert (totals["cells"], totals["records"]) == (100_000, 1_000_000)
    assert memory < 2048
    assert totals["core_hours"] * 6 <= totals["jobs"] <= totals["core_hours"] * 6.5 + 1


def test_a_new_sampler_and_new_seeds_leave_only_what_is_new(tmp_path: Path) -> None:
    first = planned(tmp_path)
    finish(first)
    assert planned(tmp_path).jobs == {}
    before = {path: path.read_bytes() for path in sweep.part_files(first.results)}
    more = DRAWS | {"samplers": ["wr", *DRAWS["samplers"]], "replicates": 5}
    wider = planned(tmp_path, more, job_minutes=0.1)
    old, new = set(units(first)), units(wider)
    assert len(new) == len(set(new)) and not old & set(new)
    assert old | set(new) == {(name, number) for name in wider.wanted for number in range(5)}
    finish(wider)
    assert {path: path.read_bytes() for path in before} == before
    assert planned(tmp_path, DRAWS | {"replicates": 3}).jobs == {}
    assert {path.stem for path in wider.job_file("*").parent.glob("*")} == set(wider.jobs)


def test_each_row_has_its_whole_key(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    found = pd.read_parquet(plan.results / "records")
    assert len(found) == sum(count for _, count in plan.wanted.values())
    for name, (cell, count) in plan.wanted.items():
        rows = found[found["cell"] == name]
        assert sorted(rows["replicate"]) == list(range(count))
        for key in ("n", "m", "steps"):
            assert (rows[key] == getattr(cell.settings, key)).all()
        assert (rows["b"] == (cell.settings.b or 0)).all()


def test_a_cell_gives_the_same_records_in_any_job(tmp_path: Path) -> None:
    whole = planned(tmp_path / "whole")
    finish(whole)
    finish(planned(tmp_path / "cut", DRAWS | {"replicates": 1}))
    rest = planned(tmp_path / "cut")
    finish(rest)
    assert len(sweep.part_files(whole.results)) == 1 and len(sweep.part_files(rest.results)) == 2
    for ours, theirs in zip(summarised(whole), summarised(rest, rows_at_once=5), strict=True):
        pd.testing.assert_frame_equal(
            pd.read_parquet(ours), pd.read_parquet(theirs), check_exact=True
        )


@pytest.mark.parametrize("rows_at_once", [1, 5, 1000])
def test_summary_and_differences_are_those_of_all_rows_at_once(
    rows_at_once: int, tmp_path: Path
) -> None:
    plan = planned(tmp_path, DRAWS | {"replicates": 3})
    finish(plan)
    means, gaps = (
        pd.read_parquet(path).set_index("cell") for path in summarised(plan, rows_at_once)
    )
    rows = pd.read_parquet(plan.results / "records")
    expected = rows.groupby("cell")["distinct_mean"].agg(["mean", "std"]).loc[means.index]
    assert len(means) == len(plan.wanted) and (means["replicates"] == 3).all()
    pd.testing.assert_series_equal(
        means["distinct_mean_mean"], expected["mean"], check_names=False, rtol=1e-12
    )
    pd.testing.assert_series_equal(
        means["distinct_mean_sd"], expected["std"], check_names=False, rtol=1e-9
    )
    assert set(gaps.index) == set(rows.loc[rows["sampler"] != "poisson", "cell"])
    for cell, row in gaps.iterrows():
        ours = rows[rows["cell"] == cell].set_index("replicate")
        same = (
            (rows["sampler"] == "poisson")
            & (rows["steps"] == row["steps"])
            & (rows["m"] == row["m"])
        )
        gained = (
            ours["distinct_mean"] - rows[same].set_index("replicate")["distinct_mean"]
        ).to_numpy()
        low, high = stats.ttest_1samp(gained, 0).confidence_interval()
        np.testing.assert_allclose(row["distinct_mean_difference"], gained.mean(), rtol=1e-12)
        np.testing.assert_allclose(
            [row["distinct_mean_low"], row["distinct_mean_high"]], [low, high], rtol=1e-9
        )


def test_cells_share_the_names_of_given_settings(tmp_path: Path) -> None:
    """A copy of them for each cell was half the memory of a plan."""
    cells = [cell for cell, _ in planned(tmp_path).wanted.values()]
    points = {(cell.settings.b, cell.settings.steps) for cell in cells}
    assert len({id(cell.settings.model_fields_set) for cell in cells}) <= len(points) < len(cells)


def test_record_files_are_read_once_for_all_portions(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    files = sweep.part_files(plan.results)
    count = len(pd.read_parquet(plan.results / "records"))
    portions = summary.portions(files, 5, tmp_path)
    found = [next(portions)]
    for path in files:
        path.unlink()
    found += portions
    assert len(found) > 1 and sum(map(len, found)) == count
    assert {path.name for path in tmp_path.iterdir()} == {"sweep.yaml", "results"}


def test_a_cell_with_rows_of_poisson_is_its_own_partner(tmp_path: Path) -> None:
    number = np.arange(4.0)
    rows = pd.DataFrame(
        {
            "pair": "a",
            "cell": ["b", "b", "c", "c"],
            "variant": "stated",
            "data": "",
            "replicate": 0,
            "sampler": ["poisson", "wor"] * 2,
            "b": [1, 1, 2, 2],
            "loss": number**2,
        }
    )
    rows.to_parquet(tmp_path / "rows.parquet")
    summary.write(
        [tmp_path / "rows.parquet"], ["sampler", "b"], ["loss"], tmp_path / "s", tmp_path / "d"
    )
    assert list(pd.read_parquet(tmp_path / "d")["loss_difference"]) == [1, 5]


def test_without_poisson_cells_nothing_is_paired(tmp_path: Path) -> None:
    plan = planned(tmp_path, DRAWS | {"samplers": ["wor"]})
    finish(plan)
    assert pd.read_parquet(summarised(plan)[1]).empty


def test_a_replicate_in_two_files_counts_once_and_must_agree(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    before = pd.read_parquet(summarised(plan)[0])
    (job,) = plan.jobs.values()
    plan.jobs = {"f" * 32: Job(job.work[:2], (), 1.0, 1.0)}
    finish(plan)
    pd.testing.assert_frame_equal(pd.read_parquet(summarised(plan)[0]), before)
    plan.seed = 2
    plan.job_file("f" * 32).unlink()
    finish(plan)
    with pytest.raises(
        DataError, match="a replicate must have one result, got two that differ of cell"
    ):
        summarised(plan)


def test_a_damaged_file_is_refused_and_a_lost_one_computed_again(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    (path,) = sweep.part_files(plan.results)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="delete it and run again"):
        planned(tmp_path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(DataError, match="delete it and run again"):
        records.read_checked(path, sweep.SweepOrigin)
    path.unlink()
    assert sorted(units(planned(tmp_path))) == sorted(units(plan))


def test_a_results_folder_has_one_seed(tmp_path: Path) -> None:
    finish(planned(tmp_path))
    with pytest.raises(
        PlanError,
        match=r"must be of one seed, got seed = 2 and .* made with 1; name another "
        r"results_dir",
    ):
        planned(tmp_path, seed=2)


def test_finished_cells_of_other_code_are_kept_and_counted(tmp_path: Path) -> None:
    finish(planned(tmp_path))
    assert planned(tmp_path).totals(1)["files_by_other_code"] == 1


def test_costs_are_learnt_from_finished_jobs(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    more = DRAWS | {"replicates": 4}
    declared = planned(tmp_path, more).totals(1)["core_hours"]
    (path,) = sweep.part_files(plan.results)
    said = records.read_origin(path, sweep.SweepOrigin).declared_seconds
    timing = plan.results / "run/timings" / path.relative_to(plan.results).with_suffix(".tsv")
    timing.parent.mkdir(parents=True)
    timing.write_text(f"s\th:m:s\n{BASE_SECONDS + 5 * said}\t0:00:01\n", encoding="utf-8")
    learnt = planned(tmp_path, more).totals(1)["core_hours"]
    assert learnt - BASE_SECONDS / 3600 == pytest.approx(5 * (declared - BASE_SECONDS / 3600))


def test_an_experiment_that_gives_other_replicates_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = EXPERIMENT.compute({}, variant="consistent", replicates=range(1, 3))
    monkeypatch.setattr(type(EXPERIMENT), "records", lambda *_: frame)
    with pytest.raises(PlanError, match="must hold the replicates 0 to 1, got others"):
        finish(planned(tmp_path))


def test_draws_agree_with_the_law() -> None:
    chosen = {"samplers": ["must_ww"], "n": 50, "m": 20, "b": 30, "steps": 4000}
    (row,) = EXPERIMENT.compute(chosen, variant="consistent", seed=7).to_dict("records")
    expected = sampling.of_sizes("must_ww", n=50, m=20, b=30).expected_distinct(50)
    assert abs(row["distinct_mean"] - expected) < 6 * row["distinct_sd"] / 4000**0.5
    assert row["gradients"] == pytest.approx(4000 * row["distinct_mean"])


def test_the_plan_is_printed_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "sweep.yaml")
    assert main(["plan", str(path), "--cores", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {
        name: found[name]
        for name in ("cells", "cells_finished", "records", "records_to_compute", "jobs")
    } == {
        "cells": 8,
        "cells_finished": 0,
        "records": 16,
        "records_to_compute": 16,
        "jobs": 1,
    }
    assert found["core_hours"] > 0 and found["memory_mib"] == found["memory_mib_per_job"] > 600
    assert main(["plan", str(path)]) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert shown == ["cells", "records", "jobs", "core-hours", "memory", "results"]
    assert [item.name for item in tmp_path.iterdir()] == ["sweep.yaml"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cores", "0"], "dpsub plan: --cores must be at least 1, got 0\n"),
        (
            ["nowhere.yaml"],
            "the configuration nowhere.yaml cannot be read (No such file or directory); name "
            "another file\n",
        ),
    ],
)
def test_the_plan_is_refused_in_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(written(tmp_path / "sweep.yaml")), *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.endswith(sentence) and err.count("\n") == 1

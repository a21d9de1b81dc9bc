"""Bundles, the store, and what an addition leaves to be computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpsub import sampling
from dpsub.errors import DataError, PlanError
from dpsub.reproduce.sweeps import by_cell, differences, store
from dpsub.reproduce.sweeps.bundles import BASE_MIB, BASE_SECONDS, Bundle, Priced, Work, pack
from dpsub.reproduce.sweeps.cells import Cell, Cost
from dpsub.reproduce.sweeps.planning import SweepPlan
from tests.sweep_grids import DRAWS, planned

EXPERIMENT = pytest.importorskip("dpsub.papers.fair.sweeps.distinct_draws").DistinctDraws()


def computed(bundle: Bundle, seed: int = 1) -> list[tuple[Work, pd.DataFrame]]:
    return [
        (work, EXPERIMENT.run(work.cell.fields, range(work.first, work.stop), root=seed, data={}))
        for work in bundle.work
    ]


def finish(plan: SweepPlan, *, most: int | None = None) -> None:
    """Do what the workflow does with the jobs of a plan, or with the first `most` of them."""
    plan.write()
    for bundle in plan.bundles[:most]:
        path = store.part_file(plan.results, bundle.experiment, bundle.part(plan.seed))
        facts = {"experiment": bundle.experiment, "seed": plan.seed, "code": ""}
        store.write(path, store.table(EXPERIMENT, computed(bundle)), list(bundle.work), facts)


def units(plan: SweepPlan) -> list[tuple[str, int]]:
    """Return the (cell, replicate) that the jobs of a plan compute."""
    return [
        (work.cell.digest, number)
        for bundle in plan.bundles
        for work in bundle.work
        for number in range(work.first, work.stop)
    ]


def contents(plan: SweepPlan) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (plan.results / "records").rglob("*") if path.is_file()}


def priced(number: int, cost: Cost, replicates: int = 4) -> Priced:
    return Priced(Work(Cell.of("distinct_draws", {"m": number}), 0, replicates), cost, ())


def test_jobs_are_as_few_as_can_be_and_even() -> None:
    bundles = pack([priced(number, Cost(1, 1, 10)) for number in range(12)], seconds=BASE_SECONDS + 25)
    assert [len(bundle.work) for bundle in bundles] == [4, 4, 4]
    assert [bundle.seconds for bundle in bundles] == [BASE_SECONDS + 20] * 3


def test_a_long_cell_is_cut_between_its_replicates_and_pays_its_setup_in_each_job() -> None:
    bundles = pack([priced(0, Cost(5, 2, 10), replicates=20)], seconds=BASE_SECONDS + 25)
    assert [(work.first, work.stop) for bundle in bundles for work in bundle.work] == [(0, 10), (10, 20)]
    assert [bundle.seconds for bundle in bundles] == [BASE_SECONDS + 25] * 2
    (alone,) = pack([priced(0, Cost(5, 1000, 10), replicates=1)], seconds=60)
    assert alone.seconds == BASE_SECONDS + 1005


def test_small_cells_do_not_wait_for_the_memory_of_a_large_one() -> None:
    bundles = pack([priced(number, Cost(1, 1, 5000 * (number % 2))) for number in range(6)], seconds=600)
    assert [bundle.memory for bundle in bundles] == [BASE_MIB, BASE_MIB + 5000]


def test_a_new_sampler_and_new_seeds_leave_only_what_is_new(tmp_path: Path) -> None:
    first = planned(tmp_path)
    finish(first)
    assert planned(tmp_path).bundles == ()
    before = contents(first)
    wider = planned(tmp_path, DRAWS | {"samplers": ["wr", *DRAWS["samplers"]], "seeds": 5}, job_minutes=0.1)
    old, new = set(units(first)), units(wider)
    assert len(new) == len(set(new)) and not old & set(new)
    assert old | set(new) == {(item.cell.digest, number) for item in wider.wanted for number in range(5)}
    finish(wider)
    assert {path: text for path, text in contents(wider).items() if path in before} == before
    assert planned(tmp_path, DRAWS | {"seeds": 3}).bundles == ()


def test_what_was_planned_and_is_not_there_is_planned_again_as_it_was(tmp_path: Path) -> None:
    plan = planned(tmp_path, DRAWS | {"steps": list(range(1, 40))}, job_minutes=0.1)
    grown = DRAWS | {"samplers": ["wr", *DRAWS["samplers"]], "steps": list(range(1, 40))}
    jobs = [bundle.part(1) for bundle in pack_of_three(plan)]
    plan.bundles = pack_of_three(plan)
    finish(plan, most=1)
    again = planned(tmp_path, grown, job_minutes=0.1)
    names = {bundle.part(1) for bundle in again.bundles}
    assert jobs[0] not in names and set(jobs[1:]) <= names
    assert len(units(again)) == len(set(units(again)))
    assert not set(jobs[1:]) & {bundle.part(1) for bundle in planned(tmp_path, grown, job_minutes=1).bundles}


def pack_of_three(plan: SweepPlan) -> tuple[Bundle, ...]:
    """Return the work of a plan in three jobs of other bounds than it would choose."""
    work = [item for bundle in plan.bundles for item in bundle.work]
    thirds = [work[: len(work) // 3], work[len(work) // 3 : len(work) // 2], work[len(work) // 2 :]]
    return tuple(Bundle(tuple(third), (), 5.0, 700.0) for third in thirds)


def test_each_row_has_its_whole_key_and_any_reader_reads_the_folder(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    found = ds.dataset(plan.results / "records", format="parquet", partitioning="hive").to_table().to_pandas()
    assert set(found["experiment"]) == {"distinct_draws"}
    assert len(found) == sum(item.replicates for item in plan.wanted)
    for item in plan.wanted:
        rows = found[found["cell"] == item.cell.digest]
        assert sorted(rows["replicate"]) == list(range(item.replicates))
        for name, value in item.cell.fields.items():
            assert (rows[name].isna() if value is None else rows[name] == value).all()
    (part,) = store.part_files(plan.results)
    assert pq.read_schema(part).field("b").type == "int64"


def test_a_cell_gives_the_same_records_in_any_job(tmp_path: Path) -> None:
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    whole = planned(tmp_path / "whole")
    cut = planned(tmp_path / "cut", DRAWS | {"seeds": 1})
    finish(whole)
    finish(cut)
    rest = planned(tmp_path / "cut")
    finish(rest)
    files = [by_cell.summarise(plan.results, EXPERIMENT) for plan in (whole, rest)]
    assert len(store.part_files(whole.results)) == 1 and len(store.part_files(rest.results)) == 2
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("rows_at_once", [1, 5, 1000])
def test_the_summary_is_that_of_all_rows_at_once(rows_at_once: int, tmp_path: Path) -> None:
    plan = planned(tmp_path, DRAWS | {"seeds": 3})
    finish(plan)
    found = pd.read_parquet(by_cell.summarise(plan.results, EXPERIMENT, rows_at_once=rows_at_once)).set_index("cell")
    rows = pd.read_parquet(plan.results / "records")
    expected = rows.groupby("cell")["distinct_mean"].agg(["mean", "std"])
    assert list(found.index) == sorted(expected.index)
    pd.testing.assert_series_equal(found["distinct_mean_mean"], expected["mean"], check_names=False, rtol=1e-12)
    pd.testing.assert_series_equal(found["distinct_mean_sd"], expected["std"], check_names=False, rtol=1e-9)
    assert (found["replicates"] == 3).all()
    assert not by_cell.is_current(plan.results, "distinct_draws")
    differences.write(plan.results, EXPERIMENT)
    assert by_cell.is_current(plan.results, "distinct_draws")
    assert not list(plan.results.glob(".by_cell*"))


def test_a_replicate_in_two_files_counts_once_and_must_agree(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    (bundle,) = plan.bundles
    before = by_cell.summarise(plan.results, EXPERIMENT).read_bytes()
    again = Bundle(bundle.work[:2], (), 1.0, 1.0)
    path = store.part_file(plan.results, "distinct_draws", "f" * 32)
    facts = {"experiment": "distinct_draws", "seed": 1, "code": ""}
    store.write(path, store.table(EXPERIMENT, computed(again)), list(again.work), facts)
    assert not by_cell.is_current(plan.results, "distinct_draws")
    assert by_cell.summarise(plan.results, EXPERIMENT).read_bytes() == before
    store.write(path, store.table(EXPERIMENT, computed(again, seed=2)), list(again.work), facts)
    with pytest.raises(DataError, match="a replicate must have one result, got two that differ of cell"):
        by_cell.summarise(plan.results, EXPERIMENT)


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    (path,) = store.part_files(plan.results)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="must be complete and as it was written, got other bytes; delete it and run"):
        planned(tmp_path)
    with pytest.raises(DataError, match="must be complete and as it was written"):
        by_cell.summarise(plan.results, EXPERIMENT)
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    with pytest.raises(DataError, match="must be complete and as it was written"):
        by_cell.summarise(plan.results, EXPERIMENT)
    path.write_bytes(whole.replace(store.SCHEMA.encode(), b"dpsub-sweep-0"))
    with pytest.raises(DataError, match="must have the schema dpsub-sweep-2, got dpsub-sweep-0"):
        planned(tmp_path)
    path.unlink()
    assert sorted(units(planned(tmp_path))) == sorted(units(plan))


def test_a_results_folder_has_one_seed(tmp_path: Path) -> None:
    finish(planned(tmp_path))
    with pytest.raises(
        PlanError, match=r"must be of one seed, got seed = 2 and .* made with 1; name another results_dir"
    ):
        planned(tmp_path, seed=2)


def test_finished_cells_of_other_code_are_kept_and_counted(tmp_path: Path) -> None:
    finish(planned(tmp_path))
    assert planned(tmp_path).totals(1)["files_by_other_code"] == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"replicate": [1, 2]}, "must hold the replicates 0 to 1, got others"),
        ({"gradients": [1.5, 2.0]}, "must be of the declared types, got others"),
        ({"more": [1, 2]}, "must have the declared columns, got a difference in more"),
    ],
)
def test_a_faulty_experiment_is_found(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    (bundle,) = planned(tmp_path).bundles
    work, frame = computed(bundle)[0]
    with pytest.raises(PlanError, match=sentence):
        store.table(EXPERIMENT, [(work, frame.assign(**change))])


def test_draws_agree_with_the_law() -> None:
    fields = {"sampler": "must_ww", "n": 50, "m": 20, "b": 30, "steps": 4000}
    EXPERIMENT.check(fields)
    (row,) = EXPERIMENT.run(fields, range(1), root=7, data={}).to_dict("records")
    sampler = sampling.of_sizes("must_ww", n=50, m=20, b=30)
    expected = sampler.expected_distinct(50)
    assert abs(row["distinct_mean"] - expected) < 6 * row["distinct_sd"] / 4000**0.5
    assert row["gradients"] == pytest.approx(4000 * row["distinct_mean"])


def test_the_manifest_lists_the_jobs_that_are_left_and_no_others(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    finish(plan)
    planned(tmp_path, DRAWS | {"seeds": 3}).write()
    manifest = json.loads(plan.manifest_file.read_text(encoding="utf-8"))
    assert {path.stem for path in plan.jobs_folder.glob("*")} == set(manifest["jobs"])
    assert not set(manifest["jobs"]) & {bundle.part(1) for bundle in plan.bundles}

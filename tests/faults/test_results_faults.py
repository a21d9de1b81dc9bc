"""Damaged records and unusable results folders: one sentence each, and nothing half-written stays
behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from dpsub.errors import DataError, PlanError
from dpsub.reproduce import records
from tests.few import few
from tests.workflow import runs

COLUMNS = {"replicate": "int64", "sampler": "str", "mean": "float64"}


def origin(first: int = 0, stop: int = 2, part: str = "1-of-1", **fields: str) -> records.RunOrigin:
    facts = {"experiment": "trial", "config_digest": "c" * 64, "code_digest": "d" * 64} | fields
    return records.RunOrigin(part=part, first=first, stop=stop, seed=1, settings={"m": 1}, **facts)  # type: ignore[arg-type]


def rows(first: int = 0, stop: int = 2) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"variant": "stated", "replicate": r, "sampler": s, "mean": r + 0.5}
            for s in ("wr", "wor")
            for r in range(first, stop)
        ]
    )


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "1-of-1.parquet"
    records.write(path, rows(), columns=COLUMNS, origin=origin())
    return path


DAMAGED = "must be complete and as it was written, got other bytes; delete it and run again$"


def test_a_record_cut_short_or_lengthened_is_refused(record: Path) -> None:
    whole = record.read_bytes()
    for other in (
        b"",
        whole[:10],
        whole[:-1],
        whole[: len(whole) // 2],
        whole[1:],
        whole + b"PAR1",
        b"PAR1" + whole,
    ):
        record.write_bytes(other)
        with pytest.raises(DataError, match=DAMAGED):
            records.read(record)


def test_a_flipped_bit_anywhere_is_refused(record: Path) -> None:
    whole = record.read_bytes()
    for place in range(len(whole)):
        record.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        with pytest.raises(DataError, match=DAMAGED):
            records.read(record)


def test_what_made_a_record_cannot_be_changed_afterwards(record: Path) -> None:
    whole = record.read_bytes()
    for old, new in ((b'"seed": 1', b'"seed": 2'), (b'"m": 1', b'"m": 2'), (b"c" * 64, b"e" * 64)):
        assert whole.count(old) == 1
        record.write_bytes(whole.replace(old, new))
        with pytest.raises(DataError, match=DAMAGED):
            records.read(record)


class OldOrigin(records.Origin):
    schema = "dpsub-record-0"


def test_other_parquet_files_and_other_schemas_are_no_records(record: Path) -> None:
    rows().to_parquet(record)
    with pytest.raises(DataError, match=DAMAGED):
        records.read(record)
    with pytest.raises(DataError, match=DAMAGED):
        records.read_origin(record, records.RunOrigin)
    records.write_table(record, pa.table({"replicate": [1]}), OldOrigin())
    with pytest.raises(
        DataError,
        match="must have the schema dpsub-record-3, got dpsub-record-0; delete it and run",
    ):
        records.read(record)
    record.unlink()
    with pytest.raises(DataError, match=r"1-of-1\.parquet is missing; run its experiment$"):
        records.read(record)


def test_a_record_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "1-of-2.parquet", tmp_path / "2-of-2.parquet"]
    records.write(paths[0], rows(), columns=COLUMNS, origin=origin(part="1-of-2"))
    records.write(paths[1], rows(2, 4), columns=COLUMNS, origin=origin(2, 4, part="2-of-2"))
    assert len(records.gather(paths)["trial"]) == 8
    paths[0].write_bytes(paths[1].read_bytes())
    with pytest.raises(DataError, match=r"all parts of trial are needed once, got 2-of-2, 2-of-2"):
        records.gather(paths)


def test_a_record_of_another_configuration_is_refused(record: Path) -> None:
    assert len(records.gather([record], config_digests={"trial": "c" * 64})["trial"]) == 4
    with pytest.raises(
        DataError,
        match="must be made from the present configuration of trial, got one from another",
    ):
        records.gather([record], config_digests={"trial": "e" * 64})


def test_parts_must_be_complete_and_continue_each_other(tmp_path: Path) -> None:
    first, second, gap, other = (
        tmp_path / f"{name}.parquet" for name in ("first", "second", "gap", "other")
    )
    records.write(first, rows(), columns=COLUMNS, origin=origin(part="1-of-2"))
    records.write(second, rows(2, 4), columns=COLUMNS, origin=origin(2, 4, "2-of-2"))
    records.write(gap, rows(3, 5), columns=COLUMNS, origin=origin(3, 5, "2-of-2"))
    records.write(
        other, rows(2, 4), columns=COLUMNS, origin=origin(2, 4, "2-of-2", data="synthetic")
    )
    assert len(records.gather([second, first])["trial"]) == 8
    for paths in ([first], [second], [first, second, second]):
        with pytest.raises(
            DataError,
            match=r"all parts of trial are needed once, got .*; run the "
            r"others$",
        ):
            records.gather(paths)
    for odd in (gap, other):
        with pytest.raises(
            DataError, match="must continue each other on the same data, got a break between"
        ):
            records.gather([first, odd])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"median": 1.0}, "must have the declared columns, got a difference in median"),
        ({"replicate": 7}, "must hold the replicates 0 to 1, got others"),
        ({"replicate": 0.5}, "column replicate of trial must hold whole numbers"),
        ({"replicate": None}, "column replicate of trial must have no missing value, got 4"),
        ({"sampler": None}, "column sampler of trial must have no missing value, got 4"),
        ({"sampler": 3}, "column sampler of trial must be of type str, got other values"),
        ({"mean": "high"}, "column mean of trial must be of type float64, got other values"),
    ],
)
def test_undeclared_records_are_not_written(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match=message):
        records.write(
            tmp_path / "x.parquet", rows().assign(**change), columns=COLUMNS, origin=origin()
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_damaged_record_stops_a_run_in_a_sentence(tmp_path: Path) -> None:
    only = runs.config(tmp_path / "only.yaml", artefacts=["means"])
    status, output = runs.run(tmp_path / "run", "means", configs=(runs.TINY, only))
    assert status == 0, output
    path = tmp_path / "run" / runs.RESULTS / "records/example_means/1-of-1.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    status, output = runs.run(tmp_path / "run", "means", configs=(runs.TINY, only))
    assert status == 1
    assert f"error: the record file {path.relative_to(tmp_path / 'run')} must be complete" in output
    assert "delete it and run again" in output and "Traceback" not in output
    path.unlink()
    status, output = runs.run(tmp_path / "run", "means", configs=(runs.TINY, only))
    assert status == 0, output


@pytest.mark.parametrize(
    ("place", "said"),
    few([("file/results", "Not a directory"), ("disk", "Read-only file system")], most=0),
)
def test_a_results_folder_that_cannot_be_written_is_named(
    place: str, said: str, small_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, timeout=30)
    where = runs.config(
        tmp_path / "where.yaml", results_dir=str(tmp_path / place), artefacts=["means"]
    )
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, where))
    assert status == 1
    assert said in output and str(tmp_path / place) in output

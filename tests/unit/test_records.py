"""Records: the same rows back, whatever the split into parts; the same bytes whenever they are
written."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsub import files
from dpsub.errors import DataError
from dpsub.reproduce import records

COLUMNS = {"replicate": "int64", "sampler": "str", "step": "int64", "mean": "float64"}


def origin(part: str, first: int, stop: int) -> records.RunOrigin:
    return records.RunOrigin(
        experiment="trial",
        part=part,
        first=first,
        stop=stop,
        seed=1,
        settings={},
        config_digest="c",
        code_digest="d",
    )


def rows(first: int, stop: int) -> pd.DataFrame:
    """Return two variants of two cells: one has two steps a replicate, the other a single row in
    replicate 0."""
    found = []
    for variant in ("stated", "as_done"):
        found += [
            (variant, r, "wr", step, np.sqrt(r + step))
            for r in range(first, stop)
            for step in (1, 2)
        ]
        found += [(variant, r, "none", 0, np.nan) for r in range(first, stop) if r == 0]
    return pd.DataFrame(found, columns=["variant", *COLUMNS])


def write(folder: Path, *cuts: int) -> list[Path]:
    paths = []
    for number, (first, stop) in enumerate(itertools.pairwise(cuts), start=1):
        part = f"{number}-of-{len(cuts) - 1}"
        paths.append(folder / f"{part}.parquet")
        records.write(
            paths[-1], rows(first, stop), columns=COLUMNS, origin=origin(part, first, stop)
        )
    return paths


def test_rows_come_back_with_their_types(tmp_path: Path) -> None:
    [path] = write(tmp_path, 0, 3)
    frame, found = records.read(path)
    pd.testing.assert_frame_equal(frame, rows(0, 3).astype({"variant": "str", **COLUMNS}))
    assert found == origin("1-of-1", 0, 3)


def test_rows_do_not_depend_on_the_split(tmp_path: Path) -> None:
    whole = records.gather(write(tmp_path / "a", 0, 11))["trial"]
    for name, cuts in {"b": (0, 5, 11), "c": tuple(range(12)), "d": (0, 1, 11)}.items():
        paths = write(tmp_path / name, *cuts)
        pd.testing.assert_frame_equal(records.gather(reversed(paths))["trial"], whole)
    for _, one in whole.groupby("variant"):
        assert list(one["replicate"]) == sorted(one["replicate"])
    assert list(whole.columns) == ["variant", "data", *COLUMNS]


def test_variants_follow_each_other(tmp_path: Path) -> None:
    frame = records.gather(write(tmp_path, 0, 2, 4))["trial"]
    assert list(frame["variant"]) == ["stated"] * 9 + ["as_done"] * 9
    assert set(frame["data"]) == {""}


def test_the_same_records_give_the_same_bytes_and_say_what_made_them(tmp_path: Path) -> None:
    [first], [second] = write(tmp_path / "a", 0, 2), write(tmp_path / "b", 0, 2)
    assert first.read_bytes() == second.read_bytes()
    assert list(first.parent.iterdir()) == [first]
    facts = json.loads(pq.read_metadata(first).metadata[b"dpsub"])
    assert facts["rows"] == 10 and len(facts["sha256"]) == 64
    assert {
        "schema",
        "experiment",
        "seed",
        "code_digest",
        "config_digest",
        "inputs",
        "versions",
    } <= set(facts)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.txt"
    files.replace_file(path, b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        files.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("part", ["", "0-of-1", "2-of-1", "1", "../1-of-1", "1-of-01"])
def test_odd_names_of_parts_are_refused(part: str) -> None:
    with pytest.raises(DataError, match="a part must be named like 1-of-2"):
        _ = origin(part, 0, 1).position

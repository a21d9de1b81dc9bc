"""Damaged, missing and misplaced data files: each is refused in a sentence that says what is
wrong."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsub.data
from dpsub.data import adult, dataset, fetch, individuals
from dpsub.data.dataset import Obtained
from dpsub.errors import ArgumentError, DataError
from dpsub.files import checksum
from dpsub.registry import Registry
from tests.workflow import runs

ROOT = Path(__file__).parents[2]
BODY, OTHER = b"1, 2, 3\n4, 5, 6\n", b"1, 2, 3\n4, 5, 7\n"  # one bit of the last digit
FILES = {"real": ("a.csv", "b.csv"), "subset": ("c.csv",)}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return a table of sources without addresses, and functions that put files into a folder and
    look for them."""
    monkeypatch.delenv("DPSUB_DATA", raising=False)
    table = tmp_path / "SOURCES.csv"
    (tmp_path / "body").write_bytes(BODY)
    rows = [
        ["toy", f"{n}.csv", "", "none", checksum(tmp_path / "body"), len(BODY), "with, comma"]
        for n in "abc"
    ]
    with table.open("w", newline="") as out:
        csv.writer(out).writerows([fetch.COLUMNS, *rows])

    def put(folder: str, *names: str, content: bytes = BODY) -> Path:
        (tmp_path / folder / "toy").mkdir(parents=True, exist_ok=True)
        for name in names:
            (tmp_path / folder / "toy" / f"{name}.csv").write_bytes(content)
        return tmp_path / folder

    def obtain(dataset: str = "toy", files=FILES, **options) -> Obtained:
        return fetch.obtain(
            dataset,
            files,
            **{"sources": table, "raw": tmp_path / "raw", "fallback": "error", **options},
        )

    return put, obtain, monkeypatch, table


def test_the_environment_goes_before_the_folder_and_the_folder_before_raw(places):
    put, obtain, monkeypatch, _ = places
    environment, folder, raw = (put(name, "a", "b") for name in ("environment", "folder", "raw"))
    (raw.parent / "others" / "another").mkdir(parents=True)
    monkeypatch.setenv("DPSUB_DATA", str(environment))
    found = [obtain(folder=folder)]
    monkeypatch.delenv("DPSUB_DATA")
    found += [obtain(folder=folder), obtain(), obtain(folder=raw.parent / "others")]
    assert [one.paths["a.csv"].parts[-3] for one in found] == [
        "environment",
        "folder",
        "raw",
        "raw",
    ]
    assert {one.label for one in found} == {"real"}


def test_original_files_go_before_a_part_of_them_which_is_labelled(places):
    put, obtain, *_ = places
    assert (obtain(folder=put("mine", "c")).label, obtain(folder=put("mine", "a")).label) == (
        "subset",
        "subset",
    )
    assert obtain(folder=put("mine", "b")).label == "real"


def test_a_folder_that_does_not_exist_or_lacks_a_file_stops(places):
    put, obtain, monkeypatch, _ = places
    with pytest.raises(
        DataError,
        match=r"the data folder must be an existing folder, got "
        r".*nowhere",
    ):
        obtain(folder=put("raw").parent / "nowhere")
    monkeypatch.setenv("DPSUB_DATA", str(put("half", "a")))
    with pytest.raises(DataError, match=r"DPSUB_DATA must hold all files of toy, got no .*b\.csv"):
        obtain()


@pytest.mark.parametrize("place", ["folder", "raw"])
@pytest.mark.parametrize("fallback", fetch.FALLBACKS)
@pytest.mark.parametrize(
    "content",
    [OTHER, b"4, 5, 6\n1, 2, 3\n", b"3, 2, 1\n6, 5, 4\n", BODY[:-3]],
    ids=["bit", "rows", "columns", "cut"],
)
def test_a_wrong_checksum_stops_whatever_the_fallback(places, place, fallback, content):
    put, obtain, *_ = places
    put(place, "a", "b")
    bad = put(place, "a", content=content) / "toy" / "a.csv"
    rule = (
        rf"a\.csv must have the SHA-256 sum [0-9a-f]{{64}} \(16 bytes\), got {checksum(bad)} "
        rf"\({len(content)} bytes\)"
    )
    options = {"folder": put("folder")} if place == "folder" else {}
    with pytest.raises(DataError, match=rule):
        obtain(fallback=fallback, **options)
    if place == "raw":  # also when the others have to be downloaded
        (put(place) / "toy" / "b.csv").unlink()
        with pytest.raises(DataError, match=rule):
            obtain(fallback=fallback)


def test_unknown_data_sets_and_files_are_named(places):
    _, obtain, *_ = places
    for options, message in (
        ({"dataset": "toyy"}, "unknown data set 'toyy'; did you mean 'toy'"),
        ({"files": {"real": ("d.csv",)}}, r"unknown file of toy 'd\.csv'; did you mean"),
        ({"fallback": "synthetik"}, "unknown fallback 'synthetik'; did you mean 'synthetic'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            obtain(**options)
    with pytest.raises(ArgumentError, match="unknown data set 'adullt'; did you mean 'adult'"):
        dataset.REGISTRY.get("adullt")


def test_each_data_set_that_is_known_stands_in_the_table_of_sources():
    known = {
        (source.dataset, source.file) for source in fetch.read_sources(ROOT / "data/SOURCES.csv")
    }
    assert {"adult", "gowalla", "pose"} < set(dataset.REGISTRY.names())
    for name, kind in dataset.REGISTRY.members().items():
        assert {
            (kind.source or name, file) for files in kind.files.values() for file in files
        } <= known
        assert set(kind.files) <= set(dataset.LABELS)


def test_the_data_set_of_the_manual_is_known_by_its_file_alone(tmp_path, monkeypatch):
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# src/dpsub/data/salaries\.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "salaries.py").write_text(code)
    monkeypatch.setattr(dpsub.data, "__path__", [*dpsub.data.__path__, str(tmp_path)])
    kind = Registry("dpsub.data", dataset.DataSet, "data set").get("salaries")
    (line,) = re.findall(r"```text\n# data/SOURCES\.csv\n(.*\n)```", page)
    (tmp_path / "SOURCES.csv").write_text(
        (ROOT / "data/SOURCES.csv").read_text(encoding="utf-8") + line
    )
    last = fetch.read_sources(tmp_path / "SOURCES.csv")[-1]
    assert {"real": (last.file,)} == kind.files and last.dataset == "salaries"
    (tmp_path / "salaries.csv").write_text("40.5\n61\n")
    for obtained, rows in (
        (Obtained({}, "synthetic", reason="no file"), 500),
        (Obtained({"salaries.csv": tmp_path / "salaries.csv"}, "real"), 2),
    ):
        assert kind().make(obtained, tmp_path / "salaries.parquet") == rows
        assert individuals.load(tmp_path / "salaries.parquet").label == obtained.label


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dataset,", "data set,", "must have the columns dataset,file,urls"),
        (",16,", ",sixteen,", "bytes in line 2 of .* must be a whole number, got 'sixteen'"),
        (",16,", ",0,", "bytes of a.csv must be positive"),
        ("b.csv", "a.csv", "must name every file once, got toy/a.csv twice"),
        ("a.csv", "../a.csv", "file must be a plain file name, got '../a.csv'"),
        (",none,", ",none,0", "sha256 of a.csv must be 64 lower-case hexadecimal digits"),
        ("a.csv,", "a.csv,ftp://x/a", "must start with http:// or https://, got 'ftp://x/a'"),
        (",16,", ",,", "bytes in line 2 of .* must be a whole number, got ''"),
        (',"with, comma"', ",with, comma", "line 2 of .* must have 7 fields; quote"),
    ],
)
def test_a_wrong_table_of_sources_is_refused(places, old, new, message):
    _, obtain, _, table = places
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(DataError, match=message):
        obtain()


def test_a_missing_table_of_sources_is_named(tmp_path):
    with pytest.raises(
        DataError,
        match=r"the table of sources .* must be readable, got: No such "
        r"file",
    ):
        fetch.read_sources(tmp_path / "none.csv")


# -- the prepared table ----------------------------------------------------------------------------


TABLE = pd.DataFrame({"x": np.arange(9.0), "y": 1})


@pytest.fixture
def prepared(tmp_path):
    dataset.write_table(TABLE, tmp_path / "toy.parquet", {"label": "real"})
    return tmp_path / "toy.parquet"


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes()[:-20]),
            "must have the SHA-256 sum .* prepare the data again",
        ),
        (lambda path: TABLE.iloc[::-1].to_parquet(path, index=False), "must have the SHA-256 sum"),
        (
            lambda path: TABLE.iloc[:, ::-1].to_parquet(path, index=False),
            "must have the SHA-256 sum",
        ),
        (lambda path: path.unlink(), "and its description must be readable, got: No such file"),
        (
            lambda path: path.with_suffix(".json").unlink(),
            "and its description must be readable, got: No such file",
        ),
        (
            lambda path: path.with_suffix(".json").write_text("{"),
            "toy.json must describe toy.parquet, got",
        ),
        (
            lambda path: path.with_suffix(".json").write_text("{}"),
            "toy.json must describe toy.parquet, got",
        ),
    ],
)
def test_a_damaged_prepared_table_is_refused(prepared, harm, message):
    pd.testing.assert_frame_equal(dataset.read_table(prepared, label=str)[0], TABLE)
    harm(prepared)
    with pytest.raises(DataError, match=message):
        dataset.read_table(prepared, label=str)


def test_an_unknown_label_is_not_written(tmp_path):
    with pytest.raises(ArgumentError, match="unknown label 'reel'; did you mean 'real'"):
        dataset.write_table(TABLE, tmp_path / "toy.parquet", {"label": "reel"})
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_nothing_that_loads(prepared, monkeypatch):
    moved = []

    def interrupted(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(target)
        Path(source).rename(target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dataset.write_table(TABLE.iloc[::-1], prepared, {"label": "real"})
    with pytest.raises(DataError, match="must have the SHA-256 sum"):
        dataset.read_table(prepared)


# -- the job ---------------------------------------------------------------------------------------


def run_of(place: Path, **data: object) -> tuple[int, str, Path]:
    """Return the exit status and the output of a run that prepares the data alone, and its
    folder."""
    where = runs.config(
        place / "data.yaml", artefacts=["example/ages"], data={"download": False, **data}
    )
    status, output = runs.run(place, "prepare_adult", configs=(where,))
    return status, output, place / "data/interim/results"


@pytest.mark.thorough
def test_the_job_announces_the_stand_in_and_writes_it(tmp_path):
    status, output, folder = run_of(tmp_path)
    assert status == 0, output
    said = (tmp_path / "results/logs/prepare_data/adult.log").read_text(encoding="utf-8")
    assert "working with a synthetic stand-in (no adult.data: downloads are switched off)" in said
    assert json.loads((folder / "adult.json").read_text(encoding="utf-8"))["label"] == "synthetic"
    assert adult.load(folder / "adult.parquet").label == "synthetic"
    status, output, _ = run_of(tmp_path)
    assert status == 0 and "Nothing to be done" in output, output


@pytest.mark.thorough
def test_the_job_stops_in_one_sentence(tmp_path):
    (tmp_path / "mine" / "adult").mkdir(parents=True)
    for name in adult.FILES:
        (tmp_path / "mine" / "adult" / name).write_text("39, State-gov\n")
    status, output, folder = run_of(tmp_path, folder=str(tmp_path / "mine"))
    assert status == 1 and "Traceback" not in output
    assert re.search(
        r"^error: .*adult\.data must have the SHA-256 "
        r"sum 5b00264637",
        output,
        flags=re.MULTILINE,
    )
    assert not (folder / "adult.parquet").exists()

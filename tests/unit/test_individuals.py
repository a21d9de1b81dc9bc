"""The data of the queries: original files, stand-ins, damage, and disjoint subsets."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsub.data import adult, adult_gains, gowalla, individuals
from dpsub.errors import DataError

SOURCES = Path(__file__).parents[2] / "data" / "SOURCES.csv"
FACTS = {"events": 3, "attributes": 5}
FOLDERS = [Path(os.environ.get("DPSUB_DATA") or "no folder"), SOURCES.parent / "raw"]


def originals(dataset: str, files: tuple[str, ...]) -> list[Path]:
    for folder in FOLDERS:
        paths = [folder / dataset / name for name in files]
        if all(path.is_file() for path in paths):
            return paths
    pytest.skip(f"the files of {dataset} are in none of the folders of data")


def test_adult_as_published() -> None:
    table = adult_gains.prepare(*originals("adult", adult.FILES))
    values = table["value"].to_numpy()
    assert len(values) == 45222 and values.sum() == pytest.approx(49808.883)
    assert (values > 0).mean() == pytest.approx(0.0838, abs=5e-5) and values.max() == pytest.approx(
        99.999
    )


def test_gowalla_of_new_york_city() -> None:
    table = gowalla.prepare(*originals("gowalla_nyc", (gowalla.FILE,)))
    days = table["value"].to_numpy()
    assert len(days) == 7115 and days.max() < 520  # February 2009 to October 2010
    # the quantiles from which the stand-in is drawn
    np.testing.assert_allclose(np.quantile(days, gowalla.LEVELS), gowalla.DAYS, atol=0.01)


def test_stand_ins_resemble_the_originals_and_are_always_the_same() -> None:
    gains, again = adult_gains.stand_in(), adult_gains.stand_in()
    pd.testing.assert_frame_equal(gains, again, check_exact=True)
    assert len(gains) == adult_gains.N_RECORDS
    assert (gains["value"] > 0).mean() == pytest.approx(0.084, abs=0.01)
    days = gowalla.stand_in()["value"]
    assert len(days) == 10_000
    np.testing.assert_allclose(days.quantile([0.5, 0.9]), [3.6, 150.72], rtol=0.1)
    pd.testing.assert_frame_equal(gowalla.stand_in(), gowalla.stand_in(), check_exact=True)


def test_written_tables_come_back_with_their_label(tmp_path: Path) -> None:
    path = tmp_path / "gowalla.parquet"
    individuals.write(
        gowalla.stand_in(), path, dataset="gowalla", label="subset", sources={"a": "1"}, **FACTS
    )
    found = individuals.load(path)
    assert (found.label, found.events, found.attributes) == ("subset", 3, 5) and len(
        found.values
    ) == 10_000
    for bad in (
        pd.DataFrame({"value": [1.0, np.nan]}),
        pd.DataFrame({"value": [-1.0]}),
        pd.DataFrame({"value": []}),
    ):
        with pytest.raises(DataError, match="finite values of at least 0"):
            individuals.write(bad, path, dataset="gowalla", label="real", sources={}, **FACTS)
    with pytest.raises(DataError, match="must have the column value, got other"):
        individuals.write(
            pd.DataFrame({"other": [1.0]}),
            path,
            dataset="gowalla",
            label="real",
            sources={},
            **FACTS,
        )


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "events.csv.gz"
    broken.write_bytes(b"no archive")
    with pytest.raises(DataError, match="separated by tabs"):
        gowalla.prepare(broken)
    line = "0\t2010-10-12T00:21:28Z\t40.6\t-73.7\t1\n"
    broken.write_bytes(gzip.compress(line.encode()))
    with pytest.raises(DataError, match="got 1 of 1; restore"):
        gowalla.prepare(broken)
    broken.write_bytes(gzip.compress(line.replace("2010-10-12", "some day").encode()))
    with pytest.raises(DataError, match="separated by tabs"):
        gowalla.prepare(broken)
    with pytest.raises(DataError, match="must be readable"):
        adult_gains.prepare(tmp_path / "adult.data", tmp_path / "adult.test")


def test_subsets_are_disjoint_and_as_many_as_there_are_values_for() -> None:
    values = np.arange(75.0)
    parts = individuals.disjoint_subsets(values, 10, 10, np.random.default_rng(1))
    assert parts.shape == (7, 10) and len(np.unique(parts)) == 70
    assert individuals.disjoint_subsets(values, 10, 3, np.random.default_rng(1)).shape == (3, 10)
    with pytest.raises(DataError, match="a subset needs 80 individuals, got 75"):
        individuals.disjoint_subsets(values, 80, 1, np.random.default_rng(1))

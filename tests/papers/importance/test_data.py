"""Data sets to be clustered: readers, removal of outliers, acceptance by Table 1, stand-ins, and
refusals."""

from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpsub.data import dataset, described, fetch, ijcnn1, point_sets
from dpsub.data.dataset import Obtained
from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published

SOURCES = Path(__file__).parents[3] / "data" / "SOURCES.csv"
ROWS = np.random.default_rng(0).standard_normal((40, 3)) * [1, 2, 3] + 5


NAMES = sorted(
    name for name, kind in dataset.REGISTRY.members().items() if issubclass(kind, point_sets.Points)
)


def find(name: str, raw: Path, **changes: object) -> Obtained:
    options = {"download": False, **changes}
    return fetch.obtain(name, dataset.REGISTRY.get(name).files, sources=SOURCES, raw=raw, **options)  # type: ignore[arg-type]


def read(name: str, folder: Path) -> np.ndarray:
    kind = dataset.REGISTRY.get(name)
    return kind().read({file: folder / name / file for file in kind.files["real"]})  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSUB_DATA", raising=False)


def test_the_descriptions_are_the_printed_table() -> None:
    printed = published.load("importance", "table1").set_index(["dataset", "column"])["printed"]
    for one in described.EIGHT.values():
        expected = {
            "n_original": str(one.n_original),
            "n": str(one.n),
            "d": str(one.d),
            "radius": one.printed_radius,
            "mean_square": one.printed_mean_square,
        }
        assert {name: printed[one.title, name] for name in expected} == expected
        assert one.n == int(np.floor(0.975 * one.n_original))


def test_outliers_are_those_at_or_beyond_the_percentile() -> None:
    found = point_sets.centred(ROWS)
    distances = np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=1)
    kept = distances < np.percentile(distances, 97.5)
    expected = ROWS[kept] - ROWS[kept].mean(axis=0)
    assert found.points == pytest.approx(expected, abs=1e-5) and found.points.dtype == np.float32
    assert found.radius == pytest.approx(np.linalg.norm(expected, axis=1).max(), rel=1e-12)
    assert found.mean_square == pytest.approx((expected**2).sum(axis=1).mean(), rel=1e-12)
    assert len(found.points) == 39 and (found.kept == kept).all()


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.empty((0, 3)), "at least a row"),
        (np.empty((3, 0)), "at least a row"),
        (np.array([[1.0, np.nan], [2, 3]]), "finite"),
        (np.array([["a", "b"]]), "numbers"),
        (np.ones((5, 2)), "must differ"),
    ],
)
def test_what_is_no_table_of_points_is_refused(matrix: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        point_sets.centred(matrix)


def test_ties_and_marks_of_unknown_values_are_told() -> None:
    corners = np.repeat([[1.0, 1], [-1, 1], [1, -1], [-1, -1], [0.3, 0], [-0.3, 0]], 20, axis=0)
    with pytest.warns(UserWarning, match="ties"):
        point_sets.centred(corners)
    with pytest.warns(UserWarning, match="-999"):
        point_sets.centred(np.concatenate([ROWS * 1000, np.full((2, 3), -999.0)]))


@pytest.mark.parametrize("name", ["rna", "miniboone"])
def test_a_twin_has_the_radius_and_mean_square_of_table_1(name: str) -> None:
    paper = described.of(name)
    points, large = point_sets.twin(paper, 1000)
    squares = point_sets.squared_norms(points)
    assert points.shape == (1000, paper.d) and 0.3 < large.mean() < 0.9
    assert np.sqrt(squares.max()) == pytest.approx(paper.radius, rel=1e-5)
    assert squares.mean() == pytest.approx(paper.mean_square, rel=1e-5)
    assert np.linalg.norm(points.mean(axis=0)) < 1e-6 * paper.radius
    assert (point_sets.twin(paper, 1000)[0] == points).all()


def joined(values: np.ndarray, sign: str, before: str = "", after: str = "") -> str:
    return "\n".join(before + sign.join(map(str, row)) + after for row in values)


def zipped(path: Path, inside: str, text: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(inside, text)


def write_raw(name: str, folder: Path) -> np.ndarray:
    """Write tiny files in the original formats and return the features in them."""
    folder = folder / name
    folder.mkdir(parents=True)
    d = described.of(name).d
    values = np.round(np.random.default_rng(1).standard_normal((6, d)), 3)
    if name == "rna":
        for part, file in zip(np.split(values, 3), point_sets.Rna.files["real"], strict=True):
            lines = [f"-1 {' '.join(f'{i + 1}:{x:g}' for i, x in enumerate(row))}" for row in part]
            (folder / file).write_text("\n".join(lines) + "\n")
    elif name == "pose":
        (folder / "POSE").mkdir()
        for i, row in enumerate(values):
            np.savetxt(
                folder / "POSE" / f"{i}.csv",
                np.vstack([[0, 0, 0], row.reshape(16, 3)]),
                delimiter=",",
            )
    elif name == "fma":
        heads = [
            "feature" + ",a" * d,
            "statistics" + ",b" * d,
            "number" + "".join(f",{i}" for i in range(d)),
            "track_id" + "," * d,
        ]
        body = joined(np.column_stack([np.arange(6), values]), ",")
        zipped(folder / "fma_metadata.zip", "fma_metadata/features.csv", "\n".join([*heads, body]))
    elif name == "song":
        zipped(
            folder / "YearPredictionMSD.txt.zip",
            "YearPredictionMSD.txt",
            joined(values, ",", "1999,"),
        )
    elif name == "covertype":
        (folder / "covtype.data.gz").write_bytes(
            gzip.compress(joined(values, ",", after=",3").encode())
        )
    elif name == "kdd_protein":
        (folder / "bio_train.dat").write_text(joined(values, "\t", "1\t2\t0\t"))
    else:
        (folder / "MiniBooNE_PID.txt").write_text(" 3 3\n" + joined(values, "  "))
    return values


@pytest.mark.parametrize("name", NAMES)
def test_original_formats_are_read(name: str, tmp_path: Path) -> None:
    values = write_raw(name, tmp_path)
    assert read(name, tmp_path) == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "file"),
    [("miniboone", "MiniBooNE_PID.txt"), ("rna", "cod-rna"), ("fma", "fma_metadata.zip")],
)
def test_a_damaged_file_is_named(name: str, file: str, tmp_path: Path) -> None:
    write_raw(name, tmp_path)
    (tmp_path / name / file).write_bytes(b"<html>no data</html>\n1 9:x\n")
    with pytest.raises(DataError, match=f"{file}.*restore"):
        read(name, tmp_path)


def test_files_of_another_table_are_refused(tmp_path: Path) -> None:
    write_raw("miniboone", tmp_path)
    points = find("miniboone", tmp_path)
    assert points.label == "real"
    with pytest.raises(
        DataError, match="Table 1: rows before the removal of outliers must be 130064, got 6"
    ):
        point_sets.MiniBoone().make(points, tmp_path / "miniboone.npy")
    with pytest.raises(DataError, match="columns must be 50, got 3"):
        point_sets.accepted("miniboone", "partial", ROWS)


def test_a_file_with_a_known_checksum_must_have_it(tmp_path: Path) -> None:
    write_raw("covertype", tmp_path)
    with pytest.raises(DataError, match="SHA-256"):
        find("covertype", tmp_path)
    (tmp_path / "song").mkdir()
    (tmp_path / "song" / "song_uniform_subsample.csv.xz").write_bytes(b"x")
    with pytest.raises(DataError, match="SHA-256"):
        find("song", tmp_path)


def test_what_cannot_be_had_is_a_labelled_twin_or_stops(tmp_path: Path) -> None:
    points = find("fma", tmp_path)
    assert not points.paths and "os.unil.cloud.switch.ch" in points.reason
    assert (
        point_sets.Rna().make(find("rna", tmp_path), tmp_path / "rna.npy") == point_sets.TWIN_ROWS
    )
    assert json.loads((tmp_path / "rna.json").read_text())["reason"]
    assert point_sets.load(tmp_path / "rna.npy").label == "synthetic"
    for name in ("rna", "covertype"):
        with pytest.raises(DataError, match="fallback"):
            find(name, tmp_path, fallback="error")


def test_prepared_points_are_read_back_and_guarded(tmp_path: Path) -> None:
    made, path = point_sets.stand_in("rna", 300), tmp_path / "rna.npy"
    point_sets.write(made, path)
    found = point_sets.load(path)
    assert (
        (found.points == made.points).all() and found.label == "synthetic" and found.title == "RNA"
    )
    assert found.bound == pytest.approx(found.radius, rel=1e-6)
    with pytest.raises(ArgumentError, match="label"):
        point_sets.write(replace(made, label="invented"), path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="SHA-256"):
        point_sets.load(path)


def test_a_stand_in_of_ijcnn1_becomes_the_twin_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ijcnn1.parquet"
    ijcnn1.write(ijcnn1.stand_in(), path, label="synthetic", sources={})
    found = point_sets.from_ijcnn1(path, 400)
    assert found.label == "synthetic" and found.radius == pytest.approx(1.51, rel=1e-5)
    ijcnn1.write(ijcnn1.stand_in(), path, label="real", sources={})
    with pytest.raises(DataError, match="Table 1"):
        point_sets.from_ijcnn1(path, 400)

"""Data sets to be clustered: readers, removal of outliers, acceptance by Table 1, stand-ins, and what is refused."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dpsub.data import centred, described, ijcnn1, known, point_sets, point_sources, raw_points, twins
from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published

SOURCES = Path(__file__).parents[2] / "data" / "SOURCES.csv"
ROWS = np.random.default_rng(0).standard_normal((40, 3)) * [1, 2, 3] + 5


def find(name: str, raw: Path, **changes: object) -> point_sources.FoundFile:
    options = {"folder": None, "download": False, "fallback": "synthetic", **changes}
    return point_sources.find(name, sources_table=SOURCES, raw=raw, **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSUB_DATA", raising=False)


def test_the_descriptions_are_the_printed_table() -> None:
    printed = published.load("importance", "table1").set_index(["dataset", "column"])["printed"]
    for one in described.EIGHT.values():
        expected = {"n_original": str(one.n_original), "n": str(one.n), "d": str(one.d),
                    "radius": one.printed_radius, "mean_square": one.printed_mean_square}  # fmt: skip
        assert {name: printed[one.title, name] for name in expected} == expected
        assert one.n == int(np.floor(0.975 * one.n_original))


def test_outliers_are_those_at_or_beyond_the_percentile() -> None:
    found = centred.centred(ROWS)
    distances = np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=1)
    kept = distances < np.percentile(distances, 97.5)
    expected = ROWS[kept] - ROWS[kept].mean(axis=0)
    assert found.points == pytest.approx(expected, abs=1e-5) and found.points.dtype == np.float32
    assert found.radius == pytest.approx(np.linalg.norm(expected, axis=1).max(), rel=1e-12)
    assert found.mean_square == pytest.approx((expected**2).sum(axis=1).mean(), rel=1e-12)
    assert (found.n_original, len(found.points)) == (40, 39) and (found.kept == kept).all()


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
        centred.centred(matrix)


def test_ties_and_marks_of_unknown_values_are_told() -> None:
    corners = np.repeat([[1.0, 1], [-1, 1], [1, -1], [-1, -1], [0.3, 0], [-0.3, 0]], 20, axis=0)
    with pytest.warns(UserWarning, match="ties"):
        centred.centred(corners)
    with pytest.warns(UserWarning, match="-999"):
        centred.centred(np.concatenate([ROWS * 1000, np.full((2, 3), -999.0)]))


@pytest.mark.parametrize("name", ["rna", "miniboone"])
def test_a_twin_has_the_radius_and_mean_square_of_table_1(name: str) -> None:
    paper = described.of(name)
    points, large = twins.twin(paper, 1000)
    squares = centred.squared_norms(points)
    assert points.shape == (1000, paper.d) and 0.3 < large.mean() < 0.9
    assert np.sqrt(squares.max()) == pytest.approx(paper.radius, rel=1e-5)
    assert squares.mean() == pytest.approx(paper.mean_square, rel=1e-5)
    assert np.linalg.norm(points.mean(axis=0)) < 1e-6 * paper.radius
    assert (twins.twin(paper, 1000)[0] == points).all()


def write_raw(name: str, folder: Path) -> np.ndarray:
    """Write tiny files in the original formats and return the features in them."""
    folder = folder / name
    folder.mkdir(parents=True)
    d = described.of(name).d
    values = np.round(np.random.default_rng(1).standard_normal((6, d)), 3)
    if name == "rna":
        for part, file in zip(np.split(values, 3), point_sources.ORIGINS[name].files, strict=True):
            lines = [f"-1 {' '.join(f'{i + 1}:{x:g}' for i, x in enumerate(row))}" for row in part]
            (folder / file).write_text("\n".join(lines) + "\n")
    elif name == "pose":
        (folder / "POSE").mkdir()
        for i, row in enumerate(values):
            np.savetxt(folder / "POSE" / f"{i}.csv", np.vstack([[0, 0, 0], row.reshape(16, 3)]), delimiter=",")
    elif name == "fma":
        heads = ["feature" + ",a" * d, "statistics" + ",b" * d, "number" + "".join(f",{i}" for i in range(d)),
                 "track_id" + "," * d]  # fmt: skip
        body = [",".join([str(i), *map(str, row)]) for i, row in enumerate(values)]
        with zipfile.ZipFile(folder / "fma_metadata.zip", "w") as archive:
            archive.writestr("fma_metadata/features.csv", "\n".join([*heads, *body]))
    elif name == "song":
        text = "\n".join(",".join(["1999", *map(str, row)]) for row in values)
        with zipfile.ZipFile(folder / "YearPredictionMSD.txt.zip", "w") as archive:
            archive.writestr("YearPredictionMSD.txt", text)
    elif name == "covertype":
        text = "\n".join(",".join([*map(str, row), "3"]) for row in values)
        (folder / "covtype.data.gz").write_bytes(gzip.compress(text.encode()))
    elif name == "kdd_protein":
        (folder / "bio_train.dat").write_text("\n".join("\t".join(["1", "2", "0", *map(str, row)]) for row in values))
    else:
        text = "\n".join("  ".join(map(str, row)) for row in values)
        (folder / "MiniBooNE_PID.txt").write_text(" 3 3\n" + text)
    return values


@pytest.mark.parametrize("name", sorted(raw_points.READERS))
def test_original_formats_are_read(name: str, tmp_path: Path) -> None:
    values = write_raw(name, tmp_path)
    paths = {file: tmp_path / name / file for file in point_sources.ORIGINS[name].files}
    assert raw_points.read(name, paths) == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("name", ["miniboone", "rna", "fma"])
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    write_raw(name, tmp_path)
    paths = {file: tmp_path / name / file for file in point_sources.ORIGINS[name].files}
    first = next(iter(paths.values()))
    first.write_bytes(b"<html>no data</html>\n1 9:x\n")
    with pytest.raises(DataError, match=f"{first.name}.*restore"):
        raw_points.read(name, paths)


def test_files_of_another_table_are_refused(tmp_path: Path) -> None:
    write_raw("miniboone", tmp_path)
    found = find("miniboone", tmp_path)
    assert found.label == "real" and not found.sha256
    with pytest.raises(DataError, match="Table 1: rows before the removal of outliers must be 130064, got 6"):
        point_sets.prepare("miniboone", found, twin_rows=200)


def test_a_file_with_a_known_checksum_must_have_it(tmp_path: Path) -> None:
    write_raw("covertype", tmp_path)
    with pytest.raises(DataError, match="SHA-256"):
        find("covertype", tmp_path)
    (tmp_path / "song").mkdir()
    (tmp_path / "song" / "song_uniform_subsample.csv.xz").write_bytes(b"x")
    with pytest.raises(DataError, match="SHA-256"):
        find("song", tmp_path)


def test_original_files_go_before_a_part(tmp_path: Path) -> None:
    write_raw("song", tmp_path)
    (tmp_path / "song" / "song_uniform_subsample.csv.xz").write_bytes(b"x")
    assert find("song", tmp_path).label == "real"


def test_what_cannot_be_had_is_a_labelled_twin_or_stops(tmp_path: Path) -> None:
    found = find("fma", tmp_path)
    assert not found.paths and "os.unil.cloud.switch.ch" in found.reason
    points, facts = point_sets.prepare("rna", find("rna", tmp_path), twin_rows=300)
    assert facts["label"] == "synthetic" and len(points) == 300
    for name in ("rna", "covertype"):
        with pytest.raises(DataError, match="fallback"):
            find(name, tmp_path, fallback="error")
    with pytest.raises(DataError, match="existing folder"):
        find("rna", tmp_path, folder=tmp_path / "none")


def test_prepared_points_are_read_back_and_guarded(tmp_path: Path) -> None:
    points, facts = point_sets.prepare("rna", find("rna", tmp_path), twin_rows=300)
    path = tmp_path / "rna.npy"
    point_sets.write(points, path, facts)
    found = point_sets.load(path)
    assert (found.points == points).all() and found.label == "synthetic" and found.title == "RNA"
    assert found.bound == pytest.approx(found.radius, rel=1e-6)
    with pytest.raises(ArgumentError, match="label"):
        point_sets.write(points, path, {**facts, "label": "invented"})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="SHA-256"):
        point_sets.load(path)
    path.with_suffix(".json").write_text(json.dumps({"label": "real"}))
    with pytest.raises(DataError, match="must describe"):
        point_sets.load(path)
    with pytest.raises(DataError, match="readable"):
        point_sets.load(tmp_path / "none.npy")


def test_a_stand_in_of_ijcnn1_becomes_the_twin_and_another_file_is_refused(tmp_path: Path) -> None:
    table = ijcnn1.stand_in()
    for label in ("synthetic", "real"):
        ijcnn1.write(table, tmp_path / "ijcnn1.parquet", label=label, sources={})
        if label == "synthetic":
            found = point_sets.from_ijcnn1(tmp_path / "ijcnn1.parquet", 400)
            assert found.label == "synthetic" and found.radius == pytest.approx(1.51, rel=1e-5)
        else:
            with pytest.raises(DataError, match="Table 1"):
                point_sets.from_ijcnn1(tmp_path / "ijcnn1.parquet", 400)


def test_each_data_set_has_a_script() -> None:
    scripts = SOURCES.parents[1] / "workflow" / "scripts"
    for name in ("adult", *described.EIGHT):
        assert (scripts / known.script_of(name)).is_file() and known.suffix_of(name) in (".npy", ".parquet")

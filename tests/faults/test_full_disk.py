"""A disk that fills up: one sentence, no file that only looks whole, and the run goes through once
there is room."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsub.data import adult, point_sets
from dpsub.data.dataset import Obtained
from dpsub.reproduce import records
from dpsub.reproduce.job import logged
from tests.workflow import runs


def fill(disk: Path, leave: int = 0) -> Path:
    """Fill a disk but for `leave` bytes, rounded up to whole pages."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as out:
        try:
            while out.write(b"\0" * (1 << 20)) == 1 << 20:
                pass
        except OSError:
            pass
        out.truncate(max(0, out.tell() - leave))
    return ballast


def left_in(disk: Path) -> list[str]:
    return sorted(
        str(path.relative_to(disk))
        for path in disk.rglob("*")
        if path.is_file() and path.name != "ballast"
    )


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True, timeout=30)


def test_prepared_data(small_disk: Path) -> None:
    ballast, output = fill(small_disk, leave=100_000), small_disk / "interim/adult.parquet"
    with pytest.raises(OSError, match="No space left on device"):
        adult.Adult().make(Obtained({}, "synthetic"), output)
    assert left_in(small_disk) == []
    ballast.unlink()
    resize(small_disk, "16m")
    adult.Adult().make(Obtained({}, "synthetic"), output)
    assert adult.load(output).label == "synthetic"


def test_prepared_points(small_disk: Path) -> None:
    ballast, output = fill(small_disk, leave=100_000), small_disk / "song.npy"
    points = point_sets.PointSet("song", "synthetic", np.ones((100_000, 2)), 9, 1.0, 1.0)
    with pytest.raises(OSError, match="No space left on device"):
        point_sets.write(points, output)
    assert left_in(small_disk) == []
    ballast.unlink()
    point_sets.write(replace(points, points=points.points[:1000]), output)
    assert point_sets.load(output).points.shape == (1000, 2)
    np.save(small_disk / "plain.npy", np.ones((1000, 2), dtype=np.float32), allow_pickle=False)
    assert output.read_bytes() == (small_disk / "plain.npy").read_bytes()


def test_a_record(small_disk: Path, tmp_path: Path) -> None:
    """The existing record keeps its content, and a job's log tells the reason in one sentence."""
    path, columns = small_disk / "trial/1-of-1.parquet", {"replicate": "int64", "mean": "float64"}
    origin = records.RunOrigin("trial", "1-of-1", 0, 50_000, 1, {}, "c" * 64, "d" * 64)
    means = np.random.default_rng(1).random(50_000)
    frame = pd.DataFrame({"variant": "stated", "replicate": range(50_000), "mean": means})
    few = replace(origin, stop=1000)
    records.write(path, frame.head(1000), columns=columns, origin=few)
    before, ballast = path.read_bytes(), fill(small_disk, leave=40_000)
    with pytest.raises(SystemExit), logged(str(tmp_path / "log")):
        records.write(path, frame, columns=columns, origin=origin)
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert said.startswith("error: ") and said.count("\n") == 1
    assert "got: No space left on device; free space, or correct permissions or paths" in said
    assert left_in(small_disk) == ["trial/1-of-1.parquet"] and path.read_bytes() == before
    ballast.unlink()
    records.write(path, frame, columns=columns, origin=origin)
    assert len(records.read(path)[0]) == 50_000


@pytest.mark.slow
def test_a_whole_run(small_disk: Path, tmp_path: Path) -> None:
    resize(small_disk, "16m")
    results = small_disk / "results"
    where = runs.config(tmp_path / "where.yaml", results_dir=str(results), artefacts=["means"])
    process = runs.start(tmp_path / "run", configs=(runs.TINY, where))
    for _ in range(runs.PATIENCE * 10):
        if (results / "logs").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    ballast = fill(small_disk)
    status, output = runs.finish(process)
    assert status == 1, output
    assert "No space left on device" in output
    made = {
        name: (small_disk / name).read_bytes()
        for name in left_in(small_disk)
        if name.endswith(".parquet")
    }
    ballast.unlink()
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, where))
    assert status == 0, output
    assert all((small_disk / name).read_bytes() == content for name, content in made.items())
    assert (results / "tables/example/means.csv").stat().st_size

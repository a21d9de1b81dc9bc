"""A disk that fills up: one sentence, no file that only looks whole, and the job goes through once there is room."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpsub.data import adult, point_sets
from dpsub.reproduce import records
from tests.workflow import runs

FULL = "got: No space left on device; free space, or correct permissions or paths\n"
TRACE = '{"n": 100, "b": 20, "m": 10, "iterations": 20, "replicates": 1, "clip": 3, "learning_rate": 0.04, ' \
        '"epsilon_amplified": [0.01, 0.001], "beta": [1, 0.5, 0.2], "initial": [-1, -1, -1], ' \
        '"samplers": ["wor"]}'  # fmt: skip


def script(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(runs.ROOT / f"workflow/scripts/{name}.py"), *map(str, arguments)],
        env=runs.environment(), capture_output=True, text=True, timeout=runs.PATIENCE, check=False,
    )  # fmt: skip


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
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file() and path.name != "ballast")


def refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ") and done.stderr.endswith(FULL), done.stderr
    assert "Traceback" not in done.stderr


def test_prepared_data(small_disk: Path, tmp_path: Path) -> None:
    ballast, output = fill(small_disk, leave=100_000), small_disk / "interim/adult.parquet"
    job = ("--dataset", "adult", "--raw", tmp_path / "raw", "--no-download", "--output", output)
    refused(script("prepare_data", *job))
    assert left_in(small_disk) == []
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True, timeout=30)
    done = script("prepare_data", *job)
    assert done.returncode == 0, done.stderr
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


def test_records_and_figures(small_disk: Path, tmp_path: Path) -> None:
    ballast = fill(small_disk)
    results = small_disk / "results"
    record = results / "records/linear_regression_trace/stated/1-of-1.parquet"
    job = ("--experiment", "linear_regression_trace", "--variant", "stated", "--part", "1-of-1", "--replicates", "0:1",
           "--seed", "1", "--settings", TRACE, "--output", record)  # fmt: skip
    refused(script("run_experiment", *job))
    assert left_in(small_disk) == []
    ballast.unlink()
    assert script("run_experiment", *job).returncode == 0
    assert len(records.read(record)[0])

    figure = ("--artefact", "must/figure6", "--results", results, "--published", runs.ROOT / "src/dpsub/papers",
              "--records", record)  # fmt: skip
    before = left_in(small_disk)
    ballast = fill(small_disk, leave=40_000)
    refused(script("build_artefact", *figure))
    made = {name: (small_disk / name).read_bytes() for name in left_in(small_disk) if name not in before}
    ballast.unlink()
    assert script("build_artefact", *figure).returncode == 0
    assert {f"results/figures/must/figure6.{form}" for form in ("csv", "pdf", "png")} < set(left_in(small_disk))
    assert all((small_disk / name).read_bytes() == content for name, content in made.items())


def test_a_whole_run(small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=104m", str(small_disk)], check=True, timeout=30)
    results = small_disk / "results"
    where = runs.config(tmp_path / "where.yaml", results_dir=str(results), artefacts=["table5"])
    process = runs.start(tmp_path / "run", "table5", configs=(runs.TINY, where))
    for _ in range(runs.PATIENCE * 10):
        if (results / "logs/snakemake.log").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    ballast = fill(small_disk)
    status, output = runs.finish(process)
    assert status == 1, output
    assert "No space left on device" in output and "Traceback" not in output
    assert output.splitlines()[0].startswith("error: ")
    assert not [name for name in left_in(small_disk) if not name.startswith(("results/logs/", "results/.lock"))]
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=204m", str(small_disk)], check=True, timeout=30)
    status, output = runs.run(tmp_path / "run", "table5", configs=(runs.TINY, where))
    assert status == 0, output
    assert (results / "tables/must/table5.csv").stat().st_size

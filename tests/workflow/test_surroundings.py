"""A run in odd surroundings: paths that shells and templates would misread, no home, another locale, a wrong clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow import runs
from tests.workflow.runs import ROOT

HOSTILE = "Prüfung of \"a\" 'name' & $(touch executed) `touch executed` ; \u202eRTL"
RESULTS = "Erg \"ebnis\" 'x' &lt; \\; touch executed #"
PARTS = ("Snakefile", "config.yaml", "data/SOURCES.csv", "docs", "src",
         "workflow")  # fmt: skip
NOWHERE = "/proc/nowhere"
"""A folder that nobody can make."""
ODD = {
    "LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Asia/Kolkata",
    "HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "XDG_CONFIG_HOME": NOWHERE,
}  # fmt: skip
DAY = 86_400 * 10**9


@dataclass(frozen=True)
class Abroad:
    """A copy of the project, and the folder from which it is run."""

    project: Path
    work: Path
    config: Path

    @property
    def results(self) -> Path:
        return self.work / RESULTS

    def run(self, *arguments: str, **surroundings: str) -> tuple[int, str]:
        runner = str(self.project / "workflow/scripts/run.py")
        done = subprocess.run(
            [sys.executable, runner, *arguments, "--cores", "2", "--config", str(runs.TINY), str(self.config)],
            cwd=self.work,
            env=runs.environment() | {"PYTHONPATH": str(self.project / "src")} | surroundings,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=runs.PATIENCE,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode("utf-8")


def project_in(folder: Path) -> Path:
    for name in PARTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def abroad(tmp_path_factory: pytest.TempPathFactory) -> Abroad:
    """A tiny run of a copy of the project, with everything odd at once."""
    top = tmp_path_factory.mktemp("abroad") / HOSTILE
    found = Abroad(project_in(top / "project"), top / "work", top / 'mein "Über".yaml')
    found.work.mkdir()
    runs.config(found.config, results_dir=RESULTS)
    status, output = found.run(**ODD)
    assert status == 0, output
    assert "Traceback" not in output and f"read {RESULTS}/report/index.html" in output
    return found


def recorded(results: Path) -> dict[str, bytes]:
    """Return the record files."""
    return {str(path.relative_to(results)): path.read_bytes() for path in results.glob("records/**/*.parquet")}


def body(results: Path) -> str:
    """Return the report up to what it says of the run."""
    page = (results / "report/index.html").read_text(encoding="utf-8")
    return page[page.index("<main") : page.index("</main>")]


def test_locale_time_zone_home_and_path_change_no_byte(abroad: Abroad, finished: Path) -> None:
    assert runs.compared(abroad.work, RESULTS) == runs.compared(finished)
    assert len(recorded(abroad.results)) == 4 and recorded(abroad.results) == recorded(finished / runs.RESULTS)
    assert body(abroad.results) == body(finished / runs.RESULTS)


def test_nothing_in_a_name_is_executed(abroad: Abroad) -> None:
    assert not list(abroad.work.parent.parent.rglob("executed*"))
    page = (abroad.results / "report/index.html").read_text(encoding="utf-8")
    assert "Erg &#34;ebnis&#34;" in page and "&amp;lt;" in page
    assert "Erg \"ebnis\" 'x' &lt;" not in page


def altered(abroad: Abroad) -> None:
    """Change the code of one experiment, so that it gives other numbers."""
    path = abroad.project / "src/dpsub/papers/must/experiments/utility.py"
    code = path.read_text(encoding="utf-8")
    assert code.count("release(mean, cell.sigma_mean, noise)") == 1
    path.write_text(code.replace("release(mean,", "release(mean + 1,"), encoding="utf-8")


def identity(folder: Path, kept: Path) -> dict[str, int]:
    """Return the inode of every record, table and figure: a file that is written again gets another one.

    Links in the folder `kept` hold the inodes, whose numbers would else go to the next files.
    """
    found = {}
    for part in ("records", "tables", "figures", "comparison"):
        for path in (folder / part).rglob("*"):
            if path.is_file():
                name = str(path.relative_to(folder))
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(path, kept / name)
                found[name] = path.stat().st_ino
    return found


def test_a_clock_that_was_set_back_loses_and_keeps_nothing_wrongly(abroad: Abroad, tmp_path: Path) -> None:
    for path in abroad.results.rglob("*"):
        if path.is_file():  # as if made a day from now, in the same order
            stamp = path.stat().st_mtime_ns + DAY
            os.utime(path, ns=(stamp, stamp))
    before, table = identity(abroad.results, tmp_path / "before"), abroad.results / "tables/must/table5.csv"
    printed = table.read_bytes()
    altered(abroad)
    record = "records/subset_statistics/stated/1-of-1.parquet"
    status, output = abroad.run(f"{RESULTS}/{record}")  # as if stopped after it
    assert status == 0, output
    after = identity(abroad.results, tmp_path / "after")
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {record}
    assert max(path.stat().st_mtime for path in abroad.results.rglob("*")) <= time.time()
    status, output = abroad.run("table5")
    assert status == 0, output
    changed = {name for name, inode in identity(abroad.results, tmp_path / "last").items() if after[name] != inode}
    assert changed == {*(f"tables/must/table5.{form}" for form in ("csv", "md", "tex")), "comparison/must/table5.csv"}
    assert table.read_bytes() != printed


def test_a_project_in_a_folder_with_a_sign_of_patterns_is_refused(tmp_path: Path) -> None:
    moved = shutil.copytree(ROOT / "workflow", tmp_path / "x{y}" / "workflow")
    done = subprocess.run(
        [sys.executable, str(moved / "scripts/run.py")],
        cwd=tmp_path, env=runs.environment() | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        timeout=runs.PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: the project must lie in a folder without {{ in its path, got {moved.parent}; move it\n"
    )

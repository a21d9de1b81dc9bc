"""A run in odd surroundings: paths that shells and templates would misread, no home, another
locale, a wrong clock."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow import runs

HOSTILE = "Prüfung of \"a\" 'name' & $(touch executed) `touch executed` ; \u202eRTL"
RESULTS = "Erg \"ebnis\" 'x' &lt; \\; touch executed #"
ODD = {
    "LC_ALL": "tr_TR.UTF-8",
    "LANG": "de_DE",
    "PYTHONUTF8": "1",
    "TZ": "Asia/Kolkata",
    "HOME": "/proc/nowhere",
}


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
        _, *rest = runs.command(
            *arguments, configs=(runs.TINY, self.config), snakefile=self.project / "Snakefile"
        )
        # the interpreter lies there, too, as that of `make`
        command = [str(self.project / ".venv/bin/python"), *rest]
        ours = {"PYTHONPATH": str(self.project / "src"), "XDG_CACHE_HOME": str(self.work / "cache")}
        done = subprocess.run(
            command,
            cwd=self.work,
            env=runs.environment() | ours | surroundings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=runs.PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout.decode("utf-8")


def project_in(folder: Path) -> Path:
    runs.project_in(folder)
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def abroad(tmp_path_factory: pytest.TempPathFactory) -> Abroad:
    """Start a tiny run of a copy of the project, with everything odd at once."""
    top = tmp_path_factory.mktemp("abroad") / HOSTILE
    found = Abroad(project_in(top / "project"), top / "work", top / 'mein "Über".yaml')
    found.work.mkdir()
    runs.config(found.config, results_dir=RESULTS)
    status, output = found.run(**ODD)
    assert status == 0, output
    assert "Traceback" not in output and f"read {RESULTS}/report/index.html" in output
    return found


def body(results: Path) -> str:
    """Return the report up to its part about the run."""
    page = (results / "report/index.html").read_text(encoding="utf-8")
    content = page[page.index("<main") : page.index("</main>")]
    # A copy of the project has no commit to cite, and no date of one.
    return re.sub(r"commit (unknown|[0-9a-f]{40})(, [0-9-]{10})?|  year = .*\n", "", content)


@pytest.mark.slow
def test_locale_time_zone_home_and_path_change_no_byte(abroad: Abroad, finished: Path) -> None:
    assert runs.compared(abroad.work, RESULTS) == runs.compared(finished)
    ours, theirs = runs.recorded(abroad.work, RESULTS), runs.recorded(finished)
    assert len(ours) == 4 and {name: found for name, (_, found) in ours.items()} == {
        name: found for name, (_, found) in theirs.items()
    }
    assert body(abroad.results) == body(finished / runs.RESULTS)


@pytest.mark.thorough
def test_nothing_in_a_name_is_executed(abroad: Abroad) -> None:
    assert not list(abroad.work.parent.parent.rglob("executed*"))
    page = (abroad.results / "report/index.html").read_text(encoding="utf-8")
    assert "Erg &#34;ebnis&#34;" in page and "&amp;lt;" in page
    assert "Erg \"ebnis\" 'x' &lt;" not in page


@pytest.mark.slow
def test_changed_code_makes_what_depends_on_it_again_and_nothing_else(abroad: Abroad) -> None:
    table, paper = abroad.results / "tables/example/means.csv", abroad.project / runs.EXAMPLE
    records, printed = runs.recorded(abroad.work, RESULTS), table.read_bytes()
    experiments, figures = paper / "experiments.py", paper / "figures.py"
    code = experiments.read_text(encoding="utf-8")
    experiments.write_text(code + "\n\n# a comment cannot change a number\n", encoding="utf-8")
    status, output = abroad.run("-n", "example/means", "example/figure1")
    assert status == 0 and "Nothing to be done" in output, output
    figures.write_text(figures.read_text(encoding="utf-8") + "\nSTYLE = 1\n", encoding="utf-8")
    status, output = abroad.run("example/means", "example/figure1")
    assert (
        status == 0
        and re.search(r"^build_figure +1$", output, re.M)
        and not re.search(r"^(simulate|train|account)_", output, re.M)
    ), output
    assert "build_table" not in output and runs.recorded(abroad.work, RESULTS) == records
    assert code.count("release(float(distinct.mean()), 0.1, noise)") == 1
    experiments.write_text(code.replace("release(float(", "release(1 + float("), encoding="utf-8")
    status, output = abroad.run("example/means")
    assert status == 0, output
    name = "records/example_means/1-of-1.parquet"
    assert (
        runs.recorded(abroad.work, RESULTS)[name] != records[name] and table.read_bytes() != printed
    )


def test_a_project_in_a_folder_with_a_sign_of_patterns_is_refused(tmp_path: Path) -> None:
    project = project_in(tmp_path / "x{y}")
    found = Abroad(project, tmp_path, runs.config(tmp_path / "none.yaml"))
    status, output = found.run("-n")
    assert status == 1
    assert (
        f"the project must lie in a folder without {{ in its path, got {project}; move it"
    ) in output

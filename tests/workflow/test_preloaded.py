"""A job started as a copy of a process does what it does when Python starts for it alone, and ends with its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.workflow.runs import ROOT

sys.path.insert(0, str(ROOT / "workflow/scripts"))

import preloaded

SCRIPTS = ROOT / "workflow/scripts"
WAITS = "import os, pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\ntime.sleep(600)\n"
TELLS = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["ASKED"], "SET_BEFORE" in os.environ, __name__)
print("told", file=sys.stderr)
{end}
"""
# One block that stays open until standard input ends.
HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
import preloaded
with preloaded.running([]) as found:
    print(found["DPSUB_PRELOADED"], flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs are copies of a process on Linux only")


class Holder(subprocess.Popen[str]):
    """The program above, and the name of the process that it has started."""

    name: str


@pytest.fixture(scope="module")
def holder() -> Iterator[Holder]:
    process = Holder(
        [sys.executable, "-c", HOLD, str(SCRIPTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SET_BEFORE": "1"},
    )
    assert process.stdout is not None
    process.name = process.stdout.readline().strip()
    assert process.name.startswith("dpsub-")
    yield process
    process.kill()
    process.communicate()


@pytest.fixture(scope="module", params=["few jobs", "many jobs"])
def name(request: pytest.FixtureRequest, holder: Holder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the process, before and after it has loaded all libraries."""
    if request.param == "many jobs":
        folder = tmp_path_factory.mktemp("many")
        (folder / "short.py").write_text("", encoding="utf-8")
        for job in [start(holder.name, folder, folder / "short.py") for _ in range(preloaded.FEW + 1)]:
            assert job.communicate(timeout=60) == ("", "")
    return holder.name


def start(name: str | None, folder: Path, script: Path, *arguments: str) -> subprocess.Popen[str]:
    own = {key: value for key, value in os.environ.items() if key not in ("DPSUB_PRELOADED", "DPSUB_JOB")}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", str(SCRIPTS / "start_job.py"), str(script), *arguments],
        cwd=folder,
        env={**own, "ASKED": "ünïcode", **({"DPSUB_PRELOADED": name} if name else {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("", 0, "told\n"),
        ("sys.exit(3)", 3, "told\n"),
        ("sys.exit('error: no')", 1, "told\nerror: no\n"),
        ("os.kill(os.getpid(), 9)", None, "told\n"),
    ],
)
def test_a_job_is_what_it_is_alone(end: str, status: int | None, said: str, name: str, tmp_path: Path) -> None:
    script = tmp_path / "a script.py"
    script.write_text(TELLS.format(end=end.replace("os.kill", "sys.stdout.flush(); os.kill")), encoding="utf-8")
    seen = []
    for place in (None, name):
        job = start(place, tmp_path, script, "two words", "--x=1")
        out, error = job.communicate(timeout=60)
        assert error == said
        seen.append(out)
        if status is not None:
            assert job.returncode == status
        else:  # a shell shows a death by a signal as 128 and its number
            assert job.returncode == (137 if place else -signal.SIGKILL)
    assert seen[0] == seen[1] != ""


def test_a_traceback_is_shown_and_fails(name: str, tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("1 / 0\n", encoding="utf-8")
    job = start(name, tmp_path, script)
    _, error = job.communicate(timeout=60)
    assert job.returncode == 1
    assert "ZeroDivisionError" in error


def test_records_have_the_same_bytes(name: str, tmp_path: Path) -> None:
    settings = '{"draws": 20, "samplers": ["wor", "must_ow"], "settings": [{"n": 300, "b": 50, "m": 30}]}'
    arguments = ["--experiment", "distinct_counts", "--variant", "stated", "--part", "1-of-1", "--seed", "1",
                 "--replicates", "0:1", "--settings", settings]  # fmt: skip
    found = []
    for place in (None, name):
        output = tmp_path / str(place) / "records.parquet"
        output.parent.mkdir()
        job = start(place, tmp_path, SCRIPTS / "run_experiment.py", *arguments, "--output", str(output))
        _, error = job.communicate(timeout=60)
        assert job.returncode == 0, error
        found.append(output.read_bytes())
    assert found[0] == found[1]


def test_what_is_copied_has_one_thread(name: str, holder: Holder) -> None:
    (server,) = psutil.Process(holder.pid).children()
    assert server.num_threads() == 1


def wait_for(path: Path) -> psutil.Process:
    for _ in range(600):
        if path.exists() and (text := path.read_text()):
            return psutil.Process(int(text))
        time.sleep(0.1)
    pytest.fail("the job has not begun within a minute")


def test_a_job_ends_with_the_one_who_asked_for_it(name: str, tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS, encoding="utf-8")
    asking = start(name, tmp_path, script, str(tmp_path / "pid"))
    job = wait_for(tmp_path / "pid")
    asking.kill()
    asking.communicate()
    job.wait(timeout=30)


@pytest.mark.parametrize("end", ["killed", "left"])
def test_jobs_end_with_the_run(end: str, tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(SCRIPTS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    script = tmp_path / "waits.py"
    script.write_text(WAITS, encoding="utf-8")
    asking = start(holder.stdout.readline().strip(), tmp_path, script, str(tmp_path / "pid"))
    job = wait_for(tmp_path / "pid")
    server = psutil.Process(holder.pid).children()[0]
    if end == "killed":
        holder.kill()
    else:
        holder.stdin.close()
    for process in (job, server):
        process.wait(timeout=30)
    asking.communicate(timeout=30)
    assert asking.returncode == 1
    holder.wait(timeout=30)
    for stream in (holder.stdin, holder.stdout):
        stream.close()

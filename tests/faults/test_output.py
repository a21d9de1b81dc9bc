"""Answers that cannot be delivered: a standard output that takes nothing, and pictures without a
home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpsub
from dpsub.accounting.questions import plot

FULL = Path("/dev/full")
ASKED = "account poisson --rate .02 --noise-multiplier 2 --steps 8 --delta 1e-5 --quick"
NOT_WRITTEN = (
    "the command is done, but its answer cannot be written to the standard output: No space left "
    "on device; free space, or send it elsewhere\n"
)


def run(line: str, **options: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "dpsub", *line.split()]
    options = {"stderr": subprocess.PIPE, "timeout": 60, **options}
    return subprocess.run(words, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "line", [ASKED, f"{ASKED} --json", "account --help", "--help", "--version"]
)
def test_a_full_standard_output_is_one_sentence(line: str, unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with FULL.open("w") as full:
        done = run(line, stdout=full, env=environment)
    assert done.returncode == 2
    assert done.stderr.endswith(f": {NOT_WRITTEN}") and done.stderr.count("\n") == 1


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_an_error_finds_its_way(tmp_path: Path) -> None:
    """An error goes to the standard error where the standard output is full; with both full it
    shows in the status."""
    wrong = f"{ASKED} --rate 2 --json"
    with FULL.open("w") as full:
        done = run(wrong, stdout=full)
        assert done.returncode == 2
        assert "rate" in done.stderr and done.stderr.count("\n") == 1
        assert run(wrong, stdout=full, stderr=full).returncode == 2
        assert run(ASKED, stdout=full, stderr=full).returncode == 2
        # an entry is in the ledger although nobody was told
        record = "record l.json poisson --rate .02 --noise-multiplier 2 --steps 8"
        done = run(record, stdout=full, cwd=tmp_path)
    assert done.returncode == 2 and "is done" in done.stderr
    assert len(dpsub.Ledger.load(tmp_path / "l.json")) == 1


def test_a_closed_standard_output() -> None:
    done = run(ASKED, preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert "it is closed" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write to")
def test_a_picture_without_a_home(tmp_path: Path) -> None:
    """The list of fonts is made before the limit starts; its warning does not matter here."""
    pytest.importorskip("matplotlib")
    homeless = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"}
    homeless |= {"HOME": "/proc", "XDG_CONFIG_HOME": "/proc", "XDG_CACHE_HOME": "/proc"}
    done = run(
        f"{ASKED} --plot p.png --time-limit 90",
        stdout=subprocess.DEVNULL,
        env=homeless,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(plot, "import_module", refuse)
    with pytest.raises(dpsub.DataError, match=r"got Read-only file system; set MPLCONFIGDIR"):
        plot.load_fonts()

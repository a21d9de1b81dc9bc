"""Samplers from a file of the user's own, without a clone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsub import cli
from dpsub.cli import own_files

PAGE = (Path(__file__).parents[2] / "docs/adding.md").read_text(encoding="utf-8")
ENTRY = "households --n 100 --b 20 --m 10 --noise-multiplier 8 --steps 2"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a folder with the file that the page shows."""
    found = re.search(r"^```python\n# mine\.py\n(.*?)^```$", PAGE, flags=re.M | re.S)
    assert found
    (tmp_path / "mine.py").write_text(found[1], encoding="utf-8")
    return tmp_path


def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a sampler that is loaded stays registered."""
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_command_line_takes_the_file_of_the_page(mine: Path) -> None:
    line = f"-m dpsub account {ENTRY} --load mine.py --delta 1e-5 --quick --json"
    found = json.loads(asked(mine, *line.split()).stdout)
    same = f"-m dpsub account multistage --stages wor:20,wr:10 {ENTRY.partition('--m 10')[2]}"
    known = json.loads(
        asked(mine, *same.split(), *["--n", "100", "--delta", "1e-5", "--quick", "--json"]).stdout
    )
    assert (found["lower"], found["upper"]) == (known["lower"], known["upper"])
    recorded = asked(mine, *f"-m dpsub record l.json {ENTRY} --load=mine.py".split())
    assert recorded.returncode == 0 and (mine / "l.json").is_file()
    unknown = asked(mine, *["-m", "dpsub", "ledger", "l.json", "--delta", "1e-5"])
    assert unknown.returncode == 2 and "unknown sampler 'households'" in unknown.stderr
    total = asked(
        mine, *["-m", "dpsub", "ledger", "l.json", "--delta", "1e-5", "--load", "mine.py"]
    )
    assert total.returncode == 0 and "epsilon" in total.stdout


def test_in_python_it_is_enough_to_import_the_file(mine: Path) -> None:
    program = (
        "import dpsub, mine; ledger = dpsub.Ledger(); "
        "ledger.record(mine.Households(20, 10), 100, noise_multiplier=8.0); ledger.save('l.json'); "
        "print(dpsub.Ledger.load('l.json').account(delta=1e-5).upper > 0)"
    )
    assert asked(mine, "-c", program).stdout == "True\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "--load needs a Python file, got mine.py; check the path"),
        (
            "1 / 0",
            "the file mine.py cannot be loaded: ZeroDivisionError: division by zero; correct",
        ),
        ("x = 1", "needs a file that defines a sampler or a schedule with a name"),
        (
            "from dpsub.sampling.chains import Wor\nclass Mine(Wor):\n    name = 'wr'\n",
            "has the name of another one; rename it",
        ),
    ],
    ids=["absent", "faulty", "empty", "known"],
)
def test_files_that_cannot_be_loaded(
    content: str | None,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("mine.py").write_text(content, encoding="utf-8")
    assert cli.main(["law", "wor", "--n", "9", "--m", "3", "--load", "mine.py"]) == cli.EXIT_ERROR
    found = capsys.readouterr().err
    assert sentence in found and found.count("\n") == 1


def test_files_are_named_in_both_ways() -> None:
    words = ["law", "--load", "one.py", "--n", "9", "--load=two.py", "--load"]
    assert own_files.named(words) == ["one.py", "two.py"]

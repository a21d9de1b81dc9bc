"""Names from a frame or a configuration that try to be paths, programs, HTML or wildcards stay
text, or are refused."""

from __future__ import annotations

import copy
import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dpsub.amplification.survey.advisor import read_frame
from dpsub.cli import main
from dpsub.errors import DataError, PlanError
from dpsub.reproduce import configuration
from dpsub.reproduce.plan import Plan
from tests.faults.test_config_mutations import PLACES, WHOLE, at, changed, names_the_key
from tests.few import few

NAMES = {
    "path": "../../x",
    "absolute path": "/etc/passwd",
    "script": "<script>alert(1)</script>",
    "program": '"; rm -rf * #',
    "substitution": "$(touch executed)",
    "wildcards": "{wildcards}",
    "lines": "a\nb",
    "NUL": "a\0b",
    "long": "x" * 10_000,
    "right to left": "\u202eRTL",
    "formula": "=1+1",
    "colour": "\x1b[31mred",
    "template": "{{7*7}}",
    "option": "--help",
}
HEADS = ("stratum", "cluster", "size")


def frame(
    path: Path,
    name: str,
    order: Sequence[int] = range(40),
    heads: Sequence[str] = HEADS,
    value: str = "",
) -> Path:
    """Write a frame of forty records whose strata and clusters have the name in theirs."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*heads, *([value] if value else [])])
        for i in order:
            record = {
                "stratum": name if i % 2 else "other",
                "cluster": f"{name}{i % 8}",
                "size": 1 + i % 5,
            }
            writer.writerow([*(record[head] for head in heads), *([i] if value else [])])
    return path


def advice(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    status = main(["advise", str(path), "--epsilon", "1", "--rate", "0.1", *options])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("kind", few(NAMES, most=5))
def test_names_in_a_frame_stay_text(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = NAMES[kind]
    path = frame(tmp_path / "frame.csv", name, value=name)
    plain = advice(frame(tmp_path / "plain.csv", "plain"), capsys)
    assert plain[0] == 0
    status, output, complaint = advice(path, capsys)
    assert (status, output, complaint) == plain  # names of strata and clusters do not matter
    status, output, complaint = advice(path, capsys, f"--value={name}")
    assert status in (0, 2) and len((output + complaint).splitlines()) <= (40 if status == 0 else 1)
    assert all(line.isprintable() for line in (output + complaint).splitlines())
    assert sorted(found.name for found in tmp_path.iterdir()) == ["frame.csv", "plain.csv"]


def test_the_order_of_rows_and_columns_does_not_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order matters only to the design that is made for a known order."""

    def answer(path: Path) -> dict[str, Any]:
        status, output, _ = advice(path, capsys, "--json")
        assert status == 0
        printed = json.loads(output)
        return printed | {
            "designs": [
                one for one in printed["designs"] if one["design"] != "systematic, known order"
            ]
        }

    shuffled = random.Random(1).sample(range(40), 40)
    plain = answer(frame(tmp_path / "plain.csv", "a"))
    assert len(plain["designs"]) > 10
    assert answer(frame(tmp_path / "rows.csv", "a", order=shuffled)) == plain
    assert (
        answer(frame(tmp_path / "columns.csv", "a", heads=("size", "cluster", "stratum"))) == plain
    )
    heads = ("cluster", "size", "stratum")
    swapped = (
        frame(tmp_path / "names.csv", "a", heads=heads).read_text(encoding="utf-8").splitlines()
    )
    (tmp_path / "names.csv").write_text(
        "\n".join(["size,cluster,stratum", *swapped[1:]]), encoding="utf-8"
    )
    with pytest.raises(DataError, match="size must be a number, got 'a0' in line 2; mend it"):
        read_frame(tmp_path / "names.csv")


def test_a_terminal_without_unicode_gets_the_whole_answer(tmp_path: Path) -> None:
    path = frame(tmp_path / "frame.csv", "a")
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "dpsub", "advise", str(path), "--epsilon", "1", "--rate", "0.1"],
        env=os.environ | old,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xb1" in done.stdout and done.stdout.isascii()


def test_a_frame_that_is_no_path_is_refused() -> None:
    for name in ("a\0b", "x" * 10_000):
        with pytest.raises(DataError, match="a frame must be "):
            read_frame(Path(name))


TEXTS = [path for path in PLACES if isinstance(at(WHOLE, path), str)]
SAMPLER = next((*path, 0) for path in PLACES if path[2:] == ("samplers",))


@pytest.mark.parametrize("kind", NAMES)
def test_names_in_a_configuration_are_refused_or_quoted(kind: str) -> None:
    """Only a folder may have any name, and one that could not be a path or would be a pattern is
    refused."""
    name = NAMES[kind]
    for path in [*TEXTS, ("data", "folder"), SAMPLER]:
        config = changed(path, name)
        if path in (("results_dir",), ("data", "folder")):
            odd = set("{}<>\n\0\x1b") & set(name)
            if not odd:
                assert configuration.validate(config)[path[0]]
                continue
        sentence = refusal(config)
        assert sentence.isprintable() and len(sentence) < 2 * len(name) + 2000
        assert names_the_key(path, sentence), sentence


@pytest.mark.parametrize("kind", NAMES)
def test_keys_and_artefacts_of_that_name_are_refused(kind: str) -> None:
    config: dict[str, Any] = copy.deepcopy(changed(("seed",), 1))
    assert refusal(config | {NAMES[kind]: 1}).startswith("unknown configuration key ")
    assert refusal(config | {"artefacts": [NAMES[kind]]}).startswith("artefacts: unknown artefact ")
    more = {**config, "experiments": {**config["experiments"], NAMES[kind]: {}}}
    assert refusal(more).startswith("unknown configuration key 'experiments.")


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(PlanError) as refused:
        Plan(configuration.validate(config))
    sentence = str(refused.value)
    assert sentence.isprintable()
    return sentence

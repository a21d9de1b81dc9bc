"""Changes against the expected verdicts, and the two scripts around them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce import comparison, expected

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow" / "scripts"


def row(column: str, verdict: str, *, variant: str = "stated", note: str = "") -> dict[str, Any]:
    fixed = {"paper": "must", "artefact": "table8", "row": "sampler=wr", "printed": "1", "kind": "real_data",
             "value": 1.0, "lower": 0.0, "upper": 2.0, "erratum": ""}  # fmt: skip
    return {**fixed, "column": column, "variant": variant, "verdict": verdict, "note": note}


def found(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(comparison.COLUMNS))


RECORDS = [
    row("accuracy", "differs"), row("accuracy", "within_error_as_done", variant="as_done"), row("f1", "differs"),
]  # fmt: skip
RUN = found(*RECORDS)
KNOWN = expected.from_comparison(RUN, pd.DataFrame(columns=expected.COLUMNS))


def changed(run: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    changes = expected.expected_changes(run, KNOWN)
    return [(change["column"], change["variant"], change["expected"], change["found"]) for change in changes]


def test_the_same_verdicts_are_no_change() -> None:
    assert changed(RUN) == []


def test_a_changed_a_new_and_a_lost_verdict_are_changes() -> None:
    run = found(row("accuracy", "within_error"), row("accuracy", "within_error_as_done", variant="as_done"),
                row("ppv", "differs"))  # fmt: skip
    assert changed(run) == [
        ("accuracy", "stated", "differs", "within_error"),
        ("ppv", "stated", "", "differs"),
        ("f1", "stated", "differs", ""),
    ]


def test_a_stand_in_is_accepted_for_every_variant_of_its_numbers() -> None:
    note = f"{comparison.NOT_REAL} but synthetic"
    run = found(row("accuracy", "not_compared", note=note), row("f1", "not_compared", note=note))
    assert changed(run) == []


def test_a_number_that_lost_its_value_is_a_change() -> None:
    run = found(*RECORDS[:2], row("f1", "not_compared", note=comparison.REDUCED))
    assert changed(run) == [("f1", "stated", "differs", "not_compared")]


def test_a_stand_in_takes_no_expected_verdict_away() -> None:
    run = found(row("f1", "not_compared", note=f"{comparison.NOT_REAL} but synthetic"))
    with pytest.raises(DataError, match="must come from a run on the real data, got 1 numbers not compared"):
        expected.from_comparison(run, KNOWN)


def test_a_number_that_no_run_could_compare_has_no_expected_verdict() -> None:
    run = found(*RECORDS, row("npv", "not_compared", note=f"{comparison.NOT_REAL} but synthetic"))
    accepted = expected.from_comparison(run, KNOWN)
    assert accepted.equals(KNOWN)
    assert expected.expected_changes(run, accepted) == []


def script(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_accepted_verdicts_pass_and_a_change_stops_the_run(tmp_path: Path) -> None:
    run, known, table = (tmp_path / name for name in ("comparison.csv", "expected.csv", "verdicts.txt"))
    comparison.write(RUN, run)
    accepted = script("accept_verdicts", "--comparison", str(run), "--expected", str(known))
    assert accepted.returncode == 0, accepted.stderr
    assert "3 verdicts, 3 of them new, changed or gone" in accepted.stdout
    options = ("--comparison", str(run), "--expected", str(known), "--output", str(table))
    assert script("check_verdicts", *options).returncode == 0
    assert table.read_text() == "all 3 verdicts are as expected\n"
    comparison.write(RUN.assign(verdict=["differs", "differs", "differs"]), run)
    stopped = script("check_verdicts", *options)
    assert stopped.returncode == 1
    assert "1 verdicts changed (3 compared)" in stopped.stdout
    assert "within_error_as_done  differs" in table.read_text()
    assert script("check_verdicts", *options, "--mode", "report").returncode == 0


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.csv")
    done = script("check_verdicts", "--comparison", missing, "--expected", missing, "--mode", "report")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "verdicts must be in a file, got no" in done.stderr

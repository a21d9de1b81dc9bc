"""The RO-Crate of a run: every reference leads to an entity, and the parts that RO-Crate 1.1
demands are there."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsub.errors import DataError
from dpsub.reproduce import sums
from dpsub.reproduce.crate import AUTHORS, NAME, crate, main
from tests.documentation.console import ROOT

ENVIRONMENT = {"date": "2026-11-26", "versions": {"dpsub": "0.2.0"}, "commit": "abc"}
FILES = {
    name: hashlib.sha256(name.encode()).hexdigest()
    for name in ("tables/demo/table 5.csv", "comparison.csv", "run/config.yaml")
}
ADULT = {"dataset": "adult", "label": "real", "rows": 45222, "sha256": "0ff"}


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {found for item in value for found in references(item)}
    if isinstance(value, dict):
        own = {value["@id"]} if set(value) == {"@id"} else set()
        return own | {found for item in value.values() for found in references(item)}
    return set()


@pytest.mark.parametrize("date", ["2026-11-26", ""])
def test_a_crate_is_valid(date: str) -> None:
    made = crate(FILES, ENVIRONMENT | {"date": date}, [ADULT])
    entities = {entity["@id"]: entity for entity in made["@graph"]}
    assert len(entities) == len(made["@graph"]) and all(one["@type"] for one in entities.values())
    outside = {one for one in references(made["@graph"]) if one not in entities}
    assert outside == {"https://w3id.org/ro/crate/1.1"}
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    for name, sha256 in FILES.items():
        assert next(one for one in made["@graph"] if one.get("name") == name)["sha256"] == sha256
    base, own = made["@context"]
    assert base.startswith("https://w3id.org/ro/crate/1.1") and set(own) == {"sha256"}
    root = entities["./"]
    assert root["@type"] == "Dataset" and root["name"] and root["description"] and root["license"]
    assert datetime.date.fromisoformat(root["datePublished"])
    assert [part["@id"] for part in root["hasPart"]] == [
        "comparison.csv",
        "run/config.yaml",
        "tables/demo/table%205.csv",
    ]


def test_the_run_names_the_workflow_its_inputs_and_its_results() -> None:
    made = crate(FILES, ENVIRONMENT, [ADULT])
    entities = {entity["@id"]: entity for entity in made["@graph"]}
    run = entities["#run"]
    workflow = entities[run["instrument"]["@id"]]
    assert {"SoftwareSourceCode", "ComputationalWorkflow"} == set(workflow["@type"])
    assert workflow["version"] == "abc"
    assert entities[workflow["programmingLanguage"]["@id"]]["name"] == "Snakemake"
    path = workflow["name"].removesuffix(" of dpsub")
    assert run["instrument"]["@id"] == f"#{path}" and (ROOT / path).is_file()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (
        [entities[workflow["author"]["@id"]]["name"]]
        == [one["name"] for one in citation["authors"]]
        == [AUTHORS]
    )
    config, adult = (entities[one["@id"]] for one in run["object"])
    assert config["name"] == "run/config.yaml" and adult["name"] == "Data set adult, real"
    assert adult["identifier"] == "sha256:0ff"
    results = [one["@id"] for one in run["result"]]
    assert results == ["comparison.csv", "tables/demo/table%205.csv"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a results folder with its description, and files that are not described."""
    for name in (*FILES, "logs/a.log", "run/sums/a.json", "run/timings/a.tsv", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / NAME).write_text(json.dumps(crate(FILES, ENVIRONMENT)), encoding="utf-8")
    return tmp_path


def test_a_folder_is_compared_with_its_description(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results)]) == 0
    own = hashlib.sha256((results / NAME).read_bytes()).hexdigest()
    assert capsys.readouterr().out.endswith(f"whose own sum is {own}\n")
    (results / "comparison.csv").write_text("edited", encoding="utf-8")
    (results / "tables/demo/table 5.csv").unlink()
    (results / "tables/demo/table6.csv").write_text("new", encoding="utf-8")
    assert main([str(results)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "changed: comparison.csv",
        "missing: tables/demo/table 5.csv",
        "added: tables/demo/table6.csv",
    ]


@pytest.mark.parametrize("content", [None, "{", "[]", '{"@graph": [{"@type": "File"}]}'])
def test_without_a_description_nothing_is_compared(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / NAME).write_text(content, encoding="utf-8")
    assert main([str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"error: {tmp_path} must hold {NAME}")
    assert shown.err.count("\n") == 1


def test_what_was_altered_after_its_job_is_refused(tmp_path: Path) -> None:
    made = [tmp_path / name for name in ("tables/a.csv", "tables/b.csv")]
    for path in made:
        path.parent.mkdir(exist_ok=True)
        path.write_text("made", encoding="utf-8")
    sums.write(tmp_path / sums.FOLDER / "a/b.json", made, tmp_path)
    sums.check(tmp_path)
    made[1].unlink()
    sums.check(tmp_path)  # what is missing is made again
    made[0].write_text("edited", encoding="utf-8")
    with pytest.raises(DataError, match=r"tables/a.csv must be as it was made, got other bytes; "):
        sums.check(tmp_path)

"""The RO-Crate of a run: every reference leads to an entity, and the parts that RO-Crate 1.1
demands are there."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import yaml

from dpsub.reproduce.crate import AUTHORS, crate
from tests.documentation.console import ROOT

ENVIRONMENT = {"date": "2026-11-26", "versions": {"dpsub": "0.2.0"}, "commit": "abc"}
FILES = ["tables/demo/table 5.csv", "comparison.csv", "run/config.yaml"]
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

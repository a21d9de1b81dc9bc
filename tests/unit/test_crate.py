"""The RO-Crate of a run: every reference leads to an entity, and what RO-Crate 1.1 demands is
there."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from dpsub.reproduce.crate import crate

ENVIRONMENT = {"date": "2026-11-26", "versions": {"dpsub": "0.2.0"}, "commit": "abc"}


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {found for item in value for found in references(item)}
    if isinstance(value, dict):
        own = {value["@id"]} if set(value) == {"@id"} else set()
        return own | {found for item in value.values() for found in references(item)}
    return set()


@pytest.mark.parametrize("date", ["2026-11-26", ""])
def test_a_crate_is_valid(date: str) -> None:
    made = crate(["tables/must/table 5.csv", "comparison.csv"], ENVIRONMENT | {"date": date})
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
        "tables/must/table%205.csv",
    ]

"""Imports go from a layer to itself or to a lower number, and some never at all (read with `ast`, nothing is run)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsub import provenance

SOURCE = Path(__file__).resolve().parents[2] / "src/dpsub"
LAYERS = {
    1: "errors checks registry relations streams threads",
    2: "sampling datasets",
    3: "noise divergences amplification accounting recycling importance",
    4: "records provenance learning experiments settings lock sweeps",
    5: "labels figures artefacts published verdicts comparison expected report plan cli __main__",
}
LEVEL = {name: level for level, names in LAYERS.items() for name in names.split()}
PRIVACY = set(LAYERS[3].split())
NEVER = {  # beyond the order of layers
    "noise": {"sampling"},
    "artefacts": {"learning", "accounting"},
    "figures": {"learning", "accounting", "experiments"},
}


def parts() -> dict[str, Path]:
    files = sorted(SOURCE.rglob("*.py"))
    return {".".join(("dpsub", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in files}


def imported(module: str, path: Path) -> set[str]:
    name = module.removesuffix(".__init__")
    return {found for found in provenance.imports(name, path) if found.partition(".")[0] in ("dpsub", "snakemake")}


def violations(module: str, names: set[str]) -> list[str]:
    """Return what is wrong with a module that imports `names`."""
    own = module.split(".")[1]
    if own == "__init__":
        return []
    if own not in LEVEL:
        return [f"{module} is in no layer"]
    found = []
    for name in sorted(names):
        if name.startswith("snakemake"):
            found.append(f"{module} imports snakemake")
            continue
        other = name.partition(".")[2].partition(".")[0]
        if other and LEVEL.get(other, 9) > LEVEL[own]:
            found.append(f"{module} (layer {LEVEL[own]}) imports {name} (layer {LEVEL.get(other)})")
        if other in NEVER.get(own, set()) or (LEVEL[own] == 2 and other in PRIVACY):
            found.append(f"{module} must not import {name}")
    return found


@pytest.mark.parametrize("module", parts())
def test_imports_go_down(module: str) -> None:
    assert violations(module, imported(module, parts()[module])) == []


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {module.split(".")[1] for module in parts()} - {"__init__"} <= set(LEVEL)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("dpsub.sampling.chains", "dpsub.noise.gaussian"),
        ("dpsub.accounting.algorithm1", "dpsub.experiments"),
        ("dpsub.checks", "dpsub.sampling.frame"),
        ("dpsub.artefacts.must.table8", "dpsub.learning.descent"),
        ("dpsub.records", "snakemake.utils"),
        ("dpsub.utils", "dpsub.checks"),
    ],
)
def test_a_planted_violation_is_found(module: str, name: str) -> None:
    assert violations(module, {name})


def test_files_stay_small_and_are_named_after_ideas() -> None:
    for module, path in parts().items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 800, f"{module} has more than 800 lines"
        assert path.stem not in {"utils", "helpers", "common", "core", "misc"}, f"{module} is named after a place"

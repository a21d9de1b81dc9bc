"""The document of errata: its tables are current, every entry is complete, every command shows something."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dpsub.errors import DataError
from dpsub.reproduce import artefacts, published, verdicts
from dpsub.reproduce.report import errata, overview

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/deviations.md"
PRINTED = ROOT / "src/dpsub/papers"
ENTRIES = errata.read(DOCUMENT)
FILES = PRINTED.glob("*/published/*.csv")
TABLES = [published.load(path.parents[1].name, path.stem) for path in FILES]
CELLS = Counter(" ".join(" ".join(table["erratum"]) for table in TABLES).split())
VERDICTS = verdicts.read_expected(ROOT / "src/dpsub/papers")


def test_the_tables_are_current() -> None:
    fresh = overview.refreshed(DOCUMENT, PRINTED, VERDICTS)
    assert fresh == DOCUMENT.read_text(encoding="utf-8"), "run workflow/scripts/tabulate_errata.py"
    other = VERDICTS.assign(verdict=VERDICTS["verdict"].replace("fails", "holds"))
    assert overview.refreshed(DOCUMENT, PRINTED, other) != fresh
    assert sum(fresh.count(f"\n| [{one.name}](#{one.name.lower()}-") for one in ENTRIES) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_is_complete_and_its_command_shows_something(entry: errata.Erratum) -> None:
    assert entry.parts == set(errata.PARTS)
    shown = 0
    for command in entry.commands:
        if test := re.search(r"-m pytest (\S+) -k (\w+)$", command):
            source = (ROOT / test[1]).read_text(encoding="utf-8")
            assert re.search(rf"^def test_(?:\w*_)?{test[2]}", source, flags=re.MULTILINE), command
            shown += 1
        elif target := re.search(r"snakemake (\w+)$", command):
            assert f"must/{target[1]}" in artefacts.REGISTRY.names()
            shown += 1
        else:
            assert re.search(rf"show_erratum.py {entry.name}$", command)
            shown += CELLS[entry.name]
    assert shown > 0


def test_faults_of_the_document_are_told(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    path = tmp_path / "deviations.md"
    path.write_text(text.replace("#### E2. ", "#### E1. "), encoding="utf-8")
    with pytest.raises(DataError, match=r"each erratum must stand once in deviations\.md, got E1 twice"):
        errata.read(path)
    path.write_text(text.replace("#### E2. ", "#### "), encoding="utf-8")
    with pytest.raises(DataError, match="must stand in the document of errata, got no E2"):
        overview.refreshed(path, PRINTED, VERDICTS)
    path.write_text(text.replace(overview.END, ""), encoding="utf-8")
    with pytest.raises(DataError, match="must have a line that begins with"):
        overview.refreshed(path, PRINTED, VERDICTS)

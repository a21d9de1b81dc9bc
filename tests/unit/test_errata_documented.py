"""Every erratum of the other papers: its four parts in the deviations, and a test that its command selects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
NAMES = [
    *(f"BL{i}" for i in range(1, 13)), *(f"BN{i}" for i in range(1, 17)), *(f"BR{i}" for i in range(1, 23)),
    *(f"IM{i}" for i in range(1, 21)),
]  # fmt: skip
TESTS = {
    "BL": "test_balle_errata.py", "BN": "test_errata_bun.py", "BR": "test_errata_brdp.py",
    "IM": "test_errata_importance.py",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_erratum_says_what_where_and_to_what_effect(name: str) -> None:
    (section,) = re.findall(rf"^### {name}\. .*?(?=^#|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
    for part in ("Claim", "Evidence", "orrected", "Effect"):
        assert re.search(rf"\*\*[^*]*{part}[^*]*\*\*", section), part


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_an_erratum_selects_a_test(name: str) -> None:
    file = TESTS[name[:2]]
    assert f"tests/unit/{file} -k {name[:2].lower()}" in TEXT
    source = (ROOT / "tests" / "unit" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def test_\w*(?<![a-z0-9]){name.lower()}_", source, flags=re.MULTILINE)

"""The answers on the home page that this paper gives."""

from __future__ import annotations

from dpsub.reproduce import verdicts
from tests.documentation.console import ROOT, script
from tests.gone import needs_all_papers


@needs_all_papers
def test_whether_table_8_is_right_follows_from_its_verdicts() -> None:
    home = script("workflow/scripts/write_home")
    expected = verdicts.read_expected(ROOT / "src/dpsub/papers")
    right = expected["verdict"].mask(expected["paper"] == "must", "reproduced")
    page = home.PAGE.read_text(encoding="utf-8")
    answer = "**Is Table 8 of Zhao and Liu 2023 (MUST) right?** Yes"
    assert answer in home.renewed(page, expected.assign(verdict=right))

"""Pages show what a reader gets: answers that are refined, whatever the time."""

from __future__ import annotations

import pytest

import dpsub


@pytest.fixture(autouse=True)
def _refined(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in (dpsub.account, dpsub.Ledger.account):
        monkeypatch.setitem(asked.__kwdefaults__, "quick", False)

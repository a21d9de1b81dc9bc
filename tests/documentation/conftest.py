"""Pages show what a reader gets: answers that are refined, with the work that is spent by
default."""

from __future__ import annotations

import pytest

import dpsub
from dpsub import cli
from tests.conftest import parser_of_commands


@pytest.fixture(autouse=True)
def _refined(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in (dpsub.account, dpsub.Ledger.account):
        monkeypatch.setitem(asked.__kwdefaults__, "quick", False)
    # commands answer with the effort that their users have
    monkeypatch.setattr(cli, "parser_of", parser_of_commands)

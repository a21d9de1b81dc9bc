"""Commands on pages are run as a reader runs them: answers are refined, with the work that is spent
by default."""

from __future__ import annotations

import pytest

from dpsub import cli
from dpsub.accounting.questions import question
from tests.conftest import parser_of_commands


@pytest.fixture(autouse=True)
def _refined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "DEFAULT", question.Question(()))
    # commands answer with the effort that their users have
    monkeypatch.setattr(cli, "parser_of", parser_of_commands)

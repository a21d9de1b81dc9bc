"""The command line says what it said when its golden answers were recorded."""

from __future__ import annotations

import pytest

from tests.golden import commands

RECORDED = commands.recorded()
ELSEWHERE = 1e-4
"""Other processors round and add in another order, which moves answers within their accuracy, by up
to 4e-6 as tried; `python tests/golden/commands.py check` compares to 1e-12, on one machine."""


@pytest.mark.parametrize("command", RECORDED)
def test_an_answer_is_the_recorded_one(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RELATIVE", ELSEWHERE)
    assert commands.differences(RECORDED[command], commands.run(command)) == []

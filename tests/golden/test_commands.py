"""The command line says what it said when its golden answers were recorded."""

from __future__ import annotations

import pytest

from tests.golden import commands

RECORDED = commands.recorded()


def test_every_command_is_recorded() -> None:
    assert list(RECORDED) == commands.COMMANDS


@pytest.mark.parametrize("command", RECORDED)
def test_an_answer_is_the_recorded_one(command: str) -> None:
    assert commands.check(command, RECORDED[command]) == []

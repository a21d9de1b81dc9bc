"""The command line says what it said when its golden answers were recorded, in a few lines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dpsub import cli
from dpsub.cli.answers import Answer
from tests.conftest import parser_of_commands
from tests.golden import commands
from tests.gone import needs_all_papers

RECORDED = commands.recorded()
ELSEWHERE = 1e-4
"""Other processors round and add in another order, which moves answers within their accuracy, by up
to 4e-6 as tried; `python tests/golden/commands.py check` compares to 1e-12, on one machine."""
TABLES = ("advise", "plan")
"""Commands that answer with a table, as long as its question."""
MOST_LINES = 6


FIRST, FIRST_LONG = 4, 1
"""Commands of each subcommand in `make test`, and of one that takes long."""


def first_of_each() -> list[Any]:
    """Return the commands for `pytest.mark.parametrize`, all but the first few of each subcommand
    marked `thorough`."""
    seen = Counter[str]()
    table = []
    for command in RECORDED:
        name = command.split()[0]
        most = FIRST_LONG if name == "recommend" else FIRST
        marks = [] if seen[name] < most else [pytest.mark.thorough]
        if name == "plan":  # its sweep is of a paper's experiments
            marks.append(needs_all_papers)
        table.append(pytest.param(command, marks=marks))
        seen[name] += 1
    return table


@pytest.mark.parametrize("command", first_of_each())
def test_an_answer_is_the_recorded_one(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RELATIVE", ELSEWHERE)
    # with the effort that the command has by default, as recorded
    monkeypatch.setattr(cli, "parser_of", parser_of_commands)
    answered: list[Answer] = []
    answer_to = cli._answer

    def noted(*question: Any) -> Answer:
        answered.append(answer_to(*question))
        return answered[-1]

    monkeypatch.setattr(cli, "_answer", noted)
    assert commands.differences(RECORDED[command], commands.run(command)) == []
    if command.split()[0] in TABLES:
        return
    for answer in answered:
        text = answer.text()
        assert len(text.splitlines()) <= MOST_LINES, text
        assert answer.text(explain=True).startswith(answer.title)

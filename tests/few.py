"""Tables of cases: `make test` tries some, `make test-rest` more and `make test-slow` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], most: int = 1, more: int | None = None) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`: the first `most` without a mark, the next
    `more` of them, or all, marked `thorough`, and the others `slow`.

    A tuple holds the values of several arguments.
    """
    table = [case if type(case) is tuple else (case,) for case in cases]
    more = len(table) if more is None else more
    marks = [()] * most + [pytest.mark.thorough] * more + [pytest.mark.slow] * len(table)
    return [pytest.param(*case, marks=mark) for case, mark in zip(table, marks, strict=False)]

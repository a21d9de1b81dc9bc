"""Tables of cases of which `make test` tries some and `make test-rest` the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], most: int = 1) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, all but the first `most` marked `thorough`.

    A tuple holds the values of several arguments.
    """
    table = [case if type(case) is tuple else (case,) for case in cases]
    marks = [()] * most + [pytest.mark.thorough] * len(table)
    return [pytest.param(*case, marks=mark) for case, mark in zip(table, marks, strict=False)]

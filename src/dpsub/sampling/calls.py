"""Calls of samplers and schedules with other arguments than their sizes, answered in a sentence."""

from __future__ import annotations

import abc
import dataclasses
import inspect
from typing import Any

from dpsub import checks
from dpsub.errors import ArgumentError


class OfSizes(abc.ABCMeta):
    """Metaclass of samplers and schedules, which hold their sizes and not the number of records.

    ArgumentError, in place of TypeError, for a call with other arguments than the fields of the
    class.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the class itself: `inspect` would take the one of `__call__` below."""
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]  # of the class
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __call__(cls, *sizes: Any, **named: Any) -> Any:
        try:
            return super().__call__(*sizes, **named)
        except TypeError as error:
            if not dataclasses.is_dataclass(cls) or _fits(cls, sizes, named):
                raise
            raise ArgumentError(_sentence(cls, sizes, named)) from error


def _fits(kind: Any, sizes: tuple[Any, ...], named: dict[str, Any]) -> bool:
    try:
        inspect.signature(kind).bind(*sizes, **named)
    except TypeError:
        return False
    return True


def _sentence(kind: Any, sizes: tuple[Any, ...], named: dict[str, Any]) -> str:
    fields = [field.name for field in dataclasses.fields(kind)]
    call = f"dpsub.{kind.__name__}({', '.join(fields)})"
    rule = f"{kind.__name__} takes {' and '.join(fields) or 'nothing'}"
    records = f"the number of records n is an argument of the question: dpsub.account({call}, n)"
    if len(sizes) > len(fields):
        if fields[:1] == ["rate"] and all(isinstance(size, int) and size > 1 for size in sizes[:2]):
            m, n = sorted(sizes[:2])
            records = f"a batch of {m} out of {n} records has the rate {m} / {n}"
        return f"{rule}, got {len(sizes)} values; {records}"
    for name in named:
        if name == "n" and name not in fields:
            return f"{rule}, got n as well; {records}"
        if name in ("m", "batch_size") and fields == ["rate"]:
            return (
                f"{rule}, got {name}; the rate is {name} / n: dpsub.{kind.__name__}(256 / 60_000)"
            )
        if name not in fields:
            return f"{rule}, got {name}; {checks.nearest(name, fields)}"
    twice = [name for name in fields[: len(sizes)] if name in named]
    if twice:
        return f"{rule}, got {twice[0]} twice; write {call}"
    return f"{rule}, got {'fewer values' if sizes or named else 'none'}; write {call}"

"""Work: operations that are counted before they are done, so that the effort of an answer is a
function of its question.

One unit is about a nanosecond of one core of a laptop. Long computations announce their work
(`spend`), from the sizes of their arrays and the weights below, which were measured once. A budget
that does not suffice ends them by `OutOfWorkError`, and bounds proved before stand. No clock
decides: on a busy machine the same work takes longer and ends at the same place. The one exception
is the time limit that a user may set, and an answer says when it struck.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from dpsub import checks
from dpsub.errors import NumericalError

P = ParamSpec("P")
Value = TypeVar("Value")

EFFORT = 1.0
"""Effort of an answer for which none is given: about two seconds for the hardest questions."""
UNITS = 2.4e9
"""Units of effort 1."""
# efforts at which a question is tried one after the other, then each twice the last one
_RUNGS = (1 / 32, 1 / 8, 3 / 4)
MOST_EFFORT = 1e6

NUMBER = 1.0
"""Units of one number in one or two plain operations on arrays."""
TERM = 8.0
"""Units of one number through an exponential, a logarithm or a normal tail, with the operations
around it."""
TRANSFORM = 0.6
"""Units of a transform of n real numbers, over n log2(n)."""
ROUND = 500.0
"""Units of a round of a plain loop over a few numbers."""
_CALL = 1.5e4  # one round of a loop over arrays, however small they are


class OutOfWorkError(NumericalError):
    """The budget does not suffice for a piece of work; earlier bounds are valid."""


@dataclass
class _Meter:
    """The work of a question so far, and its limit, in units."""

    limit: float
    spent: float = 0.0
    refusals: int = 0
    remembered: dict[Any, Any] = field(default_factory=dict)


@dataclass
class _Guard:
    """The time limit of a user."""

    seconds: float
    deadline: float
    """Time of `time.monotonic`."""
    has_struck: bool = False


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)
_GUARD: ContextVar[_Guard | None] = ContextVar("guard", default=None)


def effort(value: float | None) -> float:
    """A valid effort: a number above 0, or infinity for None."""
    if value is None or value == math.inf:
        return math.inf
    return checks.real("effort", value, above=0, at_most=MOST_EFFORT)


@contextmanager
def metered(effort: float = math.inf, time_limit: float | None = None) -> Iterator[None]:
    """Count the work of a question, which may spend this much.

    A question that comes up within another one spends of its budget.
    """
    with timed(time_limit):
        if _METER.get() is not None:
            with limited(effort):
                yield
            return
        before = _METER.set(_Meter(effort * UNITS))
        try:
            yield
        finally:
            _METER.reset(before)


@contextmanager
def timed(seconds: float | None) -> Iterator[None]:
    """Let the block end after so many seconds, or with the time limit that is set, if that comes
    first."""
    if seconds is None:
        yield
        return
    seconds = checks.real("time_limit", seconds, above=0)
    guard, outer = _Guard(seconds, time.monotonic() + seconds), _GUARD.get()
    if outer is not None and outer.deadline < guard.deadline:
        guard = outer
    before = _GUARD.set(guard)
    try:
        yield
    finally:
        _GUARD.reset(before)


@contextmanager
def limited(effort: float) -> Iterator[None]:
    """Let the block spend at most this much, and no more than is left."""
    meter = _METER.get()
    if meter is None:
        yield
        return
    before = meter.limit
    meter.limit = min(before, meter.spent + effort * UNITS)
    try:
        yield
    finally:
        meter.limit = before


@contextmanager
def uncounted() -> Iterator[None]:
    """Let the block cost nothing: closed-form bounds, which exist with any budget."""
    before = _METER.set(None)
    try:
        yield
    finally:
        _METER.reset(before)


def share(part: float) -> AbstractContextManager[None]:
    """Let the block spend at most this part of what is left."""
    return limited(part * left() / UNITS)


def spend(units: float) -> None:
    """Count a piece of work that comes next; OutOfWorkError, and it is not counted, if the budget
    does not suffice."""
    _check_time()
    meter = _METER.get()
    if meter is None:
        return
    if meter.spent + units + _CALL > meter.limit:
        meter.refusals += 1
        raise OutOfWorkError("the budget of work does not suffice; raise effort")
    meter.spent += units + _CALL


def _check_time() -> None:
    guard = _GUARD.get()
    if guard is None or time.monotonic() <= guard.deadline:
        return
    guard.has_struck = True
    meter = _METER.get()
    if meter is not None:
        meter.refusals += 1
    raise OutOfWorkError("the time limit has passed; raise it")


def affords(units: float) -> bool:
    """Whether the budget suffices for so much; a refusal if not."""
    if units <= left():
        return True
    meter = _METER.get()
    assert meter is not None
    meter.refusals += 1
    return False


def ensure(units: float, what: str) -> None:
    """Refuse to begin what the budget would not let end."""
    if not affords(units):
        raise OutOfWorkError(f"the budget does not suffice for {what}; raise effort")


def remembered(size: int) -> Callable[[Callable[P, Value]], Callable[P, Value]]:
    """Remember the results of a function of hashable arguments, within a question with a budget for
    that question alone: the questions of others must not save it work. Questions without a budget
    share the last `size` values.
    """

    def decorated(function: Callable[P, Value]) -> Callable[P, Value]:
        shared: Callable[P, Value] = lru_cache(maxsize=size)(function)  # type: ignore[assignment]

        @wraps(function)
        def value(*args: P.args, **kwargs: P.kwargs) -> Value:
            meter = _METER.get()
            if meter is None or meter.limit == math.inf:
                return shared(*args, **kwargs)
            key = function, args, tuple(kwargs.items())
            if key not in meter.remembered:
                meter.remembered[key] = function(*args, **kwargs)
            found: Value = meter.remembered[key]
            return found

        return value

    return decorated


def left() -> float:
    """Units that may be spent; infinite without a budget."""
    meter = _METER.get()
    return math.inf if meter is None else max(0.0, meter.limit - meter.spent)


def spent() -> float:
    """Units that were spent on the question; 0 outside of one."""
    meter = _METER.get()
    return 0.0 if meter is None else meter.spent


def refusals() -> int:
    """Number of pieces of work that were not done for want of a budget: where it stays the same, a
    larger budget would have changed nothing."""
    meter = _METER.get()
    return 0 if meter is None else meter.refusals


def struck() -> float | None:
    """The time limit in seconds, if it ended anything."""
    guard = _GUARD.get()
    return guard.seconds if guard is not None and guard.has_struck else None


def rungs(effort: float) -> Iterator[float]:
    """Efforts at which a question is tried one after the other, together at most this one: those
    of a larger effort begin with those of a smaller one, so that the best of all ends are
    nested."""
    if effort == math.inf:
        yield effort
        return
    doubled = (_RUNGS[-1] * 2**i for i in itertools.count(1))
    total = 0.0
    for rung in itertools.chain(_RUNGS, doubled):
        total += rung
        if total > effort:
            return
        yield rung


def transform(n: int) -> float:
    """Return the work of a transform of n real numbers."""
    return TRANSFORM * n * math.log2(max(n, 2))

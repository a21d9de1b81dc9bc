"""An accountant with the interface of dp-accounting, which need not be installed."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any, Self, Unpack

from dpsub import checks
from dpsub.accounting.engine.work import EFFORT
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.events import LittleNoiseError, steps_of
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.question import WidthKeywords, check_names
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, UnsupportedError

_RELATIONS = {
    "ADD_OR_REMOVE_ONE": "add_remove",
    "REPLACE_ONE": "substitute",
    "REPLACE_SPECIAL": "zero_out",
}


class EventAccountant:
    """Accountant of dp-accounting's events: it has the methods of a `PrivacyAccountant`.

    `dp_accounting.calibrate_dp_mechanism(EventAccountant, ...)` calibrates with proved bounds.

    Parameters
    ----------
    neighboring_relation : NeighboringRelation of dp-accounting, optional
        By default ADD_OR_REMOVE_ONE where it is known.

    effort, time_limit : float or None
        Of each answer, as in `dpsub.account`.

    Examples
    --------
    >>> from dpsub.dp_accounting import EventAccountant
    >>> gaussian = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    >>> sampled = {
    ...     "class_name": "PoissonSampledDpEvent",
    ...     "sampling_probability": 0.01,
    ...     "event": gaussian,
    ... }
    >>> 0.71 < EventAccountant().compose(sampled, 100).get_epsilon(1e-5) < 0.73
    True
    """

    def __init__(
        self,
        neighboring_relation: Any = None,
        *,
        effort: float | None = EFFORT,
        time_limit: float | None = None,
    ) -> None:
        name = getattr(neighboring_relation, "name", neighboring_relation)
        if name is not None and name not in _RELATIONS:
            raise ArgumentError(
                f"neighboring_relation must be one of {', '.join(_RELATIONS)}, got {name!r}"
            )
        self.neighboring_relation = neighboring_relation
        self._asked: WidthKeywords = {
            "adjacency": None if name is None else _RELATIONS[name],
            "effort": effort,
            "time_limit": time_limit,
        }
        self._steps: dict[Release, int] = {}
        self._events: list[tuple[object, int]] = []
        self._little: LittleNoiseError | None = None

    def supports(self, event: object) -> bool:
        """Whether an event can be composed."""
        try:
            steps_of(event)
        except LittleNoiseError:
            return True
        except (ArgumentError, UnsupportedError):
            return False
        return True

    def compose(self, event: object, count: int = 1) -> Self:
        """Add an event, `count` times; UnsupportedError if no theorem covers its class.

        With so little noise, or none, that nothing is proved, epsilon is infinite and delta 1, as
        with accountants of dp-accounting: a search for the noise may begin at 0.
        """
        times = checks.integer("count", count, at_least=0)
        try:
            found = steps_of(event)
        except LittleNoiseError as error:
            self._little = error if times else self._little
            found = {}
        for kind, steps in found.items():
            if times:
                self._steps[kind] = self._steps.get(kind, 0) + steps * times
        self._events.append((event, times))
        return self

    @property
    def ledger(self) -> Any:
        """All events so far as one DpEvent, which needs dp-accounting."""
        builder = import_module("dp_accounting").DpEventBuilder()
        for event, times in self._events:
            builder.compose(event, times)
        return builder.build()

    def releases(self) -> Ledger:
        """All releases so far, for every other question; ArgumentError if one has too little noise
        for any proof."""
        if self._little is not None:
            raise self._little
        return Ledger(replace(kind, steps=steps) for kind, steps in self._steps.items())

    def account(self, **question: Any) -> Account:
        """Both bounds, with conditions; parameters as of `dpsub.Ledger.account`."""
        return self.releases().account(**{**self._asked, **question})

    def get_epsilon(self, target_delta: float, **asked: Unpack[WidthKeywords]) -> float:
        """The proved epsilon at this delta, with options as in `account`; 0 before the first
        event."""
        check_names(asked, WidthKeywords)
        if self._little is not None:
            return math.inf
        return float(self.account(delta=target_delta, **asked).upper) if self._steps else 0.0

    def get_delta(self, target_epsilon: float, **asked: Unpack[WidthKeywords]) -> float:
        """The proved delta at this epsilon, with options as in `account`; 0 before the first
        event."""
        check_names(asked, WidthKeywords)
        if self._little is not None:
            return 1.0
        return float(self.account(epsilon=target_epsilon, **asked).upper) if self._steps else 0.0

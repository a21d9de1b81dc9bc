"""An accountant for Opacus: the proved epsilon of its training, within `PrivacyEngine`.

`register()` makes it known to Opacus by name; then `PrivacyEngine(accountant="dpsub")` uses it.
Neither Opacus nor torch is imported before that.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from itertools import groupby
from reprlib import repr as shortened
from typing import Any, Unpack

from dpsub import checks
from dpsub.accounting.engine.pairs import MIN_SCALE
from dpsub.accounting.engine.work import EFFORT
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.question import WidthKeywords, check_names
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import Poisson

_OF_OPACUS = ("alphas", "eps_error", "delta_error")
NAME = "dpsub"
"""The mechanism, as Opacus calls the name of an accountant."""


class OpacusAccountant:
    """The steps of a training with Opacus, and their privacy.

    It has the methods that Opacus asks of an accountant. Steps are Poisson samples, which Opacus
    draws with `poisson_sampling=True` (the default).

    Parameters
    ----------
    adjacency : {"zero_out", "add_remove", "substitute"}
        Of the answers. Opacus divides by a batch size and samples at a rate that both depend on the
        number of records, so that a guarantee holds for data sets of one size: zero_out, whose
        numbers are those of add_remove.

    effort, time_limit : float or None
        Of each answer, as in `dpsub.account`.

    Attributes
    ----------
    history : list of (noise multiplier, sample rate, steps)
        As that of Opacus' accountants.

    Examples
    --------
    >>> from dpsub.opacus import OpacusAccountant
    >>> accountant = OpacusAccountant()
    >>> for _ in range(100):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> len(accountant), accountant.history
    (100, [(1.0, 0.01, 100)])
    >>> 0.71 < accountant.get_epsilon(delta=1e-5) < 0.73
    True
    """

    def __init__(
        self,
        adjacency: str = "zero_out",
        *,
        effort: float | None = EFFORT,
        time_limit: float | None = None,
    ) -> None:
        self.adjacency = adjacency
        self.effort, self.time_limit = effort, time_limit
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Enter one step."""
        noise = checks.real("noise_multiplier", noise_multiplier, at_least=0)
        rate = checks.real("sample_rate", sample_rate, above=0, at_most=1)
        steps = 1
        if self.history and self.history[-1][:2] == (noise, rate):
            steps += self.history.pop()[2]
        self.history.append((noise, rate, steps))

    def ledger(self) -> Ledger:
        """The steps so far as a ledger, for every other question."""
        kinds = groupby(sorted(self.history), key=lambda entry: entry[:2])
        taken = [
            (noise, rate, sum(steps for _, _, steps in entries)) for (noise, rate), entries in kinds
        ]
        return Ledger(
            Release(Poisson(rate), None, noise, steps) for noise, rate, steps in taken if steps
        )

    def account(self, delta: float, **asked: Unpack[WidthKeywords]) -> Account:
        """Both bounds on epsilon at this delta, with conditions; options as those of
        `dpsub.Ledger.account`, by default those of the accountant. ArgumentError before the first
        step."""
        own = WidthKeywords(
            adjacency=self.adjacency, effort=self.effort, time_limit=self.time_limit
        )
        return self.ledger().account(delta=delta, **(own | asked))

    def get_epsilon(self, delta: float, **asked: Unpack[WidthKeywords]) -> float:
        """The proved epsilon at this delta, with options as in `account`; those of Opacus' own
        accountants count for nothing, and a warning names them. It is 0 before the first step, and
        infinite with a noise multiplier below 0.05."""
        for name in [name for name in asked if name in _OF_OPACUS]:
            warnings.warn(
                f"{name} is of Opacus' own accountants and counts for nothing here; drop it",
                stacklevel=2,
            )
            del asked[name]  # type: ignore[misc]  # no keyword of an account
        check_names(asked, WidthKeywords)
        taken = [entry for entry in self.history if entry[2]]
        if not taken:
            return 0.0
        if min(noise for noise, _, _ in taken) < MIN_SCALE:
            return math.inf
        return float(self.account(delta, **asked).upper)

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which Opacus knows the accountant."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """The function that Opacus' optimizer calls after each step."""

        def enter(optimizer: Any) -> None:
            if optimizer.accumulated_iterations != 1:
                raise UnsupportedError(
                    "a step must be one Poisson sample, got "
                    f"{optimizer.accumulated_iterations} accumulated batches, in which a record "
                    "may be several times; draw larger batches, with Opacus' BatchMemoryManager"
                )
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return enter

    def state_dict(
        self, destination: MutableMapping[str, Any] | None = None
    ) -> MutableMapping[str, Any]:
        """The history, for a checkpoint."""
        state: MutableMapping[str, Any] = {} if destination is None else destination
        state["history"] = list(self.history)
        state["mechanism"] = self.mechanism()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replace the history by that of a checkpoint, which an accountant of Opacus may have
        written.

        Raises
        ------
        ArgumentError
            If it is none; the history so far stays.
        """
        if not isinstance(state_dict, Mapping) or "history" not in state_dict:
            is_mapping = isinstance(state_dict, Mapping)
            got = ", ".join(map(str, state_dict)) if is_mapping else shortened(state_dict)
            raise ArgumentError(
                f"the state of an accountant needs its history, got {got or 'nothing'}; load the "
                "dictionary that state_dict returned"
            )
        entries = state_dict["history"]
        if not isinstance(entries, (list, tuple)):
            raise ArgumentError(
                "the history of an accountant must be a list of (noise multiplier, sample rate, "
                f"steps), got {shortened(entries)}; load the dictionary that state_dict returned"
            )
        self.history = [_entry(place, entry) for place, entry in enumerate(entries, start=1)]


def _entry(place: int, entry: Any) -> tuple[float, float, int]:
    """Return one entry of the history of a checkpoint; ArgumentError if it is not a valid entry."""
    if not isinstance(entry, (list, tuple)) or len(entry) != 3:
        raise ArgumentError(
            f"entry {place} of the history must be (noise multiplier, sample rate, steps), got "
            f"{shortened(entry)}; load what state_dict returned"
        )
    noise, rate, steps = entry
    try:
        return (
            checks.real("noise_multiplier", noise, at_least=0),
            checks.real("sample_rate", rate, above=0, at_most=1),
            checks.integer("steps", steps, at_least=0),
        )
    except ArgumentError as error:
        # a rate above 1 is most often a noise multiplier in its place
        raise ArgumentError(
            f"entry {place} of the history must be (noise multiplier, sample rate, steps), in this "
            f"order, got {shortened(entry)}: {error}"
        ) from None


def register(name: str = NAME) -> None:
    """Make the accountant known to Opacus, for `PrivacyEngine(accountant="dpsub")`.

    Raises
    ------
    UnsupportedError
        If Opacus is not installed, or has no registry of accountants.
    """
    try:
        accountants = import_module("opacus.accountants")
        registry = import_module("opacus.accountants.registry")
    except ModuleNotFoundError:
        raise UnsupportedError(
            "this needs Opacus with a registry of accountants (1.3 or later), which is not "
            "installed; pip install opacus"
        ) from None
    accountants.IAccountant.register(OpacusAccountant)
    registry.register_accountant(name, OpacusAccountant)

"""The answer to most questions: a lower and an upper bound of one privacy number.

An `Account` also gives the kind of its bounds, the theorems and attacks behind them, and the reason
why they are not closer. The module `proof` computes it, `refinement` tightens it, and `question`
asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions import hooks, words
from dpsub.accounting.questions.words import Asked, ShortText, Statement
from dpsub.errors import ArgumentError, NumericalError
from dpsub.relations import Relation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.accounting.questions.proof import Proof

KINDS = ("exact", "bounds", "upper", "lower", "paper")
"""exact: the worst data sets attain the value; the two bounds differ by numerical error alone,
within the requested width.  bounds: the upper bound is proved, and explicit data sets, perhaps
adaptive, attain the lower one, so that no guarantee below it can hold.  upper, lower: one of these
bounds; the other one is trivial: a lower one of 0, an epsilon that is infinite.  paper: bounds on
the value of the papers' pair, which is not a guarantee."""
WIDTH_MISSED = (
    "wider than requested: numerical limits stopped the refinement early; both bounds are valid"
)
"""Condition that is added to those of a quick answer where `Account.width_met` is false."""
WIDTH_REASONS = {
    "effort": "effort: the budget of work ended the refinement; raise effort",
    "numerics": "numerics: no finer grid brings the bounds closer",
    "theory": "theory: no closer proof or attack is known; more effort does not help",
    "quick": "quick: this is the first bound; ask without quick",
}
"""Reasons why bounds are farther apart than requested, and what would help."""


@dataclass(frozen=True)
class Account(ShortText):
    """Bounds on delta at an epsilon, or on epsilon at a delta, of a composed mechanism.

    Attributes
    ----------
    lower, upper : float, or ndarray with the shape of the question
        The number lies in [lower, upper]; epsilon in nats.
    kind : {"exact", "bounds", "upper", "lower", "paper"}
        See `KINDS`.
    pair, lower_pair : str
        The two distributions (or the proved profile) behind the upper bound, and the attack behind
        the lower bound.
    adjacency : Relation
    sensitivity : str
        By how much one occurrence of the differing record can change the released value.
    quantity : {"delta", "epsilon"}
    conditions : tuple of str
        The conditions of the upper bound; empty if it is not a guarantee.
    width_met : bool
        Whether the bounds are as close as requested. If not, both are still valid, and
        `width_reason` says why. For a quick answer: whether each bound is that accurate.
    theorem, lower_theorem : str
        What proves the upper bound, and where the attack behind the lower bound stands, with the
        page of docs/proofs.
    width_reason : str
        Why the bounds are farther apart than requested (effort, numerics or theory), and what would
        help; empty if they are not.
    asked : Asked or None
        The releases, and where the number was asked for; None if that is not known.
    attack_known : bool
        Whether any attack on these releases is known, even if its computed bound is trivial.
    settled : bool
        Whether finer grids would move none of the first bounds by a percent.
    """

    lower: Any
    upper: Any
    kind: str
    pair: str
    adjacency: Relation
    sensitivity: str
    quantity: str = "epsilon"
    lower_pair: str = ""
    conditions: tuple[str, ...] = ()
    width_met: bool = True
    theorem: str = ""
    lower_theorem: str = ""
    width_reason: str = ""
    asked: Asked | None = field(default=None, repr=False, compare=False)
    attack_known: bool = True
    settled: bool = field(default=False, repr=False, compare=False)
    _origin: tuple[Proof, Target] | None = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            near = ""
            if name in ("epsilon", "delta", "value"):
                near = "; the number lies in [lower, upper], and upper is the proved bound"
            raise AttributeError(f"an answer has no {name!r}{near}", name=name, obj=self)

    @property
    def relative_width(self) -> Any:
        """(upper - lower) / upper, with the shape of the bounds: 0 where both are 0, infinite where
        the upper bound is."""
        upper, lower = np.asarray(self.upper, dtype=float), np.asarray(self.lower, dtype=float)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(upper > lower, (upper - lower) / upper, 0.0)
        share = np.where(np.isinf(upper), np.inf, share)
        return share if share.ndim else float(share)

    def certificate(self) -> dict[str, Any]:
        """Return a certificate with which another program can prove this answer again, as plain
        values that `json.dump` writes.

        Ends are claimed with nine digits, rounded outwards.  docs/certificates.md describes the
        entries, and the program `verifier` checks them.

        Raises
        ------
        ArgumentError
            If the answer has several values, or is not a proved one (variant = paper).
        UnsupportedError
            If the proof of a bound cannot be written down.
        """
        if self._origin is None:
            raise ArgumentError(
                "a certificate needs one proved answer, got several values, variant = "
                "paper or a copy; ask for one epsilon or delta with variant rigorous, "
                "and take the certificate from the answer itself"
            )
        return hooks.certificate(self, *self._origin)

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.account_text(self)

    def statement(self, clip: float | str = "C", prior: float | None = None) -> Statement:
        """Return the sentence and the table for a paper, a model card or a registry of
        deployments.

        Parameters
        ----------
        clip : float or str
            The norm to which each vector was clipped.
        prior : float, optional
            Also say how often a secret value of a record is guessed that has this probability
            without the releases, in (0, 1) (`Curve.reconstruction`).

        Raises
        ------
        ArgumentError
            If the answer has several values, or guarantees nothing.
        """
        return hooks.statement(self, clip, prior=prior)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw both bounds over the number of steps, and write the picture if a path is given.

        Raises
        ------
        UnsupportedError
            Without matplotlib; the message says how to install it.
        ArgumentError
            If the answer has several values, or guarantees nothing; or for a path that does not
            end in .png, .pdf or .svg.
        """
        figure: Figure = hooks.plot(self, path)
        return figure

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the answer was computed from, which is large, from copies and pickles."""
        return {**self.__dict__, "_origin": None}

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if not np.all(np.less_equal(self.lower, self.upper)):
            raise ArgumentError(
                f"an interval needs lower <= upper, got [{self.lower}, {self.upper}]"
            )
        for name in ("lower", "upper"):
            end = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(self, name, end if end.ndim else float(end))
        object.__setattr__(self, "kind", self._kind_of_ends())

    def _kind_of_ends(self) -> str:
        """Return the kind of these bounds: it names no bound that is trivial in all values."""
        if self.kind == "paper":
            return self.kind
        is_proved = self.quantity == "delta" or bool(np.any(np.isfinite(self.upper)))
        if not is_proved:
            return "lower"
        is_attained = bool(np.any(np.greater(self.lower, 0)))
        # an epsilon is as exact as its width says, a delta of which nothing is attained is not
        is_told = is_attained or bool(np.all(np.equal(self.lower, self.upper)))
        if self.kind == "exact" and (is_told or (self.quantity == "epsilon" and self.width_met)):
            return self.kind
        return "bounds" if is_attained else "upper"


def given(target: Target) -> float:
    """Return the epsilon or delta at which the other one is asked for."""
    given = target.delta if target.epsilon is None else target.epsilon
    assert given is not None
    return float(given)


def joined(phrases: Iterable[str]) -> str:
    """Join the phrases that differ, in one line."""
    return "; ".join(dict.fromkeys(phrases))


def closest(before: Account, after: Account) -> Account:
    """Return the better bounds of two accounts of one number, each with its theorem or attack."""
    best = after
    if before.upper < after.upper:
        kept = {name: getattr(before, name) for name in ("upper", "pair", "theorem")}
        best = replace(best, **kept, _origin=before._origin)
    if before.lower > after.lower:
        kept = {name: getattr(before, name) for name in ("lower", "lower_pair", "lower_theorem")}
        best = replace(best, **kept)
    is_met = before.width_met or after.width_met
    reason = "" if is_met else after.width_reason
    settled = before.settled or after.settled
    return replace(best, width_met=is_met, width_reason=reason, settled=settled)


def stopped_by() -> str:
    """Return the reason where the budget stopped the refinement, or the time limit."""
    limit = work.struck()
    if limit is None:
        return WIDTH_REASONS["effort"]
    return (
        f"time: stopped by the time limit after {limit:g} s: another run may end elsewhere; "
        "drop time_limit"
    )


def without_note(answer: Account) -> tuple[str, ...]:
    return tuple(line for line in answer.conditions if line != WIDTH_MISSED)


def crossed(lower: float, upper: float) -> NumericalError:
    """Return the error for a lower bound above the upper one: one of them must be wrong.

    Its way out holds because less noise never guarantees more.
    """
    return NumericalError(
        f"bounds must not cross, got lower {lower!r} and upper {upper!r}: one of them "
        "is wrong; report the arguments, and until this is fixed use the upper bound of "
        "a slightly smaller noise_multiplier, which is valid here too"
    )

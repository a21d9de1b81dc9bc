"""Privacy of many releases from subsamples: upper bounds (proofs), lower bounds (attacks), and
the papers' formula."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting import answer as words
from dpsub.accounting.answer import Asked, ShortText
from dpsub.accounting.attacks import AdaptiveAttack, Played
from dpsub.accounting.bracket import Target
from dpsub.accounting.composition import Composition
from dpsub.accounting.game import FillerGame, GamePlayed, GameValue
from dpsub.accounting.own import OwnMechanism
from dpsub.accounting.pld import OutOfTimeError, deadline_after, is_late, time_limited
from dpsub.accounting.privacy_events import PairEvent
from dpsub.accounting.release import Group, Release
from dpsub.accounting.schemes import case_of, default_relation
from dpsub.accounting.schemes.case import Case
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation, relation_named
from dpsub.sampling.base import Sampler, StagedSampler
from dpsub.sampling.schedules import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.accounting.statement import Statement

KINDS = ("exact", "bounds", "upper", "lower", "paper")
"""exact: the worst data sets attain the value; the two ends differ by numerical error alone, within
the requested width.  bounds: the upper end is proved, and explicit data sets, perhaps adaptive,
attain the lower one, so that no guarantee below it can hold.  upper, lower: one of these ends; the
other one is trivial.  paper: bounds on the value of the papers' pair, which is not a guarantee."""
VARIANTS = ("rigorous", "paper")
WIDTH_MISSED = (
    "wider than requested: numerical limits stopped the refinement early; both ends are valid"
)
"""Added to the conditions of a quick answer where `Account.width_met` is false."""
SECONDS = 3.0
"""Time limit of an answer for which none is given."""
SHARE = {"epsilon": 5e-3, "delta": 5e-2}
"""How far apart the ends may be where no width is given, relative."""
# of epsilon, how far apart exact ends of schedules may be at most in the first bound
_SCHEDULE_SHARE = 4e-3
# each end may move by this share of the width where the distance of both counts
_EACH_END = 0.25
# games that are played for several values: each of them bounds all values
_MOST_PLAYS = 4
TIGHT_GOES = (
    "tight is what happens anyway, and goes in the next release: drop it; quick=True gives the "
    "bound that was the default"
)
WIDTH_REASONS = {
    "time": "time: the time limit ended the refinement; raise time_limit",
    "numerics": "numerics: no finer grid brings the ends closer",
    "theory": "theory: no closer proof or attack is known; more time does not help",
    "quick": "quick: this is the first bound; ask without quick",
}
"""Why ends are farther apart than requested, and what would help."""
_BY_NUMBER = "time: games were played for the widest values; ask for fewer values"
_BY_GAME = "the game over v, v' and the replaced vectors, with such choices grouped into cells"
_FILLER_FLIP = "Filler flip, docs/accounting.md 5"


@dataclass(frozen=True)
class Account(ShortText):
    """delta at an epsilon, or epsilon at a delta, of a composed mechanism, and the kind of this
    statement.

    Attributes
    ----------
    lower, upper : float, or ndarray with the shape of the question
        The number lies in [lower, upper]; epsilon in nats.
    kind : {"exact", "bounds", "upper", "lower", "paper"}
        See `KINDS`.
    pair, lower_pair : str
        The two distributions (or the proved profile) behind the upper end, and the attack behind
        the lower end.
    adjacency : Relation
    sensitivity : str
        By how much one occurrence of the differing record can change the released value.
    quantity : {"delta", "epsilon"}
    conditions : tuple of str
        The conditions of the upper end; empty if it is not a guarantee.
    width_met : bool
        Whether the requested width was reached. If not, both ends are still valid, and
        `width_reason` says why. Of a quick answer: whether each end is that accurate.
    theorem, lower_theorem : str
        What proves the upper end, and where the attack behind the lower end stands, with the
        section of docs/accounting.md.
    width_reason : str
        Why the ends are farther apart than requested (time, numerics or theory) and what would
        help; empty if they are not.
    asked : Asked or None
        The releases, and where the number was asked for; None if that is not known.
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
    _origin: tuple[Proof, Target] | None = field(default=None, repr=False, compare=False)

    @property
    def relative_width(self) -> Any:
        """(upper - lower) / upper, with the shape of the ends: 0 where both are 0, infinite where
        the upper end is."""
        upper, lower = np.asarray(self.upper, dtype=float), np.asarray(self.lower, dtype=float)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(upper > lower, (upper - lower) / upper, 0.0)
        share = np.where(np.isinf(upper), np.inf, share)
        return share if share.ndim else float(share)

    def certificate(self) -> dict[str, Any]:
        """What another program needs to prove this answer again, as plain values that `json.dump`
        writes.

        Ends are claimed with nine digits, rounded outwards.  docs/certificates.md describes the
        entries, and the program `verifier` checks them.

        Raises
        ------
        ArgumentError
            If the answer has several values, or is not a proved one (variant = paper).
        UnsupportedError
            If what gave an end cannot be written down.
        """
        # what is made of answers stands above this module
        from dpsub.accounting.certificate import certificate_of

        if self._origin is None:
            raise ArgumentError(
                "a certificate needs one proved answer, got several values, variant = "
                "paper or a copy; ask for one epsilon or delta with variant rigorous, "
                "and take the certificate from the answer itself"
            )
        return certificate_of(self, *self._origin)

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.account_text(self)

    def statement(self, clip: float | str = "C") -> Statement:
        """The sentence and the table for a paper, a model card or a registry of deployments.

        Parameters
        ----------
        clip : float or str
            The norm to which each vector was clipped.

        Raises
        ------
        ArgumentError
            If the answer has several values, or guarantees nothing.
        """
        # what is made of answers stands above this module
        from dpsub.accounting.statement import statement_of

        return statement_of(self, clip)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw both ends over the number of steps, and write the picture if a path is given.

        Raises
        ------
        UnsupportedError
            Without matplotlib; pip install 'dpsub[plot]'.
        ArgumentError
            If the answer has several values, or guarantees nothing; or for a path that does not
            end in .png, .pdf or .svg.
        """
        from dpsub.accounting import plot

        return plot.drawn(plot.account_figure, self, path)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: the answer without what it was computed from, which
        is large."""
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


def account(
    sampler: Sampler | Schedule,
    n: int | None = None,
    *,
    noise_multiplier: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    adjacency: str | None = None,
    mechanism: str | OwnMechanism = "gaussian",
    denominator: str = "fixed",
    group: Group = 1,
    variant: str = "rigorous",
    width: float | None = None,
    time_limit: float | None = SECONDS,
    quick: bool = False,
    tight: bool | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases from samples, from above
    and below.

    Parameters
    ----------
    sampler : Sampler or Schedule
        The sampler, drawn again at every step; or the schedule, drawn again for every epoch.
    n : int, optional
        Number of records; Poisson sampling, and schedules that do not depend on it, need none.
        Under add_remove it is that of the smaller data set; both have the same number of steps.
    noise_multiplier : float
        Scale of the noise on the sum over the norm bound of one record, from 0.05 to 1e9.
    steps : int, optional
        Number of releases, by default 1; for a schedule, whole epochs.
    epochs : int, optional
        For a schedule, instead of `steps`; by default 1.
    epsilon, delta : float or array_like
        Exactly one: epsilon in nats, >= 0; delta in (0, 1). An array costs little more than its
        most expensive value.
    adjacency : {"add_remove", "substitute", "zero_out"}, optional
        Default: add_remove for Poisson sampling (also cyclic or truncated) and random
        allocation, substitute otherwise. Under zero_out a record is replaced by one that
        contributes 0, and the number of records is public.
    mechanism : {"gaussian", "laplace"}
        Laplace noise is for scalar sums.
    denominator : {"fixed", "realised"}
        The sum and its noise are divided by a number fixed in advance, or by the realised size of
        the sample.
    group : int or tuple of int
        Number of records that one unit of privacy holds, at most. All of them are added, removed,
        replaced or zeroed out at once. Under add_remove also (g_plus, g_minus): as many are added
        and removed.
    variant : {"rigorous", "paper"}
        Proof and attack; or the papers' pair (unit shift per occurrence, one direction), which is
        not a guarantee.
    width : float, optional
        How far apart the ends may be, absolute for epsilon, relative for delta; by default half a
        percent of epsilon, 5 % of delta, and 1e-3 if that is less and the answer is exact up to
        numerical error. If theory leaves the ends farther apart, `width_reason` says so.
    time_limit : float or None
        Seconds after which the refinement stops: the ends reached by then are valid. None: no
        limit.
    quick : bool
        Return the first bound: `width` is then the accuracy of each end, by default 1e-3 for
        schedules and for answers that are exact up to numerical error, else 5e-3.
    tight : bool, optional
        Deprecated: True asks for what is the default now.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    References
    ----------
    balle, Theorems 8 to 11; must, Section 3.4 (variant paper); docs/accounting.md, where each bound
    is proved.

    Examples
    --------
    >>> import dpsub
    >>> poisson = dpsub.Poisson(0.01)
    >>> answer = dpsub.account(poisson, noise_multiplier=1.0, steps=100, delta=1e-5)
    >>> answer.kind, str(answer.adjacency), 0.71 < answer.lower <= answer.upper < 0.73
    ('exact', 'add_remove', True)
    >>> answer = dpsub.account(poisson, noise_multiplier=1.0, steps=100, delta=[1e-6, 1e-5])
    >>> answer.upper.round(1).tolist()
    [1.0, 0.7]
    >>> question = {"noise_multiplier": 1.0, "epsilon": 1.0}
    >>> printed = dpsub.account(dpsub.MustOW(2, 2), 4, **question, variant="paper")
    >>> attained = dpsub.account(dpsub.MustOW(2, 2), 4, **question)
    >>> printed.upper < 0.09 < 0.19 < attained.lower  # the paper's number is far below an attack
    True
    """
    quick = first_bound_only(quick, tight)
    release = Release.of(
        sampler, n, noise_multiplier, steps, epochs, mechanism, denominator, group=group
    )
    question = Question.of([release], adjacency, width, time_limit, quick)
    if checks.one_of("variant", variant, VARIANTS) == "rigorous":
        return question.account(epsilon, delta)
    with time_limited(question.deadline):
        return answers(_PaperPair(release, adjacency), question, epsilon, delta)


def first_bound_only(quick: bool, tight: bool | None) -> bool:
    """Whether the first bound is asked for; warns of `tight`, which is deprecated."""
    if tight is None:
        return quick
    warnings.warn(TIGHT_GOES, DeprecationWarning, stacklevel=3)
    return not tight


@dataclass(frozen=True)
class Question:
    """Releases from the same records, and how bounds on them are asked for: what accounts, curves,
    exports, checks, audits and selections share.

    Attributes
    ----------
    releases : sequence of Release
    adjacency : str or None
        As in `account`, as is the `width`.
    width : float or None
    deadline : float or None
        Of `time.monotonic`: what has been reached by then is the answer.
    quick : bool
        Whether the first bound will do.
    """

    releases: Sequence[Release]
    adjacency: str | None = None
    width: float | None = None
    deadline: float | None = None
    quick: bool = False

    @classmethod
    def of(
        cls,
        releases: Sequence[Release],
        adjacency: str | None = None,
        width: float | None = None,
        time_limit: float | None = None,
        quick: bool = False,
    ) -> Question:
        """A question that comes in now: what finding the theorems takes counts as well."""
        return cls(releases, adjacency, width, deadline_after(time_limit), quick)

    @property
    def first(self) -> Question:
        """The question for the first bound."""
        return replace(self, quick=True)

    @contextmanager
    def proof(self) -> Iterator[Proof]:
        """The theorems that apply, within the time of the question."""
        with time_limited(self.deadline):
            yield Proof.of(self.releases, self.adjacency)

    def account(self, epsilon: ArrayLike | None, delta: ArrayLike | None) -> Account:
        """Bound delta at `epsilon`, or epsilon at `delta`."""
        with self.proof() as proof:
            return answers(proof, self, epsilon, delta)


def answers(source: Proof | _PaperPair, question: Question, epsilon: Any, delta: Any) -> Account:
    """The account of one target; of an array of them, with the ends in its shape."""
    width = question.width

    def accounts_of(targets: Sequence[Target]) -> list[Account]:
        accounts = source.accounts(targets)
        if isinstance(source, _PaperPair):
            return accounts
        if width is None and source.has_schedule and source.composition.is_exact:
            accounts = list(map(source.sharpened, accounts, targets))
        return source.refined(accounts, targets, question)

    limits: dict[str, Any] = {
        "width": source.width if width is None else width,
        "deadline": question.deadline,
    }
    name, given = ("epsilon", epsilon) if delta is None else ("delta", delta)
    if np.ndim(given) == 0 or (epsilon is None) == (delta is None):
        [answer] = accounts_of([Target(epsilon, delta, **limits)])
        source.composition.forget()  # the answer knows what it was computed from, to certify it
        return answer
    values = checks.finite_array(name, given)
    if not values.size:
        raise ArgumentError(f"an array of {name} must hold at least one value, got none; give one")
    # in order: a grid that suits one value is tried first for the next
    unique, places = np.unique(values, return_inverse=True)
    accounts = accounts_of([Target(**{name: value}, **limits) for value in unique.tolist()])
    lower = np.array([answer.lower for answer in accounts])[places]
    upper = np.array([answer.upper for answer in accounts])[places]
    return replace(
        # the one that says so if the width was missed for any
        min(accounts, key=lambda answer: answer.width_met),
        lower=lower.reshape(values.shape),
        upper=upper.reshape(values.shape),
        # one number is what all of them bracket, or none
        kind=next((answer.kind for answer in accounts if answer.kind != "exact"), accounts[0].kind),
        pair=_joined(answer.pair for answer in accounts),
        lower_pair=_joined(answer.lower_pair for answer in accounts),
        theorem=_joined(answer.theorem for answer in accounts),
        lower_theorem=_joined(answer.lower_theorem for answer in accounts),
        width_reason=_joined(filter(None, (answer.width_reason for answer in accounts))),
        asked=Asked(source.releases, tuple(values.ravel().tolist())),
        _origin=None,
    )


def _given(target: Target) -> float:
    """The epsilon or delta at which the other one is asked for."""
    given = target.delta if target.epsilon is None else target.epsilon
    assert given is not None
    return float(given)


def _share_of(deadline: float | None, parts: float) -> float | None:
    """The deadline of the next one of so many parts, which share the time that is left."""
    if deadline is None:
        return None
    now = time.monotonic()
    return now + max(deadline - now, 0.0) / parts


def _joined(phrases: Iterable[str]) -> str:
    """Phrases that differ, in one line."""
    return "; ".join(dict.fromkeys(phrases))


@dataclass(frozen=True, eq=False)
class Proof:
    """The theorems that apply to releases of several kinds on the same records, before any number
    is computed.

    `policies` and `games` are what filler flips and games of its answers were played with, for
    certificates.
    """

    releases: tuple[Release, ...]
    cases: tuple[Case, ...]
    relation: Relation
    composition: Composition
    policies: list[Played] = field(default_factory=list)
    games: list[GamePlayed] = field(default_factory=list)

    @classmethod
    def of(cls, releases: Sequence[Release], adjacency: str | None = None) -> Proof:
        """Find the theorems that apply; UnsupportedError, with the reason, if none does."""
        relation = relation_of(releases, adjacency)
        groups = sorted({str(release.group) for release in releases})
        if len(groups) > 1:
            raise ArgumentError(
                f"releases from the same records need one group, got {' and '.join(groups)}; give "
                "all of them the largest"
            )
        cases = tuple(case_of(release, relation) for release in releases)
        entries = [
            (case.event, release.times) for case, release in zip(cases, releases, strict=True)
        ]
        return cls(tuple(releases), cases, relation, Composition(entries))

    @property
    def has_schedule(self) -> bool:
        """Whether any of the releases follow a schedule."""
        return any(isinstance(release.sampler, Schedule) for release in self.releases)

    @property
    def width(self) -> float:
        """Default accuracy: finer for exact answers and on schedules."""
        return 1e-3 if self.has_schedule or self.composition.is_exact else 5e-3

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        """Both ends for each of several targets, which share privacy loss distributions."""
        attack = _joined(case.attained for case in self.cases)
        if self.composition.is_exact:
            brackets = self.composition.brackets(targets)
            return [
                self._account(target, *bracket, attack)
                for target, bracket in zip(targets, brackets, strict=True)
            ]
        # the guarantee first: attacks get what time is left, of which some is
        upper_by = _share_of(targets[0].deadline, 4 / 3)
        uppers = self.composition.bounds([replace(each, deadline=upper_by) for each in targets])
        flips = self._filler_flips(targets)
        lowers = self.composition.attacks(targets, flips)
        accounts = []
        for target, upper, lower, flip in zip(targets, uppers, lowers, flips, strict=True):
            best_attack = attack
            if flip > lower.value:
                best_attack = f"{attack}, the fillers' sign chosen adaptively"
            width_met = lower.width_met and upper.width_met
            value = max(lower.value, flip)
            account = self._account(target, value, upper.value, width_met, best_attack)
            if flip > lower.value:
                account = replace(account, lower_theorem=_FILLER_FLIP)
            accounts.append(account)
        return accounts

    def _filler_flips(self, targets: Sequence[Target]) -> list[float]:
        """What the adaptive attack of section 5 attains; 0 where there is none."""
        pair = self.cases[0].filler_flip
        if len(self.releases) > 1 or pair is None:
            return [0.0] * len(targets)
        attack = AdaptiveAttack(pair, self.releases[0].steps, self.policies)
        with time_limited(targets[0].deadline):
            return attack.answers(targets)

    def account(self, target: Target) -> Account:
        return self.accounts([target])[0]

    def sharpened(self, answer: Account, target: Target) -> Account:
        """An exact epsilon with ends that are a share of it apart, as a schedule's may be large."""
        width = _SCHEDULE_SHARE * answer.upper
        if target.epsilon is not None or answer.upper - answer.lower <= width:
            return answer
        again = self.account(replace(target, width=width))
        # the time may have ended it early
        return again if again.upper - again.lower < answer.upper - answer.lower else answer

    def refined(
        self, answers: Sequence[Account], targets: Sequence[Target], question: Question
    ) -> list[Account]:
        """The accounts with their ends brought to within the width of the question, by default
        `SHARE`; the reason where they are not. Quick ones stay as they are."""
        asked = [
            self._asked(answer, target, question.width)
            for answer, target in zip(answers, targets, strict=True)
        ]
        if question.quick:
            return [_first_bound(*each) for each in zip(answers, asked, strict=True)]
        ends = [
            _Ends(replace(answer, conditions=_without_note(answer)), each, target.width)
            for answer, each, target in zip(answers, asked, targets, strict=True)
        ]
        wide = [each for each in ends if each.is_wide and each.account.upper > 0]
        if self.tightens:
            self.play(wide)
        else:
            self._look_closer(wide)
        return [each.answer() for each in ends]

    def _asked(self, answer: Account, target: Target, width: float | None) -> Target:
        """The target with the width that both ends are to have together."""
        if width is not None:
            return replace(target, width=width)
        # an epsilon's own size is what its accuracy is measured by
        unit = float(answer.upper) if answer.quantity == "epsilon" else 1.0
        share = SHARE[answer.quantity] * unit
        return replace(target, width=share if 0 < share < math.inf else target.width)

    def _look_closer(self, wide: Sequence[_Ends]) -> None:
        """Look for better ends on finer grids, where these may help."""
        share = 1.0 if self.composition.is_exact else _EACH_END
        finer = []
        for ends in wide:
            if not self.composition.is_exact and not ends.may_be_numerics:
                # nor would more time help, where there was enough of it
                ends.is_timed = not ends.account.width_met
                continue
            ends.reason = WIDTH_REASONS["numerics"]
            if share * ends.asked.width < self.width:
                finer.append(ends)
        if not finer:
            return
        targets = [replace(ends.asked, width=share * ends.asked.width) for ends in finer]
        for ends, again in zip(finer, self.accounts(targets), strict=True):
            ends.keep(again)

    def game_values(self, targets: Sequence[Target]) -> tuple[list[GameValue], str]:
        """What games for these targets prove at all orders, and why their ends are not closer."""
        accounts = self.accounts(targets)
        ends = [_Ends(*each) for each in zip(accounts, targets, strict=True)]
        values = self.play([each for each in ends if each.is_wide])
        return values, next((each.answer().width_reason for each in ends if each.is_wide), "")

    def play(self, wide: Sequence[_Ends]) -> list[GameValue]:
        """Lower upper ends by the game of the adaptive adversary, and return what was played: the
        widest ends come first, and what is played for them bounds all."""
        values: list[GameValue] = []
        left = list(wide)
        for plays in range(min(len(left), _MOST_PLAYS), 0, -1):
            ends = max(left, key=lambda each: each.gap)
            left.remove(ends)
            # half of the time, so that a first game comes to an end
            played = self._played(ends, _share_of(ends.asked.deadline, min(plays, 2)))
            for other in wide:
                other.tighten(played, self.cases[0])
            values += played
            left = [each for each in left if each.is_wide]
            if not left:
                break
        for ends in left:
            ends.reason = _BY_NUMBER
        return values

    def _played(self, ends: _Ends, deadline: float | None) -> list[GameValue]:
        """The games played for these ends, which learn why they are not closer."""
        game = self.cases[0].game
        assert game is not None
        lower, upper = float(ends.account.lower), float(ends.account.upper)
        if not upper < math.inf:
            ends.reason = WIDTH_REASONS["numerics"]  # nothing from which to start
            return []
        reasons: list[str] = []
        values: list[GameValue] = []
        # a play that does not end in time proves nothing: the first bound stands
        with time_limited(deadline), suppress(OutOfTimeError):
            steps, spread = self.releases[0].steps, self.composition.spread
            played = FillerGame(game.cells(), steps, spread, self.games, reasons, values)
            played.answer(replace(ends.asked, deadline=deadline), lower, upper)
        ends.reason = WIDTH_REASONS[reasons[-1] if reasons else "time"]
        return values

    @property
    def tightens(self) -> bool:
        """Whether a game brings the upper end closer to the lower one."""
        return (
            not self.composition.is_exact
            and len(self.releases) == 1
            and self.cases[0].game is not None
        )

    def tightened(self, answer: Account, target: Target, width: float | None) -> Account:
        """An account with an upper end from the game of the adaptive adversary, until both ends are
        `width` apart; UnsupportedError where there is no such game."""
        if self.composition.is_exact:
            return answer
        if not self.tightens:
            raise UnsupportedError(
                "tight bounds exist only under substitute: without replacement, and "
                "with Gaussian noise also with replacement, alone or after one other stage; "
                "and under zero_out without replacement, with Gaussian noise; ask for the "
                "quick bound"
            )
        if not answer.upper > 0:
            return answer
        ends = _Ends(answer, self._asked(answer, target, width or None))
        self.play([ends])
        note = (WIDTH_MISSED,) if ends.is_wide else ()
        return replace(
            ends.account,
            width_met=not ends.is_wide,
            width_reason=ends.reason if ends.is_wide else "",
            conditions=(*_without_note(answer), *note),
        )

    @property
    def theorem(self) -> str:
        """What proves the upper end of the first bound."""
        return _joined(case.theorem.text for case in self.cases)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of an upper end."""
        return tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))

    @property
    def attack_stands(self) -> str:
        """Where the attacks of the lower end stand; where both ends are one number, its theorem."""
        if self.composition.is_exact:
            return self.theorem
        return _joined(f"Attack, docs/accounting.md {case.attack_section}" for case in self.cases)

    def upper(self, target: Target) -> Account:
        """The upper end alone, of kind upper; both where they are computed together."""
        if self.composition.is_exact:
            return self.account(target)
        upper, width_met = self.composition.bound(target)
        return self._account(target, 0.0, upper, width_met, attack="")

    def _account(
        self, target: Target, lower: float, upper: float, width_met: bool, attack: str
    ) -> Account:
        # no loss is larger, with Laplace noise: beyond it delta is 0
        largest_loss = self.composition.largest_loss
        if target.epsilon is None:
            upper = min(upper, largest_loss)
        elif target.epsilon >= largest_loss:
            upper = 0.0
        # ends of one number may cross by their rounding, which is of this size; by more, one is
        # wrong
        if lower > upper * (1 + 1e-9) + 1e-12:
            raise crossed(lower, upper)
        kind = "bounds" if attack else "upper"
        if self.composition.is_exact:
            kind = "exact"
        conditions = self.conditions
        return Account(
            min(lower, upper),
            upper,
            kind=kind,
            pair=_joined(case.proved for case in self.cases),
            lower_pair=attack,
            adjacency=self.relation,
            sensitivity=self.cases[0].sensitivity,
            quantity=target.quantity,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
            width_met=width_met,
            theorem=self.theorem,
            lower_theorem=self.attack_stands if attack else "",
            asked=Asked(self.releases, (_given(target),)),
            _origin=(self, target),
        )


class _Ends:
    """Both ends of one answer while they are brought together, and why they are not closer.

    Parameters
    ----------
    account : Account
        The first bound.
    asked : Target
        With the width that both ends are to have together.
    accuracy : float
        Of each end of the first bound, as widths are measured.
    """

    def __init__(self, account: Account, asked: Target, accuracy: float = 0.0) -> None:
        self.account, self.asked, self.accuracy = account, asked, accuracy
        self.reason = WIDTH_REASONS["numerics" if account.kind == "exact" else "theory"]
        self.is_timed = True
        """Whether more time might help."""

    @property
    def gap(self) -> float:
        return self.asked.gap(self.account.lower, self.account.upper)

    @property
    def is_wide(self) -> bool:
        return self.gap > 1

    @property
    def may_be_numerics(self) -> bool:
        """Whether ends that are as accurate as first bounds are may be as close as asked."""
        account, width = self.account, self.asked.width
        unit = 1.0 if account.quantity == "epsilon" else account.upper
        apart = account.upper - account.lower - 2 * self.accuracy * unit
        return bool(apart <= width * unit)

    def keep(self, again: Account) -> None:
        """Keep the better ones of these ends and of others."""
        lower = max(self.account.lower, again.lower)
        upper = min(self.account.upper, again.upper)
        best = again if again.lower >= self.account.lower else self.account
        conditions = self.account.conditions
        self.account = replace(best, lower=lower, upper=upper, conditions=conditions)

    def tighten(self, values: Sequence[GameValue], case: Case) -> None:
        """Lower the upper end to what games prove."""
        lower, upper = float(self.account.lower), float(self.account.upper)
        tightest = min((value.answer(self.asked) for value in values), default=upper)
        if max(tightest, lower) >= upper:
            return
        assert case.game is not None
        self.account = replace(
            self.account,
            upper=max(tightest, lower),
            pair=_BY_GAME,
            theorem=case.game.theorem.text,
        )

    def answer(self) -> Account:
        """The account with its reason."""
        is_wide = self.is_wide
        reason = self.reason if is_wide else ""
        if is_wide and self.is_timed and is_late(self.asked.deadline):
            reason = WIDTH_REASONS["time"]
        # both ends are about one number, but that is more than wide ends say
        kind = "bounds" if is_wide and self.account.kind == "exact" else self.account.kind
        return replace(self.account, kind=kind, width_met=not is_wide, width_reason=reason)


def _first_bound(answer: Account, asked: Target) -> Account:
    """A quick answer, which says that it is one."""
    reason = WIDTH_REASONS["quick"] if asked.gap(answer.lower, answer.upper) > 1 else ""
    if not answer.width_met:
        reason = WIDTH_REASONS["time" if is_late(asked.deadline) else "numerics"]
    return replace(answer, width_reason=reason)


def _without_note(answer: Account) -> tuple[str, ...]:
    return tuple(line for line in answer.conditions if line != WIDTH_MISSED)


def relation_of(releases: Sequence[Release], adjacency: str | None) -> Relation:
    """The relation that is asked for; by default add_remove if it is that of all releases, else
    substitute."""
    if adjacency is not None:
        return relation_named(adjacency)
    defaults = {default_relation(release) for release in releases}
    return Relation.ADD_REMOVE if defaults <= {Relation.ADD_REMOVE} else Relation.SUBSTITUTE


def crossed(lower: float, upper: float) -> NumericalError:
    """The error of two ends that contradict each other, so that one is wrong. Its way out: what
    less noise guarantees is true of more."""
    return NumericalError(
        f"bounds must not cross, got lower {lower!r} and upper {upper!r}: one of them "
        "is wrong; report the arguments, and until this is fixed use the upper end of "
        "a slightly smaller noise_multiplier, which is valid here too"
    )


class _PaperPair:
    """What the papers' pair gives, from both sides (must, Section 3.4 and Sections S5 and S6 of its
    supplement)."""

    width = 1e-3

    def __init__(self, release: Release, adjacency: str | None) -> None:
        if release.mechanism != "gaussian":
            raise ArgumentError(
                "variant paper covers Gaussian noise only, got mechanism = "
                f"{release.mechanism}; use variant rigorous"
            )
        if not isinstance(release.sampler, StagedSampler):
            raise ArgumentError(
                "variant paper covers chains of stages only, got "
                f"{release.sampler.name}; use variant rigorous"
            )
        if release.denominator != "fixed":
            raise ArgumentError(
                "variant paper takes no denominator, got denominator = "
                f"{release.denominator}; drop it"
            )
        if release.group != 1:
            raise ArgumentError(
                f"variant paper is about one record, got group = {release.group}; drop it"
            )
        case = case_of(release, default_relation(release))
        assert case.papers_pair is not None  # which every chain has
        self.pair = case.papers_pair()
        self.releases = (release,)
        if adjacency is not None and relation_named(adjacency) != self.pair.relation:
            raise ArgumentError(
                f"variant paper covers this sampler under {self.pair.relation} only, "
                f"got adjacency = {adjacency}; drop it"
            )
        self.composition = Composition([(PairEvent(self.pair, one_direction=True), release.steps)])

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        brackets = self.composition.brackets(targets)
        return [
            Account(
                lower,
                upper,
                kind="paper",
                pair=f"{self.pair.label}, s = {self.pair.deviation:g}",
                adjacency=self.pair.relation,
                sensitivity="one occurrence of the record moves the sum by C",
                quantity=target.quantity,
                lower_pair="the same pair",
                width_met=width_met,
                width_reason="" if width_met else WIDTH_REASONS["numerics"],
                asked=Asked(self.releases, (_given(target),)),
            )
            for target, (lower, upper, width_met) in zip(targets, brackets, strict=True)
        ]

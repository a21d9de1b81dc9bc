"""Both ends of a privacy number of many releases from subsamples: an upper bound, by the theorems
that apply, and a lower bound, by attacks; and how they are brought together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import LEAST_DELTA, Bracket, End, Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.questions import words
from dpsub.accounting.questions.first_lower import first_lower
from dpsub.accounting.questions.first_upper import first_upper
from dpsub.accounting.questions.words import Asked, ShortText
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of, default_relation
from dpsub.accounting.schemes.case import Case
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation, relation_named
from dpsub.sampling.schedules import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.accounting.games.filler_flip import Played
    from dpsub.accounting.games.game import GamePlayed, GameValue
    from dpsub.accounting.questions.statement import Statement

KINDS = ("exact", "bounds", "upper", "lower", "paper")
"""exact: the worst data sets attain the value; the two ends differ by numerical error alone, within
the requested width.  bounds: the upper end is proved, and explicit data sets, perhaps adaptive,
attain the lower one, so that no guarantee below it can hold.  upper, lower: one of these ends; the
other one is trivial: a lower one of 0, an epsilon that is infinite.  paper: bounds on the value of
the papers' pair, which is not a guarantee."""
WIDTH_MISSED = (
    "wider than requested: numerical limits stopped the refinement early; both ends are valid"
)
"""Added to the conditions of a quick answer where `Account.width_met` is false."""
SHARE = {"epsilon": 5e-3, "delta": 5e-2}
"""How far apart the ends may be where no width is given, relative."""
# of epsilon, how far apart exact ends of schedules may be at most in the first bound
_SCHEDULE_SHARE = 4e-3
# each end may move by this share of the width where the distance of both counts
_EACH_END = 0.25
# games that are played for several values: each of them bounds all values
_MOST_PLAYS = 4
WIDTH_REASONS = {
    "effort": "effort: the budget of work ended the refinement; raise effort",
    "numerics": "numerics: no finer grid brings the ends closer",
    "theory": "theory: no closer proof or attack is known; more effort does not help",
    "quick": "quick: this is the first bound; ask without quick",
}
"""Why ends are farther apart than requested, and what would help."""
_BY_NUMBER = "effort: games were played for the widest values; ask for fewer values"
_BY_GAME = "the game over v, v' and the replaced vectors, with such choices grouped into cells"
_FILLER_FLIP = "Filler flip, docs/accounting.md 5"
_FIRST_ATTACK = "First attack, docs/accounting.md 4.10"
_FIRST_ENDS = 8  # of many targets, for which first ends are computed


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
        Why the ends are farther apart than requested (effort, numerics or theory) and what would
        help; empty if they are not.
    asked : Asked or None
        The releases, and where the number was asked for; None if that is not known.
    attack_known : bool
        Whether an attack on these releases is known, be it that its computed part attains nothing.
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
        from dpsub.accounting.questions.certificate import certificate_of

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
        from dpsub.accounting.questions.statement import statement_of

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
        from dpsub.accounting.questions import plot

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
        object.__setattr__(self, "kind", self._kind_of_ends())

    def _kind_of_ends(self) -> str:
        """The kind, which names no end that is trivial; of an array one that is not will do."""
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
    """The epsilon or delta at which the other one is asked for."""
    given = target.delta if target.epsilon is None else target.epsilon
    assert given is not None
    return float(given)


def joined(phrases: Iterable[str]) -> str:
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
    searches: dict[tuple[float | None, float | None], Any] = field(default_factory=dict)
    _flips: dict[tuple[Any, ...], list[float]] = field(default_factory=dict)

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
        """Both ends for each of several targets in order, which share privacy loss
        distributions."""
        return self._with_first_ends(self._accounts(targets), targets)

    def _accounts(self, targets: Sequence[Target]) -> list[Account]:
        """The same by privacy loss distributions alone, ends trivial where there are none."""
        attack = joined(filter(None, (case.attained for case in self.cases)))
        if self.composition.is_exact:
            brackets = [Bracket(0.0, target.ceiling, False) for target in targets]
            with suppress(NumericalError):  # first ends are there where no grid is
                brackets = self.composition.brackets(targets)
            return [
                self._account(target, *bracket, attack)
                for target, bracket in zip(targets, brackets, strict=True)
            ]
        # the guarantee first: attacks get what work is left, of which some is
        uppers = [End(target.ceiling, False) for target in targets]
        with work.share(3 / 4), suppress(NumericalError):
            uppers = self.composition.bounds(targets)
        flips = self._filler_flips(targets)
        lowers = [End(0.0, False)] * len(targets)
        with suppress(NumericalError):
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

    def first_ends(self, targets: Sequence[Target]) -> list[Account]:
        """Ends that cost milliseconds (section 4.10), for targets in order. Of many of them some
        are computed, and each of these ends holds for those on one side."""
        last = len(targets) - 1
        places = np.unique(np.linspace(0, last, min(last + 1, _FIRST_ENDS)).astype(int)).tolist()
        known = self.cases, self.releases
        uppers = {i: first_upper(*known, self.relation, targets[i]) for i in places}
        lowers = {i: first_lower(*known, targets[i]) for i in places}
        accounts = []
        for i, target in enumerate(targets):
            # epsilon falls with delta, and delta with epsilon
            upper = uppers[max(place for place in places if place <= i)]
            lower = lowers[min(place for place in places if place >= i)]
            attack = lower.given_by if lower.value > 0 else ""
            value = min(lower.value, upper.value)
            first = self._account(target, value, upper.value, False, attack)
            kind = "bounds" if attack else "upper"
            first = replace(
                first, kind=kind, conditions=self.conditions, width_reason=WIDTH_REASONS["effort"]
            )
            # where both ends are about one number, its theorem proves closed forms of it, too
            if not self.composition.is_exact:
                first = replace(
                    first,
                    pair=upper.given_by.partition(",")[0],
                    theorem=upper.given_by,
                    lower_theorem=_FIRST_ATTACK if attack else "",
                )
            accounts.append(first)
        return accounts

    def _with_first_ends(
        self, accounts: Sequence[Account], targets: Sequence[Target]
    ) -> list[Account]:
        """The accounts, those with a trivial end with first ends in its place."""
        trivial = [
            i
            for i, (account, target) in enumerate(zip(accounts, targets, strict=True))
            if not 0 < account.lower <= account.upper < target.ceiling
        ]
        found = list(accounts)
        firsts = self.first_ends([targets[i] for i in trivial]) if trivial else []
        for i, first in zip(trivial, firsts, strict=True):
            closest = _closest(first, found[i])
            # of one number both ends stay ends of one number
            kind = "exact" if self.composition.is_exact else closest.kind
            found[i] = replace(closest, kind=kind)
        return found

    def _filler_flips(self, targets: Sequence[Target]) -> list[float]:
        """What the adaptive attack of section 5 attains; 0 where there is none."""
        pair = self.cases[0].filler_flip
        if len(self.releases) > 1 or pair is None:
            return [0.0] * len(targets)
        # what is played is imported where it is: most accounts play nothing
        from dpsub.accounting.games.filler_flip import AdaptiveAttack

        key = tuple((target.epsilon, target.delta) for target in targets)
        if key not in self._flips:
            before = work.refusals()
            attack = AdaptiveAttack(pair, self.releases[0].steps, self.policies)
            answers = attack.answers(targets)
            # what a larger budget would not change is played once
            if work.refusals() > before:
                return answers
            self._flips[key] = answers
        return self._flips[key]

    def account(self, target: Target) -> Account:
        """Both ends for one target, as `accounts`."""
        return self.accounts([target])[0]

    def refined_by_rungs(
        self, targets: Sequence[Target], width: float | None, effort: float, *, quick: bool = False
    ) -> list[Account]:
        """The accounts of a question: tried with more and more work, until their width is met or
        more work would change nothing. The best ends of all tries are kept."""
        # where the width alone decides when it is enough, first ends only stand in for trivial ones
        best = [] if quick or effort == math.inf else self.first_ends(targets)
        # a first bound is one try
        for rung in [effort] if quick else work.rungs(effort):
            before = work.refusals()
            with work.limited(rung):
                again = self._tried(targets, width, quick)
            best = list(map(_closest, best, again)) if best else again
            if not quick:
                best = [self._met(*each, width) for each in zip(best, targets, strict=True)]
            if work.refusals() == before or all(answer.width_met for answer in best):
                return best
        return [_stopped(answer) for answer in best]

    def _met(self, answer: Account, target: Target, width: float | None) -> Account:
        """The account, whose width may be met by ends of several tries."""
        if self._asked(answer, target, width).gap(answer.lower, answer.upper) > 1:
            return answer
        return replace(answer, width_met=True, width_reason="", conditions=_without_note(answer))

    def _tried(self, targets: Sequence[Target], width: float | None, quick: bool) -> list[Account]:
        """The accounts of a question, with the work that is left."""
        accounts = self.accounts(targets)
        if width is None and self.has_schedule and self.composition.is_exact:
            accounts = list(map(self.sharpened, accounts, targets))
        return self.refined(accounts, targets, width, quick)

    def sharpened(self, answer: Account, target: Target) -> Account:
        """An exact epsilon with ends that are a share of it apart, as a schedule's may be large."""
        width = _SCHEDULE_SHARE * answer.upper
        if target.epsilon is not None or answer.upper - answer.lower <= width:
            return answer
        again = self.account(replace(target, width=width))
        # the budget may have ended it early
        return again if again.upper - again.lower < answer.upper - answer.lower else answer

    def refined(
        self,
        answers: Sequence[Account],
        targets: Sequence[Target],
        width: float | None,
        quick: bool,
    ) -> list[Account]:
        """The accounts with their ends brought to within the width of the question, by default
        `SHARE`; the reason where they are not. Quick ones stay as they are."""
        asked = [
            self._asked(answer, target, width)
            for answer, target in zip(answers, targets, strict=True)
        ]
        if quick:
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
        # an epsilon's own size is what its accuracy is measured by: at least its lower end
        size = answer.lower if 2 * answer.lower > answer.upper else answer.upper
        unit = float(size) if answer.quantity == "epsilon" else 1.0
        share = SHARE[answer.quantity] * unit
        return replace(target, width=share if 0 < share < math.inf else target.width)

    def _look_closer(self, wide: Sequence[_Ends]) -> None:
        """Look for better ends on finer grids, where these may help."""
        share = 1.0 if self.composition.is_exact else _EACH_END
        finer = []
        for ends in wide:
            if not self.composition.is_exact and not ends.may_be_numerics:
                # nor would more effort help, where there was enough of it
                continue
            ends.reason = WIDTH_REASONS["numerics"]
            if share * ends.asked.width < self.width:
                finer.append(ends)
        if not finer:
            return
        targets = [replace(ends.asked, width=share * ends.asked.width) for ends in finer]
        for ends, again in zip(finer, self.accounts(targets), strict=True):
            ends.keep(again)
            if again.width_met and not self.composition.is_exact:
                # each end is as accurate as was asked, so that what is between them is no numerics
                ends.reason = WIDTH_REASONS["theory"]

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
            # half of the work, so that a first game comes to an end
            with work.share(1 / min(plays, 2)):
                played = self._played(ends)
            for other in wide:
                other.tighten(played, self.cases[0])
            values += played
            left = [each for each in left if each.is_wide]
            if not left:
                break
        for ends in left:
            ends.reason = _BY_NUMBER
        return values

    def _played(self, ends: _Ends) -> list[GameValue]:
        """The games played for these ends, which learn why they are not closer."""
        game = self.cases[0].game
        assert game is not None
        lower, upper = float(ends.account.lower), float(ends.account.upper)
        if not upper < math.inf:
            ends.reason = WIDTH_REASONS["numerics"]  # nothing from which to start
            return []
        from dpsub.accounting.games.covers import FillerGame

        reasons: list[str] = []
        values: list[GameValue] = []
        # a play that does not come to its end proves nothing: the first bound stands
        with suppress(OutOfWorkError):
            steps, spread = self.releases[0].steps, self.composition.spread
            played = FillerGame(
                game.cells(), steps, spread, self.games, reasons, values, self.searches
            )
            played.answer(ends.asked, lower, upper)
        ends.reason = WIDTH_REASONS[reasons[-1] if reasons else "effort"]
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
        return joined(case.theorem.text for case in self.cases)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of an upper end."""
        return tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))

    @property
    def attack_stands(self) -> str:
        """Where the attacks of the lower end stand; where both ends are one number, its theorem."""
        if self.composition.is_exact:
            return self.theorem
        return joined(f"Attack, docs/accounting.md {case.attack_section}" for case in self.cases)

    def upper(self, target: Target) -> Account:
        """The upper end alone, of kind upper; both where they are computed together."""
        if self.composition.is_exact:
            return self.account(target)
        upper, width_met = target.ceiling, False
        with suppress(NumericalError):
            upper, width_met = self.composition.bound(target)
        account = self._account(target, 0.0, upper, width_met, attack="")
        if account.upper < target.ceiling:
            return account
        first = first_upper(self.cases, self.releases, self.relation, target)
        return replace(account, upper=first.value, theorem=first.given_by)

    def _account(
        self, target: Target, lower: float, upper: float, width_met: bool, attack: str
    ) -> Account:
        # no loss is larger, with Laplace noise: beyond it delta is 0
        largest_loss = self.composition.largest_loss
        if target.epsilon is None:
            upper = min(upper, largest_loss)
        else:
            # elsewhere it is not 0, be it smaller than any double ("Underflow")
            upper = 0.0 if target.epsilon >= largest_loss else max(upper, LEAST_DELTA)
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
            pair=joined(case.proved for case in self.cases),
            lower_pair=attack,
            adjacency=self.relation,
            sensitivity=self.cases[0].sensitivity,
            quantity=target.quantity,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
            width_met=width_met,
            theorem=self.theorem,
            lower_theorem=self.attack_stands if attack else "",
            asked=Asked(self.releases, (given(target),)),
            attack_known=self.composition.attacked,
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
        if self.asked.epsilon is not None:
            # bounds of a game underflow, too
            tightest = max(tightest, LEAST_DELTA)
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
        # both ends are about one number, but that is more than wide ends say
        kind = "bounds" if is_wide and self.account.kind == "exact" else self.account.kind
        return replace(self.account, kind=kind, width_met=not is_wide, width_reason=reason)


def _first_bound(answer: Account, asked: Target) -> Account:
    """A quick answer, which says that it is one."""
    reason = WIDTH_REASONS["quick"] if asked.gap(answer.lower, answer.upper) > 1 else ""
    if not answer.width_met:
        reason = WIDTH_REASONS["numerics"]
    return replace(answer, width_reason=reason)


def _closest(before: Account, after: Account) -> Account:
    """The better ends of two accounts of one number, each with what proves or attains it."""
    best = after
    if before.upper < after.upper:
        kept = {name: getattr(before, name) for name in ("upper", "pair", "theorem")}
        best = replace(best, **kept, _origin=before._origin)
    if before.lower > after.lower:
        kept = {name: getattr(before, name) for name in ("lower", "lower_pair", "lower_theorem")}
        best = replace(best, **kept)
    is_met = before.width_met or after.width_met
    return replace(best, width_met=is_met, width_reason="" if is_met else after.width_reason)


def _stopped(answer: Account) -> Account:
    """An account whose ends more work might bring closer."""
    if answer.width_met:
        return answer
    return replace(answer, width_reason=stopped_by())


def stopped_by() -> str:
    """The reason of ends that the budget ended, or the time limit."""
    limit = work.struck()
    if limit is None:
        return WIDTH_REASONS["effort"]
    return (
        f"time: stopped by the time limit after {limit:g} s: another run may end elsewhere; "
        "drop time_limit"
    )


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

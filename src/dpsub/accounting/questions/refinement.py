"""Refinement of an account: its bounds are brought together until they are as close as requested.

This takes finer grids and the game of the adaptive adversary, with more and more work; the account
says why its bounds are not closer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import LEAST_DELTA, PERCENT, Target
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.questions.account import (
    WIDTH_MISSED,
    WIDTH_REASONS,
    Account,
    closest,
    stopped_by,
    without_note,
)
from dpsub.accounting.questions.proof import Proof, Shares
from dpsub.accounting.schemes.case import Case
from dpsub.errors import UnsupportedError

if TYPE_CHECKING:
    from dpsub.accounting.games.game import GameValue

SHARE = {"epsilon": 5e-3, "delta": 5e-2}
"""Distance of the bounds where no width is given, relative."""
# of epsilon, how far apart exact bounds of schedules may be at first
_SCHEDULE_SHARE = 4e-3
# each bound may move by this share of the width where the distance of both counts
_EACH_END = 0.25
# where a game follows, which comes closer
_BEFORE_GAMES = Shares(upper=1 / 16, flips=0.45, attacks=1 / 2)
# games that are played for several values: each of them bounds all values
_MOST_PLAYS = 4
_BY_NUMBER = "effort: games were played for the widest values; ask for fewer values"
_BY_GAME = "the game over v, v' and the replaced vectors, with such choices grouped into cells"


@dataclass(frozen=True)
class AccountRefinement:
    """Refinement of the accounts of a proof until their bounds are as close as requested.

    Attributes
    ----------
    proof : Proof
    width : float or None
        How far apart both bounds may be, as in `account`; by default `SHARE`.
    quick : bool
        Whether the first bound will do.
    """

    proof: Proof
    width: float | None = None
    quick: bool = False

    def accounts(self, targets: Sequence[Target], effort: float) -> list[Account]:
        """Return the accounts of these targets: tried with more and more work, until their width is
        met or more work would change nothing. The best bounds of all tries are kept."""
        # where the width alone decides when it is enough, closed-form bounds only stand in for
        # trivial ones
        best = [] if self.quick or effort == math.inf else self.proof.first_ends(targets)
        # a first bound is one try
        for rung in [effort] if self.quick else work.rungs(effort):
            before = work.refusals()
            with work.limited(rung):
                best = self._tried(targets, best)
            if work.refusals() == before or all(answer.width_met for answer in best):
                break
        else:
            best = [_stopped(answer) for answer in best]
        if self.quick or effort == math.inf or not self.proof.tightens:
            return best
        return list(map(self._as_quick, best, targets))

    def _as_quick(self, answer: Account, target: Target) -> Account:
        """Return the account with an upper bound no larger than that of the first bound, which
        matters where little work was left for theorems, as a game took most of it."""
        proved = self.proof.upper(target)
        if not proved.upper < answer.upper:
            return answer
        upper = max(proved.upper, answer.lower)
        found = replace(answer, upper=upper, pair=proved.pair, theorem=proved.theorem)
        if _Ends(found, target, self.width).is_wide:
            return found
        return replace(found, width_met=True, width_reason="", conditions=without_note(found))

    def tightened(self, answer: Account, target: Target) -> Account:
        """Return the account with an upper bound from the game of the adaptive adversary, until
        both bounds are as close as asked; UnsupportedError where there is no such game."""
        if self.proof.composition.is_exact:
            return answer
        if not self.proof.tightens:
            raise UnsupportedError(
                "tight bounds exist only under substitute: without replacement, and "
                "with Gaussian noise also with replacement, alone or after one other stage; "
                "and under zero_out without replacement, with Gaussian noise; ask for the "
                "quick bound"
            )
        if not answer.upper > 0:
            return answer
        ends = _Ends(answer, target, self.width)
        self._play([ends])
        note = (WIDTH_MISSED,) if ends.is_wide else ()
        return replace(
            ends.account,
            width_met=not ends.is_wide,
            width_reason=ends.reason if ends.is_wide else "",
            conditions=(*without_note(answer), *note),
        )

    def game_values(self, targets: Sequence[Target]) -> tuple[list[GameValue], str]:
        """Return the values of games for these targets, and the reasons why they are not closer."""
        accounts = self._first_bounds(targets)
        ends = [
            _Ends(account, target, target.width)
            for account, target in zip(accounts, targets, strict=True)
        ]
        values = self._play([each for each in ends if each.is_wide])
        return values, next((each.answer().width_reason for each in ends if each.is_wide), "")

    def _tried(self, targets: Sequence[Target], best: Sequence[Account]) -> list[Account]:
        """Return the accounts of a question, with the remaining work and the best bounds so far."""
        accounts = self._first_bounds(targets)
        if self.width is None and self.proof.has_schedule and self.proof.composition.is_exact:
            accounts = list(map(self._sharpened, accounts, targets))
        if best:
            accounts = list(map(closest, best, accounts))
        return self._refined(accounts, targets)

    def _first_bounds(self, targets: Sequence[Target]) -> list[Account]:
        if self.quick or not self.proof.tightens:
            return self.proof.accounts(targets)
        return self.proof.accounts(targets, _BEFORE_GAMES)

    def _sharpened(self, answer: Account, target: Target) -> Account:
        """Return an exact epsilon with bounds that are a share of it apart, as a schedule's may be
        large."""
        width = _SCHEDULE_SHARE * answer.upper
        if target.epsilon is not None or answer.upper - answer.lower <= width:
            return answer
        again = self.proof.account(replace(target, width=width))
        # the budget may have ended it early
        return again if again.upper - again.lower < answer.upper - answer.lower else answer

    def _refined(self, answers: Sequence[Account], targets: Sequence[Target]) -> list[Account]:
        """Return the accounts with their bounds brought to within the width of the question, by
        default `SHARE`; the reason where they are not. Quick ones stay as they are."""
        if self.quick:
            asked = [
                _asked(answer, target, self.width)
                for answer, target in zip(answers, targets, strict=True)
            ]
            return [_first_bound(*each) for each in zip(answers, asked, strict=True)]
        ends = [
            _Ends(replace(answer, conditions=without_note(answer)), target, self.width)
            for answer, target in zip(answers, targets, strict=True)
        ]
        wide = [each for each in ends if each.is_wide and each.account.upper > 0]
        if not self.proof.tightens:
            self._look_closer(wide)
        elif not self._play(wide):
            self._prove(wide)
        return [each.answer() for each in ends]

    def _look_closer(self, wide: Sequence[_Ends]) -> None:
        """Look for better bounds on finer grids, where these may help."""
        share = 1.0 if self.proof.composition.is_exact else _EACH_END
        finer = []
        for ends in wide:
            if not self.proof.composition.is_exact and not ends.may_be_numerics:
                # nor would more effort help, where there was enough of it
                continue
            ends.reason = WIDTH_REASONS["numerics"]
            if share * ends.asked.width < self.proof.width:
                finer.append(ends)
        if not finer:
            return
        targets = [replace(ends.asked, width=share * ends.asked.width) for ends in finer]
        for ends, again in zip(finer, self.proof.accounts(targets), strict=True):
            ends.keep(again)
            if again.width_met and not self.proof.composition.is_exact:
                # each bound is as accurate as was asked, so that what is between them is no
                # numerics
                ends.reason = WIDTH_REASONS["theory"]

    def _play(self, wide: Sequence[_Ends]) -> list[GameValue]:
        """Lower upper bounds by the game of the adaptive adversary, and return the games: the
        widest pair of bounds comes first, and the games played for them serve all."""
        values: list[GameValue] = []
        left = list(wide)
        for plays in range(min(len(left), _MOST_PLAYS), 0, -1):
            ends = max(left, key=lambda each: each.gap)
            left.remove(ends)
            # half of the work, so that a first game is played to its end
            with work.share(1 / min(plays, 2)):
                played = self._played(ends)
            for other in wide:
                other.tighten(played, self.proof.cases[0])
            values += played
            left = [each for each in left if each.is_wide]
            if not left:
                break
        for ends in left:
            ends.reason = _BY_NUMBER
        return values

    def _prove(self, wide: Sequence[_Ends]) -> None:
        """Lower upper bounds by theorems alone, where no game was played to its end."""
        for ends in wide:
            proved = closest(ends.account, self.proof.upper(ends.target))
            ends.account = replace(proved, conditions=ends.account.conditions)

    def _played(self, ends: _Ends) -> list[GameValue]:
        """Return the games played for these bounds, which learn why they are not closer."""
        game = self.proof.cases[0].game
        assert game is not None
        if not ends.account.upper < math.inf:
            ends.reason = WIDTH_REASONS["numerics"]  # nothing from which to start
            return []
        from dpsub.accounting.games.covers import FillerGame

        reasons: list[str] = []
        values: list[GameValue] = []
        # a game that is not played to its end proves nothing: the first bound stands
        with suppress(OutOfWorkError):
            steps, spread = self.proof.releases[0].steps, self.proof.composition.spread
            played = FillerGame(
                game.cells(), steps, spread, self.proof.games, reasons, values, self.proof.searches
            )
            # closer bounds may ask for a smaller width
            before = math.inf
            while ends.is_wide and not reasons and ends.account.upper < before:
                before = float(ends.account.upper)
                played.answer(ends.asked, float(ends.account.lower), before)
                ends.tighten(values, self.proof.cases[0])
        ends.reason = WIDTH_REASONS[reasons[-1] if reasons else "effort"]
        return values


class _Ends:
    """Both bounds of one answer while they are brought together, and the reason why they are not
    closer.

    Parameters
    ----------
    account : Account
        The first bound.
    target : Target
        With the accuracy of each of the first bounds.
    width : float or None
        How far apart both bounds may be; by default `SHARE`.
    """

    def __init__(self, account: Account, target: Target, width: float | None) -> None:
        self.account, self.target, self.width = account, target, width
        self.reason = WIDTH_REASONS["numerics" if account.kind == "exact" else "theory"]

    @property
    def asked(self) -> Target:
        """The target with the width that both bounds are to have together."""
        return _asked(self.account, self.target, self.width)

    @property
    def gap(self) -> float:
        return self.asked.gap(self.account.lower, self.account.upper)

    @property
    def is_wide(self) -> bool:
        return self.gap > 1

    @property
    def may_be_numerics(self) -> bool:
        """Whether bounds that are as accurate as the first ones are may be as close as asked."""
        account, width = self.account, self.asked.width
        unit = 1.0 if account.quantity == "epsilon" else account.upper
        apart = account.upper - account.lower - 2 * self.target.width * unit
        return bool(apart <= width * unit)

    def keep(self, again: Account) -> None:
        """Keep the better ones of these bounds and of others."""
        lower = max(self.account.lower, again.lower)
        upper = min(self.account.upper, again.upper)
        best = again if again.lower >= self.account.lower else self.account
        conditions = self.account.conditions
        self.account = replace(best, lower=lower, upper=upper, conditions=conditions)

    def tighten(self, values: Sequence[GameValue], case: Case) -> None:
        """Lower the upper bound to the values that games prove."""
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
            theorem=case.citing(case.game.theorem.text),
        )

    def answer(self) -> Account:
        """Return the account with its reason."""
        is_wide = self.is_wide
        reason = self.reason if is_wide else ""
        # both bounds are about one number, but that is more than wide bounds say
        kind = "bounds" if is_wide and self.account.kind == "exact" else self.account.kind
        return replace(self.account, kind=kind, width_met=not is_wide, width_reason=reason)


def _asked(answer: Account, target: Target, width: float | None) -> Target:
    """The target with the width that both bounds are to have together."""
    if width is not None:
        return replace(target, width=width)
    # an epsilon's own size is what its accuracy is measured by: at least its lower bound
    size = answer.lower if 2 * answer.lower > answer.upper else answer.upper
    unit = float(size) if answer.quantity == "epsilon" else 1.0
    share = SHARE[answer.quantity] * unit
    return replace(target, width=share if 0 < share < math.inf else target.width)


def _first_bound(answer: Account, asked: Target) -> Account:
    """Return a quick answer, which says that it is one."""
    reason = WIDTH_REASONS["quick"] if asked.gap(answer.lower, answer.upper) > 1 else ""
    if not answer.width_met:
        reason = WIDTH_REASONS["numerics"]
    return replace(answer, width_reason=reason)


def _stopped(answer: Account) -> Account:
    """Return an account that the budget ended, with the reason for its width."""
    if answer.width_met:
        return answer
    is_wide = answer.upper - answer.lower > PERCENT * answer.upper
    if is_wide and answer.settled and answer.width_reason == WIDTH_REASONS["theory"]:
        return answer
    return replace(answer, width_reason=stopped_by())

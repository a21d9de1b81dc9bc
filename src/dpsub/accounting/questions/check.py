"""Checks of a claimed epsilon or delta: it is proved, refuted by an attack, or open.

`check` reads the question; `ClaimJudge` refines both bounds until the claim lies outside them, or
no finer grid can decide it. A verdict of proved or refuted is final, however the refinement ended,
because each bound holds on any grid (docs/proofs/numerics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Unpack

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Refinement, Target
from dpsub.accounting.questions import words
from dpsub.accounting.questions.account import WIDTH_MISSED, WIDTH_REASONS, Account, stopped_by
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import AccountKeywords, Question, answers, separated
from dpsub.accounting.questions.refinement import AccountRefinement
from dpsub.accounting.questions.statement import statement_of
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError
from dpsub.sampling import Schedule
from dpsub.sampling.base import Sampler

VERDICTS = ("proved", "refuted", "open")
"""proved: the upper bound is at most the claim.  refuted: an attack attains more.  open: the claim
lies between the bounds as far as they were refined."""
# widths of the bounds as shares of the claim: most claims are far off, and are decided by the
# first, in a fraction of the time of an account
_COARSEST, _FINER, _FINEST = 0.05, 0.1, 1e-7
# least width of the tight bound, as a share of the claim: its game takes seconds as it is
_TIGHTEST = 1e-3


@dataclass(frozen=True)
class Check(words.ShortText, words.OnAccount):
    """A claim, its verdict, and the bounds behind it.

    `theorem`, `lower_theorem`, `relative_width`, `width_met` and `width_reason` are those of the
    account.

    Attributes
    ----------
    verdict : {"proved", "refuted", "open"}
        See `VERDICTS`.
    claimed : float
        The epsilon, in nats, or the delta of the claim.
    account : Account
        Both bounds, by default refined only as far as the verdict needed; `lower_pair` names the
        data sets that attain the lower one. If the claim is open, or the bounds are wider than
        requested, `width_reason` says why.
    """

    verdict: str
    claimed: float
    account: Account

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.check_text(self.verdict, self.claimed, self.account)

    def statement(self, clip: float | str = "C", prior: float | None = None) -> words.Statement:
        """Return the statement of the account, with the verdict on the claim."""
        name = self.account.quantity
        claim = f"The claim that {name} is at most {words.near(self.claimed)} is {self.verdict}."
        return statement_of(self.account, clip, claim, prior=prior)


def check(
    source: Sampler | Schedule | Release | Ledger,
    n: int | None = None,
    *,
    delta: float | None = None,
    claimed_epsilon: float | None = None,
    epsilon: float | None = None,
    claimed_delta: float | None = None,
    **described: Unpack[AccountKeywords],
) -> Check:
    """Say whether `claimed_epsilon` holds at `delta`, or `claimed_delta` at `epsilon`.

    A claim is an upper bound that somebody states. Both bounds are refined until the claim is
    decided or known to lie between them. If the first bound leaves it open, the game of `account`
    is used, where there is one.

    Parameters
    ----------
    source : Sampler, Schedule, Release or Ledger
        As in `account`; or a ledger, whose releases already have their `n`, `noise_multiplier`,
        `steps`, `epochs`, `mechanism` and `denominator`.
    claimed_epsilon, claimed_delta : float
        One of them: epsilon in nats, >= 0, with `delta`, or a delta in [0, 1] with `epsilon`. If
        there is neither, `epsilon` is claimed at `delta`.
    n, noise_multiplier, sigma, steps, epochs, delta, epsilon
        As in `account`.
    adjacency, mechanism, denominator, group, releases_per_sample, records_per_user, strategy
        As in `account`.
    width : float, optional
        How far apart the bounds may be, as in `account`; by default they are refined only as far as
        the verdict needs.
    effort, time_limit : float or None
        As in `account`: claims that are undecided when the budget of work is spent are open.
    quick : bool
        Leave the game out.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    Examples
    --------
    >>> import dpsub
    >>> releases = {"noise_multiplier": 1.0, "steps": 128, "delta": 1e-6, "adjacency": "substitute"}
    >>> answer = dpsub.check(dpsub.Wor(16), 1000, **releases, claimed_epsilon=2.6)
    >>> answer.verdict, answer.account.lower > 10
    ('refuted', True)
    >>> dpsub.check(dpsub.Wor(16), 1000, **releases, claimed_epsilon=12.0).verdict
    'proved'
    """
    if claimed_epsilon is None and claimed_delta is None and delta is not None:
        # (epsilon, delta) is one claim, whichever of both is the claimed one
        claimed_epsilon, epsilon = epsilon, None
    at = {"epsilon": epsilon, "delta": delta}
    claimed = _claimed(claimed_epsilon, claimed_delta, at)
    released, asked = separated(AccountKeywords, described)
    if isinstance(source, Ledger):
        given = {"n": n, **released}
        if extra := [name for name, value in given.items() if value is not None]:
            raise ArgumentError(
                f"a ledger already holds its releases, got {extra[0]} as well; drop it"
            )
        releases = list(source)
    else:
        releases = [Release.of(source, n, **released)]
    question = Question.about(releases, **asked)
    with question.proof() as proof:
        judge = ClaimJudge(proof, epsilon, delta, question.quick)
        verdict = judge.judge(claimed)
        if question.width is not None:
            judge.narrow(question)
            verdict = judge.verdict
        return Check(verdict, claimed, judge.explained())


def _claimed(
    claimed_epsilon: float | None, claimed_delta: float | None, at: dict[str, float | None]
) -> float:
    """Return the number that is claimed, `at` the epsilon or delta that it needs."""
    if (claimed_epsilon is None) == (claimed_delta is None):
        raise ArgumentError(
            "a claim is either an epsilon (at a delta) or a delta (at an epsilon), got "
            f"{'neither' if claimed_epsilon is None else 'both'}; give epsilon and delta"
        )
    claimed, needs = ("delta", "epsilon") if claimed_epsilon is None else ("epsilon", "delta")
    if at[needs] is None or at[claimed] is not None:
        raise ArgumentError(
            f"a claimed {claimed} needs its {needs}, got {needs} = {at[needs]}, "
            f"{claimed} = {at[claimed]}; give {needs}"
        )
    if claimed_epsilon is not None:
        return checks.real("claimed_epsilon", claimed_epsilon, at_least=0)
    return checks.real("claimed_delta", claimed_delta, at_least=0, at_most=1)


def verdict_of(claimed: float, lower: float, upper: float) -> str:
    """Say whether a number in [lower, upper] is at most the claim: one of `VERDICTS`."""
    return "refuted" if lower > claimed else "proved" if upper <= claimed else "open"


class ClaimJudge(Refinement[float]):
    """Both bounds of one number, refined only as far as claims about it need.

    Several claims can be judged in turn: the best bounds are kept.

    Parameters
    ----------
    proof : Proof
        Theorems about the releases of the claims.
    epsilon, delta : float or None
        Exactly one: claims are about delta at this epsilon, or about epsilon at this delta.
    quick : bool
        Leave the game of the adaptive adversary out.
    finest : float
        Least width of the bounds, as a share of the claim; claims that need a smaller one are open.
    """

    def __init__(
        self,
        proof: Proof,
        epsilon: float | None,
        delta: float | None,
        quick: bool = False,
        finest: float = _FINEST,
    ) -> None:
        self.proof, self.quick, self.finest = proof, quick, finest
        self.epsilon, self.delta = epsilon, delta
        self._refusals = work.refusals()
        self._account: Account | None = None
        self._claimed = math.nan
        self._width = math.inf  # of the bounds so far
        self._is_tight = False
        self._asked: Target | None = None  # with the width that was asked for

    @property
    def account(self) -> Account:
        """The bounds so far."""
        if self._account is None:
            assert self.out_of_work is not None
            raise self.out_of_work
        return self._account

    def judge(self, claimed: float) -> str:
        """Say whether the number is at most the claim: one of `VERDICTS`."""
        self._claimed = claimed
        # bounds that an earlier claim has refined may do for this one
        first = _COARSEST * self._unit if self._account is None else self.finer(self._width)
        self.run(first)
        # the game of the adaptive adversary takes long: it comes last, and once. It brings the
        # upper bound towards the lower one, at a width relative to the claim, so not for a claim of
        # 0
        may_play = not self.quick and not self._is_over and self.proof.tightens
        if self._is_open and claimed > 0 and may_play:
            self._tighten()
        return self.verdict

    @property
    def verdict(self) -> str:
        """The verdict on the last claim, by the bounds so far: one of `VERDICTS`."""
        account = self.account
        return verdict_of(self._claimed, account.lower, account.upper)

    def narrow(self, question: Question) -> None:
        """Bring the bounds to the width of a question about the same releases."""
        assert question.width is not None
        self._asked = Target(self.epsilon, self.delta, question.width)
        if self._asked.gap(self.account.lower, self.account.upper) > 1:
            self._keep(answers(self.proof, question, self.epsilon, self.delta))

    def explained(self) -> Account:
        """Return the bounds so far, with the reason why they are not closer: none is needed where
        the claim is decided, and no width was asked for."""
        account, reason = self.account, ""
        if self._asked is not None:
            is_wide = self._asked.gap(account.lower, account.upper) > 1
        else:
            is_wide = self._is_open
        if is_wide:
            reason = account.width_reason or self._cause
        conditions = [line for line in account.conditions if is_wide or line != WIDTH_MISSED]
        return replace(
            account, width_met=not is_wide, width_reason=reason, conditions=tuple(conditions)
        )

    @property
    def _cause(self) -> str:
        """The reason why the bounds are not closer."""
        if self._is_spent:
            return stopped_by()
        if self.quick and self.proof.tightens:
            return WIDTH_REASONS["quick"]
        return WIDTH_REASONS["numerics" if self.account.kind == "exact" else "theory"]

    @property
    def _is_spent(self) -> bool:
        """Whether the budget of work ended anything."""
        return work.refusals() > self._refusals

    @property
    def _unit(self) -> float:
        """The unit of widths: the claim, except for delta, whose width is relative."""
        return 1.0 if self.delta is None else max(self._claimed, 1e-3)

    @property
    def _is_open(self) -> bool:
        return self._account is not None and self.verdict == "open"

    @property
    def _is_over(self) -> bool:
        """Whether no better bounds are sought: the tight one is there, or the budget is spent."""
        return self._is_tight or self._is_spent

    def evaluate(self, width: float) -> None:
        target = Target(self.epsilon, self.delta, width)
        self._keep(self.proof.account(target))
        self._width = width

    def finer(self, width: float) -> float | None:
        """A tenth of the width, if the claim is so near a bound that this can decide it."""
        account = self.account
        if not self._is_open or self._is_over or not account.width_met:
            return None
        # what finer grids can still move a bound by; a bound that has met its width stays where it
        # is to within that, so that a claim farther inside remains open on every grid
        margin = width * (account.upper if self.delta is None else 1.0)
        near = self._claimed - account.lower <= margin or account.upper - self._claimed <= margin
        return width * _FINER if near and width > self.finest * self._unit else None

    def _tighten(self) -> None:
        """Ask for the tight upper bound, as close to the lower one as the claim is."""
        account, claimed = self.account, self._claimed
        # no closer than the verdict needs: the attack stands where it is
        distance = max(claimed - account.lower, _TIGHTEST * claimed)
        width = distance / (claimed if self.delta is None else 1.0)
        target = Target(self.epsilon, self.delta)
        self._keep(AccountRefinement(self.proof, width or None).tightened(account, target))
        self._is_tight = True

    def _keep(self, account: Account) -> None:
        """Keep the better ones of old and new bounds: all of them hold."""
        before = self._account
        # each bound stays with what proves or attains it
        if before is not None and before.upper < account.upper:
            account = replace(account, upper=before.upper, pair=before.pair, theorem=before.theorem)
        if before is not None and before.lower > account.lower:
            account = replace(
                account,
                lower=before.lower,
                lower_pair=before.lower_pair,
                lower_theorem=before.lower_theorem,
            )
        self._account = account

"""Computation of an account: an upper bound, by the theorems that apply to the releases, and a
lower bound, by attacks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import LEAST_DELTA, Bracket, End, Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.questions.account import (
    WIDTH_MISSED,
    WIDTH_REASONS,
    Account,
    closest,
    crossed,
    given,
    joined,
)
from dpsub.accounting.questions.first_lower import first_lower
from dpsub.accounting.questions.first_upper import first_upper
from dpsub.accounting.questions.words import Asked
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import default_relation, plain_cases
from dpsub.accounting.schemes.case import Case, page_of
from dpsub.errors import ArgumentError, NumericalError
from dpsub.relations import Relation, relation_named
from dpsub.sampling.schedules import Schedule

if TYPE_CHECKING:
    from dpsub.accounting.games.filler_flip import Played
    from dpsub.accounting.games.game import GamePlayed

_FILLER_FLIP = "Filler flip, docs/proofs/attacks.md"
_FIRST_ATTACK = "First attack, docs/proofs/first_ends.md"
_FIRST_ENDS = 8  # of many targets, for which closed-form bounds are computed


class Shares(NamedTuple):
    """Parts of the remaining work that upper bounds may take, then filler flips, then attacks that
    choose no fillers."""

    upper: float = 1 / 2
    flips: float = 1.0
    attacks: float = 1.0


@dataclass(frozen=True, eq=False)
class Proof:
    """The theorems that apply to releases of several kinds on the same records, before any number
    is computed.

    `asked` are the releases of the question, and `releases` the plain ones to which they amount
    (`schemes.reductions`). `policies` and `games` keep the filler flips and the games that were
    played for its answers, for certificates.
    """

    releases: tuple[Release, ...]
    cases: tuple[Case, ...]
    relation: Relation
    composition: Composition
    asked: tuple[Release, ...]
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
        users = [release.records_per_user is not None for release in releases]
        if any(users) and not all(users):
            raise ArgumentError(
                "releases from the same users need records_per_user, got some with it and some "
                "without; give it in all of them"
            )
        kinds = [kind for release in releases for kind in plain_cases(release, relation)]
        plain = tuple(release for release, _ in kinds)
        cases = tuple(case for _, case in kinds)
        entries = [(case.event, release.times) for release, case in kinds]
        return cls(plain, cases, relation, Composition(entries), tuple(releases))

    @property
    def has_schedule(self) -> bool:
        """Whether any of the releases follow a schedule."""
        return any(isinstance(release.sampler, Schedule) for release in self.releases)

    @property
    def width(self) -> float:
        """Default accuracy: finer for exact answers and on schedules."""
        return 1e-3 if self.has_schedule or self.composition.is_exact else 5e-3

    def accounts(self, targets: Sequence[Target], shares: Shares | None = None) -> list[Account]:
        """Return both bounds for each of several targets in order, which share privacy loss
        distributions."""
        return self._with_first_ends(self._accounts(targets, shares or Shares()), targets)

    def _accounts(self, targets: Sequence[Target], shares: Shares) -> list[Account]:
        """Return both bounds by privacy loss distributions alone, trivial where there are none."""
        attack = joined(filter(None, (case.attained for case in self.cases)))
        if self.composition.is_exact:
            brackets = [Bracket(0.0, target.ceiling, False) for target in targets]
            with suppress(NumericalError):  # closed-form bounds are there where no grid is
                brackets = self.composition.brackets(targets)
            return [
                self._account(target, *bracket, attack)
                for target, bracket in zip(targets, brackets, strict=True)
            ]
        # the guarantee first: attacks get what work is left, of which some is
        uppers = [End(target.ceiling, False) for target in targets]
        before = work.refusals()
        with work.share(shares.upper), suppress(NumericalError):
            uppers = self.composition.bounds(targets)
        lacks_work = work.refusals() > before
        before = work.refusals()
        with work.share(shares.flips):
            flips = self._filler_flips(targets)
        # a coarser memory than the finest one is near enough
        flips_settled = work.refusals() == before or min(flips) > 0
        lowers = [End(0.0, False)] * len(targets)
        with work.share(shares.attacks), suppress(NumericalError):
            lowers = self.composition.attacks(targets, flips)
        if lacks_work and not self.tightens:
            # what attacks leave, where no game needs it
            with suppress(NumericalError):
                tried = zip(self.composition.bounds(targets), uppers, strict=True)
                uppers = [min(both, key=lambda end: end.value) for both in tried]
        accounts = []
        for target, upper, lower, flip in zip(targets, uppers, lowers, flips, strict=True):
            best_attack = attack
            if flip > lower.value:
                best_attack = f"{attack}, the fillers' sign chosen adaptively"
            width_met = lower.width_met and upper.width_met
            value = max(lower.value, flip)
            account = self._account(target, value, upper.value, width_met, best_attack)
            # a game replaces the upper bound
            settled = flips_settled and lower.settled and (upper.settled or self.tightens)
            account = replace(account, settled=settled)
            if flip > lower.value:
                account = replace(account, lower_theorem=_FILLER_FLIP)
            accounts.append(account)
        return accounts

    def first_ends(self, targets: Sequence[Target]) -> list[Account]:
        """Return bounds that cost milliseconds (docs/proofs/first_ends.md), for targets in order.
        Of many of them some are computed, and each of these bounds holds for those on one side."""
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
            # where both bounds are about one number, its theorem proves closed forms of it, too
            if not self.composition.is_exact:
                first = replace(
                    first,
                    pair=upper.given_by.partition(",")[0],
                    theorem=self._citing(upper.given_by),
                    lower_theorem=_FIRST_ATTACK if attack else "",
                )
            accounts.append(first)
        return accounts

    def _with_first_ends(
        self, accounts: Sequence[Account], targets: Sequence[Target]
    ) -> list[Account]:
        """Return the accounts, those with a trivial bound with closed-form bounds in its place."""
        trivial = [
            i
            for i, (account, target) in enumerate(zip(accounts, targets, strict=True))
            if not 0 < account.lower <= account.upper < target.ceiling
        ]
        found = list(accounts)
        firsts = self.first_ends([targets[i] for i in trivial]) if trivial else []
        for i, first in zip(trivial, firsts, strict=True):
            both = closest(first, found[i])
            # where both bounds were about one number they still are
            kind = "exact" if self.composition.is_exact else both.kind
            found[i] = replace(both, kind=kind)
        return found

    def _filler_flips(self, targets: Sequence[Target]) -> list[float]:
        """Return the bounds that the adaptive attack attains, 0 without one
        (docs/proofs/attacks.md)."""
        pair = self.cases[0].filler_flip
        if len(self.releases) > 1 or pair is None:
            return [0.0] * len(targets)
        # games are imported where they are played: most accounts play none
        from dpsub.accounting.games.filler_flip import AdaptiveAttack

        key = tuple((target.epsilon, target.delta) for target in targets)
        if key not in self._flips:
            before = work.refusals()
            attack = AdaptiveAttack(pair, self.releases[0].steps, self.policies)
            answers = attack.answers(targets)
            # a play that a larger budget would not change is played once
            if work.refusals() > before:
                return answers
            self._flips[key] = answers
        return self._flips[key]

    def account(self, target: Target) -> Account:
        """Return both bounds for one target, as `accounts`."""
        return self.accounts([target])[0]

    @property
    def tightens(self) -> bool:
        """Whether a game brings the upper bound closer to the lower one."""
        return (
            not self.composition.is_exact
            and len(self.releases) == 1
            and self.cases[0].game is not None
        )

    @property
    def theorem(self) -> str:
        """The theorems that prove the first upper bound."""
        return joined(text for case in self.cases for text in case.cited(case.theorem.text))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of an upper bound."""
        return tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))

    @property
    def attack_stands(self) -> str:
        """Pages of the attacks of the lower bound; where both are one number, its theorem."""
        if self.composition.is_exact:
            return self.theorem
        return joined(f"Attack, {page_of(case.attack_section)}" for case in self.cases)

    def upper(self, target: Target) -> Account:
        """Return the upper bound alone, of kind upper; both where they are computed together."""
        if self.composition.is_exact:
            return self.account(target)
        upper = End(target.ceiling, False)
        with suppress(NumericalError):
            upper = self.composition.bound(target)
        account = self._account(target, 0.0, upper.value, upper.width_met, attack="")
        if account.upper < target.ceiling:
            return account
        first = first_upper(self.cases, self.releases, self.relation, target)
        return replace(account, upper=first.value, theorem=self._citing(first.given_by))

    def _citing(self, theorem: str) -> str:
        """Cite a theorem about all releases together."""
        return joined(text for case in self.cases for text in case.cited(theorem))

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
        # bounds of one number may cross by their rounding, which is of this size; by more, one is
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
            asked=Asked(self.asked, (given(target),)),
            attack_known=self.composition.attacked,
            _origin=(self, target),
        )


def relation_of(releases: Sequence[Release], adjacency: str | None) -> Relation:
    """Return the relation that is asked for; else the default of all releases together."""
    return default_relation(releases) if adjacency is None else relation_named(adjacency)
